//! The unfinished runs of the repository that a session works in, and what is reported of them to the session.

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;

use lanewright_files::{atomic, regular_file};
use lanewright_git::EnclosingWorktree;
use lanewright_model::event::{RunOutcome, stage_in_words};
use lanewright_model::text::shell_line;
use lanewright_model::{HumanGate, LaneId, RunId, TaskFile};
use lanewright_store::lane_files::read_task;
use lanewright_store::lock::is_held;
use lanewright_store::{LaneDirectory, LogSummary, RunDirectory, StateDirectory, run_log};
use lanewright_view::answers::approvals::open_gate;
use lanewright_view::answers::commands::Commands;

use super::input::Input;
use super::interruption::Reply;
use crate::cli::Context;
use crate::cli::runs;

const RUNS: usize = 3;

const LANES: usize = 12;

/// A repository with unfinished runs, seen by a session.
pub(crate) struct SessionRuns {
    state: StateDirectory,
    session: String,
    runs: Vec<Unfinished>,
}

pub(crate) struct Unfinished {
    summary: LogSummary,
    /// Whether a live process works on it.
    pub(crate) held: bool,
    /// Its lanes that hold worktrees, with their `task.json`.
    pub(crate) lanes: Vec<(LaneDirectory, TaskFile)>,
    /// The session that had it last.
    session: String,
    directory: RunDirectory,
    waiting: OnceCell<Vec<(LaneId, HumanGate)>>,
}

/// The repository around where the session works: its present directory, else its project's.
pub(super) fn surrounding(context: &Context, input: &Input) -> Option<EnclosingWorktree> {
    let project = context.environment.get("CLAUDE_PROJECT_DIR").map(PathBuf::from);
    let places = [Some(input.cwd.clone()), project].into_iter().flatten().filter(|place| place.is_absolute());
    places.chain([context.directory.clone()]).find_map(|place| EnclosingWorktree::of(&place))
}

impl SessionRuns {
    /// What is unfinished; `None`: nothing is.
    pub(crate) fn find(context: &Context, input: &Input) -> Option<Self> {
        let state = StateDirectory::new(&surrounding(context, input)?.main);
        let runs: Vec<_> = state.unfinished_runs().into_iter().map(|summary| Unfinished::of(&state, summary)).collect();
        (!runs.is_empty()).then(|| Self { state, session: input.session_id.clone(), runs })
    }

    pub(crate) fn own(&self) -> Vec<&Unfinished> {
        self.runs.iter().filter(|run| run.session == self.session).collect()
    }

    /// A command about a run, to be pasted.
    pub(crate) fn command(&self, run: &Unfinished, command: &str) -> String {
        runs::command(&self.state, &[command, run.id().as_str()])
    }

    /// For a session that begins: its own runs first, then those of others.
    pub(super) fn at_start(&self) -> Option<String> {
        let mut runs: Vec<&Unfinished> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.session != self.session);
        let mut paragraphs: Vec<String> = runs.iter().take(RUNS).map(|run| self.paragraph(run)).collect();
        let more = runs.len().saturating_sub(RUNS);
        if more > 0 {
            paragraphs.push(format!("{more} more are unfinished; `lanewright status` names them."));
        }
        paragraphs.push(RULES.to_owned());
        Some(paragraphs.join("\n\n"))
    }

    fn paragraph(&self, run: &Unfinished) -> String {
        let whose = if run.session == self.session { "This session's" } else { "Another session's" };
        let mut text = format!("{whose} {}", run.described());
        if run.session != self.session {
            text += if run.held { "\nLeave it to that session, and choose other work." } else { OF_OTHERS };
        }
        if !run.held {
            text += &self.ways_on(run);
            text += &format!("\nTo roll it back instead: {}", self.command(run, "rollback"));
        }
        text + &format!("\nTo look, which changes nothing: {}", self.command(run, "status"))
    }

    /// The commands that continue the run: an answer where a lane waits for one, and a resume where that does something.
    pub(super) fn ways_on(&self, run: &Unfinished) -> String {
        let (waiting, program) = (run.waiting(), self.state.program());
        let commands = Commands { program: &program, run: run.id() };
        let of_lane = |(lane, gate): &(LaneId, HumanGate)| {
            let answer = |words: Vec<String>| shell_line(words.iter().map(String::as_str).chain(["--resume"]));
            let (approve, reject) = (answer(commands.approve(lane, gate)), answer(commands.reject(lane, gate)));
            let gate = gate.for_people();
            format!("\nOnly the user may answer lane {lane}. To approve its {gate}: {approve}\nTo reject: {reject}")
        };
        let mut text: String = waiting.iter().map(of_lane).collect();
        let waits_only = run.summary.outcome == Some(RunOutcome::Blocked) && run.summary.answered.is_empty();
        if waiting.is_empty() || !waits_only {
            text += &format!("\nTo continue: {}", self.command(run, "resume"));
        }
        text
    }

    /// The commands that give `reply` to the lanes of a run that wait for an answer. `None`: no lane waits. A session without
    /// a run of its own may approve for another one; what it wants changed is its own work.
    pub(super) fn answers(&self, reply: Reply) -> Option<String> {
        let mut asked = self.own();
        if asked.is_empty() && reply == Reply::Approval {
            asked = self.runs.iter().collect();
        }
        let run = asked.into_iter().take(RUNS).find(|run| !run.waiting_now().is_empty())?;
        let program = self.state.program();
        let commands = Commands { program: &program, run: run.id() };
        let waiting = run.waiting_now();
        let lines: Vec<String> = waiting
            .iter()
            .map(|(lane, gate)| {
                let words = match reply {
                    Reply::Approval => commands.approve(lane, gate),
                    Reply::Change => commands.reject(lane, gate),
                };
                // A live process continues by itself.
                let then = (!run.held).then_some("--resume");
                let command = shell_line(words.iter().map(String::as_str).chain(then));
                format!("lane {lane} waits for an answer to its {}: {command}", gate.for_people())
            })
            .collect();
        let whose = match run.session == self.session {
            true => String::new(),
            false => format!("Run {} is another session's: choose other work unless the user means it.\n", run.id()),
        };
        let how = match reply {
            Reply::Approval => {
                "The user may have approved what a lane waits with. Only if the user's words mean it, run"
            }
            Reply::Change => {
                "The user may want what a lane waits with to be different. Only if the user's words mean it, and with \
                 these words after -m, run"
            }
        };
        let one =
            if waiting.len() > 1 { " the command of the lane that is meant (ask if that is not clear)" } else { "" };
        let background = if run.held { "" } else { ", in the background because it resumes the run" };
        Some(format!("{whose}{how}{one}{background}:\n{}", lines.join("\n")))
    }

    /// For a session that stops: its own runs without a live process, each once until something
    /// happens in it.
    pub(super) fn at_stop(&self) -> Option<String> {
        let due = |run: &&Unfinished| !run.held && self.is_due(run);
        let lines = self
            .own()
            .into_iter()
            .filter(due)
            .map(|run| format!("Lanewright: {}{}", run.described(), self.ways_on(run)));
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Whether the user was not yet reminded of the run in its current state; now they are.
    fn is_due(&self, run: &Unfinished) -> bool {
        let marker = self.state.run(run.id()).directory().join("reminded");
        let now = format!("{} {}\n", self.session, run.summary.length);
        if regular_file::read_text(&marker).is_ok_and(|before| before == now) {
            return false;
        }
        // Where it cannot be kept in mind, a reminder too many is better than none.
        let _ = atomic::write(&marker, now.as_bytes());
        true
    }
}

/// For a session that finds another's run at rest.
const OF_OTHERS: &str = "\nFirst choose other work; continue this run only if the user wants that here.";

/// What an agent needs to know that has never met a run.
const RULES: &str = "Lanewright's runs are moved by its commands only. Do not merge lanes, remove worktrees or edit \
state files by hand, and resume a run only where the user asks for it.";

impl Unfinished {
    fn of(state: &StateDirectory, summary: LogSummary) -> Self {
        let (run, root) = (&summary.started.run_id, &summary.worktree_root);
        let directories = LaneDirectory::all_of(root, run).into_iter();
        let read = |lane: LaneDirectory| Some((read_task(&lane.task_file()).ok().flatten()?, lane));
        let lanes: Vec<_> = directories.filter_map(read).map(|(task, lane)| (lane, task)).collect();
        let changed = |lane: &LaneDirectory| fs::metadata(lane.task_file()).and_then(|it| it.modified()).ok();
        let newest = lanes.iter().max_by_key(|(lane, _)| changed(lane));
        let session = newest.map_or(&summary.started.owner.session_id, |(_, task)| &task.session_id).clone();
        let directory = state.run(run);
        Self { held: is_held(&directory.lock()), summary, lanes, session, directory, waiting: OnceCell::new() }
    }

    fn id(&self) -> &RunId {
        &self.summary.started.run_id
    }

    /// Which run it is, why it is at rest, and the stages of its lanes.
    pub(crate) fn described(&self) -> String {
        let started = &self.summary.started;
        let name = format!(
            "run {} of phase {} on {} is unfinished: {}",
            self.id(),
            started.phase,
            started.base_branch,
            self.why()
        );
        let stages: Vec<String> = self.lanes.iter().take(LANES).map(|(_, task)| self.stage(task)).collect();
        let more = self.lanes.len().saturating_sub(LANES);
        let more = if more > 0 { format!(" and {more} more lanes") } else { String::new() };
        match stages.as_slice() {
            [] => format!("{name}."),
            stages => format!("{name}; {}{more}.", stages.join(", ")),
        }
    }

    fn why(&self) -> &'static str {
        match self.summary.outcome {
            _ if self.held => "a live process works on it",
            Some(RunOutcome::Failed) => "lanes failed",
            Some(RunOutcome::Blocked) => "it waits for a person",
            Some(RunOutcome::Stopped) => "it was stopped",
            Some(RunOutcome::Done | RunOutcome::RolledBack) | None => "it was interrupted",
        }
    }

    fn stage(&self, task: &TaskFile) -> String {
        let asks = self.waiting().iter().find(|(lane, _)| lane.as_str() == task.task_name);
        let waits = asks.map(|(_, gate)| format!(" (waits for an answer to its {})", gate.for_people()));
        let stage = stage_in_words(&task.state);
        format!("lane {} is at {stage}{}", task.task_name, waits.unwrap_or_default())
    }

    pub(super) fn waits_for_answer(&self) -> bool {
        !self.waiting().is_empty()
    }

    /// The lanes that wait for an answer, with what they ask; none while a process works on the run. The whole log is read,
    /// but only of a run that ended and waits: the files of its lanes do not say it of each.
    fn waiting(&self) -> &[(LaneId, HumanGate)] {
        let rests = !self.held && matches!(self.summary.outcome, Some(RunOutcome::Blocked | RunOutcome::Failed));
        if rests { self.waiting_now() } else { &[] }
    }

    /// The same, also while a process works on the run.
    fn waiting_now(&self) -> &[(LaneId, HumanGate)] {
        self.waiting.get_or_init(|| {
            let records = run_log::read(&self.directory.log()).map(|log| log.records).unwrap_or_default();
            let history = runs::beginning(&self.directory).after(&records);
            history.lanes().iter().filter_map(|lane| Some((lane.id.clone(), open_gate(lane)?))).collect()
        })
    }
}
