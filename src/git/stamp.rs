//! Whether a file is as it was, told without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Modification, change, inode and size of a file.
pub(super) type Stamp = [i64; 6];

/// How a file is.
pub(super) fn stamp(found: &Metadata) -> Stamp {
    let (inode, size) = (found.ino() as i64, found.size() as i64);
    [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec(), inode, size]
}

/// Files, and how each was once; `None`: it was not there.
#[derive(Debug, Default)]
pub(super) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

impl Stamps {
    /// As they are now.
    pub(super) fn now(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut stamps = Self::default();
        files.into_iter().for_each(|file| stamps.add(file));
        stamps
    }

    /// One more, as it is now.
    pub(super) fn add(&mut self, file: PathBuf) {
        if !self.0.iter().any(|(known, _)| *known == file) {
            let now = stamp_of(&file);
            self.0.push((file, now));
        }
    }

    /// Whether each still is as it was.
    pub(super) fn are_current(&self) -> bool {
        self.0.iter().all(|(file, then)| stamp_of(file) == *then)
    }
}

fn stamp_of(file: &Path) -> Option<Stamp> {
    std::fs::metadata(file).ok().map(|found| stamp(&found))
}
