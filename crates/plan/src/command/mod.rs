//! Finds the commands of a plan that judge work: separates commands from prose, and selects those that can judge.
//!
//! `classify` says what is a command, `statement` which commands a sentence has one run, and `judge` which of them can be
//! gates. Where a text may be prose it is: a word too many for the agent to read costs nothing, and a gate that is wrong
//! fails every attempt.

mod classify;
mod judge;
mod never_exits;
mod repository_root;
mod statement;
mod vocabulary;

pub(super) use classify::{is_syntax, may_be_call, may_be_command, without_remark};
pub(super) use judge::{Commands, GateFault, acts_in_account, script_gate};
pub(super) use never_exits::never_exits;
pub(super) use repository_root::root;
pub(super) use statement::{commands, commands_of_cell, expects_failure, in_statement, quotes_program, searches};
pub(super) use vocabulary::is_in;
