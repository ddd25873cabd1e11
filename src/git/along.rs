//! Moving a person's checkout along with its branch: files, index and branch, all of them or none.
//!
//! Git's own lock on the index is held throughout, so no git of the person's changes files or index meanwhile; only the
//! head may be switched to another branch at the same commit, which is looked for once the branch has moved. The lock
//! says what is under way, so whoever comes after a crash knows it for ours and finishes it: forward where the branch
//! has moved, back where it has not. Files are moved with an index of our own, which replaces the other one at the end.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::durable;
use super::error::{GitError, io_error};
use super::head::Head;
use super::library;
use super::move_files::{Moved, move_carefully};
use super::obstacles::{Obstacles, obstacles};
use super::open_index;
use super::own_index::copy_index;
use super::program::{Git, nul_separated, path_text};
use super::references::{reference_lock, set_reference};
use super::repository::{Repository, branch_reference};
use super::slot::git_directory;
use crate::model::CommitId;
use crate::regular_file;

/// Longer than it takes from the lock on the index to that on the branch.
const A_PUBLICATION: Duration = Duration::from_secs(60);

/// Longer than git has a lock on a ref that it only has to write.
const A_LOOK: Duration = Duration::from_secs(1);

/// Whether a crash may have left no more than this of `whole`.
fn is_cut_short(found: &[u8], whole: &[u8]) -> bool {
    whole.starts_with(found) || found.iter().all(|&byte| byte == 0)
}

/// A branch, where it is, and where it is to go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Advance {
    /// For people who look into the lock.
    lanekeeper: String,
    /// Without `refs/heads/`.
    pub(crate) branch: String,
    /// Where it is.
    pub(crate) onto: CommitId,
    /// Where it goes.
    pub(crate) commit: CommitId,
}

/// What came of moving a checkout along.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// The branch is at the commit, and so is the checkout if it still is on the branch.
    Moved,
    /// The checkout left the branch, or the branch its place, before anything moved.
    Superseded,
    /// The person has something there that must not be touched; nothing was changed.
    Obstructed(Obstacles),
}

impl Advance {
    pub(crate) fn new(branch: &str, onto: &CommitId, commit: &CommitId) -> Self {
        let lanekeeper = "moves this checkout along with its branch; `lanekeeper resume` finishes that".to_owned();
        Self { lanekeeper, branch: branch.to_owned(), onto: onto.clone(), commit: commit.clone() }
    }

    /// What is under way in the checkout whose git directory is `directory`: its index is locked by one of ours.
    pub(crate) fn under_way(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&regular_file::read(directory.join("index.lock")).ok()?).ok()
    }

    fn bytes(&self) -> Vec<u8> {
        format!("{}\n", serde_json::json!(self)).into_bytes()
    }
}

/// Moves `worktree`, which has the branch checked out, along with it. The caller holds the lock on publishing, whose
/// file is `lock`.
pub(crate) fn move_along(
    repository: &Repository,
    worktree: &Path,
    advance: &Advance,
    lock: &File,
) -> Result<Along, GitError> {
    let checkout = Checkout::new(repository, worktree, lock)?;
    if !durable::create_by_way_of(&checkout.own("lock"), &checkout.index_lock(), &advance.bytes())? {
        return Ok(Along::Obstructed(Obstacles::locked(&checkout.index_lock())));
    }
    match checkout.hindrance(advance) {
        Ok(None) => checkout.advance(advance),
        Ok(Some(hindrance)) => checkout.unlock().map(|()| hindrance),
        Err(error) => checkout.unlock().and(Err(error)),
    }
}

/// Finishes what a dead Lanekeeper began in `worktree`. Answers what a person changed there since, of what was to be
/// moved: that is left as it is, and the index is free again.
pub(crate) fn finish(
    repository: &Repository,
    worktree: &Path,
    advance: &Advance,
    lock: &File,
) -> Result<Option<Obstacles>, GitError> {
    let checkout = Checkout::new(repository, worktree, lock)?;
    checkout.remove_dead_branch_lock(advance)?;
    let (from, to) = if checkout.stands_at(&advance.commit)? {
        (&advance.onto, &advance.commit)
    } else {
        (&advance.commit, &advance.onto)
    };
    checkout.remove_cut_short(from, to)?;
    checkout.put(from, to)
}

/// Whether files can be moved.
enum Ready {
    /// They can.
    Yes(Move),
    /// Somebody changed some that were to be moved.
    Touched(Obstacles),
}

/// Files that are to be moved.
struct Move {
    there: There,
    /// Which, as git lists them with `-z`.
    paths: Vec<u8>,
}

/// What our index holds before files are moved.
enum There {
    /// What the commit does from which they are.
    Whole,
    /// A tree of its own.
    HalfWay(String),
}

/// A checkout whose index is locked by us.
struct Checkout<'a> {
    repository: &'a Repository,
    worktree: &'a Path,
    directory: PathBuf,
    lock: &'a File,
}

impl<'a> Checkout<'a> {
    fn new(repository: &'a Repository, worktree: &'a Path, lock: &'a File) -> Result<Self, GitError> {
        Ok(Self { repository, worktree, directory: git_directory(worktree)?, lock })
    }

    fn index_lock(&self) -> PathBuf {
        self.directory.join("index.lock")
    }

    /// A file of ours in git's directory.
    fn own(&self, what: &str) -> PathBuf {
        self.directory.join(format!("lanekeeper.{what}"))
    }

    /// The index that files are moved with.
    fn own_index(&self) -> PathBuf {
        self.own("index")
    }

    fn is_on(&self, branch: &str) -> Result<bool, GitError> {
        Ok(Head::branch_of(self.worktree)?.as_deref() == Some(branch))
    }

    /// Whether the head holds `commit`, be it by the branch or by one that was made of it meanwhile.
    fn stands_at(&self, commit: &CommitId) -> Result<bool, GitError> {
        self.repository.is_ancestor(commit, &self.repository.head_at(self.worktree)?.commit)
    }

    fn hindrance(&self, advance: &Advance) -> Result<Option<Along>, GitError> {
        if !self.is_on(&advance.branch)? {
            return Ok(Some(Along::Superseded));
        }
        let found = obstacles(self.repository, self.worktree, &advance.onto, &advance.commit)?;
        Ok((!found.paths.is_empty()).then_some(Along::Obstructed(found)))
    }

    fn advance(&self, advance: &Advance) -> Result<Along, GitError> {
        let (onto, commit) = (&advance.onto, &advance.commit);
        let ready = match self.make_ready(onto, commit) {
            Ok(Ready::Yes(ready)) => ready,
            Ok(Ready::Touched(touched)) => return self.unlock().map(|()| Along::Obstructed(touched)),
            // Nothing has moved yet.
            Err(error) => return self.unlock().and(Err(error)),
        };
        let outcome = match self.move_what_is_ready(ready, onto, commit) {
            Ok(None) => {
                let moved = self.move_branch(advance);
                // Whoever moved it: files follow, and an error is told. Who cannot tell leaves the lock, which says it.
                if self.stands_at(commit)? {
                    return self.settle().and(moved).map(|_| Along::Moved);
                }
                moved.map(|outcome| outcome.unwrap_or(Along::Moved))
            }
            Ok(Some(touched)) => Ok(Along::Obstructed(touched)),
            Err(error) => Err(error),
        };
        self.put(commit, onto).and(outcome)
    }

    /// Moves the branch by compare-and-set; the answer says why it was not. Whoever dies meanwhile may leave git's lock on
    /// it, which [`Self::remove_dead_branch_lock`] knows.
    fn move_branch(&self, advance: &Advance) -> Result<Option<Along>, GitError> {
        let (name, why) = (branch_reference(&advance.branch), "lanekeeper: publish");
        let moved = library::change(self.repository, self.worktree, |git| {
            let [from, to] = [library::oid(&advance.onto)?, library::oid(&advance.commit)?];
            git.reference_matching(&name, to, true, from, why).map(drop)
        });
        if moved.is_some() {
            return durable::reference(self.repository, &name).map(|()| None);
        }
        let (to, old) = (&advance.commit, Some(&advance.onto));
        let moved = set_reference(self.worktree, self.repository, &name, to, old, why)?;
        Ok((!moved).then_some(Along::Superseded))
    }

    /// Removes the lock that a dead [`Self::move_branch`] left: it is little younger than the lock on the index, and holds
    /// the commit or, after a crash, less than that; a git that is alive does not rest there.
    fn remove_dead_branch_lock(&self, advance: &Advance) -> Result<(), GitError> {
        let lock = reference_lock(self.repository.common_dir(), &branch_reference(&advance.branch));
        let age = || {
            fs::metadata(&lock)?
                .modified()?
                .duration_since(fs::metadata(self.index_lock())?.modified()?)
                .map_err(io::Error::other)
        };
        let look = || Some((fs::metadata(&lock).ok()?.ino(), regular_file::read(&lock).ok()?));
        let whole = format!("{}\n", advance.commit).into_bytes();
        match look() {
            Some((_, target)) if target == whole => durable::remove(&lock),
            Some(found) if is_cut_short(&found.1, &whole) && age().is_ok_and(|age| age < A_PUBLICATION) => {
                thread::sleep(A_LOOK);
                if look() == Some(found) { durable::remove(&lock) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Puts files and index, which may be half-way in either direction, to `to`, and unlocks the index.
    fn put(&self, from: &CommitId, to: &CommitId) -> Result<Option<Obstacles>, GitError> {
        match self.move_files(from, to)? {
            None => self.settle().map(|()| None),
            touched => self.unlock().map(|()| touched),
        }
    }

    /// Moves the files in which two commits differ, each of which may be as in either of them or gone, and our index.
    /// Nothing is touched where one is something else: it is the answer.
    fn move_files(&self, from: &CommitId, to: &CommitId) -> Result<Option<Obstacles>, GitError> {
        match self.make_ready(from, to)? {
            Ready::Touched(touched) => Ok(Some(touched)),
            Ready::Yes(ready) => self.move_what_is_ready(ready, from, to),
        }
    }

    /// Prepares our index. Files, and the person's index, stay as they are.
    fn make_ready(&self, from: &CommitId, to: &CommitId) -> Result<Ready, GitError> {
        self.remove_own()?;
        copy_index(self.worktree, &self.own_index())?;
        let paths = self.differing(from, to)?;
        self.note(&paths)?;
        let touched = self.in_neither(from, to)?;
        if !touched.is_empty() {
            return Ok(Ready::Touched(Obstacles::changed(touched)));
        }
        let there = self.there(from)?;
        Ok(Ready::Yes(Move { there, paths }))
    }

    /// Nothing more is touched where somebody changed a file since: it is the answer.
    fn move_what_is_ready(&self, ready: Move, from: &CommitId, to: &CommitId) -> Result<Option<Obstacles>, GitError> {
        let moved = match ready.there {
            There::Whole => {
                let since = fs::metadata(self.index_lock()).and_then(|lock| lock.modified());
                let since = since.map_err(io_error("read", &self.index_lock()))?;
                move_carefully(self.repository, self.worktree, &self.own_index(), [from, to], since)
            }
            There::HalfWay(_) => Moved::Nothing,
        };
        match moved {
            Moved::All => {}
            Moved::Nothing => self.move_by_git(&ready, from, to)?,
            Moved::Back => match self.make_ready(from, to)? {
                Ready::Touched(touched) => return Ok(Some(touched)),
                Ready::Yes(ready) => self.move_by_git(&ready, from, to)?,
            },
        }
        let index = self.own_index();
        regular_file::open(&index).and_then(|file| file.sync_all()).map_err(io_error("sync", &index)).map(|()| None)
    }

    fn move_by_git(&self, ready: &Move, from: &CommitId, to: &CommitId) -> Result<(), GitError> {
        let there = match &ready.there {
            There::Whole => from.as_str(),
            There::HalfWay(tree) => tree,
        };
        self.git().args(["read-tree", "-m", "-u", there, to.as_str()]).run()?;
        self.bring_back_missing(&ready.paths)
    }

    /// What our index holds: what `from` does, or something half-way. Git does not take a half-way change of a directory
    /// to a file for one, so it is told what is there.
    fn there(&self, from: &CommitId) -> Result<There, GitError> {
        let staged = self.repository.in_process(|git| open_index::staged(git, &self.own_index(), from));
        if staged.is_some_and(|staged| staged.is_empty()) {
            return Ok(There::Whole);
        }
        Ok(There::HalfWay(self.git().arg("write-tree").line()?))
    }

    /// The paths in which two commits differ, as git lists them with `-z`.
    fn differing(&self, from: &CommitId, to: &CommitId) -> Result<Vec<u8>, GitError> {
        if let Some(known) = self.repository.in_process(|git| library::differences(git, from, to)) {
            return Ok(known.into_iter().flat_map(|difference| [difference.path, vec![0]].concat()).collect());
        }
        let git = Git::new(self.worktree).args(["diff-tree", "-r", "-z", "--name-only", "--no-renames"]);
        Ok(git.args([from.as_str(), to.as_str()]).run()?)
    }

    /// Removes files of no length that were to be moved: a git died between making and writing them.
    fn remove_cut_short(&self, from: &CommitId, to: &CommitId) -> Result<(), GitError> {
        for path in nul_separated(&self.differing(from, to)?).map(|path| self.place(path)) {
            if fs::symlink_metadata(&path).is_ok_and(|kind| kind.is_file() && kind.len() == 0) {
                durable::remove(&path)?;
            }
        }
        Ok(())
    }

    /// A git command that works with our index.
    fn git(&self) -> Git<'_> {
        let git = Git::new(self.worktree).without_hooks().configured("core.safecrlf=false").stdin(self.lock);
        git.variable("GIT_INDEX_FILE", self.own_index())
    }

    /// Tells our index what is there of `paths`.
    fn note(&self, paths: &[u8]) -> Result<(), GitError> {
        let there =
            |path: &[u8]| fs::symlink_metadata(self.place(path)).is_ok_and(|kind| kind.is_file() || kind.is_symlink());
        self.run_with(paths, there, &["update-index", "--add", "--replace", "-z", "--stdin"])
    }

    /// Checks out those of `paths` that our index holds and that are gone.
    fn bring_back_missing(&self, paths: &[u8]) -> Result<(), GitError> {
        if nul_separated(paths).all(|path| fs::symlink_metadata(self.place(path)).is_ok()) {
            return Ok(());
        }
        let known = self.git().args(["ls-files", "-z", "--deleted"]).run()?;
        let gone = |path: &[u8]| nul_separated(&known).any(|known| known == path);
        self.run_with(paths, gone, &["checkout-index", "-z", "--stdin"])
    }

    /// Runs a git command with those of `paths` on its standard input that are `wanted`.
    fn run_with(&self, paths: &[u8], wanted: impl Fn(&[u8]) -> bool, command: &[&str]) -> Result<(), GitError> {
        let mut list = Vec::new();
        for path in nul_separated(paths).filter(|path| wanted(path)) {
            list.extend_from_slice(path);
            list.push(0);
        }
        if list.is_empty() {
            return Ok(());
        }
        let names = self.own("names");
        fs::write(&names, &list).map_err(io_error("write", &names))?;
        let file = regular_file::open(&names).map_err(io_error("read", &names))?;
        self.git().stdin(&file).args(command).run()?;
        Ok(())
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        self.worktree.join(std::ffi::OsStr::from_bytes(path))
    }

    /// The paths that our index holds as neither of two commits does.
    fn in_neither(&self, one: &CommitId, other: &CommitId) -> Result<Vec<String>, GitError> {
        let differing = |commit: &CommitId| -> Result<Vec<u8>, GitError> {
            if let Some(staged) = self.repository.in_process(|git| open_index::staged(git, &self.own_index(), commit)) {
                let files = staged.into_iter().filter(|difference| !difference.is_of_links());
                return Ok(files.flat_map(|difference| [difference.path, vec![0]].concat()).collect());
            }
            let git = self.git().args(["diff-index", "--cached", "-z", "--name-only", "--no-renames"]);
            Ok(git.args(["--ignore-submodules=all", commit.as_str()]).run()?)
        };
        let one = differing(one)?;
        if one.is_empty() {
            return Ok(Vec::new());
        }
        let other = differing(other)?;
        let both = nul_separated(&one).filter(|path| nul_separated(&other).any(|known| known == *path));
        Ok(both.map(path_text).collect())
    }

    /// Our index becomes the checkout's, and others may lock it again.
    fn settle(&self) -> Result<(), GitError> {
        let index = self.directory.join("index");
        fs::rename(self.own_index(), &index).map_err(io_error("write", &index))?;
        self.unlock()
    }

    fn unlock(&self) -> Result<(), GitError> {
        self.remove_own()?;
        durable::remove(&self.index_lock())
    }

    fn remove_own(&self) -> Result<(), GitError> {
        ["index", "index.lock", "names", "file"].iter().try_for_each(|what| durable::remove(&self.own(what)))
    }
}
