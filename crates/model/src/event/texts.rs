//! The free texts in events: what programs and people said, which may hold anything, also a secret.

use super::{AgentReport, Decision, Event, GivenContext, Reading};
use crate::text::change_texts;
use crate::{Checkpoint, Diagnosis, Failure, JobExit, Verdict};

impl Event {
    /// Changes every free text with `change`. Names, commits, refs and paths stay as they are.
    pub fn change_texts(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Self::GateAnswered { message, .. } | Self::RunResumed { message, .. } | Self::Noted { message, .. } => {
                change(message);
            }
            Self::MessageSent { message, .. } => change(message),
            Self::PullRequestsChecked { error } => change(error),
            Self::PullRequestRefused { reason, .. } => change(reason),
            Self::FeedbackReceived { remarks, .. } => remarks.iter_mut().for_each(|remark| change(&mut remark.text)),
            Self::EventLogged { data, .. } => data.iter_mut().for_each(|data| change_texts(data, change)),
            Self::SnapshotFailed { error, .. } | Self::SnapshotDamaged { error, .. } => change(error),
            Self::WorktreeMadeAhead { error, .. } => change(error),
            Self::ForgeUnavailable { outage, .. } | Self::RunnerPaused { outage, .. } => change(&mut outage.line),
            Self::PlacementEnded { reason, .. }
            | Self::LaneBlocked { reason, .. }
            | Self::LaneSkipped { reason, .. }
            | Self::PhaseBlocked { reason } => change(reason),
            Self::CheckpointReached { checkpoint, .. } | Self::RetryPlanned { checkpoint, .. } => {
                in_checkpoint(checkpoint, change);
            }
            Self::FailureNoted { failure, .. } | Self::LaneFailed { failure, .. } => in_failure(failure, change),
            Self::JobExited { exit, report, reading, .. } => {
                in_exit(exit, change);
                report.iter_mut().for_each(|report| in_report(report, change));
                match reading.as_deref_mut() {
                    Some(Reading::Outage(outage)) => change(&mut outage.line),
                    Some(Reading::Diagnosis(diagnosis)) => in_diagnosis(diagnosis, change),
                    None => {}
                }
            }
            Self::MustHavesChecked { verdicts, .. } => {
                verdicts.iter_mut().for_each(|verdict| in_verdict(verdict, change))
            }
            Self::LaneCleaned { kept, .. } | Self::PoolEmptied { kept } => kept.iter_mut().for_each(change),
            Self::RunStarted(_) | Self::RunMoved(_) | Self::RunFinished { .. } | Self::StopRequested { .. } => {}
            Self::FinalOpened { .. } | Self::GitWorked { .. } | Self::Slept { .. } => {}
            Self::RunnerContinued { .. } => {}
            Self::LaneMoved { .. } | Self::LaneBased { .. } | Self::LaneReset { .. } | Self::PersonAsked { .. } => {}
            Self::LaneOffered { .. } | Self::LanePlaced { .. } | Self::LaneClaimed { .. } => {}
            Self::LaneReturned { .. } | Self::RollbackBegun { .. } | Self::LaneRolledBack { .. } => {}
            Self::WorktreeOpened { .. } | Self::WorktreeReleased { .. } | Self::WorktreeLost { .. } => {}
            Self::JobPlanned { .. } | Self::JobStarted { .. } | Self::WorkCommitted { .. } => {}
            Self::SnapshotTaken { context, .. } => context.iter_mut().for_each(|context| in_context(context, change)),
            Self::BranchMoved { .. } | Self::AgentMoved { .. } => {}
            Self::AgentMerged { .. } | Self::AgentReset { .. } | Self::ChangesMeasured { .. } => {}
            Self::MergeStaged { .. } | Self::MergeSuperseded { .. } | Self::MergesBisected { .. } => {}
            Self::LaneMerged { .. } | Self::BranchPushed { .. } | Self::PullRequestOpened { .. } => {}
            Self::PullRequestChanged { .. } | Self::CandidatePicked { .. } | Self::CandidateChosen { .. } => {}
        }
    }
}

fn in_checkpoint(checkpoint: &mut Checkpoint, change: &mut dyn FnMut(&mut String)) {
    change(&mut checkpoint.context);
    checkpoint.command.iter_mut().chain(&mut checkpoint.failure_context).for_each(change);
}

fn in_failure(failure: &mut Failure, change: &mut dyn FnMut(&mut String)) {
    change(&mut failure.message);
    failure.command.iter_mut().chain(&mut failure.log).for_each(&mut *change);
    failure.diagnosis.iter_mut().for_each(|diagnosis| in_diagnosis(diagnosis, change));
}

fn in_diagnosis(diagnosis: &mut Diagnosis, change: &mut dyn FnMut(&mut String)) {
    diagnosis.findings.iter_mut().for_each(|finding| change(&mut finding.message));
}

fn in_exit(exit: &mut JobExit, change: &mut dyn FnMut(&mut String)) {
    change(&mut exit.command);
    change(&mut exit.notes);
    exit.tail.iter_mut().for_each(change);
}

fn in_verdict(verdict: &mut Verdict, change: &mut dyn FnMut(&mut String)) {
    change(&mut verdict.about);
    verdict.asked.iter_mut().chain(&mut verdict.why).for_each(change);
}

fn in_report(report: &mut AgentReport, change: &mut dyn FnMut(&mut String)) {
    let AgentReport { status, decision, message, feedback, decisions, blockers, fault, own: _ } = report;
    [status, decision, message, feedback, fault].into_iter().chain(blockers).for_each(&mut *change);
    in_decisions(decisions, change);
}

fn in_context(context: &mut GivenContext, change: &mut dyn FnMut(&mut String)) {
    let GivenContext { decisions, blockers, next_task: _ } = context;
    blockers.iter_mut().for_each(&mut *change);
    in_decisions(decisions, change);
}

fn in_decisions(decisions: &mut [Decision], change: &mut dyn FnMut(&mut String)) {
    decisions
        .iter_mut()
        .for_each(|decision| [&mut decision.text, &mut decision.reason].into_iter().for_each(&mut *change));
}
