//! A repository, a home and a pinned environment for each test, and the real binary run in them.

mod ended;
mod lanes;
mod running;
mod terminal;
pub(crate) mod trace;
mod users;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use ended::Ended;
pub(crate) use running::Running;
pub(crate) use terminal::Terminal;
pub(crate) use users::UsersCheckout;

/// The run that tests start, unless they need another name.
pub(crate) const RUN: &str = "r1";

/// How long anything may take before a test gives up: far beyond what a loaded machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Everything that a test touches, below one temporary directory.
pub(crate) struct TestEnv {
    root: PathBuf,
    /// Agents wait for files below it and end when it is gone, so that a failed test leaves none behind.
    _directory: TempDir,
}

impl TestEnv {
    /// With a repository at `repo`: a first commit on `main`, which is checked out.
    pub(crate) fn new() -> Self {
        Self::new_in(&std::env::temp_dir())
    }

    /// The same below `place`.
    pub(crate) fn new_in(place: &Path) -> Self {
        let env = Self::without_repository_in(place);
        env.git_at("", &["init", "--quiet", "repo"]);
        env.write("repo/README.md", "A project.\n");
        env.write("repo/.gitignore", ".env\n*.log\nignored/\n");
        env.commit("first");
        env
    }

    /// With a home, room for a plan, and an empty directory `repo`.
    pub(crate) fn without_repository() -> Self {
        Self::without_repository_in(&std::env::temp_dir())
    }

    fn without_repository_in(place: &Path) -> Self {
        let directory =
            tempfile::Builder::new().prefix("lanewright-it").tempdir_in(place).expect("a temporary directory");
        let root = fs::canonicalize(directory.path()).expect("its real path");
        let env = Self { root, _directory: directory };
        for below in ["home", "config", "bin", "scratch", "repo"] {
            fs::create_dir(env.path(below)).expect("a directory");
        }
        let who = "[user]\nname = Tester\nemail = tester@example.invalid\n[init]\ndefaultBranch = main\n";
        env.write("gitconfig", who);
        env.program("wait-for", WAIT_FOR);
        env.program("wait-for-merge", &WAIT_FOR_MERGE.replace("LOG", &format!("repo/{STATE}/{RUN}.jsonl")));
        env
    }

    /// The same with somebody at work on another branch, so that nothing needs to move in their checkout.
    pub(crate) fn with_user_elsewhere() -> Self {
        let env = Self::new();
        env.git(&["switch", "--quiet", "--create", "desk"]);
        env.write("repo/staged.txt", "staged\n");
        env.git(&["add", "staged.txt"]);
        env.write("repo/README.md", "A project, being edited.\n");
        env.write("repo/untracked.txt", "untracked\n");
        env
    }

    /// Has the user's settings let agents change the repository by its path.
    pub(crate) fn trusting(self) -> Self {
        self.write("config/lanewright/config.toml", "outside_changes = \"report\"\n");
        self
    }

    /// A path below the test's own directory.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// Writes a file below the test's own directory.
    pub(crate) fn write(&self, below: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, contents).expect("a file");
    }

    /// What a file below the test's own directory holds.
    pub(crate) fn read(&self, below: &str) -> String {
        let path = self.path(below);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What an agent wrote into `$SCRATCH`.
    pub(crate) fn scratch(&self, name: &str) -> String {
        self.read(&format!("scratch/{name}"))
    }

    /// Puts a program onto the agents' `PATH`.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let below = format!("bin/{name}");
        self.write(&below, script);
        fs::set_permissions(self.path(&below), fs::Permissions::from_mode(0o755)).expect("permissions");
    }

    /// Writes the plan of phase P1: `plan.toml`, beside the repository.
    pub(crate) fn plan(&self, text: &str) {
        self.write("plan.toml", format!("phase = \"P1\"\n{text}"));
    }

    /// `execute-phase` of the plan as run [`RUN`], in the repository, to its end.
    pub(crate) fn execute(&self, flags: &[&str]) -> Ended {
        self.start(flags).wait()
    }

    /// The same, not waited for.
    pub(crate) fn start(&self, flags: &[&str]) -> Running {
        let plan = self.path("plan.toml");
        let mut arguments = vec!["execute-phase", plan.to_str().expect("UTF-8")];
        if !flags.iter().any(|flag| flag.starts_with("--run-id")) {
            arguments.extend(["--run-id", RUN]);
        }
        self.start_with(&[&arguments, flags].concat(), |command| command)
    }

    /// Goes on with run [`RUN`].
    pub(crate) fn resume(&self, flags: &[&str]) -> Ended {
        self.lanewright(&[&["resume", RUN], flags].concat())
    }

    /// Runs the binary in the repository.
    pub(crate) fn lanewright(&self, arguments: &[&str]) -> Ended {
        self.lanewright_with(arguments, |command| command)
    }

    /// The same with more said about the process.
    pub(crate) fn lanewright_with(&self, arguments: &[&str], more: impl Fn(&mut Command) -> &mut Command) -> Ended {
        self.start_with(arguments, more).wait()
    }

    /// Starts the binary in the repository.
    pub(crate) fn start_with(&self, arguments: &[&str], more: impl Fn(&mut Command) -> &mut Command) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
        self.pin(&mut command).args(arguments);
        more(&mut command);
        Running::start(command)
    }

    /// Runs the binary in the repository without the privileges by which root may write everywhere.
    pub(crate) fn lanewright_unprivileged(&self, arguments: &[&str]) -> Ended {
        let binary = env!("CARGO_BIN_EXE_lanewright");
        let drop = |program: &str| {
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set=-dac_override,-dac_read_search", program]);
            command
        };
        let can_drop = drop("true").status().is_ok_and(|status| status.success());
        let mut command = if can_drop { drop(binary) } else { Command::new(binary) };
        self.pin(&mut command).args(arguments);
        Running::start(command).wait()
    }

    /// Gives a command the test's environment and nothing of the machine's.
    pub(crate) fn pin<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let path = std::env::var("PATH").expect("a PATH");
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("GIT_CONFIG_GLOBAL", self.path("gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", &self.root)
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .env("SCRATCH", self.path("scratch"))
            .env("LANEWRIGHT_BACKOFF", "1ms")
            .current_dir(self.path("repo"))
            .stdin(Stdio::null())
    }

    /// What git says in the repository.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_at("repo", arguments)
    }

    /// What git says in a directory below the test's own.
    pub(crate) fn git_at(&self, below: &str, arguments: &[&str]) -> String {
        self.git_in(&self.path(below), arguments)
    }

    /// What git says in a directory.
    pub(crate) fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let output = self.git_output(directory, arguments);
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
    }

    /// Whether git succeeds in the repository.
    pub(crate) fn try_git(&self, arguments: &[&str]) -> bool {
        self.git_output(&self.path("repo"), arguments).status.success()
    }

    pub(crate) fn git_output(&self, directory: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new("git");
        self.pin(&mut command).current_dir(directory).args(arguments).output().expect("git")
    }

    /// Commits everything that is in the repository's checkout.
    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// The files of a branch.
    pub(crate) fn files(&self, branch: &str) -> Vec<String> {
        self.git(&["ls-tree", "-r", "--name-only", branch]).lines().map(str::to_owned).collect()
    }

    /// Whether `branch` holds `file`.
    pub(crate) fn holds(&self, branch: &str, file: &str) -> bool {
        self.files(branch).iter().any(|name| name == file)
    }

    /// What a file holds on a branch.
    pub(crate) fn file_at(&self, branch: &str, file: &str) -> String {
        self.git(&["show", &format!("{branch}:{file}")])
    }

    /// Every ref.
    pub(crate) fn refs(&self) -> Vec<String> {
        self.git(&["for-each-ref", "--format=%(refname)"]).lines().map(str::to_owned).collect()
    }

    /// The events of run [`RUN`], which may be alive: a line that is being written does not count yet.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = self.read(&format!("repo/{STATE}/{RUN}.jsonl"));
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).expect("a record")).collect()
    }

    /// The events of one kind of run [`RUN`], in order.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        self.log().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// The records of `checkpoints.json` about a lane, by stage.
    pub(crate) fn checkpoint(&self, lane: &str, stage: &str) -> Value {
        let records: Vec<Value> = serde_json::from_str(&self.read(&format!("repo/{CHECKPOINTS}"))).expect("an array");
        let found = records.into_iter().find(|record| record["lane"] == lane && record["stage"] == stage);
        found.unwrap_or_else(|| panic!("no checkpoint {stage} of {lane}"))
    }

    /// The prompt, or another file, of an attempt at a lane's only task.
    pub(crate) fn attempt_file(&self, lane: &str, agent: &str, attempt: u32, name: &str) -> String {
        self.read(&format!("repo/{STATE}/{RUN}/lanes/{lane}/agents/{agent}/tasks/1/attempt-{attempt}/{name}"))
    }

    /// What the user's checkout consists of, byte for byte.
    pub(crate) fn users_checkout(&self) -> UsersCheckout {
        UsersCheckout::take(self)
    }

    /// Asserts that a finished run left nothing behind but commits on the branches named and its own records.
    pub(crate) fn assert_nothing_left(&self, branches: &[&str]) {
        let expected: Vec<String> = branches.iter().map(|branch| format!("refs/heads/{branch}")).collect();
        assert_eq!(self.refs(), expected, "stray refs");
        let worktrees = self.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(worktrees.matches("worktree ").count(), 1, "stray worktrees:\n{worktrees}");
        // A slow deletion goes on after the run.
        wait_until("the trash is deleted", || !self.path("repo.lanes/trash").exists());
        assert!(!self.path("repo.lanes").exists() || all_files(&self.path("repo.lanes")).is_empty(), "stray files");
        // Lanewright's own are held through the kernel: that they are there says nothing.
        let own = self.path("repo/.git/lanewright");
        let is_lock =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == "lock") && !path.starts_with(&own);
        let locks: Vec<PathBuf> = all_files(&self.path("repo/.git")).into_iter().filter(is_lock).collect();
        assert_eq!(locks, [] as [PathBuf; 0], "stray locks");
        self.git(&["fsck", "--no-dangling"]);
    }
}

/// Where the state is, below the repository.
pub(crate) const STATE: &str = ".claude/ai-dev-kit/run-logs";

/// The contract's file, below the repository.
pub(crate) const CHECKPOINTS: &str = ".claude/ai-dev-kit/run-logs/checkpoints.json";

/// `wait-for NAME`: ends when the file is in `$SCRATCH`, and when `$SCRATCH` is gone.
const WAIT_FOR: &str = "#!/bin/sh
while [ -d \"$SCRATCH\" ] && [ ! -e \"$SCRATCH/$1\" ]; do sleep 0.02; done
[ -e \"$SCRATCH/$1\" ]
";

/// Waits until the agent that it is told is merged into its lane: who ends first need not be merged first.
const WAIT_FOR_MERGE: &str = "#!/bin/sh
merged=\"\\\"event\\\":\\\"agent_merged\\\".*\\\"agent\\\":\\\"$1\\\"\"
while [ -d \"$SCRATCH\" ] && ! grep -q \"$merged\" \"$SCRATCH/../LOG\"; do sleep 0.02; done
";

/// Every file below `directory`.
pub(crate) fn all_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(all_files(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

/// Waits until `condition` holds.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
