//! One plain line for each event that a user wants to read.

use chrono::FixedOffset;
use lanewright_model::cells::{clean, cut, cut_middle};
use lanewright_model::event::{AgentReport, Event, Idle, LaneStage, Record, RunOutcome, RunStarted, StopReason};
use lanewright_model::must_haves::tally;
use lanewright_model::text::{counted, listed, shell_line};
use lanewright_model::time::short;
use lanewright_model::{
    AgentName, Approval, ExitCause, Failure, FailureKind, JobExit, JobId, JobRole, LaneId, RetryLevel, Timestamp,
    Transcript, Verdict,
};

use crate::answers::approvals::size_of;
use crate::answers::commands::Commands;
use crate::history::{LaneState, RunHistory};
use crate::status::styles::{Styles, Tone};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// On one line, without control characters, beginning with the lane or agent that it is about.
    pub text: String,
    pub tone: Tone,
    /// Whether it stays of interest: endings, retries, questions to the user.
    pub lasting: bool,
}

const LONGEST: usize = 400;

/// How wide the last words of an agent that changed nothing may be in a line.
const MESSAGE: usize = 160;

/// How many files a line names.
const FILES: usize = 3;

/// The line of `--progress plain`: `12:03:04 SL-1 engineer: attempt 1 started (task 1)`, with the time at `offset`.
/// `history` includes the record already. `None` where the event is of no interest to a user.
pub fn line(record: &Record, history: &RunHistory, offset: FixedOffset, styles: Styles) -> Option<String> {
    let line = narrate(record, history).filter(|_| !repeats_an_exit(record))?;
    let time = styles.paint(Tone::Faint, &clock(record.at, offset));
    Some(format!("{time} {}", styles.paint(line.tone, &line.text)))
}

/// Whether the failure is one that the line about the exit before it has shown.
fn repeats_an_exit(record: &Record) -> bool {
    let Event::FailureNoted { failure, .. } = &record.event else { return false };
    let Some(code) = failure.exit_code else { return false };
    [format!("exited with code {code}"), format!("ran out of time (exit code {code})")].contains(&failure.message)
}

/// The time of day at `offset`: `12:03:04`.
pub fn clock(at: Timestamp, offset: FixedOffset) -> String {
    at.0.with_timezone(&offset).format("%H:%M:%S").to_string()
}

/// What happened, as a sentence; `None` where it is of no interest to a user. `history` includes the record already.
#[deny(clippy::wildcard_enum_match_arm, reason = "the compiler names these sentences where an event is added")]
pub fn narrate(record: &Record, history: &RunHistory) -> Option<Line> {
    match &record.event {
        Event::RunStarted(started) => run_started(started),
        Event::RunResumed { number, message, .. } => {
            let said = if message.is_empty() { String::new() } else { format!(": {message}") };
            lasting(Tone::Plain, format!("run resumed (number {number}){said}"))
        }
        Event::RunMoved(moved) => {
            let there = format!("{}:{}", moved.from.host, moved.from.repository.display());
            let here = format!("{}:{}", moved.to.host, moved.to.repository.display());
            lasting(Tone::Warn, format!("the run was taken from {there} to {here}"))
        }
        Event::StopRequested { lane, reason, force } => stop_requested(lane.as_ref(), *reason, *force),
        Event::LaneOffered { .. } => None,
        Event::LanePlaced { lane, ticket, .. } => lasting(Tone::Plain, format!("{lane}: waits for job {ticket}")),
        Event::LaneClaimed { moved: true, .. } => None,
        Event::LaneClaimed { lane, host, .. } => lasting(Tone::Plain, format!("{lane}: works on {host}")),
        Event::LaneReturned { .. } => None,
        Event::PlacementEnded { outcome: Some(_), .. } => None,
        Event::PlacementEnded { lane, reason, .. } => lasting(Tone::Warn, format!("{lane}: {reason}")),
        // What was found in its place is described in words.
        Event::WorktreeLost { .. } => None,
        Event::PersonAsked { lane, agent, task } => {
            lasting(Tone::Warn, format!("{lane} {agent}: task {task} is yours; the lane waits for your answer"))
        }
        Event::GateAnswered { lane, gate, approved, message } => {
            let gate = gate.for_people();
            let answer = if *approved { "approved" } else { "rejected" };
            lasting(Tone::Plain, format!("{lane}: {gate} {answer}{}", after_colon(message)))
        }
        Event::LaneMoved { lane, from, to } => lane_moved(history, lane, *from, *to),
        Event::JobStarted { job, .. } => job_started(history, job, record.at),
        Event::JobExited { job, exit, report, transcript, .. } => {
            job_exited(job, exit, report.as_ref(), transcript.as_deref())
        }
        Event::WorkCommitted { lane, agent, changed, prohibited, idle, .. } => {
            // The failure that follows says it.
            let fails = *idle == Idle::Agent && must_change(history, lane, agent);
            if fails || !prohibited.is_empty() { None } else { work_committed(lane, agent, changed, *idle) }
        }
        // A task that passed its gate is reported by the gate; routine snapshots are not reported.
        Event::SnapshotTaken { reason, .. } if reason.is_on_the_way() => None,
        Event::SnapshotTaken { lane, agent, reference, .. } => {
            passing(Tone::Faint, format!("{}: work in progress saved as {reference}", who(lane, agent.as_ref())))
        }
        Event::SnapshotFailed { lane, agent, error, .. } => {
            lasting(Tone::Warn, format!("{}: no snapshot could be taken: {error}", who(lane, agent.as_ref())))
        }
        Event::SnapshotDamaged { lane, agent, commit, error, .. } => {
            let what =
                format!("{}: what was kept as {} is damaged: {error}", who(lane, agent.as_ref()), commit.short());
            lasting(Tone::Warn, what)
        }
        Event::BranchMoved { lane, agent, head } => {
            let whose = agent.as_ref().map_or_else(|| lane.to_string(), |agent| format!("{lane} {agent}"));
            let message = format!("{whose}: its branch is at {} now; what it holds is judged again", head.short());
            lasting(Tone::Warn, message)
        }
        Event::AgentMerged { lane, agent, head } => {
            passing(Tone::Plain, format!("{lane} {agent}: merged into the lane at {}", head.short()))
        }
        Event::FailureNoted { lane, agent, failure, .. } => {
            let message = message(failure);
            let paths =
                if failure.paths.is_empty() { String::new() } else { format!(" [{}]", listed(&failure.paths, FILES)) };
            lasting(Tone::Warn, format!("{}: {message}{paths}", who(lane, agent.as_ref())))
        }
        Event::RetryPlanned { lane, agent, level, not_before, checkpoint } => {
            let of = checkpoint.max_retries.map(|max| format!(" of {max}")).unwrap_or_default();
            let wait = not_before.since(record.at);
            let when = if wait.as_secs() == 0 { String::new() } else { format!(" in {}", short(wait)) };
            let number = checkpoint.retry_attempt.map(|number| format!(" {number}")).unwrap_or_default();
            let what = match level {
                RetryLevel::Retry => format!("retry{number}{of}{when}"),
                RetryLevel::Rollback => {
                    format!("reset to the last passing state; last attempt, with a different approach{when}")
                }
                RetryLevel::Wait => format!("trying again{when} (not counted as a retry)"),
            };
            lasting(Tone::Warn, format!("{lane} {agent}: {what}"))
        }
        Event::AgentReset { lane, agent, head } => {
            passing(Tone::Plain, format!("{lane} {agent}: starts again from {}", head.short()))
        }
        Event::LaneReset { lane, base } => lasting(Tone::Plain, format!("{lane}: is built again on {}", base.short())),
        Event::MergeStaged { lane, moved: true, .. } => {
            passing(Tone::Plain, format!("{lane}: {} has moved; merging again on top of it", history.run.base_branch()))
        }
        Event::MustHavesChecked { lane, verdicts, .. } => must_haves_checked(lane, verdicts),
        Event::ChangesMeasured { lane, changes, .. } if changes.is_empty() => {
            lasting(Tone::Plain, format!("{lane}: changed nothing, so there is nothing to approve"))
        }
        Event::MergesBisected { lane, culprit, commit } => {
            let what = lane.as_ref().map_or_else(|| "final gate".to_owned(), |lane| format!("{lane}: tests"));
            let at = commit.as_ref().map(|commit| format!(" ({})", commit.short())).unwrap_or_default();
            match culprit {
                Some(culprit) => lasting(Tone::Warn, format!("{what}: first failing with the merge of {culprit}{at}")),
                None => lasting(Tone::Warn, format!("{what}: no merge is to blame")),
            }
        }
        Event::MergeSuperseded { lane } => {
            passing(Tone::Plain, format!("{lane}: {} moved again, merging once more", history.run.base_branch()))
        }
        Event::LaneMerged { lane, commit, .. } => lane_merged(history, lane, commit.short(), record.at),
        Event::BranchPushed { lane, remote, branch, head } => {
            passing(Tone::Plain, format!("{lane}: {branch} pushed to {remote} at {}", head.short()))
        }
        Event::PullRequestOpened { lane, pull_request, updated, .. } => {
            let how = if *updated { "brought up to date" } else { "opened" };
            lasting(Tone::Good, format!("{lane}: pull request {how}: {}", pull_request.url))
        }
        Event::ForgeUnavailable { lane, outage } => {
            lasting(Tone::Warn, format!("{lane}: the remote or the forge cannot be reached: {}", outage.line))
        }
        Event::LaneCleaned { lane, kept } if !kept.is_empty() => {
            lasting(Tone::Warn, format!("{lane}: kept {}", kept.join(", ")))
        }
        Event::LaneFailed { lane, failure } => lasting(Tone::Bad, format!("{lane}: failed: {}", message(failure))),
        Event::LaneBlocked { lane, reason } => lasting(Tone::Warn, format!("{lane}: blocked: {reason}")),
        Event::LaneSkipped { lane, reason } if reason.is_empty() => lasting(Tone::Warn, format!("{lane}: skipped")),
        Event::LaneSkipped { lane, reason } => lasting(Tone::Warn, format!("{lane}: skipped: {reason}")),
        Event::LaneRolledBack { lane, kept, .. } => {
            let kept = if kept.is_empty() { String::new() } else { format!(", kept {}", kept.join(", ")) };
            lasting(Tone::Warn, format!("{lane}: rolled back{kept}"))
        }
        Event::Noted { lane: Some(lane), message } if counts_agents(message) => {
            passing(Tone::Plain, format!("{lane}: {message}"))
        }
        Event::Noted { lane: Some(lane), message } => lasting(Tone::Plain, format!("{lane}: {message}")),
        Event::Noted { lane: None, message } => lasting(Tone::Plain, message.clone()),
        Event::Slept { duration } => {
            let what = "(the machine slept, or it was stopped); limits do not count that time";
            lasting(Tone::Plain, format!("Lanewright did not run for {} {what}", short(*duration)))
        }
        Event::RunFinished { outcome, .. } => run_finished(history, *outcome, record.at),
        // Reported by what comes next, or of interest to programs only.
        Event::LaneBased { .. }
        | Event::WorktreeOpened { .. }
        | Event::WorktreeReleased { .. }
        | Event::CheckpointReached { .. }
        | Event::JobPlanned { .. }
        | Event::MergeStaged { moved: false, .. }
        | Event::RollbackBegun { .. }
        | Event::LaneCleaned { .. }
        | Event::FinalOpened { .. }
        | Event::PoolEmptied { .. }
        | Event::WorktreeMadeAhead { .. }
        | Event::GitWorked { .. }
        | Event::ChangesMeasured { .. } => None,
        Event::PhaseBlocked { reason } => lasting(Tone::Warn, format!("blocked: {reason}")),
    }
}

/// Whether it counts the agents of a round that ended (`schedule/completion.rs`); what failed is reported besides.
fn counts_agents(message: &str) -> bool {
    message.contains(" agents: ") && message.ends_with(" missing")
}

fn passing(tone: Tone, text: String) -> Option<Line> {
    Some(Line { text: cut(&clean(&text), LONGEST), tone, lasting: false })
}

fn lasting(tone: Tone, text: String) -> Option<Line> {
    passing(tone, text).map(|line| Line { lasting: true, ..line })
}

fn who(lane: &LaneId, agent: Option<&AgentName>) -> String {
    agent.map_or_else(|| lane.to_string(), |agent| format!("{lane} {agent}"))
}

fn message(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Idle => cut_middle(&clean(&failure.message), MESSAGE),
        _ => failure.message.clone(),
    }
}

fn after_colon(message: &str) -> String {
    if message.trim().is_empty() { String::new() } else { format!(": {message}") }
}

fn run_started(started: &RunStarted) -> Option<Line> {
    let RunStarted { run_id, phase, base_branch, base_commit, .. } = started;
    lasting(Tone::Plain, format!("run {run_id} of {phase} started on {base_branch} at {}", base_commit.short()))
}

fn stop_requested(lane: Option<&LaneId>, reason: StopReason, force: bool) -> Option<Line> {
    let why = match reason {
        StopReason::Interrupt => "Ctrl-C",
        StopReason::Terminate => "a signal",
        StopReason::Request => "a request",
        StopReason::Timeout => "the time limit",
        StopReason::FailFast => "a failed lane",
    };
    let what = lane.map_or("run", LaneId::as_str);
    let how = if force { "agents are killed" } else { "agents are asked to stop and their work is kept" };
    lasting(Tone::Warn, format!("{what}: stopping after {why}; {how}"))
}

/// The command that shows the changes, in parentheses.
fn look(history: &RunHistory, lane: &LaneId, gate: Approval) -> String {
    let run = history.run.run_id().filter(|_| gate == Approval::Changes);
    let program = ["lanewright".to_owned()];
    let command = |run| shell_line(Commands { program: &program, run }.diff(lane));
    run.map(|run| format!(" ({})", command(run))).unwrap_or_default()
}

fn lane_moved(history: &RunHistory, lane: &LaneId, from: LaneStage, to: LaneStage) -> Option<Line> {
    let state = history.lane(lane).map(|lane| lane.state);
    if let Some(LaneState::NeedsApproval(gate)) = state {
        let size = history.lane(lane).map(|lane| size_of(lane, gate)).unwrap_or_default();
        return lasting(
            Tone::Warn,
            format!("{lane}: waits for your approval of its {gate}{size}{}", look(history, lane, gate)),
        );
    }
    match (from, to) {
        (LaneStage::Waiting, _) => passing(Tone::Plain, format!("{lane}: starts")),
        (_, LaneStage::Implementation) if from > to => passing(Tone::Plain, format!("{lane}: sent back to the agent")),
        _ => None,
    }
}

fn subject(job: &JobId) -> String {
    let words = job.lane.as_ref().map(LaneId::as_str).into_iter().chain(job.agent().map(AgentName::as_str));
    let words: Vec<&str> = words.collect();
    if words.is_empty() { "run".to_owned() } else { words.join(" ") }
}

fn what(job: &JobId) -> String {
    match &job.role {
        JobRole::Attempt { task, .. } => format!("attempt {} (task {task})", job.number),
        JobRole::Verify { task, .. } => format!("check of task {task}"),
        JobRole::Setup { .. } => "setup".to_owned(),
        JobRole::Checkpoint { .. } => "checkpoint gate".to_owned(),
        JobRole::Tests => "tests".to_owned(),
        JobRole::MergedTests => "tests of the merged result".to_owned(),
        JobRole::Final => "final gate".to_owned(),
    }
}

fn job_started(history: &RunHistory, job: &JobId, at: Timestamp) -> Option<Line> {
    let jobs = job.lane.as_ref().and_then(|lane| history.lane(lane)).map_or(&history.run.jobs, |lane| &lane.jobs);
    // A resume that attaches to a job tells its supervisor again; nothing begins then.
    let earlier = jobs.running.iter().any(|known| known.job == *job && known.since < at);
    let text = match &job.role {
        _ if earlier => format!("{} found running", what(job)),
        JobRole::Attempt { task, .. } => format!("attempt {} started (task {task})", job.number),
        _ => format!("{} started", what(job)),
    };
    passing(Tone::Plain, format!("{}: {text}", subject(job)))
}

fn job_exited(
    job: &JobId,
    exit: &JobExit,
    report: Option<&AgentReport>,
    transcript: Option<&Transcript>,
) -> Option<Line> {
    let took = short(exit.finished_at.since(exit.started_at));
    let (tone, end) = match exit.cause {
        ExitCause::Exited if exit.passed() && job.is_attempt() => (Tone::Plain, format!("finished in {took}")),
        ExitCause::Exited if exit.passed() => (Tone::Good, format!("passed in {took}")),
        ExitCause::Exited => {
            (Tone::Warn, format!("failed after {took} (exit code {}): {}", exit.exit_code, exit.command))
        }
        ExitCause::TimedOut => (Tone::Warn, format!("ran out of time after {took}: {}", exit.command)),
        ExitCause::Stopped => (Tone::Plain, format!("was stopped after {took}")),
        ExitCause::NotStarted => (Tone::Warn, format!("could not be started: {}", exit.command)),
        ExitCause::Lost => (Tone::Warn, "ended unseen, its supervisor is gone".to_owned()),
    };
    let more = notes(exit);
    let used = transcript.map(|transcript| transcript.usage).filter(|usage| !usage.is_empty());
    let used = used.map(|usage| format!(", {usage}")).unwrap_or_default();
    passing(tone, format!("{}: {} {end}{used}{more}{}", subject(job), what(job), said(exit, report)))
}

/// The notes of the exit in parentheses; how long it took says which time limit passed.
fn notes(exit: &JobExit) -> String {
    let is_limit = |note: &&str| exit.cause == ExitCause::TimedOut && note.starts_with("the time limit of ");
    let notes: Vec<&str> = exit.notes.split("; ").filter(|note| !note.is_empty() && !is_limit(note)).collect();
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// What the agent reported, where its exit does not imply it.
fn said(exit: &JobExit, report: Option<&AgentReport>) -> String {
    // What the supervisor wrote on the agent's behalf is the exit.
    let own = report.filter(|report| report.status != "ERROR" || !report.message.contains(&exit.command));
    let Some(report) = own else { return String::new() };
    // Who is yet to decide has said nothing.
    let decision = if report.decision == "PENDING" { "" } else { &report.decision };
    let words: [&str; 5] = [&report.status, decision, &report.message, &report.feedback, &report.fault];
    let report: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    if report.is_empty() || report == ["COMPLETE"] {
        String::new()
    } else {
        format!("; it reports: {}", report.join(", "))
    }
}

/// Whether an agent fails that changed nothing so far: its other tasks may change something, and what was merged into the
/// lane before may stay as it is.
fn must_change(history: &RunHistory, lane: &LaneId, agent: &AgentName) -> bool {
    let Some(lane) = history.lane(lane) else { return true };
    let attempt = lane.jobs.last_ended(|job| job.job.is_attempt() && job.job.agent() == Some(agent));
    let tasks = lane.tasks.iter().find(|(name, _)| name == agent).map(|(_, tasks)| tasks);
    let is_last = attempt.zip(tasks).is_none_or(|(attempt, tasks)| attempt.job.task() == tasks.last());
    is_last && lane.merges.iter().all(|merge| merge.agent.as_ref() != Some(agent))
}

fn work_committed(lane: &LaneId, agent: &AgentName, changed: &[String], idle: Idle) -> Option<Line> {
    if idle != Idle::No {
        return lasting(Tone::Warn, format!("{lane} {agent}: the task changed no file"));
    }
    match changed.len() {
        0 => passing(Tone::Faint, format!("{lane} {agent}: changed no file")),
        count => passing(Tone::Plain, format!("{lane} {agent}: changed {}", counted(count, "file"))),
    }
}

fn must_haves_checked(lane: &LaneId, verdicts: &[Verdict]) -> Option<Line> {
    let text = format!("{lane}: must-haves: {}", tally(verdicts));
    let broken: Vec<String> =
        verdicts.iter().filter(|verdict| verdict.holds == Some(false)).map(Verdict::describe).collect();
    if broken.is_empty() {
        return passing(Tone::Plain, text);
    }
    lasting(Tone::Warn, format!("{text}; {}", broken.join("; ")))
}

fn lane_merged(history: &RunHistory, id: &LaneId, commit: &str, at: Timestamp) -> Option<Line> {
    let lane = history.lane(id)?;
    let took = history.lane_elapsed(lane, at).map(|took| format!(" after {}", short(took))).unwrap_or_default();
    let text = if history.run.merges() {
        format!("{id}: merged into {} at {commit}{took}", history.run.base_branch())
    } else {
        format!("{id}: done on {} at {commit}{took}", lane.workplace.branch().unwrap_or("its branch"))
    };
    lasting(Tone::Good, text)
}

fn run_finished(history: &RunHistory, outcome: RunOutcome, at: Timestamp) -> Option<Line> {
    let took = history.elapsed(at).map(|took| format!(" after {}", short(took))).unwrap_or_default();
    let tone = match outcome {
        RunOutcome::Done => Tone::Good,
        RunOutcome::Failed => Tone::Bad,
        RunOutcome::Blocked | RunOutcome::Stopped | RunOutcome::RolledBack => Tone::Warn,
    };
    if outcome == RunOutcome::RolledBack {
        return lasting(tone, "run rolled back".to_owned());
    }
    let all = history.lanes().iter().filter(|lane| lane.state != LaneState::Skipped).count();
    let how = if history.run.proposes() { "done" } else { "merged" };
    lasting(tone, format!("run {outcome}{took}: {} of {} {how}", history.done(), counted(all, "lane")))
}

#[cfg(test)]
mod tests;
