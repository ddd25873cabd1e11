//! An index of our own beside a worktree's: what the worktree holds, as a tree, with as little read as is safe.
//!
//! The index is kept from one snapshot to the next, with a note of the tree that it stands for. Git looks for what
//! differs from it, as carefully as it can whatever the user's settings say. The tree is made of the noted one and of the
//! paths that differ: without a process where git would do nothing to them (`plain_tree`), else by adding them in a small
//! index by themselves. Where much differs, something is out of the ordinary or goes wrong on that way, all is added to the
//! index with `git add --all`, which also says why it cannot be done.

use std::ffi::OsStr;
use std::fs::{self, File, FileType, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use git2::Oid;

use super::admin_lock::holding;
use super::commit::{FEW, add_all, add_these, embedded_in};
use super::durable;
use super::error::{GitError, io_error};
use super::file_system::distrust_times;
use super::index_file;
use super::index_flags::clear_flags_in;
use super::index_note::{Covered, MANY, Note, checksum_in, checksum_of};
use super::plain_paths::directories;
use super::plain_tree::plain_tree;
use super::program::{Git, nul_separated};
use super::repository::Repository;
use super::slot::git_directory;
use super::small_index;
use super::status::{Survey, refuse_unreadable, survey_with};
use super::tree_update::updated;
use crate::fs::handle::set_modified;
use crate::fs::regular_file::Links;
use crate::fs::{atomic, regular_file};
use crate::model::CommitId;

/// The tree that `worktree` would be, made with the index `file`, which is ours alone and need not exist.
pub(crate) fn tree_of(repository: &Repository, worktree: &Path, file: &Path) -> Result<String, GitError> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(io_error("create", parent))?;
    }
    holding(&beside(file, ".guard"), |guard| OwnIndex { repository, worktree, file, guard }.tree())
}

/// Forgets which tree an index of ours stands for, because it will be another.
pub(crate) fn forget_tree(file: &Path) -> Result<(), GitError> {
    durable::remove(&beside(file, ".tree"))
}

/// Removes an index of ours, so that the next tree is made of a new copy of the worktree's.
pub(crate) fn forget(file: &Path) -> Result<(), GitError> {
    holding(&beside(file, ".guard"), |_| {
        forget_tree(file)?;
        durable::remove(file)
    })
}

/// Copies the worktree's index, so that what it knows of unchanged files need not be found out again.
pub(crate) fn copy_index(worktree: &Path, index: &Path) -> Result<(), GitError> {
    let source = git_directory(worktree)?.join("index");
    let staged = beside(index, ".new");
    let copy = || {
        // The copy must not look younger than it is: git takes a file written in the same second as the index for
        // changed, one written before it for known.
        let modified = fs::metadata(&source)?.modified()?;
        regular_file::copy(&source, &staged)?;
        set_modified(&staged, Links::Refuse, modified)?;
        atomic::rename(&staged, index)
    };
    match copy() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied.map_err(io_error("copy", &source)),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// An index of ours that nobody else of ours uses meanwhile.
struct OwnIndex<'a> {
    repository: &'a Repository,
    worktree: &'a Path,
    file: &'a Path,
    guard: &'a File,
}

impl<'a> OwnIndex<'a> {
    fn tree(&self) -> Result<String, GitError> {
        for leftover in [self.file, &self.few()] {
            durable::remove(&beside(leftover, ".lock"))?;
        }
        // The file system's own clock: what changes from now on is not younger.
        let began = self.write(&self.few(), b"")?;
        let note: Option<Note> =
            regular_file::read(self.note()).ok().and_then(|text| serde_json::from_slice(&text).ok());
        // Until the end nothing stands in the note, so that whoever dies here leaves an index that is filled anew.
        let _ = fs::remove_file(self.note());
        let kept = match note {
            Some(note) => Oid::from_str(&note.tree).ok().and_then(|noted| self.quick_tree(Some(noted), note.covers)),
            // Somebody wants every file to be read.
            None if self.knows_nothing() => Some(self.add_forced().and_then(|()| self.whole_tree())?),
            None => None,
        };
        let (tree, note) = kept.map_or_else(|| self.tree_by_copy(), Ok)?;
        self.close(began, &note)?;
        Ok(tree)
    }

    /// By a new copy of the worktree's index: what is no longer tracked there and ignored by now is not in it, nor any
    /// damage of ours.
    fn tree_by_copy(&self) -> Result<(String, Note), GitError> {
        durable::remove(self.file)?;
        copy_index(self.worktree, self.file)?;
        let quick = self.quick_tree(None, Some(Covered::copied(checksum_of(self.file))));
        // What was copied may be damaged itself.
        quick.map_or_else(|| self.whole_tree().inspect_err(|_| drop(fs::remove_file(self.file))), Ok)
    }

    fn note(&self) -> PathBuf {
        beside(self.file, ".tree")
    }

    /// The small index.
    fn few(&self) -> PathBuf {
        beside(self.file, ".few")
    }

    /// Writes a file that only its owner may read, for it names what is in the worktree. Answers when that was.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<SystemTime, GitError> {
        atomic::replace(path, bytes)?;
        fs::metadata(path).and_then(|written| written.modified()).map_err(io_error("write", path))
    }

    /// Git takes a file or a directory for known if the index was written in a later second than it. What came while we
    /// looked may be of the second in which we began, so the index is dated back to then.
    fn close(&self, began: SystemTime, note: &Note) -> Result<(), GitError> {
        let date = || {
            let written = fs::metadata(self.file)?.modified()?;
            set_modified(self.file, Links::Refuse, written.min(began))?;
            // Git gives it the permissions of any file of its own.
            fs::set_permissions(self.file, Permissions::from_mode(0o600))
        };
        date().map_err(io_error("write", self.file))?;
        let _ = fs::remove_file(self.few());
        let note = serde_json::to_vec(note).map_err(|error| io_error("write", self.file)(error.into()))?;
        self.write(&self.note(), &note).map(drop)
    }

    fn git(&self, index: &Path) -> Git<'a> {
        Git::new(self.worktree)
            .comparing_carefully()
            .unsynced()
            .without_hooks()
            .configured("core.splitIndex=false")
            .variable("GIT_INDEX_FILE", index)
            .stdin(self.guard)
    }

    fn knows_nothing(&self) -> bool {
        regular_file::read(self.file)
            .is_ok_and(|bytes| index_file::entries(&bytes).is_some_and(|entries| entries.is_empty()))
    }

    /// Adds what is tracked in the worktree although it is ignored, which adding everything passes by.
    fn add_forced(&self) -> Result<(), GitError> {
        let list = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
        let listed = Git::new(self.worktree).reading_only().args(list).run()?;
        let forced: Vec<&[u8]> = nul_separated(&listed).filter(|path| self.holds(path)).collect();
        let names = beside(self.file, ".names");
        durable::write(&names, &forced.join(&0))?;
        let names = regular_file::open(&names).map_err(io_error("read", &names))?;
        self.git(self.file).stdin(&names).args(["update-index", "--add", "-z", "--stdin"]).run()?;
        Ok(())
    }

    /// Adds everything that the worktree holds to the index and writes it as a tree.
    fn whole_tree(&self) -> Result<(String, Note), GitError> {
        // Git adds everything but what it cannot read, and only warns.
        refuse_unreadable(self.worktree)?;
        self.watch_everything()?;
        self.add_everything()?;
        let tree = self.git(self.file).arg("write-tree").line()?;
        Ok((tree.clone(), Note { tree, covers: self.compared() }))
    }

    /// Has git look at every file, also at those that an agent told it not to look at.
    fn watch_everything(&self) -> Result<(), GitError> {
        clear_flags_in(self.worktree, self.file, || self.git(self.file))?;
        distrust_times(self.worktree, self.file);
        Ok(())
    }

    fn add_everything(&self) -> Result<(), GitError> {
        let mut tries = 1;
        // A repository within the worktree that has no commit makes git give up, so it must be looked for then.
        let mut embedded = Vec::new();
        while let Err(error) = add_all(self.git(self.file), &embedded).run() {
            if tries == TRIES {
                return Err(error.into());
            }
            tries += 1;
            embedded = embedded_in(self.worktree)?;
        }
        Ok(())
    }

    /// The same from what differs from the index, which stands for the tree `noted`, or for that of the head if nothing
    /// is staged, and holds what the worktree's index `covers` does. `None`: too much differs, or something is in the way.
    fn quick_tree(&self, noted: Option<Oid>, covers: Option<Covered>) -> Option<(String, Note)> {
        self.watch_everything().ok()?;
        let mut found = self.survey()?;
        let noted = match noted {
            Some(noted) => noted,
            None if found.staged => return None,
            None => self.tree_of_commit(&found.head?.commit)?,
        };
        self.repository.in_process(|git| git.odb()?.read_header(noted).map(drop))?;
        found.differing.append(&mut found.embedded);
        let (forced, covers) = self.forced(covers, &found.differing)?;
        if found.conflicts {
            return None;
        }
        let paths: Vec<&[u8]> = found.differing.iter().chain(&forced).map(Vec::as_slice).collect();
        let tree = match plain_tree(self.repository, self.worktree, noted, &paths) {
            Some(tree) => tree,
            None if paths.len() > FEW => return None,
            None => self.tree_with(noted, &found.differing, &forced)?,
        };
        Some((tree.to_string(), Note { tree: noted.to_string(), covers }))
    }

    /// It reads no repositories other than those with names of twenty bytes, which an index does not tell.
    fn tree_of_commit(&self, commit: &CommitId) -> Option<Oid> {
        self.repository.in_process(|git| git.find_commit(Oid::from_str(commit.as_str())?).map(|it| it.tree_id()))
    }

    /// The tree `noted` with what the worktree holds at these paths.
    fn tree_with(&self, noted: Oid, differing: &[Vec<u8>], forced: &[Vec<u8>]) -> Option<Oid> {
        let bytes = regular_file::read(self.file).ok()?;
        let paths = differing.iter().chain(forced).map(Vec::as_slice).collect();
        let before = small_index::fill(&self.few(), &index_file::entries(&bytes)?, &paths)?;
        for (paths, force) in [(differing, false), (forced, true)] {
            if let Some(git) = add_these(self.git(&self.few()), paths, force) {
                git.run().ok()?;
            }
        }
        let few = regular_file::read(self.few()).ok()?;
        let changes = small_index::changes(&before, index_file::entries(&few)?)?;
        let may = self.repository.may_write_in_process();
        may.then(|| self.repository.in_process(|git| updated(git, noted, &changes))).flatten()
    }

    /// What differs from the index.
    fn survey(&self) -> Option<Survey> {
        survey_with(self.worktree, self.git(self.file)).ok()
    }

    /// The paths that are in the worktree's own index and on disk, and neither in ours nor among those that differ:
    /// they are tracked although they are ignored. And how ours and theirs compare by now. `None`: ours may hold what is
    /// ignored by now.
    fn forced(&self, known: Option<Covered>, differing: &[Vec<u8>]) -> Option<(Vec<Vec<u8>>, Option<Covered>)> {
        let theirs = self.theirs()?;
        let checksum = checksum_of(&theirs);
        let (covered, suspicious) = match known.filter(|known| checksum.is_some() && known.index == checksum) {
            Some(known) => (known, differing.iter().any(|path| path.ends_with(b".gitignore"))),
            None if !theirs.exists() => return Some((Vec::new(), None)),
            None => (self.compared()?, true),
        };
        if covered.more && (suspicious || self.takes_modes_from_the_index()) {
            return None;
        }
        let missing = covered.missing.iter().map(|path| path.as_bytes().to_vec());
        let forced = missing.filter(|path| !differing.contains(path) && self.holds(path)).collect();
        Some((forced, Some(covered)))
    }

    /// Whether git may keep the mode that an index has for a file, which is not to be seen on disk: a path that is no longer
    /// in the worktree's index must not have that of ours.
    fn takes_modes_from_the_index(&self) -> bool {
        !self.repository.configuration().is_ok_and(|settings| settings.keeps_names_and_modes())
    }

    /// The worktree's own index.
    fn theirs(&self) -> Option<PathBuf> {
        Some(git_directory(self.worktree).ok()?.join("index"))
    }

    /// How our index and theirs compare. `None`: that cannot be told, or noted.
    fn compared(&self) -> Option<Covered> {
        let (theirs, ours) = (regular_file::read(self.theirs()?).ok()?, regular_file::read(self.file).ok()?);
        let ours = index_file::entries(&ours)?;
        let mut ours = ours.into_iter().peekable();
        let (mut missing, mut more) = (Vec::new(), false);
        let mut entries = index_file::entries(&theirs)?;
        entries.dedup_by(|one, other| one.path == other.path);
        for entry in entries {
            while ours.next_if(|ours| ours.path < entry.path).is_some() {
                more = true;
            }
            match ours.next_if(|ours| ours.path == entry.path) {
                // Left out of the worktree by a sparse selection, or left out no longer.
                Some(same) if same.skipped != entry.skipped && !self.holds(&entry.path) => return None,
                Some(_) => {}
                None => missing.push(String::from_utf8(entry.path.into_owned()).ok()?),
            }
        }
        more |= ours.next().is_some();
        (missing.len() <= MANY).then(|| Covered { index: checksum_in(&theirs), missing, more })
    }

    /// Whether a file or a link is at `path`, and not by way of a link.
    fn holds(&self, path: &[u8]) -> bool {
        let is = |path: &[u8], right: fn(&FileType) -> bool| {
            let found = fs::symlink_metadata(self.worktree.join(OsStr::from_bytes(path)));
            found.is_ok_and(|found| right(&found.file_type()))
        };
        is(path, |kind| !kind.is_dir()) && directories(path).all(|directory| is(directory, FileType::is_dir))
    }
}

/// How often everything is added: an agent at work may remove a file between the listing and the reading.
const TRIES: u32 = 3;
