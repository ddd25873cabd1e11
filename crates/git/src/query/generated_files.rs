//! Files of a worktree that no agent wrote: those of the user's post-checkout hook, of setup commands and of gates.
//!
//! What differs from the commit right after a checkout, a setup or a gate is written down beside the worktree's head,
//! path by path with its content. As long as a path has that content, it is not an agent's change; if a hook wrote it, it
//! is not uncommitted work either. A hook that fails does not undo the checkout. What was copied into the worktree is in no
//! commit of an agent's work either, also if the agent makes the commit.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use lanewright_files::{atomic, regular_file};
use lanewright_model::CommitId;
use lanewright_model::time::exact;

use crate::command::{Git, ProgramError, Result, io_error, nul_separated, path_text};
use crate::fast::libgit2::{self, IndexEntry};
use crate::query::{
    differing_from_head, has_real_parents, ignored_if_new, ignored_there, index_entries, is_surely_committed, split_tab,
};
use crate::repo::{Repository, git_directory, place_of_hook};

/// Paths and the names of the blobs that they hold; an empty name: nothing is there.
pub type Contents = BTreeMap<Vec<u8>, String>;

/// Runs the hook after a checkout of all files in `worktree`, and records what it wrote. Returns how it failed.
pub(crate) fn run_post_checkout(
    repository: &Repository,
    worktree: &Path,
    [from, to]: [&CommitId; 2],
    limit: Option<Duration>,
    lock: &File,
) -> Result<Option<String>> {
    let place = place_of_hook(repository, worktree, "post-checkout")?;
    if !place.exists() {
        return Ok(None);
    }
    let place = place.display();
    let git = Git::new(worktree).stdin(lock).args(["hook", "run", "--ignore-missing", "post-checkout", "--"]);
    let git = git.args([from.as_str(), to.as_str(), "1"]).giving_hooks(repository.variables_at(worktree));
    let output = match limit {
        Some(limit) => git.within(limit).attempt(),
        None => git.attempt(),
    };
    let written = contents(worktree, differing_from_head(worktree)?)?;
    if !written.is_empty() {
        note(worktree, FROM_HOOK, &written)?;
    }
    let output = match output {
        Err(ProgramError::TimedOut { limit, .. }) => {
            let limit = exact(limit);
            return Ok(Some(format!("the hook {place} took longer than {limit} and was ended; the checkout stands")));
        }
        output => output?,
    };
    if output.status.success() {
        return Ok(None);
    }
    let said = [output.stdout, output.stderr].concat();
    let ended = output.status.code().map_or("a signal".to_owned(), |code| format!("code {code}"));
    Ok(Some(format!("the hook {place} ended with {ended}; the checkout stands: {}", path_text(said.trim_ascii()))))
}

/// Forgets what an earlier hook, setup or gate wrote in `worktree`.
/// `keeps_ignored`: files that git ignores stay there, those that were copied as well.
pub(crate) fn forget_generated(worktree: &Path, keeps_ignored: bool) -> Result<()> {
    atomic::remove_durably(&git_directory(worktree)?.join(LEFT_BEHIND))?;
    forget_uncommitted(worktree)?;
    if keeps_ignored {
        return Ok(());
    }
    atomic::remove_durably(&git_directory(worktree)?.join(COPIED))?;
    atomic::remove_durably(&git_directory(worktree)?.join(DISTINCT))?;
    Ok(atomic::remove_durably(&git_directory(worktree)?.join(FROM_HOOK))?)
}

/// The files of `worktree` that differ from its head, with what they hold.
pub fn uncommitted(worktree: &Path) -> Result<Contents> {
    let paths = differing_from_head(worktree)?;
    let mut found = Contents::new();
    for path in &paths {
        let place = worktree.join(OsStr::from_bytes(path));
        match fs::symlink_metadata(&place) {
            Ok(kind) if kind.is_symlink() => {
                let target = fs::read_link(&place).map_err(io_error("read", &place))?;
                let blob = libgit2::blob_of(target.as_os_str().as_bytes());
                found.extend(blob.map(|blob| (path.clone(), blob)));
            }
            Ok(_) => {}
            Err(_) => drop(found.insert(path.clone(), String::new())),
        }
    }
    found.extend(contents(worktree, paths)?);
    Ok(found)
}

/// Notes what a setup or a gate wrote in `worktree`, where `before` was uncommitted when it began. Paths that are the
/// `agents` stay that.
pub fn note_generated(worktree: &Path, before: &Contents, agents: &[String]) -> Result<()> {
    let mut left = uncommitted(worktree)?;
    left.retain(|path, blob| before.get(path) != Some(blob) && !agents.contains(&path_text(path)));
    if left.is_empty() {
        return Ok(());
    }
    let mut all = noted(worktree, LEFT_BEHIND)?;
    all.extend(left);
    note(worktree, LEFT_BEHIND, &all)
}

/// Has `run` run a gate by hand in a worktree in which nothing of Lanewright works. What it writes again of the files that
/// gates wrote there before is no change by hand; any other file may be a person's, who edits while it runs.
pub fn noting_generated<T>(worktree: &Path, run: impl FnOnce() -> T) -> Result<T> {
    let before = uncommitted(worktree)?;
    let result = run();
    let now = uncommitted(worktree)?;
    for name in [LEFT_BEHIND, AT_THE_END] {
        let mut known = noted(worktree, name)?;
        for (path, blob) in &mut known {
            if before.get(path) == Some(blob)
                && let Some(blob_now) = now.get(path)
            {
                blob.clone_from(blob_now);
            }
        }
        if !known.is_empty() {
            note(worktree, name, &known)?;
        }
    }
    Ok(result)
}

/// Notes what is uncommitted in `worktree` now that a gate has ended there.
pub fn note_uncommitted(worktree: &Path) -> Result<()> {
    note(worktree, AT_THE_END, &uncommitted(worktree)?)
}

/// Forgets it, because another gate begins.
pub fn forget_uncommitted(worktree: &Path) -> Result<()> {
    Ok(atomic::remove(&git_directory(worktree)?.join(AT_THE_END))?)
}

/// How many copied files are compared with what was copied at each commit.
const MOST_COPIED: usize = 256;

/// How many bytes a copied file has at least that no other file holds by chance.
const LEAST_DISTINCT: u64 = 32;

/// Notes that `paths` were copied from the worktree `from`, those that are true now and else earlier, so that no commit of an
/// agent's work holds them as they are, also if the agent changes what git ignores. Of many, those that are least deep: what
/// is in trees of thousands of files is left out or is no secret, as what `is_installed` is.
pub(crate) fn note_copied<'p>(
    from: &Path,
    worktree: &Path,
    paths: impl Iterator<Item = (&'p [u8], bool)>,
    is_installed: impl Fn(&[u8]) -> bool,
) -> Result<()> {
    let mut copied = noted(worktree, COPIED)?;
    // The user may have changed the others in the meantime.
    let due = paths.filter(|(path, now)| *now || !copied.contains_key(*path));
    let mut paths: Vec<Vec<u8>> = due.map(|(path, _)| path.to_vec()).collect();
    if paths.is_empty() {
        return Ok(());
    }
    paths.sort_by_key(|path| path.iter().filter(|byte| **byte == b'/').count());
    copied.extend(paths.iter().map(|path| (path.clone(), String::new())));
    paths.truncate(MOST_COPIED);
    let known = contents(from, paths)?;
    copied.extend(known.clone());
    note(worktree, COPIED, &copied)?;
    let mut distinct = noted(worktree, DISTINCT)?;
    let tracked = index_entries(worktree)?;
    let tracked: HashSet<git2::Oid> = tracked.iter().filter_map(|entry| entry.object).collect();
    let is_distinct = |(path, blob): &(Vec<u8>, String)| {
        let size = fs::symlink_metadata(from.join(OsStr::from_bytes(path))).map_or(0, |file| file.len());
        !is_installed(path) && size >= LEAST_DISTINCT && blob.parse().is_ok_and(|blob| !tracked.contains(&blob))
    };
    distinct.extend(known.clone().into_iter().filter(is_distinct));
    note(worktree, DISTINCT, &distinct)?;
    let mut all = noted(worktree, FROM_HOOK)?;
    all.extend(known);
    note(worktree, FROM_HOOK, &all)
}

/// The paths of the files copied into `worktree`.
pub(crate) fn copied(worktree: &Path) -> Result<BTreeSet<Vec<u8>>> {
    Ok(noted(worktree, COPIED)?.into_keys().collect())
}

/// The paths of `index` that hold what was copied into `worktree`, whatever their names are, with the name of the blob.
pub(crate) fn copies_in<'i>(worktree: &Path, index: &'i [IndexEntry]) -> Result<BTreeMap<&'i [u8], String>> {
    let distinct: HashSet<String> = noted(worktree, DISTINCT)?.into_values().collect();
    // Of most worktrees there is nothing to compare.
    let index = if distinct.is_empty() { &[] } else { index };
    let copies = index.iter().filter_map(|entry| Some((entry.path.as_slice(), entry.object?.to_string())));
    Ok(copies.filter(|(_, blob)| distinct.contains(blob)).collect())
}

/// Takes those out of `blobs` that one of `commits` has at any path.
pub(crate) fn without_known<'a>(
    git: impl Fn() -> Git<'a>,
    commits: impl IntoIterator<Item = impl AsRef<str>>,
    blobs: &mut HashSet<String>,
) -> Result<()> {
    for commit in commits {
        if blobs.is_empty() {
            break;
        }
        let listing = git().args(["ls-tree", "-r", "-z", "--full-tree", commit.as_ref()]).run()?;
        let known: HashSet<String> = entries_of_tree(&listing).map(|(_, blob)| blob).collect();
        blobs.retain(|blob| !known.contains(blob));
    }
    Ok(())
}

/// The paths and blobs of a listing of `git ls-tree -z`: `100644 blob OBJECT\tPATH`.
fn entries_of_tree(listing: &[u8]) -> impl Iterator<Item = (&[u8], String)> {
    let entries = nul_separated(listing).filter_map(split_tab);
    entries.filter_map(|(facts, path)| Some((path, path_text(facts.rsplit(|&it| it == b' ').next()?))))
}

/// The files copied into `worktree` that commits which lead to `head`, and to none of the `known` commits, hold: as they were
/// copied, or added although git ignores them. Commits count that remove them again, because history keeps what they held.
/// `of_agent` is the last one that may be the agent's own, and `changed` are the paths in which `head` differs.
///
/// # Errors
/// What `known` or git returns.
pub(crate) fn copied_in_commits(
    worktree: &Path,
    [of_agent, head]: [&CommitId; 2],
    known: impl FnOnce() -> Result<Vec<CommitId>>,
    changed: &[String],
) -> Result<Vec<Vec<u8>>> {
    let copied = noted(worktree, COPIED)?;
    if copied.is_empty() {
        return Ok(Vec::new());
    }
    let known = known()?;
    if known.contains(of_agent) && !changed.iter().any(|path| copied.contains_key(path.as_bytes())) {
        return Ok(Vec::new());
    }
    let git = || Git::new(worktree).reading_only();
    let log = git().args(["log", "-z", "--raw", "-c", "--no-abbrev", "--no-renames"]);
    let log = log.args(["--format=", "--no-show-signature", head.as_str(), "--not"]);
    let listing = log.args(known.iter().map(CommitId::as_str)).arg("--").run()?;
    // `:MODES OBJECTS STATUS`, and the path; of a merge there are several of each, and the last object is its own.
    let distinct: HashSet<String> = noted(worktree, DISTINCT)?.into_values().collect();
    let parts: Vec<&[u8]> = nul_separated(&listing).collect();
    let (mut held, mut added) = (BTreeMap::<Vec<u8>, HashSet<String>>::new(), BTreeSet::new());
    let is_addition = |status: &str| status.bytes().all(|it| it == b'A');
    for [facts, path] in parts.as_chunks().0 {
        let facts = path_text(facts);
        let mut facts = facts.rsplit(' ');
        let (copy, status, object) = (copied.get(*path), facts.next(), facts.next().unwrap_or_default());
        if copy.is_some_and(|blob| object == blob) || distinct.contains(object) {
            held.entry(path.to_vec()).or_default().insert(object.to_owned());
        }
        if copy.is_some() && status.is_some_and(is_addition) {
            added.insert(path.to_vec());
        }
    }
    let mut new: HashSet<String> = held.values().flatten().cloned().collect();
    without_known(git, known.iter().map(CommitId::as_str), &mut new)?;
    held.retain(|_, blobs| !blobs.is_disjoint(&new));
    let mut found: BTreeSet<Vec<u8>> = held.into_keys().collect();
    found.extend(ignored_if_new(worktree, added.iter().map(|path| as_path(path)))?);
    Ok(found.into_iter().collect())
}

/// The paths of `worktree` that are uncommitted, and were not, or held something else, when the last gate ended there;
/// none where that is not known. What a commit leaves out does not count.
pub fn changed_by_hand(repository: &Repository, worktree: &Path) -> Result<Vec<String>> {
    if !git_directory(worktree)?.join(AT_THE_END).exists() {
        return Ok(Vec::new());
    }
    let known = noted(worktree, AT_THE_END)?;
    let changed = uncommitted(worktree)?.into_iter().filter(|(path, blob)| known.get(path) != Some(blob));
    let changed = changed.map(|(path, _)| path).collect();
    let changed = repository.left_out_rules.without_left_out(worktree, changed)?;
    Ok(changed.iter().map(|path| path_text(path)).collect())
}

/// The same; where that is not known, the uncommitted paths that are not as a hook, a set-up or a gate left them, or as they
/// were copied.
pub fn unsaved(repository: &Repository, worktree: &Path) -> Result<Vec<String>> {
    if git_directory(worktree)?.join(AT_THE_END).exists() {
        return changed_by_hand(repository, worktree);
    }
    if is_surely_committed(repository, worktree)? {
        return Ok(Vec::new());
    }
    let mut changed = uncommitted(worktree)?;
    for name in [FROM_HOOK, LEFT_BEHIND, COPIED] {
        let known = noted(worktree, name)?;
        changed.retain(|path, blob| known.get(path) != Some(blob));
    }
    let changed = repository.left_out_rules.without_left_out(worktree, changed.into_keys().collect())?;
    Ok(changed.iter().map(|path| path_text(path)).collect())
}

pub(crate) fn has_hook_files(worktree: &Path) -> Result<bool> {
    Ok(!noted(worktree, FROM_HOOK)?.is_empty())
}

/// The files that a hook wrote or that were copied, that are as they were, and that git does not ignore: it refuses to leave
/// out what it ignores.
pub(crate) fn unchanged_hook_files(worktree: &Path) -> Result<Vec<Vec<u8>>> {
    let mut unchanged = unchanged(worktree, &noted(worktree, FROM_HOOK)?)?;
    unchanged.retain(|path| has_real_parents(worktree, as_path(path)));
    let ignored = ignored_there(worktree, unchanged.iter().map(|path| as_path(path)))?;
    unchanged.retain(|path| !ignored.contains(path));
    Ok(unchanged)
}

fn as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// Those paths of `known` that still hold what they held.
pub(crate) fn unchanged(worktree: &Path, known: &Contents) -> Result<Vec<Vec<u8>>> {
    let now = contents(worktree, known.keys().cloned().collect())?;
    Ok(now.into_iter().filter(|(path, blob)| known.get(path) == Some(blob)).map(|(path, _)| path).collect())
}

/// Those of `paths` that neither `head` nor `worktree` holds just as a hook, a setup or a gate wrote them there.
pub fn without_generated(worktree: &Path, head: &CommitId, paths: Vec<String>) -> Result<Vec<String>> {
    let mut written = noted(worktree, FROM_HOOK)?;
    written.extend(noted(worktree, LEFT_BEHIND)?);
    if written.is_empty() || paths.is_empty() {
        return Ok(paths);
    }
    let listing = Git::new(worktree).args(["ls-tree", "-r", "-z", "--full-tree", head.as_str()]).run()?;
    let held: BTreeMap<&[u8], String> = entries_of_tree(&listing).collect();
    let is_held = |(path, blob): &(&Vec<u8>, &String)| held.get(path.as_slice()).map_or("", String::as_str) == *blob;
    let mut left_behind: BTreeSet<String> = written.iter().filter(is_held).map(|(path, _)| path_text(path)).collect();
    left_behind.extend(unchanged(worktree, &written)?.iter().map(|path| path_text(path)));
    Ok(paths.into_iter().filter(|path| !left_behind.contains(path)).collect())
}

/// What a hook wrote, in git's directory for a worktree.
const FROM_HOOK: &str = "lanewright.hook";
/// What was copied from the checkout; an empty name: what it held is not known.
const COPIED: &str = "lanewright.copied";
/// Those of the copied files whose contents are in no tracked file, and that programs do not install.
const DISTINCT: &str = "lanewright.copied-contents";
/// What setups and gates wrote.
const LEFT_BEHIND: &str = "lanewright.left";
/// What was uncommitted when the last gate ended.
const AT_THE_END: &str = "lanewright.uncommitted";

/// Writes the file `name` in git's directory for `worktree`.
fn note(worktree: &Path, name: &str, found: &Contents) -> Result<()> {
    let mut text = Vec::new();
    for (path, blob) in found {
        text.extend_from_slice(blob.as_bytes());
        text.push(b' ');
        text.extend_from_slice(path);
        text.push(0);
    }
    Ok(atomic::write(&git_directory(worktree)?.join(name), &text)?)
}

fn noted(worktree: &Path, name: &str) -> Result<Contents> {
    let text = regular_file::read_if_there(&git_directory(worktree)?.join(name))?.unwrap_or_default();
    let entries = nul_separated(&text).filter_map(|entry| {
        let space = entry.iter().position(|&byte| byte == b' ')?;
        Some((entry[space + 1..].to_vec(), path_text(&entry[..space])))
    });
    Ok(entries.collect())
}

const AT_ONCE: usize = 256;

/// The blobs that those of `paths` are that are files.
fn contents(worktree: &Path, paths: Vec<Vec<u8>>) -> Result<Contents> {
    let is_file =
        |path: &Vec<u8>| fs::symlink_metadata(worktree.join(OsStr::from_bytes(path))).is_ok_and(|kind| kind.is_file());
    let files: Vec<Vec<u8>> = paths.into_iter().filter(is_file).collect();
    let mut found = Contents::new();
    for some in files.chunks(AT_ONCE) {
        let git = Git::new(worktree).args(["hash-object", "--"]);
        let blobs = path_text(&git.args(some.iter().map(|path| OsStr::from_bytes(path))).run()?);
        found.extend(some.iter().cloned().zip(blobs.lines().map(str::to_owned)));
    }
    Ok(found)
}
