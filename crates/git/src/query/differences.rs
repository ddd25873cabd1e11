//! How two commits differ.

use std::path::Path;

use lanewright_model::CommitId;

use super::nested::LINK;
use crate::command::{Git, Result, nul_separated, path_text};
use crate::fast::libgit2::{self, Difference};
use crate::repo::{Repository, git_directory};

impl Repository {
    /// The paths in which two commits differ, a renamed file under both names.
    pub(crate) fn differences(&self, from: &CommitId, to: &CommitId) -> Result<Vec<Difference>> {
        if from == to {
            return Ok(Vec::new());
        }
        if let Some(known) = libgit2::differences(self, from, to) {
            return Ok(known);
        }
        let git = self
            .git()
            .args(["diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=none"])
            .args([from.as_str(), to.as_str()]);
        Ok(read(&git.run()?))
    }

    /// How the index of `worktree`, or the one in `file`, differs from `commit`.
    pub(crate) fn staged(&self, worktree: &Path, file: Option<&Path>, commit: &CommitId) -> Result<Vec<Difference>> {
        let file =
            file.map_or_else(|| git_directory(worktree).map(|it| it.join("index")), |file| Ok(file.to_owned()))?;
        if let Some(known) = libgit2::staged(self, &file, commit) {
            return Ok(known);
        }
        let git = Git::new(worktree).reading_only().variable("GIT_INDEX_FILE", file);
        let git = git.args(["diff-index", "--cached", "-z", "--no-renames", "--ignore-submodules=none"]);
        Ok(read(&git.arg(commit.as_str()).run()?))
    }

    /// The same without the modes.
    pub fn changed_paths(&self, from: &CommitId, to: &CommitId) -> Result<Vec<String>> {
        Ok(self.differences(from, to)?.iter().map(|difference| path_text(&difference.path)).collect())
    }

    /// The repositories within the repository (a nested clone, another worktree) that `to` has and `from` has not,
    /// except submodules that `.gitmodules` names.
    pub fn embedded_repositories(&self, from: &CommitId, to: &CommitId) -> Result<Vec<String>> {
        let mut links = self.differences(from, to)?;
        links.retain(|difference| difference.to == LINK && difference.from != LINK);
        if links.is_empty() {
            return Ok(Vec::new());
        }
        let submodules = self.submodules(to)?;
        Ok(links.iter().map(|link| path_text(&link.path)).filter(|path| !submodules.contains(path)).collect())
    }

    fn submodules(&self, commit: &CommitId) -> Result<Vec<String>> {
        let git = self.git().args(["config", "--null", "--blob", &format!("{commit}:.gitmodules")]);
        let listing = git.args(["--get-regexp", r"^submodule\..*\.path$"]).attempt()?.stdout;
        let paths = nul_separated(&listing).filter_map(|entry| entry.splitn(2, |&byte| byte == b'\n').nth(1));
        Ok(paths.map(path_text).collect())
    }
}

impl Difference {
    pub(crate) fn is_of_links(&self) -> bool {
        [self.from, self.to].iter().all(|mode| [0, LINK].contains(mode))
    }
}

fn read(listing: &[u8]) -> Vec<Difference> {
    let parts: Vec<&[u8]> = nul_separated(listing).collect();
    parts.chunks_exact(2).filter_map(|pair| difference(pair[0], pair[1])).collect()
}

/// Reads `:100644 100755 OBJECT OBJECT M`.
fn difference(facts: &[u8], path: &[u8]) -> Option<Difference> {
    let facts = path_text(facts);
    let mut modes = facts.strip_prefix(':')?.split(' ').map(|mode| u32::from_str_radix(mode, 8).ok());
    Some(Difference { path: path.to_vec(), from: modes.next()??, to: modes.next()?? })
}
