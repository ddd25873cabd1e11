//! What of Lanewright's environment leads into a checkout of the user's. A job works in another worktree: it gets the same
//! place there, else a gate would run the checkout's programs and judge its code (decision 66).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lanewright_agents::runner::is_shared_place;
use lanewright_files::regular_file::{self, Links};
use lanewright_git::{GitError, JobVariables, Repository, git_directory};
use lanewright_model::digest::sha256;

use super::linked_directories::{LinkedDirectory, linked_directories};
use super::python::CheckoutPython;
use crate::executor::Result;

/// What ends a path within other text.
const ENDS: &[char] = &[' ', ',', ';', '"', '\''];

/// Name a directory that serves one worktree at a time. Cargo gives the products of the same package in different worktrees the
/// same names, and uv installs the worktree's own package there, so that a gate would judge another lane's.
const OF_ONE_WORKTREE: &[&str] =
    &["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR", "UV_PROJECT_ENVIRONMENT"];

/// Files of tools that have one cache for all worktrees of a repository, with the variables that name another one, and the
/// place that they use in the main worktree.
const CACHES: &[(&str, &str, &str)] = &[
    ("turbo.json", "TURBO_CACHE_DIR", ".turbo/cache"),
    ("nx.json", "NX_CACHE_DIRECTORY", ".nx/cache"),
    ("nx.json", "NX_WORKSPACE_DATA_DIRECTORY", ".nx/workspace-data"),
];

/// Name a file that each shell runs first.
const STARTUP_FILES: &[&str] = &["BASH_ENV", "ENV"];

const GO_WORKSPACE: &str = "go.work";

/// How much of a file that names places is read, in bytes.
const FILE_LIMIT: u64 = 1 << 16;

/// The variables that lead into a checkout, and those that lead out of it to what worktrees must not share.
#[derive(Debug, Default)]
pub struct Surroundings {
    checkouts: Vec<PathBuf>,
    variables: BTreeMap<String, String>,
    of_one_worktree: BTreeMap<String, PathBuf>,
    /// Variables of [`STARTUP_FILES`] whose file leads into a checkout.
    startup_files: Vec<&'static str>,
    /// Caches that no variable names.
    shared_caches: Vec<&'static (&'static str, &'static str, &'static str)>,
    /// A workspace of Go around a checkout that is in it.
    go_workspace: Option<PathBuf>,
    python: Option<CheckoutPython>,
    linked_directories: Vec<LinkedDirectory>,
    /// The committed links that are absolute paths, once they were looked for.
    absolute_links: OnceLock<Vec<PathBuf>>,
}

impl Surroundings {
    /// Those of this process that lead into a checkout of `repository`.
    ///
    /// # Errors
    /// The list of its worktrees cannot be read.
    pub fn of_process(repository: &Repository) -> Result<Self, GitError> {
        let variables = std::env::vars_os();
        let texts = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let texts: Vec<(String, String)> = texts.collect();
        let mut checkouts = repository.checkouts()?;
        checkouts.extend(aliases(&checkouts, &texts));
        let mut this = Self::new(checkouts, texts.clone());
        this.python = CheckoutPython::of(&this.checkouts, &texts);
        this.linked_directories = linked_directories(&this.checkouts, &texts);
        let is_listed = |name: &str| this.linked_directories.iter().any(|it| it.variable() == name);
        this.variables.extend(texts.into_iter().filter(|(name, _)| is_listed(name)));
        Ok(this)
    }

    /// Those of `variables` that lead into one of `checkouts`, which are absolute paths.
    ///
    /// A checkout that holds the home directory, as one of its dotfiles does, is none: what is installed there is for all.
    pub fn new(mut checkouts: Vec<PathBuf>, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables: BTreeMap<String, String> = variables.into_iter().collect();
        if let Some(home) = variables.get("HOME") {
            checkouts.retain(|checkout| !Path::new(home).starts_with(checkout));
        }
        let mut this = Self { checkouts, ..Self::default() };
        // A worktree may be below the main one.
        this.checkouts.sort_by_key(|checkout| std::cmp::Reverse(checkout.as_os_str().len()));
        let leads = |name: &&&str| {
            let text = variables.get(**name).and_then(|file| text_of(Path::new(file)));
            text.is_some_and(|text| text.lines().any(|line| this.first(line).is_some()))
        };
        this.startup_files = STARTUP_FILES.iter().filter(leads).copied().collect();
        this.shared_caches.extend(CACHES.iter().filter(|(_, name, _)| !variables.contains_key(*name)));
        if !variables.contains_key("GOWORK") {
            this.go_workspace = this.checkouts.iter().find_map(|checkout| go_workspace_around(checkout));
        }
        let leads = |(name, value): &(String, String)| {
            // A tool's home may be below a checkout, and is not all of it.
            let is_all = |place: &Place<'_>| place.below.is_empty() && name.ends_with("_HOME");
            let counts = |place: &Place<'_>| !is_shared_place(name) || is_all(place);
            value.split(':').any(|part| this.first(part).as_ref().is_some_and(counts))
        };
        let (leading, others): (BTreeMap<_, _>, BTreeMap<_, _>) = variables.into_iter().partition(leads);
        let places = others.into_iter().filter(|(name, _)| OF_ONE_WORKTREE.contains(&name.as_str()));
        let places: Vec<_> = places.map(|(name, value)| (name, PathBuf::from(value))).collect();
        (this.variables, this.of_one_worktree) =
            (leading, places.into_iter().filter(|(_, place)| place.is_absolute()).collect());
        this
    }

    /// The names of those that lead to what worktrees must not share.
    pub fn shared_names(&self) -> Vec<&str> {
        self.of_one_worktree.keys().map(String::as_str).collect()
    }

    /// The names of those that lead into a checkout.
    pub fn names(&self) -> Vec<&str> {
        let startup_files = self.startup_files.iter().copied().filter(|name| !self.variables.contains_key(*name));
        self.variables.keys().map(String::as_str).chain(startup_files).collect()
    }

    /// The file of a workspace of Go around a checkout that is in it: `go` in a worktree would use the checkout's packages.
    pub fn go_workspace(&self) -> Option<&Path> {
        self.go_workspace.as_deref()
    }

    /// The Python environment outside of the checkouts that runs the code of one.
    pub fn python(&self) -> Option<&CheckoutPython> {
        self.python.as_ref()
    }

    /// The checkouts, those within others first.
    pub(super) fn checkouts(&self) -> &[PathBuf] {
        &self.checkouts
    }

    /// The first of the committed links that are absolute paths for which `found` finds something. They are looked for in the
    /// first worktree that is asked about: what agents add of that kind is not committed.
    pub(super) fn first_committed_link<T>(
        &self,
        worktree: &Path,
        found: impl Fn(&Path) -> Option<T>,
    ) -> Result<Option<T>> {
        let links = match self.absolute_links.get() {
            Some(links) => links,
            None => {
                let mut links = lanewright_git::tracked_links(worktree)?;
                links.retain(|link| fs::read_link(worktree.join(link)).is_ok_and(|target| target.is_absolute()));
                self.absolute_links.get_or_init(|| links)
            }
        };
        Ok(links.iter().find_map(|link| found(&worktree.join(link))))
    }

    /// The user's `PATH`, where jobs get another one.
    pub(super) fn path(&self) -> Option<&str> {
        let of_python = || self.python.as_ref().map(|python| python.path.as_str());
        self.variables.get("PATH").map(String::as_str).or_else(of_python)
    }

    /// What a job in `worktree` whose plan sets `own` gets of each variable; `None`: nothing, because it has no such place.
    pub(super) fn for_job(&self, worktree: &Path, own: &BTreeMap<String, String>) -> BTreeMap<&str, Option<String>> {
        let mut variables = self.all_moved(worktree);
        if let Some(python) = &self.python
            && python.is_used(worktree, own, &variables)
        {
            python.replace(worktree, &mut variables);
        }
        variables
    }

    /// Writes what takes the places of directories in which something leads into a checkout, for jobs in `worktree`.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write_own_directories(&self, worktree: &Path) -> Result<()> {
        self.linked_directories.iter().try_for_each(|it| it.write(worktree))
    }

    /// Whether a job would use the environment of [`Self::python`].
    pub(super) fn uses_python(&self, worktree: &Path, own: &BTreeMap<String, String>) -> Option<&CheckoutPython> {
        self.python.as_ref().filter(|python| python.is_used(worktree, own, &self.all_moved(worktree)))
    }

    fn all_moved(&self, worktree: &Path) -> BTreeMap<&str, Option<String>> {
        let own = format!("lanewright-{}", &sha256(worktree.as_os_str().as_bytes())[..12]);
        let apart = |place: &PathBuf| place.join(&own).into_os_string().into_string().ok();
        let replaced = |name: &str, value: String| {
            let linked = self.linked_directories.iter().filter(|it| it.variable() == name);
            linked.fold(value, |value, it| it.replace(worktree, &value))
        };
        let moved = |name, value| self.moved(value, worktree).map(|value| replaced(name, value));
        let moved = self.variables.iter().map(|(name, value)| (name.as_str(), moved(name, value)));
        let moved = moved.chain(self.of_one_worktree.iter().map(|(name, place)| (name.as_str(), apart(place))));
        let caches = self.shared_caches.iter().filter(|(file, ..)| worktree.join(file).is_file());
        let caches = caches.map(|(_, name, place)| (*name, worktree.join(place).into_os_string().into_string().ok()));
        let go = self.go_workspace.iter().map(|_| ("GOWORK", Some("off".to_owned())));
        moved.chain(self.startup_files.iter().map(|name| (*name, None))).chain(caches).chain(go).collect()
    }

    fn moved(&self, value: &str, worktree: &Path) -> Option<String> {
        let mut parts = Vec::new();
        for part in value.split(':') {
            let (mut moved, mut rest) = (String::new(), part);
            while let Some(place) = self.first(rest) {
                let here = if place.below.is_empty() { worktree.to_owned() } else { worktree.join(place.below) };
                let is_whole = moved.is_empty() && place.before.is_empty() && place.after.is_empty();
                match here.exists() {
                    true => moved.extend([place.before, &here.to_string_lossy()]),
                    // Of a list the others stay.
                    false if is_whole => break,
                    false => return None,
                }
                rest = place.after;
            }
            if self.first(rest).is_none() {
                parts.push(moved + rest);
            }
        }
        (!parts.is_empty()).then(|| parts.join(":"))
    }

    fn first<'t>(&self, text: &'t str) -> Option<Place<'t>> {
        let places = self.checkouts.iter().filter_map(|checkout| Place::of(checkout.to_str()?, text));
        places.min_by_key(|place| place.before.len())
    }
}

impl JobVariables for Surroundings {
    fn at(&self, worktree: &Path) -> BTreeMap<&str, Option<String>> {
        // For a worktree that is not made yet there is no place.
        if git_directory(worktree).is_ok()
            && let Err(error) = self.write_own_directories(worktree)
        {
            tracing::warn!("{error}");
        }
        self.for_job(worktree, &BTreeMap::new())
    }
}

/// The `go.work` above `checkout` that has it as one of its modules, unless `checkout` has one of its own.
fn go_workspace_around(checkout: &Path) -> Option<PathBuf> {
    let file = checkout.ancestors().map(|place| place.join(GO_WORKSPACE)).find(|file| file.is_file())?;
    let root = file.parent().filter(|root| *root != checkout)?;
    let text = text_of(&file)?;
    let mut words = text.lines().flat_map(|line| line.split("//").next().unwrap_or_default().split_whitespace());
    let is_in = |word: &str| root.join(word.trim_matches('"')).canonicalize().is_ok_and(|it| it.starts_with(checkout));
    words.any(is_in).then_some(file)
}

fn text_of(file: &Path) -> Option<String> {
    regular_file::read_text_with(file, Links::Follow, FILE_LIMIT).ok()
}

/// The names by which paths in `variables` lead to `checkouts` through symbolic links: a shell keeps that by which it came.
fn aliases(checkouts: &[PathBuf], variables: &[(String, String)]) -> BTreeSet<PathBuf> {
    let separates = |character: char| character == ':' || character == '=' || ENDS.contains(&character);
    // A path may itself have what separates others.
    let named = variables.iter().map(|(_, value)| value.as_str());
    let named = named.flat_map(|value| value.split(separates).chain(value.split(':')).chain([value])).map(Path::new);
    let named: BTreeSet<&Path> = named.filter(|place| place.is_absolute()).collect();
    let alias = |named: &Path| {
        let place = named.canonicalize().ok()?;
        let lead = |checkout: &&PathBuf| place.starts_with(checkout) && !named.starts_with(checkout);
        checkouts.iter().filter(lead).find_map(|checkout| {
            let leads = |alias: &&Path| alias.canonicalize().is_ok_and(|it| it == *checkout);
            named.ancestors().find(leads).map(Path::to_owned)
        })
    };
    named.into_iter().filter_map(alias).collect()
}

/// Where text names a path in a checkout.
struct Place<'t> {
    before: &'t str,
    /// Relative to the checkout.
    below: &'t str,
    after: &'t str,
}

impl<'t> Place<'t> {
    fn of(checkout: &str, text: &'t str) -> Option<Self> {
        // The path may follow the letters of an option, or the slashes of a URL.
        let is_boundary = |at: usize| {
            let word = text[..at].rsplit(['=', ' ', ',', ';', '"', '\'']).next().unwrap_or_default();
            let is_option = word.strip_prefix('-').is_some_and(|rest| rest.chars().all(|it| it.is_ascii_alphabetic()));
            word.is_empty() || is_option || word == "//"
        };
        text.match_indices(checkout).find_map(|(at, _)| {
            let (before, rest) = (&text[..at], &text[at + checkout.len()..]);
            let end = if at == 0 { rest.len() } else { rest.find(ENDS).unwrap_or(rest.len()) };
            let (below, after) = rest.split_at(end);
            let is_place = (at == 0 || is_boundary(at)) && (below.is_empty() || below.starts_with('/'));
            is_place.then(|| Self { before, below: below.trim_matches('/'), after })
        })
    }
}

#[cfg(test)]
mod tests;
