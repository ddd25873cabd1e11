//! Differences for people: how much changed, and git's own display of it.

use lanewright_model::CommitId;

use crate::command::{Result, nul_separated, path_text};
use crate::fast::libgit2;
use crate::repo::{Repository, commit_id};

/// How much of a file differs; `None`: it is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

impl Repository {
    /// The best common ancestor; `None`: there is none.
    pub fn merge_base(&self, one: &CommitId, other: &CommitId) -> Result<Option<CommitId>> {
        if let Some(known) = libgit2::merge_base(self, one, other) {
            return Ok(known);
        }
        let found = self.git().args(["merge-base", one.as_str(), other.as_str()]).line_if_any()?;
        found.map(|name| commit_id(name.as_bytes())).transpose()
    }

    /// Where work up to `head` begins that was built on `base` first: at the newest state of the integration branch that
    /// it holds, so that what others merged is not part of it.
    pub fn starting_point(
        &self,
        head: &CommitId,
        base: Option<&CommitId>,
        integration: Option<&CommitId>,
    ) -> Result<CommitId> {
        let shared = integration.map(|integration| self.merge_base(head, integration)).transpose()?.flatten();
        match (base, shared) {
            // The integration branch may have been taken back since.
            (Some(base), Some(shared)) if self.is_ancestor(&shared, base)? => Ok(base.clone()),
            (_, Some(shared)) => Ok(shared),
            (base, None) => Ok(base.unwrap_or(head).clone()),
        }
    }

    /// How much each file of the tree or commit `to` differs from `from`.
    pub fn changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>> {
        let git = self.git().args([
            "diff-tree",
            "-r",
            "-z",
            "--numstat",
            "--no-renames",
            "--ignore-submodules=none",
            from,
            to,
        ]);
        Ok(nul_separated(&git.run()?).map(file_change).collect())
    }
}

/// `12\t3\tsrc/a.rs`, or `-\t-\ta.png`.
fn file_change(entry: &[u8]) -> FileChange {
    let mut parts = entry.splitn(3, |&byte| byte == b'\t').map(path_text);
    let mut count = || parts.next().and_then(|part| part.parse().ok());
    let (added, removed) = (count(), count());
    FileChange { path: parts.next().unwrap_or_default(), added, removed }
}
