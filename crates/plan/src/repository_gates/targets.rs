//! Targets of a Makefile and recipes of a justfile.

use std::sync::LazyLock;

use lanewright_agents::shell::cannot_fail;
use regex::Regex;

use super::{Purpose, Root};

const WANTED: [(&str, Purpose); 3] = [("check", Purpose::Check), ("lint", Purpose::Lint), ("test", Purpose::Test)];

/// In the order in which the programs look for them.
const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// A recipe that needs no argument: each of its parameters has a default or takes any number of arguments.
static RECIPE: LazyLock<Regex> = pattern!(
    r#"(?m)^@?(check|lint|test)(?:[ \t]+(?:\*\$?[\w-]+(?:=\S+)?|\$?[\w-]+=(?:'[^'\n]*'|"[^"\n]*"|[^\s'":]+)))*[ \t]*:(?:[^=\n]|$)"#
);

/// The targets before a colon, and their prerequisites. `x := 1`, `x ::= 1` and `x = a:b` are variables.
static RULE: LazyLock<Regex> = pattern!(r"(?m)^([^\s#:=.][^#:=\n]*):(:?)([^=:\n][^\n]*)?$");

pub(super) fn find(root: &mut Root<'_>) {
    if let Some((name, text)) = first(root, &JUSTFILES) {
        let recipes: Vec<&str> = RECIPE.captures_iter(&text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
        add(root, "just", name, &|target| recipes.contains(&target));
    }
    if let Some((name, text)) = first(root, &MAKEFILES) {
        let targets = make_targets(&text);
        add(root, "make", name, &|target| targets.contains(&target));
    }
}

fn first(root: &mut Root<'_>, names: &[&'static str]) -> Option<(&'static str, String)> {
    let name = names.iter().copied().find(|name| root.has(name))?;
    Some((name, root.text(name)?))
}

/// The second of two task runners usually calls the first, or the other way round.
fn add(root: &mut Root<'_>, program: &str, file: &str, has: &dyn Fn(&str) -> bool) {
    for (target, purpose) in WANTED {
        if has(target) && root.found.iter().all(|(known, _)| *known != purpose) {
            root.add(purpose, format!("{program} {target}"), format!("`{target}` of {file}"));
        }
    }
}

/// The targets that do something: those with a recipe or prerequisites.
fn make_targets(text: &str) -> Vec<&str> {
    let rules = RULE.captures_iter(text).filter_map(|rule| {
        let rest = rule.get(3).map_or("", |rest| rest.as_str());
        let rest = rest.split('#').next().unwrap_or("").trim();
        // `test: CFLAGS = x` is a variable.
        let does = !rest.is_empty() && !rest.split(';').next().unwrap_or("").contains('=');
        let recipe = text[rule.get(0)?.end()..].lines().skip(1).map_while(|line| line.strip_prefix('\t'));
        let can_fail =
            |line: &str| !line.starts_with('-') && cannot_fail(line.trim_start_matches(['@', '+', ' '])).is_none();
        let has_recipe = recipe.map(str::trim).filter(|line| !line.is_empty()).any(can_fail);
        (does || has_recipe).then(|| rule.get(1).map_or("", |targets| targets.as_str()))
    });
    rules.flat_map(str::split_whitespace).collect()
}
