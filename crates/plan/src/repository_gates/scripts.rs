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

/// Programs whose `-w` watches or writes.
const WITH_W: [&str; 9] = ["tsc", "prettier", "rollup", "webpack", "vite", "vitest", "mocha", "ava", "tsup"];

const MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// How deep scripts are followed that run others.
const MAX_DEPTH: usize = 4;

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
        let script = |name: &&str| package["scripts"][*name].as_str().is_some_and(|script| judges(&package, script, 0));
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

/// Whether a script ends by itself, can fail, and changes nothing, as do the scripts that it runs. npm writes one that fails into a
/// new package.
fn judges(package: &Value, script: &str, depth: usize) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| script.contains(word));
    let watches = has(&WATCHING) && !has(&ENDING);
    let words: Vec<&str> = script.split_whitespace().collect();
    let option = |word: &str| word.split_once('=').map_or(word, |(option, _)| option).to_owned();
    let fixes = words.iter().any(|word| FIXING.contains(&option(word).as_str()))
        || words.contains(&"-w") && words.iter().any(|word| WITH_W.contains(word));
    let is_placeholder = script.contains("no test specified");
    let is_useless = script.trim().is_empty() || is_placeholder || watches || fixes || never_exits(script);
    let run = words.windows(3).filter(|words| MANAGERS.contains(&words[0]) && words[1] == "run").map(|words| words[2]);
    let mut others = run.filter_map(|name| package["scripts"][name].as_str());
    !is_useless
        && cannot_fail(script).is_none()
        && depth < MAX_DEPTH
        && others.all(|other| judges(package, other, depth + 1))
}
