//! What checks and reviewers say of a pull request.

use lanewright_model::{ChecksState, PullRequestState, ReviewState, Timestamp};
use serde::Deserialize;

/// What the forge says of a pull request. A command of the user's prints it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    pub state: PullRequestState,
    /// The commit that its branch is at.
    pub head: String,
    /// The branch that it asks to be merged into.
    pub base: String,
    /// A draft is never merged.
    #[serde(default)]
    pub draft: bool,
    #[serde(default = "no_review")]
    pub review: ReviewState,
    #[serde(default)]
    pub checks: Vec<Check>,
    #[serde(default)]
    pub comments: Vec<Comment>,
}

/// A check of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Another one for each time that it runs.
    pub id: String,
    pub name: String,
    /// `none`: it was skipped.
    pub state: ChecksState,
    /// Whether the forge merges only if it passed.
    #[serde(default)]
    pub required: bool,
    /// What it says by itself.
    #[serde(default)]
    pub log: String,
    /// The forge's job, whose log says more.
    #[serde(skip)]
    pub job: Option<u64>,
}

/// What a person, or a program, wrote.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comment {
    pub id: String,
    pub by: String,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub line: Option<u64>,
    pub text: String,
    #[serde(default)]
    pub at: Option<Timestamp>,
    /// What the forge knows its author by.
    #[serde(skip)]
    pub(super) author: Author,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Author {
    /// The user's command printed it.
    #[default]
    Chosen,
    /// Acts for itself.
    Program,
    /// A person, by what the forge asks for.
    Person(String),
}

fn no_review() -> ReviewState {
    ReviewState::None
}

impl Review {
    /// The checks that decide: those that the forge requires, or all if it requires none.
    pub fn deciding_checks(&self) -> impl Iterator<Item = &Check> {
        let requires = self.checks.iter().any(|check| check.required);
        self.checks.iter().filter(move |check| check.required || !requires)
    }

    /// What its checks say together.
    pub fn checks_state(&self) -> ChecksState {
        let has = |state: ChecksState| self.deciding_checks().any(|check| check.state == state);
        [ChecksState::Failed, ChecksState::Pending, ChecksState::Passed]
            .into_iter()
            .find(|state| has(*state))
            .unwrap_or(ChecksState::None)
    }
}
