//! Operations that git leaves half-way in a worktree: merge, rebase, cherry-pick, revert, bisect.

use crate::command::{Git, GitError, Result};
use crate::repo::git_directory;
use std::fs::File;
use std::path::Path;

/// The files by which git knows an operation, what people call it, and the commands that forget it and keep the files.
const OPERATIONS: &[(&str, &str, &[&str])] = &[
    ("rebase-merge", "a rebase", &["rebase", "--quit"]),
    ("rebase-apply/applying", "an apply of patches", &["am", "--quit"]),
    ("rebase-apply", "a rebase", &["rebase", "--quit"]),
    ("CHERRY_PICK_HEAD", "a cherry-pick", &["cherry-pick", "--quit"]),
    ("REVERT_HEAD", "a revert", &["revert", "--quit"]),
    ("sequencer", "a cherry-pick or revert", &["cherry-pick", "--quit"]),
    ("MERGE_HEAD", "a merge", &["merge", "--quit"]),
    ("BISECT_LOG", "a bisect", &["bisect", "reset", "HEAD"]),
];

/// All that git has of operations in progress, and of the one before, in its directory for a worktree.
pub(crate) const OPERATION_FILES: &[&str] = &[
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "SQUASH_MSG",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_NAMES",
    "BISECT_TERMS",
    "BISECT_EXPECTED_REV",
];

pub(crate) fn operation_in(worktree: &Path) -> Result<Option<&'static str>> {
    let directory = git_directory(worktree)?;
    Ok(OPERATIONS.iter().find(|(file, ..)| directory.join(file).exists()).map(|&(_, name, _)| name))
}

pub(crate) fn refuse_operation(worktree: &Path) -> Result<()> {
    match operation_in(worktree)? {
        Some(which) => Err(GitError::OperationInProgress { path: worktree.to_owned(), which }),
        None => Ok(()),
    }
}

/// Forgets whatever is in progress; the files stay as they are, to be overwritten next.
pub(crate) fn quit_operations(worktree: &Path, lock: &File) -> Result<()> {
    let directory = git_directory(worktree)?;
    for (file, _, command) in OPERATIONS {
        if directory.join(file).exists() {
            Git::new(worktree).without_hooks().stdin(lock).args(*command).run()?;
        }
    }
    Ok(())
}
