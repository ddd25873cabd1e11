//! What is read of the outputs of real tools and agents.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read the files of fixtures")]

mod diagnosis;
mod runner_streams;
