//! Where the `.git` of a linked worktree leads, and the variables that lead git past it.
//!
//! While an agent works, the `.git` of its worktree leads to a git directory of the agent's own (`worktree/private.rs`),
//! whose settings can name programs. Git that Lanewright starts there gets the repository's own directories by name.

use std::path::{Path, PathBuf};

use lanewright_files::regular_file;

/// Where the git directories of agents are, below the directory that all worktrees share.
pub(crate) const PRIVATE: &str = "lanewright/private";

/// The git directory within a home below [`PRIVATE`]: all that an agent may write of it.
pub(crate) const PRIVATE_GIT: &str = "git";

/// What `commondir` says in git's directory for a linked worktree.
pub(crate) const COMMON: &str = "../..";

/// The directory that the link in `worktree` names, whether or not it exists, also if it is an agent's own.
pub(crate) fn link_target(worktree: &Path) -> Option<PathBuf> {
    let link = read_line(&worktree.join(".git"))?;
    Some(worktree.join(link.strip_prefix("gitdir: ")?))
}

/// Git's directory for the worktree whose agent has the git directory `target`; `None`: it is not an agent's.
pub(crate) fn entry_behind(target: &Path) -> Option<PathBuf> {
    let home = target.parent().filter(|_| target.ends_with(PRIVATE_GIT))?;
    let common = home.parent().filter(|place| place.ends_with(PRIVATE))?.parent()?.parent()?;
    Some(common.join("worktrees").join(home.file_name()?))
}

/// The variables with which git works in the worktree at `directory`, or, `upwards`, in the one around it, without a look
/// at its `.git`; `None`: that leads where git made it lead.
pub(crate) fn named_places(directory: &Path, upwards: bool) -> Option<[(&'static str, PathBuf); 3]> {
    let directory = std::path::absolute(directory).ok()?;
    let levels = if upwards { usize::MAX } else { 1 };
    let has_link = |place: &&Path| place.join(".git").symlink_metadata().is_ok();
    let worktree = directory.ancestors().take(levels).find(has_link)?;
    let target = link_target(worktree)?;
    let entry = entry_behind(&target).or_else(|| {
        // What is written there decides which settings git reads.
        let common = read_line(&target.join("commondir")).filter(|common| common != COMMON);
        let is_entry = target.parent().is_some_and(|above| above.ends_with("worktrees"));
        common.filter(|_| is_entry).map(|_| target)
    })?;
    let common = entry.parent()?.parent()?.to_owned();
    Some([("GIT_DIR", entry), ("GIT_COMMON_DIR", common), ("GIT_WORK_TREE", worktree.to_owned())])
}

/// The first line of a small file; `None`: it cannot be read.
pub(crate) fn read_line(path: &Path) -> Option<String> {
    let text = regular_file::read_text(path).ok()?;
    Some(text.lines().next().unwrap_or_default().to_owned())
}
