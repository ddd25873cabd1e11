//! Notifications for people who do not watch a run: it needs them, something failed, or it is done.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::FixedOffset;
use lanewright_model::cells::clean;
use lanewright_model::event::{Event, Record, RunOutcome};
use lanewright_model::text::headline;
use lanewright_model::time::LocalTime;
use lanewright_model::{LaneId, NotifyOn, PhaseId, RunId};
use serde::Serialize;

use crate::answers::next_steps::{NextStep, next_steps};
use crate::history::RunHistory;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notification {
    pub event: NotifyOn,
    pub run_id: Option<RunId>,
    pub phase: Option<PhaseId>,
    /// The lane; `None`: the run.
    pub lane: Option<LaneId>,
    /// On one line.
    pub title: String,
    pub message: String,
    /// What can be typed next, as it can be pasted into a shell.
    pub commands: Vec<String>,
}

/// Makes notifications of new records.
#[derive(Debug)]
pub struct Notifications {
    program: Vec<String>,
    offset: FixedOffset,
    /// The questions that are open.
    asked: BTreeSet<String>,
    /// What people were asked for before, also at the run's last end.
    known: BTreeSet<String>,
}

impl Notifications {
    /// For a run with this `history`, whose open questions are known already; times of day are at `offset`.
    pub fn new(history: &RunHistory, program: Vec<String>, offset: FixedOffset) -> Self {
        let reasons = |steps: Vec<NextStep>| steps.into_iter().map(|step| step.reason).collect();
        let asked = reasons(questions(history, &program));
        let known = reasons(next_steps(history, &program, true));
        Self { program, offset, asked, known }
    }

    /// The notifications because of `record`, which `history` includes.
    pub fn after(&mut self, record: &Record, history: &RunHistory) -> Vec<Notification> {
        let notification = |event, lane: Option<&LaneId>, what: &str, message: &str, commands: Vec<String>| {
            let phase = history.run.phase.as_ref().map_or("run", PhaseId::as_str);
            let about = lane.map(|lane| format!(" {lane}")).unwrap_or_default();
            Notification {
                event,
                run_id: history.run.run_id().cloned(),
                phase: history.run.phase.clone(),
                lane: lane.cloned(),
                title: format!("{phase}{about} {what}"),
                message: clean(message),
                commands,
            }
        };
        let next = || next_steps(history, &self.program, false);
        let first = |steps: Vec<NextStep>| steps.first().map(|step| step.reason.clone()).unwrap_or_default();
        match &record.event {
            Event::LaneFailed { lane, .. } => {
                let reason = history.lane(lane).and_then(|lane| lane.reason()).unwrap_or_default();
                vec![notification(NotifyOn::Failed, Some(lane), "failed", reason, Vec::new())]
            }
            Event::RunFinished { outcome, .. } => {
                let (event, what) = match outcome {
                    RunOutcome::Done => (NotifyOn::Done, "is done"),
                    RunOutcome::Failed => (NotifyOn::Failed, "failed"),
                    RunOutcome::Blocked => (NotifyOn::NeedsYou, "needs you"),
                    RunOutcome::Stopped | RunOutcome::RolledBack => return Vec::new(),
                };
                let steps = next();
                if *outcome == RunOutcome::Blocked && steps.iter().all(|step| self.known.contains(&step.reason)) {
                    return Vec::new();
                }
                let commands = steps.iter().flat_map(NextStep::shell_lines).collect();
                vec![notification(event, None, what, &first(steps), commands)]
            }
            // A short wait is no news.
            Event::RunnerPaused { account, outage, until: Some(until), .. } if until.since(record.at) >= LONG_WAIT => {
                let now = LocalTime { at: record.at, offset: self.offset };
                // A lane may wait for another runner now, because this one was its fallback.
                let (own, others): (Vec<_>, Vec<_>) =
                    history.awaited_runners(now, true).partition(|(pause, _)| pause.account == *account);
                let waits: Vec<String> = own.into_iter().chain(others).map(|(_, words)| words).collect();
                let what = match waits.is_empty() {
                    true => format!("continues; {} is paused{}", headline(account, 40), now.until(*until)),
                    false => format!("is {}", waits.join("; ")),
                };
                vec![notification(NotifyOn::Paused, None, &what, &outage.line, Vec::new())]
            }
            event if event.lane().is_some() => {
                let open = questions(history, &self.program);
                let known = std::mem::replace(&mut self.asked, open.iter().map(|step| step.reason.clone()).collect());
                let new = open.into_iter().filter(|step| !known.contains(&step.reason));
                let ask = |step: NextStep| {
                    let commands = step.shell_lines().collect();
                    notification(NotifyOn::NeedsYou, event.lane(), "needs you", &step.reason, commands)
                };
                new.map(ask).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The least pause of a runner that is a notification.
const LONG_WAIT: Duration = Duration::from_secs(10 * 60);

/// What lanes wait for that people must answer.
fn questions(history: &RunHistory, program: &[String]) -> Vec<NextStep> {
    if history.active().all(|lane| !lane.state.needs_person()) {
        return Vec::new();
    }
    next_steps(history, program, true)
}
