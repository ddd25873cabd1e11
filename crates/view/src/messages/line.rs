//! One plain line for each event that a user wants to read.

use std::time::Duration;

use chrono::FixedOffset;
use lanewright_model::cells::{clean, cut, cut_middle};
use lanewright_model::event::{
    AgentReport, ChosenBy, Event, Idle, LaneStage, Place, Record, RunMoved, RunOutcome, RunStarted, StopReason,
};
use lanewright_model::must_haves::tally;
use lanewright_model::text::{counted, headline, listed, shell_line};
use lanewright_model::time::{LocalTime, short};
use lanewright_model::{
    AgentName, Approval, Checkpoint, ChecksState, CommitId, ExitCause, Failure, FailureKind, JobExit, JobId, JobRole,
    LaneId, Outage, OutageKind, Remark, RetryLevel, Timestamp, Transcript, Verdict,
};

use crate::answers::approvals::{answer_word, commit_of, subject_of};
use crate::answers::commands::Commands;
use crate::answers::next_steps::names;
use crate::history::{JobHistory, LaneHistory, LaneState, RunHistory, event_logged};
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
    let line = narrate(record, history, offset).filter(|_| !repeats_an_exit(record))?;
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

/// What happened, as a sentence; `None` where it is of no interest to a user. `history` includes the record already;
/// times of day are at `offset`.
pub fn narrate(record: &Record, history: &RunHistory, offset: FixedOffset) -> Option<Line> {
    let line = sentence(record, history, offset)?;
    let text = subject(&record.event).map_or_else(|| line.text.clone(), |subject| format!("{subject}: {}", line.text));
    Some(Line { text: cut(&clean(&text), LONGEST), ..line })
}

/// The lane and the agent that the event is about.
fn subject(event: &Event) -> Option<String> {
    let (lane, agent) = match event {
        Event::JobStarted { job, .. } | Event::JobExited { job, .. } => (job.lane.as_ref(), job.agent()),
        Event::SnapshotDamaged { lane, agent, .. } | Event::BranchMoved { lane, agent, .. } => {
            (Some(lane), agent.as_ref())
        }
        event => (event.facts().lane, event.facts().agent),
    };
    let is_of_run = matches!(event, Event::StopRequested { .. } | Event::JobStarted { .. } | Event::JobExited { .. });
    let names: Vec<&str> = lane.map(LaneId::as_str).into_iter().chain(agent.map(AgentName::as_str)).collect();
    if names.is_empty() { is_of_run.then(|| "run".to_owned()) } else { Some(names.join(" ")) }
}

/// The sentence without its subject.
#[deny(clippy::wildcard_enum_match_arm, reason = "the compiler names these sentences where an event is added")]
fn sentence(record: &Record, history: &RunHistory, offset: FixedOffset) -> Option<Line> {
    use Tone::{Bad, Faint, Good, Plain, Warn};
    let base_branch = history.run.base_branch();
    let now = LocalTime { at: record.at, offset };
    match &record.event {
        Event::RunStarted(started) => run_started(started),
        Event::RunResumed { number, message, .. } => {
            let waits = history.awaited_runners(now, true).filter(|(pause, _)| pause.until > Some(record.at));
            let waits: String = waits.map(|(_, words)| format!("; {words}")).collect();
            lasting(Plain, format!("run resumed (number {number}){}{waits}", after_colon(message)))
        }
        Event::RunMoved(moved) => run_moved(moved),
        Event::StopRequested { reason, force, .. } => stop_requested(*reason, *force),
        Event::RunFinished { outcome, .. } => run_finished(history, *outcome, record.at),
        Event::PhaseBlocked { reason } | Event::LaneBlocked { reason, .. } => {
            lasting(Warn, format!("blocked: {reason}"))
        }
        Event::Slept { duration } => slept(*duration),
        Event::RunnerPaused { account, outage, .. } => runner_paused(history, account, outage, now),
        Event::RunnerContinued { account } => lasting(Good, format!("{} is available again", headline(account, 40))),
        Event::Noted { lane: Some(_), message } if counts_agents(message) => passing(Plain, message.clone()),
        Event::Noted { message, .. } => lasting(Plain, message.clone()),
        Event::EventLogged { name, data, .. } => lasting(Plain, event_logged(name, data.as_ref())),

        Event::LaneMoved { lane, from, to } => lane_moved(history, lane, *from, *to),
        Event::LanePlaced { ticket, .. } => lasting(Plain, format!("waits for job {ticket}")),
        Event::LaneClaimed { host, moved: false, .. } => lasting(Plain, format!("works on {host}")),
        Event::PlacementEnded { reason, outcome: None, .. } => lasting(Warn, reason.clone()),
        Event::CandidatePicked { agent, .. } => lasting(Plain, format!("you picked {agent}")),
        Event::CandidateChosen { agent, by, .. } => lasting(Plain, format!("{agent} was chosen: {}", chosen_by(*by))),
        Event::BranchMoved { head, .. } => {
            lasting(Warn, format!("its branch is at {} now; what it holds is judged again", head.short()))
        }
        Event::LaneReset { base, .. } => lasting(Plain, format!("is built again on {}", base.short())),
        Event::LaneSkipped { reason, .. } if reason.is_empty() => lasting(Warn, "skipped".to_owned()),
        Event::LaneSkipped { reason, .. } => lasting(Warn, format!("skipped: {reason}")),
        Event::LaneFailed { failure, .. } => lasting(Bad, format!("failed: {}", message(failure))),
        Event::LaneRolledBack { kept, point, .. } => {
            let to = point.as_ref().map(|point| format!(" to {}", point.name)).unwrap_or_default();
            let kept = if kept.is_empty() { String::new() } else { format!(", kept {}", kept.join(", ")) };
            lasting(Warn, format!("rolled back{to}{kept}"))
        }
        Event::LaneCleaned { kept, .. } | Event::PoolEmptied { kept } if !kept.is_empty() => {
            lasting(Warn, format!("kept {}", kept.join(", ")))
        }

        Event::JobStarted { job, .. } => job_started(history, job, record.at),
        Event::JobExited { job, exit, report, transcript, .. } => {
            job_exited(job, exit, report.as_ref(), transcript.as_deref())
        }
        Event::WorkCommitted { .. } => work_committed(history, &record.event),
        Event::AgentMerged { head, .. } => passing(Plain, format!("merged into the lane at {}", head.short())),
        // Each follows from an event that is reported.
        Event::AgentMoved { .. } => None,
        Event::AgentReset { head, .. } => passing(Plain, format!("starts again from {}", head.short())),
        Event::FailureNoted { failure, .. } => failure_noted(failure),
        Event::RetryPlanned { lane, level, not_before, checkpoint, .. } => {
            let was_sent_back = history.lane(lane).is_some_and(was_sent_back);
            retry_planned(*level, not_before.since(record.at), checkpoint, was_sent_back)
        }
        // A task that passed its gate is reported by the gate; routine snapshots are not reported, nor those without work.
        Event::SnapshotTaken { reason, unchanged, .. } if *unchanged || reason.is_routine() => None,
        Event::SnapshotTaken { reference, .. } => passing(Faint, format!("work in progress saved as {reference}")),
        Event::SnapshotFailed { error, .. } => lasting(Warn, format!("no snapshot could be taken: {error}")),
        Event::SnapshotDamaged { commit, error, .. } => {
            lasting(Warn, format!("what was kept as {} is damaged: {error}", commit.short()))
        }

        Event::PersonAsked { task, .. } => {
            lasting(Warn, format!("task {task} is yours; the lane waits for your answer"))
        }
        Event::GateAnswered { gate, approved, message, .. } => {
            lasting(Plain, format!("{} {}{}", gate.for_people(), answer_word(*approved), after_colon(message)))
        }
        Event::MessageSent { message, .. } => lasting(Plain, format!("you said: {message}")),
        Event::MustHavesChecked { verdicts, .. } => must_haves_checked(verdicts),
        Event::ChangesMeasured { changes, .. } if changes.is_empty() => {
            lasting(Plain, "changed nothing, so there is nothing to approve".to_owned())
        }
        Event::MergeStaged { moved: true, .. } => {
            passing(Plain, format!("{base_branch} has moved; merging again on top of it"))
        }
        Event::MergeSuperseded { .. } => passing(Plain, format!("{base_branch} moved again, merging once more")),
        Event::MergesBisected { lane, culprit, commit } => {
            merges_bisected(lane.is_some(), culprit.as_deref(), commit.as_ref())
        }
        Event::LaneMerged { lane, commit, .. } => lane_merged(history, lane, commit.short(), record.at),
        Event::BranchPushed { remote, branch, head, .. } => {
            passing(Plain, format!("{branch} pushed to {remote} at {}", head.short()))
        }
        Event::PullRequestOpened { pull_request, updated, .. } => {
            let how = if *updated { "brought up to date" } else { "opened" };
            lasting(Good, format!("pull request {how}: {}", pull_request.url))
        }
        Event::PullRequestChanged { status, .. } => {
            let tone = if status.checks == ChecksState::Failed { Warn } else { Plain };
            lasting(tone, format!("pull request: {status}"))
        }
        Event::FeedbackReceived { remarks, .. } => feedback_received(remarks),
        Event::PullRequestRefused { reason, .. } => {
            passing(Warn, format!("the forge does not merge the pull request: {reason}"))
        }
        Event::PullRequestsChecked { error } if !error.is_empty() => {
            passing(Warn, format!("the forge did not say what became of pull requests: {error}"))
        }
        Event::PullRequestsChecked { .. } => None,
        Event::ForgeUnavailable { outage, .. } => {
            lasting(Warn, format!("the remote or the forge cannot be reached: {}", outage.line))
        }

        // Reported by what comes next.
        Event::WorktreeLost { .. } | Event::LaneClaimed { .. } | Event::PlacementEnded { .. } => None,
        Event::LaneOffered { .. } | Event::LaneReturned { .. } | Event::RollbackBegun { .. } => None,
        // Of interest to programs only.
        Event::LaneBased { lane, .. } => asks_for_approval(history, lane),
        Event::LaneCleaned { .. } | Event::CheckpointReached { .. } => None,
        Event::WorktreeOpened { .. } | Event::WorktreeReleased { .. } | Event::WorktreeMadeAhead { .. } => None,
        Event::FinalOpened { .. } | Event::PoolEmptied { .. } | Event::JobPlanned { .. } => None,
        Event::MergeStaged { .. } | Event::ChangesMeasured { .. } | Event::GitWorked { .. } => None,
    }
}

/// Whether it counts the agents of a round that ended (`schedule/completion.rs`); what failed is reported besides.
fn counts_agents(message: &str) -> bool {
    message.contains(" agents: ") && message.ends_with(" missing")
}

fn passing(tone: Tone, text: String) -> Option<Line> {
    Some(Line { text, tone, lasting: false })
}

fn lasting(tone: Tone, text: String) -> Option<Line> {
    Some(Line { text, tone, lasting: true })
}

fn message(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Idle => cut_middle(&clean(&failure.message), MESSAGE),
        _ => failure.headline().to_owned(),
    }
}

fn after_colon(message: &str) -> String {
    if message.trim().is_empty() { String::new() } else { format!(": {message}") }
}

fn run_started(started: &RunStarted) -> Option<Line> {
    let RunStarted { run_id, phase, base_branch, base_commit, .. } = started;
    lasting(Tone::Plain, format!("run {run_id} of {phase} started on {base_branch} at {}", base_commit.short()))
}

fn feedback_received(remarks: &[Remark]) -> Option<Line> {
    let (checks, comments): (Vec<_>, Vec<_>) = remarks.iter().partition(|remark| remark.is_of_check());
    let parts = [(checks.len(), "failed check"), (comments.len(), "comment")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(*count, noun)).collect();
    lasting(Tone::Warn, format!("the pull request was sent back with {}; the lane continues", parts.join(" and ")))
}

fn run_moved(moved: &RunMoved) -> Option<Line> {
    let place = |place: &Place| format!("{}:{}", place.host, place.repository.display());
    lasting(Tone::Warn, format!("the run was taken from {} to {}", place(&moved.from), place(&moved.to)))
}

fn slept(duration: Duration) -> Option<Line> {
    let what = "(the machine slept, or it was stopped); limits do not count that time";
    lasting(Tone::Plain, format!("Lanewright did not run for {} {what}", short(duration)))
}

fn stop_requested(reason: StopReason, force: bool) -> Option<Line> {
    let why = match reason {
        StopReason::Interrupt => "Ctrl-C",
        StopReason::Terminate => "a signal",
        StopReason::Request => "a request",
        StopReason::Timeout => "the time limit",
        StopReason::FailFast => "a failed lane",
    };
    let how = if force { "agents are killed" } else { "agents are asked to stop and their work is kept" };
    lasting(Tone::Warn, format!("stopping after {why}; {how}"))
}

/// The command that shows the changes, in parentheses.
fn diff_command(history: &RunHistory, lane: &LaneId, gate: Approval) -> String {
    let run = history.run.run_id().filter(|_| gate == Approval::Changes);
    let program = ["lanewright".to_owned()];
    let command = |run| shell_line(Commands { program: &program, run }.diff(lane));
    run.map(|run| format!(" ({})", command(run))).unwrap_or_default()
}

fn asks_for_approval(history: &RunHistory, lane: &LaneId) -> Option<Line> {
    let history_of_lane = history.lane(lane)?;
    let LaneState::NeedsApproval(gate) = history_of_lane.state else { return None };
    let subject = format!("{}{}", subject_of(history_of_lane, gate), commit_of(history_of_lane, gate));
    let how = diff_command(history, lane, gate);
    lasting(Tone::Warn, format!("waits for your approval of its {gate}{subject}{how}"))
}

fn lane_moved(history: &RunHistory, lane: &LaneId, from: LaneStage, to: LaneStage) -> Option<Line> {
    let asks = asks_for_approval(history, lane);
    if asks.is_some() {
        return asks;
    }
    match (from, to) {
        (LaneStage::Waiting, _) => passing(Tone::Plain, "starts".to_owned()),
        _ => None,
    }
}

fn job_in_words(job: &JobId) -> String {
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
    let known = jobs.running.iter().find(|known| known.job == *job);
    let earlier = known.is_some_and(|known| known.since < at);
    let runner = known.and_then(|known| known.fallback());
    let text = match &job.role {
        _ if earlier => format!("{} found running", job_in_words(job)),
        JobRole::Attempt { task, .. } => {
            let with = runner.map(|runner| format!(" with {}", headline(runner, 40))).unwrap_or_default();
            format!("attempt {} started{with} (task {task})", job.number)
        }
        _ => format!("{} started", job_in_words(job)),
    };
    passing(Tone::Plain, text)
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
    let refused = transcript.map(Transcript::refused).filter(|text| !text.is_empty());
    let tone = if refused.is_some() { Tone::Warn } else { tone };
    let refused = refused.map(|text| format!("; {text}")).unwrap_or_default();
    passing(tone, format!("{} {end}{used}{more}{refused}{}", job_in_words(job), reported(exit, report)))
}

/// The notes of the exit in parentheses; how long it took says which time limit passed.
fn notes(exit: &JobExit) -> String {
    let is_limit = |note: &&str| exit.cause == ExitCause::TimedOut && note.starts_with("the time limit of ");
    let notes: Vec<&str> = exit.notes.split("; ").filter(|note| !note.is_empty() && !is_limit(note)).collect();
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// What the agent reported, where its exit does not imply it.
fn reported(exit: &JobExit, report: Option<&AgentReport>) -> String {
    // What the supervisor wrote on the agent's behalf is the exit.
    let own = report.filter(|report| report.status != "ERROR" || !report.message.contains(&exit.command));
    let Some(report) = own else { return String::new() };
    // A pending decision says no more than its status.
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
    let is_last = attempt.zip(lane.tasks_of(agent)).is_none_or(|(attempt, tasks)| attempt.job.task() == tasks.last());
    is_last && lane.merges.iter().all(|merge| merge.agent.as_ref() != Some(agent))
}

fn work_committed(history: &RunHistory, event: &Event) -> Option<Line> {
    let Event::WorkCommitted { lane, agent, changed, prohibited, idle, .. } = event else { return None };
    // The failure that follows says it.
    if !prohibited.is_empty() || (*idle == Idle::Agent && must_change(history, lane, agent)) {
        return None;
    }
    match changed.len() {
        _ if *idle != Idle::No => lasting(Tone::Warn, "the task changed no file".to_owned()),
        0 => passing(Tone::Faint, "changed no file".to_owned()),
        count => passing(Tone::Plain, format!("changed {}", counted(count, "file"))),
    }
}

fn chosen_by(by: ChosenBy) -> &'static str {
    match by {
        ChosenBy::User => "you picked it",
        ChosenBy::Judge => "the judge named it",
        ChosenBy::Only => "no other one that passed is left",
        ChosenBy::Size => "the smallest change that passed",
    }
}

fn failure_noted(failure: &Failure) -> Option<Line> {
    let paths = if failure.paths.is_empty() { String::new() } else { format!(" [{}]", listed(&failure.paths, FILES)) };
    lasting(Tone::Warn, format!("{}{paths}", message(failure)))
}

/// Whether the lane was past its implementation, and no agent has worked on it since.
fn was_sent_back(lane: &LaneHistory) -> bool {
    let Some((from, to, at)) = lane.transitions.last() else { return false };
    let works = |job: &JobHistory| job.job.is_attempt() && job.since >= *at;
    *to == LaneStage::Implementation && from > to && !lane.jobs.all().any(works)
}

fn retry_planned(level: RetryLevel, wait: Duration, checkpoint: &Checkpoint, was_sent_back: bool) -> Option<Line> {
    let of = checkpoint.max_retries.map(|max| format!(" of {max}")).unwrap_or_default();
    let when = if wait.as_secs() == 0 { String::new() } else { format!(" in {}", short(wait)) };
    let number = checkpoint.retry_attempt.map(|number| format!(" {number}")).unwrap_or_default();
    let what = match level {
        RetryLevel::Retry => format!("retry{number}{of}{when}"),
        RetryLevel::Rollback => {
            format!("reset to the last passing state; last attempt, with a different approach{when}")
        }
        RetryLevel::Wait => format!("trying again{when} (not counted as a retry)"),
    };
    lasting(Tone::Warn, if was_sent_back { format!("sent back to the agent: {what}") } else { what })
}

fn runner_paused(history: &RunHistory, account: &str, outage: &Outage, now: LocalTime) -> Option<Line> {
    let name = headline(account, 40);
    let waits = history.awaited_runners(now, true).find(|(pause, _)| pause.account == account).map(|(_, words)| words);
    let pause = || history.run.pauses.iter().find(|pause| pause.account == account)?.describe(now);
    let what = waits.or_else(pause).unwrap_or_else(|| match outage.kind {
        OutageKind::Refused => format!("{name} cannot work"),
        _ => format!("{name} is not waited for any longer"),
    });
    lasting(Tone::Warn, format!("{what}: {}", outage.line))
}

fn must_haves_checked(verdicts: &[Verdict]) -> Option<Line> {
    let text = format!("must-haves: {}", tally(verdicts));
    let broken: Vec<String> =
        verdicts.iter().filter(|verdict| verdict.holds == Some(false)).map(Verdict::describe).collect();
    if broken.is_empty() {
        return passing(Tone::Plain, text);
    }
    lasting(Tone::Warn, format!("{text}; {}", broken.join("; ")))
}

fn merges_bisected(is_of_lane: bool, culprit: Option<&str>, commit: Option<&CommitId>) -> Option<Line> {
    let what = if is_of_lane { "tests" } else { "final gate" };
    let at = commit.map(|commit| format!(" ({})", commit.short())).unwrap_or_default();
    let result = culprit.map(|culprit| format!("first failing with the merge of {culprit}{at}"));
    lasting(Tone::Warn, format!("{what}: {}", result.as_deref().unwrap_or("no merge is to blame")))
}

fn lane_merged(history: &RunHistory, id: &LaneId, commit: &str, at: Timestamp) -> Option<Line> {
    let lane = history.lane(id)?;
    let took = history.lane_elapsed(lane, at).map(|took| format!(" after {}", short(took))).unwrap_or_default();
    let text = if history.run.merges() {
        format!("merged into {} at {commit}{took}", history.run.base_branch())
    } else {
        format!("done on {} at {commit}{took}", lane.workplace.branch().unwrap_or("its branch"))
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
    let how = if history.run.merges() { "merged" } else { "done" };
    let (tone, what) = match history.done_without_others() {
        Some(done) => (Tone::Good, format!("{} done, the run is not complete", names(&done))),
        None => (tone, format!("run {outcome}")),
    };
    lasting(tone, format!("{what}{took}: {} of {} {how}", history.done(), counted(all, "lane")))
}

#[cfg(test)]
mod tests;
