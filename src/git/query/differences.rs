//! How two commits differ.

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, nul_separated, path_text};
use crate::git::fast::libgit2;
use crate::git::repo::repository::Repository;
use crate::model::CommitId;

/// A path in which two commits differ.
pub(crate) struct Difference {
    /// From the repository's root.
    pub(crate) path: Vec<u8>,
    /// Its mode in the first; 0: it is not there.
    pub(crate) from: u32,
    /// Its mode in the second.
    pub(crate) to: u32,
}

/// The mode of a link to a commit of another repository.
const LINK: u32 = 0o160_000;

impl Repository {
    /// The paths in which two commits differ, a renamed file under both names.
    pub(crate) fn differences(&self, from: &CommitId, to: &CommitId) -> Result<Vec<Difference>, GitError> {
        if from == to {
            return Ok(Vec::new());
        }
        if let Some(known) = self.in_process(|git| in_process(git, from, to)) {
            return Ok(known);
        }
        let git = Git::new(self.main_worktree()).args(["diff-tree", "-r", "-z", "--no-renames"]);
        let listing = git.args([from.as_str(), to.as_str()]).run()?;
        let parts: Vec<&[u8]> = nul_separated(&listing).collect();
        Ok(parts.chunks_exact(2).filter_map(|pair| difference(pair[0], pair[1])).collect())
    }

    /// The same without the modes.
    ///
    /// # Errors
    /// What git says.
    pub fn changed_paths(&self, from: &CommitId, to: &CommitId) -> Result<Vec<String>, GitError> {
        Ok(self.differences(from, to)?.iter().map(|difference| path_text(&difference.path)).collect())
    }

    /// The repositories within the repository (a nested clone, another worktree) that `to` has and `from` has not,
    /// except submodules that `.gitmodules` names.
    ///
    /// # Errors
    /// What git says.
    pub fn embedded_repositories(&self, from: &CommitId, to: &CommitId) -> Result<Vec<String>, GitError> {
        let mut links = self.differences(from, to)?;
        links.retain(|difference| difference.to == LINK && difference.from != LINK);
        if links.is_empty() {
            return Ok(Vec::new());
        }
        let submodules = self.submodules(to)?;
        Ok(links.iter().map(|link| path_text(&link.path)).filter(|path| !submodules.contains(path)).collect())
    }

    fn submodules(&self, commit: &CommitId) -> Result<Vec<String>, GitError> {
        let blob = format!("{commit}:.gitmodules");
        let git = Git::new(self.main_worktree()).args([
            "config",
            "--null",
            "--blob",
            &blob,
            "--get-regexp",
            r"^submodule\..*\.path$",
        ]);
        let listing = git.attempt()?.stdout;
        let paths = nul_separated(&listing).filter_map(|entry| entry.splitn(2, |&byte| byte == b'\n').nth(1));
        Ok(paths.map(path_text).collect())
    }
}

fn in_process(git: &git2::Repository, from: &CommitId, to: &CommitId) -> Result<Vec<Difference>, git2::Error> {
    let tree = |commit: &CommitId| git.find_commit(libgit2::oid(commit)?)?.tree();
    // Without it a file that became a link or a submodule is reported as two paths.
    let mut options = git2::DiffOptions::new();
    options.include_typechange(true);
    let diff = git.diff_tree_to_tree(Some(&tree(from)?), Some(&tree(to)?), Some(&mut options))?;
    let difference = |delta: git2::DiffDelta<'_>| {
        let path = delta.new_file().path_bytes().or(delta.old_file().path_bytes()).unwrap_or_default().to_vec();
        Difference { path, from: delta.old_file().mode().into(), to: delta.new_file().mode().into() }
    };
    Ok(diff.deltas().map(difference).collect())
}

/// Reads `:100644 100755 OBJECT OBJECT M`.
fn difference(facts: &[u8], path: &[u8]) -> Option<Difference> {
    let facts = path_text(facts);
    let mut modes = facts.strip_prefix(':')?.split(' ').map(|mode| u32::from_str_radix(mode, 8).ok());
    Some(Difference { path: path.to_vec(), from: modes.next()??, to: modes.next()?? })
}
