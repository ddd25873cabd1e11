//! The issues of a file, one on each line.

use crate::faults::{Faults, quoted};
use crate::formats::native::json;
use crate::formats::shared::items::{MIDDLE, Standing, standing_of, text_of};
use crate::front_matter::scalar;
use crate::markdown::lines;
use crate::source_text::{At, File, Span};
use crate::tree::{Node, Value, refuse_nul};

/// Kinds of issues that are no work of an agent.
const NO_WORK: &str = " gate molecule message merge-request agent role rig event convoy slot milestone ";

const EXPORT: &str = "repair this line, or write the file again: bd export -o .beads/issues.jsonl";

#[derive(Debug)]
pub(super) struct Issue {
    pub(super) node: Node,
    pub(super) id: At<String>,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) standing: Standing,
    pub(super) priority: u32,
    pub(super) labels: Vec<String>,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) kind: String,
    pub(super) on: At<String>,
}

impl Issue {
    /// An epic, which groups issues and is no work by itself.
    pub(super) fn is_group(&self) -> bool {
        matches!(self.kind.as_str(), "epic" | "molecule")
    }

    pub(super) fn field(&self, name: &str, faults: &Faults<'_>) -> String {
        text_of(self.node.get(name), faults)
    }
}

/// The issues of the file; every line that holds none is a fault.
pub(super) fn issues(file: &File<'_>, faults: &Faults<'_>) -> Vec<Issue> {
    lines(file.text).filter_map(|line| issue(file.span(line.range()), line.text.trim(), faults)).collect()
}

fn issue(span: Span, line: &str, faults: &Faults<'_>) -> Option<Issue> {
    if line.is_empty() {
        return None;
    }
    if ["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|mark| line.starts_with(mark)) {
        faults.error_with(span, "this line is the mark of a conflict in git", EXPORT);
        return None;
    }
    let node = match json::parse_part(line, faults) {
        Ok(node) => node?,
        Err((place, message)) => {
            faults.error_with(place, message, EXPORT);
            return None;
        }
    };
    refuse_nul(&node, faults);
    if !matches!(node.value, Value::Table(_)) {
        faults.error_with(span, format!("an issue is a table, not {}", node.value.kind()), EXPORT);
        return None;
    }
    let Some(id) = node.get("id").and_then(|id| scalar(id, faults)) else {
        faults.error_with(span, "this issue has no `id`", EXPORT);
        return None;
    };
    let text = |name: &str| text_of(node.get(name), faults);
    let kind = text("issue_type").to_lowercase();
    Some(Issue {
        title: text("title"),
        standing: standing(&node, &kind, &id, faults),
        priority: text("priority").trim_start_matches(['p', 'P']).parse().unwrap_or(MIDDLE),
        labels: node
            .get("labels")
            .map_or(&[][..], Node::list)
            .iter()
            .map(|label| text_of(Some(label), faults))
            .collect(),
        dependencies: dependencies(&node, &id, faults),
        kind,
        id,
        node,
    })
}

/// What is to be done about an issue: the program offers those that are open or in progress, and are work.
fn standing(node: &Node, kind: &str, id: &At<String>, faults: &Faults<'_>) -> Standing {
    let is = |name: &str| node.get(name).is_some_and(|flag| flag.value == Value::Boolean(true));
    let status = text_of(node.get("status"), faults);
    let reason = || format!("its status is `{status}`");
    match status.as_str() {
        "tombstone" => return Standing::Gone,
        "closed" => return Standing::Done(reason()),
        "" | "open" | "in_progress" => {}
        // Other programs and people write their own words for closed.
        other => match standing_of(other) {
            Some(ended @ (Standing::Done(_) | Standing::Dropped(_))) => return ended,
            _ => return Standing::Aside(reason()),
        },
    }
    if is("ephemeral") || is("is_template") {
        return Standing::Gone;
    }
    if is("pinned") {
        return Standing::Aside("it is pinned".to_owned());
    }
    if NO_WORK.contains(&format!(" {kind} ")) && !kind.is_empty() && kind != "molecule" {
        return Standing::Aside(format!("it is of the type `{kind}`"));
    }
    if let Some(until) = node.get("defer_until").and_then(|until| scalar(until, faults)) {
        let message = format!("issue {} is deferred until {}", quoted(&id.value), quoted(&until.value));
        faults.warning(until.span, message, "it runs all the same; set its status to `deferred` to leave it out");
    }
    Standing::Open
}

fn dependencies(node: &Node, id: &At<String>, faults: &Faults<'_>) -> Vec<Dependency> {
    let read = |node: &Node| {
        let kind = text_of(node.get("type"), faults);
        let on = node.get("depends_on_id").or_else(|| node.get("id")).unwrap_or(node);
        let Some(on) = scalar(on, faults) else {
            let message = format!("a dependency of issue {} names no issue", quoted(&id.value));
            faults.error_with(node.span, message, EXPORT);
            return None;
        };
        Some(Dependency { kind: if kind.is_empty() { "blocks".to_owned() } else { kind }, on })
    };
    node.get("dependencies").map_or(&[][..], Node::list).iter().filter_map(read).collect()
}
