//! What a shell completes: runs, lanes, agents and snapshots of the repository around the present directory. Nothing is
//! offered where something cannot be read.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use lanewright_agents::runner::Catalogue;
use lanewright_files::regular_file::{self, Links};
use lanewright_git::{EnclosingWorktree, Repository};
use lanewright_model::{AgentName, Approval, Lane, LaneId, Plan, RunId, Stage};
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
    let own = command.get_name().to_owned();
    let completed = command.mut_args(|arg| match arg.get_id().as_str() {
        "run" if lane && arg.is_positional() => completing(arg, Completion::runs_or_lanes),
        "run" => completing(arg, Completion::runs),
        "lane" if agent => completing(arg, Completion::lanes_or_agents),
        "lane" | "lanes" if plan => completing(arg, Completion::lanes_of_plan),
        "lane" | "lanes" | "message_for" => completing(arg, Completion::lanes),
        "names" => completing(arg, Completion::names),
        "agent" => completing(arg, Completion::agents),
        "runner" => arg.add(ArgValueCompleter::new(runners)),
        // Other commands have other names.
        "name" if ["show", "restore"].contains(&own.as_str()) => completing(arg, Completion::snapshots),
        "to" if own == "rollback" => completing(arg, Completion::points),
        "gate" if !arg.is_positional() => completing(arg, Completion::gates),
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
    directory: PathBuf,
    state: StateDirectory,
    run: Option<RunId>,
    plan: Option<Plan>,
    words: Vec<String>,
}

impl Completion {
    fn find() -> Option<Self> {
        let (given, words) = words(std::env::args_os().map(|word| word.to_string_lossy().into_owned()));
        let directory = std::env::current_dir().ok()?.join(given);
        let state = StateDirectory::new(&EnclosingWorktree::of(&directory)?.main);
        let named = words.iter().filter_map(|word| RunId::new(word).ok()).find(|run| state.has(run));
        let run = named.or_else(|| default_run(&state));
        let plan = run.as_ref().and_then(|run| pinned_plan(&state.run(run)));
        Some(Self { directory, state, run, plan, words })
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
        let mut paths = self.words.iter().map(|word| self.directory.join(word));
        let Some(path) = paths.find(|path| path.is_file()) else { return Vec::new() };
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let read = |path: &Path| regular_file::read_text_with(path, Links::Follow, MAX_TEXT as u64);
        let load = |file: &str| read(&directory.join(file)).map_err(|error| error.to_string());
        let Ok(text) = read(&path) else { return Vec::new() };
        let catalogue = Catalogue::default();
        let any = catalogue.names().first().copied();
        let runner = |name: &str| catalogue.get(name).or_else(|| catalogue.get(any?)).map(|it| it.command);
        let files = [SourceFile { path: &path.to_string_lossy(), text: &text }];
        let fallbacks = Fallbacks { runner: any, ..Fallbacks::default() };
        let options = ReadOptions { redo: true, force: true, allow_unknown: true, ..ReadOptions::default() };
        let source = Source { files: &files, fallbacks, options, ..Source::default() };
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

    /// Those whose refs exist, the newest first.
    fn snapshots(&self) -> Vec<String> {
        let (Some(run), Ok(repository)) = (&self.run, Repository::discover(&self.directory)) else { return Vec::new() };
        let records = run_log::read(&self.state.run(run).log()).map(|log| log.records).unwrap_or_default();
        let mut all = snapshots(&records, self.plan.as_ref());
        all.retain(|it| repository.commit_at(&it.reference).is_ok_and(|at| at.as_ref() == Some(&it.commit)));
        all.into_iter().rev().map(|it| it.name).collect()
    }

    /// What a lane can be taken back to: stages, tasks and snapshots.
    fn points(&self) -> Vec<String> {
        let tasks = self.lanes_named().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.tasks);
        let tasks: BTreeSet<String> = tasks.map(|task| task.id.to_string()).collect();
        STAGES.map(|stage| stage.word().to_owned()).into_iter().chain(tasks).chain(self.snapshots()).collect()
    }

    /// What a lane may wait for.
    fn gates(&self) -> Vec<String> {
        let asked = self.lanes_named().flat_map(|lane| &lane.approval).map(ToString::to_string);
        let setup = self.lanes_named().any(|lane| !lane.user_setup.is_empty()).then(|| Approval::Setup.to_string());
        let tasks = self.lanes_named().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.tasks);
        let tasks = tasks.filter(|task| task.kind.is_human()).map(|task| task.id.to_string());
        asked.chain(setup).chain(tasks).collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// The lane that a word names, else all.
    fn lanes_named(&self) -> impl Iterator<Item = &Lane> {
        let named = self.lane();
        let all = self.plan.iter().flat_map(|plan| &plan.lanes);
        all.filter(move |lane| named.is_none_or(|named| named.id == lane.id))
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

/// The stages that `rollback --to` takes.
const STAGES: [Stage; 4] = [Stage::BeforeLaneStart, Stage::AfterLaneStart, Stage::AfterLaneTests, Stage::PrePr];

/// The directory of `-C`, and the words that were typed so far, without the program, the command and the word that is
/// typed now.
fn words(arguments: impl Iterator<Item = String>) -> (PathBuf, Vec<String>) {
    let (mut directory, mut words) = (PathBuf::new(), Vec::new());
    let mut arguments = arguments.skip_while(|word| word != "--").skip(2).peekable();
    while let Some(word) = arguments.next() {
        match word.strip_prefix("-C") {
            // The word that is typed now may be its value.
            Some("") if arguments.peek().is_some() => directory = PathBuf::from(arguments.next().unwrap_or_default()),
            Some(attached) if !attached.is_empty() => directory = PathBuf::from(attached),
            _ => words.push(word),
        }
    }
    words.pop();
    (directory, words.into_iter().skip(1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_words_exclude_program_and_command() {
        let typed = |line: &str| {
            let all: Vec<String> = ["lanewright", "--"].into_iter().chain(line.split(' ')).map(str::to_owned).collect();
            words(all.into_iter())
        };
        assert_eq!(typed("lanewright logs r1 SL-"), (PathBuf::new(), vec!["r1".to_owned()]));
        for line in ["lanewright -C dir logs r1 SL-", "lanewright logs -C dir r1 SL-", "lanewright -Cdir logs r1 "] {
            assert_eq!(typed(line), (PathBuf::from("dir"), vec!["r1".to_owned()]), "{line}");
        }
    }
}
