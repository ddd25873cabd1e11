//! The places of an agent's git directory, its record, and the link in the worktree.

use std::path::{Path, PathBuf};
use std::{fs, io};

use lanewright_files::atomic;
use lanewright_files::directory::{self, change_below, create_directory_unsynced};
use lanewright_files::regular_file::{self, Links};
use lanewright_files::temporary_beside;
use lanewright_model::CommitId;
use serde::{Deserialize, Serialize};

use super::files::{LARGEST_FILE, branch_in, read_small, special_file};
use crate::command::{COMMON, GitError, PRIVATE, PRIVATE_GIT, Result, entry_behind, io_error, link_target, read_line};
use crate::repo::{Repository, holding};
use crate::worktree::deletion::delete;

/// Below the common directory: git directories of agents of which not all can be had otherwise.
pub(super) const KEPT: &str = "lanewright/kept";

/// What is known of an agent's git directory, in its place.
pub(super) const RECORD: &str = "record.json";

/// The file of an entry that says which record is of it.
pub(super) const TOKEN: &str = "lanewright-private";

/// Something besides its branch that an agent left in its git directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// The full name of a ref; `refs/stash` for each stashed state.
    pub name: String,
    pub commit: CommitId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    Working,
    TakenOver,
    Lost(String),
}

/// What is known of an agent's git directory, where the agent cannot write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// What `.git` holds when it leads to the entry.
    pub(super) link: String,
    /// The worktree that leads to the git directory.
    #[serde(default)]
    pub(super) worktree: PathBuf,
    /// The full name of the ref that was checked out.
    pub(super) branch: Option<String>,
    /// Where the repository has that ref, as far as Lanewright moved it.
    pub(super) base: Option<CommitId>,
    /// The settings of the worktree alone (`config.worktree`).
    pub(super) settings: Option<String>,
    pub(super) stage: Stage,
    /// What the entry has in a file, so that an entry of the same name that came later is not taken for it.
    #[serde(default)]
    pub(super) token: String,
    /// What earlier attempts in the worktree left, which the agent finds again.
    #[serde(default)]
    pub(super) found: Vec<LeftBehind>,
    /// What it left that they did not.
    #[serde(default)]
    pub(super) left: Vec<LeftBehind>,
    /// Why some of that is nowhere but in the git directory, which is kept then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rest: Option<String>,
    /// The settings of a sparse checkout that the agent made, as lines of a file of settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sparse: Option<String>,
}

/// The places of one agent's git directory.
pub(super) struct Home<'a> {
    pub(super) repository: &'a Repository,
    pub(super) worktree: &'a Path,
    pub(super) entry: PathBuf,
    /// `<common>/lanewright/private/<entry>`
    pub(super) place: PathBuf,
}

/// What an agent may write of git in `worktree` while it works there, in a git directory of its own; `None`: it has none.
pub fn private_git_directory(worktree: &Path) -> Option<PathBuf> {
    link_target(worktree).filter(|target| entry_behind(target).is_some())
}

pub(super) fn record_in(place: &Path) -> Result<Option<Record>> {
    let bytes = regular_file::read_if_there(&place.join(RECORD))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

impl<'a> Home<'a> {
    /// `None`: there is no worktree of the pool, and none is registered at that place.
    pub(super) fn of(repository: &'a Repository, worktree: &'a Path) -> Result<Option<Self>> {
        let known = match repository.own_entry(worktree) {
            Some(entry) => Some(entry),
            None => repository.entry_at(worktree)?.map(|entry| entry.directory),
        };
        // The main worktree is no slot.
        let Some(name) = known.as_deref().and_then(Path::file_name) else { return Ok(None) };
        let entry = repository.entries_directory().join(name);
        let place = repository.common_dir().join(PRIVATE).join(name);
        Ok(Some(Self { repository, worktree, entry, place }))
    }

    /// Whether the agent's git directory is there, or the worktree still leads to where it was.
    pub(super) fn is_given(&self) -> bool {
        self.place.exists() || self.leads_here()
    }

    pub(super) fn holding<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        holding(&self.entry.join("lanewright.lock"), |_| act())
    }

    pub(super) fn git(&self) -> PathBuf {
        self.place.join(PRIVATE_GIT)
    }

    /// `None`: the process that made the directory died before the agent could work, or it was made for an earlier worktree.
    pub(super) fn record(&self) -> Result<Option<Record>> {
        let read = record_in(&self.place)?;
        if self.leads_here() {
            return Ok(Some(read.unwrap_or_else(|| self.usual_record())));
        }
        let token = read_small(&self.entry.join(TOKEN));
        Ok(read.filter(|record| token.is_some_and(|token| token == record.token)))
    }

    /// Whether `.git` leads to the agent's git directory.
    fn leads_here(&self) -> bool {
        private_git_directory(self.worktree).is_some_and(|target| target == self.git())
    }

    /// What a record that a power cut took held, as far as the entry says it.
    fn usual_record(&self) -> Record {
        let branch = branch_in(&self.entry);
        let short = branch.as_ref().and_then(|name| name.strip_prefix("refs/heads/"));
        Record {
            link: format!("gitdir: {}\n", self.entry.display()),
            worktree: self.worktree.to_owned(),
            base: short.and_then(|name| self.repository.branch_commit(name).ok()?),
            branch,
            settings: read_small(&self.entry.join("config.worktree")),
            stage: Stage::Working,
            token: uuid::Uuid::now_v7().to_string(),
            found: Vec::new(),
            left: Vec::new(),
            rest: None,
            sparse: None,
        }
    }

    pub(super) fn write(&self, record: &Record) -> Result<()> {
        create_directory_unsynced(&self.place)?;
        let text = format!("{:#}\n", serde_json::json!(record));
        Ok(atomic::replace(&self.place.join(RECORD), text.as_bytes())?)
    }

    pub(super) fn lost(&self, reason: impl Into<String>) -> GitError {
        GitError::PrivateLost { path: self.git(), reason: reason.into() }
    }

    /// Where the git directory is kept if not all of it can be had otherwise.
    pub(super) fn kept_place(&self, record: &Record) -> PathBuf {
        let entry = self.entry.file_name().map(Into::into).unwrap_or_default();
        // Records of earlier versions have no token.
        let name: PathBuf = if record.token.is_empty() { entry } else { (&record.token).into() };
        self.repository.common_dir().join(KEPT).join(name)
    }

    /// Removes the git directory, or keeps it if not all of it is anywhere else. Returns where.
    pub(super) fn discard_git(&self, record: &Record) -> Result<Option<PathBuf>> {
        let (git, mut kept) = (self.git(), self.kept_place(record));
        if record.rest.is_none() || git.symlink_metadata().is_err() {
            discard(self.repository, &git)?;
            return Ok(None);
        }
        if kept.exists() {
            kept = directory::with_suffix(&kept, &format!("-{}", uuid::Uuid::now_v7()));
        }
        directory::create_directory(kept.parent().unwrap_or(&kept))?;
        atomic::rename(&git, &kept)?;
        Ok(Some(kept))
    }

    /// Makes the agent's store one in which only its own files are read, and no pipe, whose other end would be waited for.
    pub(super) fn check_objects(&self) -> Result<()> {
        let objects = self.git().join("objects");
        // What is written below a link is written outside.
        let is_directory = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if let Some(path) = [objects.join("info"), objects.clone()].iter().find(|path| !is_directory(path)) {
            return Err(self.lost(format!("{} is no directory", path.display())));
        }
        if !self.has_own_alternates() {
            let replaced = atomic::replace(&objects.join("info/alternates"), &self.alternates());
            replaced.map_err(|error| self.lost(error.to_string()))?;
        }
        match special_file(&objects) {
            Some(path) => Err(self.lost(format!("{} is neither a file nor a directory", path.display()))),
            None => Ok(()),
        }
    }

    /// Whether the agent's store belongs to the repository where this process sees it, as it was made.
    pub(super) fn has_own_alternates(&self) -> bool {
        let file = self.git().join("objects/info/alternates");
        regular_file::read_with(&file, Links::Refuse, LARGEST_FILE).ok() == Some(self.alternates())
    }

    /// What says in the agent's store that the objects of the repository belong to it.
    pub(super) fn alternates(&self) -> Vec<u8> {
        [self.repository.common_dir().join("objects").as_os_str().as_encoded_bytes(), b"\n"].concat()
    }

    /// Replaces `.git` in one step, by way of a file beside the record where that is the same file system. `false`: there is
    /// none, because another program removes the worktree. One made anew would make it look like a worktree of which all
    /// files were deleted.
    pub(super) fn write_link(&self, contents: &[u8]) -> Result<bool> {
        let link = self.worktree.join(".git");
        create_directory_unsynced(&self.place)?;
        let Ok(found) = link.symlink_metadata() else { return Ok(false) };
        let mut exchanged = Ok(());
        for staged in [self.place.join("link"), temporary_beside(self.worktree)] {
            atomic::replace(&staged, contents)?;
            fs::set_permissions(&staged, found.permissions()).map_err(io_error("change", &staged))?;
            exchanged = change_below(self.worktree, || atomic::exchange(&staged, &link));
            atomic::remove(&staged)?;
            if !matches!(&exchanged, Err(error) if error.kind() == io::ErrorKind::CrossesDevices) {
                break;
            }
        }
        match exchanged {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            exchanged => exchanged.map(|()| true).map_err(io_error("replace", &link)),
        }
    }

    /// Makes what git reads of the entry what it was: what is written there decides which settings our git reads.
    pub(super) fn restore_entry(&self, record: &Record) -> Result<()> {
        let place = [self.worktree.join(".git").as_os_str().as_encoded_bytes(), b"\n"].concat();
        let is_placed = crate::repo::registered_place(&self.entry).is_some_and(|place| place == self.worktree);
        if !is_placed {
            atomic::replace(&self.entry.join("gitdir"), &place)?;
        }
        let common = self.entry.join("commondir");
        if read_line(&common).as_deref() != Some(COMMON) {
            atomic::replace(&common, format!("{COMMON}\n").as_bytes())?;
        }
        let settings = self.entry.join("config.worktree");
        match &record.settings {
            known if read_small(&settings) == *known => {}
            Some(known) => atomic::replace(&settings, known.as_bytes())?,
            None => atomic::remove(&settings)?,
        }
        Ok(())
    }

    /// Makes `.git` lead to the entry if it leads to an agent's git directory; anything else there is not Lanewright's.
    pub(super) fn lead_back(&self) -> Result<()> {
        let Some(record) = self.record()?.filter(|_| self.leads_here()) else { return Ok(()) };
        self.restore_entry(&record)?;
        if !self.write_link(record.link.as_bytes())? {
            return Ok(());
        }
        let modules = self.entry.join("modules");
        // Else the slot would not be given to another lane.
        let _ = fs::remove_dir(&modules);
        Ok(())
    }
}

/// Moves `place` aside, in one step, and deletes it as far as that is possible.
pub(super) fn discard(repository: &Repository, place: &Path) -> Result<()> {
    if place.symlink_metadata().is_err() {
        return Ok(());
    }
    let aside = repository.common_dir().join(PRIVATE).join(format!("{}.removed", uuid::Uuid::now_v7()));
    match change_below(place, || atomic::rename(place, &aside)) {
        // Another process was faster.
        Err(_) if place.symlink_metadata().is_err() => return Ok(()),
        moved => moved?,
    }
    // What another user left there cannot be deleted, and is tried again with the next.
    if let Err(error) = delete(&aside, None) {
        tracing::debug!("{} cannot be deleted: {error}", aside.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Git;

    #[test]
    fn a_link_that_another_program_removed_is_not_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        Git::new(&root).args(["init", "--quiet"]).run().unwrap();
        let who = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
        Git::new(&root).args(who).args(["commit", "--quiet", "--allow-empty", "--message=m"]).run().unwrap();
        let repository = Repository::discover(&root).unwrap();
        let (worktree, place) = (root.join("w"), root.join("place"));
        fs::create_dir(&worktree).unwrap();
        let home = Home { repository: &repository, worktree: &worktree, entry: root.join("entry"), place };
        fs::write(worktree.join(".git"), "gitdir: old\n").unwrap();
        assert!(home.write_link(b"gitdir: new\n").unwrap());
        assert_eq!(fs::read_to_string(worktree.join(".git")).unwrap(), "gitdir: new\n");
        fs::remove_file(worktree.join(".git")).unwrap();
        assert!(!home.write_link(b"gitdir: new\n").unwrap());
        assert_eq!(fs::read_dir(&worktree).unwrap().count(), 0);
        assert_eq!(fs::read_dir(&home.place).unwrap().count(), 0, "something is left beside the record");
    }
}
