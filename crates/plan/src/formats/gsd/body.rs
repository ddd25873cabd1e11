//! The body of a plan around its tasks: the text for every prompt, that for the last one, and the text between.

use std::ops::Range;

use crate::markdown::{clean, paragraph};
use crate::source_text::File;

use super::tasks::RawTask;
use super::tokens::{Kind, Token};

/// Sections that are about the plan as a whole once its tasks are done.
const LAST: [&str; 4] = [VERIFICATION, SUCCESS_CRITERIA, "output", "threat-model"];

/// By what the work as a whole is judged.
const VERIFICATION: &str = "verification";
const SUCCESS_CRITERIA: &str = "success-criteria";

/// Instructions for any plan, which may contradict those of a task.
const EXECUTION_CONTEXT: &str = "execution-context";

const TITLES: [(&str, &str); 10] = [
    ("objective", "Objective"),
    (EXECUTION_CONTEXT, "For reference"),
    ("context", "Context"),
    ("interfaces", "Interfaces"),
    (VERIFICATION, "Verification of the whole plan"),
    (SUCCESS_CRITERIA, "Success criteria of the whole plan"),
    ("output", "Output"),
    ("threat-model", "Threat model"),
    ("feature", "Feature"),
    ("notes", "Notes"),
];

#[derive(Debug, Default)]
pub(super) struct BodyText {
    /// For every task.
    pub(super) common: String,
    /// For the last one.
    pub(super) closing: String,
    /// What of it says how the work as a whole is judged.
    pub(super) judged_by: String,
    /// The instructions for any plan.
    pub(super) reference: String,
    /// The text right before each task.
    pub(super) before: Vec<String>,
}

/// Splits the body. `skip` is front matter within it.
pub(super) fn split_body(
    file: &File<'_>,
    body: &Range<usize>,
    skip: &Range<usize>,
    tokens: &[Token<'_>],
    tasks: &[RawTask<'_>],
) -> BodyText {
    let mut found = BodyText::default();
    let text = Sections { file, tokens, skip };
    let first = tasks.first().map_or(body.end, |task| task.range.start);
    text.add(body.start..first, &mut |part, section| found.add_section(part, section, None));
    for pair in tasks.windows(2) {
        let mut between = String::new();
        text.add(pair[0].range.end..pair[1].range.start, &mut |part, section| {
            found.add_section(part, section, Some(&mut between));
        });
        found.before.push(between);
    }
    if let Some(last) = tasks.last() {
        text.add(last.range.end..body.end, &mut |part, section| {
            found.add_section(part, section.or(Some("")), None);
        });
    }
    found.before.insert(0, String::new());
    found
}

impl BodyText {
    /// Adds a part of the body: one that is set apart by its `section`, others to `between` or to every task.
    fn add_section(&mut self, part: &str, section: Option<&str>, between: Option<&mut String>) {
        match section {
            None => paragraph(between.unwrap_or(&mut self.common), part),
            Some(EXECUTION_CONTEXT) => paragraph(&mut self.reference, part),
            Some(section) => {
                paragraph(&mut self.closing, part);
                if [VERIFICATION, SUCCESS_CRITERIA].contains(&section) {
                    // It stands below a heading of its own there.
                    paragraph(&mut self.judged_by, &part.trim_start().replacen("## ", "### ", 1));
                }
            }
        }
    }
}

struct Sections<'a> {
    file: &'a File<'a>,
    tokens: &'a [Token<'a>],
    skip: &'a Range<usize>,
}

impl Sections<'_> {
    /// Gives the parts of `range`, tags of sections as headings, and the name of a section that is set apart.
    fn add(&self, range: Range<usize>, take: &mut dyn FnMut(&str, Option<&str>)) {
        let mut at = range.start;
        let mut last: Option<&str> = None;
        let mut part = String::new();
        let first = self.tokens.partition_point(|token| token.start < range.start);
        for token in self.tokens[first..].iter().take_while(|token| token.start < range.end) {
            let title = TITLES.iter().find(|(name, _)| *name == token.name).map(|(_, title)| *title);
            let is_tasks = token.name == "tasks";
            if token.start < at || (title.is_none() && !is_tasks) {
                continue;
            }
            self.push(&mut part, at..token.start);
            at = token.end.min(range.end);
            let is_apart = token.name == EXECUTION_CONTEXT || LAST.contains(&token.name);
            if token.kind == Kind::Open && is_apart && last.is_none() {
                take(&std::mem::take(&mut part), None);
                last = Some(token.name);
            }
            part.truncate(part.trim_end().len());
            part.push_str("\n\n");
            if let (Kind::Open, Some(title)) = (token.kind, title) {
                part.push_str(&format!("## {title}\n\n"));
            }
            if token.kind == Kind::Close && last == Some(token.name) {
                take(&std::mem::take(&mut part), last);
                last = None;
            }
        }
        self.push(&mut part, at..range.end);
        take(&part, last);
    }

    /// Adds a stretch of the file without the front matter that may stand in it.
    fn push(&self, part: &mut String, range: Range<usize>) {
        let before = range.start..range.end.min(self.skip.start).max(range.start);
        let after = range.start.max(self.skip.end).min(range.end)..range.end;
        let pieces = if self.skip.is_empty() { [range, 0..0] } else { [before, after] };
        for piece in pieces.into_iter().filter(|piece| piece.start < piece.end) {
            let text = clean(&self.file.text[piece]);
            part.push_str(text.trim_matches('\n').trim_end());
        }
    }
}
