//! A graph as lines of text: the lanes by wave, each with what it waits for.

use lanewright_model::LaneId;
use lanewright_model::cells::{clean, cut, pad, width};

use super::layers::without_implied;
use super::{Graph, Node};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    /// The widest that a line may be, in cells.
    pub width: usize,
    /// Whether Lanewright's own signs are to be ASCII.
    pub ascii: bool,
}

const GAP: &str = "  ";
const MARK: usize = 1;
/// A title that is cut to less than this says nothing.
const SHORTEST_TITLE: usize = 8;
const INDENT: &str = "     ";

struct Row<'a> {
    node: &'a Node,
    title: String,
    after: Vec<&'a LaneId>,
}

impl Graph {
    /// The lanes by wave: a mark for those on the critical path, id, state, title, and the lanes that each waits for
    /// unless that follows from others.
    pub fn text(&self, form: TextForm) -> String {
        let mut rows: Vec<Row<'_>> = self
            .nodes
            .iter()
            .map(|node| Row { node, title: clean(node.title.as_deref().unwrap_or_default()), after: Vec::new() })
            .collect();
        for (from, to) in without_implied(self) {
            rows[to.at()].after.push(&self.node(from).id);
        }
        let columns = Columns::of(&rows, form);
        let waves = self.dag.waves();
        let mut text = String::new();
        for wave in 1..=waves.iter().copied().max().unwrap_or_default() {
            push_line(&mut text, &format!("wave {wave}"), form);
            for (row, _) in rows.iter().zip(&waves).filter(|(_, at)| **at == wave) {
                columns.lines(row).iter().for_each(|line| push_line(&mut text, line, form));
            }
        }
        if self.nodes.iter().any(|node| node.is_critical) {
            push_line(&mut text, &format!("{} on the critical path", mark(true, form)), form);
        }
        text
    }
}

fn push_line(text: &mut String, line: &str, form: TextForm) {
    let line = cut(line.trim_end(), form.width);
    text.push_str(&if form.ascii { line.replace('…', "~") } else { line });
    text.push('\n');
}

fn mark(is_critical: bool, form: TextForm) -> &'static str {
    match (is_critical, form.ascii) {
        (false, _) => " ",
        (true, true) => "*",
        (true, false) => "●",
    }
}

struct Columns {
    form: TextForm,
    id: usize,
    state: usize,
    /// What is left for the title and the lanes that are waited for.
    room: usize,
    /// That of the titles which leave room for these lanes.
    title: usize,
}

impl Columns {
    fn of(rows: &[Row<'_>], form: TextForm) -> Self {
        let widest = |of: &dyn Fn(&Row<'_>) -> usize| rows.iter().map(of).max().unwrap_or_default();
        let id = widest(&|row| row.node.id.as_str().len()).min(form.width / 2);
        let state = widest(&|row| row.node.state.map_or(0, |state| state.brief.len()));
        let used = [MARK, id, state].into_iter().filter(|width| *width > 0).map(|width| width + GAP.len());
        let room = form.width.saturating_sub(used.sum());
        let title = widest(&|row| width(&row.title)).min(room * 3 / 5);
        Self { form, id, state, room, title }
    }

    /// The line of a lane. What it waits for is on a line of its own where there is no room for it.
    fn lines(&self, row: &Row<'_>) -> Vec<String> {
        let mut line = format!("{}{GAP}{}", mark(row.node.is_critical, self.form), pad(row.node.id.as_str(), self.id));
        if self.state > 0 {
            line = format!("{line}{GAP}{}", pad(row.node.state.map_or("", |state| state.brief), self.state));
        }
        let after = names(&row.after, row.after.len());
        let title_alone = if self.room < SHORTEST_TITLE { String::new() } else { cut(&row.title, self.room) };
        if after.is_empty() {
            return vec![format!("{line}{GAP}{title_alone}")];
        }
        let gap = if self.title > 0 { GAP } else { "" };
        if width(&row.title) <= self.title && self.title + gap.len() + after.len() <= self.room {
            return vec![format!("{line}{GAP}{}{gap}{after}", pad(&row.title, self.title))];
        }
        vec![format!("{line}{GAP}{title_alone}"), format!("{INDENT}{}", self.as_many_as_fit(&row.after))]
    }

    fn as_many_as_fit(&self, lanes: &[&LaneId]) -> String {
        let fits = |shown: &usize| INDENT.len() + names(lanes, *shown).len() <= self.form.width;
        names(lanes, (1..=lanes.len()).rev().find(fits).unwrap_or(1))
    }
}

fn names(lanes: &[&LaneId], shown: usize) -> String {
    let (shown, more) = lanes.split_at(shown);
    let shown: Vec<&str> = shown.iter().map(|id| id.as_str()).collect();
    match (shown.is_empty(), more.len()) {
        (true, _) => String::new(),
        (false, 0) => format!("after {}", shown.join(", ")),
        (false, more) => format!("after {} and {more} more", shown.join(", ")),
    }
}
