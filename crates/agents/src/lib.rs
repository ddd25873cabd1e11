//! What Lanewright knows of the agents that it runs and of the commands that judge their work: how each agent's program is
//! called and what it prints ([`runner`]), its prompts ([`prompt`]), what a failed command means ([`diagnose`]), and
//! whether a line of shell can fail ([`shell`]).
//!
//! Pure: nothing here starts a program or reads a file. A stream, a log or a template is a parameter.
//!
//! Begin with [`runner::Catalogue`] for another agent, and [`diagnose::diagnose`] for another tool whose output is to be
//! understood.

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]
#![cfg_attr(test, allow(clippy::disallowed_types, reason = "tests ask a real shell"))]

pub mod diagnose;
pub mod prompt;
pub mod runner;
pub mod sandbox;
pub mod shell;
