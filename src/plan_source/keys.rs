//! Every key of the native format, with what editors say about it.

use super::native::{MAX_RETRIES, NOT_IN_DEFAULTS};
use crate::model::plan::{AgentWorktrees, OwnershipRule, RetryFrom};
use crate::model::{Approval, MergeMode, Round, TaskKind};

/// A key of a table.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) about: &'static str,
}

/// What a key takes.
pub(super) enum Shape {
    Id,
    Ids,
    Text,
    Texts,
    Number(u32, u32),
    Flag,
    Duration,
    Word(fn() -> Vec<&'static str>),
    Words(fn() -> Vec<&'static str>),
    Command,
    Commands,
    Env,
    Pools,
    /// A table of these keys, those but not named.
    Table(&'static [Key], &'static [&'static str]),
    /// A list of tables of these keys; the named ones cannot be left out.
    Tables(&'static [Key], &'static [&'static str]),
}

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about }
}

const MERGE: fn() -> Vec<&'static str> = || MergeMode::ALL.iter().map(|word| word.word()).collect();
const APPROVAL: fn() -> Vec<&'static str> = || Approval::ALL.iter().map(|word| word.word()).collect();
const ROUND: fn() -> Vec<&'static str> = || Round::ALL.iter().map(|word| word.word()).collect();
const TASK_KIND: fn() -> Vec<&'static str> = || TaskKind::ALL.iter().map(|word| word.word()).collect();
const OWNERSHIP: fn() -> Vec<&'static str> = || OwnershipRule::ALL.iter().map(|word| word.word()).collect();
const RESUME: fn() -> Vec<&'static str> = || RetryFrom::ALL.iter().map(|word| word.word()).collect();
const WORKTREES: fn() -> Vec<&'static str> = || AgentWorktrees::ALL.iter().map(|word| word.word()).collect();

/// Keys that a plan cannot leave out.
pub(super) const REQUIRED: [&str; 2] = ["phase", "lane"];

/// The plan itself.
pub(super) static PLAN: &[Key] = &[
    key("phase", Shape::Id, "The phase's id, for example P1."),
    key("title", Shape::Text, "What the phase is called."),
    key("base_branch", Shape::Text, "The integration branch. Default: the branch that is checked out."),
    key("max_parallel", Shape::Number(1, 10_000), "Agents at once. Default: the number of cores, at least 2."),
    key("merge", Shape::Word(MERGE), "How finished lanes reach the integration branch."),
    key("defaults", Shape::Table(LANE, &NOT_IN_DEFAULTS), "Lane keys for every lane that does not set them itself."),
    key("timeouts", Shape::Table(TIMEOUTS, &[]), "Limits that hold for every command."),
    key("pools", Shape::Pools, "Resource pools: how many lanes that use one may run at once."),
    key("gates", Shape::Table(GATES, &[]), "Commands that must pass."),
    key("interface", Shape::Tables(INTERFACE, &["id"]), "Interface freeze gates: what lanes agree upon."),
    key("lane", Shape::Tables(LANE, &["id"]), "The lanes."),
];

/// `[timeouts]`.
pub(super) static TIMEOUTS: &[Key] = &[
    key("agent", Shape::Duration, "One attempt of an agent at a task. Default: by task and round."),
    key("gate", Shape::Duration, "One gate. Default: 30m."),
    key("kill_after", Shape::Duration, "From SIGTERM to SIGKILL. Default: 10s."),
];

/// `[gates]`.
pub(super) static GATES: &[Key] = &[
    key("atomic", Shape::Commands, "After each task, in the agent's worktree."),
    key("checkpoint", Shape::Commands, "After each agent is merged into its lane."),
    key("final", Shape::Commands, "After the last lane, on the integration branch."),
];

/// `[[interface]]`.
pub(super) static INTERFACE: &[Key] = &[
    key("id", Shape::Id, "The interface's id, for example IF-0-P1-LEDGER."),
    key("text", Shape::Text, "What is agreed."),
    key("closed", Shape::Flag, "Whether it can be relied upon already. Default: false."),
    key("provider", Shape::Id, "The lane whose merge closes it."),
];

/// `[lane.must_haves]`.
pub(super) static MUST_HAVES: &[Key] = &[
    key("truths", Shape::Texts, "Statements that must be true; agents are told of them."),
    key("artifacts", Shape::Tables(ARTIFACT, &["path"]), "Files that must be there."),
    key("key_links", Shape::Tables(KEY_LINK, &["from"]), "Connections between files that must be there."),
];

/// `[[lane.must_haves.artifacts]]`.
pub(super) static ARTIFACT: &[Key] = &[
    key("path", Shape::Text, "The file, relative to the repository's root."),
    key("provides", Shape::Text, "What it is for."),
    key("min_lines", Shape::Number(0, u32::MAX), "How many lines it has at least."),
    key("contains", Shape::Text, "A regular expression that its text matches."),
    key("exports", Shape::Texts, "Names that it exports."),
];

/// `[[lane.must_haves.key_links]]`.
pub(super) static KEY_LINK: &[Key] = &[
    key("from", Shape::Text, "The file that refers to the other, relative to the repository's root."),
    key("to", Shape::Text, "What it refers to."),
    key("via", Shape::Text, "How."),
    key("pattern", Shape::Text, "A regular expression that occurs in `from`."),
];

/// `[[lane]]`.
pub(super) static LANE: &[Key] = &[
    key("id", Shape::Id, "The lane's id, unique in the plan, for example SL-1."),
    key("name", Shape::Text, "What the lane is called."),
    key("depends_on", Shape::Ids, "Lanes that must be merged before this one starts."),
    key("excludes", Shape::Ids, "Lanes that never run at the same time as this one, in either order."),
    key("wave", Shape::Number(0, u32::MAX), "Checked against the dependencies; orders nothing."),
    key("owns", Shape::Texts, "Globs of the files that only this lane changes. Default: anything may be changed."),
    key("ownership", Shape::Word(OWNERSHIP), "How strictly `owns` holds. Default: enforced."),
    key("must_haves", Shape::Table(MUST_HAVES, &[]), "What must be true of the repository when the lane is done."),
    key("tests", Shape::Commands, "Must pass on the lane branch before it is merged."),
    key("timeout", Shape::Duration, "From start to merge, waiting for people not counted."),
    key("retries", Shape::Number(0, MAX_RETRIES), "How often a failed task is tried again. Default: 3."),
    key("approval", Shape::Words(APPROVAL), "Human gates: before the implementation, before the merge."),
    key("uses", Shape::Texts, "Pools that the lane takes a place of while it runs."),
    key("setup", Shape::Commands, "Run in each new worktree before anything else."),
    key("copy", Shape::Texts, "Globs of ignored files that are copied into each new worktree."),
    key("env", Shape::Env, "Added to the environment of everything the lane runs."),
    key("resume", Shape::Word(RESUME), "What a retry finds in its worktree. Default: continue."),
    key("merge", Shape::Word(MERGE), "The same for all lanes; better written once, at the top."),
    key("agent_worktrees", Shape::Word(WORKTREES), "Which agents get a worktree of their own. Default: on."),
    key("runner", Shape::Text, "The runner that the command of the lane's agents comes from."),
    key("command", Shape::Command, "The command of the lane's agents."),
    key("prompt", Shape::Text, "What agents are told that are told nothing of their own."),
    key("prompt_file", Shape::Text, "The same, in a file beside the plan."),
    key("max_time", Shape::Duration, "The time limit of tasks that have none of their own."),
    key("allow_empty", Shape::Flag, "Whether implementation agents may change no file. Default: false."),
    key("task", Shape::Tables(TASK, &[]), "The lane's tasks, done one after the other."),
    key("agent", Shape::Tables(AGENT, &[]), "The lane's agents. Default: one, named after its runner."),
];

/// `[[lane.task]]`.
pub(super) static TASK: &[Key] = &[
    key("id", Shape::Id, "The task's id, unique in the lane. Default: its position."),
    key("name", Shape::Text, "What the task is called."),
    key(
        "type",
        Shape::Word(TASK_KIND),
        "Whose it is: the agent's, or a person's to verify, decide or do. Default: auto.",
    ),
    key("prompt", Shape::Text, "What the agent is told. Default: the name."),
    key("prompt_file", Shape::Text, "The same, in a file beside the plan."),
    key("verify", Shape::Commands, "Must pass before the next task starts."),
    key("max_time", Shape::Duration, "The time limit of one attempt."),
    key("files", Shape::Texts, "Files that the task is about."),
    key("interfaces", Shape::Texts, "Interfaces that the task must provide."),
    key("acceptance_criteria", Shape::Texts, "When the task counts as done, in words."),
    key("agent", Shape::Id, "The one implementation agent that does the task. Default: all of them do it."),
    key("allow_empty", Shape::Flag, "Whether the task may change no file, as one that only verifies. Default: false."),
];

/// `[[lane.agent]]`.
pub(super) static AGENT: &[Key] = &[
    key("name", Shape::Id, "The agent's name, unique in the lane. Default: its runner."),
    key("round", Shape::Word(ROUND), "When the agent works. Default: implementation."),
    key("runner", Shape::Text, "The runner that the command comes from. Default: the lane's."),
    key("command", Shape::Command, "What is run for each of its tasks. Default: the lane's."),
    key("timeout", Shape::Duration, "One attempt at a task that has no limit of its own."),
    key("env", Shape::Env, "Added to the environment of its attempts."),
    key("prompt", Shape::Text, "What the agent is told. Default: the lane's prompt or name."),
    key("prompt_file", Shape::Text, "The same, in a file beside the plan."),
    key("allow_empty", Shape::Flag, "Whether the agent's work may change no file. Default: the lane's."),
];
