//! Finds what a run left, and decides what may be removed. Nothing is changed here.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_git::{self as git, GitError, HeldSlot, Pool, Repository};
use lanewright_model::{CommitId, LaneId};
use lanewright_store::{LaneDirectory, RunDirectory};
use lanewright_view::history::LaneHistory;

use super::{Item, Leftover, MergedCommits, Verdict, begun_lanes};
use crate::doctor::Expected;

#[derive(Debug)]
pub struct CleanScope<'a> {
    pub repository: &'a Repository,
    pub pool: &'a Pool,
    pub directory: &'a RunDirectory,
    /// What is known to be merged, for what is asked about most commits.
    pub merged: &'a MergedCommits,
    /// Whether work that is not merged goes too.
    pub force: bool,
    /// Whether the run's log and directory go too.
    pub logs: bool,
}

/// Everything that the run left, in the order in which it can be removed.
pub fn scan(around: &CleanScope<'_>, run: &Expected) -> Result<Vec<Leftover>, GitError> {
    let base = around.repository.branch_commit(&run.started.base_branch)?;
    let judge = Judge { around, run, base, held: around.pool.held_by(&run.started.run_id)? };
    let mut found = judge.worktrees()?;
    let kept: BTreeSet<LaneId> = found.iter().filter(|it| !it.goes()).filter_map(lane_of).collect();
    for lane in begun_lanes(run) {
        let id = &lane.id;
        found.extend(judge.branches(lane)?);
        found.extend(judge.snapshots(lane)?);
        let path = LaneDirectory::new(around.pool.root(), &run.started.run_id, id).path();
        if std::fs::symlink_metadata(&path).is_ok() {
            let verdict = match kept.contains(id) {
                true => Verdict::Keep("leads to a worktree that is kept".to_owned()),
                false => Verdict::Remove("the run is finished".to_owned()),
            };
            found.push(Leftover { item: Item::LaneDirectory(id.clone(), path), verdict });
        }
    }
    if !around.logs {
        return Ok(found);
    }
    // A worktree of the pool that another run uses is no reason to keep this run's log.
    let names = |leftover: &Leftover| !leftover.goes() && !matches!(leftover.item, Item::Free(_));
    let verdict = match found.iter().any(names) {
        true => Verdict::Keep("tells what is kept".to_owned()),
        false => Verdict::Remove("the run is finished".to_owned()),
    };
    found.push(Leftover { item: Item::Log(around.directory.log()), verdict });
    Ok(found)
}

/// The lane whose worktree it is.
fn lane_of(leftover: &Leftover) -> Option<LaneId> {
    match &leftover.item {
        Item::Held(slot) => slot.holder.lane.clone(),
        _ => None,
    }
}

struct Judge<'a> {
    around: &'a CleanScope<'a>,
    run: &'a Expected,
    /// The integration branch; `None`: it is gone, so nothing counts as merged.
    base: Option<CommitId>,
    held: Vec<HeldSlot>,
}

impl Judge<'_> {
    fn worktrees(&self) -> Result<Vec<Leftover>, GitError> {
        let mut found = Vec::new();
        for slot in &self.held {
            found.push(Leftover { item: Item::Held(slot.clone()), verdict: self.held(slot)? });
        }
        for (path, blocker) in self.around.pool.unheld()? {
            let verdict = blocker.map_or_else(|| Verdict::Remove("it is not in use".to_owned()), Verdict::Keep);
            found.push(Leftover { item: Item::Free(path), verdict });
        }
        Ok(found)
    }

    fn held(&self, slot: &HeldSlot) -> Result<Verdict, GitError> {
        if !slot.provisioned {
            return Ok(Verdict::Remove("holds no work".to_owned()));
        }
        let paths = git::uncommitted_paths(self.around.repository, &slot.path)?;
        if !paths.is_empty() {
            return Ok(self.unless_forced(format!("holds uncommitted work: {}", paths.join(", "))));
        }
        let lane = slot.holder.lane.as_ref().and_then(|lane| self.run.history.lane(lane));
        self.merged_or_kept(lane, &git::head_of(&slot.path)?.commit)
    }

    fn branches(&self, lane: &LaneHistory) -> Result<Vec<Leftover>, GitError> {
        let mut found = Vec::new();
        for name in self.branches_of(lane) {
            let Some(at) = self.around.repository.target_of(&git::branch_reference(name))? else { continue };
            let places = self.around.repository.all_checked_out(name)?;
            let elsewhere = places.iter().find(|place| self.held.iter().all(|slot| slot.path != **place));
            let verdict = match elsewhere {
                Some(place) => Verdict::Keep(format!("checked out in {}", place.display())),
                None if !self.around.repository.has_commit(&at)? => self.unless_forced("cannot be read".to_owned()),
                None => self.merged_or_kept(Some(lane), &at)?,
            };
            let verdict = match (&lane.pull_request, verdict) {
                (Some(pull_request), Verdict::Keep(reason)) => {
                    Verdict::Keep(format!("{reason}; its pull request: {}", pull_request.url))
                }
                (_, verdict) => verdict,
            };
            found.push(Leftover { item: Item::Branch(name.to_owned(), at), verdict });
        }
        Ok(found)
    }

    /// The branches that the lane and its agents worked on, without `refs/heads/`.
    fn branches_of<'l>(&self, lane: &'l LaneHistory) -> BTreeSet<&'l str> {
        let of_agents = lane.agents.iter().filter_map(|agent| agent.branch.as_deref());
        of_agents.chain(lane.workplace.branch()).filter(|_| self.run.history.owns_branches(lane)).collect()
    }

    fn snapshots(&self, lane: &LaneHistory) -> Result<Vec<Leftover>, GitError> {
        let verdict = match self.has_landed(lane)? {
            true => Verdict::Remove("its lane is merged".to_owned()),
            false => self.unless_forced("holds work that is not merged".to_owned()),
        };
        let of_rolled_back = self.unless_forced("holds work that was rolled back".to_owned());
        let (rolled_back, others) = lane.snapshots_by_rollback();
        let rolled_back = rolled_back.iter().map(|snapshot| (snapshot, &of_rolled_back));
        let all = rolled_back.chain(others.iter().map(|snapshot| (snapshot, &verdict)));
        let by_name: BTreeMap<_, _> = all.map(|(it, verdict)| (&it.reference, (&it.commit, verdict))).collect();
        let mut found = Vec::new();
        for (name, (expected, verdict)) in by_name {
            let Some(at) = self.around.repository.target_of(name)? else { continue };
            let verdict = match at == *expected {
                true => verdict.clone(),
                false => Verdict::Keep("it was moved by another program".to_owned()),
            };
            found.push(Leftover { item: Item::Snapshot(name.clone(), at), verdict });
        }
        Ok(found)
    }

    fn has_landed(&self, lane: &LaneHistory) -> Result<bool, GitError> {
        lane.merge_commit.as_ref().map_or(Ok(false), |commit| self.is_merged(commit))
    }

    /// Whether the commit is in what was merged of the lane: a squash or a rebase made other commits of it.
    fn is_in_merged(&self, lane: Option<&LaneHistory>, commit: &CommitId) -> Result<bool, GitError> {
        let Some((lane, head)) = lane.and_then(|lane| Some((lane, lane.workplace.head.as_ref()?))) else {
            return Ok(false);
        };
        Ok(self.has_landed(lane)? && self.around.repository.is_ancestor(commit, head)?)
    }

    fn merged_or_kept(&self, lane: Option<&LaneHistory>, commit: &CommitId) -> Result<Verdict, GitError> {
        let base = &self.run.started.base_branch;
        Ok(match self.is_merged(commit)? || self.is_in_merged(lane, commit)? {
            true => Verdict::Remove(format!("merged into {base}")),
            false => self.unless_forced(format!("holds work that is not in {base}")),
        })
    }

    fn is_merged(&self, commit: &CommitId) -> Result<bool, GitError> {
        match &self.base {
            Some(base) => match self.around.merged.contains(base, commit) {
                Some(merged) => Ok(merged),
                None => self.around.repository.is_ancestor(commit, base),
            },
            None => Ok(false),
        }
    }

    fn unless_forced(&self, reason: String) -> Verdict {
        if self.around.force { Verdict::Remove(format!("{reason} (--force)")) } else { Verdict::Keep(reason) }
    }
}
