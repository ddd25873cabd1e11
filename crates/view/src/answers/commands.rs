//! Commands that the user may type next, as argument vectors.

use std::path::Path;

use lanewright_model::{HumanGate, LaneId, RunId};

use crate::history::RunFacts;

/// How Lanewright is called for one run.
#[derive(Debug, Clone, Copy)]
pub struct Commands<'a> {
    /// The words before the command, normally `lanewright` alone.
    pub program: &'a [String],
    pub run: &'a RunId,
}

impl Commands<'_> {
    pub fn resume(&self) -> Vec<String> {
        self.of("resume", &[])
    }

    /// The same with the flags without which it would start no agent.
    pub fn resume_of(&self, run: &RunFacts) -> Vec<String> {
        [self.resume(), run.budget.flags_for_more(&run.used)].concat()
    }

    /// `lanewright retry RUN LANE -m 'what to change'`, with the same flags.
    pub fn retry_of(&self, lane: &LaneId, run: &RunFacts) -> Vec<String> {
        let retry = self.of("retry", &[lane.as_str(), "-m", "what to change"]);
        [retry, run.budget.flags_for_more(&run.used)].concat()
    }

    /// Of all lanes where none is named.
    pub fn rollback<'l>(&self, lanes: impl IntoIterator<Item = &'l LaneId>) -> Vec<String> {
        let lanes: Vec<&str> = lanes.into_iter().flat_map(|lane| ["--lane", lane.as_str()]).collect();
        self.of("rollback", &lanes)
    }

    /// The same to a point of theirs; `None`: to their start.
    pub fn rollback_to<'l>(&self, lanes: impl IntoIterator<Item = &'l LaneId>, to: Option<&str>) -> Vec<String> {
        let to = to.into_iter().flat_map(|to| ["--to", to]).map(str::to_owned);
        self.rollback(lanes).into_iter().chain(to).collect()
    }

    /// The same for a rollback that was interrupted; `undoes`: it undoes merged work, which the user has agreed to.
    pub fn finish_rollback<'l>(
        &self,
        lanes: impl IntoIterator<Item = &'l LaneId>,
        to: Option<&str>,
        undoes: bool,
    ) -> Vec<String> {
        self.rollback_to(lanes, to).into_iter().chain(undoes.then(|| "--yes".to_owned())).collect()
    }

    pub fn skip(&self, lane: &LaneId) -> Vec<String> {
        self.of("skip", &[lane.as_str()])
    }

    pub fn follow(&self) -> Vec<String> {
        self.of("follow", &[])
    }

    pub fn clean(&self) -> Vec<String> {
        self.of("clean", &[])
    }

    /// `lanewright checkpoints list RUN`.
    pub fn snapshots(&self) -> Vec<String> {
        self.line("checkpoints", &["list", self.run.as_str()])
    }

    pub fn status(&self) -> Vec<String> {
        self.of("status", &[])
    }

    pub fn lane_status(&self, lane: &LaneId) -> Vec<String> {
        self.of("status", &[lane.as_str()])
    }

    pub fn logs(&self, lane: &LaneId) -> Vec<String> {
        self.of("logs", &[lane.as_str()])
    }

    pub fn follow_logs(&self) -> Vec<String> {
        self.of("logs", &["--follow"])
    }

    pub fn ui(&self) -> Vec<String> {
        self.of("ui", &[])
    }

    pub fn stop(&self) -> Vec<String> {
        self.of("stop", &[])
    }

    pub fn diff(&self, lane: &LaneId) -> Vec<String> {
        self.of("diff", &[lane.as_str()])
    }

    pub fn approve(&self, lane: &LaneId, gate: &HumanGate) -> Vec<String> {
        self.of("approve", &[lane.as_str(), "--gate", &gate.to_string()])
    }

    /// `lanewright reject RUN LANE --gate GATE -m 'what to change'`.
    pub fn reject(&self, lane: &LaneId, gate: &HumanGate) -> Vec<String> {
        self.of("reject", &[lane.as_str(), "--gate", &gate.to_string(), "-m", "what to change"])
    }

    /// `lanewright execute-phase PLAN --run-id RUN --resume`; `plan` is absolute, so it works from any directory.
    pub fn execute_phase_resume(&self, plan: &Path) -> Vec<String> {
        self.execute_phase(plan, &["--resume"])
    }

    /// `lanewright execute-phase PLAN --run-id RUN [--lane LANE] --rollback`.
    pub fn execute_phase_rollback(&self, plan: &Path, lane: Option<&LaneId>) -> Vec<String> {
        match lane {
            Some(lane) => self.execute_phase(plan, &["--lane", lane.as_str(), "--rollback"]),
            None => self.execute_phase(plan, &["--rollback"]),
        }
    }

    fn execute_phase(&self, plan: &Path, rest: &[&str]) -> Vec<String> {
        let plan = plan.to_string_lossy();
        self.line("execute-phase", &[&[plan.as_ref(), "--run-id", self.run.as_str()], rest].concat())
    }

    fn of(&self, command: &str, rest: &[&str]) -> Vec<String> {
        self.line(command, &[&[self.run.as_str()], rest].concat())
    }

    fn line(&self, command: &str, rest: &[&str]) -> Vec<String> {
        let words = std::iter::once(command).chain(rest.iter().copied()).map(str::to_owned);
        self.program.iter().cloned().chain(words).collect()
    }
}
