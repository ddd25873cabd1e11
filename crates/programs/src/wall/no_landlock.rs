//! Systems without Landlock.

use std::io;
use std::path::Path;
use std::process::{Child, Command};

use lanewright_model::Wall;

use super::{Refusal, Scratch};

pub(super) fn refusal(_reason: &str) -> Refusal {
    Refusal { reason: "this system has no Landlock".to_owned(), remedy: "run Lanewright on Linux".to_owned() }
}

pub(super) fn spawn_apart(mut command: Command) -> io::Result<Child> {
    command.spawn()
}

pub(super) fn spawn(_: Command, _: &Wall, _: &Path, _: &Scratch) -> io::Result<Child> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn version() -> Option<u32> {
    None
}
