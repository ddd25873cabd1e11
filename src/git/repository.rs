//! The repository: where it is and what its history says.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::admin_lock::Guarded;
use super::configuration::{Configuration, KnownConfiguration};
use super::durable::{self, DurableObjects};
use super::error::{GitError, io_error};
use super::head::{Head, head_of};
use super::library::{self, Handles};
use super::program::{Git, nul_separated, path_text};
use super::recent::RecentObjects;
use super::slot::git_directory;
use crate::fs::{atomic, regular_file};
use crate::model::{CommitId, Timestamp};

/// A repository with a main worktree; cheap to clone.
#[derive(Debug, Clone)]
pub struct Repository {
    main: PathBuf,
    common: PathBuf,
    from: PathBuf,
    known_configuration: KnownConfiguration,
    durable_objects: DurableObjects,
    recent_objects: RecentObjects,
    handles: Handles,
}

impl Repository {
    /// Finds the repository that `from`, a directory of any of its worktrees, belongs to; it has a commit.
    ///
    /// # Errors
    /// Those of [`Repository::locate`], and [`GitError::UnbornHead`].
    pub fn discover(from: &Path) -> Result<Self, GitError> {
        let repository = Self::locate(from)?;
        head_of(&repository.from)?;
        Ok(repository)
    }

    /// Finds the repository that `from` belongs to, whether or not it has a commit.
    ///
    /// # Errors
    /// [`GitError::NotARepository`], [`GitError::Bare`], [`GitError::NoMainWorktree`], [`GitError::RefFormat`], or what
    /// git says (an owner that it distrusts, or an extension that it does not know, for example).
    pub fn locate(from: &Path) -> Result<Self, GitError> {
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
            handles: Handles::new(&common),
            main,
            common,
            from,
            known_configuration: KnownConfiguration::default(),
            durable_objects: DurableObjects::default(),
            recent_objects: RecentObjects::default(),
        };
        repository.refuse_foreign_ref_format()?;
        Ok(repository)
    }

    /// Every other extension that git knows changes no file that Lanekeeper reads or writes itself: where libgit2
    /// refuses one, the git program is asked.
    fn refuse_foreign_ref_format(&self) -> Result<(), GitError> {
        match self.configuration()?.get("extensions.refstorage") {
            Some(format) if format != "files" => {
                Err(GitError::RefFormat { path: self.main.clone(), format: format.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// The main worktree's root; absolute, without symbolic links.
    pub fn main_worktree(&self) -> &Path {
        &self.main
    }

    /// The directory that all worktrees share (`.git` of the main worktree); absolute, without symbolic links.
    pub fn common_dir(&self) -> &Path {
        &self.common
    }

    /// The branch that is checked out where the repository was discovered, without `refs/heads/`; `None`: detached.
    ///
    /// # Errors
    /// What git says.
    pub fn current_branch(&self) -> Result<Option<String>, GitError> {
        Ok(Head::branch_of(&self.from)?)
    }

    /// Where the branch `name` is; `None`: there is no such branch.
    ///
    /// # Errors
    /// What git says.
    pub fn branch_commit(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        self.commit_at(&branch_reference(name))
    }

    /// The commit that the ref `reference` (a full name) leads to; `None`: there is no such ref.
    ///
    /// # Errors
    /// What git says.
    pub fn commit_at(&self, reference: &str) -> Result<Option<CommitId>, GitError> {
        let known = self.in_process(|git| match git.find_reference(reference) {
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            found => found?.peel_to_commit().map(|commit| Some(commit.id().to_string())),
        });
        if let Some(known) = known {
            return known.map(|name| commit_id(name.as_bytes())).transpose();
        }
        let git = Git::new(&self.main).args(["rev-parse", "--verify", "--quiet"]);
        let git = git.arg(format!("{reference}^{{commit}}"));
        let output = git.attempt()?;
        match output.status.code() {
            Some(0) => commit_id(&output.stdout).map(Some),
            Some(1) => Ok(None),
            _ => Err(git.failure(&output).into()),
        }
    }

    /// Whether `descendant` holds everything that `ancestor` holds; a commit is its own ancestor.
    ///
    /// # Errors
    /// What git says, for example that a commit does not exist.
    pub fn is_ancestor(&self, ancestor: &CommitId, descendant: &CommitId) -> Result<bool, GitError> {
        if ancestor == descendant {
            return Ok(true);
        }
        let known =
            self.in_process(|git| library::is_ancestor(git, library::oid(ancestor)?, library::oid(descendant)?));
        if let Some(known) = known {
            return Ok(known);
        }
        let git = Git::new(&self.main).args(["merge-base", "--is-ancestor", ancestor.as_str(), descendant.as_str()]);
        Ok(git.yes()?)
    }

    /// When `commit` was made, to the second.
    ///
    /// # Errors
    /// What git says.
    pub fn commit_time(&self, commit: &CommitId) -> Result<Timestamp, GitError> {
        let known = self.in_process(|git| Ok(git.find_commit(library::oid(commit)?)?.time().seconds()));
        if let Some(seconds) = known {
            return Ok(Timestamp::from_unix_millis(seconds.saturating_mul(1000)));
        }
        let git = Git::new(&self.main).args(["show", "--no-patch", "--format=%ct", commit.as_str()]);
        let seconds: i64 = git.line()?.parse().unwrap_or_default();
        Ok(Timestamp::from_unix_millis(seconds.saturating_mul(1000)))
    }

    /// The paths in which two commits differ, a renamed file under both names.
    ///
    /// # Errors
    /// What git says.
    pub fn changed_paths(&self, from: &CommitId, to: &CommitId) -> Result<Vec<String>, GitError> {
        if let Some(known) = self.in_process(|git| library::differences(git, from, to)) {
            return Ok(known.iter().map(|difference| path_text(&difference.path)).collect());
        }
        let git = Git::new(&self.main).args(["diff-tree", "-r", "-z", "--name-only", "--no-renames"]);
        let listing = git.args([from.as_str(), to.as_str()]).run()?;
        Ok(nul_separated(&listing).map(path_text).collect())
    }

    /// The repositories within the repository (a nested clone, another worktree) that `to` has and `from` has not,
    /// except submodules that `.gitmodules` names.
    ///
    /// # Errors
    /// What git says.
    pub fn embedded_repositories(&self, from: &CommitId, to: &CommitId) -> Result<Vec<String>, GitError> {
        let links = self.new_links(from, to)?;
        if links.is_empty() {
            return Ok(links);
        }
        let submodules = self.submodules(to)?;
        Ok(links.into_iter().filter(|path| !submodules.contains(path)).collect())
    }

    /// The links to commits of other repositories that `to` has and `from` has not.
    fn new_links(&self, from: &CommitId, to: &CommitId) -> Result<Vec<String>, GitError> {
        if let Some(known) = self.in_process(|git| library::differences(git, from, to)) {
            let new = known.iter().filter(|it| it.to == library::LINK && it.from != library::LINK);
            return Ok(new.map(|difference| path_text(&difference.path)).collect());
        }
        let git = Git::new(&self.main).args(["diff-tree", "-r", "-z", "--no-renames", from.as_str(), to.as_str()]);
        let listing = git.run()?;
        let parts: Vec<&[u8]> = nul_separated(&listing).collect();
        let links = parts.chunks_exact(2).filter(|pair| is_new_link(pair[0])).map(|pair| path_text(pair[1]));
        Ok(links.collect())
    }

    fn submodules(&self, commit: &CommitId) -> Result<Vec<String>, GitError> {
        let blob = format!("{commit}:.gitmodules");
        let git =
            Git::new(&self.main).args(["config", "--null", "--blob", &blob, "--get-regexp", r"^submodule\..*\.path$"]);
        let listing = git.attempt()?.stdout;
        let paths = nul_separated(&listing).filter_map(|entry| entry.splitn(2, |&byte| byte == b'\n').nth(1));
        Ok(paths.map(path_text).collect())
    }

    /// Keeps `patterns` out of `git status` in every worktree, through `info/exclude`; lines of others stay.
    ///
    /// # Errors
    /// [`GitError::File`].
    pub fn ensure_excluded(&self, patterns: &[&str]) -> Result<(), GitError> {
        let path = self.common.join("info").join("exclude");
        self.holding(Guarded::Admin, |_| {
            let mut text = read_or_empty(&path)?;
            let missing: Vec<&str> = patterns.iter().copied().filter(|pattern| !has_line(&text, pattern)).collect();
            if missing.is_empty() {
                return Ok(());
            }
            if !text.is_empty() && !text.ends_with(b"\n") {
                text.push(b'\n');
            }
            missing.iter().for_each(|pattern| text.extend(format!("{pattern}\n").bytes()));
            let directory = self.common.join("info");
            fs::create_dir_all(&directory).map_err(io_error("create", &path))?;
            durable::remove_unfinished(&directory)?;
            Ok(atomic::rewrite(&path, &text)?)
        })
    }

    /// Whether libgit2 may write into the repository: what others are to write to as well (`core.sharedRepository`) gets its
    /// permissions from git alone.
    pub(super) fn may_write_in_process(&self) -> bool {
        let own = |value: &str| ["umask", "false", "0", "no", "off", ""].contains(&value.to_ascii_lowercase().as_str());
        self.configuration().is_ok_and(|known| known.get("core.sharedrepository").is_none_or(own))
    }

    /// What this process has made durable; shared by all copies of the repository.
    pub(super) fn durable_objects(&self) -> DurableObjects {
        self.durable_objects.clone()
    }

    /// The objects that this process has made; shared by all copies of the repository.
    pub(super) fn recent_objects(&self) -> RecentObjects {
        self.recent_objects.clone()
    }

    /// What git's settings say, as they are now.
    ///
    /// # Errors
    /// What git says of them.
    pub(crate) fn configuration(&self) -> Result<Arc<Configuration>, GitError> {
        self.known_configuration.now(self)
    }

    /// Asks libgit2, which needs no process. `None`: it cannot tell (it reads no SHA-256
    /// repositories, and knows less about extensions and trusted owners), so git itself must be asked.
    pub(super) fn in_process<T>(&self, ask: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>) -> Option<T> {
        self.handles.ask(ask)
    }

    /// What libgit2 has open of it.
    pub(super) fn handles(&self) -> &Handles {
        &self.handles
    }
}

/// The full name of a branch.
pub fn branch_reference(name: &str) -> String {
    format!("refs/heads/{name}")
}

/// Reads a commit's name from an answer of git's.
pub(crate) fn commit_id(answer: &[u8]) -> Result<CommitId, GitError> {
    let text = path_text(answer.trim_ascii_end());
    CommitId::new(&text).map_err(|_| GitError::NoCommitName { text })
}

fn is_new_link(difference: &[u8]) -> bool {
    let mut modes = difference.split(|&byte| byte == b' ');
    let (old, new) = (modes.next(), modes.next());
    new == Some(b"160000".as_slice()) && old != Some(b":160000".as_slice())
}

fn common_directory(from: &Path) -> Result<PathBuf, GitError> {
    let git = Git::searching(from).args(["rev-parse", "--path-format=absolute", "--git-common-dir"]);
    let output = git.attempt()?;
    if output.status.success() {
        return real_path(path_line(output.stdout));
    }
    let nowhere = String::from_utf8_lossy(&output.stderr).contains("not a git repository");
    Err(if nowhere { GitError::NotARepository { from: from.to_owned() } } else { git.failure(&output).into() })
}

/// The worktree that `from` lies in; `None`: it lies in the repository's own directory.
fn worktree_around(from: &Path) -> Result<Option<PathBuf>, GitError> {
    let output = Git::searching(from).args(["rev-parse", "--show-toplevel"]).attempt()?;
    if output.status.success() { real_path(path_line(output.stdout)).map(Some) } else { Ok(None) }
}

/// Whether a worktree is not the main one: git's directory for it then leads to the common one.
fn is_linked(worktree: &Path) -> bool {
    git_directory(worktree).is_ok_and(|directory| directory.join("commondir").exists())
}

/// The main worktree as the repository's own settings and its name tell it; `None`: they do not.
fn main_worktree(common: &Path) -> Result<Option<PathBuf>, GitError> {
    let setting = |name: &str, kind: &str| {
        let git = Git::searching(common).arg("--git-dir").arg(common).args(["config", kind, "--get", name]);
        git.attempt().map(|output| path_line(output.stdout))
    };
    if setting("core.bare", "--bool")? == Path::new("true") {
        return Err(GitError::Bare { path: common.to_owned() });
    }
    let named = setting("core.worktree", "--path")?;
    if !named.as_os_str().is_empty() {
        return real_path(common.join(named)).map(Some);
    }
    let usual = common.file_name().is_some_and(|name| name == ".git");
    Ok(common.parent().filter(|_| usual).map(Path::to_owned))
}

fn path_line(mut answer: Vec<u8>) -> PathBuf {
    if answer.ends_with(b"\n") {
        answer.pop();
    }
    std::ffi::OsString::from_vec(answer).into()
}

fn real_path(path: PathBuf) -> Result<PathBuf, GitError> {
    fs::canonicalize(&path).map_err(io_error("find", &path))
}

fn read_or_empty(path: &Path) -> Result<Vec<u8>, GitError> {
    match regular_file::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(io_error("read", path)),
    }
}

fn has_line(text: &[u8], line: &str) -> bool {
    text.split(|&byte| byte == b'\n').any(|it| it == line.as_bytes())
}
