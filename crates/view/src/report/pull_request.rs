//! The pull request with the work of a whole run.

use lanewright_model::cells::clean;
use lanewright_model::text::headline;

use super::ExecutionReport;
use super::markdown::markdown;

/// The longest title; GitHub takes 256 characters.
const LONGEST_TITLE: usize = 120;

/// The longest report, in bytes; GitHub takes 65,536 characters of a text.
const LONGEST_REPORT: usize = 55_000;

/// The longest text, in bytes.
const LONGEST_BODY: usize = 64_000;

/// The title and the text, which is the Markdown report. Names and numbers in it become neither mentions nor references:
/// a forge would notify people, or close an issue.
pub fn pull_request(report: &ExecutionReport<'_>) -> (String, String) {
    let run = report.history.run.run_id().map(|run| format!(" (run {run})")).unwrap_or_default();
    let room = LONGEST_TITLE.saturating_sub(run.chars().count());
    let title = format!("{}{run}", headline(&clean(&report.subject()), room));
    let mut body = without_references(&markdown(report, LONGEST_REPORT));
    body.truncate(body.floor_char_boundary(LONGEST_BODY));
    (title, body)
}

/// `markdown` with an invisible word joiner behind each `@` and `#` that begins a word, but not in blocks of code, where
/// neither means anything and commands are copied from.
fn without_references(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut fence: Option<&str> = None;
    for line in markdown.split_inclusive('\n') {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line.trim_end() == open => fence = None,
            None if ticks.len() >= 3 => fence = Some(ticks),
            _ => {}
        }
        if fence.is_some() {
            text.push_str(line);
            continue;
        }
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            text.push(letter);
            if matches!(letter, '@' | '#') && letters.peek().is_some_and(|next| next.is_alphanumeric()) {
                text.push('\u{2060}');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_no_references() {
        let text =
            "### fixes \\#1 by \\@acme\n\n```sh\nlanewright reject A -m '@acme #1'\n```\n<summary>@x</summary>\n";
        let expected = "### fixes \\#\u{2060}1 by \\@\u{2060}acme\n\n```sh\nlanewright reject A -m '@acme #1'\n```\n\
                        <summary>@\u{2060}x</summary>\n";
        assert_eq!(without_references(text), expected);
    }
}
