//! Resuming a run.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use lanewright_engine::at_resume::partial_rounds::partial_rounds;
use lanewright_engine::at_resume::unrecorded_snapshots::unrecorded_snapshots;
use lanewright_engine::at_resume::{
    PlanOnRecord, ResumeError, check, close_jobs_of_earlier_boot, close_removed_jobs, job_forecast, replay,
};
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, LaneStage, Record, RunOptions, RunStarted, stage_in_words};
use lanewright_model::text::{counted, listed, shell_line};
use lanewright_model::withheld::{EnvironmentOwner, Withheld};
use lanewright_model::{Budget, Follow, LaneId, LaneIndex, MergeChoice, MergeMode, PullRequestState, Round, RunId};
use lanewright_plan::settings::{Layer, Origin, Setting, Settings};
use lanewright_programs::process;
use lanewright_schedule::{AgentStep, LaneEnd, RunState};
use lanewright_store::{Request, StateDirectory, checkpoints, requests};
use lanewright_view::RunHistory;
use lanewright_view::answers::approvals::word;
use lanewright_view::answers::commands::Commands;
use lanewright_view::history::{LaneHistory, LaneState};

use super::execution::execute;
use super::external_changes::{reconcile, sync_after_switches, sync_checkouts};
use super::forge;
use super::preflight;
use super::replacement;
use crate::cli::run::intent::{Adoption, Pinned, Pinning, ResumeReach, follow};
use crate::cli::run::lock::{LockedRun, Reach, adopt, left_to_do};
use crate::cli::run::power_cut::{is_in_another_boot, outage, restore_checkouts};
use crate::cli::runs::{RunRecords, command, require_lane, require_plan};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, now, owner};

/// What has another runner make the attempts of one that is paused.
const FALLBACK_REMEDY: &str =
    "its runner is paused; to use another one meanwhile: set `fallback` of the runner, then resume";

pub(crate) struct Resumed {
    pub(crate) status: ExitStatus,
    pub(crate) started: RunStarted,
}

/// The settings of a run that the phases after it share with it.
pub(crate) fn as_before(started: &RunStarted) -> Layer {
    fn setting<T>(value: T) -> Setting<T> {
        Setting::new(value, Origin::Flag("the run before"))
    }
    let options = &started.options;
    Layer {
        base: Some(setting(Some(started.base_branch.clone()))),
        max_parallel: NonZeroU32::new(options.max_parallel).map(setting),
        merge: Some(setting(MergeChoice::of(options.merge, options.merge_style))),
        fail_fast: Some(setting(options.fail_fast)),
        bisect_merges: Some(setting(options.bisect_merges)),
        ..Layer::default()
    }
    .or(Layer::of_list_options(&options.list_options))
}

pub(crate) fn resume(within: &RepositoryContext, run: &RunId, adoption: &Adoption) -> Result<Resumed> {
    within.state_remote()?;
    let mut locked = adopt_with_plan_file(within, run, adoption)?;
    let is_in_another_boot = is_in_another_boot(within, &locked);
    if is_in_another_boot {
        restore_checkouts(within, &locked);
    }
    sync_checkouts(within, &locked.started.base_branch);
    let lanes = reached(within, &locked, adoption)?;
    let (changed, noted) = replacement::changed(within, locked, adoption)?;
    locked = changed;
    check_message(&locked, adoption)?;
    let is_followed =
        |refusal: &ResumeError| adoption.reach == ResumeReach::Followed && matches!(refusal, ResumeError::Complete(_));
    if let Err(refusal) =
        check(run, &locked.state, &locked.records).or_else(|it| if is_followed(&it) { Ok(()) } else { Err(it) })
    {
        if matches!(refusal, ResumeError::Complete(_)) {
            if is_in_another_boot {
                within.executor(&locked.started, &locked.plan)?.recover_after_boot(
                    &locked.state,
                    &locked.records,
                    outage(&locked),
                );
            }
            complete_files(within, &locked)?;
            sync_after_switches(within, &locked.started.base_branch);
        }
        if matches!(refusal, ResumeError::NoCheckpoint(_)) {
            let plan = locked.started.plan_path.to_string_lossy().into_owned();
            let again = command(&within.state, &["execute-phase", &plan]);
            return Err(anyhow::Error::from(refusal).hint(format!("nothing of it has begun; to start it: {again}")));
        }
        return Err(refused(refusal, &within.state));
    }
    check_surroundings(within, &locked)?;
    let (merge, base) = (locked.started.options.merge, &locked.started.base_branch);
    let resumed = resumed(within, &locked, adoption, lanes.clone());
    let follows = matches!(&resumed, Event::RunResumed { follow: Some(_), .. })
        || locked.state.started().is_some_and(|started| started.options.follow.is_some());
    let forge = forge::ready(within, (merge, follows), base)?;
    within.prepare(&locked.started.options.worktree_root)?;
    within.ignore_runner_files(&locked.plan)?;
    checkpoints::check(&within.state.checkpoints())?;
    if is_in_another_boot {
        close_jobs_of_earlier_boot(&locked.state, &locked.directory)
            .map_err(|error| ExitStatus::Blocked.error(error.to_string()))?;
    }
    let removed = close_removed_jobs(&locked.state, &locked.records, &locked.directory)
        .map_err(|error| ExitStatus::Blocked.error(error.to_string()))?;
    for job in removed {
        let message = format!("the files of {job} were removed while it ran: it was stopped and runs again");
        within.context.printer.warning(message, &[]);
    }
    record_answers(run, &mut locked)?;
    let view = RunHistory::for_plan(&locked.plan).after(locked.records.iter());
    present(within, &locked, &view, &lanes, is_in_another_boot);
    let unrecorded = unrecorded_snapshots(&within.repository, &locked.started, &locked.state, &locked.records)?;
    let found = reconcile(within, &locked, &view, adoption, (&lanes, is_in_another_boot))?;
    let logged = adoption.logged.iter().cloned().collect();
    let mut started = locked.started.clone();
    let (ended, view) = execute(
        within,
        locked,
        view,
        ([found.moved, logged, vec![resumed], noted, unrecorded, found.events].concat(), adoption.wait),
        forge,
    )?;
    let status = match adoption.reach {
        // Failed lanes stay as they are, and the run has failed.
        ResumeReach::Unfailed => ended,
        _ => status_of(&lanes, ended, &view),
    };
    if status != ended {
        // Other lanes are left, so the next phase does not start.
        started.options.next_phases = None;
    }
    Ok(Resumed { status, started })
}

/// How the resume of `lanes` alone ended: by what became of them, as long as other lanes are left. Empty: all lanes.
fn status_of(lanes: &[LaneId], ended: ExitStatus, view: &RunHistory) -> ExitStatus {
    let is_left = |lane: &LaneHistory| !lane.state.is_done() && lane.state != LaneState::Skipped;
    let (asked, others): (Vec<_>, Vec<_>) =
        view.lanes().iter().filter(|lane| is_left(lane)).partition(|lane| lanes.contains(&lane.id));
    match ended {
        ExitStatus::Failed | ExitStatus::Blocked if !lanes.is_empty() && !others.is_empty() => {
            let failed = asked.iter().any(|lane| lane.state == LaneState::Failed);
            match (failed, asked.is_empty()) {
                (true, _) => ExitStatus::Failed,
                (false, false) => ExitStatus::Blocked,
                (false, true) if view.run.unanswered.is_some() => ExitStatus::Blocked,
                (false, true) => ExitStatus::Done,
            }
        }
        ended => ended,
    }
}

/// Locks and replays a run, with the plan of its file if that changed and the change is accepted.
fn adopt_with_plan_file(within: &RepositoryContext, run: &RunId, adoption: &Adoption) -> Result<LockedRun> {
    let adopted = adopt(within, run, adoption, Reach::Own)?;
    let pinning = Pinning { within, adoption, started: &adopted.started, records: &adopted.records };
    let Some(changed) = pinning.changed(&adopted.state, adopted.edited)? else {
        refuse_missing_secrets(&adopted)?;
        return Ok(adopted);
    };
    let Pinned { plan, state, text, accepted, .. } = changed;
    Ok(LockedRun { accepted, ..adopted.with_plan(within, plan, state, text) })
}

/// Refuses to resume without a secret that a lane still needs: its jobs would get the placeholder instead.
fn refuse_missing_secrets(locked: &LockedRun) -> Result<()> {
    let is_needed = |missing: &Withheld| match &missing.owner {
        EnvironmentOwner::Lane(lane) | EnvironmentOwner::Agent(lane, _) => {
            locked.plan.find(lane).is_some_and(|lane| locked.state.lane(lane).is_left_to_do())
        }
        EnvironmentOwner::Runner(_) => true,
    };
    let missing: Vec<Withheld> = locked.plan.withheld().into_iter().filter(is_needed).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let [named, names] = [
        missing.iter().map(Withheld::to_string).collect::<Vec<_>>().join(", "),
        missing.iter().map(|missing| missing.name.clone()).collect::<Vec<_>>().join(", "),
    ];
    let (run, path) = (&locked.started.run_id, locked.started.plan_path.display());
    let message = format!("run {run} has no value for {named}: secrets are not stored, and {path} does not have them");
    Err(ExitStatus::Usage
        .error(message)
        .hint(format!("restore the plan file, or set {names} in the environment of this command")))
}

/// The lanes that go on, with all that they need; empty: all.
fn reached(within: &RepositoryContext, locked: &LockedRun, adoption: &Adoption) -> Result<Vec<LaneId>> {
    let dag = locked.plan.dag();
    let lanes = match &adoption.reach {
        ResumeReach::All => return Ok(Vec::new()),
        ResumeReach::Unfailed => return Ok(unfailed(within, locked)),
        ResumeReach::Followed => return followed(within, locked),
        ResumeReach::Only(lanes) => {
            lanes.iter().map(|lane| left_to_do(within, locked, lane, "resume")).collect::<Result<_>>()?
        }
        ResumeReach::Retry(lanes, _) => {
            let failed_or_blocked =
                lanes.iter().map(|lane| failed_or_blocked(within, locked, lane)).collect::<Result<Vec<_>>>()?;
            dag.with_dependants(failed_or_blocked)
        }
    };
    Ok(dag.with_dependencies(lanes).into_iter().map(|lane| locked.plan.lane(lane).id.clone()).collect())
}

/// The lanes that may be sent back, and those that were and have not ended since.
fn followed(within: &RepositoryContext, locked: &LockedRun) -> Result<Vec<LaneId>> {
    let (run, state) = (&locked.started.run_id, &locked.state);
    let is_followed = |lane: &LaneIndex| {
        let lane = state.lane(*lane);
        let is_open = lane.proposal().status().is_none_or(|status| status.state != PullRequestState::Merged);
        // One that waits for the user because its checks fail is merged; one that was sent back too often is not.
        let continues = lane.merged().is_some() || lane.is_left_to_do() && !lane.gave_up();
        lane.proposal().pull_request().is_some() && is_open && continues
    };
    let lanes: Vec<LaneId> =
        locked.plan.indices().filter(is_followed).map(|lane| locked.plan.lane(lane).id.clone()).collect();
    if lanes.is_empty() {
        let message = format!("run {run} has no open pull request that could be followed");
        let look = command(&within.state, &["status", run.as_str()]);
        return Err(ExitStatus::InvalidOperation.error(message).hint(format!("to look at it: {look}")));
    }
    Ok(lanes)
}

/// The lanes that continue without those that failed or are blocked; empty: all. A note names what stays.
fn unfailed(within: &RepositoryContext, locked: &LockedRun) -> Vec<LaneId> {
    let id = |lane: LaneIndex| locked.plan.lane(lane).id.clone();
    let stays = |lane: &LaneIndex| {
        let state = locked.state.lane(*lane);
        let waits_for_lanes = state.stage() == LaneStage::Waiting && matches!(state.end(), Some(LaneEnd::Blocked(_)));
        state.gave_up() && !waits_for_lanes
    };
    let failed: Vec<LaneIndex> = locked.plan.indices().filter(stays).collect();
    if failed.is_empty() {
        return Vec::new();
    }
    let names: Vec<LaneId> = failed.iter().map(|lane| id(*lane)).collect();
    let words = ["retry", locked.started.run_id.as_str()].into_iter().chain(names.iter().map(LaneId::as_str));
    let retry = command(&within.state, &words.collect::<Vec<_>>());
    within.context.printer.note(format!("What failed or is blocked stays as it is. To run it again: {retry}"));
    let left_out = locked.plan.dag().with_dependants(failed);
    locked.plan.indices().filter(|lane| !left_out.contains(lane)).map(id).collect()
}

/// Refuses a lane that neither failed nor is blocked.
fn failed_or_blocked(within: &RepositoryContext, locked: &LockedRun, lane: &LaneId) -> Result<LaneIndex> {
    let index = left_to_do(within, locked, lane, "retry")?;
    if locked.state.lane(index).gave_up() {
        return Ok(index);
    }
    let message = format!("lane {lane} neither failed nor is it blocked, so there is nothing to retry");
    let resume = command(&within.state, &["resume", locked.started.run_id.as_str(), "--lane", lane.as_str()]);
    let error = ExitStatus::InvalidOperation.error(message).hint(format!("to resume it: {resume}"));
    let is_paused =
        (0..locked.plan.lane(index).agents.len()).any(|agent| locked.state.pause_of(index, agent).is_some());
    Err(if is_paused { error.hint(FALLBACK_REMEDY) } else { error })
}

fn check_message(locked: &LockedRun, adoption: &Adoption) -> Result<()> {
    let Some(lane) = &adoption.message_for else { return Ok(()) };
    if locked.state.lane(require_lane(&locked.plan, lane)?).is_left_to_do() {
        return Ok(());
    }
    let message = format!("no agent works in lane {lane} any more, so the message would reach none");
    Err(ExitStatus::InvalidOperation.error(message))
}

fn lanes_left(locked: &LockedRun) -> impl Iterator<Item = LaneIndex> {
    locked.plan.indices().filter(|lane| locked.state.lane(*lane).is_left_to_do())
}

/// Whether the runners of the lanes that are left can work; reports what would block their merges.
fn check_surroundings(within: &RepositoryContext, locked: &LockedRun) -> Result<()> {
    let (base, options) = (&locked.started.base_branch, &locked.started.options);
    let scan = (options.merge == MergeMode::Local).then(|| preflight::CheckoutScan::begin(within, base));
    preflight::check(&within.context, &locked.plan, lanes_left(locked))?;
    preflight::check_branches(within, &options.branch_prefix, &locked.plan.phase)?;
    preflight::check_sandbox(within)?;
    preflight::note_identity(within);
    let repository = within.repository_of(&locked.started)?;
    preflight::note_changed_settings(&within.context, &repository)?;
    preflight::check_signing(&repository, base)?;
    preflight::note_surroundings(within)?;
    let Some(scan) = scan else { return Ok(()) };
    preflight::report_obstacles(within, base, scan, &locked.plan, lanes_left(locked))?;
    preflight::note_lists(within, base, &locked.plan, options.plan_format)
}

fn resumed(within: &RepositoryContext, locked: &LockedRun, adoption: &Adoption, lanes: Vec<LaneId>) -> Event {
    let on_record = PlanOnRecord::of(&locked.records);
    let options = locked.state.started().map(|started| &started.options);
    Event::RunResumed {
        plan_sha256: locked.accepted.clone().filter(|now| now != on_record.source),
        pinned_sha256: Some(sha256(&locked.plan_text)).filter(|now| now != on_record.pinned),
        number: locked.state.resumes() + 1,
        owner: owner(&within.session_id),
        timeout: new_limit(&within.settings),
        budget: new_budget(&within.settings, options),
        message: adoption.message.trim().to_owned(),
        message_for: adoption.message_for.clone(),
        lanes,
        retried: adoption.reach.retried().to_vec(),
        follow: new_follow(&within.settings, adoption, options),
        level: adoption.level,
    }
}

/// The run's time limit, where it was given for this call; zero: none.
fn new_limit(settings: &Settings) -> Option<Duration> {
    let given = settings.timeout.origin.outranks_plan();
    given.then(|| settings.timeout.value.unwrap_or_default())
}

/// What the agents may use from now on, where it is set and differs from what they may use already.
fn new_budget(settings: &Settings, now: Option<&RunOptions>) -> Option<Budget> {
    // A lane that another run placed has a part of that run's budget.
    let now = now.filter(|options| options.placed_by.is_none())?.budget;
    let cost = if settings.max_cost.origin == Origin::Default { now.cost } else { settings.max_cost.value };
    let tokens = if settings.max_tokens.origin == Origin::Default { now.tokens } else { settings.max_tokens.value };
    Some(Budget { cost, tokens }).filter(|wanted| *wanted != now)
}

/// How pull requests are followed from now on, where that was given for this call or differs from what was set.
fn new_follow(settings: &Settings, adoption: &Adoption, now: Option<&RunOptions>) -> Option<Follow> {
    let now = now.filter(|options| options.merge == MergeMode::Pr)?;
    let set = settings.follow.value.filter(|_| settings.follow.origin != Origin::Default);
    follow(settings, adoption.follow.or(set)).filter(|wanted| Some(*wanted) != now.follow)
}

/// Why a run may not be resumed, with what to type where something can be done about it.
fn refused(refusal: ResumeError, state: &StateDirectory) -> anyhow::Error {
    let Some(remedy) = refusal.remedy() else { return refusal.into() };
    // What it undoes of merged work was agreed to when it began.
    let words: Vec<&str> = remedy.iter().skip(1).map(String::as_str).chain(["--yes"]).collect();
    let hint = format!("to finish it: {}", command(state, &words));
    anyhow::Error::from(refusal).hint(hint)
}

/// Records the answers that users gave just before the last Lanewright died, as far as it did not record them. Requests to
/// stop it are dropped.
fn record_answers(run: &RunId, locked: &mut LockedRun) -> Result<()> {
    requests::take(&locked.directory.requests())?;
    let unsettled = requests::interrupted(&locked.directory.requests())?;
    let mut answers = Vec::new();
    let files: Vec<_> = unsettled.iter().map(|left| left.file.clone()).collect();
    for left in unsettled.into_iter().filter(|left| is_lasting(&left.request)) {
        let answer = Event::from(left.request);
        let known = |record: &Record| record.at >= left.since && record.event == answer;
        let concerns_plan = locked.state.has_subject_of(&answer);
        if concerns_plan && !locked.records.iter().chain(&answers).any(known) {
            answers.push(locked.journal.append(now(), &answer)?);
        }
    }
    locked.journal.sync()?;
    requests::forget(&files);
    if !answers.is_empty() {
        Arc::make_mut(&mut locked.records).append(&mut answers);
        locked.state = replay(run, &locked.plan, &locked.records)?;
    }
    Ok(())
}

/// Whether a request outlives the process that it was made to.
fn is_lasting(request: &Request) -> bool {
    !matches!(request, Request::Stop { .. })
}

/// Writes the files that follow from the run log: a death right after the end of the run may have prevented that, or the
/// run was pulled just now.
pub(crate) fn complete_files(within: &RepositoryContext, locked: &LockedRun) -> Result<()> {
    Ok(within.projections(&locked.started, &locked.plan, locked.records.clone())?.finish()?)
}

/// The same after something was recorded in the log of a run that no process works on, whose lock is held. What cannot be
/// written is said, and is written by the next resume.
pub(crate) fn complete_files_of(within: &RepositoryContext, run: &RunId) {
    let complete = || -> Result<()> {
        let run = RunRecords::read(&within.context, &within.state, run.clone())?;
        let plan = Arc::new(require_plan(&run.run, &run.directory)?);
        Ok(within.projections(run.started()?, &plan, Arc::new(run.records.clone()))?.finish()?)
    };
    if let Err(error) = complete() {
        let hints = ["the run log is complete; `lanewright resume` writes the others again".to_owned()];
        within.context.printer.warning(format!("checkpoints.json is behind: {error:#}"), &hints);
    }
}

/// A warning where the run was pulled from another machine.
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

/// What is printed on every resume (seed 004): the stage, the checkpoints, what comes next, how to roll back.
/// `lanes`: those that the resume continues; empty: all.
fn present(
    within: &RepositoryContext,
    locked: &LockedRun,
    view: &RunHistory,
    lanes: &[LaneId],
    is_in_another_boot: bool,
) {
    let state = &within.state;
    let run = &locked.started.run_id;
    let mut lines =
        vec![format!("Resuming run {run} of phase {} on {}", locked.plan.phase, locked.started.base_branch)];
    lines.push(format!("Current stage: {}", stages(view)));
    let rounds = partial_rounds(&locked.state, &locked.directory, now());
    // Of a single agent the stage says it all.
    for (lane, round, completion) in rounds.into_iter().filter(|(.., completion)| completion.agents.len() > 1) {
        lines.push(format!("{lane}, {} agents: {completion}", round.word()));
        lines.extend(completion.agents.iter().map(|(agent, standing)| format!("  {agent}: {standing}")));
    }
    lines.extend(from_elsewhere(&locked.records));
    lines.push(format!("Checkpoints: {}", state.checkpoints().display()));
    let goes_on = |lane: &LaneId| lanes.is_empty() || lanes.contains(lane);
    let is_left = |lane: &&LaneHistory| !lane.state.is_done() && lane.state != LaneState::Skipped && goes_on(&lane.id);
    let left = view.lanes().iter().filter(is_left).count();
    let reached = locked.plan.indices().filter(|lane| goes_on(&locked.plan.lane(*lane).id));
    let next: Vec<String> = reached.filter_map(|lane| next_action(&locked.state, lane)).collect();
    let next = if next.is_empty() { String::new() } else { format!(" ({})", listed(&next, NAMED)) };
    let what = match left {
        0 if locked.plan.gates.last.is_empty() => "the end of the run".to_owned(),
        0 => "the final gate".to_owned(),
        _ => format!("{} left{next}", counted(left, "lane")),
    };
    lines.push(format!("Next actions: {what}; finished work is skipped"));
    let mut jobs: Vec<_> = locked.state.running_jobs().cloned().collect();
    jobs.sort();
    for job in &jobs {
        if let Ok(seen) = process::observe(&locked.directory.job(job)) {
            lines.push(format!("  {}", job_forecast(job, &seen, is_in_another_boot)));
        }
    }
    let back = Commands { program: &state.program(), run }.rollback(None);
    lines.push(format!("To roll back to before_lane_start instead: {}", shell_line(back)));
    within.context.printer.note(lines.join("\n"));
}

/// What a lane that has begun does next: its agents with their tasks, its tests, or its merge.
fn next_action(state: &RunState, lane: LaneIndex) -> Option<String> {
    let (lane_state, plan) = (state.lane(lane), state.plan().lane(lane));
    let over = lane_state.merged().is_some() || lane_state.is_skipped() || !lane_state.has_begun();
    let agents = |round: Round| {
        let is_open =
            |agent: &usize| !matches!(lane_state.agents()[*agent].step, AgentStep::Done | AgentStep::Unchosen { .. });
        let open = plan.round(round).filter(is_open);
        let tasks = open.filter_map(|agent| {
            let task = plan.agents[agent].tasks.get(lane_state.agents()[agent].task)?;
            Some(format!("{} at task {}", plan.agents[agent].name, task.id))
        });
        Some(tasks.collect::<Vec<_>>().join(" and ")).filter(|tasks| !tasks.is_empty())
    };
    let next = match lane_state.stage() {
        _ if over => None,
        LaneStage::Requirements => agents(Round::Requirements),
        LaneStage::Implementation => agents(Round::Implementation),
        LaneStage::Validation => Some("its tests".to_owned()),
        LaneStage::Review => agents(Round::Review),
        LaneStage::AwaitingUserApproval if state.open_gates(lane).is_empty() => None,
        LaneStage::AwaitingUserApproval => Some("an approval of its changes".to_owned()),
        _ => None,
    };
    next.map(|next| format!("{}: {next}", plan.id))
}

/// How many lanes of the same state are named.
const NAMED: usize = 4;

/// Where the lanes are, on one line: `A, B failed at implementation; C merged`.
fn stages(view: &RunHistory) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for lane in view.lanes() {
        let is_over = lane.state.is_done() || matches!(lane.state, LaneState::Waiting | LaneState::Skipped);
        let at = if is_over { String::new() } else { format!(" at {}", stage_in_words(lane.stage.word())) };
        let what = format!("{}{at}", word(view, lane));
        match groups.iter_mut().find(|(known, _)| *known == what) {
            Some((_, lanes)) => lanes.push(lane.id.to_string()),
            None => groups.push((what, vec![lane.id.to_string()])),
        }
    }
    let texts = groups.iter().map(|(what, lanes)| format!("{} {what}", listed(lanes, NAMED)));
    texts.collect::<Vec<_>>().join("; ")
}
