//! The demo as somebody runs it who has git and nothing else: no identity, no configuration.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A machine with an empty home and a directory for temporary files.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        ["home", "tmp", "work"].iter().for_each(|name| fs::create_dir(machine.path(name)).unwrap());
        machine
    }

    fn path(&self, below: &str) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join(below)
    }

    fn pin<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // What a user's settings say must not change what is shown.
            .env("LANEWRIGHT_RETRIES", "0")
            .env("LANEWRIGHT_MERGE", "none")
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
    }

    fn demo(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
        self.pin(command.args(["demo", "--fast"]).args(arguments)).output().unwrap()
    }

    /// What is left of the demo: files, and processes that were started for it.
    fn left(&self) -> Vec<String> {
        let files = ["home", "tmp", "work"].into_iter().flat_map(|name| fs::read_dir(self.path(name)).unwrap());
        let files = files.map(|entry| entry.unwrap().path().display().to_string());
        files.chain(processes_of(&self.path("tmp"))).collect()
    }
}

/// Every process whose environment names `directory`. Those that have ended have none any more.
fn processes_of(directory: &Path) -> Vec<String> {
    let needle = directory.to_str().unwrap().as_bytes();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mentions =
        |path: PathBuf| fs::read(path).is_ok_and(|bytes| bytes.windows(needle.len()).any(|part| part == needle));
    let found = entries.filter(|entry| mentions(entry.path().join("environ")));
    found.map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default()).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Where each of `parts` occurs in `told`, one after another.
fn assert_in_order(told: &str, parts: &[&str]) {
    let mut rest = told;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is missing, or comes too early, in:\n{told}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn demo_prints_announced_steps_and_cleans_up() {
    let machine = Machine::new();
    let output = machine.demo(&[]);
    let (told, progress) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}\n{progress}");
    assert!(!told.contains('\u{1b}') && !progress.contains('\u{1b}'), "a pipe is no terminal");
    assert_in_order(
        &told,
        &[
            "\nstart     lanewright execute-phase plan.toml",
            "\nkill -9   process ",
            "\nunseen    SEARCH indexer: ",
            "\nresume    lanewright resume",
            "\nchecked   nothing ran twice: 8 attempts",
            "\nchecked   main holds",
            "\ngraph     ",
            "  * ",
            "\nstatus    ",
            "  SITE ",
            "\ndone      ",
        ],
    );
    assert_in_order(&progress, &["SCHEMA: merged into main", "SITE: merged into main"]);
    assert_in_order(&progress, &["DOCS", "conflict", "docs/guide.md"]);
    // The report is all that stays.
    let report = told.lines().find_map(|line| line.strip_prefix("report    ")).map(Path::new);
    assert!(report.is_none_or(Path::is_file), "{told}");
    let directory = report.and_then(Path::parent).map(|path| path.display().to_string());
    assert_eq!(machine.left(), Vec::from_iter(directory));
}

#[test]
fn kept_demo_can_be_inspected_also_as_json() {
    let machine = Machine::new();
    let output = machine.demo(&["--keep", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps: Vec<&str> = told.iter().map(|line| line["step"].as_str().unwrap()).collect();
    assert_eq!((steps.first(), steps.last()), (Some(&"scratch"), Some(&"done")));
    assert!(output.stderr.is_empty() && steps.contains(&"kill -9") && steps.contains(&"graph"), "{steps:?}");
    let places = told.iter().filter(|line| line["step"] == "look at").map(|line| line["text"].as_str().unwrap());
    let places: Vec<&str> = places.filter_map(|text| text.split_once(": /").map(|(_, path)| path)).collect();
    assert!(places.len() > 4, "{places:?}");
    places.iter().for_each(|path| assert!(Path::new("/").join(path).exists(), "{path}"));
    let repository = Path::new("/").join(places[0]).join("shop");
    let mut git = Command::new("git");
    let checked = machine.pin(&mut git).current_dir(&repository).args(["fsck", "--strict"]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(processes_of(&machine.path("tmp")), Vec::<String>::new());
}

#[test]
fn a_directory_that_holds_something_is_left_alone() {
    let machine = Machine::new();
    fs::write(machine.path("work/mine"), "mine").unwrap();
    let output = machine.demo(&["--dir", "."]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("is not empty\nhint: "), "{output:?}");
    assert_eq!(machine.left(), [machine.path("work/mine").display().to_string()]);
}

#[test]
fn ctrl_c_stops_what_the_demo_has_started() {
    let machine = Machine::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    let command = machine.pin(command.args(["demo", "--fast"])).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut demo = command.spawn().unwrap();
    let mut told = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    // Agents are at work, and nobody but their supervisors looks after them.
    assert!(told.any(|line| line.starts_with("kill -9")));
    let pid = rustix::process::Pid::from_child(&demo);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<String> = told.collect();
    assert_eq!(demo.wait().unwrap().code(), Some(130), "{rest:?}");
    assert_eq!(machine.left(), Vec::<String>::new());
}
