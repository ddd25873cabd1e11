//! What a machine that was started again may have left of worktrees: git syncs neither the files that it checks out nor
//! its records of worktrees.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use lanewright_files::directory::free_name;
use lanewright_files::{atomic, directory, regular_file};
use lanewright_model::event::Worktree;
use lanewright_model::{CommitId, RunId, Timestamp};

use crate::command::{Git, Result};
use crate::recovery::missing_worktrees::Lost;
use crate::repo::{Guarded, Repository, read_line, registered_place};
use crate::worktree::{ASIDE, Claim, Holder, Pool, Progress, clear_half_made, forget, is_untouched};

/// What a machine that was started again left of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterBoot {
    /// Git can read it, and it is on its branch.
    Sound,
    /// What was in its place is there now.
    SetAside(PathBuf),
    /// It is not there, or not a worktree.
    Gone,
}

impl Pool {
    /// Removes git's records of worktrees that lost the place that they are for, as `git worktree prune` does: git adds no
    /// worktree beside them. Claims of `run` on other slots than `held` that are torn are dropped. Slots without a holder that git cannot
    /// read are moved aside; of the others the files are restored.
    pub fn recover_unheld(&self, run: &RunId, held: &[u32], at: Timestamp) -> Result<()> {
        let repository = self.repository();
        let is_sound = |path: &Path| repository.own_entry(path).is_some_and(|entry| is_readable(path, &entry));
        for (number, claim) in self.own_claims()? {
            if claim.holder.run == *run && !held.contains(&number) && !is_sound(&self.slot(number)) {
                repository.holding(Guarded::Pool, |_| self.remove_claim(number))?;
            }
        }
        repository.holding(Guarded::Admin, |_| {
            for entry in directory::directories(&repository.entries_directory())? {
                let is_blank =
                    |name| read_line(&entry.join(name)).is_none_or(|line| line.bytes().all(|byte| byte == 0));
                let place = registered_place(&entry).filter(|place| place.parent() == Some(&self.slots()));
                let is_slot = place.is_some();
                let is_torn = match place {
                    Some(place) => is_blank("commondir") || (!place.exists() && !self.is_claimed(&place)),
                    // Git locks what it is making.
                    None => is_blank("gitdir") && is_blank("locked"),
                };
                if is_torn {
                    forget(repository, &entry)?;
                } else if is_slot {
                    remove_dead_locks(&entry)?;
                }
            }
            Ok(())
        })?;
        for number in self.numbers()? {
            let (path, claim) = (self.slot(number), Claim::read(&self.claim_file(number)));
            if matches!(claim, Ok(Some(_))) || !path.is_dir() {
                continue;
            }
            if is_sound(&path) {
                repository.restore_torn_files(&path, &[], &HashSet::new())?;
            } else {
                repository.holding(Guarded::Admin, |_| {
                    atomic::rename(&path, &free_name(&path, &format!("{ASIDE}{}", at.compact())))?;
                    clear_half_made(repository, &path)
                })?;
            }
        }
        Ok(())
    }

    fn is_claimed(&self, slot: &Path) -> bool {
        let number = slot.file_name().and_then(|name| name.to_str()?.parse().ok());
        number.is_some_and(|number| self.claim_file(number).exists())
    }

    /// Makes room in the slot of `holder` where git cannot read the worktree, or where its head or its claim are those of
    /// before it was opened: what is there is moved aside.
    pub fn after_boot(&self, holder: &Holder, worktree: &Worktree, at: Timestamp) -> Result<AfterBoot> {
        let claim = Claim::read(&self.claim_file(worktree.slot));
        let is_half_checked_out =
            matches!(&claim, Ok(Some(claim)) if matches!(claim.progress, Progress::Started { .. }));
        if !matches!(&claim, Ok(Some(claim)) if claim.holder == *holder) {
            // According to the run log the slot is held.
            self.reclaim(holder, worktree)?;
        }
        let is_sound = || self.repository().own_entry(&worktree.path).is_some_and(|entry| is_sound(worktree, &entry));
        if !is_half_checked_out && is_sound() {
            return Ok(AfterBoot::Sound);
        }
        let lost = self.move_aside(holder, &worktree.path, at)?;
        Ok(lost.and_then(|Lost { aside, .. }| aside).map_or(AfterBoot::Gone, AfterBoot::SetAside))
    }
}

/// Removes the locks of gits that were at work in a worktree when the machine stopped; our own is a lock of the kernel's.
fn remove_dead_locks(entry: &Path) -> Result<()> {
    let mut locks = directory::entries(entry)?;
    locks.retain(|path| path.extension().is_some_and(|it| it == "lock") && !path.ends_with("lanewright.lock"));
    Ok(locks.iter().try_for_each(|path| atomic::remove(path))?)
}

/// Whether git can read the head and the index of a worktree, and has an index if it was checked out.
fn is_readable(worktree: &Path, entry: &Path) -> bool {
    let read = Git::new(worktree).reading_only().args(["diff-index", "--cached", "--quiet", "HEAD"]).attempt();
    let has_index = entry.join("index").exists() || is_untouched(worktree, entry);
    has_index && read.is_ok_and(|output| matches!(output.status.code(), Some(0 | 1)))
}

/// Whether git can read the worktree, and has its branch checked out.
fn is_sound(worktree: &Worktree, entry: &Path) -> bool {
    let git = Git::new(&worktree.path).reading_only().args(["symbolic-ref", "--quiet", "HEAD"]);
    (worktree.branch.is_empty() || git.line_if_any().is_ok_and(|head| head.is_some()))
        && is_readable(&worktree.path, entry)
}

/// Restores the files, of every checkout of `branch`, that a power cut left empty, gone, or as one of `commits` has them, the
/// places where the branch was or was about to be moved to. Only files that changed between these are looked at; of those
/// that the branch does not have nothing stays. Returns what was restored where.
pub fn restore_published_files(
    repository: &Repository,
    branch: &str,
    commits: &[CommitId],
) -> Result<Vec<(PathBuf, Vec<String>)>> {
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(Vec::new()) };
    let (mut known, mut changed) = (Vec::new(), HashSet::new());
    for commit in commits {
        if repository.has_commit(commit)? {
            changed.extend(repository.changed_paths(commit, &tip)?);
            known.push(commit.clone());
        }
    }
    let checkouts = if changed.is_empty() { Vec::new() } else { repository.all_checked_out(branch)? };
    let restore = |checkout: PathBuf| {
        let untracked = Git::new(&checkout).reading_only().args(["ls-files", "--others", "-z"]).paths()?;
        for path in untracked.iter().filter(|path| changed.contains(*path)) {
            let file = checkout.join(path);
            if is_torn(&file) || repository.is_as_before(&checkout, path, &known)? {
                atomic::remove(&file)?;
            }
        }
        let restored = repository.restore_torn_files(&checkout, &known, &changed)?;
        Ok((checkout, restored))
    };
    checkouts.into_iter().map(restore).collect()
}

impl Repository {
    /// Removes loose objects that are empty or full of zeros: git writes no object whose file exists.
    pub fn remove_torn_objects(&self) -> Result<()> {
        for place in directory::directories(&self.common_dir().join("objects"))? {
            let is_fan_out = place.file_name().is_some_and(|name| name.len() == 2);
            for object in if is_fan_out { directory::entries(&place)? } else { Vec::new() } {
                // The first byte of a deflated object is never zero.
                let first = regular_file::open(&object).map(|mut file| {
                    let mut first = [0];
                    file.read(&mut first).map(|read| first[..read].to_vec())
                });
                if matches!(first, Ok(Ok(byte)) if byte.iter().all(|byte| *byte == 0)) {
                    atomic::remove(&object)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the files of a worktree again that are empty, full of zeros, gone, or as one of the commits `before` has them,
    /// and that its head has otherwise: a power cut leaves such of what was checked out just before. Of files that are
    /// staged otherwise than the head has them nothing is changed. `among`: the only paths to look at; empty: all.
    pub fn restore_torn_files(
        &self,
        worktree: &Path,
        before: &[CommitId],
        among: &HashSet<String>,
    ) -> Result<Vec<String>> {
        let listed =
            |kind: &[&str]| Git::new(worktree).reading_only().args(["diff", "--name-only", "-z"]).args(kind).paths();
        let staged: HashSet<String> = listed(&["--cached"])?.into_iter().collect();
        let mut torn = Vec::new();
        for path in listed(&[])? {
            let is_wanted = !staged.contains(&path) && (among.is_empty() || among.contains(&path));
            if is_wanted && (is_torn(&worktree.join(&path)) || self.is_as_before(worktree, &path, before)?) {
                torn.push(path);
            }
        }
        if !torn.is_empty() {
            let paths = torn.iter().map(String::as_str);
            Git::new(worktree).args(["checkout-index", "--force", "--quiet", "--"]).args(paths).run()?;
        }
        Ok(torn)
    }

    fn is_as_before(&self, worktree: &Path, path: &str, before: &[CommitId]) -> Result<bool> {
        let object = Git::new(worktree).reading_only().args(["hash-object", "--", path]).line_if_any()?;
        for commit in before {
            let name = format!("{commit}:{path}");
            if object.is_some()
                && object == self.git().args(["rev-parse", "--verify", "--quiet", &name]).line_if_any()?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether nothing of the file is there.
fn is_torn(file: &Path) -> bool {
    match file.symlink_metadata() {
        Ok(metadata) => {
            metadata.is_file() && regular_file::read(file).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0))
        }
        Err(_) => true,
    }
}
