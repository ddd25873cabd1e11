//! Git without a process: libgit2, for what is asked or written most often.
//!
//! What it cannot do or refuses to do is for the git program to do or refuse: it alone waits for the locks of others, knows
//! every format of a repository, and says in words that people can look up what is wrong.

use std::fs;
use std::path::Path;

use git2::{ConfigLevel, DiffOptions, Oid, RepositoryOpenFlags};

use super::durable;
use super::repository::Repository;
use crate::model::CommitId;

/// Objects and refs are on disk before libgit2 reports them, as with the git program. It knows no other way to be told so.
const DURABLE: &str = "[core]\n\tfsyncObjectFiles = true\n";

/// Asks libgit2 about the worktree at `place`, which is not looked for above. `None`: it cannot tell.
pub(super) fn ask<T>(place: &Path, question: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>) -> Option<T> {
    open(place).and_then(|git| question(&git)).ok()
}

/// Has libgit2 change something at `place`, durably. `None`: it did not, and changed nothing.
pub(super) fn change<T>(
    repository: &Repository,
    place: &Path,
    act: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
) -> Option<T> {
    if !repository.may_write_in_process() {
        return None;
    }
    let settings = repository.own_directory().ok()?.join("libgit2.config");
    if !fs::read(&settings).is_ok_and(|known| known == DURABLE.as_bytes()) {
        durable::write(&settings, DURABLE.as_bytes()).ok()?;
    }
    let git = open(place).ok()?;
    git.config().and_then(|mut config| config.add_file(&settings, ConfigLevel::App, true)).ok()?;
    // Where it does not know of the setting, it must not write.
    git.config().and_then(|config| config.get_bool("core.fsyncObjectFiles")).ok().filter(|durable| *durable)?;
    act(&git).ok()
}

fn open(place: &Path) -> Result<git2::Repository, git2::Error> {
    git2::Repository::open_ext(place, RepositoryOpenFlags::NO_SEARCH, &[] as &[&Path])
}

/// A commit's name as libgit2 has it.
pub(super) fn oid(commit: &CommitId) -> Result<Oid, git2::Error> {
    Oid::from_str(commit.as_str())
}

/// A path in which two commits differ.
pub(super) struct Difference {
    /// From the repository's root.
    pub(super) path: Vec<u8>,
    /// Its mode in the first, 0: it is not there.
    pub(super) from: u32,
    /// Its mode in the second.
    pub(super) to: u32,
}

impl Difference {
    /// Whether it concerns nothing but links to commits of other repositories.
    pub(super) fn is_of_links(&self) -> bool {
        [self.from, self.to].iter().all(|&mode| mode == LINK || mode == 0)
    }
}

/// The mode of a link to a commit of another repository.
pub(super) const LINK: u32 = 0o160_000;

/// The paths in which two commits differ, as `git diff-tree -r --no-renames` tells them.
pub(super) fn differences(
    git: &git2::Repository,
    from: &CommitId,
    to: &CommitId,
) -> Result<Vec<Difference>, git2::Error> {
    let tree = |commit| git.find_commit(oid(commit)?)?.tree();
    let diff = git.diff_tree_to_tree(Some(&tree(from)?), Some(&tree(to)?), Some(&mut every_difference()))?;
    Ok(deltas(&diff))
}

/// The paths in which the index in the file `index` differs from a commit, as `git diff-index --cached` tells them.
pub(super) fn staged(git: &git2::Repository, index: &Path, commit: &CommitId) -> Result<Vec<Difference>, git2::Error> {
    let (tree, index) = (git.find_commit(oid(commit)?)?.tree()?, git2::Index::open(index)?);
    index_differs(git, &tree, &index)
}

/// The paths in which an index differs from a tree.
pub(super) fn index_differs(
    git: &git2::Repository,
    tree: &git2::Tree<'_>,
    index: &git2::Index,
) -> Result<Vec<Difference>, git2::Error> {
    Ok(deltas(&git.diff_tree_to_index(Some(tree), Some(index), Some(&mut every_difference()))?))
}

/// The mode that git takes for one that an old or imported history may have, such as 100664.
fn canonical(mode: u32) -> u32 {
    match mode {
        file if file & 0o170_000 == 0o100_000 => {
            if file & 0o100 == 0 {
                0o100_644
            } else {
                0o100_755
            }
        }
        other => other,
    }
}

fn every_difference() -> DiffOptions {
    let mut options = DiffOptions::new();
    options.include_typechange(true).ignore_case(false).ignore_submodules(false);
    options
}

fn deltas(diff: &git2::Diff<'_>) -> Vec<Difference> {
    let mode = |file: git2::DiffFile<'_>| if file.exists() { canonical(u32::from(file.mode())) } else { 0 };
    let same = |delta: &git2::DiffDelta<'_>| {
        let (old, new) = (delta.old_file(), delta.new_file());
        old.id() == new.id() && mode(old) == mode(new)
    };
    let difference = |delta: git2::DiffDelta<'_>| {
        let path = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes()).unwrap_or_default();
        Difference { path: path.to_vec(), from: mode(delta.old_file()), to: mode(delta.new_file()) }
    };
    diff.deltas().filter(|delta| !same(delta)).map(difference).collect()
}
