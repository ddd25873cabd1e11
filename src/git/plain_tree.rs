//! The tree of a worktree without a process: the tree of an index, with the files that differ from it. What the last
//! snapshot made of them is gone on from: files that are as they were are not read again, nor directories written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use git2::{ErrorCode, ObjectType, Oid, Tree};

use super::commit::FEW;
use super::durable::loose;
use super::file_system::dates_directories;
use super::index_note::{Beside, KnownFile, MANY};
use super::plain_files::store_file;
use super::plain_paths::are_plain_but_for;
use super::repository::Repository;
use super::stamp::stamp;
use super::tree_update::{Changes, Rewritten, updated_noting};

/// The tree `noted` with what `worktree` holds at `paths`, of which `known` may be what was found the last time; answers
/// what is known by now, too. `None`: git may have a say in one of them, somebody changes it, more than [`FEW`] are new,
/// or more than [`MANY`] differ.
pub(super) fn plain_tree(
    repository: &Repository,
    worktree: &Path,
    noted: Oid,
    paths: &[&[u8]],
    known: Option<&Beside>,
) -> Option<(Oid, Option<Beside>)> {
    if paths.len() > MANY {
        return None;
    }
    let dated = dates_directories(worktree);
    let make = |git: &git2::Repository| {
        let noted = git.find_tree(noted)?;
        let known = known.filter(|known| dated && is_whole(repository, git, known));
        let is_known = |path: &[u8]| known.zip(text(path)).is_some_and(|(known, path)| known.knows(path));
        if !are_plain_but_for(repository, git, worktree, &[&noted], paths.iter().copied(), is_known) {
            return Ok(None);
        }
        let Some(mut found) = read(git, worktree, paths, known) else { return Ok(None) };
        let base = match known {
            Some(known) => {
                found.changes.extend(back_as_noted(&noted, known, paths)?);
                Oid::from_str(&known.tree)?
            }
            None => noted.id(),
        };
        let mut rewritten = Rewritten::new();
        let tree = updated_noting(git, base, &found.changes, &mut rewritten)?;
        let beside = found.files.filter(|_| dated).and_then(|files| Beside::after(known, tree, files, &rewritten));
        Ok(Some((tree, beside)))
    };
    repository.in_process(make).flatten()
}

/// Files by path; `None`: there is none.
type Files = BTreeMap<String, Option<KnownFile>>;

impl Beside {
    /// Whether it is about this file or directory.
    fn knows(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.directories.contains_key(path)
    }

    /// What is known once `rewritten` are new. `None`: not all of it is text.
    fn after(before: Option<&Self>, tree: Oid, files: Files, rewritten: &Rewritten) -> Option<Self> {
        let mut directories = before.map(|before| before.directories.clone()).unwrap_or_default();
        for (path, tree) in rewritten {
            let path = text(path)?.to_owned();
            match tree {
                Some(tree) => drop(directories.insert(path, tree.to_string())),
                None => drop(directories.remove(&path)),
            }
        }
        Some(Self { tree: tree.to_string(), files, directories })
    }
}

fn text(path: &[u8]) -> Option<&str> {
    str::from_utf8(path).ok()
}

/// Whether git still has everything that is known, so that a tree which leads to it leads to nothing that is missing.
fn is_whole(repository: &Repository, git: &git2::Repository, known: &Beside) -> bool {
    let Ok(objects) = git.odb() else { return false };
    // One that a power cut left empty is none.
    let is_loose =
        |name: &str| loose(repository, name).and_then(|file| fs::metadata(file).ok()).map(|found| found.len() > 0);
    let blobs = known.files.values().flatten().map(|file| &file.object);
    let mut names = blobs.chain(known.directories.values()).chain([&known.tree]);
    names.all(|name| is_loose(name).unwrap_or_else(|| Oid::from_str(name).is_ok_and(|name| objects.exists(name))))
}

/// What is at paths that differ.
struct Found {
    /// What is not as it was known.
    changes: Changes,
    /// What will be known; `None`: a path is no text.
    files: Option<Files>,
}

/// Puts what is at `paths` and not known into the store. `None`: [`FEW`] of them are not enough, or one is odd.
fn read(git: &git2::Repository, worktree: &Path, paths: &[&[u8]], known: Option<&Beside>) -> Option<Found> {
    let mut found = Found { changes: Changes::new(), files: Some(Files::new()) };
    let mut left = FEW;
    for path in paths {
        let before = known.zip(text(path)).and_then(|(known, path)| known.files.get(path));
        let unchanged = before.and_then(Option::as_ref).filter(|known| is_as_known(worktree, path, known));
        let now = match unchanged {
            Some(known) => Some(known.clone()),
            None => {
                let stored = before.and_then(Option::as_ref).and_then(|file| Oid::from_str(&file.object).ok());
                store_file(git, worktree, path, stored)?.map(|file| KnownFile {
                    stamp: file.stamp,
                    mode: file.mode,
                    object: file.object.to_string(),
                })
            }
        };
        let held = |file: &KnownFile| (file.mode, file.object.clone());
        if before.is_none_or(|before| before.as_ref().map(held) != now.as_ref().map(held)) {
            left = left.checked_sub(1)?;
            let entry = |file: &KnownFile| Some((file.mode, Oid::from_str(&file.object).ok()?));
            found.changes.insert(path.to_vec(), now.as_ref().and_then(entry));
        }
        match (text(path), &mut found.files) {
            (Some(path), Some(files)) => drop(files.insert(path.to_owned(), now)),
            _ => found.files = None,
        }
    }
    Some(found)
}

fn is_as_known(worktree: &Path, path: &[u8], known: &KnownFile) -> bool {
    known
        .stamp
        .zip(text(path))
        .is_some_and(|(then, path)| fs::symlink_metadata(worktree.join(path)).is_ok_and(|found| stamp(&found) == then))
}

/// What differed the last time and does not now: it is as in the tree of the index again.
fn back_as_noted(noted: &Tree<'_>, known: &Beside, paths: &[&[u8]]) -> Result<Changes, git2::Error> {
    let differing: BTreeSet<&[u8]> = paths.iter().copied().collect();
    let back = known.files.keys().filter(|path| !differing.contains(path.as_bytes()));
    back.map(|path| Ok((path.as_bytes().to_vec(), entry(noted, path)?))).collect()
}

/// Mode and blob of a file or link in a tree.
fn entry(tree: &Tree<'_>, path: &str) -> Result<Option<(u32, Oid)>, git2::Error> {
    match tree.get_path(Path::new(path)) {
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        found => {
            let found = found?;
            let is_file = found.kind() == Some(ObjectType::Blob);
            Ok(is_file.then(|| (found.filemode().cast_unsigned(), found.id())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::Git;
    use super::super::tree_update::updated;
    use super::*;

    #[test]
    fn a_file_is_believed_to_be_known_as_long_as_nothing_says_otherwise() {
        let directory = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(directory.path()).unwrap();
        let git = |arguments: &[&str]| {
            let git = Git::new(&place).configured("user.name=x").configured("user.email=x@localhost");
            git.args(arguments).line().unwrap()
        };
        let write = |text: &str| fs::write(place.join("file"), text).unwrap();
        git(&["init", "--quiet"]);
        git(&["commit", "--quiet", "--allow-empty", "-m", "x"]);
        write("now");
        let repository = Repository::discover(&place).unwrap();
        let empty = Oid::from_str(&git(&["write-tree"])).unwrap();
        let stored = |name: &str, text: &str| {
            fs::write(place.join(name), text).unwrap();
            git(&["hash-object", "-w", name])
        };
        let (then, gone) = (stored("then", "then"), stored("gone", "gone"));
        fs::remove_file(place.join(".git/objects").join(&gone[..2]).join(&gone[2..])).unwrap();
        let file = |object: &str| KnownFile {
            stamp: Some(stamp(&fs::symlink_metadata(place.join("file")).unwrap())),
            mode: 0o100_644,
            object: object.to_owned(),
        };
        let of_then = BTreeMap::from([(b"file".to_vec(), Some((0o100_644, Oid::from_str(&then).unwrap())))]);
        let of_then = repository.in_process(|git| updated(git, empty, &of_then)).unwrap().to_string();
        let held = |known: KnownFile, more: Option<&str>| {
            let directories = more.map(|object| ("gone".to_owned(), object.to_owned())).into_iter().collect();
            let files = BTreeMap::from([("file".to_owned(), Some(known))]);
            let known = Beside { tree: of_then.clone(), files, directories };
            let (tree, _) = plain_tree(&repository, &place, empty, &[b"file"], Some(&known)).unwrap();
            git(&["cat-file", "blob", &format!("{tree}:file")])
        };
        assert_eq!(held(file(&then), None), "then");
        assert_eq!(held(file(&gone), None), "now", "git has lost a blob");
        assert_eq!(held(file(&then), Some(&gone)), "now", "git has lost a directory");
        let mut old = file(&then);
        old.stamp.as_mut().unwrap()[3] -= 1;
        assert_eq!(held(old, None), "now", "it was touched since");
        assert_eq!(held(KnownFile { stamp: None, ..file(&then) }, None), "now", "it was too young");

        // What was written just now may change in the same moment.
        let (_, beside) = plain_tree(&repository, &place, empty, &[b"file"], None).unwrap();
        assert_eq!(beside.unwrap().files["file"].as_ref().unwrap().stamp, None);
        let paths: Vec<String> = (0..=FEW).map(|number| format!("{number}")).collect();
        let paths: Vec<&[u8]> = paths.iter().map(String::as_bytes).collect();
        assert!(plain_tree(&repository, &place, empty, &paths, None).is_none(), "too many to read");
    }
}
