//! A git directory for each agent that works (decision 72).
//!
//! While an agent works, the `.git` of its worktree leads to `<common>/lanewright/private/<entry>/git`: a git directory with
//! its own head, refs, index, settings, hooks' list and objects, which reads the settings, hooks and objects of the repository
//! and writes none of them. Git's own directory for the worktree, the *entry* in `<common>/worktrees`, stays, and is what
//! Lanewright works with all the time ([`crate::command::places`]). [`bring_over`] copies commits and index there, as often as
//! wanted; [`take_over`] does so at the end and names what else the agent left; [`restore_link`] makes `.git` lead to the entry
//! again. Each may be interrupted and asked again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lanewright_files::directory::{self, change_below, create_directory_unsynced};
use lanewright_files::handle::set_modified;
use lanewright_files::regular_file::{self, Links};
use lanewright_files::{atomic, if_there};
use lanewright_model::CommitId;
use lanewright_model::digest::sha256;
use serde::{Deserialize, Serialize};

use crate::command::{COMMON, GitError, PRIVATE, PRIVATE_GIT, Result, entry_behind, io_error, link_target, read_line};
use crate::fast::copied_objects::{self, Missing};
use crate::fast::durable;
use crate::history::identity::fallback_identity;
use crate::history::move_branch;
use crate::history::references::force_reference;
use crate::query::OPERATION_FILES;
use crate::repo::{Repository, head_log, holding};
use crate::worktree::deletion::delete;

/// Something besides its branch that an agent left in its git directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// The full name of a ref; `refs/stash` for each stashed state.
    pub name: String,
    pub commit: CommitId,
}

/// What became of an agent's git directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenOver {
    /// Commits that nothing in the repository leads to; their objects are there.
    pub left: Vec<LeftBehind>,
    /// Why the agent's commits cannot be had; `None`: they are in the repository.
    pub lost: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    Working,
    TakenOver,
    Lost(String),
}

/// What is known of an agent's git directory, where the agent cannot write.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// What `.git` holds when it leads to the entry.
    link: String,
    /// The full name of the ref that was checked out.
    branch: Option<String>,
    /// Where the repository has that ref, as far as Lanewright moved it.
    base: Option<CommitId>,
    /// The settings of the worktree alone (`config.worktree`).
    settings: Option<String>,
    stage: Stage,
    /// What the entry has in a file, so that an entry of the same name that came later is not taken for it.
    #[serde(default)]
    token: String,
    /// What earlier attempts in the worktree left, which the agent finds again.
    #[serde(default)]
    found: Vec<LeftBehind>,
    /// What it left that they did not.
    #[serde(default)]
    left: Vec<LeftBehind>,
}

/// The places of one agent's git directory.
struct Home<'a> {
    repository: &'a Repository,
    worktree: &'a Path,
    entry: PathBuf,
    /// `<common>/lanewright/private/<entry>`
    place: PathBuf,
}

/// What an agent may write of git in `worktree` while it works there, in a git directory of its own; `None`: it has none.
pub fn private_git_directory(worktree: &Path) -> Option<PathBuf> {
    link_target(worktree).filter(|target| entry_behind(target).is_some())
}

/// What of git an agent in `worktree` must be able to write, whether or not it is made yet, and nothing else of it: its own
/// git directory, and those of submodules.
///
/// # Errors
/// Git's directories for worktrees cannot be read, or [`GitError::NotOurs`].
pub fn agent_git_directories(repository: &Repository, worktree: &Path) -> Result<Vec<PathBuf>> {
    let Some(home) = Home::of(repository, worktree)? else {
        return Err(GitError::NotOurs { path: worktree.to_owned() });
    };
    let modules = worktree.join(".gitmodules").symlink_metadata().is_ok().then(|| home.entry.join("modules"));
    Ok([home.git()].into_iter().chain(modules).collect())
}

/// Makes a git directory for the agent that is about to work in `worktree`, one of the pool's, in place of one that an agent
/// before it had. Nothing is made durable: after a power cut the agent starts again.
///
/// # Errors
/// [`GitError::NotOurs`], or what cannot be read or written.
pub fn make_private(repository: &Repository, worktree: &Path) -> Result<()> {
    let Some(home) = Home::of(repository, worktree)? else {
        return Err(GitError::NotOurs { path: worktree.to_owned() });
    };
    if home.place.exists() {
        take_over(repository, worktree)?;
    }
    home.holding(|| {
        let before = home.record()?.map(|record| [record.found, record.left].concat()).unwrap_or_default();
        home.remove()?;
        home.make(before)
    })
}

/// Copies what the agent in `worktree` committed and staged so far into the repository, and moves its branch there; the
/// agent may be at work. Without a git directory of its own there is nothing to do.
///
/// # Errors
/// [`GitError::PrivateLost`]: the agent removed or damaged it.
pub fn bring_over(repository: &Repository, worktree: &Path) -> Result<()> {
    let Some(home) = Home::of(repository, worktree)?.filter(|home| home.place.exists()) else { return Ok(()) };
    home.holding(|| match home.record()? {
        Some(mut record) if record.stage == Stage::Working => home.bring_over(&mut record).map(drop),
        _ => Ok(()),
    })
}

/// The same once the agent is gone, with everything else that it left. `None`: it had no git directory of its own.
///
/// # Errors
/// What cannot be written here. What the agent removed or damaged is an answer.
pub fn take_over(repository: &Repository, worktree: &Path) -> Result<Option<TakenOver>> {
    let Some(home) = Home::of(repository, worktree)?.filter(|home| home.place.exists()) else { return Ok(None) };
    home.holding(|| {
        let Some(mut record) = home.record()? else { return Ok(None) };
        if record.stage == Stage::Working {
            record.stage = match home.take_all(&mut record) {
                Ok(()) => Stage::TakenOver,
                Err(GitError::PrivateLost { reason, .. }) => Stage::Lost(reason),
                Err(error) => return Err(error),
            };
            home.write(&record)?;
        }
        let lost = match record.stage {
            Stage::Lost(reason) => Some(reason),
            Stage::Working | Stage::TakenOver => None,
        };
        Ok(Some(TakenOver { left: record.left, lost }))
    })
}

/// Makes the `.git` of `worktree` lead to git's directory for it, and removes what was taken over from the agent's. What the
/// agent left besides stays named until the next one gets a git directory, or the worktree another holder.
///
/// # Errors
/// What cannot be written.
pub fn restore_link(repository: &Repository, worktree: &Path) -> Result<()> {
    let Some(home) = Home::of(repository, worktree)?.filter(|home| home.place.exists()) else { return Ok(()) };
    home.holding(|| {
        home.lead_back()?;
        home.discard(&home.git())
    })
}

/// Takes over and removes the git directory of an agent that is gone from `worktree`, if there is one.
pub(crate) fn forget_private(repository: &Repository, worktree: &Path) -> Result<()> {
    let Some(home) = Home::of(repository, worktree)?.filter(|home| home.place.exists()) else { return Ok(()) };
    take_over(repository, worktree)?;
    home.holding(|| home.remove())
}

/// Removes what is left of the git directory of an agent whose worktree had the entry `entry`.
pub(crate) fn remove_private_of(repository: &Repository, entry: &Path) -> Result<()> {
    let Some(name) = entry.file_name() else { return Ok(()) };
    let place = repository.common_dir().join(PRIVATE).join(name);
    discard_home(repository, &place)
}

/// Removes the git directories of agents whose worktrees are gone.
pub(crate) fn remove_private_leftovers(repository: &Repository) -> Result<()> {
    let private = repository.common_dir().join(PRIVATE);
    for place in directory::entries(&private)? {
        let name = place.file_name().unwrap_or_default();
        if !repository.entries_directory().join(name).exists() {
            discard_home(repository, &place)?;
        }
    }
    let _ = fs::remove_dir(&private);
    Ok(())
}

/// Removes the git directory of an agent with its record; commits that only it has are kept. The caller holds the lock of the
/// entry, if there is one.
fn discard_home(repository: &Repository, place: &Path) -> Result<()> {
    if let Some(mut stray) = Stray::in_place(repository, place)? {
        stray.bring_over_now()?;
    }
    discard(repository, place)
}

/// Copies what agents committed in git directories of their own whose worktrees are gone into the repository, and moves their
/// branches there. Where a branch was deleted or moved elsewhere, a ref below `refs/lanewright/rescued` keeps the commits.
///
/// # Errors
/// What cannot be read or written here; what an agent damaged is left out.
pub fn rescue_commits(repository: &Repository) -> Result<()> {
    for place in directory::entries(&repository.common_dir().join(PRIVATE))? {
        if let Some(stray) = Stray::in_place(repository, &place)?.filter(|stray| stray.worktree().is_none()) {
            stray.bring_over()?;
        }
    }
    Ok(())
}

/// The same for all agents, which may be at work.
///
/// # Errors
/// As there.
pub fn bring_over_all(repository: &Repository) -> Result<()> {
    rescue_commits(repository)?;
    for place in directory::entries(&repository.common_dir().join(PRIVATE))? {
        let worktree = Stray::in_place(repository, &place)?.and_then(|stray| stray.worktree());
        match worktree.map_or(Ok(()), |worktree| bring_over(repository, &worktree)) {
            Err(GitError::PrivateLost { .. }) => {}
            done => done?,
        }
    }
    Ok(())
}

fn record_in(place: &Path) -> Result<Option<Record>> {
    let bytes = regular_file::read_if_there(&place.join("record.json"))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// The git directory of an agent whose work was not taken over, whether or not its worktree is there.
struct Stray<'a> {
    home: Home<'a>,
    record: Record,
}

impl<'a> Stray<'a> {
    fn in_place(repository: &'a Repository, place: &'a Path) -> Result<Option<Self>> {
        let record = record_in(place)?.filter(|record| record.stage == Stage::Working);
        let (Some(record), Some(name)) = (record, place.file_name()) else { return Ok(None) };
        let entry = repository.entries_directory().join(name);
        let home = Home { repository, worktree: place, entry, place: place.to_owned() };
        Ok(Some(Self { home, record }))
    }

    /// The worktree that leads there.
    fn worktree(&self) -> Option<PathBuf> {
        let worktree = crate::repo::registered_place(&self.home.entry)?;
        private_git_directory(&worktree).filter(|git| *git == self.home.git()).map(|_| worktree)
    }

    fn bring_over(mut self) -> Result<()> {
        if self.home.entry.exists() {
            let lock = self.home.entry.join("lanewright.lock");
            holding(&lock, |_| self.bring_over_now())
        } else {
            self.bring_over_now()
        }
    }

    fn bring_over_now(&mut self) -> Result<()> {
        let (git, repository) = (self.home.git(), self.home.repository);
        let Ok(references) = References::of(&git, &[]) else { return Ok(()) };
        let named = |name: &str| CommitId::new(references.named.get(name)?.object.as_str()).ok();
        let head = head_in(&git).and_then(|head| match head.strip_prefix("ref: ") {
            Some(name) => named(name),
            None => CommitId::new(&head).ok(),
        });
        let branch = self.record.branch.clone();
        let tip = branch.as_deref().and_then(named);
        let tips: BTreeSet<CommitId> =
            tip.iter().chain(&head).filter(|tip| self.record.base.as_ref() != Some(tip)).cloned().collect();
        if tips.is_empty() || self.home.copy_objects(&self.record, &tips.iter().collect::<Vec<_>>(), None).is_err() {
            return Ok(());
        }
        for tip in &tips {
            durable::objects(repository, tip, self.record.base.iter())?;
        }
        if let (Some(name), Some(tip)) = (&branch, &tip) {
            self.home.move_branch(&mut self.record, name, tip)?;
        }
        for tip in tips.iter().filter(|tip| !repository.is_in_any_reference_or_lost(tip)) {
            force_reference(repository, &format!("{RESCUED}/{tip}"), tip)?;
        }
        Ok(())
    }
}

/// Moves `place` aside, in one step, and deletes it as far as that is possible.
fn discard(repository: &Repository, place: &Path) -> Result<()> {
    if place.symlink_metadata().is_err() {
        return Ok(());
    }
    let aside = repository.common_dir().join(PRIVATE).join(format!("{}.removed", uuid::Uuid::now_v7()));
    change_below(place, || atomic::rename(place, &aside))?;
    // What another user left there cannot be deleted, and is tried again with the next.
    if let Err(error) = delete(&aside, None) {
        tracing::debug!("{} cannot be deleted: {error}", aside.display());
    }
    Ok(())
}

impl<'a> Home<'a> {
    /// `None`: there is no worktree of the pool, and none is registered at that place.
    fn of(repository: &'a Repository, worktree: &'a Path) -> Result<Option<Self>> {
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

    fn holding<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        holding(&self.entry.join("lanewright.lock"), |_| act())
    }

    fn git(&self) -> PathBuf {
        self.place.join(PRIVATE_GIT)
    }

    /// `None`: the process that made the directory died before the agent could work, or it was made for an earlier worktree.
    fn record(&self) -> Result<Option<Record>> {
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
        let branch = head_in(&self.entry).and_then(|head| head.strip_prefix("ref: ").map(str::to_owned));
        let short = branch.as_ref().and_then(|name| name.strip_prefix("refs/heads/"));
        Record {
            link: format!("gitdir: {}\n", self.entry.display()),
            base: short.and_then(|name| self.repository.branch_commit(name).ok()?),
            branch,
            settings: read_small(&self.entry.join("config.worktree")),
            stage: Stage::Working,
            token: String::new(),
            found: Vec::new(),
            left: Vec::new(),
        }
    }

    fn write(&self, record: &Record) -> Result<()> {
        let text = format!("{:#}\n", serde_json::json!(record));
        Ok(atomic::replace(&self.place.join("record.json"), text.as_bytes())?)
    }

    fn lost(&self, reason: impl Into<String>) -> GitError {
        GitError::PrivateLost { path: self.git(), reason: reason.into() }
    }

    fn remove(&self) -> Result<()> {
        self.lead_back()?;
        discard_home(self.repository, &self.place)
    }

    fn discard(&self, place: &Path) -> Result<()> {
        discard(self.repository, place)
    }
}

/// Files of git's directory for a worktree that its agent's own has as well, and those of the common one.
const OF_ENTRY: &[&str] = &["HEAD", "config.worktree", "info/sparse-checkout"];
const OF_COMMON: &[&str] = &["shallow", "info/exclude", "info/attributes", "info/grafts"];

/// Where filters that are not git's own look for their keys, in the git directory of the worktree, not in the common one.
pub(crate) const KEYS: &[&str] = &["git-crypt"];

/// Refs of one worktree, and the list of stashes, which is the user's.
const NOT_SHARED: &[&str] = &["refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// Making it.
impl Home<'_> {
    /// `before`: what attempts before left, as far as it was kept since.
    fn make(&self, before: Vec<LeftBehind>) -> Result<()> {
        let common = self.repository.common_dir();
        let git = self.git();
        for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            create_directory_unsynced(&git.join(directory))?;
        }
        let copy = |from: &Path, name: &str| copy_with_time(&from.join(name), &git.join(name));
        OF_ENTRY.iter().try_for_each(|name| copy(&self.entry, name))?;
        OF_COMMON.iter().try_for_each(|name| copy(common, name))?;
        for name in shared_indexes(&self.entry)?.iter().map(String::as_str).chain(["index"]) {
            copy(&self.entry, name)?;
        }
        self.copy_operations(&self.entry, &git)?;
        let mut references = References::of(common, NOT_SHARED)?;
        atomic::replace(&self.place.join("refs"), references.packed().as_bytes())?;
        let found = self.give_again(before, &mut references)?;
        atomic::replace(&git.join("packed-refs"), references.packed().as_bytes())?;
        for (name, target) in &references.symbolic {
            let file = git.join(name);
            create_directory_unsynced(file.parent().unwrap_or(&git))?;
            atomic::replace(&file, format!("ref: {target}\n").as_bytes())?;
        }
        let alternates = [common.join("objects").as_os_str().as_encoded_bytes(), b"\n"].concat();
        atomic::replace(&git.join("objects/info/alternates"), &alternates)?;
        atomic::replace(&git.join("config"), &self.settings()?)?;
        for name in KEYS {
            if common.join(name).exists() {
                atomic::link(&common.join(name), &git.join(name))?;
            }
        }
        if self.worktree.join(".gitmodules").symlink_metadata().is_ok() {
            // The files of submodules lead there, also after the agent.
            create_directory_unsynced(&self.entry.join("modules"))?;
            atomic::link(&self.entry.join("modules"), &git.join("modules"))?;
        }
        let branch = head_in(&git).and_then(|head| head.strip_prefix("ref: ").map(str::to_owned));
        let base = branch.as_ref().and_then(|name| CommitId::new(references.named.get(name)?.object.as_str()).ok());
        let settings = read_small(&self.entry.join("config.worktree"));
        let link = regular_file::read_text(self.worktree.join(".git")).map_err(io_error("read", self.worktree))?;
        let token = uuid::Uuid::now_v7().to_string();
        atomic::replace(&self.entry.join(TOKEN), token.as_bytes())?;
        self.write(&Record { link, branch, base, settings, stage: Stage::Working, token, found, left: Vec::new() })?;
        let target = [b"gitdir: ", git.as_os_str().as_encoded_bytes(), b"\n"].concat();
        self.write_link(&target)
    }

    /// Has the agent find what attempts before it left, of which commits the repository still has.
    fn give_again(&self, before: Vec<LeftBehind>, references: &mut References) -> Result<Vec<LeftBehind>> {
        if before.is_empty() {
            return Ok(before);
        }
        let commits = before.iter().map(|left| left.commit.clone());
        let there: BTreeSet<CommitId> = self.repository.existing_commits(commits)?.into_iter().collect();
        let mut stashes = String::new();
        let mut last = None;
        let mut found = Vec::new();
        for left in before.into_iter().filter(|left| there.contains(&left.commit)) {
            if left.name == STASH {
                let from =
                    last.map_or_else(|| "0".repeat(left.commit.as_str().len()), |last: CommitId| last.to_string());
                let (to, who) = (&left.commit, fallback_identity());
                stashes.extend([format!("{from} {to} {who} 1 +0000\tstash of an earlier attempt\n")]);
                last = Some(left.commit.clone());
            } else if left.name.starts_with("refs/") && references.may_have(&left.name) {
                let object = left.commit.to_string();
                references.named.insert(left.name.clone(), Reference { object, peeled: None });
            } else {
                continue;
            }
            found.push(left);
        }
        if let Some(last) = last {
            let git = self.git();
            create_directory_unsynced(&git.join("logs/refs"))?;
            atomic::replace(&git.join("logs/refs/stash"), stashes.as_bytes())?;
            atomic::replace(&git.join("refs/stash"), format!("{last}\n").as_bytes())?;
        }
        Ok(found)
    }

    /// What the repository sets counts, except what makes a git directory what it is, which git does not read in another file.
    fn settings(&self) -> Result<Vec<u8>> {
        let known = self.repository.configuration()?;
        let common = self.repository.common_dir();
        let version = known.get("core.repositoryformatversion").unwrap_or("0");
        let mut text = format!("[core]\n\trepositoryFormatVersion = {version}\n").into_bytes();
        // Where the user has set it, for this repository or for all, that counts.
        if known.get("core.hookspath").is_none() {
            text.extend(b"\thooksPath = ");
            text.extend(quoted(&common.join("hooks")));
            text.push(b'\n');
        }
        text.extend(b"[include]\n\tpath = ");
        text.extend(quoted(&common.join("config")));
        text.extend(b"\n[core]\n\tbare = false\n");
        if known.get("core.worktree").is_some() {
            text.extend(b"\tworktree = ");
            text.extend(quoted(self.worktree));
            text.push(b'\n');
        }
        if let Some(mode) = known.get("core.sharedrepository") {
            text.extend(format!("\tsharedRepository = {mode}\n").bytes());
        }
        text.extend(b"[extensions]\n");
        for (name, value) in known.below("extensions.") {
            text.extend([b"\t", name.as_bytes(), b" = "].concat());
            text.extend(quoted(Path::new(value)));
            text.push(b'\n');
        }
        Ok(text)
    }

    /// Replaces `.git` in one step, by way of a file beside the record where that is the same file system.
    fn write_link(&self, contents: &[u8]) -> Result<()> {
        let link = self.worktree.join(".git");
        let mode = link.symlink_metadata().map(|found| found.permissions());
        let staged = self.place.join("link");
        atomic::replace(&staged, contents)?;
        if let Ok(mode) = mode {
            fs::set_permissions(&staged, mode).map_err(io_error("change", &staged))?;
        }
        let put = || atomic::rename(&staged, &link).or_else(|_| atomic::replace(&link, contents));
        Ok(change_below(self.worktree, put)?)
    }
}

/// Taking over.
impl Home<'_> {
    /// Copies commits and index to where the entry finds them. Returns the refs that the agent has.
    fn bring_over(&self, record: &mut Record) -> Result<References> {
        self.restore_entry(record)?;
        let git = self.git();
        if !git.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Err(self.lost("it was removed"));
        }
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
        Ok(references)
    }

    /// The same, with all that is not in the branch.
    fn take_all(&self, record: &mut Record) -> Result<()> {
        let references = self.bring_over(record)?;
        let git = self.git();
        self.copy_operations(&git, &self.entry)?;
        self.copy_large_files(&git);
        record.left.clear();
        let found_before = std::mem::take(&mut record.found);
        let before = References::read_packed(&self.place.join("refs")).unwrap_or_default();
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
        let mut found: Vec<(String, String)> = objects_of_operations(&git).into_iter().chain(named).collect();
        let mut stashes = stashed(&git);
        // Without its log only the last one is known.
        stashes
            .extend(references.named.get(STASH).map(|last| last.object.clone()).filter(|last| !stashes.contains(last)));
        found.extend(stashes.into_iter().map(|object| (STASH.to_owned(), object)));
        let mut kept = BTreeSet::new();
        for (name, object) in found.into_iter().take(MOST_LOOKED_AT) {
            if let Some(again) = found_before.iter().find(|it| it.commit.as_str() == object) {
                record.found.push(LeftBehind { name, commit: again.commit.clone() });
            } else if record.left.len() < MOST_LEFT
                && let Some(commit) = self.commit_of(&object)
                && !kept.contains(&commit)
                && !self.repository.is_in_any_reference_or_lost(&commit)
                && self.copy_objects(record, &[&commit], None).is_ok()
            {
                durable::objects(self.repository, &commit, record.base.iter())?;
                kept.insert(commit.clone());
                record.left.push(LeftBehind { name, commit });
            }
        }
        Ok(())
    }

    /// Makes what git reads of the entry what it was: what is written there decides which settings our git reads.
    fn restore_entry(&self, record: &Record) -> Result<()> {
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

    fn copy_objects(&self, record: &Record, tips: &[&CommitId], index: Option<&Path>) -> Result<()> {
        let objects = self.git().join("objects");
        let is_partial = self.repository.configuration()?.get("extensions.partialclone").is_some();
        let missing = if is_partial { Missing::Promised } else { Missing::Refused };
        match copied_objects::copy_objects(self.repository, &objects, tips, index, missing) {
            Some(Ok(())) => Ok(()),
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

    /// The commit that an object of the agent's is or leads to.
    fn commit_of(&self, object: &str) -> Option<CommitId> {
        let objects = self.git().join("objects");
        copied_objects::commit_behind(self.repository, &objects, object).unwrap_or_else(|| {
            let git = self.repository.git().variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects);
            let named = git.args(["rev-parse", "--verify", "--quiet", &format!("{object}^{{commit}}")]).line().ok()?;
            CommitId::new(&named).ok()
        })
    }

    /// Moves the branch in the repository, unless something else moved it meanwhile to where the agent's does not lead.
    fn move_branch(&self, record: &mut Record, name: &str, tip: &CommitId) -> Result<()> {
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
    fn copy_operations(&self, from: &Path, to: &Path) -> Result<()> {
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

/// Leading back.
impl Home<'_> {
    /// Makes `.git` lead to the entry if it leads to an agent's git directory; anything else there is not Lanewright's.
    fn lead_back(&self) -> Result<()> {
        let Some(record) = self.record()?.filter(|_| self.leads_here()) else { return Ok(()) };
        self.restore_entry(&record)?;
        self.write_link(record.link.as_bytes())?;
        let modules = self.entry.join("modules");
        // Else the slot would not be given to another lane.
        let _ = fs::remove_dir(&modules);
        Ok(())
    }
}

/// The file of an entry that says which record is of it.
const TOKEN: &str = "lanewright-private";

/// Below it are commits of agents that no branch has and whose worktrees were removed.
const RESCUED: &str = "refs/lanewright/rescued";

/// The name of what was stashed.
const STASH: &str = "refs/stash";

/// How much besides its branch is kept of an attempt at most.
const MOST_LEFT: usize = 50;

/// How many refs of an agent's own are looked at for that.
const MOST_LOOKED_AT: usize = 500;

/// How many refs are read at most.
const MOST_REFERENCES: usize = 200_000;

/// The largest file, in bytes, that is copied of an operation in progress.
const LARGEST_FILE: u64 = 1 << 20;

/// How many files are copied of an operation in progress at most.
const MOST_FILES: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reference {
    object: String,
    /// What a tag leads to, as git noted it.
    peeled: Option<String>,
}

/// The refs in a git directory, by their full names.
#[derive(Debug, Default)]
struct References {
    named: BTreeMap<String, Reference>,
    /// Those that lead to other refs, with their names.
    symbolic: BTreeMap<String, String>,
}

impl References {
    /// Those in `git` without those that begin with one of `without`.
    fn of(git: &Path, without: &[&str]) -> Result<Self> {
        let mut this = Self { named: Self::read_packed(&git.join("packed-refs"))?, symbolic: BTreeMap::new() };
        this.read_loose(git, "refs")?;
        let is_left_out = |name: &str| without.iter().any(|prefix| name == *prefix || name.starts_with(prefix));
        this.named.retain(|name, _| !is_left_out(name));
        this.symbolic.retain(|name, _| !is_left_out(name));
        Ok(this)
    }

    fn read_packed(file: &Path) -> Result<BTreeMap<String, Reference>> {
        let text = regular_file::read_if_there(file)?.unwrap_or_default();
        let mut found: BTreeMap<String, Reference> = BTreeMap::new();
        let mut last: Option<String> = None;
        for line in String::from_utf8_lossy(&text).lines().take(MOST_REFERENCES) {
            if let Some(peeled) = line.strip_prefix('^') {
                if let Some(reference) = last.as_ref().and_then(|name| found.get_mut(name)) {
                    reference.peeled = Some(peeled.to_owned());
                }
            } else if let Some((object, name)) = line.split_once(' ').filter(|(object, _)| is_object_name(object)) {
                found.insert(name.to_owned(), Reference { object: object.to_owned(), peeled: None });
                last = Some(name.to_owned());
            }
        }
        Ok(found)
    }

    fn read_loose(&mut self, git: &Path, name: &str) -> Result<()> {
        for (path, kind) in directory::entries_with_kinds(&git.join(name))? {
            let Some(part) = path.file_name().and_then(|part| part.to_str()) else { continue };
            let name = format!("{name}/{part}");
            if kind.is_dir() {
                self.read_loose(git, &name)?;
            } else if self.named.len() < MOST_REFERENCES
                && !name.ends_with(".lock")
                && let Some(text) = read_small(&path)
            {
                let line = text.lines().next().unwrap_or_default();
                if let Some(target) = line.strip_prefix("ref: ") {
                    self.named.remove(&name);
                    self.symbolic.insert(name, target.to_owned());
                } else if is_object_name(line) {
                    self.named.insert(name, Reference { object: line.to_owned(), peeled: None });
                }
            }
        }
        Ok(())
    }

    /// Whether a ref can have that name beside these.
    fn may_have(&self, name: &str) -> bool {
        let is_in_the_way = |known: &String| {
            let is_below = |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
            known == name || is_below(known, name) || is_below(name, known)
        };
        !self.named.keys().chain(self.symbolic.keys()).any(is_in_the_way)
    }

    /// As a `packed-refs`.
    fn packed(&self) -> String {
        let mut text = "# pack-refs with: sorted \n".to_owned();
        for (name, reference) in &self.named {
            text.extend([&reference.object, " ", name, "\n"]);
            if let Some(peeled) = &reference.peeled {
                text.extend(["^", peeled, "\n"]);
            }
        }
        text
    }
}

fn is_object_name(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn is_null(commit: &CommitId) -> bool {
    commit.as_str().bytes().all(|digit| digit == b'0')
}

/// What a small file of an agent's holds; `None`: there is none, or it is no such file.
fn read_small(path: &Path) -> Option<String> {
    regular_file::read_text_with(path, Links::Refuse, LARGEST_FILE).ok()
}

/// The line in `HEAD`.
fn head_in(git: &Path) -> Option<String> {
    let text = read_small(&git.join("HEAD"))?;
    Some(text.lines().next()?.to_owned()).filter(|line| line.starts_with("ref: ") || is_object_name(line))
}

/// The states that were stashed, the oldest first.
fn stashed(git: &Path) -> Vec<String> {
    let log = read_small(&git.join("logs/refs/stash")).unwrap_or_default();
    let names = log.lines().filter_map(|line| line.split(' ').nth(1)).filter(|name| is_object_name(name));
    names.map(str::to_owned).collect()
}

/// The names of the files that an index shares with others (`git update-index --split-index`).
fn shared_indexes(git: &Path) -> Result<Vec<String>> {
    let names = directory::entries(git)?.into_iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    Ok(names.filter(|name| name.starts_with("sharedindex.")).collect())
}

/// Copies a file with its time: git compares the times of files with that of the index. None there is as good.
fn copy_with_time(from: &Path, to: &Path) -> Result<()> {
    let copy = || -> std::io::Result<()> {
        let found = fs::symlink_metadata(from)?;
        let staged = directory::with_suffix(to, ".new");
        regular_file::copy(from, &staged)?;
        set_modified(&staged, Links::Refuse, found.modified()?)?;
        Ok(atomic::rename(&staged, to)?)
    };
    if_there(copy()).map(drop).map_err(io_error("copy", from))
}

/// What the operation in progress in `git` names by its object alone, such as the other side of a merge or what a rebase put
/// aside, each with the file or directory that does; what was put aside is a stash.
fn objects_of_operations(git: &Path) -> Vec<(String, String)> {
    let mut found = BTreeSet::new();
    for name in OPERATION_FILES {
        let place = git.join(name);
        let inner = directory::entries(&place).unwrap_or_default();
        for file in inner.into_iter().take(MOST_FILES).chain([place]) {
            let is_stash = file.file_name().is_some_and(|name| name == "autostash" || name == "MERGE_AUTOSTASH");
            let name = if is_stash { STASH } else { name };
            let text = read_small(&file).unwrap_or_default();
            let words = text.split(|character: char| !character.is_ascii_hexdigit());
            let objects =
                words.filter(|word| [40, 64].contains(&word.len()) && word.bytes().any(|digit| digit != b'0'));
            found.extend(objects.map(|object| (name.to_owned(), object.to_owned())));
        }
    }
    found.into_iter().collect()
}

/// Copies a directory of small files; links are left out.
fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    atomic::remove_all(to).map_err(io_error("remove", to))?;
    create_directory_unsynced(to)?;
    for (path, kind) in directory::entries_with_kinds(from)?.into_iter().take(MOST_FILES) {
        let target = to.join(path.file_name().unwrap_or_default());
        if kind.is_dir() {
            copy_directory(&path, &target)?;
        } else if kind.is_file() && path.metadata().is_ok_and(|found| found.len() <= LARGEST_FILE) {
            copy_with_time(&path, &target)?;
        }
    }
    Ok(())
}

/// A path as a value in a file of git's settings.
fn quoted(path: &Path) -> Vec<u8> {
    let escaped = path.as_os_str().as_encoded_bytes().iter().flat_map(|&byte| match byte {
        b'"' => b"\\\"".to_vec(),
        b'\\' => b"\\\\".to_vec(),
        b'\n' => b"\\n".to_vec(),
        byte => vec![byte],
    });
    [b"\"".to_vec(), escaped.collect(), b"\"".to_vec()].concat()
}
