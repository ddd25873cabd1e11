//! What a shell completes: runs, lanes, agents and snapshots of the repository around the present directory. Nothing is
//! offered where something cannot be read.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use lanewright_agents::runner::Catalogue;
use lanewright_files::regular_file::{self, Links};
use lanewright_git::EnclosingWorktree;
use lanewright_model::{AgentName, Lane, LaneId, Plan, RunId};
use lanewright_plan::{Fallbacks, MAX_TEXT, ReadOptions, Source, SourceFile};
use lanewright_store::{StateDirectory, run_log};
use lanewright_view::history::snapshots::snapshots;

use crate::cli::args::Args;
use crate::cli::runs::pinned_plan;

/// How many runs are offered, the newest.
const RUNS: usize = 50;

/// The command line with what its arguments are completed to.
pub(crate) fn command() -> Command {
    with_completers(Args::command())
}

fn with_completers(command: Command) -> Command {
    let takes = |name: &str| command.get_arguments().any(|arg| arg.get_id() == name && arg.is_positional());
    let (lane, agent, plan) = (takes("lane"), takes("agent"), takes("plan"));
    let completed = command.mut_args(|arg| match arg.get_id().as_str() {
        "run" if lane && arg.is_positional() => completing(arg, Completion::runs_or_lanes),
        "run" => completing(arg, Completion::runs),
        "lane" if agent => completing(arg, Completion::lanes_or_agents),
        "lane" | "lanes" if plan => completing(arg, Completion::lanes_of_plan),
        "lane" | "lanes" | "message_for" => completing(arg, Completion::lanes),
        "names" => completing(arg, Completion::names),
        "agent" => completing(arg, Completion::agents),
        "runner" => arg.add(ArgValueCompleter::new(runners)),
        "name" => completing(arg, Completion::snapshots),
        _ => arg,
    });
    completed.mut_subcommands(with_completers)
}

/// `arg` with what is offered for it in a repository.
fn completing(arg: Arg, offer: fn(&Completion) -> Vec<String>) -> Arg {
    let candidates = move |current: &OsStr| {
        let names = Completion::find().map(|completion| offer(&completion)).unwrap_or_default();
        starting_with(current, names)
    };
    arg.add(ArgValueCompleter::new(candidates))
}

fn runners(current: &OsStr) -> Vec<CompletionCandidate> {
    let known = Catalogue::default();
    starting_with(current, known.names().into_iter().map(str::to_owned))
}

fn starting_with(current: &OsStr, names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let start = current.to_string_lossy();
    names.into_iter().filter(|name| name.starts_with(&*start)).map(CompletionCandidate::new).collect()
}

/// The repository, and the run that is meant by the words so far.
struct Completion {
    state: StateDirectory,
    run: Option<RunId>,
    plan: Option<Plan>,
    words: Vec<String>,
}

impl Completion {
    fn find() -> Option<Self> {
        let state = StateDirectory::new(&EnclosingWorktree::of(&std::env::current_dir().ok()?)?.main);
        let words = words(std::env::args_os().map(|word| word.to_string_lossy().into_owned()));
        let named = words.iter().filter_map(|word| RunId::new(word).ok()).find(|run| state.has(run));
        let run = named.or_else(|| default_run(&state));
        let plan = run.as_ref().and_then(|run| pinned_plan(&state.run(run)));
        Some(Self { state, run, plan, words })
    }

    fn runs(&self) -> Vec<String> {
        let runs = self.state.runs().unwrap_or_default();
        runs.into_iter().take(RUNS).map(|run| run.to_string()).chain(["@latest".to_owned()]).collect()
    }

    fn lanes(&self) -> Vec<String> {
        self.plan.iter().flat_map(|plan| &plan.lanes).map(|lane| lane.id.to_string()).collect()
    }

    /// The lanes of the plan file that a word names. Nothing runs, so a runner that only the settings know counts as any
    /// other.
    fn lanes_of_plan(&self) -> Vec<String> {
        let Some(path) = self.words.iter().find(|word| Path::new(word).is_file()) else { return Vec::new() };
        let directory = Path::new(path).parent().unwrap_or(Path::new("")).to_owned();
        let read = |path: &Path| regular_file::read_text_with(path, Links::Follow, MAX_TEXT as u64);
        let load = |file: &str| read(&directory.join(file)).map_err(|error| error.to_string());
        let Ok(text) = read(Path::new(path)) else { return Vec::new() };
        let catalogue = Catalogue::default();
        let any = catalogue.names().first().copied();
        let runner = |name: &str| catalogue.get(name).or_else(|| catalogue.get(any?)).map(|it| it.command);
        let files = [SourceFile { path, text: &text }];
        let fallbacks = Fallbacks { runner: any, ..Fallbacks::default() };
        let options = ReadOptions { redo: true, force: true, allow_unknown: true, ..ReadOptions::default() };
        let source = Source { files: &files, beside: &[], format: None, fallbacks, options };
        let plan = lanewright_plan::read(&source, &load, &runner).plan;
        plan.iter().flat_map(|plan| &plan.lanes).map(|lane| lane.id.to_string()).collect()
    }

    /// The agents of the lane that a word names.
    fn agents(&self) -> Vec<String> {
        let names: BTreeSet<&AgentName> =
            self.lane().into_iter().flat_map(|it| &it.agents).map(|it| &it.name).collect();
        names.into_iter().map(ToString::to_string).collect()
    }

    /// The first word of `[RUN] [LANE]`.
    fn runs_or_lanes(&self) -> Vec<String> {
        [self.lanes(), self.runs()].concat()
    }

    /// The second word: a lane, or an agent where the first word is a lane.
    fn lanes_or_agents(&self) -> Vec<String> {
        if self.lane().is_some() { self.agents() } else { self.lanes() }
    }

    /// A word of `[RUN] [LANE...]` or `[RUN] [LANE] [AGENT]`.
    fn names(&self) -> Vec<String> {
        if self.words.is_empty() {
            return self.runs_or_lanes();
        }
        let others = self.lanes().into_iter().filter(|lane| !self.words.contains(lane));
        self.agents().into_iter().chain(others).collect()
    }

    fn snapshots(&self) -> Vec<String> {
        let Some(run) = &self.run else { return Vec::new() };
        let records = run_log::read(&self.state.run(run).log()).map(|log| log.records).unwrap_or_default();
        snapshots(&records, self.plan.as_ref()).into_iter().rev().map(|it| it.name).collect()
    }

    /// The lane that a word names.
    fn lane(&self) -> Option<&Lane> {
        let plan = self.plan.as_ref()?;
        let named = self.words.iter().filter_map(|word| LaneId::new(word).ok()).find_map(|lane| plan.find(&lane));
        named.map(|lane| plan.lane(lane))
    }
}

/// The newest unfinished run, else the newest, by the ends of the logs: a shell waits for the answer.
fn default_run(state: &StateDirectory) -> Option<RunId> {
    let seen = state.unfinished_runs();
    let runs = state.runs().ok()?;
    let is_unfinished = |run: &&RunId| seen.iter().any(|summary| summary.started.run_id == **run);
    runs.iter().find(is_unfinished).or(runs.first()).cloned()
}

/// The words that were typed so far, without the program, the command and the word that is typed now.
fn words(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = arguments.skip_while(|word| word != "--").skip(3).collect();
    words.pop();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_words_exclude_program_and_command() {
        let typed = ["lanewright", "--", "lanewright", "logs", "r1", "SL-"].map(str::to_owned);
        assert_eq!(words(typed.into_iter()), ["r1"]);
    }
}
