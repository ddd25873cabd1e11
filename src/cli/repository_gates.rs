//! The commands by which people judge the repository, proposed where a plan has lanes without a gate.

use std::io::ErrorKind;
use std::path::Path;

use lanewright_files::regular_file::{self, Links};
use lanewright_model::LaneId;
use lanewright_model::text::listed;
use lanewright_plan::settings::Settings;
use lanewright_plan::{MAX_TEXT, RepositoryGates, repository_gates};

use super::Context;
use super::context::REPOSITORY_CONFIG;

/// What the files in `root` say.
pub(crate) fn gates_of(root: &Path) -> RepositoryGates {
    repository_gates(&|name| match regular_file::read_text_with(&root.join(name), Links::Follow, MAX_TEXT as u64) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => Some(read.map_err(|error| error.to_string())),
    })
}

/// Those that may be proposed for the repository: none where the settings have `tests`.
pub(crate) fn proposed_gates(context: &Context, settings: &Settings) -> RepositoryGates {
    match context.main_worktree() {
        Ok(root) if settings.tests.value.is_none() => gates_of(&root),
        _ => RepositoryGates::default(),
    }
}

/// `tests = ["npm test"]`
pub(crate) fn tests_value(found: &RepositoryGates) -> toml::Value {
    found.gates.iter().map(|gate| toml::Value::from(gate.command.clone())).collect::<Vec<_>>().into()
}

/// `Cargo.toml, `lint` of Makefile`
pub(crate) fn sources(found: &RepositoryGates) -> String {
    let mut sources: Vec<&str> = found.gates.iter().map(|gate| gate.source.as_str()).collect();
    sources.dedup();
    sources.join(", ")
}

/// How many lanes are named.
const NAMED: usize = 8;

/// `2 lanes have no gate, so only the agent says that the work is done: A, B`
pub(crate) fn lanes_without_gate(lanes: &[LaneId]) -> String {
    let names: Vec<String> = lanes.iter().map(ToString::to_string).collect();
    let have = if lanes.len() == 1 { "lane has" } else { "lanes have" };
    let names = listed(&names, NAMED);
    format!("{} {have} no gate, so only the agent says that the work is done: {names}", lanes.len())
}

/// What to do about lanes without a gate.
pub(crate) fn remedy(found: &RepositoryGates) -> String {
    if found.gates.is_empty() {
        return format!("set `tests` in {REPOSITORY_CONFIG}, for all lanes without tests of their own, or in the plan");
    }
    format!(
        "to test lanes as this repository is tested ({}), write `tests = {}` into {REPOSITORY_CONFIG}; \
         `lanewright init --gates` does that",
        sources(found),
        tests_value(found)
    )
}
