//! Moving the files of a worktree from one commit to another without a process, where that is no more than writing some
//! files and removing others.
//!
//! The caller knows that the worktree is pristine: it holds what the first commit holds, and nothing else, so there is
//! nothing to be lost and nothing in the way. One that dies in the middle leaves a worktree that is to be put to a commit
//! by force; the index is written last.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use git2::{Index, Tree};

use super::library::{self, Difference, LINK};
use super::open_index::{OpenIndex, indexed};
use super::plain_paths::are_plain;
use super::repository::Repository;
use super::slot::git_directory;
use crate::model::CommitId;

/// More is left to git, which does it on all cores.
const AT_MOST: usize = 500;

/// Moves the files and the index of `worktree`, which is pristine at `from`, to `to`. `false`: git has to, because what it
/// would write is not what the blobs hold, or because it did not work out.
pub(super) fn move_files(repository: &Repository, worktree: &Path, from: &CommitId, to: &CommitId) -> bool {
    let Ok(directory) = git_directory(worktree) else { return false };
    let moved = repository.in_process(|git| {
        let differences = library::differences(git, from, to)?;
        let tree = |commit| git.find_commit(library::oid(commit)?)?.tree();
        let (old, new) = (tree(from)?, tree(to)?);
        let paths: Vec<&[u8]> = differences.iter().map(|it| it.path.as_slice()).collect();
        let links = differences.iter().any(|it| it.from == LINK || it.to == LINK);
        if links || paths.len() > AT_MOST || !are_plain(repository, git, worktree, &[&old, &new], paths.iter().copied())
        {
            return Ok(false);
        }
        let mut open = OpenIndex::of(worktree)?;
        let index = &mut open.entries;
        let mover = Mover { git, worktree, aside: directory.join("lanekeeper.file"), to: &new };
        differences
            .iter()
            .filter(|it| it.to == 0 || is_of_another_kind(it))
            .try_for_each(|it| mover.remove(it, index))?;
        differences.iter().filter(|it| it.to != 0).try_for_each(|it| mover.write(it, index))?;
        open.write(&new.id()).map(|()| true)
    });
    moved == Some(true)
}

/// Whether a file takes a link's place, or the other way round.
fn is_of_another_kind(difference: &Difference) -> bool {
    difference.from != 0 && (difference.from == SYMLINK) != (difference.to == SYMLINK)
}

const SYMLINK: u32 = 0o120_000;

struct Mover<'a> {
    git: &'a git2::Repository,
    worktree: &'a Path,
    /// Where files are written before they get their places: not in the worktree, where one that dies would leave them.
    aside: PathBuf,
    to: &'a Tree<'a>,
}

impl Mover<'_> {
    fn place(&self, path: &[u8]) -> PathBuf {
        self.worktree.join(OsStr::from_bytes(path))
    }

    fn remove(&self, difference: &Difference, index: &mut Index) -> Result<(), git2::Error> {
        let place = self.place(&difference.path);
        fs::remove_file(&place).map_err(|error| failed(&error))?;
        // As git does: no directory stays that holds nothing.
        for above in place.ancestors().skip(1).take_while(|above| *above != self.worktree) {
            if fs::remove_dir(above).is_err() {
                break;
            }
        }
        index.remove(Path::new(OsStr::from_bytes(&difference.path)), 0)
    }

    fn write(&self, difference: &Difference, index: &mut Index) -> Result<(), git2::Error> {
        let path = Path::new(OsStr::from_bytes(&difference.path));
        let entry = self.to.get_path(path)?;
        let blob = self.git.find_blob(entry.id())?;
        let place = self.place(&difference.path);
        let written = put(&self.aside, &place, blob.content(), difference.to).map_err(|error| failed(&error))?;
        index.add(&indexed(&difference.path, entry.id(), difference.to, &written))
    }
}

/// Puts a file or a link at `place`, in one step, by way of `aside`.
fn put(aside: &Path, place: &Path, bytes: &[u8], mode: u32) -> io::Result<fs::Metadata> {
    fs::create_dir_all(place.parent().unwrap_or(place))?;
    match fs::remove_file(aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    write_aside(aside, bytes, mode)?;
    // On another file system this fails, and git does it all.
    fs::rename(aside, place)?;
    fs::symlink_metadata(place)
}

fn write_aside(aside: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if mode == SYMLINK {
        return symlink(OsStr::from_bytes(bytes), aside);
    }
    let mode = if mode & 0o100 == 0 { 0o666 } else { 0o777 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(aside)?.write_all(bytes)
}

fn failed(error: &io::Error) -> git2::Error {
    git2::Error::from_str(&error.to_string())
}
