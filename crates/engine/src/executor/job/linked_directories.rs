//! Directories outside of the checkouts that variables list and in which something leads into one: a program that `npm link`
//! put into a directory of `PATH`, or the checkout itself in the directory above it, which `PYTHONPATH` lists.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lanewright_files::{atomic, directory, regular_file};
use lanewright_git::git_directory;
use lanewright_model::text::shell_line;

use super::inroads::Inroads;
use crate::executor::Result;

const PROGRAMS: &str = "PATH";

/// Variables that list directories in which packages are found by their names.
const PACKAGES: &[&str] = &["PYTHONPATH", "MYPYPATH", "NODE_PATH"];

/// What takes the places of such directories for a worktree, in git's own directory for it.
const OWN: &str = "lanewright.paths";

#[derive(Debug, Hash)]
pub(super) struct LinkedDirectory {
    variable: &'static str,
    /// As the variable names it.
    place: PathBuf,
    leading: BTreeMap<PathBuf, Target>,
    /// The other names in a directory of packages.
    others: Vec<PathBuf>,
}

#[derive(Debug, Hash)]
enum Target {
    /// Relative to a checkout.
    Place(PathBuf),
    /// An environment of Python that runs the code of a checkout: worktrees have no such place.
    Environment,
}

/// Those that `variables` list.
pub(super) fn linked_directories(checkouts: &[PathBuf], variables: &[(String, String)]) -> Vec<LinkedDirectory> {
    let mut found = Vec::new();
    for variable in PACKAGES.iter().copied().chain([PROGRAMS]) {
        let values = variables.iter().filter(|(name, _)| name == variable);
        let places = values.flat_map(|(_, value)| value.split(':')).map(Path::new);
        let is_outside = |place: &&Path| !checkouts.iter().any(|checkout| place.starts_with(checkout));
        let mut seen = BTreeSet::new();
        for place in places.filter(|place| place.is_absolute()).filter(is_outside) {
            // Of `/usr/bin` and `/bin`, which often leads to it, the first counts.
            let known = if variable == PROGRAMS { place.canonicalize().ok() } else { None };
            if !seen.insert(known.unwrap_or_else(|| place.to_owned())) {
                continue;
            }
            let (leading, others) = match variable {
                PROGRAMS => (programs(checkouts, place), Vec::new()),
                _ => packages(checkouts, place),
            };
            if !leading.is_empty() {
                found.push(LinkedDirectory { variable, place: place.to_owned(), leading, others });
            }
        }
    }
    found
}

/// Whether `program` is one that was written here.
pub(super) fn is_written(program: &Path) -> bool {
    program.components().any(|part| part.as_os_str() == OWN)
}

impl LinkedDirectory {
    pub(super) fn variable(&self) -> &'static str {
        self.variable
    }

    /// Another one for anything else that it holds: a slot, and what was written for it, outlives a process.
    fn own(&self, worktree: &Path) -> Result<PathBuf> {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        Ok(git_directory(worktree)?.join(OWN).join(format!("{:016x}", hasher.finish())))
    }

    /// Writes what takes its place for `worktree`.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, worktree: &Path) -> Result<()> {
        let own = self.own(worktree)?;
        directory::create_directory_unsynced(&own)?;
        for (name, target) in &self.leading {
            let path = own.join(name);
            match target {
                Target::Place(below) if self.variable != PROGRAMS => link(&worktree.join(below), &path)?,
                Target::Place(below) => write_program(&path, &self.program(name, Some(&worktree.join(below))))?,
                Target::Environment => write_program(&path, &self.program(name, None))?,
            }
        }
        self.others.iter().try_for_each(|name| link(&self.place.join(name), &own.join(name)))
    }

    /// The parts of `value` that name it are led to what was written for `worktree`. Programs that are not found there are
    /// found in it as before; packages are not, since Python merges those without a file of their own from all directories.
    pub(super) fn replace(&self, worktree: &Path, value: &str) -> String {
        let Some(own) = self.own(worktree).ok().filter(|own| own.is_dir()) else { return value.to_owned() };
        let replaced = value.split(':').map(|part| match Path::new(part) == self.place {
            true if self.variable == PROGRAMS => format!("{}:{part}", own.display()),
            true => own.display().to_string(),
            false => part.to_owned(),
        });
        replaced.collect::<Vec<_>>().join(":")
    }

    /// The worktree may have it once it is built.
    fn program(&self, name: &Path, of_worktree: Option<&Path>) -> String {
        let run = of_worktree.map(|program| {
            let program = shell_line([program.to_string_lossy()]);
            format!("[ -x {program} ] && exec {program} \"$@\"\n")
        });
        let lacking =
            of_worktree.map_or_else(String::new, |program| format!(", and {} does not exist", program.display()));
        let message = format!(
            "{}: not found: {} runs code of another checkout{lacking}",
            name.display(),
            self.place.join(name).display()
        );
        format!("#!/bin/sh\n{}echo {} >&2\nexit 127\n", run.unwrap_or_default(), shell_line([message]))
    }
}

fn link(target: &Path, path: &Path) -> Result<()> {
    if std::fs::read_link(path).is_ok_and(|known| known == target) {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        directory::create_directory_unsynced(above)?;
    }
    Ok(atomic::link(target, path)?)
}

fn write_program(path: &Path, text: &str) -> Result<()> {
    if regular_file::read(path).is_ok_and(|known| known == text.as_bytes()) {
        return Ok(());
    }
    Ok(atomic::replace_program(path, text.as_bytes())?)
}

/// The links in a directory of `PATH` that lead into a checkout, or to a program of an environment that does.
fn programs(checkouts: &[PathBuf], place: &Path) -> BTreeMap<PathBuf, Target> {
    let entries = directory::entries_with_kinds(place).unwrap_or_default();
    let links = entries.into_iter().filter(|(_, kind)| kind.is_symlink());
    let mut environments = BTreeMap::<PathBuf, bool>::new();
    let leading = links.filter_map(|(link, _)| {
        let (name, target) = (link.file_name()?.into(), link.canonicalize().ok()?);
        // The `python` of an environment is itself a link to one of the system.
        let is_program = |place: &PathBuf| *place == target || is_of_environment(place);
        if let Some(below) = places_of(&link).filter(is_program).find_map(|place| below(checkouts, &place)) {
            return Some((name, Target::Place(below)));
        }
        let environment = target.parent().filter(|bin| bin.ends_with("bin")).and_then(Path::parent)?;
        let leads = || {
            let inroads = Inroads::new(checkouts, environment);
            environment.join("pyvenv.cfg").is_file() && inroads.in_site_packages(environment).is_some()
        };
        let leads = *environments.entry(environment.to_owned()).or_insert_with(leads);
        leads.then_some((name, Target::Environment))
    });
    leading.collect()
}

fn is_of_environment(program: &Path) -> bool {
    program.parent().and_then(Path::parent).is_some_and(|environment| environment.join("pyvenv.cfg").is_file())
}

/// Where a link leads, step by step.
fn places_of(link: &Path) -> impl Iterator<Item = PathBuf> {
    let next = |link: &Path| {
        let target = link.parent()?.join(std::fs::read_link(link).ok()?);
        Some(target.parent()?.canonicalize().ok()?.join(target.file_name()?))
    };
    std::iter::successors(next(link), move |link| next(link)).take(MOST_LINKS)
}

/// As many as Linux follows.
const MOST_LINKS: usize = 40;

/// The packages in `place`, also those of scopes, that lead into a checkout, and the others.
fn packages(checkouts: &[PathBuf], place: &Path) -> (BTreeMap<PathBuf, Target>, Vec<PathBuf>) {
    let is_scope = |place: &Path| place.file_name().is_some_and(|name| name.as_bytes().starts_with(b"@"));
    let entries = |place: &Path| directory::entries_with_kinds(place).unwrap_or_default();
    let all = entries(place).into_iter().flat_map(|(path, kind)| match kind.is_dir() && is_scope(&path) {
        true => entries(&path),
        false => vec![(path, kind)],
    });
    let (mut leading, mut others) = (BTreeMap::new(), Vec::new());
    let root = place.canonicalize().unwrap_or_else(|_| place.to_owned());
    for (path, kind) in all {
        let Ok(name) = path.strip_prefix(place) else { continue };
        let target = if kind.is_symlink() { path.canonicalize().ok() } else { Some(root.join(name)) };
        match target.and_then(|target| below(checkouts, &target)) {
            Some(below) => drop(leading.insert(name.to_owned(), Target::Place(below))),
            None => others.push(name.to_owned()),
        }
    }
    (leading, others)
}

/// The path of `target` relative to the innermost checkout that it is in.
fn below(checkouts: &[PathBuf], target: &Path) -> Option<PathBuf> {
    checkouts.iter().find_map(|checkout| target.strip_prefix(checkout).ok()).map(Path::to_owned)
}
