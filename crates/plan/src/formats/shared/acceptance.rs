//! What an issue's work is judged by, in its own text.

use std::ops::Range;
use std::sync::LazyLock;

use lanewright_model::CommandLine;
use regex::Regex;

use super::commands_in_text::commands_in_text;
use crate::faults::Faults;
use crate::markdown::{list_items, paragraph};
use crate::source_text::Span;

/// The line in a description behind which acceptance criteria are listed.
static CRITERIA: LazyLock<Regex> =
    pattern!(r"(?im)^[#*\s]*(?:acceptance(?: criteria)?|success criteria|exit criteria)[:*\s]*$");

static HEADING: LazyLock<Regex> = pattern!(r"(?m)^(?:#{1,6}\s|\*\*[^*\n]+\*\*:?\s*$)");

pub(crate) struct Judged {
    pub(crate) gates: Vec<CommandLine>,
    pub(crate) criteria: Vec<String>,
}

/// The criteria of `given` and of the section of `description` that lists some, which is taken out of it.
pub(crate) fn judged_by(mut given: String, description: &mut String, span: Span, faults: &Faults<'_>) -> Judged {
    if let Some((heading, criteria)) = criteria_in(description) {
        paragraph(&mut given, &description[criteria.clone()]);
        description.replace_range(heading.start..criteria.end, "");
    }
    let run = commands_in_text(&given);
    run.commands.warn(span, faults);
    let gates = run.commands.gates.into_iter().map(CommandLine::Shell).collect();
    Judged { gates, criteria: list_items(&given) }
}

/// Where a description lists acceptance criteria, and its heading.
fn criteria_in(description: &str) -> Option<(Range<usize>, Range<usize>)> {
    let heading = CRITERIA.find(description)?;
    let end = HEADING.find_at(description, heading.end()).map_or(description.len(), |next| next.start());
    Some((heading.range(), heading.end()..end))
}
