//! `## Execution Policy`: who does a lane, with which model and how much effort. And hints for lanes.

use std::collections::HashMap;
use std::ops::Range;

use super::names::{Names, lane_at_start};
use crate::plan::markdown::inline::{bare, codes, one_line, parts};
use crate::plan::markdown::{Document, Fence, list_item, trim};

/// What the policy says of one lane, or of all.
#[derive(Debug, Default, Clone)]
pub(super) struct Policy {
    pub(super) at: Range<usize>,
    values: HashMap<String, (String, Range<usize>)>,
}

impl Policy {
    /// A value that says something, and where it stands.
    pub(super) fn get(&self, key: &str) -> Option<&(String, Range<usize>)> {
        self.values.get(key).filter(|(value, _)| !value.is_empty())
    }
}

#[derive(Debug, Default)]
pub(super) struct Policies {
    /// What holds for lanes of which nothing else is said.
    pub(super) defaults: Policy,
    /// By the name of the lane as it is written.
    pub(super) lanes: Vec<(String, Policy)>,
}

impl Policies {
    /// What holds for a lane.
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
        if let Some(lane) = lane_at_start(&head) {
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
        Some((lane_at_start(&head)?.to_owned(), one_line(&document.text[value])))
    };
    items.into_iter().filter_map(of_lane).collect()
}

/// The list items of a section as what stands before the first colon, where that is, and what stands behind it.
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
fn values(text: &str, range: Range<usize>) -> HashMap<String, (String, Range<usize>)> {
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
        (key, (value, trim(text, at)))
    };
    found.into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_with_backticks_and_without() {
        let text = "# P1: A\n## Execution Policy\n- work-unit defaults: work-unit=`lane_execute`, effort=`low`\n- execute: effort=high\n- repair: effort=max\n- SL-2: executor=`codex`, model=`m, 1`, unsupported=block, reason=first, then\n  second\n- SL-docs (terminal): effort=low.\n\n## Dispatch Hints\n- SL-2: prefer a\n  small one\n";
        let document = Document::new(text);
        let found = policies(&document);
        let value = |policy: &Policy, key: &str| policy.get(key).map(|(value, _)| value.clone());
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
