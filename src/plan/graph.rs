//! The order of a plan's lanes as a picture: Graphviz DOT and Mermaid.
//!
//! Names from the plan are data: they are quoted so that they cannot say anything in either language.

use std::fmt::Write;

use crate::model::safe_text::visible_line;
use crate::model::{LaneIndex, Plan};

/// The plan as a DOT digraph. Arrows go from a lane to those that wait for it; dotted lines join lanes that are kept
/// apart.
pub fn dot(plan: &Plan) -> String {
    let mut text = String::from("digraph plan {\n  rankdir=LR;\n  node [shape=box];\n");
    for lane in plan.indices() {
        let _ = writeln!(text, "  L{} [label={}];", lane.0, dot_quoted(&label(plan, lane)));
    }
    for (from, to) in edges(plan) {
        let _ = writeln!(text, "  L{} -> L{};", from.0, to.0);
    }
    for (one, other) in &plan.exclusions {
        let _ = writeln!(text, "  L{} -> L{} [dir=none, style=dotted, constraint=false];", one.0, other.0);
    }
    text + "}\n"
}

/// The plan as a Mermaid flowchart, with the same lines as [`dot`].
pub fn mermaid(plan: &Plan) -> String {
    let mut text = String::from("flowchart LR\n");
    for lane in plan.indices() {
        let _ = writeln!(text, "  L{}[\"{}\"]", lane.0, mermaid_escaped(&label(plan, lane)));
    }
    for (from, to) in edges(plan) {
        let _ = writeln!(text, "  L{} --> L{}", from.0, to.0);
    }
    for (one, other) in &plan.exclusions {
        let _ = writeln!(text, "  L{} -.- L{}", one.0, other.0);
    }
    text
}

fn edges(plan: &Plan) -> impl Iterator<Item = (LaneIndex, LaneIndex)> {
    plan.indices().flat_map(|to| plan.dag().dependencies(to).iter().map(move |&from| (from, to)))
}

/// The lane's id, and its name on a line below.
fn label(plan: &Plan, lane: LaneIndex) -> String {
    let lane = plan.lane(lane);
    match &lane.name {
        Some(name) => format!("{}\n{}", lane.id, visible_line(name)),
        None => lane.id.to_string(),
    }
}

fn dot_quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Everything but letters, digits and harmless signs as a character code; line breaks as such.
fn mermaid_escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("<br/>"),
            c if c.is_alphanumeric() || " .,:_-/".contains(c) => escaped.push(c),
            c => {
                let _ = write!(escaped, "#{};", u32::from(c));
            }
        }
    }
    escaped
}
