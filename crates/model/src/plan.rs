//! The one model that every plan format is read into.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::agent_options::AgentOptions;
use super::command::CommandLine;
use super::dag::{Cycle, Dag, LaneIndex};
use super::executor::{ExecutorSettings, Resources};
use super::id::{AgentName, LaneId, PhaseId, TaskId};
use super::lane_digest::LaneDigests;
use super::merge_choice::{MergeChoice, MergeStyle};
use super::must_haves::MustHaves;
use super::replaced::Replaced;
use super::runner::Runner;
use super::time::{millis, optional_millis};
use super::transcript::Budget;
use super::user_setup::UserSetup;
use super::word_enum;

/// A phase: its lanes, the order between them, and the gates that its work must pass.
///
/// A value of this type is valid: ids are unique, references are known, the graph has no cycle. Readers
/// check that with spans (`plan`); [`Plan::new`] checks the graph once more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PlanParts", into = "PlanParts")]
pub struct Plan {
    parts: PlanParts,
    dag: Dag,
    by_id: HashMap<LaneId, LaneIndex>,
    pub(crate) digests: LaneDigests,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanParts {
    pub phase: PhaseId,
    /// What the phase is called.
    pub title: Option<String>,
    /// The integration branch that the plan asks for.
    pub base_branch: Option<String>,
    /// How many agents may run at once, where the plan says so.
    pub max_parallel: Option<u32>,
    /// How lanes reach the integration branch, where the plan says so.
    pub merge: Option<MergeChoice>,
    pub timeouts: Timeouts,
    /// Resource pools: how many lanes that use one may run at once.
    pub pools: BTreeMap<String, u32>,
    pub gates: Gates,
    /// Whether a lane without a gate that can fail is an error, where the plan says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_gates: Option<bool>,
    pub lanes: Vec<Lane>,
    /// Lane pairs without an edge that may not run at the same time, for example because they own the same file.
    pub exclusions: Vec<(LaneIndex, LaneIndex)>,
    /// Those of them that keep an order: the second begins once the first is over, however it ended. Together with the
    /// edges they have no cycle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<(LaneIndex, LaneIndex)>,
    /// Edges that no lane declares for itself, and why they are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added_edges: Vec<AddedEdge>,
    /// What lanes agree upon before they work side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// What the plan's text holds and this plan leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// The files in which its format says what is done, relative to the repository's root: only Lanewright changes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<String>,
    /// The files that the format keeps beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<String>,
    /// The executors of its lanes, by name, as the settings described them when the plan was read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub executors: BTreeMap<String, ExecutorSettings>,
    /// The runners of its agents, by name, as they were described when the plan was read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runners: BTreeMap<String, Runner>,
    /// The template of messages of commits of agents' work; `None`: Lanewright's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_message: Option<String>,
    /// The repository's own templates of prompts, by name, as they were when the plan was read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, String>,
    /// What retries replaced in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replaced>,
}

/// An edge that is not in the lane's list of dependencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedEdge {
    /// The lane that waits.
    pub lane: LaneIndex,
    /// The lane that it waits for.
    pub on: LaneIndex,
    pub origin: EdgeOrigin,
}

/// Where an edge comes from that the lane itself does not declare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeOrigin {
    /// The other lane declares that it blocks this one.
    Blocks,
    /// The lane needs the interface of that id, which the other one provides.
    Interface(String),
}

/// An interface freeze gate: it is closed once what it names can be relied upon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// For example `IF-0-P1-LEDGER`.
    pub id: String,
    /// What is agreed, in words.
    pub text: String,
    /// Whether the plan says that it is closed already.
    pub closed: bool,
    /// The lane whose merge closes it; without one nothing here does.
    pub provider: Option<LaneIndex>,
}

/// A lane that is not part of the plan although its text is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub lane: LaneId,
    pub name: Option<String>,
    /// Why it is left out.
    pub reason: String,
}

impl Plan {
    /// Checks the graph and builds the plan.
    ///
    /// # Errors
    /// The [`Cycle`], when the lanes' dependencies have one.
    pub fn new(parts: PlanParts) -> Result<Self, Cycle> {
        let dag = Dag::new(parts.lanes.iter().map(|lane| lane.depends_on.clone()).collect())?;
        let indices = LaneIndex::first(parts.lanes.len());
        let by_id = parts.lanes.iter().map(|lane| lane.id.clone()).zip(indices).collect();
        Ok(Self { parts, dag, by_id, digests: LaneDigests::default() })
    }

    pub fn dag(&self) -> &Dag {
        &self.dag
    }

    pub fn lane(&self, index: LaneIndex) -> &Lane {
        &self.parts.lanes[index.at()]
    }

    /// The plan with the files in which its format says what is done, and those that it keeps beside them.
    #[must_use]
    pub fn with_lists(mut self, lists: Vec<String>, companions: Vec<String>) -> Self {
        (self.parts.lists, self.parts.companions) = (lists, companions);
        self
    }

    /// The commands that judge `task` of the agent at `agent`: its own, those after every task, and at the end of a candidate's
    /// work all that the lane is judged by.
    pub fn gate_after<'p>(
        &'p self,
        lane: &'p Lane,
        agent: usize,
        task: &'p Task,
    ) -> impl Iterator<Item = &'p CommandLine> {
        let agent = &lane.agents[agent];
        let is_last = agent.candidate.is_some() && agent.tasks[agent.last_own_task()].id == task.id;
        let of_lane = self.gates.checkpoint.iter().chain(&lane.tests).filter(move |_| is_last);
        task.verify.iter().chain(&self.gates.atomic).chain(of_lane)
    }

    /// Whether there are any.
    pub fn is_gated(&self, lane: &Lane, agent: usize, task: &Task) -> bool {
        self.gate_after(lane, agent, task).next().is_some()
    }

    pub fn find(&self, id: &LaneId) -> Option<LaneIndex> {
        self.by_id.get(id).copied()
    }

    pub fn indices(&self) -> impl DoubleEndedIterator<Item = LaneIndex> + use<> {
        LaneIndex::first(self.parts.lanes.len())
    }
}

impl std::ops::Deref for Plan {
    type Target = PlanParts;
    fn deref(&self) -> &PlanParts {
        &self.parts
    }
}

impl TryFrom<PlanParts> for Plan {
    type Error = String;
    fn try_from(parts: PlanParts) -> Result<Self, String> {
        Self::new(parts).map_err(|_| "the lanes' dependencies form a cycle".to_owned())
    }
}

impl From<Plan> for PlanParts {
    fn from(plan: Plan) -> Self {
        plan.parts
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeouts {
    /// One attempt of an agent; absent: the sum of its tasks' `max_time`, or 5 minutes for a specialist.
    #[serde(with = "optional_millis", default)]
    pub agent: Option<Duration>,
    /// One gate command list.
    #[serde(with = "millis")]
    pub gate: Duration,
    /// From SIGTERM to SIGKILL.
    #[serde(with = "millis")]
    pub kill_after: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { agent: None, gate: Duration::from_secs(30 * 60), kill_after: Duration::from_secs(10) }
    }
}

/// Commands that must pass, in the order given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Gates {
    /// After each task, in the agent's worktree.
    pub atomic: Vec<CommandLine>,
    /// After each agent is merged into its lane, in the lane's worktree.
    pub checkpoint: Vec<CommandLine>,
    /// After the last lane, on the integration branch.
    #[serde(rename = "final")]
    pub last: Vec<CommandLine>,
    /// After each edit of an agent whose program calls `hook post-tool-use`, in its worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edit: Vec<CommandLine>,
}

impl Gates {
    /// The commands of all gates.
    pub fn all(&self) -> impl Iterator<Item = &CommandLine> {
        self.edit.iter().chain(&self.atomic).chain(&self.checkpoint).chain(&self.last)
    }
}

/// A unit of work with a branch and a worktree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Unique in the plan.
    pub id: LaneId,
    pub name: Option<String>,
    /// Lanes that must be merged before this one starts.
    pub depends_on: Vec<LaneIndex>,
    /// Globs of the files that only this lane changes; empty: anything may be changed.
    pub owns: Vec<String>,
    /// How changes outside `owns` are treated.
    #[serde(default)]
    pub ownership: OwnershipRule,
    /// What must be true of the repository once the lane's work is done.
    #[serde(default, skip_serializing_if = "MustHaves::is_empty")]
    pub must_haves: MustHaves,
    /// What a person sets up before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_setup: Vec<UserSetup>,
    /// What reviewers judge the work as a whole by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criteria: Option<String>,
    /// Commands that must pass on the lane branch before it is merged.
    pub tests: Vec<CommandLine>,
    /// Whether these are the settings', because the plan has none for the lane.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_usual_tests: bool,
    pub approval: Vec<Approval>,
    /// From start to merge, waiting for people not counted.
    #[serde(with = "optional_millis", default)]
    pub timeout: Option<Duration>,
    /// The issues that its merge closes, as the forge refers to them: `#12`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closes: Vec<String>,
    /// What its agents together may use before no more attempts begin in it.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// How often a failed task, and how often the lane as a whole, is tried again.
    pub retries: u32,
    /// Resource pools that the lane takes a place of while it runs.
    pub uses: Vec<String>,
    /// Commands run in each new worktree before anything else.
    pub setup: Vec<CommandLine>,
    /// Globs of ignored files that are copied from the main worktree into each new worktree.
    pub copy: Vec<String>,
    /// Added to the environment of everything the lane runs.
    pub env: BTreeMap<String, String>,
    /// How it is merged here; `None`: as the run's other lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_style: Option<MergeStyle>,
    /// What a retry finds in its worktree.
    pub resume: RetryFrom,
    /// Which agents get a worktree of their own.
    pub agent_worktrees: AgentWorktrees,
    /// The executor whose jobs work on it; `None`: this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// What its job asks the executor for.
    #[serde(default, skip_serializing_if = "Resources::is_default")]
    pub resources: Resources,
    /// Who works in the lane, in the order of the plan.
    pub agents: Vec<Agent>,
}

impl Lane {
    /// The commands that judge the lane's work alone, besides those that the plan has for every lane.
    pub fn own_gates(&self) -> impl Iterator<Item = &CommandLine> {
        self.agents.iter().flat_map(|agent| &agent.tasks).flat_map(|task| &task.verify).chain(&self.tests)
    }

    /// Whether the lane waits for a person at `gate`.
    pub fn needs(&self, gate: Approval) -> bool {
        self.approval.contains(&gate)
    }

    /// Indices of the agents of `round`.
    pub fn round(&self, round: Round) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.agents.len()).filter(move |&agent| self.agents[agent].round == round)
    }

    /// Its candidates, of which one is chosen; there are none or several, and no other agent does its tasks then.
    pub fn candidates(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.agents.len()).filter(move |&agent| self.agents[agent].candidate.is_some())
    }

    /// The last implementation agent with a task that is not a person's; if there is none, the last one.
    pub fn last_worker(&self) -> Option<usize> {
        let works = |agent: &usize| self.agents[*agent].tasks.iter().any(|task| !task.kind.is_human());
        let all = || self.round(Round::Implementation);
        all().rfind(works).or_else(|| all().next_back())
    }

    /// Whether the work of the agent at `agent` fails if it changes no file.
    pub fn must_change_files(&self, agent: usize) -> bool {
        let agent = &self.agents[agent];
        let mut own = agent.tasks.iter().filter(|task| !task.kind.is_human());
        let writes = agent.round == Round::Implementation && self.ownership != OwnershipRule::Nothing;
        writes && !agent.allow_empty && own.any(|task| !task.allow_empty)
    }

    /// Whether the agent at `agent` works in the lane's worktree, on the lane's branch.
    pub fn shares_worktree(&self, agent: usize) -> bool {
        match self.agent_worktrees {
            AgentWorktrees::On => false,
            AgentWorktrees::Off => true,
            AgentWorktrees::Auto => self.round(self.agents[agent].round).count() == 1,
        }
    }
}

/// The runner of an agent for which neither the plan nor the settings name one. No run starts with it where the agent
/// [runs its command](Agent::runs_its_command).
pub const UNSET_RUNNER: &str = "none";

/// A program that works in a lane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Unique in the lane.
    pub name: AgentName,
    pub round: Round,
    /// What is run for each of its tasks that has no command of its own.
    pub command: CommandLine,
    /// The runner description the command comes from; `command` where the plan gave the command itself, `none` where
    /// nothing names one ([`UNSET_RUNNER`]).
    pub runner: String,
    /// The runners that take its place while its own is paused for long, best first; absent: those of the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<String>>,
    /// Options of its program.
    #[serde(default, skip_serializing_if = "AgentOptions::is_empty")]
    pub options: AgentOptions,
    /// Added to the environment of its attempts.
    pub env: BTreeMap<String, String>,
    /// One attempt at one task; see [`Agent::time_limit`].
    #[serde(with = "optional_millis", default)]
    pub timeout: Option<Duration>,
    /// Whether its work may change no file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_empty: bool,
    /// Its number, from 1, where it is one of several that do the same and of which one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<u32>,
    /// Done one after another; never empty.
    pub tasks: Vec<Task>,
}

/// The longest an atomic task may take unless the plan says otherwise. Seed 000's 10 minutes ended agents at work.
pub const TASK_TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The longest a specialist may take unless the plan says otherwise (seed 002).
pub const SPECIALIST_TIME_LIMIT: Duration = Duration::from_secs(5 * 60);

impl Task {
    /// Its name, else its id.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }
}

impl Agent {
    /// Whether its command is run at all: for a task that is not a person's and has no command of its own.
    pub fn runs_its_command(&self) -> bool {
        self.tasks.iter().any(|task| !task.kind.is_human() && task.command.is_none())
    }

    /// The last of its tasks that is not a person's; the first, if all are.
    pub fn last_own_task(&self) -> usize {
        self.tasks.iter().rposition(|task| !task.kind.is_human()).unwrap_or(0)
    }

    /// The first of its tasks that is not a person's.
    pub fn first_own_task(&self) -> usize {
        self.tasks.iter().position(|task| !task.kind.is_human()).unwrap_or(0)
    }

    /// How long one attempt at `task` may take: the agent's own limit, the task's, the plan's, the default of its round.
    pub fn time_limit(&self, task: usize, timeouts: &Timeouts, specialist: Duration) -> Duration {
        let default = if self.round == Round::Implementation { TASK_TIME_LIMIT } else { specialist };
        self.tasks[task].max_time.or(self.timeout).or(timeouts.agent).unwrap_or(default)
    }
}

/// An atomic step of an agent's work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Unique in the lane.
    pub id: TaskId,
    pub name: Option<String>,
    /// Whether it is the agent's or a person's.
    #[serde(rename = "type", default)]
    pub kind: TaskKind,
    /// The prompt of the agent, or the text for the person.
    pub prompt: String,
    /// What is run for it, in place of the agent's command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// Commands that must pass before the next task starts.
    pub verify: Vec<CommandLine>,
    /// How long one attempt may take.
    #[serde(with = "optional_millis", default)]
    pub max_time: Option<Duration>,
    /// Files the task is about, as the plan names them.
    pub files: Vec<String>,
    /// Interfaces the task must provide.
    pub interfaces: Vec<String>,
    /// When the task counts as done, in words.
    pub acceptance_criteria: Vec<String>,
    /// Whether it may change no file, because it only verifies for example.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_empty: bool,
}

word_enum! {
    /// Who does a task.
    #[derive(Default)]
    TaskKind {
        /// The agent's.
        #[default]
        Auto = "auto",
        /// A person looks at what was done.
        HumanVerify = "checkpoint:human-verify",
        /// A person decides; the answer is passed to the agents.
        Decision = "checkpoint:decision",
        /// A person does something that agents cannot.
        HumanAction = "checkpoint:human-action",
    }
}

impl TaskKind {
    pub fn is_human(self) -> bool {
        self != Self::Auto
    }
}

word_enum! {
    /// How strictly `owns` holds.
    #[derive(Default)]
    OwnershipRule {
        /// A change of any other file fails the agent.
        #[default]
        Enforced = "enforced",
        /// The globs keep lanes apart; other files may be changed.
        Advisory = "advisory",
        /// The lane only reads: a change of any file fails the agent.
        Nothing = "nothing",
    }
}

word_enum! {
    /// What becomes of lanes that have no order and share files.
    SharedFiles {
        /// Merged where both have tests that run on what is merged, else kept apart.
        Auto = "auto",
        /// They never run at the same time.
        Exclude = "exclude",
        /// They run at the same time, and what both changed is merged.
        Merge = "merge",
    }
}

word_enum! {
    /// When an agent runs.
    Round {
        /// Writes reports, not code.
        Requirements = "requirements",
        /// Does the lane's tasks.
        Implementation = "implementation",
        /// Chooses one of the candidates that did them.
        Judge = "judge",
        /// Approves or rejects what was done.
        Review = "review",
    }
}

word_enum! {
    Approval {
        /// What a person sets up, before the lane starts.
        Setup = "setup",
        /// Before the implementation starts.
        Plan = "plan",
        /// Before the merge.
        Changes = "changes",
    }
}

word_enum! {
    /// Which agents get a worktree of their own.
    AgentWorktrees {
        /// Every agent: the lane's tests see committed, merged work only.
        On = "on",
        /// Only where more than one agent works in the round.
        Auto = "auto",
        /// None: agents of a round take turns in the lane's worktree.
        Off = "off",
    }
}

impl AgentWorktrees {
    /// Where a plan does not say: the only agent of a lane works in the lane's worktree, unless gates of the lane judge its
    /// work there, which must see what is committed and nothing else.
    pub fn unless_said(agents: usize, is_judged: bool) -> Self {
        if agents == 1 && !is_judged { Self::Auto } else { Self::On }
    }
}

word_enum! {
    /// What a retry finds in its worktree.
    RetryFrom {
        /// What the failed attempt left, partial work included.
        Continue = "continue",
        /// The last state that passed its gate; the partial work is kept in a snapshot.
        Fresh = "fresh",
    }
}

word_enum! {
    /// The format of a plan.
    PlanFormat {
        /// The native format in TOML.
        Toml = "toml",
        /// The native format in YAML.
        Yaml = "yaml",
        /// The native format in JSON.
        Json = "json",
        /// The plans of a GSD phase: Markdown with front matter and `<task>` elements.
        Gsd = "gsd",
        /// A phase plan in Markdown: lanes, their order and interface freeze gates.
        Lanes = "lanes",
        /// The task list of a feature of Spec Kit: phases and user stories in Markdown.
        SpecKit = "speckit",
        /// The task lists of the changes of OpenSpec.
        OpenSpec = "openspec",
        /// The task list of Task Master, in JSON.
        TaskMaster = "taskmaster",
        /// The task list of a specification of Kiro.
        Kiro = "kiro",
        /// The task files of Backlog.md.
        Backlog = "backlog",
        /// The issues of Beads, one a line in JSON.
        Beads = "beads",
        /// Issues of a forge in JSON, as its program prints them.
        Issues = "issues",
    }
}

impl PlanFormat {
    /// Whether it is Lanewright's own, whose keys name everything.
    pub fn is_native(self) -> bool {
        matches!(self, Self::Toml | Self::Yaml | Self::Json)
    }

    /// Whether its plans say in their own files what is done, in which no lane has a say.
    pub fn has_lists(self) -> bool {
        self.records_done() && !matches!(self, Self::Gsd | Self::Issues)
    }

    /// Whether a plan of it says what of it is done already.
    pub fn records_done(self) -> bool {
        !self.is_native() && self != Self::Lanes
    }
}
