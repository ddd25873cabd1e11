//! Whether a worktree that has no holder may be taken over or removed.

use std::path::Path;

use super::slot::{is_locked, is_untouched};
use crate::fs::regular_file;
use crate::git::command::error::GitError;
use crate::git::command::program::Git;
use crate::git::query::operation::refuse_operation;
use crate::git::query::status::refuse_uncommitted;
use crate::git::repo::repository::Repository;
use crate::model::CommitId;

/// Why the worktree at `path`, which has no holder, may neither be taken over nor removed. A commit that `likely` contains
/// its head saves searching all refs.
pub(crate) fn blocker(repository: &Repository, path: &Path, entry: &Path, likely: Option<&CommitId>) -> Option<String> {
    if is_locked(entry) {
        return Some(format!("locked; `git worktree unlock {}` allows it", path.display()));
    }
    if is_untouched(path, entry) {
        return None;
    }
    let checked = refuse_operation(path)
        .and_then(|()| refuse_uncommitted(path))
        .and_then(|()| refuse_unreachable(repository, path, entry, likely));
    checked.err().map(|error| error.to_string())
}

/// Why what was moved aside stays.
pub(crate) const SET_ASIDE: &str = "was in the place of a worktree that an agent or somebody else removed; look at it, \
    and delete it";

/// What the reflog of a slot says when it was given back: its head was in something that is kept.
pub(crate) const RELEASED: &str = "lanekeeper: release";

/// Whether nothing happened in a worktree since it was given back with `head`. Who removed since then what held that
/// commit, such as the snapshots of a merged lane, did not want it any more.
pub(crate) fn rests_since_release(entry: &Path, head: &CommitId) -> bool {
    let log = regular_file::read_text(entry.join("logs/HEAD")).unwrap_or_default();
    let last = log.lines().next_back().and_then(|line| line.split_once('\t'));
    last.is_some_and(|(who, what)| what == RELEASED && who.split(' ').nth(1) == Some(head.as_str()))
}

/// Refuses a worktree whose head no ref holds. A commit that `likely` holds it, and is held, saves looking at all refs.
fn refuse_unreachable(
    repository: &Repository,
    path: &Path,
    entry: &Path,
    likely: Option<&CommitId>,
) -> Result<(), GitError> {
    let head = repository.head_at(path)?.commit;
    if rests_since_release(entry, &head) {
        return Ok(());
    }
    if let Some(likely) = likely
        && repository.is_ancestor(&head, likely)?
    {
        return Ok(());
    }
    let git = Git::new(repository.main_worktree()).args(["for-each-ref", "--count=1", "--contains", head.as_str()]);
    if git.run()?.is_empty() {
        return Err(GitError::Unmerged { place: path.display().to_string(), head });
    }
    Ok(())
}
