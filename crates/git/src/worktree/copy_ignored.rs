//! Copying ignored files (`.env`, caches, dependencies) from the main worktree into a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use lanewright_files::regular_file::{self, Links};
use lanewright_files::{atomic, temporary_beside};
use lanewright_model::ownership::Ownership;
use lanewright_model::text::counted;

use crate::command::{GitError, Result, io_error, nul_separated, path_text};
use crate::query::left_out::is_in_environment;
use crate::query::{has_real_parents, ignored_there, note_copied};
use crate::repo::Repository;

/// The file at the root of the main worktree that names ignored files for new worktrees, in the syntax of `.gitignore`.
pub const INCLUDE_FILE: &str = ".worktreeinclude";

/// The largest [`INCLUDE_FILE`] that is read, in bytes.
const INCLUDE_LIMIT: u64 = 1 << 20;

/// From how many files or bytes on a copy is reported before it begins.
const MANY_FILES: usize = 10_000;
const MANY_BYTES: u64 = 1 << 30;

/// More files than these are not copied under a limit of bytes either: each takes a moment and an inode.
const MOST_FILES: usize = 250_000;

/// What was copied into a worktree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Relative to the root.
    pub files: Vec<PathBuf>,
    /// Those that are not copied because git does not ignore them in the worktree: a commit could hold them.
    pub not_ignored: Vec<String>,
}

/// What is reported of a copy.
#[derive(Debug)]
pub enum CopyReport<'p> {
    /// It takes long, in a sentence, before it begins.
    Long(String),
    /// The file at `path`, relative to the root, is copied next, after `done` of `total` bytes.
    Next { path: &'p Path, done: u64, total: u64 },
}

/// Copies the ignored files of the main worktree that match `patterns`, or that [`INCLUDE_FILE`] names, to the same places in
/// `worktree`: files with their permissions (as clones where the file system can), links as links. What exists there is never
/// overwritten, and no link is followed. `report` gets a sentence before a copy that takes long, and each file.
///
/// # Errors
/// A pattern that is not valid, a virtual environment, more than the limit of the repository's rules, and what the system reports.
pub fn copy_ignored(
    repository: &Repository,
    worktree: &Path,
    patterns: &[&str],
    report: &dyn Fn(CopyReport<'_>),
) -> Result<Copied> {
    let wanted = wanted(repository, patterns)?;
    let main = repository.main_worktree();
    let may_be =
        |path: &&PathBuf| fs::symlink_metadata(worktree.join(path)).is_err() && has_real_parents(worktree, path);
    let (rules, missing): (Vec<&PathBuf>, Vec<&PathBuf>) =
        wanted.iter().filter(may_be).partition(|path| path.ends_with(".gitignore"));
    // A directory may ignore itself by a file of its own, which is not in git: virtual environments do, and hooks of husky.
    for path in &rules {
        copy_one(main, worktree, path)?;
    }
    let ignored = ignored_there(worktree, missing.iter().map(|path| path.as_path()))?;
    let (due, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
        missing.into_iter().partition(|path| ignored.contains(path.as_os_str().as_bytes()));
    refuse_virtual_environment(main, &due)?;
    let size = |path: &PathBuf| fs::symlink_metadata(main.join(path)).map_or(0, |it| it.len());
    let bytes = due.iter().map(|path| size(path)).sum();
    refuse_too_much(repository, &due, bytes, size)?;
    if due.len() >= MANY_FILES || bytes >= MANY_BYTES {
        let files = counted(due.len(), "ignored file");
        report(CopyReport::Long(format!("copies {files} ({}) into the worktree", in_words(bytes))));
    }
    let mut copied = Copied {
        files: rules.into_iter().cloned().collect(),
        not_ignored: others.iter().map(|path| text_of(path)).collect(),
    };
    let mut done = 0;
    for path in due {
        report(CopyReport::Next { path, done, total: bytes });
        done += size(path);
        if copy_one(main, worktree, path)? {
            copied.files.push(path.clone());
        }
    }
    let now: BTreeSet<&PathBuf> = copied.files.iter().collect();
    let noted = wanted.iter().map(|path| (path.as_os_str().as_bytes(), now.contains(path)));
    note_copied(main, worktree, noted, is_in_environment)?;
    Ok(copied)
}

/// The ignored files of the main worktree that match `patterns` or that [`INCLUDE_FILE`] names, relative to its root.
///
/// # Errors
/// A pattern that is not valid.
pub fn wanted(repository: &Repository, patterns: &[&str]) -> Result<Vec<PathBuf>> {
    let globs = Ownership::new(patterns).map_err(|error| GitError::BadPattern {
        pattern: error.glob().unwrap_or_default().to_owned(),
        reason: error.kind().to_string(),
    })?;
    let include = check_include_file(repository)?;
    if patterns.is_empty() && include.is_none() {
        return Ok(Vec::new());
    }
    let listing = |rules: &OsStr| {
        let git = repository.git().reading_only();
        git.args(["ls-files", "-z", "--others", "--ignored"].map(OsStr::new)).arg(rules).run()
    };
    let named = match include {
        Some(place) => {
            let mut rules = OsString::from("--exclude-from=");
            rules.push(place);
            listing(&rules)?
        }
        None => Vec::new(),
    };
    let named: BTreeSet<&[u8]> = nul_separated(&named).collect();
    let ignored = listing(OsStr::new("--exclude-standard"))?;
    let matches = |path: &&[u8]| named.contains(path) || !patterns.is_empty() && globs.allows(&path_text(path));
    // What ends with a slash is a repository within the worktree.
    let files = nul_separated(&ignored).filter(|path| !path.ends_with(b"/")).filter(matches);
    Ok(files.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
}

/// The place of [`INCLUDE_FILE`], if there is one.
///
/// # Errors
/// Its first line that leads out of the repository.
pub fn check_include_file(repository: &Repository) -> Result<Option<PathBuf>> {
    let main = repository.main_worktree();
    let place = main.join(INCLUDE_FILE);
    if fs::symlink_metadata(&place).is_err() {
        return Ok(None);
    }
    let text = regular_file::read_with(&place, Links::Refuse, INCLUDE_LIMIT).map_err(io_error("read", &place))?;
    for (number, line) in (1..).zip(path_text(&text).lines()) {
        let pattern = line.trim_end().trim_start_matches('!');
        if let Some(reason) = leads_out(main, pattern).filter(|_| !line.starts_with('#')) {
            let pattern = format!("{INCLUDE_FILE}:{number}: {pattern}");
            return Err(GitError::BadPattern { pattern, reason: reason.to_owned() });
        }
    }
    Ok(Some(place))
}

/// Why a line matches nothing in the repository. A slash at its beginning stands for the root of the repository.
fn leads_out(main: &Path, pattern: &str) -> Option<&'static str> {
    let first = pattern.strip_prefix('/').and_then(|rest| rest.split('/').next()).filter(|first| !first.is_empty());
    let is_absolute = first.is_some_and(|first| Path::new("/").join(first).exists() && !main.join(first).exists());
    match pattern {
        _ if pattern.split('/').any(|part| part == "..") => Some("it leads out of the repository with `..`"),
        _ if is_absolute || pattern.starts_with("~/") => {
            Some("it is an absolute path; write it relative to the root of the repository")
        }
        _ => None,
    }
}

/// Refuses what is in a directory that only works in its place.
fn refuse_virtual_environment(main: &Path, due: &[&PathBuf]) -> Result<()> {
    let above = due.iter().flat_map(|path| path.ancestors().skip(1)).filter(|it| !it.as_os_str().is_empty());
    let directories: BTreeSet<&Path> = above.collect();
    match directories.into_iter().find(|it| main.join(it).join("pyvenv.cfg").is_file()) {
        Some(found) => Err(GitError::VirtualEnvironment { path: text_of(found) }),
        None => Ok(()),
    }
}

/// Refuses more than the limit, and names the directory that holds most of it.
fn refuse_too_much(
    repository: &Repository,
    due: &[&PathBuf],
    bytes: u64,
    size: impl Fn(&PathBuf) -> u64,
) -> Result<()> {
    let Some(limit) = repository.left_out_rules.copy_limit.filter(|limit| bytes > *limit || due.len() > MOST_FILES)
    else {
        return Ok(());
    };
    let mut places = BTreeMap::<&OsStr, u64>::new();
    for path in due {
        if let Some(first) = path.iter().next() {
            // A file without contents takes room, too.
            *places.entry(first).or_default() += size(path) + 1;
        }
    }
    let largest = places.into_iter().max_by_key(|(_, size)| *size);
    let largest = largest.map(|(name, _)| name.to_string_lossy().into_owned()).unwrap_or_default();
    Err(GitError::TooMuchToCopy {
        files: counted(due.len(), "file"),
        size: in_words(bytes),
        limit: in_words(limit),
        largest,
    })
}

/// `1.5 GiB`
pub fn in_words(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, factor)| bytes >= *factor) {
        Some((unit, factor)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*factor);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => counted(usize::try_from(bytes).unwrap_or(usize::MAX), "byte"),
    }
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn copy_one(from: &Path, to: &Path, path: &Path) -> Result<bool> {
    let (source, target) = (from.join(path), to.join(path));
    let Some(parent) = path.parent() else { return Ok(false) };
    let Ok(kind) = fs::symlink_metadata(&source) else { return Ok(false) };
    if fs::symlink_metadata(&target).is_ok() || !make_real_directories(to, parent)? {
        return Ok(false);
    }
    // Beside the worktree: a crash must not leave in it what an agent would commit.
    let staged = temporary_beside(to);
    let made = if kind.is_symlink() {
        fs::read_link(&source).and_then(|leads_to| symlink(leads_to, &staged))
    } else if kind.is_file() {
        regular_file::copy(&source, &staged).map(|_| ())
    } else {
        return Ok(false);
    };
    made.map_err(io_error("copy", &source))?;
    atomic::rename(&staged, &target)?;
    Ok(true)
}

/// Makes the directory `inner` below `root`. `false`: a link or a file is in the way.
fn make_real_directories(root: &Path, inner: &Path) -> Result<bool> {
    let mut path = root.to_owned();
    for part in inner.components() {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => {}
            Ok(_) => return Ok(false),
            Err(_) => fs::create_dir(&path).map_err(io_error("create", &path))?,
        }
    }
    Ok(true)
}
