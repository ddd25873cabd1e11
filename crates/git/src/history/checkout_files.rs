//! Moving the files of a user's checkout, whose index Lanewright has locked, with a copy of that index.
//!
//! Every file is written whole in git's directory and renamed into its place, or written there by git. What git leaves
//! when it dies or the disk is full is the beginning of a file, and holds nothing that is not in the commit.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use lanewright_files::directory::sync_if_there;
use lanewright_files::{atomic, regular_file};
use lanewright_model::CommitId;

use crate::command::{Git, Result, io_error, nul_separated};
use crate::history::{Checkout, MAX_PUBLICATION_TIME, meets, moving};
use crate::query::copy_index;

pub(crate) enum Ready {
    Yes(Move),
    /// The user changed these of those that were to be moved.
    Touched(Vec<Vec<u8>>),
}

pub(crate) struct Move {
    /// The tree that our index holds; `None`: that of the commit from which they are moved.
    half_way: Option<String>,
    paths: BTreeSet<Vec<u8>>,
}

impl Checkout<'_> {
    pub(crate) fn own(&self, what: &str) -> PathBuf {
        self.directory.join(format!("lanewright.{what}"))
    }

    pub(crate) fn scratch_index(&self) -> PathBuf {
        self.own("index")
    }

    pub(crate) fn remove_scratch_files(&self) -> Result<()> {
        ["index", "index.lock", "tree", "tree.lock"]
            .iter()
            .try_for_each(|what| Ok(atomic::remove_durably(&self.own(what))?))
    }

    /// Prepares our index. The user's files and index stay as they are.
    pub(crate) fn make_ready(&self, from: &CommitId, to: &CommitId) -> Result<Ready> {
        self.remove_scratch_files()?;
        copy_index(self.worktree, &self.scratch_index())?;
        let paths = moving(self.repository.differences(from, to)?);
        self.note(&paths)?;
        let staged = self.staged(from, true)?;
        if staged.iter().any(|path| meets(&paths, path)) {
            let touched = self.in_neither(from, to, &paths)?;
            if !touched.is_empty() {
                return Ok(Ready::Touched(touched));
            }
        }
        let half_way = self.half_way(from, staged, &paths)?;
        Ok(Ready::Yes(Move { half_way, paths }))
    }

    /// Moves files and our index. Returns the files that the user changed since; git then touches none.
    pub(crate) fn move_prepared(&self, ready: &Move, from: &CommitId, to: &CommitId) -> Result<Option<Vec<Vec<u8>>>> {
        let there = ready.half_way.as_deref().unwrap_or(from.as_str());
        if let Err(error) = self.git().args(["read-tree", "-m", "-u", there, to.as_str()]).run() {
            return match self.make_ready(from, to)? {
                Ready::Touched(touched) => Ok(Some(touched)),
                Ready::Yes(_) => Err(error.into()),
            };
        }
        self.restore_missing(&ready.paths)?;
        sync_if_there(&self.scratch_index())?;
        Ok(None)
    }

    /// The tree of `from` with what our index holds at `paths`, if that is something else. Git does not take a half-way
    /// change of a directory to a file for one, so it needs the tree. What the user staged elsewhere is no part of it: git
    /// would take it back.
    fn half_way(&self, from: &CommitId, staged: Vec<Vec<u8>>, paths: &BTreeSet<Vec<u8>>) -> Result<Option<String>> {
        let (half_way, elsewhere): (Vec<_>, Vec<_>) = staged.into_iter().partition(|path| meets(paths, path));
        if half_way.is_empty() {
            return Ok(None);
        }
        if elsewhere.is_empty() {
            return Ok(Some(self.git().arg("write-tree").line()?));
        }
        let git = || self.git().variable("GIT_INDEX_FILE", self.own("tree"));
        git().args(["read-tree", from.as_str()]).run()?;
        let none = "0".repeat(from.as_str().len());
        let gone = half_way.iter().flat_map(|path| [b"0 ", none.as_bytes(), b"\t", path, b"\0"].concat());
        let held = self.git().args(["ls-files", "--stage", "-z"]).run()?;
        let path_of = |entry: &[u8]| entry.splitn(2, |&byte| byte == b'\t').nth(1).map(<[u8]>::to_vec);
        let held = nul_separated(&held).filter(|entry| path_of(entry).is_some_and(|path| meets(paths, &path)));
        let entries: Vec<u8> = gone.chain(held.flat_map(|entry| [entry, b"\0"].concat())).collect();
        git().input(entries).args(["update-index", "-z", "--index-info"]).run()?;
        Ok(Some(git().arg("write-tree").line()?))
    }

    /// The paths that our index holds otherwise than `commit` does.
    fn staged(&self, commit: &CommitId, with_links: bool) -> Result<Vec<Vec<u8>>> {
        let staged = self.repository.staged(self.worktree, Some(&self.scratch_index()), commit)?.into_iter();
        Ok(staged.filter(|it| with_links || !it.is_of_links()).map(|it| it.path).collect())
    }

    /// Removes those of `touched` that are the beginning of what was being written there when the disk was full or git
    /// died. Returns whether there were any.
    pub(crate) fn remove_cut_short(&self, touched: &[Vec<u8>], commits: [&CommitId; 2]) -> Result<bool> {
        let lock = fs::metadata(self.index_lock()).and_then(|lock| lock.modified());
        let latest = lock.map_err(io_error("read", &self.index_lock()))? + MAX_PUBLICATION_TIME;
        let may_be_ours = |file: &fs::Metadata| file.is_file() && file.modified().is_ok_and(|time| time <= latest);
        let mut removed = false;
        for path in touched {
            let place = self.place(path);
            if !fs::symlink_metadata(&place).is_ok_and(|file| may_be_ours(&file)) {
                continue;
            }
            let found = regular_file::read(&place).map_err(io_error("read", &place))?;
            let is_cut_short = |all: Vec<u8>| found.len() < all.len() && all.starts_with(&found);
            if commits.iter().any(|commit| self.checked_out(commit, path).is_some_and(is_cut_short)) {
                atomic::remove_durably(&place)?;
                removed = true;
            }
        }
        Ok(removed)
    }

    /// What git writes for the file `path` of `commit`; `None` if there is none.
    fn checked_out(&self, commit: &CommitId, path: &[u8]) -> Option<Vec<u8>> {
        let object = [commit.as_str().as_bytes(), b":", path].concat();
        let git = Git::new(self.worktree).args(["cat-file", "--filters"]).arg(OsStr::from_bytes(&object));
        git.attempt().ok().filter(|output| output.status.success()).map(|output| output.stdout)
    }

    /// A git command that works with our index.
    fn git(&self) -> Git<'_> {
        let git = Git::new(self.worktree).without_hooks().configured("core.safecrlf=false").stdin(self.lock);
        git.variable("GIT_INDEX_FILE", self.scratch_index())
    }

    /// Updates our index with the files at `paths`.
    fn note(&self, paths: &BTreeSet<Vec<u8>>) -> Result<()> {
        let there =
            |path: &[u8]| fs::symlink_metadata(self.place(path)).is_ok_and(|kind| kind.is_file() || kind.is_symlink());
        self.run_with(paths, there, &["update-index", "--add", "--replace", "-z", "--stdin"])
    }

    /// Checks out those of `paths` that our index holds and that are gone.
    fn restore_missing(&self, paths: &BTreeSet<Vec<u8>>) -> Result<()> {
        if paths.iter().all(|path| fs::symlink_metadata(self.place(path)).is_ok()) {
            return Ok(());
        }
        let known = self.git().args(["ls-files", "-z", "--deleted"]).run()?;
        let gone = |path: &[u8]| nul_separated(&known).any(|known| known == path);
        self.run_with(paths, gone, &["checkout-index", "-z", "--stdin"])
    }

    /// Runs a git command with those of `paths` on its standard input that are `wanted`.
    fn run_with(&self, paths: &BTreeSet<Vec<u8>>, wanted: impl Fn(&[u8]) -> bool, command: &[&str]) -> Result<()> {
        let list: Vec<u8> =
            paths.iter().filter(|path| wanted(path)).flat_map(|path| [path, &b"\0"[..]].concat()).collect();
        if !list.is_empty() {
            self.git().input(list).args(command).run()?;
        }
        Ok(())
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        self.worktree.join(OsStr::from_bytes(path))
    }

    /// Those of `paths` that our index holds as neither of two commits does.
    fn in_neither(&self, one: &CommitId, other: &CommitId, paths: &BTreeSet<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let mut found = self.staged(one, false)?;
        found.retain(|path| meets(paths, path));
        if !found.is_empty() {
            let other = self.staged(other, false)?;
            found.retain(|path| other.contains(path));
        }
        Ok(found)
    }
}
