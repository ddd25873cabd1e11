//! A plan whose work a merge brings in, and what the project's planning files hold after it.

use std::path::Path;

use super::{CommitId, PlanFormat, RunId};

/// A plan that is done with the merge of its lane.
#[derive(Debug, Clone, Copy)]
pub struct MergedPlan<'a> {
    /// The lane's id, which the whole directory may know by another one.
    pub lane: &'a str,
    pub name: Option<&'a str>,
    pub phase: &'a str,
    /// The ids of all lanes that the run has or leaves out.
    pub lanes: &'a [String],
    /// The directory of the plans, relative to the repository's root; `None`: it is elsewhere.
    pub directory: Option<&'a Path>,
    /// The plan's file name, if the run executes that file only.
    pub file: Option<&'a str>,
    /// The names in the directory at the lane's head, and those on the integration branch.
    pub names: [&'a [String]; 2],
    /// `2026-01-31`.
    pub date: &'a str,
    /// The run and the lane's head, for a summary.
    pub source: (&'a RunId, &'a CommitId),
    /// The prompt of its last task.
    pub prompt: &'a str,
    /// The names of its tasks, and the files that its lane changed, for a summary.
    pub tasks: &'a [String],
    pub changed: &'a [String],
    /// What failed in its lane, a line each: `task 1 (agent): message`.
    pub errors: &'a [String],
    /// Whether `ROADMAP.md` and `STATE.md` are kept up to date.
    pub tracking: bool,
    /// `ROADMAP.md` and `STATE.md` as the integration branch has them.
    pub texts: [Option<&'a str>; 2],
}

/// The planning files after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanningFiles {
    /// `ROADMAP.md` and `STATE.md`.
    pub texts: [Option<String>; 2],
    /// The name and the text of the summary that marks the plan as done, if its lane wrote none.
    pub summary: Option<(String, String)>,
}

/// A lane whose work is merged, or was rolled back, and a file in which its plan's format says what is done.
#[derive(Debug, Clone, Copy)]
pub struct Tick<'a> {
    pub format: PlanFormat,
    pub path: &'a str,
    pub text: &'a str,
    /// Files that the format keeps beside its plan, such as the settings of its program, each with its path and text.
    pub companions: &'a [(String, String)],
    /// The plan's phase, which says what list of a file is meant where it has several.
    pub phase: &'a str,
    pub lane: &'a str,
    /// The lane's tasks, by their ids.
    pub tasks: &'a [&'a str],
    /// Whether they are done now; else they are open again.
    pub done: bool,
}
