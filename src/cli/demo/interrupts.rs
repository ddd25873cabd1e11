//! Ctrl-C and its like, which end the demo only after it has cleaned up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::error::{CliError, ExitStatus};

/// What was asked for by signals.
pub(super) struct Interrupts {
    interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
}

impl Interrupts {
    /// Takes the signals over from the system's defaults.
    pub(super) fn watch() -> Result<Self, CliError> {
        let interrupts = Self { interrupted: Arc::default(), terminated: Arc::default() };
        let flags =
            [(SIGINT, &interrupts.interrupted), (SIGTERM, &interrupts.terminated), (SIGHUP, &interrupts.terminated)];
        for (signal, flag) in flags {
            signal_hook::flag::register(signal, flag.clone())
                .map_err(|error| CliError::new(ExitStatus::Failed, format!("cannot listen for signals: {error}")))?;
        }
        Ok(interrupts)
    }

    /// An error once somebody wants the demo to end.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let ended = |status| Err(CliError::new(status, "the demo was interrupted; what it had started is stopped"));
        if self.interrupted.load(Ordering::Relaxed) {
            return ended(ExitStatus::Interrupted);
        }
        if self.terminated.load(Ordering::Relaxed) { ended(ExitStatus::Terminated) } else { Ok(()) }
    }
}
