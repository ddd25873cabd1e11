//! How the binary ended, with assertions that show all it said when they fail.

use serde_json::Value;

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; 128 and the signal's number where a signal ended it.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Ended {
    /// Whether SIGKILL ended it.
    pub(crate) fn was_killed(&self) -> bool {
        self.code == 137
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code; stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that standard error holds each of the texts.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "it does not say `{text}`:\n{}", self.stderr);
        }
        self
    }

    /// Asserts that standard error offers a hint, which it puts on a line of its own.
    #[track_caller]
    pub(crate) fn hints(self, text: &str) -> Self {
        let hint = self.stderr.lines().any(|line| line.trim_start().starts_with("hint:") && line.contains(text));
        assert!(hint, "it does not hint at `{text}`:\n{}", self.stderr);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(parse).collect()
    }
}
