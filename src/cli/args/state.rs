//! Arguments of the commands that take state to a remote and back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use lanewright_engine::state_sync::{is_probe, run_of};
use lanewright_model::{CommitId, PublishMode, RunId};
use lanewright_plan::settings::{Layer, absolute, value};

use super::flags::{ProgressArgs, flag, optional};
use super::{Name, RunArg, choice};

#[derive(Debug, Subcommand)]
pub(crate) enum State {
    /// Push a run as it is now
    Push(PushState),
    /// Fetch a run that was pushed elsewhere, to resume it here
    Pull(PullState),
    /// List the runs that a remote has
    List(RemoteArgs),
    /// Remove runs from a remote; finished and published ones, unless one is named
    Drop(DropState),
}

#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    /// The git remote, by name or address [default: the setting state_remote, else origin]
    #[arg(long, value_name = "REMOTE", value_parser = value::exchange)]
    pub(crate) remote: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PushState {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Overwrite what another machine pushed
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PullState {
    /// The run, or the beginning of its id [default: the remote's only unfinished run of the branch that is checked out]
    pub(crate) run: Option<Name>,
    /// The remote's only unfinished run of this plan
    #[arg(long, value_name = "PLAN", conflicts_with = "run")]
    pub(crate) plan: Option<PathBuf>,
    /// The directory for the run's worktrees [default: a sibling of the repository]
    #[arg(long, value_name = "DIR")]
    pub(crate) worktree_root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

impl PullState {
    /// The layer of settings that these flags make; relative paths are seen from `directory`.
    pub(crate) fn layer(&self, directory: &Path) -> Layer {
        let worktree_root = flag("--worktree-root", &self.worktree_root);
        Layer { worktree_root, ..self.progress.layer() }.place_paths(|path| absolute(directory, path))
    }
}

#[derive(Debug, Args)]
pub(crate) struct DropState {
    /// The run, or the beginning of its id [default: finished runs of this branch whose work the remote's branches have]
    pub(crate) run: Option<Name>,
    /// Remove it although it is not finished or nothing else holds its work
    #[arg(long, requires = "run")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// The run, or the beginning of its id [default: the newest that was not rolled back]
    pub(crate) run: Option<Name>,
    /// Push it, propose it in a pull request, or the latter where a rule of the forge refuses the push (auto) [default: auto]
    #[arg(long = "as", value_name = "HOW", value_parser = choice::<PublishMode>())]
    mode: Option<PublishMode>,
    /// The git remote [default: the one that the branch follows, else origin]
    #[arg(long, value_name = "REMOTE", value_parser = value::remote)]
    remote: Option<String>,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Publish {
    /// The layer of settings that these flags make.
    pub(crate) fn layer(&self) -> Layer {
        let (publish, remote) = (flag("--as", &self.mode), optional("--remote", &self.remote));
        Layer { publish, remote, ..self.progress.layer() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Work {
    /// The git repository on which the run is offered: a URL or a path
    pub(crate) exchange: String,
    /// The ref of the run's state
    #[arg(value_name = "REF", value_parser = offered)]
    pub(crate) reference: Offered,
    /// The commit that was offered; any other one is left alone
    #[arg(value_parser = commit)]
    pub(crate) offer: CommitId,
    /// Where clones and worktrees are kept for later runs [default: ~/.cache/lanewright]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// The shortest time between two pushes of the run's state; the last one is never delayed
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = value::duration)]
    pub(crate) push_every: Duration,
}

/// What a job is given.
#[derive(Debug, Clone)]
pub(crate) enum Offered {
    Run(RunId),
    /// The ref of a probe of `doctor --executor`.
    Probe(String),
}

fn offered(text: &str) -> Result<Offered, String> {
    if is_probe(text) {
        return Ok(Offered::Probe(text.to_owned()));
    }
    run_of(text)
        .map(Offered::Run)
        .ok_or_else(|| "it is no ref of a run's state, such as refs/lanewright/state/r1".to_owned())
}

fn commit(text: &str) -> Result<CommitId, String> {
    CommitId::new(text).map_err(|_| "it is no full name of a commit, which has 40 or 64 hexadecimal digits".to_owned())
}
