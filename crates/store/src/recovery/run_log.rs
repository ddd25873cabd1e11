//! What can be saved of a damaged run log, and only what is certain: lines that a checksum proves, in an unbroken row.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lanewright_files::directory::with_suffix;
use lanewright_files::{FileError, atomic, regular_file};
use lanewright_model::RunId;
use lanewright_model::event::Record;

use crate::error::{Damage, LogError};
use crate::record;
use crate::run_log::scan_all;

/// The readable part of a damaged log.
#[derive(Debug)]
pub struct Salvage {
    /// The records from the first on, up to the first that is missing.
    pub records: Vec<Record>,
    /// These records as a log of their own.
    pub text: Vec<u8>,
    /// The lines that are no records of the run and stand between records that follow each other: nothing is lost
    /// without them.
    pub needless: Vec<usize>,
    /// How many records can be read after one that is missing; 0: none is missing.
    pub stranded: usize,
    /// What is wrong with the other lines that are no records.
    pub lost: Vec<Damage>,
}

/// Reads what can be saved of the log of `run` at `path`. Changes nothing.
///
/// # Errors
/// `LogError::File` and `LogError::NewerFormat` only.
pub fn salvage(path: &Path, run: &RunId) -> Result<Salvage, LogError> {
    let bytes = regular_file::read(path).map_err(FileError::io("read", path))?;
    let lines = bytes.split(|&byte| byte == b'\n').zip(1..);
    let intact: Vec<(&[u8], usize)> = lines.filter(|(line, _)| record::is_intact(line)).collect();
    let kept = without_needless(path, run, &intact)?;
    let scan = scan_all(path, &joined(&kept))?.contents;
    let first_gap = scan.damage.first().map_or(kept.len(), |damage| damage.line - 1);
    let text = joined(&kept[..first_gap.min(kept.len())]);
    let records = scan_all(path, &text)?.contents.records;
    let stranded = scan.records.len().saturating_sub(records.len());
    let last = intact.last().map_or(0, |(_, number)| *number);
    // The contents of a line after the last record are unknown.
    let is_lost = |damage: &Damage| stranded > 0 || damage.line > last;
    let (lost, needless): (Vec<Damage>, Vec<Damage>) =
        scan_all(path, &bytes)?.contents.damage.into_iter().partition(is_lost);
    Ok(Salvage { records, text, needless: needless.iter().map(|damage| damage.line).collect(), stranded, lost })
}

/// The lines without those that repeat an earlier one and those of other runs.
fn without_needless<'a>(path: &Path, run: &RunId, lines: &[(&'a [u8], usize)]) -> Result<Vec<&'a [u8]>, LogError> {
    let (mut kept, mut seen) = (Vec::new(), HashSet::new());
    for (line, _) in lines {
        let is_own = scan_all(path, line)?.run.is_some_and(|(owner, _)| owner == *run);
        if is_own && seen.insert(*line) {
            kept.push(*line);
        }
    }
    Ok(kept)
}

fn joined(lines: &[&[u8]]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

/// Puts `text` in the place of the log at `path` and keeps what was there beside it, under a name that is answered. The
/// run's lock must be held. Asked again after a crash, it makes no second copy.
pub fn replace_log(path: &Path, text: &[u8]) -> Result<PathBuf, FileError> {
    let aside = keep_aside(path)?;
    atomic::write(path, text)?;
    Ok(aside)
}

/// Copies the file at `path` to a name beside it that follows from its content, and returns the name.
pub fn keep_aside(path: &Path) -> Result<PathBuf, FileError> {
    let bytes = regular_file::read(path).map_err(FileError::io("read", path))?;
    let aside = with_suffix(path, &format!(".damaged-{:08x}", crc32fast::hash(&bytes)));
    if !regular_file::read(&aside).is_ok_and(|kept| kept == bytes) {
        atomic::write(&aside, &bytes)?;
    }
    Ok(aside)
}

#[cfg(test)]
mod tests;
