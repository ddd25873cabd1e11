//! `approve` and `reject`: the user's answer to a lane that waits for one.

use std::sync::Arc;

use lanewright_engine::at_resume::replay;
use lanewright_model::event::{Event, LaneStage, Record, stage_in_words};
use lanewright_model::{Approval, HumanGate, LaneId, LaneIndex, RunId};
use lanewright_plan::settings::{Layer, Settings};
use lanewright_schedule::{RunState, approval_at};
use lanewright_store::lock::is_held;
use lanewright_store::{Journal, Request, StateDirectory, run_log};
use serde_json::json;

use super::ask::lock_or_ask;
use super::is_own_job;
use crate::cli::args::{Answer, Name};
use crate::cli::repository_context::{holder, session_id};
use crate::cli::run::{Adoption, complete_files_of, refuse_unjudged, resume_with};
use crate::cli::runs::{command, named_few, read_log, require_lane, require_plan, state, unfinished};
use crate::cli::secrets::redactor_of_run;
use crate::cli::select::{DefaultRun, Selector};
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result, now};

/// Hands the answer to the process that works on the run, or writes it into the run log for the next resume.
pub(crate) fn run(context: &Context, arguments: &Answer, approved: bool) -> Result<ExitStatus> {
    let (state, settings) = state(context)?;
    let answered = answered_lane(context, &state, arguments, approved)?;
    let (gate, live) = answered.answer(context, &settings, (arguments.gate.as_ref(), &arguments.message))?;
    if !arguments.then.resume || live {
        return answered.report(context, &gate, live);
    }
    let (lane, word) = (&answered.lane, word(approved));
    context.printer.note(format!("The {} of {lane} {} {word}.", gate.for_people(), be(&gate)));
    let layer = arguments.then.layer();
    let within = RepositoryContext::open_for_work(context, layer.clone())?;
    resume_with(&within, &answered.run, &Adoption::after_answer(&arguments.then), layer)
}

/// Records an answer to a lane, as [`run`] does: at the gate that is meant, which is returned.
///
/// # Errors
/// [`ExitStatus::InvalidOperation`] if the lane does not wait for it.
pub(crate) fn record(
    context: &Context,
    run: &RunId,
    lane: &LaneId,
    answer: (Option<&HumanGate>, &str),
    approved: bool,
) -> Result<HumanGate> {
    let (state, settings) = state(context)?;
    let answered = AnsweredLane { state: &state, run: run.clone(), lane: lane.clone(), approved };
    Ok(answered.answer(context, &settings, answer)?.0)
}

/// The lane that is answered.
struct AnsweredLane<'a> {
    state: &'a StateDirectory,
    run: RunId,
    lane: LaneId,
    approved: bool,
}

/// A lane without a run is one of the unfinished run in which it waits; a run without a lane means the one that waits.
fn answered_lane<'a>(
    context: &Context,
    state: &'a StateDirectory,
    arguments: &Answer,
    approved: bool,
) -> Result<AnsweredLane<'a>> {
    let selector = Selector::new(context, state);
    let names: Vec<&Name> = arguments.run.iter().chain(&arguments.lane).collect();
    let target = selector.target_within(&names, |lane| {
        let waiting = lane.map(|lane| runs_waiting_in(state, lane)).transpose()?.unwrap_or_default();
        match waiting.as_slice() {
            [] => selector.default_run(),
            [only] => Ok(Some(DefaultRun::only(only.clone()))),
            several => Err(ambiguous(several)),
        }
    })?;
    let lane = target.lane.map_or_else(|| only_waiting(state, &target.run), Ok)?;
    Ok(AnsweredLane { state, run: target.run, lane, approved })
}

fn ambiguous(runs: &[RunId]) -> anyhow::Error {
    let names = named_few(runs.iter().map(RunId::as_str));
    ExitStatus::Usage.error("the lane waits for an answer in several runs").hint(format!("name the run: {names}"))
}

/// The unfinished runs in which the lane waits for an answer, the newest first. Those that cannot be read have none.
fn runs_waiting_in(state: &StateDirectory, lane: &Name) -> Result<Vec<RunId>> {
    let waits =
        |run: &RunId| lanes_waiting(state, run).is_ok_and(|lanes| lanes.iter().any(|it| it.as_str() == lane.as_str()));
    Ok(unfinished(state)?.into_iter().map(|(run, _)| run).filter(waits).collect())
}

fn lanes_waiting(state: &StateDirectory, run: &RunId) -> Result<Vec<LaneId>> {
    let directory = state.run(run);
    let plan = Arc::new(require_plan(run, &directory)?);
    let replayed = replay(run, &plan, &run_log::read(&directory.log())?.records)?;
    let waits = |lane: &LaneIndex| !replayed.open_gates(*lane).is_empty();
    Ok(plan.indices().filter(waits).map(|lane| plan.lane(lane).id.clone()).collect())
}

fn only_waiting(state: &StateDirectory, run: &RunId) -> Result<LaneId> {
    let mut waiting = lanes_waiting(state, run)?;
    match waiting.len() {
        1 => Ok(waiting.remove(0)),
        0 => {
            let error = ExitStatus::InvalidOperation.error(format!("no lane of run {run} waits for an answer"));
            let next = to_continue(state, run).filter(|_| !is_held(&state.run(run).lock()));
            Err(next.into_iter().fold(error, Hint::hint))
        }
        count => {
            let names = named_few(waiting.iter().map(LaneId::as_str));
            let error = ExitStatus::Usage.error(format!("{count} lanes of run {run} wait for an answer"));
            Err(error.hint(format!("name the one you mean: {names}")))
        }
    }
}

/// The resume of the run, if it is not done.
fn to_continue(state: &StateDirectory, run: &RunId) -> Option<String> {
    let is_open = unfinished(state).is_ok_and(|runs| runs.iter().any(|(open, _)| open == run));
    is_open.then(|| format!("to continue the run: {}", command(state, &["resume", run.as_str()])))
}

impl AnsweredLane<'_> {
    fn without_reason(&self) -> anyhow::Error {
        let error = ExitStatus::Usage.error("a rejection needs a reason: it is all that the agent knows of it");
        let again = ["reject", self.run.as_str(), self.lane.as_str(), "-m", "what to change"];
        error.hint(command(self.state, &again))
    }

    /// Records the answer; the gate that was meant, and whether a process works on the run.
    fn answer(
        &self,
        context: &Context,
        settings: &Settings,
        (named, message): (Option<&HumanGate>, &str),
    ) -> Result<(HumanGate, bool)> {
        let (state, approved, directory) = (self.state, self.approved, self.state.run(&self.run));
        if is_own_job(context, &directory) {
            let message = format!("run {} asks a person, and this is one of its own jobs", self.run);
            return Err(ExitStatus::InvalidOperation.error(message).hint("leave the answer to the user"));
        }
        if approved {
            refuse_unjudged(context, state, &self.run, &self.lane)?;
        } else if message.trim().is_empty() {
            return Err(self.without_reason());
        }
        let redactor = redactor_of_run(settings, &directory);
        let (lane, message) = (&self.lane, redactor.redact(message).into_owned());
        directory.create()?;
        let mut asked = None;
        let lock = lock_or_ask(&directory, &holder(state, &session_id(settings), &self.run), || {
            let gate = self.gate(named, &read_log(context, &directory)?.records, true)?;
            asked = Some(gate.clone());
            Ok(Request::Answer { lane: lane.clone(), gate, approved, message: message.clone() })
        })?;
        if let (None, Some(gate)) = (&lock, asked) {
            return Ok((gate, true));
        }
        // Before the answer is on record: what fails then must not look as if it were not.
        let within = RepositoryContext::open(context, Layer::default())?;
        let (mut journal, records) = Journal::open(&directory.log())?;
        let gate = self.gate(named, &records, false)?;
        journal.append(now(), &Event::GateAnswered { lane: lane.clone(), gate: gate.clone(), approved, message })?;
        journal.sync()?;
        drop(journal);
        complete_files_of(&within, &self.run);
        Ok((gate, false))
    }

    /// The gate at which the lane waits; one that was named must be open. `live`: a process works on the run.
    fn gate(&self, named: Option<&HumanGate>, records: &[Record], live: bool) -> Result<HumanGate> {
        let plan = require_plan(&self.run, &self.state.run(&self.run))?;
        let state = replay(&self.run, &Arc::new(plan), records)?;
        let (lane, index) = (&self.lane, require_lane(state.plan(), &self.lane)?);
        let (stage, open) = (state.lane(index).stage(), state.open_gates(index));
        // The resume that acts on a pick forgets what was said of the changes before it.
        if !live && state.lane(index).picked().is_some() && open.contains(&Approval::Changes.into()) {
            let message =
                format!("another candidate of lane {lane} is picked: a resume builds the lane with it, and asks again");
            let error = ExitStatus::InvalidOperation.error(message);
            return Err(to_continue(self.state, &self.run).into_iter().fold(error, Hint::hint));
        }
        match (open.as_slice(), named) {
            ([only], None) => Ok(only.clone()),
            ([], _) => {
                let message = format!("lane {lane} does not wait for an answer: {}", standing(&state, lane, stage));
                Err(self
                    .instead(&state, live)
                    .into_iter()
                    .fold(ExitStatus::InvalidOperation.error(message), Hint::hint))
            }
            (open, Some(named)) if open.contains(named) => Ok(named.clone()),
            (open, named) => {
                let gates = open.iter().map(HumanGate::for_people).collect::<Vec<_>>().join(" and its ");
                let message = match named {
                    Some(named) => {
                        format!("lane {lane} waits for an answer to its {gates}, not to its {}", named.for_people())
                    }
                    None => format!("lane {lane} waits for an answer to its {gates}: say which with --gate"),
                };
                Err(ExitStatus::InvalidOperation.error(message))
            }
        }
    }

    /// What to do with a lane that waits for no answer.
    fn instead(&self, state: &RunState, live: bool) -> Option<String> {
        let (run, lane) = (self.run.as_str(), self.lane.as_str());
        let standing = state.lane(state.find(&self.lane)?);
        if live {
            return None;
        }
        if standing.gave_up() {
            return Some(format!("to run it again: {}", command(self.state, &["retry", run, lane])));
        }
        if standing.is_left_to_do() {
            return to_continue(self.state, &self.run);
        }
        let rollback = || command(self.state, &["rollback", run, "--lane", lane]);
        (!self.approved && standing.merged().is_some()).then(|| format!("to take its work back: {}", rollback()))
    }

    fn report(&self, context: &Context, gate: &HumanGate, live: bool) -> Result<ExitStatus> {
        let AnsweredLane { state, run, lane, approved } = self;
        let word = word(*approved);
        let next = match live {
            true => "the run continues.".to_owned(),
            false => {
                format!("the run is not active; continue with:\n  {}", command(state, &["resume", run.as_str()]))
            }
        };
        context.printer.print(
            format_args!("The {} of {lane} {} {word}; {next}\n", gate.for_people(), be(gate)),
            &json!({"run_id": run, "lane": lane, "gate": gate, "approved": approved, "live": live}),
        )
    }
}

fn standing(state: &RunState, lane: &LaneId, stage: LaneStage) -> String {
    let answer = approval_at(stage).and_then(|gate| {
        let answer = state.lane(state.find(lane)?).answer(&gate.into())?;
        let word = word(answer.approved);
        let be = be(&gate.into());
        Some(format!("its {gate} {be} {word} already"))
    });
    answer.unwrap_or_else(|| format!("it is at {}", stage_in_words(stage.word())))
}

fn word(approved: bool) -> &'static str {
    if approved { "approved" } else { "rejected" }
}

/// A plan was, changes were.
fn be(gate: &HumanGate) -> &'static str {
    match gate {
        HumanGate::Approval(Approval::Changes) => "were",
        HumanGate::Approval(Approval::Setup | Approval::Plan) | HumanGate::Task(_) => "was",
    }
}
