//! Files in a commit of their own, which keeps other commits too: what travels between clones as one ref.

use std::io::{Seek, Write};

use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::Git;
use crate::git::history::references::delete_reference;
use crate::git::repo::repository::Repository;
use crate::model::{CommitId, Timestamp};

/// What is to be put into one commit.
#[derive(Debug)]
pub(crate) struct Parcel<'a> {
    /// The files, each with its path; letters, digits, `.`, `_`, `-` and `/` only.
    pub files: &'a [(String, Vec<u8>)],
    /// The commits that it keeps, in the order that is to be theirs as parents.
    pub commits: &'a [CommitId],
    pub message: &'a str,
    /// The commit's time: the same parcel at the same time is the same commit.
    pub at: Timestamp,
}

/// Makes the commit under `reference`, whatever that was before.
///
/// # Errors
/// What git says; [`GitError::File`].
pub(crate) fn pack(repository: &Repository, reference: &str, parcel: &Parcel<'_>) -> Result<CommitId, GitError> {
    let place = repository.common_dir();
    let mut stream = tempfile::tempfile().map_err(io_error("write to", place))?;
    write_stream(&mut stream, reference, parcel)
        .and_then(|()| stream.rewind())
        .map_err(io_error("write what is packed for", place))?;
    let git = Git::new(repository.main_worktree()).without_hooks().stdin(&stream);
    git.args(["fast-import", "--quiet", "--force", "--done", "--date-format=raw"]).run()?;
    let missing = || GitError::NoCommitName { text: format!("{reference} is not there") };
    repository.commit_at(reference)?.ok_or_else(missing)
}

/// Deletes the ref `name`, wherever it is; none there is as good.
pub(crate) fn forget_reference(repository: &Repository, name: &str) -> Result<(), GitError> {
    match repository.commit_at(name)? {
        Some(commit) => delete_reference(repository, name, &commit),
        None => Ok(()),
    }
}

/// Puts the ref `name` to `commit`, wherever it was.
pub(crate) fn point_reference(repository: &Repository, name: &str, commit: &CommitId) -> Result<(), GitError> {
    Git::new(repository.main_worktree()).without_hooks().args(["update-ref", name, commit.as_str()]).run()?;
    crate::git::fast::durable::reference(repository, name)
}

fn write_stream(stream: &mut impl Write, reference: &str, parcel: &Parcel<'_>) -> std::io::Result<()> {
    let seconds = parcel.at.unix_millis().div_euclid(1000);
    writeln!(stream, "commit {reference}")?;
    writeln!(stream, "committer Lanekeeper <lanekeeper@localhost> {seconds} +0000")?;
    write_data(stream, parcel.message.as_bytes())?;
    for (at, commit) in parcel.commits.iter().enumerate() {
        writeln!(stream, "{} {commit}", if at == 0 { "from" } else { "merge" })?;
    }
    writeln!(stream, "deleteall")?;
    for (path, contents) in parcel.files {
        writeln!(stream, "M 100644 inline {path}")?;
        write_data(stream, contents)?;
    }
    writeln!(stream, "done")
}

fn write_data(stream: &mut impl Write, data: &[u8]) -> std::io::Result<()> {
    writeln!(stream, "data {}", data.len())?;
    stream.write_all(data)?;
    stream.write_all(b"\n")
}
