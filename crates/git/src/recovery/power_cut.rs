//! What a power cut may leave of worktrees: git syncs neither the files that it checks out nor its records of worktrees.
//! Called when a run is resumed after its machine was started again.
//!
//! A shutdown looks the same, so a file is touched only where its times say that it was written when the machine stopped,
//! and where nothing of it is left.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lanewright_files::directory::free_name;
use lanewright_files::{atomic, directory, regular_file};
use lanewright_model::event::Worktree;
use lanewright_model::{CommitId, RunId, Timestamp};

use crate::command::{Git, Result, read_line};
use crate::history::{SNAPSHOTS, detach_head, move_branch};
use crate::recovery::branches::names_something;
use crate::recovery::missing_worktrees::Lost;
use crate::repo::{Guarded, Repository, branch_reference, commit_id, registered_place};
use crate::worktree::{ASIDE, Claim, Holder, Pool, Progress, RELEASED, forget, is_untouched};

/// When the machine may have stopped: about when the run log ends. What was written earlier had reached the disk; what was
/// written later was written by others.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    last_record: Timestamp,
}

impl Outage {
    /// Kernels write everything within half a minute, and a run at work records something as often.
    const MARGIN: Duration = Duration::from_secs(60);

    pub fn after(last_record: Timestamp) -> Self {
        Self { last_record }
    }

    /// Whether something that was written at `at` may have been lost.
    pub fn concerns(self, at: Timestamp) -> bool {
        at.plus(Self::MARGIN) >= self.last_record && at <= self.last_record.plus(Self::MARGIN)
    }

    /// Whether `place` was changed after it.
    fn is_before(self, place: &Path) -> bool {
        changed_at(place).is_none_or(|at| at > self.last_record.plus(Self::MARGIN))
    }
}

/// When the file was changed or, if it is gone, the directory in which it was.
fn changed_at(file: &Path) -> Option<Timestamp> {
    let metadata = file.ancestors().find_map(|place| place.symlink_metadata().ok())?;
    let since: SystemTime = metadata.modified().ok()?;
    Some(Timestamp::from_unix_millis(since.duration_since(UNIX_EPOCH).ok()?.as_millis().try_into().ok()?))
}

/// What is found of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterBoot {
    /// Git can read it, and it is on its branch.
    Sound,
    /// Git cannot; it was moved there.
    SetAside(PathBuf),
    /// It is missing.
    Missing,
}

impl Pool {
    /// Repairs git's records of worktrees: those without the path of a worktree are removed, as `git worktree prune` does,
    /// because git adds no worktree beside them. Claims of `run` on other slots than `held` are removed, and so are those
    /// that cannot be read: no work is done in a slot before the run log says who holds it. Slots without a holder leave
    /// `branches`, those of the run; those that git cannot read are moved aside.
    ///
    /// # Errors
    /// A record, a claim or a slot cannot be read, moved or removed.
    pub fn recover_unheld(
        &self,
        run: &RunId,
        held: &[u32],
        branches: &[String],
        (outage, at): (Outage, Timestamp),
    ) -> Result<()> {
        let repository = self.repository();
        let is_sound = |path: &Path| repository.own_entry(path).is_some_and(|entry| is_readable(path, &entry));
        repository.holding(Guarded::Pool, |_| {
            for number in self.numbers()?.into_iter().filter(|number| !held.contains(number)) {
                let file = self.claim_file(number);
                let is_stale = match Claim::read(&file) {
                    Ok(claim) => claim.is_some_and(|claim| self.owns(&claim) && claim.holder.run == *run),
                    Err(_) => !outage.is_before(&file),
                };
                if is_stale {
                    self.remove_claim(number)?;
                }
            }
            repository.holding(Guarded::Admin, |lock| {
                for entry in directory::directories(&repository.entries_directory())? {
                    let is_blank =
                        |name| read_line(&entry.join(name)).is_none_or(|line| line.bytes().all(|byte| byte == 0));
                    let Some(path) = registered_place(&entry).filter(|path| path.parent() == Some(&self.slots()))
                    else {
                        // A git that adds a worktree locks its record first.
                        if is_blank("gitdir") && is_blank("locked") && !outage.is_before(&entry) {
                            forget(repository, &entry)?;
                        }
                        continue;
                    };
                    remove_dead_locks(&entry, outage)?;
                    let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
                    let claim = number.map(|number| Claim::read(&self.claim_file(number)));
                    let is_unheld = matches!(claim, Some(Ok(None)));
                    let locked = entry.join("locked");
                    if is_unheld && !outage.is_before(&locked) {
                        atomic::remove(&locked)?;
                    }
                    if is_unheld && is_sound(&path) {
                        let head = repository.head_at(&path)?;
                        let was_left = head.branch.is_some_and(|branch| branches.contains(&branch));
                        if was_left && !outage.is_before(&entry.join("HEAD")) {
                            detach_head(repository, &path, &head.commit, RELEASED, lock)?;
                        }
                        repository.restore_torn_files(&path, outage)?;
                    } else if is_unheld || is_blank("commondir") {
                        if is_unheld && path.exists() {
                            atomic::rename(&path, &free_name(&path, &format!("{ASIDE}{}", at.compact())))?;
                        }
                        forget(repository, &entry)?;
                    }
                }
                Ok(())
            })
        })
    }

    /// Moves the worktree of `holder` aside if git cannot read it, or if its head or its claim are older than the record
    /// that it was opened.
    ///
    /// # Errors
    /// [`GitError::NotOurs`](crate::GitError::NotOurs) if another holder claims the slot; it cannot be moved.
    pub fn after_boot(&self, holder: &Holder, worktree: &Worktree, at: Timestamp) -> Result<AfterBoot> {
        let file = self.claim_file(worktree.slot);
        let claim = Claim::read(&file);
        let is_half_checked_out =
            matches!(&claim, Ok(Some(claim)) if matches!(claim.progress, Progress::Started { .. }));
        // According to the run log the slot is held: an earlier claim may have come back.
        match &claim {
            Ok(Some(claim)) if claim.holder == *holder && claim.progress != Progress::Claimed => {}
            Ok(Some(claim)) if claim.holder.run == holder.run => self.opened_claim(holder, worktree).replace(&file)?,
            _ => self.reclaim(holder, worktree)?,
        }
        self.link(holder, &worktree.path)?;
        let is_sound = || self.repository().own_entry(&worktree.path).is_some_and(|entry| is_sound(worktree, &entry));
        if !is_half_checked_out && is_sound() {
            return Ok(AfterBoot::Sound);
        }
        let lost = self.move_aside(holder, &worktree.path, at)?;
        Ok(lost.and_then(|Lost { aside, .. }| aside).map_or(AfterBoot::Missing, AfterBoot::SetAside))
    }
}

/// Removes the locks of gits that worked in a worktree when the machine stopped.
fn remove_dead_locks(entry: &Path, outage: Outage) -> Result<()> {
    let mut locks = directory::entries(entry)?;
    // The kernel releases Lanewright's own.
    locks.retain(|path| path.extension().is_some_and(|it| it == "lock") && !path.ends_with("lanewright.lock"));
    Ok(locks.iter().filter(|lock| !outage.is_before(lock)).try_for_each(|path| atomic::remove(path))?)
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

/// Restores the files, in every checkout of `branch`, that `moves` of it changed, made or about to be made when the machine
/// stopped, and that are missing, empty, all zeros, or as before or after such a move although the branch is not there.
/// Files that a move deleted, or that one adds to which the branch did not come, are removed. A move without a start began
/// at the first parent of its end. Returns what was restored or removed where.
///
/// # Errors
/// Git cannot compare the commits, or a file cannot be removed or written.
pub fn restore_published_files(
    repository: &Repository,
    branch: &str,
    moves: &[(Option<CommitId>, CommitId)],
    outage: Outage,
) -> Result<Vec<(PathBuf, Vec<String>)>> {
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(Vec::new()) };
    let (mut known, mut changed) = (Vec::new(), HashSet::new());
    for (from, to) in moves {
        if !repository.has_commit(to)? {
            continue;
        }
        let parent = || commit_id(repository.git().args(["rev-parse", &format!("{to}^")]).line()?.as_bytes());
        let from = from.clone().map_or_else(parent, Ok)?;
        changed.extend(repository.changed_paths(&from, to)?);
        known.push((from, to.clone()));
    }
    let checkouts = if changed.is_empty() { Vec::new() } else { repository.all_checked_out(branch)? };
    let restore = |checkout: PathBuf| {
        let staged = Git::new(&checkout).reading_only().args(["diff", "--cached", "--name-only", "-z"]).paths()?;
        let (mut torn, mut surplus) = (Vec::new(), Vec::new());
        for path in changed.iter().filter(|path| is_below_directories(&checkout, path)) {
            let file = checkout.join(path);
            if outage.is_before(&file) {
                continue;
            }
            let expected = repository.object_at(&tip, path)?;
            // In a checkout that the branch left behind all of it looks staged.
            let is_staged = staged.contains(path);
            let is_torn = match is_lost(&file) {
                true => !is_staged || file.exists(),
                false if is_staged => false,
                false => {
                    let now = Git::new(&checkout).reading_only().args(["hash-object", "--", path]).line_if_any()?;
                    now != expected && repository.is_in_any_move(&known, path, now.as_ref())?
                }
            };
            let was_removed = || -> Result<bool> {
                for (from, to) in &known {
                    let is_deleted = repository.object_at(to, path)?.is_none();
                    if is_deleted || (*from == tip && *to != tip) {
                        return Ok(true);
                    }
                }
                Ok(false)
            };
            match expected {
                Some(_) if is_torn => torn.push(path.clone()),
                None if is_torn && file.exists() && was_removed()? => surplus.push(path.clone()),
                _ => {}
            }
        }
        for path in &surplus {
            atomic::remove(&checkout.join(path))?;
        }
        let restored = repository.rewrite(&checkout, torn)?;
        Ok((checkout, [restored, surplus].concat()))
    };
    repository.holding(Guarded::Publish, |_| checkouts.into_iter().map(restore).collect())
}

/// Whether the directories of `path` are in the worktree, not behind a link, and nothing else is in their place.
fn is_below_directories(worktree: &Path, path: &str) -> bool {
    let parents = Path::new(path).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    let is_real = |parent: &Path| worktree.join(parent).symlink_metadata().map_or(true, |found| found.is_dir());
    let is_file = worktree.join(path).symlink_metadata().map_or(true, |found| found.is_file());
    is_file && parents.into_iter().all(is_real)
}

impl Repository {
    /// Removes the lock of `branch`, one of Lanewright's, that was held when the machine stopped.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_dead_branch_lock(&self, branch: &str, outage: Outage) -> Result<()> {
        let lock = self.common_dir().join(format!("{}.lock", branch_reference(branch)));
        if lock.exists() && !outage.is_before(&lock) {
            atomic::remove(&lock)?;
        }
        Ok(())
    }

    /// Removes what the outage left of those of Lanewright's refs that name nothing any more, `branches` and snapshots: git
    /// changes no ref that it cannot read.
    ///
    /// # Errors
    /// A ref cannot be listed or removed.
    pub fn remove_torn_references(&self, branches: &[String]) -> Result<()> {
        let mut files: Vec<PathBuf> =
            branches.iter().map(|branch| self.common_dir().join(branch_reference(branch))).collect();
        let mut places: Vec<PathBuf> = SNAPSHOTS.iter().map(|name| self.common_dir().join(name)).collect();
        while let Some(place) = places.pop() {
            let (inner, here) = directory::entries(&place)?.into_iter().partition(|path| path.is_dir());
            places.extend::<Vec<PathBuf>>(inner);
            files.extend::<Vec<PathBuf>>(here);
        }
        let is_torn = |file: &&PathBuf| regular_file::read(file).is_ok_and(|held| !names_something(&held));
        Ok(files.iter().filter(is_torn).try_for_each(|file| atomic::remove(file))?)
    }

    /// Whether the ref of `branch` is there and was not set after the outage.
    pub fn is_of_before(&self, branch: &str, outage: Outage) -> bool {
        let file = self.common_dir().join(branch_reference(branch));
        file.exists() && !outage.is_before(&file)
    }

    /// Moves `branch`, one of Lanewright's, to the `recorded` head if the outage took it back to one of the `earlier` ones or,
    /// with `make`, took it away. Where it is at any other commit, the user or an agent moved it. Returns whether it did.
    ///
    /// # Errors
    /// Git cannot read the branch or set it.
    pub fn recover_branch(
        &self,
        branch: &str,
        (recorded, earlier): (&CommitId, &HashSet<CommitId>),
        make: bool,
        outage: Outage,
    ) -> Result<bool> {
        let tip = self.branch_commit(branch).ok().flatten();
        let is_current = match &tip {
            Some(tip) => tip == recorded || !earlier.contains(tip) || !self.is_of_before(branch, outage),
            None => !make,
        };
        if is_current || !self.has_commit(recorded)? {
            return Ok(false);
        }
        match tip {
            Some(tip) => move_branch(self, branch, &tip, recorded)?,
            None => self.make_branch(branch, recorded)?,
        }
        Ok(true)
    }

    /// Removes loose objects that are empty or all zeros: git writes no object whose file exists.
    ///
    /// # Errors
    /// A directory of objects cannot be listed, or an object cannot be removed.
    pub fn remove_torn_objects(&self) -> Result<()> {
        for place in directory::directories(&self.common_dir().join("objects"))? {
            let is_fan_out = place.file_name().is_some_and(|name| name.len() == 2);
            for object in if is_fan_out { directory::entries(&place)? } else { Vec::new() } {
                // The first byte of a deflated object is never zero.
                if regular_file::open(&object).is_ok_and(|mut file| first_byte(&mut file) == Some(0)) {
                    atomic::remove(&object)?;
                }
            }
        }
        Ok(())
    }

    /// Restores the files of a worktree that git has in its index and that were lost in the outage: missing, empty, or all
    /// zeros. Returns which.
    ///
    /// # Errors
    /// Git cannot list them, or a file cannot be written.
    pub fn restore_torn_files(&self, worktree: &Path, outage: Outage) -> Result<Vec<String>> {
        let listed = Git::new(worktree).reading_only().args(["ls-files", "-z"]).paths()?;
        let is_torn = |path: &String| {
            let file = worktree.join(path);
            is_lost(&file)
                && changed_at(&file).is_some_and(|at| outage.concerns(at))
                && is_below_directories(worktree, path)
        };
        self.rewrite(worktree, listed.into_iter().filter(is_torn).collect())
    }

    /// Writes `paths` as the index has them. Returns those that it has, and that are not empty there.
    fn rewrite(&self, worktree: &Path, mut paths: Vec<String>) -> Result<Vec<String>> {
        if paths.is_empty() {
            return Ok(paths);
        }
        let objects = staged_objects(worktree)?;
        // Where the branch left the checkout behind, the index does not have new files; they are in its way.
        let (known, new): (Vec<_>, Vec<_>) = paths.drain(..).partition(|path| objects.contains_key(path));
        for file in new.iter().map(|path| worktree.join(path)).filter(|file| file.exists() && is_lost(file)) {
            atomic::remove(&file)?;
        }
        paths = known.into_iter().filter(|path| objects[path] != EMPTY_BLOB).collect();
        for path in &paths {
            // Git leaves a file whose size and times are those of the index.
            atomic::remove(&worktree.join(path))?;
        }
        for some in paths.chunks(PATHS_AT_ONCE) {
            let some = some.iter().map(String::as_str);
            Git::new(worktree).args(["checkout-index", "--force", "--quiet", "--"]).args(some).run()?;
        }
        Ok(paths)
    }

    /// The object of `path` in `commit`.
    fn object_at(&self, commit: &CommitId, path: &str) -> Result<Option<String>> {
        let name = format!("{commit}:{path}");
        Ok(self.git().args(["rev-parse", "--verify", "--quiet", &name]).line_if_any()?)
    }

    /// Whether `path` was `object` before or after one of the moves.
    fn is_in_any_move(&self, moves: &[(CommitId, CommitId)], path: &str, object: Option<&String>) -> Result<bool> {
        for commit in moves.iter().flat_map(|(from, to)| [from, to]) {
            if object.is_some() && self.object_at(commit, path)?.as_ref() == object {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The object of a file without contents, in repositories of SHA-1.
const EMPTY_BLOB: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// How many paths one command gets.
const PATHS_AT_ONCE: usize = 200;

/// The objects of the regular files in the index, without those that a sparse checkout leaves out.
fn staged_objects(worktree: &Path) -> Result<HashMap<String, String>> {
    let listed = Git::new(worktree).reading_only().args(["ls-files", "-t", "--stage", "-z"]).paths()?;
    let objects = listed.iter().filter_map(|line| {
        let (entry, path) = line.split_once('\t')?;
        let object = entry.strip_prefix("H 100")?.split(' ').nth(1)?;
        // A name that is no text is not the one on the disk.
        (!path.contains('\u{fffd}')).then(|| (path.to_owned(), object.to_owned()))
    });
    Ok(objects.collect())
}

/// Whether the file is missing, empty or all zeros.
fn is_lost(file: &Path) -> bool {
    let Ok(metadata) = file.symlink_metadata() else { return true };
    let is_zero = || regular_file::open(file).is_ok_and(|mut open| first_byte(&mut open) == Some(0));
    let all_zero = || regular_file::read(file).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0));
    metadata.is_file() && (metadata.len() == 0 || (is_zero() && all_zero()))
}

/// The first byte of a file; zero: of an empty one.
fn first_byte(file: &mut fs::File) -> Option<u8> {
    let mut first = [0];
    file.read(&mut first).ok().map(|_| first[0])
}
