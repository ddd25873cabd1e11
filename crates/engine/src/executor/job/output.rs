//! Reads the event streams of agents' programs by the rules of their runners.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use lanewright_agents::diagnose::of_wrong_version;
use lanewright_agents::runner::{Stream, StreamItem};
use lanewright_model::job::TAIL_LINES;
use lanewright_model::safe_text::last_shown;
use lanewright_model::snapshot_rules::ToolCall;
use lanewright_model::{JobExit, JobId, Runner, Session, Transcript};
use lanewright_programs::process;
use lanewright_schedule::RunState;

use crate::executor::Executor;

impl Executor {
    /// The runner that makes or made the attempt `job`, where one is described.
    pub(super) fn runner_of(&self, job: &JobId) -> Option<&Runner> {
        self.plan.runner_of(job, || process::runner_of(&self.run.job(job)).ok().flatten())
    }

    /// What an attempt's output contains. If it is an event stream, its last lines are replaced by their meaning.
    ///
    /// Besides them, the last lines of the program itself: the agent's words are no evidence of an outage.
    pub(super) fn read_stream(
        &self,
        job: &JobId,
        exit: &mut JobExit,
        before: Option<&Session>,
    ) -> (Option<Transcript>, Vec<String>) {
        let runner = self.runner_of(job).filter(|runner| runner.has_stream() || !runner.text.is_empty());
        let Some(runner) = runner else { return (None, exit.tail.clone()) };
        let Output { stream, tail, first_of_the_program, of_the_program } = read_all(runner, &self.run.job(job));
        let transcript = stream.finish(exit.passed(), before);
        if runner.has_stream() {
            exit.tail = tail.into();
        }
        // A program that does not know an argument prints its help behind the reason.
        let first = of_wrong_version(runner, first_of_the_program);
        (Some(transcript), first.into_iter().chain(of_the_program).collect())
    }

    /// The same of an attempt that no task of the run waits for any more.
    pub(crate) fn read_stopped(&self, job: &JobId, exit: &mut JobExit, state: &RunState) -> Option<Transcript> {
        self.read_stream(job, exit, self.session_of(job, state)).0
    }

    /// The session of its program that the attempt continues.
    fn session_of<'s>(&self, job: &JobId, state: &'s RunState) -> Option<&'s Session> {
        let lane = state.find(job.lane.as_ref()?)?;
        let plan = self.plan.lane(lane);
        let agent = plan.agents.iter().position(|agent| Some(&agent.name) == job.agent())?;
        state.lane(lane).continued_session(plan, agent, self.runner_of(job)?)
    }

    pub(super) fn last_words(&self, job: &JobId, count: usize) -> Vec<String> {
        let directory = self.run.job(job);
        match self.runner_of(job).filter(|runner| runner.has_stream()) {
            Some(runner) => {
                let mut tail = read_all(runner, &directory).tail;
                tail.split_off(tail.len().saturating_sub(count)).into()
            }
            None => process::tail(&process::output_log(&directory), count).unwrap_or_default(),
        }
    }

    pub(super) fn last_message(&self, job: &JobId) -> Option<String> {
        let streams = self.runner_of(job).filter(|runner| runner.has_stream());
        let directory = self.run.job(job);
        let said = streams.map(|runner| read_all(runner, &directory).stream.finish(false, None).message);
        said.filter(|message| !message.is_empty())
            .or_else(|| Some(self.last_words(job, TAIL_LINES).join("\n")).filter(|text| !text.is_empty()))
    }
}

/// An output as far as it can be read: its last lines in words, and those of them that are the program's own.
struct Output<'r> {
    stream: Stream<'r>,
    tail: VecDeque<String>,
    first_of_the_program: Vec<String>,
    of_the_program: VecDeque<String>,
}

/// How many of a program's first lines count where it did nothing.
const FIRST_LINES: usize = 5;

fn read_all<'r>(runner: &'r Runner, job_directory: &Path) -> Output<'r> {
    let output = process::output_log(job_directory);
    let worktree = process::worked_in(job_directory).ok().flatten();
    let mut stream = Stream::new(runner);
    stream.set_worktree(worktree.as_deref());
    let (tail, of_the_program) = (VecDeque::new(), VecDeque::new());
    let mut all = Output { stream, tail, first_of_the_program: Vec::new(), of_the_program };
    let read = process::each_line(&output, |line| {
        for said in all.stream.read(String::from_utf8_lossy(line).trim_end_matches(['\n', '\r'])) {
            keep_last(&mut all.tail, &said);
            if said.is_from_program() {
                keep_last(&mut all.of_the_program, &said);
                if all.first_of_the_program.len() < FIRST_LINES {
                    all.first_of_the_program.extend(said.lines().iter().map(|line| last_shown(line)));
                }
            }
        }
        Ok(true)
    });
    if let Err(error) = read {
        tracing::warn!("{} cannot be read: {error}", output.display());
    }
    all
}

fn keep_last(tail: &mut VecDeque<String>, said: &StreamItem) {
    let lines = said.lines().into_iter().map(|line| last_shown(&line));
    tail.extend(lines.filter(|line| !line.trim().is_empty()));
    tail.drain(..tail.len().saturating_sub(TAIL_LINES));
}

/// Where an agent's tool calls are reported while it works.
pub(super) enum CallSource {
    /// In a file, one JSON object a line: the agent's hook or the agent itself writes it.
    File(PathBuf),
    /// In its output, read by the rules of its runner.
    Output(PathBuf, Box<Runner>),
}

impl CallSource {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Output(path, _) => path,
        }
    }

    /// The calls in these lines. A malformed line of the file counts as a call without details.
    pub(super) fn calls(&self, lines: &[String]) -> Vec<ToolCall> {
        let lines = lines.iter().filter(|line| !line.trim().is_empty());
        match self {
            Self::File(_) => lines.map(|line| serde_json::from_str(line).unwrap_or_default()).collect(),
            Self::Output(_, runner) => {
                let mut stream = Stream::new(runner);
                let call = |said| if let StreamItem::Call(call) = said { Some(call) } else { None };
                lines.flat_map(|line| stream.read(line)).filter_map(call).collect()
            }
        }
    }
}
