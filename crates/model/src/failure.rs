//! Failures, as data for retries, reports and people.

use serde::{Deserialize, Serialize};

use super::diagnosis::Diagnosis;
use super::id::CommitId;
use super::word_enum;

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    pub kind: FailureKind,
    /// What failed, on one line.
    pub message: String,
    /// The command, if one was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The files concerned: in conflict, or changed without being owned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The diagnosis of a failed gate's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Box<Diagnosis>>,
    /// The last lines of output, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

/// How many log entries a retry is given per earlier attempt (seed 004, Automatic Retry Behavior).
pub const CONTEXT_LOG_ENTRIES: usize = 5;

/// The instruction for an agent that may have ended with a question.
pub const DECIDE_YOURSELF: &str = "Nobody answers questions while you work: decide yourself, state what you assumed, and \
change the files that the task asks for.";

impl Failure {
    /// A failure with nothing but a kind and a message.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            command: None,
            exit_code: None,
            paths: Vec::new(),
            diagnosis: None,
            log: Vec::new(),
        }
    }

    /// What failed, without what is quoted below it.
    pub fn headline(&self) -> &str {
        self.message.split("\n\n").next().unwrap_or_default()
    }

    /// What two failures have in common that are the same: kind, exit code, paths and words. Numbers in the words are
    /// left out, because they count seconds, lines and processes.
    pub fn signature(&self) -> String {
        let words = [&self.message].into_iter().chain(&self.paths).chain(&self.log);
        let words: Vec<String> = words.map(|line| without_numbers(line)).collect();
        format!("{} {:?} {}", self.kind, self.exit_code, words.join("\n"))
    }

    /// The commit that the lane began with, where the gate fails in the same way.
    pub fn in_base(&self) -> Option<&CommitId> {
        self.diagnosis.as_ref()?.in_base.as_ref()
    }

    /// Whether the complaints of the gate are those that it has without the lane's changes. Output without complaints may be
    /// that of a gate which only prints that the work is not done.
    pub fn is_of_base(&self) -> bool {
        self.diagnosis.as_ref().is_some_and(|diagnosis| diagnosis.in_base.is_some() && !diagnosis.findings.is_empty())
    }

    /// The entries of `failure_context` for this failure of attempt `attempt`: the error, then the last
    /// [`CONTEXT_LOG_ENTRIES`] log entries (seed 004).
    pub fn context(&self, attempt: u32) -> Vec<String> {
        let mut entries = vec![format!("Attempt {attempt}: {}", self.message)];
        if !self.paths.is_empty() {
            entries[0].push_str(&format!(" [{}]", self.paths.join(", ")));
        }
        if self.kind == FailureKind::Idle {
            entries.push(DECIDE_YOURSELF.to_owned());
        }
        let skipped = self.log.len().saturating_sub(CONTEXT_LOG_ENTRIES);
        entries.extend(self.log.iter().skip(skipped).cloned());
        entries
    }
}

fn without_numbers(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for character in line.chars() {
        let character = if character.is_ascii_digit() { '#' } else { character };
        if character != '#' || !text.ends_with('#') {
            text.push(character);
        }
    }
    text
}

word_enum! {
    // SPEC §7.
    /// The kind of a failure.
    FailureKind {
        /// The agent ended with a code other than 0, or could not be started.
        Crash = "crash",
        /// The agent ran out of time.
        Timeout = "timeout",
        /// The supervisor vanished while Lanewright watched.
        Lost = "lost",
        /// The agent's own report says that it failed, or cannot be read.
        Report = "report",
        /// The agent changed files that it may not change.
        Ownership = "ownership",
        /// The agent's tasks together changed no file.
        Idle = "idle",
        /// A gate or the lane's tests failed.
        Gate = "gate",
        /// A gate or a setup needs a program that was not found or cannot be run, or a gate fails in the same way without
        /// the lane's changes; not the agent's doing.
        Environment = "environment",
        /// Work that was to be merged changed the same lines.
        Conflict = "conflict",
        /// A reviewer or a person said no.
        Rejected = "rejected",
        /// A host could not be reached; not the agent's doing.
        Network = "network",
        /// A service accepted no more requests; not the agent's doing.
        Quota = "quota",
        /// A service refused the agent's program, or the program cannot work, until a person changes something.
        Refused = "refused",
        /// Git, the disk or a permission; not the agent's doing.
        State = "state",
    }
}

impl FailureKind {
    /// Whether a person has to change something that is neither the agent's work nor its doing.
    pub fn needs_user(self) -> bool {
        matches!(self, Self::Environment | Self::Refused)
    }

    /// Whether something outside is the reason, and not the agent.
    pub fn is_outage(self) -> bool {
        matches!(self, Self::Network | Self::Quota | Self::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_signature_ignores_numbers() {
        let failed = |message: &str, log: &str| {
            Failure { log: vec![log.to_owned()], ..Failure::new(FailureKind::Gate, message) }.signature()
        };
        let first = failed("`make` exited with code 2", "1 of 20 failed in 0.3 s");
        assert_eq!(first, failed("`make` exited with code 2", "11 of 20 failed in 7.31 s"));
        assert_ne!(first, failed("`make` exited with code 2", "1 of 20 skipped in 0.3 s"));
        assert_ne!(first, failed("`ninja` exited with code 2", "1 of 20 failed in 0.3 s"));
    }
}
