//! What prevents a fast-forward of the user's checkout.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use lanewright_model::CommitId;
use lanewright_model::text::shell_line;

use crate::command::{Git, Result, nul_separated, path_text};
use crate::fast::libgit2::Difference;
use crate::history::moved_branches::stale_since_move;
use crate::query::{Head, index_entries, operation_in};
use crate::repo::Repository;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blockers {
    /// Changed files, untracked or ignored files that would be overwritten, the lock on the index, or words for an
    /// operation in progress.
    pub paths: Vec<String>,
    /// What the user can do, in words that end neither a sentence nor a line.
    pub remedy: String,
}

impl Blockers {
    /// That `worktree`, which has `branch` checked out, cannot be fast-forwarded, and what to do.
    pub fn cannot_move(&self, branch: &str, worktree: &Path) -> String {
        let (place, paths) = (worktree.display(), self.paths.join(", "));
        format!(
            "{branch} is checked out in {place} and cannot be fast-forwarded because of {paths}; {}, then resume",
            self.remedy
        )
    }

    fn new(paths: Vec<String>, remedy: &str) -> Self {
        Self { paths, remedy: remedy.to_owned() }
    }

    pub(crate) fn locked(lock: &Path) -> Self {
        Self::new(
            vec![lock.display().to_string()],
            "wait for the git that works there, or delete the lock if none does",
        )
    }

    /// Two checkouts of one branch cannot both be fast-forwarded.
    pub(crate) fn twice(branch: &str) -> Self {
        Self::new(vec![format!("`{branch}` is checked out more than once")], "switch one of them to another branch")
    }

    pub(crate) fn changed(paths: Vec<String>) -> Self {
        Self::new(paths, "commit or stash what is changed there")
    }

    /// Changed files in a checkout whose head is at the tip of `branch` while its index is at `earlier`. A commit there
    /// would revert what was published since, and so would `git stash pop` after a stash that is based on the tip.
    pub(crate) fn changed_in_stale_checkout(paths: Vec<String>, branch: &str, earlier: &CommitId) -> Self {
        let earlier = earlier.short();
        let remedy = format!(
            "index and files there are still at {earlier}, so do not commit; move your changes onto {branch} with \
             `git switch --detach {earlier} && git stash --include-untracked && git switch {branch} && git stash pop`"
        );
        Self { paths, remedy }
    }

    /// A checkout whose branch another program moved alone. A commit or a stash there would be based on what it does not
    /// have; once its head is back at `at`, a switch moves it as any other, and nothing uncommitted is lost.
    pub(crate) fn left_behind(branch: &str, worktree: &Path, at: &CommitId) -> Self {
        let (place, at) = (worktree.to_string_lossy(), at.short());
        let back = shell_line(["git", "-C", place.as_ref(), "update-ref", "--no-deref", "HEAD", at]);
        let forward = shell_line(["git", "-C", place.as_ref(), "switch", branch]);
        let what = format!("a move of `{branch}` by another program, with index and files there still at {at}");
        let remedy = format!(
            "do not commit there; to move them along, which keeps uncommitted changes: `{back} && {forward}` (if git refuses \
             the switch: `git stash -u`, switch again, `git stash pop`)"
        );
        Self { paths: vec![what], remedy }
    }

    pub(crate) fn switching() -> Self {
        Self::new(vec!["branches being switched there".to_owned()], "let that end")
    }
}

/// What prevents moving `worktree`, which is at `from`, to `to`: as with `git merge --ff-only`, only changes of files that
/// are to move.
pub(crate) fn blockers(repository: &Repository, worktree: &Path, from: &CommitId, to: &CommitId) -> Result<Blockers> {
    if let Some(which) = operation_in(worktree)? {
        return Ok(Blockers::new(vec![format!("in the middle of {which}")], "finish or abort it there"));
    }
    if let Some(at) = stale_since_move(repository, worktree, from)? {
        let branch = Head::branch_of(worktree)?.unwrap_or_default();
        return Ok(Blockers::left_behind(&branch, worktree, &at));
    }
    if from == to {
        return Ok(Blockers::changed(Vec::new()));
    }
    let differences = repository.differences(from, to)?;
    let any_tracked = differences.iter().any(|difference| difference.from != 0);
    let mut in_the_way = in_the_way(worktree, &differences)?;
    let moving = moving(differences);
    // Where all are new, no tracked file can be changed.
    let changed = match any_tracked || index_entries(worktree)?.iter().any(|entry| meets(&moving, &entry.path)) {
        true => changed(worktree, |path| meets(&moving, path))?,
        false => Vec::new(),
    };
    in_the_way.retain(|path| !changed.contains(path));
    let remedy = match (changed.is_empty(), in_the_way.is_empty()) {
        (_, true) => return Ok(Blockers::changed(changed)),
        (true, false) => "move what is in the way there to another place",
        (false, false) => "commit or stash what is changed there, and move what is in the way to another place",
    };
    Ok(Blockers::new([changed, in_the_way].concat(), remedy))
}

const COMPARED: usize = 64;

/// The paths that move from one commit to the other, of which `differences` are those.
pub(crate) fn moving(differences: Vec<Difference>) -> BTreeSet<Vec<u8>> {
    differences.into_iter().map(|difference| difference.path).collect()
}

/// Whether `path` is one of `moving`, or a directory above or a file below one.
pub(crate) fn meets(moving: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    let above = (0..path.len()).filter(|&at| path[at] == b'/').any(|at| moving.contains(&path[..at]));
    above
        || moving.contains(path)
        || moving.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below))
}

pub fn tracked_changes_where_checked_out(
    repository: &Repository,
    branch: &str,
) -> Result<Option<(PathBuf, Vec<String>)>> {
    let Some(worktree) = repository.where_checked_out(branch)? else { return Ok(None) };
    let changed = changed(&worktree, |_| true)?;
    Ok(Some((worktree, changed)))
}

/// The tracked paths that are changed or staged and `counts`. A file whose line ends alone differ is none of them: it
/// was checked out under another `core.autocrlf`. It is not touched either: a commit that changes it is refused later.
fn changed(worktree: &Path, counts: impl Fn(&[u8]) -> bool) -> Result<Vec<String>> {
    let status = Git::new(worktree).reading_only().args(["status", "--porcelain", "-z", "--no-renames"]);
    let status = status.args(["--untracked-files=no", "--ignore-submodules=dirty"]).run()?;
    let entries: Vec<(bool, &[u8])> = nul_separated(&status)
        .map(|entry| (entry.first() == Some(&b' '), entry.get(3..).unwrap_or_default()))
        .filter(|(_, path)| counts(path))
        .collect();
    let few = entries.len() <= COMPARED;
    let mut changed = Vec::new();
    for (unstaged, path) in entries {
        if !(few && unstaged && differs_in_line_ends_only(worktree, path)?) {
            changed.push(path_text(path));
        }
    }
    Ok(changed)
}

fn differs_in_line_ends_only(worktree: &Path, path: &[u8]) -> Result<bool> {
    let git = Git::new(worktree).reading_only().args(["diff", "--quiet", "--no-ext-diff", "--ignore-cr-at-eol", "--"]);
    Ok(git.arg(os_text(&[b":(top,literal)", path].concat())).yes()?)
}

/// The user's untracked files, ignored ones included, where a new file has to be written. Git itself would overwrite ignored
/// ones.
pub(crate) fn in_the_way(worktree: &Path, differences: &[Difference]) -> Result<Vec<String>> {
    let with = |wanted: fn(&Difference) -> bool| {
        differences.iter().filter(|it| wanted(it)).map(|it| PathBuf::from(os_text(&it.path))).collect::<Vec<_>>()
    };
    let deleted = with(|it| it.to == 0);
    let mut found = Vec::new();
    for added in with(|it| it.from == 0) {
        if let Some(path) = blocker_of(worktree, &added, &deleted)? {
            found.push(path.to_string_lossy().into_owned());
        }
    }
    found.dedup();
    Ok(found)
}

fn os_text(path: &[u8]) -> OsString {
    OsString::from_vec(path.to_vec())
}

/// What is where `added` or a directory above it has to be written, unless it is one of the `deleted`.
fn blocker_of(worktree: &Path, added: &Path, deleted: &[PathBuf]) -> Result<Option<PathBuf>> {
    let mut above: Vec<&Path> = added.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()).collect();
    above.reverse();
    for part in above {
        match fs::symlink_metadata(worktree.join(part)) {
            Ok(kind) if kind.is_dir() => {}
            Ok(_) if !deleted.iter().any(|path| path == part) => return Ok(Some(part.to_owned())),
            _ => return Ok(None),
        }
    }
    match fs::symlink_metadata(worktree.join(added)) {
        Err(_) => Ok(None),
        Ok(kind) if !kind.is_dir() => Ok(Some(added.to_owned())),
        Ok(_) => {
            let pathspec = [b":(top,literal)", added.as_os_str().as_encoded_bytes()].concat();
            let untracked =
                Git::new(worktree).args(["ls-files", "--others", "-z", "--"]).arg(os_text(&pathspec)).run()?;
            Ok((!untracked.is_empty()).then(|| added.to_owned()))
        }
    }
}
