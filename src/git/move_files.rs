//! Moving the files of a worktree from one commit to another without a process, where that is no more than writing some
//! files and removing others.
//!
//! A slot is pristine, so there is nothing to be lost and nothing in the way; one that dies in the middle leaves a worktree
//! that is to be put to a commit by force. In a person's checkout every file is looked at just before it is touched. The
//! index is written last.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use git2::Tree;

use super::library::{self, Difference, LINK};
use super::open_index::{OpenIndex, indexed};
use super::plain_paths::are_plain;
use super::repository::Repository;
use crate::fs::{atomic, handle};
use crate::model::CommitId;

/// More is left to git, which does it on all cores.
const AT_MOST: usize = 500;

/// Moves the files and the index of `worktree`, which is pristine at `from`, to `to`. `false`: git has to, because what it
/// would write is not what the blobs hold, or because it did not work out.
pub(super) fn move_files(repository: &Repository, worktree: &Path, from: &CommitId, to: &CommitId) -> bool {
    let index = OpenIndex::of(worktree);
    index.is_ok_and(|index| move_by(repository, worktree, index, [from, to], Whose::Ours) == Moved::All)
}

/// The same in a person's checkout, whose files were looked at `since`, by an index of ours that holds what `from` holds.
pub(super) fn move_carefully(
    repository: &Repository,
    worktree: &Path,
    index: &Path,
    [from, to]: [&CommitId; 2],
    since: SystemTime,
) -> Moved {
    let index = OpenIndex::at(index.to_owned());
    let whose = Whose::APersons { since };
    index.map_or(Moved::Nothing, |index| move_by(repository, worktree, index, [from, to], whose))
}

/// What came of moving files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// All of them were moved.
    All,
    /// None was touched.
    Nothing,
    /// It broke off: what was moved was moved back, but for what somebody has changed since.
    Back,
}

/// In whose worktree files are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Nobody works there.
    Ours,
    /// Somebody may change files meanwhile.
    APersons {
        /// When they were looked at last.
        since: SystemTime,
    },
}

impl Whose {
    fn since(self) -> Option<SystemTime> {
        match self {
            Self::Ours => None,
            Self::APersons { since } => Some(since),
        }
    }
}

fn move_by(
    repository: &Repository,
    worktree: &Path,
    mut index: OpenIndex,
    [from, to]: [&CommitId; 2],
    whose: Whose,
) -> Moved {
    let begun = Cell::new(false);
    let moved = repository.in_process(|git| {
        let differences = library::differences(git, from, to)?;
        let tree = |commit| git.find_commit(library::oid(commit)?)?.tree();
        let (old, new) = (tree(from)?, tree(to)?);
        let paths: Vec<&[u8]> = differences.iter().map(|it| it.path.as_slice()).collect();
        let links = differences.iter().any(|it| it.from == LINK || it.to == LINK);
        let plain = || are_plain(repository, git, worktree, &[&old, &new], paths.iter().copied());
        let lost = whose != Whose::Ours && index.has_more();
        if links || lost || paths.len() > AT_MOST || !index.is(git, &old)? || !plain() {
            return Ok(false);
        }
        let mover = Mover { git, worktree, aside: index.beside("lanekeeper.file"), whose };
        differences.iter().try_for_each(|it| mover.refuse_touched(&it.path, &index))?;
        begun.set(true);
        mover.move_all(&differences, [&old, &new], &mut index)?;
        index.write(&new.id(), whose.since()).map(|()| true)
    });
    match moved {
        Some(true) => Moved::All,
        _ if begun.get() => Moved::Back,
        _ => Moved::Nothing,
    }
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
    whose: Whose,
}

impl Mover<'_> {
    /// What is to go makes room first. Where it breaks off, a person's files are moved back.
    fn move_all(
        &self,
        differences: &[Difference],
        [old, new]: [&Tree<'_>; 2],
        index: &mut OpenIndex,
    ) -> Result<(), git2::Error> {
        let goes = |it: &&Difference| it.to == 0 || is_of_another_kind(it);
        let mut removed = Vec::new();
        let mut written = Vec::new();
        let mut forward = || {
            for it in differences.iter().filter(goes) {
                self.remove(it, index)?;
                removed.push(it);
            }
            for it in differences.iter().filter(|it| it.to != 0) {
                self.write(it, new, index)?;
                written.push(it);
            }
            Ok(())
        };
        let moved = forward();
        if moved.is_err() && self.whose != Whose::Ours {
            let back = |it: &&Difference| Difference { path: it.path.clone(), from: it.to, to: it.from };
            // What cannot be moved back was touched, and will be named.
            for it in written.iter().rev().map(back) {
                let _ = if it.to == 0 { self.remove(&it, index) } else { self.write(&it, old, index) };
            }
            let gone = removed.iter().filter(|it| !written.iter().any(|done| done.path == it.path));
            for it in gone.map(back) {
                let _ = self.write(&it, old, index);
            }
        }
        moved
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        self.worktree.join(OsStr::from_bytes(path))
    }

    /// Makes sure that nobody has touched what is to be replaced, or put something where there was nothing.
    fn refuse_touched(&self, path: &[u8], index: &OpenIndex) -> Result<(), git2::Error> {
        if self.whose == Whose::Ours || index.has_as_is(path, &self.place(path)) {
            return Ok(());
        }
        Err(git2::Error::from_str(&format!("{} was touched", String::from_utf8_lossy(path))))
    }

    fn remove(&self, difference: &Difference, index: &mut OpenIndex) -> Result<(), git2::Error> {
        self.refuse_touched(&difference.path, index)?;
        let place = self.place(&difference.path);
        fs::remove_file(&place).map_err(|error| failed(&error))?;
        // As git does: no directory stays that holds nothing.
        for above in place.ancestors().skip(1).take_while(|above| *above != self.worktree) {
            if fs::remove_dir(above).is_err() {
                break;
            }
        }
        index.entries.remove(Path::new(OsStr::from_bytes(&difference.path)), 0)
    }

    /// Puts what `tree` has into its place in one step.
    fn write(&self, difference: &Difference, tree: &Tree<'_>, index: &mut OpenIndex) -> Result<(), git2::Error> {
        let path = Path::new(OsStr::from_bytes(&difference.path));
        let entry = tree.get_path(path)?;
        let blob = self.git.find_blob(entry.id())?;
        let place = self.place(&difference.path);
        write_aside(&self.aside, blob.content(), difference.to).map_err(|error| failed(&error))?;
        self.refuse_touched(&difference.path, index)?;
        let empty = index.entries.get_path(path, 0).is_none();
        let written = put(&self.aside, &place, empty).map_err(|error| failed(&error))?;
        index.entries.add(&indexed(&difference.path, entry.id(), difference.to, &written))
    }
}

/// Moves the file or the link `aside` to `place`, where nothing is if that is `empty`. On another file system this fails,
/// and git does it all.
fn put(aside: &Path, place: &Path, empty: bool) -> io::Result<fs::Metadata> {
    fs::create_dir_all(place.parent().unwrap_or(place))?;
    match empty {
        true => atomic::rename_new(aside, place)?,
        false => atomic::rename(aside, place)?,
    }
    fs::symlink_metadata(place)
}

fn write_aside(aside: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    match fs::remove_file(aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if mode == SYMLINK {
        return symlink(OsStr::from_bytes(bytes), aside);
    }
    let mode = if mode & 0o100 == 0 { 0o666 } else { 0o777 };
    handle::write_all(&handle::create_new(aside, mode)?, bytes)
}

fn failed(error: &io::Error) -> git2::Error {
    git2::Error::from_str(&error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::super::program::Git;
    use super::super::repository::commit_id;
    use super::*;

    /// A repository at its first of two commits; the second changes `changed`, deletes `gone` and makes `new/file`.
    fn world() -> (tempfile::TempDir, PathBuf, [CommitId; 2]) {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let git = |arguments: &[&str]| Git::new(&place).args(arguments).run().unwrap();
        git(&["init", "--quiet", "--initial-branch=main"]);
        git(&["config", "user.name", "someone"]);
        git(&["config", "user.email", "someone@example.invalid"]);
        let commit = || {
            git(&["add", "--all"]);
            git(&["commit", "--quiet", "--message=more"]);
            commit_id(&git(&["rev-parse", "HEAD"])).unwrap()
        };
        for name in ["changed", "gone", "kept"] {
            fs::write(place.join(name), "old\n").unwrap();
        }
        let first = commit();
        fs::write(place.join("changed"), "new\n").unwrap();
        fs::remove_file(place.join("gone")).unwrap();
        fs::create_dir(place.join("new")).unwrap();
        fs::write(place.join("new/file"), "new\n").unwrap();
        let second = commit();
        git(&["reset", "--quiet", "--hard", first.as_str()]);
        (directory, place, [first, second])
    }

    fn moved(place: &Path, [from, to]: &[CommitId; 2]) -> Moved {
        let repository = Repository::locate(place).unwrap();
        super::super::own_index::copy_index(place, &place.join(".git/ours")).unwrap();
        move_carefully(&repository, place, &place.join(".git/ours"), [from, to], SystemTime::now())
    }

    #[test]
    fn a_persons_files_move_where_they_are_as_the_index_has_them() {
        let (_directory, place, commits) = world();
        assert_eq!(moved(&place, &commits), Moved::All);
        assert_eq!(fs::read_to_string(place.join("changed")).unwrap(), "new\n");
        assert!(place.join("new/file").exists() && !place.join("gone").exists());
        let git = Git::new(&place).variable("GIT_INDEX_FILE", place.join(".git/ours"));
        let differing = git.args(["diff-index", "--cached", commits[1].as_str()]).run().unwrap();
        assert!(differing.is_empty());
    }

    #[test]
    fn what_a_person_changed_is_not_overwritten_and_nothing_else_is_touched() {
        for (name, text) in [("changed", "own\n"), ("changed", "longer\n"), ("gone", "own\n"), ("new/file", "own\n")] {
            let (_directory, place, commits) = world();
            fs::create_dir_all(place.join("new")).unwrap();
            fs::write(place.join(name), text).unwrap();
            assert_eq!(moved(&place, &commits), Moved::Nothing, "{name}");
            assert_eq!(fs::read_to_string(place.join(name)).unwrap(), text, "{name}");
            let others = ["changed", "gone"].into_iter().filter(|other| *other != name);
            others.for_each(|other| assert_eq!(fs::read_to_string(place.join(other)).unwrap(), "old\n", "{name}"));
            assert_eq!(place.join("new/file").exists(), name == "new/file");
        }
    }

    #[test]
    fn what_was_moved_before_a_person_came_in_between_is_moved_back() {
        let (_directory, place, [first, second]) = world();
        let repository = Repository::locate(&place).unwrap();
        let mut index = OpenIndex::of(&place).unwrap();
        repository.in_process(|git| {
            let tree = |commit| git.find_commit(library::oid(commit)?)?.tree();
            let (old, new) = (tree(&first)?, tree(&second)?);
            let differences = library::differences(git, &first, &second)?;
            let whose = Whose::APersons { since: SystemTime::now() };
            let mover = Mover { git, worktree: &place, aside: place.join(".git/aside"), whose };
            // The last of the three that are moved.
            fs::create_dir(place.join("new")).unwrap();
            fs::write(place.join("new/file"), "own\n").unwrap();
            assert!(mover.move_all(&differences, [&old, &new], &mut index).is_err());
            Ok(())
        });
        let holds = ["changed", "gone", "new/file"].map(|name| fs::read_to_string(place.join(name)).unwrap());
        assert_eq!(holds, ["old\n", "old\n", "own\n"]);
    }

    #[test]
    fn a_file_as_young_as_the_index_is_read() {
        let (_directory, place, commits) = world();
        // The index takes the person's text for its own: only reading tells.
        let git = |arguments: &[&str]| Git::new(&place).args(arguments).run().unwrap();
        let blob = String::from_utf8(git(&["rev-parse", "HEAD:changed"])).unwrap();
        fs::write(place.join("changed"), "own\n").unwrap();
        git(&["add", "changed"]);
        let mut index = OpenIndex::of(&place).unwrap();
        let mut entry = index.entries.get_path(Path::new("changed"), 0).unwrap();
        entry.id = git2::Oid::from_str(blob.trim_end()).unwrap();
        index.entries.add(&entry).unwrap();
        index.entries.write().unwrap();
        let young = fs::symlink_metadata(place.join("changed")).unwrap().modified().unwrap();
        File::options().write(true).open(place.join(".git/index")).unwrap().set_modified(young).unwrap();
        assert_ne!(moved(&place, &commits), Moved::All);
        assert_eq!(fs::read_to_string(place.join("changed")).unwrap(), "own\n");
    }
}
