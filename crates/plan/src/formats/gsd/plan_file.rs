//! A file of a phase: its front matter, and what the plan is called.

use std::ops::Range;

use lanewright_model::text::headline;

use super::header::{self, Header};
use crate::faults::Faults;
use crate::front_matter;
use crate::markdown::inline::dedent;
use crate::markdown::{clean, first_words, section};
use crate::source_text::{At, File};

pub(super) const MAX_NAME: usize = 100;

pub(super) struct PlanFile<'a> {
    pub(super) file: File<'a>,
    pub(super) id: String,
    pub(super) header: Header,
    /// The front matter with its marks; empty where there is none.
    pub(super) front: Range<usize>,
}

pub(super) fn open<'a>(file: File<'a>, id: String, faults: &Faults<'_>) -> PlanFile<'a> {
    let Some(found) = front_matter::locate(file.text) else {
        return PlanFile { file, id, header: Header::default(), front: 0..0 };
    };
    if !found.closed {
        let message = "the front matter that begins here has no end";
        let help = "close it with a line `---`; it is taken to end where Markdown begins";
        faults.warning(file.span(found.outer.start..found.outer.start), message, help);
    }
    let inner = &file.text[found.inner.clone()];
    let root = front_matter::read(inner, file.start + found.inner.start, faults);
    let header = root.map(|root| header::read(root, faults)).unwrap_or_default();
    PlanFile { file, id, header, front: found.outer }
}

impl PlanFile<'_> {
    pub(super) fn is_empty(&self) -> bool {
        let rest = [&self.file.text[..self.front.start], &self.file.text[self.front.end..]];
        rest.iter()
            .all(|text| text.trim_matches(|c: char| c.is_whitespace() || c == '\0' || c == '\u{feff}').is_empty())
    }

    /// What people call the plan: its title, else the first words of its objective, else its heading.
    pub(super) fn name(&self) -> Option<At<String>> {
        if let Some(title) = &self.header.title {
            return Some(At::new(headline(&clean(&title.value), MAX_NAME), title.span));
        }
        let text = &self.file.text[self.front.end..];
        let objective = text.find("<objective>").map(|at| at + "<objective>".len());
        let words = objective.and_then(|at| first_words(until_tag(&text[at..]), MAX_NAME));
        let words = words.or_else(|| heading_objective(text)).or_else(|| self.heading());
        words.map(|words| At::new(words, self.file.span(0..0)))
    }

    /// What the front matter says that a person sets up, as it is written.
    pub(super) fn setup(&self) -> String {
        let mut text = String::new();
        if let Some(span) = self.header.user_setup {
            let written = self.file.text.get(span.start - self.file.start..span.end - self.file.start).unwrap_or("");
            section(&mut text, "What a person sets up for this plan", &dedent(written));
        }
        text
    }

    fn heading(&self) -> Option<String> {
        let heading = |line: &&str| line.starts_with("# ") && line.len() > 2;
        let line = self.file.text.lines().take(200).find(heading)?;
        let words = first_words(line, MAX_NAME)?;
        // `Plan 05-01: Ability data` is about ability data.
        let after = words.strip_prefix("Plan").and_then(|rest| rest.split_once([':', '—']));
        let after = after.filter(|(number, _)| number.len() < 12).map(|(_, words)| words.trim().to_owned());
        after.filter(|words| !words.is_empty()).or(Some(words))
    }
}

fn until_tag(text: &str) -> &str {
    text.find("</objective>").map_or(text, |end| &text[..end])
}

/// The first words below a heading `Objective`.
fn heading_objective(text: &str) -> Option<String> {
    let at = text
        .lines()
        .take(2_000)
        .position(|line| line.trim_matches(['#', ' ', ':']).eq_ignore_ascii_case("objective"))?;
    let below = text.lines().skip(at + 1).take(20).find(|line| !line.trim().is_empty() && !line.starts_with('#'))?;
    first_words(below, MAX_NAME)
}
