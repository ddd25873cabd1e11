//! The report as one HTML page: without scripts and requests, for screens and paper. The templates are in
//! `crates/view/templates/report`; they show the value that `report.json` has, with what [`page`] adds to it.

pub(super) mod changes;
mod chart;
mod page;

use std::io;
use std::time::Duration;

use lanewright_model::text::shell_line;
use lanewright_model::time::short;
use lanewright_model::{Dollars, LaneId};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior, Value, context, escape_formatter};
use page::{Limits, page};
use sha2::{Digest, Sha256};

use super::{ExecutionReport, escape};
use crate::graph::SvgStyle;
use crate::status::lane_graph::lane_graph;

/// All are named `.html`, so that what they show is escaped.
const TEMPLATES: [(&str, &str); 5] = [
    ("chart.html", include_str!("../../../templates/report/chart.html")),
    ("lane.html", include_str!("../../../templates/report/lane.html")),
    ("lanes.html", include_str!("../../../templates/report/lanes.html")),
    ("macros.html", include_str!("../../../templates/report/macros.html")),
    ("report.html", include_str!("../../../templates/report/report.html")),
];

const STYLE: &str = include_str!("../../../templates/report/style.css");

/// The largest page, in bytes, as far as cutting texts can make it smaller.
const LARGEST: usize = 9_500_000;

/// The page. Where it gets too large, texts, outputs and changes are cut, with a note.
pub(super) fn html(report: &ExecutionReport<'_>) -> io::Result<String> {
    let environment = environment().map_err(io::Error::other)?;
    let render = |limits| render(&environment, report, limits).map_err(io::Error::other);
    let all = Limits::for_lanes(report.lanes.len());
    // Of thousands of lanes even the smallest page is too large, and all others would be made in vain.
    if let Some(least) = all.last().filter(|_| report.lanes.len() * LANE > LARGEST) {
        let text = render(*least)?;
        if text.len() > LARGEST {
            return Ok(text);
        }
    }
    let mut text = String::new();
    for limits in all {
        text = render(limits)?;
        if text.len() <= LARGEST {
            break;
        }
    }
    Ok(text)
}

/// About what a merged lane takes of a page at least, in bytes.
const LANE: usize = 3200;

fn render(environment: &Environment<'_>, report: &ExecutionReport<'_>, limits: Limits) -> Result<String, Error> {
    let page = page(report, limits);
    let style = format!("{STYLE}{}{}", crate::graph::STYLE, chart::grid(report));
    let hash = base64(&Sha256::digest(style.as_bytes()));
    let link = |lane: &LaneId| Some(format!("#lane-{lane}"));
    let graph = lane_graph(report.history, report.summary.held, &report.timeline.critical_path, link);
    let graph = graph.svg("Lanes and what they depend on", SvgStyle::OfPage);
    let values = context! { report => Value::from(Serde(&page)), graph, style, hash };
    environment.get_template("report.html")?.render(values)
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_formatter(write_escaped);
    environment.add_filter("duration", duration);
    environment.add_filter("moment", |time: &str| time.get(..19).unwrap_or(time).replace('T', " "));
    environment.add_filter("grouped", grouped);
    environment.add_filter("dollars", |dollars: f64| Dollars::new(dollars).unwrap_or_default().to_string());
    environment.add_filter("shell", |words: Vec<String>| shell_line(words));
    environment.add_filter("words", |word: &str| word.to_lowercase().replace(['_', '-'], " "));
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

/// Also spells out the characters that a reader obeys, which the library does not.
fn write_escaped(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_str().filter(|_| *state.auto_escape() == AutoEscape::Html && !value.is_safe()) {
        Some(text) => Ok(out.write_str(&escape::markup(text))?),
        None => escape_formatter(out, state, value),
    }
}

/// `340ms`, and longer times as everywhere: `12s`, `3m 05s`.
pub(super) fn duration(ms: u64) -> String {
    if (1..1000).contains(&ms) { format!("{ms}ms") } else { short(Duration::from_millis(ms)) }
}

/// `1234567` as `1 234 567`, with narrow spaces that do not break.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let at = |index: usize| index > 0 && (digits.len() - index).is_multiple_of(3);
    let group = |(index, digit)| at(index).then_some('\u{202f}').into_iter().chain([digit]);
    digits.chars().enumerate().flat_map(group).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| -> String {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or_default()));
        let digit = |place: usize| match place <= group.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]),
            false => '=',
        };
        (0..4).map(digit).collect()
    };
    bytes.chunks(3).map(group).collect()
}

#[cfg(test)]
pub(super) mod tests;
