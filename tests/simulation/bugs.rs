//! Planted bugs: each a mistake that somebody could make, and that the simulator must catch.

use std::sync::Arc;

use super::plans::SPARE;
use lanewright_model::event::{Event, Idle, LaneStage, MadeWith, Record, SnapshotReason, Worktree};
use lanewright_model::{
    AgentName, CommandLine, CommitId, ExitCause, Failure, FailureKind, JobRole, Plan, PlanParts, RetryLevel, Transcript,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The scheduler does not know of a lane's dependencies.
    EdgeForgotten,
    /// One attempt more than allowed.
    OnePlaceTooMany,
    /// Resource pools do not count.
    PoolIgnored,
    /// Exclusions do not count.
    ExclusionIgnored,
    /// Of two lanes that keep an order the second may begin first.
    SequenceIgnored,
    /// A lane keeps pools and exclusions over a resume only while a job of it runs.
    HoldForgotten,
    /// Records are acted upon before they are durable.
    ActBeforeSync,
    /// A late word of an earlier attempt counts for the present one.
    FenceIgnored,
    /// A resumed run starts a job again that is running.
    StartTwice,
    /// A resumed run uses the names of earlier jobs again.
    NamesReused,
    /// A merge that was published before a crash is published again.
    PublishTwice,
    /// An agent's work is reported as merged and is not.
    MergeForgotten,
    /// A required checkpoint is not written.
    CheckpointSkipped,
    /// A failed lane counts as merged.
    FailureIsSuccess,
    /// A network that is out counts as the agent's failure.
    OutageCounts,
    /// What a lane lacks is not seen.
    LackNotSeen,
    /// A pull request that was opened before a crash is opened again.
    OpenTwice,
    /// A branch counts as pushed before it is.
    PushForgotten,
    /// A gate whose supervisor died counts as failed.
    LostGateFails,
    /// Whoever publishes does not look again at which checkout has the branch.
    SwitchNotSeen,
    /// A merge that the branch refused is made again as if the branch had moved.
    RefusalForgotten,
    /// An agent that changed nothing has done its work.
    IdleAgentIsDone,
    /// A doctor takes a worktree at a staged merge for damage, and moves the lane's branch there.
    StagedMergeIsDamage,
    /// A retry is not counted.
    RetryIsFree,
    /// A merge that the branch moved away from counts as published.
    SupersededIsMerged,
    /// A snapshot that failed counts as taken.
    UnkeptIsKept,
    /// A person's no counts as yes.
    NoIsYes,
    /// What agents cost is not counted.
    CostForgotten,
    /// The run does not stop at the first failure.
    FailFastForgotten,
    /// A lane that was rolled back continues where it stood.
    RollbackForgotten,
    /// A lane that the user skipped is worked on.
    SkipForgotten,
    /// What a person committed on a lane's branch is not seen.
    HandsNotSeen,
    /// What a person committed on a lane's branch is merged as if it had been judged.
    HandsNotJudged,
    /// A lane goes from its agents to its reviewers without its tests.
    TestsSkipped,
    /// A merge is published before it is tested.
    MergeUntested,
    /// A lane fails instead of retrying.
    GivesUpEarly,
    /// A rollback says that a lane is rolled back before that is so.
    RollbackSaidEarly,
    /// A branch that another program removed is restored where its lane began.
    RestoredAtBase,
    /// A snapshot that is damaged counts as whole.
    DamageNotSeen,
    /// A merge is published although the branch has moved since it was made.
    MoveNotSeen,
    /// A merge is published although the branch was moved under the user's checkout.
    PlumbingNotSeen,
    /// Limits count time asleep.
    SleepCounts,
    /// Each agent finds out by itself whether its service is available again.
    ProbesTogether,
    /// A runner whose service is out is not paused.
    PauseForgotten,
    /// A limit is not seen that an attempt reports which passes.
    LimitForgotten,
    /// An agent keeps its own runner although that is paused for long.
    FallbackForgotten,
    /// Another runner takes the place of one that is not paused.
    FallbackTooEarly,
    /// A remark counts as new each time that the forge is asked.
    AnsweredTwice,
    /// What a person pushed to a lane's branch is overwritten.
    PushOverwritten,
    /// A resumed run does not take over what agents committed in git directories of their own.
    TakeOverForgotten,
    /// The first candidate is chosen, whether it has passed or not.
    FirstCandidateWins,
    /// The scheduler does not know that agents are candidates, and merges all of them.
    CandidatesMerged,
    /// A candidate that has passed works again in place of being chosen.
    CandidateWorksAgain,
    /// What the user picks is not heard.
    PickForgotten,
    /// The work of a candidate that was not chosen counts as kept and is not.
    CandidateNotKept,
}

impl Bug {
    pub const ALL: &[Self] = &[
        Self::EdgeForgotten,
        Self::OnePlaceTooMany,
        Self::PoolIgnored,
        Self::ExclusionIgnored,
        Self::SequenceIgnored,
        Self::HoldForgotten,
        Self::ActBeforeSync,
        Self::FenceIgnored,
        Self::StartTwice,
        Self::NamesReused,
        Self::PublishTwice,
        Self::MergeForgotten,
        Self::CheckpointSkipped,
        Self::FailureIsSuccess,
        Self::OutageCounts,
        Self::LackNotSeen,
        Self::OpenTwice,
        Self::PushForgotten,
        Self::LostGateFails,
        Self::SwitchNotSeen,
        Self::RefusalForgotten,
        Self::IdleAgentIsDone,
        Self::StagedMergeIsDamage,
        Self::RetryIsFree,
        Self::SupersededIsMerged,
        Self::UnkeptIsKept,
        Self::NoIsYes,
        Self::CostForgotten,
        Self::FailFastForgotten,
        Self::RollbackForgotten,
        Self::SkipForgotten,
        Self::HandsNotSeen,
        Self::HandsNotJudged,
        Self::TestsSkipped,
        Self::MergeUntested,
        Self::GivesUpEarly,
        Self::RollbackSaidEarly,
        Self::RestoredAtBase,
        Self::DamageNotSeen,
        Self::MoveNotSeen,
        Self::PlumbingNotSeen,
        Self::SleepCounts,
        Self::ProbesTogether,
        Self::PauseForgotten,
        Self::LimitForgotten,
        Self::FallbackForgotten,
        Self::FallbackTooEarly,
        Self::AnsweredTwice,
        Self::PushOverwritten,
        Self::TakeOverForgotten,
        Self::FirstCandidateWins,
        Self::CandidatesMerged,
        Self::CandidateWorksAgain,
        Self::PickForgotten,
        Self::CandidateNotKept,
    ];
}

/// The plan as a scheduler with that bug sees it.
pub fn plan_as_seen(plan: &Arc<Plan>, bug: Option<Bug>) -> Arc<Plan> {
    let Some(bug) = bug else { return plan.clone() };
    let mut parts = PlanParts::from((**plan).clone());
    match bug {
        Bug::EdgeForgotten => parts.lanes.iter_mut().for_each(|lane| lane.depends_on.clear()),
        Bug::PoolIgnored => parts.lanes.iter_mut().for_each(|lane| lane.uses.clear()),
        Bug::ExclusionIgnored => parts.exclusions.clear(),
        Bug::SequenceIgnored => parts.sequences.clear(),
        Bug::ProbesTogether => {
            for lane in &mut parts.lanes {
                for agent in &mut lane.agents {
                    let account = format!("{} of {} in {}", agent.command, agent.name, lane.id);
                    agent.command = CommandLine::Shell(account);
                }
            }
        }
        Bug::CandidatesMerged => {
            let agents = parts.lanes.iter_mut().flat_map(|lane| &mut lane.agents);
            agents.for_each(|agent| agent.candidate = None);
        }
        _ => return plan.clone(),
    }
    Arc::new(Plan::new(parts).unwrap())
}

/// The record as a run log with that bug keeps it; `None`: not at all.
pub fn record_as_kept(record: Record, bug: Option<Bug>) -> Option<Record> {
    match (&record.event, bug) {
        (Event::CheckpointReached { .. }, Some(Bug::CheckpointSkipped)) => None,
        _ => Some(record),
    }
}

/// The event as an engine with that bug takes it in.
pub fn event_as_seen(event: Event, bug: Option<Bug>) -> Event {
    match (event, bug) {
        (Event::JobExited { job, mut exit, report, reading, transcript }, Some(Bug::FailureIsSuccess)) => {
            exit.exit_code = 0;
            exit.cause = ExitCause::Exited;
            Event::JobExited { job, exit, report, reading, transcript }
        }
        (Event::JobExited { job, mut exit, report, reading, transcript }, Some(Bug::LostGateFails)) => {
            if exit.cause == ExitCause::Lost {
                exit.cause = ExitCause::Exited;
            }
            Event::JobExited { job, exit, report, reading, transcript }
        }
        (Event::JobExited { job, exit, report, transcript, .. }, Some(Bug::OutageCounts)) => {
            Event::JobExited { job, exit, report, reading: None, transcript }
        }
        (Event::MustHavesChecked { lane, head, mut verdicts }, Some(Bug::LackNotSeen)) => {
            verdicts.iter_mut().for_each(|verdict| {
                verdict.holds = Some(true);
                verdict.missing = false;
            });
            Event::MustHavesChecked { lane, head, verdicts }
        }
        (Event::FeedbackReceived { lane, head, mut remarks }, Some(Bug::AnsweredTwice)) => {
            remarks.iter_mut().for_each(|remark| remark.id = format!("{} of {head}", remark.id));
            Event::FeedbackReceived { lane, head, remarks }
        }
        (
            Event::WorkCommitted { lane, agent, head, changed, prohibited, ignored, size, .. },
            Some(Bug::IdleAgentIsDone),
        ) => Event::WorkCommitted { lane, agent, head, changed, prohibited, idle: Idle::No, ignored, size },
        (event, _) => event,
    }
}

/// The event that a scheduler with that bug decides upon, in place of `event`.
pub fn event_as_decided(event: Event, bug: Option<Bug>) -> Event {
    match (event, bug) {
        (Event::JobPlanned { job, .. }, Some(Bug::TestsSkipped)) if job.role == JobRole::Tests => {
            let (from, to) = (LaneStage::Validation, LaneStage::Review);
            Event::LaneMoved { lane: job.lane.unwrap(), from, to }
        }
        (Event::JobPlanned { job, .. }, Some(Bug::FallbackForgotten)) => Event::planned(job),
        (Event::JobPlanned { job, .. }, Some(Bug::FallbackTooEarly)) if job.is_attempt() => {
            let runner = SPARE.to_owned();
            let made_with = MadeWith { runner, account: None, refusable: None, is_fallback: true };
            Event::JobPlanned { job, made_with: Some(Box::new(made_with)) }
        }
        (Event::CandidateChosen { lane, by, .. }, Some(Bug::FirstCandidateWins)) => {
            Event::CandidateChosen { lane, agent: AgentName::new("c1").unwrap(), by }
        }
        (Event::CandidateChosen { lane, agent, .. }, Some(Bug::CandidateWorksAgain)) => {
            let failure = Failure::new(FailureKind::Rejected, "");
            Event::FailureNoted { lane, agent: Some(agent), task: None, failure }
        }
        (Event::RetryPlanned { lane, .. }, Some(Bug::GivesUpEarly)) => {
            Event::LaneFailed { lane, failure: Failure::new(FailureKind::Crash, "") }
        }
        (event, _) => event,
    }
}

/// The record as a state with that bug applies it; the log has it as it was.
pub fn record_as_applied(record: Record, bug: Option<Bug>) -> Record {
    let commit = || CommitId::new(&"0".repeat(40)).unwrap();
    let event = match (record.event, bug) {
        (Event::RetryPlanned { lane, agent, not_before, checkpoint, .. }, Some(Bug::RetryIsFree)) => {
            Event::RetryPlanned { lane, agent, level: RetryLevel::Wait, not_before, checkpoint }
        }
        (Event::MergeSuperseded { lane }, Some(Bug::SupersededIsMerged)) => {
            Event::LaneMerged { lane, commit: commit(), onto: commit(), plan: None }
        }
        (Event::SnapshotFailed { lane, agent, reason, .. }, Some(Bug::UnkeptIsKept)) => {
            Event::snapshot(lane, agent, reason, commit(), String::new())
        }
        (Event::GateAnswered { lane, gate, message, .. }, Some(Bug::NoIsYes)) => {
            Event::GateAnswered { lane, gate, approved: true, message }
        }
        (Event::JobExited { job, exit, report, reading, .. }, Some(Bug::CostForgotten)) => {
            Event::JobExited { job, exit, report, reading, transcript: None }
        }
        (Event::JobExited { job, exit, report, reading, transcript }, Some(Bug::LimitForgotten)) => {
            let transcript = transcript.map(|it| Box::new(Transcript { limited_until: None, ..*it }));
            Event::JobExited { job, exit, report, reading, transcript }
        }
        (Event::MergeStaged { lane, onto, commit, .. }, Some(Bug::MergeUntested)) => {
            Event::MergeStaged { lane, onto, commit, moved: false }
        }
        (Event::RunStarted(mut started), Some(Bug::FailFastForgotten)) => {
            started.options.fail_fast = false;
            Event::RunStarted(started)
        }
        (Event::BranchMoved { lane, agent, head, .. }, Some(Bug::HandsNotJudged)) => {
            let worktree = Worktree { slot: 0, path: "/w".into(), branch: "b".into(), head };
            Event::WorktreeOpened { lane, agent, worktree }
        }
        (Event::RunnerPaused { account, outage, since, .. }, Some(Bug::PauseForgotten)) => {
            Event::RunnerPaused { account, outage, since, until: Some(since) }
        }
        (Event::CandidatePicked { lane, .. }, Some(Bug::PickForgotten)) => {
            Event::Noted { lane: Some(lane), message: String::new() }
        }
        (Event::SnapshotFailed { lane, agent, reason, .. }, Some(Bug::CandidateNotKept))
            if reason == SnapshotReason::Candidate =>
        {
            Event::snapshot(lane, agent, reason, commit(), String::new())
        }
        (Event::Slept { .. }, Some(Bug::SleepCounts)) => Event::Noted { lane: None, message: String::new() },
        (Event::LaneSkipped { lane, .. }, Some(Bug::SkipForgotten))
        | (Event::LaneRolledBack { lane, .. }, Some(Bug::RollbackForgotten)) => {
            Event::Noted { lane: Some(lane), message: String::new() }
        }
        (event, _) => event,
    };
    Record { event, ..record }
}
