//! What is noted beside an index of ours from one snapshot to the next.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use git2::Oid;
use serde::{Deserialize, Serialize};

use super::index_file;
use crate::fs::regular_file;

/// What an index of ours holds. Objects are named as git prints them.
#[derive(Serialize, Deserialize)]
pub(super) struct Note {
    /// The tree that the index stands for.
    pub(super) tree: String,
    /// The worktree's own index, as it was compared.
    pub(super) covers: Option<Covered>,
}

/// An index of the worktree's, as ours was compared with it.
#[derive(Serialize, Deserialize)]
pub(super) struct Covered {
    /// Its checksum, if it has one.
    pub(super) index: Option<String>,
    /// The paths in it that are not in ours.
    pub(super) missing: Vec<String>,
    /// Whether ours has paths that are not in it: they may be ignored one day.
    pub(super) more: bool,
}

impl Covered {
    /// One of which ours is a copy.
    pub(super) fn copied(index: Option<String>) -> Self {
        Self { index, missing: Vec::new(), more: false }
    }
}

/// So much is noted.
pub(super) const MANY: usize = 512;

/// The checksum of the index in a file; `None`: it has none, or cannot be read.
pub(super) fn checksum_of(index: &Path) -> Option<String> {
    let mut end = Vec::new();
    let mut file = regular_file::open(index).ok()?;
    file.seek(SeekFrom::End(-20)).ok()?;
    file.read_to_end(&mut end).ok()?;
    checksum_in(&end)
}

/// The same of an index that was read.
pub(super) fn checksum_in(index: &[u8]) -> Option<String> {
    Some(Oid::from_bytes(index_file::checksum(index)?).ok()?.to_string())
}
