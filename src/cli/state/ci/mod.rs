//! `ci`: a job of a CI service, which continues what an earlier one began and may be cut off at any moment.
//!
//! The state on the remote is all that jobs share. A job takes the runs of its plan and of no other from there, and removes
//! them when their work is on the remote's branch.

mod answers;
mod branch;
mod publication;
mod service;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use lanewright_engine::state_sync::{Manifest, Offer, StateSyncError, check, fetch, offers, state_reference};
use lanewright_git::Remote;
use lanewright_model::event::{LaneStage, Record, RunOutcome};
use lanewright_model::{RunId, Timestamp};
use lanewright_plan::settings::{Layer, Origin, Setting};
use lanewright_programs::forge::Forge;
use lanewright_store::run_log;
use lanewright_view::RunHistory;
use lanewright_view::history::{LaneHistory, LaneState};

use self::answers::Answers;
use self::branch::{Conflict, join, leave_detached_head, update};
use self::service::{Input, Service};
use super::publish::{Published, merged_pull_request};
use super::{REMOTE, pull, push};
use crate::cli::args::{self, ReadingArgs};
use crate::cli::look::report::ci::summarize;
use crate::cli::run::{
    Adoption, PhaseRest, PlanReader, PlannedPhase, ResumeReach, RunRequest, execute_plans, forge_settings, resume_with,
};
use crate::cli::runs::{named_few, require_plan, started, unfinished};
use crate::cli::{CliError, Context, ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn run(context: &Context, arguments: &args::Ci) -> Result<ExitStatus> {
    let job = Job::open(context, arguments)?;
    job.work().map_err(|error| {
        let run = job.latest();
        job.service.in_its_words(CliError::from(error), run.as_ref()).into()
    })
}

struct Job<'a> {
    context: &'a Context,
    arguments: &'a args::Ci,
    within: RepositoryContext,
    remote: Remote,
    service: Service,
    began: Timestamp,
    /// When the job has to end.
    deadline: Option<Instant>,
    /// What this job has published.
    published: RefCell<BTreeMap<RunId, Published>>,
}

/// A run of the plan with which there is something to do.
struct OpenRun<'p> {
    run: RunId,
    phase: &'p PlannedPhase,
    /// As the remote has it; `None`: only this clone has it.
    pushed: Option<Manifest>,
}

impl OpenRun<'_> {
    fn is_done(&self) -> bool {
        self.pushed.as_ref().is_some_and(Manifest::is_done)
    }
}

impl<'a> Job<'a> {
    fn open(context: &'a Context, arguments: &'a args::Ci) -> Result<Self> {
        let within = RepositoryContext::open_for_work(context, arguments.control.layer())?;
        let named = within.settings.state_remote.value.as_deref();
        let remote = Remote::named(&within.repository, named.unwrap_or(REMOTE))?;
        let service = Service::of(&within.settings, &context.environment, arguments);
        let limit: Option<Duration> = arguments.timeout.flatten();
        let deadline = limit.map(|limit| Instant::now() + limit);
        let (began, published) = (now(), RefCell::default());
        Ok(Self { context, arguments, within, remote, service, began, deadline, published })
    }

    /// The settings of what this job runs: its state is pushed, and it ends with the job.
    fn layer(&self) -> Layer {
        let state_remote = Setting::new(Some(self.remote.name().to_owned()), Origin::Flag("--state-remote"));
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A limit of zero is none.
        let left = left.map(|left| Setting::new(Some(left.max(Duration::from_secs(1))), Origin::Flag("--timeout")));
        Layer { state_remote: Some(state_remote), timeout: left, ..self.arguments.control.layer() }
    }

    fn answers(&self) -> Answers<'_> {
        Answers { within: &self.within, arguments: self.arguments, service: &self.service }
    }

    fn note(&self, text: impl std::fmt::Display) {
        self.context.printer.note(text);
    }

    fn work(&self) -> Result<ExitStatus> {
        self.answers().check()?;
        if self.remote.is_shallow_here()? {
            return Err(StateSyncError::Shallow.into());
        }
        if self.remote.is_filtered_here()? {
            let message = "this clone was made with a filter, so files are missing that merges and states need";
            return Err(ExitStatus::Blocked
                .error(message)
                .hint("clone without --filter (in GitHub Actions: without `filter` at actions/checkout)"));
        }
        leave_detached_head(&self.within, &self.service)?;
        let plans = PlanReader::new(self.context, self.layer())?;
        for base in bases(&plans.phases(&self.arguments.plan)?) {
            update(&self.within, &self.remote, &base).map_err(|error| self.in_conflict(error, None))?;
        }
        // The branch may have brought another text of the plan.
        let phases = plans.phases(&self.arguments.plan)?;
        let status = self.run_all(&plans, &phases)?;
        let status = self.push_all(&phases, status)?;
        if status == ExitStatus::Done {
            return self.publish(&plans, &phases);
        }
        self.say_what_is_next(&phases)?;
        Ok(match status {
            ExitStatus::TimedOut if self.deadline.is_some() => {
                self.note("The time of this job is over; the next one continues the run.");
                ExitStatus::NotOffered
            }
            status => status,
        })
    }

    /// Finishes what earlier jobs began, then runs what is left of the plan.
    fn run_all(&self, plans: &PlanReader, phases: &[PlannedPhase]) -> Result<ExitStatus> {
        let (mut to_resume, mut is_resumed) = (Vec::new(), false);
        for open in self.open_runs(plans, phases)? {
            if let Some(pushed) = &open.pushed
                && !self.take(plans, &open, pushed)?
            {
                continue;
            }
            if open.is_done() {
                // Its job died before it published that.
                self.publish(plans, phases)?;
                let status = self.follow(&open.run)?;
                if status != ExitStatus::Done {
                    return Ok(status);
                }
            } else {
                to_resume.push(open.run);
            }
        }
        let answers = self.answers();
        match to_resume.as_slice() {
            [] => answers.report_unused(),
            runs => answers.refuse_unknown(runs)?,
        }
        for run in &to_resume {
            let status = self.resume(run)?;
            if status != ExitStatus::Done {
                return Ok(status);
            }
            is_resumed = true;
        }
        let plan: &Path = &self.arguments.plan;
        let is_roadmap = plans.is_roadmap(plan)?;
        if is_resumed && !is_roadmap {
            return Ok(ExitStatus::Done);
        }
        // A roadmap without an open phase is refused.
        let rest = phases.iter().map(|phase| plans.left_of(phase)).collect::<Result<Vec<_>>>()?;
        if is_roadmap && rest.iter().all(|rest| *rest == PhaseRest::Nothing) {
            self.note(format!("Every phase of {} is done.", plan.display()));
            return Ok(ExitStatus::Done);
        }
        execute_plans(self.context, (plan, &[]), self.layer(), &ReadingArgs::default(), RunRequest::default())
    }

    /// The runs of these phases with which there is something to do, in the order of the phases. What other plans have on
    /// the remote is left alone.
    fn open_runs<'p>(&self, plans: &PlanReader, phases: &'p [PlannedPhase]) -> Result<Vec<OpenRun<'p>>> {
        let (here, offers) = (unfinished(&self.within.state)?, self.offers()?);
        let mut open = Vec::new();
        for phase in phases {
            let mut found = self.pushed_runs(phase, &offers)?;
            let is_known = |run: &RunId, found: &[OpenRun<'_>]| found.iter().any(|open| open.run == *run);
            for (run, started) in &here {
                if phase.is_phase_of_run(started) && !is_known(run, &found) {
                    found.push(OpenRun { run: run.clone(), phase, pushed: None });
                }
            }
            if !found.is_empty() && plans.left_of(phase)? == PhaseRest::Nothing {
                let names: Vec<&str> = found.iter().map(|open| open.run.as_str()).collect();
                let message = format!("{} has all lanes of phase {}; not continued: ", phase.base, phase.phase);
                self.note(message + &names.join(", "));
                continue;
            }
            let unfinished: Vec<&str> =
                found.iter().filter(|open| !open.is_done()).map(|open| open.run.as_str()).collect();
            if unfinished.len() > 1 {
                let message =
                    format!("phase {} has {} unfinished runs on {}", phase.phase, unfinished.len(), phase.base);
                let names = named_few(unfinished.iter().copied());
                let drop = format!("lanewright state drop RUN --remote {} --force", self.remote.name());
                let error = ExitStatus::Usage.error(message).hint(format!("the runs: {names}"));
                return Err(error.hint(format!("remove all but one, on your machine: {drop}")));
            }
            // What is done comes first: the others may build on it.
            found.sort_by_key(|open| !open.is_done());
            open.append(&mut found);
        }
        if open.is_empty() {
            let names: Vec<&str> = phases.iter().map(|phase| phase.phase.as_str()).collect();
            self.note(format!(
                "{} has no unfinished run of phase {}.",
                self.remote.name(),
                named_few(names.into_iter())
            ));
        }
        Ok(open)
    }

    fn offers(&self) -> Result<Vec<Offer>> {
        let _looking = self.within.activity(format_args!("Looking for runs on {}", self.remote.name()));
        Ok(offers(&self.within.repository, &self.remote)?)
    }

    fn pushed_runs<'p>(&self, phase: &'p PlannedPhase, offers: &[Offer]) -> Result<Vec<OpenRun<'p>>> {
        let mut found = Vec::new();
        for offer in offers {
            let manifest = match &offer.manifest {
                Ok(manifest) if phase.is_phase_of(manifest) => manifest.clone(),
                // A new run beside it would pay its lanes again.
                Err(_) if phase.may_have_named(&offer.run) => {
                    return Err(self.unreadable(&offer.run));
                }
                Ok(_) | Err(_) => continue,
            };
            if pull::is_open(&self.within, &manifest)? || self.is_known_by_its_state_only(&manifest)? {
                found.push(OpenRun { run: offer.run.clone(), phase, pushed: Some(manifest) });
            }
        }
        Ok(found)
    }

    /// Whether a run is done, and no commit here says that: without its log its lanes would run again.
    fn is_known_by_its_state_only(&self, pushed: &Manifest) -> Result<bool> {
        let repository = &self.within.repository;
        let Some(here) = repository.branch_commit(&pushed.base_branch)? else { return Ok(false) };
        Ok(pushed.placed_by.is_none() && pushed.is_done() && !pushed.is_told_by(repository, &here)?)
    }

    /// Why the state of a run cannot be read.
    fn unreadable(&self, run: &RunId) -> anyhow::Error {
        let error = match fetch(&self.within.repository, &self.remote, run) {
            Err(error) => error,
            Ok(_) => {
                return ExitStatus::Held.error(format!("run {run} was pushed just now")).hint("repeat the command");
            }
        };
        let is_newer = matches!(error, StateSyncError::NewerFormat { .. });
        let error = anyhow::Error::from(error);
        match is_newer {
            true => error.hint("in the workflow: LANEWRIGHT_VERSION"),
            false => error.hint(format!(
                "without Lanewright: git push {} --delete {}; the next job then starts the phase",
                self.remote.name(),
                state_reference(run)
            )),
        }
    }

    /// Brings a run from the remote into this clone, together with what was pushed to its branch meanwhile; `false`: it is
    /// not needed any more.
    fn take(&self, plans: &PlanReader, open: &OpenRun<'_>, pushed: &Manifest) -> Result<bool> {
        let (run, base) = (&open.run, &open.phase.base);
        let received = fetch(&self.within.repository, &self.remote, run)?;
        let directory = self.within.state.run(run);
        if let Err(StateSyncError::Diverged { .. }) =
            check(&self.within.repository, &self.remote, &directory, &received)
            && let Some(here) = self.within.repository.branch_commit(base)?
        {
            let message = format!("Merge the lanes of run {run} into {base}");
            match join(&self.within, base, [&here, &received.manifest.integration], &message) {
                Err(error) if error.is::<Conflict>() && plans.left_of(open.phase)? != PhaseRest::Lanes => {
                    let message = format!("run {run} is not continued: {error}");
                    let hint =
                        format!("{base} has all lanes of the phase; to remove it: lanewright state drop {run} --force");
                    self.context.printer.warning(message, &[hint]);
                    return Ok(false);
                }
                Err(error) if error.is::<Conflict>() && self.is_merged_on_forge(&received.manifest)? => {
                    self.within.prepare(&self.within.settings.worktree_root.value)?;
                    directory.create()?;
                    directory.note_publication(&here)?;
                }
                Err(error) => return Err(self.in_conflict(error, Some(run))),
                Ok(()) => self
                    .note(format!("{base} has moved: what was pushed to it and the lanes of run {run} were joined.")),
            }
        }
        let (_, restored) = pull::pull(&self.within, &self.remote, run)?;
        if restored.is_some() {
            self.note(format!("Continuing run {run}, as {} left it at {}.", pushed.host, pushed.at));
        }
        Ok(true)
    }

    /// Whether the forge has merged the pull request of a run that is done. What was changed in the branch since may conflict
    /// with the run's own commits.
    fn is_merged_on_forge(&self, pushed: &Manifest) -> Result<bool> {
        let forge = Forge::ready(forge_settings(&self.within, &self.remote)?).ok().filter(|_| pushed.is_done());
        let Some(forge) = forge else { return Ok(false) };
        let work = (pushed.base_branch.as_str(), &pushed.integration);
        Ok(merged_pull_request(&forge, &self.within.repository, &pushed.run_id, work)?.is_some())
    }

    /// A conflict, with what to do about it on a machine of the user's.
    fn in_conflict(&self, error: anyhow::Error, run: Option<&RunId>) -> anyhow::Error {
        let Some(Conflict { branch, commit, .. }) = error.downcast_ref() else { return error };
        let remote = self.remote.name();
        let fetch = run.map(|run| format!("git fetch {remote} {} && ", state_reference(run))).unwrap_or_default();
        let merge = format!("git switch {branch} && git pull && {fetch}git merge {commit}");
        let blocked = ExitStatus::Blocked.error(format!("{error}; nothing was changed"));
        blocked.hint(format!(
            "on your machine: {merge}; resolve the conflict, commit, git push {remote} {branch}; then {}",
            self.service.again(&[])
        ))
    }

    fn resume(&self, run: &RunId) -> Result<ExitStatus> {
        let adoption = self.answers().record(run)?;
        let resume = |adoption: &_| {
            let within = RepositoryContext::open_for_work(self.context, self.layer())?;
            resume_with(&within, run, adoption, self.layer())
        };
        let status = resume(&adoption)?;
        let is_partial = matches!(adoption.reach, ResumeReach::Retry(..));
        let is_over = !matches!(status, ExitStatus::Done | ExitStatus::Failed | ExitStatus::Blocked);
        if !is_partial || is_over || !self.can_continue(run)? {
            return Ok(status);
        }
        let rest = Adoption { reach: ResumeReach::Unfailed, message: String::new(), ..adoption };
        resume(&rest)
    }

    /// Has the lanes of a run that is done continue whose pull requests were sent back since, where they are followed.
    fn follow(&self, run: &RunId) -> Result<ExitStatus> {
        let (_, view) = self.history(run)?;
        let is_open = |lane: &LaneHistory| {
            lane.pull_request.is_some() && lane.pull_request_status.as_ref().is_none_or(|status| !status.is_closed())
        };
        let Some(time) = self.within.settings.follow.value.filter(|_| view.lanes().iter().any(is_open)) else {
            return Ok(ExitStatus::Done);
        };
        let within = RepositoryContext::open_for_work(self.context, self.layer())?;
        let adoption = Adoption { reach: ResumeReach::Followed, follow: Some(time), ..Adoption::default() };
        resume_with(&within, run, &adoption, self.layer())
    }

    /// Whether lanes of the run are neither done nor waiting for an answer or a retry.
    fn can_continue(&self, run: &RunId) -> Result<bool> {
        let (records, view) = self.history(run)?;
        let is_over =
            records.last().is_none_or(|record| record.event.facts().run_outcome == Some(Some(RunOutcome::Done)));
        let waits = |lane: &LaneHistory| {
            matches!(lane.state, LaneState::Waiting | LaneState::Stopped | LaneState::Starting | LaneState::Running)
        };
        Ok(!is_over && view.lanes().iter().any(waits))
    }

    fn history(&self, run: &RunId) -> Result<(Vec<Record>, RunHistory)> {
        let directory = self.within.state.run(run);
        let (plan, records) = (require_plan(run, &directory)?, run_log::read(&directory.log())?.records);
        let view = RunHistory::for_plan(&plan).after(records.iter());
        Ok((records, view))
    }

    /// The runs of a phase that this clone has, the newest first.
    fn runs_of(&self, phase: &PlannedPhase) -> Result<Vec<(RunId, Vec<Record>)>> {
        let mut runs = Vec::new();
        for (_, run) in self.within.state.runs_of(&phase.phase)? {
            let records = run_log::read(&self.within.state.run(&run).log())?.records;
            if started(&records).is_some_and(|started| phase.is_phase_of_run(started)) {
                runs.push((run, records));
            }
        }
        Ok(runs)
    }

    fn is_of_this_job(&self, records: &[Record]) -> bool {
        records.last().is_some_and(|record| record.at >= self.began)
    }

    /// The runs of these phases that this job worked on, the newest first.
    fn worked_on(&self, phases: &[PlannedPhase]) -> Result<Vec<RunId>> {
        let mut worked = Vec::new();
        for phase in phases {
            let of_job = self.runs_of(phase)?.into_iter().filter(|(_, records)| self.is_of_this_job(records));
            worked.extend(of_job.map(|(run, _)| run));
        }
        Ok(worked)
    }

    fn latest(&self) -> Option<RunId> {
        unfinished(&self.within.state).ok()?.into_iter().map(|(run, _)| run).next()
    }

    /// Pushes the newest state of what this job worked on. What is published must be in the state that others see.
    fn push_all(&self, phases: &[PlannedPhase], status: ExitStatus) -> Result<ExitStatus> {
        for run in self.worked_on(phases)? {
            let Err(error) = push::push(&self.within, &self.remote, &run, false) else { continue };
            if let Some(StateSyncError::Superseded { host, .. } | StateSyncError::Claimed { host, .. }) =
                error.downcast_ref()
            {
                let message =
                    format!("run {run} was continued by another job, on {host}, so what this job did is not kept");
                let error = ExitStatus::Held.error(message);
                return Err(error.hint(
                    "run one job for a plan and a branch at a time; the next one continues the other job's run",
                ));
            }
            if status == ExitStatus::Done {
                return Err(error);
            }
            let error = CliError::from(error);
            self.context
                .printer
                .warning(format!("the end of run {run} was not pushed: {}", error.message), &error.hints);
        }
        Ok(status)
    }

    /// What users can do about lanes that wait for them, where they read this.
    fn say_what_is_next(&self, phases: &[PlannedPhase]) -> Result<()> {
        let mut lines = Vec::new();
        for run in self.worked_on(phases)? {
            let (_, view) = self.history(&run)?;
            let next: Vec<String> = view.lanes().iter().flat_map(|lane| self.next_of(&run, lane)).collect();
            let elsewhere = self.service.elsewhere(&run).filter(|_| !next.is_empty());
            lines.extend(next.into_iter().chain(elsewhere));
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.note(format!(
            "\nWhat you can do:\n{}",
            lines.iter().map(|line| format!("  {line}\n")).collect::<String>()
        ));
        let list: String = lines.iter().map(|line| format!("- {line}\n")).collect();
        summarize(self.context, |room| {
            let text = format!("\n### What you can do\n\n{list}");
            if text.len() <= room { text } else { String::new() }
        });
        Ok(())
    }

    fn next_of(&self, run: &RunId, lane: &LaneHistory) -> Vec<String> {
        let id = lane.id.as_str();
        let reject = [(Input::Reject, id), (Input::Message, "what to change")];
        let answer = self.service.again_or(&[(Input::Approve, id)], &reject);
        match lane.state {
            LaneState::NeedsApproval(what) => {
                let mut lines = vec![format!("{id} waits for the approval of its {what}: {answer}")];
                lines.extend(
                    self.difference(run, lane).map(|diff| format!("to see its changes, on your machine: {diff}")),
                );
                lines
            }
            LaneState::NeedsPerson => vec![format!("{id} waits for you; when it is done: {answer}")],
            // What only waits for another lane is not retried itself.
            LaneState::Blocked if lane.stage == LaneStage::Waiting && !lane.depends_on.is_empty() => Vec::new(),
            LaneState::Failed | LaneState::Blocked => {
                let why = if lane.state == LaneState::Failed { "failed" } else { "is blocked" };
                vec![format!("{id} {why}: {}", self.service.again(&[(Input::Retry, id)]))]
            }
            _ => Vec::new(),
        }
    }

    /// The command that shows a lane's changes to those who have no more than the remote.
    fn difference(&self, run: &RunId, lane: &LaneHistory) -> Option<String> {
        let worktree = lane.workplace.worktree.as_ref()?;
        let commit = self.within.repository.branch_commit(&worktree.branch).ok()??;
        let base = self.history(run).ok()?.1.run.base_branch().to_string();
        let (remote, state) = (self.remote.name(), state_reference(run));
        Some(format!("git fetch {remote} {base} {state} && git diff {remote}/{base}...{commit}"))
    }
}

/// The branches that lanes of these phases are merged into, each once.
fn bases(phases: &[PlannedPhase]) -> Vec<String> {
    let mut bases: Vec<String> = phases.iter().map(|phase| phase.base.clone()).collect();
    bases.dedup();
    bases
}
