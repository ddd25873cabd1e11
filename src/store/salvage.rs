//! What can be saved of a damaged run log, and only what is certain: lines that a checksum proves, in an unbroken row.

use std::path::{Path, PathBuf};

use super::record::{self, mend_byte};
use super::run_log::{Damage, LogError, cannot, scan_all};
use crate::event::Record;
use crate::fs::{FileError, atomic, regular_file};
use crate::model::RunId;

/// What a damaged log still says.
#[derive(Debug)]
pub struct Salvage {
    /// The records from the first on, up to the first that is missing.
    pub records: Vec<Record>,
    /// These records as a log of their own.
    pub text: Vec<u8>,
    /// The lines with one wrong byte, which their checksums told.
    pub mended: Vec<usize>,
    /// The lines that are no records of the run and stand between records that follow each other: nothing is lost
    /// without them.
    pub needless: Vec<usize>,
    /// How many records can be read after one that is missing; 0: none is missing.
    pub stranded: usize,
    /// What is wrong with the lines that are neither mended nor needless.
    pub lost: Vec<Damage>,
}

/// Reads what can be saved of the log of `run` at `path`. Changes nothing.
///
/// # Errors
/// [`LogError::File`] and [`LogError::NewerFormat`] only.
pub fn salvage(path: &Path, run: &RunId) -> Result<Salvage, LogError> {
    let bytes = regular_file::read(path).map_err(|source| cannot("read", path, source))?;
    let mut mended = Vec::new();
    let mut lines: Vec<(usize, Vec<u8>)> = Vec::new();
    for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        if record::is_intact(line) {
            lines.push((index + 1, line.to_vec()));
        } else if let Some(line) = mend_byte(line) {
            mended.push(index + 1);
            lines.push((index + 1, line));
        }
    }
    let kept = without_needless(path, run, &lines)?;
    let text = joined(&kept);
    let scan = scan_all(path, &text)?.contents;
    let first_gap = scan.damage.first().map_or(kept.len(), |damage| damage.line - 1);
    let whole = joined(&kept[..first_gap.min(kept.len())]);
    let records = scan_all(path, &whole)?.contents.records;
    let stranded = scan.records.len().saturating_sub(records.len());
    let original = scan_all(path, &bytes)?.contents.damage;
    let last = lines.last().map_or(0, |(number, _)| *number);
    // Nobody knows what stood in a line after the last record.
    let is_lost = |damage: &Damage| stranded > 0 || damage.line > last;
    let (lost, needless): (Vec<Damage>, Vec<Damage>) =
        original.into_iter().filter(|damage| !mended.contains(&damage.line)).partition(is_lost);
    Ok(Salvage {
        records,
        text: whole,
        mended,
        needless: needless.iter().map(|damage| damage.line).collect(),
        stranded,
        lost,
    })
}

/// The lines without those that repeat an earlier one and those of other runs.
fn without_needless(path: &Path, run: &RunId, lines: &[(usize, Vec<u8>)]) -> Result<Vec<Vec<u8>>, LogError> {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for (_, line) in lines {
        let mut alone = line.clone();
        alone.push(b'\n');
        let is_own = scan_all(path, &alone)?.run.is_some_and(|(owner, _)| owner == *run);
        if is_own && !kept.contains(line) {
            kept.push(line.clone());
        }
    }
    Ok(kept)
}

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

/// Puts `text` in the place of the log at `path` and keeps what was there beside it, under a name that is answered. The
/// run's lock must be held. Asked again after a crash, it makes no second copy.
///
/// # Errors
/// [`FileError`]; the log is then as it was.
pub fn replace_log(path: &Path, text: &[u8]) -> Result<PathBuf, FileError> {
    let aside = keep_aside(path)?;
    atomic::write(path, text)?;
    Ok(aside)
}

/// Copies the file at `path` to a name beside it that follows from what it holds, and answers the name.
///
/// # Errors
/// [`FileError`].
pub fn keep_aside(path: &Path) -> Result<PathBuf, FileError> {
    let bytes =
        regular_file::read(path).map_err(|source| FileError::Io { action: "read", path: path.to_owned(), source })?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".damaged-{:08x}", crc32fast::hash(&bytes)));
    let aside = PathBuf::from(name);
    if !regular_file::read(&aside).is_ok_and(|kept| kept == bytes) {
        atomic::write(&aside, &bytes)?;
    }
    Ok(aside)
}

#[cfg(test)]
#[path = "salvage_tests.rs"]
mod tests;
