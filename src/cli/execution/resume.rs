//! Going on with a run.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::PlanFile;
use super::chain::Ended;
use super::external::{settle, settle_checkouts};
use super::forge;
use super::locks::{Locks, Reach, lock_branches_of, lock_run};
use super::patience::patiently;
use super::plan_changes::differences;
use super::plan_file::PlanText;
use super::preflight;
use super::site::{Site, now, owner, redactor};
use super::start::{base_branch, plan_text};
use super::watch::{Work, ports, work};
use crate::cli::args::{Intent, Resume};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus, TO_THE_DOCTOR};
use crate::cli::options::{Options, session_id};
use crate::cli::runs::{command, named_or_only_unfinished, unfinished, unknown_lane};
use crate::engine::mirror::Mirror;
use crate::engine::reconcile::{describe, verdict};
use crate::event::{Event, Record, RunStarted};
use crate::fs::regular_file;
use crate::model::digest::sha256;
use crate::model::text::{headline, shell_line};
use crate::model::withheld::{EnvironmentOwner, Withheld};
use crate::model::{Budget, LaneId, MergeMode, Plan, RunId};
use crate::plan_source::ReadOptions;
use crate::plan_source::Reading;
use crate::process;
use crate::recover::completion::partial_rounds;
use crate::recover::resume::{PlanOnRecord, ResumeError, beginning, check, close_removed_jobs, replay};
use crate::recover::untold::untold_snapshots;
use crate::schedule::RunState;
use crate::settings::{Layer, OnConflict, Origin, Setting, Settings};
use crate::store::{Journal, Request, RunDirectory, StateDirectory, requests};
use crate::view::RunView;
use crate::view::commands::Commands;

/// What every command needs that takes a run into its hands.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Control {
    /// The session that owns it from now on.
    pub(in crate::cli) session_id: String,
    /// Go on although the plan changed.
    pub(in crate::cli) accept_plan_change: bool,
    /// What to do about changes from outside.
    pub(in crate::cli) on_conflict: OnConflict,
    /// Every setting.
    pub(in crate::cli) settings: Settings,
}

impl From<Options> for Control {
    fn from(options: Options) -> Self {
        Self {
            session_id: options.session_id,
            accept_plan_change: options.accept_plan_change,
            on_conflict: options.on_conflict,
            settings: options.settings,
        }
    }
}

/// A run that nobody else can touch now.
pub(in crate::cli) struct Opened {
    /// Its files.
    pub(in crate::cli) directory: RunDirectory,
    /// Its log, open for more.
    pub(in crate::cli) journal: Journal,
    /// What the log holds.
    pub(in crate::cli) records: Arc<Vec<Record>>,
    /// What it began with.
    pub(in crate::cli) started: RunStarted,
    /// Its plan.
    pub(in crate::cli) plan: Arc<Plan>,
    /// What `plan.json` is to hold.
    plan_text: Vec<u8>,
    /// Whether another program changed `plan.json`, and that is accepted.
    edited: bool,
    /// The SHA-256 of the plan's file, where another plan is accepted.
    accepted: Option<String>,
    /// What the log adds up to.
    pub(in crate::cli) state: RunState,
    locks: Locks,
}

/// How a resumed run ended.
pub(super) struct Resumed {
    pub(super) status: ExitStatus,
    /// How it began.
    pub(super) started: RunStarted,
}

impl Resumed {
    /// With what comes after it; `given` where the run itself says nothing of that.
    pub(super) fn or_else(self, given: Option<Vec<PathBuf>>) -> Ended {
        Ended { status: self.status, next: self.started.options.next_phases.or(given) }
    }
}

impl From<Resumed> for Ended {
    fn from(resumed: Resumed) -> Self {
        resumed.or_else(None)
    }
}

/// The settings of a run that the phases after it share with it.
pub(super) fn as_it_began(started: &RunStarted) -> Layer {
    let options = &started.options;
    Layer {
        base: Some(as_before(Some(started.base_branch.clone()))),
        max_parallel: NonZeroU32::new(options.max_parallel).map(as_before),
        merge: Some(as_before(options.merge)),
        fail_fast: Some(as_before(options.fail_fast)),
        bisect_merges: Some(as_before(options.bisect_merges)),
        ..Layer::default()
    }
}

fn as_before<T>(value: T) -> Setting<T> {
    Setting::new(value, Origin::Flag("the run before"))
}

/// `resume`.
pub(super) fn run(context: &Context, arguments: &Resume) -> Result<Resumed, CliError> {
    let site = Site::find_to_work_in(context)?;
    let settings = context.layers(arguments.layer())?.resolve(None);
    let run = named_or_only_unfinished(&site.state(&settings), arguments.run.as_ref())?;
    let session_id = session_id(&settings);
    let control = Control {
        session_id,
        accept_plan_change: arguments.control.accept_plan_change,
        on_conflict: arguments.control.on_conflict,
        settings,
    };
    let remark = Remark { text: arguments.message.clone(), lane: arguments.message_for.clone() };
    resume(context, &site, &run, &control, &remark)
}

/// What the agents are to be told by whoever resumes their run.
#[derive(Debug, Default)]
pub(super) struct Remark {
    /// Empty: nothing.
    text: String,
    /// The lane whose agents are meant; `None`: all.
    lane: Option<LaneId>,
}

/// The latest run of a plan and its base, or the one that was named.
pub(super) enum Latest {
    /// No run of it has begun.
    None,
    /// It can be gone on with, or was named.
    Unfinished(RunId),
    /// It has come to its end.
    Complete(RunId),
}

/// The latest run of a plan: an unfinished one before a complete one.
pub(super) fn latest(site: &Site, options: &Options, plan: &PlanFile) -> Result<Latest, CliError> {
    if let Some(run) = options.run_id.as_ref().filter(|_| options.intent != Intent::Start) {
        return Ok(Latest::Unfinished(run.clone()));
    }
    let base = base_branch(site, options)?;
    let state = site.state(&options.settings);
    let covers = |run: &RunStarted| {
        let theirs = &run.options.lanes;
        theirs.is_empty() || options.lanes.iter().all(|lane| theirs.contains(lane))
    };
    let same = |run: &RunStarted| run.phase == plan.plan.phase && run.base_branch == base && covers(run);
    if let Some((run, _)) = unfinished(&state)?.into_iter().find(|(_, run)| same(run)) {
        return Ok(Latest::Unfinished(run));
    }
    let begun = |run: &RunId| {
        let log = crate::store::run_log::read(&state.run(run).log()).ok()?;
        matches!(&log.records.first()?.event, Event::RunStarted(started) if same(started)).then_some(())
    };
    let complete = state.runs()?.into_iter().find(|run| begun(run).is_some());
    Ok(complete.map_or(Latest::None, Latest::Complete))
}

/// The run of a plan that a command is about which needs one. A complete one is named, so that what is wrong can be told
/// exactly.
pub(super) fn latest_of(site: &Site, options: &Options, plan: &PlanFile) -> Result<RunId, CliError> {
    match latest(site, options, plan)? {
        Latest::Unfinished(run) | Latest::Complete(run) => Ok(run),
        Latest::None => Err(nothing_to_resume(site, options, plan)),
    }
}

/// That there is no run of a plan.
fn nothing_to_resume(site: &Site, options: &Options, plan: &PlanFile) -> CliError {
    let base = match base_branch(site, options) {
        Ok(base) => base,
        Err(error) => return error,
    };
    let message = format!("there is no run of phase {} on {base} to resume", plan.plan.phase);
    let start = shell_line(["lanekeeper", "execute-phase", &plan.path.to_string_lossy()]);
    CliError::new(ExitStatus::InvalidState, message).hint(format!("to begin one: {start}"))
}

/// Takes a run, replays it, and makes sure that its plan is what it was.
fn open(context: &Context, site: &Site, run: &RunId, control: &Control) -> Result<Opened, CliError> {
    let taken = take(context, site, run, control, Part::Own)?;
    let Some((plan, sha256)) = changed_plan(context, &taken, control)? else {
        refuse_missing_secrets(&taken)?;
        return Ok(taken);
    };
    // A plan that cannot take up what the run did must not take the place of the one that can.
    let state = replay(run, &plan, &taken.records).map_err(|error| {
        let message = format!("the changed plan does not fit what run {run} did: {error}");
        CliError::new(ExitStatus::Usage, message).hint("keep every lane that the run has begun, or restore the plan")
    })?;
    let plan_text = plan_text(&plan, &control.settings)?;
    let journal = taken.journal.redacting(redactor(&control.settings, &plan));
    Ok(Opened { plan, plan_text, accepted: Some(sha256), state, journal, ..taken })
}

/// Which branches of the phase a command touches that takes a run up.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) enum Part {
    /// Those of the run's own lanes.
    Own,
    /// Any: nobody else may be at work.
    All,
}

/// Takes a run and replays it with the plan that it pinned, whatever became of the plan's file.
pub(in crate::cli) fn take(
    context: &Context,
    site: &Site,
    run: &RunId,
    control: &Control,
    part: Part,
) -> Result<Opened, CliError> {
    let state = site.state(&control.settings);
    let directory = state.run(run);
    if !state.has(run) {
        let message = format!("there is no run {run} here ({} is not its log)", directory.log().display());
        return Err(CliError::new(ExitStatus::InvalidState, message).hint("lanekeeper status lists the runs"));
    }
    directory.create()?;
    patiently(context, &control.settings, || take_now(&state, &directory, run, control, part))
}

fn take_now(
    state_directory: &StateDirectory,
    directory: &RunDirectory,
    run: &RunId,
    control: &Control,
    part: Part,
) -> Result<Opened, CliError> {
    let run_lock = lock_run(state_directory, run, &control.session_id)?;
    let (journal, records) = Journal::open(&directory.log())?;
    let started = beginning(run, &records)?.clone();
    let pinned = pinned(run, &records, &started, directory, control).or_else(|refusal| {
        let source = control.accept_plan_change.then(|| from_source(run, &records, &started, control)).flatten();
        source.ok_or(refusal)
    })?;
    let Pinned { plan, text: plan_text, state, edited, accepted } = pinned;
    let journal = journal.redacting(redactor(&control.settings, &plan));
    let reach = match part {
        Part::Own => Reach::of(&started.options.lanes),
        Part::All => Reach::Phase,
    };
    let branches = lock_branches_of(state_directory, &plan, &started, reach, &control.session_id)?;
    let locks = Locks { _run: run_lock, _branches: branches };
    let records = Arc::new(records);
    let directory = directory.clone();
    Ok(Opened { directory, journal, records, started, plan, plan_text, edited, accepted, state, locks })
}

/// The plan that a run works with, and what its log adds up to with it.
struct Pinned {
    plan: Arc<Plan>,
    text: Vec<u8>,
    state: RunState,
    edited: bool,
    accepted: Option<String>,
}

/// The plan as it is pinned.
fn pinned(
    run: &RunId,
    records: &[Record],
    started: &RunStarted,
    directory: &RunDirectory,
    control: &Control,
) -> Result<Pinned, CliError> {
    let (place, mut unknown) = (directory.plan(), Vec::new());
    let text = regular_file::read(&place).map_err(|error| error.to_string());
    let parsed = text.and_then(|text| {
        let mut reader = serde_json::Deserializer::from_slice(&text);
        let plan = serde_ignored::deserialize(&mut reader, |key| unknown.push(key.to_string()));
        let plan = plan.and_then(|plan| reader.end().map(|()| plan));
        Ok((plan.map_err(|error| error.to_string())?, text))
    });
    let (plan, text): (Plan, _) = parsed.map_err(|reason| {
        let message = format!("the plan that run {run} pinned, {}, cannot be read: {reason}", place.display());
        CliError::new(ExitStatus::Corrupted, message).hint(TO_THE_DOCTOR).hint(accept_hint(run))
    })?;
    // A newer version may ask in it for what this one does not know, an approval for example.
    if !unknown.is_empty() && !control.settings.allow_unknown.value {
        let message = format!(
            "the plan that run {run} pinned, {}, has keys that this version does not know: {}",
            place.display(),
            headline(&unknown.join(", "), 200)
        );
        return Err(CliError::new(ExitStatus::Usage, message)
            .hint("resume it with the Lanekeeper that began it, or ignore them: --allow-unknown"));
    }
    let on_record = PlanOnRecord::of(records);
    let plan = Arc::new(with_secrets(&plan, started, control));
    let edited = on_record.is_foreign(&sha256(&text)) && !is_its_source(&plan, on_record, started, control);
    if edited && !control.accept_plan_change {
        let message = format!("{}, the plan of run {run}, was changed by another program", place.display());
        return Err(CliError::new(ExitStatus::Corrupted, message)
            .hint(format!("to write it again from the plan file, if that is as it was: lanekeeper doctor {run} --fix"))
            .hint(accept_hint(run)));
    }
    let state = replay(run, &plan, records)?;
    Ok(Pinned { plan, text, state, edited, accepted: None })
}

fn accept_hint(run: &RunId) -> String {
    format!(
        "to continue with the plan file as it is now, or with plan.json if there is no plan file: lanekeeper resume {run} \
         --accept-plan-change (rollback takes the flag, too)"
    )
}

/// The plan as its file says it now; `None`: that is gone or faulty, or does not fit what the run did.
fn from_source(run: &RunId, records: &[Record], started: &RunStarted, control: &Control) -> Option<Pinned> {
    let lanes = records.iter().filter_map(|record| record.event.lane());
    let reading = read_again(lanes, started, control, false).ok()?;
    let plan = Arc::new(reading.plan?);
    let state = replay(run, &plan, records).ok()?;
    let text = plan_text(&plan, &control.settings).ok()?;
    Some(Pinned { plan, text, state, edited: false, accepted: Some(reading.sha256) })
}

/// Whether the pinned plan is what its unchanged source says, as the doctor writes it.
fn is_its_source(pinned: &Plan, on_record: PlanOnRecord<'_>, started: &RunStarted, control: &Control) -> bool {
    let source = read_again(pinned.lanes.iter().map(|lane| &lane.id), started, control, true)
        .ok()
        .filter(|source| source.sha256 == on_record.source);
    source.and_then(|source| source.plan).is_some_and(|plan| plan == *pinned)
}

/// The plan with the secrets that it was stored without: from the plan's file as it is now, else from our environment, which
/// every job has anyway.
fn with_secrets(pinned: &Plan, started: &RunStarted, control: &Control) -> Plan {
    if pinned.withheld().is_empty() {
        return pinned.clone();
    }
    // Only values of variables are taken, and other faults were judged when the run began.
    let source = read_again(pinned.lanes.iter().map(|lane| &lane.id), started, control, true);
    let source = source.ok().and_then(|reading| reading.plan);
    pinned.with_secrets(|wanted| {
        let in_source = source.as_ref().and_then(|source| source.value_of(wanted));
        in_source.or_else(|| std::env::var(&wanted.name).ok())
    })
}

/// Refuses to go on without a secret that a lane still needs: its jobs would get the mark in its place.
fn refuse_missing_secrets(opened: &Opened) -> Result<(), CliError> {
    let is_needed = |missing: &Withheld| match &missing.owner {
        EnvironmentOwner::Lane(lane) | EnvironmentOwner::Agent(lane, _) => {
            opened.plan.find(lane).is_some_and(|lane| opened.state.lane(lane).is_left_to_do())
        }
        EnvironmentOwner::Runner(_) => true,
    };
    let missing: Vec<Withheld> = opened.plan.withheld().into_iter().filter(is_needed).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let [named, names] = [
        missing.iter().map(Withheld::to_string).collect::<Vec<_>>().join(", "),
        missing.iter().map(|missing| missing.name.clone()).collect::<Vec<_>>().join(", "),
    ];
    let (run, path) = (&opened.started.run_id, opened.started.plan_path.display());
    let message = format!("run {run} has no value for {named}: secrets are not stored, and {path} does not have them");
    Err(CliError::new(ExitStatus::Usage, message)
        .hint(format!("restore the plan file, or set {names} in the environment of this command")))
}

/// What the plan's file says now. The `lanes` of the run stay part of the plan although their files show that they are done.
fn read_again<'a>(
    lanes: impl Iterator<Item = &'a LaneId>,
    started: &RunStarted,
    control: &Control,
    allow_unknown: bool,
) -> Result<Reading, CliError> {
    let lanes: Vec<String> = lanes.map(LaneId::to_string).collect();
    let options = ReadOptions { unfinished: &lanes, force: true, allow_unknown, ..ReadOptions::default() };
    Ok(PlanText::open_recorded(&started.plan_path)?.read(&control.settings, &options, started.options.plan_format))
}

/// The plan that takes the place of the pinned one: its file changed, and that is accepted.
fn changed_plan(context: &Context, taken: &Opened, control: &Control) -> Result<Option<(Arc<Plan>, String)>, CliError> {
    let (pinned, started) = (&taken.plan, &taken.started);
    let path = &started.plan_path;
    if !path.exists() {
        context.printer.warning(format!("{} is gone; the plan as it was pinned is used", path.display()), &[]);
        return Ok(None);
    }
    let reading = read_again(pinned.lanes.iter().map(|lane| &lane.id), started, control, false)?;
    match reading.plan {
        Some(plan) if plan == **pinned => Ok(None),
        // Also where only the settings changed that a plan is read with.
        Some(plan) if control.accept_plan_change => Ok(Some((Arc::new(plan), reading.sha256))),
        _ if reading.sha256 == PlanOnRecord::of(&taken.records).source && !taken.edited => Ok(None),
        changed => {
            let message = format!("{} has changed since run {} started", path.display(), started.run_id);
            let differences = changed
                .map(|plan| differences(pinned, &plan))
                .unwrap_or_else(|| vec!["it is not a valid plan any more".into()]);
            let error = CliError::new(ExitStatus::Usage, format!("{message}:\n  {}", differences.join("\n  ")));
            Err(error.hint("restore the plan, or continue with the new one: --accept-plan-change"))
        }
    }
}

/// Goes on with a run.
pub(super) fn resume(
    context: &Context,
    site: &Site,
    run: &RunId,
    control: &Control,
    remark: &Remark,
) -> Result<Resumed, CliError> {
    site.state_remote(&control.settings)?;
    let mut opened = open(context, site, run, control)?;
    settle_checkouts(context, site, &opened.started.base_branch);
    if let Some(stranger) = remark.lane.as_ref().filter(|lane| opened.plan.find(lane).is_none()) {
        return Err(unknown_lane(stranger, opened.plan.lanes.iter().map(|lane| &lane.id)));
    }
    let is_over = |lane: &&LaneId| opened.plan.find(lane).is_some_and(|at| !opened.state.lane(at).is_left_to_do());
    if let Some(lane) = remark.lane.as_ref().filter(is_over) {
        let message = format!("no agent works in lane {lane} any more, so the message would reach none");
        return Err(CliError::new(ExitStatus::InvalidOperation, message));
    }
    let state_directory = site.state(&control.settings);
    if let Err(refusal) = check(run, &opened.state, &opened.records) {
        if matches!(refusal, ResumeError::Complete(_)) {
            complete_files(site, &opened, control)?;
        }
        return Err(refused(refusal, &state_directory));
    }
    let left = opened.plan.indices().filter(|lane| opened.state.lane(*lane).is_left_to_do());
    preflight::check(context, &opened.plan, left)?;
    if opened.started.options.merge == MergeMode::Local {
        let left = opened.plan.indices().filter(|lane| opened.state.lane(*lane).is_left_to_do());
        preflight::report_obstacles(context, &site.repository, &opened.started.base_branch, &opened.plan, left)?;
    }
    let forge = forge::ready(site, &control.settings, opened.started.options.merge, &opened.started.base_branch)?;
    site.prepare(context, &state_directory, &opened.started.options.worktree_root)?;
    site.ignore_leavings(&opened.plan)?;
    crate::store::checkpoints::check(&state_directory.checkpoints())?;
    let removed = close_removed_jobs(&opened.state, &opened.records, &opened.directory)
        .map_err(|error| CliError::new(ExitStatus::Blocked, error.to_string()))?;
    for job in removed {
        let message = format!("the files of {job} were removed while it ran: it was stopped and runs again");
        context.printer.warning(message, &[]);
    }
    write_answers_down(run, &mut opened)?;
    let view = RunView::for_plan(&opened.plan).after(opened.records.iter());
    present(context, &opened, &view, &state_directory);
    let untold = untold_snapshots(&site.repository, &opened.started, &opened.state, &opened.records)?;
    let external = settle(context, site, run, &opened, control)?;
    let on_record = PlanOnRecord::of(&opened.records);
    let resumed = Event::RunResumed {
        plan_sha256: opened.accepted.filter(|now| now != on_record.source),
        pinned_sha256: Some(sha256(&opened.plan_text)).filter(|now| now != on_record.pinned),
        number: opened.state.resumes() + 1,
        owner: owner(&control.session_id),
        timeout: new_limit(&control.settings),
        budget: new_budget(&control.settings, opened.state.started().map(|started| started.options.budget)),
        message: remark.text.trim().to_owned(),
        message_for: remark.lane.clone(),
    };
    let started = opened.started.clone();
    let status = work(
        context,
        Work {
            site: site.clone(),
            state: state_directory,
            plan: opened.plan,
            plan_text: opened.plan_text,
            run_state: opened.state,
            history: opened.records,
            view,
            started: opened.started,
            journal: opened.journal,
            first: [vec![resumed], untold, external].concat(),
            settings: control.settings.clone(),
            forge,
            _locks: opened.locks,
        },
    )?;
    Ok(Resumed { status, started })
}

/// The run's time limit, where it was given for this call; zero: none.
fn new_limit(settings: &Settings) -> Option<Duration> {
    let given = settings.timeout.origin.outranks_plan();
    given.then(|| settings.timeout.value.unwrap_or_default())
}

/// What the agents may use from now on, where somebody says so and it is not what holds already.
fn new_budget(settings: &Settings, now: Option<Budget>) -> Option<Budget> {
    let now = now.unwrap_or_default();
    let cost = if settings.max_cost.origin == Origin::Default { now.cost } else { settings.max_cost.value };
    let tokens = if settings.max_tokens.origin == Origin::Default { now.tokens } else { settings.max_tokens.value };
    Some(Budget { cost, tokens }).filter(|wanted| *wanted != now)
}

/// Why a run may not be resumed, with what to type where something can be done about it.
fn refused(refusal: ResumeError, state: &StateDirectory) -> CliError {
    let ResumeError::HalfRolledBack { run, lanes } = &refusal else { return refusal.into() };
    let lanes = lanes.iter().flat_map(|lane| ["--lane", lane.as_str()]);
    let words: Vec<&str> = ["rollback", run.as_str()].into_iter().chain(lanes).collect();
    let hint = format!("to finish it: {}", command(state, &words));
    CliError::from(refusal).hint(hint)
}

/// Writes down the answers that people gave just before the last Lanekeeper died, as far as that one did not. A wish to
/// stop that one is no wish to stop this one.
fn write_answers_down(run: &RunId, opened: &mut Opened) -> Result<(), CliError> {
    requests::take(&opened.directory.requests())?;
    let unsettled = requests::unsettled(&opened.directory.requests())?;
    let mut answers = Vec::new();
    let files: Vec<_> = unsettled.iter().map(|left| left.file.clone()).collect();
    for left in unsettled.into_iter().filter(|left| is_lasting(&left.request)) {
        let answer = crate::engine::requested(left.request);
        let known = |record: &Record| record.at >= left.since && record.event == answer;
        let concerns_plan = crate::engine::names_what_is_known(&opened.state, &answer);
        if concerns_plan && !opened.records.iter().chain(&answers).any(known) {
            answers.push(opened.journal.append(now(), &answer)?);
        }
    }
    opened.journal.sync()?;
    requests::forget(&files);
    if !answers.is_empty() {
        Arc::make_mut(&mut opened.records).append(&mut answers);
        opened.state = replay(run, &opened.plan, &opened.records)?;
    }
    Ok(())
}

/// Whether a request is one that another life of the run still has to hear.
fn is_lasting(request: &Request) -> bool {
    matches!(request, Request::Answer { .. } | Request::Record { .. })
}

/// Writes what follows from the run log and is not there: a death right after the end of the run may have kept it from
/// being written, or the run has just come here.
pub(in crate::cli) fn complete_files(site: &Site, opened: &Opened, control: &Control) -> Result<(), CliError> {
    let ports = ports(site, &control.settings, &opened.started, &opened.plan, opened.directory.clone())?;
    let state = site.state(&control.settings);
    Mirror::start(&state, &site.repository, &ports.pool, &opened.started, &opened.plan, opened.records.clone())
        .and_then(Mirror::finish)
        .map_err(|error| CliError::new(ExitStatus::Blocked, error.to_string()))
}

/// A warning where the run was taken here from another machine, which may not know of that.
fn from_elsewhere(records: &[Record]) -> Option<String> {
    let since = records.iter().rev().take_while(|record| !matches!(record.event, Event::RunResumed { .. }));
    let moved = since.into_iter().find_map(|record| match &record.event {
        Event::RunMoved(moved) => Some(moved),
        _ => None,
    })?;
    let host = &moved.from.host;
    Some(format!(
        "Pulled from {host}: if the run is still active there, the second of the two machines to push is rejected"
    ))
}

/// What seed 004 wants a person to be told on every resume: the stage, the checkpoints, what comes next, the way back.
fn present(context: &Context, opened: &Opened, view: &RunView, state: &StateDirectory) {
    let run = &opened.started.run_id;
    let mut lines =
        vec![format!("Resuming run {run} of phase {} on {}", opened.plan.phase, opened.started.base_branch)];
    lines.push("Current stage:".to_owned());
    for lane in view.lanes() {
        lines.push(format!("  {:<20} {:<24} {}", lane.id.as_str(), lane.stage.word(), lane.state.word()));
    }
    for (lane, round, completion) in partial_rounds(&opened.state, &opened.directory, now()) {
        lines.push(format!("{lane}, {} agents: {completion}", round.word()));
        lines.extend(completion.agents.iter().map(|(agent, standing)| format!("  {agent}: {standing}")));
    }
    lines.extend(from_elsewhere(&opened.records));
    lines.push(format!("Checkpoints: {}", state.checkpoints().display()));
    lines.push("Next actions:".to_owned());
    let mut jobs: Vec<_> = opened.state.running_jobs().cloned().collect();
    jobs.sort();
    for job in &jobs {
        if let Ok(seen) = process::observe(&opened.directory.job(job)) {
            lines.push(format!("  {}", describe(job, verdict(&seen))));
        }
    }
    let left = view
        .lanes()
        .iter()
        .filter(|lane| !lane.state.is_done() && lane.state != crate::view::LaneState::Skipped)
        .count();
    lines.push(format!("  {} left; finished work is skipped", crate::model::text::counted(left, "lane")));
    let back = Commands { program: &state.program(), run }.rollback(None);
    lines.push(format!("To roll back to before_lane_start instead: {}", shell_line(back)));
    context.printer.note(lines.join("\n"));
}
