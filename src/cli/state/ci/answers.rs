//! What users answer to a job that ended: approvals, rejections, and lanes to run again.

use std::sync::Arc;

use lanewright_engine::at_resume::replay;
use lanewright_model::event::{Event, Record};
use lanewright_model::{HumanGate, LaneId, RunId};
use lanewright_schedule::RunState;
use lanewright_store::{Journal, run_log};

use super::service::{Input, Service};
use crate::cli::args;
use crate::cli::control::answer;
use crate::cli::run::{Adoption, Replacement, ResumeReach, lock_resting_run};
use crate::cli::runs::{require_plan, unknown_lane};
use crate::cli::{CliError, ExitStatus, Hint, RepositoryContext, Result, now};

pub(super) struct Answers<'a> {
    pub(super) within: &'a RepositoryContext,
    pub(super) arguments: &'a args::Ci,
    pub(super) service: &'a Service,
}

impl Answers<'_> {
    fn all(&self) -> impl Iterator<Item = (Input, &LaneId)> {
        let args::Ci { approve, reject, retry, .. } = self.arguments;
        [(Input::Approve, approve), (Input::Reject, reject), (Input::Retry, retry)]
            .into_iter()
            .flat_map(|(input, lanes)| lanes.0.iter().map(move |(lane, _)| (input, lane)))
    }

    /// Refuses a lane that is approved and rejected, and a rejection that no agent could learn anything from.
    pub(super) fn check(&self) -> Result<()> {
        let args::Ci { approve, reject, message, .. } = self.arguments;
        if let Some((lane, _)) = approve.0.iter().find(|(lane, _)| reject.0.iter().any(|(other, _)| other == lane)) {
            let error = ExitStatus::Usage.error(format!("lane {lane} is both approved and rejected; nothing was done"));
            return Err(error.hint(self.service.again(&[(Input::Approve, lane.as_str())])));
        }
        let Some((lane, _)) = reject.0.first().filter(|_| message.trim().is_empty()) else { return Ok(()) };
        let error = ExitStatus::Usage.error("a rejection needs a message: it is all that the agent learns of it");
        Err(error.hint(self.service.again(&[(Input::Reject, lane.as_str()), (Input::Message, "what to change")])))
    }

    /// Warns that there is no run that could be answered.
    pub(super) fn report_unused(&self) {
        for (input, lane) in self.all() {
            let message = format!("{lane} is not {}: no unfinished run of this plan waits for it", past(input));
            self.within.context.printer.warning(message, &[]);
        }
    }

    /// Refuses lanes that none of the `runs` has, before anything is recorded.
    pub(super) fn refuse_unknown(&self, runs: &[RunId]) -> Result<()> {
        let mut known = Vec::new();
        for run in runs {
            let plan = require_plan(run, &self.within.state.run(run))?;
            known.extend(plan.lanes.iter().map(|lane| lane.id.clone()));
        }
        match self.all().find(|(_, lane)| !known.contains(lane)) {
            Some((_, lane)) => Err(unknown_lane(lane, known.iter())),
            None => Ok(()),
        }
    }

    /// Records the answers to `run`; how it is resumed then.
    pub(super) fn record(&self, run: &RunId) -> Result<Adoption> {
        let args::Ci { approve, reject, message, control, .. } = self.arguments;
        let mut is_answered = false;
        for (lanes, approved) in [(approve, true), (reject, false)] {
            for (lane, gate) in &lanes.0 {
                is_answered |= self.answer(run, (lane, gate.clone()), approved)?;
            }
        }
        let retried = self.retried(run)?;
        let reach = match (retried.is_empty(), is_answered) {
            (false, _) => ResumeReach::Retry(retried, Replacement::default()),
            // What failed was not asked for.
            (true, true) => ResumeReach::Unfailed,
            (true, false) => ResumeReach::All,
        };
        let message = if is_answered && reach == ResumeReach::Unfailed { String::new() } else { message.clone() };
        Ok(Adoption { reach, message, ..Adoption::of(control) })
    }

    /// Records one answer; `false`: the lane does not wait for it, or had it from an earlier job with the same inputs.
    fn answer(&self, run: &RunId, (lane, gate): (&LaneId, Option<HumanGate>), approved: bool) -> Result<bool> {
        let (context, directory) = (&self.within.context, self.within.state.run(run));
        let (state, records) = self.replayed(run)?;
        if state.find(lane).is_none() {
            return Ok(false);
        }
        let input = if approved { Input::Approve } else { Input::Reject };
        let note = self.service.cause.as_ref().map(|cause| format!("{} by {cause}", past(input)));
        let is_note = |record: &Record| match &record.event {
            Event::Noted { lane: Some(of), message } => of == lane && Some(message) == note.as_ref(),
            _ => false,
        };
        if records.iter().any(is_note) {
            // A service repeats a job with its inputs, and the lane may wait for something else now.
            let message = format!("lane {lane} was {} already", note.as_deref().unwrap_or_default());
            context.printer.warning(message, &[]);
            return Ok(false);
        }
        match answer::record(context, run, lane, (gate.as_ref(), &self.arguments.message), approved) {
            Ok(gate) => context.printer.note(format!("The {} of {lane}: {}.", gate.for_people(), past(input))),
            Err(error) => {
                let error = CliError::from(error);
                if error.status != ExitStatus::InvalidOperation {
                    return Err(error.into());
                }
                context.printer.warning(error.message, &[]);
                return Ok(false);
            }
        }
        if let Some(message) = note {
            let _lock = lock_resting_run(self.within, run)?;
            let (mut journal, _) = Journal::open(&directory.log())?;
            journal.append(now(), &Event::Noted { lane: Some(lane.clone()), message })?;
            journal.sync()?;
        }
        Ok(true)
    }

    /// Those of the lanes to retry that failed or are blocked.
    fn retried(&self, run: &RunId) -> Result<Vec<LaneId>> {
        let (state, _) = self.replayed(run)?;
        let mut lanes = Vec::new();
        for (lane, _) in &self.arguments.retry.0 {
            let Some(index) = state.find(lane) else { continue };
            if state.lane(index).gave_up() {
                lanes.push(lane.clone());
            } else {
                let message = format!("lane {lane} neither failed nor is it blocked, so it is not retried");
                self.within.context.printer.warning(message, &[]);
            }
        }
        Ok(lanes)
    }

    fn replayed(&self, run: &RunId) -> Result<(RunState, Vec<Record>)> {
        let directory = self.within.state.run(run);
        let (plan, records) = (Arc::new(require_plan(run, &directory)?), run_log::read(&directory.log())?.records);
        Ok((replay(run, &plan, &records)?, records))
    }
}

fn past(input: Input) -> &'static str {
    match input {
        Input::Approve => "approved",
        Input::Reject => "rejected",
        Input::Retry => "retried",
        Input::Message | Input::AcceptPlanChange => "answered",
    }
}
