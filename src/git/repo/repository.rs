//! The repository: where it is.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fs::{atomic, regular_file};
use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::{Git, path_text};
use crate::git::repo::configuration::{Configuration, KnownConfiguration};
use crate::git::repo::git_dir::git_directory;
use crate::git::repo::known_objects::{DurableObjects, RecentObjects};
use crate::git::repo::lock::Guarded;
use crate::git::repo::state_file;
use crate::model::CommitId;

/// A repository with a main worktree; cheap to clone.
#[derive(Debug, Clone)]
pub struct Repository {
    main: PathBuf,
    common: PathBuf,
    from: PathBuf,
    known_configuration: KnownConfiguration,
    durable_objects: DurableObjects,
    recent_objects: RecentObjects,
}

impl Repository {
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
            state_file::remove_unfinished(&directory)?;
            Ok(atomic::rewrite(&path, &text)?)
        })
    }

    /// The root of the worktree in which it was found.
    pub(crate) fn found_from(&self) -> &Path {
        &self.from
    }

    /// What this process has made durable; shared by all copies of the repository.
    pub(crate) fn durable_objects(&self) -> DurableObjects {
        self.durable_objects.clone()
    }

    /// The objects that this process has made; shared by all copies of the repository.
    pub(crate) fn recent_objects(&self) -> RecentObjects {
        self.recent_objects.clone()
    }

    /// What git's settings say, as they are now.
    pub(crate) fn configuration(&self) -> Result<Arc<Configuration>, GitError> {
        self.known_configuration.now(self)
    }
}

/// The full name of a branch.
pub(crate) fn branch_reference(name: &str) -> String {
    format!("refs/heads/{name}")
}

/// Reads a commit's name from an answer of git's.
pub(crate) fn commit_id(answer: &[u8]) -> Result<CommitId, GitError> {
    let text = path_text(answer.trim_ascii_end());
    CommitId::new(&text).map_err(|_| GitError::NoCommitName { text })
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
