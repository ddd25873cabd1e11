//! The repository in which a run takes place, and its state on disk.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::patience::wait_for_refs;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::event::Owner;
use crate::git::{Remote, Repository};
use crate::model::ownership::RUN_LOG_DIRECTORY;
use crate::model::{Plan, ProcessId, Redactor, RunId, Timestamp};
use crate::process;
use crate::settings::Settings;
use crate::store::{Holder, StateDirectory};

/// The repository in which a run takes place.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Site {
    /// The repository.
    pub(in crate::cli) repository: Repository,
}

impl Site {
    /// The repository that the current directory is in.
    pub(in crate::cli) fn find(context: &Context) -> Result<Self, CliError> {
        Ok(Self { repository: Repository::discover(&context.directory)? })
    }

    /// The same with a git that is new enough to work there.
    pub(in crate::cli) fn find_to_work_in(context: &Context) -> Result<Self, CliError> {
        crate::git::require_version()?;
        Self::find(context)
    }

    /// Where the state is, with the overrides of the settings.
    pub(in crate::cli) fn state(&self, settings: &Settings) -> StateDirectory {
        state_in(self.repository.main_worktree(), settings)
    }

    /// The remote that the run's state is pushed to while it is worked on, if the settings want that.
    pub(in crate::cli) fn state_remote(&self, settings: &Settings) -> Result<Option<Remote>, CliError> {
        let name = settings.state_remote.value.as_deref();
        Ok(name.map(|name| Remote::named(&self.repository, name)).transpose()?)
    }

    /// Keeps what the runners of `plan` leave in their worktrees out of `git status`, and so out of the lanes' work.
    pub(in crate::cli) fn ignore_leavings(&self, plan: &Plan) -> Result<(), CliError> {
        let patterns = plan.runners.values().flat_map(|runner| runner.ignore.iter().map(String::as_str));
        Ok(self.repository.ensure_excluded(&patterns.collect::<Vec<_>>())?)
    }

    /// Makes the state directory and the worktree root, keeps both out of `git status`, and clears away what a death left.
    pub(in crate::cli) fn prepare(
        &self,
        context: &Context,
        state: &StateDirectory,
        worktree_root: &Path,
    ) -> Result<(), CliError> {
        wait_for_refs(context, &self.repository)?;
        usable_directory(worktree_root)?;
        state.create()?;
        crate::git::remove_dead_reference_locks(&self.repository)?;
        let mut patterns = vec![format!("/{RUN_LOG_DIRECTORY}/")];
        if let Ok(inside) = worktree_root.strip_prefix(self.repository.main_worktree()) {
            patterns.push(format!("/{}/", inside.display()));
        }
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        Ok(self.repository.ensure_excluded(&patterns)?)
    }
}

/// Where the state of the repository with the main worktree `main` is, with the overrides of the settings.
pub(in crate::cli) fn state_in(main: &Path, settings: &Settings) -> StateDirectory {
    let mut state = StateDirectory::new(main);
    let path = &settings.checkpoint_path.value;
    if *path != state.checkpoints() {
        state = state.with_checkpoints(path.clone());
    }
    match &settings.log_path.value {
        Some(log) => state.with_log(log.clone()),
        None => state,
    }
}

/// How often it is tried to use the worktree root: a run that ends just now may remove it when it is empty.
const TRIES: u32 = 20;

/// Makes sure that worktrees can be made in `root`.
fn usable_directory(root: &Path) -> Result<(), CliError> {
    let attempt = || -> Result<(), String> {
        crate::fs::directory::create_directory(root).map_err(|error| error.to_string())?;
        // A file made to try it would stay where Lanekeeper is killed.
        access(root, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| error.to_string())
    };
    let usable = (1..TRIES).find_map(|_| attempt().ok()).map_or_else(attempt, Ok);
    usable.map_err(|error| unusable(root, &error))
}

/// The same as far as can be seen without creating anything.
pub(in crate::cli) fn check_directory(root: &Path) -> Result<(), CliError> {
    let existing = root.ancestors().find(|part| std::fs::symlink_metadata(part).is_ok()).unwrap_or(root);
    match access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if existing.is_dir() => Ok(()),
        Ok(()) => Err(unusable(root, &format!("{} is not a directory", existing.display()))),
        Err(error) => Err(unusable(root, &format!("{}: {error}", existing.display()))),
    }
}

fn unusable(root: &Path, error: &str) -> CliError {
    let message = format!("no worktree can be made in {}: {error}", root.display());
    CliError::new(ExitStatus::Blocked, message).hint("make it writable, or name another place with --worktree-root DIR")
}

/// This process as the owner of a run.
pub(in crate::cli) fn owner(session_id: &str) -> Owner {
    Owner { session_id: session_id.to_owned(), process: ProcessId::current(), host: host() }
}

/// The name of this machine.
pub(in crate::cli) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// This process as the holder of a lock, from now on.
pub(in crate::cli) fn holder(state: &StateDirectory, session_id: &str, run: &RunId) -> Holder {
    Holder { owner: owner(session_id), run: run.clone(), since: now(), program: state.program() }
}

/// What keeps the secrets that a plan and our environment hold out of what is stored.
pub(in crate::cli) fn redactor(settings: &Settings, plan: &Plan) -> Redactor {
    let agents = plan.lanes.iter().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.env);
    process::redactor(plan.lanes.iter().flat_map(|lane| &lane.env).chain(agents), settings.redacted_patterns())
}

/// What the time is.
pub(in crate::cli) fn now() -> Timestamp {
    Timestamp::from_unix_millis(chrono::Utc::now().timestamp_millis())
}

/// `path` without symbolic links, or as it is where that cannot be told.
pub(in crate::cli) fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
