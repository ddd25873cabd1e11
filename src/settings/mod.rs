//! Settings: layers from flag to default, each value with its origin (SPEC §2).
//!
//! Pure: the texts of the files and the environment come in as data. [`Layers::read`] checks everything that was
//! written anywhere and answers with every fault at once; what it returns can no longer fail.

pub mod environment;
mod fault;
mod file;
mod key;
mod render;
mod table;
mod template;
pub mod value;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};

use crate::model::{Plan, SnapshotRules, Timeouts};

pub use fault::{Fault, Faults, Place, Severity, nearest};
pub use file::ConfigFile;
pub use key::{Key, Kind};
pub use render::{Row, json, table};
pub use table::{KEYS, Layer, Settings};
pub use template::template;

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// What holds.
    pub value: T,
    /// Who says so.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A value with its origin.
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The command line; the flag as typed.
    Flag(&'static str),
    /// The variable of that name.
    Environment(String),
    /// The plan.
    Plan,
    /// A configuration file.
    File(Place),
    /// Nobody said anything.
    Default,
}

impl Origin {
    /// Whether the value was given for this one call and so also overrides what a plan says of single lanes.
    pub fn outranks_plan(&self) -> bool {
        matches!(self, Self::Flag(_) | Self::Environment(_))
    }

    /// One word for the layer.
    pub fn layer(&self) -> &'static str {
        match self {
            Self::Flag(_) => "flag",
            Self::Environment(_) => "environment",
            Self::Plan => "plan",
            Self::File(_) => "file",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => f.write_str(name),
            Self::Environment(name) => f.write_str(name),
            Self::File(place) => place.fmt(f),
            Self::Plan | Self::Default => f.write_str(self.layer()),
        }
    }
}

/// The environment as data.
pub type Environment = BTreeMap<String, OsString>;

/// Where a call happens: what defaults and relative paths are worked out from.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The main worktree's root, absolute and without symbolic links.
    pub repository: PathBuf,
    /// The current directory, absolute and without symbolic links.
    pub directory: PathBuf,
    /// The user's home, for paths in files that begin with `~/`.
    pub home: Option<PathBuf>,
    /// How many processors may be used.
    pub cores: u32,
}

impl Surroundings {
    fn cores_at_least_two(&self) -> NonZeroU32 {
        NonZeroU32::new(self.cores).unwrap_or(NonZeroU32::MIN).max(NonZeroU32::MIN.saturating_add(1))
    }

    fn sibling(&self, suffix: &str) -> PathBuf {
        let mut name = self.repository.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        self.repository.with_file_name(name)
    }

    /// `path` as a file's author means it: from the repository's root, `~/` from home.
    fn path_in_file(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => absolute(home, rest),
            _ => absolute(&self.repository, path),
        }
    }
}

/// `path` as seen from `base`. Leading `..` are taken off `base`, which therefore must hold no symbolic link.
pub fn absolute(base: &Path, path: &Path) -> PathBuf {
    let mut whole = base.to_owned();
    let mut components = path.components().peekable();
    while let Some(Component::ParentDir | Component::CurDir) = components.peek() {
        if components.next() == Some(Component::ParentDir) {
            whole.pop();
        }
    }
    whole.extend(components);
    whole
}

impl Settings {
    /// Patterns of secrets, besides what the environment says.
    pub fn redacted_patterns(&self) -> &[String] {
        self.redact.value.as_deref().unwrap_or_default()
    }

    /// When a running agent's worktree is kept.
    ///
    /// # Errors
    /// When a pattern is no regular expression, which no setting that was read is.
    pub fn snapshot_rules(&self) -> Result<SnapshotRules, regex::Error> {
        let usual = || SnapshotRules::RISKY.iter().map(|&pattern| pattern.to_owned()).collect();
        let risky: Vec<String> = self.checkpoint_before.value.clone().unwrap_or_else(usual);
        SnapshotRules::new(self.checkpoint_every.value, self.checkpoint_every_tool_calls.value, &risky)
    }
}

/// Everything that was said anywhere, checked, before the plan is known.
#[derive(Debug, Clone)]
pub struct Layers {
    above_plan: Layer,
    below_plan: Layer,
    defaults: Settings,
    /// What is odd but does no harm.
    pub warnings: Vec<Fault>,
}

impl Layers {
    /// Reads the environment and `files` (strongest first) below `flags`.
    ///
    /// # Errors
    /// Every fault of every source, warnings included, when one of them is an error.
    pub fn read(
        flags: Layer,
        variables: &Environment,
        files: &[ConfigFile],
        surroundings: &Surroundings,
    ) -> Result<Self, Faults> {
        let (environment, mut faults) = environment::read(variables, surroundings);
        let above_plan = flags.or(environment);
        let allow_unknown = above_plan.allow_unknown.as_ref().is_some_and(|setting| setting.value);
        let mut below_plan = Layer::default();
        for file in files {
            let (layer, more) = file::read(file, surroundings, allow_unknown);
            below_plan = below_plan.or(layer);
            faults.extend(more);
        }
        if faults.iter().any(|fault| fault.severity == Severity::Error) {
            return Err(Faults(faults));
        }
        let defaults = Settings::defaults(surroundings);
        Ok(Self { above_plan, below_plan, defaults, warnings: faults })
    }

    /// The settings that hold for `plan`, or where no plan is involved.
    pub fn resolve(&self, plan: Option<&Plan>) -> Settings {
        let plan = plan.map(plan_layer).unwrap_or_default();
        self.above_plan.clone().or(plan).or(self.below_plan.clone()).complete(self.defaults.clone())
    }
}

fn plan_layer(plan: &Plan) -> Layer {
    // A plan's `kill_after` is never absent, so one that says what the default says cannot be told from silence.
    let kill_after = plan.timeouts.kill_after;
    let said = (kill_after != Timeouts::default().kill_after).then_some(kill_after);
    Layer {
        base: plan.base_branch.clone().map(|base| Setting::new(Some(base), Origin::Plan)),
        max_parallel: plan.max_parallel.and_then(NonZeroU32::new).map(|count| Setting::new(count, Origin::Plan)),
        merge: plan.merge.map(|merge| Setting::new(merge, Origin::Plan)),
        kill_after: said.map(|duration| Setting::new(duration, Origin::Plan)),
        ..Layer::default()
    }
}

pub use crate::model::Progress;

crate::model::word_enum! {
    /// What to do when a live session holds the run, the lane or the plan.
    OnLockConflict {
        /// Say who holds it and exit with 4.
        Fail = "fail",
        /// `execute-lane`: work on another lane that is ready; everywhere else as `fail`.
        Next = "next",
        /// Wait until it is free.
        Wait = "wait",
    }
}

crate::model::word_enum! {
    /// What a resume does about files that were changed while nothing of the run was at work.
    OnConflict {
        /// Refuse, and list them.
        Fail = "fail",
        /// Keep them in snapshots and go on with them.
        Override = "override",
    }
}

#[cfg(test)]
mod tests;
