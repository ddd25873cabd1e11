//! The task files of Backlog.md: a lane for each that is open, in the order of their `dependencies`.
//!
//! `board` reads the program's settings, `task_file` a file, `lane` writes what agents read, and `tick` records what is
//! done.

mod board;
mod lane;
mod task_file;
mod tick;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::shared::companions::companions;
use super::shared::items::{Item, Standing, Unknown, add_lanes, come_after_children};
use super::shared::paths_in_text::{complete, retain_sure};
use crate::Source;
use crate::draft::{Overlaps, PlanDraft};
use crate::faults::{Faults, nearest, quoted};
use crate::front_matter::key_of;
use crate::ids::as_id;
use crate::source_text::{At, File, SourceText, Span};
use board::Board;
use task_file::{TaskFile, key};
pub(crate) use tick::{ticked, unticked};

/// How many files that are no tasks are named.
const MAX_NAMED: usize = 5;

/// Keys that the front matter of a task has.
const KEYS: [&str; 3] = ["id", "title", "status"];

/// Keys of which a task outside of the program's directory has at least one.
const OWN_KEYS: [&str; 3] = ["created_date", "assignee", "dependencies"];

/// Whether the file is one of this format's, by its path and its text.
pub(super) fn is_plan(path: &str, text: &str) -> bool {
    let path = path.replace('\\', "/");
    let in_tasks = ["backlog/tasks/", ".backlog/tasks/"]
        .iter()
        .any(|place| path.find(place).is_some_and(|at| at == 0 || path[..at].ends_with('/')));
    if !path.ends_with(".md") {
        return false;
    }
    let header = text.trim_start_matches('\u{feff}').strip_prefix("---").and_then(|rest| rest.split_once("\n---"));
    let keys: HashSet<&str> = header.map_or("", |(header, _)| header).lines().filter_map(key_of).collect();
    in_tasks || KEYS.iter().all(|key| keys.contains(key)) && OWN_KEYS.iter().any(|key| keys.contains(key))
}

pub(super) fn plan(source: &Source<'_>, faults: &Faults<'_>) -> Option<PlanDraft> {
    let board = Board::of(source.companions);
    let (mut tasks, mut no_tasks): (Vec<TaskFile>, Vec<File<'_>>) = (Vec::new(), Vec::new());
    for file in faults.source.files() {
        match task_file::read(*file, &board, faults) {
            Some(task) => tasks.push(task),
            None => no_tasks.push(*file),
        }
    }
    report_others(&no_tasks, faults);
    if tasks.is_empty() {
        let help = "write tasks with the program: backlog task create \"…\"";
        faults.error_with(Span::default(), "none of these files is a task of Backlog.md", help);
        return None;
    }
    tasks.sort_by_cached_key(|task| numbers(&task.key));
    let asked = asked(&tasks, source, faults)?;
    let mut items: Vec<Item> = tasks.iter().zip(asked).map(|(task, asked)| task.item(asked, source)).collect();
    items.extend(completed(source).chain(others(source, &board)));
    let place: HashMap<&str, usize> = tasks.iter().enumerate().map(|(at, task)| (task.key.as_str(), at)).collect();
    let parent = |task: &TaskFile| place.get(task.parent.as_ref()?.as_str()).copied();
    let parents: Vec<Option<usize>> = tasks.iter().map(parent).collect();
    come_after_children(&mut items, &parents);
    let has_children: HashSet<usize> = parents.iter().flatten().copied().collect();
    complete(tasks.iter_mut().flat_map(|task| &mut task.paths));
    tasks.iter_mut().for_each(|task| retain_sure(&mut task.paths, "backlog/"));
    let phase = source.options.tag.and_then(as_id).or_else(|| board.project.as_deref().and_then(as_id));
    let mut draft = PlanDraft {
        phase: Some(At::new(phase.unwrap_or_else(|| "backlog".to_owned()), Span::default())),
        title: Some(At::new(
            source.options.tag.or(board.project.as_deref()).unwrap_or("Backlog").to_owned(),
            Span::default(),
        )),
        overlaps: Overlaps::AUTO,
        ..PlanDraft::default()
    };
    let help = "remove it from `dependencies`; a task in `archive` or `drafts` is none that can be waited for";
    add_lanes(&items, Unknown::Refused(help).unless_in_order(source), &mut draft, faults, |at| {
        lane::lane(&tasks[at], has_children.contains(&at), faults)
    });
    Some(draft)
}

/// Reports files that are no tasks, but for those that say so by their names.
fn report_others(files: &[File<'_>], faults: &Faults<'_>) {
    let name = |file: &File<'_>| file.path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let is_readme = |file: &&File<'_>| name(file).to_lowercase().starts_with("readme");
    let files: Vec<&File<'_>> = files.iter().filter(|file| !is_readme(file)).collect();
    let Some(first) = files.first() else { return };
    let names: Vec<String> = files.iter().take(MAX_NAMED).map(|file| quoted(&name(file))).collect();
    let more = files.len().saturating_sub(MAX_NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message = format!("without an `id` in front matter, so left out: {}{more}", names.join(", "));
    faults.warning(first.span(0..0), message, "create tasks with the program: backlog task create \"…\"");
}

/// An id for sorting: `TASK-10.2` comes after `TASK-9`.
fn numbers(key: &str) -> Vec<(u64, String)> {
    key.split(['.', '-']).map(|part| (part.parse().unwrap_or(u64::MAX), part.to_owned())).collect()
}

/// For each task whether it is part of the plan: all are, or those with the label or the milestone, or below the task,
/// that is asked for.
fn asked(tasks: &[TaskFile], source: &Source<'_>, faults: &Faults<'_>) -> Option<Vec<bool>> {
    let Some(tag) = source.options.tag else { return Some(vec![true; tasks.len()]) };
    let of_tag = |task: &TaskFile| {
        let own = task.labels.iter().chain(&task.milestone).any(|label| label.eq_ignore_ascii_case(tag));
        own || task.key == key(tag) || task.parent.as_ref().is_some_and(|parent| *parent == key(tag))
    };
    let found: Vec<bool> = tasks.iter().map(of_tag).collect();
    if found.contains(&true) {
        return Some(found);
    }
    let names = tasks.iter().flat_map(|task| task.labels.iter().chain(&task.milestone));
    let help = match nearest(tag, names.map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "--tag takes a label, a milestone or the id of a parent task".to_owned(),
    };
    faults.error_with(Span::default(), format!("no task has the label or the milestone {}", quoted(tag)), help);
    None
}

/// The tasks beside those that are asked for: what waits for one of them can start if that is done.
fn others(source: &Source<'_>, board: &Board) -> impl Iterator<Item = Item> {
    let is_task = |path: &str| path.ends_with(".md") && path.replace('\\', "/").contains("/tasks/");
    companions(source, is_task).filter_map(|file| {
        let text = SourceText::new(file.path, file.text);
        let own = text.files()[0];
        let item = task_file::read(own, board, &Faults::new(text))?.item(true, &Source::default());
        let standing = if matches!(item.standing, Standing::Done(_) | Standing::Dropped(_)) {
            Standing::Gone
        } else {
            Standing::NotAsked
        };
        Some(Item { id: At::new(item.id.value, Span::default()), standing, waits_for: Vec::new(), ..item })
    })
}

/// The tasks that the program has put away as completed, by the names of their files.
fn completed(source: &Source<'_>) -> impl Iterator<Item = Item> {
    let files = companions(source, |path| path.replace('\\', "/").contains("/completed/"));
    files.filter_map(|file| {
        let name = Path::new(file.path).file_stem()?.to_str()?;
        let id = name.split(" - ").next()?.trim();
        Some(Item {
            id: At::new(id.to_owned(), Span::default()),
            name: String::new(),
            key: key(id),
            standing: Standing::Gone,
            waits_for: Vec::new(),
            is_again: false,
            rank: 0,
        })
    })
}

#[cfg(test)]
mod tests;
