//! What a run must come to, which its plan and its script alone decide.

use lanewright_model::{Agent, JobId, JobRole, LaneIndex, MergeMode, MustHavesRule, Round, Task};

use super::World;

/// As often as that fails what never passes.
const ALWAYS: u32 = 1_000;

impl World {
    /// A word for each lane, and the exit code.
    pub fn expected(&self) -> (Vec<&'static str>, u8) {
        let mut lanes: Vec<&'static str> = Vec::new();
        // Every dependency points backwards.
        for lane in self.plan.indices() {
            let is_there = |before: &LaneIndex| matches!(lanes[before.at()], "merged" | "skipped");
            let lacks = !self.plan.dag().dependencies(lane).iter().all(is_there);
            lanes.push(match () {
                () if self.skipped.contains(&lane) => "skipped",
                () if lacks => "blocked",
                () if self.is_hopeless(lane) => "failed",
                () => "merged",
            });
        }
        let gate_fails = self.script.merge() == MergeMode::Local
            && !self.plan.gates.last.is_empty()
            && self.always_fails(None, JobRole::Final);
        let code = match () {
            () if lanes.contains(&"failed") => 1,
            () if gate_fails => 3,
            () => 0,
        };
        (lanes, code)
    }

    /// Whether no retry gets the lane through.
    pub(super) fn is_hopeless(&self, lane: LaneIndex) -> bool {
        let plan = self.plan.lane(lane);
        let makes_commits = |agent: usize| {
            let works = plan.agents[agent].tasks.iter().any(|task| !task.kind.is_human());
            works || !plan.shares_worktree(agent)
        };
        let most = if plan.round(Round::Implementation).any(makes_commits) { ALWAYS } else { 1 };
        let lacks = !plan.must_haves.is_empty()
            && self.script.must_haves() != MustHavesRule::Report
            && self.script.lacking_heads(&plan.id) >= most;
        let tests_fail = !plan.tests.is_empty() && self.always_fails(Some(lane), JobRole::Tests);
        let mut others = (0..plan.agents.len()).filter(|agent| plan.agents[*agent].candidate.is_none());
        let mut candidates = plan.candidates().peekable();
        let none_passes = candidates.peek().is_some() && candidates.all(|agent| self.is_agent_hopeless(lane, agent));
        lacks || tests_fail || none_passes || others.any(|agent| self.is_agent_hopeless(lane, agent))
    }

    fn is_agent_hopeless(&self, lane: LaneIndex, at: usize) -> bool {
        let plan = self.plan.lane(lane);
        let agent: &Agent = &plan.agents[at];
        let attempt = |task| JobRole::Attempt { agent: agent.name.clone(), task };
        let mut own = agent.tasks.iter().filter(|task| !task.kind.is_human());
        let idle = |task| self.script.idle_passes(&plan.id, agent.name.as_str(), task) >= ALWAYS;
        if agent.round == Round::Judge {
            return false;
        }
        let verify = |task: &Task| {
            let role = JobRole::Verify { agent: agent.name.clone(), task: task.id.clone() };
            self.plan.is_gated(plan, at, task) && self.always_fails(Some(lane), role)
        };
        let is_judged = agent.round == Round::Implementation && !self.plan.gates.checkpoint.is_empty();
        own.clone().any(|task| self.always_fails(Some(lane), attempt(task.id.clone())))
            || own.clone().any(verify)
            || plan.must_change_files(at) && own.all(|task| idle(&task.id))
            || is_judged && self.always_fails(Some(lane), JobRole::Checkpoint { agent: agent.name.clone() })
    }

    fn always_fails(&self, lane: Option<LaneIndex>, role: JobRole) -> bool {
        let job = JobId { lane: lane.map(|lane| self.id(lane)), role, number: 1 };
        let key = self.key_of(&job);
        self.script.failures(&key, &job) >= ALWAYS || self.script.lost_supervisors(&key, &job) >= ALWAYS
    }
}
