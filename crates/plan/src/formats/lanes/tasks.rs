//! The tasks of a lane: rows of tables, bullets wrapped over lines, check boxes.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use lanewright_agents::shell::without_display_filters;
use regex::Regex;

use super::paths;
use super::table::{Cell, Column, Row, Table, is_task_header, table};
use crate::command::{Commands, commands_of_cell, in_statement};
use crate::markdown::inline::{bare, dedent, is_nothing, one_line};
use crate::markdown::{Fence, fenced_lines, indent, list_item, trim};
use crate::source_text::At;

/// What a task is about; the order of a lane's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Writes tests, which fail as yet.
    Test,
    Implement,
    Verify,
}

#[derive(Debug, Default)]
pub(super) struct RawTask {
    pub(super) at: Range<usize>,
    pub(super) id: Option<At<String>>,
    pub(super) kind: Option<Kind>,
    pub(super) is_row: bool,
    /// The task's kind as the text calls it.
    pub(super) kind_word: String,
    pub(super) text: String,
    /// The shortest text of a task, in bytes.
    pub(super) title: String,
    pub(super) ticked: bool,
    /// The tasks, lanes and gates that it waits for.
    pub(super) depends_on: Option<Range<usize>>,
    pub(super) files: Vec<At<String>>,
    pub(super) tests: Vec<At<String>>,
    pub(super) names_tests: bool,
    pub(super) names_command: bool,
    pub(super) commands: Commands,
    pub(super) acceptance: Option<At<String>>,
}

impl RawTask {
    /// Takes what a bullet says of the same task.
    fn take(&mut self, bullet: RawTask) {
        for part in [if self.text.is_empty() { "" } else { "\n\n" }, &bullet.text] {
            self.text.push_str(part);
        }
        self.commands.extend(bullet.commands);
        let mut seen = HashSet::new();
        self.commands.gates.retain(|gate| seen.insert(gate.clone()));
        self.names_command |= bullet.names_command;
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

/// The tasks of a field, and its text that belongs to none.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) list: Vec<RawTask>,
    pub(super) notes: Vec<Range<usize>>,
    /// Rows with too few or too many cells: where, how many, how many there should be.
    pub(super) odd_rows: Vec<(Range<usize>, usize, usize)>,
}

/// Reads the values of the `Tasks` fields of a lane.
pub(super) fn tasks(text: &str, fields: impl IntoIterator<Item = Range<usize>>) -> Tasks {
    let mut tasks = Tasks::default();
    fields.into_iter().for_each(|range| tasks.read(text, range));
    tasks.join();
    tasks
}

impl Tasks {
    fn read(&mut self, text: &str, range: Range<usize>) {
        let mut rows: Vec<Range<usize>> = Vec::new();
        let mut item: Option<(usize, Range<usize>, bool)> = None;
        for (line, fence) in fenced_lines(&text[range.clone()], 0) {
            let white = indent(line.text);
            let line = range.start + line.start..range.start + line.range().end;
            let inside = trim(text, line.clone());
            let said = &text[inside.clone()];
            let fenced = fence != Fence::Outside;
            if !fenced && said.starts_with('|') {
                self.finish_item(text, &mut item);
                if is_task_header(said) {
                    self.finish_rows(text, &mut rows);
                }
                rows.push(inside);
                continue;
            }
            self.finish_rows(text, &mut rows);
            let begun = list_item(text, line).filter(|_| !fenced);
            match (begun, &mut item) {
                _ if said.is_empty() => {}
                (Some((content, ticked)), open) if open.as_ref().is_none_or(|open| white <= open.0) => {
                    self.finish_item(text, &mut item);
                    item = Some((white, content, ticked == Some(true)));
                }
                (_, Some(open)) => open.1.end = inside.end,
                (_, None) if begins_task(said) => item = Some((white, inside, false)),
                (_, None) => self.notes.push(inside),
            }
        }
        self.finish_rows(text, &mut rows);
        self.finish_item(text, &mut item);
    }

    /// Puts bullets that tell more of the rows of a table into these: each into the row that it names, else into the
    /// first row of its kind.
    fn join(&mut self) {
        let (mut rows, bullets): (Vec<RawTask>, Vec<RawTask>) =
            std::mem::take(&mut self.list).into_iter().partition(|task| task.is_row);
        let mut own = Vec::new();
        for bullet in bullets {
            let names = |row: &RawTask| {
                let begins = &bullet.text[..bullet.text.floor_char_boundary(60)];
                row.id.as_ref().is_some_and(|id| begins.contains(&id.value))
            };
            let row = rows.iter().position(names);
            let row = row.or_else(|| rows.iter().position(|row| row.kind.is_some() && row.kind == bullet.kind));
            match row.filter(|_| bullet.id.is_none()) {
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
    let (id, kind_word, rest) = split_bullet(whole);
    let kind = kind_word.and_then(kind_of);
    let said = dedent(&whole[rest..]);
    let is_check = kind == Some(Kind::Verify);
    let commands = Commands::judged(if is_check { in_statement(&whole[rest..]) } else { Vec::new() });
    RawTask {
        id: id.map(|id| At::new(whole[id.clone()].to_owned(), range.start + id.start..range.start + id.end)),
        kind,
        kind_word: kind_word.unwrap_or_default().to_owned(),
        title: said.clone(),
        text: said,
        ticked,
        names_command: !commands.is_empty(),
        commands,
        at: range,
        ..RawTask::default()
    }
}

/// `test:`, `(impl) -`, `**verify**:`, `[docs] `: what encloses the word, the word, what closes it, and what ends it.
static KIND: LazyLock<Regex> = pattern!(r"^([(\[*`_]*)([A-Za-z/+]+)([*`_)\]]*)(:| - | — | – | -- | )");

/// The id and the kind that a bullet begins with, and where its text begins: `P1-SL-1-01 (impl) - text`, `test: text`,
/// `**SL-1.2** impl — text`.
fn split_bullet(text: &str) -> (Option<Range<usize>>, Option<&str>, usize) {
    let marks = |c: char| matches!(c, '*' | '`' | '_');
    let begin = text.len() - text.trim_start_matches(marks).len();
    let word = text[begin..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte)).count();
    let word = text[begin..begin + word].trim_end_matches(['.', '-']);
    let id = Some(begin..begin + word.len()).filter(|_| is_task_id(word));
    let rest = match &id {
        Some(id) => text[id.end..].trim_start_matches(|c: char| c.is_whitespace() || "*`_:-–—".contains(c)),
        None => text.trim_start(),
    };
    let kind = KIND.captures(rest).filter(|found| {
        let enclosed = found[1].starts_with(['(', '[']) || !found[3].is_empty();
        // `test: x` in backticks is a label, and only the word in them is a kind.
        let whole_span = !rest.starts_with('`') || found[3].starts_with('`');
        kind_of(&found[2]).is_some() && whole_span && (&found[4] != " " || enclosed)
    });
    let Some((found, word)) = kind.as_ref().and_then(|found| Some((found, found.get(2)?))) else {
        return (id, None, text.len() - rest.len());
    };
    let said = rest[found[0].len()..].trim_start_matches(|c: char| c.is_whitespace() || ":-–—*".contains(c));
    (id, Some(word.as_str()), text.len() - said.len())
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
    let text_of = |wanted: Column| said(wanted).map_or("", |cell| cell.text.as_str());
    let kind_word = bare(text_of(Column::Kind)).to_owned();
    let kind = kind_of(&kind_word);
    let commands = match cell(Column::Command) {
        None if kind == Some(Kind::Verify) => in_statement(text_of(Column::Action)),
        _ => commands_of_cell(text_of(Column::Command)),
    };
    let files = |wanted: Column, prose: bool| {
        said(wanted).map(|cell| paths::in_cell(&cell.text, cell.at.start, prose)).unwrap_or_default()
    };
    let title = [Column::Action, Column::Acceptance, Column::Files, Column::Tests].into_iter().find_map(said);
    RawTask {
        at: row.at.clone(),
        id: said(Column::Id).map(|cell| At::new(bare(&cell.text).to_owned(), cell.at.clone())),
        kind,
        is_row: true,
        kind_word,
        title: title.map(|cell| cell.text.clone()).unwrap_or_default(),
        text: row_text(table, row),
        ticked: false,
        depends_on: said(Column::DependsOn).map(|cell| cell.at.clone()),
        files: files(Column::Files, true),
        tests: files(Column::Tests, false),
        names_tests: said(Column::Tests).is_some(),
        names_command: said(Column::Command).is_some(),
        commands: Commands::judged(commands),
        acceptance: said(Column::Acceptance).map(|cell| At::new(cell.text.clone(), cell.at.clone())),
    }
}

/// The text of a row for the agent: the task, and every other column that is not empty.
fn row_text(table: &Table, row: &Row) -> String {
    let mut actions = Vec::new();
    let mut others = Vec::new();
    for ((column, name), Cell { text, .. }) in table.columns.iter().zip(&row.cells) {
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
    use std::iter;

    use super::*;

    fn read(text: &str) -> Vec<(String, Option<Kind>, String)> {
        let found = tasks(text, iter::once(0..text.len()));
        found
            .list
            .into_iter()
            .map(|task| (task.id.map(|id| id.value).unwrap_or_default(), task.kind, task.text))
            .collect()
    }

    #[test]
    fn task_bullets_are_read_in_all_forms() {
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
    fn task_bullet_includes_nested_lines() {
        let found =
            read("\n  - test: one\n    two\n\n    - nested\n    ```sh\n    - impl: no\n    ```\n  - impl: three");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].2, "one\ntwo\n\n- nested\n```sh\n- impl: no\n```");
        assert_eq!(found[1].2, "three");
    }

    #[test]
    fn task_row_fills_every_field() {
        let text = "| Task ID | Type | Depends on | Files in scope | Tests owned | Test command | Acceptance Criteria |\n|---|---|---|---|---|---|---|\n| SL-1-T1 | impl | SL-1-T0 | `src/a.rs` | n/a | `cargo test \\| cat` | it works |\n";
        let found = tasks(text, iter::once(0..text.len())).list;
        assert_eq!(found[0].text, "Files in scope: `src/a.rs`\nTest command: `cargo test | cat`");
        assert_eq!(found[0].commands.gates, ["cargo test"]);
        assert_eq!(found[0].acceptance.as_ref().unwrap().value, "it works");
        assert_eq!(&text[found[0].depends_on.clone().unwrap()], "SL-1-T0");
        assert!(!found[0].names_tests);
    }

    #[test]
    fn tables_and_bullets_can_be_mixed() {
        let text = "Some words.\n\n| ID | Type | Action |\n|---|---|---|\n| 1 | docs | write |\n\n- test: more\n";
        let found = tasks(text, iter::once(0..text.len()));
        assert_eq!(found.list.len(), 2);
        assert_eq!(found.notes.len(), 1);
    }

    #[test]
    fn bullet_about_a_row_is_merged_into_it() {
        let text = "- test: A-T1 comes first.\n- test: more of it\n- verify: `make check`\n- verify: A-V2 is the last\n\n\
            | ID | Type | Action |\n|---|---|---|\n| A-T1 | test | write |\n| A-V1 | verify | look |\n| A-V2 | verify | again |\n";
        let found = tasks(text, iter::once(0..text.len())).list;
        let texts: Vec<&str> = found.iter().map(|task| task.text.as_str()).collect();
        assert_eq!(
            texts,
            ["write\n\nA-T1 comes first.\n\nmore of it", "look\n\n`make check`", "again\n\nA-V2 is the last"]
        );
        assert_eq!(found[1].commands.gates, ["make check"]);
    }

    #[test]
    fn gates_only_task_is_recognized() {
        let only = |text: &str| tasks(text, iter::once(0..text.len())).list[0].runs_gates_only();
        assert!(only("- verify: run `make check | tail -5`.") && only("- verify: `ruff check .`"));
        assert!(only("- verify: `make check`") && only("- verify: `make a` && `make b`"));
        assert!(!only("- verify: `make check`, then write the notes") && !only("- impl: `make check`"));
    }
}
