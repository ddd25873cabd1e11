//! Writing files into a repository: all of them or none, none outside of it, each with the mode that it has.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use lanewright_files::regular_file::Links;
use lanewright_files::{FileError, Staged, atomic, directory, handle, regular_file};

use crate::cli::{ExitStatus, Hint, Result};

#[derive(Debug)]
pub(crate) struct Change {
    /// Its path from the repository's root, as it is shown.
    pub(crate) name: &'static str,
    /// What it holds; `None`: it is not there.
    pub(crate) old: Option<String>,
    /// What it is to hold.
    pub(crate) new: String,
    /// Why it stays as it is, although something was to be written; what the user can do.
    pub(crate) left: Option<String>,
    /// Where it is once links are followed.
    place: PathBuf,
}

impl Change {
    /// What becomes of the file `name` below `root`; `make` turns its old text into the new one, or says why not.
    pub(crate) fn of(
        root: &Path,
        name: &'static str,
        make: impl FnOnce(Option<&str>) -> Result<String, String>,
    ) -> Result<Self> {
        let place = place(root, name)?;
        let old = read(&place).map_err(|error| refused(name, &error.to_string()))?;
        let (new, left) = match make(old.as_deref()) {
            Ok(new) => (new, None),
            Err(fault) => (old.clone().unwrap_or_default(), Some(fault)),
        };
        Ok(Self { name, old, new, left, place })
    }

    pub(crate) fn is_needed(&self) -> bool {
        self.left.is_none() && self.old.as_ref() != Some(&self.new)
    }
}

fn refused(name: &str, fault: &str) -> anyhow::Error {
    ExitStatus::Usage
        .error(format!("{name}: {fault}"))
        .hint("nothing was written; fix the file, then repeat the command")
}

/// Where the file `name` is once links are followed; they may not lead out of the repository, nor into git's own files.
fn place(root: &Path, name: &str) -> Result<PathBuf> {
    let mut place = root.to_owned();
    for component in Path::new(name).components() {
        place.push(component);
        if place.is_symlink() {
            place = fs::canonicalize(&place).map_err(|_| refused(name, "it leads through a link to nowhere"))?;
        }
    }
    let inside = place.strip_prefix(root).is_ok_and(|inside| !inside.starts_with(Path::new(".git")));
    if inside {
        Ok(place)
    } else {
        Err(refused(name, &format!("a link leads to {}, out of the repository", place.display())))
    }
}

fn read(place: &Path) -> io::Result<Option<String>> {
    match regular_file::read_text(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

pub(crate) fn write_all(root: &Path, changes: &[&Change]) -> Result<()> {
    let mut made = Vec::new();
    let written = stage_all(root, changes, &mut made).and_then(|staged| put_all(staged, changes));
    if written.is_err() {
        // Only empty directories can be removed: another program may have put something there.
        made.iter().rev().for_each(|directory| drop(fs::remove_dir(directory)));
    }
    written
}

/// A change on disk beside its place, with what undoes it: once files change, a full disk must not keep them from being
/// restored.
struct Prepared {
    new: Staged,
    old: Option<Staged>,
}

fn stage_all(root: &Path, changes: &[&Change], made: &mut Vec<PathBuf>) -> Result<Vec<Prepared>> {
    let stage = |change: &&Change| stage(root, change, made).map_err(|error| failed(&error));
    changes.iter().map(stage).collect()
}

fn stage(root: &Path, change: &Change, made: &mut Vec<PathBuf>) -> Result<Prepared, FileError> {
    make_directories(root, change.place.parent().unwrap_or(root), made)?;
    if change.old.is_some() {
        // A file that its owner may not write stays one; to replace it would go round that.
        handle::append_existing(&change.place, Links::Follow).map_err(FileError::io("write", &change.place))?;
    }
    let stage = |text: &String| atomic::stage_over(&change.place, text.as_bytes());
    Ok(Prepared { new: stage(&change.new)?, old: change.old.as_ref().map(stage).transpose()? })
}

fn make_directories(root: &Path, directory: &Path, made: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let mut path = root.to_owned();
    for component in directory.strip_prefix(root).unwrap_or(Path::new("")).components() {
        let Component::Normal(name) = component else { continue };
        path.push(name);
        if directory::create_ordinary(&path).map_err(FileError::io("make the directory", &path))? {
            made.push(path.clone());
        }
    }
    Ok(())
}

/// Puts every file into its place; where one cannot be, those before it are restored.
fn put_all(mut prepared: Vec<Prepared>, changes: &[&Change]) -> Result<()> {
    for index in 0..prepared.len() {
        if let Err(error) = prepared[index].new.put() {
            prepared[..index].iter_mut().zip(changes).for_each(|(done, change)| undo(done, change));
            return Err(failed(&error));
        }
    }
    Ok(())
}

fn undo(done: &mut Prepared, change: &Change) {
    let _ = match &mut done.old {
        Some(old) => old.put_back(),
        None => atomic::remove(&change.place),
    };
}

fn failed(error: &FileError) -> anyhow::Error {
    ExitStatus::Blocked.error(error.to_string()).hint("nothing was written; make it writable, then repeat the command")
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn change(root: &Path, name: &'static str) -> Change {
        Change::of(root, name, |_| Ok("new\n".to_owned())).unwrap()
    }

    #[test]
    fn failed_write_leaves_all_files_unwritten() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::write(root.join("there"), "old\n").unwrap();
        let (first, second) = (change(&root, "there"), change(&root, "new/deep"));
        let third = change(&root, "taken");
        fs::create_dir(root.join("taken")).unwrap();
        write_all(&root, &[&first, &second, &third]).unwrap_err();
        assert_eq!(fs::read_to_string(root.join("there")).unwrap(), "old\n");
        let mut names: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["taken", "there"]);
    }

    #[test]
    fn replaced_files_are_restored_after_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::write(root.join("there"), "old\n").unwrap();
        let all = [change(&root, "there"), change(&root, "new"), change(&root, "taken")];
        let all: Vec<&Change> = all.iter().collect();
        let staged = stage_all(&root, &all, &mut Vec::new()).unwrap();
        fs::create_dir(root.join("taken")).unwrap();
        put_all(staged, &all).unwrap_err();
        assert_eq!(fs::read_to_string(root.join("there")).unwrap(), "old\n");
        assert!(!root.join("new").exists());
    }

    #[test]
    fn modes_are_kept_and_links_stay_in_repository() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "old").unwrap();
        fs::set_permissions(root.join("real/file"), Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        write_all(&root, &[&change(&root, "link/file")]).unwrap();
        assert_eq!(fs::read_to_string(root.join("real/file")).unwrap(), "new\n");
        assert_eq!(fs::metadata(root.join("real/file")).unwrap().permissions().mode() & 0o777, 0o640);
        for target in ["/tmp", "..", ".git", "nowhere"] {
            fs::create_dir_all(root.join(".git")).unwrap();
            std::os::unix::fs::symlink(target, root.join("out")).unwrap();
            Change::of(&root, "out/file", |_| Ok(String::new())).unwrap_err();
            fs::remove_file(root.join("out")).unwrap();
        }
    }
}
