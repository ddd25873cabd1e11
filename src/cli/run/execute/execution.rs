//! Executing a run to its end: the engine works, reporters show it, the state files follow, the summary ends it.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lanewright_engine::at_resume::PlanOnRecord;
use lanewright_engine::drive::{DriverError, Update, drive};
use lanewright_engine::executor::crash::{CrashPoint, crash_point};
use lanewright_engine::executor::placements::Placements;
use lanewright_engine::executor::{BeforePublication, CopiedFiles, Executor, MissingWork, RunClock};
use lanewright_engine::placement::{self, Placing, Taken};
use lanewright_engine::state_sync::{Follower, Ownership, Pace, PushNow, Source, remove_dead_locks};
use lanewright_files::{atomic, regular_file};
use lanewright_git::{Holder, Pool};
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, RunOutcome, RunStarted};
use lanewright_model::retry::backoff;
use lanewright_model::{Approval, Ci, JobId, MergeMode, OutsideChanges, Plan, RunId};
use lanewright_plan::settings::{Progress, Settings};
use lanewright_programs::forge::Forge;
use lanewright_schedule::lane_log::lane_run;
use lanewright_store::{Request, RunDirectory, requests};
use lanewright_view::RunHistory;
use lanewright_view::answers::escalation::Escalation;
use lanewright_view::history::{LaneHistory, LaneState};
use lanewright_view::messages::ci_log::without_commands;
use lanewright_view::status::RunStatus;
use lanewright_view::status::ending::ending;
use lanewright_view::status::summary::{Summary, SummaryContext};

use super::checkout_watch::SwitchWatch;
use super::external_changes::missing_work;
use super::preflight;
use crate::cli::args::Format;
use crate::cli::error::unless_gone;
use crate::cli::executors::{engines, exchange, ownership};
use crate::cli::integrations::notify;
use crate::cli::look::last_output::LastOutput;
use crate::cli::look::proposed_plan::proposed_plan;
use crate::cli::look::report;
use crate::cli::look::report::ci;
use crate::cli::repository_context::Claimed;
use crate::cli::run::lock::LockedRun;
use crate::cli::runs::{command, pinned_plan};
use crate::cli::snapshots::prune_by_setting;
use crate::cli::timings::Waits;
use crate::cli::{CliError, Context, ExitStatus, RepositoryContext, Result, host, local_now, now, offset};
use crate::progress::{FanOut, Jsonl, Live, Plain, Preparation, UNWRAPPED, styles_for, terminal_size};

/// Which lanes and agents wait for a hook of the user's, or for copies of ignored files.
fn preparations(pool: &Pool, copied: &CopiedFiles) -> Vec<Preparation> {
    let name = |holder: Holder| match (holder.lane, holder.agent) {
        (Some(lane), Some(agent)) => format!("{lane} {agent}"),
        (Some(lane), None) => lane.to_string(),
        (None, _) => "run".to_owned(),
    };
    let hooks = pool.running_hooks().into_iter().map(|(holder, hook, takes)| Preparation {
        what: format!("{}: waits for {hook}", name(holder)),
        progress: format!("{} s", takes.as_secs()),
        takes,
    });
    let copies = copied.running().into_iter().map(|copy| Preparation {
        what: copy.what,
        progress: copy.progress,
        takes: copy.since.elapsed(),
    });
    hooks.chain(copies).collect()
}

/// Works on a run until it ends, and prints how it did; returns that and what its records add up to then. `view` is what
/// they add up to before; `first` are the events that this process begins with, and whether it waits for answers of the
/// user.
pub(crate) fn execute(
    within: &RepositoryContext,
    run: LockedRun,
    view: RunHistory,
    first: (Vec<Event>, bool),
    forge: Option<Forge>,
) -> Result<(ExitStatus, RunHistory)> {
    let (context, directory) = (&within.context, run.directory.clone());
    write_plan(&directory, &run)?;
    let lanes = run.plan.lanes.iter().map(|lane| lane_run(&run.started.run_id, &lane.id));
    remove_dead_locks(&within.repository, lanes.chain([run.started.run_id.clone()]))?;
    let taken = Taken::default();
    let follower = follower(within, &run)?;
    let executor = Arc::new(executor(within, &run, forge, &taken, follower.as_ref())?);
    executor.note_holders(&run.state);
    let (pool, placing, repository) = (executor.pool.clone(), executor.placements.clone(), executor.repository.clone());
    let copied = executor.copied.clone();
    let projections = within.projections(&run.started, &run.plan, run.records.clone())?;
    let switches = SwitchWatch::start(&within.repository, &run.started.base_branch);
    let mut waits = context.timings.as_ref().map(|timings| Waits::new(timings, &within.settings, &run.plan, &view));
    // The writer of projections may still need it; it would take memory for as long as the run takes.
    drop(run.records);
    let fan_out = reporters(context, &within.settings, view, run.plan.clone(), &directory);
    let mut fan_out = notify::reporter(within, &directory, fan_out);
    let mut is_forced = false;
    let tick = fan_out.tick_interval();
    let ended = drive(executor, run.journal, run.state, first, tick, &mut |update| match update {
        Update::Records(records) => {
            is_forced |= records.iter().any(|record| record.event.is_forced_stop());
            projections.send(records);
            switches.observe(records);
            follower.iter().for_each(|follower| follower.send(records));
            records.iter().for_each(|record| fan_out.record(record));
            waits.iter_mut().for_each(|waits| waits.draw(fan_out.history()));
        }
        Update::EmptyingPool(since) => fan_out.emptying_pool(since),
        Update::Tick(now) => {
            fan_out.preparations(&preparations(&pool, &copied), now);
            fan_out.tick(now);
        }
    });
    // A process whose terminal was closed does not wait for the remote.
    is_forced |= matches!(ended, Err(DriverError::HungUp));
    // What removed the run log may have removed the plan, too, without which the run cannot be resumed.
    let ended = ended.inspect_err(|_| restore_plan(&directory, &run.plan_text));
    let view = fan_out.finish();
    if let Some(obstructed) = switches.finish() {
        context.printer.warning(obstructed, &[]);
    }
    if let Err(error) = projections.finish() {
        let hint = "the run log is complete".to_owned();
        context.printer.warning(format!("checkpoints.json or task.json is behind: {error}"), &[hint]);
    }
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Err(error)) = follower.map(|follower| follower.finish(is_forced))
        && taken.is_none()
    {
        let again = format!("to push it: lanewright state push {}", run.started.run_id);
        let reason = CliError::from(anyhow::Error::from(error)).one_line();
        context.printer.warning(format!("the remote does not have the newest state of the run: {reason}"), &[again]);
    }
    if let Err(error) = preflight::note_changed_settings(context, &repository) {
        tracing::debug!("git's settings cannot be compared: {error}");
    }
    // The last lane's files were removed after the pool was.
    pool.remove_empty(&run.started.run_id);
    within.show_notices();
    report::keep(within, &run.plan, &run.started.run_id);
    let finish = ended?;
    prune_by_setting(within, &run.started.run_id);
    if let Some(taken) = taken.filter(|_| finish.outcome != RunOutcome::Done) {
        return Err(taken.into());
    }
    summarize(within, &view, &run.started)?;
    // Once the state is pushed, it removes what is not needed any more.
    drop(placing);
    let status = ExitStatus::of_code(finish.code.into()).unwrap_or(ExitStatus::Failed);
    let Some(why) = &view.run.unanswered else { return Ok((status, view)) };
    let follow = command(&within.state, &["follow", run.started.run_id.as_str()]);
    let message = format!("the forge did not report the state of the pull requests: {why}");
    context.printer.warning(message, &[format!("to ask it again: {follow}")]);
    Ok((if status == ExitStatus::Done { ExitStatus::Blocked } else { status }, view))
}

fn executor(
    within: &RepositoryContext,
    run: &LockedRun,
    forge: Option<Forge>,
    taken: &Taken,
    follower: Option<&Follower>,
) -> Result<Executor> {
    let clock = RunClock::set(now(), run.records.last().map(|record| record.at));
    let placements = placements(within, run, taken, follower.map(Follower::push_now))?;
    let before_publication = before_publication(within, run, follower)?;
    let missing_work = missing_work_of(within, run);
    let executor = within.executor(&run.started, &run.plan)?;
    look_at_shared_state(&executor);
    Ok(Executor { forge, clock, placements, before_publication, missing_work, ..executor })
}

/// Looks at what agents share with the user while their worktrees are made.
fn look_at_shared_state(executor: &Executor) {
    if executor.outside_changes == OutsideChanges::Off {
        let _ = executor.shared_before.set(None);
        return;
    }
    let (repository, found) = (executor.repository.clone(), executor.shared_before.clone());
    std::thread::spawn(move || {
        let state = repository.shared_state();
        let state = state.inspect_err(|error| tracing::debug!("what agents share with the user is not known: {error}"));
        let _ = found.set(state.ok());
    });
}

/// Where lanes work that name an executor; `None`: none does.
fn placements(
    within: &RepositoryContext,
    run: &LockedRun,
    taken: &Taken,
    state: Option<PushNow>,
) -> Result<Option<Arc<dyn Placements>>> {
    let is_placed = run.started.options.placed_by.is_some();
    if is_placed || run.plan.lanes.iter().all(|lane| lane.executor.is_none()) {
        return Ok(None);
    }
    let engines = engines(within, &run.plan)?;
    let (exchange, address) = exchange(within)?;
    let placing = Placing {
        repository: within.repository.clone(),
        exchange,
        state_remote: within.state_remote()?,
        state,
        address,
        directory: run.directory.clone(),
        started: run.started.clone(),
        plan: run.plan.clone(),
        host: host(),
        since: now(),
        engines,
        taken: taken.clone(),
    };
    let started = placement::start(placing);
    started.map(Some).map_err(|error| ExitStatus::Blocked.error(format!("cannot start a thread: {error}")))
}

/// Writes the pinned plan if its file has another one. What the run log has the checksum of is saved first: until it has
/// that of the new plan, a death leaves the run with the old one.
fn write_plan(directory: &RunDirectory, run: &LockedRun) -> Result<()> {
    let written = regular_file::read(directory.plan()).ok();
    if written.as_ref() == Some(&run.plan_text) {
        return Ok(());
    }
    let on_record = PlanOnRecord::of(&run.records);
    if let Some(written) = written.filter(|written| !on_record.is_foreign(&sha256(written))) {
        atomic::write(&directory.previous_plan(), &written)?;
    }
    atomic::write(&directory.plan(), &run.plan_text)?;
    crash_point(CrashPoint::PlanReplaced);
    Ok(())
}

/// Writes the pinned plan again if its file is missing.
fn restore_plan(directory: &RunDirectory, text: &[u8]) {
    if directory.plan().exists() {
        return;
    }
    let restored = directory.create().and_then(|()| atomic::write(&directory.plan(), text));
    if let Err(error) = restored {
        tracing::warn!("the plan of the run is gone and cannot be written again: {error:?}");
    }
}

/// Pushes the run's state to a remote, if the settings name one.
fn follower(within: &RepositoryContext, run: &LockedRun) -> Result<Option<Follower>> {
    let Some(remote) = within.state_remote()? else { return Ok(None) };
    let (repository, directory) = (within.repository.clone(), run.directory.clone());
    let claim = within.claimed.as_ref().map(|claimed| claimed.claim.clone());
    let (run_id, pushes) = (run.started.run_id.clone(), within.pushes());
    let source = Source { repository, directory, run: run_id, host: host(), claim, pushes };
    let pace = |claimed: &Claimed| pace_of_claim(claimed, &run.directory, &run.started.run_id);
    let pace = match &within.claimed {
        Some(claimed) => pace(claimed),
        None => Pace { overwrites: overwrites(within, run)?, ..Pace::default() },
    };
    let started = Follower::start(source, remote, pace);
    started.map(Some).map_err(|error| ExitStatus::Blocked.error(format!("cannot start a thread: {error}")))
}

/// What a merge waits for before it is published: the state that has it is pushed, and no other clone has the run.
fn before_publication(
    within: &RepositoryContext,
    run: &LockedRun,
    follower: Option<&Follower>,
) -> Result<Option<BeforePublication>> {
    let state = follower.map(Follower::push_now);
    let is_placing = run.started.options.placed_by.is_none() && run.plan.lanes.iter().any(|it| it.executor.is_some());
    let ownership = is_placing.then(|| ownership(within, &run.started.run_id)).transpose()?;
    if state.is_none() && ownership.is_none() {
        return Ok(None);
    }
    Ok(Some(Box::new(move || {
        state.as_ref().map_or(Ok(()), PushNow::push)?;
        // While the exchange does not answer, nothing waits for it.
        match ownership.as_ref().map(Ownership::is_taken) {
            Some(Ok(true)) => Err("another clone has the run".to_owned()),
            _ => Ok(()),
        }
    })))
}

fn missing_work_of(within: &RepositoryContext, run: &LockedRun) -> Option<MissingWork> {
    let (repository, directory) = (within.repository.clone(), run.directory.clone());
    let merges = run.started.options.merge == MergeMode::Local;
    merges.then(|| Box::new(move || missing_work(&repository, &directory)) as MissingWork)
}

/// Whether this clone has the lanes of the run on the exchange, so that its state counts where another one was pushed.
fn overwrites(within: &RepositoryContext, run: &LockedRun) -> Result<Box<dyn Fn() -> bool + Send>> {
    if run.plan.lanes.iter().all(|lane| lane.executor.is_none()) {
        return Ok(Box::new(|| false));
    }
    let ownership = ownership(within, &run.started.run_id)?;
    Ok(Box::new(move || ownership.is_ours().unwrap_or(false)))
}

/// Stops the run at once where another process has it. Many are pushed to the same remote, but not at the same moment.
fn pace_of_claim(claimed: &Claimed, directory: &RunDirectory, run: &RunId) -> Pace {
    let requests = directory.requests();
    let lost = move || {
        if let Err(error) = requests::submit(&requests, &Request::Stop { lane: None, force: true }) {
            tracing::warn!("the run cannot be stopped: {error}");
        }
    };
    let rest = backoff(claimed.push_every, run.as_str(), 1);
    Pace { rest, look: (10 * rest).max(Duration::from_secs(1)), lost: Box::new(lost), ..Pace::default() }
}

fn reporters<'a>(
    context: &Context,
    settings: &Settings,
    view: RunHistory,
    plan: Arc<Plan>,
    directory: &RunDirectory,
) -> FanOut<'a> {
    let styles = styles_for(&std::io::stderr());
    let fan_out = FanOut::new(view);
    match context.progress(settings) {
        Progress::Live => {
            let last_output = LastOutput::new(directory.clone(), Some(plan));
            let last_output = Box::new(move |job: &JobId| last_output.of(job));
            let screen = Box::new(|| terminal_size(std::io::stderr(), 80));
            fan_out.with("live", Live::new(std::io::stderr(), screen, last_output, offset(), styles))
        }
        Progress::Plain | Progress::Auto => {
            let service = ci::service(settings, &context.environment);
            fan_out.with("plain", Plain::new(std::io::stderr(), offset(), styles).in_log_of(service))
        }
        Progress::Json => fan_out.with("json", Jsonl::new(std::io::stdout())),
        Progress::None => fan_out,
    }
}

fn keep_escalations(context: &Context, summary: &Summary, directory: &RunDirectory) {
    let texts: Vec<String> = summary.escalations.iter().map(Escalation::render).collect();
    let kept = match texts.as_slice() {
        [] => atomic::remove(&directory.escalations()),
        texts => atomic::write(&directory.escalations(), texts.join("\n---\n\n").as_bytes()),
    };
    if let Err(error) = kept {
        context.printer.note(format!("the decisions are not saved: {error}"));
    }
}

/// What became of the run, and what to type next: on standard error, because standard output may be JSON events.
fn summarize(within: &RepositoryContext, view: &RunHistory, started: &RunStarted) -> Result<()> {
    let (context, program, directory) = (&within.context, within.state.program(), &within.state.run(&started.run_id));
    let summary = Summary::of(view, SummaryContext { now: local_now(), program: &program, held: false });
    keep_escalations(context, &summary, directory);
    if context.printer.format() == Format::Json {
        let lane = match started.options.lanes.as_slice() {
            [lane] => Some(lane),
            _ => None,
        };
        let status = RunStatus { lane, ..summary.status() };
        return unless_gone(context.printer.json(&serde_json::json!(status)));
    }
    let styles = styles_for(&std::io::stderr());
    let asks = view.active().any(|lane| lane.state == LaneState::NeedsApproval(Approval::Plan));
    let plan = asks.then(|| pinned_plan(directory)).flatten();
    let names = (started.run_id.as_str(), started.plan_path.to_string_lossy());
    let plan_of = |lane: &LaneHistory| match &plan {
        Some(plan) => proposed_plan(directory, plan, lane, &program, (names.0, &names.1)),
        None => Vec::new(),
    };
    let mut text = ending(&summary, &program, &plan_of, terminal_size(std::io::stderr(), UNWRAPPED).1, styles);
    text.extend(report::where_it_is(directory).into_iter().flat_map(|place| ["\n".to_owned(), place]));
    let looked_at = ci::service(&within.settings, &context.environment) == Ci::Github;
    context.printer.note(if looked_at { without_commands(&text) } else { text });
    Ok(())
}
