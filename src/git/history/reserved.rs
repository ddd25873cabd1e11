//! Files that no merge decides: whatever the branches say of them, ours stays or a new text takes its place.

use std::io::{Seek, Write};

use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::{Git, nul_separated, path_text};
use crate::git::repo::repository::Repository;
use crate::model::CommitId;

/// A file of which the side that is merged has no say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// Relative to the repository's root.
    pub path: String,
    /// What it holds after the merge; `None`: what ours holds.
    pub text: Option<Vec<u8>>,
}

/// `tree` with every reserved file as it is to be; `ours` is the commit that has the say.
pub(crate) fn with_reserved(
    repository: &Repository,
    tree: &str,
    ours: &CommitId,
    reserved: &[Reserved],
) -> Result<String, GitError> {
    let directory = tempfile::tempdir().map_err(io_error("create", &std::env::temp_dir()))?;
    let index = directory.path().join("index");
    let git = || Git::new(repository.main_worktree()).variable("GIT_INDEX_FILE", &index);
    git().args(["read-tree", tree]).run()?;
    for file in reserved {
        match entry(repository, ours, file)? {
            Some(info) => git().args(["update-index", "--add", "--cacheinfo", &info]).run()?,
            None => git().args(["update-index", "--force-remove", "--", &file.path]).run()?,
        };
    }
    Ok(git().arg("write-tree").line()?)
}

/// `mode,object,path` for the index; `None`: there is to be no such file.
fn entry(repository: &Repository, ours: &CommitId, file: &Reserved) -> Result<Option<String>, GitError> {
    let git = || Git::new(repository.main_worktree());
    let listed = git().args(["--literal-pathspecs", "ls-tree", ours.as_str(), "--", &file.path]).line()?;
    // `100644 blob 1234…\tpath`
    let known: Vec<&str> = listed.split_whitespace().collect();
    let (mode, object) = match (&file.text, known.as_slice()) {
        (None, [mode, _, object, ..]) => (*mode, (*object).to_owned()),
        (None, _) => return Ok(None),
        (Some(text), known) => (known.first().copied().unwrap_or("100644"), stored(repository, text)?),
    };
    Ok(Some(format!("{mode},{object},{}", file.path)))
}

fn stored(repository: &Repository, text: &[u8]) -> Result<String, GitError> {
    let scratch = || {
        let mut file = tempfile::tempfile()?;
        file.write_all(text)?;
        file.rewind().map(|()| file)
    };
    let file = scratch().map_err(io_error("write to", &std::env::temp_dir()))?;
    let git = Git::new(repository.main_worktree()).stdin(&file);
    Ok(git.args(["hash-object", "-w", "--no-filters", "--stdin"]).line()?)
}

impl Repository {
    /// The content of a file in a commit; `None`: there is none.
    ///
    /// # Errors
    /// What git says.
    pub fn file_in(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let git = Git::new(self.main_worktree()).args(["cat-file", "blob"]).arg(format!("{commit}:{path}"));
        let output = git.attempt()?;
        Ok(output.status.success().then_some(output.stdout))
    }

    /// The names in a directory of a commit, relative to the repository's root; empty: there is none.
    pub(crate) fn names_in(&self, commit: &CommitId, directory: &str) -> Result<Vec<String>, GitError> {
        let git = Git::new(self.main_worktree()).args(["ls-tree", "-z", "--name-only", "--full-tree"]);
        let output = git.arg(format!("{commit}:{directory}")).attempt()?;
        let listed = if output.status.success() { output.stdout } else { Vec::new() };
        Ok(nul_separated(&listed).map(path_text).collect())
    }
}
