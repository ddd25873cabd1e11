//! Arguments of the commands that take state to a remote and back.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::model::RunId;
use crate::settings::{Layer, Origin, Setting, absolute, value};

/// `state`.
#[derive(Debug, Subcommand)]
pub enum State {
    /// Push a run as it is now
    Push(PushState),
    /// Fetch a run that was pushed elsewhere, to resume it here
    Pull(PullState),
    /// List the runs that a remote has
    List(ListStates),
    /// Remove runs from a remote; finished and published ones, unless one is named
    Drop(DropState),
}

/// Which remote is meant.
#[derive(Debug, Args)]
pub struct RemoteArgs {
    /// The git remote [default: the setting state_remote, else origin]
    #[arg(long, value_name = "NAME", value_parser = value::remote)]
    pub remote: Option<String>,
}

/// `state push`.
#[derive(Debug, Args)]
pub struct PushState {
    /// The run [default: the only unfinished one, else the newest]
    pub run: Option<RunId>,
    /// Overwrite what another machine pushed
    #[arg(long)]
    pub force: bool,
    /// Where to.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// `state pull`.
#[derive(Debug, Args)]
pub struct PullState {
    /// The run; may be left out when the remote has exactly one unfinished run of the branch that is checked out
    pub run: Option<RunId>,
    /// The directory for the run's worktrees [default: a sibling of the repository]
    #[arg(long, value_name = "DIR")]
    pub worktree_root: Option<PathBuf>,
    /// Where from.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

impl PullState {
    /// The layer of settings that these flags make; relative paths are seen from `directory`.
    pub fn layer(&self, directory: &Path) -> Layer {
        let root = self.worktree_root.clone().map(|root| Setting::new(root, Origin::Flag("--worktree-root")));
        Layer { worktree_root: root, ..Layer::default() }.place_paths(|path| absolute(directory, path))
    }
}

/// `state list`.
#[derive(Debug, Args)]
pub struct ListStates {
    /// Of what.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// `state drop`.
#[derive(Debug, Args)]
pub struct DropState {
    /// The run; if left out, those of this branch that are finished and whose work the remote's branches have
    pub run: Option<RunId>,
    /// Remove it although it is not finished or nothing else holds its work
    #[arg(long, requires = "run")]
    pub force: bool,
    /// Where.
    #[command(flatten)]
    pub remote: RemoteArgs,
}
