//! Rollbacks of lanes in whatever state, also merged ones, that die between any two steps and are asked for again.

use lanewright_model::event::{Event, Record, SnapshotReason};
use lanewright_model::{JobId, LaneId, LaneIndex, Stage};
use lanewright_schedule::RunState;

/// The records since its last rollback after which a lane stood at a stage, or had a task passed.
fn points(records: &[Record], lane: &LaneId) -> Vec<u64> {
    let own = records.iter().rev().filter(|record| record.event.lane() == Some(lane));
    let since = own.take_while(|record| !matches!(record.event, Event::LaneRolledBack { .. }));
    let is_point = |record: &&Record| match &record.event {
        Event::CheckpointReached { checkpoint, .. } => checkpoint.stage != Stage::BeforeLaneStart,
        Event::SnapshotTaken { reason, .. } => *reason == SnapshotReason::Task,
        _ => false,
    };
    since.filter(is_point).map(|record| record.seq).collect()
}

use super::bugs::{Bug, record_as_applied};
use super::disturbances::began;
use super::run::Simulation;

impl Simulation {
    /// The user rolls back a lane and what is built on it, until that has come to its end. Between two tries a resume
    /// must be refused.
    pub fn roll_back_permanently(&mut self, records: &mut Vec<Record>) -> Result<(), String> {
        let state = self.replay(records)?;
        let all = state.plan().indices().filter(|&lane| began(&state, lane));
        let lanes: Vec<LaneIndex> = all.filter(|&lane| self.may_restart(&state, lane)).collect();
        let at = self.world.dice.roll(lanes.len() as u32) as usize;
        let Some(&asked) = lanes.get(at) else { return Ok(()) };
        self.world.make_way();
        while !self.roll_back_once(records, asked)? {
            let half = |lane: LaneIndex, state: &RunState| state.lane(lane).is_half_rolled_back();
            let state = self.replay(records)?;
            let begun = records.iter().filter(|record| matches!(record.event, Event::RollbackBegun { .. })).count();
            let ended = records.iter().filter(|record| matches!(record.event, Event::LaneRolledBack { .. })).count();
            if begun > ended && !state.plan().indices().any(|lane| half(lane, &state)) {
                return Err("a rollback that died would be resumed".to_owned());
            }
        }
        Ok(())
    }

    /// The user takes a lane that is not merged back to a point of its own, until that has come to its end.
    pub fn roll_back_to_a_point(&mut self, records: &mut Vec<Record>) -> Result<(), String> {
        let state = self.replay(records)?;
        let may = |&lane: &LaneIndex| {
            let lane_state = state.lane(lane);
            let is_alone = self.with_dependants(&state, lane) == [lane] && lane_state.placement().number() == 0;
            // A merge may be published that is not on record.
            let is_merged = lane_state.merged().is_some() || self.world.merges.contains(&lane);
            is_alone && !is_merged && self.may_restart(&state, lane) && self.world.may_return(lane)
        };
        let lanes: Vec<LaneIndex> = state.plan().indices().filter(may).collect();
        let Some(&lane) = lanes.get(self.world.dice.roll(lanes.len() as u32) as usize) else { return Ok(()) };
        let points = points(records, &state.plan().lane(lane).id);
        let Some(&seq) = points.get(self.world.dice.roll(points.len() as u32) as usize) else { return Ok(()) };
        self.world.make_way();
        while !self.return_once(records, lane, seq)? {}
        Ok(())
    }

    /// One try; whether it came to its end.
    fn return_once(&mut self, records: &mut Vec<Record>, lane: LaneIndex, seq: u64) -> Result<bool, String> {
        let state = self.replay(records)?;
        let id = state.plan().lane(lane).id.clone();
        self.write(records, [Event::RollbackBegun { lane: id.clone(), to: seq.to_string() }]);
        if !self.end_jobs(records, &state, |of| *of == id) {
            return Ok(false);
        }
        self.world.close(lane);
        if self.dies() {
            return Ok(false);
        }
        let mut before = RunState::new(state.plan().clone());
        before.expect(records);
        before.expect_point(lane, seq);
        let bug = self.world.bug;
        let mut applied = records.iter().map(|record| before.apply(&record_as_applied(record.clone(), bug)));
        applied.try_for_each(|done| done).map_err(|fault| format!("replay: {fault}"))?;
        let then = before.point(lane, seq).ok_or("the point is not one of the lane's")?;
        let point = Some(Box::new(self.world.return_to(lane, seq, then)));
        if self.dies() {
            return Ok(false);
        }
        self.story.note(self.world.now, || format!("{id} is taken back to record {seq}"));
        self.write(records, [Event::LaneRolledBack { lane: id, integration: None, kept: vec![], point }]);
        Ok(true)
    }

    /// Whether the lane and those built on it can begin again with the same outcome.
    fn may_restart(&self, state: &RunState, lane: LaneIndex) -> bool {
        self.with_dependants(state, lane).into_iter().all(|lane| {
            !self.world.script.is_idle_once(&state.plan().lane(lane).id) && !self.world.pulls.contains_key(&lane)
        })
    }

    /// Those that depend on it first.
    fn with_dependants(&self, state: &RunState, lane: LaneIndex) -> Vec<LaneIndex> {
        let dag = state.plan().dag();
        let chosen = dag.with_dependants([lane]);
        let downwards = dag.order().iter().rev().filter(|lane| chosen.contains(lane));
        downwards.copied().filter(|&lane| began(state, lane)).collect()
    }

    /// One try; whether it came to its end.
    fn roll_back_once(&mut self, records: &mut Vec<Record>, asked: LaneIndex) -> Result<bool, String> {
        let state = self.replay(records)?;
        let lanes = self.with_dependants(&state, asked);
        let id = |lane: LaneIndex| state.plan().lane(lane).id.clone();
        for &lane in &lanes {
            self.write(records, [Event::RollbackBegun { lane: id(lane), to: String::new() }]);
        }
        if self.dies() {
            return Ok(false);
        }
        if !lanes.is_empty() && !self.end_jobs(records, &state, |of| lanes.iter().any(|&lane| id(lane) == *of)) {
            return Ok(false);
        }
        let undone: Vec<LaneIndex> = lanes.iter().copied().filter(|lane| self.world.merges.contains(lane)).collect();
        let was_merged: Vec<LaneIndex> =
            lanes.iter().copied().filter(|&lane| state.lane(lane).merged().is_some()).collect();
        if !undone.is_empty() {
            self.world.undo_merges(&undone);
            self.story.note(self.world.now, || format!("the merges of {undone:?} are undone"));
        }
        if self.dies() {
            return Ok(false);
        }
        for &lane in &lanes {
            // With the bug, a rollback that dies has said that it was done.
            let said_too_early = self.world.bug == Some(Bug::RollbackSaidEarly);
            let tip = self.world.git.integration.clone();
            let integration = Some(tip).filter(|_| undone.contains(&lane) || was_merged.contains(&lane));
            let done = Event::LaneRolledBack { lane: id(lane), integration, kept: vec![], point: None };
            if said_too_early {
                self.write(records, [done]);
                if self.dies() {
                    return Ok(false);
                }
                self.world.roll_back(lane);
                continue;
            }
            self.world.roll_back(lane);
            if self.dies() {
                return Ok(false);
            }
            self.write(records, [done]);
        }
        Ok(true)
    }

    /// Ends the jobs of these lanes, and the final gate, which judges their work; whether it came to its end.
    fn end_jobs(&mut self, records: &mut Vec<Record>, state: &RunState, is_meant: impl Fn(&LaneId) -> bool) -> bool {
        let concerns = |job: &&JobId| job.lane.as_ref().is_none_or(&is_meant);
        let mut running: Vec<JobId> = state.running_jobs().filter(concerns).cloned().collect();
        running.sort();
        for job in running {
            let ended = self.world.end(&job);
            if self.dies() {
                return false;
            }
            self.write(records, [ended]);
        }
        true
    }

    fn dies(&mut self) -> bool {
        let dies = self.world.dice.roll(8) == 0;
        if dies {
            self.story.note(self.world.now, || "the rollback dies".to_owned());
        }
        dies
    }
}
