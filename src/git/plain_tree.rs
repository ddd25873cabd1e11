//! The tree of a worktree without a process: a tree that is known, with the files that differ from it. Those that the last
//! snapshot read already and that are as they were are not read again.

use std::fs;
use std::path::Path;

use git2::Oid;

use super::commit::FEW;
use super::file_system::dates_directories;
use super::index_note::{KnownFile, KnownFiles, MANY};
use super::plain_files::store_file;
use super::plain_paths::are_plain;
use super::repository::Repository;
use super::stamp::stamp;
use super::tree_update::{Changes, updated};

/// `tree` with what `worktree` holds at `paths`, and what is known of them by now. `None`: git may have a say in one of
/// them, somebody changes it, more than [`FEW`] are to be read, or more than [`MANY`] differ.
pub(super) fn plain_tree(
    repository: &Repository,
    worktree: &Path,
    tree: Oid,
    paths: &[&[u8]],
    known: &KnownFiles,
) -> Option<(Oid, KnownFiles)> {
    if paths.len() > MANY {
        return None;
    }
    let make = |git: &git2::Repository| {
        if !are_plain(repository, git, worktree, &[&git.find_tree(tree)?], paths.iter().copied()) {
            return Ok(None);
        }
        let known = dates_directories(worktree).then_some(known);
        let mut reader = Reader { git, worktree, known, left: FEW, files: KnownFiles::new() };
        let changes: Option<Changes> = paths.iter().map(|path| Some((path.to_vec(), reader.file_at(path)?))).collect();
        changes.map(|changes| Ok((updated(git, tree, &changes)?, reader.files))).transpose()
    };
    repository.in_process(make).flatten()
}

struct Reader<'a> {
    git: &'a git2::Repository,
    worktree: &'a Path,
    /// `None`: times tell nothing here.
    known: Option<&'a KnownFiles>,
    /// How many more may be read.
    left: usize,
    /// What will be known.
    files: KnownFiles,
}

impl Reader<'_> {
    /// Mode and blob of what is at `path`; `Some(None)`: nothing is there.
    fn file_at(&mut self, path: &[u8]) -> Option<Option<(u32, Oid)>> {
        let name = str::from_utf8(path).ok();
        if let Some((name, file)) = name.and_then(|name| Some((name, self.unchanged(name)?))) {
            let object = Oid::from_str(&file.object).ok()?;
            let mode = file.mode;
            self.files.insert(name.to_owned(), file);
            return Some(Some((mode, object)));
        }
        self.left = self.left.checked_sub(1)?;
        let Some(file) = store_file(self.git, self.worktree, path)? else { return Some(None) };
        if let Some(name) = name.filter(|_| file.settled && self.known.is_some()) {
            let known = KnownFile { stamp: stamp(&file.found), mode: file.mode, object: file.object.to_string() };
            self.files.insert(name.to_owned(), known);
        }
        Some(Some((file.mode, file.object)))
    }

    /// The file at `name` if it is as it was when it was put into the store, and still is there.
    fn unchanged(&self, name: &str) -> Option<KnownFile> {
        let file = self.known?.get(name)?;
        let found = fs::symlink_metadata(self.worktree.join(name)).ok()?;
        let same = stamp(&found) == file.stamp && self.git.odb().ok()?.exists(Oid::from_str(&file.object).ok()?);
        same.then(|| file.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::Git;
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
            stamp: stamp(&fs::symlink_metadata(place.join("file")).unwrap()),
            mode: 0o100_644,
            object: object.to_owned(),
        };
        let held = |known: KnownFile| {
            let known = KnownFiles::from([("file".to_owned(), known)]);
            let (tree, _) = plain_tree(&repository, &place, empty, &[b"file"], &known).unwrap();
            git(&["cat-file", "blob", &format!("{tree}:file")])
        };
        assert_eq!(held(file(&then)), "then");
        assert_eq!(held(file(&gone)), "now", "git has lost it");
        let mut old = file(&then);
        old.stamp[3] -= 1;
        assert_eq!(held(old), "now", "it was touched since");

        // What was written just now may change in the same moment.
        let noted = || plain_tree(&repository, &place, empty, &[b"file"], &KnownFiles::new()).unwrap().1;
        while noted().is_empty() {
            std::thread::yield_now();
        }
        write("new");
        assert!(noted().is_empty());
        let paths: Vec<String> = (0..=FEW).map(|number| format!("{number}")).collect();
        let paths: Vec<&[u8]> = paths.iter().map(String::as_bytes).collect();
        assert!(plain_tree(&repository, &place, empty, &paths, &KnownFiles::new()).is_none(), "too many to read");
    }
}
