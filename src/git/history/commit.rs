//! Committing what an agent left uncommitted, on whatever its worktree has checked out.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::git::command::{Git, GitError, Result, path_text};
use crate::git::fast::durable;
use crate::git::history::{index_lock, remove_dead_locks, run_identified};
use crate::git::query::{Head, Survey, as_hook_left, clear_flags, distrust_times, refuse_operation, survey, untracked};
use crate::git::repo::{Repository, branch_reference, git_directory, holding_worktree};
use crate::model::CommitId;

#[derive(Debug, Clone, Copy)]
pub struct CommitRequest<'a> {
    pub worktree: &'a Path,
    pub message: &'a str,
    /// `Run`, `Lane`, …, with their values.
    pub trailers: &'a [(&'a str, &'a str)],
    /// A commit whose objects are durable; those that came after it are made so, the agent's own commits included.
    pub since: &'a CommitId,
    /// Whether no program but Lanekeeper can be at work in the worktree, so that git's locks there are dead processes'.
    pub nobody_else: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The worktree's head now.
    pub head: CommitId,
    /// Repositories within the worktree (a clone, another worktree). They are left as they are and are not committed:
    /// git would store a link to a commit that is nowhere else.
    pub embedded: Vec<String>,
}

/// Commits everything in a worktree that is neither committed nor ignored; nothing of that kind is as good.
///
/// # Errors
/// [`GitError::OperationInProgress`], also for unresolved conflicts; [`GitError::IndexLocked`].
pub fn commit_all(repository: &Repository, request: &CommitRequest<'_>) -> Result<Committed> {
    let worktree = request.worktree;
    refuse_operation(worktree)?;
    holding_worktree(worktree, |lock| {
        if request.nobody_else {
            remove_dead_locks(worktree)?;
        } else if let Some(lock) = index_lock(worktree)? {
            return Err(GitError::IndexLocked { lock });
        }
        clear_flags(worktree)?;
        distrust_times(worktree, &git_directory(worktree)?.join("index"));
        let found = survey(worktree)?;
        if found.conflicts {
            return Err(GitError::OperationInProgress { path: worktree.to_owned(), which: "resolving conflicts" });
        }
        let embedded = found.embedded.iter().map(|path| path_text(path)).collect();
        Ok(Committed { head: commit(repository, request, found, lock)?, embedded })
    })
}

fn commit(repository: &Repository, request: &CommitRequest<'_>, mut found: Survey, lock: &File) -> Result<CommitId> {
    let from_hook = as_hook_left(request.worktree)?;
    found.differing.retain(|path| !from_hook.contains(path));
    let head = match &found.head {
        Some(head) if !found.staged && found.differing.is_empty() => head.clone(),
        // Repositories within the worktree and what a hook left are not the agent's work.
        _ => commit_with_git(repository, request, &[found.embedded, from_hook].concat(), lock)?,
    };
    make_durable(repository, &head, request.since)?;
    Ok(head.commit)
}

fn commit_with_git(
    repository: &Repository,
    request: &CommitRequest<'_>,
    left_out: &[Vec<u8>],
    lock: &File,
) -> Result<Head> {
    let worktree = request.worktree;
    add_all(Git::new(worktree).comparing_carefully().without_hooks().stdin(lock), left_out).run()?;
    let git = Git::new(worktree).without_hooks().stdin(lock);
    let git = git.args(["commit", "--quiet", "--no-verify", "--allow-empty-message", "--cleanup=whitespace"]);
    let committed = run_identified(git.arg("-m").arg(message(request.message, request.trailers)));
    let nothing = ["diff", "--cached", "--quiet", "--ignore-submodules=none"];
    // What differs on disk need not do so in git: line ends, for example.
    if committed.is_err() && !Git::new(worktree).args(nothing).yes()? {
        committed?;
    }
    repository.head_at(worktree)
}

fn make_durable(repository: &Repository, head: &Head, since: &CommitId) -> Result<()> {
    durable::objects(repository, &head.commit, std::slice::from_ref(since))?;
    match &head.branch {
        Some(branch) => durable::reference(repository, &branch_reference(branch)),
        None => Ok(()),
    }
}

pub(crate) fn message(message: &str, trailers: &[(&str, &str)]) -> String {
    let mut text = format!("{}\n", message.trim_end());
    for (number, (name, value)) in trailers.iter().enumerate() {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(if number == 0 { "\n" } else { "" });
        text.push_str(&format!("{name}: {value}\n"));
    }
    text
}

pub(crate) fn embedded_in(worktree: &Path) -> Result<Vec<Vec<u8>>> {
    let entries = untracked(worktree)?.into_iter();
    Ok(entries.filter_map(|path| path.strip_suffix(b"/").map(<[u8]>::to_vec)).collect())
}

/// `git add` of everything but the paths `left_out`.
pub(crate) fn add_all<'a>(git: Git<'a>, left_out: &[Vec<u8>]) -> Git<'a> {
    // A user's `core.safecrlf=true` would refuse a file with mixed line ends, and with it all the work.
    let git = git.configured("core.safecrlf=false").configured("advice.addEmbeddedRepo=false");
    let excluded =
        left_out.iter().map(|path| OsString::from_vec([b":(top,exclude,literal)", path.as_slice()].concat()));
    // `--sparse`: a file outside the sparse selection is work too, and git gives up at the first one.
    git.args(["add", "--all", "--sparse", "--", ":(top)"]).args(excluded)
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn a_trailer_is_one_line_whatever_its_value() {
        assert_eq!(message("Work\n\n", &[("Run", "r1"), ("Task", "a\nb: c")]), "Work\n\nRun: r1\nTask: a b: c\n");
        assert_eq!(message("Work", &[]), "Work\n");
    }
}
