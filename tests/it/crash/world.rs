//! A repository, its plan and its agents, in a scratch directory and a pinned environment.

use std::ffi::OsString;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lanewright_engine::executor::crash::CRASH_POINT_VARIABLE;
use lanewright_model::event::{Event, Record, RunOutcome};
use lanewright_model::ownership::RUN_LOG_DIRECTORY;
use lanewright_model::{ProcessId, RunId};
use lanewright_programs::process::{Observation, observe};
use lanewright_store::{RunDirectory, StateDirectory, run_log};
use rustix::process::{Pid, Signal, kill_process};

use super::plans::PlanText;
use crate::support::{Ended, Running, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_lanewright");

/// The plan, from the main worktree.
pub const PLAN: &str = "../../plan.toml";

/// A scratch directory with a repository at `disk/work`, and a plan and agents beside the disk.
pub struct World {
    _scratch: tempfile::TempDir,
    /// Without symbolic links.
    pub root: PathBuf,
}

impl World {
    pub fn new(plan: &PlanText) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("disk")).unwrap();
        Self::inside(scratch, plan)
    }

    /// The same in a directory in which `disk` is made, or mounted, already.
    pub fn inside(scratch: tempfile::TempDir, plan: &PlanText) -> Self {
        let root = fs::canonicalize(scratch.path()).unwrap();
        let world = Self { _scratch: scratch, root };
        for directory in ["home", "disk/work"] {
            fs::create_dir(world.path(directory)).unwrap();
        }
        fs::write(world.path("agents.log"), "").unwrap();
        fs::write(world.path("agent.sh"), plan.agent(&world.root)).unwrap();
        fs::write(world.path("plan.toml"), plan.plan(&world.root)).unwrap();
        fs::write(world.work().join("readme.txt"), "a repository\n").unwrap();
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world.git(&["add", "."]);
        world.git(&["commit", "--quiet", "--message=first"]);
        world
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// The main worktree.
    pub fn work(&self) -> PathBuf {
        self.path("disk/work")
    }

    /// What git says on standard output, in the main worktree.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = self.pinned("git").args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until every git that a dead Lanewright began has ended: each holds the lock that it was begun under, if any.
    pub fn wait_for_orphans(&self) {
        wait_until("the end of every git", || !self.has_git());
        for name in ["pool", "admin", "references", "publish", "settings"] {
            if let Ok(guard) = fs::File::open(self.work().join(format!(".git/lanewright/{name}.guard"))) {
                guard.lock().unwrap();
            }
        }
    }

    /// Whether a git is at work somewhere in this world; `false` where the system does not say.
    fn has_git(&self) -> bool {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let is_here =
            |process: &PathBuf| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&self.root));
        let is_git =
            |process: &PathBuf| fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "git");
        processes.into_iter().any(|process| is_git(&process) && is_here(&process))
    }

    /// How many worktrees there are. A git that a dead Lanewright began may be about to add one, which others cannot
    /// read at that moment.
    pub fn count_worktrees(&self) -> usize {
        let mut listing = None;
        wait_until("a list of worktrees", || {
            let output = self.pinned("git").args(["worktree", "list", "--porcelain"]).output().unwrap();
            listing = output.status.success().then_some(output.stdout);
            listing.is_some()
        });
        String::from_utf8(listing.unwrap()).unwrap().matches("worktree ").count()
    }

    fn pinned(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let moment = "2026-01-31T12:00:00Z";
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("LC_ALL", "C")
            .env("LANEWRIGHT_BACKOFF", "10ms")
            .env("LANEWRIGHT_PROGRESS", "none")
            .current_dir(self.work())
            .stdin(Stdio::null());
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "someone")
                .env(format!("GIT_{who}_EMAIL"), "someone@example.invalid");
        }
        if program == "git" {
            command.env("GIT_AUTHOR_DATE", moment).env("GIT_COMMITTER_DATE", moment);
        }
        command
    }

    /// Starts the program, to die at `crash_point` (`NAME:N`) if one is given. With `LANEWRIGHT_TEST_OLDER=PATH` that one
    /// is the debug build of an earlier version, whose run this version resumes.
    pub fn spawn(&self, arguments: &[&str], crash_point: Option<&str>) -> Running {
        let variable = crash_point.map(|point| (CRASH_POINT_VARIABLE, point));
        let older = older_version().filter(|_| crash_point.is_some());
        self.spawn_program(older.as_deref().unwrap_or(PROGRAM), arguments, variable.as_slice())
    }

    /// Starts the program with these variables of the environment.
    pub fn spawn_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        self.spawn_program(PROGRAM, arguments, variables)
    }

    /// Runs another program to its end.
    pub fn run_program(&self, words: &[OsString]) -> Ended {
        let mut command = self.pinned("sh");
        command.args(["-c", "exec \"$@\"", "sh"]).args(words);
        Running::start(command).wait()
    }

    fn spawn_program(&self, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        let mut command = self.pinned(program);
        command.args(arguments).envs(variables.iter().copied());
        Running::start(command)
    }

    /// Runs the program to its end; its exit code and what it printed.
    pub fn output(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.pinned(PROGRAM).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Begins the run, or goes on with it where it has begun; begins another one where nothing of it was kept.
    pub fn go_on(&self, crash_point: Option<&str>) -> Running {
        match self.run() {
            Some(run) if run_log::read(&run.1.log()).is_ok_and(|log| has_begun(&log.records)) => {
                self.spawn(&["resume", run.0.as_str()], crash_point)
            }
            _ => self.spawn(&["execute-phase", PLAN], crash_point),
        }
    }

    /// Goes on without dying until the run is over, which takes one life unless it was over already.
    pub fn finish(&self) {
        if let Some((run, _)) = self.run().filter(|_| !self.is_begun()) {
            let refused = self.spawn(&["resume", run.as_str()], None).wait();
            assert_eq!(refused.code, 8, "no lane had begun: {refused:?}");
        }
        let expected = if self.is_done() { 7 } else { 0 };
        let ended = self.go_on(None).wait();
        assert_eq!(ended.code, expected, "{ended:?}\n{}", self.story());
    }

    /// The same for a run that asks people, who say yes whenever nothing else goes on.
    pub fn finish_answering(&self, gates: &[(&str, &str)]) {
        for _ in 0..=gates.len() {
            if self.is_done() {
                // It may have died before it had removed all that it no longer needs.
                return self.finish();
            }
            let ended = self.go_on(None).wait();
            assert!(matches!(ended.code, 0 | 3), "{ended:?}\n{}", self.story());
            self.answer(gates);
        }
        assert!(self.is_done(), "{}", self.story());
    }

    /// Says yes to what is asked now; the rest is refused.
    pub fn answer(&self, gates: &[(&str, &str)]) {
        let Some((run, _)) = self.run() else { return };
        for (lane, gate) in gates {
            let ended = self.spawn(&["approve", run.as_str(), lane, "--gate", gate], None).wait();
            assert!(matches!(ended.code, 0 | 2 | 7 | 8), "{ended:?}\n{}", self.story());
        }
    }

    /// The latest run.
    pub fn run(&self) -> Option<(RunId, RunDirectory)> {
        let state = StateDirectory::new(&self.work());
        let run = state.runs().unwrap().into_iter().next()?;
        let directory = state.run(&run);
        Some((run, directory))
    }

    /// The latest run's records so far; damage is none of them.
    pub fn records(&self) -> Vec<Record> {
        let log = self.run().and_then(|(_, directory)| run_log::read(&directory.log()).ok());
        log.map(|log| log.records).unwrap_or_default()
    }

    fn is_begun(&self) -> bool {
        has_begun(&self.records())
    }

    pub fn is_done(&self) -> bool {
        let last = self.records().pop().map(|record| record.event);
        matches!(last, Some(Event::RunFinished { outcome: RunOutcome::Done, .. }))
    }

    pub fn state_directory(&self) -> PathBuf {
        self.work().join(RUN_LOG_DIRECTORY)
    }

    /// The lines that agents have written that begin with `word`, sorted.
    pub fn lines_of_agents(&self, word: &str) -> Vec<String> {
        let log = fs::read_to_string(self.path("agents.log")).unwrap();
        let mut lines: Vec<String> =
            log.lines().filter_map(|line| line.strip_prefix(word)).map(|line| line.trim().to_owned()).collect();
        lines.sort();
        lines
    }

    /// Every lane, agent and task of which an agent has said that it is finished, as often as it did.
    pub fn tasks_finished(&self) -> Vec<String> {
        let lines = self.lines_of_agents("finish");
        lines.iter().filter_map(|line| line.rsplit_once(' ')).map(|(task, _attempt)| task.to_owned()).collect()
    }

    /// Waits until agents have begun so many attempts in all, and each is in its log.
    pub fn until_agents_began(&self, attempts: usize) {
        let started = |event: &Event| matches!(event, Event::JobStarted { .. });
        wait_until("agents that began", || {
            let records = self.records();
            self.lines_of_agents("begin").len() == attempts
                && records.iter().filter(|record| started(&record.event)).count() >= attempts
        });
    }

    /// The directories of all jobs of the latest run.
    pub fn jobs(&self) -> Vec<PathBuf> {
        let Some((_, run)) = self.run() else { return Vec::new() };
        let records = self.records();
        let planned = records.iter().filter_map(|record| match &record.event {
            Event::JobPlanned { job, .. } => Some(run.job(job)),
            _ => None,
        });
        planned.collect()
    }

    /// The supervisors of the jobs that run.
    pub fn supervisors(&self) -> Vec<ProcessId> {
        let observed = self.jobs().into_iter().filter_map(|job| match observe(&job).unwrap() {
            Observation::Running(supervisor) => Some(supervisor),
            _ => None,
        });
        observed.collect()
    }

    /// How often the latest run was resumed.
    pub fn resumes(&self) -> usize {
        self.records().iter().filter(|record| matches!(record.event, Event::RunResumed { .. })).count()
    }

    /// How many lines the latest run's log has.
    pub fn log_lines(&self) -> usize {
        let log = self.run().and_then(|(_, run)| fs::read(run.log()).ok()).unwrap_or_default();
        log.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// Lets agents go on that wait for `word`.
    pub fn release(&self, word: &str) {
        fs::write(self.path(word), "").unwrap();
    }

    /// Everything that is known, for the message of a test that fails.
    pub fn story(&self) -> String {
        let log = self.run().and_then(|(_, run)| fs::read_to_string(run.log()).ok()).unwrap_or_default();
        let lines: Vec<String> = log.lines().map(|line| line.chars().take(300).collect()).collect();
        let agents = fs::read_to_string(self.path("agents.log")).unwrap_or_default();
        format!("run log:\n{}\nagents:\n{agents}", lines.join("\n"))
    }
}

fn has_begun(records: &[Record]) -> bool {
    records.iter().any(|record| matches!(record.event, Event::CheckpointReached { .. }))
}

/// Signals one process; it may have ended by itself.
pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    let _ = kill_process(pid, signal);
}

/// Does `check` for every case, several at once, and tells everything that failed.
pub fn for_each<T: Sync>(cases: &[T], name: impl Fn(&T) -> String + Sync, check: impl Fn(&T) + Sync) {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(case))) {
                        let said = panic.downcast::<String>().map_or_else(|_| "a panic".to_owned(), |said| *said);
                        failures.lock().unwrap().push(format!("{}: {said}", name(case)));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

/// A run waits for its disk and its agents most of the time.
const AT_ONCE: usize = 3;

/// The program that begins the runs which this version resumes: `LANEWRIGHT_TEST_OLDER`, where it is set.
pub fn older_version() -> Option<String> {
    std::env::var("LANEWRIGHT_TEST_OLDER").ok()
}

/// How often the tests go round: `LANEWRIGHT_TEST_ROUNDS`, where it is set.
pub fn rounds() -> Option<u32> {
    std::env::var("LANEWRIGHT_TEST_ROUNDS").ok()?.parse().ok()
}

/// `pid` and everything that comes from it.
pub fn tree_of(pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        next += 1;
    }
    found
}

/// Names of all files below `directory` that are not below one of `but`, sorted.
pub fn files_below(directory: &Path, but: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut unvisited = vec![directory.to_owned()];
    while let Some(place) = unvisited.pop() {
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
            if but.contains(&name.as_str()) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                unvisited.push(path);
            } else {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}
