//! A scratch repository, the real binary in it, and what became of both.

#![allow(clippy::unwrap_used, dead_code, reason = "a helper of several tests fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A repository at `work` with one commit on `main`, a home, and nothing else of the machine.
pub struct Scratch {
    root: tempfile::TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Scratch {
    pub fn new() -> Self {
        let scratch = Self { root: tempfile::tempdir().unwrap() };
        for directory in ["home", "work"] {
            fs::create_dir_all(scratch.path(directory)).unwrap();
        }
        scratch.git(&["init", "--quiet", "--initial-branch=main"]);
        scratch.git(&["config", "user.name", "someone"]);
        scratch.git(&["config", "user.email", "someone@example.invalid"]);
        scratch.write("work/base.txt", "base\n");
        scratch.write("work/.gitignore", "ignored/\n");
        scratch.git(&["add", "."]);
        scratch.git(&["commit", "--quiet", "--message=first"]);
        scratch
    }

    pub fn path(&self, below: &str) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join(below)
    }

    pub fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes the plan of these lanes: name, what it depends on, the shell line of its one agent.
    pub fn plan(&self, lanes: &[(&str, &[&str], &str)]) {
        let lane = |(id, depends_on, line): &(&str, &[&str], &str)| {
            // A run that takes the place of one whose log was lost finds the work done.
            let owned = if line.contains("base.txt") { "base.txt" } else { id };
            format!(
                "[[lane]]\nid = \"{id}\"\nowns = [\"{id}/**\", \"{owned}\"]\ndepends_on = {depends_on:?}\nretries = 0\n\
                 [[lane.agent]]\nname = \"engineer\"\nround = \"implementation\"\nallow_empty = true\ncommand = [\"sh\", \"-c\", {line:?}]\n\n"
            )
        };
        let lanes: String = lanes.iter().map(lane).collect();
        self.write("plan.toml", &format!("phase = \"P1\"\nbase_branch = \"main\"\n\n{lanes}"));
    }

    fn pin<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("LC_ALL", "C")
            .env("SCRATCH", self.path(""))
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
    }

    pub fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let output = self.pin(&mut Command::new("git")).current_dir(directory).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Whether git succeeds.
    pub fn try_git(&self, arguments: &[&str]) -> bool {
        self.pin(&mut Command::new("git")).args(arguments).output().unwrap().status.success()
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.path("work"), arguments)
    }

    pub fn lanekeeper(&self, arguments: &[&str]) -> Ended {
        self.lanekeeper_with(arguments, &[])
    }

    pub fn lanekeeper_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
        self.pin(&mut command).args(arguments).envs(variables.iter().copied()).output().unwrap().into()
    }

    /// Begins run `r1` of the plan and sees it through.
    pub fn execute(&self) -> Ended {
        self.lanekeeper(&["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none"])
    }

    pub fn resume(&self) -> Ended {
        self.lanekeeper(&["resume", "r1", "--progress", "none", "--accept-plan-change"])
    }

    /// Begins run `r1` and kills Lanekeeper, and nothing else, once `sign` exists.
    pub fn execute_and_kill_at(&self, sign: &str) {
        let mut running = self.execute_until(sign);
        kill_process(Pid::from_child(&running), Signal::KILL).unwrap();
        running.wait().unwrap();
    }

    /// Begins run `r1` and waits until `sign` exists.
    pub fn execute_until(&self, sign: &str) -> Child {
        self.start_until(&["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none"], sign)
    }

    /// Starts the program and waits until `sign` exists.
    pub fn start_until(&self, arguments: &[&str], sign: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
        let command = self.pin(&mut command).stdout(Stdio::null()).stderr(Stdio::null());
        let command = command.args(arguments);
        let mut running = command.spawn().unwrap();
        wait_until(&format!("{sign} exists"), || {
            assert!(running.try_wait().unwrap().is_none(), "the run ended before {sign} existed");
            self.path(sign).exists()
        });
        running
    }

    pub fn main(&self) -> String {
        self.git(&["rev-parse", "main"])
    }

    /// The files of a commit, each with its blob.
    pub fn tree(&self, commit: &str) -> String {
        self.git(&["ls-tree", "-r", commit])
    }

    pub fn branches(&self) -> String {
        self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"])
    }

    /// The refs of snapshots.
    pub fn kept(&self) -> Vec<String> {
        self.git(&["for-each-ref", "--format=%(refname)", "refs/lanekeeper"]).lines().map(str::to_owned).collect()
    }

    /// Every object that a ref reaches.
    pub fn reachable(&self) -> BTreeSet<String> {
        let listing = self.git(&["rev-list", "--objects", "--no-object-names", "--all"]);
        listing.lines().map(str::to_owned).collect()
    }

    /// The name of every file in `worktree` that is not ignored, and the blob that would hold it.
    pub fn manifest(&self, worktree: &Path) -> Vec<(String, String)> {
        let files = self.git_in(worktree, &["ls-files", "--cached", "--others", "--exclude-standard"]);
        let present = files.lines().filter(|file| worktree.join(file).exists());
        let mut blobs: Vec<_> =
            present.map(|file| (file.to_owned(), self.git_in(worktree, &["hash-object", file]))).collect();
        blobs.sort();
        blobs
    }

    /// The worktree of the lane's agent.
    pub fn code(&self, lane: &str) -> PathBuf {
        fs::canonicalize(self.path(&format!("work.lanes/r1/{lane}/agents/engineer/code"))).unwrap()
    }

    pub fn log(&self) -> PathBuf {
        self.path("work/.claude/ai-dev-kit/run-logs/r1.jsonl")
    }

    /// The events of the run log, in order.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let log = fs::read_to_string(self.log()).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|event| event["event"] == name).collect()
    }
}

/// Supervisors of a test that failed are not left behind.
impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() && self.log().exists() {
            self.lanekeeper(&["rollback", "r1"]);
        }
    }
}

/// Waits for a condition, and fails the test if it does not come true within a minute.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ended {
    /// The same, which must have ended with `code`.
    #[track_caller]
    pub fn with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}
