//! Jobs: prepared, launched under a supervisor, waited for.

mod base;
mod brief;
mod by_hand;
mod gate;
mod git_directory;
mod hints;
mod inroads;
mod linked_directories;
mod manifests;
mod output;
mod outside;
mod prepare;
mod python;
mod snapshots;
mod surroundings;
mod walls;

use std::path::Path;
use std::sync::Arc;

use lanewright_agents::diagnose;
use lanewright_files::timing::TARGET;
use lanewright_files::{FileError, atomic, directory};
use lanewright_git as git;
use lanewright_model::event::{AgentReport, Event, Reading};
use lanewright_model::{ExitCause, JobExit, JobId, JobSpec, Timestamp, Transcript};
use lanewright_programs::process::{self, Observation};
use lanewright_schedule::RunState;
use lanewright_store::lane_files;

use super::timed::job_span;
use super::{Executor, ExecutorError, LaneContext, Prepared, Result, Task};
pub use base::BaseGates;
use base::diagnosis_of;
pub use brief::{BriefFiles, messages, report_left};
pub use by_hand::Judgement;
use gate::judges_lane;
use prepare::PreparedJob;
pub use surroundings::Surroundings;
pub use walls::Walls;

impl Executor {
    /// Clears the place of a job that is about to be planned.
    pub(crate) fn make_room(&self, job: &JobId) -> Result<(), FileError> {
        process::make_room(&self.run.job(job))
    }

    /// Starts the job unless it was started before, in this life of the run or an earlier one, and waits for its end.
    pub(super) fn run_job(self: &Arc<Self>, job: &JobId, state: &RunState) -> Prepared {
        let prepared = match self.prepare_job(job, state) {
            Ok(prepared) => prepared,
            // Without the job's end it would be wanted again for ever.
            Err(error) => {
                let events = blocked_job(job.clone(), &error, self.clock.now());
                return Ok(Box::new(move |_| events));
            }
        };
        let mut context =
            job.lane.as_ref().and_then(|lane| state.find(lane)).map(|lane| self.lane_context(lane, state));
        // What is prepared for the job itself is done before it runs.
        let own = context.iter_mut().flat_map(|context| &mut context.holdings);
        own.filter(|own| own.worktree.path == prepared.spec.directory).for_each(|own| own.busy = false);
        let (executor, job) = (self.clone(), job.clone());
        Ok(Box::new(move |emit| match executor.run_to_end(&job, &prepared, context.as_ref(), emit) {
            Ok((mut exit, report)) => {
                let (mut transcript, said) = executor.read_stream(&job, &mut exit, prepared.session.as_ref());
                let mut reading = executor.read_output(&job, &prepared.spec, &exit, (transcript.as_ref(), &said));
                // A failure has both, and shows the words of an outage once.
                if let (Some(Reading::Outage(outage)), Some(transcript)) = (&reading, &mut transcript)
                    && !transcript.error.is_empty()
                {
                    let others = transcript.error.lines().filter(|line| !outage.line.contains(line.trim()));
                    transcript.error =
                        std::iter::once(outage.line.as_str()).chain(others).collect::<Vec<_>>().join("\n");
                }
                if let Some(gate) = &prepared.base_gate {
                    let failed = (&exit, prepared.spec.directory.as_path());
                    executor.compare_with_base(&job, gate, failed, &mut reading, emit);
                }
                if !job.is_attempt() {
                    executor.add_hints(&mut exit);
                }
                let reading = reading.map(Box::new);
                vec![Event::JobExited { job, exit, report, reading, transcript: transcript.map(Box::new) }]
            }
            Err(error) => blocked_job(job, &error, executor.clock.now()),
        }))
    }

    fn run_to_end(
        &self,
        job: &JobId,
        prepared: &PreparedJob,
        context: Option<&LaneContext>,
        emit: &dyn Fn(Event),
    ) -> Result<(JobExit, Option<AgentReport>)> {
        let directory = self.run.job(job);
        let seen = process::observe(&directory)?;
        let worktree = &prepared.spec.directory;
        let mut before = None;
        let launched = match seen {
            Observation::Absent | Observation::Planned => {
                self.prepare_workplace(job, worktree, context, emit)?;
                before = prepared
                    .gate_worktree
                    .as_ref()
                    .filter(|gate_worktree| !gate_worktree.clean)
                    .map(|_| git::uncommitted(worktree));
                git::forget_uncommitted(worktree)?;
                // Else they lie there, and a supervisor that an earlier Lanewright launched may be about to use them.
                if seen == Observation::Absent {
                    match context {
                        Some(context) => self.retry_with_repairs(context, emit, || self.write_files(prepared))?,
                        None => self.write_files(prepared)?,
                    }
                }
                if job.is_attempt() {
                    self.shared_before.wait();
                }
                if (seen == Observation::Absent || git::private_git_directory(worktree).is_none())
                    && let Err(error) = self.give_git_directory(job, worktree)
                {
                    // Another program removed the worktree since it was looked at.
                    tracing::debug!("{job} gets no git directory: {error}");
                    self.prepare_workplace(job, worktree, context, emit)?;
                    self.give_git_directory(job, worktree)?;
                }
                let launched = tracing::debug_span!(target: TARGET, "launch")
                    .in_scope(|| self.launch(&directory, &prepared.spec))?;
                emit(Event::JobStarted { job: job.clone(), supervisor: launched.supervisor() });
                Some(launched)
            }
            // An earlier Lanewright may have died before it recorded what it saved for the job.
            Observation::Running(supervisor) => {
                self.record_put_aside(job, context, emit)?;
                emit(Event::JobStarted { job: job.clone(), supervisor });
                None
            }
            Observation::Starting | Observation::Exited(_) | Observation::Lost(_) => {
                self.record_put_aside(job, context, emit)?;
                None
            }
        };
        let mut exit = job_span(job, || self.wait_and_watch(&directory, launched, prepared.watched.as_ref(), emit))?;
        self.take_git_directory(job, worktree, context, &mut exit, emit)?;
        if let Err(error) = self.repository.restore_worktree_setting() {
            tracing::debug!("what {job} made of git's settings is not known: {error}");
        }
        if let Some(gate_worktree) = &prepared.gate_worktree
            && let Err(error) = self.note_generated(worktree, gate_worktree, before)
        {
            tracing::debug!("what {job} left in {} is not known: {error}", worktree.display());
        }
        // The lane may come to rest now, and a person change what was judged.
        if judges_lane(job)
            && let Err(error) = git::note_uncommitted(worktree)
        {
            tracing::debug!("what is uncommitted in {} is not known: {error}", worktree.display());
        }
        if let Some(lane) = context.map(|context| context.lane).filter(|_| job.is_attempt() && exit.passed())
            && let Err(error) = self.save_summaries(lane, worktree)
        {
            emit(self.note(lane, format!("the summary in {} cannot be saved: {error}", worktree.display())));
        }
        if job.is_attempt() {
            self.keep_outside_calls(job, worktree)?;
        }
        if let Some(lane) = context.map(|context| context.lane).filter(|_| job.is_attempt() && !exit.passed()) {
            // Of what passed, the commit of its work says it.
            let calls = self.outside_calls(job);
            let said = |call| format!("{job} changed another checkout of the repository: {call}");
            calls.iter().for_each(|call| emit(self.note(lane, said(call))));
        }
        // A supervisor that died while no Lanewright ran died with the machine, not because of its agent.
        if exit.cause == ExitCause::Lost && matches!(seen, Observation::Lost(_)) {
            exit.cause = ExitCause::Stopped;
        }
        let report = prepared.files.as_ref().and_then(|(files, _)| read_report(files, &exit));
        Ok((exit, report))
    }

    /// Makes sure that the worktree exists, has a commit checked out, and, for gates, has no other contents.
    fn prepare_workplace(
        &self,
        job: &JobId,
        workplace: &Path,
        context: Option<&LaneContext>,
        emit: &dyn Fn(Event),
    ) -> Result<()> {
        let Some(context) = context else {
            self.repository.refuse_foreign_worktree(workplace)?;
            self.repository.refill_if_emptied(workplace)?;
            self.repository.refuse_missing_branch(workplace)?;
            self.copy_ignored(job, workplace, emit)?;
            return self.refuse_inroads(job, workplace);
        };
        if job.is_attempt() && job.number > 1 {
            // What the attempt before staged may be what git has lost, and its agent cannot commit any more.
            let restored = context.holding(workplace).map(|holding| self.restore_objects(holding, context));
            restored.into_iter().flatten().flatten().for_each(emit);
        }
        self.retry_with_repairs(context, emit, || {
            self.reopen_if_lost(workplace, context)?.into_iter().for_each(emit);
            self.repository.refuse_foreign_worktree(workplace)?;
            self.repository.refuse_missing_branch(workplace)?;
            if self.repository.refill_if_emptied(workplace)? {
                let message = format!("all files of {} were gone; they were checked out again", workplace.display());
                emit(self.note(context.lane, message));
            }
            self.clear_for_gate(job, workplace, context, emit)?;
            self.copy_ignored(job, workplace, emit)
        })?;
        self.refuse_inroads(job, workplace)
    }

    /// What the output means of a job that failed by itself, also if only its event stream shows the failure.
    fn read_output(
        &self,
        job: &JobId,
        spec: &JobSpec,
        exit: &JobExit,
        (transcript, said): (Option<&Transcript>, &[String]),
    ) -> Option<Reading> {
        if job.is_attempt() {
            let runner = self.runner_of(job);
            return diagnose::outage(exit, said, transcript, runner, &chrono::Local).map(Reading::Outage);
        }
        if exit.cause != ExitCause::Exited || exit.passed() {
            return None;
        }
        Some(Reading::Diagnosis(diagnosis_of(&self.run.job(job), &spec.directory)))
    }

    fn write_files(&self, prepared: &PreparedJob) -> Result<()> {
        let Some((files, contents)) = &prepared.files else { return Ok(()) };
        for directory in std::iter::once(files.directory.clone()).chain(files.exchange()) {
            directory::create_directory_unsynced(&directory)?;
        }
        // Worth nothing after a power cut: the job starts again then, under another name.
        for (name, text) in contents {
            atomic::replace(&files.directory.join(name), text)?;
        }
        atomic::remove(&files.status)?;
        Ok(())
    }

    pub(super) fn stop_job(self: &Arc<Self>, job: &JobId, force: bool) -> Task {
        let (executor, job) = (self.clone(), job.clone());
        Box::new(move |emit| {
            let directory = executor.run.job(&job);
            let own = process::stop(&directory, force).map(drop);
            let on_base = executor.base_gates.stop(&job).map(|directory| process::stop(&directory, force).map(drop));
            if let Err(error) = own.and(on_base.unwrap_or(Ok(()))) {
                emit(Event::Noted { lane: job.lane.clone(), message: format!("{job} cannot be stopped: {error}") });
            }
            // Until its end, so that a job that cannot be stopped is not asked again and again. What goes wrong with
            // waiting is reported by the task that runs the job.
            let _ = process::wait_without_secrets(&directory, None, &executor.redactor);
            Vec::new()
        })
    }
}

/// The agent's report: its status file, overridden by its result file.
fn read_report(files: &BriefFiles, exit: &JobExit) -> Option<AgentReport> {
    let status = lane_files::read_status(&files.status).map(|status| {
        // The supervisor writes the moment of the exit.
        let own = status.updated_at != Some(exit.finished_at);
        AgentReport { own, ..status.report }
    });
    let Some(result) = lane_files::read_result(&files.result()) else { return status };
    let decision = status.map(|status| (status.decision, status.feedback)).unwrap_or_default();
    Some(AgentReport { decision: decision.0, feedback: decision.1, own: true, ..result })
}

/// A job that cannot be started or followed, for example because the disk is full: no failure of its agent or gate,
/// but something outside must come first (SPEC §7).
fn blocked_job(job: JobId, error: &ExecutorError, now: Timestamp) -> Vec<Event> {
    let exit = JobExit {
        cause: ExitCause::Stopped,
        exit_code: 143,
        command: job.to_string(),
        started_at: now,
        finished_at: now,
        tail: Vec::new(),
        notes: error.to_string(),
    };
    let reason = format!("{job}: {error}");
    let blocked = match job.lane.clone() {
        Some(lane) => Event::LaneBlocked { lane, reason },
        None => Event::PhaseBlocked { reason },
    };
    vec![Event::JobExited { job, exit, report: None, reading: None, transcript: None }, blocked]
}
