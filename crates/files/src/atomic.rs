//! Files that are the old one or the new one and never half of each.
//!
//! Nothing here writes through a symbolic link below the root that it is given (SPEC §13).

use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::directory::{change_below, enter_all, sync_directory};
use super::error::{FileError, if_there};
use super::fault::change;
use super::staged::{ORDINARY, PRIVATE, PROGRAM, Staged, temporary_beside};

/// Replaces the file at `path`, whose directory exists, by one that holds `contents`; mode 0600.
///
/// When this returns, the new file survives a power cut. A symbolic link at `path` is replaced, not followed.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    put_durably(Staged::create(path, PRIVATE)?, |file| file.write(contents))
}

/// The same where `fill` writes what the new file holds.
pub fn write_with(path: &Path, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<(), FileError> {
    put_durably(Staged::create(path, PRIVATE)?, |file| file.fill(fill))
}

/// The same as [`write()`] for `relative` below `root`; directories on the way are made, links on the way are refused.
pub fn write_below(root: &Path, relative: &Path, contents: &[u8]) -> Result<(), FileError> {
    put_durably(staged_below(root, relative)?, |file| file.write(contents))
}

/// The same as [`write_below`] with half the waiting, for what is not worth more: after a power cut the old file may be
/// there again.
pub fn exchange_below(root: &Path, relative: &Path, contents: &[u8]) -> Result<(), FileError> {
    put_synced(&mut staged_below(root, relative)?, |file| file.write(contents))
}

/// The same as [`write()`] without waiting for the disk, for what is worth nothing after a power cut.
pub fn replace(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let mut staged = Staged::create(path, PRIVATE)?;
    staged.write(contents)?;
    staged.put()
}

/// The same as [`replace()`] for a program that only its owner runs.
///
/// # Errors
/// [`FileError`]: it cannot be written; what was there is then untouched.
pub fn replace_program(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let mut staged = Staged::create(path, PROGRAM)?;
    staged.write(contents)?;
    staged.put()
}

/// The same below `root`, as [`write_below`] does it.
pub fn replace_below(root: &Path, relative: &Path, contents: &[u8]) -> Result<(), FileError> {
    let mut staged = staged_below(root, relative)?;
    staged.write(contents)?;
    staged.put()
}

/// The same as [`replace()`] where nothing may be. `false`: something is.
pub fn create(path: &Path, contents: &[u8]) -> Result<bool, FileError> {
    let mut staged = Staged::create(path, PRIVATE)?;
    staged.write(contents)?;
    staged.put_new()
}

/// The same, durably, for a file that others read, by way of `temporary` beside it, whose removal does not depend on its
/// name.
pub fn create_by_way_of(temporary: &Path, path: &Path, contents: &[u8]) -> Result<bool, FileError> {
    remove(temporary)?;
    let mut staged = Staged::create_as(temporary.file_name().unwrap_or_default().to_owned(), path, ORDINARY)?;
    staged.write(contents)?;
    staged.sync()?;
    Ok(staged.put_new()? && staged.sync_name().map(|()| true)?)
}

/// A file of the user's that is to replace the one at `path` and is on disk: it has the permissions of that one, or those
/// that the umask leaves.
pub fn stage_over(path: &Path, contents: &[u8]) -> Result<Staged, FileError> {
    let staged = Staged::create(path, ORDINARY)?;
    if let Ok(known) = std::fs::metadata(path) {
        staged.set_permissions(known.permissions())?;
    }
    staged.write(contents)?;
    staged.sync()?;
    Ok(staged)
}

/// Replaces a file of the user's; a symbolic link to it stays one.
pub fn rewrite(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut staged = stage_over(&real, contents)?;
    staged.put()?;
    staged.sync_name()
}

/// Makes `path` a symbolic link to `target`, in place of one that may be there.
///
/// # Errors
/// [`FileError`]; what was there is then untouched.
pub fn link(target: &Path, path: &Path) -> Result<(), FileError> {
    let staged = temporary_beside(path);
    change(path, || symlink(target, &staged)).map_err(FileError::io("create", path))?;
    rename(&staged, path).inspect_err(|_| drop(std::fs::remove_file(&staged)))
}

pub fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    change(to, || std::fs::rename(from, to)).map_err(FileError::io("rename", from))
}

/// Exchanges two files in one step; where the file system cannot, the first takes the second's place.
pub fn exchange(first: &Path, second: &Path) -> io::Result<()> {
    match change(second, || renameat_with(CWD, first, CWD, second, RenameFlags::EXCHANGE)) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(rename(first, second)?),
        exchanged => Ok(exchanged?),
    }
}

/// Removes a file; none there is as good.
pub fn remove(path: &Path) -> Result<(), FileError> {
    remove_if_there(path).map(drop)
}

/// The same, and it stays removed after a power cut.
pub fn remove_durably(path: &Path) -> Result<(), FileError> {
    match (remove_if_there(path)?, path.parent()) {
        (true, Some(directory)) if directory.is_dir() => sync_directory(directory),
        _ => Ok(()),
    }
}

/// Removes a file, a link (not what it leads to) or a directory with all that is in it, also in directories without write
/// permission; none there is as good.
pub fn remove_all(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(kind) if kind.is_dir() => change_below(path, || std::fs::remove_dir_all(path)),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

pub fn remove_if_there(path: &Path) -> Result<bool, FileError> {
    let removed = if_there(std::fs::remove_file(path)).map_err(FileError::io("remove", path))?;
    Ok(removed.is_some())
}

fn staged_below(root: &Path, relative: &Path) -> Result<Staged, FileError> {
    let path = root.join(relative);
    match relative.parent() {
        Some(parent) if relative.file_name().is_some() => Staged::create_in(&enter_all(root, parent, true)?, &path),
        _ => Err(FileError::Outside { path }),
    }
}

fn put_durably(mut staged: Staged, write: impl FnOnce(&Staged) -> Result<(), FileError>) -> Result<(), FileError> {
    put_synced(&mut staged, write)?;
    staged.sync_name()
}

fn put_synced(staged: &mut Staged, write: impl FnOnce(&Staged) -> Result<(), FileError>) -> Result<(), FileError> {
    write(staged)?;
    staged.sync()?;
    staged.put()
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
    fn files_and_directories_are_private() {
        let root = tempfile::tempdir().unwrap();
        write_below(root.path(), Path::new("a/b/c.json"), b"1").unwrap();
        assert_eq!(mode(&root.path().join("a")), 0o700);
        assert_eq!(mode(&root.path().join("a/b")), 0o700);
        assert_eq!(mode(&root.path().join("a/b/c.json")), 0o600);
    }

    #[test]
    fn write_narrows_file_mode() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "a temporary file was left behind");
    }

    #[test]
    fn write_replaces_link_not_its_target() {
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
    fn write_below_refuses_link_on_the_way() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), root.path().join("a")).unwrap();
        let error = write_below(root.path(), Path::new("a/b/c"), b"1").unwrap_err();
        assert!(matches!(&error, FileError::SymbolicLink { path } if path.ends_with("a")), "{error}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn write_below_refuses_path_outside_root() {
        let root = tempfile::tempdir().unwrap();
        for relative in ["../x", "a/../../x", "/etc/x", ""] {
            let error = write_below(root.path(), Path::new(relative), b"1").unwrap_err();
            assert!(matches!(error, FileError::Outside { .. }), "{relative}: {error}");
        }
    }

    #[test]
    fn failed_write_leaves_no_temporary_file() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("taken")).unwrap();
        write(&root.path().join("taken"), b"1").unwrap_err();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
