//! Random plans, and what will go wrong in each.

use std::collections::BTreeMap;
use std::time::Duration;

use lanewright_model::plan::{AgentWorktrees, RetryFrom};
use lanewright_model::runner::RunnerText;
use lanewright_model::testing::{empty_plan, plan_agent, plan_lane, plan_task};
use lanewright_model::{
    Agent, Approval, Artifact, CommandLine, Follow, Gates, JobId, JobRole, Lane, LaneId, LaneIndex, MergeMode,
    MustHaves, MustHavesRule, Plan, PlanParts, Round, TaskId, TaskKind,
};

use super::dice::Dice;

pub fn random_plan(dice: &mut Dice) -> Plan {
    let count = 1 + dice.roll(7);
    let pools = BTreeMap::from([("heavy".to_owned(), 1)]);
    let gate = |yes: bool| if yes { vec![shell("check")] } else { vec![] };
    let gates = Gates {
        atomic: gate(dice.roll(2) == 0),
        checkpoint: gate(dice.roll(3) == 0),
        last: gate(dice.roll(3) == 0),
        edit: Vec::new(),
    };
    let mut lanes: Vec<Lane> = (0..count).map(|index| random_lane(dice, index)).collect();
    let mut exclusions = Vec::new();
    if count > 2 && dice.roll(4) == 0 {
        exclusions.push((LaneIndex(0), LaneIndex(count - 1)));
    }
    // Every dependency points backwards, so any pairs that point forwards keep an order.
    let mut sequences = Vec::new();
    for then in 1..count {
        if dice.roll(6) == 0 {
            let pair = (LaneIndex(dice.roll(then)), LaneIndex(then));
            exclusions.push(pair);
            sequences.push(pair);
        }
    }
    if dice.roll(3) == 0 {
        let agents = lanes.iter_mut().flat_map(|lane| &mut lane.agents);
        agents.filter(|agent| agent.name.as_str() == "a0").for_each(|a0| a0.fallback = Some(vec![SPARE.to_owned()]));
    }
    // What came later concerns some seeds only.
    if dice.clone().of("candidates").is_multiple_of(3) {
        for lane in &mut lanes {
            give_candidates(dice, lane);
        }
    }
    let spare = RunnerText { command: Some(shell("spare agent")), ..RunnerText::default() };
    let runners = BTreeMap::from([(SPARE.to_owned(), spare.complete().unwrap())]);
    Plan::new(PlanParts { pools, gates, lanes, exclusions, sequences, runners, ..empty_plan() }).unwrap()
}

/// The runner that takes the place of one that is paused for long.
pub const SPARE: &str = "spare";

/// What a lane has, in one line.
pub fn describe(lane: &Lane) -> String {
    let agent = |agent: &Agent| {
        let tasks: Vec<String> = agent.tasks.iter().map(|task| format!("{} {}", task.id, task.kind)).collect();
        format!("{} ({})", agent.round, tasks.join(", "))
    };
    let agents: Vec<String> = lane.agents.iter().map(agent).collect();
    format!(
        "{} after {:?}: {}; worktrees {:?}, tests {}, setup {}, pools {:?}, approval {:?}, resume {:?}, must-haves {}",
        lane.id,
        lane.depends_on,
        agents.join(", "),
        lane.agent_worktrees,
        lane.tests.len(),
        lane.setup.len(),
        lane.uses,
        lane.approval,
        lane.resume,
        !lane.must_haves.is_empty(),
    )
}

/// A lane with one agent and nothing else.
pub fn plain_lane(index: u32, depends_on: Vec<LaneIndex>, tasks: u32) -> Lane {
    let agents = vec![agent("a0", Round::Implementation, tasks)];
    Lane { retries: 2, agents, ..plan_lane(&format!("L{index}"), depends_on) }
}

fn random_lane(dice: &mut Dice, index: u32) -> Lane {
    let depends_on = (0..index).filter(|_| dice.roll(4) == 0).map(LaneIndex).collect();
    let mut agents = Vec::new();
    if dice.roll(6) == 0 {
        agents.push(agent("scout", Round::Requirements, 1));
    }
    for number in 0..1 + dice.roll(3) {
        agents.push(agent(&format!("a{number}"), Round::Implementation, 1 + dice.roll(3)));
    }
    if dice.roll(5) == 0 {
        let tasks = &mut agents.last_mut().unwrap().tasks;
        let at = dice.roll(tasks.len() as u32) as usize;
        tasks[at].kind = TaskKind::ALL[dice.roll(TaskKind::ALL.len() as u32) as usize];
    }
    if dice.roll(4) == 0 {
        agents.push(agent("reviewer", Round::Review, 1));
    }
    if dice.roll(8) == 0 {
        agents.iter_mut().for_each(|agent| agent.allow_empty = agent.round == Round::Implementation);
    }
    let sharing = [AgentWorktrees::On, AgentWorktrees::On, AgentWorktrees::Auto, AgentWorktrees::Off];
    Lane {
        must_haves: if dice.roll(3) == 0 { must_haves() } else { Default::default() },
        tests: if dice.roll(2) == 0 { vec![shell("test")] } else { vec![] },
        approval: if dice.roll(8) == 0 { vec![Approval::Changes] } else { vec![] },
        uses: if dice.roll(3) == 0 { vec!["heavy".to_owned()] } else { vec![] },
        setup: if dice.roll(6) == 0 { vec![shell("setup")] } else { vec![] },
        resume: if dice.roll(3) == 0 { RetryFrom::Fresh } else { RetryFrom::Continue },
        merge_style: None,
        agent_worktrees: sharing[dice.roll(4) as usize],
        agents,
        ..plain_lane(index, depends_on, 1)
    }
}

/// What the names of candidates begin with.
pub const CANDIDATE: &str = "c";

/// Has candidates do the work of the lane in place of its agents, in half of the lanes.
fn give_candidates(dice: &Dice, lane: &mut Lane) {
    let drawn = dice.clone().of(&format!("{} candidates", lane.id));
    if drawn.is_multiple_of(2) {
        return;
    }
    let at = lane.round(Round::Implementation).next().unwrap();
    lane.agents.retain(|agent| agent.round != Round::Implementation);
    let mut made = Vec::new();
    for number in 1..=2 + drawn / 2 % 2 {
        let mut candidate = agent(CANDIDATE, Round::Implementation, 1 + drawn / 4 % 2);
        candidate.name = format!("{CANDIDATE}{number}").parse().unwrap();
        candidate.candidate = Some(number);
        if number == 2 {
            candidate.command = shell("other agent");
        }
        made.push(candidate);
    }
    if (drawn / 8).is_multiple_of(2) {
        made.push(agent("judge", Round::Judge, 1));
    }
    lane.agents.splice(at..at, made);
    if lane.agent_worktrees == AgentWorktrees::Off {
        lane.agent_worktrees = AgentWorktrees::On;
    }
}

fn must_haves() -> MustHaves {
    let artifact = Artifact { path: "work".to_owned(), ..Artifact::default() };
    MustHaves { artifacts: vec![artifact], ..MustHaves::default() }
}

fn agent(name: &str, round: Round, tasks: u32) -> Agent {
    let tasks = (1..=tasks).map(|number| plan_task(&format!("{name}-{number}"))).collect();
    // Of two services, each with an account of its own.
    let command = shell(if name == "a1" { "other agent" } else { "agent" });
    Agent { round, command, ..plan_agent(name, tasks) }
}

fn shell(line: &str) -> CommandLine {
    CommandLine::Shell(line.to_owned())
}

/// What goes wrong: how often each kind of job fails before it passes. Work as a whole fails for one reason a lane, so
/// that the lane's retries are enough or never enough.
///
/// It goes by the names of lanes, so that a lane meets the same in a plan that others were taken out of.
#[derive(Clone)]
pub struct Script {
    dice: Dice,
}

impl Script {
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed ^ 0x5CA1_AB1E) }
    }

    fn of(&self, key: &str) -> u32 {
        self.dice.clone().of(key)
    }

    /// How often jobs of that kind fail before one passes.
    pub fn failures(&self, key: &str, job: &JobId) -> u32 {
        let lane = job.lane.as_ref().map(ToString::to_string).unwrap_or_default();
        let cause = self.of(&format!("{lane} cause")) % 12;
        match &job.role {
            JobRole::Attempt { agent, .. } if agent.as_str() == "reviewer" => u32::from(cause == 0),
            JobRole::Attempt { .. } => match self.of(key) % 40 {
                0 => 1_000,
                1..8 => 1,
                8..11 => 2,
                _ => 0,
            },
            JobRole::Verify { agent, .. } if agent.as_str().starts_with(CANDIDATE) => match self.of(key) % 8 {
                0 => 1_000,
                1 => 1,
                _ => 0,
            },
            JobRole::Verify { .. } => 0,
            JobRole::Tests | JobRole::MergedTests if cause == 1 => 1 + self.of(key) % 2,
            JobRole::Tests if cause == 2 && self.of(key).is_multiple_of(4) => 1_000,
            JobRole::Checkpoint { agent } if cause == 3 && matches!(agent.as_str(), "a0" | "c1") => {
                1 + self.of(key) % 2
            }
            JobRole::Final if self.of("final").is_multiple_of(10) => 1_000,
            _ => 0,
        }
    }

    /// How often the network or a quota is out before jobs of that kind can fail or pass; more often than there are
    /// retries.
    pub fn outages(&self, key: &str, job: &JobId) -> u32 {
        let out = job.is_attempt() && self.of(&format!("{key} out")).is_multiple_of(12);
        if out { 4 } else { 0 }
    }

    /// How often a service refuses jobs of that kind before a person has changed something.
    pub fn refusals(&self, key: &str, job: &JobId) -> u32 {
        let is_refused = job.is_attempt() && self.of(&format!("{key} refused")).is_multiple_of(40);
        u32::from(is_refused && !self.is_needed(job))
    }

    /// Whether a candidate that was chosen may fail for ever in the lane, if it has any: one that only waited for the user
    /// meanwhile is not chosen afterwards.
    pub fn needs_every_candidate(&self, lane: &LaneId) -> bool {
        self.of(&format!("{lane} cause")) % 12 == 7
    }

    fn is_needed(&self, job: &JobId) -> bool {
        let is_candidate = job.agent().is_some_and(|agent| agent.as_str().starts_with(CANDIDATE));
        is_candidate && job.lane.as_ref().is_some_and(|lane| self.needs_every_candidate(lane))
    }

    /// How many lines the candidate changes.
    pub fn lines(&self, lane: &LaneId, agent: &str) -> u64 {
        u64::from(self.of(&format!("{lane} {agent} lines")) % 3)
    }

    /// What the judge says: the number of a candidate, or nothing of use.
    pub fn verdict(&self, lane: &LaneId) -> &'static str {
        ["1", "2", "3", "none of them"][self.of(&format!("{lane} verdict")) as usize % 4]
    }

    /// In how many milliseconds an outage ends, where the program says so.
    pub fn outage_end(&self, key: &str) -> Option<i64> {
        [None, Some(-50), Some(70), Some(400)][self.of(&format!("{key} end")) as usize % 4]
    }

    /// In how many milliseconds the limit ends that attempts of that kind report as used up: of few kinds, and in most a time
    /// that is over.
    pub fn limit_end(&self, key: &str) -> Option<i64> {
        let end = [-50, 70, 400][self.of(&format!("{key} limit end")) as usize % 3];
        self.of(&format!("{key} limit")).is_multiple_of(12).then_some(end)
    }

    /// How often gates of that kind lose their supervisor before they pass or fail: less often than ends them, or always.
    pub fn lost_supervisors(&self, key: &str, job: &JobId) -> u32 {
        let lane = job.lane.as_ref().map(ToString::to_string).unwrap_or_default();
        let always = self.of(&format!("{lane} cause")) % 12 == 7 && self.of(key).is_multiple_of(3);
        match &job.role {
            JobRole::Attempt { .. } => 0,
            JobRole::Checkpoint { .. } if always => 1_000,
            _ if self.of(&format!("{key} lost")).is_multiple_of(6) => 1 + self.of(key) % 2,
            _ => 0,
        }
    }

    /// How often a program is missing that gates of that kind, or a set-up, need, before they can fail or pass.
    pub fn missing_programs(&self, key: &str, job: &JobId) -> u32 {
        let is_missing = job.lane.is_some() && self.of(&format!("{key} program")).is_multiple_of(12);
        u32::from(is_missing && !job.is_attempt() && !self.is_needed(job))
    }

    /// Whether gates of that kind fail in the same way without the changes of their lane, as long as they fail; with what
    /// they complain of, or without. One that never passes fails by the lane's own doing.
    pub fn fails_in_base(&self, key: &str, job: &JobId) -> Option<bool> {
        let is_over = self.failures(key, job) < 1_000 && job.role.is_gate() && job.lane.is_some();
        (is_over && self.of(&format!("{key} base")).is_multiple_of(2)).then(|| self.of(key).is_multiple_of(3))
    }

    /// How finished lanes reach the integration branch.
    pub fn merge(&self) -> MergeMode {
        if self.of("merge").is_multiple_of(5) { MergeMode::Pr } else { MergeMode::Local }
    }

    /// How pull requests are followed.
    pub fn follow(&self) -> Option<Follow> {
        let follows = self.merge() == MergeMode::Pr && !self.of("follow").is_multiple_of(3);
        let auto_merge = self.of("auto merge").is_multiple_of(2);
        follows.then_some(Follow { time: Duration::from_secs(60), rounds: Self::REMARKS, auto_merge })
    }

    /// How many remarks reviewers make on a lane, one after another.
    pub fn remarks(&self, lane: &LaneId) -> u32 {
        self.of(&format!("{lane} remarks")) % (Self::REMARKS + 1)
    }

    /// The most of them.
    const REMARKS: u32 = 2;

    /// Whether a person pushes to the lane's branch before the remark of that number.
    pub fn person_pushes(&self, lane: &LaneId, number: u32) -> bool {
        self.of(&format!("{lane} pushed {number}")).is_multiple_of(3)
    }

    /// How often in a row a remote or a forge is out.
    pub fn forge_outages(&self, key: &str) -> u32 {
        if self.of(&format!("{key} forge")).is_multiple_of(4) { 2 } else { 0 }
    }

    /// Whether tasks of the lane change nothing once. One that is done again for another reason would change something
    /// where the others of its agent do not yet.
    pub fn is_idle_once(&self, lane: &LaneId) -> bool {
        self.of(&format!("{lane} cause")) % 12 == 8
    }

    /// Whether a variable that a person sets up is not set for the lane.
    pub fn lacks_setup(&self, lane: &LaneId) -> bool {
        self.of(&format!("{lane} setup")).is_multiple_of(16)
    }

    /// Whether a person says no to the task once before saying yes.
    pub fn person_refuses(&self, lane: &LaneId, gate: &str) -> bool {
        let idle_once = self.of(&format!("{lane} cause")) % 12 == 8;
        !idle_once && self.of(&format!("{lane} {gate} person")).is_multiple_of(3)
    }

    /// Whether the user leaves a stopped rebase as it is until the run has ended.
    pub fn user_leaves_rebases(&self) -> bool {
        self.of("rebase").is_multiple_of(2)
    }

    /// The globs of files that no lane changes without an approval.
    pub fn protect(&self) -> Vec<String> {
        if self.of("protect").is_multiple_of(4) { vec![".github/**".to_owned()] } else { vec![] }
    }

    pub fn touches_protected(&self, lane: &LaneId) -> bool {
        self.of(&format!("{lane} protected")).is_multiple_of(3)
    }

    /// Whether the merge of the lane changes a protected file that the lane did not change.
    pub fn merge_touches_protected(&self, lane: &LaneId) -> bool {
        !self.protect().is_empty() && self.of(&format!("{lane} renamed")).is_multiple_of(4)
    }

    /// What becomes of lanes without their must-haves.
    pub fn must_haves(&self) -> MustHavesRule {
        match self.of("must_haves") % 4 {
            1 => MustHavesRule::Enforce,
            3 => MustHavesRule::Paths,
            _ => MustHavesRule::Report,
        }
    }

    /// How many heads of the lane lack what it must have before one does not.
    pub fn lacking_heads(&self, lane: &LaneId) -> u32 {
        let key = format!("{lane} must_haves");
        match self.of(&format!("{lane} cause")) % 12 {
            6 if self.of(&key).is_multiple_of(5) => 1_000,
            6 => 1 + self.of(&key) % 2,
            _ => 0,
        }
    }

    /// How often the agent comes to the end of that task without a change before it changes something.
    pub fn idle_passes(&self, lane: &LaneId, agent: &str, task: &TaskId) -> u32 {
        let first = task.as_str().ends_with("-1");
        match self.of(&format!("{lane} cause")) % 12 {
            8 if agent == "a0" => 1,
            9 if agent == "a0" => 1_000,
            10 if first => 1_000,
            _ => 0,
        }
    }

    /// Whether agents of that kind commit their work themselves.
    pub fn commits_itself(&self, key: &str) -> bool {
        self.of(&format!("{key} commits")).is_multiple_of(3)
    }

    pub fn agent_conflict(&self, lane: &LaneId, agent: usize) -> bool {
        self.of(&format!("{lane} cause")) % 12 == 4 && agent == 1
    }

    pub fn lane_conflict(&self, lane: &LaneId) -> bool {
        self.of(&format!("{lane} cause")) % 12 == 5
    }
}
