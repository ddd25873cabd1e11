//! The order of a plan's lanes as a picture: Graphviz DOT and Mermaid.
//!
//! Names from the plan are data: they are quoted so that they cannot say anything in either language.

use std::fmt::Write;

use crate::model::safe_text::visible_line;
use crate::model::{LaneIndex, Plan};

/// The plan as a DOT digraph. Arrows go from a lane to those that wait for it; dotted lines join lanes that are kept
/// apart.
pub fn dot(plan: &Plan) -> String {
    let node = |lane, label: &str| format!("L{lane} [label={}];", dot_quoted(label));
    let edge = |from, to| format!("L{from} -> L{to};");
    let apart = |one, other| format!("L{one} -> L{other} [dir=none, style=dotted, constraint=false];");
    format!("digraph plan {{\n  rankdir=LR;\n  node [shape=box];\n{}}}\n", lines(plan, node, edge, apart))
}

/// The plan as a Mermaid flowchart, with the same lines as [`dot`].
pub fn mermaid(plan: &Plan) -> String {
    let node = |lane, label: &str| format!("L{lane}[\"{}\"]", mermaid_escaped(label));
    let edge = |from, to| format!("L{from} --> L{to}");
    let apart = |one, other| format!("L{one} -.- L{other}");
    format!("flowchart LR\n{}", lines(plan, node, edge, apart))
}

fn lines(
    plan: &Plan,
    node: impl Fn(u32, &str) -> String,
    edge: impl Fn(u32, u32) -> String,
    apart: impl Fn(u32, u32) -> String,
) -> String {
    let nodes = plan.indices().map(|lane| node(lane.0, &label(plan, lane)));
    let on = |to: LaneIndex| plan.dag().dependencies(to).iter().map(move |from| (from.0, to.0));
    let edges = plan.indices().flat_map(on).map(|(from, to)| edge(from, to));
    let exclusions = plan.exclusions.iter().map(|(one, other)| apart(one.0, other.0));
    nodes.chain(edges).chain(exclusions).map(|line| format!("  {line}\n")).collect()
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
