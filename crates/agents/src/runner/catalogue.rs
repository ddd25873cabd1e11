//! The runners that a run can use.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use lanewright_model::runner::{EventRule, OutagePatterns, PromptWay, Runner, RunnerText, Totals};
use lanewright_model::{CommandLine, Dollars, Usage};
use semver::Version;

/// The descriptions that come with Lanewright.
const TEMPLATES: &[(&str, &str)] = &[
    ("aider", include_str!("../../templates/runners/aider.toml")),
    ("claude", include_str!("../../templates/runners/claude.toml")),
    ("codex", include_str!("../../templates/runners/codex.toml")),
    ("gemini", include_str!("../../templates/runners/gemini.toml")),
    ("opencode", include_str!("../../templates/runners/opencode.toml")),
];

/// Read once. None of them is wrong: a test reads them all.
static KNOWN: LazyLock<BTreeMap<&str, RunnerText>> =
    LazyLock::new(|| TEMPLATES.iter().filter_map(|(name, text)| Some((*name, toml::from_str(text).ok()?))).collect());

/// The included runners.
pub(super) fn known() -> impl Iterator<Item = &'static RunnerText> {
    KNOWN.values()
}

/// What the programs of the included runners write outside of the worktree.
pub(crate) fn known_writes() -> impl Iterator<Item = &'static String> {
    known().flat_map(|text| text.writes.iter().flatten())
}

/// How often one runner may be like another that is like a third.
const MAX_STEPS: usize = 8;

/// Every runner by name: those of configuration files, and those that come with Lanewright.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    described: BTreeMap<String, RunnerText>,
}

impl Catalogue {
    /// With what configuration files describe, which is used before what comes with Lanewright.
    pub fn new(described: impl IntoIterator<Item = (String, RunnerText)>) -> Self {
        Self { described: described.into_iter().collect() }
    }

    /// The runner of that name; `None`: there is none that has a command.
    pub fn get(&self, name: &str) -> Option<Runner> {
        self.text(name, MAX_STEPS)?.complete()
    }

    /// The names of all runners, in order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.described.keys().map(String::as_str).chain(KNOWN.keys().copied()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn text(&self, name: &str, steps: usize) -> Option<RunnerText> {
        let known = KNOWN.get(name).cloned();
        let Some(described) = self.described.get(name).cloned() else { return known };
        let base = match described.like.as_deref() {
            // With the same program it has the other's account.
            Some(other) if other != name => self.text(other, steps.checked_sub(1)?).map(|mut base| {
                base.account.get_or_insert_with(|| other.to_owned());
                base
            }),
            _ => known,
        };
        Some(described.or(base.unwrap_or_default()))
    }
}

/// What is wrong with a description, beyond what its type says: places that are no JSON pointers, expressions that are
/// none.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(text: &RunnerText) -> Result<(), String> {
    let names_file = |command: &CommandLine| command.to_arguments().iter().any(|word| word.contains("{prompt_file}"));
    if text.prompt == Some(PromptWay::Argument) && text.command.as_ref().is_some_and(|command| !names_file(command)) {
        return Err("`prompt = \"argument\"` needs `{prompt_file}` in the `command`".to_owned());
    }
    text.event.iter().flatten().flat_map(places).try_for_each(|place| match place.starts_with('/') {
        true => Ok(()),
        false => Err(format!("`{place}` is no JSON pointer: it begins with `/`")),
    })?;
    if text.max_cost == Some(Dollars::default()) || text.max_tokens == Some(0) {
        return Err("a budget is more than 0; without the key there is no limit".to_owned());
    }
    if text.account.as_ref().is_some_and(|account| account.trim().is_empty()) {
        return Err("`account` is empty".to_owned());
    }
    for rule in text.event.iter().flatten() {
        if !rule.session_totals.is_empty() && rule.totals == Totals::Part {
            return Err("`session_totals` needs `totals = true`".to_owned());
        }
        if let Some(name) = rule.session_totals.iter().find(|name| !Usage::REPORTED.contains(&name.as_str())) {
            return Err(format!("`session_totals` has `{name}`, which is none of {}", Usage::REPORTED.join(", ")));
        }
        if let Some(since) = rule.session_totals_since.as_ref().filter(|since| Version::parse(since).is_err()) {
            return Err(format!("`{since}` is no version such as 1.2.3"));
        }
    }
    let outages = text.outages.iter().flat_map(OutagePatterns::all);
    let patterns = text.text.iter().flatten().map(|rule| &rule.pattern).chain(outages);
    let patterns = patterns.chain(text.refusals.iter().flatten());
    patterns.into_iter().try_for_each(|pattern| {
        let compiled = regex::Regex::new(pattern);
        compiled.map(drop).map_err(|_| format!("`{pattern}` is no regular expression"))
    })?;
    let names_end = |pattern: &&String| {
        let groups = ["wait", "until"].map(|group| [format!("(?<{group}>"), format!("(?P<{group}>")]);
        groups.as_flattened().iter().any(|group| pattern.contains(group))
    };
    match text.outages.iter().flat_map(|outages| &outages.ends).find(|pattern| !names_end(pattern)) {
        Some(pattern) => Err(format!("`{pattern}` in `ends` has neither a group `(?<wait>…)` nor `(?<until>…)`")),
        None => Ok(()),
    }
}

fn places(rule: &EventRule) -> Vec<&String> {
    let conditions = rule.when.keys().chain(rule.only.keys()).chain(rule.error_when.keys());
    let call = rule.tool_call.iter().flat_map(|call| [Some(&call.name), call.input.as_ref(), call.id.as_ref()]);
    let result = rule.tool_result.iter().flat_map(|result| {
        let places = [&result.id, &result.text, &result.exit_code].map(Option::as_ref);
        places.into_iter().chain(result.failed_when.keys().map(Some))
    });
    let numbers = [&rule.input_tokens, &rule.output_tokens, &rule.cache_read_tokens, &rule.cache_write_tokens];
    let others = [
        &rule.tool_refused,
        &rule.each,
        &rule.session,
        &rule.version,
        &rule.message,
        &rule.warning,
        &rule.limited_until,
        &rule.once_per,
        &rule.cost,
        &rule.error,
    ];
    conditions
        .chain(call.chain(result).chain(numbers.into_iter().chain(others).map(Option::as_ref)).flatten())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_runners_are_complete() {
        for (name, text) in TEMPLATES {
            let text: RunnerText = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            check(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(text.program.is_some() && text.install.is_some() && text.title.is_some(), "{name}");
            let runner = Catalogue::default().get(name).unwrap();
            assert!(matches!(&runner.command, CommandLine::Arguments(words) if words[0] == text.program.unwrap()));
        }
        assert_eq!(Catalogue::default().names().len(), TEMPLATES.len());
    }

    #[test]
    fn like_chain_of_runners_is_bounded() {
        let text = |text: &str| toml::from_str::<RunnerText>(text).unwrap();
        let catalogue = Catalogue::new([
            ("opus".to_owned(), text("like = 'claude'\narguments = ['--model', 'opus']")),
            ("claude".to_owned(), text("environment = { A = 'b' }")),
            ("round".to_owned(), text("like = 'about'")),
            ("about".to_owned(), text("like = 'round'")),
            ("own".to_owned(), text("command = 'true'")),
        ]);
        let opus = catalogue.get("opus").unwrap();
        assert_eq!(opus.environment.get("A").map(String::as_str), Some("b"));
        assert!(opus.command.to_string().ends_with("--model opus") && opus.reports_tool_calls());
        assert_eq!(catalogue.get("round"), None);
        assert!(catalogue.get("own").is_some() && catalogue.get("none").is_none());
    }

    #[test]
    fn invalid_pointer_or_pattern_is_an_error() {
        let error = |text: &str| check(&toml::from_str(text).unwrap()).unwrap_err();
        assert_eq!(error("[[event]]\nsession = 'id'"), "`id` is no JSON pointer: it begins with `/`");
        assert_eq!(error("[outages]\nquota = ['(']"), "`(` is no regular expression");
        let endless = "`in (?<wat>x)` in `ends` has neither a group `(?<wait>…)` nor `(?<until>…)`";
        assert_eq!(error("[outages]\nends = ['in (?<wat>x)']"), endless);
        assert_eq!(error("max_cost = 0"), "a budget is more than 0; without the key there is no limit");
        let silent = "`prompt = \"argument\"` needs `{prompt_file}` in the `command`";
        assert_eq!(error("command = ['x']\nprompt = 'argument'"), silent);
        assert_eq!(error("[[text]]\npattern = '['"), "`[` is no regular expression");
    }
}
