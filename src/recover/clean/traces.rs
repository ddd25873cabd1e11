//! What a run may have left, from its log alone: the plan may be gone.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Event, Record, RunOutcome, RunStarted};
use crate::model::{CommitId, JobId, LaneId, MergeMode};

#[derive(Debug, Clone, PartialEq)]
pub struct Traces {
    pub started: RunStarted,
    /// Whether its last outcome is `done`.
    pub done: bool,
    pub lanes: BTreeMap<LaneId, LaneTraces>,
    pub jobs: BTreeSet<JobId>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneTraces {
    /// Whether it has begun and was not rolled back since.
    pub begun: bool,
    /// Where its work is, if it is complete: a merge, or the branch's head where nothing is merged.
    pub landed: Option<CommitId>,
    pub pull_request: Option<String>,
    /// The branches that it and its agents worked on, without `refs/heads/`. Removed ones are not
    /// listed: another run may use their names.
    pub branches: BTreeSet<String>,
    pub snapshots: BTreeMap<String, CommitId>,
    /// Those from before its rollbacks.
    pub rolled_back: BTreeMap<String, CommitId>,
}

impl Traces {
    /// Reads them from a run's log; `None`: its first record does not start a run.
    pub fn of(records: &[Record]) -> Option<Self> {
        let Event::RunStarted(started) = &records.first()?.event else { return None };
        let (lanes, jobs) = (BTreeMap::new(), BTreeSet::new());
        let mut traces = Self { started: (**started).clone(), done: false, lanes, jobs };
        records.iter().for_each(|record| traces.follow(&record.event));
        Some(traces)
    }

    /// Whether nothing is left to do or to resume: all is done, or everything that began was rolled back.
    pub fn is_finished(&self) -> bool {
        self.done || self.lanes.values().all(|lane| !lane.begun)
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::RunFinished { outcome, .. } => self.done = *outcome == RunOutcome::Done,
            Event::RunResumed { .. } => self.done = false,
            Event::JobPlanned { job } | Event::JobStarted { job, .. } => drop(self.jobs.insert(job.clone())),
            Event::JobExited { job, .. } => drop(self.jobs.remove(job)),
            Event::LaneRolledBack { .. } => self.done = false,
            _ => {}
        }
        if let Some(lane) = event.lane() {
            let begins = matches!(event, Event::LaneMoved { .. });
            if begins || self.lanes.contains_key(lane) {
                let merges = self.started.options.merge == MergeMode::Local;
                self.lanes.entry(lane.clone()).or_default().follow(event, merges);
            }
        }
    }
}

impl LaneTraces {
    fn follow(&mut self, event: &Event, merges: bool) {
        match event {
            Event::LaneMoved { .. } => self.begun = true,
            Event::WorktreeOpened { worktree, .. } if !worktree.branch.is_empty() => {
                self.branches.insert(worktree.branch.clone());
            }
            Event::LaneCleaned { kept, .. } if merges && kept.is_empty() => self.branches.clear(),
            Event::PullRequestOpened { pull_request, .. } => self.pull_request = Some(pull_request.url.clone()),
            Event::LaneMerged { commit, .. } => self.landed = Some(commit.clone()),
            Event::SnapshotTaken { reference, commit, .. } => {
                self.snapshots.insert(reference.clone(), commit.clone());
            }
            Event::LaneRolledBack { .. } => {
                self.begun = false;
                self.landed = None;
                self.branches.clear();
                self.rolled_back.append(&mut self.snapshots);
            }
            _ => {}
        }
    }
}
