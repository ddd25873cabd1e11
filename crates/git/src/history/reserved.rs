//! Files that no merge decides: ours stays, or a new text replaces it.

use lanewright_model::CommitId;

use crate::command::{Result, io_error};
use crate::repo::Repository;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    /// Relative to the repository's root.
    pub path: String,
    /// Its content after the merge; `None`: what it is in ours.
    pub text: Option<Vec<u8>>,
}

/// `tree` with every reserved file; `ours` is the commit that decides them.
pub(crate) fn with_reserved(
    repository: &Repository,
    tree: &str,
    ours: &CommitId,
    reserved: &[Reserved],
) -> Result<String> {
    let directory = tempfile::tempdir().map_err(io_error("create", &std::env::temp_dir()))?;
    let index = directory.path().join("index");
    let git = || repository.git().variable("GIT_INDEX_FILE", &index);
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
fn entry(repository: &Repository, ours: &CommitId, file: &Reserved) -> Result<Option<String>> {
    let listed = repository.git().args(["--literal-pathspecs", "ls-tree", ours.as_str(), "--", &file.path]).line()?;
    // `100644 blob 1234…\tpath`
    let known: Vec<&str> = listed.split_whitespace().collect();
    let (mode, object) = match (&file.text, known.as_slice()) {
        (None, [mode, _, object, ..]) => (*mode, (*object).to_owned()),
        (None, _) => return Ok(None),
        (Some(text), known) => (known.first().copied().unwrap_or("100644"), stored(repository, text)?),
    };
    Ok(Some(format!("{mode},{object},{}", file.path)))
}

fn stored(repository: &Repository, text: &[u8]) -> Result<String> {
    let git = repository.git().input(text.to_vec());
    Ok(git.args(["hash-object", "-w", "--no-filters", "--stdin"]).line()?)
}
