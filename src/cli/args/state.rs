//! Arguments of the commands that take state to a remote and back.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{Name, RunArg};
use crate::settings::{Layer, Origin, Setting, absolute, value};

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
    /// The git remote [default: the setting state_remote, else origin]
    #[arg(long, value_name = "NAME", value_parser = value::remote)]
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
}

#[derive(Debug, Args)]
pub(crate) struct PullState {
    /// The run, or the beginning of its id [default: the remote's only unfinished run of the branch that is checked out]
    pub(crate) run: Option<Name>,
    /// The directory for the run's worktrees [default: a sibling of the repository]
    #[arg(long, value_name = "DIR")]
    pub(crate) worktree_root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

impl PullState {
    /// The layer of settings that these flags make; relative paths are seen from `directory`.
    pub(crate) fn layer(&self, directory: &Path) -> Layer {
        let root = self.worktree_root.clone().map(|root| Setting::new(root, Origin::Flag("--worktree-root")));
        Layer { worktree_root: root, ..Layer::default() }.place_paths(|path| absolute(directory, path))
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
