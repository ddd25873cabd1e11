//! State that somebody or something has damaged: no panic, no silent wrong answer, nothing lost, and a way out.
//!
//! Each way to damage a real run's state is a row. The run is asked about, resumed, looked at by the doctor, repaired and
//! resumed again, and a row says where that ends.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![cfg(target_os = "linux")]

mod manifest;
mod repository;

#[path = "corruption/course.rs"]
mod course;
#[path = "corruption/cuts.rs"]
mod cuts;
#[path = "corruption/files.rs"]
mod files;
#[path = "corruption/git.rs"]
mod git;
#[path = "corruption/meanwhile.rs"]
mod meanwhile;
#[path = "doctor/patient.rs"]
#[allow(dead_code, reason = "the doctor's tests use the rest")]
mod patient;
