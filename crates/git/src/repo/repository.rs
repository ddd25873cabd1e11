//! The repository: where it is.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lanewright_files::directory::with_suffix;
use lanewright_files::{atomic, regular_file, remove_unfinished};
use lanewright_model::CommitId;

use crate::command::{Git, GitError, Result, io_error, path_text, read_line};
use crate::repo::{
    CommitRules, Configuration, ConfigurationEntry, DurableObjects, Guarded, Handles, KnownConfiguration, LeftOutRules,
    RecentObjects, entries, git_directory,
};

/// What jobs in a worktree get of the variables of this process.
pub trait JobVariables: fmt::Debug + Send + Sync {
    /// Those that differ in `worktree`, by name; `None`: jobs there do not get it.
    fn at(&self, worktree: &Path) -> BTreeMap<&str, Option<String>>;
}

/// A repository with a main worktree; clones share what this process remembers of it.
#[derive(Debug, Clone)]
pub struct Repository {
    main: PathBuf,
    common: PathBuf,
    /// The root of the worktree in which it was found.
    pub(crate) from: PathBuf,
    known_configuration: KnownConfiguration,
    pub(crate) durable_objects: DurableObjects,
    pub(crate) recent_objects: RecentObjects,
    pub(crate) handles: Handles,
    pub(crate) left_out_rules: Arc<LeftOutRules>,
    pub(crate) commit_rules: Arc<CommitRules>,
    job_variables: Option<Arc<dyn JobVariables>>,
    /// What was kept on the way, for the user to know.
    notices: Arc<Mutex<Vec<String>>>,
}

impl Repository {
    /// Finds the repository that `from` belongs to, whether or not it has a commit.
    pub fn locate(from: &Path) -> Result<Self> {
        let common = common_directory(from)?;
        let inside = worktree_around(from)?;
        let main = match main_worktree(&common)? {
            Some(main) => main,
            None => inside
                .clone()
                .filter(|inside| !is_linked(inside))
                .ok_or_else(|| GitError::NoMainWorktree { common: common.clone() })?,
        };
        let from = inside.unwrap_or_else(|| main.clone());
        let repository = Self {
            main,
            common,
            from,
            known_configuration: KnownConfiguration::default(),
            durable_objects: DurableObjects::default(),
            recent_objects: RecentObjects::default(),
            handles: Handles::default(),
            left_out_rules: Arc::default(),
            commit_rules: Arc::default(),
            job_variables: None,
            notices: Arc::default(),
        };
        repository.refuse_foreign_ref_format()?;
        Ok(repository)
    }

    /// Notes what the user should know of a work that is about something else.
    pub(crate) fn notice(&self, what: &impl ToString) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_string());
    }

    /// What was noted since the last time, a sentence each.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same repository with `rules` for what commits and snapshots leave out.
    #[must_use]
    pub fn leaving_out(self, rules: LeftOutRules) -> Self {
        Self { left_out_rules: Arc::new(rules), ..self }
    }

    /// The same repository with `rules` for how commits are made.
    #[must_use]
    pub fn committing(self, rules: CommitRules) -> Self {
        Self { commit_rules: Arc::new(rules), ..self }
    }

    /// The same repository, whose hooks get `variables` in the worktrees of lanes, as jobs there do: else they would run the
    /// programs of the user's checkout.
    #[must_use]
    pub fn giving_hooks(self, variables: Arc<dyn JobVariables>) -> Self {
        Self { job_variables: Some(variables), ..self }
    }

    /// What hooks get of the variables of this process for `worktree`, which is a lane's. Git's own stay: they say how it reaches
    /// repositories.
    pub(crate) fn variables_at(&self, worktree: &Path) -> BTreeMap<&str, Option<String>> {
        let mut variables = self.job_variables.as_ref().map(|variables| variables.at(worktree)).unwrap_or_default();
        variables.retain(|name, _| !name.starts_with("GIT_"));
        variables
    }

    /// The repository in `directory`, which is made if it is not there: nothing is checked out in it, it has the remote `name`
    /// at `url`, and the objects of `lender`, too. What a process that was killed left of it is replaced.
    pub fn open_or_create(directory: &Path, (name, url): (&str, &str), lender: Option<&Self>) -> Result<Self> {
        if !directory.exists() {
            // In one step, and its configuration is never written again: a process that dies leaves no lock there.
            let made = with_suffix(directory, ".unfinished");
            atomic::remove_all(&made).map_err(io_error("remove", &made))?;
            fs::create_dir_all(&made).map_err(io_error("create", &made))?;
            let git = |words: &[&str]| Git::searching(&made).args(words).run();
            git(&["init", "--quiet", "--template=", "--initial-branch=nothing"])?;
            git(&["config", &format!("remote.{name}.url"), url])?;
            if let Some(lender) = lender {
                let objects = lender.common.join("objects");
                let alternates = made.join(".git/objects/info/alternates");
                atomic::write(&alternates, format!("{}\n", objects.display()).as_bytes())?;
            }
            atomic::rename(&made, directory)?;
        }
        Self::locate(directory)
    }

    /// Every other extension that git knows changes no file that Lanewright reads or writes itself: where libgit2
    /// refuses one, the git program is asked.
    fn refuse_foreign_ref_format(&self) -> Result<()> {
        match self.configuration()?.get("extensions.refstorage") {
            Some(format) if format != "files" => {
                Err(GitError::RefFormat { path: self.main.clone(), format: format.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// The main worktree's root; absolute, without symbolic links. Of a bare repository it is the worktree of the branch that
    /// its `HEAD` names.
    pub fn main_worktree(&self) -> &Path {
        &self.main
    }

    /// Keeps the worktree that stands for the main one of a bare repository, and with it the state of runs: it is found again
    /// whatever is checked out in it, and `git worktree remove` refuses it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn hold_main_worktree(&self) -> Result<()> {
        let own = git_directory(&self.main)?;
        if !own.join("commondir").exists() || held_main_worktree(&self.common)?.as_ref() == Some(&self.main) {
            return Ok(());
        }
        let record = self.own_directory()?.join("main-worktree");
        atomic::write(&record, self.main.as_os_str().as_encoded_bytes())?;
        let lock = own.join("locked");
        if lock.exists() { Ok(()) } else { Ok(atomic::write(&lock, b"it has the state of Lanewright's runs\n")?) }
    }

    /// The directory that all worktrees share (`.git` of the main worktree, or the bare repository); absolute, without symbolic links.
    pub fn common_dir(&self) -> &Path {
        &self.common
    }

    /// Keeps `patterns` out of `git status` in every worktree, through `info/exclude`; other lines stay.
    pub fn ensure_excluded(&self, patterns: &[&str]) -> Result<()> {
        self.holding(Guarded::Admin, |_| add_excluded(&self.common, patterns).map(drop))
    }

    /// Keeps `directory`, which is not a part of this repository, out of `git status` of the repository around it, in whose
    /// worktree it may lie: `git add --all` there would take the worktrees in it as submodules. Returns the file in which that
    /// is written, if it was not yet.
    ///
    /// # Errors
    /// That file cannot be written.
    pub fn exclude_from_outer(&self, directory: &Path) -> Result<Option<PathBuf>> {
        let Some(outer) = directory.ancestors().skip(1).find(|place| place.join(".git").exists()) else {
            return Ok(None);
        };
        let Ok(own) = git_directory(outer) else { return Ok(None) };
        let common = read_line(&own.join("commondir")).map_or(own.clone(), |common| own.join(common));
        let Some(below) = directory.strip_prefix(outer).ok().and_then(Path::to_str) else { return Ok(None) };
        let pattern = format!("/{}/", literal_pattern(below));
        let added = self.holding(Guarded::Admin, |_| add_excluded(&common, &[&pattern]))?;
        Ok(added.then(|| exclude_file(&common)))
    }

    /// Whether git does not record executable bits of files, because `core.fileMode` is false.
    ///
    /// # Errors
    /// Git cannot read its settings.
    pub fn ignores_modes(&self) -> Result<bool> {
        Ok(self.configuration()?.flag("core.filemode") == Some(false))
    }

    /// Makes the user's checkout a worktree again, as it was when the repository was located: `git init` with `GIT_DIR`, as
    /// tests that a gate runs may do, sets `core.bare`, and git refuses to work in the checkout.
    ///
    /// # Errors
    /// Git cannot read or write its settings.
    pub fn restore_worktree_setting(&self) -> Result<()> {
        // Without a process while the files of settings are as they were.
        let is_bare = || self.configuration().map(|it| it.flag("core.bare") == Some(true));
        if !is_bare()? || is_linked(&self.main) {
            return Ok(());
        }
        let mut tries = 1;
        while let Err(error) = self.git().args(["config", "core.bare", "false"]).run() {
            // Another lane may be at it, too.
            if !is_bare()? {
                return Ok(());
            }
            if tries == LOCK_TRIES {
                return Err(error.into());
            }
            tries += 1;
            std::thread::sleep(LOCK_WAIT);
        }
        self.notice(&format!(
            "git's setting core.bare of {} was set to true during the run, and is false again: `git init` with GIT_DIR does that, \
             perhaps in a test that a gate runs",
            self.main.display()
        ));
        Ok(())
    }

    pub(crate) fn git(&self) -> Git<'_> {
        Git::new(&self.main)
    }

    /// All settings of git that count in the main worktree, in the order in which git reads them; one may be there several
    /// times.
    ///
    /// # Errors
    /// Git cannot read one of the files.
    pub fn configuration_entries(&self) -> Result<Vec<ConfigurationEntry>> {
        entries(self)
    }

    pub(crate) fn configuration(&self) -> Result<Arc<Configuration>> {
        self.known_configuration.now(self)
    }
}

pub fn branch_reference(name: &str) -> String {
    format!("refs/heads/{name}")
}

pub(crate) fn commit_id(answer: &[u8]) -> Result<CommitId> {
    let text = path_text(answer.trim_ascii_end());
    CommitId::new(&text).map_err(|_| GitError::NoCommitName { text })
}

/// The same where each line is one.
pub(crate) fn commit_ids(answer: &[u8]) -> Result<Vec<CommitId>> {
    answer.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(commit_id).collect()
}

fn common_directory(from: &Path) -> Result<PathBuf> {
    let git = Git::searching(from).args(["rev-parse", "--path-format=absolute", "--git-common-dir"]);
    let output = git.attempt()?;
    if output.status.success() {
        return real_path(path_line(output.stdout));
    }
    let nowhere = String::from_utf8_lossy(&output.stderr).contains("not a git repository");
    Err(if nowhere { GitError::NotARepository { from: from.to_owned() } } else { git.failure(&output).into() })
}

/// The worktree that `from` is in; `None`: it is in the repository's own directory.
fn worktree_around(from: &Path) -> Result<Option<PathBuf>> {
    let output = Git::searching(from).args(["rev-parse", "--show-toplevel"]).attempt()?;
    if output.status.success() { real_path(path_line(output.stdout)).map(Some) } else { Ok(None) }
}

/// Whether a worktree is not the main one: git's directory for it then leads to the common one.
fn is_linked(worktree: &Path) -> bool {
    git_directory(worktree).is_ok_and(|directory| directory.join("commondir").exists())
}

/// The main worktree according to the repository's settings and its name; `None`: they do not name it. A bare repository has
/// none: a worktree of its own branch stands for it.
fn main_worktree(common: &Path) -> Result<Option<PathBuf>> {
    let setting = |name: &str, kind: &str| {
        let git = Git::searching(common).arg("--git-dir").arg(common).args(["config", kind, "--get", name]);
        git.attempt().map(|output| path_line(output.stdout))
    };
    if setting("core.bare", "--bool")? == Path::new("true") {
        if let Some(held) = held_main_worktree(common)? {
            return Ok(Some(held));
        }
        return worktree_of_head(common)?.map(Some).ok_or_else(|| GitError::Bare { path: common.to_owned() });
    }
    let named = setting("core.worktree", "--path")?;
    if !named.as_os_str().is_empty() {
        return real_path(common.join(named)).map(Some);
    }
    let usual = common.file_name().is_some_and(|name| name == ".git");
    Ok(common.parent().filter(|_| usual).map(Path::to_owned))
}

/// How often git's settings are written while another program has their lock, and the wait in between.
const LOCK_TRIES: u32 = 20;
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// Where it is written which worktree stands for the main one, below a bare repository.
const MAIN_WORKTREE: &str = "lanewright/main-worktree";

/// Of a bare repository: the worktree that a run has taken for the main one, whatever is checked out there now.
fn held_main_worktree(common: &Path) -> Result<Option<PathBuf>> {
    let Some(text) = regular_file::read_if_there(&common.join(MAIN_WORKTREE))? else { return Ok(None) };
    let place = PathBuf::from(std::ffi::OsString::from_vec(text));
    if place.join(".git").exists() { real_path(place).map(Some) } else { Ok(None) }
}

/// Of a bare repository: where the branch is checked out that its `HEAD` names.
fn worktree_of_head(common: &Path) -> Result<Option<PathBuf>> {
    let git = |words: &[&str]| Git::searching(common).arg("--git-dir").arg(common).args(words).run();
    let Ok(head) = git(&["symbolic-ref", "HEAD"]) else { return Ok(None) };
    let (head, listing) = (head.trim_ascii_end(), git(&["worktree", "list", "--porcelain", "-z"])?);
    let (mut place, mut found) = (None, None);
    for line in listing.split(|&byte| byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            place = Some(path);
        } else if line.strip_prefix(b"branch ") == Some(head) {
            found = place.map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())));
        }
    }
    found.filter(|place| place.exists()).map(real_path).transpose()
}

fn path_line(mut answer: Vec<u8>) -> PathBuf {
    if answer.ends_with(b"\n") {
        answer.pop();
    }
    std::ffi::OsString::from_vec(answer).into()
}

fn real_path(path: PathBuf) -> Result<PathBuf> {
    fs::canonicalize(&path).map_err(io_error("find", &path))
}

fn exclude_file(common: &Path) -> PathBuf {
    common.join("info/exclude")
}

/// Adds `patterns` to those that the repository with the common directory `common` ignores in every worktree; whether any
/// was missing.
fn add_excluded(common: &Path, patterns: &[&str]) -> Result<bool> {
    let path = exclude_file(common);
    let mut text = regular_file::read_if_there(&path)?.unwrap_or_default();
    let missing: Vec<&str> = patterns.iter().copied().filter(|pattern| !has_line(&text, pattern)).collect();
    if missing.is_empty() {
        return Ok(false);
    }
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    missing.iter().for_each(|pattern| text.extend(format!("{pattern}\n").bytes()));
    let directory = common.join("info");
    fs::create_dir_all(&directory).map_err(io_error("create", &path))?;
    remove_unfinished(&directory)?;
    atomic::rewrite(&path, &text)?;
    Ok(true)
}

/// The pattern of `info/exclude` that matches `path` alone.
fn literal_pattern(path: &str) -> String {
    path.chars().flat_map(|it| "\\*?[".contains(it).then_some('\\').into_iter().chain([it])).collect()
}

fn has_line(text: &[u8], line: &str) -> bool {
    text.split(|&byte| byte == b'\n').any(|it| it == line.as_bytes())
}
