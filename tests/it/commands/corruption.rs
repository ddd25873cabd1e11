//! State that somebody or something has damaged: no panic, no silent wrong answer, nothing lost, and a way out.
//!
//! Each way to damage a real run's state is a row. The run is asked about, resumed, looked at by the doctor, repaired and
//! resumed again, and a row says where that ends.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod cuts;
mod files;
mod git;
mod meanwhile;
mod objects;
mod way_out;
