//! Ignored files that an agent made in its lane's worktree, which the lane's gates must not see: they are in no commit.
//!
//! What is ignored before the first agent begins, such as what a setup made, is written down in git's directory for the
//! worktree. What else is ignored when a gate begins is moved beside the slot, and back before the next attempt; only
//! build caches and installed dependencies stay, which a gate would have to make again.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lanewright_files::directory::{self, create_directory_unsynced, with_suffix};
use lanewright_files::{atomic, regular_file};

use crate::command::{Git, Result, io_error, nul_separated};
use crate::repo::git_directory;

/// The names, in git's directory for a worktree, of what was ignored before the first agent began.
const BEFORE: &str = "lanewright.ignored";

/// Directories, besides those with a `CACHEDIR.TAG`, that gates may see whoever made them.
const CACHES: &[&str] = &[
    ".build",
    ".bundle",
    ".cache",
    ".dart_tool",
    ".eggs",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".stack-work",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".yarn",
    "Pods",
    "__pycache__",
    "bower_components",
    "dist-newstyle",
    "node_modules",
    "target",
    "vendor",
    "venv",
];

/// Notes what is ignored in `worktree`, in which no agent has worked yet; asked again, nothing is done.
///
/// # Errors
/// Git cannot list it, or the note cannot be written.
pub fn note_ignored(worktree: &Path) -> Result<()> {
    let note = git_directory(worktree)?.join(BEFORE);
    if note.exists() {
        return Ok(());
    }
    let names: Vec<Vec<u8>> = ignored(worktree)?.into_iter().collect();
    Ok(atomic::replace(&note, &names.join(&0))?)
}

/// Moves aside what was ignored in `worktree` since it was noted, but for caches; without a note nothing.
///
/// # Errors
/// Git cannot list it, or it cannot be moved.
pub fn move_ignored_aside(worktree: &Path) -> Result<()> {
    let Some(note) = regular_file::read_if_there(&git_directory(worktree)?.join(BEFORE))? else { return Ok(()) };
    let before: BTreeSet<&[u8]> = nul_separated(&note).collect();
    for name in ignored(worktree)?.iter().filter(|name| !before.contains(name.as_slice())) {
        let path = Path::new(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)));
        let (from, to) = (worktree.join(path), aside(worktree).join(path));
        // One that is there already is the agent's; this one a gate has made since.
        if !is_cache(worktree, path) && fs::symlink_metadata(&to).is_err() {
            move_to(&from, &to)?;
        }
    }
    Ok(())
}

/// Moves back what was moved aside, over what gates have made in its place; what lay in a directory that is none any more
/// is dropped.
///
/// # Errors
/// It cannot be moved.
pub fn move_ignored_back(worktree: &Path) -> Result<()> {
    let aside = aside(worktree);
    let mut places = vec![aside.clone()];
    while let Some(place) = places.pop() {
        for (from, kind) in directory::entries_with_kinds(&place)? {
            let to = worktree.join(from.strip_prefix(&aside).unwrap_or(&from));
            if kind.is_dir() && to.is_dir() && !to.is_symlink() {
                places.push(from);
            } else if is_below_directories(worktree, &to) {
                atomic::remove_all(&to).map_err(io_error("remove", &to))?;
                move_to(&from, &to)?;
            }
        }
    }
    atomic::remove_all(&aside).map_err(io_error("remove", &aside))
}

/// Forgets what was ignored in `worktree`, and removes what was moved aside.
pub(crate) fn forget_ignored(worktree: &Path) -> Result<()> {
    let aside = aside(worktree);
    atomic::remove_all(&aside).map_err(io_error("remove", &aside))?;
    Ok(atomic::remove(&git_directory(worktree)?.join(BEFORE))?)
}

/// Where a worktree's files are that are moved aside: on the same file system, and not in a repository.
pub(crate) fn aside(worktree: &Path) -> PathBuf {
    with_suffix(worktree, ".ignored")
}

fn move_to(from: &Path, to: &Path) -> Result<()> {
    to.parent().map_or(Ok(()), create_directory_unsynced)?;
    Ok(atomic::rename(from, to)?)
}

/// The ignored files, and the directories of which everything is ignored.
fn ignored(worktree: &Path) -> Result<BTreeSet<Vec<u8>>> {
    let git = Git::new(worktree).reading_only();
    let listed = git.args(["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]).run()?;
    Ok(nul_separated(&listed).map(<[u8]>::to_vec).collect())
}

/// Whether what is above `path` is a directory, not a link, or missing.
fn is_below_directories(worktree: &Path, path: &Path) -> bool {
    let mut above = path.ancestors().skip(1).take_while(|place| *place != worktree);
    above.all(|place| fs::symlink_metadata(place).map_or(true, |found| found.is_dir()))
}

fn is_cache(worktree: &Path, path: &Path) -> bool {
    let is_named = path.iter().any(|part| CACHES.iter().any(|name| part == OsStr::new(name)));
    is_named || worktree.join(path).join("CACHEDIR.TAG").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_of_an_agent_are_away_during_a_gate() {
        let directory = tempfile::tempdir().unwrap();
        let worktree = directory.path().join("01");
        fs::create_dir(&worktree).unwrap();
        Git::new(&worktree).args(["init", "--quiet"]).run().unwrap();
        let write = |path: &str, text: &str| {
            let path = worktree.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let text = |path: &str| fs::read_to_string(worktree.join(path)).ok();
        write(".gitignore", "*.env\nout/\ntarget/\ntagged/\n");
        write("setup.env", "setup");
        write("src/a", "tracked");
        Git::new(&worktree).args(["add", "--all"]).run().unwrap();
        note_ignored(&worktree).unwrap();
        for path in ["agent.env", "src/agent.env", "out/deep/a", "target/a", "tagged/CACHEDIR.TAG"] {
            write(path, "agent");
        }
        // Asked again, it takes none of these for what was there before.
        note_ignored(&worktree).unwrap();
        move_ignored_aside(&worktree).unwrap();
        let present = ["setup.env", "src/a", "target/a", "tagged/CACHEDIR.TAG"];
        let away = ["agent.env", "src/agent.env", "out/deep/a"];
        assert!(present.iter().all(|path| text(path).is_some()) && away.iter().all(|path| text(path).is_none()));
        write("out/deep/a", "gate");
        write("out/b", "gate");
        write("agent.env", "gate");
        move_ignored_aside(&worktree).unwrap();
        move_ignored_back(&worktree).unwrap();
        assert!(present.iter().chain(&away).all(|path| text(path).is_some()));
        assert_eq!(away.map(|path| text(path).unwrap()), ["agent"; 3]);
        assert_eq!(text("out/b").as_deref(), Some("gate"));
        assert!(!aside(&worktree).exists());
    }
}
