//! Which files of a commit are in a worktree byte for byte what their blobs hold: those may be copied from anywhere.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use git2::{Oid, Tree};

use super::nearness::{is_tree, tree};
use crate::git::configuration::Configuration;
use crate::git::error::{GitError, io_error};
use crate::git::plain_paths::is_ordinary;
use crate::git::program::Git;
use crate::git::repository::Repository;
use crate::model::CommitId;

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    /// Its path, with `/` between the parts.
    pub(super) path: Vec<u8>,
    /// The name of its content.
    pub(super) id: Oid,
    /// Whether it may be run.
    pub(super) executable: bool,
}

impl Blob {
    /// Where the file is below `worktree`.
    pub(super) fn below(&self, worktree: &Path) -> std::path::PathBuf {
        worktree.join(OsStr::from_bytes(&self.path))
    }
}

/// The files of `commit` that git would write into `worktree` without changing anything, in the order of an index.
/// Links, submodules and whatever has a name that git looks at twice are left to git.
///
/// # Errors
/// What git says.
pub(super) fn verbatim(repository: &Repository, worktree: &Path, commit: &CommitId) -> Result<Vec<Blob>, GitError> {
    if !is_plain(&*repository.configuration()?) {
        return Ok(Vec::new());
    }
    let files = repository.in_process(|git| {
        let mut files = Vec::new();
        collect(git, &tree(git, commit)?, &mut Vec::new(), &mut files)?;
        Ok(files)
    });
    let mut files = files.unwrap_or_default();
    let converted = converted(worktree, commit, &files)?;
    files.retain(|file| !converted.contains(&file.path));
    Ok(files)
}

/// Whether no setting has files written in another way, or only some of them, or has names or modes changed.
fn is_plain(configuration: &Configuration) -> bool {
    let lines = configuration.get("core.autocrlf").is_none_or(|value| value.eq_ignore_ascii_case("input"));
    let lines = lines || configuration.flag("core.autocrlf") == Some(false);
    let ends = configuration.get("core.eol").is_none_or(|value| value.eq_ignore_ascii_case("lf"));
    configuration.keeps_names_and_modes() && lines && ends
}

/// Puts the files of `tree`, whose own path is `above`, into `files`. A tree is in the order of an index.
fn collect(
    git: &git2::Repository,
    tree: &Tree<'_>,
    above: &mut Vec<u8>,
    files: &mut Vec<Blob>,
) -> Result<(), git2::Error> {
    for entry in tree {
        let name = entry.name_bytes();
        if !is_ordinary(name) {
            continue;
        }
        let length = above.len();
        above.extend_from_slice(name);
        if is_tree(&entry) {
            above.push(b'/');
            collect(git, &git.find_tree(entry.id())?, above, files)?;
        } else if matches!(entry.filemode(), 0o100_644 | 0o100_755) {
            files.push(Blob { path: above.clone(), id: entry.id(), executable: entry.filemode() == 0o100_755 });
        }
        above.truncate(length);
    }
    Ok(())
}

/// The paths for which an attribute, wherever it stands, has git change what it writes.
fn converted(worktree: &Path, commit: &CommitId, files: &[Blob]) -> Result<HashSet<Vec<u8>>, GitError> {
    let ask = || {
        let mut file = tempfile::tempfile()?;
        file.write_all(&files.iter().flat_map(|file| [file.path.as_slice(), b"\0"].concat()).collect::<Vec<u8>>())?;
        file.rewind().map(|()| file)
    };
    let paths = ask().map_err(io_error("write", &std::env::temp_dir()))?;
    let git = Git::new(worktree).stdin(&paths).args(["check-attr", "-z", "--stdin", "--all"]);
    let listing = git.arg(format!("--source={commit}")).run()?;
    let parts: Vec<&[u8]> = listing.split(|&byte| byte == 0).collect();
    let changed = parts.chunks_exact(3).filter(|part| changes_content(part[1], part[2]));
    Ok(changed.map(|part| part[0].to_vec()).collect())
}

fn changes_content(attribute: &[u8], value: &[u8]) -> bool {
    match attribute {
        b"filter" | b"ident" | b"working-tree-encoding" => value != b"unset",
        b"eol" => value != b"unset" && value != b"lf",
        _ => false,
    }
}
