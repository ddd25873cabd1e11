//! Folding the start and the end of jobs.

use crate::event::Reading;
use crate::model::retry::OUTAGE_LIMIT;
use crate::model::{ExitCause, JobExit, JobId, JobRole, LaneIndex, Runner, Stage, Timestamp};
use crate::schedule::apply::Fault;
use crate::schedule::apply::judge::{Words, judge, last_words};
use crate::schedule::state::RunState;
use crate::schedule::state::agent::{AgentStep, OutageState};
use crate::schedule::state::agent_phase::AgentPhase;
use crate::schedule::state::gate::Gate;

impl RunState {
    pub(crate) fn count_job(&mut self, job: &JobId) {
        let number = self.job_numbers.entry((job.lane.clone(), job.role.clone())).or_default();
        *number = (*number).max(job.number);
    }

    pub(crate) fn job_planned(&mut self, lane: LaneIndex, job: &JobId) -> Result<(), Fault> {
        self.count_job(job);
        let state = &mut self.lanes[lane.at()];
        state.running.insert(job.clone());
        let running = Gate::Running(job.clone());
        match &job.role {
            JobRole::Attempt { agent, .. } => {
                self.running_attempts += 1;
                let agent = self.agent_at(lane, agent)?;
                self.advance(lane, agent, AgentPhase::Planned)?;
                self.advance(lane, agent, AgentPhase::Executing)?;
                let state = &mut self.lanes[lane.at()].agents[agent];
                state.step = AgentStep::Running(job.clone());
                state.attempt = job.number;
            }
            JobRole::Verify { agent, .. } => self.agent_mut(lane, agent)?.step = AgentStep::Verifying(running),
            JobRole::Checkpoint { agent } => self.agent_mut(lane, agent)?.step = AgentStep::Gating(running),
            JobRole::Setup { agent: Some(agent) } => self.agent_mut(lane, agent)?.setup = running,
            JobRole::Setup { agent: None } => state.setup = running,
            JobRole::Tests => {
                state.tests = running;
                state.checkpoints.remove(&Stage::AfterLaneTests);
            }
            JobRole::MergedTests => state.merged_tests = running,
            JobRole::Final => {}
        }
        Ok(())
    }

    pub(crate) fn job_exited(
        &mut self,
        lane: LaneIndex,
        job: &JobId,
        exit: &JobExit,
        words: Words<'_>,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let state = &mut self.lanes[lane.at()];
        // The fence: a job that is not waited for has nothing to say any more.
        if !state.running.remove(job) {
            return Ok(());
        }
        let reading = words.reading;
        match &job.role {
            JobRole::Attempt { agent, .. } => {
                self.running_attempts -= 1;
                let agent = self.agent_at(lane, agent)?;
                if exit.cause != ExitCause::Stopped {
                    self.note_outage(lane, agent, reading, at);
                }
                self.used += words.transcript.map(|transcript| transcript.usage).unwrap_or_default();
                self.attempt_exited(lane, agent, exit, words)?;
                self.lanes[lane.at()].agents[agent].blame_outage(reading);
            }
            JobRole::Verify { agent, .. } => {
                let agent = self.agent_at(lane, agent)?;
                let state = &mut self.lanes[lane.at()];
                if let AgentStep::Verifying(gate) = &mut state.agents[agent].step {
                    gate.settle(job, exit, reading, &mut state.in_vain);
                    if *gate == Gate::Passed {
                        self.start_snapshot(lane, agent)?;
                    }
                }
            }
            JobRole::Checkpoint { agent } => {
                let index = self.agent_at(lane, agent)?;
                let state = &mut self.lanes[lane.at()];
                let is_assigned = state.assignee.is_some();
                let agent = &mut state.agents[index];
                if let AgentStep::Gating(gate) = &mut agent.step {
                    gate.settle(job, exit, reading, &mut state.in_vain);
                    // What was red before it came is judged again with the work of the agent that fixes it.
                    let same = is_assigned && gate.is_misunderstood();
                    if *gate == Gate::Passed || same {
                        agent.step = AgentStep::Done;
                    }
                }
            }
            JobRole::Setup { agent: Some(agent) } => {
                let agent = self.agent_at(lane, agent)?;
                let state = &mut self.lanes[lane.at()];
                state.agents[agent].setup.settle(job, exit, reading, &mut state.in_vain);
            }
            JobRole::Setup { agent: None } => state.setup.settle(job, exit, reading, &mut state.in_vain),
            JobRole::Tests => state.tests.settle(job, exit, reading, &mut state.in_vain),
            JobRole::MergedTests => state.merged_tests.settle(job, exit, reading, &mut state.in_vain),
            JobRole::Final => {}
        }
        Ok(())
    }

    fn attempt_exited(&mut self, lane: LaneIndex, agent: usize, exit: &JobExit, words: Words<'_>) -> Result<(), Fault> {
        let plan = &self.plan.lane(lane).agents[agent];
        let streams = self.plan.runner(plan).is_some_and(Runner::has_stream);
        let verdict = judge(plan.round, exit, words);
        let worker = &mut self.lanes[lane.at()].agents[agent];
        worker.rejection = words.report.filter(|report| report.rejects()).map(|report| report.feedback.clone());
        worker.claims_completion = words.report.is_some_and(|report| report.own && report.status == "COMPLETE");
        // A program that no longer has the session that it was to continue ends before it names one.
        let names_session = words.transcript.is_some_and(|transcript| transcript.session.is_some());
        let out = matches!(words.reading, Some(Reading::Outage(_)));
        let failed = exit.cause == ExitCause::Exited && exit.exit_code != 0;
        worker.excused |= worker.session.is_some() && failed && !names_session && !out;
        worker.session = words.transcript.and_then(|transcript| transcript.continuable(worker.session.as_ref()));
        match &verdict {
            AgentStep::Committing => {
                worker.said = last_words(exit, words, streams);
                self.advance(lane, agent, AgentPhase::Validating)?;
            }
            AgentStep::Snapshotting => {
                self.advance(lane, agent, AgentPhase::Validating)?;
                return self.start_snapshot(lane, agent);
            }
            _ => {}
        }
        self.lanes[lane.at()].agents[agent].step = verdict;
        Ok(())
    }

    /// Counts how long something outside has been out.
    fn note_outage(&mut self, lane: LaneIndex, agent: usize, reading: Option<&Reading>, at: Timestamp) {
        let limit = self.started().map_or(OUTAGE_LIMIT, |started| started.options.outage_limit);
        let worker = &mut self.lanes[lane.at()].agents[agent];
        let Some(Reading::Outage(outage)) = reading else {
            worker.outage = None;
            return;
        };
        let (since, waits) = worker.outage.map_or((at, 0), |known| (known.since, known.waits));
        let given_up = at.since(since) >= limit;
        worker.outage = Some(OutageState { since, waits, retry_after: outage.retry_after, given_up });
    }
}
