//! The scratch directory: a repository of its own, what its agents need, and nothing of the user's.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lanewright_files::regular_file;
use lanewright_model::event::Event;
use lanewright_model::{JobId, RunId};
use lanewright_programs::process::{self, Observation};
use lanewright_store::{RunDirectory, StateDirectory, run_log};
use tempfile::TempDir;

use crate::cli::args;
use crate::cli::{ExitStatus, Hint};

pub(super) const RUN: &str = "demo";

/// How long a reader has for each thing that happens.
const PAUSE: Duration = Duration::from_secs(2);

const FILES: &[(&str, &str)] = &[
    ("plan.toml", include_str!("../../../templates/demo/plan.toml")),
    ("agents/common.sh", include_str!("../../../templates/demo/agents/common.sh")),
    ("agents/modeler.sh", include_str!("../../../templates/demo/agents/modeler.sh")),
    ("agents/engineer.sh", include_str!("../../../templates/demo/agents/engineer.sh")),
    ("agents/author.sh", include_str!("../../../templates/demo/agents/author.sh")),
    ("agents/indexer.sh", include_str!("../../../templates/demo/agents/indexer.sh")),
    ("agents/builder.sh", include_str!("../../../templates/demo/agents/builder.sh")),
    ("tests/api.sh", include_str!("../../../templates/demo/tests/api.sh")),
    ("tests/site.sh", include_str!("../../../templates/demo/tests/site.sh")),
];

/// Settings of the repository, so that none of the user's matters and none is missing.
const CONFIGURATION: &[(&str, &str)] = &[
    ("user.name", "Lanewright demo"),
    ("user.email", "demo@localhost"),
    ("commit.gpgSign", "false"),
    ("core.autocrlf", "false"),
    ("core.hooksPath", "/dev/null"),
];

/// A directory with the repository in it. When it is dropped, processes that still run in it are stopped, and it is
/// removed unless it should be kept.
pub(super) struct Scratch {
    directory: PathBuf,
    run: RunDirectory,
    temporary: Option<TempDir>,
    /// How long agents take for each step of their work.
    pub(super) pause: Duration,
}

impl Scratch {
    /// Makes it where `arguments` say; a path there is relative to `current`.
    pub(super) fn make(current: &Path, arguments: &args::Demo) -> Result<Self> {
        let mut temporary = None;
        let directory = match &arguments.dir {
            Some(wanted) => empty_directory(&current.join(wanted))?,
            None => {
                let mut builder = tempfile::Builder::new();
                let made = builder.prefix("lanewright-demo-").disable_cleanup(arguments.keep).tempdir();
                temporary.insert(made.context("cannot make a temporary directory")?).path().to_owned()
            }
        };
        let directory = fs::canonicalize(directory)?;
        let run = StateDirectory::new(&directory.join("shop")).run(&RunId::new(RUN)?);
        let pause = if arguments.fast { Duration::ZERO } else { PAUSE };
        let scratch = Self { directory, run, temporary: temporary.filter(|_| !arguments.keep), pause };
        scratch.fill()?;
        Ok(scratch)
    }

    fn fill(&self) -> Result<()> {
        FILES.iter().try_for_each(|(name, text)| write(&self.repository().join(name), text))?;
        self.output("git", &["init", "--quiet", "--template=", "--initial-branch=main"])?;
        for (key, value) in CONFIGURATION {
            self.output("git", &["config", "--local", key, value])?;
        }
        self.output("git", &["add", "--all"])?;
        self.output("git", &["commit", "--quiet", "--message", "The plan, its agents and its tests"]).map(drop)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn repository(&self) -> PathBuf {
        self.directory.join("shop")
    }

    /// The lines that agents write when they start, outside of all worktrees.
    pub(super) fn starts(&self) -> Result<Vec<String>> {
        match regular_file::read_text(self.starts_log()) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn starts_log(&self) -> PathBuf {
        self.directory.join("starts.log")
    }

    /// Lets the agents of `lane` finish that wait for it.
    pub(super) fn release(&self, lane: &str) -> Result<()> {
        write(&self.directory.join("released").join(lane), "")
    }

    /// Whether the jobs of `lane` have ended, as their supervisors recorded it.
    pub(super) fn has_ended(&self, lane: &str) -> Result<bool> {
        for job in self.jobs().iter().filter(|job| job.lane.as_ref().is_some_and(|id| id.as_str() == lane)) {
            match process::observe(&self.run.job(job))? {
                Observation::Exited(exit) => ensure!(exit.passed(), "{job} failed"),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }

    pub(super) fn keep(&mut self) {
        self.temporary.take().map(TempDir::keep);
    }

    /// What to look at in a kept demo.
    pub(super) fn places(&self) -> [(&'static str, PathBuf); 5] {
        [
            ("the scratch directory", self.directory.clone()),
            ("the run log", self.run.log()),
            ("the checkpoints", StateDirectory::new(&self.repository()).checkpoints()),
            ("the prompts, outputs and exit codes", self.run.directory().join("lanes")),
            ("every start of an agent", self.starts_log()),
        ]
    }

    /// The HTML report, in a directory of its own if the scratch directory will be removed.
    pub(super) fn report(&self) -> Result<Option<PathBuf>> {
        let path = self.run.directory().join("report.html");
        if self.is_kept() || !path.exists() {
            return Ok(path.exists().then_some(path));
        }
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix("lanewright-demo-report-").disable_cleanup(true).tempdir();
        let copy = made.context("cannot make a temporary directory")?.path().join("report.html");
        write(&copy, &regular_file::read_text(path)?)?;
        Ok(Some(copy))
    }

    /// `program` in the repository, with nothing of the user's configuration.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let ours = ["GIT_", "LANEWRIGHT_"].iter().any(|prefix| text.starts_with(prefix));
            if ours || ["CLAUDE_SESSION_ID", "SPECIALIST_TIMEOUT"].contains(&&*text) {
                command.env_remove(&name);
            }
        }
        command.current_dir(self.repository()).stdin(Stdio::null());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("XDG_CONFIG_HOME", self.directory.join("config")).env("DEMO_DIRECTORY", &self.directory);
        command.env("DEMO_PAUSE", self.pause.as_secs().to_string());
        command
    }

    pub(super) fn output(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<String> {
        let name = program.as_ref().to_string_lossy().into_owned();
        let output = self.command(&program).args(arguments).output().with_context(|| format!("cannot run {name}"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name} {}: {}", arguments.join(" "), complaint.trim_end());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn jobs(&self) -> Vec<JobId> {
        let records = run_log::read(&self.run.log()).map(|log| log.records).unwrap_or_default();
        let planned = records.into_iter().filter_map(|record| match record.event {
            Event::JobPlanned { job, .. } => Some(job),
            _ => None,
        });
        planned.collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for job in self.jobs() {
            let directory = self.run.job(&job);
            if !matches!(process::observe(&directory), Ok(Observation::Exited(_) | Observation::Absent)) {
                // A failure cannot be reported, and the agents have a time limit of their own.
                let _ = process::stop(&directory, true).and_then(|_| process::wait(&directory, None));
            }
        }
    }
}

/// Makes `directory`, or makes sure that it is empty.
fn empty_directory(directory: &Path) -> Result<PathBuf> {
    let cannot =
        |error: std::io::Error| ExitStatus::Usage.error(format!("cannot use {}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(cannot)?;
    if fs::read_dir(directory).map_err(cannot)?.next().is_some() {
        let error = ExitStatus::Usage.error(format!("{} is not empty", directory.display()));
        return Err(error.hint("name a directory that is new or empty"));
    }
    Ok(directory.to_owned())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let written = fs::create_dir_all(parent).and_then(|()| regular_file::write_argument(path, text.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}
