//! How much was changed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::counted;

/// Changed files and lines; files that are not text have no lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeSize {
    /// Changed files.
    pub files: u64,
    /// Added lines.
    pub added: u64,
    /// Removed lines.
    pub removed: u64,
}

impl ChangeSize {
    pub fn is_empty(&self) -> bool {
        self.files == 0
    }
}

/// `3 files changed, +12 -4`
impl fmt::Display for ChangeSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = counted(usize::try_from(self.files).unwrap_or(usize::MAX), "file");
        write!(f, "{files} changed, +{} -{}", self.added, self.removed)
    }
}
