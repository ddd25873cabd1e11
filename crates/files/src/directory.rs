//! Directories of state: readable by their owner only, durable, and entered one step at a time.
//!
//! Every step down is opened relative to the directory above it, so a link that is created meanwhile is not followed
//! (SPEC §13).

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, FileType, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::error::{FileError, if_there, open_error};
use super::fault::{change, create};
use super::handle;
use super::regular_file::{open, open_directory};

/// Makes `relative` below `root`, which exists, and every directory on the way; mode 0700, durable.
pub fn create_directories(root: &Path, relative: &Path) -> Result<(), FileError> {
    enter_all(root, relative, true).map(drop)
}

/// Makes the directory `path` and what is missing above it; what exists may be a link of the user's.
pub fn create_directory(path: &Path) -> Result<(), FileError> {
    let existing = path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("."));
    create_directories(existing, path.strip_prefix(existing).unwrap_or(path))
}

/// The same without waiting for the disk: after a power cut it may be missing.
///
/// # Errors
/// [`FileError`]: a directory cannot be made or entered.
pub fn create_directory_unsynced(path: &Path) -> Result<(), FileError> {
    let existing = path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("."));
    enter_all(existing, path.strip_prefix(existing).unwrap_or(path), false).map(drop)
}

/// Makes the directory `path`, whose parent exists, with the mode that the umask leaves. `false`: it exists.
pub fn create_ordinary(path: &Path) -> io::Result<bool> {
    match create(path, || path.is_dir(), || fs::create_dir(path)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        made => made.map(|()| true),
    }
}

/// Makes the directory `name` in `parent`, which exists; mode 0700, durable. `false`: something has that name.
pub fn create_new(parent: &Path, name: &OsStr) -> Result<bool, FileError> {
    let path = parent.join(name);
    let opened = open_directory(parent).map_err(|source| open_error("open", parent, source))?;
    match create(&path, || false, || rustix::fs::mkdirat(&opened, name, Mode::RWXU)) {
        Err(Errno::EXIST) => Ok(false),
        made => {
            let made = made.map_err(io::Error::from).and_then(|()| sync_names(&path, &opened));
            made.map(|()| true).map_err(|source| open_error("make the directory", &path, source))
        }
    }
}

/// Makes a change below `root`. Where it fails and directories there cannot be written by their owner, as some tools leave
/// their caches, they are made writable and it is made once more. Links are not followed.
///
/// # Errors
/// That of the change.
pub fn change_below<T, E>(root: &Path, change: impl Fn() -> Result<T, E>) -> Result<T, E> {
    match change() {
        Err(_) if make_writable(root) => change(),
        changed => changed,
    }
}

/// Whether any directory was not writable and is now.
fn make_writable(root: &Path) -> bool {
    let Ok(kind) = fs::symlink_metadata(root) else { return false };
    if !kind.is_dir() {
        return false;
    }
    let mode = kind.permissions().mode();
    let writable = Permissions::from_mode(mode | 0o700);
    let changed = mode & 0o700 != 0o700 && fs::set_permissions(root, writable).is_ok();
    let below = fs::read_dir(root).into_iter().flatten().flatten();
    below.fold(changed, |changed, entry| make_writable(&entry.path()) || changed)
}

pub fn sync_directory(directory: &Path) -> Result<(), FileError> {
    open_directory(directory)
        .and_then(|opened| sync_names(directory, &opened))
        .map_err(FileError::io("sync", directory))
}

/// Syncs a file or a directory; none there is as good.
pub fn sync_if_there(path: &Path) -> Result<(), FileError> {
    let synced = match path.is_dir() {
        true => open_directory(path).and_then(|opened| sync_names(path, &opened)),
        false => open(path).and_then(|file| handle::sync(path, &file)),
    };
    if_there(synced).map(drop).map_err(FileError::io("sync", path))
}

/// The paths in a directory, sorted; none where it does not exist.
pub fn entries(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut paths: Vec<PathBuf> = list(directory)?.iter().map(DirEntry::path).collect();
    paths.sort_unstable();
    Ok(paths)
}

/// The paths in a directory, each with its type as the directory lists it, links not followed; none where the directory
/// does not exist.
pub fn entries_with_kinds(directory: &Path) -> Result<Vec<(PathBuf, FileType)>, FileError> {
    Ok(list(directory)?.iter().filter_map(|entry| Some((entry.path(), entry.file_type().ok()?))).collect())
}

fn list(directory: &Path) -> Result<Vec<DirEntry>, FileError> {
    let listed = if_there(fs::read_dir(directory)).and_then(|found| found.into_iter().flatten().collect());
    listed.map_err(FileError::io("list", directory))
}

/// The directories in a directory, links not counted.
pub fn directories(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut paths = entries(directory)?;
    paths.retain(|path| fs::symlink_metadata(path).is_ok_and(|kind| kind.is_dir()));
    Ok(paths)
}

/// `path` with `suffix` at the end of its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The first of `path` with `suffix`, and with `-2`, `-3` … after it, that nothing has.
pub fn free_name(path: &Path, suffix: &str) -> PathBuf {
    let numbered = (2..).map(|number: u32| with_suffix(path, &format!("{suffix}-{number}")));
    let mut names = std::iter::once(with_suffix(path, suffix)).chain(numbered);
    names.find(|name| fs::symlink_metadata(name).is_err()).unwrap_or_else(|| with_suffix(path, suffix))
}

/// Makes the names in `directory` durable, of which `path` is one, or the directory.
///
/// Some file systems cannot sync a directory and say so with `EINVAL`; there is nothing better to do there.
pub(super) fn sync_names(path: &Path, directory: &File) -> io::Result<()> {
    match change(path, || directory.sync_all()) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
        result => result,
    }
}

/// Opens the directory `relative` below `root`; directories on the way are made, with `durable` also on disk, and links on
/// the way are refused.
pub(super) fn enter_all(root: &Path, relative: &Path, durable: bool) -> Result<File, FileError> {
    let mut directory = open_directory(root).map_err(|source| open_error("open", root, source))?;
    let mut path = root.to_owned();
    for component in relative.components() {
        path.push(component);
        let Component::Normal(name) = component else {
            return Err(FileError::Outside { path });
        };
        directory = enter(&directory, name, &path, durable)
            .map_err(|source| open_error("make the directory", &path, source))?;
    }
    Ok(directory)
}

fn enter(parent: &File, name: &OsStr, path: &Path, durable: bool) -> io::Result<File> {
    let exists = || rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    match create(path, exists, || rustix::fs::mkdirat(parent, name, Mode::RWXU)) {
        Ok(()) if durable => sync_names(path, parent)?,
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?.into())
}
