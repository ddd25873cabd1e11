//! A file that is written under a temporary name and gets its own in one step.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::atomic;
use super::directory::{enter_all, entries, sync_names};
use super::error::FileError;
use super::fault::{change, write_all};

/// The mode of a file that only its owner reads.
pub(crate) const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// The mode of a program that only its owner runs.
pub(crate) const PROGRAM: Mode = Mode::from_raw_mode(0o700);

/// The mode of a file for others, of which the umask takes its part.
pub(crate) const ORDINARY: Mode = Mode::from_raw_mode(0o666);

/// A file with a temporary name in the directory where it belongs. Dropped before it is put there, it is removed.
#[derive(Debug)]
pub struct Staged {
    directory: File,
    path: PathBuf,
    temporary: OsString,
    file: File,
}

impl Staged {
    pub(crate) fn create(path: &Path, mode: Mode) -> Result<Self, FileError> {
        Self::create_as(temporary_name(name_of(path)?), path, mode)
    }

    /// The same with a temporary name that its directory knows.
    pub(crate) fn create_as(temporary: OsString, path: &Path, mode: Mode) -> Result<Self, FileError> {
        let directory = enter_all(path.parent().unwrap_or(Path::new("/")), Path::new(""), true)?;
        Self::open(directory, temporary, path, mode)
    }

    pub(super) fn create_in(directory: &File, path: &Path) -> Result<Self, FileError> {
        let directory = directory.try_clone().map_err(FileError::io("write", path))?;
        Self::open(directory, temporary_name(name_of(path)?), path, PRIVATE)
    }

    fn open(directory: File, temporary: OsString, path: &Path, mode: Mode) -> Result<Self, FileError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = change(path, || openat(&directory, &temporary, flags, mode));
        let file = opened.map_err(|errno| FileError::io("write", path)(errno.into()))?.into();
        Ok(Self { directory, path: path.to_owned(), temporary, file })
    }

    pub(crate) fn write(&self, contents: &[u8]) -> Result<(), FileError> {
        write_all(&self.path, &self.file, contents).map_err(FileError::io("write", &self.path))
    }

    pub(crate) fn fill(&self, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<(), FileError> {
        change(&self.path, || fill(&self.file)).map_err(FileError::io("write", &self.path))
    }

    pub(crate) fn set_permissions(&self, permissions: std::fs::Permissions) -> Result<(), FileError> {
        self.file.set_permissions(permissions).map_err(FileError::io("write", &self.path))
    }

    pub(crate) fn sync(&self) -> Result<(), FileError> {
        change(&self.path, || self.file.sync_all()).map_err(FileError::io("write", &self.path))
    }

    /// Renames it to its path and replaces an existing file; a link is replaced, not followed.
    pub fn put(&mut self) -> Result<(), FileError> {
        let refused = change(&self.path, || Ok::<(), Errno>(()));
        refused.map_err(|errno| FileError::io("write", &self.path)(errno.into()))?;
        self.rename()
    }

    /// The same to undo a change. It takes no space, as what removes does not, so no write fault refuses it.
    pub fn put_back(&mut self) -> Result<(), FileError> {
        self.rename()
    }

    /// Puts it into its place where nothing is there. `false`: something is.
    pub(crate) fn put_new(&mut self) -> Result<bool, FileError> {
        let name = name_of(&self.path)?.to_owned();
        match change(&self.path, || rename_new(&self.directory, &self.temporary, &name)) {
            Ok(()) => self.temporary.clear(),
            Err(Errno::EXIST) => return Ok(false),
            Err(errno) => return Err(FileError::io("create", &self.path)(errno.into())),
        }
        Ok(true)
    }

    pub(crate) fn sync_name(&self) -> Result<(), FileError> {
        sync_names(&self.path, &self.directory).map_err(FileError::io("write", &self.path))
    }

    fn rename(&mut self) -> Result<(), FileError> {
        let renamed = renameat(&self.directory, &self.temporary, &self.directory, name_of(&self.path)?);
        renamed.map_err(|errno| FileError::io("write", &self.path)(errno.into()))?;
        self.temporary.clear();
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.temporary.is_empty() {
            let _ = unlinkat(&self.directory, &self.temporary, AtFlags::empty());
        }
    }
}

fn name_of(path: &Path) -> Result<&OsStr, FileError> {
    path.file_name().ok_or_else(|| FileError::Outside { path: path.to_owned() })
}

/// A name beside `name` that nothing has and that no reader of the directory looks at.
fn temporary_name(name: &OsStr) -> OsString {
    let mut temporary = OsStr::new(".").to_owned();
    temporary.push(name);
    temporary.push(format!(".{}.tmp", uuid::Uuid::now_v7().simple()));
    temporary
}

/// A path beside `path` that nothing has; what a dead process leaves there, [`remove_unfinished`] removes.
pub fn temporary_beside(path: &Path) -> PathBuf {
    path.with_file_name(temporary_name(path.file_name().unwrap_or_default()))
}

/// Removes the temporary files of dead processes from `directory`, in which no other process writes now.
pub fn remove_unfinished(directory: &Path) -> Result<(), FileError> {
    let id = |name: &str| {
        // The name in earlier versions, whose runs are resumed.
        let earlier = name.strip_prefix(".unfinished-");
        let id = earlier.or_else(|| Some(name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?.1));
        id.and_then(|id| uuid::Uuid::try_parse(id).ok())
    };
    let is_temporary = |path: &&PathBuf| path.file_name().and_then(|name| id(name.to_str()?)).is_some();
    entries(directory)?.iter().filter(is_temporary).try_for_each(|path| atomic::remove_durably(path))
}

/// Some file systems do not know of a rename that replaces nothing.
fn rename_new(directory: &File, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            linkat(directory, from, directory, to, AtFlags::empty())?;
            unlinkat(directory, from, AtFlags::empty())
        }
        renamed => renamed,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::remove_unfinished;

    #[test]
    fn remove_unfinished_spares_other_files() {
        let directory = tempfile::tempdir().unwrap();
        let id = uuid::Uuid::now_v7();
        let temporary = [format!(".01.{}.tmp", id.simple()), format!(".unfinished-{id}")];
        let others = ["01".to_owned(), ".unfinished-work".to_owned(), ".notes.tmp".to_owned(), format!("{id}.tmp")];
        for name in temporary.iter().chain(&others) {
            fs::write(directory.path().join(name), "").unwrap();
        }
        remove_unfinished(directory.path()).unwrap();
        for name in &temporary {
            assert!(!directory.path().join(name).exists(), "{name}");
        }
        for name in &others {
            assert!(directory.path().join(name).exists(), "{name}");
        }
    }
}
