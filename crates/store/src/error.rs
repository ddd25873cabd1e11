//! Why a run log cannot be read or written.

use std::fmt;
use std::path::PathBuf;

use lanewright_files::FileError;

use super::log_guard::Tampering;
use super::record::{EncodeError, FORMAT, LineFault};

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} holds no record, so nothing was done in this run: remove the file and start again", .path.display())]
    Empty { path: PathBuf },
    #[error("{} has format {found}, this program reads {FORMAT}: use a newer Lanewright", .path.display())]
    NewerFormat { path: PathBuf, found: String },
    #[error("{} is damaged: {}", .path.display(), list(.damage))]
    Damaged { path: PathBuf, damage: Vec<Damage> },
    #[error("event `{event}` cannot be written to {}: {source}", .path.display())]
    Event { path: PathBuf, event: String, source: EncodeError },
    #[error("another program {} the run log {} while the run was active; {}", .how, .path.display(), outcome(.restored))]
    TamperedWith {
        path: PathBuf,
        how: Tampering,
        /// Where what was at the log's path is saved; the error is why the log was not restored.
        restored: Result<Option<PathBuf>, FileError>,
    },
    #[error("{} is closed after an error: {cause}", .path.display())]
    Poisoned { path: PathBuf, cause: String },
}

fn outcome(restored: &Result<Option<PathBuf>, FileError>) -> String {
    match restored {
        Ok(None) => "it was restored, with every record".to_owned(),
        Ok(Some(aside)) => {
            format!("it was restored, with every record, and the file found in its place saved as {}", aside.display())
        }
        Err(error) => format!("it could not be restored: {error}"),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The line's number in the file, from 1.
    pub line: usize,
    pub fault: LineFault,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.fault)
    }
}

fn list(damage: &[Damage]) -> String {
    let shown = damage.iter().take(10).map(Damage::to_string).collect::<Vec<_>>().join("; ");
    match damage.len().saturating_sub(10) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
