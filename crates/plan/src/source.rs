//! What a plan is read from, and how.

use lanewright_model::{ExecutorKind, PlanFormat};

/// A plan whose files are read already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Source<'a> {
    /// Its files: one, or all plans of a GSD phase in the order of their names.
    pub files: &'a [SourceFile<'a>],
    /// The names of all files in the directory of the first one; a GSD plan with a SUMMARY beside it is done.
    pub beside: &'a [String],
    /// Its format; `None`: detected from the text.
    pub format: Option<PlanFormat>,
    /// What the settings say where the plan says nothing.
    pub fallbacks: Fallbacks<'a>,
    /// How strictly it is read.
    pub options: ReadOptions<'a>,
}

/// A file of a plan.
#[derive(Debug, Clone, Copy)]
pub struct SourceFile<'a> {
    /// What diagnostics call the file.
    pub path: &'a str,
    /// Its text; see `decode`.
    pub text: &'a str,
}

/// What a person asks for when a plan is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Take lanes that are done already as well (`--redo`).
    pub redo: bool,
    /// Lanes that are not done although there is a SUMMARY, for their run stopped half-way.
    pub unfinished: &'a [String],
    /// What a plan should say and does not is an error (`--strict`).
    pub strict: bool,
    /// An open interface gate that no lane provides is an error (`--strict-gates`).
    pub strict_gates: bool,
    /// Take a plan that says it is retired (`--force`).
    pub force: bool,
    /// Keys of a native plan that are not known are ignored with a warning (`--allow-unknown`).
    pub allow_unknown: bool,
}

/// What holds for agents and lanes of which the plan says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fallbacks<'a> {
    /// The runner of agents that have neither a command nor a runner.
    pub runner: Option<&'a str>,
    /// Whether that runner also takes the place of those that the plan names.
    pub runner_outranks_plan: bool,
    /// The executor of lanes that name none.
    pub executor: Option<&'a str>,
    /// The executors that there are.
    pub executors: &'a [(&'a str, ExecutorKind)],
    /// How often lanes are tried again.
    pub retries: Option<u32>,
}
