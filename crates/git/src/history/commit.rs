//! Committing what an agent left uncommitted in its worktree.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use lanewright_model::CommitId;

use crate::command::{Git, GitError, Result, nul_separated, path_text};
use crate::fast::durable;
use crate::fast::libgit2::{self, IndexEntry, RefUpdate};
use crate::history::{make_commit, remove_dead_locks, set_own_reference};
use crate::query::nested::{self, place_of, present_links};
use crate::query::{
    LINK, LeftOut, LeftOutReason, clear_flags, distrust_times, each_once, index_entries, refuse_operation,
    refuse_unreadable_in, restore_untouched, unchanged_hook_files, untracked,
};
use crate::repo::{Repository, branch_reference, git_directory, holding_worktree};

#[derive(Debug, Clone, Copy)]
pub struct CommitRequest<'a> {
    pub worktree: &'a Path,
    /// The branch that is checked out there, without `refs/heads/`.
    pub branch: &'a str,
    pub message: &'a str,
    /// `Run`, `Lane`, …, with their values.
    pub trailers: &'a [(&'a str, &'a str)],
    /// The commit that the work began at, whose objects are durable; those that came after it are made so, the agent's own
    /// commits included.
    pub since: &'a CommitId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub head: CommitId,
    /// Repositories within the worktree (a clone, another worktree). They are left as they are and are not committed:
    /// git would store a link to a commit that is nowhere else.
    pub embedded: Vec<String>,
    /// New files that the repository's rules leave out, and that are not committed either.
    pub left_out: Vec<LeftOut>,
}

/// Commits everything in a worktree, in which no other program is at work, that is neither committed, nor ignored, nor left
/// out by rules; nothing of that kind is as good.
///
/// # Errors
/// [`GitError::OperationInProgress`], also for unresolved conflicts; [`GitError::Astray`] when another branch is checked out.
pub fn commit_all(repository: &Repository, request: &CommitRequest<'_>) -> Result<Committed> {
    let worktree = request.worktree;
    refuse_operation(worktree)?;
    holding_worktree(worktree, |lock| {
        remove_dead_locks(worktree)?;
        let entries = clear_flags(worktree)?;
        distrust_times(worktree, &git_directory(worktree)?.join("index"));
        let before = repository.head_on(worktree, request.branch)?;
        // Before the index changes: from it the caller restores what git has lost of the agent's own commits.
        durable::objects(repository, &before, [request.since])?;
        let known = [&before, request.since];
        let (embedded, left_out) = stage_everything(repository, worktree, entries, known, lock)?;
        let embedded = embedded.iter().map(|path| path_text(path)).collect();
        Ok(Committed { head: commit_staged(repository, request, before)?, embedded, left_out })
    })
}

/// Commits `paths` of a worktree, in which no other program is at work, and nothing else. Returns the head.
pub fn commit_paths(repository: &Repository, request: &CommitRequest<'_>, paths: &[String]) -> Result<CommitId> {
    let worktree = request.worktree;
    refuse_operation(worktree)?;
    holding_worktree(worktree, |lock| {
        remove_dead_locks(worktree)?;
        let before = repository.head_on(worktree, request.branch)?;
        if paths.is_empty() {
            durable::objects(repository, &before, [request.since])?;
            return Ok(before);
        }
        let git = || Git::new(worktree).comparing_carefully().without_hooks().stdin(lock);
        if let Some(path) = paths.iter().find(|path| path.contains(char::REPLACEMENT_CHARACTER)) {
            let (what, reason) = (path.clone(), "its name is not UTF-8; commit it yourself".to_owned());
            return Err(GitError::Unreadable { path: worktree.to_owned(), what, reason });
        }
        git().args(["read-tree", "HEAD"]).run()?;
        // Also what is gone, ignored, or a directory now.
        let update =
            git().input(paths.join("\0").into_bytes()).args(["update-index", "--add", "--remove", "--replace", "-z"]);
        update.arg("--stdin").run()?;
        commit_staged(repository, request, before)
    })
}

/// Stages everything but what a hook left. Returns the repositories within the worktree and what the rules leave out, which
/// are not staged either. `before`: what the index holds; what one of the `known` commits has is not new.
fn stage_everything(
    repository: &Repository,
    worktree: &Path,
    before: Vec<IndexEntry>,
    known: [&CommitId; 2],
    lock: &File,
) -> Result<(Vec<Vec<u8>>, Vec<LeftOut>)> {
    if before.iter().any(|entry| entry.conflicts) {
        return Err(GitError::OperationInProgress { path: worktree.to_owned(), which: "resolving conflicts" });
    }
    let git = || Git::new(worktree).comparing_carefully().without_hooks().unsynced().stdin(lock);
    let mut from_hook = unchanged_hook_files(worktree)?;
    from_hook.retain(|path| !repository.left_out_rules.takes(path));
    let mut embedded = add_everything(worktree, git, &before, &from_hook)?;
    let mut after = index_entries(worktree)?;
    // Where the lane changes the rules itself, git stores by the new ones what the agent touches.
    let keeps_rules = || {
        let [head, since] = known;
        let changed = [repository.staged(worktree, None, head)?, repository.differences(since, head)?];
        Ok(!changed.iter().flatten().any(|it| it.path.ends_with(b".gitattributes")))
    };
    restore_untouched(worktree, git, (&before, &mut after), keeps_rules)?;
    let ignored = repository.ignored_by_user(worktree, &after)?;
    let (taken, ignored): (Vec<_>, Vec<_>) =
        ignored.into_iter().partition(|it| repository.left_out_rules.takes(&it.path));
    if !taken.is_empty() {
        let taken = taken.into_iter().map(|it| it.path).collect::<Vec<_>>().join(&0);
        git().input(taken).args(["update-index", "--add", "-z", "--stdin"]).run()?;
        after = index_entries(worktree)?;
    }
    let mut left_out = repository.left_out_rules.left_out_of_commit(worktree, [&before, &after], &known, git)?;
    left_out.extend(each_once(ignored));
    let links = |entries: Vec<IndexEntry>| entries.into_iter().filter(|it| it.mode == LINK).map(|it| it.path);
    let known: BTreeSet<Vec<u8>> = links(before).chain(left_out.iter().flat_map(|it| it.files.clone())).collect();
    // Git has staged a link to a commit that is nowhere else.
    let new: Vec<Vec<u8>> = links(after).filter(|path| !known.contains(path)).collect();
    unstage(git, &left_out, &new)?;
    embedded.extend(new);
    let is_in_tree = |path: &[u8]| {
        let mut trees = left_out.iter().filter(|it| it.reason == LeftOutReason::Tree);
        trees.any(|tree| path_text(path).starts_with(&tree.path))
    };
    embedded.retain(|path| !is_in_tree(path));
    Ok((embedded, left_out))
}

/// Takes what is left out, and `links`, out of the index of `git`. All of it is new, but for copies that replaced tracked files.
pub(crate) fn unstage<'a>(git: impl Fn() -> Git<'a>, left_out: &[LeftOut], links: &[Vec<u8>]) -> Result<()> {
    let (copied, new): (Vec<_>, Vec<_>) = left_out.iter().partition(|it| it.reason == LeftOutReason::Copied);
    let new: Vec<Vec<u8>> = new.iter().flat_map(|it| &it.files).chain(links).cloned().collect();
    if !new.is_empty() {
        git().input(new.join(&0)).args(["update-index", "--force-remove", "-z", "--stdin"]).run()?;
    }
    as_in_head(git, &copied.iter().flat_map(|it| &it.files).map(Vec::as_slice).collect())
}

/// Makes `paths` in the index of `git` what they are in the head, with the directory that a file has replaced there, and the
/// file that a directory of nothing else has.
fn as_in_head<'a>(git: impl Fn() -> Git<'a>, paths: &BTreeSet<&[u8]>) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let staged =
        git().args(["diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-abbrev", "HEAD", "--"]).run()?;
    // `:MODE MODE OBJECT OBJECT STATUS`, of the head and of the index, and the path.
    let parts: Vec<&[u8]> = nul_separated(&staged).collect();
    let changes: &[[&[u8]; 2]] = parts.as_chunks().0;
    let is_below = |path: &[u8], above: &[u8]| path.strip_prefix(above).is_some_and(|rest| rest.starts_with(b"/"));
    let is_replaced = |path: &[u8]| {
        paths.iter().any(|copy| is_below(path, copy))
            || paths.iter().any(|copy| is_below(copy, path))
                && changes.iter().all(|[_, other]| !is_below(other, path) || paths.contains(other))
    };
    let (mut gone, mut others) = (Vec::new(), Vec::new());
    for [facts, path] in changes.iter().filter(|[_, path]| paths.contains(path) || is_replaced(path)) {
        let facts = path_text(facts);
        let mut facts = facts.trim_start_matches(':').split(' ').step_by(2);
        let (mode, object) = (facts.next().unwrap_or_default(), facts.next().unwrap_or_default());
        let lines = if mode == "000000" { &mut gone } else { &mut others };
        lines.extend([format!("{mode} {object}\t").as_bytes(), path, b"\0"].concat());
    }
    // What is new may stand where the head has a directory.
    gone.extend(others);
    git().input(gone).args(["update-index", "-z", "--index-info"]).run()?;
    Ok(())
}

/// Commits what is staged on top of `old`; nothing is as good. Everything that came after the request's known commit is
/// durable then.
fn commit_staged(repository: &Repository, request: &CommitRequest<'_>, old: CommitId) -> Result<CommitId> {
    let worktree = request.worktree;
    let text = libgit2::clean_message(&message(request.message, request.trailers));
    let tree = staged_tree(repository, worktree)?;
    // What differs on disk need not do so in git: line ends, for example.
    let unchanged = repository.tree_of(&old)? == tree || repository.staged(worktree, None, &old)?.is_empty();
    let commit = if unchanged { old.clone() } else { make_commit(repository, &tree, &[&old], &text)? };
    durable::objects(repository, &commit, [request.since])?;
    let why = format!("commit: {}", text.lines().next().unwrap_or_default());
    let name = branch_reference(request.branch);
    let update = RefUpdate { name: &name, old: Some(&old), to: &commit, why: &why };
    if !unchanged && !set_own_reference(repository, worktree, &update)? {
        let found = repository.target_of(&name)?;
        return Err(GitError::ReferenceMoved { reference: name, expected: old, found });
    }
    Ok(commit)
}

fn staged_tree(repository: &Repository, worktree: &Path) -> Result<String> {
    let written = libgit2::tree_of_index(repository, &git_directory(worktree)?.join("index"));
    written.map_or_else(|| Ok(Git::new(worktree).arg("write-tree").line()?), Ok)
}

pub fn message(message: &str, trailers: &[(&str, &str)]) -> String {
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

/// Adds everything in `worktree`, but the paths `left_out`, to the index of `git`, which has `entries`. Git gives up at a
/// repository within that has no commit; then all repositories within are left out and returned.
pub(crate) fn add_everything<'a>(
    worktree: &Path,
    git: impl Fn() -> Git<'a>,
    entries: &[IndexEntry],
    left_out: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>> {
    let links = present_links(worktree, entries);
    let paths: Vec<Vec<u8>> = links.iter().map(|link| link.path.clone()).collect();
    let (mut tries, mut embedded) = (1, Vec::new());
    loop {
        let adding = add_all(git(), &[left_out, &paths, &embedded].concat());
        let output = adding.attempt()?;
        // Git leaves out what it cannot read, and only warns.
        refuse_unreadable_in(worktree, &output)?;
        if output.status.success() {
            add_links(worktree, git, &links)?;
            return Ok(embedded);
        }
        // A filter that failed would fail again.
        if tries == TRIES || String::from_utf8_lossy(&output.stderr).contains(": clean filter '") {
            return Err(adding.failure(&output).into());
        }
        tries += 1;
        embedded = embedded_in(worktree)?;
    }
}

/// Makes links in the index of `git` lead to the commits that are checked out. `git add` would start a git in each repository.
fn add_links<'a>(worktree: &Path, git: impl Fn() -> Git<'a>, links: &[&IndexEntry]) -> Result<()> {
    let mut moved = Vec::new();
    for link in links {
        let known = link.object.map(|object| object.to_string());
        if let Some(head) =
            nested::head_in(&place_of(worktree, &link.path))?.filter(|head| known.as_ref() != Some(head))
        {
            moved.extend(format!("{:o} {head} 0\t", link.mode).bytes().chain(link.path.iter().copied()).chain([0]));
        }
    }
    if !moved.is_empty() {
        git().input(moved).args(["update-index", "-z", "--index-info"]).run()?;
    }
    Ok(())
}

/// How often everything is added: an agent at work may remove a file between the listing and the reading.
const TRIES: u32 = 3;

/// `git add` of everything but the paths `left_out`.
fn add_all<'a>(git: Git<'a>, left_out: &[Vec<u8>]) -> Git<'a> {
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
    fn trailer_value_is_joined_to_one_line() {
        assert_eq!(message("Work\n\n", &[("Run", "r1"), ("Task", "a\nb: c")]), "Work\n\nRun: r1\nTask: a b: c\n");
        assert_eq!(message("Work", &[]), "Work\n");
    }
}
