//! Task lists of real repositories, checked against counts that are made another way: Task Master, Beads and Backlog.md.
//!
//! They are looked for in the directory that `LANEWRIGHT_CORPUS_SPECS` names, else in `../shared/corpus-specs`; without
//! them nothing is checked.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_model::Plan;
use lanewright_plan::{PlanFormat, ReadOptions, Reading};

use crate::tracker_plans::read_files;

/// The folder of a format's corpus; `None`, which is said, where there is none.
pub fn corpus(folder: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus-specs");
    let directory = std::env::var_os("LANEWRIGHT_CORPUS_SPECS").map_or(default, PathBuf::from).join(folder);
    if directory.is_dir() {
        return Some(directory);
    }
    #[expect(clippy::print_stdout, reason = "a test that checks nothing says so")]
    {
        println!("skipped: there is no corpus at {}", directory.display());
    }
    None
}

/// The files below `root`, with their paths relative to it.
fn files_below(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                directories.push(entry);
            } else {
                let path = entry.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.push((path, fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The repository whose name ends so, and its files.
fn repository(folder: &str, name: &str) -> Option<Vec<(String, String)>> {
    let mut entries = fs::read_dir(corpus(folder)?).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.find(|path| path.to_string_lossy().ends_with(name));
    Some(files_below(&found.unwrap_or_else(|| panic!("{name} is missing"))))
}

fn read_some(all: &[(String, String)], is_plan: impl Fn(&str) -> bool, options: ReadOptions<'_>) -> Reading {
    let texts = all.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let (plans, companions): (Vec<_>, Vec<_>) = texts.partition(|(path, _)| is_plan(path));
    read_files(&plans, &companions, options)
}

/// Lanes, edges, the most lanes that can run side by side, and the most that run one after the other.
fn shape(plan: &Plan) -> [usize; 4] {
    let count = plan.lanes.len();
    let mut waits = vec![vec![false; count]; count];
    let mut depth = vec![1; count];
    // Lanes come after those that they wait for.
    for (at, lane) in plan.lanes.iter().enumerate() {
        for on in lane.depends_on.iter().map(|on| on.at()) {
            depth[at] = depth[at].max(depth[on] + 1);
            waits[at][on] = true;
            (0..count).for_each(|other| waits[at][other] |= waits[on][other]);
        }
    }
    let edges = plan.lanes.iter().map(|lane| lane.depends_on.len()).sum();
    [count, edges, count - matched(&waits), depth.into_iter().max().unwrap_or(0)]
}

/// How many pairs a greatest matching of lanes with what they wait for has: with one chain of lanes less for each, as
/// few chains hold all lanes as lanes can run side by side.
fn matched(waits: &[Vec<bool>]) -> usize {
    fn find(lane: usize, waits: &[Vec<bool>], seen: &mut [bool], partner: &mut [Option<usize>]) -> bool {
        for on in 0..waits.len() {
            let is_new = waits[lane][on] && !std::mem::replace(&mut seen[on], true);
            if is_new && partner[on].is_none_or(|other| find(other, waits, seen, partner)) {
                partner[on] = Some(lane);
                return true;
            }
        }
        false
    }
    let mut partner = vec![None; waits.len()];
    (0..waits.len()).filter(|&lane| find(lane, waits, &mut vec![false; waits.len()], &mut partner)).count()
}

/// Repository, list, and the shapes of what is open and of all: lanes, edges, side by side, in a row.
const TASK_LISTS: [(&str, &str, [usize; 4], [usize; 4]); 4] = [
    ("CollabCanvas", "master", [2, 0, 2, 1], [16, 18, 6, 8]),
    ("EasyMeal", "tags.master", [18, 20, 9, 7], [20, 23, 9, 8]),
    ("EasyMeal", "tags.sprint-0", [10, 10, 2, 7], [10, 10, 2, 7]),
    ("EasyMeal", "sprint-0", [8, 7, 2, 6], [10, 10, 2, 7]),
];

#[test]
fn task_master_lists_have_counted_shapes() {
    for (name, tag, open, all) in TASK_LISTS {
        let Some(files) = repository("taskmaster", name) else { return };
        for (redo, expected) in [(false, open), (true, all)] {
            let options = ReadOptions { redo, tag: Some(tag), ..ReadOptions::default() };
            let reading = read_some(&files, |path| path.ends_with("tasks.json"), options);
            assert_eq!(reading.format, Some(PlanFormat::TaskMaster));
            let plan = reading.plan.unwrap_or_else(|| panic!("{name} {tag}: {:#?}", reading.diagnostics));
            assert_eq!(shape(&plan), expected, "{name} {tag} redo {redo}");
        }
    }
}

#[test]
fn task_master_tag_of_two_places_is_asked_for() {
    let Some(files) = repository("taskmaster", "EasyMeal") else { return };
    let reading = read_some(&files, |path| path.ends_with("tasks.json"), ReadOptions::default());
    assert!(reading.plan.is_none());
    assert!(reading.diagnostics[0].help.as_ref().unwrap().contains("tags.master, tags.sprint-0, sprint-0"));
}

#[test]
fn beads_issues_have_counted_shapes() {
    let Some(files) = repository("beads", "wt") else { return };
    // 100 issues, of which 4 are epics with issues below them, and 5 are open.
    for (redo, expected) in [(false, [5, 0, 5, 1]), (true, [96, 12, 90, 4])] {
        let options = ReadOptions { redo, ..ReadOptions::default() };
        let reading = read_some(&files, |path| path.ends_with("issues.jsonl"), options);
        assert_eq!(reading.format, Some(PlanFormat::Beads));
        let plan = reading.plan.unwrap_or_else(|| panic!("{:#?}", reading.diagnostics));
        assert_eq!(shape(&plan), expected, "redo {redo}");
        assert_eq!(plan.phase.as_str(), "wt");
    }
}

/// Repository, and: lanes, tasks that are done, warnings of files that are no tasks, errors. In the second one a task
/// depends on one that is not in the corpus.
const BOARDS: [(&str, [usize; 4]); 2] = [("astromotion", [1, 3, 0, 0]), ("ariadne", [0, 0, 1, 1])];

#[test]
fn backlog_files_have_counted_shapes() {
    for (name, expected) in BOARDS {
        let Some(files) = repository("backlog", name) else { return };
        let reading = read_some(&files, |path| path.contains("/tasks/"), ReadOptions::default());
        assert_eq!(reading.format, Some(PlanFormat::Backlog));
        let errors = reading.diagnostics.iter().filter(|fault| fault.is_error()).count();
        let left_out = reading.diagnostics.iter().filter(|fault| fault.message.contains("and 15 more")).count();
        let plan = reading.plan.as_ref();
        let [lanes, skipped] = [plan.map_or(0, |plan| plan.lanes.len()), plan.map_or(0, |plan| plan.skipped.len())];
        assert_eq!([lanes, skipped, left_out, errors], expected, "{name}: {:?}", reading.diagnostics);
    }
}

#[test]
fn backlog_file_alone_becomes_a_lane() {
    let Some(files) = repository("backlog", "ariadne") else { return };
    for name in ["task-83 - ", "task-100.19 - "] {
        let reading = read_some(&files, |path| path.contains(name), ReadOptions::default());
        let plan = reading.plan.unwrap_or_else(|| panic!("{name}: {:?}", reading.diagnostics));
        assert_eq!(plan.lanes.len(), 1);
        assert!(plan.lanes[0].agents[0].tasks[0].acceptance_criteria.len() >= 4);
    }
}
