//! Planted bugs: each a mistake that somebody could make, and that the simulator must catch.

use std::sync::Arc;

use lanekeeper::event::{Event, Idle, Record};
use lanekeeper::model::{Plan, PlanParts};

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
    ];
}

/// The plan as a scheduler with that bug sees it.
pub fn plan_as_seen(plan: &Arc<Plan>, bug: Option<Bug>) -> Arc<Plan> {
    let mut parts = PlanParts::from((**plan).clone());
    match bug {
        Some(Bug::EdgeForgotten) => parts.lanes.iter_mut().for_each(|lane| lane.depends_on.clear()),
        Some(Bug::PoolIgnored) => parts.lanes.iter_mut().for_each(|lane| lane.uses.clear()),
        Some(Bug::ExclusionIgnored) => parts.exclusions.clear(),
        Some(Bug::SequenceIgnored) => parts.sequences.clear(),
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
            exit.cause = lanekeeper::model::ExitCause::Exited;
            Event::JobExited { job, exit, report, reading, transcript }
        }
        (Event::JobExited { job, mut exit, report, reading, transcript }, Some(Bug::LostGateFails)) => {
            if exit.cause == lanekeeper::model::ExitCause::Lost {
                exit.cause = lanekeeper::model::ExitCause::Exited;
            }
            Event::JobExited { job, exit, report, reading, transcript }
        }
        (Event::JobExited { job, exit, report, transcript, .. }, Some(Bug::OutageCounts)) => {
            Event::JobExited { job, exit, report, reading: None, transcript }
        }
        (Event::MustHavesChecked { lane, head, mut verdicts }, Some(Bug::LackNotSeen)) => {
            verdicts.iter_mut().for_each(|verdict| verdict.holds = Some(true));
            Event::MustHavesChecked { lane, head, verdicts }
        }
        (Event::WorkCommitted { lane, agent, head, changed, prohibited, .. }, Some(Bug::IdleAgentIsDone)) => {
            Event::WorkCommitted { lane, agent, head, changed, prohibited, idle: Idle::No }
        }
        (event, _) => event,
    }
}
