//! Folding the start and the end of jobs.

use lanewright_model::event::{MadeWith, Reading};
use lanewright_model::{
    AgentPhase, ExitCause, JobExit, JobId, JobRole, LaneIndex, Outage, OutageKind, Runner, Timestamp, Usage,
};

use crate::apply::Fault;
use crate::apply::agent::Worker;
use crate::apply::judge::{Words, judge, last_words};
use crate::state::RunState;
use crate::state::agent::{AgentStep, OutageWait, Refusals};
use crate::state::gate::Gate;
use crate::state::lane::{LaneState, agent_index};
use crate::state::pauses::{AttemptEnd, Pause};

impl RunState {
    pub(super) fn count_job(&mut self, job: &JobId) {
        let number = self.job_numbers.entry((job.lane.clone(), job.role.clone())).or_default();
        *number = (*number).max(job.number);
    }

    pub(super) fn job_planned(
        &mut self,
        lane: LaneIndex,
        job: &JobId,
        made_with: Option<&MadeWith>,
        at: Timestamp,
    ) -> Result<(), Fault> {
        self.count_job(job);
        if let Some(agent) = job.agent().filter(|_| job.is_attempt()) {
            self.worker(lane, agent)?.agent().make_with(made_with);
            let accounts = self.accounts_of(lane, job).filter(|_| !self.lane(lane).is_elsewhere());
            for account in accounts.into_iter().flatten() {
                self.pauses.probe(&account, job, at);
            }
        }
        let state = &mut self.lanes[lane.at()];
        let before = state.attempts_here();
        state.attempts.start_job(job);
        self.running_attempts += state.attempts_here() - before;
        match job.agent() {
            Some(agent) => self.worker(lane, agent)?.job_planned(job),
            None => {
                self.lanes[lane.at()].job_planned(job);
                Ok(())
            }
        }
    }

    pub(super) fn job_exited(
        &mut self,
        lane: LaneIndex,
        job: &JobId,
        exit: &JobExit,
        words: Words<'_>,
        at: Timestamp,
    ) -> Result<(), Fault> {
        // The fence: a job that is not waited for has nothing to say any more.
        if !self.lanes[lane.at()].attempts.end_job(job) {
            return Ok(());
        }
        let Some(agent) = job.agent() else {
            self.lanes[lane.at()].job_exited(job, exit, words.reading);
            return Ok(());
        };
        if !job.is_attempt() {
            return self.worker(lane, agent)?.gate_exited(job, exit, words.reading);
        }
        self.running_attempts -= usize::from(!self.lane(lane).is_elsewhere());
        self.count_usage(lane, job, words.transcript.map(|transcript| transcript.usage).unwrap_or_default());
        let outage = match words.reading {
            Some(Reading::Outage(outage)) if exit.cause != ExitCause::Stopped => Some(outage),
            _ => None,
        };
        if !self.lane(lane).is_elsewhere()
            && let Some([account, refusable]) = self.accounts_of(lane, job)
        {
            // What is refused is not the whole account, and what is out is not refused.
            let (own, other) = match outage {
                Some(outage) if outage.kind == OutageKind::Refused => (&refusable, &account),
                _ => (&account, &refusable),
            };
            if own != other {
                self.pauses.ended(other, job, attempt_end(exit));
            }
            match outage {
                Some(outage) => self.pauses.failed(own, job, outage, at),
                None => {
                    self.pauses.ended(own, job, attempt_end(exit));
                    // The next attempt would be refused.
                    if let Some(until) = words.transcript.and_then(|it| it.limited_until).filter(|until| *until > at) {
                        let used_up = Outage::new(OutageKind::Quota, "the limit of the account is used up");
                        self.pauses.limited(own, &Outage { until: Some(until), ..used_up }, at);
                    }
                }
            }
        }
        let mut worker = self.worker(lane, agent)?;
        if exit.cause != ExitCause::Stopped {
            let ends = |outage: &Outage| outage.kind == OutageKind::Refused && !worker.has_fallback();
            let wait = |outage| if ends(outage) { OutageWait::GivenUp } else { OutageWait::Waits };
            worker.agent().outage = outage.map(wait);
        }
        worker.attempt_exited(exit, words)
    }

    fn count_usage(&mut self, lane: LaneIndex, job: &JobId, usage: Usage) {
        self.used += usage;
        *self.used_in.entry(lane).or_default() += usage;
        let plan = self.plan.lane(lane);
        if let Some(at) = job.agent().and_then(|agent| agent_index(plan, agent)) {
            let made_with = self.lane(lane).agents()[at].made_with.as_ref();
            let runner = made_with.map_or(&plan.agents[at].runner, |made_with| &made_with.runner).clone();
            *self.used_by.entry(runner).or_default() += usage;
        }
    }

    /// The account of the service that the agent's last attempt is made with, and what of it may be refused.
    fn accounts_of(&self, lane: LaneIndex, job: &JobId) -> Option<[String; 2]> {
        let JobRole::Attempt { agent, task } = &job.role else { return None };
        let plan = self.plan.lane(lane);
        let at = agent_index(plan, agent)?;
        let task = plan.agents[at].tasks.iter().find(|known| known.id == *task)?;
        let who = &plan.agents[at];
        let of_plan = || [self.plan.account(who, task).into_owned(), self.plan.refusable(who, task).into_owned()];
        let made_with = self.lane(lane).agents()[at].made_with.as_ref();
        Some(made_with.map_or_else(of_plan, |made_with| made_with.accounts()))
    }

    pub(super) fn runner_paused(
        &mut self,
        account: &str,
        outage: &Outage,
        (since, until): (Timestamp, Option<Timestamp>),
        at: Timestamp,
    ) {
        self.pauses.paused(account, outage, since, until);
        // What a runner is refused ends only the attempts that were: see `unavailable` for the others.
        if until.is_none() && outage.kind != OutageKind::Refused {
            for lane in self.plan.clone().indices() {
                for agent in 0..self.lane(lane).agents().len() {
                    let is_concerned = self.runners(lane, agent).any(|runner| runner.account == account);
                    if is_concerned && self.pause_of(lane, agent).is_some_and(Pause::needs_user) {
                        self.lanes[lane.at()].attempts.agents_mut()[agent].give_up_waiting();
                    }
                }
                self.refresh(lane);
            }
        }
        self.park_lanes(at);
    }

    pub(super) fn runner_continued(&mut self, account: &str, at: Timestamp) {
        self.pauses.continued(account);
        self.park_lanes(at);
    }

    fn park_lanes(&mut self, at: Timestamp) {
        for lane in self.plan.indices() {
            self.park(lane, at);
        }
    }
}

fn attempt_end(exit: &JobExit) -> AttemptEnd {
    match exit.cause {
        ExitCause::Stopped | ExitCause::Lost => AttemptEnd::Stopped,
        _ if exit.passed() => AttemptEnd::Passed,
        _ => AttemptEnd::Failed,
    }
}

impl Worker<'_> {
    fn job_planned(&mut self, job: &JobId) -> Result<(), Fault> {
        let running = Gate::Running(job.clone());
        match &job.role {
            JobRole::Attempt { .. } => {
                self.advance(AgentPhase::Planned)?;
                self.advance(AgentPhase::Executing)?;
                // One that shares the lane's worktree has none opened.
                let lane_head = self.state.head().or(self.state.base()).filter(|_| self.lane.shares_worktree(self.at));
                let lane_head = lane_head.cloned();
                let worker = self.agent();
                worker.start = worker.start.take().or(lane_head);
                worker.step = AgentStep::Running(job.clone());
                worker.attempt = job.number;
                worker.unkept = None;
            }
            JobRole::Verify { .. } => self.agent().step = AgentStep::Verifying(running),
            JobRole::Checkpoint { .. } => self.agent().step = AgentStep::Gating(running),
            _ => self.agent().setup = running,
        }
        Ok(())
    }

    fn gate_exited(&mut self, job: &JobId, exit: &JobExit, reading: Option<&Reading>) -> Result<(), Fault> {
        let is_assigned = self.state.attempts.has_assignee();
        let LaneState { attempts, no_progress, .. } = &mut *self.state;
        let worker = &mut attempts.agents_mut()[self.at];
        match (&job.role, &mut worker.step) {
            (JobRole::Verify { .. }, AgentStep::Verifying(gate)) => {
                gate.record_exit(job, exit, reading, no_progress);
                if *gate == Gate::Passed {
                    return self.start_snapshot();
                }
            }
            (JobRole::Checkpoint { .. }, AgentStep::Gating(gate)) => {
                gate.record_exit(job, exit, reading, no_progress);
                // What was red before it came is judged again with the work of the agent that fixes it.
                if *gate == Gate::Passed || is_assigned && gate.is_misunderstood() {
                    worker.step = AgentStep::Done;
                }
            }
            _ => worker.setup.record_exit(job, exit, reading, no_progress),
        }
        Ok(())
    }

    fn attempt_exited(&mut self, exit: &JobExit, words: Words<'_>) -> Result<(), Fault> {
        let plan = self.agent_plan();
        let streams = self.runner().is_some_and(Runner::has_stream);
        self.record_report(exit, words);
        let verdict = judge(plan.round, exit, words);
        if matches!(verdict, AgentStep::Committing | AgentStep::Snapshotting) {
            self.advance(AgentPhase::Validating)?;
        }
        match verdict {
            AgentStep::Snapshotting => return self.start_snapshot(),
            AgentStep::Committing => self.agent().said = last_words(exit, words, streams),
            _ => {}
        }
        self.agent().step = verdict;
        Ok(())
    }

    /// What the attempt reported, and the session in which the next one can continue.
    fn record_report(&mut self, exit: &JobExit, Words { report, reading, transcript }: Words<'_>) {
        let runner = self.runner();
        let session = |runner| self.state.continued_session(self.lane, self.at, runner);
        let continued = runner.and_then(session).cloned();
        let place = self.state.workplace(self.lane, self.at).map(|worktree| worktree.path.clone()).unwrap_or_default();
        let agent = self.agent();
        agent.rejection = report.filter(|report| report.rejects()).map(|report| report.feedback.clone());
        agent.verdict = report.and_then(|report| report.decision.trim().parse().ok());
        agent.add_decisions(report.into_iter().flat_map(|report| &report.decisions));
        agent.claims_completion = report.is_some_and(|report| report.own && report.status == "COMPLETE");
        // A program that no longer has the session that it was to continue ends before it names one.
        let names_session = transcript.is_some_and(|transcript| transcript.session.is_some());
        let out = matches!(reading, Some(Reading::Outage(_)));
        let failed = exit.cause == ExitCause::Exited && exit.exit_code != 0;
        agent.excused |= continued.is_some() && failed && !names_session && !out;
        agent.refusals = transcript.map(Refusals::of).unwrap_or_default();
        agent.session = transcript.and_then(|transcript| transcript.continuable(continued.as_ref(), &place));
    }
}

#[cfg(test)]
mod tests;
