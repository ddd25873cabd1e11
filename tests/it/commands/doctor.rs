//! `doctor` on real runs: each damage is named and left alone, then repaired or escalated, then the run continues, and
//! no content is lost on the way.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod damages;
pub mod patient;
mod refusals;
mod refused;
mod resumed;
