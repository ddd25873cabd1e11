//! What a line of shell means, as far as a gate depends on it: which commands it runs, whether it can fail, and how it
//! is run so that it fails where it should.
//!
//! `parse` takes a script apart; `meaning` and `strict` look at the parts. Nothing here runs anything.

mod meaning;
mod parse;
mod strict;

pub use meaning::{Harmless, cannot_fail, without_display_filters};
pub use parse::{Command, Kind, Link, List, MAX_SCRIPT, Pipeline, Script, Word, parse, with_literal_parentheses};
pub use strict::{Shell, shell_of, strict};
