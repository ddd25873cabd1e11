//! Copies what lanes did into the run log of the run that placed them.

use std::collections::HashMap;
use std::path::Path;

use lanewright_git::force_reference;
use lanewright_model::event::{Event, Incoming, Record, RunOutcome};
use lanewright_model::{CommitId, LaneId, RunId};
use lanewright_programs::cluster::Cancel;
use lanewright_schedule::RunState;
use lanewright_schedule::lane_log::news;
use lanewright_store::{run_files, run_log};

use super::error::{PlacementError, Result};
use super::watch::{EXCHANGE, Followed, Watch, ended};
use crate::executor::change_size::measured;
use crate::executor::crash::{CrashPoint, crash_point};
use crate::state_sync::exchange::lane_run::{fetch_all, known, remember};
use crate::state_sync::{ReceivedState, StateSyncError, jobs_of, state_reference};

/// How the run of a job has ended, if it has.
fn outcome(state: &ReceivedState) -> Option<RunOutcome> {
    state.manifest.outcome.filter(|_| state.manifest.claim.is_some())
}

impl Watch {
    /// Copies what lanes did since the last look.
    pub(super) fn collect(&mut self) {
        if self.followed.is_empty() {
            return;
        }
        let changed = self.changed();
        for (run, state) in self.tolerate(EXCHANGE, changed).unwrap_or_default() {
            self.inspect(&run, state);
        }
    }

    /// The states that jobs pushed since they were looked at.
    fn changed(&mut self) -> Result<Vec<(RunId, Result<ReceivedState, StateSyncError>)>> {
        let there: HashMap<RunId, CommitId> = self.ownership.runs()?.into_iter().collect();
        let changed = self.followed.values().filter(|followed| {
            let seen = followed.state.as_ref().map(|state| &state.commit);
            there.get(&followed.run).is_some_and(|commit| Some(commit) != seen)
        });
        let changed: Vec<RunId> = changed.map(|followed| followed.run.clone()).collect();
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        Ok(fetch_all(&self.placing.repository, &self.placing.exchange, &changed)?)
    }

    /// Copies what is new in a state, and ends the placement where it says that the run has ended.
    fn inspect(&mut self, run: &RunId, state: Result<ReceivedState, StateSyncError>) {
        let Some((lane, mut followed)) = self.remove_run(run) else { return };
        let copied = state.map_err(PlacementError::from);
        let copied = copied.and_then(|state| Ok((self.copy(&mut followed, &state, false)?.0, state)));
        if let Some(reason) = copied.as_ref().err().and_then(|error| self.unusable(run, error)) {
            return self.refuse(followed, &reason);
        }
        // Otherwise it is looked at again.
        let Some((news, state)) = self.tolerate(&format!("the state of lane {lane}"), copied) else {
            return drop(self.followed.insert(lane, followed));
        };
        let outcome = outcome(&state);
        followed.state = Some(state);
        if outcome.is_some() {
            return self.end(followed, news, outcome, "its run ended");
        }
        (followed.answer)(news, false);
        self.followed.insert(lane, followed);
    }

    /// Blocks a lane whose state cannot be used, and ends its placement; other lanes continue.
    pub(super) fn refuse(&mut self, followed: Followed, reason: &str) {
        let lane = &followed.task.lane;
        if let Some(Err(error)) = followed.state.as_ref().map(|state| self.place_branch(lane, state)) {
            tracing::warn!("lane {lane}: {error}");
        }
        let before = known(&self.placing.repository, &self.placing.exchange, &followed.run).ok().flatten();
        let mut news = before.map(|before| self.cut_off(lane, &before)).unwrap_or_default();
        news.push(Event::LaneBlocked { lane: lane.clone(), reason: reason.to_owned() }.into());
        let (executor, ticket) = (followed.task.executor.clone(), followed.ticket.clone());
        self.end(followed, news, Some(RunOutcome::Blocked), reason);
        self.cancel(&executor, &ticket, Cancel::Kill);
    }

    /// Why the state of a lane's own run can never be used, and what to do about it; `None`: that is not known.
    pub(super) fn unusable(&self, run: &RunId, error: &PlacementError) -> Option<String> {
        match error {
            PlacementError::NotPlaced { .. } => Some(error.to_string()),
            PlacementError::State(StateSyncError::Damaged { .. } | StateSyncError::NewerFormat { .. }) => {
                let remove = format!("git push {} :{}", self.placing.exchange.name(), state_reference(run));
                Some(format!(
                    "{error}; to continue from the work copied so far, remove that state and resume: {remove}"
                ))
            }
            _ => None,
        }
    }

    fn remove_run(&mut self, run: &RunId) -> Option<(LaneId, Followed)> {
        let lane = self.followed.iter().find(|(_, followed)| followed.run == *run)?.0.clone();
        self.followed.remove_entry(&lane)
    }

    /// What the run log gets of a state, and how the lane's own run stands in it; files, branches and refs are written
    /// first. `is_last`: no job adds to it.
    pub(super) fn copy(
        &self,
        followed: &mut Followed,
        state: &ReceivedState,
        is_last: bool,
    ) -> Result<(Vec<Incoming>, RunState)> {
        let repository = &self.placing.repository;
        let lane = &followed.task.lane;
        let (records, own) = self.examined(lane, state, true)?;
        if is_last || outcome(state).is_some() {
            self.place_branch(lane, state)?;
        }
        // After an error all files are restored again.
        let mut files = std::mem::take(&mut followed.files);
        let new_files = state.new_files(repository, &mut files, &jobs_of(lane, &records))?;
        run_files::restore(&self.placing.directory, &new_files).map_err(StateSyncError::from)?;
        remember(repository, &self.placing.exchange, state)?;
        for (name, commit) in &state.manifest.references {
            force_reference(repository, name, commit)?;
        }
        followed.files = files;
        crash_point(CrashPoint::Copied);
        let mut news = news(&followed.task.lane, &records, followed.seen);
        for said in &mut news {
            // A change that is said to be empty would need no approval.
            if let Event::ChangesMeasured { head, changes, protected, .. } = &mut said.event {
                let here = measured(repository, &self.placing.started, None, head);
                (*changes, *protected) =
                    here.map_err(|error| state.damaged(&format!("{head} cannot be compared: {error}")))?;
            }
        }
        followed.seen = records.last().map_or(followed.seen, |record| record.seq.max(followed.seen));
        Ok((news, own))
    }

    /// The log of a lane's own run and what follows from it, where the state holds nothing that this run never leaves. With
    /// `continues` the log must extend the one that this clone has.
    pub(super) fn examined(
        &self,
        lane: &LaneId,
        state: &ReceivedState,
        continues: bool,
    ) -> Result<(Vec<Record>, RunState)> {
        let (repository, run) = (&self.placing.repository, &state.manifest.run_id);
        let records = self.records_of(state)?;
        state.refuse_content_of_others((&self.placing.started.phase, lane), &records)?;
        let before = known(repository, &self.placing.exchange, run)?.filter(|_| continues);
        if let Some(before) = before.filter(|before| before.commit != state.commit) {
            let before = before.log(repository)?;
            let count = before.iter().filter(|&&byte| byte == b'\n').count();
            if !state.log(repository)?.starts_with(&before) || !records.iter().skip(count).all(|it| self.may_add(it)) {
                return Err(state.damaged("its log does not extend the one seen before").into());
            }
        }
        let replayed = RunState::replay(&self.placing.plan, &records);
        let damaged = |(line, fault)| state.damaged(&format!("its log contradicts itself in line {line}: {fault}"));
        let replayed = replayed.map_err(damaged)?;
        if outcome(state) == Some(RunOutcome::Done) && !replayed.lane(self.index(lane)?).is_complete() {
            return Err(state.damaged("its manifest records the run as done, but its log does not").into());
        }
        Ok((records, replayed))
    }

    /// Whether a record can come after those that this clone has seen: one of the lane's own run, or one of the run here,
    /// which an earlier life of this process offered and did not come to note.
    fn may_add(&self, record: &Record) -> bool {
        let is_it = |seq: u64| self.records.iter().any(|ours| ours.seq == seq && ours.event == record.event);
        record.origin.is_none_or(is_it)
    }

    /// Puts the lane's branch where its own run left it. Without it nothing would hold the work of a lane that is done.
    pub(super) fn place_branch(&self, lane: &LaneId, state: &ReceivedState) -> Result<()> {
        let branch = self.placing.started.lane_branch(lane);
        let Some(head) = state.manifest.branches.get(&branch) else { return Ok(()) };
        let placed = force_reference(&self.placing.repository, &format!("refs/heads/{branch}"), head);
        placed.map_err(|source| PlacementError::NotPlaced { branch, source: Box::new(source) })
    }

    fn records_of(&self, state: &ReceivedState) -> Result<Vec<Record>> {
        let log = state.log(&self.placing.repository)?;
        run_log::parse(Path::new("its log"), &log).map_err(|error| state.damaged(&error.to_string()).into())
    }

    /// Ends the placement: answers the task and all requests to stop.
    pub(super) fn end(&self, followed: Followed, mut news: Vec<Incoming>, outcome: Option<RunOutcome>, reason: &str) {
        news.push(ended(&followed.task, outcome, reason).into());
        (followed.answer)(news, true);
        followed.stops.iter().for_each(|(_, answer)| answer(Vec::new(), true));
    }
}
