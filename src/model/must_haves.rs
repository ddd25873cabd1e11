//! What must be true of the repository once a lane's work is done (SPEC §3.2).

use serde::{Deserialize, Serialize};

/// The whole list of a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MustHaves {
    /// Statements that only a reader can judge; agents are told of them.
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
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.truths.is_empty() && self.artifacts.is_empty() && self.key_links.is_empty()
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
