//! A graph for other programs to draw: Graphviz DOT and Mermaid. They show every edge, and dotted lines between lanes that
//! are kept apart.

use std::fmt::Write;

use lanewright_model::LaneIndex;
use lanewright_model::safe_text::visible_line;

use super::Graph;

impl Graph {
    /// The graph as a DOT digraph. Arrows go from a lane to those that wait for it.
    pub fn dot(&self) -> String {
        let width = |is_thick: bool| if is_thick { ["penwidth=2.5"].as_slice() } else { &[] };
        let node = |lane: LaneIndex, label: &str| {
            let label = format!("label={}", dot_quoted(label));
            let attributes = [&[label.as_str()], width(self.node(lane).is_critical)].concat();
            format!("L{lane} [{}];", attributes.join(", "), lane = lane.0)
        };
        let edge = |from: LaneIndex, to: LaneIndex| {
            let attributes = if self.is_critical(from, to) { " [penwidth=2.5]" } else { "" };
            format!("L{} -> L{}{attributes};", from.0, to.0)
        };
        let apart = |one: u32, other: u32| format!("L{one} -> L{other} [dir=none, style=dotted, constraint=false];");
        format!("digraph plan {{\n  rankdir=LR;\n  node [shape=box];\n{}}}\n", self.lines(node, edge, apart))
    }

    /// The graph as a Mermaid flowchart, with the same lines as [`Graph::dot`].
    pub fn mermaid(&self) -> String {
        let node = |lane: LaneIndex, label: &str| format!("L{}[\"{}\"]", lane.0, mermaid_escaped(label));
        let edge = |from: LaneIndex, to: LaneIndex| {
            let arrow = if self.is_critical(from, to) { "==>" } else { "-->" };
            format!("L{} {arrow} L{}", from.0, to.0)
        };
        let apart = |one, other| format!("L{one} -.- L{other}");
        format!("flowchart LR\n{}", self.lines(node, edge, apart))
    }

    fn lines(
        &self,
        node: impl Fn(LaneIndex, &str) -> String,
        edge: impl Fn(LaneIndex, LaneIndex) -> String,
        apart: impl Fn(u32, u32) -> String,
    ) -> String {
        let nodes = self.indices().map(|lane| node(lane, &self.label(lane)));
        let edges = self.edges().map(|(from, to)| edge(from, to));
        let apart = self.apart.iter().map(|(one, other)| apart(one.0, other.0));
        nodes.chain(edges).chain(apart).map(|line| format!("  {line}\n")).collect()
    }

    /// The lane's id, and below it its title and its state.
    fn label(&self, lane: LaneIndex) -> String {
        let node = self.node(lane);
        let lines = [node.title.as_deref().map(visible_line), node.state.map(|state| state.brief.to_owned())];
        [node.id.to_string()].into_iter().chain(lines.into_iter().flatten()).collect::<Vec<_>>().join("\n")
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
