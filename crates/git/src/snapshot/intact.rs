//! Whether what a commit holds can still be read: a power cut or a bad disk may take objects that refs lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lanewright_model::CommitId;

use crate::command::{Git, Result, nul_separated, path_text};
use crate::repo::Repository;
use crate::snapshot::objects::{LostObject, store_objects_again};

/// Which of `commits` cannot be read any more, each with what is wrong: the commit itself, a directory or a file in it
/// is missing or empty. What came before a commit is not looked at, nor every byte of every file.
pub fn damaged(repository: &Repository, commits: &[CommitId]) -> Result<BTreeMap<CommitId, String>> {
    if commits.is_empty() || look(repository, commits)?.is_none() {
        return Ok(BTreeMap::new());
    }
    let mut damaged = BTreeMap::new();
    for commit in commits {
        if let Some(reason) = look(repository, std::slice::from_ref(commit))? {
            damaged.insert(commit.clone(), reason);
        }
    }
    Ok(damaged)
}

/// Stores objects again that git has lost, from the files of `worktree`: what its index and its head since `base` name.
/// An index that still names lost objects then is made again as the head has it. Returns how many objects were lost and
/// are stored again.
///
/// Git protects objects that nothing refers to yet only by their age, which `git gc --prune=now` ignores. An object is
/// named by its content, so the files of a worktree are a copy of most of them.
pub fn restore_lost_objects(repository: &Repository, worktree: &Path, base: &CommitId) -> Result<usize> {
    let lost = named_and_lost(worktree, base)?;
    if lost.is_empty() {
        return Ok(0);
    }
    store_objects_again(repository, worktree, &lost)?;
    if !lost_in_index(worktree)?.is_empty() {
        repository.make_index(worktree)?;
    }
    Ok(lost.len().saturating_sub(named_and_lost(worktree, base)?.len()))
}

/// The objects that the index of `worktree`, or its head since `base`, names and git has not.
fn named_and_lost(worktree: &Path, base: &CommitId) -> Result<BTreeSet<String>> {
    let mut lost = lost_in_index(worktree)?;
    let git = Git::new(worktree).args(["rev-list", "--objects", "--missing=print", "HEAD", "--not", base.as_str()]);
    let listing = git.attempt()?;
    let listing = String::from_utf8_lossy(&listing.stdout);
    lost.extend(listing.lines().filter_map(|line| Some(line.strip_prefix('?')?.to_owned())));
    Ok(lost)
}

fn lost_in_index(worktree: &Path) -> Result<BTreeSet<String>> {
    let staged = Git::new(worktree).reading_only().args(["ls-files", "-z", "--stage"]).run()?;
    let object = |entry| path_text(entry).split(' ').nth(1).map(|object| format!("{object}\n"));
    // The commits of submodules are in other repositories.
    let own = nul_separated(&staged).filter(|entry| !entry.starts_with(b"160000 "));
    let names: BTreeSet<String> = own.filter_map(object).collect();
    let list = names.into_iter().collect::<String>().into_bytes();
    let kinds = Git::new(worktree).args(["cat-file", "--batch-check=%(objecttype)"]).input(list).run()?;
    let missing = |line: &str| line.strip_suffix(" missing").map(str::to_owned);
    Ok(String::from_utf8_lossy(&kinds).lines().filter_map(missing).collect())
}

/// What is wrong with the first of `commits` with which something is.
fn look(repository: &Repository, commits: &[CommitId]) -> Result<Option<String>> {
    let names = commits.iter().map(CommitId::as_str);
    let listing = repository.git().args(["rev-list", "--objects", "--no-walk"]).args(names).attempt()?;
    if !listing.status.success() {
        return Ok(Some(complaint(&listing.stderr)));
    }
    let git = repository.git().input(listing.stdout);
    let kinds = git.args(["cat-file", "--batch-check=%(objecttype) %(rest)"]).attempt()?;
    if !kinds.status.success() {
        return Ok(Some(complaint(&kinds.stderr)));
    }
    let text = String::from_utf8_lossy(&kinds.stdout);
    let there = |line: &&str| ["commit ", "tree ", "blob "].iter().any(|kind| line.starts_with(kind));
    Ok(text.lines().find(|line| !there(line)).map(str::to_owned))
}

/// The same as lost objects, from the git program.
pub(crate) fn complaint_about(repository: &Repository, commit: &CommitId) -> Result<Vec<LostObject>> {
    let reason = look(repository, std::slice::from_ref(commit))?;
    let lost = |reason| LostObject {
        object: commit.to_string(),
        path: String::new(),
        reason: format!("is damaged ({reason})"),
    };
    Ok(reason.map(lost).into_iter().collect())
}

fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("git cannot read it");
    line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned()
}
