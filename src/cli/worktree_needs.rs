//! What a new worktree lacks that the user's checkout has: dependencies, and files that are not in git.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lanewright_files::regular_file::{self, Links};
use lanewright_git::{self as git, Repository};
use lanewright_model::dependencies::{DEPENDENCIES, LOCAL_FILES, LOCK_FILES, MANIFESTS};
use lanewright_model::{CommitId, Lane};
use lanewright_plan::Package;

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
    /// The glob for `copy` that takes it, and others of its kind.
    pub(crate) glob: String,
}

/// How many directories are looked at for lock files, and how deep.
const MOST_DIRECTORIES: usize = 500;
const DEPTH: usize = 2;

/// What worktrees of `base` lack.
pub(crate) fn needs(repository: &Repository, base: &CommitId) -> Result<Vec<Need>> {
    let main = repository.main_worktree();
    let mut found = Vec::<Need>::new();
    let directories = directories(main);
    for directory in &directories {
        for known in DEPENDENCIES.iter().filter(|known| main.join(directory).join(known.lock_file).is_file()) {
            let place = known.places.iter().find(|place| main.join(directory).join(place).is_dir());
            let Some(place) = place else { continue };
            let below = |name: &str| directory.join(name).to_string_lossy().into_owned();
            let path = below(place);
            if found.iter().any(|need| need.path == path)
                || !has(repository, base, directory, known.lock_file)?
                || has(repository, base, directory, place.split('/').next().unwrap_or(place))?
            {
                continue;
            }
            let setup = match directory.to_string_lossy() {
                root if root.is_empty() => known.install.to_owned(),
                directory => format!("cd '{directory}' && {}", known.install),
            };
            // Virtual environments and the programs of pnpm name their own place.
            let is_movable = !main.join(&path).join("pyvenv.cfg").exists() && known.lock_file != "pnpm-lock.yaml";
            let is_ignored = is_movable && git::is_ignored(main, &format!("{path}/"))?;
            let glob = path.clone();
            found.push(Need { path, lock_file: Some(below(known.lock_file)), setup: Some(setup), is_ignored, glob });
        }
    }
    for nested in packages_of_workspaces(main, &directories, &found) {
        let is_ignored = git::is_ignored(main, &format!("{}/", nested.path))?;
        found.push(Need { is_ignored, ..nested });
    }
    for name in LOCAL_FILES.iter().filter(|name| main.join(name).is_file()) {
        if !has(repository, base, Path::new(""), name)? {
            let (path, is_ignored) = ((*name).to_owned(), git::is_ignored(main, name)?);
            found.push(Need { glob: path.clone(), path, lock_file: None, setup: None, is_ignored });
        }
    }
    Ok(found)
}

/// The first package of each directory of packages whose own dependencies are installed by the lock file of its workspace:
/// `packages/a/node_modules`.
fn packages_of_workspaces(main: &Path, directories: &[PathBuf], found: &[Need]) -> Vec<Need> {
    let mut nested = Vec::<Need>::new();
    for workspace in found {
        let Some((root, name)) = Path::new(&workspace.path).parent().zip(Path::new(&workspace.path).file_name()) else {
            continue;
        };
        for directory in directories.iter().filter(|it| it.as_path() != root && it.starts_with(root)) {
            let has_lock_file = DEPENDENCIES.iter().any(|known| main.join(directory).join(known.lock_file).is_file());
            // A glob with wildcards takes nothing below what it matches.
            let glob = directory.with_file_name("*").join(name).join("**").to_string_lossy().into_owned();
            let is_new = || !nested.iter().any(|known| known.glob == glob);
            if name == "node_modules" && !has_lock_file && main.join(directory).join(name).is_dir() && is_new() {
                let path = directory.join(name).to_string_lossy().into_owned();
                nested.push(Need { path, glob, ..workspace.clone() });
            }
        }
    }
    nested
}

/// How much of a file that may name places is read, in bytes.
const NAMING_LIMIT: u64 = 1 << 20;

/// The files of the checkout that name it by its absolute path, relative to its root, with the number of the line.
pub(crate) fn files_naming_checkout(repository: &Repository) -> Vec<(String, usize)> {
    let main = repository.main_worktree();
    let names = |directory: &Path| {
        let local: &[&str] = if directory.as_os_str().is_empty() { LOCAL_FILES } else { &[] };
        [MANIFESTS, local].concat()
    };
    let mut found = Vec::new();
    for directory in directories(main) {
        for path in names(&directory).into_iter().map(|name| directory.join(name)) {
            let Ok(text) = regular_file::read_text_with(&main.join(&path), Links::Refuse, NAMING_LIMIT) else {
                continue;
            };
            if let Some(line) = text.lines().position(|line| names_place(line, main)) {
                found.push((path.to_string_lossy().into_owned(), line + 1));
            }
        }
    }
    found
}

/// Whether the line has the path `place`, or one below it.
fn names_place(line: &str, place: &Path) -> bool {
    let Some(place) = place.to_str().filter(|place| place.len() > 1) else { return false };
    let continues = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || "-_.+".contains(next));
    let is_comment = line.trim_start().starts_with(['#', ';']) || line.trim_start().starts_with("//");
    !is_comment && line.match_indices(place).any(|(at, _)| !continues(&line[at + place.len()..]))
}

/// The manifest of a workspace of cargo in the checkout at `main`, around `root`, that does not exclude it, and the path of
/// `root` below it. `None` also for one at the top without `exclude`: worktrees have it as well, and no package outside.
pub(crate) fn cargo_workspace_around(main: &Path, root: &Path) -> Option<(PathBuf, PathBuf)> {
    let within = root.ancestors().skip(1).take_while(|place| place.starts_with(main));
    { within }.find_map(|place| {
        let manifest = place.join("Cargo.toml");
        let text = regular_file::read_text_with(&manifest, Links::Refuse, NAMING_LIMIT).ok()?;
        let table: toml::Table = toml::from_str(&text).ok()?;
        let excluded = table.get("workspace")?.as_table()?.get("exclude").and_then(|it| it.as_array());
        let mut excluded = excluded.into_iter().flatten().filter_map(|it| it.as_str()).peekable();
        let has_others = place != main || excluded.peek().is_some();
        let is_around = has_others && !excluded.any(|it| root.starts_with(place.join(it)));
        is_around.then(|| Some((manifest, root.strip_prefix(place).ok()?.to_owned())))?
    })
}

/// The packages of the checkout at `root`, with their scripts.
pub(crate) fn package_scripts(root: &Path) -> Vec<Package> {
    let read = |directory: &PathBuf| {
        let file = root.join(directory).join("package.json");
        Package::read(directory.to_str()?, &regular_file::read_text_with(&file, Links::Refuse, NAMING_LIMIT).ok()?)
    };
    directories(root).iter().filter_map(read).collect()
}

/// The lock files of `base`, each with the command that makes it again.
pub(crate) fn lock_files(repository: &Repository, base: &CommitId) -> Result<Vec<(&'static str, &'static str)>> {
    let mut found = Vec::new();
    for directory in directories(repository.main_worktree()) {
        let names = repository.names_in(base, &directory.to_string_lossy())?;
        let is_there = |lock_file: &str| names.iter().any(|known| known.rsplit('/').next() == Some(lock_file));
        found.extend(LOCK_FILES.iter().copied().filter(|(lock_file, _)| is_there(lock_file)));
    }
    found.sort_unstable();
    found.dedup();
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
