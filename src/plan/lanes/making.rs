//! What all lanes of a plan are made with.

use super::context::Context;
use super::phase_wide::SingleWriter;
use super::policy::Policies;
use crate::plan::Fallbacks;
use crate::plan::before::Before;
use crate::plan::validate::Runners;

pub(super) struct Making<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) policies: &'a Policies,
    pub(super) runners: &'a Runners<'a>,
    pub(super) fallbacks: Fallbacks<'a>,
    /// Written for the first tool, whose plans say more of each task.
    pub(super) first_version: bool,
    /// The most bytes that every agent of a lane is told beside its task: all prompts together stay within a limit.
    pub(super) story_limit: usize,
    pub(super) before: Before,
    /// The phase as a heading names it.
    pub(super) phase: String,
    /// The execution notes, with the lanes that each names.
    pub(super) notes: Vec<(String, Vec<usize>)>,
    /// The dispatch hints, by the name of the lane as it is written.
    pub(super) hints: Vec<(String, String)>,
    pub(super) single_writers: Vec<SingleWriter>,
    /// By lane, what the file-by-file specification says.
    pub(super) specifications: Vec<(usize, String)>,
    /// What the phase is about.
    pub(super) introduction: Option<String>,
    /// Told to lanes that no other lane waits for.
    pub(super) acceptance: Option<String>,
    /// How the phase is verified; told to the same.
    pub(super) verification: Option<String>,
}
