//! In whose name commits of ours are made.

use super::error::GitError;
use super::program::Git;

/// Who makes a commit where the user has not told git a name.
const NAME: &str = "Lanekeeper";
const EMAIL: &str = "lanekeeper@localhost";

/// Runs `git`, which makes a commit, in the user's name or, where none is configured, in Lanekeeper's.
pub(crate) fn run_identified(git: Git<'_>) -> Result<Vec<u8>, GitError> {
    // Without this setting git invents an address from the machine's name.
    let git = git.configured("user.useConfigOnly=true");
    let output = git.attempt()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    if !String::from_utf8_lossy(&output.stderr).contains("auto-detection is disabled") {
        return Err(git.failure(&output).into());
    }
    let git = git.variable("GIT_AUTHOR_NAME", NAME).variable("GIT_AUTHOR_EMAIL", EMAIL);
    Ok(git.variable("GIT_COMMITTER_NAME", NAME).variable("GIT_COMMITTER_EMAIL", EMAIL).run()?)
}
