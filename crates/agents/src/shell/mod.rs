//! What a line of shell means, as far as a gate depends on it: which commands it runs, whether it can fail, and how it
//! is run so that it fails where it should.
//!
//! `parse` takes a script apart into the parts of `syntax`; `exit_status` and `strict` inspect them. Nothing here runs
//! anything.

mod exit_status;
mod parse;
mod strict;
mod syntax;

pub use exit_status::{cannot_fail, without_display_filters};
pub use parse::{MAX_SCRIPT, parse, with_literal_parentheses};
pub use strict::{Shell, gate_arguments, is_search, seeks_failures, shell_of, strict};
pub use syntax::{Command, Kind, Link, List, Pipeline, Script, Word, edited, has_letter};

use lanewright_model::{CommandLine, Lane, Plan};

/// Whether a command judges the work of `lane` before it is merged, one that can fail.
pub fn has_gate(plan: &Plan, lane: &Lane) -> bool {
    let mut gates = lane.own_gates().chain(&plan.gates.atomic).chain(&plan.gates.checkpoint);
    gates.any(|command| match command {
        CommandLine::Shell(line) => cannot_fail(line).is_none(),
        CommandLine::Arguments(_) => true,
    })
}
