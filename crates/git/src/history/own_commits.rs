//! The commits that a lane has and the integration branch has not.

use lanewright_model::CommitId;

use crate::command::{Result, nul_separated, path_text};
use crate::history::Author;
use crate::repo::{Repository, commit_id};

#[derive(Debug, Clone)]
pub(crate) struct OwnCommit {
    pub(crate) id: CommitId,
    pub(crate) parents: Vec<CommitId>,
    pub(crate) author: Author,
    /// The names of its trailers and their values, as git finds them.
    trailers: Vec<String>,
    message: String,
}

/// `%x1f` between the fields, as none of them holds it but perhaps the message, which comes last.
const FORMAT: &str = "--format=%H%x1f%P%x1f%an%x1f%ae%x1f%ad%x1f%(trailers:only,unfold)%x1f%B";

/// The commits that `head` has and `onto` has not, each after its parents.
pub(crate) fn own_commits(repository: &Repository, onto: &CommitId, head: &CommitId) -> Result<Vec<OwnCommit>> {
    let git = repository.git().args(["log", "-z", "--topo-order", "--reverse", "--no-show-signature", "--date=raw"]);
    let listing = git.args(["--encoding=UTF-8", FORMAT]).arg(format!("{onto}..{head}")).run()?;
    let commits = nul_separated(&listing).map(|entry| read(&path_text(entry)));
    commits.filter_map(Result::transpose).collect()
}

fn read(entry: &str) -> Result<Option<OwnCommit>> {
    let fields: Vec<&str> = entry.splitn(7, '\u{1f}').collect();
    let [id, parents, name, email, date, trailers, message] = fields.as_slice() else { return Ok(None) };
    Ok(Some(OwnCommit {
        id: commit_id(id.as_bytes())?,
        parents: parents
            .split(' ')
            .filter(|it| !it.is_empty())
            .map(|it| commit_id(it.as_bytes()))
            .collect::<Result<_>>()?,
        author: Author { name: (*name).to_owned(), email: (*email).to_owned(), date: Some((*date).to_owned()) },
        trailers: trailers.lines().map(|line| line.trim().to_owned()).collect(),
        message: (*message).to_owned(),
    }))
}

impl OwnCommit {
    pub(crate) fn is_merge(&self) -> bool {
        self.parents.len() > 1
    }

    pub(crate) fn names(&self, trailers: &[(&str, &str)]) -> bool {
        self.missing(trailers).is_empty()
    }

    /// The values of its trailers called `name`.
    pub(crate) fn values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        self.trailers.iter().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn missing(&self, trailers: &[(&str, &str)]) -> Vec<String> {
        let lines = trailers.iter().map(|(name, value)| format!("{name}: {value}"));
        lines.filter(|line| !self.trailers.contains(line)).collect()
    }

    /// Its message, with those of the trailers that it lacks.
    pub(crate) fn message_naming(&self, repository: &Repository, trailers: &[(&str, &str)]) -> Result<String> {
        let missing = self.missing(trailers);
        if missing.is_empty() {
            return Ok(self.message.clone());
        }
        let git = repository.git().args(["interpret-trailers", "--if-exists", "add", "--where", "end"]);
        let git = git.args(missing.iter().flat_map(|line| ["--trailer", line.as_str()]));
        Ok(git.input(format!("{}\n", self.message.trim_end()).into_bytes()).line()? + "\n")
    }
}
