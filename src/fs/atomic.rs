//! Files that are the old one or the new one and never half of each, in directories that only their owner enters.
//!
//! Nothing here writes through a symbolic link below the root that it is given (SPEC §13): every step down is opened
//! relative to the directory above it, so a link that is put there meanwhile changes nothing either.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::fault::{change, create, write_all};
use super::regular_file::{self, Links, options, read_text_with};

/// Why a state file or directory cannot be read, made or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A symbolic link stands where a file or directory of Lanekeeper's belongs.
    #[error("{} is a symbolic link, and state is never written through one: put the real thing in its place", .path.display())]
    SymbolicLink {
        /// The link.
        path: PathBuf,
    },
    /// A relative path that does not stay below its root.
    #[error("{} does not stay below its root", .path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
    /// The system said no.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Replaces the file at `path`, whose directory exists, by one that holds `contents`; mode 0600.
///
/// When this returns, the new file survives a power cut. A symbolic link at `path` is replaced, not followed.
///
/// # Errors
/// [`FileError`]; the old file is then untouched.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(FileError::Outside { path: path.to_owned() });
    };
    write_below(parent, Path::new(name), contents)
}

/// The same where `fill` writes what the new file holds.
///
/// # Errors
/// [`FileError`]; the old file is then untouched.
pub(crate) fn write_with(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<(), FileError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(FileError::Outside { path: path.to_owned() });
    };
    let directory = enter_all(parent, Path::new(""))?;
    let replaced = replace_with(&directory, name, |file| change(|| fill(file))).and_then(|()| sync_names(&directory));
    replaced.map_err(|source| FileError::Io { action: "write", path: path.to_owned(), source })
}

/// The same for `relative` below `root`; directories on the way are made, links on the way are refused.
///
/// # Errors
/// [`FileError`]; the old file is then untouched.
pub fn write_below(root: &Path, relative: &Path, contents: &[u8]) -> Result<(), FileError> {
    let path = root.join(relative);
    let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
        return Err(FileError::Outside { path });
    };
    let directory = enter_all(root, parent)?;
    let replaced = replace_in(&directory, name, contents).and_then(|()| sync_names(&directory));
    replaced.map_err(|source| FileError::Io { action: "write", path, source })
}

/// The same for files of one directory, which exists, with one wait for all their names: nothing may count on any of
/// them before this returns.
///
/// # Errors
/// [`FileError`]; some of the files may then be new.
pub fn write_together<'a>(
    directory: &Path,
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<(), FileError> {
    let opened = regular_file::open_directory(directory).map_err(|source| open_error("open", directory, source))?;
    for (name, contents) in files {
        let failed = |source| FileError::Io { action: "write", path: directory.join(name), source };
        replace_in(&opened, OsStr::new(name), contents).map_err(failed)?;
    }
    sync_names(&opened).map_err(|source| FileError::Io { action: "sync", path: directory.to_owned(), source })
}

/// The same with half the waiting, for what is not worth more: after a power cut the old file may be there again.
///
/// # Errors
/// [`FileError`]; the old file is then untouched.
pub fn exchange_below(root: &Path, relative: &Path, contents: &[u8]) -> Result<(), FileError> {
    let path = root.join(relative);
    let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
        return Err(FileError::Outside { path });
    };
    let directory = enter_all(root, parent)?;
    replace_in(&directory, name, contents).map_err(|source| FileError::Io { action: "write", path, source })
}

/// Makes `relative` below `root`, which exists, and every directory on the way; mode 0700, durable.
///
/// # Errors
/// [`FileError`], also when a symbolic link is on the way.
pub fn create_directories(root: &Path, relative: &Path) -> Result<(), FileError> {
    enter_all(root, relative).map(drop)
}

/// Makes the directory `path` and what is missing above it; what exists may be a link of the user's.
///
/// # Errors
/// [`FileError`].
pub fn create_directory(path: &Path) -> Result<(), FileError> {
    let existing = path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("."));
    create_directories(existing, path.strip_prefix(existing).unwrap_or(path))
}

/// Removes a file; none there is as good.
///
/// # Errors
/// [`FileError::Io`].
pub fn remove(path: &Path) -> Result<(), FileError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(FileError::Io { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// The text of a small file that an agent may have left; `None` where there is none or it is no text.
pub fn read_left(path: &Path) -> Option<String> {
    read_foreign(path).ok().flatten()
}

/// The largest file that [`read_foreign`] reads, in bytes.
const FOREIGN_LIMIT: u64 = 1 << 20;

/// Reads a small text file that somebody else writes; `None` where there is none.
///
/// What is there may be anything: a link, a pipe or a huge file is refused instead of followed, waited for or read.
///
/// # Errors
/// Why it cannot be read, without the path.
pub(crate) fn read_foreign(path: &Path) -> Result<Option<String>, String> {
    let text = match read_text_with(path, Links::Refuse, FOREIGN_LIMIT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| error.to_string())?,
    };
    Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
}

/// Options that refuse a link in the last place and make files that only their owner reads.
pub(crate) fn no_follow_options() -> OpenOptions {
    options(Links::Refuse)
}

/// The error of an `open` with [`no_follow_options`], which says ELOOP for a link.
pub(crate) fn open_error(action: &'static str, path: &Path, source: io::Error) -> FileError {
    if path.is_symlink() {
        return FileError::SymbolicLink { path: path.to_owned() };
    }
    FileError::Io { action, path: path.to_owned(), source }
}

/// Makes the names in `directory` durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), FileError> {
    let synced = regular_file::open_directory(directory).and_then(|directory| sync_names(&directory));
    synced.map_err(|source| FileError::Io { action: "sync", path: directory.to_owned(), source })
}

fn enter_all(root: &Path, relative: &Path) -> Result<File, FileError> {
    let mut directory = regular_file::open_directory(root).map_err(|source| open_error("open", root, source))?;
    let mut path = root.to_owned();
    for component in relative.components() {
        path.push(component);
        let Component::Normal(name) = component else {
            return Err(FileError::Outside { path });
        };
        directory = enter(&directory, name).map_err(|source| open_error("make the directory", &path, source))?;
    }
    Ok(directory)
}

fn enter(parent: &File, name: &OsStr) -> io::Result<File> {
    let exists = || rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    match create(exists, || rustix::fs::mkdirat(parent, name, Mode::RWXU)) {
        Ok(()) => sync_names(parent)?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?.into())
}

fn replace_in(directory: &File, name: &OsStr, contents: &[u8]) -> io::Result<()> {
    replace_with(directory, name, |file| write_all(file, contents))
}

fn replace_with(directory: &File, name: &OsStr, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let mut temporary = OsStr::new(".").to_owned();
    temporary.push(name);
    temporary.push(format!(".{}.tmp", uuid::Uuid::now_v7().simple()));
    let replaced = write_new(directory, &temporary, fill)
        .and_then(|()| Ok(change(|| rustix::fs::renameat(directory, &temporary, directory, name))?));
    if replaced.is_err() {
        let _ = rustix::fs::unlinkat(directory, &temporary, AtFlags::empty());
    }
    replaced
}

fn write_new(directory: &File, name: &OsStr, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(change(|| rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR))?);
    fill(&file)?;
    change(|| file.sync_all())
}

/// Some file systems cannot sync a directory and say so with `EINVAL`; there is nothing better to do there.
fn sync_names(directory: &File) -> io::Result<()> {
    match change(|| directory.sync_all()) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_and_directories_are_their_owners_alone() {
        let root = tempfile::tempdir().unwrap();
        write_below(root.path(), Path::new("a/b/c.json"), b"1").unwrap();
        assert_eq!(mode(&root.path().join("a")), 0o700);
        assert_eq!(mode(&root.path().join("a/b")), 0o700);
        assert_eq!(mode(&root.path().join("a/b/c.json")), 0o600);
    }

    #[test]
    fn a_wide_open_file_is_replaced_by_a_closed_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "a temporary file was left behind");
    }

    #[test]
    fn a_link_at_the_targets_place_is_replaced_and_its_target_untouched() {
        let root = tempfile::tempdir().unwrap();
        let (target, path) = (root.path().join("target"), root.path().join("x"));
        fs::write(&target, "precious").unwrap();
        symlink(&target, &path).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(!path.is_symlink());
    }

    #[test]
    fn a_link_on_the_way_is_refused_and_named() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), root.path().join("a")).unwrap();
        let error = write_below(root.path(), Path::new("a/b/c"), b"1").unwrap_err();
        assert!(matches!(&error, FileError::SymbolicLink { path } if path.ends_with("a")), "{error}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_path_that_leaves_its_root_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for relative in ["../x", "a/../../x", "/etc/x", ""] {
            let error = write_below(root.path(), Path::new(relative), b"1").unwrap_err();
            assert!(matches!(error, FileError::Outside { .. }), "{relative}: {error}");
        }
    }

    #[test]
    fn files_written_together_are_all_replaced_and_one_that_cannot_be_is_named() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "old").unwrap();
        write_together(root.path(), [("a", &b"1"[..]), ("b", b"2")]).unwrap();
        let text = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
        assert_eq!((text("a"), text("b"), mode(&root.path().join("a"))), ("1".to_owned(), "2".to_owned(), 0o600));
        fs::create_dir(root.path().join("taken")).unwrap();
        let error = write_together(root.path(), [("taken", &b"3"[..])]).unwrap_err().to_string();
        assert!(error.contains("taken"), "{error}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("taken")).unwrap();
        write(&root.path().join("taken"), b"1").unwrap_err();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_foreign_pipe_link_or_giant_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(place("pipe")).status().unwrap().success());
        symlink("pipe", place("link")).unwrap();
        File::create(place("giant")).unwrap().set_len(FOREIGN_LIMIT + 1).unwrap();
        for name in ["pipe", "link", "giant"] {
            read_foreign(&place(name)).unwrap_err();
        }
        assert_eq!(read_foreign(&place("missing")), Ok(None));
        fs::write(place("bom"), "\u{feff}{}").unwrap();
        assert_eq!(read_foreign(&place("bom")), Ok(Some("{}".to_owned())));
    }
}
