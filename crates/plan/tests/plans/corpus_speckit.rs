//! Task lists of Spec Kit of real repositories, checked against counts that were made by hand.
//!
//! They are looked for in the directory that `LANEWRIGHT_CORPUS_SPECS` names, else in `../shared/corpus-specs`.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_model::plan::SharedFiles;
use lanewright_model::{CommandLine, Plan};
use lanewright_plan::{Fallbacks, PlanFormat, ReadOptions, Reading, Source, SourceFile, decode, read};

/// The directory of the corpus; `None`, which is said, where there is none.
fn corpus() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus-specs");
    let directory = std::env::var_os("LANEWRIGHT_CORPUS_SPECS").map_or(default, PathBuf::from).join("speckit");
    if directory.is_dir() {
        return Some(directory);
    }
    #[expect(clippy::print_stdout, reason = "a test that checks nothing says so")]
    {
        println!("skipped: there is no corpus at {}", directory.display());
    }
    None
}

/// The directory of each feature below `root`, with its name.
fn features(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for repository in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        for feature in fs::read_dir(repository.join("specs")).unwrap().map(|entry| entry.unwrap().path()) {
            let name = feature.file_name().unwrap().to_string_lossy().into_owned();
            found.push((feature, name));
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    decode(&path.to_string_lossy(), &bytes).unwrap().to_owned()
}

fn runner(_: &str) -> Option<CommandLine> {
    Some(CommandLine::Arguments(vec!["agent".to_owned()]))
}

fn read_feature(directory: &Path, name: &str, redo: bool, shared_files: Option<SharedFiles>) -> Reading {
    let texts =
        ["tasks.md", "spec.md", "plan.md"].map(|file| (format!("specs/{name}/{file}"), text(&directory.join(file))));
    let files: Vec<SourceFile<'_>> = texts.iter().map(|(path, text)| SourceFile { path, text }).collect();
    let source = Source {
        files: &files[..1],
        companions: &files[1..],
        fallbacks: Fallbacks { runner: Some("agent"), shared_files, ..Fallbacks::default() },
        options: ReadOptions { redo, ..ReadOptions::default() },
        ..Source::default()
    };
    read(&source, &|_| Err(String::new()), &runner)
}

fn boxes(text: &str) -> (usize, usize) {
    let is_box = |line: &&str| line.starts_with("- [") && line.contains("] T") && line.as_bytes().get(4) == Some(&b']');
    let all: Vec<&str> = text.lines().filter(is_box).collect();
    (all.len(), all.iter().filter(|line| !line.starts_with("- [ ]")).count())
}

/// What is expected of a task list.
struct Expected {
    /// Its directory.
    feature: &'static str,
    tasks: usize,
    done: usize,
    /// Of the whole list: its lanes, and how many run side by side by their order alone, with each rule for shared files.
    /// No lanes: it is refused.
    whole: [usize; 5],
    /// The same of what is open.
    now: [usize; 5],
}

const fn expected(feature: &'static str, tasks: usize, done: usize, whole: [usize; 5], now: [usize; 5]) -> Expected {
    Expected { feature, tasks, done, whole, now }
}

const NONE: [usize; 5] = [0; 5];

/// Counted by hand with the rules of the format. Where a number differs from what another count had, the reason is behind it.
const EXPECTED: [Expected; 17] = [
    //                                           lanes, order, exclude, merge, auto
    // `backend README.md … in backend/README.md` is one file, so US1 and US2 share none.
    expected("001-project-setup", 41, 41, [6, 2, 2, 2, 2], NONE),
    expected("002-stt-api", 36, 36, [6, 3, 1, 3, 1], NONE),
    expected("003-llm-text-service", 51, 51, [6, 2, 1, 2, 1], NONE),
    expected("004-tts-api", 32, 31, [5, 2, 1, 2, 1], [1, 1, 1, 1, 1]),
    // US1 and US2 both create an endpoint in a file that nothing names before: not merged.
    expected("005-voice-orchestrator", 43, 38, [6, 2, 1, 1, 1], [1, 1, 1, 1, 1]),
    expected("006-conversation-storage", 39, 39, [6, 3, 1, 2, 1], NONE),
    expected("007-voice-chat-ui", 62, 22, [8, 3, 2, 3, 2], [5, 2, 2, 2, 2]),
    // Open: US1 to US4, of which US3 waits for US1: three of them.
    expected("008-realtime-websocket", 63, 11, [8, 3, 1, 3, 1], [6, 3, 1, 3, 1]),
    expected("009-config-management", 44, 40, [7, 4, 1, 4, 1], [1, 1, 1, 1, 1]),
    // `/Makefile` is the file `Makefile`, which all stories change: with `exclude` one after the other.
    expected("010-local-dev-setup", 17, 17, [6, 3, 1, 3, 1], NONE),
    // Refused: US4 and US5 wait for each other, US6 for a story that is not there.
    expected("001-ai-discovery-platform", 54, 54, NONE, NONE),
    expected("001-docs-update", 23, 23, [5, 2, 1, 2, 1], NONE),
    expected("002-agent-sdk-upgrade", 72, 72, [8, 4, 2, 4, 2], NONE),
    // Its section says that authentication comes before inference, and both before the user interface.
    expected("001-initial-inference-layer", 39, 30, [7, 2, 2, 2, 2], [2, 1, 1, 1, 1]),
    expected("002-multi-tenancy-admin-ui", 20, 17, [6, 3, 2, 3, 2], [3, 3, 3, 3, 3]),
    expected("003-unified-auth-verification", 28, 24, [7, 4, 1, 4, 1], [1, 1, 1, 1, 1]),
    expected("004-claude-like-aesthetic-ui", 18, 18, [6, 3, 3, 3, 3], NONE),
];

fn numbers(reading: &Reading) -> [usize; 5] {
    let lanes = reading.plan.as_ref().map_or(0, |plan: &Plan| plan.lanes.len());
    let sharing = &reading.sharing;
    [lanes, sharing.by_order, sharing.with_exclude, sharing.with_merge, sharing.side_by_side]
}

#[test]
fn task_lists_of_repositories_read_as_counted() {
    let Some(root) = corpus() else { return };
    let features = features(&root);
    let mut wrong = Vec::new();
    for (directory, name) in &features {
        let expected = EXPECTED.iter().find(|expected| expected.feature == name).unwrap();
        let (whole, now) = (read_feature(directory, name, true, None), read_feature(directory, name, false, None));
        assert_eq!(whole.format, Some(PlanFormat::SpecKit), "{name}");
        assert_eq!(boxes(&text(&directory.join("tasks.md"))), (expected.tasks, expected.done), "{name}");
        for (reading, wanted) in [(&whole, expected.whole), (&now, expected.now)] {
            if numbers(reading) != wanted {
                wrong.push(format!("{name}: {:?}, not {wanted:?}", numbers(reading)));
            }
        }
        let errors = whole.diagnostics.iter().filter(|fault| fault.is_error()).count();
        assert_eq!(errors > 0, expected.whole == NONE, "{name}: {:?}", whole.diagnostics);
    }
    assert_eq!((wrong, features.len()), (Vec::<String>::new(), EXPECTED.len()));
    let merged = EXPECTED.iter().filter(|expected| expected.whole[3] >= 2).count();
    assert!(merged >= 12, "{merged}");
}

#[test]
fn every_open_task_is_run_judged_or_reported() {
    let Some(root) = corpus() else { return };
    for (directory, name) in features(&root) {
        let Some(plan) = read_feature(&directory, &name, true, None).plan else { continue };
        let tasks = text(&directory.join("tasks.md"));
        let (count, _) = boxes(&tasks);
        let agents = plan.lanes.iter().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.tasks).count();
        let gates: usize = plan.lanes.iter().map(|lane| lane.tests.len()).sum();
        assert!(agents <= count && agents + gates >= count, "{name}: {agents} tasks and {gates} gates of {count}");
    }
}

/// Task lists with a few bytes removed, doubled or exchanged.
#[test]
fn damaged_task_lists_are_read_without_panic() {
    let Some(root) = corpus() else { return };
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below.max(1) as u64).unwrap()
    };
    for (directory, _) in features(&root) {
        let original = text(&directory.join("tasks.md"));
        for _ in 0..30 {
            let mut lines: Vec<String> = original.lines().map(str::to_owned).collect();
            for _ in 0..8 {
                let (at, other) = (next(lines.len()), next(lines.len()));
                match next(4) {
                    0 => lines.swap(at, other),
                    1 => lines[at] = lines[other].clone(),
                    2 => drop(lines.remove(at)),
                    _ => {
                        let cut = lines[at].floor_char_boundary(next(lines[at].len() + 1));
                        lines[at].truncate(cut);
                    }
                }
            }
            let damaged = lines.join("\n");
            let files = [SourceFile { path: "tasks.md", text: &damaged }];
            let source = Source { files: &files, format: Some(PlanFormat::SpecKit), ..Source::default() };
            let reading = read(&source, &|_| Err(String::new()), &runner);
            assert!(reading.plan.is_some() || reading.diagnostics.iter().any(lanewright_plan::Diagnostic::is_error));
        }
    }
}
