//! Finds what a run left, and decides what may be removed. Nothing is changed here.

use super::traces::{LaneTraces, Traces};
use super::{Leftover, Thing, Verdict};
use crate::git::{self, GitError, HeldSlot, Pool, Repository};
use crate::model::CommitId;
use crate::store::{LaneDirectory, RunDirectory};

#[derive(Debug)]
pub struct Surroundings<'a> {
    pub repository: &'a Repository,
    pub pool: &'a Pool,
    pub directory: &'a RunDirectory,
    /// Whether work that is not merged goes too.
    pub force: bool,
    /// Whether the run's log and directory go too.
    pub logs: bool,
}

/// Everything that the run left, in the order in which it can be removed.
pub fn survey(around: &Surroundings<'_>, run: &Traces) -> Result<Vec<Leftover>, GitError> {
    let base = around.repository.branch_commit(&run.started.base_branch)?;
    let judge = Judge { around, run, base };
    let mut found = judge.worktrees()?;
    for (id, lane) in &run.lanes {
        found.extend(judge.branches(lane)?);
        found.extend(judge.snapshots(lane)?);
        let path = LaneDirectory::new(around.pool.root(), &run.started.run_id, id).path();
        let holds = |leftover: &Leftover| {
            !leftover.goes() && matches!(&leftover.thing, Thing::Held(slot) if slot.holder.lane.as_ref() == Some(id))
        };
        if std::fs::symlink_metadata(&path).is_ok() {
            let verdict = match found.iter().any(holds) {
                true => Verdict::Keep("leads to a worktree that is kept".to_owned()),
                false => Verdict::Remove("the run is finished".to_owned()),
            };
            found.push(Leftover { thing: Thing::LaneDirectory(id.clone(), path), verdict });
        }
    }
    if !around.logs {
        return Ok(found);
    }
    // A worktree of the pool that another run uses is no reason to keep this run's log.
    let names = |leftover: &Leftover| !leftover.goes() && !matches!(leftover.thing, Thing::Free(_));
    let verdict = match found.iter().any(names) {
        true => Verdict::Keep("tells what is kept".to_owned()),
        false => Verdict::Remove("the run is finished".to_owned()),
    };
    found.push(Leftover { thing: Thing::Log(around.directory.log()), verdict });
    Ok(found)
}

struct Judge<'a> {
    around: &'a Surroundings<'a>,
    run: &'a Traces,
    /// The integration branch; `None`: it is gone, so nothing counts as merged.
    base: Option<CommitId>,
}

impl Judge<'_> {
    fn worktrees(&self) -> Result<Vec<Leftover>, GitError> {
        let mut found = Vec::new();
        for slot in self.around.pool.held_by(&self.run.started.run_id)? {
            let verdict = self.held(&slot)?;
            found.push(Leftover { thing: Thing::Held(slot), verdict });
        }
        for (path, blocker) in self.around.pool.unheld()? {
            let verdict = blocker.map_or_else(|| Verdict::Remove("it is not in use".to_owned()), Verdict::Keep);
            found.push(Leftover { thing: Thing::Free(path), verdict });
        }
        Ok(found)
    }

    fn held(&self, slot: &HeldSlot) -> Result<Verdict, GitError> {
        if !slot.provisioned {
            return Ok(Verdict::Remove("holds no work".to_owned()));
        }
        let paths = git::uncommitted_paths(&slot.path)?;
        if !paths.is_empty() {
            return Ok(self.unless_forced(format!("holds uncommitted work: {}", paths.join(", "))));
        }
        self.merged_or_kept(&git::head_of(&slot.path)?.commit)
    }

    fn branches(&self, lane: &LaneTraces) -> Result<Vec<Leftover>, GitError> {
        let mut found = Vec::new();
        let held = self.around.pool.held_by(&self.run.started.run_id)?;
        for name in &lane.branches {
            let Some(at) = self.around.repository.branch_commit(name)? else { continue };
            let places = self.around.repository.all_checked_out(name)?;
            let elsewhere = places.iter().find(|place| held.iter().all(|slot| slot.path != **place));
            let verdict = match elsewhere {
                Some(place) => Verdict::Keep(format!("checked out in {}", place.display())),
                None => self.merged_or_kept(&at)?,
            };
            let verdict = match (&lane.pull_request, verdict) {
                (Some(url), Verdict::Keep(reason)) => Verdict::Keep(format!("{reason}; its pull request: {url}")),
                (_, verdict) => verdict,
            };
            found.push(Leftover { thing: Thing::Branch(name.clone(), at), verdict });
        }
        Ok(found)
    }

    fn snapshots(&self, lane: &LaneTraces) -> Result<Vec<Leftover>, GitError> {
        let merged = match &lane.landed {
            Some(landed) => self.is_merged(landed)?,
            None => false,
        };
        let mut found = Vec::new();
        let all = lane.snapshots.iter().map(|it| (it, merged)).chain(lane.rolled_back.iter().map(|it| (it, false)));
        for ((name, expected), merged) in all {
            let Some(at) = self.around.repository.commit_at(name)? else { continue };
            let verdict = match merged {
                _ if at != *expected => Verdict::Keep("it was moved by another program".to_owned()),
                true => Verdict::Remove("its lane is merged".to_owned()),
                false if lane.rolled_back.contains_key(name) => {
                    self.unless_forced("holds work that was rolled back".to_owned())
                }
                false => self.unless_forced("holds work that is not merged".to_owned()),
            };
            found.push(Leftover { thing: Thing::Snapshot(name.clone(), at), verdict });
        }
        Ok(found)
    }

    fn merged_or_kept(&self, commit: &CommitId) -> Result<Verdict, GitError> {
        let base = &self.run.started.base_branch;
        Ok(match self.is_merged(commit)? {
            true => Verdict::Remove(format!("merged into {base}")),
            false => self.unless_forced(format!("holds work that is not in {base}")),
        })
    }

    fn is_merged(&self, commit: &CommitId) -> Result<bool, GitError> {
        match &self.base {
            Some(base) => self.around.repository.is_ancestor(commit, base),
            None => Ok(false),
        }
    }

    fn unless_forced(&self, reason: String) -> Verdict {
        if self.around.force { Verdict::Remove(format!("{reason} (--force)")) } else { Verdict::Keep(reason) }
    }
}
