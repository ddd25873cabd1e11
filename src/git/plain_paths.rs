//! Whether git would take files into its store, and write them back, byte for byte.
//!
//! Then blobs, trees and indexes can be made of them without the git program. What git would convert, rename, leave out
//! or look at twice is for git: attributes wherever they may stand, settings that concern files, odd names, submodules.

use std::collections::BTreeSet;
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
    let known =
        repository.configuration().is_ok_and(|known| keeps_files(&known) && !has_attributes(repository, &known))
            && repository.may_write_in_process();
    let mut seen = BTreeSet::new();
    known
        && paths.into_iter().all(|path| {
            let plain = path.split(|&byte| byte == b'/').all(is_ordinary);
            let plain = plain && is_on_disk(worktree, path, |kind| kind.is_file() || kind.is_symlink());
            let plain = plain && trees.iter().all(|tree| !is_submodule(git, tree, path));
            plain && directories(path).all(|it| !seen.insert(it) || is_bare(git, worktree, trees, it))
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
fn directories(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
    std::iter::once(&path[..0]).chain(ends)
}

/// Whether a directory is nothing else on disk, no submodule in any of the trees, and has attributes in none of them.
fn is_bare(git: &git2::Repository, worktree: &Path, trees: &[&Tree<'_>], directory: &[u8]) -> bool {
    let inside = [directory, if directory.is_empty() { b"" } else { b"/" }, b".gitattributes"].concat();
    is_on_disk(worktree, directory, |kind| kind.is_dir())
        && is_on_disk(worktree, &inside, |_| false)
        && trees.iter().all(|tree| !is_submodule(git, tree, directory) && has_nothing_at(git, tree, &inside))
}

fn has_nothing_at(git: &git2::Repository, tree: &Tree<'_>, path: &[u8]) -> bool {
    matches!(kind_in(git, tree, path), Ok(None))
}

fn is_submodule(git: &git2::Repository, tree: &Tree<'_>, path: &[u8]) -> bool {
    !path.is_empty() && !matches!(kind_in(git, tree, path), Ok(None | Some(ObjectType::Blob | ObjectType::Tree)))
}

/// What a tree has at `path`; `None`: nothing.
fn kind_in(git: &git2::Repository, tree: &Tree<'_>, path: &[u8]) -> Result<Option<ObjectType>, git2::Error> {
    let (name, rest) = match path.iter().position(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
        None => (path, None),
    };
    let Some(entry) = tree.get_name_bytes(name) else { return Ok(None) };
    match (entry.kind(), rest) {
        (Some(ObjectType::Tree), Some(rest)) => kind_in(git, &git.find_tree(entry.id())?, rest),
        (Some(ObjectType::Blob), Some(_)) => Ok(None),
        (Some(kind), None) => Ok(Some(kind)),
        _ => Err(git2::Error::new(ErrorCode::Invalid, git2::ErrorClass::Tree, "it leads into a submodule")),
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
