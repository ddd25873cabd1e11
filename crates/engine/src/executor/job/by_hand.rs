//! Gates that a user or an agent runs by a command: judged as those of the run, but no part of it.

use std::path::Path;

use lanewright_agents::diagnose;
use lanewright_git::{self as git, Checkout, Holder, Mode};
use lanewright_model::event::Worktree;
use lanewright_model::{CommandLine, Diagnosis, ExitCause, JobExit, JobId, JobRole, JobSpec, LaneIndex, OnOrphan};
use lanewright_programs::process;
use lanewright_schedule::RunState;

use crate::executor::{Executor, ExecutorError, Result};

/// What a gate came to.
#[derive(Debug)]
pub struct Judgement {
    pub exit: JobExit,
    /// What it wrote; of a long output both ends.
    pub output: String,
    /// What its output says, where it failed by itself.
    pub diagnosis: Option<Diagnosis>,
}

impl Executor {
    /// Runs the commands of a gate in `worktree`, which is the lane's or an agent's of it. With `alone` nothing else works
    /// there, and what the gate writes again is noted as such.
    ///
    /// # Errors
    /// The worktree is not as git knows it, or the commands cannot be started.
    pub fn judge_lane(
        &self,
        lane: LaneIndex,
        steps: Vec<CommandLine>,
        worktree: &Path,
        alone: bool,
        state: &RunState,
    ) -> Result<Judgement> {
        self.repository.refuse_foreign_worktree(worktree)?;
        let head = self.repository.head_at(worktree)?.commit;
        let place = Worktree { slot: 0, path: worktree.to_owned(), branch: String::new(), head };
        let job = JobId { lane: Some(self.id(lane)), role: JobRole::Tests, number: 0 };
        let spec = self.gate_spec(job, steps, &place, self.lane_environment(lane, state, worktree));
        if !alone {
            return self.judge(spec);
        }
        git::noting_generated(worktree, || self.judge(spec))?
    }

    /// Runs the final gate on the integration branch as it is now, in a worktree of its own. For a run that no process
    /// works on.
    ///
    /// # Errors
    /// The worktree cannot be opened, or the commands cannot be started.
    pub fn judge_integration(&self, state: &RunState) -> Result<Judgement> {
        let holder = Holder { run: self.facts.run_id.clone(), lane: None, agent: None };
        let open = |start| {
            let worktree =
                self.pool.open(&holder, &Checkout { branch: None, start, mode: Mode::Reset, adopt: true })?;
            git::restore(&worktree.path, &worktree.head)?;
            Ok::<_, ExecutorError>(worktree)
        };
        let worktree = open(self.integration()?)?;
        let job = JobId { lane: None, role: JobRole::Final, number: 0 };
        let judged = self.judge(self.gate_spec(job, self.plan.gates.last.clone(), &worktree, Default::default()));
        match state.final_worktree() {
            // It goes back to what the run's own final gate judged.
            Some(known) => drop(open(known.head.clone())?),
            None => {
                git::restore(&worktree.path, &worktree.head)?;
                self.pool.release(&holder, std::slice::from_ref(&worktree.head))?;
                self.pool.unlink(&holder)?;
                if state.finished().is_some_and(|(outcome, _)| outcome.is_over()) && !self.facts.options.keep_pool {
                    self.pool.empty(&self.facts.run_id, None)?;
                }
            }
        }
        judged
    }

    fn judge(&self, spec: JobSpec) -> Result<Judgement> {
        let place = |source| ExecutorError::Precondition(format!("no directory for the gate can be made: {source}"));
        let scratch = tempfile::Builder::new().prefix("lanewright-gate-").tempdir().map_err(place)?;
        // It ends with the command that waits for it.
        let spec = JobSpec { on_orphan: OnOrphan::Stop, ..spec };
        let launched = self.launch(scratch.path(), &spec)?;
        let exit = process::wait_without_secrets(scratch.path(), Some(launched), &self.redactor)?;
        let [first, last] = diagnose::EXCERPT_BYTES;
        let output = process::both_ends(&process::output_log(scratch.path()), first, last).unwrap_or_default();
        let has_failed = exit.cause == ExitCause::Exited && !exit.passed();
        let diagnosis = has_failed.then(|| diagnose::diagnose(&output, &[&spec.directory]));
        Ok(Judgement { exit, output, diagnosis })
    }
}
