//! Pull requests, as the run log and people know them. GitLab's merge requests are called so, too.

use serde::{Deserialize, Serialize};

use super::word_enum;

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
