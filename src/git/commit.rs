//! Committing what an agent left uncommitted, on whatever its worktree has checked out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::SystemTime;

use super::admin_lock::holding_worktree;
use super::durable;
use super::error::GitError;
use super::file_system::distrust_times;
use super::head::{Head, index_lock, remove_dead_locks};
use super::hook::as_hook_left;
use super::identity::run_identified;
use super::index_flags::clear_flags;
use super::operation::refuse_operation;
use super::plain_commit::commit_plainly;
use super::program::{Git, path_text};
use super::repository::{Repository, branch_reference};
use super::slot::git_directory;
use super::status::{Survey, survey, untracked};
use crate::model::CommitId;

/// What is to be committed, and how.
#[derive(Debug, Clone, Copy)]
pub struct CommitRequest<'a> {
    /// Where.
    pub worktree: &'a Path,
    /// The commit's message.
    pub message: &'a str,
    /// Its trailers, `Run`, `Lane`, …, with their values.
    pub trailers: &'a [(&'a str, &'a str)],
    /// A commit whose objects are durable; those that came after it are made so, the agent's own commits included.
    pub since: &'a CommitId,
    /// Whether no program but ours can be at work in the worktree, so that git's locks there are dead ones'.
    pub nobody_else: bool,
}

/// What became of the uncommitted work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Where the worktree stands now.
    pub head: CommitId,
    /// Repositories within the worktree (a clone, another worktree). They are left as they are and are not committed:
    /// git would store a link to a commit that nobody else has.
    pub embedded: Vec<String>,
}

/// Commits everything in a worktree that is neither committed nor ignored; nothing of that kind is as good.
///
/// # Errors
/// [`GitError::OperationInProgress`], also for conflicts that nobody resolved; [`GitError::IndexLocked`]; or what git
/// says.
pub fn commit_all(repository: &Repository, request: &CommitRequest<'_>) -> Result<Committed, GitError> {
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
        let looked = SystemTime::now();
        let found = survey(worktree)?;
        if found.conflicts {
            return Err(GitError::OperationInProgress { path: worktree.to_owned(), which: "resolving conflicts" });
        }
        let embedded = found.embedded.iter().map(|path| path_text(path)).collect();
        Ok(Committed { head: commit(repository, request, found, looked, lock)?, embedded })
    })
}

fn commit(
    repository: &Repository,
    request: &CommitRequest<'_>,
    mut found: Survey,
    looked: SystemTime,
    lock: &File,
) -> Result<CommitId, GitError> {
    let from_hook = as_hook_left(request.worktree)?;
    found.differing.retain(|path| !from_hook.contains(path));
    let head = match &found.head {
        Some(head) if !found.staged && found.differing.is_empty() => head.clone(),
        Some(head)
            if !found.staged
                && let Some(done) = commit_plainly(repository, request, head, &found.differing, looked) =>
        {
            return Ok(done.commit);
        }
        _ => commit_with_git(repository, request, &found, from_hook, lock)?,
    };
    make_durable(repository, &head, request.since)?;
    Ok(head.commit)
}

fn commit_with_git(
    repository: &Repository,
    request: &CommitRequest<'_>,
    found: &Survey,
    from_hook: Vec<Vec<u8>>,
    lock: &File,
) -> Result<Head, GitError> {
    let worktree = request.worktree;
    stage(worktree, found, from_hook, lock)?;
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

/// Stages what differs, the repositories within the worktree and what a hook left excepted.
fn stage(worktree: &Path, found: &Survey, from_hook: Vec<Vec<u8>>, lock: &File) -> Result<(), GitError> {
    let git = || Git::new(worktree).comparing_carefully().without_hooks().stdin(lock);
    let few = found.differing.len() <= FEW;
    // A file that went away meanwhile is one that git does not find: then everything that is there by now is added.
    if !few || add_these(git(), &found.differing, false).is_some_and(|git| git.run().is_err()) {
        add_all(git(), &[found.embedded.clone(), from_hook].concat()).run()?;
    }
    Ok(())
}

fn make_durable(repository: &Repository, head: &Head, since: &CommitId) -> Result<(), GitError> {
    durable::objects(repository, &head.commit, std::slice::from_ref(since))?;
    match &head.branch {
        Some(branch) => durable::reference(repository, &branch_reference(branch)),
        None => Ok(()),
    }
}

/// `message` with `trailers` as its last paragraph.
pub(crate) fn message(message: &str, trailers: &[(&str, &str)]) -> String {
    let mut text = format!("{}\n", message.trim_end());
    for (number, (name, value)) in trailers.iter().enumerate() {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(if number == 0 { "\n" } else { "" });
        text.push_str(&format!("{name}: {value}\n"));
    }
    text
}

/// The repositories within `worktree` that are not tracked.
pub(crate) fn embedded_in(worktree: &Path) -> Result<Vec<Vec<u8>>, GitError> {
    let entries = untracked(worktree)?.into_iter();
    Ok(entries.filter_map(|path| path.strip_suffix(b"/").map(<[u8]>::to_vec)).collect())
}

/// `git add` of everything but the paths `left_out`.
pub(crate) fn add_all<'a>(git: Git<'a>, left_out: &[Vec<u8>]) -> Git<'a> {
    let git = adding_anything(git);
    let excluded =
        left_out.iter().map(|path| OsString::from_vec([b":(top,exclude,literal)", path.as_slice()].concat()));
    // `--sparse`: a file outside the sparse selection is work too, and git gives up at the first one.
    git.args(["add", "--all", "--sparse", "--", ":(top)"]).args(excluded)
}

/// How many paths git is given one by one. It holds every file against every one of them.
pub(crate) const FEW: usize = 64;

/// `git add` of `paths`, ignored ones only with `force`; `None`: there are none.
pub(crate) fn add_these<'a>(git: Git<'a>, paths: &[Vec<u8>], force: bool) -> Option<Git<'a>> {
    let git = adding_anything(git).args(["--literal-pathspecs", "add", "--all", "--sparse"]);
    let git = git.args(force.then_some("--force")).arg("--");
    (!paths.is_empty()).then(|| git.args(paths.iter().map(|path| OsStr::from_bytes(path))))
}

fn adding_anything(git: Git<'_>) -> Git<'_> {
    // A user's `core.safecrlf=true` would refuse a file with mixed line ends, and with it all the work.
    git.configured("core.safecrlf=false").configured("advice.addEmbeddedRepo=false")
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
