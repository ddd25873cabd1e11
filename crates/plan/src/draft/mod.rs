//! A plan as a reader found it: typed values with their places, nothing related to anything else yet; and the keys of the
//! native format that fill it.
//!
//! Every format's reader ends here; `validate` makes a plan of it.

mod fields;
mod keys;
mod matrix;
pub mod schema;
mod values;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::settings::value::words;
use crate::source_text::{At, Span, value};
use fields::Fields;
pub(super) use fields::plan as from_tree;
use keys::Shape::{
    Candidates, Command, Commands, Dollars as Money, Duration as Time, Env, Flag, FullText, Id, Ids, Matrix, Number,
    Pools, Table as Nested, Tables, Text, Texts, Word, Words,
};
use keys::{Field, Key, Table, draft, filled_by_no_key, table};
use lanewright_model::AgentOptions;
use lanewright_model::plan::{AgentWorktrees, EdgeOrigin, OwnershipRule, RetryFrom, SharedFiles, Skipped};
use lanewright_model::{
    Approval, Artifact, CommandLine, Dollars, Gates, KeyLink, MergeChoice, MustHaves, Round, SetupStep, SetupVariable,
    TaskKind, UserSetup,
};

/// The most often that a failed task may be tried again.
const MAX_RETRIES: u32 = 100;

/// Keys of a lane that cannot be the same for all.
const NOT_IN_DEFAULTS: [&str; 8] =
    ["id", "name", "matrix", "depends_on", "excludes", "wave", "must_haves", "user_setup"];

draft! {
    PlanDraft = "a plan" {
        phase: Option<At<String>> =
            ["phase": Id, "The phase's id, for example P1.", or "name the phase, for example `P1`"];
        title: Option<At<String>> = ["title": Text, "What the phase is called."];
        base_branch: Option<At<String>> =
            ["base_branch": FullText, "The integration branch. Default: the branch that is checked out."];
        max_parallel: Option<At<u32>> =
            ["max_parallel": Number(1, 10_000), "Agents at once. Default: twice the number of processors, at least 4."];
        merge: Option<At<MergeChoice>> =
            ["merge": Word(words::<MergeChoice>), "How finished lanes reach the integration branch. Default: local, a merge commit."];
        commit_message: Option<At<String>> =
            ["commit_message": FullText, "The template of messages of commits that are made of agents' work."];
        /// What lanes leave open.
        defaults: LaneDraft =
            ["defaults": Nested(LaneDraft::keys, &NOT_IN_DEFAULTS), "Lane keys for every lane that does not set them itself."];
        timeouts: TimeoutsDraft = ["timeouts": Nested(TimeoutsDraft::keys, &[]), "Limits that hold for every command."];
        pools: Vec<(At<String>, u32)> =
            ["pools": Pools, "Resource pools: how many lanes that use one may run at once."];
        gates: Gates = ["gates": Nested(Gates::keys, &[]), "Commands that must pass."];
        shared_files: Option<At<SharedFiles>> = ["shared_files": Word(words::<SharedFiles>),
            "What becomes of lanes without an order that own the same files. Default: an error."];
        require_gates: Option<bool> =
            ["require_gates": Flag, "Whether a lane without a gate that can fail is an error. Default: false, a warning."];
        interfaces: Vec<InterfaceDraft> =
            ["interface": Tables(InterfaceDraft::keys), "Interface freeze gates: what lanes agree upon."];
        lanes: Vec<LaneDraft> = ["lane": Tables(LaneDraft::keys), "The lanes.", or "a plan has at least one lane"];
        /// What the text holds and the plan leaves out.
        skipped: Vec<Skipped> = [];
        /// What becomes of lanes that may meet and own the same files, where neither plan nor settings say.
        overlaps: Overlaps = [];
        /// Globs of files that exist, as far as the text says.
        existing: BTreeSet<String> = [];
        /// Lanes are missing that declared waves count, so that nothing can be said about waves.
        is_partial: bool = [];
    }
}

/// What becomes of lanes without an order that own the same files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlaps {
    /// The plan is at fault.
    #[default]
    Refused,
    /// They run one after the other, by wave, then in the order of the text, or side by side.
    Shared(SharedFiles),
}

impl Overlaps {
    /// What the formats of other programs have: their tasks name files by the way, and many name the same few.
    pub(super) const AUTO: Self = Self::Shared(SharedFiles::Auto);
}

filled_by_no_key! { Overlaps, BTreeSet<String>, Vec<(String, Span)> }

draft! {
    InterfaceDraft = "an interface" {
        id: At<String> = ["id": Id, "The interface's id, for example IF-0-P1-LEDGER.",
            or "name the interface, for example `IF-0-P1-LEDGER`"];
        text: String = ["text": Text, "What is agreed."];
        closed: bool = ["closed": Flag, "Whether it can be relied upon already. Default: false."];
        /// The id of the lane that provides it; a lane of the plan.
        provider: Option<At<String>> = ["provider": Id, "The lane whose merge closes it."];
    }
}

draft! {
    TimeoutsDraft = "the limits" {
        agent: Option<At<Duration>> = ["agent": Time, "One attempt of an agent at a task. Default: by task and round."];
        gate: Option<At<Duration>> = ["gate": Time, "One gate. Default: 30m."];
        kill_after: Option<At<Duration>> = ["kill_after": Time, "From SIGTERM to SIGKILL. Default: 10s."];
    }
}

table! {
    Gates = "the gates" {
        edit: Vec<CommandLine> =
            ["edit": Commands, "After each edit of an agent of Claude Code, in its worktree; a failure goes back to it at once."];
        atomic: Vec<CommandLine> = ["atomic": Commands, "After each task, in the agent's worktree."];
        checkpoint: Vec<CommandLine> = ["checkpoint": Commands, "After each agent is merged into its lane."];
        last: Vec<CommandLine> = ["final": Commands, "After the last lane, on the integration branch."];
    }
}

table! {
    MustHaves = "what a lane must have" {
        truths: Vec<String> = ["truths": Texts, "Statements that must be true. They are part of the agents' prompts."];
        artifacts: Vec<Artifact> = ["artifacts": Tables(Artifact::keys), "Files that must be there."];
        key_links: Vec<KeyLink> =
            ["key_links": Tables(KeyLink::keys), "Connections between files that must be there."];
    }
}

table! {
    Artifact = "an artifact" {
        path: String = ["path": FullText, "The file, relative to the repository's root.",
            or "name the file, relative to the repository's root"];
        provides: Option<String> = ["provides": Text, "What it is for."];
        min_lines: Option<u32> = ["min_lines": Number(0, u32::MAX), "How many lines it has at least."];
        contains: Option<String> = ["contains": Text, "A regular expression that its text matches."];
        exports: Vec<String> = ["exports": Texts, "Names that it exports."];
    }
}

table! {
    UserSetup = "a service to set up" {
        service: String = ["service": Text, "The name of the service."];
        why: Option<String> = ["why": Text, "What it is needed for."];
        env_vars: Vec<SetupVariable> =
            ["env_vars": Tables(SetupVariable::keys), "Variables that the lane's agents need."];
        dashboard_config: Vec<SetupStep> =
            ["dashboard_config": Tables(SetupStep::keys), "Steps that a person carries out."];
    }
}

table! {
    SetupVariable = "a variable" {
        name: String = ["name": FullText, "The variable.", or "name the variable"];
        source: Option<String> = ["source": Text, "Where its value is found."];
    }
}

table! {
    SetupStep = "a step" {
        task: String = ["task": FullText, "What to do.", or "say what to do"];
        location: Option<String> = ["location": Text, "Where."];
    }
}

table! {
    KeyLink = "a key link" {
        from: String = ["from": FullText, "The file that refers to the other, relative to the repository's root.",
            or "name the file, relative to the repository's root"];
        to: String = ["to": Text, "What it refers to."];
        via: Option<String> = ["via": Text, "How."];
        pattern: Option<String> = ["pattern": Text, "A regular expression that occurs in `from`."];
    }
}

draft! {
    /// A lane; `None` where the plan says nothing.
    LaneDraft = "a lane" {
        span: Span = [];
        id: Option<At<String>> =
            ["id": Id, "The lane's id, unique in the plan, for example SL-1.", or "name the lane, for example `SL-1`"];
        name: Option<At<String>> = ["name": Text, "What the lane is called."];
        depends_on: Vec<At<String>> = ["depends_on": Ids, "Lanes that must be merged before this one starts."];
        /// Lanes that must come first although the lane's own list does not name them.
        also_after: Vec<(At<String>, EdgeOrigin)> =
            // Carried out before the keys are read.
            ["matrix": Matrix, "Names with lists of values: one lane for each combination."];
        excludes: Vec<At<String>> =
            ["excludes": Ids, "Lanes that never run at the same time as this one, in either order."];
        wave: Option<At<u32>> = ["wave": Number(0, u32::MAX), "Checked against the dependencies; orders nothing."];
        owns: Option<Vec<At<String>>> = ["owns": Texts,
            "Globs of the files that only this lane changes. Default: anything may be changed."];
        /// Those of `owns` that the lane makes unless they exist.
        creates: BTreeSet<String> = [];
        ownership: Option<At<OwnershipRule>> =
            ["ownership": Word(words::<OwnershipRule>), "How strictly `owns` holds. Default: enforced."];
        must_haves: MustHaves = ["must_haves": Nested(MustHaves::keys, &[]),
            "What must be true of the repository when the lane is done."];
        user_setup: Vec<UserSetup> =
            ["user_setup": Tables(UserSetup::keys), "What a person sets up before the lane starts."];
        criteria: Option<String> = ["criteria": Text, "What reviewers judge the work as a whole by."];
        /// Where the text says each of `tests`, as far as is known.
        gate_places: Vec<(String, Span)> = [];
        tests: Option<Vec<CommandLine>> = ["tests": Commands, "Must pass on the lane branch before it is merged."];
        timeout: Option<At<Duration>> = ["timeout": Time, "From start to merge, waiting for people not counted."];
        retries: Option<At<u32>> =
            ["retries": Number(0, MAX_RETRIES), "How often a failed task is tried again. Default: 3."];
        approval: Option<Vec<At<Approval>>> =
            ["approval": Words(words::<Approval>), "Human gates: before the lane starts, before the implementation, before the merge."];
        uses: Option<Vec<At<String>>> = ["uses": Texts, "Pools that the lane takes a place of while it runs."];
        setup: Option<Vec<CommandLine>> = ["setup": Commands, "Run in each new worktree before anything else."];
        copy: Option<Vec<At<String>>> =
            ["copy": Texts, "Globs of ignored files that are copied into each new worktree."];
        env: Vec<(At<String>, String)> = ["env": Env, "Added to the environment of everything the lane runs."];
        resume: Option<At<RetryFrom>> =
            ["resume": Word(words::<RetryFrom>), "What a retry finds in its worktree. Default: continue."];
        merge: Option<At<MergeChoice>> =
            ["merge": Word(words::<MergeChoice>), "How the lane is merged: merge, squash, rebase or ff. Default: the plan's."];
        agent_worktrees: Option<At<AgentWorktrees>> = ["agent_worktrees": Word(words::<AgentWorktrees>),
            "Which agents get a worktree of their own. Default: on."];
        executor: Option<At<String>> = ["executor": FullText,
            "The executor of the settings whose jobs work on the lane. Default: none, it is worked on here."];
        cpus: Option<At<u32>> = ["cpus": Number(1, 100_000), "How many processors the lane's job asks for. Default: 1."];
        memory_mib: Option<At<u32>> =
            ["memory_mib": Number(1, u32::MAX), "How much memory the lane's job asks for, in MiB. Default: 2048."];
        gpus: Option<At<u32>> = ["gpus": Number(1, 1000), "How many GPUs the lane's job asks for. Default: none."];
        image: Option<At<String>> =
            ["image": FullText, "The image of the lane's pod, in place of the executor's `image`."];
        job_time: Option<At<Duration>> = ["job_time": Time, "How long the lane's job may take. Default: 8 hours."];
        program: ProgramDraft = [
            "runner": FullText, "The runner that the command of the lane's agents comes from.";
            "command": Command, "The command of the lane's agents."];
        fallback: Option<Vec<At<String>>> =
            ["fallback": Texts, "Runners that take the place of one that is paused for long, best first. Default: its own."];
        options: OptionsDraft = [
            "model": FullText, "The model of the lane's agents, in their program's words.";
            "effort": FullText, "How hard they think, in their program's words, such as high.";
            "max_turns": Number(1, 1_000_000), "The most turns of one attempt.";
            "budget": Money, "The most that one attempt may cost, in US dollars."];
        prompt: PromptDraft = [
            "prompt": Text, "The prompt of agents that have none.";
            "prompt_file": FullText, "The same, in a file beside the plan."];
        candidates: Option<At<CandidatesDraft>> = ["candidates": Candidates,
            "How many agents do the lane's tasks, each by itself, or the runners that do, with or without a model (`claude:opus`); \
             the best result is merged. Default: 1."];
        judge: Option<At<String>> = ["judge": FullText,
            "The runner, with or without a model, that chooses among candidates that passed. Default: none, the smallest change."];
        closes: Vec<At<String>> = ["closes": Texts, "Issues that its merge closes, such as `#12`."];
        max_cost: Option<At<Dollars>> =
            ["max_cost": Money, "How many US dollars the lane's agents may cost before no more are started. Default: no limit."];
        max_tokens: Option<At<u32>> = ["max_tokens": Number(1, u32::MAX),
            "How many tokens they may use, those of the cache included. Default: no limit."];
        max_time: Option<At<Duration>> = ["max_time": Time, "The time limit of tasks that have none of their own."];
        allow_empty: Option<bool> =
            ["allow_empty": Flag, "Whether implementation agents may change no file. Default: false."];
        tasks: Option<Vec<TaskDraft>> =
            ["task": Tables(TaskDraft::keys), "The lane's tasks, done one after the other."];
        agents: Option<Vec<AgentDraft>> =
            ["agent": Tables(AgentDraft::keys), "The lane's agents. Default: one, named after its runner."];
    }
}

impl LaneDraft {
    /// Takes from `defaults` what the lane leaves open.
    pub(super) fn fill(&mut self, defaults: &Self) {
        Table::fill(self, defaults);
    }
}

/// What is run: a command, the runner that knows it, or both.
#[derive(Debug, Default, Clone)]
pub(super) struct ProgramDraft {
    pub(super) command: Option<At<CommandLine>>,
    pub(super) runner: Option<At<String>>,
    /// The value is already reported as invalid; report nothing more about it.
    pub(super) faulty: bool,
}

impl ProgramDraft {
    /// Whether the plan says something.
    pub(super) fn is_given(&self) -> bool {
        self.command.is_some() || self.runner.is_some() || self.faulty
    }
}

impl Field for ProgramDraft {
    fn read(fields: &mut Fields<'_>, _: &[&'static str]) -> Self {
        let before = fields.faults.errors();
        let (command, runner) = (fields.read("command"), fields.read("runner"));
        Self { command, runner, faulty: fields.faults.errors() > before }
    }

    fn fill(&mut self, default: &Self) {
        if !self.is_given() {
            self.clone_from(default);
        }
    }
}

/// How many agents do the same.
#[derive(Debug, Clone)]
pub(super) enum CandidatesDraft {
    Count(u32),
    /// One for each runner, behind which a colon and a model may follow.
    Each(Vec<At<String>>),
}

/// The most candidates: each has a worktree of its own and is paid for.
pub(super) const MAX_CANDIDATES: u32 = 16;

#[derive(Debug, Default, Clone)]
pub(super) struct OptionsDraft {
    pub(super) model: Option<At<String>>,
    pub(super) effort: Option<At<String>>,
    pub(super) max_turns: Option<At<u32>>,
    pub(super) budget: Option<At<Dollars>>,
}

impl OptionsDraft {
    /// These options, with those of `lane` for what is not set here.
    pub(super) fn within(&self, lane: &Self) -> AgentOptions {
        let mut all = self.clone();
        all.fill(lane);
        AgentOptions {
            model: value(&all.model),
            effort: value(&all.effort),
            max_turns: value(&all.max_turns),
            budget: value(&all.budget),
        }
    }
}

impl Field for OptionsDraft {
    fn read(fields: &mut Fields<'_>, _: &[&'static str]) -> Self {
        Self {
            model: argument(fields, "model"),
            effort: argument(fields, "effort"),
            max_turns: fields.read("max_turns"),
            budget: fields.read("budget"),
        }
    }

    fn fill(&mut self, default: &Self) {
        self.model.fill(&default.model);
        self.effort.fill(&default.effort);
        self.max_turns.fill(&default.max_turns);
        self.budget.fill(&default.budget);
    }
}

/// A text that becomes an argument of the program: one with a hyphen in front would be another option of it.
fn argument(fields: &mut Fields<'_>, name: &str) -> Option<At<String>> {
    let text: At<String> = fields.read(name)?;
    if text.value.starts_with('-') {
        let message = format!("`{name}` may not begin with a hyphen: the program would read it as an option");
        let help = "add options of the program as `arguments` of its runner; see docs/runners.md";
        fields.faults.error_with(text.span, message, help);
        return None;
    }
    Some(text)
}

/// A prompt, here or in a file.
#[derive(Debug, Default, Clone)]
pub(super) struct PromptDraft {
    pub(super) text: Option<At<String>>,
    pub(super) file: Option<At<String>>,
}

impl PromptDraft {
    /// Text at `span`, or made from the text there.
    pub(super) fn here(text: String, span: Span) -> Self {
        Self { text: Some(At::new(text, span)), file: None }
    }
}

impl Field for PromptDraft {
    fn read(fields: &mut Fields<'_>, _: &[&'static str]) -> Self {
        Self { text: fields.read("prompt"), file: fields.read("prompt_file") }
    }

    fn fill(&mut self, default: &Self) {
        if self.text.is_none() && self.file.is_none() {
            self.clone_from(default);
        }
    }
}

draft! {
    TaskDraft = "a task" {
        span: Span = [];
        id: Option<At<String>> = ["id": Id, "The task's id, unique in the lane. Default: its position, after those of the lane and of earlier agents."];
        name: Option<At<String>> = ["name": Text, "What the task is called."];
        kind: Option<At<TaskKind>> = ["type": Word(words::<TaskKind>),
            "Whose it is: the agent's, or a person's to verify, decide or do. Default: auto."];
        prompt: PromptDraft = [
            "prompt": Text, "The agent's prompt. Default: the name.";
            "prompt_file": FullText, "The same, in a file beside the plan."];
        command: Option<At<CommandLine>> =
            ["command": Command, "What is run for the task. Default: the agent's command."];
        verify: Vec<CommandLine> = ["verify": Commands, "Must pass before the next task starts."];
        max_time: Option<At<Duration>> = ["max_time": Time, "The time limit of one attempt."];
        files: Vec<At<String>> = ["files": Texts, "Files that the task is about."];
        interfaces: Vec<At<String>> = ["interfaces": Texts, "Interfaces that the task must provide."];
        acceptance_criteria: Vec<At<String>> =
            ["acceptance_criteria": Texts, "When the task counts as done, in words."];
        agent: Option<At<String>> =
            ["agent": Id, "The one implementation agent that does the task. Default: all of them do it."];
        allow_empty: bool = ["allow_empty": Flag,
            "Whether the task may change no file, as one that only verifies. Default: false."];
    }
}

draft! {
    AgentDraft = "an agent" {
        span: Span = [];
        name: Option<At<String>> =
            ["name": Id, "The agent's name, unique in the lane. Default: its runner."];
        round: Option<At<Round>> =
            ["round": Word(words::<Round>), "When the agent works. Default: implementation."];
        program: ProgramDraft = [
            "runner": FullText, "The runner that the command comes from. Default: the lane's.";
            "command": Command, "What is run for each of its tasks that has no command. Default: the lane's."];
        fallback: Option<Vec<At<String>>> =
            ["fallback": Texts, "Runners that take the place of its own while that is paused for long. Default: the lane's."];
        candidates: Option<At<CandidatesDraft>> = ["candidates": Candidates,
            "How many agents do its tasks, each by itself, or the runners that do. Default: the lane's."];
        options: OptionsDraft = [
            "model": FullText, "The model, in its program's words. Default: the lane's.";
            "effort": FullText, "How hard it thinks, in its program's words, such as high. Default: the lane's.";
            "max_turns": Number(1, 1_000_000), "The most turns of one attempt. Default: the lane's.";
            "budget": Money, "The most that one attempt may cost, in US dollars. Default: the lane's."];
        timeout: Option<At<Duration>> = ["timeout": Time, "One attempt at a task that has no limit of its own."];
        env: Vec<(At<String>, String)> = ["env": Env, "Added to the environment of its attempts."];
        prompt: PromptDraft = [
            "prompt": Text, "The agent's prompt. Default: the lane's prompt or name.";
            "prompt_file": FullText, "The same, in a file beside the plan."];
        allow_empty: Option<bool> =
            ["allow_empty": Flag, "Whether the agent's work may change no file. Default: the lane's."];
        tasks: Option<Vec<TaskDraft>> =
            ["task": Tables(TaskDraft::keys), "The tasks of an implementation agent, in place of the lane's."];
    }
}
