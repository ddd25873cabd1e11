//! What is known of an index of ours, noted beside it from one snapshot to the next.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use git2::Oid;

use super::index_file;

/// What an index of ours holds.
pub(super) struct Note {
    /// The tree that it stands for.
    pub(super) tree: Oid,
    /// The checksum of an index of the worktree's, every path of which is in ours.
    pub(super) covers: Option<Oid>,
}

impl Note {
    /// Reads what [`Self::text`] wrote.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().map(|word| Oid::from_str(word).ok());
        Some(Self { tree: words.next()??, covers: words.next().flatten() })
    }

    /// A line.
    pub(super) fn text(&self) -> String {
        match &self.covers {
            Some(covers) => format!("{} {covers}", self.tree),
            None => self.tree.to_string(),
        }
    }
}

/// The checksum of the index in a file; `None`: it has none, or cannot be read.
pub(super) fn checksum_of(index: &Path) -> Option<Oid> {
    let mut end = Vec::new();
    let mut file = File::open(index).ok()?;
    file.seek(SeekFrom::End(-20)).ok()?;
    file.read_to_end(&mut end).ok()?;
    Oid::from_bytes(index_file::checksum(&end)?).ok()
}
