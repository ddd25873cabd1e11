//! What a commit holds under a path.

/// A path of a commit, with its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Relative to the repository's root, parts separated by `/`.
    pub path: String,
    pub kind: TreeEntryKind,
    /// How many bytes a file has; 0 for what is no file.
    pub size: u64,
    /// The name of git's object.
    pub object: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeEntryKind {
    File,
    /// A symbolic link, which is never followed.
    Link,
    /// A submodule, which is not looked into.
    Submodule,
}
