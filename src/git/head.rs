//! The head of a worktree, and bringing it back to its branch.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::admin_lock::holding_worktree;
use super::durable;
use super::error::GitError;
use super::library;
use super::move_files::move_files;
use super::open_index;
use super::operation::refuse_operation;
use super::pristine::is_pristine_at;
use super::program::{Git, ProgramError, nul_separated, path_text};
use super::references::{move_branch, reference_lock};
use super::repository::{Repository, branch_reference, commit_id};
use super::slot::git_directory;
use super::worktrees::read_line;
use crate::fs::regular_file;
use crate::model::CommitId;

/// The file in git's directory for a worktree that names the commit to which it is being updated.
const UPDATE: &str = "lanekeeper.update";

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
        if let Some(known) = git_directory(worktree).ok().and_then(|directory| Written::read(&directory)) {
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

/// What the file of a head says.
pub(super) enum Written {
    /// The full name of a ref.
    Reference(String),
    /// It is detached.
    Commit(CommitId),
}

impl Written {
    /// Reads the head in the directory that git has for a worktree. `None`: only git can tell.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        let file = directory.join("HEAD");
        // Git wrote links once.
        let line = read_line(&file).filter(|_| !file.is_symlink())?;
        match line.strip_prefix("ref: ") {
            Some(name) => Some(Self::Reference(name.to_owned())),
            None => CommitId::new(&line).ok().map(Self::Commit),
        }
    }

    /// The branch, without `refs/heads/`.
    pub(super) fn branch(self) -> Option<String> {
        match self {
            Self::Reference(name) => Some(short_name(name)),
            Self::Commit(_) => None,
        }
    }
}

/// The ref that a head leads to; `None`: it is detached.
fn symbolic_head(git: &git2::Repository) -> Result<Option<String>, git2::Error> {
    Ok(git.find_reference("HEAD")?.symbolic_target()?.map(str::to_owned))
}

/// A branch's name without `refs/heads/`.
fn short_name(name: String) -> String {
    name.strip_prefix("refs/heads/").map(str::to_owned).unwrap_or(name)
}

/// Where `worktree` stands now.
///
/// # Errors
/// [`GitError::UnbornHead`], or what git says.
pub fn head_of(worktree: &Path) -> Result<Head, GitError> {
    let known = library::ask(worktree, |git| {
        let branch = symbolic_head(git)?.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
        Ok((branch, git.head()?.peel_to_commit()?.id().to_string()))
    });
    if let Some((branch, commit)) = known {
        return Ok(Head { branch, commit: commit_id(commit.as_bytes())? });
    }
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
    /// Where `worktree`, one of this repository's, stands now; without a process if that can be.
    ///
    /// # Errors
    /// Those of [`head_of`].
    pub fn head_at(&self, worktree: &Path) -> Result<Head, GitError> {
        self.written_head(worktree).map_or_else(|| head_of(worktree), Ok)
    }

    fn written_head(&self, worktree: &Path) -> Option<Head> {
        let name = match Written::read(&git_directory(worktree).ok()?)? {
            Written::Commit(commit) => return Some(Head { branch: None, commit }),
            Written::Reference(name) => name,
        };
        let branch = name.strip_prefix("refs/heads/")?.to_owned();
        let commit =
            self.in_process(|git| git.find_reference(&name)?.peel_to_commit().map(|it| it.id().to_string()))?;
        Some(Head { branch: Some(branch), commit: CommitId::new(&commit).ok()? })
    }
}

/// Makes sure that `worktree` stands on a commit: what is committed on a branch that is gone has no history, and can be
/// merged nowhere.
///
/// # Errors
/// [`GitError::BranchMissing`], or what git says.
pub fn refuse_missing_branch(worktree: &Path) -> Result<(), GitError> {
    match head_of(worktree) {
        Err(GitError::UnbornHead { .. }) => {
            Err(GitError::BranchMissing { branch: Head::branch_of(worktree)?.unwrap_or_default() })
        }
        head => head.map(drop),
    }
}

/// Brings `worktree`, whose agent may have detached its head or switched branches, back to `branch`: where its head
/// continues the branch, the branch moves there; files, index and uncommitted work stay as they are. The agent is gone.
///
/// # Errors
/// [`GitError::Astray`] when the head does not continue the branch, [`GitError::BranchMissing`],
/// [`GitError::BranchInTheWay`] when another worktree has the branch, [`GitError::OperationInProgress`].
pub fn adopt_head(repository: &Repository, worktree: &Path, branch: &str) -> Result<CommitId, GitError> {
    refuse_operation(worktree)?;
    holding_worktree(worktree, |lock| {
        let head = repository.head_at(worktree)?;
        if head.branch.as_deref() == Some(branch) {
            return Ok(head.commit);
        }
        remove_dead_locks(worktree)?;
        let tip =
            repository.branch_commit(branch)?.ok_or_else(|| GitError::BranchMissing { branch: branch.to_owned() })?;
        if !repository.is_ancestor(&tip, &head.commit)? {
            return Err(GitError::Astray {
                worktree: worktree.to_owned(),
                head: head.commit,
                on: head.branch,
                branch: branch.to_owned(),
            });
        }
        if let Some(place) = repository.where_checked_out(branch)? {
            return Err(GitError::BranchInTheWay { branch: branch.to_owned(), place: Some(place) });
        }
        durable::objects(repository, &head.commit, std::slice::from_ref(&tip))?;
        move_branch(repository, branch, &tip, &head.commit)?;
        let full = branch_reference(branch);
        let git = Git::new(worktree).without_hooks().stdin(lock);
        git.args(["symbolic-ref", "-m", "lanekeeper: back to the branch", "HEAD", &full]).run()?;
        Ok(head.commit)
    })
}

/// Brings `worktree` up to `to`, after its `branch` was moved there from `from` by a merge made elsewhere. Untracked
/// files stay; one that is in the way is an error of git's, and nothing is done.
///
/// # Errors
/// [`GitError::Dirty`] when tracked files are changed, [`GitError::Astray`] when another branch is checked out,
/// [`GitError::OperationInProgress`], or what git says.
pub fn set_worktree_to(
    repository: &Repository,
    worktree: &Path,
    branch: &str,
    [from, to]: [&CommitId; 2],
) -> Result<(), GitError> {
    refuse_operation(worktree)?;
    holding_worktree(worktree, |lock| {
        let head = repository.head_at(worktree)?;
        if head.branch.as_deref() != Some(branch) || head.commit != *to {
            let (worktree, branch) = (worktree.to_owned(), branch.to_owned());
            return Err(GitError::Astray { worktree, head: head.commit, on: head.branch, branch });
        }
        let intent = git_directory(worktree)?.join(UPDATE);
        let half_done = regular_file::read(&intent).is_ok_and(|target| target == to.as_str().as_bytes());
        if half_done {
            remove_dead_locks(worktree)?;
            Git::new(worktree).stdin(lock).args(["read-tree", "--reset", "-u", to.as_str()]).run()?;
        } else {
            let pristine = is_pristine_at(repository, worktree, from);
            if !pristine && differing(repository, worktree, to)?.is_empty() {
                return durable::remove(&intent);
            }
            let paths = if pristine { Vec::new() } else { differing(repository, worktree, from)? };
            if !paths.is_empty() {
                return Err(GitError::Dirty { path: worktree.to_owned(), paths });
            }
            if !pristine {
                // What is in the way is reported before anything is touched.
                update(worktree, from, to, lock, true)?;
            }
            durable::write(&intent, to.as_str().as_bytes())?;
            if !pristine || !move_files(repository, worktree, from, to) {
                update(worktree, from, to, lock, false)?;
            }
        }
        durable::remove(&intent)
    })
}

fn update(worktree: &Path, from: &CommitId, to: &CommitId, lock: &File, dry_run: bool) -> Result<(), GitError> {
    let git = Git::new(worktree).stdin(lock).args(["read-tree", "-m", "-u"]).args(dry_run.then_some("--dry-run"));
    git.args([from.as_str(), to.as_str()]).run()?;
    Ok(())
}

/// Forgets that [`set_worktree_to`] was cut short in `worktree`, because all of it was written again.
pub(crate) fn forget_update(worktree: &Path) -> Result<(), GitError> {
    durable::remove(&git_directory(worktree)?.join(UPDATE))
}

/// Whether [`set_worktree_to`] was cut short in `worktree`, by a crash or a full disk; the next one finishes it.
///
/// # Errors
/// [`GitError::NotOurs`] when it is not a worktree.
pub fn is_half_updated(worktree: &Path) -> Result<bool, GitError> {
    Ok(git_directory(worktree)?.join(UPDATE).exists())
}

/// The tracked paths whose staged or, where nothing is staged, present content is not that of `commit`.
fn differing(repository: &Repository, worktree: &Path, commit: &CommitId) -> Result<Vec<String>, GitError> {
    let staged = staged(repository, worktree, commit)?;
    if !staged.is_empty() {
        return Ok(staged);
    }
    let present = ["diff", "--name-only", "-z", "--no-renames", commit.as_str()];
    let present = Git::new(worktree).reading_only().args(present).run()?;
    Ok(nul_separated(&present).map(path_text).collect())
}

/// The paths that the index of `worktree` does not hold as `commit` does.
pub(super) fn staged(repository: &Repository, worktree: &Path, commit: &CommitId) -> Result<Vec<String>, GitError> {
    let index = git_directory(worktree)?.join("index");
    if let Some(known) = repository.in_process(|git| open_index::staged(git, &index, commit)) {
        return Ok(known.iter().map(|difference| path_text(&difference.path)).collect());
    }
    let staged = ["diff", "--cached", "--name-only", "-z", "--no-renames", commit.as_str()];
    let staged = Git::new(worktree).reading_only().args(staged).run()?;
    Ok(nul_separated(&staged).map(path_text).collect())
}

/// Where the lock on the index of `worktree` is, if there is one.
pub(crate) fn index_lock(worktree: &Path) -> Result<Option<PathBuf>, GitError> {
    let lock = git_directory(worktree)?.join("index.lock");
    Ok(std::fs::symlink_metadata(&lock).is_ok().then_some(lock))
}

/// Removes the locks on the index of `worktree`, on its head and on the branch it has checked out. Their owners, gits
/// of ours or of an agent, are known to be dead.
pub(crate) fn remove_dead_locks(worktree: &Path) -> Result<(), GitError> {
    let own = git_directory(worktree)?;
    for name in ["index.lock", "HEAD.lock"] {
        durable::remove(&own.join(name))?;
    }
    let common = own.join(read_line(&own.join("commondir")).unwrap_or_default());
    match read_line(&own.join("HEAD")).as_deref().and_then(|head| head.strip_prefix("ref: ")) {
        Some(reference) => durable::remove(&reference_lock(&common, reference)),
        None => Ok(()),
    }
}
