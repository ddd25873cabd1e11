//! The tasks of a lane: rows of tables, bullets wrapped over lines, check boxes.

use std::ops::Range;

use super::commands::Commands;
use super::paths::{self, Named};
use super::table::{Cell, Column, Row, Table, is_task_header, table};
use crate::plan::markdown::inline::{bare, dedent, is_nothing, one_line};
use crate::plan::markdown::{Fence, fenced_lines, indent, list_item, trim};
use crate::shell::without_display_filters;

/// What a task is about; the order of a lane's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Writes tests, which fail as yet.
    Test,
    /// Makes something.
    Implement,
    /// Looks whether all is well.
    Verify,
}

#[derive(Debug)]
pub(super) struct RawTask {
    pub(super) at: Range<usize>,
    pub(super) id: Option<(String, Range<usize>)>,
    pub(super) kind: Option<Kind>,
    /// It is a row of a table.
    pub(super) is_row: bool,
    /// What the task's kind is called in the text.
    pub(super) kind_word: String,
    pub(super) text: String,
    /// What says most shortly what is to be done.
    pub(super) title: String,
    pub(super) ticked: bool,
    /// The tasks, lanes and gates that it waits for.
    pub(super) depends_on: Option<Range<usize>>,
    pub(super) files: Vec<Named>,
    /// Tests that the task owns.
    pub(super) tests: Vec<Named>,
    /// Something is said of tests.
    pub(super) names_tests: bool,
    /// Something is said of a command.
    pub(super) names_command: bool,
    pub(super) commands: Commands,
    pub(super) acceptance: Option<(String, Range<usize>)>,
}

impl RawTask {
    /// Takes what a bullet says of the same task.
    fn take(&mut self, bullet: RawTask) {
        for part in [if self.text.is_empty() { "" } else { "\n\n" }, &bullet.text] {
            self.text.push_str(part);
        }
        let known = self.commands.gates.clone();
        self.commands.extend(bullet.commands);
        let mut seen = std::collections::HashSet::new();
        self.commands.gates.retain(|gate| seen.insert(gate.clone()) || known.is_empty());
        self.names_command |= bullet.names_command;
        self.ticked &= bullet.ticked || known.is_empty();
    }

    /// Whether the task is only to run the commands that the lane must pass anyway.
    pub(super) fn runs_gates_only(&self) -> bool {
        let said = one_line(&self.text.replace('`', " "));
        // A row says before a cell what its column is called.
        let said = if self.is_row { said.split_once(": ").map_or("", |(_, cell)| cell) } else { said.as_str() };
        let run = ["Run ", "run "].iter().find_map(|verb| said.strip_prefix(verb)).unwrap_or(said);
        let said = [run, run.trim_end_matches('.').trim_end()].map(without_display_filters);
        self.kind == Some(Kind::Verify)
            && self.commands.others.is_empty()
            && !self.commands.gates.is_empty()
            && self.acceptance.is_none()
            && [self.commands.gates.join(" "), self.commands.gates.join(" && ")].iter().any(|run| said.contains(run))
    }
}

/// The tasks of a field, and what stands there that belongs to none.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) list: Vec<RawTask>,
    pub(super) notes: Vec<Range<usize>>,
    /// Rows with too few or too many cells: where, how many, how many there should be.
    pub(super) odd_rows: Vec<(Range<usize>, usize, usize)>,
}

/// Reads the value of a `Tasks` field.
pub(super) fn tasks(text: &str, range: Range<usize>) -> Tasks {
    let mut tasks = Tasks::default();
    let mut rows: Vec<Range<usize>> = Vec::new();
    let mut item: Option<(usize, Range<usize>, bool)> = None;
    for (line, fence) in fenced_lines(&text[range.clone()], 0) {
        let white = indent(line.text);
        let line = range.start + line.start..range.start + line.range().end;
        let inside = trim(text, line.clone());
        let said = &text[inside.clone()];
        let fenced = fence != Fence::Outside;
        if !fenced && said.starts_with('|') {
            tasks.finish_item(text, &mut item);
            if is_task_header(said) {
                tasks.finish_rows(text, &mut rows);
            }
            rows.push(inside);
            continue;
        }
        tasks.finish_rows(text, &mut rows);
        let begun = list_item(text, line).filter(|_| !fenced);
        match (begun, &mut item) {
            _ if said.is_empty() => {}
            (Some((content, ticked)), open) if open.as_ref().is_none_or(|open| white <= open.0) => {
                tasks.finish_item(text, &mut item);
                item = Some((white, content, ticked == Some(true)));
            }
            (_, Some(open)) => open.1.end = inside.end,
            (_, None) if begins_task(said) => item = Some((white, inside, false)),
            (_, None) => tasks.notes.push(inside),
        }
    }
    tasks.finish_rows(text, &mut rows);
    tasks.finish_item(text, &mut item);
    tasks.join();
    tasks
}

impl Tasks {
    /// Puts bullets that tell more of the rows of a table into these: each into the row that it names, else into the
    /// first row of its kind.
    pub(super) fn join(&mut self) {
        let (mut rows, bullets): (Vec<RawTask>, Vec<RawTask>) =
            std::mem::take(&mut self.list).into_iter().partition(|task| task.is_row);
        let mut own = Vec::new();
        for bullet in bullets {
            let names = |row: &RawTask| {
                let begins = &bullet.text[..bullet.text.floor_char_boundary(60)];
                row.id.as_ref().is_some_and(|(id, _)| begins.contains(id.as_str()))
            };
            let row = rows.iter().position(names);
            let row = row.or_else(|| rows.iter().position(|row| row.kind.is_some() && row.kind == bullet.kind));
            match row.filter(|_| bullet.id.is_none() || row.is_some_and(|row| rows[row].id == bullet.id)) {
                Some(row) => rows[row].take(bullet),
                None => own.push(bullet),
            }
        }
        rows.extend(own);
        rows.sort_by_key(|task| task.at.start);
        self.list = rows;
    }

    fn finish_item(&mut self, text: &str, item: &mut Option<(usize, Range<usize>, bool)>) {
        if let Some((_, range, ticked)) = item.take().filter(|(_, range, _)| !range.is_empty()) {
            self.list.push(bullet(text, range, ticked));
        }
    }

    fn finish_rows(&mut self, text: &str, rows: &mut Vec<Range<usize>>) {
        let rows = std::mem::take(rows);
        if !rows.first().is_some_and(|first| is_task_header(&text[first.clone()])) {
            self.notes.extend(rows);
            return;
        }
        let table = table(text, &rows);
        let width = table.columns.len();
        for row in table.rows.iter().filter(|row| row.cells.iter().any(|cell| !cell.text.is_empty())) {
            self.odd_rows.extend(row.written.map(|written| (row.at.clone(), written, width)));
            self.list.push(of_row(&table, row));
        }
    }
}

/// Whether a list item is a task by its first words.
pub(super) fn begins_task(text: &str) -> bool {
    let (id, kind, _) = split_bullet(text);
    id.is_some() || kind.is_some()
}

fn bullet(text: &str, range: Range<usize>, ticked: bool) -> RawTask {
    let whole = &text[range.clone()];
    let (id, kind, rest) = split_bullet(whole);
    let said = &whole[rest..];
    let kind_word = kind.map_or(String::new(), |word| word.to_owned());
    let kind = kind.and_then(kind_of);
    let commands = if kind == Some(Kind::Verify) { Commands::in_sentence(said) } else { Commands::default() };
    RawTask {
        id: id.map(|id| (whole[id.clone()].to_owned(), range.start + id.start..range.start + id.end)),
        kind,
        is_row: false,
        kind_word,
        title: dedent(said),
        text: dedent(said),
        ticked,
        depends_on: None,
        files: Vec::new(),
        tests: Vec::new(),
        names_tests: false,
        names_command: !commands.is_empty(),
        commands,
        acceptance: None,
        at: range,
    }
}

/// The id and the kind that a bullet begins with, and where its text begins: `P1-SL-1-01 (impl) - text`, `test: text`,
/// `**SL-1.2** impl — text`.
fn split_bullet(text: &str) -> (Option<Range<usize>>, Option<&str>, usize) {
    let marks = |c: char| matches!(c, '*' | '`' | '_');
    let begin = text.len() - text.trim_start_matches(marks).len();
    let word = text[begin..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)).count();
    let word = text[begin..begin + word].trim_end_matches(['.', '-']);
    let id = Some(begin..begin + word.len()).filter(|_| is_task_id(word));
    let after_id = id.as_ref().map_or(0, |id| id.end);
    let rest = text[after_id..]
        .trim_start_matches(|c: char| c.is_whitespace() || (id.is_some() && (marks(c) || ":-–—".contains(c))));
    let at = text.len() - rest.len();
    let opened = rest.trim_start_matches(|c: char| marks(c) || matches!(c, '(' | '['));
    let length = opened.bytes().take_while(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'+')).count();
    let kind = &opened[..length];
    let behind = opened[length..].trim_start_matches(|c: char| marks(c) || matches!(c, ')' | ']'));
    let enclosed = rest.starts_with(['(', '[']) || behind.len() + length < opened.len();
    let ended = behind.starts_with(':')
        || [" - ", " — ", " – ", " -- "].iter().any(|dash| behind.starts_with(dash))
        || (enclosed && behind.starts_with(' '));
    let whole_span = !rest.starts_with('`') || opened[length..].starts_with('`');
    if kind_of(kind).is_none() || !ended || !whole_span {
        return (id, None, at);
    }
    let said = behind.trim_start_matches(|c: char| c.is_whitespace() || marks_end(c));
    (id, Some(kind), text.len() - said.len())
}

fn marks_end(c: char) -> bool {
    matches!(c, ':' | '-' | '–' | '—' | '*')
}

/// `SL-1.2`, `P1-SL-API-03`, `T4`, `1.2`.
fn is_task_id(word: &str) -> bool {
    let digits = word.bytes().any(|byte| byte.is_ascii_digit());
    let number = word.trim_start_matches(['T', 't']);
    let is_number = number.contains('.') || number.len() < word.len();
    let is_number = is_number && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits && (word.contains("SL-") || is_number)
}

pub(super) fn kind_of(word: &str) -> Option<Kind> {
    let word = word.split(['/', '+', ' ', ',']).next().unwrap_or(word).trim_matches(['*', '`', '_']).to_lowercase();
    Some(match word.as_str() {
        "test" | "tests" => Kind::Test,
        "impl" | "implement" | "implementation" | "docs" | "doc" | "documentation" | "fix" | "refactor" | "chore"
        | "config" | "setup" | "scaffold" | "feat" | "migrate" | "migration" | "cleanup" | "spec" => Kind::Implement,
        "verify" | "verification" | "validate" | "validation" | "review" => Kind::Verify,
        _ => return None,
    })
}

fn of_row(table: &Table, row: &Row) -> RawTask {
    let cell = |wanted: Column| {
        table.columns.iter().zip(&row.cells).find(|((column, _), _)| *column == wanted).map(|(_, cell)| cell)
    };
    let said = |wanted: Column| cell(wanted).filter(|cell| !is_nothing(&cell.text));
    let kind_word = said(Column::Kind).map(|cell| bare(&cell.text).to_owned()).unwrap_or_default();
    let kind = kind_of(&kind_word);
    let mut commands = said(Column::Command).map(|cell| Commands::in_cell(&cell.text)).unwrap_or_default();
    if kind == Some(Kind::Verify) && cell(Column::Command).is_none() {
        commands.extend(said(Column::Action).map(|cell| Commands::in_sentence(&cell.text)).unwrap_or_default());
    }
    let files = |wanted: Column, prose: bool| {
        said(wanted).map(|cell| paths::in_cell(&cell.text, cell.at.start, prose)).unwrap_or_default()
    };
    let title = [Column::Action, Column::Acceptance, Column::Files, Column::Tests].into_iter().find_map(said);
    RawTask {
        at: row.at.clone(),
        id: said(Column::Id).map(|cell| (bare(&cell.text).to_owned(), cell.at.clone())),
        kind,
        is_row: true,
        kind_word,
        title: title.map(|cell| cell.text.clone()).unwrap_or_default(),
        text: told(table, row),
        ticked: false,
        depends_on: said(Column::DependsOn).map(|cell| cell.at.clone()),
        files: files(Column::Files, true),
        tests: files(Column::Tests, false),
        names_tests: said(Column::Tests).is_some(),
        names_command: said(Column::Command).is_some(),
        commands,
        acceptance: said(Column::Acceptance).map(|cell| (cell.text.clone(), cell.at.clone())),
    }
}

/// What a row tells the agent: what is to be done, and every other column that says something.
fn told(table: &Table, row: &Row) -> String {
    let mut actions = Vec::new();
    let mut others = Vec::new();
    for ((column, name), cell) in table.columns.iter().zip(&row.cells) {
        let Cell { text, .. } = cell;
        match column {
            _ if is_nothing(text) && !matches!(column, Column::Action) => {}
            Column::Action if text.trim_matches(['-', '—', '–']).is_empty() => {}
            Column::Action => actions.push(text.clone()),
            Column::Files | Column::Tests | Column::Command | Column::Other => others.push(format!("{name}: {text}")),
            Column::Id | Column::Kind | Column::DependsOn | Column::Acceptance => {}
        }
    }
    actions.extend((!others.is_empty()).then(|| others.join("\n")));
    actions.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Option<Kind>, String)> {
        let found = tasks(text, 0..text.len());
        found.list.into_iter().map(|task| (task.id.map(|id| id.0).unwrap_or_default(), task.kind, task.text)).collect()
    }

    #[test]
    fn bullets_come_in_many_forms() {
        let cases = [
            ("- test: text", "", Some(Kind::Test), "text"),
            ("- **impl**: text", "", Some(Kind::Implement), "text"),
            ("- **verify:** `make`", "", Some(Kind::Verify), "`make`"),
            ("* [ ] P1-SL-A-01 (test) - text", "P1-SL-A-01", Some(Kind::Test), "text"),
            ("1. SL-1.2 impl — text: more", "SL-1.2", Some(Kind::Implement), "text: more"),
            ("- **SL-1.2** (verify): text", "SL-1.2", Some(Kind::Verify), "text"),
            ("- `SL-1-T3`: text", "SL-1-T3", None, "text"),
            ("- docs: text", "", Some(Kind::Implement), "text"),
            ("- Test the parser: it is new", "", None, "Test the parser: it is new"),
            ("- `test: x` is a label", "", None, "`test: x` is a label"),
            ("- Just text - with a dash", "", None, "Just text - with a dash"),
        ];
        for (text, id, kind, said) in cases {
            assert_eq!(read(text), [(id.to_owned(), kind, said.to_owned())], "{text}");
        }
    }

    #[test]
    fn a_bullet_keeps_its_wrapped_and_nested_lines() {
        let found =
            read("\n  - test: one\n    two\n\n    - nested\n    ```sh\n    - impl: no\n    ```\n  - impl: three");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].2, "one\ntwo\n\n- nested\n```sh\n- impl: no\n```");
        assert_eq!(found[1].2, "three");
    }

    #[test]
    fn a_row_tells_everything_but_its_order() {
        let text = "| Task ID | Type | Depends on | Files in scope | Tests owned | Test command | Acceptance Criteria |\n|---|---|---|---|---|---|---|\n| SL-1-T1 | impl | SL-1-T0 | `src/a.rs` | n/a | `cargo test \\| cat` | it works |\n";
        let found = tasks(text, 0..text.len()).list;
        assert_eq!(found[0].text, "Files in scope: `src/a.rs`\nTest command: `cargo test | cat`");
        assert_eq!(found[0].commands.gates, ["cargo test"]);
        assert_eq!(found[0].acceptance.as_ref().unwrap().0, "it works");
        assert_eq!(&text[found[0].depends_on.clone().unwrap()], "SL-1-T0");
        assert!(!found[0].names_tests);
    }

    #[test]
    fn tables_and_bullets_stand_side_by_side() {
        let text = "Some words.\n\n| ID | Type | Action |\n|---|---|---|\n| 1 | docs | write |\n\n- test: more\n";
        let found = tasks(text, 0..text.len());
        assert_eq!(found.list.len(), 2);
        assert_eq!(found.notes.len(), 1);
    }

    #[test]
    fn bullets_that_tell_more_of_a_row_are_no_tasks_of_their_own() {
        let text = "- test: A-T1 comes first.\n- test: more of it\n- verify: `make check`\n- verify: A-V2 is the last\n\n\
            | ID | Type | Action |\n|---|---|---|\n| A-T1 | test | write |\n| A-V1 | verify | look |\n| A-V2 | verify | again |\n";
        let found = tasks(text, 0..text.len()).list;
        let texts: Vec<&str> = found.iter().map(|task| task.text.as_str()).collect();
        assert_eq!(
            texts,
            ["write\n\nA-T1 comes first.\n\nmore of it", "look\n\n`make check`", "again\n\nA-V2 is the last"]
        );
        assert_eq!(found[1].commands.gates, ["make check"]);
    }

    #[test]
    fn a_task_that_runs_what_the_lane_must_pass_anyway_is_known() {
        let only = |text: &str| tasks(text, 0..text.len()).list[0].runs_gates_only();
        assert!(only("- verify: run `make check | tail -5`.") && only("- verify: `ruff check .`"));
        assert!(only("- verify: `make check`") && only("- verify: `make a` && `make b`"));
        assert!(!only("- verify: `make check`, then write the notes") && !only("- impl: `make check`"));
    }
}
