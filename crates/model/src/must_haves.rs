//! What must be true of the repository once a lane's work is done (SPEC §3.2).

use serde::{Deserialize, Serialize};

/// The whole list of a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MustHaves {
    /// Statements that only a reader can judge; they are part of the agents' prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truths: Vec<String>,
    /// Files that must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Connections between files that must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_links: Vec<KeyLink>,
}

impl MustHaves {
    pub fn is_empty(&self) -> bool {
        self.truths.is_empty() && self.artifacts.is_empty() && self.key_links.is_empty()
    }

    /// A sentence for each requirement, for agents.
    pub fn descriptions(&self) -> Vec<String> {
        let artifacts = self.artifacts.iter().map(Artifact::describe);
        self.truths.iter().cloned().chain(artifacts).chain(self.key_links.iter().map(KeyLink::describe)).collect()
    }
}

/// A file that must be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Relative to the repository's root.
    pub path: String,
    /// What it is for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provides: Option<String>,
    /// How many lines it has at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_lines: Option<u32>,
    /// A regular expression that its text matches; one that is not valid is taken literally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Names that it exports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<String>,
}

impl Artifact {
    fn describe(&self) -> String {
        let provides = self.provides.as_ref().map(|provides| format!(" ({provides})")).unwrap_or_default();
        let mut text = format!("`{}`{provides} is there", self.path);
        if let Some(lines) = self.min_lines {
            text.push_str(&format!(", has at least {lines} lines"));
        }
        if let Some(pattern) = &self.contains {
            text.push_str(&format!(", contains `{pattern}`"));
        }
        if !self.exports.is_empty() {
            text.push_str(&format!(", exports {}", self.exports.join(", ")));
        }
        text
    }
}

/// A connection between two files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyLink {
    /// The file that refers to the other, relative to the repository's root.
    pub from: String,
    /// What it refers to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// How, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// A regular expression that occurs in `from`; one that is not valid is taken literally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

impl KeyLink {
    fn describe(&self) -> String {
        let via = self.via.as_ref().map(|via| format!(" ({via})")).unwrap_or_default();
        let pattern = self.pattern.as_ref().map(|pattern| format!(": `{pattern}` occurs in it")).unwrap_or_default();
        format!("`{}` refers to `{}`{via}{pattern}", self.from, self.to)
    }
}

super::word_enum! {
    /// What happens to a lane whose must-haves do not all hold.
    // The default is what logs mean that do not have it; that of the setting is `paths`.
    #[derive(Default)]
    MustHavesRule {
        /// It is reported, and the lane continues.
        #[default]
        Report = "report",
        /// A lane without one of its files goes back to its agents, as after failed tests; all else is reported.
        Paths = "paths",
        /// The lane goes back to its agents, as after failed tests.
        Enforce = "enforce",
    }
}

impl MustHavesRule {
    /// Whether a lane goes back to its agents with these verdicts.
    pub fn refuses(self, verdicts: &[Verdict]) -> bool {
        match self {
            Self::Report => false,
            Self::Paths => verdicts.iter().any(|verdict| verdict.missing),
            Self::Enforce => any_broken(verdicts),
        }
    }
}

super::word_enum! {
    /// The kind of a must-have.
    Demand {
        /// A statement that only a reader can judge.
        Truth = "truth",
        /// A file.
        Artifact = "artifact",
        /// A connection between two files.
        KeyLink = "key_link",
    }
}

/// The result of checking one must-have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    pub kind: Demand,
    /// The statement, the file, or `from -> to`.
    pub about: String,
    /// What must hold, each in a few words; empty if only the file must exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// Whether it holds; null: only a reader can decide.
    pub holds: Option<bool>,
    /// Whether a file is certainly missing: its path names one file, which the work does not have in another place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// Why it does not hold, or what was not checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

impl Verdict {
    /// `src/a.rs: 12 of 30 lines`.
    pub fn describe(&self) -> String {
        let why = self.why.join("; ");
        let about = format!("{} {}", self.kind.word().replace('_', " "), self.about);
        if why.is_empty() { about } else { format!("{about}: {why}") }
    }
}

/// `4 of 5 hold`, of those that were checked; `2 not checked` where none was.
pub fn tally(verdicts: &[Verdict]) -> String {
    let hold = verdicts.iter().filter(|verdict| verdict.holds == Some(true)).count();
    let open = verdicts.iter().filter(|verdict| verdict.holds.is_none()).count();
    match (verdicts.len() - open, open) {
        (0, open) => format!("{open} not checked"),
        (checked, 0) => format!("{hold} of {checked} hold"),
        (checked, open) => format!("{hold} of {checked} hold, {open} not checked"),
    }
}

pub fn any_broken(verdicts: &[Verdict]) -> bool {
    verdicts.iter().any(|verdict| verdict.holds == Some(false))
}
