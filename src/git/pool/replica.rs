//! Filling a new slot from a worktree that is near. Copying costs half of what it costs git to unpack.
//!
//! Nothing is believed of the worktree that is copied from, in which somebody may be working: a file is taken if its
//! bytes are those that the commit names, with the time at which they were written. All others are left to git, which
//! goes over the slot afterwards and looks at what the index says.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use git2::Oid;
use sha1::{Digest, Sha1};

use super::Pool;
use super::nearness::FAR;
use super::verbatim::{Blob, verbatim};
use crate::fs::regular_file::{Links, open_with};
use crate::fs::{atomic, handle};
use crate::git::error::{GitError, io_error};
use crate::git::slot::{Occupant, git_directory, occupant};
use crate::model::CommitId;

/// Larger files are left to git if they would have to be written.
const LARGEST: u64 = 32 << 20;

/// Smaller files are written as quickly as their content is shared.
const SHARED_FROM: u64 = 16 << 10;

/// Threads that copy at once.
const COPYING_THREADS: usize = 2;

impl Pool {
    /// Puts into slot `number`, which is made and empty, what another worktree has of `commit`. It does what it can:
    /// whatever is missing, or half there, git writes.
    pub(super) fn copy_what_is_near(&self, number: u32, commit: &CommitId) {
        let slot = self.slot(number);
        if let Err(error) = self.nearest_to(commit, &slot).and_then(|source| match source {
            Some(source) => self.copy(&source, &slot, commit),
            None => Ok(()),
        }) {
            tracing::debug!("{} is left to git: {error}", slot.display());
        }
    }

    /// The worktree whose head is nearest to `commit`, of several the user's own; none if all are far.
    fn nearest_to(&self, commit: &CommitId, slot: &Path) -> Result<Option<PathBuf>, GitError> {
        let slots = self.numbers()?.into_iter().map(|number| self.slot(number));
        let ours = slots.filter(|path| path != slot && matches!(occupant(&self.repository, path), Occupant::Ours(_)));
        let candidates = std::iter::once(self.repository.main_worktree().to_owned()).chain(ours);
        let rated = candidates.map(|path| (self.repository.distance(&path, commit), path));
        Ok(rated.filter(|(distance, _)| *distance < FAR).min_by_key(|(distance, _)| *distance).map(|(_, path)| path))
    }

    fn copy(&self, source: &Path, slot: &Path, commit: &CommitId) -> Result<(), GitError> {
        let files = verbatim(&self.repository, slot, commit)?;
        let copied = make_directories(slot, &files).and_then(|()| copy_all(source, slot, &files));
        let index = copied.and_then(|copied| if copied.is_empty() { Ok(()) } else { write_index(slot, &copied) });
        index.map_err(|error| io_error("copy", slot)(error))
    }
}

fn make_directories(slot: &Path, files: &[Blob]) -> io::Result<()> {
    let directories: BTreeSet<PathBuf> =
        files.iter().filter_map(|file| Some(file.below(slot).parent()?.to_owned())).collect();
    directories.iter().try_for_each(fs::create_dir_all)
}

/// Copies what it can, in the order of `files`.
fn copy_all<'a>(source: &Path, slot: &Path, files: &'a [Blob]) -> io::Result<Vec<(&'a Blob, Metadata)>> {
    let share = files.len().div_ceil(COPYING_THREADS).max(1);
    let sharing = Sharing::default();
    let copy_some = |some: &'a [Blob]| -> io::Result<Vec<(&'a Blob, Metadata)>> {
        let mut bytes = Vec::new();
        let copied =
            some.iter().map(|file| Ok(copy(source, slot, file, &sharing, &mut bytes)?.map(|copy| (file, copy))));
        copied.filter_map(io::Result::transpose).collect()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = files.chunks(share).map(|some| scope.spawn(move || copy_some(some))).collect();
        let parts = threads.into_iter().map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok(parts.collect::<io::Result<Vec<_>>>()?.concat())
    })
}

/// Copies one file, by way of `bytes` if it has to be written. `None`: it does not hold what it should, or cannot be read.
fn copy(
    source: &Path,
    slot: &Path,
    file: &Blob,
    sharing: &Sharing,
    bytes: &mut Vec<u8>,
) -> io::Result<Option<Metadata>> {
    let Ok((from, written)) = open(&file.below(source)) else { return Ok(None) };
    let path = file.below(slot);
    let mode = if file.executable { 0o777 } else { 0o666 };
    let create = || handle::create_new(&path, mode);
    let copy = match sharing.share(&from, written.len(), create, &path)? {
        // Looked at is what has come over: the source may change at any moment.
        Some(copy) if name_of(written.len(), &copy)? == file.id => copy,
        Some(_) => return fs::remove_file(&path).map(|()| None),
        None if written.len() > LARGEST
            || read(&from, bytes).is_err()
            || name_of(bytes.len() as u64, bytes.as_slice())? != file.id =>
        {
            return Ok(None);
        }
        None => {
            let copy = create()?;
            handle::write_all(&copy, bytes)?;
            copy
        }
    };
    copy.set_times(FileTimes::new().set_modified(written.modified()?))?;
    copy.metadata().map(Some)
}

/// Opens an ordinary file; no link is followed, and nothing is waited for that is not there.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = open_with(path, Links::Refuse)?;
    let found = file.metadata()?;
    Ok((file, found))
}

fn read(file: &File, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    let read = file.take(LARGEST + 1).read_to_end(bytes)?;
    if read as u64 > LARGEST { Err(ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

/// The name under which git keeps a blob of these bytes.
fn name_of(length: u64, mut bytes: impl Read) -> io::Result<Oid> {
    let mut digest = Sha1::new().chain_update(format!("blob {length}\0"));
    io::copy(&mut bytes, &mut digest)?;
    Ok(Oid::from_bytes(&digest.finalize()).unwrap_or(Oid::ZERO_SHA1))
}

/// Whether files of a slot can share their content with those they are copied from, until either is changed (reflinks):
/// that depends on the file system, or on both, and is tried with the first file that is large enough.
#[derive(Debug, Default)]
struct Sharing {
    refused: AtomicBool,
}

impl Sharing {
    /// Makes a file with what is in `from`, which is `length` bytes. `None`: that has to be written.
    fn share(
        &self,
        from: &File,
        length: u64,
        create: impl Fn() -> io::Result<File>,
        path: &Path,
    ) -> io::Result<Option<File>> {
        if length < SHARED_FROM || self.refused.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let copy = create()?;
        if share_content(from, &copy) {
            return Ok(Some(copy));
        }
        self.refused.store(true, Ordering::Relaxed);
        fs::remove_file(path).map(|()| None)
    }
}

#[cfg(target_os = "linux")]
fn share_content(from: &File, to: &File) -> bool {
    rustix::fs::ioctl_ficlone(to, from).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn share_content(_: &File, _: &File) -> bool {
    false
}

/// Writes an index, version 2 of git's format, that knows `files` as they are on disk. Git writes its own after it.
fn write_index(slot: &Path, files: &[(&Blob, Metadata)]) -> io::Result<()> {
    let count = u32::try_from(files.len()).map_err(io::Error::other)?;
    let mut bytes = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    for (file, found) in files {
        write_entry(&mut bytes, file, found);
    }
    let sum = Sha1::digest(&bytes);
    bytes.extend_from_slice(&sum);
    let entry = git_directory(slot).map_err(io::Error::other)?;
    Ok(atomic::replace(&entry.join("index"), &bytes)?)
}

fn write_entry(bytes: &mut Vec<u8>, file: &Blob, found: &Metadata) {
    let begin = bytes.len();
    let mode: u32 = if file.executable { 0o100_755 } else { 0o100_644 };
    let times = [found.ctime(), found.ctime_nsec(), found.mtime(), found.mtime_nsec()].map(|time| time as u32);
    let owner = [found.dev() as u32, found.ino() as u32, mode, found.uid(), found.gid(), found.size() as u32];
    bytes.extend(times.iter().chain(&owner).flat_map(|number| number.to_be_bytes()));
    bytes.extend_from_slice(file.id.as_bytes());
    // The length as far as it fits; longer names end at their NUL.
    let length = u16::try_from(file.path.len()).unwrap_or(u16::MAX).min(0xfff);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&file.path);
    // One to eight NULs, so that an entry's length is a multiple of eight.
    let padding = 8 - (bytes.len() - begin) % 8;
    bytes.resize(bytes.len() + padding, 0);
}
