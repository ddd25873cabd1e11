//! Takes over what an agent did in its git directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lanewright_files::atomic;
use lanewright_files::directory::{self, create_directory_unsynced};
use lanewright_files::regular_file::{self, Links};
use lanewright_model::CommitId;
use lanewright_model::digest::sha256;

use super::files::{
    LARGEST_FILE, STASH, copy_directory, copy_with_time, head_in, objects_of_operations, read_small, shared_indexes,
    sparse_settings, stashed,
};
use super::home::{Home, LeftBehind, Record};
use super::references::{References, is_null};
use crate::command::{GitError, Result, io_error, read_line};
use crate::fast::copied_objects::{self, Missing};
use crate::fast::durable;
use crate::history::identity::{fallback_identity, run_identified};
use crate::history::move_branch;
use crate::query::OPERATION_FILES;
use crate::repo::{commit_id, head_log};

/// How much besides its branch is kept of an attempt at most.
const MOST_LEFT: usize = 50;

/// Taking over.
impl Home<'_> {
    /// Copies commits and index to where the entry finds them. Returns the refs that the agent has, and what it has checked out.
    pub(super) fn bring_over(&self, record: &mut Record) -> Result<(References, Option<CommitId>)> {
        self.restore_entry(record)?;
        let git = self.git();
        if !git.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Err(self.lost("it was removed"));
        }
        self.check_objects()?;
        let head = head_in(&git).ok_or_else(|| self.lost("its HEAD cannot be read"))?;
        let references = References::of(&git, &[]).map_err(|error| self.lost(error.to_string()))?;
        let tip_of = |name: &str| CommitId::new(references.named.get(name)?.object.as_str()).ok();
        let branch = record.branch.clone();
        let on = head.strip_prefix("ref: ").map(str::to_owned);
        // A branch that was deleted below its worktree is where it last was.
        let last = || head_log(&git, None).ok()?.into_iter().map(|(commit, _)| commit).find(|it| !is_null(it));
        let tip = branch.as_deref().and_then(|name| tip_of(name).or_else(|| last().filter(|_| on == branch)));
        let commit = match &on {
            Some(name) if branch.as_ref() == Some(name) => tip.clone(),
            Some(name) => tip_of(name),
            None => CommitId::new(&head).ok(),
        };
        let index = self.stage_index(&git)?;
        let tips: BTreeSet<&CommitId> = tip.iter().chain(&commit).collect();
        self.copy_objects(record, &Vec::from_iter(tips), index.as_deref())?;
        if let (Some(name), Some(tip)) = (branch.as_deref(), &tip) {
            self.move_branch(record, name, tip)?;
        }
        self.move_head(&head, on.as_deref(), branch.as_deref(), commit.as_ref())?;
        if let Some(index) = index {
            atomic::rename(&index, &self.entry.join("index"))?;
        }
        Ok((references, commit))
    }

    /// The same, with all that is not in the branch.
    pub(super) fn take_all(&self, record: &mut Record) -> Result<()> {
        let (references, head) = self.bring_over(record)?;
        let git = self.git();
        self.copy_operations(&git, &self.entry)?;
        self.copy_large_files(&git);
        let patterns = git.join("info/sparse-checkout");
        record.sparse =
            sparse_settings(&git).filter(|_| patterns.symlink_metadata().is_ok_and(|found| found.is_file()));
        if record.sparse.is_some() {
            // The pool gives no such worktree to another lane.
            create_directory_unsynced(&self.entry.join("info"))?;
            copy_with_time(&patterns, &self.entry.join("info/sparse-checkout"))?;
        }
        record.rest = self.take_left(record, &references)?;
        if !self.worktree.exists() {
            // The worktree will be made again from the branch.
            match self.staged(record, head.as_ref()) {
                Err(GitError::PrivateLost { reason, .. }) => record.rest = record.rest.take().or(Some(reason)),
                staged => record.left.extend(staged?),
            }
        }
        Ok(())
    }

    /// Copies what nothing in the repository leads to, and names it in the record. Returns why some of it cannot be had.
    pub(super) fn take_left(&self, record: &mut Record, references: &References) -> Result<Option<String>> {
        let git = self.git();
        record.left.clear();
        let found_before = std::mem::take(&mut record.found);
        let before = References::read_packed(&self.place.join("refs")).unwrap_or_default().named;
        let known: BTreeSet<&str> = before.values().map(|reference| reference.object.as_str()).collect();
        // Another program may have moved the branch elsewhere.
        let short = record.branch.as_deref().and_then(|name| name.strip_prefix("refs/heads/"));
        let tip = short.and_then(|name| self.repository.branch_commit(name).ok()?);
        let is_taken = |name: &str, object: &str| {
            Some(name) == record.branch.as_deref() && tip.as_ref().is_none_or(|tip| tip.as_str() == object)
        };
        let is_new = |name: &str, object: &str| {
            let passes = ["refs/remotes/", "refs/bisect/", "refs/worktree/", "refs/rewritten/", "refs/prefetch/"];
            !is_taken(name, object)
                && name != STASH
                && !passes.iter().any(|prefix| name.starts_with(prefix))
                && !known.contains(object)
        };
        let named = references.named.iter().map(|(name, reference)| (name.clone(), reference.object.clone()));
        let named = named.filter(|(name, object)| is_new(name, object));
        let mut stashes = stashed(&git);
        // Without its log only the last one is known.
        stashes
            .extend(references.named.get(STASH).map(|last| last.object.clone()).filter(|last| !stashes.contains(last)));
        let stashes = stashes.into_iter().map(|object| (STASH.to_owned(), object));
        let found: Vec<(String, String)> =
            stashes.chain(named).chain(self.only_there(objects_of_operations(&git))?).collect();
        let commits = self.commits_of(found.iter().map(|(_, object)| object.as_str()));
        let mut new = Vec::new();
        for ((name, object), commit) in found.into_iter().zip(commits) {
            match found_before.iter().find(|it| it.commit.as_str() == object) {
                Some(again) => record.found.push(LeftBehind { name, commit: again.commit.clone() }),
                None => new.extend(commit.map(|commit| LeftBehind { name, commit })),
            }
        }
        let mut lost = self.repository.without_reference(&new.iter().map(|it| it.commit.clone()).collect())?;
        new.retain(|it| lost.remove(&it.commit));
        let mut missing = None;
        if new.len() > MOST_LEFT {
            missing = Some(format!("it has more than {MOST_LEFT} refs and commits of its own"));
            new.truncate(MOST_LEFT);
        }
        for left in new {
            match self.copy_objects(record, &[&left.commit], None) {
                Ok(()) => {}
                Err(GitError::PrivateLost { reason, .. }) => {
                    missing = Some(reason);
                    continue;
                }
                Err(error) => return Err(error),
            }
            durable::objects(self.repository, &left.commit, record.base.iter())?;
            record.left.push(left);
        }
        Ok(missing)
    }

    /// What the agent had staged on top of `head`, as a commit; `None`: nothing.
    pub(super) fn staged(&self, record: &Record, head: Option<&CommitId>) -> Result<Option<LeftBehind>> {
        let (Some(head), index) = (head, self.place.join("index")) else { return Ok(None) };
        if copy_with_time(&self.git().join("index"), &index).is_err() || !index.exists() {
            return Ok(None);
        }
        self.copy_objects(record, &[head], Some(&index))?;
        let git = || self.repository.git().variable("GIT_INDEX_FILE", &index);
        let tree = git().arg("write-tree").line().map_err(|_| self.lost("what is staged in it has conflicts"))?;
        if git().args(["rev-parse", "--verify", &format!("{head}^{{tree}}")]).line()? == tree {
            return Ok(None);
        }
        let message = "Staged by an agent whose worktree was removed";
        let made = run_identified(&git().args(["commit-tree", &tree, "-p", head.as_str(), "-m", message]))?;
        let commit = commit_id(made.trim_ascii())?;
        durable::objects(self.repository, &commit, [head])?;
        Ok(Some(LeftBehind { name: "index".to_owned(), commit }))
    }

    /// Those whose commit the repository does not have.
    fn only_there(&self, found: Vec<(String, String)>) -> Result<Vec<(String, String)>> {
        let commits = found.iter().filter_map(|(_, object)| CommitId::new(object).ok());
        let there: BTreeSet<CommitId> = self.repository.existing_commits(commits)?.into_iter().collect();
        Ok(found.into_iter().filter(|(_, object)| !there.iter().any(|commit| commit.as_str() == object)).collect())
    }

    /// A copy of the agent's index beside that of the entry; `None`: the entry's is the same, or it cannot be read.
    fn stage_index(&self, git: &Path) -> Result<Option<PathBuf>> {
        let (source, staged) = (git.join("index"), self.entry.join("index.agent"));
        for name in shared_indexes(git).unwrap_or_default() {
            copy_with_time(&git.join(&name), &self.entry.join(&name))?;
        }
        if copy_with_time(&source, &staged).is_err() || !staged.exists() {
            return Ok(None);
        }
        let same = |one: &Path, other: &Path| {
            let read = |path: &Path| regular_file::read(path).ok();
            read(one).is_some_and(|bytes| read(other).as_ref() == Some(&bytes))
        };
        Ok(Some(staged).filter(|staged| !same(staged, &self.entry.join("index"))))
    }

    pub(super) fn copy_objects(&self, record: &Record, tips: &[&CommitId], index: Option<&Path>) -> Result<()> {
        let objects = self.git().join("objects");
        let is_partial = self.repository.configuration()?.get("extensions.partialclone").is_some();
        let missing = if is_partial { Missing::Promised } else { Missing::Refused };
        match copied_objects::copy_objects(self.repository, &objects, tips, index, missing) {
            Some(Ok(())) => Ok(()),
            Some(Err(_))
                if read_small(&self.git().join("shallow"))
                    != read_small(&self.repository.common_dir().join("shallow")) =>
            {
                Err(self.lost("it is based on a fetch with `--depth`"))
            }
            Some(Err(reason)) => Err(self.lost(reason)),
            None => self.copy_objects_by_git(record, &objects, tips, index),
        }
    }

    /// The same for repositories that libgit2 does not read, or may not write to.
    fn copy_objects_by_git(
        &self,
        record: &Record,
        objects: &Path,
        tips: &[&CommitId],
        index: Option<&Path>,
    ) -> Result<()> {
        let lost = |error: crate::command::ProgramError| self.lost(error.to_string());
        let tips = || tips.iter().map(|tip| format!("{tip}\n"));
        let without = record.base.as_ref().map(|base| format!("^{base}\n"));
        let wanted: String = tips().chain(without.clone()).collect();
        let git = self.repository.git().variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        let pack = git.args(["pack-objects", "--quiet", "--stdout", "--revs"]);
        let pack = match index {
            Some(index) => pack.arg("--indexed-objects").variable("GIT_INDEX_FILE", index),
            None => pack,
        };
        let pack = pack.input(wanted.clone().into_bytes()).run().map_err(lost)?;
        self.repository.git().args(["index-pack", "--stdin"]).input(pack).run()?;
        let whole = self.repository.git().args(["rev-list", "--objects", "--quiet", "--stdin"]);
        whole.input(wanted.into_bytes()).run().map(drop).map_err(lost)
    }

    /// The commits that objects of the agent's are or lead to.
    fn commits_of<'o>(&self, named: impl Iterator<Item = &'o str> + Clone) -> Vec<Option<CommitId>> {
        let objects = self.git().join("objects");
        let asked = named.clone();
        copied_objects::commits_behind(self.repository, &objects, named).unwrap_or_else(|| {
            let commit = |object| {
                let git = self.repository.git().variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects);
                let named =
                    git.args(["rev-parse", "--verify", "--quiet", &format!("{object}^{{commit}}")]).line().ok()?;
                CommitId::new(&named).ok()
            };
            asked.map(commit).collect()
        })
    }

    /// Moves the branch in the repository, unless something else moved it meanwhile to where the agent's does not lead.
    pub(super) fn move_branch(&self, record: &mut Record, name: &str, tip: &CommitId) -> Result<()> {
        let Some(short) = name.strip_prefix("refs/heads/") else { return Ok(()) };
        let Some(now) = self.repository.branch_commit(short)? else { return Ok(()) };
        if now == *tip {
            return Ok(());
        }
        if record.base.as_ref() == Some(&now) || self.repository.is_ancestor(&now, tip)? {
            move_branch(self.repository, short, &now, tip)?;
            record.base = Some(tip.clone());
            self.write(record)?;
        }
        Ok(())
    }

    /// Makes the entry stand where the agent does: on its branch, or on no branch where it has checked out another, which the
    /// repository need not have.
    fn move_head(&self, head: &str, on: Option<&str>, branch: Option<&str>, commit: Option<&CommitId>) -> Result<()> {
        let text = match (on, commit) {
            (Some(name), _) if Some(name) == branch => format!("ref: {name}"),
            (Some(_), Some(commit)) => commit.to_string(),
            _ => head.to_owned(),
        };
        let file = self.entry.join("HEAD");
        if read_line(&file).as_ref() != Some(&text) {
            atomic::replace(&file, format!("{text}\n").as_bytes())?;
        }
        if let Some(commit) = commit {
            self.note_head(commit)?;
        }
        Ok(())
    }

    /// Adds a line to the entry's reflog of its head.
    fn note_head(&self, commit: &CommitId) -> Result<()> {
        let last = head_log(&self.entry, None)?.into_iter().next().map(|(commit, _)| commit);
        if last.as_ref() == Some(commit) {
            return Ok(());
        }
        let path = self.entry.join("logs/HEAD");
        let mut log = regular_file::read_if_there(&path)?.unwrap_or_default();
        let from = last.map_or_else(|| "0".repeat(commit.as_str().len()), |commit| commit.to_string());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let who = fallback_identity();
        log.extend(format!("{from} {commit} {who} {now} +0000\tlanewright: the agent's commits\n").bytes());
        create_directory_unsynced(&self.entry.join("logs"))?;
        Ok(atomic::replace(&path, &log)?)
    }

    /// Makes the operation that is in progress in one directory that of the other.
    pub(super) fn copy_operations(&self, from: &Path, to: &Path) -> Result<()> {
        for name in OPERATION_FILES {
            let (source, target) = (from.join(name), to.join(name));
            match source.symlink_metadata() {
                Ok(found) if found.is_dir() => copy_directory(&source, &target)?,
                Ok(found) if found.is_file() && found.len() <= LARGEST_FILE => copy_with_time(&source, &target)?,
                _ if target.symlink_metadata().is_ok() => {
                    atomic::remove_all(&target).map_err(io_error("remove", &target))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Copies what Git LFS stored; a file that cannot be copied is in the worktree as well.
    fn copy_large_files(&self, git: &Path) {
        let from = git.join("lfs/objects");
        let to = self.repository.common_dir().join("lfs/objects");
        let below = |place: &PathBuf| directory::directories(place).unwrap_or_default();
        let files = below(&from)
            .into_iter()
            .flat_map(|place| below(&place))
            .flat_map(|place| directory::entries(&place).unwrap_or_default());
        for file in files.collect::<Vec<_>>() {
            let Some(name) = file.file_name().and_then(|name| name.to_str()).filter(|name| name.len() == 64) else {
                continue;
            };
            let place = to.join(&name[..2]).join(&name[2..4]);
            let copied = || -> Result<()> {
                let bytes = regular_file::read_with(&file, Links::Refuse, regular_file::LARGE);
                let bytes = bytes.map_err(io_error("read", &file))?;
                if sha256(&bytes) == name && !place.join(name).exists() {
                    directory::create_directory(&place)?;
                    atomic::write(&place.join(name), &bytes)?;
                }
                Ok(())
            };
            if let Err(error) = copied() {
                tracing::debug!("{} is not copied: {error}", file.display());
            }
        }
    }
}
