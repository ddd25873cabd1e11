//! Where we are in a repository, read from git's files without starting git: for hooks, which have no time for it.

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_files::regular_file;

use crate::command::read_line;
use crate::repo::{Repository, entry_named_by};
use crate::worktree::{Claim, Holder};

/// A worktree, and the main worktree of its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnclosingWorktree {
    /// The root of the worktree around us; absolute, without symbolic links.
    pub worktree: PathBuf,
    /// The root of the main worktree; the same, or another.
    pub main: PathBuf,
}

impl EnclosingWorktree {
    /// What is around `from`; `None`: no repository with a main worktree.
    pub fn of(from: &Path) -> Option<Self> {
        let from = fs::canonicalize(from).ok()?;
        let worktree = from.ancestors().find(|place| place.join(".git").exists())?.to_owned();
        let main =
            usual_main(&worktree).or_else(|| Some(Repository::locate(&from).ok()?.main_worktree().to_owned()))?;
        Some(Self { worktree, main })
    }

    /// Who holds the worktree, if it is a slot of a pool.
    pub fn holder(&self) -> Option<Holder> {
        let in_pool = self.worktree.parent()?.file_name()? == "slots";
        in_pool.then(|| Claim::read(&self.worktree.with_extension("claim")).ok().flatten())?.map(|claim| claim.holder)
    }
}

/// The main worktree, where it has its repository in `.git` as nearly all do.
fn usual_main(worktree: &Path) -> Option<PathBuf> {
    let link = worktree.join(".git");
    if link.is_dir() {
        let plain = !link.join("commondir").exists() && link.join("HEAD").exists() && is_usual(&link);
        return plain.then(|| worktree.to_owned());
    }
    let entry = entry_named_by(worktree)?;
    let common = fs::canonicalize(entry.join(read_line(&entry.join("commondir"))?)).ok()?;
    common.file_name().filter(|name| *name == ".git" && is_usual(&common))?;
    common.parent().map(Path::to_owned)
}

/// Whether nothing in the repository's configuration says that its main worktree is elsewhere, or that there is none.
/// What looks as if it might say so is left to git.
fn is_usual(common: &Path) -> bool {
    let Ok(text) = regular_file::read_text(common.join("config")) else { return false };
    let lines = text.lines().map(|line| line.trim().to_ascii_lowercase());
    !lines.into_iter().any(|line| line.contains("worktree") || (line.contains("bare") && !line.ends_with("false")))
}
