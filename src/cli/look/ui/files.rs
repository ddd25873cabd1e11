//! What the interface shows of files: read again when they have changed, and never more than their ends. Of a lane that a
//! job of a cluster has, what that job prints is shown instead.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lanewright_engine::executor::BriefFiles;
use lanewright_model::{JobId, LaneId};
use lanewright_programs::process::{both_ends, output_log};
use lanewright_store::RunDirectory;
use lanewright_view::history::LaneHistory;
use lanewright_view::ui::board::{Board, attempt_to_show, is_live, job_to_show};
use lanewright_view::ui::material::{Material, Output, Prompt, Text};
use lanewright_view::ui::scroll::window_start;
use lanewright_view::ui::state::{State, Tab};

use super::commands::with_hints;
use super::live::Live;
use crate::cli::child::Caller;
use crate::cli::look::last_output::LastOutput;
use crate::cli::runs::{Stamp, pinned_plan, stamp};

/// How much of the end of an output is shown.
const OUTPUT_BYTES: usize = 64 * 1024;

/// How many lines of an output that is an event stream are shown.
const STREAM_LINES: usize = 500;

/// How much of the beginning and of the end of a prompt is shown.
const PROMPT_BYTES: usize = 128 * 1024;

/// How often the last words of the jobs in the list are read.
const SAID: Duration = Duration::from_secs(1);

pub(crate) struct Files {
    directory: RunDirectory,
    said: LastOutput,
    said_at: Option<Instant>,
    output: Option<(JobId, Stamp)>,
    caller: Arc<Caller>,
    /// The lane whose job is followed, and whether a process worked on the run then; without one `logs` ends at once.
    live: Option<((LaneId, bool), Option<Live>)>,
}

impl Files {
    pub(crate) fn new(directory: RunDirectory, caller: Arc<Caller>) -> Self {
        let said = LastOutput::new(directory.clone(), pinned_plan(&directory).map(Arc::new));
        Self { directory, said, said_at: None, output: None, caller, live: None }
    }

    /// Reads what the screen shows; whether anything has changed.
    pub(crate) fn read(&mut self, state: &State, board: &Board<'_>, material: &mut Material) -> bool {
        let said = self.read_said(state, board, material);
        let lane = board.lane(state.selected.as_ref());
        let said = said | self.read_live(lane.filter(|lane| is_live(lane, state)), board, state, material);
        let Some(lane) = lane else { return said };
        said | match state.tab {
            Tab::Overview | Tab::Output => self.read_output(job_to_show(lane, state.back), state, material),
            Tab::Prompt => self.read_prompt(attempt_to_show(lane, state.back), material),
            Tab::Diff | Tab::Graph => false,
        }
    }

    fn read_said(&mut self, state: &State, board: &Board<'_>, material: &mut Material) -> bool {
        if self.said_at.is_some_and(|at| at.elapsed() < SAID) {
            return false;
        }
        self.said_at = Some(Instant::now());
        let lanes = board.lanes();
        let first = window_start(board.position(state.selected.as_ref()), state.extent.lanes, lanes.len());
        let seen = lanes.iter().skip(first).take(state.extent.lanes);
        let jobs = seen.filter_map(|lane| lane.jobs.running.last()).map(|job| &job.job);
        let said: HashMap<JobId, String> = jobs.filter_map(|job| Some((job.clone(), self.said.of(job)?))).collect();
        let is_new = said != material.said;
        material.said = said;
        is_new
    }

    /// Output that the user reads further up stays as it is.
    fn read_output(&mut self, job: Option<&JobId>, state: &State, material: &mut Material) -> bool {
        let Some(job) = job else { return material.output.take().is_some() };
        let path = output_log(&self.directory.job(job));
        let now = (job.clone(), stamp(&path));
        let is_same_job = material.output.as_ref().is_some_and(|output| output.job == *job);
        if is_same_job && (state.output_top.is_some() || self.output.as_ref() == Some(&now)) {
            return false;
        }
        self.output = Some(now);
        let lines = match self.said.is_stream(job) {
            true => self.said.end_of(job, STREAM_LINES).1,
            false => both_ends(&path, 0, OUTPUT_BYTES).unwrap_or_default().lines().map(str::to_owned).collect(),
        };
        material.output = Some(Output { job: job.clone(), path, text: Text::new(lines) });
        true
    }

    fn read_live(
        &mut self,
        lane: Option<&LaneHistory>,
        board: &Board<'_>,
        state: &State,
        material: &mut Material,
    ) -> bool {
        let wanted = lane.map(|lane| (lane.id.clone(), board.held()));
        let (Some(wanted), Some(run)) = (wanted, board.history().run.run_id()) else {
            self.live = None;
            return material.live.take().is_some();
        };
        let is_another = self.live.as_ref().is_none_or(|(followed, _)| *followed != wanted);
        if is_another {
            let (live, lines) = match Live::start(&self.caller, run, &wanted.0) {
                Ok(live) => (Some(live), Vec::new()),
                Err(error) => (None, vec![with_hints(error)]),
            };
            material.live = Some((wanted.0.clone(), Text::new(lines)));
            self.live = Some((wanted, live));
        }
        // What the user reads further up stays as it is.
        let live = self.live.as_ref().and_then(|(_, live)| live.as_ref()).filter(|_| state.output_top.is_none());
        let news = live.and_then(Live::news).zip(material.live.as_mut());
        let is_new = news.is_some();
        news.into_iter().for_each(|(lines, (_, shown))| *shown = Text::new(lines));
        is_another | is_new
    }

    fn read_prompt(&mut self, job: Option<&JobId>, material: &mut Material) -> bool {
        let known = material.prompt.as_ref().map(|prompt| &prompt.job);
        if known == job {
            return false;
        }
        material.prompt = job.map(|job| {
            let path = self.directory.job(job).join(BriefFiles::PROMPT);
            let text = both_ends(&path, PROMPT_BYTES, PROMPT_BYTES);
            let text = text.unwrap_or_else(|error| format!("{} cannot be read: {error}", path.display()));
            Prompt { job: job.clone(), text: Text::new(text.lines().map(str::to_owned).collect()) }
        });
        true
    }
}
