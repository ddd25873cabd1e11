//! The engine of the simulated cluster, and what its jobs do.

use std::sync::Arc;

use lanewright_model::event::{Event, Place, Record, RunMoved, RunOutcome};
use lanewright_model::testing::empty_plan;
use lanewright_model::{JobId, LaneIndex, Plan, PlanParts};
use lanewright_schedule::RunLoop;
use lanewright_schedule::RunState;

use super::super::faultless::{Faultless, Forgetful};
use super::{Cluster, Job, MINUTE, Moment, PlacingBug, REST, SECOND, State, WORK, lost, resumed};

impl Cluster {
    /// A job of the engine, found by its name where there is one.
    pub(super) fn submit(&mut self, lane: LaneIndex, number: u32, offer: u64) -> Result<u64, String> {
        let known = self.jobs.iter().find(|(_, job)| (job.lane, job.number) == (lane, number)).map(|(id, _)| *id);
        if let Some(known) = known {
            if self.bug != Some(PlacingBug::SubmitAgain) {
                return Ok(known);
            }
            return Err(format!("{} has two jobs for placement {number}", self.plan.lane(lane).id));
        }
        let id = self.jobs.len() as u64 + 1;
        self.jobs.insert(id, Job { lane, number, offer, node: None, expects: 0, is_over: false, is_dead: false });
        self.outcome.placements += 1;
        self.queue.insert(id);
        self.start_jobs();
        Ok(id)
    }

    fn start_jobs(&mut self) {
        while let Some(node) = self.free.pop() {
            let Some(id) = self.queue.pop_first() else { return self.free.push(node) };
            if let Some(job) = self.jobs.get_mut(&id) {
                job.node = Some(node);
            }
            let boot = SECOND * (1 + i64::from(self.dice.roll(30)));
            self.at(boot, Moment::Start(id));
        }
    }

    /// The job claims its offer, and works on it.
    pub(super) fn start(&mut self, id: u64) -> Result<(), String> {
        let Some(job) = self.jobs.get(&id).filter(|job| !job.is_dead) else { return Ok(()) };
        let (lane, node, offer) = (job.lane, job.node.unwrap_or(0), job.offer);
        let takes_any = self.bug == Some(PlacingBug::ClaimWhateverIsThere);
        let offered = self.exchange.get(&lane).filter(|there| there.id == offer || takes_any).cloned();
        let Some(offered) = offered else {
            self.leave(id);
            return Ok(());
        };
        let records = self.works_on(lane, node, &offered.log)?;
        let mut last = self.now - REST;
        for (at, record) in records.iter().enumerate().skip(offered.log.len()) {
            let is_last = at + 1 == records.len();
            let moment = record.at.unix_millis();
            let is_worth_it = matches!(record.event, Event::CheckpointReached { .. } | Event::WorkCommitted { .. });
            if is_last || (is_worth_it && moment >= last + REST) {
                last = moment;
                // What is on disk by then.
                let records = records.partition_point(|record| record.at.unix_millis() <= moment);
                self.at(moment - self.now, Moment::Push { job: id, records, is_last });
            }
        }
        self.works.insert(id, Arc::new(records));
        let claimed = self.replace(lane, State { claim: Some(id), ..offered })?;
        if let Some(job) = self.jobs.get_mut(&id) {
            job.expects = claimed;
        }
        Ok(())
    }

    /// What the log of the lane's own run has in the end, if it is worked on from now on at this node.
    fn works_on(&self, lane: LaneIndex, node: u32, log: &[Record]) -> Result<Vec<Record>, String> {
        let alone = PlanParts { lanes: vec![self.plan.lane(lane).clone()], ..empty_plan() };
        let executors = self.plan.executors.clone();
        let plan = Plan::new(PlanParts { executors, ..alone }).map_err(|error| format!("{error:?}"))?;
        let mut state = RunState::new(Arc::new(plan));
        for record in log {
            state.apply(record).map_err(|fault| format!("the log of {}: {fault}", self.plan.lane(lane).id))?;
        }
        let place = |host: &str| Place { host: host.into(), repository: "/r".into(), worktree_root: "/w".into() };
        let moved = RunMoved { from: place("here"), to: place(&format!("n{node}")), slots: vec![] };
        let mut begin = vec![Event::RunMoved(Box::new(moved))];
        begin.extend(state.running_jobs().map(lost));
        begin.push(resumed(state.resumes() + 1));
        let last = log.last().map_or(0, |record| record.seq);
        let takes = |job: &JobId| if job.is_attempt() { WORK.1 } else { 0 };
        let mut world = Faultless::new(RunLoop::new(Forgetful(last), state), Box::new(takes));
        world.now = self.now;
        let mut records = log.to_vec();
        records.extend(world.absorb(begin, vec![])?);
        while !world.is_over() {
            records.extend(world.step()?);
        }
        Ok(records)
    }

    pub(super) fn push(&mut self, id: u64, records: usize, is_last: bool) -> Result<(), String> {
        let Some((job, work)) = self.jobs.get(&id).zip(self.works.get(&id).cloned()) else { return Ok(()) };
        let (lane, expects) = (job.lane, job.expects);
        let has_lease = self.exchange.get(&lane).is_some_and(|there| there.id == expects);
        if !has_lease && self.bug != Some(PlacingBug::PushWithoutLease) {
            self.works.remove(&id);
            self.leave(id);
            return Ok(());
        }
        let outcome = is_last.then_some(RunOutcome::Done);
        let log = Arc::new(work[..records].to_vec());
        let pushed = self.replace(lane, State { id: 0, log, claim: Some(id), outcome })?;
        if let Some(job) = self.jobs.get_mut(&id) {
            job.expects = pushed;
        }
        if is_last {
            self.works.remove(&id);
            self.leave(id);
        }
        Ok(())
    }

    /// A job ends, and frees its node.
    fn leave(&mut self, id: u64) {
        if let Some(job) = self.jobs.get_mut(&id).filter(|job| !job.is_over) {
            job.is_over = true;
            self.free.extend(job.node);
            self.start_jobs();
        }
    }

    pub(super) fn lose_a_node_later(&mut self) {
        let every = 100 * 60 * MINUTE / i64::from(self.size.nodes * self.size.losses);
        let after = i64::from(self.dice.roll(2 * u32::try_from(every).unwrap_or(u32::MAX / 2)));
        self.at(after, Moment::LoseNode);
    }

    /// The engine gives a node up. Half of them only cannot be reached by it, and what runs there works on.
    pub(super) fn lose_a_node(&mut self) {
        let node = self.dice.roll(self.size.nodes);
        let is_cut_off = self.dice.roll(2) == 0;
        let there = self.jobs.iter().find(|(_, job)| job.node == Some(node) && !job.is_over).map(|(id, _)| *id);
        if let Some(id) = there {
            if !is_cut_off {
                self.works.remove(&id);
                self.jobs.entry(id).and_modify(|job| job.is_dead = true);
            }
            self.leave(id);
        }
        self.lose_a_node_later();
    }
}
