//! The issues of Beads: a lane for each that is open, in the order of their `blocks` dependencies.
//!
//! `issue` reads the lines of the file, `graph` says what epics and dependencies mean for the order, and `prompt` writes
//! what agents read.

mod graph;
mod issue;
mod prompt;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::shared::companions::companion;
use super::shared::items::{Unknown, add_lanes};
use crate::Source;
use crate::draft::{Overlaps, PlanDraft};
use crate::faults::{Faults, nearest, quoted};
use crate::ids::as_id;
use crate::source_text::{At, Span};
use graph::Graph;
use issue::Issue;
use prompt::Writer;

/// How many lines are searched for one of an issue.
const LOOKED_AT: usize = 50;

static ISSUE: LazyLock<Regex> = pattern!(r#"^\{.*"issue_type"\s*:"#);

/// Whether the file is one of this format's, by its path and its text.
pub(super) fn is_plan(path: &str, text: &str) -> bool {
    let path = path.replace('\\', "/");
    let own = ["issues.jsonl", "beads.jsonl"]
        .iter()
        .any(|name| path.strip_suffix(name).is_some_and(|directory| directory.ends_with(".beads/")));
    own || path.ends_with(".jsonl")
        && text.lines().take(LOOKED_AT).any(|line| ISSUE.is_match(line.trim_start_matches('\u{feff}')))
}

pub(super) fn plan(source: &Source<'_>, faults: &Faults<'_>) -> Option<PlanDraft> {
    let files = faults.source.files();
    if let [_, second, ..] = files {
        faults.error_with(second.span(0..0), "the issues of Beads are one file", "name one file");
        return None;
    }
    let issues = issue::issues(&files[0], faults);
    let graph = Graph::new(&issues, faults);
    let asked = asked(&issues, &graph, source, faults)?;
    let phase = source.options.tag.map(str::to_owned).or_else(|| prefix(source)).or_else(|| Some(prefix_of(&issues)));
    let title = source.options.tag.and_then(|tag| issues.iter().find(|issue| issue.id.value == tag));
    let title = title.map_or_else(|| "Beads".to_owned(), |issue| issue.title.clone());
    let mut draft = PlanDraft {
        phase: Some(At::new(phase.as_deref().and_then(as_id).unwrap_or_else(|| "beads".to_owned()), Span::default())),
        title: Some(At::new(lanewright_model::text::headline(&title, 100), Span::default())),
        overlaps: Overlaps::AUTO,
        ..PlanDraft::default()
    };
    let items = graph.items(&asked, source, faults)?;
    let writer = Writer::new(&issues, &graph, faults);
    let issue_of: Vec<usize> = items.iter().map(|(issue, _)| *issue).collect();
    let items: Vec<_> = items.into_iter().map(|(_, item)| item).collect();
    add_lanes(&items, Unknown::Met.unless_in_order(source), &mut draft, faults, |at| writer.lane(issue_of[at]));
    Some(draft)
}

/// For each issue whether it is part of the plan: all are, or those below the issue or with the label that is asked for.
fn asked(issues: &[Issue], graph: &Graph<'_>, source: &Source<'_>, faults: &Faults<'_>) -> Option<Vec<bool>> {
    let Some(tag) = source.options.tag else { return Some(vec![true; issues.len()]) };
    let found: Vec<bool> = match graph.position(tag) {
        Some(top) => (0..issues.len()).map(|at| at == top || graph.ancestors(at).contains(&top)).collect(),
        None => issues.iter().map(|issue| issue.labels.iter().any(|label| label.eq_ignore_ascii_case(tag))).collect(),
    };
    if found.contains(&true) {
        return Some(found);
    }
    let labels = issues.iter().flat_map(|issue| &issue.labels).map(String::as_str);
    let names = labels.chain(issues.iter().map(|issue| issue.id.value.as_str()));
    let help = match nearest(tag, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "--tag takes the id of an epic, or a label".to_owned(),
    };
    faults.error_with(Span::default(), format!("no issue has the id or the label {}", quoted(tag)), help);
    None
}

/// What the ids of issues begin with, as the settings of the program say.
fn prefix(source: &Source<'_>) -> Option<String> {
    let config = companion(source, "config.yaml")?;
    let value = config
        .text
        .lines()
        .find_map(|line| line.strip_prefix("issue_prefix:").or_else(|| line.strip_prefix("issue-prefix:")))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned()).filter(|prefix| !prefix.is_empty())
}

fn prefix_of(issues: &[Issue]) -> String {
    let id = issues.first().map_or("", |issue| issue.id.value.as_str());
    id.rsplit_once('-').map_or("beads", |(prefix, _)| prefix).to_owned()
}

/// What the program changes of an issue that is closed or opened again.
static CHANGES: LazyLock<Regex> = pattern!(
    r#",?"(?:status":"(?:open|in_progress|closed)|(?:closed_at|updated_at|started_at|close_reason|closed_by_session)":"(?:[^"\\]|\\.)*)""#
);

/// A file without what work changes of its issues.
pub(crate) fn unticked(text: &str) -> Cow<'_, str> {
    CHANGES.replace_all(text, "")
}

/// What records in the program's own store that a lane is done, or open again.
pub(crate) fn recording_command(lane: &str) -> Vec<String> {
    ["bd", "close", lane, "--reason", "Merged by Lanewright"].map(str::to_owned).to_vec()
}
