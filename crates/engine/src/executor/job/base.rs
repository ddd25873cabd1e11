//! Runs a gate that failed on the commit that its lane began with: what fails there in the same way is not the lane's doing
//! (decision 71).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lanewright_agents::diagnose::{self, FailedRun};
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, Reading, Worktree};
use lanewright_model::{CommandLine, CommitId, Diagnosis, ExitCause, JobExit, JobId, JobRole, LaneIndex};
use lanewright_programs::process::{self, Observation};
use lanewright_schedule::RunState;

use super::gate::judges_lane;
use crate::executor::{Executor, Result};

/// A gate as it runs without the changes of its lane.
pub(super) struct BaseGate {
    lane: LaneIndex,
    base: CommitId,
    /// The set-up, then the gate.
    steps: Vec<CommandLine>,
    environment: BTreeMap<String, String>,
}

/// Which gates run without the changes of their lanes, and which are not to.
#[derive(Debug, Default)]
pub struct BaseGates {
    /// The directory of each, by the job whose failure it explains.
    running: Mutex<Running>,
    /// One at a time, because each takes a worktree.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct Running {
    directories: BTreeMap<JobId, PathBuf>,
    stopped: BTreeSet<JobId>,
}

impl BaseGates {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job was asked to stop: the directory of what runs for it, and nothing more is started for it.
    pub(super) fn stop(&self, job: &JobId) -> Option<PathBuf> {
        let mut running = self.running();
        running.stopped.insert(job.clone());
        running.directories.get(job).cloned()
    }
}

impl Executor {
    /// The same gate on the lane's base, for those that judge the work of agents.
    pub(super) fn base_gate(
        &self,
        job: &JobId,
        gate: &[CommandLine],
        lane: LaneIndex,
        state: &RunState,
    ) -> Option<BaseGate> {
        let judges_work = judges_lane(job) || matches!(job.role, JobRole::Verify { .. });
        let base = state.lane(lane).base().filter(|_| judges_work && job.role != JobRole::MergedTests)?;
        let steps = [&self.plan.lane(lane).setup, gate].concat();
        let environment = self.lane_environment(lane, state, Path::new(""));
        Some(BaseGate { lane, base: base.clone(), steps, environment })
    }

    /// Notes in `reading` if the gate `job`, which failed in `worktree`, fails on its base in the same way. That it cannot be
    /// found out changes nothing about the failure.
    pub(super) fn compare_with_base(
        &self,
        job: &JobId,
        gate: &BaseGate,
        (exit, worktree): (&JobExit, &Path),
        reading: &mut Option<Reading>,
        emit: &dyn Fn(Event),
    ) {
        let Some(Reading::Diagnosis(diagnosis)) = reading else { return };
        let failed = FailedRun { exit, diagnosis, root: worktree };
        match self.fails_on_base(job, gate, &failed, emit) {
            Ok(fails) => diagnosis.in_base = Some(gate.base.clone()).filter(|_| fails),
            Err(error) => {
                let message = format!("{job} was not run without the lane's changes: {error}");
                emit(self.note(gate.lane, message));
            }
        }
    }

    fn fails_on_base(
        &self,
        job: &JobId,
        gate: &BaseGate,
        failed: &FailedRun<'_>,
        emit: &dyn Fn(Event),
    ) -> Result<bool> {
        // A program that was not found is not the lane's doing anyway.
        if !failed.says_anything() || matches!(failed.exit.exit_code, 126 | 127) {
            return Ok(false);
        }
        let changed = self.repository.changed_paths(&gate.base, &self.repository.head_at(failed.root)?.commit)?;
        // Its own files may be wrong; without changes there is nothing to compare.
        if changed.is_empty() || failed.names_any(&changed) {
            return Ok(false);
        }
        let Some((exit, diagnosis, root)) = self.run_on_base(job, gate, emit)? else { return Ok(false) };
        Ok(failed.is_like(&FailedRun { exit: &exit, diagnosis: &diagnosis, root: &root }))
    }

    /// How the gate ends on the base, and where it ran; it runs once a run. `None`: it was stopped.
    fn run_on_base(
        &self,
        job: &JobId,
        gate: &BaseGate,
        emit: &dyn Fn(Event),
    ) -> Result<Option<(JobExit, Diagnosis, PathBuf)>> {
        let plan = self.plan.lane(gate.lane);
        let words = serde_json::to_string(&(&gate.steps, &plan.env, &plan.copy)).unwrap_or_default();
        let directory = self.run.directory().join("base").join(gate.base.short()).join(&sha256(words)[..16]);
        self.base_gates.running().directories.insert(job.clone(), directory.clone());
        let _turn = self.base_gates.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stopped = self.base_gates.running().stopped.contains(job);
        let ended = if is_stopped { Ok(None) } else { self.end_on_base(job, gate, &directory, emit).map(Some) };
        self.base_gates.running().directories.remove(job);
        let Some(exit) = ended?.filter(|exit| exit.cause == ExitCause::Exited) else { return Ok(None) };
        let root = process::worked_in(&directory)?.unwrap_or_default();
        let diagnosis = diagnosis_of(&directory, &root);
        Ok(Some((exit, diagnosis, root)))
    }

    fn end_on_base(&self, job: &JobId, gate: &BaseGate, directory: &Path, emit: &dyn Fn(Event)) -> Result<JobExit> {
        let holder = self.search_holder(Some(gate.lane), "base");
        let commits = (&gate.base, &gate.base);
        let seen = match process::observe(directory) {
            Ok(Observation::Exited(exit)) if exit.cause == ExitCause::Exited => {
                // It may have ended after its Lanewright was killed, which held the worktree.
                if self.pool.release(&holder, std::slice::from_ref(&gate.base)).is_err() {
                    self.in_worktree_at(&holder, commits, |_| Ok(()))?;
                }
                self.pool.unlink(&holder)?;
                return Ok(exit);
            }
            // What was stopped before, also for another lane, says nothing, and neither does what a power cut left.
            Ok(Observation::Exited(_)) | Err(_) => {
                process::make_room(directory)?;
                Observation::Absent
            }
            Ok(seen) => seen,
        };
        self.in_worktree_at(&holder, commits, |worktree| {
            self.wait_on_base(job, gate, (directory, seen), worktree, emit)
        })
    }

    fn wait_on_base(
        &self,
        job: &JobId,
        gate: &BaseGate,
        (directory, seen): (&Path, Observation),
        worktree: &Worktree,
        emit: &dyn Fn(Event),
    ) -> Result<JobExit> {
        let launched = match seen {
            Observation::Absent | Observation::Planned => {
                self.copied.forget(&worktree.path);
                self.copy_ignored(job, &worktree.path, emit)?;
                self.refuse_inner_inroads(job, &worktree.path)?;
                let environment = self.environment_at(&gate.environment, &worktree.path);
                let own = JobId { lane: job.lane.clone(), role: JobRole::Tests, number: 0 };
                let spec = self.gate_spec(own, gate.steps.clone(), worktree, environment);
                let is_stopped = self.base_gates.running().stopped.contains(job);
                match is_stopped {
                    true => process::stop(directory, false).map(|_| None)?,
                    false => Some(self.launch(directory, &spec)?),
                }
            }
            _ => None,
        };
        Ok(process::wait_without_secrets(directory, launched, &self.redactor)?)
    }
}

/// What the output in a job's directory means.
pub(super) fn diagnosis_of(directory: &Path, root: &Path) -> Diagnosis {
    let [first, last] = diagnose::EXCERPT_BYTES;
    // Without its output the gate still failed.
    let output = process::both_ends(&process::output_log(directory), first, last).unwrap_or_default();
    diagnose::diagnose(&output, &[root])
}
