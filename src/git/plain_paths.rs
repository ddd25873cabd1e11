//! Whether git would take files into its store, and write them back, byte for byte.
//!
//! Then blobs, trees and indexes can be made of them without the git program. What git would convert, rename, leave out
//! or look at twice is for git: attributes wherever they may stand, settings that concern files, odd names, submodules.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Tree};

use super::configuration::Configuration;
use super::repository::Repository;

/// Whether nothing that git knows of has a say in what `paths` of `worktree` hold: neither a setting nor an attribute, be
/// it on disk or in one of `trees`. Each is a file, a link or nothing on disk, and no submodule in the trees.
///
/// `false` is no answer: git has to do it, because it may be different.
pub(super) fn are_plain<'a>(
    repository: &Repository,
    git: &git2::Repository,
    worktree: &Path,
    trees: &[&Tree<'_>],
    paths: impl IntoIterator<Item = &'a [u8]>,
) -> bool {
    let settings = repository.configuration();
    if !settings.is_ok_and(|settings| keeps_files(&settings) && !has_attributes(repository, &settings))
        || !repository.may_write_in_process()
    {
        return false;
    }
    let trees: Vec<Directories<'_>> = trees.iter().map(|tree| Directories::of(git, tree)).collect();
    let mut seen = BTreeSet::new();
    paths.into_iter().all(|path| {
        path.split(|&byte| byte == b'/').all(is_ordinary)
            && is_on_disk(worktree, path, |kind| kind.is_file() || kind.is_symlink())
            && trees.iter().all(|tree| tree.has_no_link_at(path))
            && directories(path).all(|directory| {
                !seen.insert(directory)
                    || is_on_disk(worktree, directory, |kind| kind.is_dir())
                        && is_on_disk(worktree, &attributes_in(directory), |_| false)
                        && trees.iter().all(|tree| tree.is_bare(directory))
            })
    })
}

/// Whether no setting has git change files, names or modes, leave some out, or believe that they are as they were.
fn keeps_files(settings: &Configuration) -> bool {
    let lines = settings.get("core.autocrlf").is_none() || settings.flag("core.autocrlf") == Some(false);
    settings.keeps_names_and_modes() && settings.flag("core.ignorestat") != Some(true) && lines
}

/// Whether attributes may stand anywhere but beside the files: those of the repository, the user or the system.
fn has_attributes(repository: &Repository, settings: &Configuration) -> bool {
    let told = ["core.attributesfile", "attr.tree"].iter().any(|name| settings.get(name).is_some());
    let own = repository.common_dir().join("info/attributes");
    told || is_something(&own) || settings.attribute_files().iter().any(|file| is_something(file))
}

/// Whether git takes a name for no other one, on any system, and for none of its own.
pub(super) fn is_ordinary(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let own = match lower.strip_prefix(b".git") {
        // Also with what some systems drop from the end of a name.
        Some(rest) => !rest.first().is_some_and(u8::is_ascii_alphanumeric) || rest.starts_with(b"modules"),
        None => lower.starts_with(b"git~"),
    };
    let path = name.iter().any(|byte| matches!(byte, b'/' | b'\\' | b':' | 0));
    !own && !path && !matches!(name, b"" | b"." | b"..")
}

/// The directories on the way to `path`, the worktree's root included, each without a slash at its end.
pub(super) fn directories(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
    std::iter::once(&path[..0]).chain(ends)
}

/// Where attributes of a directory are.
fn attributes_in(directory: &[u8]) -> Vec<u8> {
    [directory, if directory.is_empty() { b"" } else { b"/" }, b".gitattributes"].concat()
}

/// A tree of which no directory is read twice.
struct Directories<'a> {
    git: &'a git2::Repository,
    /// By path; `None`: there is none.
    read: RefCell<BTreeMap<Vec<u8>, Option<Tree<'a>>>>,
}

impl<'a> Directories<'a> {
    fn of(git: &'a git2::Repository, root: &Tree<'a>) -> Self {
        Self { git, read: RefCell::new(BTreeMap::from([(Vec::new(), Some(root.clone()))])) }
    }

    /// Whether nothing is at `path`, or a file.
    fn has_no_link_at(&self, path: &[u8]) -> bool {
        path.is_empty() || matches!(self.kind_at(path), Ok(None | Some(ObjectType::Blob | ObjectType::Tree)))
    }

    /// Whether the directory at `path` has no attributes, and is none of another repository.
    fn is_bare(&self, path: &[u8]) -> bool {
        self.has_no_link_at(path) && matches!(self.kind_at(&attributes_in(path)), Ok(None))
    }

    /// What is at `path`; `None`: nothing.
    fn kind_at(&self, path: &[u8]) -> Result<Option<ObjectType>, git2::Error> {
        let (above, name) = split(path);
        let directory = self.directory(above)?;
        Ok(directory.and_then(|directory| directory.get_name_bytes(name)?.kind()))
    }

    fn directory(&self, path: &[u8]) -> Result<Option<Tree<'a>>, git2::Error> {
        if let Some(known) = self.read.borrow().get(path) {
            return Ok(known.clone());
        }
        let (above, name) = split(path);
        let above = self.directory(above)?;
        let entry = above.as_ref().and_then(|above| above.get_name_bytes(name));
        let found = match entry.as_ref().map(|entry| (entry.kind(), entry.id())) {
            None | Some((Some(ObjectType::Blob), _)) => None,
            Some((Some(ObjectType::Tree), id)) => Some(self.git.find_tree(id)?),
            Some(_) => {
                let why = "it leads into a submodule";
                return Err(git2::Error::new(ErrorCode::Invalid, git2::ErrorClass::Tree, why));
            }
        };
        self.read.borrow_mut().insert(path.to_vec(), found.clone());
        Ok(found)
    }
}

/// A path's directory and its name in there.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// Whether nothing is at `path` on disk, or something of the right kind.
fn is_on_disk(worktree: &Path, path: &[u8], right: impl FnOnce(&FileType) -> bool) -> bool {
    match fs::symlink_metadata(place(worktree, path)) {
        Ok(found) => right(&found.file_type()),
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

fn place(worktree: &Path, path: &[u8]) -> PathBuf {
    worktree.join(OsStr::from_bytes(path))
}

fn is_something(file: &Path) -> bool {
    !matches!(fs::symlink_metadata(file), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::is_ordinary;

    #[test]
    fn no_name_leads_elsewhere_or_to_gits_own() {
        for name in ["a", ".github", ".gitignore", "git", "a b", "\u{fc}"] {
            assert!(is_ordinary(name.as_bytes()), "{name}");
        }
        for name in
            ["", ".", "..", "a/../b", "../x", ".git", ".GIT", ".git ", ".git.", "git~1", ".gitmodules", "a\\b", "a:b"]
        {
            assert!(!is_ordinary(name.as_bytes()), "{name}");
        }
    }
}
