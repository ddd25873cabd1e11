//! What a failed gate's output does not say of its cause, and Lanewright knows.

use lanewright_model::{ExitCause, JobExit};

use crate::executor::Executor;

/// The exit code of shells for a program that cannot be run.
const NOT_EXECUTABLE: i32 = 126;

/// What programs print where they cannot listen on a port.
const PORT_TAKEN: &[&str] = &["EADDRINUSE", "ddress already in use"];

impl Executor {
    /// Adds to the last lines of a failed gate what its user, and the next attempt, should know.
    pub(super) fn add_hints(&self, exit: &mut JobExit) {
        if exit.cause != ExitCause::Exited || exit.passed() {
            return;
        }
        if exit.tail.iter().any(|line| PORT_TAKEN.iter().any(|words| line.contains(words))) {
            exit.tail.push(
                "lanewright: lanes run at the same time: a server that a gate starts should listen on $LANEWRIGHT_PORT, the first \
                 of ten ports that are the lane's"
                    .to_owned(),
            );
        }
        if exit.exit_code == NOT_EXECUTABLE && self.repository.ignores_modes().unwrap_or(false) {
            exit.tail.push(
                "lanewright: core.fileMode is false in this repository, so git does not record that a file was made \
                 executable: `git add --chmod=+x FILE` does"
                    .to_owned(),
            );
        }
    }
}
