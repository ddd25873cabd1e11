//! Programs by name.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program called `name` in the first of the directories of `path`, a value of `PATH`, that has it.
pub fn find_program(path: &str, name: &str) -> Option<PathBuf> {
    let is_program = |place: &PathBuf| {
        place.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    path.split(':').map(|directory| Path::new(directory).join(name)).find(is_program)
}
