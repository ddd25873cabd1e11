//! The repository that a command works in, its settings, and the state of its runs.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use lanewright_agents::runner::Withheld;
use lanewright_engine::executor::{
    BaseGates, CountedReviewers, Executor, LeftOutReports, RunClock, Surroundings, Walls,
};
use lanewright_engine::state_sync::{Claim, OwnPushes};
use lanewright_git::{self as git, CommitRules, LeftOutRules, Pool, Remote, Repository};
use lanewright_model::event::{Record, RunStarted};
use lanewright_model::ownership::{Ownership, RUN_LOG_DIRECTORY};
use lanewright_model::{Plan, Redactor, RunId, Submodules};
use lanewright_plan::settings::{Layer, Settings};
use lanewright_plan::{places, planning_files, recording_command, ticked};
use lanewright_programs::process;
use lanewright_store::{Holder, StateDirectory};
use lanewright_view::messages::pull_request::pull_request;
use rustix::fs::{Access, access};
use uuid::Uuid;

use super::context::Context;
use super::error::{ExitStatus, Hint};
use super::this_process::{now, owner};
use super::wait_policy::wait_for_refs;
use crate::progress::Activity;
use crate::progress::projections::{ProjectionError, ProjectionWriter};

pub(crate) struct RepositoryContext {
    pub(super) context: Context,
    pub(super) repository: Repository,
    pub(super) settings: Settings,
    pub(super) state: StateDirectory,
    /// The session that owns what this command starts.
    pub(super) session_id: String,
    /// How this process pushes the run that it claimed, if it did.
    pub(super) claimed: Option<Claimed>,
}

/// A run that only this process may push.
#[derive(Debug, Clone)]
pub(crate) struct Claimed {
    pub(super) claim: Claim,
    pub(super) pushes: OwnPushes,
    /// The shortest time between two pushes.
    pub(super) push_every: Duration,
}

/// How much of what was kept is named.
const NOTED: usize = 5;

impl RepositoryContext {
    /// The repository around the current directory, with the settings below `flags`.
    pub(super) fn open(context: &Context, flags: Layer) -> Result<Self> {
        let repository = Repository::discover(&context.directory)?;
        Ok(Self::new(context, repository, context.layers(flags)?.resolve(None)))
    }

    /// The same, with a git that is new enough to change the repository.
    pub(super) fn open_for_work(context: &Context, flags: Layer) -> Result<Self> {
        git::require_version()?;
        let within = Self::open(context, flags)?;
        // Commits of agents whose worktrees were removed are the lanes' before anything is decided about these.
        within.rescue();
        Ok(within)
    }

    /// Keeps and names what agents did whose worktrees were removed. What needs it fails where that cannot be done, and others do not.
    pub(super) fn rescue(&self) {
        match git::rescue(&self.repository) {
            Ok(rescued) => self.note_rescued(&rescued),
            Err(error) => {
                let message = format!("work of an agent whose worktree was removed cannot be kept yet: {error}");
                self.context.printer.warning(message, &[]);
            }
        }
    }

    /// Says what was kept while something else was done.
    pub(super) fn show_notices(&self) {
        self.repository.take_notices().iter().for_each(|notice| self.context.printer.note(notice));
    }

    /// Says what was kept of agents whose worktrees were removed.
    pub(super) fn note_rescued(&self, rescued: &[git::Rescued]) {
        let (references, others): (Vec<_>, Vec<_>) =
            rescued.iter().partition(|kept| matches!(kept, git::Rescued::Kept { .. }));
        others.iter().chain(references.iter().take(NOTED)).for_each(|kept| self.context.printer.note(kept));
        if references.len() > NOTED {
            let more = references.len() - NOTED;
            self.context.printer.note(format!("{more} more are listed by `git for-each-ref refs/lanewright/rescued`"));
        }
    }

    pub(super) fn new(context: &Context, repository: Repository, settings: Settings) -> Self {
        let state = state_in(repository.main_worktree(), &settings).called_in(context.named_directory());
        let session_id = session_id(&settings);
        let context = context.clone();
        let take = settings.take.value.as_deref().unwrap_or_default();
        let rules = LeftOutRules {
            // They were compiled when they were read.
            take: Ownership::new(take).ok().filter(|_| !take.is_empty()),
            max_file_size: settings.max_file_size.value.map(|size| size.0),
            copy_limit: settings.copy_limit.value.map(|size| size.0),
            fills_submodules: settings.submodules.value == Submodules::Init,
        };
        let commits = CommitRules { sign: settings.sign.value, sign_off: settings.sign_off.value, settings: None };
        let repository = repository.leaving_out(rules).committing(commits);
        Self { context, repository, settings, state, session_id, claimed: None }
    }

    /// The same repository with other settings, as a separate session.
    pub(super) fn with_settings(&self, settings: Settings) -> Self {
        Self::new(&self.context, self.repository.clone(), settings)
    }

    /// Shows `what` until it is dropped, if that takes long.
    pub(super) fn activity(&self, what: impl Display) -> Activity {
        self.context.activity(&self.settings, what, None)
    }

    /// The same for `total` things, of which each is reported when it is done.
    pub(super) fn counted_activity(&self, what: impl Display, total: usize) -> Activity {
        self.context.activity(&self.settings, what, Some(total))
    }

    /// The remote that the run's state is pushed to during the run, if the settings name one.
    pub(super) fn state_remote(&self) -> Result<Option<Remote>> {
        let name = self.settings.state_remote.value.as_deref();
        Ok(name.map(|name| Remote::named(&self.repository, name)).transpose()?)
    }

    /// The branch that lanes are built on and merged into.
    pub(super) fn base_branch(&self) -> Result<String> {
        if let Some(base) = &self.settings.base.value {
            return Ok(base.clone());
        }
        self.repository.current_branch()?.ok_or_else(|| {
            ExitStatus::Usage
                .error("HEAD is detached, so there is no current branch to build on")
                .hint("check out a branch, or name one with --base BRANCH")
        })
    }

    /// This process as the holder of locks of `run`.
    pub(super) fn holder(&self, run: &RunId) -> Holder {
        holder(&self.state, &self.session_id, run)
    }

    /// A pool of worktrees in `root` without a limit.
    pub(super) fn pool(&self, root: &Path, keep_caches: bool) -> Pool {
        Pool::new(self.repository.clone(), root, u32::MAX, keep_caches)
    }

    /// Writes the files that follow from the log of a run, first those that `history` asks for.
    pub(super) fn projections(
        &self,
        started: &RunStarted,
        plan: &Arc<Plan>,
        history: Arc<Vec<Record>>,
    ) -> Result<ProjectionWriter, ProjectionError> {
        let pool = self.pool(&started.options.worktree_root, started.options.keep_caches);
        ProjectionWriter::start(&self.state, &self.repository, &pool, started, plan, history)
    }

    /// The repository as the run that `started` makes commits in it: what agents made of git's settings does not count.
    pub(super) fn repository_of(&self, started: &RunStarted) -> Result<Repository> {
        Ok(self.repository.clone().with_settings_of_commits(started.options.git_settings.as_ref())?)
    }

    pub(super) fn executor(&self, started: &RunStarted, plan: &Arc<Plan>) -> Result<Executor> {
        let options = &started.options;
        let program = process::current_program().context("cannot find this program, to start supervisors")?;
        let surroundings = Arc::new(Surroundings::of_process(&self.repository)?);
        let repository = self.repository_of(started)?.giving_hooks(surroundings.clone());
        let pool = Pool::new(repository.clone(), &options.worktree_root, u32::MAX, options.keep_caches);
        Ok(Executor {
            repository,
            pool: pool.ending_hooks_after(plan.timeouts.gate),
            run: self.state.run(&started.run_id),
            facts: started.clone(),
            plan: plan.clone(),
            program,
            heartbeat: self.settings.heartbeat.value,
            output_limit: self.settings.output_limit.value.map(|limit| limit.0),
            withheld: self.withheld(),
            surroundings,
            walls: self.walls(),
            kill_after: self.settings.kill_after.value,
            redact: self.settings.redacted_patterns().to_vec(),
            redactor: redactor(&self.settings, plan),
            snapshots: self.settings.snapshot_rules().map_err(|error| ExitStatus::Usage.error(error.to_string()))?,
            forge: None,
            reviewers: CountedReviewers {
                listed: self.settings.reviewers.value.clone().unwrap_or_default(),
                ..CountedReviewers::default()
            },
            placements: None,
            before_publication: None,
            missing_work: None,
            pull_request_text: pull_request,
            planning_files,
            ticked,
            is_list: places::is_list,
            recording_command,
            clock: RunClock::set(now(), None),
            outside_changes: self.settings.outside_changes.value,
            shared_before: Arc::default(),
            left_out: LeftOutReports::default(),
            copied: Arc::default(),
            regenerate: self.settings.regenerate.value.clone().unwrap_or_default(),
            base_gates: BaseGates::default(),
        })
    }

    /// Which variables of this process its jobs do not get.
    pub(super) fn withheld(&self) -> Withheld {
        Withheld::new(self.settings.pass_env.value.as_deref().unwrap_or_default())
    }

    /// What this process's jobs reach.
    fn walls(&self) -> Walls {
        Walls {
            choice: self.settings.sandbox.value,
            writable: self.settings.sandbox_write.value.clone().unwrap_or_default(),
            hidden: self.settings.sandbox_deny_read.value.clone(),
            network: self.settings.sandbox_network.value,
        }
    }

    /// Keeps files that the runners of `plan` leave in worktrees out of `git status`, and so out of the lanes' work.
    pub(super) fn ignore_runner_files(&self, plan: &Plan) -> Result<()> {
        let patterns = plan.runners.values().flat_map(|runner| runner.ignore.iter().map(String::as_str));
        Ok(self.repository.ensure_excluded(&patterns.collect::<Vec<_>>())?)
    }

    /// What this process pushed of the run that it claimed.
    pub(super) fn pushes(&self) -> OwnPushes {
        self.claimed.as_ref().map(|claimed| claimed.pushes.clone()).unwrap_or_default()
    }

    /// Makes the state directory and the worktree root, keeps both out of `git status`, and removes locks on refs whose
    /// git has died.
    pub(super) fn prepare(&self, worktree_root: &Path) -> Result<()> {
        wait_for_refs(&self.context, &self.repository)?;
        usable_directory(worktree_root)?;
        refuse_noexec(worktree_root, self.repository.main_worktree())?;
        self.repository.hold_main_worktree()?;
        self.state.create()?;
        git::remove_dead_reference_locks(&self.repository)?;
        let mut patterns = vec![format!("/{RUN_LOG_DIRECTORY}/")];
        match worktree_root.strip_prefix(self.repository.main_worktree()) {
            Ok(inside) => patterns.push(format!("/{}/", inside.display())),
            Err(_) => self.exclude_from_outer(worktree_root),
        }
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        Ok(self.repository.ensure_excluded(&patterns)?)
    }

    /// Keeps the worktree root out of `git status` of a repository around this one.
    fn exclude_from_outer(&self, worktree_root: &Path) {
        let place = worktree_root.display();
        match self.repository.exclude_from_outer(worktree_root) {
            Ok(None) => {}
            Ok(Some(file)) => {
                let file = file.display();
                self.context
                    .printer
                    .note(format!("{place} lies in another repository: added to {file}, so that git ignores it there"));
            }
            Err(error) => {
                let message = format!("{place} lies in another repository, which does not ignore it: {error}");
                let hint = "add it to a .gitignore there, or name another place with --worktree-root DIR".to_owned();
                self.context.printer.warning(message, &[hint]);
            }
        }
    }
}

/// Where the state of the repository with the main worktree `main` is.
pub(super) fn state_in(main: &Path, settings: &Settings) -> StateDirectory {
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

/// The session that the settings name, or a new one.
pub(super) fn session_id(settings: &Settings) -> String {
    settings.session_id.value.clone().unwrap_or_else(|| Uuid::now_v7().to_string())
}

/// This process as the holder of a lock, from now on.
pub(super) fn holder(state: &StateDirectory, session_id: &str, run: &RunId) -> Holder {
    Holder { owner: owner(session_id), run: run.clone(), since: now(), program: state.program() }
}

/// Removes the secrets of a plan and of the environment from what is stored.
pub(super) fn redactor(settings: &Settings, plan: &Plan) -> Redactor {
    let agents = plan.lanes.iter().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.env);
    let runners = plan.runners.values().flat_map(|runner| &runner.environment);
    let lanes = plan.lanes.iter().flat_map(|lane| &lane.env);
    process::redactor(lanes.chain(agents).chain(runners), settings.redacted_patterns())
}

/// How often the worktree root is tried: a run that ends at the same moment may remove it when it is empty.
const TRIES: u32 = 20;

fn usable_directory(root: &Path) -> Result<()> {
    let attempt = || -> Result<(), String> {
        lanewright_files::directory::create_directory(root).map_err(|error| error.to_string())?;
        // A file made to try it would stay where Lanewright is killed.
        access(root, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| error.to_string())
    };
    let usable = (1..TRIES).find_map(|_| attempt().ok()).map_or_else(attempt, Ok);
    usable.map_err(|error| unusable(root, &error))
}

/// Whether worktrees can be made in `root`, as far as can be seen without creating anything.
pub(super) fn check_directory(root: &Path) -> Result<()> {
    let existing = root.ancestors().find(|part| std::fs::symlink_metadata(part).is_ok()).unwrap_or(root);
    match access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if existing.is_dir() => Ok(()),
        Ok(()) => Err(unusable(root, &format!("{} is not a directory", existing.display()))),
        Err(error) => Err(unusable(root, &format!("{}: {error}", existing.display()))),
    }
}

/// Refuses a worktree root that is mounted noexec: gates that run a program of the repository would fail there with 126, which
/// looks like the agent's fault. Where the checkout is mounted so as well, no gate runs one.
fn refuse_noexec(root: &Path, checkout: &Path) -> Result<()> {
    if !is_noexec(root) || is_noexec(checkout) {
        return Ok(());
    }
    Err(ExitStatus::Blocked
        .error(format!("{} is mounted noexec: gates could run no program of their worktree", root.display()))
        .hint(
            "name another place with --worktree-root DIR (`worktree_root` in lanewright.toml), or mount it with exec",
        ))
}

#[cfg(target_os = "linux")]
fn is_noexec(directory: &Path) -> bool {
    use rustix::fs::{StatVfsMountFlags, statvfs};
    statvfs(directory).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

#[cfg(not(target_os = "linux"))]
fn is_noexec(_: &Path) -> bool {
    false
}

fn unusable(root: &Path, error: &str) -> anyhow::Error {
    ExitStatus::Blocked
        .error(format!("no worktree can be made in {}: {error}", root.display()))
        .hint("make it writable, or name another place with --worktree-root DIR")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_plan::settings::{Environment, Invocation, Layers, Origin, Setting};

    #[test]
    fn session_id_is_the_setting_or_new() {
        let settings = |name: Option<&str>| {
            let invocation = Invocation { repository: "/r".into(), directory: "/r".into(), home: None, cores: 4 };
            let session_id = name.map(|name| Setting::new(Some(name.to_owned()), Origin::Flag("--session-id")));
            let layer = Layer { session_id, ..Layer::default() };
            Layers::read(layer, &Environment::new(), &[], &invocation).unwrap().resolve(None)
        };
        assert_eq!(session_id(&settings(Some("mine"))), "mine");
        assert_ne!(session_id(&settings(None)), session_id(&settings(None)));
    }
}
