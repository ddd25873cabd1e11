//! Scripts of a package.json, by the package manager that the repository uses.

use lanewright_agents::shell::cannot_fail;
use lanewright_model::dependencies::DEPENDENCIES;
use serde_json::Value;

use super::{Purpose, Root, UNREADABLE};
use crate::command::never_exits;
use crate::{Diagnostic, Severity};

const FILE: &str = "package.json";

/// The names that scripts have for each purpose, the most usual one first; only the first one that there is is taken.
const WANTED: [(Purpose, &[&str]); 4] = [
    (Purpose::Lint, &["lint"]),
    (Purpose::Types, &["typecheck", "type-check", "check-types", "check:types", "types"]),
    (Purpose::Test, &["test"]),
    (Purpose::Build, &["build"]),
];

/// Test runners that watch the files unless an option or `CI` says otherwise.
const WATCHING: [&str; 3] = ["react-scripts test", "ng test", "karma start"];
const ENDING: [&str; 4] = ["CI=", "--watch=false", "--watchAll=false", "--single-run"];

/// Options by which a script changes what it judges.
const FIXING: [&str; 4] = ["--fix", "--write", "--apply", "--watch"];

pub(super) fn find(root: &mut Root<'_>) {
    let Some(text) = root.text(FILE) else { return };
    let package: Value = match serde_json::from_str(&text) {
        Ok(package) => package,
        Err(error) => {
            let message = format!("invalid JSON: {error}");
            return root.fault(Diagnostic::at_line(
                Severity::Warning,
                FILE,
                &text,
                error.line().max(1),
                &message,
                UNREADABLE,
            ));
        }
    };
    let manager = manager(root, &package);
    for (purpose, names) in WANTED {
        let script = |name: &&str| package["scripts"][*name].as_str().is_some_and(judges);
        if let Some(name) = names.iter().copied().find(script) {
            // `bun test` is a test runner of its own.
            let command = match name {
                "test" if manager != "bun" => format!("{manager} test"),
                name => format!("{manager} run {name}"),
            };
            root.add(purpose, command, format!("`scripts.{name}` of {FILE}"));
        }
    }
}

/// By the lock file, else by what the package names.
fn manager(root: &Root<'_>, package: &Value) -> String {
    let of_node = DEPENDENCIES.iter().filter(|known| known.places.contains(&"node_modules"));
    let locked = of_node.clone().find(|known| root.has(known.lock_file)).map(|known| program(known.install));
    let named = || package["packageManager"].as_str().and_then(|named| named.split('@').next());
    let is_known = |name: &&str| of_node.clone().any(|known| program(known.install) == *name);
    // What bun wrote before its lock file was text.
    let manager = locked.or_else(|| root.has("bun.lockb").then_some("bun")).or_else(named).filter(is_known);
    manager.unwrap_or("npm").to_owned()
}

/// The first word of a command.
pub(super) fn program(command: &str) -> &str {
    command.split(' ').next().unwrap_or(command)
}

/// Whether a script ends by itself, can fail, and changes nothing. npm writes one that fails into a new package.
fn judges(script: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| script.contains(word));
    let watches = has(&WATCHING) && !has(&ENDING);
    let fixes = script.split_whitespace().any(|word| FIXING.contains(&word));
    let is_placeholder = script.contains("no test specified");
    let is_useless = script.trim().is_empty() || is_placeholder || watches || fixes || never_exits(script);
    !is_useless && cannot_fail(script).is_none()
}
