//! Whether what a commit holds can still be read: a power cut or a bad disk may take objects that refs lead to. Called
//! before a worktree is reset to a commit, or opened again at one.

use std::collections::BTreeMap;

use lanewright_model::CommitId;

use crate::command::Result;
use crate::recovery::lost_objects::LostObject;
use crate::repo::Repository;

/// Which of `commits` cannot be read any more, each with what is wrong: the commit itself, a directory or a file in it
/// is missing or empty. What came before a commit is not looked at, nor every byte of every file.
pub fn damaged(repository: &Repository, commits: &[CommitId]) -> Result<BTreeMap<CommitId, String>> {
    if commits.is_empty() || first_fault(repository, commits)?.is_none() {
        return Ok(BTreeMap::new());
    }
    let mut damaged = BTreeMap::new();
    for commit in commits {
        if let Some(reason) = first_fault(repository, std::slice::from_ref(commit))? {
            damaged.insert(commit.clone(), reason);
        }
    }
    Ok(damaged)
}

/// What is wrong with the first of `commits` with which something is.
fn first_fault(repository: &Repository, commits: &[CommitId]) -> Result<Option<String>> {
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
    let reason = first_fault(repository, std::slice::from_ref(commit))?;
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
