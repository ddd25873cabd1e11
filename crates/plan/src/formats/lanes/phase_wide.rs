//! What holds for the phase as a whole: its test execution plan, its execution notes, its acceptance criteria.

use std::ops::Range;

use super::names::{Meaning, Mention, Names, lane_mentions};
use super::policy;
use crate::command::{Commands, commands};
use crate::markdown::inline::{Code, bare, codes, dedent, sentences, without_code, without_parentheses};
use crate::markdown::{Document, Fence, fenced_lines, list_item, section_title};
use crate::path::in_prose;

/// Text for the prompts of the lanes that it concerns.
#[derive(Debug, Default)]
pub(super) struct PhaseWide {
    /// The execution notes, with the lanes that each names.
    pub(super) notes: Vec<(String, Vec<usize>)>,
    /// The dispatch hints, by the name of the lane as it is written.
    pub(super) hints: Vec<(String, String)>,
    pub(super) single_writers: Vec<SingleWriter>,
    /// By lane, what the file-by-file specification says.
    pub(super) specifications: Vec<(usize, String)>,
    /// What the phase is about.
    pub(super) introduction: String,
    /// Given to lanes that no other lane waits for, like `verification`.
    pub(super) acceptance: String,
    pub(super) verification: String,
}

impl PhaseWide {
    pub(super) fn new(document: &Document<'_>, names: &Names) -> Self {
        let notes = with_lanes(notes(document), names);
        Self {
            single_writers: single_writers(&notes, names),
            notes,
            hints: policy::hints(document),
            specifications: specifications(document, names),
            introduction: section(document, "context"),
            acceptance: section(document, "acceptance criteria"),
            verification: section(document, "verification"),
        }
    }

    /// The notes that matter to a lane: those that name it, and those that name none.
    pub(super) fn notes_for(&self, lane: usize) -> impl Iterator<Item = &str> {
        let matters = move |named: &[usize]| named.is_empty() || named.contains(&lane);
        self.notes.iter().filter(move |(_, named)| matters(named)).map(|(text, _)| text.as_str())
    }
}

pub(super) fn has_test_plan(document: &Document<'_>) -> bool {
    !document.sections(is_test_plan).is_empty()
}

fn is_test_plan(title: &str) -> bool {
    title.contains("test execution plan") || title.contains("test plan")
}

/// The commands that are for the time after all lanes: those of the test execution plan below a heading or a label that
/// says `cross-lane` or `integration`, and those of the phase's verification.
pub(super) fn final_commands(document: &Document<'_>) -> Commands {
    let mut wanted_text = String::new();
    for section in document.sections(is_test_plan) {
        let mut wanted = false;
        for at in section {
            let line = document.line(at);
            if document.fence(at) == Fence::Outside && is_title(document, at, line.trim()) {
                wanted = is_cross_lane(line);
            } else if wanted && (document.fence(at) != Fence::Outside || !line.trim_start().starts_with('|')) {
                wanted_text.push_str(line);
                wanted_text.push('\n');
            }
        }
        wanted_text.push('\n');
    }
    wanted_text.push_str(&without_manual_steps(&section(document, "verification")));
    let found = commands(&wanted_text).into_iter();
    let mut seen = std::collections::HashSet::new();
    Commands::judged(found.filter(|command| seen.insert(command.clone())).collect())
}

/// `text` without the lists and scripts below labels that leave them to a person: `Manual smoke:`.
fn without_manual_steps(text: &str) -> String {
    let mut manual = false;
    let mut kept = String::with_capacity(text.len());
    for (line, fence) in fenced_lines(text, 0) {
        let line = line.text;
        let label = line.trim_matches(['*', '#', ' ']).to_lowercase();
        let goes_on = label.is_empty()
            || line.starts_with(['-', ' ', '\t', '`'])
            || line.starts_with(|c: char| c.is_ascii_digit());
        if fence == Fence::Outside && !goes_on {
            manual = label.starts_with("manual");
        }
        if !manual {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn is_title(document: &Document<'_>, at: usize, line: &str) -> bool {
    let is_label = line.starts_with("**") && (line.ends_with("**") || line.ends_with(':'));
    is_label || document.heading_at(at).is_some()
}

fn is_cross_lane(title: &str) -> bool {
    let title = title.to_lowercase();
    title.contains("cross-lane")
        || title.contains("cross lane")
        || (title.contains("integration") && !title.contains("ci integration"))
}

/// The items of the execution notes. A heading belongs to the paragraph below it; above a list it says nothing.
fn notes(document: &Document<'_>) -> Vec<String> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for section in document.sections(|title| title == "execution notes") {
        // What the last range is: closed, a heading alone, or text.
        let (mut open, mut bare_heading) = (false, false);
        for at in section {
            let range = document.trimmed(at);
            let line = &document.text[range.clone()];
            if line.is_empty() || (line.len() > 2 && line.bytes().all(|byte| byte == b'-')) {
                open &= line.is_empty();
                continue;
            }
            let is_text = document.fence(at) == Fence::Outside;
            let heading = document.heading_at(at).is_some();
            let is_top = is_text && !document.line(at).starts_with([' ', '\t']);
            let item = is_top && list_item(document.text, range.clone()).is_some();
            if bare_heading && (heading || item) {
                ranges.pop();
            }
            match ranges.last_mut().filter(|_| open && !heading && !item && !is_title(document, at, line)) {
                Some(last) => last.end = range.end,
                None => ranges.push(range),
            }
            (open, bare_heading) = (true, heading);
        }
        if bare_heading {
            ranges.pop();
        }
    }
    ranges.into_iter().map(|range| dedent(&document.text[range])).collect()
}

fn with_lanes(notes: Vec<String>, names: &Names) -> Vec<(String, Vec<usize>)> {
    let named = |text: &String| {
        let meanings = lane_mentions(text).into_iter().map(|mention| names.meaning(text, &mention));
        let mut lanes: Vec<usize> =
            meanings.filter_map(|meaning| if let Meaning::Lane(lane) = meaning { Some(lane) } else { None }).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    };
    notes.into_iter().map(|text| (named(&text), text)).map(|(lanes, text)| (text, lanes)).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SingleWriter {
    pub(super) path: String,
    pub(super) lane: usize,
}

const MAX_SINGLE_WRITERS: usize = 500;

/// The single-writer files of the execution notes: paths, and behind them the lane that writes them.
fn single_writers(notes: &[(String, Vec<usize>)], names: &Names) -> Vec<SingleWriter> {
    let is_about = |text: &str| {
        let label = text.trim_start_matches(['-', '*', ' ']).to_lowercase();
        label.starts_with("single-writer") || label.starts_with("single writer")
    };
    let mut found = Vec::new();
    for (text, _) in notes.iter().filter(|(text, _)| is_about(text)) {
        for sentence in sentences(text) {
            let mut waiting: Vec<String> = Vec::new();
            for word in words(&text[sentence.clone()], names) {
                match word {
                    Word::Path(path) => waiting.push(path),
                    Word::Lane(lane) => found.extend(waiting.drain(..).map(|path| SingleWriter { path, lane })),
                }
            }
        }
    }
    found.truncate(MAX_SINGLE_WRITERS);
    found
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Path(String),
    Lane(usize),
}

/// The paths in backticks and the lanes of a sentence, in its order.
fn words(sentence: &str, names: &Names) -> Vec<Word> {
    let path = |code: Code| Some((code.inner.start, Word::Path(in_prose(&sentence[code.inner])?.to_owned())));
    let visible = without_code(sentence);
    let lane = |mention: Mention| match names.meaning(&visible, &mention) {
        Meaning::Lane(lane) => Some((mention.range.start, Word::Lane(lane))),
        _ => None,
    };
    let lanes = lane_mentions(&visible).into_iter().filter_map(lane);
    let mut words: Vec<(usize, Word)> = codes(sentence).into_iter().filter_map(path).chain(lanes).collect();
    words.sort();
    words.into_iter().map(|(_, word)| word).collect()
}

/// The text below the plan's headings with this title.
fn section(document: &Document<'_>, title: &str) -> String {
    let is_wanted = |at: &usize| {
        let heading = &document.headings[*at];
        heading.level <= 2 && section_title(heading.title) == title
    };
    let sections = (0..document.headings.len()).filter(is_wanted).map(|at| document.below(at));
    let text = sections.map(|lines| dedent(&document.text[document.bytes(lines)])).collect::<Vec<_>>().join("\n\n");
    text.trim().trim_end_matches("---").trim().to_owned()
}

/// What the file-by-file specification says of the files of each lane: `### path -- added -- Owner: SL-1`.
fn specifications(document: &Document<'_>, names: &Names) -> Vec<(usize, String)> {
    let sections = document.sections(|title| title.contains("file-by-file"));
    let mut found = Vec::new();
    for (at, heading) in document.headings.iter().enumerate() {
        let title = heading.title;
        let inside = sections.iter().any(|section| section.contains(&heading.line));
        let Some((_, owner)) = title.split_once("Owner:").filter(|_| inside) else { continue };
        let owner = without_parentheses(owner);
        let mention = lane_mentions(&owner).into_iter().next();
        if let Some(Meaning::Lane(lane)) = mention.map(|mention| names.meaning(&owner, &mention)) {
            let body = dedent(&document.text[document.bytes(document.below(at))]);
            let body = body.trim_end_matches(['-', '\n', ' ']);
            let file = title.split(" -- ").next().unwrap_or(title);
            found.push((lane, format!("{}:\n{body}", bare(file))));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cross_lane_commands_become_final_gates() {
        let text = "# P1: A\n## H. Test Execution Plan\n### Unit Tests\n```bash\nnpm run unit\n```\n### Cross-Lane Integration Tests\n```bash\n# all\nnpm run e2e  # slow\n```\n- `npm run smoke`\n```yaml\nrun: npm run no\n```\n### CI Integration\n```bash\nnpm run ci\n```\n**Full integration**:\n```\nnpm run e2e\nnpm run full\n```\n## J. B\n### Integration\n```bash\nnpm run no\n```\n";
        assert_eq!(final_commands(&Document::new(text)).gates, ["npm run e2e", "npm run smoke", "npm run full"]);
    }

    #[test]
    fn manual_steps_are_not_gates() {
        let text = "# P1: A\n## Verification\n- `npm test`\n\n**Manual smoke**:\n\n- `npm run doctor`\n```bash\nnpm run wipe\n```\n\nBefore a release:\n1. `npm run build`\n";
        assert_eq!(final_commands(&Document::new(text)).gates, ["npm test", "npm run build"]);
    }

    #[test]
    fn single_writer_files_belong_to_the_next_lane() {
        let mut names = Names::default();
        ["SL-1", "SL-2", "SL-3"].iter().for_each(|id| names.add(id));
        names.alias("SL-docs", 2);
        let note = "**Single-writer files**: `ci.yml` — SL-1 only. `a.toml` and `b.lock` — owner SL-2; SL-1 writes under\n  `tests/t_*.py` names. `CHANGELOG.md` — SL-docs only, else lanes collide on `## [New]`.";
        let notes = with_lanes(vec![note.to_owned(), "`x.md` — SL-1".to_owned()], &names);
        let found: Vec<(String, usize)> =
            single_writers(&notes, &names).into_iter().map(|found| (found.path, found.lane)).collect();
        let expected = [("ci.yml", 0), ("a.toml", 1), ("b.lock", 1), ("CHANGELOG.md", 2)];
        assert_eq!(found, expected.map(|(path, lane)| (path.to_owned(), lane)));
    }

    #[test]
    fn execution_notes_are_assigned_to_named_lanes() {
        let text = "# P1: A\n## E. Execution Notes\n- Only SL-1 matters\n  here.\n\n- For all.\n- SL-2 alone.\n### Order\n1. SL-1\n   ```\n   x\n   ```\n\n---\n";
        let mut names = Names::default();
        ["SL-1", "SL-2"].iter().for_each(|id| names.add(id));
        let notes = with_lanes(notes(&Document::new(text)), &names);
        let phase = PhaseWide { notes, ..PhaseWide::default() };
        let notes: Vec<&str> = phase.notes_for(0).collect();
        assert_eq!(notes, ["- Only SL-1 matters\nhere.", "- For all.", "1. SL-1\n```\nx\n```"]);
    }
}
