//! What every command needs: the directory, the environment as data, and the settings.

use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Result;
use lanewright_files::regular_file::{self, Links};
use lanewright_files::timing::Timings;
use lanewright_git::{EnclosingWorktree, Repository};
use lanewright_plan::settings::environment::{HOME, XDG_CONFIG_HOME};
use lanewright_plan::settings::{
    ConfigFile, Environment, Invocation, Layer, Layers, Origin, Progress, Settings, absolute,
};

use super::args::{Format, GlobalArgs};
use super::error::{ExitStatus, Hint};
use super::printer::Printer;
use crate::progress::{Activity, choose, is_unattended};

/// The largest configuration file, in bytes.
const LARGEST_CONFIG: u64 = 1 << 20;

/// The name of the repository's configuration file, in the main worktree's root.
pub(crate) const REPOSITORY_CONFIG: &str = "lanewright.toml";

/// Its name before the program was called Lanewright (decision 41). Ignoring it would run a plan without its settings.
const FORMER_CONFIG: &str = "lanekeeper.toml";

#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) printer: Printer,
    /// The current directory, or what `-C` says; absolute and without symbolic links.
    pub(crate) directory: PathBuf,
    /// Whether `-C` named it.
    is_named: bool,
    /// The environment; variables whose names are not UTF-8 are left out.
    pub(crate) environment: Environment,
    /// What the flags of every command set.
    pub(crate) places: Layer,
    pub(crate) timings: Option<Timings>,
}

impl Context {
    pub(crate) fn new(global: &GlobalArgs, printer: Printer) -> Result<Self> {
        let directory = global.directory.clone().unwrap_or_else(|| ".".into());
        let directory = fs::canonicalize(&directory).map_err(|error| unreadable(&directory, &error))?;
        let named = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let places = global.layer(&directory);
        let is_named = global.directory.is_some();
        Ok(Self { printer, directory, is_named, environment: named.collect(), places, timings: None })
    }

    /// The directory that hints have to name with `-C`.
    pub(crate) fn named_directory(&self) -> Option<PathBuf> {
        self.is_named.then(|| self.directory.clone())
    }

    /// The root of the repository's main worktree, without symbolic links.
    pub(crate) fn main_worktree(&self) -> Result<PathBuf> {
        // Without starting git, which would take most of the time of a command that only reads.
        if let Some(around) = EnclosingWorktree::of(&self.directory) {
            return Ok(around.main);
        }
        let repository = Repository::locate(&self.directory)?;
        let root = repository.main_worktree();
        fs::canonicalize(root).map_err(|error| unreadable(root, &error))
    }

    /// Reads the configuration files and the environment below `flags`, and prints warnings.
    pub(crate) fn layers(&self, flags: Layer) -> Result<Layers> {
        self.layers_in(self.main_worktree()?, flags)
    }

    /// The same where no repository is needed: outside of one, the current directory is used.
    pub(crate) fn layers_anywhere(&self, flags: Layer) -> Result<Layers> {
        self.layers_in(self.main_worktree().unwrap_or_else(|_| self.directory.clone()), flags)
    }

    /// The same for the repository whose main worktree is `repository`.
    pub(crate) fn layers_in(&self, repository: PathBuf, flags: Layer) -> Result<Layers> {
        let former = repository.join(FORMER_CONFIG);
        if former.exists() {
            return Err(ExitStatus::Usage
                .error(format!("{} is not read", former.display()))
                .hint(format!("rename it to {REPOSITORY_CONFIG}")));
        }
        let file = read_if_there(repository.join(REPOSITORY_CONFIG))?;
        self.layers_above(repository, file, flags)
    }

    /// The same with `file` in place of the configuration file in the main worktree.
    pub(crate) fn layers_above(&self, repository: PathBuf, file: Option<ConfigFile>, flags: Layer) -> Result<Layers> {
        let invocation = self.invocation(repository);
        let of_the_user = self.user_config().map(read_if_there).transpose()?.flatten();
        let files: Vec<ConfigFile> = file.into_iter().chain(of_the_user).collect();
        let layers = Layers::read(flags.or(self.places.clone()), &self.environment, &files, &invocation)?;
        for warning in &layers.warnings {
            self.printer.warning(warning, warning.help.as_slice());
        }
        Ok(layers)
    }

    /// How progress is shown on standard error.
    pub(crate) fn progress(&self, settings: &Settings) -> Progress {
        let asked_for = settings.progress.origin != Origin::Default;
        let redraws = io::stderr().is_terminal() && (asked_for || !is_unattended(&self.environment));
        let term = self.environment.get("TERM").and_then(|term| term.to_str());
        choose(settings.progress.value, redraws, term)
    }

    /// Shows `what` until it is dropped, with `total` if that is known. Without a terminal only where lines are asked for;
    /// never beside JSON, because then standard error is JSON, too.
    pub(crate) fn activity(&self, settings: &Settings, what: impl Display, total: Option<usize>) -> Activity {
        let is_seen = settings.progress.value == Progress::Plain || io::stderr().is_terminal();
        let progress = match self.printer.format() {
            Format::Text if is_seen => self.progress(settings),
            Format::Text | Format::Json => Progress::None,
        };
        Activity::start(progress, what, total)
    }

    fn invocation(&self, repository: PathBuf) -> Invocation {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Invocation {
            repository,
            directory: self.directory.clone(),
            home: self.absolute_path_in(HOME),
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
        }
    }

    fn user_config(&self) -> Option<PathBuf> {
        let home = || self.absolute_path_in(HOME).map(|home| home.join(".config"));
        self.absolute_path_in(XDG_CONFIG_HOME).or_else(home).map(|config| config.join("lanewright/config.toml"))
    }

    /// The XDG base directory specification has relative paths ignored.
    fn absolute_path_in(&self, variable: &str) -> Option<PathBuf> {
        self.environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

/// A repository that was named: a path, seen from `base`, becomes absolute, a URL stays what it is.
pub(crate) fn path_or_address(base: &Path, named: &str) -> String {
    let path = absolute(base, Path::new(named));
    if path.exists() { path.to_string_lossy().into_owned() } else { named.to_owned() }
}

fn read_if_there(path: PathBuf) -> Result<Option<ConfigFile>> {
    match regular_file::read_text_with(&path, Links::Follow, LARGEST_CONFIG) {
        Ok(text) => {
            tracing::debug!(path = %path.display(), "configuration file read");
            Ok(Some(ConfigFile { path, text }))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unreadable(&path, &error)),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    ExitStatus::Usage.error(format!("cannot read {}: {error}", path.display()))
}
