//! Git without a process: libgit2, for what is asked or written most often.
//!
//! What it cannot do or refuses to do is for the git program to do or refuse: it alone waits for the locks of others, knows
//! every format of a repository, and says in words that people can look up what is wrong.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use git2::{ConfigLevel, Oid, RepositoryOpenFlags, Tree, TreeEntry};

use super::admin_lock::Guarded;
use super::configuration::usual_files;
use super::durable;
use super::repository::Repository;
use super::slot::git_directory;
use super::stamp::Stamps;
use crate::fs::regular_file;
use crate::model::CommitId;

/// Objects and refs are on disk before libgit2 reports them, as with the git program. It knows no other way to be told so.
const DURABLE: &str = "[core]\n\tfsyncObjectFiles = true\n";

/// What libgit2 has open of a repository, kept for the next question: opening reads every setting and much else again.
/// Shared by all copies of a [`Repository`].
#[derive(Clone)]
pub(super) struct Handles {
    common: PathBuf,
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    /// What libgit2 reads when it opens a repository, and not again.
    read: Arc<Stamps>,
    free: Vec<Handle>,
}

impl Kept {
    fn nothing(common: &Path) -> Self {
        let more = ["shallow", "info/grafts", "objects/info/alternates"].map(|file| common.join(file));
        Self { read: Arc::new(Stamps::now(usual_files(common).into_iter().chain(more))), free: Vec::new() }
    }
}

struct Handle {
    /// A worktree, or the repository's common directory.
    place: PathBuf,
    durable: bool,
    git: git2::Repository,
}

impl Handles {
    /// None yet, of the repository whose common directory is `common`.
    pub(super) fn new(common: &Path) -> Self {
        Self { common: common.to_owned(), kept: Arc::new(Mutex::new(Kept::nothing(common))) }
    }

    /// Asks libgit2 about the repository, not about any worktree. `None`: it cannot tell.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>) -> Option<T> {
        self.with(&self.common, false, || open(&self.common), question)
    }

    /// One that failed is not kept: what it knew may be out of date.
    fn with<T>(
        &self,
        place: &Path,
        durable: bool,
        open: impl FnOnce() -> Result<git2::Repository, git2::Error>,
        act: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
    ) -> Option<T> {
        let (free, read) = self.take(place, durable);
        let git = match free {
            Some(git) => git,
            None => open().ok()?,
        };
        let done = act(&git).ok()?;
        let mut kept = self.locked();
        if Arc::ptr_eq(&kept.read, &read) {
            kept.free.push(Handle { place: place.to_owned(), durable, git });
        }
        Some(done)
    }

    /// One that is free, if any is, and what those that are free now have read.
    fn take(&self, place: &Path, durable: bool) -> (Option<git2::Repository>, Arc<Stamps>) {
        let mut kept = self.locked();
        if !kept.read.are_current() {
            *kept = Kept::nothing(&self.common);
        }
        let fitting = |handle: &Handle| handle.durable == durable && handle.place == place;
        let free = kept.free.iter().rposition(fitting).map(|at| kept.free.swap_remove(at).git);
        // Another worktree may be in its place by now.
        let same = |git: &git2::Repository| {
            place == self.common || git_directory(place).is_ok_and(|directory| directory == git.path())
        };
        (free.filter(same), kept.read.clone())
    }

    fn locked(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Handles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Handles").finish_non_exhaustive()
    }
}

/// Asks libgit2 about the worktree at `place`, which is not looked for above. `None`: it cannot tell.
pub(super) fn ask<T>(place: &Path, question: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>) -> Option<T> {
    open(place).and_then(|git| question(&git)).ok()
}

/// Has libgit2 change something at `place`, a worktree or the common directory, durably. `None`: it did not, and changed
/// nothing.
pub(super) fn change<T>(
    repository: &Repository,
    place: &Path,
    act: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
) -> Option<T> {
    if !repository.may_write_in_process() {
        return None;
    }
    let own = repository.own_directory().ok()?;
    let settings = own.join("libgit2.config");
    if !regular_file::read(&settings).is_ok_and(|known| known == DURABLE.as_bytes()) {
        let write = |_: &File| {
            durable::remove_unfinished(&own)?;
            durable::write(&settings, DURABLE.as_bytes())
        };
        repository.holding(Guarded::Settings, write).ok()?;
    }
    repository.handles().with(place, true, || open_durable(place, &settings), act)
}

fn open_durable(place: &Path, settings: &Path) -> Result<git2::Repository, git2::Error> {
    let git = open(place)?;
    git.config()?.add_file(settings, ConfigLevel::App, true)?;
    // Where it does not know of the setting, it must not write.
    match git.config()?.get_bool("core.fsyncObjectFiles")? {
        true => Ok(git),
        false => Err(git2::Error::from_str("it would not write durably")),
    }
}

fn open(place: &Path) -> Result<git2::Repository, git2::Error> {
    // What git has lost must not be believed to be there.
    static NO_CACHE: Once = Once::new();
    NO_CACHE.call_once(|| git2::opts::enable_caching(false));
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

/// The paths in which two commits differ, as `git diff-tree -r --no-renames` tells them. Directories that are the same in
/// both are not read.
pub(super) fn differences(
    git: &git2::Repository,
    from: &CommitId,
    to: &CommitId,
) -> Result<Vec<Difference>, git2::Error> {
    let tree = |commit| git.find_commit(oid(commit)?)?.tree();
    let mut found = Vec::new();
    compare(git, &mut Vec::new(), [Some(&tree(from)?), Some(&tree(to)?)], &mut found)?;
    found.sort_unstable_by(|one: &Difference, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Puts into `found` what differs in two directories at `above`, which is empty or ends with a slash.
fn compare(
    git: &git2::Repository,
    above: &mut Vec<u8>,
    trees: [Option<&Tree<'_>>; 2],
    found: &mut Vec<Difference>,
) -> Result<(), git2::Error> {
    let [old, new] = trees.map(|tree| tree.into_iter().flatten());
    let [old_names, new_names] = trees.map(|tree| move |name: &[u8]| tree.and_then(|tree| tree.get_name_bytes(name)));
    let pairs = old.map(|entry| (new_names(entry.name_bytes()), entry)).map(|(new, old)| [Some(old), new]);
    let added = new.filter(|entry| old_names(entry.name_bytes()).is_none()).map(|entry| [None, Some(entry)]);
    for pair in pairs.chain(added) {
        let ids = pair.each_ref().map(|entry| entry.as_ref().map(|it| (it.id(), mode_of(it))));
        let Some(name) = pair.iter().flatten().next().map(TreeEntry::name_bytes).filter(|_| ids[0] != ids[1]) else {
            continue;
        };
        let length = above.len();
        above.extend_from_slice(name);
        let [from, to] = ids.map(|it| it.map_or(0, |(_, mode)| mode));
        let file = |mode| if mode == DIRECTORY { 0 } else { mode };
        if file(from) != 0 || file(to) != 0 {
            found.push(Difference { path: above.clone(), from: file(from), to: file(to) });
        }
        if from == DIRECTORY || to == DIRECTORY {
            above.push(b'/');
            let inner = |id: Option<(Oid, u32)>| id.filter(|it| it.1 == DIRECTORY).map(|it| git.find_tree(it.0));
            let [old, new] = [inner(ids[0]).transpose()?, inner(ids[1]).transpose()?];
            compare(git, above, [old.as_ref(), new.as_ref()], found)?;
        }
        above.truncate(length);
    }
    Ok(())
}

/// The mode of a directory.
const DIRECTORY: u32 = 0o040_000;

fn mode_of(entry: &TreeEntry<'_>) -> u32 {
    canonical(entry.filemode_raw().cast_unsigned())
}

/// Whether `descendant` holds everything that `ancestor` holds; mostly the one was made of the other a few commits before.
pub(super) fn is_ancestor(git: &git2::Repository, ancestor: Oid, descendant: Oid) -> Result<bool, git2::Error> {
    let (mut seen, mut ahead) = (Vec::new(), VecDeque::from([descendant]));
    while let Some(commit) = ahead.pop_front().filter(|_| seen.len() < NEAR) {
        if commit == ancestor {
            return Ok(true);
        }
        if !seen.contains(&commit) {
            seen.push(commit);
            ahead.extend(git.find_commit(commit)?.parent_ids());
        }
    }
    git.graph_descendant_of(descendant, ancestor)
}

/// So many commits are looked at one by one.
const NEAR: usize = 12;

/// The mode that git takes for one that an old or imported history may have, such as 100664 or 40755.
pub(super) fn canonical(mode: u32) -> u32 {
    match mode & 0o170_000 {
        0o100_000 if mode & 0o100 == 0 => 0o100_644,
        0o100_000 => 0o100_755,
        kind => kind,
    }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
