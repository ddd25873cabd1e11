//! What commands cost that read the runs and lanes of a repository: bytes, processor time and memory, and how they grow.
//!
//! A repository has a run of many merged lanes and as many finished runs of one lane, all made of one real run: the
//! records of its lane with other names and commits.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, Record, RunStarted};
use lanewright_model::{CheckpointRecord, LaneId, Plan, RunId};
use lanewright_store::{RunDirectory, StateDirectory, checkpoints, run_log};
use lanewright_view::RunHistory;
use lanewright_view::contract::checkpoints::{CheckpointFold, RunFiles};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;

const LANEWRIGHT: &str = env!("CARGO_BIN_EXE_lanewright");

const SIZES: [usize; 4] = [10, 100, 1_000, 3_000];

/// The exponents that are aimed at, from the second largest size to the largest.
const TARGET: f64 = 1.1;

const COMMANDS: [(&str, &[&str]); 7] = [
    ("status", &["status"]),
    ("status of many lanes", &["status", MANY]),
    ("list", &["list"]),
    ("doctor", &["doctor"]),
    ("clean", &["clean", "--dry-run"]),
    ("report", &["report", MANY, "--format", "html"]),
    ("new run", &["execute-phase", "new.toml", "--new-run"]),
];

const MANY: &str = "many";

/// Bytes read and written, milliseconds of processor time and MB of memory of a command and its processes.
type Cost = [f64; 3];

pub fn compare() {
    let scratch = tempfile::tempdir().unwrap();
    println!("commands in a repository with a run of so many lanes, and so many runs of one lane");
    print!("{:<24}{:>16}", "", "");
    SIZES.iter().for_each(|size| print!("{size:>11}"));
    println!("{:>11}", "exponent");
    let repositories: Vec<PathBuf> =
        SIZES.iter().map(|size| Runs::prepare(&scratch.path().join(size.to_string()), *size)).collect();
    for (name, words) in COMMANDS {
        let costs: Vec<Cost> = repositories.iter().map(|repository| cost(repository, words)).collect();
        for (index, unit) in ["MB moved", "ms processor", "MB memory"].into_iter().enumerate() {
            let all: Vec<f64> = costs.iter().map(|cost| cost[index]).collect();
            print!("{:<24}{unit:>16}", if index == 0 { name } else { "" });
            all.iter().for_each(|cost| print!("{cost:>11.1}"));
            let [.., (before, few), (most, many)] = SIZES.iter().zip(&all).collect::<Vec<_>>()[..] else { return };
            let exponent = (many / few).ln() / (*most as f64 / *before as f64).ln();
            println!("{exponent:>11.2}{}", if exponent > TARGET { "  over the limit" } else { "" });
        }
    }
    println!("target: exponents of at most {TARGET}");
}

/// In a process of its own, since the system counts the largest of all children.
fn cost(repository: &Path, words: &[&str]) -> Cost {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.arg("measure").args(words).current_dir(repository).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let figures: Vec<f64> =
        String::from_utf8_lossy(&output.stdout).split_whitespace().map(|figure| figure.parse().unwrap()).collect();
    figures.try_into().unwrap()
}

/// Runs a command in the current directory and prints what it cost.
pub fn measure(words: &[&str]) {
    let before = bytes_moved();
    let mut command = Command::new(LANEWRIGHT);
    let ended = command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(ended.success(), "{words:?}: {ended}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let processor = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let memory = usage.max_rss() as f64 / 1e3;
    println!("{} {} {memory}", (bytes_moved() - before) / 1e6, processor as f64 / 1e3);
}

/// By this process and those that it has waited for.
fn bytes_moved() -> f64 {
    let text = fs::read_to_string("/proc/self/io").unwrap();
    let moved = text.lines().filter_map(|line| line.strip_prefix("rchar: ").or(line.strip_prefix("wchar: ")));
    moved.map(|bytes| bytes.parse::<f64>().unwrap()).sum()
}

/// What a lane of one merged commit changes.
struct Merged {
    base: String,
    work: String,
    merge: String,
}

/// The one real run, of which all others are made.
struct Runs {
    state: StateDirectory,
    started: RunStarted,
    records: Vec<Record>,
    plan: Plan,
    checkpoints: Vec<CheckpointRecord>,
}

impl Runs {
    /// A repository with a run of `size` lanes and as many of one lane.
    fn prepare(place: &Path, size: usize) -> PathBuf {
        super::lanes::prepare(place);
        let repository = place.join("repo").canonicalize().unwrap();
        for (key, value) in [("user.name", "x"), ("user.email", "x@example.org")] {
            assert!(git(&repository, &["config", key, value]).status().unwrap().success());
        }
        for (file, phase) in [("plan.toml", "P1"), ("new.toml", "P2")] {
            let lane = format!("phase = \"{phase}\"\n[[lane]]\nid = \"{LANE}\"\ncommand = \"echo x > x-{phase}\"\n");
            fs::write(repository.join(file), lane).unwrap();
        }
        let mut command = Command::new(LANEWRIGHT);
        command.args(["execute-phase", "plan.toml", "--run-id", "real"]).current_dir(&repository);
        assert!(command.output().unwrap().status.success(), "the run that all others are made of");
        let state = StateDirectory::new(&repository);
        let real = state.run(&RunId::new("real").unwrap());
        let records = run_log::read(&real.log()).unwrap().records;
        let Event::RunStarted(started) = &records[0].event else { panic!("a log begins with its run") };
        let plan = serde_json::from_slice(&fs::read(real.plan()).unwrap()).unwrap();
        let mut runs = Self { state, started: (**started).clone(), records, plan, checkpoints: Vec::new() };
        let merged = history(&repository, size);
        runs.write(MANY, &merged);
        merged
            .iter()
            .enumerate()
            .for_each(|(number, one)| runs.write(&format!("old-{number}"), std::slice::from_ref(one)));
        checkpoints::update(&runs.state.checkpoints(), &runs.checkpoints).unwrap();
        repository
    }

    /// Writes a run with a lane for each of `merged`.
    fn write(&mut self, name: &str, merged: &[Merged]) {
        let run = RunId::new(name).unwrap();
        let directory = self.state.run(&run);
        directory.create().unwrap();
        let plan = self.plan_text(merged.len());
        fs::write(directory.plan(), &plan).unwrap();
        let started = RunStarted { run_id: run.clone(), pinned_sha256: sha256(&plan), ..self.started.clone() };
        let mut events = vec![Event::RunStarted(Box::new(started))];
        let of_lane = self.records.iter().map(|record| &record.event).filter(|event| event.lane().is_some());
        let of_lane: Vec<String> = of_lane.map(|event| serde_json::to_string(event).unwrap()).collect();
        let real = self.commits();
        for (number, lane) in merged.iter().enumerate() {
            let names = [(real.base.as_str(), &lane.base), (&real.work, &lane.work), (&real.merge, &lane.merge)];
            events.extend(of_lane.iter().map(|text| {
                let text = text.replace(LANE, &lane_name(number));
                let text = names.iter().fold(text, |text, (real, other)| text.replace(real, other));
                serde_json::from_str::<Event>(&text).unwrap()
            }));
        }
        let after_lanes = self.records.iter().rev().take_while(|record| record.event.lane().is_none());
        events.extend(after_lanes.map(|record| record.event.clone()).collect::<Vec<_>>().into_iter().rev());
        let at = self.records[0].at;
        let record = |(seq, event)| Record { seq, at, event, origin: None };
        let records: Vec<Record> = (1..).zip(events).map(record).collect();
        fs::write(directory.log(), run_log::lines(&run, &self.started.phase, &records).unwrap()).unwrap();
        self.checkpoints.extend(checkpoints_of(&self.state, &directory, &records));
    }

    fn plan_text(&self, lanes: usize) -> Vec<u8> {
        let mut plan = serde_json::to_value(&self.plan).unwrap();
        let lane = plan["lanes"][0].to_string();
        let lane = |number| serde_json::from_str::<Value>(&lane.replace(LANE, &lane_name(number))).unwrap();
        plan["lanes"] = (0..lanes).map(lane).collect::<Vec<_>>().into();
        serde_json::to_vec_pretty(&plan).unwrap()
    }

    /// The commits of the real run.
    fn commits(&self) -> Merged {
        let history = RunHistory::default().after(&self.records);
        let lane = history.lane(&LaneId::new(LANE).unwrap()).unwrap();
        let [work, merge] = [&lane.workplace.head, &lane.merge_commit].map(|it| it.as_ref().unwrap().to_string());
        Merged { base: self.started.base_commit.to_string(), work, merge }
    }
}

/// In no hash, and nowhere else in the text of an event.
const LANE: &str = "LANE";

fn lane_name(number: usize) -> String {
    format!("L{number}")
}

fn checkpoints_of(state: &StateDirectory, run: &RunDirectory, records: &[Record]) -> Vec<CheckpointRecord> {
    let files = RunFiles {
        log_path: run.log(),
        checkpoint_path: state.checkpoints(),
        program: vec!["lanewright".to_owned()],
        repository: state.path().ancestors().nth(3).unwrap().to_owned(),
    };
    let mut fold = CheckpointFold::new(files, RunHistory::default());
    let written: Vec<_> =
        records.iter().flat_map(|record| fold.apply(record)).map(|record| (record.lane, record.stage)).collect();
    let mut newest: Vec<_> = written.iter().filter_map(|(lane, stage)| fold.record(lane.as_ref(), *stage)).collect();
    newest.dedup();
    newest.into_iter().cloned().collect()
}

/// Merges `count` branches of one file each into the main branch, 32 files in a directory.
fn history(repository: &Path, count: usize) -> Vec<Merged> {
    let git = |words: &[&str]| git(repository, words);
    let mut base = String::from_utf8(git(&["rev-parse", "main"]).output().unwrap().stdout).unwrap().trim().to_owned();
    let marks = repository.join(".git/marks");
    let mut input = String::new();
    let mut before = base.clone();
    for number in 0..count {
        let (work, merge) = (format!(":{}", 2 * number + 1), format!(":{}", 2 * number + 2));
        let commit = |input: &mut String, mark: &str, parents: &str| {
            let by = "x <x@example.org> 1700000000 +0000";
            write!(input, "commit refs/heads/main\nmark {mark}\ncommitter {by}\ndata 1\nx\n{parents}").unwrap();
        };
        let file = format!("M 100644 inline out/{}/{}/{number}\ndata 2\nx\n", number / 1024, number / 32 % 32);
        commit(&mut input, &work, &format!("from {before}\n{file}"));
        commit(&mut input, &merge, &format!("from {before}\nmerge {work}\n{file}"));
        before = merge;
    }
    let mut child = git(&["fast-import", "--quiet", "--force"])
        .arg(format!("--export-marks={}", marks.display()))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(git(&["reset", "--quiet", "--hard"]).status().unwrap().success());
    let text = fs::read_to_string(marks).unwrap();
    let mut lines: Vec<(usize, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix(':')?.split_once(' '))
        .map(|(mark, it)| (mark.parse().unwrap(), it))
        .collect();
    lines.sort_unstable();
    let pairs: Vec<&[(usize, &str)]> = lines.chunks(2).collect();
    pairs
        .into_iter()
        .map(|pair| {
            let [work, merge] = [0, 1].map(|index| pair[index].1.to_owned());
            Merged { base: std::mem::replace(&mut base, merge.clone()), work, merge }
        })
        .collect()
}

fn git(repository: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.current_dir(repository).args(words);
    command
}
