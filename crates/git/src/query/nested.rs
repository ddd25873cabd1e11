//! Repositories within a worktree, such as submodules. An agent may have written their settings, and git runs programs that
//! settings name, also where it only looks whether something differs: nothing here reads them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lanewright_files::directory::create_directory_unsynced;
use lanewright_files::{atomic, if_there, regular_file};
use tempfile::TempDir;

use crate::command::{Git, Result, io_error, nul_separated};
use crate::fast::libgit2::IndexEntry;

/// The mode of a link to a commit of another repository.
pub(crate) const LINK: u32 = 0o160_000;

/// The entries of an index that lead to repositories which are there.
pub(crate) fn present_links<'e>(worktree: &Path, entries: &'e [IndexEntry]) -> Vec<&'e IndexEntry> {
    let is_there = |entry: &IndexEntry| place_of(worktree, &entry.path).join(".git").exists();
    entries.iter().filter(|entry| entry.mode == LINK && is_there(entry)).collect()
}

pub(crate) fn place_of(worktree: &Path, path: &[u8]) -> PathBuf {
    worktree.join(OsStr::from_bytes(path))
}

/// The commit that is checked out in `place`; `None`: it cannot be read.
pub(crate) fn head_in(place: &Path) -> Result<Option<String>> {
    Ok(in_place(place).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).line_if_any()?)
}

/// Whether files in `place` differ from its head, or may.
pub(crate) fn differs(place: &Path) -> Result<bool> {
    let Some(nested) = Nested::open(place)? else { return Ok(true) };
    Ok(nested.changes()?.is_none_or(|changes| !changes.is_empty()))
}

/// A command that reads the repository in `place`, and no other.
fn in_place(place: &Path) -> Git<'_> {
    Git::new(place).reading_only().without_hooks().variable("GIT_DIR", place.join(".git"))
}

/// One with the settings of the user alone.
pub(crate) struct Nested<'a> {
    place: &'a Path,
    objects: PathBuf,
    /// The git directory that stands for its own: its head and its index.
    directory: TempDir,
}

impl<'a> Nested<'a> {
    /// `None`: it cannot be read.
    pub(crate) fn open(place: &'a Path) -> Result<Option<Self>> {
        let paths = ["objects", "index", "info/exclude"].into_iter().flat_map(|path| ["--git-path", path]);
        let found = in_place(place).args(["rev-parse", "HEAD", "--show-object-format"]).args(paths).attempt()?;
        let said = String::from_utf8_lossy(&found.stdout).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        let (true, [head, format, objects, index, exclude]) = (found.status.success(), lines.as_slice()) else {
            return Ok(None);
        };
        let directory = tempfile::tempdir().map_err(io_error("make a directory for what is in", place))?;
        let inside = |name: &str| directory.path().join(name);
        for name in ["refs", "objects", "info"] {
            create_directory_unsynced(&inside(name))?;
        }
        atomic::replace(&inside("HEAD"), format!("{head}\n").as_bytes())?;
        let settings = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = ";
        atomic::replace(&inside("config"), format!("{settings}{format}\n").as_bytes())?;
        for (from, name) in [(index, "index"), (exclude, "info/exclude")] {
            let from = place.join(from);
            if_there(regular_file::copy(&from, &inside(name))).map_err(io_error("copy", &from))?;
        }
        Ok(Some(Self { place, objects: place.join(objects), directory }))
    }

    pub(crate) fn git(&self) -> Git<'a> {
        let git = Git::new(self.place).reading_only().without_hooks().comparing_carefully();
        let git = git.variable("GIT_DIR", self.directory.path()).variable("GIT_WORK_TREE", self.place);
        git.variable("GIT_OBJECT_DIRECTORY", &self.objects)
    }

    /// Another index than its own.
    pub(crate) fn empty_index(&self) -> PathBuf {
        self.directory.path().join("index.empty")
    }

    /// What `git status` lists; `None`: it cannot tell.
    pub(crate) fn changes(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let git = self.git().args(["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"]);
        let output = git.attempt()?;
        Ok(output.status.success().then(|| nul_separated(&output.stdout).map(<[u8]>::to_vec).collect()))
    }
}
