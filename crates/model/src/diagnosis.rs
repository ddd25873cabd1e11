//! The diagnosis of a failed gate from its output: the kind and the locations of the failure.

use serde::{Deserialize, Serialize};

use super::id::CommitId;
use super::word_enum;

word_enum! {
    // SPEC §8.
    /// Of which kind the failure of a gate is.
    FailureClass {
        /// The code, or its build configuration, cannot be parsed, compiled, linked or loaded.
        Compilation = "compilation",
        /// The code was built, and tests failed.
        Test = "test",
        /// Only formatters, linters or warnings that count as errors failed.
        Style = "style",
        /// It could not be classified.
        Unknown = "unknown",
    }
}

/// One complaint of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The file, relative to the worktree if it lies in it, else as it was written. Some tools name a file without its
    /// directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub line: Option<u32>,
    /// The column, as the tool counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The message, one line; empty if the tool prints only the location.
    pub message: String,
}

impl Finding {
    /// Whether this finding may be about the file at `path`, which is relative to the worktree: its file is that path
    /// or the end of it.
    pub fn may_name(&self, path: &str) -> bool {
        let Some(file) = self.file.as_deref() else { return false };
        path.strip_suffix(file).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    }
}

impl std::fmt::Display for Finding {
    /// `src/lib.rs:3:5: mismatched types`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self
            .file
            .clone()
            .into_iter()
            .chain(self.line.into_iter().chain(self.line.and(self.column)).map(|number| number.to_string()));
        let words: Vec<String> = [place.collect::<Vec<_>>().join(":"), self.message.clone()].into();
        f.write_str(&words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": "))
    }
}

/// The diagnosis of a failed gate from its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    pub class: FailureClass,
    /// The tool that was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The first complaints of that class, in the order of the output, none twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// How many complaints of that class there are: as many as were found, or more if the tool reports more.
    pub count: usize,
    /// The commit that the lane began with, if the gate fails there in the same way (decision 71).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_base: Option<CommitId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_without_directory_matches_file_name() {
        let finding =
            |file: &str| Finding { file: Some(file.to_owned()), line: None, column: None, message: String::new() };
        assert!(finding("src/lib.rs").may_name("src/lib.rs"));
        assert!(finding("LedgerTest.java").may_name("src/test/java/app/LedgerTest.java"));
        assert!(!finding("Test.java").may_name("src/LedgerTest.java"));
        assert!(!finding("crates/a/src/lib.rs").may_name("src/lib.rs"));
        assert!(!Finding { file: None, ..finding("") }.may_name("src/lib.rs"));
    }
}
