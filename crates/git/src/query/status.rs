//! What is uncommitted in a worktree.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Output;
use std::thread;

use lanewright_model::CommitId;
use lanewright_model::text::headline;

use crate::command::{Git, GitError, Result, io_error, nul_separated, path_text};
use crate::fast::surely_clean::is_surely_clean;
use crate::query::nested::{self, place_of, present_links};
use crate::query::{
    clear_flags_in, copy_index, entries_in, has_flags, has_hook_files, index_entries, is_untouched,
    unchanged_hook_files,
};
use crate::repo::{Repository, git_directory};

/// The paths that are uncommitted in `worktree`: changed, staged, untracked; neither ignored ones, nor what a hook left
/// there before anybody worked in it, nor trees that programs make again. Git may note in the index what it found out: files
/// as old as the index would be read again and again.
pub fn uncommitted(repository: &Repository, worktree: &Path) -> Result<Vec<String>> {
    let rules = &repository.left_out_rules;
    let from_hook = unchanged_hook_files(worktree)?;
    let found = listed(worktree, if from_hook.is_empty() { "normal" } else { "all" })?;
    // What is in a directory without tracked files is not listed by itself.
    let is_collapsed = |it: &Listed| it.untracked && it.path.ends_with(b"/");
    let each =
        if from_hook.is_empty() && found.iter().any(is_collapsed) { listed(worktree, "all")? } else { found.clone() };
    let untracked = each.into_iter().filter(|it| it.untracked).map(|it| it.path).collect();
    let work: BTreeSet<Vec<u8>> = rules.without_trees(worktree, untracked)?.into_iter().collect();
    let has_work = |it: &Listed| match is_collapsed(it) {
        true => work.range(it.path.clone()..).next().is_some_and(|path| path.starts_with(&it.path)),
        false => !it.untracked || work.contains(&it.path),
    };
    let paths = found.into_iter().filter(|it| has_work(it) && !from_hook.contains(&it.path));
    Ok(paths.map(|it| path_text(&it.path)).collect())
}

/// Whether git ignores a file at `path` of `worktree`, which need not exist.
pub fn is_ignored(worktree: &Path, path: &str) -> Result<bool> {
    let git = Git::new(worktree).reading_only();
    Ok(git.args(["check-ignore", "--quiet", "--no-index", "--", path]).yes()?)
}

/// Whether no link and no file is where `path` needs a directory.
pub(crate) fn has_real_parents(root: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
    above.map(|it| root.join(it)).all(|it| fs::symlink_metadata(it).map_or(true, |kind| kind.is_dir()))
}

/// Those of `paths` that git would ignore in `worktree`, if they were there. None of them may be below a link.
pub(crate) fn ignored_there<'p>(worktree: &Path, paths: impl Iterator<Item = &'p Path>) -> Result<BTreeSet<Vec<u8>>> {
    ignored_by_rules(worktree, paths, &[])
}

/// The same of paths that may be in the index, which git else takes for not ignored.
pub(crate) fn ignored_if_new<'p>(worktree: &Path, paths: impl Iterator<Item = &'p Path>) -> Result<BTreeSet<Vec<u8>>> {
    ignored_by_rules(worktree, paths, &["--no-index"])
}

fn ignored_by_rules<'p>(
    worktree: &Path,
    paths: impl Iterator<Item = &'p Path>,
    options: &[&str],
) -> Result<BTreeSet<Vec<u8>>> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path.as_os_str().as_bytes());
        input.push(0);
    }
    if input.is_empty() {
        return Ok(BTreeSet::new());
    }
    let git = Git::new(worktree).reading_only().input(input).args(["check-ignore", "-z", "--stdin"]).args(options);
    let output = git.attempt()?;
    match output.status.code() {
        // 1: none.
        Some(0 | 1) => Ok(nul_separated(&output.stdout).map(<[u8]>::to_vec).collect()),
        _ => Err(git.failure(&output).into()),
    }
}

/// The same whatever left it, trees that programs make again included; every untracked file by itself.
pub(crate) fn differing_from_head(worktree: &Path) -> Result<Vec<Vec<u8>>> {
    Ok(listed(worktree, "all")?.into_iter().map(|it| it.path).collect())
}

/// A path that differs from the head.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    untracked: bool,
    /// That of a directory ends with `/`.
    path: Vec<u8>,
}

/// The files that differ from the head, with `untracked` ones as the option of `git status` says.
pub(crate) fn listed(worktree: &Path, untracked: &str) -> Result<Vec<Listed>> {
    let git = Git::new(worktree).comparing_carefully();
    let git = git.args(["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"]);
    let entries = index_entries(worktree)?;
    let mut found = match has_flags(worktree, &entries) {
        true => listed_without_flags(worktree, git, untracked)?,
        false => list(git, untracked, worktree, &git_directory(worktree)?.join("index"))?,
    };
    for link in present_links(worktree, &entries) {
        if !found.iter().any(|it| it.path == link.path) && nested::differs(&place_of(worktree, &link.path))? {
            found.push(Listed { untracked: false, path: link.path.clone() });
        }
    }
    Ok(found)
}

/// The same as a copy of the index shows it in which no file is flagged: an agent may be at work in the worktree.
fn listed_without_flags(worktree: &Path, git: Git<'_>, untracked: &str) -> Result<Vec<Listed>> {
    let scratch = tempfile::tempdir().map_err(io_error("make a directory for a copy of the index of", worktree))?;
    let index = scratch.path().join("index");
    copy_index(worktree, &index)?;
    clear_flags_in(worktree, &index, || Git::new(worktree).without_hooks().variable("GIT_INDEX_FILE", &index))?;
    list(git.variable("GIT_INDEX_FILE", &index), untracked, worktree, &index)
}

fn list(git: Git<'_>, untracked: &str, worktree: &Path, index: &Path) -> Result<Vec<Listed>> {
    let listing = git.arg(format!("--untracked-files={untracked}")).run()?;
    let changed = |entry: &&[u8]| entry.starts_with(b" M ");
    let known = if nul_separated(&listing).any(|entry| changed(&entry)) {
        entries_in(index, &|| Git::new(worktree).reading_only())?
    } else {
        Vec::new()
    };
    let entry_at = |path: &[u8]| known.binary_search_by(|entry| entry.path.as_slice().cmp(path)).map(|at| &known[at]);
    let path = |entry: &[u8]| entry.get(3..).unwrap_or_default().to_vec();
    // Git would store it otherwise than it was committed, whatever anybody does.
    let is_as_committed =
        |entry: &&[u8]| changed(entry) && entry_at(&entry[3..]).is_ok_and(|entry| is_untouched(worktree, entry));
    let listed = |entry: &[u8]| Listed { untracked: entry.starts_with(b"??"), path: path(entry) };
    Ok(nul_separated(&listing).filter(|entry| !is_as_committed(entry)).map(listed).collect())
}

/// Refuses a worktree in which something cannot be read: no snapshot could hold it. An agent may be at work there.
pub fn refuse_unreadable(worktree: &Path) -> Result<()> {
    let git = Git::new(worktree).reading_only().comparing_carefully();
    let git = git.args(["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"]);
    let output = git.arg("--ignore-submodules=dirty").attempt()?;
    // What else git refuses is found later.
    if output.status.success() { refuse_unreadable_in(worktree, &output) } else { Ok(()) }
}

/// The same by what a git command printed that looked at the whole `worktree`.
pub(crate) fn refuse_unreadable_in(worktree: &Path, output: &Output) -> Result<()> {
    match unreadable(&String::from_utf8_lossy(&output.stderr)) {
        Some((what, reason)) => {
            Err(GitError::Unreadable { path: worktree.to_owned(), what: headline(&what, LONGEST), reason })
        }
        None => Ok(()),
    }
}

/// The first directory or file that git says it cannot read, and the reason.
fn unreadable(said: &str) -> Option<(String, String)> {
    said.lines().find_map(|line| {
        if let Some(directory) = line.strip_prefix("warning: could not open directory ") {
            // Git cuts its warning where a path is longer than what it prints.
            let (name, reason) = directory.rsplit_once(": ").unwrap_or((directory, "its path is too long"));
            // A program removes it at this moment.
            return (reason != "No such file or directory")
                .then(|| (format!("the directory {name}"), reason.to_owned()));
        }
        // A tracked file in a directory that may not be searched counts as unchanged.
        let (name, reason) = line.rsplit_once(": ")?;
        let refused = ["Permission denied", "Input/output error"].contains(&reason);
        let foreign = ["hint: ", "warning: "].iter().any(|prefix| name.starts_with(prefix));
        (refused && !foreign).then(|| (name.to_owned(), reason.to_owned()))
    })
}

const LONGEST: usize = 120;

/// Whether every file of `worktree` is ignored or committed, as far as that can be seen without git.
pub(crate) fn is_surely_committed(repository: &Repository, worktree: &Path) -> Result<bool> {
    if !is_surely_clean(worktree, &git_directory(worktree)?.join("index")) {
        return Ok(false);
    }
    let head = repository.head_at(worktree)?.commit;
    Ok(repository.staged(worktree, None, &head)?.is_empty())
}

pub(crate) fn refuse_uncommitted(repository: &Repository, worktree: &Path) -> Result<()> {
    if !has_hook_files(worktree)? && is_surely_committed(repository, worktree)? {
        return Ok(());
    }
    let paths = uncommitted(repository, worktree)?;
    if paths.is_empty() { Ok(()) } else { Err(GitError::Dirty { path: worktree.to_owned(), paths }) }
}

/// The paths in which `worktree`, uncommitted and untracked files included, differs from `base`; sorted. Trees that programs
/// make again are left out.
pub(crate) fn worktree_changes(repository: &Repository, worktree: &Path, base: &CommitId) -> Result<Vec<String>> {
    let changed = Git::new(worktree).reading_only().args(["diff", "--name-only", "-z", "--no-renames"]);
    let changed = changed.args(["--ignore-submodules=dirty", base.as_str()]);
    // Both look at every directory or file, and a run waits for them.
    let (paths, untracked) = thread::scope(|scope| {
        let listing = scope.spawn(|| untracked(worktree));
        let paths = changed.paths();
        (paths, listing.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    let mut paths = paths?;
    let untracked = repository.left_out_rules.without_trees(worktree, untracked?)?;
    paths.extend(untracked.iter().map(|path| path_text(path)));
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The files that are neither tracked nor ignored. A repository within the worktree is one entry that ends with `/`.
pub(crate) fn untracked(worktree: &Path) -> Result<Vec<Vec<u8>>> {
    let listing = Git::new(worktree).reading_only().args(["ls-files", "-z", "--others", "--exclude-standard"]).run()?;
    Ok(nul_separated(&listing).map(<[u8]>::to_vec).collect())
}

/// The files below `directory` of `worktree` that are not tracked, ignored ones included.
pub fn untracked_below(worktree: &Path, directory: &str) -> Result<Vec<String>> {
    if worktree.join(directory).symlink_metadata().is_err() {
        return Ok(Vec::new());
    }
    let git = Git::new(worktree).reading_only().args(["ls-files", "-z", "--others", "--", directory]);
    Ok(git.paths()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_paths_are_parsed_from_stderr() {
        let found = |said| unreadable(said).map(|(what, reason)| format!("{what}|{reason}"));
        let directory = "warning: could not open directory 'a: b/': Permission denied\n";
        assert_eq!(found(directory).as_deref(), Some("the directory 'a: b/'|Permission denied"));
        let file = "warning: in the working copy of 'x', LF will be replaced by CRLF\nd/f: Permission denied\n";
        assert_eq!(found(file).as_deref(), Some("d/f|Permission denied"));
        assert_eq!(found("warning: could not open directory 'gone/': No such file or directory\n"), None);
        assert_eq!(
            found("hint: see the manual: Permission denied\nwarning: unable to access '/x': Permission denied\n"),
            None
        );
    }
}
