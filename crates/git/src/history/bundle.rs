//! Files in a commit of their own, which keeps other commits too: a run's state that moves between clones as one ref.

use std::io::Write;

use lanewright_model::{CommitId, Timestamp};

use crate::command::{Result, io_error};
use crate::repo::{Repository, commit_id};

#[derive(Debug)]
pub struct Bundle<'a> {
    /// The tree whose files it has besides; `None`: no others.
    pub tree: Option<&'a str>,
    /// Paths of files of `tree` that it does not have.
    pub removed: &'a [String],
    /// The files, each with its path; letters, digits, `.`, `_`, `-` and `/` only.
    pub files: &'a [(String, Vec<u8>)],
    /// The commits that it keeps: its parents, in this order.
    pub commits: &'a [CommitId],
    pub message: &'a str,
    /// The commit's time: the same bundle at the same time is the same commit.
    pub at: Timestamp,
}

/// Makes the commit under `reference`, whatever that was before.
pub fn write_bundle(repository: &Repository, reference: &str, bundle: &Bundle<'_>) -> Result<CommitId> {
    let mut stream = Vec::new();
    write_stream(&mut stream, reference, bundle).map_err(io_error("write to", repository.common_dir()))?;
    let git = repository.git().without_hooks().input(stream);
    commit_id(&git.args(["fast-import", "--quiet", "--force", "--done", "--date-format=raw"]).run()?)
}

fn write_stream(stream: &mut Vec<u8>, reference: &str, bundle: &Bundle<'_>) -> std::io::Result<()> {
    let seconds = bundle.at.unix_millis().div_euclid(1000);
    writeln!(stream, "commit {reference}")?;
    writeln!(stream, "mark :1")?;
    writeln!(stream, "committer Lanewright <lanewright@localhost> {seconds} +0000")?;
    write_data(stream, bundle.message.as_bytes())?;
    for (at, commit) in bundle.commits.iter().enumerate() {
        writeln!(stream, "{} {commit}", if at == 0 { "from" } else { "merge" })?;
    }
    writeln!(stream, "deleteall")?;
    if let Some(tree) = bundle.tree {
        writeln!(stream, "M 040000 {tree} \"\"")?;
    }
    // Before the files: one of them may be in a directory that was a file.
    for path in bundle.removed {
        writeln!(stream, "D {path}")?;
    }
    for (path, contents) in bundle.files {
        writeln!(stream, "M 100644 inline {path}")?;
        write_data(stream, contents)?;
    }
    // Another process may move the ref at the same time, so the commit is not read from it.
    writeln!(stream, "get-mark :1")?;
    writeln!(stream, "done")
}

fn write_data(stream: &mut Vec<u8>, data: &[u8]) -> std::io::Result<()> {
    writeln!(stream, "data {}", data.len())?;
    stream.write_all(data)?;
    stream.write_all(b"\n")
}
