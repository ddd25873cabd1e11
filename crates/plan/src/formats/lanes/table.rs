//! Tables: rows into cells, with pipes that are escaped or stand in code.

use std::ops::Range;

use crate::markdown::inline::{bare, without_code};
use crate::markdown::trim;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Id,
    Kind,
    DependsOn,
    Files,
    Tests,
    Command,
    Acceptance,
    Action,
    /// Given to the agent, like every column without another meaning.
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    /// What each column means, and what it is called.
    pub(super) columns: Vec<(Column, String)>,
    pub(super) rows: Vec<Row>,
}

/// A row of a table: as many cells as the table has columns.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) at: Range<usize>,
    pub(super) cells: Vec<Cell>,
    /// How many cells are written, where that is another number.
    pub(super) written: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) at: Range<usize>,
    /// With escaped pipes as pipes.
    pub(super) text: String,
}

/// Whether a line is the first of a table of tasks.
pub(super) fn is_task_header(line: &str) -> bool {
    if !line.starts_with('|') || line.len() > 1000 {
        return false;
    }
    let columns = columns(line);
    columns.first().is_some_and(|(column, _)| *column == Column::Id)
        && columns.iter().any(|(column, _)| matches!(column, Column::Kind | Column::Command | Column::Files))
}

/// Reads the lines of a table of tasks; the first is its header.
pub(super) fn table(text: &str, lines: &[Range<usize>]) -> Table {
    let Some((header, rest)) = lines.split_first() else { return Table::default() };
    let columns = columns(&text[header.clone()]);
    let is_rule = |line: &&Range<usize>| text[(*line).clone()].chars().all(|c| "|-: \t".contains(c));
    let rows = rest.iter().filter(|line| !is_rule(line)).map(|line| row(text, line.clone(), columns.len())).collect();
    Table { columns, rows }
}

fn columns(header: &str) -> Vec<(Column, String)> {
    let named = cells(header, 0..header.len(), true).into_iter().map(|range| bare(&header[range]).to_owned());
    let mut columns: Vec<(Column, String)> = named.map(|name| (column(&name), name)).collect();
    // `Task` names the tasks only where nothing else does.
    let by_id = |column: &(Column, String)| column.0 == Column::Id;
    for second in columns.iter_mut().filter(|column| by_id(column)).skip(1) {
        second.0 = Column::Action;
    }
    columns
}

fn column(name: &str) -> Column {
    let name = name.replace(['-', '_'], " ").to_lowercase();
    match name.trim() {
        "task id" | "id" | "task" | "#" => Column::Id,
        "task type" | "type" | "kind" => Column::Kind,
        "depends on" | "depends" | "dependencies" | "deps" => Column::DependsOn,
        "files in scope" | "files" | "scope" => Column::Files,
        "tests owned files" | "tests owned" | "test files" | "tests" => Column::Tests,
        "acceptance criteria" | "acceptance" | "done when" => Column::Acceptance,
        "action" | "description" | "work" | "summary" | "details" => Column::Action,
        name if name.starts_with("test command")
            || name.starts_with("command")
            || matches!(name, "verify" | "verification" | "verify command") =>
        {
            Column::Command
        }
        _ => Column::Other,
    }
}

fn row(text: &str, line: Range<usize>, columns: usize) -> Row {
    let mut found = cells(text, line.clone(), true);
    if found.len() != columns {
        let strict = cells(text, line.clone(), false);
        if strict.len() == columns {
            found = strict;
        }
    }
    let written = Some(found.len()).filter(|&written| written != columns);
    if let (Some(last), true) = (found.last().cloned(), found.len() > columns && columns > 0) {
        found.truncate(columns);
        found[columns - 1].end = last.end;
    }
    found.resize(columns, line.end..line.end);
    let cell = |at: Range<usize>| Cell { text: text[at.clone()].replace("\\|", "|"), at };
    Row { at: line, cells: found.into_iter().map(cell).collect(), written }
}

/// The cells of a row. With `code`, pipes in code spans separate nothing: strictly they do, but people forget.
fn cells(text: &str, line: Range<usize>, code: bool) -> Vec<Range<usize>> {
    let line = trim(text, line);
    let row = &text[line.clone()];
    let hidden = if code { without_code(row) } else { row.to_owned() };
    let escaped = |at: usize| row[..at].bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1;
    let pipes: Vec<usize> = hidden.match_indices('|').map(|(at, _)| at).filter(|&at| !escaped(at)).collect();
    let mut edges = pipes;
    if edges.first() != Some(&0) {
        edges.insert(0, usize::MAX);
    }
    if edges.last().is_none_or(|&last| last == usize::MAX || last + 1 != row.len()) {
        edges.push(row.len());
    }
    let cell = |pair: &[usize]| trim(text, line.start + pair[0].wrapping_add(1)..line.start + pair[1]);
    edges.windows(2).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Vec<Vec<String>> {
        let text = lines.join("\n");
        let mut start = 0;
        let place = |line: &&str| {
            start += line.len() + 1;
            start - 1 - line.len()..start - 1
        };
        let places: Vec<Range<usize>> = lines.iter().map(place).collect();
        let table = table(&text, &places);
        table.rows.into_iter().map(|row| row.cells.into_iter().map(|cell| cell.text).collect()).collect()
    }

    #[test]
    fn escaped_pipes_do_not_split_cells() {
        let header = "| Task ID | Type | Command |";
        for command in ["`a || b`", "`a \\|\\| b`", "`a` \\|\\| `b`"] {
            let found = rows(&[header, "|---|:-:|---|", &format!("| 1 | test | {command} |")]);
            assert_eq!(found, [["1", "test", command.replace("\\|", "|").as_str()]], "{command}");
        }
    }

    #[test]
    fn unpaired_backtick_does_not_join_cells() {
        assert_eq!(rows(&["| ID | Type | Command |", "| 1 | `a | b` |"]), [["1", "`a", "b`"]]);
    }

    #[test]
    fn rows_are_padded_to_table_width() {
        let found = rows(&["| ID | Type | Files |", "| 1 | test |", "| 2 | impl | a | b |", "| 3 | impl | a"]);
        assert_eq!(found, [["1", "test", ""], ["2", "impl", "a | b"], ["3", "impl", "a"]]);
    }

    #[test]
    fn other_tables_are_not_task_tables() {
        assert!(is_task_header("| Task ID | Type | Depends on | Files in scope | Action |"));
        assert!(is_task_header("| Task ID         | Task Type | Test Command(s) |"));
        for line in ["| Path | Purpose |", "| Lane | Test Command |", "| Task | Owner |", "Task ID | Type"] {
            assert!(!is_task_header(line), "{line}");
        }
    }
}
