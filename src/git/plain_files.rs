//! Files of a worktree put into git's store byte for byte, without a process. Whether git would do the same is for
//! [`are_plain`](super::plain_paths::are_plain) to say.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use git2::Oid;

use super::stamp::stamp;
use crate::fs::regular_file;

/// The largest file that is read at once, in bytes; git has ways of its own for large ones.
pub(super) const LARGE: u64 = 4 << 20;

/// A file that is in the store.
pub(super) struct StoredFile {
    /// As it was when it was read.
    pub(super) found: Metadata,
    /// As in a tree.
    pub(super) mode: u32,
    /// Its blob, which is not durable yet.
    pub(super) object: Oid,
}

/// Puts what is at `path` of `worktree` into the store; `Some(None)`: nothing is there. `None`: it is neither a file nor
/// a link, too large, or somebody changes it.
pub(super) fn store_file(git: &git2::Repository, worktree: &Path, path: &[u8]) -> Option<Option<StoredFile>> {
    let Some((found, bytes)) = read(&worktree.join(OsStr::from_bytes(path))).ok()? else { return Some(None) };
    let (mode, object) = (mode(&found), git.blob(&bytes).ok()?);
    Some(Some(StoredFile { found, mode, object }))
}

/// Reads a file or a link that stays as it is meanwhile; `None`: there is none.
fn read(place: &Path) -> io::Result<Option<(Metadata, Vec<u8>)>> {
    let before = match fs::symlink_metadata(place) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        found => found?,
    };
    let bytes = match before.is_symlink() {
        true => fs::read_link(place)?.into_os_string().into_encoded_bytes(),
        false if before.is_file() && before.len() <= LARGE => regular_file::read(place)?,
        false => return Err(io::ErrorKind::Unsupported.into()),
    };
    let after = fs::symlink_metadata(place)?;
    let same = stamp(&before) == stamp(&after) && after.len() == bytes.len() as u64;
    if same { Ok(Some((after, bytes))) } else { Err(io::ErrorKind::ResourceBusy.into()) }
}

/// The mode that git has for a file.
fn mode(found: &Metadata) -> u32 {
    match () {
        () if found.is_symlink() => 0o120_000,
        () if found.mode() & 0o100 != 0 => 0o100_755,
        () => 0o100_644,
    }
}
