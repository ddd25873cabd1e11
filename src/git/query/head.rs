//! The head of a worktree.

use std::path::Path;

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, ProgramError, nul_separated, path_text};
use crate::git::repo::git_dir::{git_directory, read_line};
use crate::git::repo::repository::{Repository, commit_id};
use crate::model::CommitId;

/// Where a worktree stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The branch that is checked out, without `refs/heads/`; `None`: detached.
    pub branch: Option<String>,
    /// The commit that is checked out.
    pub commit: CommitId,
}

impl Head {
    pub(crate) fn branch_of(worktree: &Path) -> Result<Option<String>, ProgramError> {
        if let Some(known) = git_directory(worktree).ok().and_then(|directory| HeadFile::read(&directory)) {
            return Ok(known.branch());
        }
        let git = Git::new(worktree).args(["symbolic-ref", "--quiet", "HEAD"]);
        let output = git.attempt()?;
        match output.status.code() {
            Some(0) => Ok(Some(short_name(path_text(output.stdout.trim_ascii_end())))),
            Some(1) => Ok(None),
            _ => Err(git.failure(&output)),
        }
    }
}

/// The content of git's file `HEAD`.
pub(crate) enum HeadFile {
    /// The full name of a ref.
    Reference(String),
    /// It is detached.
    Commit(CommitId),
}

impl HeadFile {
    /// Reads the head in the directory that git has for a worktree. `None`: only git can tell.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let file = directory.join("HEAD");
        // Git wrote links once.
        let line = read_line(&file).filter(|_| !file.is_symlink())?;
        match line.strip_prefix("ref: ") {
            Some(name) => Some(Self::Reference(name.to_owned())),
            None => CommitId::new(&line).ok().map(Self::Commit),
        }
    }

    /// The branch, without `refs/heads/`.
    pub(crate) fn branch(self) -> Option<String> {
        match self {
            Self::Reference(name) => Some(short_name(name)),
            Self::Commit(_) => None,
        }
    }
}

/// A branch's name without `refs/heads/`.
fn short_name(name: String) -> String {
    name.strip_prefix("refs/heads/").map(str::to_owned).unwrap_or(name)
}

/// Where `worktree` stands now, by the git program. [`Repository::head_at`] is faster.
///
/// # Errors
/// [`GitError::UnbornHead`], or what git says.
pub fn head_of(worktree: &Path) -> Result<Head, GitError> {
    let git = Git::new(worktree).args(["rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD"]);
    let output = git.attempt()?;
    if !output.status.success() {
        let unborn = Head::branch_of(worktree)?.is_some();
        let error = git.failure(&output).into();
        return Err(if unborn { GitError::UnbornHead { path: worktree.to_owned() } } else { error });
    }
    let answer = path_text(output.stdout.trim_ascii_end());
    let (commit, name) = answer.split_once('\n').unwrap_or((&answer, ""));
    let branch = name.strip_prefix("refs/heads/").map(str::to_owned);
    Ok(Head { branch, commit: commit_id(commit.as_bytes())? })
}

impl Repository {
    /// Finds the repository that `from`, a directory of any of its worktrees, belongs to; it has a commit.
    ///
    /// # Errors
    /// Those of [`Repository::locate`], and [`GitError::UnbornHead`].
    pub fn discover(from: &Path) -> Result<Self, GitError> {
        let repository = Self::locate(from)?;
        repository.head_at(repository.found_from())?;
        Ok(repository)
    }

    /// The branch that is checked out where the repository was discovered, without `refs/heads/`; `None`: detached.
    ///
    /// # Errors
    /// What git says.
    pub fn current_branch(&self) -> Result<Option<String>, GitError> {
        Ok(Head::branch_of(self.found_from())?)
    }

    /// Where `worktree`, one of this repository's, stands now; without a process if that can be.
    ///
    /// # Errors
    /// Those of [`head_of`].
    pub fn head_at(&self, worktree: &Path) -> Result<Head, GitError> {
        self.written_head(worktree).map_or_else(|| head_of(worktree), Ok)
    }

    /// Makes sure that `worktree` stands on a commit: what is committed on a branch that is gone has no history, and can
    /// be merged nowhere.
    ///
    /// # Errors
    /// [`GitError::BranchMissing`], or what git says.
    pub fn refuse_missing_branch(&self, worktree: &Path) -> Result<(), GitError> {
        match self.head_at(worktree) {
            Err(GitError::UnbornHead { .. }) => {
                Err(GitError::BranchMissing { branch: Head::branch_of(worktree)?.unwrap_or_default() })
            }
            head => head.map(drop),
        }
    }

    fn written_head(&self, worktree: &Path) -> Option<Head> {
        let name = match HeadFile::read(&git_directory(worktree).ok()?)? {
            HeadFile::Commit(commit) => return Some(Head { branch: None, commit }),
            HeadFile::Reference(name) => name,
        };
        let branch = name.strip_prefix("refs/heads/")?.to_owned();
        let commit =
            self.in_process(|git| git.find_reference(&name)?.peel_to_commit().map(|it| it.id().to_string()))?;
        Some(Head { branch: Some(branch), commit: CommitId::new(&commit).ok()? })
    }
}

/// The paths that the index of `worktree` does not hold as `commit` does.
pub(crate) fn staged(worktree: &Path, commit: &CommitId) -> Result<Vec<String>, GitError> {
    let staged = ["diff", "--cached", "--name-only", "-z", "--no-renames", commit.as_str()];
    let staged = Git::new(worktree).reading_only().args(staged).run()?;
    Ok(nul_separated(&staged).map(path_text).collect())
}
