//! Copies what lanes did into the run log of the run that placed them.

use std::collections::HashMap;

use anyhow::Result;

use super::lane_log::news;
use super::watch::{EXCHANGE, Followed, Watch, ended};
use crate::event::{Incoming, Record, RunOutcome};
use crate::executor::crash::{CrashPoint, crash_point};
use crate::git::point_reference;
use crate::model::{CommitId, LaneId, RunId};
use crate::state_sync::ReceivedState;
use crate::state_sync::lane_run::{fetch_all, remember};
use crate::store::{run_files, run_log};

impl Watch {
    /// Copies what lanes did since the last look.
    pub(super) fn collect(&mut self) {
        if self.followed.is_empty() {
            return;
        }
        let changed = self.changed();
        for state in self.tolerate(EXCHANGE, changed).unwrap_or_default() {
            self.look_at(state);
        }
    }

    /// The states that jobs pushed since they were looked at.
    fn changed(&mut self) -> Result<Vec<ReceivedState>> {
        let there: HashMap<RunId, CommitId> = self.ownership.runs()?.into_iter().collect();
        let changed = self.followed.values().filter(|followed| {
            let seen = followed.state.as_ref().map(|state| &state.commit);
            there.get(&followed.run).is_some_and(|commit| Some(commit) != seen)
        });
        let changed: Vec<RunId> = changed.map(|followed| followed.run.clone()).collect();
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        fetch_all(&self.placing.repository, &self.placing.exchange, &changed)
    }

    /// Copies what is new in a state, and ends the placement where it says that the run has ended.
    fn look_at(&mut self, state: ReceivedState) {
        let Some((lane, mut followed)) = self.remove_run(&state.manifest.run_id) else { return };
        let copied = self.copy(&mut followed, &state);
        let outcome = state.manifest.outcome.filter(|_| state.manifest.claim.is_some());
        match (self.tolerate(&format!("the state of lane {lane}"), copied), outcome) {
            (Some(news), Some(outcome)) => {
                followed.state = Some(state);
                self.end(followed, news, Some(outcome), "its run ended");
            }
            (Some(news), None) => {
                followed.state = Some(state);
                (followed.answer)(news, false);
                self.followed.insert(lane, followed);
            }
            // It is looked at again.
            (None, _) => drop(self.followed.insert(lane, followed)),
        }
    }

    fn remove_run(&mut self, run: &RunId) -> Option<(LaneId, Followed)> {
        let lane = self.followed.iter().find(|(_, followed)| followed.run == *run)?.0.clone();
        self.followed.remove_entry(&lane)
    }

    /// What the run log gets of a state; files, branches and refs are written first.
    pub(super) fn copy(&self, followed: &mut Followed, state: &ReceivedState) -> Result<Vec<Incoming>> {
        let repository = &self.placing.repository;
        let records = self.records_of(state)?;
        // After an error all files are restored again.
        let mut files = std::mem::take(&mut followed.files);
        run_files::restore(&self.placing.directory, &state.new_files(repository, &mut files)?)?;
        remember(repository, &self.placing.exchange, state)?;
        for (name, commit) in &state.manifest.references {
            point_reference(repository, name, commit)?;
        }
        followed.files = files;
        crash_point(CrashPoint::Copied);
        let news = news(&followed.errand.lane, &records, followed.seen);
        followed.seen = records.last().map_or(followed.seen, |record| record.seq.max(followed.seen));
        Ok(news)
    }

    pub(super) fn records_of(&self, state: &ReceivedState) -> Result<Vec<Record>> {
        Ok(run_log::parse(&self.placing.directory.log(), &state.log(&self.placing.repository)?)?)
    }

    /// Ends the placement: puts the lane's branch where its own run left it, and answers the errand and all requests to stop.
    pub(super) fn end(&self, followed: Followed, mut news: Vec<Incoming>, outcome: Option<RunOutcome>, reason: &str) {
        let branch = self.placing.started.lane_branch(&followed.errand.lane);
        let head = followed.state.as_ref().and_then(|state| state.manifest.branches.get(&branch));
        if let Some(head) = head
            && let Err(error) = point_reference(&self.placing.repository, &format!("refs/heads/{branch}"), head)
        {
            tracing::warn!("branch {branch} cannot be moved to {head}: {error}");
        }
        news.push(ended(&followed.errand, outcome, reason).into());
        (followed.answer)(news, true);
        followed.stops.iter().for_each(|(_, answer)| answer(Vec::new(), true));
    }
}
