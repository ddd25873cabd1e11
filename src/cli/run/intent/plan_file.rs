//! Reading a plan from disk: its text, its prompt files, every fault at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lanewright_agents::runner::Catalogue;
use lanewright_agents::shell;
use lanewright_files::regular_file::{self, Links};
use lanewright_git::EnclosingWorktree;
use lanewright_model::event::RunStarted;
use lanewright_model::ownership::Ownership;
use lanewright_model::text::{counted, headline};
use lanewright_model::time::short;
use lanewright_model::{Agent, CommandLine, ExecutorKind, Lane, LaneIndex, Plan, PlanParts, Round, Runner};
use lanewright_plan::places::{self, PlanFiles};
use lanewright_plan::settings::{Origin, Settings};
use lanewright_plan::{
    Diagnostic, Fallbacks, MAX_TEXT, Package, PlanFormat, ReadOptions, Reading, Severity, Source, SourceFile,
    gsd_context_files, gsd_plans_beside, names_scripts,
};

use super::phase_sequence::names_in;
use super::places::{Disk, companions};
use super::prompts;
use crate::cli::args::{Format, ReadingArgs};
use crate::cli::worktree_needs::package_scripts;
use crate::cli::{Context, ExitStatus, Hint, Result};

#[derive(Debug, Clone)]
pub(crate) struct PlanFile {
    /// Absolute.
    pub(crate) path: PathBuf,
    /// Over the plan's text and its prompt files.
    pub(crate) sha256: String,
    pub(crate) format: Option<PlanFormat>,
    pub(crate) plan: Arc<Plan>,
}

/// How long a task should take at most (seed 000).
const LONGEST_TASK: Duration = Duration::from_secs(10 * 60);

/// A plan's files as they are on disk. They are read once, because a pipe cannot be read twice.
pub(crate) struct PlanText {
    /// Absolute.
    path: PathBuf,
    /// Each with what diagnostics call it and its text: one, or all plans of a GSD phase.
    files: Vec<(String, String)>,
    /// Their format, where the place says it.
    format: Option<PlanFormat>,
    /// The directory that they are in, and the names in it.
    directory: PathBuf,
    beside: Vec<String>,
    /// What the format keeps beside them, each with its path below the repository's root and its text.
    companions: Vec<(String, String)>,
    /// What cannot be read of these.
    unreadable: Vec<Diagnostic>,
}

impl PlanText {
    /// A plan whose text is not in its file yet.
    pub(crate) fn of(path: &Path, text: &str) -> Self {
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        let files = vec![(path.to_string_lossy().into_owned(), text.to_owned())];
        let (format, beside, companions, unreadable) = (None, Vec::new(), Vec::new(), Vec::new());
        Self { path: path.to_owned(), files, format, directory, beside, companions, unreadable }
    }

    /// Reads a plan's file that the user named, which may be a pipe, or those of the directory of a GSD phase.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::open_by(path, regular_file::read_argument)
    }

    /// The same for the path that a run recorded; a pipe there is not waited for.
    pub(crate) fn open_recorded(path: &Path) -> Result<Self> {
        Self::open_by(path, |path, limit| regular_file::read_with(path, Links::Follow, limit))
    }

    /// Reads the plan of a run again, from its file as it is now. The `lanes` of the run stay part of the plan although their
    /// files show that they are done.
    pub(crate) fn read_of_run(
        settings: &Settings,
        started: &RunStarted,
        lanes: Vec<String>,
        allow_unknown: bool,
    ) -> Result<Reading> {
        let settings = &settings.clone().with_list_options(&started.options.list_options);
        let tag = started.options.plan_tag.as_deref();
        let options = ReadOptions { unfinished: &lanes, force: true, allow_unknown, tag, ..ReadOptions::default() };
        let text = Self::open_recorded(&started.plan_path)?;
        Ok(text.read(settings, &options, started.options.plan_format))
    }

    fn open_by(path: &Path, read: impl Fn(&Path, u64) -> io::Result<Vec<u8>>) -> Result<Self> {
        let directory = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("/")) };
        let beside = names_in(directory);
        let place = places::plan_at(&Disk, path);
        let files = texts(path, place.as_ref(), &|path| read(path, MAX_TEXT as u64))?;
        let (companions, unreadable) = place.as_ref().map(companions).unwrap_or_default();
        let format = place.and_then(|place| place.format);
        Ok(Self {
            path: path.to_owned(),
            files,
            format,
            directory: directory.to_owned(),
            beside,
            companions,
            unreadable,
        })
    }

    pub(crate) fn read(&self, settings: &Settings, options: &ReadOptions<'_>, format: Option<PlanFormat>) -> Reading {
        let load = |file: &str| {
            let text = regular_file::read_text_with(&self.directory.join(file), Links::Follow, MAX_TEXT as u64);
            text.map_err(|error| error.to_string())
        };
        let catalogue = settings.catalogue();
        let runners = |name: &str| catalogue.get(name).map(|runner| runner.command);
        let executors = settings.executors.iter().map(|(name, setting)| (name.as_str(), setting.value.kind));
        let executors: Vec<(&str, ExecutorKind)> = executors.collect();
        let fallbacks = Fallbacks {
            executor: settings.executor.value.as_deref(),
            executors: &executors,
            runner: settings.runner.value.as_deref(),
            runner_outranks_plan: settings.runner.origin.outranks_plan(),
            retries: settings.retries.value,
            copy: settings.copy.value.as_deref().unwrap_or_default(),
            setup: settings.setup.value.as_deref().unwrap_or_default(),
            tests: settings.tests.value.as_deref().unwrap_or_default(),
            shared_files: settings.shared_files.value,
            lists: settings.list_options(),
        };
        let files: Vec<SourceFile<'_>> = self.files.iter().map(|(path, text)| SourceFile { path, text }).collect();
        let allow_unknown = options.allow_unknown || settings.allow_unknown.value;
        let options = ReadOptions { allow_unknown, ..*options };
        let companions = self.companions.iter().map(|(path, text)| SourceFile { path, text });
        let companions: Vec<SourceFile<'_>> = companions.collect();
        let format = format.or(self.format);
        let (beside, companions) = (&self.beside[..], &companions[..]);
        let packages = self.packages();
        let packages = &packages[..];
        let source = Source { files: &files, beside, companions, packages, format, fallbacks, options };
        let mut reading = lanewright_plan::read(&source, &load, &runners);
        let (templates, mut faulty) = prompts::read(&settings.prompts);
        faulty.extend(self.unreadable.iter().cloned());
        faulty.extend(reading.format.filter(|format| !format.has_lists()).and_then(|_| self.flags_of_lists(settings)));
        reading.plan = reading.plan.map(|plan| with_settings(plan, settings, &catalogue, templates));
        if reading.format.is_some_and(PlanFormat::has_lists) {
            reading.plan = reading.plan.map(|plan| self.with_lists(plan));
        }
        faulty.extend(reading.plan.iter().flat_map(|plan| self.faulty_gates(plan, settings)));
        faulty.extend(reading.plan.iter().flat_map(|plan| self.unknown_options(plan)));
        if reading.format == Some(PlanFormat::Gsd) {
            faulty.extend(reading.plan.iter().flat_map(|plan| self.missing_context(plan)));
        }
        faulty.extend(reading.plan.iter().flat_map(|plan| prompts::check(plan, &settings.prompts.value)));
        reading.plan = reading.plan.filter(|_| !faulty.iter().any(Diagnostic::is_error));
        reading.diagnostics.extend(faulty);
        Diagnostic::sort(&mut reading.diagnostics);
        reading
    }

    /// The flags that say nothing about this plan, for it is not a task list.
    fn flags_of_lists(&self, settings: &Settings) -> Option<Diagnostic> {
        let flags = settings.flags_of_lists();
        let ((path, text), [_, ..]) = (self.first(), flags.as_slice()) else { return None };
        let message = format!("this plan is not a task list, so nothing follows from {}", flags.join(", "));
        let help = "they are for Spec Kit, OpenSpec, Task Master, Kiro, Backlog.md and Beads";
        Some(Diagnostic::at_line(Severity::Warning, path, text, 1, &message, help))
    }

    /// The packages of the repository, where the plan may have scripts of theirs run.
    fn packages(&self) -> Vec<Package> {
        let is_named = self.files.iter().any(|(_, text)| names_scripts(text));
        let root = EnclosingWorktree::of(&self.directory).filter(|_| is_named).map(|found| found.worktree);
        root.map(|root| package_scripts(&root)).unwrap_or_default()
    }

    /// The plan with the files in which it says what is done, as far as they are in the repository.
    fn with_lists(&self, plan: Plan) -> Plan {
        let canonical = |path: &Path| std::fs::canonicalize(path).ok();
        let root = EnclosingWorktree::of(&self.directory).and_then(|found| canonical(&found.worktree));
        let below = |(path, _): &(String, String)| {
            Some(canonical(Path::new(path))?.strip_prefix(root.as_ref()?).ok()?.to_str()?.to_owned())
        };
        let lists = self.files.iter().filter_map(below).collect();
        let companions = self.companions.iter().map(|(path, _)| path.clone()).collect();
        plan.with_lists(lists, companions)
    }

    /// The gates that cannot fail, and those that `sh` refuses, which is asked only about lines that Lanewright itself cannot
    /// parse.
    fn faulty_gates(&self, plan: &Plan, settings: &Settings) -> Vec<Diagnostic> {
        let gates = plan.lanes.iter().flat_map(|lane| lane.own_gates());
        let gates = gates.chain(plan.gates.all());
        let lines = gates.filter_map(|gate| if let CommandLine::Shell(line) = gate { Some(line) } else { None });
        let (known, odd): (BTreeSet<&String>, BTreeSet<&String>) = lines.partition(|line| shell::parse(line).is_some());
        let harmless = |line: &&String| {
            let part = shell::cannot_fail(line)?;
            let cause = if part == **line { String::new() } else { format!(" because of `{}`", headline(&part, 60)) };
            let message = format!("`{}` cannot fail{cause}", headline(line, 60));
            let help = "it runs, but does not count as a gate";
            Some(Diagnostic::of_gate(Severity::Warning, &self.files, line, &message, help))
        };
        let refusal = |line: &&String| {
            let shell = if shell::shell_of(line) == shell::Shell::Bash { "bash" } else { "sh" };
            let asked = Command::new(shell).args(["-n", "-c", line]).stdin(Stdio::null()).output().ok()?;
            let said = String::from_utf8_lossy(&asked.stderr).trim().to_owned();
            let message = format!("the shell refuses the gate `{}`: {}", headline(line, 60), headline(&said, 200));
            let edit = &settings.gates_edit;
            let is_setting =
                edit.value.as_ref() == Some(*line) && !self.files.iter().any(|(_, text)| text.contains(*line));
            let place = if is_setting { format!(" in {}", edit.origin) } else { String::new() };
            let help = format!("correct it{place}; `sh -n` shows the same");
            let refused = || Diagnostic::of_gate(Severity::Error, &self.files, line, &message, &help);
            (!asked.status.success()).then(refused)
        };
        known.iter().filter_map(harmless).chain(odd.iter().filter_map(refusal)).collect()
    }

    /// Files in the contexts of GSD plans that do not exist and that no earlier plan of the phase writes.
    fn missing_context(&self, plan: &Plan) -> Vec<Diagnostic> {
        let Some(root) = EnclosingWorktree::of(&self.directory).map(|found| found.worktree) else { return Vec::new() };
        // In a repository of several projects a project has its plans below its own root.
        let project = self.directory.ancestors().find(|it| it.ends_with(".planning")).and_then(Path::parent);
        let exists = |path: &str| root.join(path).exists() || project.is_some_and(|it| it.join(path).exists());
        let name = |path: &str| Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
        let names: Vec<String> = self.files.iter().filter_map(|(path, _)| name(path)).collect();
        let beside = gsd_plans_beside(&names);
        let lane_of = |path: &str| {
            let own = beside.iter().find(|plan| Some(&plan.name) == name(path).as_ref())?;
            plan.indices().find(|lane| plan.lane(*lane).id.as_str() == own.id)
        };
        let mut all = Vec::new();
        for (path, text) in &self.files {
            let Some(own) = lane_of(path) else { continue };
            let earlier = || plan.indices().filter(|lane| *lane < own || plan.dag().dependencies(own).contains(lane));
            for file in gsd_context_files(text).into_iter().filter(|file| !exists(&file.path)) {
                let writes = |lane: LaneIndex| {
                    let lane = plan.lane(lane);
                    let is_summary = file.path.ends_with(&format!("{}-SUMMARY.md", lane.id));
                    let owns = || Ownership::new(&lane.owns).is_ok_and(|owns| owns.allows(&file.path));
                    is_summary || !lane.owns.is_empty() && owns()
                };
                if !earlier().any(writes) {
                    let message = format!("the context names `{}`, which does not exist", file.path);
                    let help = "correct the path or leave the line out; no earlier plan of the phase writes the file";
                    all.push(Diagnostic::at_line(Severity::Warning, path, text, file.line, &message, help));
                }
            }
        }
        all
    }

    /// Options of agents that their runners do not have, at the line below the lane's id that sets them.
    fn unknown_options(&self, plan: &Plan) -> Vec<Diagnostic> {
        let of_agent = |agent: &Agent| match plan.runner(agent).filter(|_| agent.runs_its_command()) {
            Some(runner) => runner.unknown_options(&agent.command, &agent.options),
            None => agent.options.set_options().into_iter().map(|(name, _)| name).collect(),
        };
        let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
        for (lane, agent) in plan.lanes.iter().flat_map(|lane| lane.agents.iter().map(move |agent| (lane, agent))) {
            for name in of_agent(agent) {
                let fault = self.unknown_option(lane, agent, name);
                // Lanes of one matrix share the place.
                if seen.insert((fault.line, &agent.name, name)) {
                    all.push(fault);
                }
            }
        }
        all
    }

    /// The path and the text of the first file.
    fn first(&self) -> (&str, &str) {
        self.files.first().map_or(("", ""), |(path, text)| (path.as_str(), text.as_str()))
    }

    fn unknown_option(&self, lane: &Lane, agent: &Agent, name: &str) -> Diagnostic {
        let message =
            format!("{} of lane {} does not get `{name}`: its runner has no option for it", agent.name, lane.id);
        let help = format!("`[runners.{}.options]` in lanewright.toml can add one; see docs/runners.md", agent.runner);
        self.at_lane(Severity::Warning, lane, (name, 0), &message, &help)
    }

    /// A fault of `lane`, at the line below its id that is the one with the number of those that hold the text; else at the
    /// line with its id.
    pub(super) fn at_lane(
        &self,
        severity: Severity,
        lane: &Lane,
        (wanted, number): (&str, usize),
        message: &str,
        help: &str,
    ) -> Diagnostic {
        // A lane of a matrix has values behind the id in the text.
        let ids = std::iter::successors(Some(lane.id.as_str()), |id| id.rsplit_once('-').map(|(id, _)| id));
        let found = ids.flat_map(|id| self.files.iter().map(move |file| (id, file))).find_map(|(id, (path, text))| {
            let mut lines = (1..).zip(text.lines()).skip_while(|(_, line)| !line.contains(id)).peekable();
            let lane = lines.peek()?.0;
            let line = lines.filter(|(_, line)| line.contains(wanted)).nth(number);
            Some((path, text, line.map_or(lane, |(line, _)| line)))
        });
        // Ids that the format makes are not in the text.
        let (path, text) = self.first();
        let place = found.map_or((path, text, 1), |(path, text, line)| (path.as_str(), text.as_str(), line));
        Diagnostic::at_line(severity, place.0, place.1, place.2, message, help)
    }

    /// Tasks that may take longer than seed 000 allows: each that has a limit of its own, and once those that have none
    /// (decision 58). Warnings, or with `strict` errors.
    pub(crate) fn long_tasks(&self, plan: &Plan, settings: &Settings, strict: bool) -> Vec<Diagnostic> {
        let severity = if strict { Severity::Error } else { Severity::Warning };
        let given = Some(settings.task_timeout.value).filter(|_| settings.task_timeout.origin != Origin::Default);
        let (mut faults, mut default) = (Vec::new(), None);
        for lane in &plan.lanes {
            let mut seen = BTreeSet::new();
            let mut own = 0;
            let workers = lane.agents.iter().filter(|agent| agent.round == Round::Implementation);
            let tasks = workers.flat_map(|agent| (0..agent.tasks.len()).map(move |task| (agent, task)));
            for (agent, at) in tasks.filter(|(agent, task)| !agent.tasks[*task].kind.is_human()) {
                let task = &agent.tasks[at];
                let limit = agent.time_limit(at, &plan.timeouts, settings.specialist_timeout.value);
                let is_own = task.max_time.is_some() || agent.timeout.is_some_and(|limit| Some(limit) != given);
                let number = own;
                own += usize::from(task.max_time.is_some());
                if limit <= LONGEST_TASK || !seen.insert(&task.id) {
                    continue;
                }
                if !is_own {
                    default = Some(limit);
                    continue;
                }
                let what = match agent.tasks.len() {
                    1 => format!("lane {} is one task, which", lane.id),
                    _ => format!("task {} of lane {}", task.id, lane.id),
                };
                let message = format!("{what} may take {}, more than {}", short(limit), short(LONGEST_TASK));
                let help = "divide it into smaller tasks, or lower its limit";
                let wanted = if task.max_time.is_some() { ("max_time", number) } else { ("timeout", 0) };
                faults.push(self.at_lane(severity, lane, wanted, &message, help));
            }
        }
        faults.extend(default.map(|limit| {
            let (path, text) = self.first();
            let message = format!(
                "tasks without a limit of their own may take {}, more than {}",
                short(limit),
                short(LONGEST_TASK)
            );
            let help = "set `max_time` for lanes or tasks, or `task_timeout = \"10m\"` in lanewright.toml";
            Diagnostic::at_line(severity, path, text, 1, &message, help)
        }));
        faults
    }

    /// The whole plan, and what of it is left to do; `None`: nothing. The plans of other programs record what is done.
    pub(crate) fn whole_and_rest(
        &self,
        settings: &Settings,
        how: &ReadingArgs,
        unfinished: &dyn Fn(&Plan) -> Result<Vec<String>>,
    ) -> Result<(lanewright_plan::Reading, Option<lanewright_plan::Reading>)> {
        let everything = ReadOptions { redo: true, ..options(how, &[]) };
        let whole = self.read(settings, &everything, how.plan_format);
        let records_done = !how.redo && whole.format.is_some_and(PlanFormat::records_done);
        let Some(plan) = whole.plan.as_ref().filter(|_| records_done) else {
            return Ok((whole.clone(), Some(self.requiring_gates(whole, settings))));
        };
        let unfinished = unfinished(plan)?;
        let rest = self.read(settings, &options(how, &unfinished), how.plan_format);
        let rest = Some(rest).filter(|rest| rest.plan.is_some());
        Ok((whole, rest.map(|rest| self.requiring_gates(rest, settings))))
    }

    /// The whole plan, with what its files say is done.
    pub(crate) fn whole(&self, settings: &Settings) -> Reading {
        let everything = ReadOptions { redo: true, force: true, ..ReadOptions::default() };
        self.read(settings, &everything, None)
    }

    /// The plan that was read; every fault is reported.
    pub(crate) fn accept(&self, context: &Context, reading: lanewright_plan::Reading) -> Result<PlanFile> {
        report(context, &reading.diagnostics);
        self.accepted(reading)
    }

    /// The same without a report.
    pub(crate) fn accepted(&self, reading: lanewright_plan::Reading) -> Result<PlanFile> {
        match reading.plan {
            Some(plan) => {
                let path = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
                Ok(PlanFile { path, sha256: reading.sha256, format: reading.format, plan: Arc::new(plan) })
            }
            None => Err(invalid(&self.path, &reading.diagnostics)),
        }
    }
}

/// A plan with errors, which are reported already.
pub(crate) fn invalid(path: &Path, diagnostics: &[Diagnostic]) -> anyhow::Error {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    ExitStatus::Usage.error(format!("{} is not a valid plan ({})", path.display(), counted(errors, "error")))
}

/// `unfinished` lanes count as not done, whatever their files say.
fn options<'a>(how: &'a ReadingArgs, unfinished: &'a [String]) -> ReadOptions<'a> {
    ReadOptions {
        redo: how.redo,
        unfinished,
        strict: how.strict,
        strict_gates: how.strict_gates,
        force: how.force,
        tag: how.tag.as_deref(),
        ..ReadOptions::default()
    }
}

/// The plan's files, each with what diagnostics call it and its text.
fn texts(
    path: &Path,
    place: Option<&PlanFiles>,
    read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Vec<(String, String)>> {
    if !path.is_dir() {
        return Ok(vec![text(path, read)?]);
    }
    if let Some(place) = place {
        return place.files.iter().map(|file| text(file, read)).collect();
    }
    let is_plan = |name: &String| lanewright_plan::is_gsd_plan_name(name) && path.join(name).is_file();
    let plans: Vec<String> = names_in(path).into_iter().filter(is_plan).collect();
    if plans.is_empty() {
        let error = ExitStatus::Usage.error(format!("there is no plan in the directory {}", path.display()));
        return Err(error.hint(
            "name a plan's file, a directory with the `NN-MM-PLAN.md` files of a GSD phase, or one with plans of Spec Kit, \
             OpenSpec, Task Master, Kiro, Backlog.md or Beads",
        ));
    }
    plans.iter().map(|name| text(&path.join(name), read)).collect()
}

fn text(path: &Path, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Result<(String, String)> {
    let unreadable =
        |reason: String| ExitStatus::Usage.error(format!("cannot read the plan {}: {reason}", path.display()));
    let bytes = read(path).map_err(|error| unreadable(error.to_string()))?;
    let name = path.to_string_lossy().into_owned();
    let text = lanewright_plan::decode(&name, &bytes).map_err(|diagnostic| unreadable(diagnostic.to_string()))?;
    Ok((name, text.to_owned()))
}

/// The plan with the runners and templates that it uses, and with what the settings say of its lanes and agents.
fn with_settings(plan: Plan, settings: &Settings, catalogue: &Catalogue, prompts: BTreeMap<String, String>) -> Plan {
    let mut parts = PlanParts::from(plan.clone());
    if let Some(retries) = settings.retries.value.filter(|_| settings.retries.origin.outranks_plan()) {
        parts.lanes.iter_mut().for_each(|lane| lane.retries = retries);
    }
    if matches!(settings.merge.origin, Origin::Flag("--merge") | Origin::Environment(_)) {
        parts.lanes.iter_mut().for_each(|lane| lane.merge_style = None);
    }
    if settings.commit_message.origin.outranks_plan() || parts.commit_message.is_none() {
        parts.commit_message = settings.commit_message.value.clone().or(parts.commit_message);
    }
    if parts.gates.edit.is_empty() || settings.gates_edit.origin.outranks_plan() {
        let edit = settings.gates_edit.value.clone().map(CommandLine::Shell);
        parts.gates.edit = edit.map_or(parts.gates.edit, |line| vec![line]);
    }
    let time_limit = Some(settings.task_timeout.value)
        .filter(|_| settings.task_timeout.origin != Origin::Default && parts.timeouts.agent.is_none());
    let agents = parts.lanes.iter_mut().flat_map(|lane| &mut lane.agents);
    for agent in agents.filter(|agent| agent.round == Round::Implementation) {
        agent.allow_empty |= settings.allow_empty.value;
        agent.timeout = agent.timeout.or(time_limit);
    }
    let agents = parts.lanes.iter().flat_map(|lane| &lane.agents);
    let mut used: BTreeMap<String, Runner> = BTreeMap::new();
    let mut use_runner = |name: &String| {
        let runner = catalogue.get(name)?;
        Some(used.entry(name.clone()).or_insert(runner).fallback.clone())
    };
    for agent in agents {
        let of_runner = use_runner(&agent.runner).unwrap_or_default();
        agent.fallback.as_ref().unwrap_or(&of_runner).iter().for_each(|name| drop(use_runner(name)));
    }
    parts.runners = used;
    let executors = parts.lanes.iter().filter_map(|lane| lane.executor.clone());
    let known = |name: String| Some((name.clone(), settings.executors.get(&name)?.value.clone()));
    parts.executors = executors.filter_map(known).collect();
    parts.prompts = prompts;
    Plan::new(parts).unwrap_or(plan)
}

/// Prints diagnostics to standard error, one after another, or as JSON objects.
pub(crate) fn report(context: &Context, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        match context.printer.format() {
            Format::Text => context.printer.note(diagnostic),
            Format::Json => context.printer.note(serde_json::to_string(diagnostic).unwrap_or_default()),
        }
    }
}
