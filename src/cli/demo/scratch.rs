//! The scratch directory: a repository of its own, what its agents need, and nothing of the user's.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::amiss;
use crate::cli::args;
use crate::cli::error::{CliError, ExitStatus};
use crate::event::Event;
use crate::fs::regular_file;
use crate::model::{JobId, Plan, RunId};
use crate::plan_source::{self, Source, SourceFile};
use crate::process::{self, Observation};
use crate::store::{RunDirectory, StateDirectory, run_log};

/// The run's name.
pub(super) const RUN: &str = "demo";

/// What the repository's first commit holds.
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

/// Settings of the repository alone, so that none of the user's matters and none is missed.
const CONFIGURATION: &[(&str, &str)] = &[
    ("user.name", "Lanekeeper demo"),
    ("user.email", "demo@localhost"),
    ("commit.gpgSign", "false"),
    ("core.autocrlf", "false"),
    ("core.hooksPath", "/dev/null"),
];

/// The plan, as the repository will hold it.
pub(super) fn plan() -> Result<Plan, CliError> {
    let (name, text) = FILES[0];
    let no_files = |file: &str| Err(format!("{file} is not part of the demo"));
    let reading = plan_source::read(
        &Source { files: &[SourceFile { path: name, text }], ..Source::default() },
        &no_files,
        &|_| None,
    );
    let faults = reading.diagnostics;
    reading.plan.ok_or_else(|| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        amiss(format!("its plan is invalid: {}", faults.join("; ")))
    })
}

/// A directory with the repository in it. When it is let go of, what still runs in it is stopped, and it is removed
/// unless it is to be kept.
pub(super) struct Scratch {
    directory: PathBuf,
    run: RunDirectory,
    temporary: Option<TempDir>,
}

impl Scratch {
    /// Makes it where `arguments` want it; a path there is relative to `current`.
    pub(super) fn make(current: &Path, arguments: &args::Demo) -> Result<Self, CliError> {
        let mut temporary = None;
        let directory = match &arguments.dir {
            Some(wanted) => empty_directory(&current.join(wanted))?,
            None => {
                let made =
                    tempfile::Builder::new().prefix("lanekeeper-demo-").disable_cleanup(arguments.keep).tempdir();
                let made = made.map_err(|error| amiss(format!("no temporary directory can be made: {error}")))?;
                temporary.insert(made).path().to_owned()
            }
        };
        let directory = fs::canonicalize(&directory).map_err(|error| cannot("find", &directory, &error))?;
        let temporary = temporary.filter(|_| !arguments.keep);
        let run = RunId::new(RUN).map_err(|error| amiss(error.to_string()))?;
        let run = StateDirectory::new(&directory.join("shop")).run(&run);
        let scratch = Self { directory, run, temporary };
        scratch.fill()?;
        Ok(scratch)
    }

    fn fill(&self) -> Result<(), CliError> {
        let write = |(name, text): &(&str, &str)| write(&self.repository().join(name), text);
        FILES.iter().try_for_each(write)?;
        self.git(&["init", "--quiet", "--template=", "--initial-branch=main"])?;
        CONFIGURATION.iter().try_for_each(|(key, value)| self.git(&["config", "--local", key, value]).map(drop))?;
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", "The plan, its agents and its tests"]).map(drop)
    }

    /// All of it.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.directory.join("shop")
    }

    /// The files of the run.
    pub(super) fn run(&self) -> &RunDirectory {
        &self.run
    }

    /// What an attempt was told.
    pub(super) fn prompt(&self, job: &JobId) -> PathBuf {
        self.run.job(job).join("prompt.md")
    }

    /// Where every agent writes down that it starts, outside of all worktrees.
    pub(super) fn starts(&self) -> PathBuf {
        self.directory.join("starts.log")
    }

    /// Lets the agents of `lane` finish that wait for it.
    pub(super) fn release(&self, lane: &str) -> Result<(), CliError> {
        write(&self.directory.join("released").join(lane), "")
    }

    /// Whether it stays.
    pub(super) fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }

    /// Has it stay.
    pub(super) fn keep(&mut self) {
        self.temporary.take().map(TempDir::keep);
    }

    /// What is worth a look, with words for it.
    pub(super) fn places(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("the scratch directory", self.directory.clone()),
            ("the run log, the source of truth", self.run.log()),
            ("the checkpoints", StateDirectory::new(&self.repository()).checkpoints()),
            ("the prompts, outputs and exits", self.run.directory().join("lanes")),
            ("every start of an agent", self.starts()),
            ("what the resume printed", self.directory.join("resume.txt")),
        ]
    }

    /// `program` in the repository, with nothing of the user's configuration.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let ours = ["GIT_", "LANEKEEPER_"].iter().any(|prefix| text.starts_with(prefix));
            if ours || ["CLAUDE_SESSION_ID", "SPECIALIST_TIMEOUT"].contains(&&*text) {
                command.env_remove(&name);
            }
        }
        command.current_dir(self.repository()).stdin(Stdio::null());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("XDG_CONFIG_HOME", self.directory.join("config")).env("DEMO_DIRECTORY", &self.directory);
        command
    }

    /// What git prints.
    pub(super) fn git(&self, arguments: &[&str]) -> Result<String, CliError> {
        let output = self.command("git").args(arguments).output();
        let output = output.map_err(|error| amiss(format!("cannot run git: {error}")))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(amiss(format!("git {}: {}", arguments.join(" "), complaint.trim_end())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Stops every job that has not ended. For when no Lanekeeper is at work any more.
    fn stop_jobs(&self) {
        let Ok(log) = run_log::read(&self.run.log()) else { return };
        for record in log.records {
            let Event::JobPlanned { job } = record.event else { continue };
            let directory = self.run.job(&job);
            if !matches!(process::observe(&directory), Ok(Observation::Exited(_) | Observation::Absent)) {
                // Nobody is left to tell when this fails, and the agents have a time limit of their own.
                let _ = process::stop(&directory, true).and_then(|_| process::wait(&directory, None));
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.stop_jobs();
    }
}

/// Makes `directory`, or makes sure that nothing is in it.
fn empty_directory(directory: &Path) -> Result<PathBuf, CliError> {
    fs::create_dir_all(directory).map_err(|error| cannot("make", directory, &error))?;
    let mut entries = fs::read_dir(directory).map_err(|error| cannot("read", directory, &error))?;
    if entries.next().is_some() {
        let error = CliError::new(ExitStatus::Usage, format!("{} is not empty", directory.display()));
        return Err(error.hint("name a directory that is new or empty"));
    }
    Ok(directory.to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let written = fs::create_dir_all(parent).and_then(|()| regular_file::write_argument(path, text.as_bytes()));
    written.map_err(|error| cannot("write", path, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(ExitStatus::Usage, format!("cannot {what} {}: {error}", path.display()))
}
