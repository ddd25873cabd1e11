//! `doctor`: finds damage in the state on disk, and repairs it.

mod credentials;
mod executor;
mod placed;
mod report;
mod sandbox;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use lanewright_engine::doctor::{Facts, Finding, Kind, RunFacts, Scope, Source, Tools, diagnose, scan};
use lanewright_engine::executor::crash::{CrashPoint, crash_point};
use lanewright_engine::rollback::{Asked, check_worktrees, plan as rollback_plan};
use lanewright_model::event::{Event, RunStarted};
use lanewright_model::text::shell_line;
use lanewright_model::{PhaseId, RunId};
use lanewright_schedule::RunState;
use lanewright_store::{Journal, LogError, RunLock};

use crate::cli::args;
use crate::cli::error::is_held;
use crate::cli::repository_context::check_directory;
use crate::cli::run::{PlanText, lock_phase, lock_resting_run, preflight, rollback_refusal};
use crate::cli::runs::existing;
use crate::cli::select::Selector;
use crate::cli::{CliError, Context, ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn run(context: &Context, arguments: &args::Doctor) -> Result<ExitStatus> {
    if let Some(name) = &arguments.executor {
        return executor::run(context, arguments, name);
    }
    let mut within = RepositoryContext::open(context, arguments.progress.layer())?;
    if arguments.run.is_none() && within.settings.log_path.value.is_some() {
        // Another path of the log is one run's only; the checkpoints of each run have it.
        let mut settings = within.settings.clone();
        settings.log_path.value = None;
        within = within.with_settings(settings);
    }
    let only =
        arguments.run.as_ref().map(|run| Selector::new(context, &within.state).named_or_lost(run)).transpose()?;
    let doctor = Doctor { within, only: only.as_ref() };
    let facts = doctor.facts(&BTreeSet::new())?;
    if let Some(run) = only.as_ref().filter(|_| facts.runs.is_empty()) {
        existing(&doctor.within.state, run)?;
    }
    let mut visit = match arguments.fix {
        true => doctor.repair(&facts)?,
        false => Visit { left: doctor.diagnose(&facts), ..Visit::default() },
    };
    visit.left.extend(placed::findings(&doctor.within, &facts));
    let credentials = credentials::credentials(&doctor.within)?;
    let sandbox = sandbox::sandbox(&doctor.within);
    report::report(context, &visit, arguments.fix, (&credentials, sandbox.as_ref()))?;
    Ok(match visit.left.iter().any(Finding::needs_action) {
        true if visit.held => ExitStatus::Held,
        true => ExitStatus::Corrupted,
        false => ExitStatus::Done,
    })
}

#[derive(Default)]
struct Visit {
    /// What was repaired or could not be, and the words for it.
    treated: Vec<(Finding, Result<String, String>)>,
    /// What is wrong now.
    left: Vec<Finding>,
    /// Whether something was not repaired because a live session has it.
    held: bool,
}

struct Doctor<'a> {
    within: RepositoryContext,
    /// `None`: all runs.
    only: Option<&'a RunId>,
}

impl Doctor<'_> {
    fn facts(&self, ours: &BTreeSet<RunId>) -> Result<Facts> {
        let read_source = |started: &RunStarted, lanes: &[String]| -> Option<Source> {
            let reading = PlanText::read_of_run(&self.within.settings, started, lanes.to_vec(), true).ok()?;
            let stored =
                |plan: lanewright_model::Plan| Arc::new(plan.without_secrets(self.within.settings.redacted_patterns()));
            Some((reading.sha256, reading.plan.map(stored)))
        };
        let _checking = self.within.activity("Checking the stored state");
        Ok(scan(&Scope {
            repository: &self.within.repository,
            state: &self.within.state,
            worktree_root: &self.within.settings.worktree_root.value,
            only: self.only,
            ours,
            read_source: &read_source,
        })?)
    }

    /// Repairs and looks again until there is nothing left that can be repaired.
    fn repair(&self, facts: &Facts) -> Result<Visit> {
        if let Some(run) = facts.runs.iter().find(|run| run.held && self.only.is_some()) {
            return Err(held(&run.run));
        }
        let mut visit = Visit { left: self.diagnose(facts), ..Visit::default() };
        let mut locks = Locks::default();
        loop {
            if locks.take(self, &mut visit)? {
                visit.left = self.diagnose(&self.facts(&locks.runs)?);
            }
            let due = due(&visit);
            if due.is_empty() {
                return Ok(visit);
            }
            let repairing = self.within.counted_activity("Repairing", due.len());
            for finding in due {
                let Some(repair) = finding.repair() else { continue };
                let tools = Tools {
                    repository: &self.within.repository,
                    now: now(),
                    record: &|log, events| self.record(log, events),
                    executor: &|started, plan| {
                        self.within.executor(started, plan).map_err(|error| CliError::from(error).one_line())
                    },
                };
                let done = repair.carry_out(&tools);
                let done = done.map_err(|error| CliError::from(anyhow::Error::from(error)).one_line());
                crash_point(CrashPoint::DoctorStep(finding.kind.word()));
                visit.treated.push((finding, done));
                repairing.advance();
            }
            drop(repairing);
            visit.left = self.diagnose(&self.facts(&locks.runs)?);
        }
    }

    /// Adds what a repair changes to the log of a run, whose lock is held.
    fn record(&self, log: &Path, events: &[Event]) -> Result<(), LogError> {
        let (mut journal, _) = Journal::open(log)?;
        events.iter().try_for_each(|event| journal.append(now(), event).map(drop))?;
        journal.sync()
    }

    /// What is wrong with the state, and what else would have a resume or a rollback refused.
    fn diagnose(&self, facts: &Facts) -> Vec<Finding> {
        let mut findings = diagnose(facts);
        if findings.iter().any(Finding::needs_action) {
            // The findings may be the reason for a refusal.
            return findings;
        }
        for run in facts.runs.iter().filter(|run| !run.held) {
            let Some(state) = run.expected.as_ref().filter(|it| !it.done()).and_then(|it| it.state.as_ref()) else {
                continue;
            };
            let left = state.plan().indices().filter(|lane| state.lane(*lane).is_left_to_do());
            let root = state.started().map(|started| started.options.worktree_root.as_path());
            let usable = root.map_or(Ok(()), check_directory);
            let resume = usable.and_then(|()| preflight(&self.within.context, state.plan(), left));
            let refused = |kind, error: anyhow::Error| {
                let error = CliError::from(error);
                Finding::refused(kind, run, error.message, &error.hints)
            };
            findings.extend(resume.err().map(|error| refused(Kind::ResumeRefused, error)));
            let rollback = self.check_rollback(run, state);
            findings.extend(rollback.err().map(|error| refused(Kind::RollbackRefused, error)));
        }
        findings
    }

    fn check_rollback(&self, run: &RunFacts, state: &RunState) -> Result<()> {
        let (Some(started), Some(records)) = (state.started(), run.log.certain()) else { return Ok(()) };
        let executor = self.within.executor(started, state.plan())?;
        let everything = Asked { lanes: &[], to: None };
        let refused = |error| rollback_refusal(error, &self.within.state, (started, state.plan()), (everything, &[]));
        let plan = rollback_plan(state, records, everything).map_err(refused)?;
        check_worktrees(&executor, &plan).map_err(refused)
    }
}

/// What is repaired next: findings that others may follow from come first.
fn due(visit: &Visit) -> Vec<Finding> {
    let is_new = |finding: &&Finding| visit.treated.iter().all(|(treated, _)| !treated.is_same(finding));
    let open: Vec<&Finding> = visit.left.iter().filter(|it| it.repair().is_some()).filter(is_new).collect();
    let rank = |finding: &Finding| match finding.kind {
        Kind::LogTorn | Kind::LogDamaged => 0,
        Kind::PlanMissing | Kind::PlanUnreadable | Kind::PlanMismatch => 1,
        Kind::BranchMissing => 2,
        Kind::ObjectsDamaged => 3,
        _ => 4,
    };
    let first = open.iter().map(|finding| rank(finding)).min();
    open.into_iter().filter(|finding| Some(rank(finding)) == first).cloned().collect()
}

/// Keep other processes from what is repaired.
#[derive(Default)]
struct Locks {
    runs: BTreeSet<RunId>,
    phases: BTreeSet<PhaseId>,
    held: Vec<RunLock>,
}

impl Locks {
    /// Locks every run in which something is to be repaired; whether one was locked that was not before.
    fn take(&mut self, doctor: &Doctor<'_>, visit: &mut Visit) -> Result<bool> {
        let wanted: BTreeSet<RunId> = due(visit).into_iter().filter_map(|finding| finding.run).collect();
        let mut locked = false;
        for run in wanted.difference(&self.runs.clone()) {
            match self.lock(doctor, run) {
                Ok(()) => locked = self.runs.insert(run.clone()),
                Err(error) if is_held(&error) && doctor.only.is_none() => {
                    visit.held = true;
                    let open = visit.left.iter().filter(|it| it.run.as_ref() == Some(run) && it.repair().is_some());
                    let reason = CliError::from(error).message;
                    let refused: Vec<_> = open.map(|it| (it.clone(), Err(reason.clone()))).collect();
                    visit.treated.extend(refused);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(locked)
    }

    /// Takes a run and the branches of its phase, which another run of the phase may have.
    fn lock(&mut self, doctor: &Doctor<'_>, run: &RunId) -> Result<()> {
        let within = &doctor.within;
        within.state.create()?;
        let directory = within.state.run(run);
        directory.create()?;
        let own = lock_resting_run(within, run).map_err(|error| held_instead(error, run))?;
        let facts = doctor.facts(&BTreeSet::from([run.clone()]))?;
        let started = facts.runs.iter().find(|it| it.run == *run).and_then(|it| it.expected.as_ref());
        if let Some(expected) = started.filter(|it| it.started.options.branch_suffix.is_empty()) {
            let phase = &expected.started.phase;
            // Several runs of a phase may need repair; its branches are ours after the first.
            if !self.phases.contains(phase) {
                self.held.push(lock_phase(within, phase, run).map_err(|error| held_instead(error, run))?);
                self.phases.insert(phase.clone());
            }
        }
        self.held.push(own);
        Ok(())
    }
}

/// The same message where another run of the phase holds the branches.
fn held_instead(error: anyhow::Error, run: &RunId) -> anyhow::Error {
    if is_held(&error) { held(run) } else { error }
}

fn held(run: &RunId) -> anyhow::Error {
    let message = format!("run {run}, or another one of its phase, is held by a live session, so it was not repaired");
    let stop = shell_line(["lanewright", "stop", run.as_str()]);
    ExitStatus::Held.error(message).hint(format!("to stop what it does: {stop}"))
}
