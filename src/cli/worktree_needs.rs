//! What a new worktree lacks that the user's checkout has: dependencies, and files that are not in git.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lanewright_git::{self as git, Repository};
use lanewright_model::dependencies::{DEPENDENCIES, LOCAL_FILES};
use lanewright_model::{CommitId, Lane};

use super::Result;

/// What a worktree lacks, and how it gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// Relative to the repository's root.
    pub(crate) path: String,
    /// The lock file whose packages are in it; `None`: it is a file.
    pub(crate) lock_file: Option<String>,
    /// The command that installs it.
    pub(crate) setup: Option<String>,
    /// Whether git ignores it and it works in another place, so that `copy` takes it.
    pub(crate) is_ignored: bool,
}

/// How many directories are looked at for lock files, and how deep.
const MOST_DIRECTORIES: usize = 500;
const DEPTH: usize = 2;

/// What worktrees of `base` lack.
pub(crate) fn needs(repository: &Repository, base: &CommitId) -> Result<Vec<Need>> {
    let main = repository.main_worktree();
    let mut found = Vec::<Need>::new();
    for directory in directories(main) {
        for known in DEPENDENCIES {
            let place = known.places.iter().find(|place| main.join(&directory).join(place).is_dir());
            let Some(place) = place.filter(|_| main.join(&directory).join(known.lock_file).is_file()) else { continue };
            let below = |name: &str| directory.join(name).to_string_lossy().into_owned();
            let path = below(place);
            if found.iter().any(|need| need.path == path)
                || !has(repository, base, &directory, known.lock_file)?
                || has(repository, base, &directory, place.split('/').next().unwrap_or(place))?
            {
                continue;
            }
            let setup = match directory.to_string_lossy() {
                root if root.is_empty() => known.install.to_owned(),
                directory => format!("cd '{directory}' && {}", known.install),
            };
            // A virtual environment names its own place everywhere.
            let is_movable = !main.join(&path).join("pyvenv.cfg").exists();
            let is_ignored = is_movable && git::is_ignored(main, &format!("{path}/"))?;
            found.push(Need { path, lock_file: Some(below(known.lock_file)), setup: Some(setup), is_ignored });
        }
    }
    for name in LOCAL_FILES.iter().filter(|name| main.join(name).is_file()) {
        if !has(repository, base, Path::new(""), name)? {
            let (path, is_ignored) = ((*name).to_owned(), git::is_ignored(main, name)?);
            found.push(Need { path, lock_file: None, setup: None, is_ignored });
        }
    }
    Ok(found)
}

/// The root and what is below it, without hidden directories and dependencies, relative to it.
fn directories(root: &Path) -> Vec<PathBuf> {
    let is_installed = |name: &str| DEPENDENCIES.iter().any(|known| known.places.contains(&name));
    let mut found = vec![PathBuf::new()];
    let mut at = 0;
    while let Some(directory) = found.get(at).cloned().filter(|_| found.len() < MOST_DIRECTORIES) {
        at += 1;
        if directory.iter().count() == DEPTH {
            continue;
        }
        let entries = fs::read_dir(root.join(&directory)).into_iter().flatten().flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let names = inner.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.') && !is_installed(name)).collect();
        names.sort_unstable();
        found.extend(names.into_iter().map(|name| directory.join(name)));
    }
    found
}

/// Whether `base` has submodules, which a worktree has without their files.
pub(crate) fn has_submodules(repository: &Repository, base: &CommitId) -> Result<bool> {
    has(repository, base, Path::new(""), ".gitmodules")
}

fn has(repository: &Repository, base: &CommitId, directory: &Path, name: &str) -> Result<bool> {
    let names = repository.names_in(base, &directory.to_string_lossy())?;
    Ok(names.iter().any(|known| known.rsplit('/').next() == Some(name)))
}

/// Which files are copied into worktrees, by the globs that name them.
pub(crate) struct CopiedPaths<'r> {
    repository: &'r Repository,
    known: BTreeMap<Vec<String>, Vec<PathBuf>>,
}

impl<'r> CopiedPaths<'r> {
    pub(crate) fn of(repository: &'r Repository) -> Self {
        Self { repository, known: BTreeMap::new() }
    }

    /// Whether the worktrees of `lane` get what they need. A set-up is taken for one that installs dependencies.
    pub(crate) fn bring(&mut self, need: &Need, lane: &Lane) -> Result<bool> {
        if need.setup.is_some() && !lane.setup.is_empty() {
            return Ok(true);
        }
        if !self.known.contains_key(&lane.copy) {
            let patterns: Vec<&str> = lane.copy.iter().map(String::as_str).collect();
            self.known.insert(lane.copy.clone(), git::files_to_copy(self.repository, &patterns)?);
        }
        Ok(self.known.get(&lane.copy).into_iter().flatten().any(|path| path.starts_with(&need.path)))
    }
}
