//! Plans of other programs, with stretches removed, doubled, cut off or spoilt: none of them makes a reader panic or hang.
//!
//! `LANEWRIGHT_FUZZ_SECONDS` has them read for that long.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_model::{LaneOrder, LaneSplit, ListOptions};
use lanewright_plan::{Fallbacks, PlanFormat, Source, SourceFile, Tick, read, ticked};

use crate::corpus_gsd::{Chance, mutated};
use crate::corpus_trackers::corpus;

/// How many texts of each format are read.
const CASES: usize = 500;

/// A format, the folder of its corpus, the ending of its files there, and a small text.
const SEEDS: [(PlanFormat, &str, &str, &str); 6] = [
    (PlanFormat::SpecKit, "speckit", "tasks.md", SPECKIT),
    (PlanFormat::OpenSpec, "openspec", "tasks.md", OPENSPEC),
    (PlanFormat::Kiro, "kiro", "tasks.md", KIRO),
    (PlanFormat::TaskMaster, "taskmaster", "tasks.json", TASK_MASTER),
    (PlanFormat::Backlog, "backlog", ".md", BACKLOG),
    (PlanFormat::Beads, "beads", "issues.jsonl", BEADS),
];

const SPECKIT: &str = "# Tasks: Shop\n\n## Phase 1: Setup\n\n- [x] T001 Create src/a.rs\n- [ ] T002 [P] Add `src/b.rs`\n\n## Phase 2: Foundational\n\n- [ ] T003 Run `cargo test`\n\n## Phase 3: User Story 1 - Cart (Priority: P1)\n\n- [ ] T004 [US1] Edit src/c.rs\n\n## Dependencies & Execution Order\n\n- **User Story 1**: Depends on Foundational\n";
const OPENSPEC: &str = "## 1. Data\n\n- [ ] 1.1 Add `src/a.rs`\n- [x] 1.2 Run `cargo test`\n\n## 2. View\n- [ ] 2.1 Edit src/b.rs\n  - [ ] nested\n";
const KIRO: &str = "# Implementation Plan\n\n- [ ] 1. Store\n  - [x] 1.1 Write src/a.rs\n    - _Requirements: 1.1, 2.1_\n  - [ ]* 1.2 Test it\n- [-] 2. View\n  - Edit `src/b.rs`\n  - _Requirements: 2.1_\n";
const TASK_MASTER: &str = "{\"master\": {\"tasks\": [\n {\"id\": 1, \"title\": \"A\", \"status\": \"done\", \"dependencies\": [], \"subtasks\": [{\"id\": 1, \"title\": \"x\", \"status\": \"pending\", \"dependencies\": [\"1.2\"]}]},\n {\"id\": \"2\", \"title\": \"B\", \"status\": \"pending\", \"dependencies\": [1, \"1.1\"], \"details\": \"Edit `src/a.rs`\", \"testStrategy\": \"Run `cargo test`\"}]}}\n";
const BACKLOG: &str = "---\nid: TASK-1\ntitle: 'A'\nstatus: To Do\nassignee:\n  - '@a'\nlabels: [x, y]\ndependencies:\n  - task-2\nparent_task_id: task-3\n---\n\n## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\nEdit `src/a.rs`.\n<!-- SECTION:DESCRIPTION:END -->\n\n## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [ ] #1 `make check` passes\n- [x] #2 b\n<!-- AC:END -->\n";
const BEADS: &str = "{\"id\":\"a-1\",\"title\":\"E\",\"status\":\"open\",\"priority\":1,\"issue_type\":\"epic\"}\n{\"id\":\"a-1.1\",\"title\":\"A\",\"description\":\"Acceptance criteria:\\n- `cargo test`\",\"status\":\"open\",\"priority\":1,\"issue_type\":\"task\",\"dependencies\":[{\"depends_on_id\":\"a-1\",\"type\":\"parent-child\"},{\"depends_on_id\":\"a-2\",\"type\":\"blocks\"}]}\n{\"id\":\"a-2\",\"title\":\"B\",\"status\":\"closed\",\"issue_type\":\"bug\"}\n";

/// Stretches that change the shape of one of these texts.
const SPICES: [&str; 40] = [
    "---\n",
    "- [ ] ",
    "- [x] T001 ",
    "  - [X]\t",
    "[]",
    "## Phase 2: ",
    "### User Story 1\n",
    "## Dependencies\n",
    "- **US1**: Depends on US2\n",
    "```\n",
    "~~~\n",
    "\0",
    "\r\n",
    "\u{feff}",
    "`",
    "`src/é😀.rs`",
    "<!-- AC:BEGIN -->\n",
    "id: ",
    "dependencies: [",
    "status: \"Done\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    "\"id\": 1,",
    "\"dependencies\": [1, \"2.1\", 1e9, null],",
    "\"subtasks\": [{}],",
    "\\u0000",
    "\\ud800",
    "<<<<<<< HEAD\n",
    "{\"id\":\"a-1\",\"issue_type\":\"epic\"}\n",
    "99999999999999999999",
    "手動 ",
    "(skipped",
    "~~",
    "_Requirements: 1.1_\n",
];

fn seeds(folder: &str, ending: &str, own: &str) -> Vec<(String, String)> {
    let mut found = vec![(path_of(folder), own.to_owned())];
    let mut directories: Vec<PathBuf> = corpus(folder).into_iter().collect();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.to_string_lossy().into_owned();
            if entry.is_dir() {
                directories.push(entry);
            } else if name.ends_with(ending) {
                found.push((name, String::from_utf8_lossy(&fs::read(&entry).unwrap()).into_owned()));
            }
        }
    }
    found.sort();
    found
}

fn path_of(folder: &str) -> String {
    let path = match folder {
        "speckit" => "specs/001-shop/tasks.md",
        "openspec" => "openspec/changes/add-shop/tasks.md",
        "kiro" => ".kiro/specs/shop/tasks.md",
        "taskmaster" => ".taskmaster/tasks/tasks.json",
        "backlog" => "backlog/tasks/task-1 - A.md",
        _ => ".beads/issues.jsonl",
    };
    path.to_owned()
}

/// Whether there is a plan; a text without one has an error that says why.
fn reads(format: PlanFormat, files: &[SourceFile<'_>], explains: bool) -> bool {
    let all = ListOptions {
        order: LaneOrder::File,
        split: LaneSplit::Parallel,
        skip_manual: true,
        stop_at_checkpoints: true,
        shared_files: None,
    };
    reads_with(format, files, explains, all);
    reads_with(format, files, explains, ListOptions::default())
}

fn reads_with(format: PlanFormat, files: &[SourceFile<'_>], explains: bool, lists: ListOptions) -> bool {
    let fallbacks = Fallbacks { lists, ..Fallbacks::default() };
    let source = Source { files, format: Some(format), fallbacks, ..Source::default() };
    let reading = read(&source, &|_| Err(String::new()), &|_| None);
    let any_error = reading.diagnostics.iter().any(|fault| fault.is_error());
    assert!(!explains || reading.plan.is_none() == any_error, "{format}: {:?}", files[0].text);
    let text = files[0].text;
    for lane in reading.plan.iter().flat_map(|plan| &plan.lanes).take(3) {
        let tasks: Vec<&str> = lane.agents.iter().flat_map(|agent| &agent.tasks).map(|task| task.id.as_str()).collect();
        let phase = reading.plan.as_ref().map_or("", |plan| plan.phase.as_str());
        for done in [true, false] {
            let path = files[0].path;
            ticked(&Tick { format, path, text, companions: &[], phase, lane: lane.id.as_str(), tasks: &tasks, done });
        }
    }
    reading.plan.is_some()
}

#[test]
fn mutated_plans_of_programs_never_panic() {
    let seconds = std::env::var("LANEWRIGHT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let mut chance = Chance(42);
    for (format, folder, ending, own) in SEEDS {
        let seeds = seeds(folder, ending, own);
        let path = path_of(folder);
        let explains = reads(format, &[SourceFile { path: &path, text: own }], false);
        let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(20));
        let mut cases = 0;
        while Instant::now() < until && (seconds.is_some() || cases < CASES) {
            // Every second text is a small one, of which a mutation hits more.
            let at = chance.below(seeds.len());
            let (path, text) = if cases % 2 == 0 { (&path, own) } else { (&seeds[at].0, seeds[at].1.as_str()) };
            let text = mutated(text, &SPICES, &mut chance);
            let other = &seeds[chance.below(seeds.len())];
            let files = [SourceFile { path, text: &text }, SourceFile { path: &other.0, text: &other.1 }];
            let several = format == PlanFormat::Backlog && cases % 3 == 0;
            reads(format, &files[..1 + usize::from(several)], explains);
            cases += 1;
        }
        println!("{format}: {cases} mutated plans of {} files", seeds.len());
    }
}

#[test]
fn seeds_are_named_as_their_programs_do() {
    for (format, folder, _, own) in SEEDS {
        let path = path_of(folder);
        let source = Source { files: &[SourceFile { path: &path, text: own }], ..Source::default() };
        let found = read(&source, &|_| Err(String::new()), &|_| None).format;
        // A format whose reader takes nothing is none of those that are detected.
        if reads(format, source.files, false) {
            assert_eq!(found, Some(format), "{}", Path::new(&path).display());
        }
    }
}
