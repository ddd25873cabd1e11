//! Jobs of the simulated world: how they run, end and are lost.

use std::collections::BTreeSet;

use lanewright_model::event::{AgentReport, Event, Reading};
use lanewright_model::{
    CommitId, Diagnosis, ExitCause, FailureClass, Finding, JobId, JobRole, LaneIndex, Outage, OutageKind, Round, Stage,
    Timestamp,
};
use lanewright_schedule::RunState;

use super::super::bugs::Bug;
use super::{End, SimJob, World, commit_name, exit};

impl World {
    /// Lets the jobs that are due end.
    pub fn let_time_pass(&mut self) {
        let is_due = |job: &&JobId| self.jobs[*job].ends_at <= self.now;
        let due: Vec<JobId> = self.running.iter().filter(is_due).cloned().collect();
        for job in due {
            let stopped = self.jobs[&job].stopped;
            let outcome = if stopped { (exit(ExitCause::Stopped, 143), None, None) } else { self.outcome(&job) };
            if outcome.0.passed() {
                self.tested.extend(self.jobs[&job].judges.clone());
            }
            self.end_as(&job, outcome);
        }
    }

    pub fn running_attempts(&self) -> usize {
        self.running.iter().filter(|job| job.is_attempt()).count()
    }

    /// Lanes of which a job runs, and those that hold what they need between two jobs.
    pub fn lanes_at_work(&self) -> BTreeSet<LaneIndex> {
        self.running.iter().filter_map(|job| self.lane_of(job)).chain(self.holding.iter().copied()).collect()
    }

    pub(super) fn lane_of(&self, job: &JobId) -> Option<LaneIndex> {
        self.plan.find(job.lane.as_ref()?)
    }

    /// The machine dies: nothing that ran goes on, and nobody wrote down how it ended.
    pub fn lose_power(&mut self) {
        for job in std::mem::take(&mut self.running) {
            self.end_as(&job, (exit(ExitCause::Stopped, -1), None, None));
        }
    }

    /// Whether the agent commits its work itself, in its git directory.
    pub(super) fn commits_itself(&self, job: &JobId) -> bool {
        self.script.commits_itself(&self.key_of(job))
    }

    /// The commit of the work of an attempt on top of `head`.
    pub(super) fn with_work_of(&mut self, job: &JobId, head: &CommitId) -> CommitId {
        let mut content = (*self.content(head)).clone();
        if let (Some(lane), JobRole::Attempt { agent, task }) = (&job.lane, &job.role) {
            content.insert(format!("{lane}/{agent}/{task}"));
        }
        self.git.commit(&[head], content)
    }

    /// The lane and the place in it of the implementation agent whose attempt it is.
    fn worker_of(&self, job: &JobId) -> Option<(LaneIndex, usize)> {
        let (lane, name) = (self.lane_of(job)?, job.agent().filter(|_| job.is_attempt())?);
        let agents = &self.plan.lane(lane).agents;
        Some((lane, agents.iter().position(|it| it.name == *name && it.round == Round::Implementation)?))
    }

    /// Takes over what the agent of an attempt that ended committed in its git directory.
    pub fn take_over(&mut self, job: &JobId) {
        let Some(worker) = self.worker_of(job) else { return };
        if let Some(head) = self.private.remove(&worker) {
            self.move_to(worker, head);
        }
    }

    fn end_as(&mut self, job: &JobId, end: End) {
        if let Some((lane, agent)) = self.worker_of(job).filter(|_| end.0.passed())
            && !self.idle.contains(job)
            && self.commits_itself(job)
        {
            let head = self.branch(lane, agent);
            let committed = self.with_work_of(job, &head);
            self.private.insert((lane, agent), committed);
        }
        self.running.remove(job);
        self.jobs.get_mut(job).unwrap().exit = Some(end);
    }

    /// The run is taken to another machine, which has none of the worktrees and of what is only in them.
    pub fn leave_machine(&mut self) {
        self.unkept.clear();
    }

    /// The machine is lost with everything that ran on it, also with ends that nobody wrote down: they count for nothing.
    pub fn lose_machine(&mut self, open: &[JobId]) -> Vec<Event> {
        self.lose_power();
        let stopped = || exit(ExitCause::Stopped, 143);
        for job in open {
            if let Some(worker) = self.worker_of(job) {
                self.private.remove(&worker);
            }
            let Some(known) = self.jobs.get_mut(job) else { continue };
            let told = known.exit.replace((stopped(), None, None));
            if told.is_some_and(|(exit, _, _)| exit.cause != ExitCause::Stopped) {
                *self.tries.entry(self.key_of(job)).or_default() -= 1;
            }
        }
        let ended = |job: &JobId| Event::JobExited {
            job: job.clone(),
            exit: stopped(),
            report: None,
            reading: None,
            transcript: None,
        };
        open.iter().map(ended).collect()
    }

    /// The lane as it is numbered in the plan of the seed, of which this one may be a part.
    pub(super) fn name_of(&self, lane: LaneIndex) -> LaneIndex {
        LaneIndex(self.id(lane).as_str()[1..].parse().unwrap())
    }

    /// What jobs of the same kind have in common.
    pub(super) fn key_of(&self, job: &JobId) -> String {
        let lane = self.lane_of(job).map(|lane| self.name_of(lane));
        match &job.role {
            JobRole::Tests | JobRole::MergedTests => format!("{lane:?} tests"),
            role => format!("{lane:?} {role:?}"),
        }
    }

    /// How a job ends depends on how often its like was tried before, never on when or in which life it ran.
    pub(super) fn outcome(&mut self, job: &JobId) -> End {
        let lane = self.lane_of(job);
        let key = self.key_of(job);
        let refusals = if self.needs_every_candidate() { 0 } else { self.script.refusals(&key, job) };
        let tries = self.tries.entry(key.clone()).or_default();
        *tries += 1;
        let lost = self.script.lost_supervisors(&key, job);
        if *tries <= lost {
            return (exit(ExitCause::Lost, -1), None, None);
        }
        let out = lost + self.script.outages(&key, job);
        let refused = out + refusals;
        if *tries <= refused {
            let kind = if *tries <= out { OutageKind::Quota } else { OutageKind::Refused };
            let until = self.script.outage_end(&key).map(|wait| Timestamp::from_unix_millis(self.now + wait));
            let outage = Outage { until, ..Outage::new(kind, "429") };
            return (exit(ExitCause::Exited, 1), None, Some(Box::new(Reading::Outage(outage))));
        }
        let missing = refused + self.script.missing_programs(&key, job);
        if *tries <= missing {
            return (exit(ExitCause::Exited, 126 + (*tries % 2) as i32), None, None);
        }
        let failures = self.script.failures(&key, job);
        let fails = *tries <= missing + failures;
        if let (JobRole::Attempt { agent, task }, Some(lane)) = (&job.role, lane)
            && !fails
            && *tries - missing - failures <= self.script.idle_passes(&self.plan.lane(lane).id, agent.as_str(), task)
        {
            self.idle.insert(job.clone());
        }
        let reviewer = lane.zip(job.agent()).is_some_and(|(lane, name)| {
            self.plan.lane(lane).agents.iter().any(|agent| agent.name == *name && agent.round == Round::Review)
        });
        if reviewer && job.is_attempt() {
            let decision = if fails { "REJECTED" } else { "APPROVED" }.to_owned();
            return (exit(ExitCause::Exited, 0), Some(AgentReport { decision, ..AgentReport::default() }), None);
        }
        let is_judge = lane.is_some_and(|lane| self.plan.lane(lane).round(Round::Judge).next().is_some())
            && job.agent().is_some_and(|agent| agent.as_str() == "judge");
        if let (true, false, Some(lane)) = (is_judge && job.is_attempt(), fails, lane) {
            let decision = self.script.verdict(&self.plan.lane(lane).id).to_owned();
            return (exit(ExitCause::Exited, 0), Some(AgentReport { decision, ..AgentReport::default() }), None);
        }
        if let (true, Some(complains)) = (fails, self.script.fails_in_base(&key, job)) {
            let reading = Reading::Diagnosis(in_base(commit_name(1), complains));
            return (exit(ExitCause::Exited, 1), None, Some(Box::new(reading)));
        }
        match (fails, self.dice.clone().of(&key) % 3) {
            (false, _) => (exit(ExitCause::Exited, 0), None, None),
            (true, 0) => (exit(ExitCause::TimedOut, 124), None, None),
            (true, _) => (exit(ExitCause::Exited, 1), None, None),
        }
    }

    /// Until when the limit of its account is used up, as an attempt of this kind reports it.
    pub fn limited_until(&self, job: &JobId) -> Option<Timestamp> {
        let wait = self.script.limit_end(&self.key_of(job))?;
        Some(Timestamp::from_unix_millis(self.jobs[job].ends_at + wait))
    }

    /// Starts a job unless it was started before; the supervisor's promise.
    pub fn start(&mut self, job: &JobId, state: &RunState) {
        if !self.planned.contains(job) {
            self.complain(format!("{job} was not on disk before it was started"));
        }
        if job.is_attempt()
            && let Some(lane) = self.lane_of(job)
        {
            self.expect_checkpoint(lane, Stage::AfterLaneStart);
            if self.worker_of(job).is_some_and(|worker| self.private.contains_key(&worker)) {
                self.complain(format!("{job} was started in place of a git directory that was not taken over"));
            }
        }
        let ends_at = self.now + 1 + i64::from(self.dice.roll(60));
        let again = self.bug == Some(Bug::StartTwice);
        match self.jobs.get_mut(job) {
            Some(known) if again && known.exit.is_none() => {
                self.complain(format!("{job} was started twice"));
            }
            Some(_) => {}
            None => {
                let judges = self.judged_by(job, state);
                self.holding.extend(self.lane_of(job));
                self.running.insert(job.clone());
                self.jobs.insert(job.clone(), SimJob { ends_at, stopped: false, exit: None, judges });
            }
        }
    }

    pub(super) fn judged_by(&self, job: &JobId, state: &RunState) -> Option<CommitId> {
        let lane = self.lane_of(job)?;
        match job.role {
            JobRole::Tests => self.lane_branches.get(&lane).cloned(),
            JobRole::MergedTests => state.lane(lane).staged().map(|staged| staged.commit.clone()),
            _ => None,
        }
    }

    /// Stops a job whose lane is rolled back.
    pub fn end(&mut self, job: &JobId) -> Event {
        self.stop(job, true);
        let stopped = (exit(ExitCause::Stopped, 143), None, None);
        self.running.remove(job);
        let (exit, ..) = self.jobs.get_mut(job).unwrap().exit.get_or_insert(stopped).clone();
        Event::JobExited { job: job.clone(), exit, report: None, reading: None, transcript: None }
    }

    pub fn stop(&mut self, job: &JobId, force: bool) {
        let now = self.now;
        let grace = if force { 0 } else { i64::from(self.dice.roll(5)) };
        let never_started = || SimJob { ends_at: now, stopped: true, exit: None, judges: None };
        let known = self.jobs.entry(job.clone()).or_insert_with(|| {
            self.running.insert(job.clone());
            never_started()
        });
        if known.exit.is_none() {
            known.stopped = true;
            known.ends_at = known.ends_at.min(now + grace);
        }
    }
}

/// What the output of a gate means that fails in the same way at `base`, without the changes of its lane.
fn in_base(base: CommitId, complains: bool) -> Diagnosis {
    let finding = Finding { file: None, line: None, column: None, message: "red".into() };
    let findings = if complains { vec![finding] } else { Vec::new() };
    Diagnosis { class: FailureClass::Test, tool: None, count: findings.len(), findings, in_base: Some(base) }
}
