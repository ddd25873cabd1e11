//! Choosing the run that a command is about, and reading what is known of it without touching it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lanewright_engine::at_resume::has_begun;
use lanewright_files::{FileError, regular_file};
use lanewright_model::event::{Event, Record, RunOutcome, RunStarted};
use lanewright_model::text::shell_line;
use lanewright_model::{AgentName, JobId, LaneId, LaneIndex, PhaseId, Plan, RunId, Timestamp};
use lanewright_plan::settings::{Layer, Settings, nearest};
use lanewright_store::checkpoints;
use lanewright_store::lock::is_held;
use lanewright_store::{LogContents, LogError, Logs, RunDirectory, StateDirectory, run_log};
use lanewright_view::RunHistory;

use super::repository_context::state_in;
use super::{Context, ExitStatus, Hint, Result};

/// The state of the repository's runs, and the settings, for commands without flags that change either.
pub(crate) fn state(context: &Context) -> Result<(StateDirectory, Settings)> {
    let settings = context.layers(Layer::default())?.resolve(None);
    let state = state_in(&context.main_worktree()?, &settings).called_in(context.named_directory());
    Ok((state, settings))
}

/// Length and time of the last change; `None`: there is no such file.
pub(super) type Stamp = Option<(u64, SystemTime)>;

/// By which a file is seen to have changed.
pub(super) fn stamp(path: &Path) -> Stamp {
    let file = fs::metadata(path).ok()?;
    Some((file.len(), file.modified().ok()?))
}

/// Every run that may be resumed, the newest first. Logs that cannot be read are passed over.
pub(super) fn unfinished(state: &StateDirectory) -> Result<Vec<(RunId, RunStarted)>> {
    Ok(unfinished_of(state, &state.log_summaries()?))
}

/// The same, of those whose `logs` may say so.
pub(super) fn unfinished_of(state: &StateDirectory, logs: &Logs) -> Vec<(RunId, RunStarted)> {
    let open = |run: &RunId| {
        let records = run_log::read_some(&state.run(run).log(), decides_whether_unfinished()).ok()?;
        let started = started(&records)?.clone();
        is_unfinished(&records).then(|| (records[0].at, run.clone(), started))
    };
    let mut runs: Vec<_> = logs.open.iter().filter_map(open).collect();
    runs.sort_unstable_by(|(one, its, _), (other, others, _)| (other, others).cmp(&(one, its)));
    runs.into_iter().map(|(_, run, started)| (run, started)).collect()
}

/// Which of a log's events [`is_unfinished`] has to see: one checkpoint of thousands is enough.
pub(super) fn decides_whether_unfinished() -> impl FnMut(&str) -> bool {
    let mut reached = false;
    move |word| match word {
        "checkpoint_reached" => !std::mem::replace(&mut reached, true),
        "lane_moved" | "lane_blocked" => !reached,
        "rollback_begun" | "lane_rolled_back" => true,
        word => word.starts_with("run_"),
    }
}

/// Whether a run whose log begins as it should may be resumed.
pub(super) fn is_unfinished(records: &[Record]) -> bool {
    !is_over(records) && has_begun(records)
}

/// The lanes of a plan that the last run which had them began and did not merge.
pub(super) fn half_done(state: &StateDirectory, plan: &Plan) -> Result<Vec<String>> {
    let mut unknown: BTreeSet<&LaneId> = plan.lanes.iter().map(|lane| &lane.id).collect();
    let mut stopped = BTreeSet::new();
    for run in runs_of(state, &plan.phase)? {
        if unknown.is_empty() {
            break;
        }
        let about_lane = |record: &Record| Some((record.event.lane()?.clone(), is_merge(record)));
        let mut merged: BTreeMap<LaneId, bool> = BTreeMap::new();
        for (lane, merges) in run.records(|_| true).iter().flatten().filter_map(about_lane) {
            *merged.entry(lane).or_default() |= merges;
        }
        unknown.retain(|lane| match merged.get(*lane) {
            Some(merged) => {
                stopped.extend((!merged).then_some(*lane));
                false
            }
            None => true,
        });
    }
    Ok(plan.lanes.iter().filter(|lane| stopped.contains(&lane.id)).map(|lane| lane.id.to_string()).collect())
}

fn is_merge(record: &Record) -> bool {
    matches!(record.event, Event::LaneMerged { .. })
}

/// A run of a phase, of whose log the first line was read.
pub(super) struct RunOfPhase {
    run: RunId,
    began: Timestamp,
    state: StateDirectory,
}

impl RunOfPhase {
    /// The words that call Lanewright for it.
    pub(crate) fn program(&self) -> Vec<String> {
        self.state.program()
    }

    pub(crate) fn directory(&self) -> RunDirectory {
        self.state.run(&self.run)
    }

    /// The records whose event's word is `wanted`, the first one among them; `None`: the log cannot be read, or does not
    /// begin with the start of its run.
    pub(crate) fn records(&self, wanted: impl FnMut(&str) -> bool) -> Option<Vec<Record>> {
        let records = run_log::read_some(&self.directory().log(), wanted).ok()?;
        started(&records).is_some().then_some(records)
    }

    /// The same, and whether a line of the log is damaged.
    pub(crate) fn checked_records(&self, wanted: impl FnMut(&str) -> bool) -> Option<(Vec<Record>, bool)> {
        let wanted = RefCell::new(wanted);
        let read = run_log::read_checked(&self.directory().log(), |word, _| (wanted.borrow_mut())(word));
        let LogContents { records, damage, .. } = read.ok()?;
        started(&records).is_some().then_some((records, !damage.is_empty()))
    }
}

/// Every run of `phase`, those whose logs are kept elsewhere included, the newest first.
pub(super) fn runs_of(state: &StateDirectory, phase: &PhaseId) -> Result<Vec<RunOfPhase>> {
    let begun = |place: &StateDirectory| place.runs_of(phase);
    let mut runs: Vec<RunOfPhase> = in_all_places(state, begun)?
        .into_iter()
        .map(|((began, run), state)| RunOfPhase { run, began, state })
        .collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.began));
    Ok(runs)
}

/// Every run and where its log is, those that are kept elsewhere included; the newest first, but for those.
pub(super) fn all_runs(state: &StateDirectory) -> Result<Vec<(RunId, StateDirectory)>> {
    let begun = |place: &StateDirectory| Ok(place.runs()?.into_iter().map(|run| ((), run)).collect());
    Ok(in_all_places(state, begun)?.into_iter().map(|((_, run), state)| (run, state)).collect())
}

/// The runs that `begun` finds, each once, in the usual place, then in those that checkpoints name.
fn in_all_places<T>(
    state: &StateDirectory,
    begun: impl Fn(&StateDirectory) -> Result<Vec<(T, RunId)>, FileError>,
) -> Result<Vec<((T, RunId), StateDirectory)>> {
    let usual = state.clone().with_usual_logs();
    let (mut known, mut runs) = (BTreeSet::new(), Vec::new());
    let own = Some(state.clone()).filter(|state| state.has_own_log());
    for place in [usual.clone()].into_iter().chain(elsewhere(&usual)).chain(own) {
        let unknown = begun(&place)?.into_iter().filter(|(_, run)| known.insert(run.clone()));
        runs.extend(unknown.map(|run| (run, place.clone())));
    }
    Ok(runs)
}

/// Where runs have their logs that are not in the usual place, according to their checkpoints.
fn elsewhere(usual: &StateDirectory) -> Vec<StateDirectory> {
    let places = checkpoints::log_paths(&usual.checkpoints()).unwrap_or_default().into_iter();
    let places = places.filter(|(run, log)| *log != usual.run(run).log()).map(|(_, log)| log);
    places.collect::<BTreeSet<PathBuf>>().into_iter().map(|log| usual.clone().with_log(log)).collect()
}

/// A command about a run that can be pasted, wherever the run's files are.
pub(crate) fn command(state: &StateDirectory, words: &[&str]) -> String {
    shell_line(state.program().iter().map(String::as_str).chain(words.iter().copied()))
}

fn is_over(records: &[Record]) -> bool {
    last_outcome(records).is_some_and(RunOutcome::is_over)
}

/// The outcome of a run whose log has these records; `None`: it is active, or was interrupted.
pub(super) fn last_outcome(records: &[Record]) -> Option<RunOutcome> {
    records.iter().rev().find_map(|record| record.event.facts().run_outcome).flatten()
}

/// The files of a run that has a log.
pub(super) fn existing(state: &StateDirectory, run: &RunId) -> Result<RunDirectory> {
    if state.has(run) {
        return Ok(state.run(run));
    }
    let runs = state.runs()?;
    let error = ExitStatus::InvalidState.error(format!("there is no run `{run}` here"));
    let known: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    Err(did_you_mean(error, run.as_str(), &known, || Some(listed(state))))
}

/// How many runs are called by name.
const NAMED: usize = 5;

pub(super) fn listed(state: &StateDirectory) -> String {
    match state.runs().unwrap_or_default() {
        runs if runs.is_empty() => "start one: lanewright execute-phase PLAN".to_owned(),
        runs => format!("the newest runs: {}", named_few(runs.iter().map(RunId::as_str))),
    }
}

/// The first few names.
pub(super) fn named_few<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = if names.len() > NAMED { ", …" } else { "" };
    names.take(NAMED).collect::<Vec<_>>().join(", ") + more
}

/// What the log of a run holds; damage is a warning.
pub(super) fn read_log(context: &Context, directory: &RunDirectory) -> Result<LogContents> {
    let contents = run_log::read(&directory.log())?;
    if !contents.damage.is_empty() {
        let lines: Vec<String> = contents.damage.iter().take(NAMED).map(ToString::to_string).collect();
        let message = format!("{} is damaged: {}", directory.log().display(), lines.join("; "));
        context.printer.warning(message, &["what those lines said is not shown; a resume refuses the log".to_owned()]);
    }
    Ok(contents)
}

/// The same for commands that cannot show anything of an empty log without a live process.
pub(super) fn read_begun_log(context: &Context, directory: &RunDirectory) -> Result<LogContents> {
    let contents = read_log(context, directory)?;
    if contents.records.is_empty() && !is_held(&directory.lock()) {
        return Err(ExitStatus::InvalidState.error(LogError::Empty { path: directory.log() }.to_string()));
    }
    Ok(contents)
}

/// What is known of one run, its log and its plan as far as they can be read.
pub(super) struct RunRecords {
    pub(crate) run: RunId,
    pub(crate) directory: RunDirectory,
    pub(crate) plan: Option<Plan>,
    pub(crate) records: Vec<Record>,
}

impl RunRecords {
    pub(crate) fn of(run: RunId, directory: RunDirectory, records: Vec<Record>) -> Self {
        Self { run, plan: pinned_plan(&directory), directory, records }
    }

    pub(crate) fn read(context: &Context, state: &StateDirectory, run: RunId) -> Result<Self> {
        let directory = state.run(&run);
        let records = read_log(context, &directory)?.records;
        Ok(Self::of(run, directory, records))
    }

    pub(crate) fn started(&self) -> Result<&RunStarted> {
        let missing =
            || ExitStatus::Corrupted.error(format!("the log of run {} does not begin with its start", self.run));
        started(&self.records).ok_or_else(missing)
    }
}

/// The start of the run that has these records.
pub(crate) fn started(records: &[Record]) -> Option<&RunStarted> {
    match &records.first()?.event {
        Event::RunStarted(started) => Some(started),
        _ => None,
    }
}

/// The run before its first event, as far as its plan is known.
pub(super) fn beginning(directory: &RunDirectory) -> RunHistory {
    pinned_plan(directory).map_or_else(RunHistory::default, |plan| RunHistory::for_plan(&plan))
}

pub(super) fn require_plan(run: &RunId, directory: &RunDirectory) -> Result<Plan> {
    pinned_plan(directory).ok_or_else(|| {
        let path = directory.plan();
        ExitStatus::Corrupted.error(format!("the plan that run {run} pinned, {}, cannot be read", path.display()))
    })
}

/// The plan that a run pinned; `None` where it cannot be read.
pub(super) fn pinned_plan(directory: &RunDirectory) -> Option<Plan> {
    serde_json::from_str(&regular_file::read_text(directory.plan()).ok()?).ok()
}

/// What `pick` finds in the newest event of each lane, for lanes that were not rolled back since.
pub(super) fn newest_of_lanes<T>(
    records: &[Record],
    pick: impl Fn(&Event) -> Option<(&LaneId, T)>,
) -> BTreeMap<LaneId, T> {
    let mut newest = BTreeMap::new();
    for Record { event, .. } in records {
        if let Event::LaneRolledBack { lane, .. } = event {
            newest.remove(lane);
        }
        newest.extend(pick(event).map(|(lane, value)| (lane.clone(), value)));
    }
    newest
}

/// Jobs whose end is not in the log, oldest first.
pub(super) fn open_jobs(records: &[Record]) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for record in records {
        match &record.event {
            Event::JobPlanned { job, .. } => jobs.push(job.clone()),
            Event::JobExited { job, .. } => jobs.retain(|open| open != job),
            _ => {}
        }
    }
    jobs
}

/// The lane of a plan that has this id.
pub(super) fn require_lane(plan: &Plan, lane: &LaneId) -> Result<LaneIndex> {
    plan.find(lane).ok_or_else(|| unknown_lane(lane, plan.lanes.iter().map(|lane| &lane.id)))
}

/// The candidate of the lane with that number: where it is among the agents, and its name.
pub(super) fn candidate(plan: &Plan, lane: &LaneId, number: u32) -> Result<(usize, AgentName)> {
    let lane = plan.lane(require_lane(plan, lane)?);
    if let Some(at) = lane.candidates().find(|at| lane.agents[*at].candidate == Some(number)) {
        return Ok((at, lane.agents[at].name.clone()));
    }
    let count = lane.candidates().count();
    let error = ExitStatus::Usage.error(format!("lane {} has no candidate {number}", lane.id));
    Err(match count {
        0 => {
            error.hint("it has one agent for its tasks; a plan sets `candidates = 3`, or a list of runners, in a lane")
        }
        count => error.hint(format!("it has the candidates 1 to {count}")),
    })
}

/// Bad usage: the run has no such lane.
pub(super) fn unknown_lane<'a>(lane: &LaneId, known: impl Iterator<Item = &'a LaneId>) -> anyhow::Error {
    let known: Vec<&str> = known.map(LaneId::as_str).collect();
    unknown("the run", "lane", lane.as_str(), &known)
}

/// Bad usage: `place` has no `kind` called `name`.
pub(super) fn unknown(place: &str, kind: &str, name: &str, known: &[&str]) -> anyhow::Error {
    let error = ExitStatus::Usage.error(format!("{place} has no {kind} `{name}`"));
    did_you_mean(error, name, known, || {
        (!known.is_empty()).then(|| format!("it has {}", named_few(known.iter().copied())))
    })
}

/// `error` with those of `known` that begin with `name`, else the one that is most like it, else with another hint.
pub(super) fn did_you_mean(
    error: anyhow::Error,
    name: &str,
    known: &[&str],
    otherwise: impl FnOnce() -> Option<String>,
) -> anyhow::Error {
    let near = || nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    elements(name, known).or_else(near).or_else(otherwise).into_iter().fold(error, Hint::hint)
}

/// The lanes that the plan's lane `name` with a matrix stands for, by their names.
fn elements(name: &str, known: &[&str]) -> Option<String> {
    let is_element = |id: &&&str| id.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let elements: Vec<&str> = known.iter().filter(is_element).copied().collect();
    (elements.len() > 1).then(|| format!("did you mean one of {}?", named_few(elements.into_iter())))
}
