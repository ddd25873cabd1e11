//! Jobs: agents' attempts and the runs of gates.

use lanewright_model::cells::clean;
use lanewright_model::event::{AgentReport, Event, MadeWith, Reading};
use lanewright_model::text::headline;
use lanewright_model::{
    AgentName, Diagnosis, ExitCause, Failure, FailureKind, JobExit, JobId, Outage, RetryLevel, Timestamp, Transcript,
};

#[derive(Debug, Clone, PartialEq)]
pub struct JobHistory {
    /// Its number is the attempt's.
    pub job: JobId,
    /// Since when it is planned, or runs.
    pub since: Timestamp,
    /// Whether its supervisor runs.
    pub running: bool,
    /// When its end was recorded.
    pub ended: Option<Timestamp>,
    /// `None` while it runs, or when its end will never be known.
    pub exit: Option<JobExit>,
    pub transcript: Option<Box<Transcript>>,
    pub report: Option<Box<AgentReport>>,
    pub reading: Option<Box<Reading>>,
    /// What this attempt is made with, where the log has it.
    pub made_with: Option<Box<MadeWith>>,
    /// The retry that this attempt is.
    pub retry: Option<Box<Retry>>,
    /// Why the attempt counts as failed although its program ended with 0.
    pub rejected: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    pub agent: AgentName,
    pub level: RetryLevel,
    /// Which one, from 1; `None` where it is not counted.
    pub number: Option<u32>,
    pub of: Option<u32>,
    /// How many retries of the agent were counted so far.
    pub counted: u32,
    pub reason: String,
    pub planned: Timestamp,
    pub not_before: Timestamp,
    pub begun: bool,
}

impl Retry {
    /// `1 of 3`, and whether the last attempt followed.
    pub fn used(&self) -> String {
        let last = if self.level == RetryLevel::Rollback { ", then a different approach" } else { "" };
        format!("{}{last}", self.numbered())
    }

    /// What the attempt is that follows.
    pub fn describe(&self) -> String {
        match self.level {
            RetryLevel::Rollback => "last attempt, with a different approach".to_owned(),
            RetryLevel::Wait => "tried again, not counted as a retry".to_owned(),
            RetryLevel::Retry => format!("retry {}", self.numbered()),
        }
    }

    /// Which retry; of the last attempt, how many there were.
    pub fn attempt(&self) -> u32 {
        self.number.unwrap_or(self.counted)
    }

    fn numbered(&self) -> String {
        format!("{} of {}", self.attempt(), self.of.unwrap_or_default())
    }
}

#[derive(Debug, Clone, Default)]
pub struct Jobs {
    /// Planned or running, oldest first.
    pub running: Vec<JobHistory>,
    /// In the order they ended.
    pub ended: Vec<JobHistory>,
}

impl Jobs {
    /// Ended ones first.
    pub fn all(&self) -> impl Iterator<Item = &JobHistory> {
        self.ended.iter().chain(&self.running)
    }

    pub fn last_ended(&self, wanted: impl Fn(&JobHistory) -> bool) -> Option<&JobHistory> {
        self.ended.iter().rev().find(|job| wanted(job))
    }

    /// Notes that the work or the report of the last attempt of `agent` does not count.
    pub(super) fn reject(&mut self, agent: &AgentName, failure: &Failure) {
        use FailureKind::{Idle, Network, Ownership, Quota, Report};
        let last = self.ended.iter_mut().rfind(|job| job.job.agent() == Some(agent));
        let passed = last.filter(|job| job.job.is_attempt() && job.passed() == Some(true));
        if let Some(job) = passed.filter(|_| matches!(failure.kind, Idle | Network | Ownership | Quota | Report)) {
            let paths = if failure.paths.is_empty() { "" } else { ": " };
            job.rejected = Some(format!("{}{paths}{}", failure.headline(), failure.paths.join(", ")));
        }
    }

    /// Planned, running, ended: the first end of a job is final. `retry`: that of a planned attempt.
    pub(super) fn apply(&mut self, event: &Event, at: Timestamp, retry: Option<Retry>) {
        let (job, supervised) = match event {
            Event::JobPlanned { job, .. } => (job, false),
            Event::JobStarted { job, .. } | Event::JobExited { job, .. } => (job, true),
            _ => return,
        };
        if self.last_ended(|ended| ended.job == *job).is_some() {
            return;
        }
        let known = self.running.iter().position(|running| running.job == *job);
        let index = known.unwrap_or_else(|| {
            self.running.push(JobHistory::planned(job, at, supervised));
            self.running.len() - 1
        });
        if let Event::JobExited { exit, .. } = event {
            let since = if known.is_none() { exit.started_at } else { self.running[index].since };
            let job = JobHistory { since, ..self.running.remove(index) };
            return self.ended.push(job.with_end(event, at));
        }
        let job = &mut self.running[index];
        if supervised && !job.running {
            (job.since, job.running) = (at, true);
        }
        job.retry = retry.map(Box::new).or(job.retry.take());
        if let Event::JobPlanned { made_with, .. } = event {
            job.made_with.clone_from(made_with);
        }
    }
}

impl JobHistory {
    fn planned(job: &JobId, since: Timestamp, running: bool) -> Self {
        Self {
            job: job.clone(),
            since,
            running,
            ended: None,
            exit: None,
            transcript: None,
            report: None,
            reading: None,
            made_with: None,
            retry: None,
            rejected: None,
        }
    }

    fn with_end(mut self, event: &Event, at: Timestamp) -> Self {
        if let Event::JobExited { exit, report, reading, transcript, .. } = event {
            self.running = false;
            self.ended = Some(at);
            self.exit = Some(exit.clone());
            self.report = report.clone().map(Box::new);
            self.reading.clone_from(reading);
            self.transcript.clone_from(transcript);
        }
        self
    }

    /// From when to when it ran; until `now` while it runs.
    pub fn span(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        self.exit.as_ref().map_or((self.since, now), |exit| (exit.started_at, exit.finished_at))
    }

    /// The same of a job without a known end: until `now` if its supervisor runs, else no time.
    pub fn ran(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        self.span(if self.running { now } else { self.since })
    }

    pub fn passed(&self) -> Option<bool> {
        self.exit.as_ref().map(JobExit::passed)
    }

    /// What the agent reported when it ended with 0 but is blocked.
    pub fn blocked(&self) -> Option<&str> {
        let report = self.report.as_deref().filter(|report| report.status == "BLOCKED" && !report.rejects())?;
        (self.passed() == Some(true)).then_some(report.message.as_str())
    }

    /// What it was refused since it wrote a file for the last time.
    pub fn refused(&self) -> Option<String> {
        self.transcript.as_deref().map(Transcript::refused).filter(|text| !text.is_empty())
    }

    /// The end of the output of a job that did not pass, oldest line first.
    pub fn failed_tail(&self) -> &[String] {
        self.exit.as_ref().filter(|exit| !exit.passed()).map(|exit| exit.tail.as_slice()).unwrap_or_default()
    }

    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        let Reading::Diagnosis(diagnosis) = self.reading.as_deref()? else { return None };
        Some(diagnosis)
    }

    pub fn outage(&self) -> Option<&Outage> {
        let Reading::Outage(outage) = self.reading.as_deref()? else { return None };
        Some(outage)
    }

    /// Whether it failed otherwise than by being stopped.
    pub(super) fn failed_by_itself(&self) -> bool {
        self.rejected.is_some()
            || self.exit.as_ref().is_some_and(|exit| !exit.passed() && exit.cause != ExitCause::Stopped)
    }

    /// `attempt 2 of engineer at task 1`, `tests`, `checkpoint of engineer`; of gates without the number of the run.
    pub fn label(&self) -> String {
        let kind = self.job.role.title();
        let mut text = if self.job.is_attempt() { format!("{kind} {}", self.job.number) } else { kind.to_owned() };
        if let Some(agent) = self.job.agent() {
            text.push_str(&format!(" of {agent}"));
        }
        if let Some(task) = self.job.task() {
            text.push_str(&format!(" at task {task}"));
        }
        if let Some(runner) = self.fallback() {
            text.push_str(&format!(" with {}", headline(&clean(runner), 40)));
        }
        text
    }

    /// The runner of the agent's `fallback` that makes this attempt; `None`: its own.
    pub fn fallback(&self) -> Option<&String> {
        self.made_with.as_ref()?.fallback()
    }

    /// How it ended, in a few words.
    pub fn ending(&self) -> String {
        let Some(exit) = &self.exit else { return "has not ended".to_owned() };
        match exit.cause {
            ExitCause::Exited if self.rejected.is_some() => "rejected".to_owned(),
            ExitCause::Exited if self.blocked().is_some() => "blocked".to_owned(),
            ExitCause::Exited if exit.exit_code == 0 => "passed".to_owned(),
            ExitCause::Exited => format!("exit code {}", exit.exit_code),
            ExitCause::TimedOut => "ran out of time".to_owned(),
            ExitCause::Stopped => "was stopped".to_owned(),
            ExitCause::NotStarted => "could not be started".to_owned(),
            ExitCause::Lost => "ended unseen".to_owned(),
        }
    }
}

lanewright_model::word_enum! {
    /// The state of an agent, in the words of `task.json` (seed 003, Recovery Procedure 2).
    AgentStatus {
        /// No attempt was planned since the lane began.
        Missing = "MISSING",
        /// An attempt or its gate is planned, runs, or was stopped.
        Working = "WORKING",
        /// Its last task passed, or its work is in the lane.
        Complete = "COMPLETE",
        Error = "ERROR",
        Timeout = "TIMEOUT",
        /// It reported that it is blocked.
        Blocked = "BLOCKED",
    }
}
