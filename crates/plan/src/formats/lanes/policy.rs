//! `## Execution Policy`: the runner of a lane, its model and effort. And hints for lanes.

use std::collections::HashMap;
use std::ops::Range;

use super::context::Context;
use super::names::{LANES, Names, name_at_start};
use crate::draft::ProgramDraft;
use crate::faults::quoted;
use crate::ids::as_id;
use crate::markdown::inline::{bare, codes, one_line, parts};
use crate::markdown::{Document, Fence, list_item, trim};
use crate::source_text::At;
use crate::validate::Runners;

/// What the policy says of one lane, or of all.
#[derive(Debug, Default, Clone)]
pub(super) struct Policy {
    pub(super) at: Range<usize>,
    values: HashMap<String, At<String>>,
}

impl Policy {
    fn get(&self, key: &str) -> Option<&At<String>> {
        self.values.get(key).filter(|value| !value.value.is_empty())
    }
}

#[derive(Debug, Default)]
pub(super) struct Policies {
    defaults: Policy,
    /// By the name of the lane as it is written.
    pub(super) lanes: Vec<(String, Policy)>,
}

impl Policies {
    /// The policy of a lane, with the defaults.
    pub(super) fn of(&self, lane: usize, names: &Names) -> Policy {
        let mut policy = self.defaults.clone();
        let own = self.lanes.iter().rev().find(|(name, _)| names.find(name) == Some(lane));
        policy.values.extend(own.into_iter().flat_map(|(_, own)| own.values.clone()));
        policy
    }
}

pub(super) fn policies(document: &Document<'_>) -> Policies {
    let mut policies = Policies::default();
    for (head, at, value) in items(document, |title| title == "execution policy") {
        let policy = Policy { at, values: values(document.text, value) };
        if let Some(lane) = name_at_start(&head, LANES) {
            policies.lanes.push((lane.to_owned(), policy));
        } else if head.to_lowercase().ends_with("defaults")
            || matches!(head.to_lowercase().as_str(), "default" | "all" | "execute")
        {
            policies.defaults.values.extend(policy.values);
        }
    }
    policies
}

/// The hints of `## Dispatch Hints`, by the name of the lane as it is written.
pub(super) fn hints(document: &Document<'_>) -> Vec<(String, String)> {
    let items = items(document, |title| title == "dispatch hints");
    let of_lane = |(head, _, value): (String, Range<usize>, Range<usize>)| {
        Some((name_at_start(&head, LANES)?.to_owned(), one_line(&document.text[value])))
    };
    items.into_iter().filter_map(of_lane).collect()
}

/// The list items of a section, split at the first colon: the text before it, its span, and the text after it.
fn items(document: &Document<'_>, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Range<usize>, Range<usize>)> {
    let mut found: Vec<(String, Range<usize>, Range<usize>)> = Vec::new();
    let mut open = false;
    for at in document.sections(is_wanted).into_iter().flatten() {
        let range = document.trimmed(at);
        if document.fence(at) != Fence::Outside || range.is_empty() {
            open = false;
            continue;
        }
        if let Some((item, _)) = list_item(document.text, range.clone()) {
            let line = &document.text[item.clone()];
            open = false;
            if let Some((head, _)) = line.split_once(':') {
                let start = item.start + head.len();
                found.push((bare(head).to_owned(), item.start..start, start + 1..item.end));
                open = true;
            }
        } else if let Some(last) = found.last_mut().filter(|_| open) {
            last.2.end = range.end;
        }
    }
    found
}

/// `key=value` pairs between commas; a part without `=` belongs to the value before it.
fn values(text: &str, range: Range<usize>) -> HashMap<String, At<String>> {
    let whole = &text[range.clone()];
    let mut found: Vec<(String, Range<usize>)> = Vec::new();
    for part in parts(whole, &[',']) {
        let (start, comma) = (part.start, part.end);
        let part = &whole[part];
        let key = part.split('=').next().unwrap_or("");
        let is_key = key.len() < part.len()
            && !key.trim().is_empty()
            && key.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        match found.last_mut() {
            _ if is_key => {
                let from = range.start + start + key.len() + 1;
                found.push((key.trim().to_lowercase().replace('_', "-"), from..range.start + comma));
            }
            Some(last) => last.1.end = range.start + comma,
            None => {}
        }
    }
    let value = |(key, at): (String, Range<usize>)| {
        let said = text[at.clone()].trim();
        let code = codes(said).into_iter().next().filter(|code| code.outer.start == 0);
        let value =
            code.map_or_else(|| bare(said).trim_end_matches('.').to_owned(), |code| said[code.inner].trim().to_owned());
        (key, At::new(value, trim(text, at)))
    };
    found.into_iter().map(value).collect()
}

/// The program that an executor of the policy means, and whether the lane runs with another one.
pub(super) fn program(context: &Context<'_>, policy: &Policy, id: &str) -> (ProgramDraft, bool) {
    let none = ProgramDraft::default();
    let Some(At { value: name, span }) = policy.get("executor") else { return (none, false) };
    let known = known_runner(name, context.runners);
    if let Some(wanted) = context.fallbacks.runner.filter(|_| context.fallbacks.runner_outranks_plan) {
        return (none, known.is_none_or(|runner| runner != wanted));
    }
    if let Some(runner) = known {
        return (ProgramDraft { runner: Some(At::new(runner, *span)), ..none }, false);
    }
    let message = format!("lane {} is for {}, and there is no such runner", quoted(id), quoted(name));
    let help = format!("describe it under `[runners.{}]` in lanewright.toml", as_id(name).unwrap_or_default());
    let faulty = policy.get("unsupported").is_some_and(|value| value.value.eq_ignore_ascii_case("block"));
    if faulty {
        context.faults.error_with(*span, message, format!("{help}, or write `unsupported=inherit_default`"));
    } else {
        context.faults.warning(*span, message, format!("{help}; until then the default runner does the lane"));
    }
    (ProgramDraft { faulty, ..none }, true)
}

/// The runner that is meant by the name of an executor.
fn known_runner(name: &str, runners: &Runners<'_>) -> Option<String> {
    let lower = name.to_lowercase();
    let other = match lower.replace('_', "-").as_str() {
        "claude-code" | "anthropic" => "claude",
        "openai" | "codex-cli" => "codex",
        "gemini-cli" | "google" => "gemini",
        _ => lower.as_str(),
    };
    [name, lower.as_str(), other].into_iter().find(|name| runners(name).is_some()).map(str::to_owned)
}

/// What the policy passes to the runner. A model is the executor's own: `another` runner would not know it.
pub(super) fn environment(policy: &Policy, another: bool) -> Vec<(At<String>, String)> {
    let keys = [("model", "LANEWRIGHT_MODEL"), ("effort", "LANEWRIGHT_EFFORT"), ("work-unit", "LANEWRIGHT_WORK_UNIT")];
    let pair = |(key, name): &(&str, &str)| {
        let At { value, span } = policy.get(key)?;
        Some((At::new((*name).to_owned(), *span), value.clone()))
    };
    keys.iter().filter(|(key, _)| !(another && *key == "model")).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execution_policy_allows_backticks() {
        let text = "# P1: A\n## Execution Policy\n- work-unit defaults: work-unit=`lane_execute`, effort=`low`\n- execute: effort=high\n- repair: effort=max\n- SL-2: executor=`codex`, model=`m, 1`, unsupported=block, reason=first, then\n  second\n- SL-docs (terminal): effort=low.\n\n## Dispatch Hints\n- SL-2: prefer a\n  small one\n";
        let document = Document::new(text);
        let found = policies(&document);
        let value = |policy: &Policy, key: &str| policy.get(key).map(|value| value.value.clone());
        assert_eq!(value(&found.defaults, "effort").as_deref(), Some("high"));
        assert_eq!(value(&found.defaults, "work-unit").as_deref(), Some("lane_execute"));
        let (name, policy) = &found.lanes[0];
        assert_eq!(name, "SL-2");
        for (key, expected) in
            [("executor", "codex"), ("model", "m, 1"), ("unsupported", "block"), ("reason", "first, then\n  second")]
        {
            assert_eq!(value(policy, key).as_deref(), Some(expected));
        }
        assert_eq!(value(&found.lanes[1].1, "effort").as_deref(), Some("low"));
        assert_eq!(hints(&document), [("SL-2".to_owned(), "prefer a small one".to_owned())]);
    }
}
