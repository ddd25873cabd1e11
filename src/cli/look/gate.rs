//! `gate`: runs a gate of a run by hand, and changes no state of the run (seed 000).

use std::sync::Arc;

use lanewright_engine::at_resume::replay;
use lanewright_engine::executor::{Executor, Judgement};
use lanewright_model::text::{counted, headline, listed};
use lanewright_model::time::short;
use lanewright_model::{AgentName, CommandLine, ExitCause, LaneId, LaneIndex, Plan};
use lanewright_plan::settings::Layer;
use lanewright_programs::process::{self, Observation};
use lanewright_schedule::RunState;
use lanewright_store::RunLock;
use lanewright_store::lock::{LockError, is_held};
use serde_json::json;

use crate::cli::args::{Gate, GateName};
use crate::cli::look::worktree::{held_slot, missing_worktree, shares};
use crate::cli::runs::{RunRecords, command, open_jobs, require_lane, require_plan};
use crate::cli::secrets::with_secrets;
use crate::cli::select::{Selector, Target, no_lane};
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};

pub(crate) fn run(context: &Context, arguments: &Gate) -> Result<ExitStatus> {
    let within = RepositoryContext::open_for_work(context, Layer::default())?;
    let target = Selector::new(context, &within.state).agent_target(&arguments.target.names())?;
    let run = RunRecords::read(context, &within.state, target.run.clone())?;
    let pinned = require_plan(&run.run, &run.directory)?;
    let plan = Arc::new(with_secrets(&within.settings, run.started()?, &pinned));
    let executor = within.executor(run.started()?, &plan)?;
    let judging = Judging { within: &within, target: &target, run: &run, executor: &executor, gate: arguments.gate };
    let steps = judging.steps()?;
    let judged = match arguments.gate {
        GateName::Final => judging.integration()?,
        GateName::Atomic | GateName::Checkpoint | GateName::Tests => judging.lane(steps)?,
    };
    judging.report(&judged)
}

/// How many agents are named.
const NAMED: usize = 10;

struct Judging<'a> {
    within: &'a RepositoryContext,
    target: &'a Target,
    run: &'a RunRecords,
    executor: &'a Executor,
    gate: GateName,
}

impl Judging<'_> {
    fn plan(&self) -> &Arc<Plan> {
        &self.executor.plan
    }

    /// The commands of the gate; an error if the plan has none, or if they are not of a lane.
    fn steps(&self) -> Result<Vec<CommandLine>> {
        let plan = self.plan();
        let (steps, key) = match self.gate {
            GateName::Atomic => (&plan.gates.atomic, "`atomic` in [gates]"),
            GateName::Checkpoint => (&plan.gates.checkpoint, "`checkpoint` in [gates]"),
            GateName::Final => (&plan.gates.last, "`final` in [gates]"),
            GateName::Tests => (&plan.lane(self.lane_index()?).tests, "`tests` in the lane"),
        };
        if let (GateName::Final, Some(lane)) = (self.gate, &self.target.lane) {
            let error = ExitStatus::Usage.error(format!("the final gate is one of the run, not of lane {lane}"));
            return Err(
                error.hint(format!("without a lane: {}", self.command(&["gate", "final", self.run.run.as_str()])))
            );
        }
        if steps.is_empty() {
            let message =
                format!("the plan of run {} has no commands for the gate `{}`", self.run.run, self.gate.word());
            return Err(ExitStatus::Usage.error(message).hint(format!("name them in the plan: {key}")));
        }
        Ok(steps.clone())
    }

    fn command(&self, words: &[&str]) -> String {
        command(&self.within.state, words)
    }

    /// The lane that is named, else the only one.
    fn lane_index(&self) -> Result<LaneIndex> {
        let plan = self.plan();
        match &self.target.lane {
            Some(lane) => require_lane(plan, lane),
            None => {
                let mut lanes = plan.indices();
                let only = lanes.next().filter(|_| lanes.next().is_none());
                only.ok_or_else(|| no_lane(&self.run.run, &format!("gate {}", self.gate.word())))
            }
        }
    }

    fn state(&self) -> Result<RunState> {
        Ok(replay(&self.run.run, self.plan(), &self.run.records)?)
    }

    fn lane(&self, steps: Vec<CommandLine>) -> Result<Judgement> {
        let index = self.lane_index()?;
        let lane = &self.plan().lane(index).id;
        let agent = self.target.agent.as_ref();
        // Only the atomic gate judges the work of one agent alone.
        if let (GateName::Checkpoint | GateName::Tests, Some(agent)) = (self.gate, agent) {
            let gate = self.gate.word();
            let error = ExitStatus::Usage.error(format!("the gate `{gate}` judges a lane, not its agent {agent}"));
            return Err(error.hint(format!(
                "without an agent: {}",
                self.command(&["gate", gate, self.run.run.as_str(), lane.as_str()])
            )));
        }
        let of_agents = self.agents_with_worktrees(index)?;
        let own = match (self.gate, agent) {
            (GateName::Atomic, None) if of_agents.len() > 1 => {
                let names = listed(&of_agents.iter().map(ToString::to_string).collect::<Vec<_>>(), NAMED);
                let message = format!("several agents of lane {lane} have worktrees: {names}");
                let words = ["gate", "atomic", self.run.run.as_str(), lane.as_str(), of_agents[0].as_str()];
                let hint = format!("name the one to judge: {}", self.command(&words));
                return Err(ExitStatus::Usage.error(message).hint(hint));
            }
            (GateName::Atomic, None) => of_agents.first(),
            _ => agent.filter(|agent| !shares(self.plan(), index, agent)),
        };
        let slot = held_slot(&self.executor.pool, &self.run.run, (lane, own))?;
        let slot = slot.filter(|slot| slot.path.is_dir()).ok_or_else(|| {
            let target = Target { run: self.run.run.clone(), lane: Some(lane.clone()), agent: agent.cloned() };
            let error = missing_worktree(self.within, &target, self.run);
            error.hint(format!("to judge what is merged: {}", self.command(&["gate", "final", self.run.run.as_str()])))
        })?;
        let lock = self.lock()?;
        let alone = lock.is_some() && !self.has_open_job(lane);
        Ok(self.executor.judge_lane(index, steps, &slot.path, alone, &self.state()?)?)
    }

    /// The agents of the lane that hold worktrees of their own.
    fn agents_with_worktrees(&self, lane: LaneIndex) -> Result<Vec<AgentName>> {
        let plan = self.plan().lane(lane);
        let mut found = Vec::new();
        for agent in &plan.agents {
            if held_slot(&self.executor.pool, &self.run.run, (&plan.id, Some(&agent.name)))?.is_some() {
                found.push(agent.name.clone());
            }
        }
        Ok(found)
    }

    fn integration(&self) -> Result<Judgement> {
        let Some(_lock) = self.lock()? else {
            let run = &self.run.run;
            let message = format!("run {run} is active, and runs its final gate itself when its lanes are merged");
            let stop = self.command(&["stop", run.as_str()]);
            return Err(ExitStatus::Held.error(message).hint(format!("wait for its end, or stop it: {stop}")));
        };
        self.within.prepare(&self.executor.facts.options.worktree_root)?;
        Ok(self.executor.judge_integration(&self.state()?)?)
    }

    /// Keeps processes from beginning to work on the run; `None`: one works on it. Events and answers can be recorded
    /// meanwhile, also by the gate.
    fn lock(&self) -> Result<Option<RunLock>> {
        let (run, directory) = (&self.run.run, &self.run.directory);
        match RunLock::acquire(&directory.gate_lock(), &self.within.holder(run)) {
            Ok(lock) => Ok(Some(lock).filter(|_| !is_held(&directory.lock()))),
            Err(LockError::Held { holder, .. }) => {
                let by = holder.map_or_else(String::new, |by| format!(" (pid {})", by.owner.process.pid));
                let message = format!("another gate of run {run} is run by hand{by}");
                Err(ExitStatus::Held.error(message).hint("wait for its end"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a job of the lane outlived its Lanewright.
    fn has_open_job(&self, lane: &LaneId) -> bool {
        let jobs = open_jobs(&self.run.records).into_iter().filter(|job| job.lane.as_ref() == Some(lane));
        jobs.map(|job| process::observe(&self.run.directory.job(&job)))
            .any(|seen| !matches!(seen, Ok(Observation::Absent | Observation::Planned | Observation::Exited(_))))
    }

    fn report(&self, judged: &Judgement) -> Result<ExitStatus> {
        let Judgement { exit, output, diagnosis } = judged;
        let status = match exit.cause {
            _ if exit.passed() => ExitStatus::Done,
            ExitCause::TimedOut => ExitStatus::TimedOut,
            _ => ExitStatus::Failed,
        };
        let lane = (self.gate != GateName::Final).then(|| self.lane_index()).transpose()?;
        let lane = lane.map(|lane| self.plan().lane(lane).id.clone());
        let took = exit.finished_at.since(exit.started_at);
        let of = lane.as_ref().map_or_else(|| format!("run {}", self.run.run), |lane| format!("lane {lane}"));
        let how = match status {
            ExitStatus::Done => format!("passed in {}", short(took)),
            ExitStatus::TimedOut => {
                format!("ran out of time after {} in `{}`", short(took), headline(&exit.command, 100))
            }
            _ => {
                format!("failed after {} (exit code {}): {}", short(took), exit.exit_code, headline(&exit.command, 100))
            }
        };
        let findings = diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings);
        let listed: String = findings.map(|finding| format!("  {finding}\n")).collect();
        let end = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        let count = diagnosis.as_ref().map_or(0, |diagnosis| diagnosis.findings.len());
        let found = if count == 0 { String::new() } else { format!("{}:\n{listed}", counted(count, "finding")) };
        let text = format!("{output}{end}The gate `{}` of {of} {how}\n{found}", self.gate.word());
        let json = json!({
            "run_id": self.run.run,
            "lane": lane,
            "agent": self.target.agent,
            "gate": self.gate.word(),
            "passed": status == ExitStatus::Done,
            "exit_code": exit.exit_code,
            "cause": exit.cause,
            "command": exit.command,
            "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "output": output,
            "diagnosis": diagnosis,
        });
        self.within.context.printer.print(text, &json)?;
        Ok(status)
    }
}
