//! Pull requests, as the run log and people know them. GitLab's merge requests are called so, too.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CommitId, word_enum};

word_enum! {
    /// What opens pull requests.
    ForgeChoice {
        /// What the remote's address and the installed programs suggest.
        Auto = "auto",
        /// GitHub's program.
        Gh = "gh",
        /// GitLab's program.
        Glab = "glab",
        /// The setting `pull_request_command`.
        Command = "command",
    }
}

/// A pull request, or a merge request of GitLab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PullRequest {
    /// Its page.
    pub url: String,
    /// Its number, if the forge has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The branch that it asks to be merged into.
    #[serde(rename = "target_branch")]
    pub base: String,
}

/// How pull requests are followed after they were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Follow {
    /// For how long after a pull request was opened or updated, or the run resumed; 0: the forge is asked once.
    #[serde(rename = "time_ms", with = "crate::time::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub time: Duration,
    /// How often a lane continues after its pull request was opened, before it waits for the user.
    pub rounds: u32,
    /// Whether pull requests are merged whose checks passed and whose reviews are complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_merge: bool,
}

impl Follow {
    /// How often a lane continues after its pull request was opened, unless a setting says otherwise.
    pub const ROUNDS: u32 = 3;
}

word_enum! {
    /// Whether a pull request is open.
    PullRequestState {
        /// Neither merged nor closed.
        Open = "open",
        /// Merged on the forge.
        Merged = "merged",
        /// Closed without being merged, or gone.
        Closed = "closed",
    }
}

word_enum! {
    /// What the checks of a pull request say together: those that the forge requires, or all if it requires none.
    ChecksState {
        /// There are none.
        None = "none",
        /// None failed, and some have not ended.
        Pending = "pending",
        /// At least one failed.
        Failed = "failed",
        /// All passed.
        Passed = "passed",
    }
}

word_enum! {
    /// What the reviewers of a pull request say together.
    ReviewState {
        /// The forge requires no approval, and no reviewer asks for changes.
        None = "none",
        /// An approval that the forge requires is missing.
        Required = "required",
        /// A reviewer asks for changes.
        ChangesRequested = "changes_requested",
        /// It has the approvals that the forge requires.
        Approved = "approved",
    }
}

/// What the forge says of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PullRequestStatus {
    pub state: PullRequestState,
    pub checks: ChecksState,
    pub review: ReviewState,
    /// The branch that it asks to be merged into, if that is another one than Lanewright set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retargeted: Option<String>,
    /// The commit that its branch is at, if another program moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<CommitId>,
    /// The checks that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// How many remarks no agent is given: its branch was rewritten or is checked out by the user, or the lane was sent back
    /// as often as it may be.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl PullRequestStatus {
    /// Whether nothing more is expected of it.
    pub fn is_closed(&self) -> bool {
        self.state != PullRequestState::Open
    }

    /// Whether neither checks nor reviewers object, and all have spoken that must.
    pub fn may_be_merged(&self) -> bool {
        let passed = matches!(self.checks, ChecksState::Passed | ChecksState::None);
        !self.is_closed()
            && self.unanswered == 0
            && passed
            && matches!(self.review, ReviewState::Approved | ReviewState::None)
    }
}

/// In a sentence: `open, checks failed (build, lint), changes requested`.
impl std::fmt::Display for PullRequestStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.state)?;
        match self.checks {
            ChecksState::None => {}
            ChecksState::Pending => write!(f, ", checks run")?,
            ChecksState::Passed => write!(f, ", checks passed")?,
            ChecksState::Failed => write!(f, ", checks failed ({})", crate::text::listed(&self.failed, NAMED))?,
        }
        match self.review {
            ReviewState::None => {}
            ReviewState::Required => write!(f, ", needs a review")?,
            ReviewState::ChangesRequested => write!(f, ", changes requested")?,
            ReviewState::Approved => write!(f, ", approved")?,
        }
        match self.unanswered {
            0 => Ok(()),
            count => write!(f, ", {} not answered", crate::text::counted(count, "remark")),
        }
    }
}

/// How many checks are named.
const NAMED: usize = 3;

/// Something that a check or a reviewer says of a pull request, and that its lane is to take care of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remark {
    /// What identifies it on the forge: `check:…`, `review:…`, `comment:…`.
    pub id: String,
    /// The name of the check, or of the reviewer.
    pub by: String,
    /// The file that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What was said: the end of a check's log, or a comment. Of a long one the middle is left out.
    pub text: String,
}

impl Remark {
    /// Whether a check says so, and not a person.
    pub fn is_of_check(&self) -> bool {
        self.id.starts_with(Self::CHECK)
    }

    /// What the id of a check's remark begins with.
    pub const CHECK: &str = "check:";
}
