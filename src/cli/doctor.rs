//! `doctor`: what is wrong with the state on disk, and putting it right.

mod report;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::args::Doctor;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::execution::{PlanText, Site, check_directory, holder, lock_phase, now, ports, preflight};
use super::options::session_id;
use super::rollback;
use super::runs::existing;
use crate::engine::crash::{CrashPoint, crash_point};
use crate::event::RunStarted;
use crate::model::text::shell_line;
use crate::model::{PhaseId, RunId};
use crate::plan_source::ReadOptions;
use crate::recover::doctor::{Facts, Finding, Kind, Place, RunFacts, Source, SurveyError, diagnose, survey};
use crate::recover::rollback::{check_worktrees, plan as rollback_plan};
use crate::schedule::RunState;
use crate::settings::{Layer, Settings};
use crate::store::lock::LockError;
use crate::store::{RunLock, StateDirectory};

/// `doctor`.
pub(super) fn run(context: &Context, arguments: &Doctor) -> Result<ExitStatus, CliError> {
    let site = Site::find(context)?;
    let mut settings = context.layers(Layer::default())?.resolve(None);
    if arguments.run.is_none() {
        // Another place for the log is one run's only; where it was is told by the checkpoints of each.
        settings.log_path.value = None;
    }
    let practice = Practice {
        context,
        state: site.state(&settings),
        session_id: session_id(&settings),
        only: arguments.run.as_ref(),
        site,
        settings,
    };
    let facts = practice.look(&BTreeSet::new())?;
    if let Some(run) = arguments.run.as_ref().filter(|_| facts.runs.is_empty()) {
        existing(&practice.state, run)?;
    }
    let visit = match arguments.fix {
        true => practice.repair(&facts)?,
        false => Visit { left: practice.diagnose(&facts), ..Visit::default() },
    };
    report::report(context, &visit, arguments.fix)?;
    Ok(match visit.left.iter().any(Finding::needs_action) {
        true if visit.held => ExitStatus::Held,
        true => ExitStatus::Corrupted,
        false => ExitStatus::Done,
    })
}

/// What came of it.
#[derive(Default)]
struct Visit {
    /// What was repaired or could not be, and the words for it.
    treated: Vec<(Finding, Result<String, String>)>,
    /// What is wrong now.
    left: Vec<Finding>,
    /// Whether something was not repaired because a live session has it.
    held: bool,
}

/// Where the doctor works.
struct Practice<'a> {
    context: &'a Context,
    site: Site,
    settings: Settings,
    state: StateDirectory,
    session_id: String,
    only: Option<&'a RunId>,
}

impl Practice<'_> {
    fn look(&self, ours: &BTreeSet<RunId>) -> Result<Facts, CliError> {
        let read_source = |started: &RunStarted, lanes: &[String]| -> Option<Source> {
            let options = ReadOptions { unfinished: lanes, force: true, allow_unknown: true, ..ReadOptions::default() };
            let reading = PlanText::open_recorded(&started.plan_path).ok()?;
            let reading = reading.read(&self.settings, &options, started.options.plan_format);
            let stored = |plan: crate::model::Plan| Arc::new(plan.without_secrets(self.settings.redacted_patterns()));
            Some((reading.sha256, reading.plan.map(stored)))
        };
        Ok(survey(&Place {
            repository: &self.site.repository,
            state: &self.state,
            worktree_root: &self.settings.worktree_root.value,
            only: self.only,
            ours,
            read_source: &read_source,
        })?)
    }

    /// Repairs and looks again until there is nothing left that can be repaired.
    fn repair(&self, facts: &Facts) -> Result<Visit, CliError> {
        if let Some(run) = facts.runs.iter().find(|run| run.held && self.only.is_some()) {
            return Err(held(&run.run));
        }
        let mut visit = Visit { left: self.diagnose(facts), ..Visit::default() };
        let mut locks = Locks::default();
        loop {
            if locks.take(self, &mut visit)? {
                visit.left = self.diagnose(&self.look(&locks.runs)?);
            }
            let due = due(&visit);
            if due.is_empty() {
                return Ok(visit);
            }
            for finding in due {
                let Some(repair) = finding.repair() else { continue };
                let done = repair.carry_out(&self.site.repository, now()).map_err(|error| error.to_string());
                crash_point(CrashPoint::DoctorStep(finding.kind.word()));
                visit.treated.push((finding, done));
            }
            visit.left = self.diagnose(&self.look(&locks.runs)?);
        }
    }

    /// What is wrong with the state, and what else would have a resume or a rollback refused.
    fn diagnose(&self, facts: &Facts) -> Vec<Finding> {
        let mut findings = diagnose(facts);
        if findings.iter().any(Finding::needs_action) {
            // What has to be done first may be the reason for a refusal.
            return findings;
        }
        for run in facts.runs.iter().filter(|run| !run.held) {
            let Some(state) = run.expected.as_ref().filter(|it| !it.done).and_then(|it| it.state.as_ref()) else {
                continue;
            };
            let left = state.plan().indices().filter(|lane| state.lane(*lane).is_left_to_do());
            let root = state.started().map(|started| started.options.worktree_root.as_path());
            let usable = root.map_or(Ok(()), check_directory);
            let resume = usable.and_then(|()| preflight(self.context, state.plan(), left));
            let refused = |kind, error: CliError| Finding::refused(kind, run, error.message, &error.hints);
            findings.extend(resume.err().map(|error| refused(Kind::ResumeRefused, error)));
            let rollback = self.check_rollback(run, state);
            findings.extend(rollback.err().map(|error| refused(Kind::RollbackRefused, error)));
        }
        findings
    }

    fn check_rollback(&self, run: &RunFacts, state: &RunState) -> Result<(), CliError> {
        let (Some(started), Some(records)) = (state.started(), run.log.certain()) else { return Ok(()) };
        let directory = self.state.run(&run.run);
        let ports = ports(&self.site, &self.settings, started, state.plan(), directory)?;
        let told = |error| rollback::told(error, &self.state, (started, state.plan()), &[]);
        let plan = rollback_plan(state, records, &[]).map_err(told)?;
        check_worktrees(&ports, &plan).map_err(told)
    }
}

/// What is to be repaired next: what other findings may come from goes first.
fn due(visit: &Visit) -> Vec<Finding> {
    let is_new = |finding: &&Finding| visit.treated.iter().all(|(treated, _)| !treated.is_same(finding));
    let open: Vec<&Finding> = visit.left.iter().filter(|it| it.repair().is_some()).filter(is_new).collect();
    let rank = |finding: &Finding| match finding.kind {
        Kind::LogTorn | Kind::LogDamaged => 0,
        Kind::PlanMissing | Kind::PlanUnreadable | Kind::PlanMismatch => 1,
        Kind::BranchMissing => 2,
        _ => 3,
    };
    let first = open.iter().map(|finding| rank(finding)).min();
    open.into_iter().filter(|finding| Some(rank(finding)) == first).cloned().collect()
}

/// The locks that keep everybody else from what is repaired.
#[derive(Default)]
struct Locks {
    runs: BTreeSet<RunId>,
    phases: BTreeSet<PhaseId>,
    held: Vec<RunLock>,
}

impl Locks {
    /// Locks every run in which something is to be repaired; whether one was locked that was not before.
    fn take(&mut self, practice: &Practice<'_>, visit: &mut Visit) -> Result<bool, CliError> {
        let wanted: BTreeSet<RunId> = due(visit).into_iter().filter_map(|finding| finding.run).collect();
        let mut locked = false;
        for run in wanted.difference(&self.runs.clone()) {
            match self.lock(practice, run) {
                Ok(()) => locked = self.runs.insert(run.clone()),
                Err(error) if error.status == ExitStatus::Held && practice.only.is_none() => {
                    visit.held = true;
                    let open = visit.left.iter().filter(|it| it.run.as_ref() == Some(run) && it.repair().is_some());
                    let refused: Vec<_> = open.map(|it| (it.clone(), Err(error.message.clone()))).collect();
                    visit.treated.extend(refused);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(locked)
    }

    /// Takes a run and the branches of its phase, which another run of the phase may have.
    fn lock(&mut self, practice: &Practice<'_>, run: &RunId) -> Result<(), CliError> {
        practice.state.create()?;
        let directory = practice.state.run(run);
        directory.create()?;
        let (state, session_id) = (&practice.state, &practice.session_id);
        let own = match RunLock::acquire(&directory.lock(), &holder(state, session_id, run)) {
            Err(LockError::Held { .. }) => return Err(held(run)),
            taken => taken?,
        };
        let facts = practice.look(&BTreeSet::from([run.clone()]))?;
        let started = facts.runs.iter().find(|it| it.run == *run).and_then(|it| it.expected.as_ref());
        if let Some(expected) = started.filter(|it| it.started.options.branch_suffix.is_empty()) {
            let phase = &expected.started.phase;
            // Several runs of a phase may need repair; its branches are ours after the first.
            if !self.phases.contains(phase) {
                self.held.push(lock_phase(state, phase, run, session_id).map_err(|error| held_instead(error, run))?);
                self.phases.insert(phase.clone());
            }
        }
        self.held.push(own);
        Ok(())
    }
}

/// Whoever holds the branches keeps the run from being repaired.
fn held_instead(error: CliError, run: &RunId) -> CliError {
    if error.status == ExitStatus::Held { held(run) } else { error }
}

fn held(run: &RunId) -> CliError {
    let message = format!("run {run}, or another one of its phase, is held by a live session, so it was not repaired");
    let stop = shell_line(["lanekeeper", "stop", run.as_str()]);
    CliError::new(ExitStatus::Held, message).hint(format!("to stop what it does: {stop}"))
}

impl From<SurveyError> for CliError {
    fn from(error: SurveyError) -> Self {
        match error {
            SurveyError::Git(error) => error.into(),
            SurveyError::File(error) => error.into(),
        }
    }
}
