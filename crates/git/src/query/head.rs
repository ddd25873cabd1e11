//! The head of a worktree.

use std::path::Path;

use lanewright_model::CommitId;
use lanewright_model::text::headline;

use crate::command::{Git, GitError, ProgramError, Result, path_text, read_line};
use crate::fast::libgit2;
use crate::repo::{Repository, commit_id, git_directory};

/// How much is shown of what git says of a commit that it cannot read, in characters.
const LONGEST: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The branch that is checked out, without `refs/heads/`; `None`: detached.
    pub branch: Option<String>,
    pub commit: CommitId,
}

impl Head {
    pub(crate) fn branch_of(worktree: &Path) -> Result<Option<String>, ProgramError> {
        if let Some(known) = git_directory(worktree).ok().and_then(|directory| HeadFile::read(&directory)) {
            return Ok(known.branch());
        }
        Ok(Git::new(worktree).args(["symbolic-ref", "--quiet", "HEAD"]).line_if_any()?.map(short_name))
    }

    /// That it is the head of `worktree` and does not continue `branch`, which should be checked out there.
    pub(crate) fn astray(self, worktree: &Path, branch: &str) -> GitError {
        let (worktree, branch) = (worktree.to_owned(), branch.to_owned());
        GitError::Astray { worktree, head: self.commit, on: self.branch, branch }
    }
}

enum HeadFile {
    /// The full name of a ref.
    Reference(String),
    Commit(CommitId),
}

impl HeadFile {
    /// Reads the head in git's directory for a worktree. `None`: only git can.
    fn read(directory: &Path) -> Option<Self> {
        let file = directory.join("HEAD");
        // Git wrote links once.
        let line = read_line(&file).filter(|_| !file.is_symlink())?;
        match line.strip_prefix("ref: ") {
            Some(name) => Some(Self::Reference(name.to_owned())),
            None => CommitId::new(&line).ok().map(Self::Commit),
        }
    }

    fn branch(self) -> Option<String> {
        match self {
            Self::Reference(name) => Some(short_name(name)),
            Self::Commit(_) => None,
        }
    }
}

fn short_name(name: String) -> String {
    name.strip_prefix("refs/heads/").map(str::to_owned).unwrap_or(name)
}

/// Checks out `branch` where the repository was discovered and no branch is checked out. A branch that is not there yet begins
/// at the commit that is checked out.
pub fn attach_head(repository: &Repository, branch: &str) -> Result<()> {
    let is_there = repository.branch_commit(branch)?.is_some();
    let git = Git::new(&repository.from).args(["switch", "--quiet"]);
    Ok(git.args((!is_there).then_some("--create")).arg(branch).run().map(drop)?)
}

/// Where `worktree` stands now, by the git program. [`Repository::head_at`] is faster.
pub fn head_of(worktree: &Path) -> Result<Head> {
    let git = Git::new(worktree).args(["rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD"]);
    let output = git.attempt()?;
    if !output.status.success() {
        let path = worktree.to_owned();
        // Does not look at the commit.
        let named = Git::new(worktree).args(["rev-parse", "--verify", "--quiet", "HEAD"]).line_if_any()?;
        return Err(match named {
            Some(name) => {
                let reason = headline(&String::from_utf8_lossy(&output.stderr), LONGEST);
                GitError::UnreadableHead { path, commit: commit_id(name.as_bytes())?, reason }
            }
            None if Head::branch_of(worktree)?.is_some() => GitError::UnbornHead { path },
            None => git.failure(&output).into(),
        });
    }
    let answer = path_text(output.stdout.trim_ascii_end());
    let (commit, name) = answer.split_once('\n').unwrap_or((&answer, ""));
    let branch = name.strip_prefix("refs/heads/").map(str::to_owned);
    Ok(Head { branch, commit: commit_id(commit.as_bytes())? })
}

impl Repository {
    /// Finds the repository that `from`, a directory of any of its worktrees, belongs to; it has a commit.
    pub fn discover(from: &Path) -> Result<Self> {
        let repository = Self::locate(from)?;
        repository.head_at(&repository.from)?;
        Ok(repository)
    }

    /// The branch that is checked out where the repository was discovered, without `refs/heads/`; `None`: detached.
    pub fn current_branch(&self) -> Result<Option<String>> {
        Ok(Head::branch_of(&self.from)?)
    }

    /// Where `worktree`, one of this repository's, stands now; without a process if possible.
    pub fn head_at(&self, worktree: &Path) -> Result<Head> {
        self.written_head(worktree).map_or_else(|| head_of(worktree), Ok)
    }

    /// The head of `worktree`, which has to be on `branch`.
    pub(crate) fn head_on(&self, worktree: &Path, branch: &str) -> Result<CommitId> {
        let head = self.head_at(worktree)?;
        if head.branch.as_deref() == Some(branch) { Ok(head.commit) } else { Err(head.astray(worktree, branch)) }
    }

    /// Makes sure that `worktree` stands on a commit: what is committed on a branch that is gone has no history, and can
    /// be merged nowhere.
    pub fn refuse_missing_branch(&self, worktree: &Path) -> Result<()> {
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
        Some(Head { branch: Some(branch), commit: libgit2::commit_at(self, &name)?? })
    }
}
