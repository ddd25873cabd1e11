//! Files of a worktree that no agent wrote: those of the user's post-checkout hook, of setup commands and of gates.
//!
//! What differs from the commit right after a checkout, a setup or a gate is written down beside the worktree's head,
//! path by path with its content. As long as a path has that content, it is not an agent's change; if a hook wrote it, it
//! is not uncommitted work either. A hook that fails does not undo the checkout.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid};

use crate::fs::regular_file;
use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::{Git, nul_separated, path_text};
use crate::git::query::status::differing_from_head;
use crate::git::repo::git_dir::git_directory;
use crate::git::repo::repository::Repository;
use crate::git::repo::state_file;
use crate::model::CommitId;

/// Paths and the names of the blobs that they hold; an empty name: nothing is there.
pub(crate) type Contents = BTreeMap<Vec<u8>, String>;

/// Runs the hook after a checkout of all files in `worktree`, and notes what it wrote. Answers how it failed.
pub(crate) fn run_post_checkout(
    repository: &Repository,
    worktree: &Path,
    from: &CommitId,
    to: &CommitId,
    lock: &File,
) -> Result<Option<String>, GitError> {
    let place = place_of_hook(repository, worktree)?;
    if !worktree.join(&place).exists() {
        return Ok(None);
    }
    let place = place.display();
    let git = Git::new(worktree).stdin(lock).args(["hook", "run", "--ignore-missing", "post-checkout", "--"]);
    let output = git.args([from.as_str(), to.as_str(), "1"]).attempt()?;
    note(&notes(worktree)?, contents(worktree, differing_from_head(worktree)?)?)?;
    if output.status.success() {
        return Ok(None);
    }
    let said = [output.stdout, output.stderr].concat();
    let ended = output.status.code().map_or("a signal".to_owned(), |code| format!("code {code}"));
    Ok(Some(format!("the hook {place} ended with {ended}; the checkout stands: {}", path_text(said.trim_ascii()))))
}

/// Where the hook would be; git itself is asked only if settings have a say in that.
fn place_of_hook(repository: &Repository, worktree: &Path) -> Result<PathBuf, GitError> {
    let configuration = repository.configuration()?;
    if configuration.is_uniform() && configuration.get("core.hookspath").is_none() {
        return Ok(repository.common_dir().join("hooks/post-checkout"));
    }
    let place = Git::new(worktree).args(["rev-parse", "--git-path", "hooks/post-checkout"]).run()?;
    Ok(PathBuf::from(OsStr::from_bytes(place.trim_ascii_end())))
}

/// Forgets what an earlier hook, setup or gate wrote in `worktree`.
pub(crate) fn forget_left_behind(worktree: &Path) -> Result<(), GitError> {
    state_file::remove(&leftovers(worktree)?)?;
    state_file::remove(&notes(worktree)?)
}

/// The files of `worktree` that differ from its head, with what they hold.
///
/// # Errors
/// What git says; [`GitError::File`] if a link cannot be read.
pub fn uncommitted(worktree: &Path) -> Result<Contents, GitError> {
    let paths = differing_from_head(worktree)?;
    let mut found = Contents::new();
    for path in &paths {
        let place = worktree.join(OsStr::from_bytes(path));
        match fs::symlink_metadata(&place) {
            Ok(kind) if kind.is_symlink() => {
                let target = fs::read_link(&place).map_err(io_error("read", &place))?;
                let blob = Oid::hash_object(ObjectType::Blob, target.as_os_str().as_bytes());
                found.extend(blob.map(|blob| (path.clone(), blob.to_string())));
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
pub(crate) fn note_left_behind(worktree: &Path, before: &Contents, agents: &[String]) -> Result<(), GitError> {
    let mut left = uncommitted(worktree)?;
    left.retain(|path, blob| before.get(path) != Some(blob) && !agents.contains(&path_text(path)));
    if left.is_empty() {
        return Ok(());
    }
    let place = leftovers(worktree)?;
    let mut all = noted(&place)?;
    all.extend(left);
    note(&place, all)
}

/// Whether a hook wrote anything in `worktree` that the commit does not hold.
pub(crate) fn left_something(worktree: &Path) -> Result<bool, GitError> {
    Ok(!noted(&notes(worktree)?)?.is_empty())
}

/// Which of the paths that a hook wrote in `worktree` hold what it wrote.
pub(crate) fn as_hook_left(worktree: &Path) -> Result<Vec<Vec<u8>>, GitError> {
    let written = noted(&notes(worktree)?)?;
    if written.is_empty() {
        return Ok(Vec::new());
    }
    let now = contents(worktree, written.keys().cloned().collect())?;
    Ok(now.into_iter().filter(|(path, blob)| written.get(path) == Some(blob)).map(|(path, _)| path).collect())
}

/// Those of `paths` that `head` does not hold just as a hook, a setup or a gate wrote them in `worktree`.
pub(crate) fn not_left_behind(worktree: &Path, head: &CommitId, paths: Vec<String>) -> Result<Vec<String>, GitError> {
    let mut written = noted(&notes(worktree)?)?;
    written.extend(noted(&leftovers(worktree)?)?);
    if written.is_empty() || paths.is_empty() {
        return Ok(paths);
    }
    let listing = Git::new(worktree).args(["ls-tree", "-r", "-z", "--full-tree", head.as_str()]).run()?;
    let left_behind = |entry: &[u8]| {
        let tab = entry.iter().position(|&byte| byte == b'\t')?;
        let blob = path_text(entry[..tab].rsplit(|&byte| byte == b' ').next()?);
        let path = &entry[tab + 1..];
        (written.get(path) == Some(&blob)).then(|| path_text(path))
    };
    let left_behind: BTreeSet<String> = nul_separated(&listing).filter_map(left_behind).collect();
    let held: BTreeSet<&[u8]> = nul_separated(&listing).filter_map(path_of).collect();
    let removed =
        |path: &String| written.get(path.as_bytes()).is_some_and(String::is_empty) && !held.contains(path.as_bytes());
    Ok(paths.into_iter().filter(|path| !left_behind.contains(path) && !removed(path)).collect())
}

/// The path in a line of `git ls-tree`.
fn path_of(entry: &[u8]) -> Option<&[u8]> {
    entry.iter().position(|&byte| byte == b'\t').map(|tab| &entry[tab + 1..])
}

fn notes(worktree: &Path) -> Result<PathBuf, GitError> {
    Ok(git_directory(worktree)?.join("lanekeeper.hook"))
}

fn leftovers(worktree: &Path) -> Result<PathBuf, GitError> {
    Ok(git_directory(worktree)?.join("lanekeeper.left"))
}

fn note(place: &Path, found: Contents) -> Result<(), GitError> {
    if found.is_empty() {
        return Ok(());
    }
    let mut text = Vec::new();
    for (path, blob) in found {
        text.extend_from_slice(blob.as_bytes());
        text.push(b' ');
        text.extend_from_slice(&path);
        text.push(0);
    }
    state_file::write(place, &text)
}

fn noted(place: &Path) -> Result<Contents, GitError> {
    let text = match regular_file::read(place) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Contents::new()),
        read => read.map_err(io_error("read", place))?,
    };
    let entries = nul_separated(&text).filter_map(|entry| {
        let space = entry.iter().position(|&byte| byte == b' ')?;
        Some((entry[space + 1..].to_vec(), path_text(&entry[..space])))
    });
    Ok(entries.collect())
}

/// How many paths one command is given.
const AT_ONCE: usize = 256;

/// What those of `paths` hold that are files.
fn contents(worktree: &Path, paths: Vec<Vec<u8>>) -> Result<Contents, GitError> {
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
