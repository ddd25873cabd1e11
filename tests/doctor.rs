//! `doctor` on real runs: each damage is named and left alone, then repaired or escalated, then the run continues, and
//! no content is lost on the way.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod manifest;
mod repository;

#[path = "doctor/damages.rs"]
mod damages;
#[path = "doctor/patient.rs"]
mod patient;
#[path = "doctor/refusals.rs"]
mod refusals;
#[path = "doctor/refused.rs"]
mod refused;
