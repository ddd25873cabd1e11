//! `demo`: a real run in a scratch repository, with failures that are mended, a kill and a resume, told line by line.
//!
//! Nothing is acted: the same program is started as anybody would start it, what is told comes from its run log, from
//! the processes and from git, and whatever does not happen as told ends the demo with exit code 1.

mod claims;
mod interrupts;
mod lanekeeper;
mod observer;
mod scratch;
mod telling;

use std::os::unix::process::ExitStatusExt;

use super::args;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use crate::event::Record;
use crate::model::{JobId, Plan, ProcessId};
use crate::process::{self, Observation};
use crate::view::{Summary, SummaryContext};
use interrupts::Interrupts;
use lanekeeper::Lanekeeper;
use observer::Observer;
use scratch::Scratch;
use telling::{Telling, subject};

/// The lanes whose agents are at work when Lanekeeper is killed. The first finishes while nobody watches.
const LIVE: [&str; 3] = ["SEARCH", "API", "DOCS"];

/// Runs the demo.
pub(super) fn run(context: &Context, arguments: &args::Demo) -> Result<ExitStatus, CliError> {
    let telling = Telling::new(context.printer);
    let interrupts = Interrupts::watch()?;
    let plan = scratch::plan()?;
    let mut scratch = Scratch::make(&context.directory, arguments)?;
    match tell(&telling, &interrupts, &plan, &scratch) {
        Ok(()) => Ok(ExitStatus::Done),
        Err(error) if error.status == ExitStatus::Failed => {
            scratch.keep();
            Err(error.hint(format!("everything is kept in {}", scratch.directory().display())))
        }
        Err(error) => Err(error),
    }
}

fn tell(telling: &Telling, interrupts: &Interrupts, plan: &Plan, scratch: &Scratch) -> Result<(), CliError> {
    telling.step("scratch", &format!("a git repository in {}", scratch.repository().display()))?;
    telling.step("plan", &describe(plan))?;
    let mut observer = Observer::new(plan, scratch, telling, interrupts);
    let live = run_until_killed(telling, scratch, &mut observer)?;
    let supervisors: Vec<ProcessId> = live.iter().map(|(_, supervisor)| *supervisor).collect();
    finish_one_unseen(telling, scratch, &observer, &live)?;
    resume(telling, scratch, &mut observer, &live)?;
    observer
        .wait_until("every supervisor has ended", || Ok(!supervisors.iter().any(|supervisor| supervisor.is_alive())))?;
    for claim in claims::check(scratch, &observer.records)? {
        telling.step("checked", &claim)?;
    }
    conclude(telling, scratch, &observer)
}

/// `5 lanes, 6 agents: SCHEMA; API after SCHEMA; …`.
fn describe(plan: &Plan) -> String {
    let lane = |lane: &crate::model::Lane| {
        let before: Vec<&str> = lane.depends_on.iter().map(|&index| plan.lane(index).id.as_str()).collect();
        match before.as_slice() {
            [] => lane.id.to_string(),
            before => format!("{} after {}", lane.id, before.join(", ")),
        }
    };
    let agents: usize = plan.lanes.iter().map(|lane| lane.agents.len()).sum();
    let lanes: Vec<String> = plan.lanes.iter().map(lane).collect();
    format!("{} lanes, {agents} agents (shell scripts): {}", plan.lanes.len(), lanes.join("; "))
}

/// Starts the run, and kills it when an agent is at work in each of [`LIVE`]; tells who, and under which supervisor.
fn run_until_killed(
    telling: &Telling,
    scratch: &Scratch,
    observer: &mut Observer<'_>,
) -> Result<Vec<(JobId, ProcessId)>, CliError> {
    let arguments = ["execute-phase", "plan.toml", "--run-id", scratch::RUN, "--max-parallel", "4"];
    let mut lanekeeper = Lanekeeper::start(scratch, &arguments)?;
    telling.step("start", &lanekeeper.to_string())?;
    observer.follow("enough agents are at work", &mut lanekeeper, |records| {
        Ok(claims::waiting(scratch, records)?.len() == LIVE.len())
    })?;
    let live = claims::waiting(scratch, &observer.records)?;
    let pid = lanekeeper.pid();
    let status = lanekeeper.kill()?;
    if status.signal() != Some(rustix::process::Signal::KILL.as_raw()) {
        return Err(amiss(format!("process {pid} was to be killed and ended with {status}")));
    }
    telling.step("kill -9", &format!("process {pid} is dead; agents of {} were at work", LIVE.join(", ")))?;
    Ok(live)
}

/// Shows that the agents live on, and lets one of them finish while no Lanekeeper runs.
fn finish_one_unseen(
    telling: &Telling,
    scratch: &Scratch,
    observer: &Observer<'_>,
    live: &[(JobId, ProcessId)],
) -> Result<(), CliError> {
    let seen = |job: &JobId| process::observe(&scratch.run().job(job)).map_err(|error| amiss(error.to_string()));
    for (job, supervisor) in live {
        if seen(job)? != Observation::Running(*supervisor) || !supervisor.is_alive() {
            return Err(amiss(format!("the supervisor {} of {job} died with Lanekeeper", supervisor.pid)));
        }
        telling.step("alive", &format!("{}: works on under supervisor {}", subject(job), supervisor.pid))?;
    }
    let Some((job, _)) = claims::of_lane(live, LIVE[0]) else { return Err(amiss(format!("{} does nothing", LIVE[0]))) };
    scratch.release(LIVE[0])?;
    observer.wait_until("an agent ends unseen", || Ok(matches!(seen(job)?, Observation::Exited(_))))?;
    match seen(job)? {
        Observation::Exited(exit) if exit.passed() => telling
            .step("unseen", &format!("{}: finishes while no Lanekeeper runs; its exit waits on disk", subject(job))),
        other => Err(amiss(format!("{job} was to succeed and did not: {other:?}"))),
    }
}

/// Takes the run up again, lets the other agents finish once they are watched, and sees the run to its end.
fn resume(
    telling: &Telling,
    scratch: &Scratch,
    observer: &mut Observer<'_>,
    live: &[(JobId, ProcessId)],
) -> Result<(), CliError> {
    let before = observer.records.len();
    let mut lanekeeper = Lanekeeper::start(scratch, &["resume"])?;
    telling.step("resume", &lanekeeper.to_string())?;
    let taken_up = |records: &[Record]| Ok(claims::is_taken_up(&records[before..], live.len()));
    observer.follow("the resume takes up what was at work", &mut lanekeeper, taken_up)?;
    for (step, claim) in claims::taken_up(&observer.records[before..], live)? {
        telling.step(step, &claim)?;
    }
    LIVE[1..].iter().try_for_each(|lane| scratch.release(lane))?;
    observer.follow("the run ends", &mut lanekeeper, |records| Ok(claims::is_finished(records)))?;
    observer.wait_until("the process ends", || Ok(lanekeeper.ended()?.is_some()))?;
    match lanekeeper.ended()? {
        Some(status) if status.success() => Ok(()),
        status => Err(amiss(format!("{lanekeeper} ended with {status:?}:\n{}", lanekeeper.last_words()))),
    }
}

/// What is there now, and where.
fn conclude(telling: &Telling, scratch: &Scratch, observer: &Observer<'_>) -> Result<(), CliError> {
    telling.step("graph", "git log --graph --oneline main")?;
    telling.block("graph", &scratch.git(&["log", "--graph", "--oneline", telling.git_colour(), "main"])?)?;
    telling.step("status", &format!("lanekeeper status {}", scratch::RUN))?;
    let (program, view) = (["lanekeeper".to_owned()], &observer.view);
    if let Some(last) = view.run.last {
        let summary = Summary::of(view, SummaryContext { now: last, program: &program, held: false });
        telling.block("status", &summary.render(100, telling.styles()))?;
    }
    if scratch.is_kept() {
        for (what, path) in scratch.places() {
            telling.step("look at", &format!("{what}: {}", path.display()))?;
        }
        telling.step("look at", "every snapshot, ref and worktree: git is the only place where work is kept")?;
        return telling.step("done", "every step happened as told");
    }
    telling.step("done", "every step happened as told; the scratch repository is removed (--keep leaves it to look at)")
}

/// Something did not happen as told.
fn amiss(what: impl Into<String>) -> CliError {
    CliError::new(ExitStatus::Failed, format!("the demo did not go as told: {}", what.into()))
}
