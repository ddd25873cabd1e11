//! Lists of OpenSpec and Kiro of real repositories, found at their places and checked against counts made another way.
//!
//! They are looked for in the directory that `LANEWRIGHT_CORPUS_SPECS` names, else in `../shared/corpus-specs`; without
//! them nothing is checked.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail and says what it leaves out")]

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_model::{CommandLine, TaskKind};
use lanewright_plan::places::{Files, find, plan_at};
use lanewright_plan::{Fallbacks, PlanFormat, ReadOptions, Reading, Source, SourceFile, Tick, read, ticked};

struct Disk;

impl Files for Disk {
    fn names(&self, path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn text(&self, path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }
}

/// The repositories of a format; none, which is said, without a corpus.
fn repositories(format: PlanFormat) -> Vec<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus-specs");
    let root = std::env::var_os("LANEWRIGHT_CORPUS_SPECS").map_or(default, PathBuf::from).join(format.word());
    if !root.is_dir() {
        eprintln!("skipped: there is no corpus at {}", root.display());
    }
    Disk.names(&root).iter().map(|name| root.join(name)).collect()
}

/// Reads the plan at `path` of `repository` with all that its place has beside it.
fn read_at(repository: &Path, path: &Path, options: ReadOptions<'_>) -> (Reading, Vec<(String, String)>) {
    let place = plan_at(&Disk, path).unwrap();
    let text = |path: &PathBuf| {
        (path.strip_prefix(repository).unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
    };
    let [files, companions] = [&place.files, &place.companions].map(|paths| paths.iter().map(text).collect::<Vec<_>>());
    let listed: Vec<SourceFile<'_>> = files.iter().map(|(path, text)| SourceFile { path, text }).collect();
    let beside: Vec<SourceFile<'_>> = companions.iter().map(|(path, text)| SourceFile { path, text }).collect();
    let fallbacks = Fallbacks { runner: Some("agent"), ..Fallbacks::default() };
    let source =
        Source { files: &listed, companions: &beside, format: place.format, fallbacks, options, ..Source::default() };
    let runner = |_: &str| Some(CommandLine::Arguments(vec!["agent".to_owned()]));
    let reading = read(&source, &|_| Err("no file".to_owned()), &runner);
    (reading, files)
}

/// The check boxes of a text, and how many of them are ticked.
fn boxes(text: &str) -> (usize, usize) {
    let mark = |line: &str| line.trim_start().strip_prefix("- [").and_then(|rest| rest.chars().next());
    let marks: Vec<char> = text.lines().filter_map(mark).collect();
    (marks.len(), marks.iter().filter(|mark| matches!(mark, 'x' | 'X')).count())
}

/// For each list with all of it open: its name, boxes, ticked ones, lanes, the most side by side, tasks, tasks of persons,
/// and gates.
fn table(format: PlanFormat) -> Vec<String> {
    let mut rows = Vec::new();
    for repository in repositories(format) {
        for path in lists_below(&repository) {
            let (reading, files) = read_at(&repository, &path, ReadOptions { redo: true, ..ReadOptions::default() });
            let plan = reading.plan.unwrap_or_else(|| panic!("{}: {:?}", path.display(), reading.diagnostics));
            let tasks: Vec<_> = plan.lanes.iter().flat_map(|lane| &lane.agents[0].tasks).collect();
            let manual = tasks.iter().filter(|task| task.kind == TaskKind::HumanVerify).count();
            let gates: usize = tasks.iter().map(|task| task.verify.len()).sum();
            let (all, done) = boxes(&files[0].1);
            let name = path.parent().unwrap().file_name().unwrap().to_string_lossy();
            let mut waves = plan.dag().waves();
            waves.sort_unstable();
            let widest = waves.chunk_by(|one, other| one == other).map(<[u32]>::len).max().unwrap_or(0);
            rows.push(format!("{name}: {all} {done} {} {widest} {} {manual} {gates}", plan.lanes.len(), tasks.len()));
            round_trip(format, &plan, &files[0]);
        }
    }
    rows.sort();
    rows
}

/// All tasks ticked, then opened again: no byte differs but the boxes.
fn round_trip(format: PlanFormat, plan: &lanewright_model::Plan, (path, text): &(String, String)) {
    let open = text.replace("[x]", "[ ]").replace("[X]", "[ ]");
    let tick = |mut text: String, done| {
        for lane in &plan.lanes {
            let tasks: Vec<&str> = lane.agents[0].tasks.iter().map(|task| task.id.as_str()).collect();
            let (phase, lane) = (plan.phase.as_str(), lane.id.as_str());
            let tick = Tick { format, path, text: &text, companions: &[], phase, lane, tasks: &tasks, done };
            text = ticked(&tick).unwrap_or(text);
        }
        text
    };
    let done = tick(open.clone(), true);
    assert_eq!(done.replace("[x]", "[ ]"), open, "{path}");
    assert_eq!(tick(done, false), open, "{path}");
}

fn lists_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in Disk.names(directory).iter().map(|name| directory.join(name)) {
        if path.is_dir() {
            found.extend(lists_below(&path));
        } else if path.ends_with("tasks.md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn lists_of_openspec_are_read_as_counted() {
    let found = table(PlanFormat::OpenSpec);
    if !found.is_empty() {
        let expected = [
            "2025-11-17-build-standardization: 23 23 1 1 6 0 0",
            "2025-11-17-mysql-support: 37 37 1 1 9 0 0",
            "2025-11-17-webdav-performance-optimization: 54 54 1 1 11 0 0",
            "2025-12-03-refactor-shell-layout-components: 16 16 1 1 5 2 0",
            "2025-12-05-enhance-navigation-view: 40 40 1 1 8 0 0",
            "2025-12-08-add-runtime-logging-support: 6 6 1 1 1 0 0",
            "2025-12-08-database-driven-modules: 28 28 1 1 4 0 0",
            "2025-12-09-add-shared-assembly-catalog-observability: 6 6 1 1 2 0 1",
            "2025-12-09-fix-menu-cleanup-on-module-unload: 7 7 1 1 3 1 0",
            "2025-12-09-standardize-module-lifecycle-cleanup: 5 5 1 1 1 0 0",
            "2025-12-09-unify-build-output-paths: 16 16 1 1 4 0 0",
            "2025-12-09-update-install-host-validation: 5 5 1 1 1 0 0",
            "2025-12-09-update-runtime-module-lifecycle: 5 5 1 1 1 0 0",
            "2025-12-10-add-module-packaging: 41 41 1 1 7 0 0",
            "2025-12-15-add-cli-integration-tests: 49 49 1 1 5 0 0",
            "2025-12-15-add-module-template: 22 22 1 1 6 1 0",
            "2025-12-15-adopt-vsixmanifest-format: 72 72 1 1 18 0 0",
            "2025-12-17-add-extension-install-ui: 18 18 1 1 5 1 0",
            "2025-12-17-add-home-module: 25 25 1 1 5 0 0",
            "2025-12-17-refactor-module-menu-source: 13 13 1 1 3 0 0",
            "add-built-in-module-catalog-security: 14 0 1 1 2 0 1",
            "add-bundled-modules: 24 0 1 1 5 0 0",
            "add-host-app-templates: 9 9 1 1 2 0 0",
            "add-host-sdk: 10 10 1 1 2 0 0",
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn lists_of_kiro_are_read_as_counted() {
    let found = table(PlanFormat::Kiro);
    if !found.is_empty() {
        let expected = [
            "animal-api-persistence: 31 31 22 4 31 0 0",
            "animal-category-field: 21 21 7 3 16 0 0",
            "data-collector: 23 23 6 2 22 0 0",
            "llm-extraction-engine: 25 23 5 2 17 0 0",
            "task-management-mcp-server: 9 0 1 1 1 0 0",
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn open_changes_and_specifications_are_found() {
    let mut found = Vec::new();
    for format in [PlanFormat::OpenSpec, PlanFormat::Kiro] {
        for repository in repositories(format) {
            for plan in find(&Disk, &repository, &Vec::new) {
                assert_eq!(plan.format, format);
                let (reading, _) = read_at(&repository, &plan.path, ReadOptions::default());
                let lanes = |plan: &lanewright_model::Plan| {
                    let ids: Vec<String> = plan.lanes.iter().map(|lane| lane.id.to_string()).collect();
                    format!("{}: {} excluded {}", plan.phase, ids.join(" "), plan.exclusions.len())
                };
                found.push(reading.plan.as_ref().map_or_else(|| reading.diagnostics[0].message.clone(), lanes));
            }
        }
    }
    if !found.is_empty() {
        let expected = [
            "openspec: add-built-in-module-catalog-security add-bundled-modules excluded 1",
            "task-management-mcp-server: task-management-mcp-server excluded 0",
            "kiro: llm-extraction-engine.3.1 excluded 0",
        ];
        assert_eq!(found, expected);
    }
}
