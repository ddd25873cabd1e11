//! Seeing a run through: the engine works, reporters show it, the contract's files follow, the summary ends it.

use std::io::IsTerminal;
use std::sync::Arc;

use chrono::{Local, Offset};

use super::locks::Locks;
use super::site::{Site, host, now, redactor};
use super::switches::SwitchWatch;
use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::timings::Waits;
use crate::cli::{ci, report};
use crate::engine::mirror::Mirror;
use crate::engine::ports::Ports;
use crate::engine::{RunClock, Sight, drive};
use crate::event::{Event, Record, RunStarted};
use crate::forge::Forge;
use crate::fs::{atomic, regular_file};
use crate::git::Pool;
use crate::model::{JobId, Plan};
use crate::process;
use crate::report::{FanOut, Jsonl, Live, Plain, choose, styles_for};
use crate::schedule::RunState;
use crate::settings::{Origin, Progress, Settings};
use crate::store::{Journal, RunDirectory, StateDirectory};
use crate::travel::{Follower, Source};
use crate::view::escalation::Escalation;
use crate::view::{RunView, Summary, SummaryContext, failures};

/// A run that is ours to work on.
pub(super) struct Work {
    pub(super) site: Site,
    pub(super) state: StateDirectory,
    pub(super) plan: Arc<Plan>,
    /// What `plan.json` holds.
    pub(super) plan_text: Vec<u8>,
    pub(super) run_state: RunState,
    pub(super) history: Arc<Vec<Record>>,
    /// What the history adds up to.
    pub(super) view: RunView,
    pub(super) started: RunStarted,
    pub(super) journal: Journal,
    pub(super) first: Vec<Event>,
    pub(super) settings: Settings,
    /// Who opens pull requests, where lanes are proposed.
    pub(super) forge: Option<Forge>,
    /// Held until the end.
    pub(super) _locks: Locks,
}

/// Works on a run until it ends, and says how it did.
pub(super) fn work(context: &Context, work: Work) -> Result<ExitStatus, CliError> {
    let directory = work.state.run(&work.started.run_id);
    if regular_file::read(directory.plan()).ok().as_ref() != Some(&work.plan_text) {
        atomic::write(&directory.plan(), &work.plan_text)?;
    }
    let ports = ports(&work.site, &work.settings, &work.started, &work.plan, directory.clone())?;
    let clock = RunClock::set(now(), work.history.last().map(|record| record.at));
    let ports = Arc::new(Ports { forge: work.forge.clone(), clock, ..ports });
    ports.note_holders(&work.run_state);
    let mirror =
        Mirror::start(&work.state, &work.site.repository, &ports.pool, &work.started, &work.plan, work.history.clone())
            .map_err(|error| CliError::new(ExitStatus::Blocked, error.to_string()))?;
    let follower = follower(&work, directory.clone())?;
    let switches = SwitchWatch::start(&work.site.repository, &work.started.base_branch);
    let pool = ports.pool.clone();
    let mut drawn =
        context.timings.as_ref().map(|timings| Waits::new(timings, &work.settings, &work.plan, &work.history));
    // The mirror may still need it, and nobody else for as long as the run takes.
    drop(work.history);
    let mut fan_out = reporters(context, &work.settings, work.view, work.plan.clone(), &directory);
    let ended = drive(ports, work.journal, work.run_state, work.first, &mut |sight| match sight {
        Sight::Records(records) => {
            mirror.send(records);
            switches.observe(records);
            drawn.iter_mut().for_each(|waits| waits.draw(records));
            follower.iter().for_each(|follower| follower.send(records));
            records.iter().for_each(|record| fan_out.record(record));
        }
        Sight::Tick(now) => fan_out.tick(now),
    });
    // What took the run log may have taken the plan, too, without which the run cannot be resumed.
    let ended = ended.inspect_err(|_| restore_plan(&directory, &work.plan_text));
    let view = fan_out.finish();
    if let Some(obstructed) = switches.finish() {
        context.printer.warning(obstructed, &[]);
    }
    if let Err(error) = mirror.finish() {
        context
            .printer
            .warning(format!("checkpoints.json or task.json is behind: {error}"), &["the run log is complete".into()]);
    }
    if let Some(Err(error)) = follower.map(Follower::finish) {
        let again = format!("to push it: lanekeeper state push {}", work.started.run_id);
        context.printer.warning(format!("the remote does not have the newest state of the run: {error}"), &[again]);
    }
    // The last lane's files went after the pool did.
    pool.remove_empty(&work.started.run_id);
    report::keep(context, &work.settings, &work.state, &work.plan, &work.started.run_id);
    let finish = ended?;
    summarize(context, &work.settings, &work.state, &view, &work.started)?;
    Ok(ExitStatus::ALL.iter().copied().find(|status| status.code() == finish.code).unwrap_or(ExitStatus::Failed))
}

/// Writes the pinned plan again where its file is gone.
fn restore_plan(directory: &RunDirectory, text: &[u8]) {
    if directory.plan().exists() {
        return;
    }
    let restored = directory.create().and_then(|()| atomic::write(&directory.plan(), text));
    if let Err(error) = restored {
        tracing::warn!("the plan of the run is gone and cannot be written again: {error:?}");
    }
}

/// Whoever pushes the run's state, if the settings want that.
fn follower(work: &Work, directory: RunDirectory) -> Result<Option<Follower>, CliError> {
    let Some(remote) = work.site.state_remote(&work.settings)? else { return Ok(None) };
    let repository = work.site.repository.clone();
    let source = Source { repository, directory, run: work.started.run_id.clone(), host: host() };
    let started = Follower::start(source, remote);
    started.map(Some).map_err(|error| CliError::new(ExitStatus::Blocked, format!("cannot start a thread: {error}")))
}

/// The world in which a run takes place.
pub(in crate::cli) fn ports(
    site: &Site,
    settings: &Settings,
    started: &RunStarted,
    plan: &Arc<Plan>,
    run: RunDirectory,
) -> Result<Ports, CliError> {
    let options = &started.options;
    let pool = Pool::new(site.repository.clone(), &options.worktree_root, u32::MAX, options.keep_caches);
    let program = process::current_program().map_err(|error| {
        CliError::new(ExitStatus::Failed, format!("cannot tell which program this is, to start supervisors: {error}"))
    })?;
    Ok(Ports {
        repository: site.repository.clone(),
        pool,
        run,
        facts: started.clone(),
        plan: plan.clone(),
        program,
        heartbeat: settings.heartbeat.value,
        kill_after: settings.kill_after.value,
        redact: settings.redacted_patterns().to_vec(),
        redactor: redactor(settings, plan),
        snapshots: settings.snapshot_rules().map_err(|error| CliError::new(ExitStatus::Usage, error.to_string()))?,
        forge: None,
        clock: RunClock::set(now(), None),
    })
}

fn reporters<'a>(
    context: &Context,
    settings: &Settings,
    view: RunView,
    plan: Arc<Plan>,
    directory: &RunDirectory,
) -> FanOut<'a> {
    let term = context.environment.get("TERM").and_then(|term| term.to_str());
    let styles = styles_for(&std::io::stderr());
    let offset = Local::now().offset().fix();
    let fan_out = FanOut::new(view);
    let asked_for = settings.progress.origin != Origin::Default;
    let watched = asked_for || !ci::is_unattended(&context.environment);
    let redraws = std::io::stderr().is_terminal() && watched;
    match choose(settings.progress.value, redraws, term) {
        Progress::Live => {
            let directory = directory.clone();
            let last_line = move |job: &JobId| {
                let line = process::last_line(&process::output_log(&directory.job(job))).ok().flatten()?;
                match plan.runner_of(job).filter(|runner| runner.has_stream()) {
                    Some(runner) => crate::runner::shown(runner, &line),
                    None => Some(line),
                }
            };
            fan_out.with("live", Live::stderr(Box::new(last_line), offset, styles))
        }
        Progress::Plain | Progress::Auto => fan_out.with("plain", Plain::new(std::io::stderr(), offset, styles)),
        Progress::Json => fan_out.with("json", Jsonl::new(std::io::stdout())),
        Progress::None => fan_out,
    }
}

/// How many escalations are printed; the others are in the file.
const TOLD: usize = 3;

/// Keeps what a person has to decide, for whoever comes back the next morning.
fn keep_escalations(context: &Context, summary: &Summary, directory: &RunDirectory) {
    let texts: Vec<String> = summary.escalations.iter().map(Escalation::render).collect();
    let kept = match texts.as_slice() {
        [] => atomic::remove(&directory.escalations()),
        texts => atomic::write(&directory.escalations(), texts.join("\n---\n\n").as_bytes()),
    };
    if let Err(error) = kept {
        context.printer.note(format!("what is to be decided is printed below and not kept: {error}"));
    }
}

/// The table at the end, and what to type next. With JSON events on standard output it would be in the way there.
fn summarize(
    context: &Context,
    settings: &Settings,
    state: &StateDirectory,
    view: &RunView,
    started: &RunStarted,
) -> Result<(), CliError> {
    let (program, directory) = (state.program(), &state.run(&started.run_id));
    let summary = Summary::of(view, SummaryContext { now: now(), program: &program, held: false });
    keep_escalations(context, &summary, directory);
    if context.printer.format() == Format::Json {
        let mut value =
            serde_json::to_value(&summary).map_err(|error| CliError::new(ExitStatus::Failed, error.to_string()))?;
        if let [lane] = started.options.lanes.as_slice() {
            value["lane"] = serde_json::json!(lane);
        }
        return Ok(context.printer.json(&value)?);
    }
    let styles = styles_for(&std::io::stderr());
    let output = |job: &JobId| process::output_log(&directory.job(job));
    let looked_at = ci::service(settings, &context.environment) == Some(ci::Service::Github);
    let say = |text: String| context.printer.note(if looked_at { ci::without_commands(&text) } else { text });
    say(failures::failures(view, &output, 80, styles));
    for escalation in summary.escalations.iter().take(TOLD) {
        say(escalation.render());
    }
    if summary.escalations.len() > TOLD {
        let (more, place) = (summary.escalations.len() - TOLD, directory.escalations());
        context.printer.note(format!("{more} more of these: {}", place.display()));
    }
    say(summary.render(80, styles));
    Ok(())
}
