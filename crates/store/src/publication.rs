//! That the work of a run is in its integration branch by other commits than its own: a forge squashed or rebased it.
//! Commits cannot tell that once somebody has changed the same lines again.

use lanewright_files::{FileError, atomic, regular_file};
use lanewright_model::CommitId;

use super::layout::RunDirectory;

/// Below the run's directory. It goes to other clones with the state.
const NAME: &str = "published";

impl RunDirectory {
    /// The commit of the integration branch that was seen to have the work of the run, if that was noted.
    pub fn publication(&self) -> Option<CommitId> {
        let text = regular_file::read(self.directory().join(NAME)).ok()?;
        CommitId::new(std::str::from_utf8(&text).ok()?.trim()).ok()
    }

    /// Notes that `commit`, which is in the integration branch, has the work of the run. The run's directory exists.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note_publication(&self, commit: &CommitId) -> Result<(), FileError> {
        atomic::write(&self.directory().join(NAME), format!("{commit}\n").as_bytes())
    }
}
