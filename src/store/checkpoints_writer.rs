//! Writing `checkpoints.json` again and again: what is known of the file is kept, so that a run of thousands of lanes does
//! not read thousands of records for every one that it adds, nor hold them all.

use std::borrow::Borrow;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::checkpoints::{CheckpointsError, lock_of, or_empty, read_text};
use super::checkpoints_layout::{EditError, Edits, Layout};
use super::lock::exclusively;
use crate::fs::regular_file::{Links, open_with};
use crate::fs::{atomic, directory};
use crate::model::CheckpointRecord;

/// A writer of the file at one path; any number of them, in any number of processes, may write it at once.
#[derive(Debug)]
pub struct CheckpointsWriter {
    path: PathBuf,
    /// What is known of the file, as long as it is the one that was seen.
    known: Option<(Seen, Layout)>,
}

impl CheckpointsWriter {
    /// Nothing is known yet of the file at `path`, which need not exist.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), known: None }
    }

    /// Puts `records` into the file, which is made if there is none.
    ///
    /// Each takes the place of the last record with its run, phase, lane and stage, and keeps the fields there that are
    /// not of the contract; without one it goes to the end. Everything else stays as it is, byte for byte.
    ///
    /// # Errors
    /// [`CheckpointsError`]; the file is then as it was.
    pub fn update<R: Borrow<CheckpointRecord>>(&mut self, records: &[R]) -> Result<(), CheckpointsError> {
        if let Some(directory) = self.path.parent() {
            directory::create_directory(directory)?;
        }
        // After an error the file is read anew.
        let known = self.known.take();
        self.known = exclusively(&lock_of(&self.path), || match known.and_then(|known| self.unchanged(known)) {
            Some((seen, file, layout)) if layout.covers(records) => self.write_known(seen, &file, layout, records),
            _ => self.write_anew(records),
        })??;
        Ok(())
    }

    /// What is known, if it still holds.
    fn unchanged(&self, (seen, layout): (Seen, Layout)) -> Option<(Seen, File, Layout)> {
        let file = open_with(&self.path, Links::Refuse).ok()?;
        (Seen::of(&file.metadata().ok()?) == seen).then_some((seen, file, layout))
    }

    fn write_known<R: Borrow<CheckpointRecord>>(
        &self,
        seen: Seen,
        old: &File,
        layout: Layout,
        records: &[R],
    ) -> Result<Option<(Seen, Layout)>, CheckpointsError> {
        let edits = layout.edits(records, |part| read_part(old, part)).map_err(|error| error.at(&self.path, ""))?;
        if edits.list.is_empty() {
            return Ok(Some((seen, layout)));
        }
        let write = |new: &File| {
            edits.parts(layout.size()).try_for_each(|(part, text)| {
                copy_part(old, part, new)?;
                (&*new).write_all(text.as_bytes())
            })
        };
        atomic::write_with(&self.path, write)?;
        Ok(self.known(layout.after(&edits)))
    }

    fn write_anew<R: Borrow<CheckpointRecord>>(
        &self,
        records: &[R],
    ) -> Result<Option<(Seen, Layout)>, CheckpointsError> {
        let found = read_text(&self.path)?.unwrap_or_default();
        let old = or_empty(&found);
        let planned = || {
            let layout = Layout::of(old, records).map_err(EditError::Unreadable)?;
            let edits = layout.edits(records, |part| Ok(old[part].to_owned()))?;
            Ok((layout, edits))
        };
        let (layout, edits): (Layout, Edits) = planned().map_err(|error: EditError<'_>| error.at(&self.path, old))?;
        if !edits.list.is_empty() || old != found {
            let write = |new: &File| {
                let mut new = BufWriter::new(new);
                let mut parts = edits.parts(old.len()).flat_map(|(part, text)| [&old[part], text]);
                parts.try_for_each(|part| new.write_all(part.as_bytes()))?;
                new.flush()
            };
            atomic::write_with(&self.path, write)?;
        }
        Ok(self.known(layout.after(&edits)))
    }

    /// A layout, with the file that has it. One of another size is somebody else's, put there meanwhile.
    fn known(&self, layout: Layout) -> Option<(Seen, Layout)> {
        let seen = self.seen()?;
        (usize::try_from(seen.size) == Ok(layout.size())).then_some((seen, layout))
    }

    fn seen(&self) -> Option<Seen> {
        std::fs::symlink_metadata(&self.path).ok().map(|metadata| Seen::of(&metadata))
    }
}

/// By what a file is known again. Whoever puts another one in its place, or writes into it, changes one of these.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Seen {
    fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

fn read_part(file: &File, part: Range<usize>) -> io::Result<String> {
    let mut bytes = vec![0; part.len()];
    file.read_exact_at(&mut bytes, part.start as u64)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// The kernel copies, and the bytes never come here.
fn copy_part(mut old: &File, part: Range<usize>, mut new: &File) -> io::Result<()> {
    old.seek(SeekFrom::Start(part.start as u64))?;
    let copied = io::copy(&mut old.take(part.len() as u64), &mut new)?;
    if copied == part.len() as u64 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
