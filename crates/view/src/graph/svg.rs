//! A graph as SVG: without scripts and references, and readable in light and in dark.

use std::fmt::Write;

use lanewright_model::LaneIndex;
use lanewright_model::safe_text::visible_line;
use lanewright_model::text::counted;
use unicode_width::UnicodeWidthChar;

use super::layout::{BOX_HEIGHT, LaneBox, Layout, Line};
use super::{Graph, Node};

/// The rules that [`Graph::svg`] needs. A page may set the `--lane-graph-…` properties on `.lane-graph` to colours of its
/// own.
pub const STYLE: &str = include_str!("style.css");

/// Where the rules come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SvgStyle {
    /// The picture holds them; for a file of its own.
    Own,
    /// The page has [`STYLE`]; for pages with several pictures, or that allow styles in one place only.
    OfPage,
}

const NARROWEST: f64 = 96.0;
const WIDEST: f64 = 240.0;
/// Between the sides of a box and its text.
const LEFT: f64 = 14.0;
const RIGHT: f64 = 10.0;
/// In pixels; those of bold texts are a little larger than in the style, for bold is wider.
const ID_SIZE: f64 = 13.0 * 1.1;
const TITLE_SIZE: f64 = 12.0;
const STATE_SIZE: f64 = 11.0 * 1.1;
/// How many characters of a title are shown while the pointer is on its lane.
const LONGEST_TITLE: usize = 500;
const HEAD: f64 = 7.0;
const LEGEND_HEIGHT: f64 = 24.0;

impl Graph {
    /// The graph as an `<svg class="lane-graph">` element with `name` as its accessible name. Each lane is a `<g class="lane
    /// state-WORD critical">`, in a link if it has one.
    pub fn svg(&self, name: &str, style: SvgStyle) -> String {
        let layout = Layout::of(self, |lane| width_of(self.node(lane)));
        let legend = self.legend(&layout);
        let width = layout.width.max(text_width(&legend, STATE_SIZE) + 2.0 * LEFT);
        let height = layout.height + if legend.is_empty() { 0.0 } else { LEGEND_HEIGHT };
        // An image hides what is in it from assistive technology, so one with links is a group.
        let role = if self.nodes.iter().any(|node| node.link.is_some()) { "group" } else { "img" };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lane-graph\" role=\"{role}\" aria-label=\"{}\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n",
            escaped(name)
        );
        if style == SvgStyle::Own {
            let _ = writeln!(svg, "<style>{STYLE}</style>");
        }
        for (class, is_critical) in [("edge", false), ("edge critical", true)] {
            let lines = layout.lines.iter().filter(|line| line.is_critical == is_critical);
            let path: String = lines.map(curve).collect();
            if !path.is_empty() {
                let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
            }
        }
        for joint in &layout.joints {
            let _ = writeln!(svg, "<circle class=\"head\" cx=\"{}\" cy=\"{}\" r=\"3\"/>", joint.x, joint.y);
        }
        self.indices().for_each(|lane| self.push_lane(&mut svg, lane, layout.boxes[lane.at()]));
        if !legend.is_empty() {
            let (x, y) = (LEFT, layout.height + LEGEND_HEIGHT / 2.0);
            let _ = writeln!(svg, "<text class=\"legend\" x=\"{x}\" y=\"{y}\">{legend}</text>");
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn legend(&self, layout: &Layout) -> String {
        let mut parts = Vec::new();
        if self.nodes.iter().any(|node| node.is_critical) && self.edges().next().is_some() {
            parts.push("Thick: the critical path.".to_owned());
        }
        if layout.left_out > 0 {
            parts.push(format!("{} left out.", counted(layout.left_out, "line")));
        }
        parts.join(" ")
    }

    fn push_lane(&self, svg: &mut String, lane: LaneIndex, place: LaneBox) {
        let node = self.node(lane);
        let LaneBox { corner, width } = place;
        let link = node.link.as_deref().map(|link| format!("<a href=\"{}\">", escaped(link)));
        svg.push_str(link.as_deref().unwrap_or_default());
        let state = node.state.map(|state| format!(" state-{}", state.group)).unwrap_or_default();
        let critical = if node.is_critical { " critical" } else { "" };
        let (x, y) = (corner.x, corner.y);
        let _ = write!(svg, "<g class=\"lane{state}{critical}\" transform=\"translate({x} {y})\">");
        let _ = write!(svg, "<title>{}</title>", escaped(&full_title(node)));
        let _ = write!(svg, "<rect class=\"box\" width=\"{width}\" height=\"{BOX_HEIGHT}\" rx=\"6\"/>");
        if !self.dag.dependencies(lane).is_empty() {
            let (x, y) = (-HEAD, BOX_HEIGHT / 2.0 - 4.0);
            let _ = write!(svg, "<path class=\"head\" d=\"M{x} {y}l{HEAD} 4l{x} 4z\"/>");
        }
        let mut room = width - LEFT - RIGHT;
        let title = node.title.as_deref().map(|title| cut(title, room, TITLE_SIZE)).unwrap_or_default();
        let y = if title.is_empty() { 27 } else { 19 };
        if let Some(state) = node.state {
            let _ = write!(svg, "<path class=\"bar\" d=\"M5 7v{}\"/>", BOX_HEIGHT - 14.0);
            let _ = write!(svg, "<text class=\"state\" x=\"{}\" y=\"{y}\">{}</text>", width - RIGHT, state.brief);
            room -= text_width(state.brief, STATE_SIZE) + RIGHT;
        }
        let id = cut(node.id.as_str(), room, ID_SIZE);
        let _ = write!(svg, "<text class=\"id\" x=\"{LEFT}\" y=\"{y}\">{}</text>", escaped(&id));
        if !title.is_empty() {
            let _ = write!(svg, "<text class=\"title\" x=\"{LEFT}\" y=\"36\">{}</text>", escaped(&title));
        }
        svg.push_str(if link.is_some() { "</g></a>\n" } else { "</g>\n" });
    }
}

/// `ID: title (state, critical path)`.
fn full_title(node: &Node) -> String {
    let title = node.title.iter().map(|title| format!(": {}", first_characters(title)));
    let state = node.state.map(|state| state.word);
    let remarks: Vec<&str> = state.into_iter().chain(node.is_critical.then_some("critical path")).collect();
    let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) };
    format!("{}{}{remarks}", node.id, title.collect::<String>())
}

fn first_characters(title: &str) -> String {
    match title.char_indices().nth(LONGEST_TITLE) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}

/// How wide the box of `node` is to be for its texts.
fn width_of(node: &Node) -> f64 {
    let state = node.state.map_or(0.0, |state| text_width(state.brief, STATE_SIZE) + RIGHT);
    let title =
        node.title.as_deref().map_or(0.0, |title| text_width(&visible_line(&first_characters(title)), TITLE_SIZE));
    let text = (text_width(node.id.as_str(), ID_SIZE) + state).max(title);
    (text + LEFT + RIGHT).clamp(NARROWEST, WIDEST).ceil()
}

/// `text` as it is shown, cut to about `room` pixels.
fn cut(text: &str, room: f64, size: f64) -> String {
    let shown = visible_line(&first_characters(text));
    if text_width(&shown, size) <= room {
        return shown;
    }
    let mut left = room - char_width('…') * size;
    let kept = shown.chars().take_while(|&c| {
        left -= char_width(c) * size;
        left >= 0.0
    });
    format!("{}…", kept.collect::<String>().trim_end())
}

/// About how wide `text` is in a sans-serif font of `size` pixels, rather more than less.
fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(char_width).sum::<f64>() * size
}

fn char_width(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.38,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 1.0,
        'A'..='Z' | '_' | '+' | '=' | '<' | '>' | '#' | '&' | '~' => 0.74,
        // Those of no width are shown as something by fonts that lack them.
        c => match c.width().unwrap_or(1) {
            0 => 0.2,
            1 => 0.62,
            _ => 1.05,
        },
    }
}

fn curve(line: &Line) -> String {
    let Line { from, to, until, .. } = line;
    let x = f64::midpoint(from.x, to.x).round();
    let mut curve = format!("M{} {}", from.x, from.y);
    let _ = match from.y == to.y {
        true => write!(curve, "H{}", to.x),
        false => write!(curve, "C{x} {} {x} {} {} {}", from.y, to.y, to.x, to.y),
    };
    if *until > to.x {
        let _ = write!(curve, "H{until}");
    }
    curve
}

/// `text` as it is shown, in an element or in an attribute.
fn escaped(text: &str) -> String {
    let text = visible_line(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
