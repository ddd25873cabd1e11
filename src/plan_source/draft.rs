//! A plan as a reader found it: typed values with their places, nothing related to anything else yet.
//!
//! Every format's reader ends here; `lower` makes a plan of it.

use std::time::Duration;

use super::source_text::{At, Span};
use crate::model::plan::{AgentWorktrees, EdgeOrigin, OwnershipRule, RetryFrom, Skipped};
use crate::model::{Approval, CommandLine, Gates, MergeMode, MustHaves, Round, TaskKind};

/// A whole plan.
#[derive(Debug, Default)]
pub(super) struct PlanDraft {
    pub(super) phase: Option<At<String>>,
    pub(super) title: Option<At<String>>,
    pub(super) base_branch: Option<At<String>>,
    pub(super) max_parallel: Option<At<u32>>,
    pub(super) merge: Option<At<MergeMode>>,
    pub(super) timeouts: TimeoutsDraft,
    pub(super) pools: Vec<(At<String>, u32)>,
    pub(super) gates: Gates,
    /// What lanes leave open.
    pub(super) defaults: LaneDraft,
    pub(super) lanes: Vec<LaneDraft>,
    pub(super) interfaces: Vec<InterfaceDraft>,
    /// What the text holds and the plan leaves out.
    pub(super) skipped: Vec<Skipped>,
    /// What becomes of lanes that may meet and own the same files.
    pub(super) overlaps: Overlaps,
    /// Lanes are missing that declared waves count, so that nothing can be said about waves.
    pub(super) is_partial: bool,
}

/// What becomes of lanes without an order that own the same files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlaps {
    /// The plan is at fault.
    #[default]
    Refused,
    /// They run one after the other: by wave, then in the order of the text.
    KeptApart,
}

/// An interface freeze gate.
#[derive(Debug, Clone)]
pub(super) struct InterfaceDraft {
    pub(super) id: At<String>,
    pub(super) text: String,
    pub(super) closed: bool,
    /// The id of the lane that provides it; a lane of the plan.
    pub(super) provider: Option<At<String>>,
}

/// Limits that hold for every command.
#[derive(Debug, Default)]
pub(super) struct TimeoutsDraft {
    pub(super) agent: Option<At<Duration>>,
    pub(super) gate: Option<At<Duration>>,
    pub(super) kill_after: Option<At<Duration>>,
}

/// A lane; `None` where the plan says nothing.
#[derive(Debug, Default, Clone)]
pub(super) struct LaneDraft {
    pub(super) span: Span,
    pub(super) id: Option<At<String>>,
    pub(super) name: Option<At<String>>,
    pub(super) depends_on: Vec<At<String>>,
    /// Lanes that must come first although the lane's own list does not name them.
    pub(super) also_after: Vec<(At<String>, EdgeOrigin)>,
    pub(super) excludes: Vec<At<String>>,
    pub(super) wave: Option<At<u32>>,
    pub(super) owns: Option<Vec<At<String>>>,
    pub(super) ownership: Option<At<OwnershipRule>>,
    pub(super) must_haves: MustHaves,
    pub(super) tests: Option<Vec<CommandLine>>,
    pub(super) timeout: Option<At<Duration>>,
    pub(super) retries: Option<At<u32>>,
    pub(super) approval: Option<Vec<At<Approval>>>,
    pub(super) uses: Option<Vec<At<String>>>,
    pub(super) setup: Option<Vec<CommandLine>>,
    pub(super) copy: Option<Vec<At<String>>>,
    pub(super) env: Vec<(At<String>, String)>,
    pub(super) resume: Option<At<RetryFrom>>,
    pub(super) merge: Option<At<MergeMode>>,
    pub(super) agent_worktrees: Option<At<AgentWorktrees>>,
    pub(super) program: ProgramDraft,
    pub(super) prompt: PromptDraft,
    pub(super) max_time: Option<At<Duration>>,
    /// Whether the work of its agents may change no file.
    pub(super) allow_empty: Option<bool>,
    pub(super) tasks: Option<Vec<TaskDraft>>,
    pub(super) agents: Option<Vec<AgentDraft>>,
}

/// What is run: a command, the runner that knows it, or both.
#[derive(Debug, Default, Clone)]
pub(super) struct ProgramDraft {
    pub(super) command: Option<At<CommandLine>>,
    pub(super) runner: Option<At<String>>,
    /// What the plan says is at fault already; nothing more is to be said about it.
    pub(super) faulty: bool,
}

impl ProgramDraft {
    /// Whether the plan says something.
    pub(super) fn is_given(&self) -> bool {
        self.command.is_some() || self.runner.is_some() || self.faulty
    }
}

/// What an agent is told, here or in a file.
#[derive(Debug, Default, Clone)]
pub(super) struct PromptDraft {
    pub(super) text: Option<At<String>>,
    pub(super) file: Option<At<String>>,
}

/// A task of a lane.
#[derive(Debug, Default, Clone)]
pub(super) struct TaskDraft {
    pub(super) span: Span,
    pub(super) id: Option<At<String>>,
    pub(super) name: Option<At<String>>,
    pub(super) kind: Option<At<TaskKind>>,
    pub(super) prompt: PromptDraft,
    pub(super) verify: Vec<CommandLine>,
    pub(super) max_time: Option<At<Duration>>,
    pub(super) files: Vec<At<String>>,
    pub(super) interfaces: Vec<At<String>>,
    pub(super) acceptance_criteria: Vec<At<String>>,
    /// The only implementation agent that does it.
    pub(super) agent: Option<At<String>>,
    /// Whether it may change no file.
    pub(super) allow_empty: bool,
}

/// An agent of a lane.
#[derive(Debug, Default, Clone)]
pub(super) struct AgentDraft {
    pub(super) span: Span,
    pub(super) name: Option<At<String>>,
    pub(super) round: Option<At<Round>>,
    pub(super) program: ProgramDraft,
    pub(super) timeout: Option<At<Duration>>,
    pub(super) env: Vec<(At<String>, String)>,
    pub(super) prompt: PromptDraft,
    pub(super) allow_empty: Option<bool>,
}
