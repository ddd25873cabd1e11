//! Signals that end a command which waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lanewright_programs::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::ExitStatus;

/// The time between two looks at the signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Signals that no longer end the process; each with how it ends the command and its name. A SIGHUP that was ignored when
/// the process began stays ignored.
pub(super) struct Signals(Vec<(Arc<AtomicBool>, ExitStatus, &'static str)>);

impl Signals {
    pub(super) fn watch() -> Result<Self> {
        let signals = [
            (SIGINT, ExitStatus::Interrupted, "SIGINT"),
            (SIGTERM, ExitStatus::Terminated, "SIGTERM"),
            (SIGHUP, ExitStatus::HungUp, "SIGHUP"),
        ];
        let ignores_hang_up = process::ignores_hang_up();
        let is_heeded = |signal: i32| signal != SIGHUP || !ignores_hang_up;
        let watch = |(signal, status, name)| {
            let came = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, came.clone()).map(|_| (came, status, name))
        };
        let heeded = signals.into_iter().filter(|(signal, ..)| is_heeded(*signal));
        let watched: std::io::Result<Vec<_>> = heeded.map(watch).collect();
        Ok(Self(watched.context("cannot listen for signals")?))
    }

    /// The first of them that came.
    pub(super) fn received(&self) -> Option<(ExitStatus, &'static str)> {
        let (_, status, name) = self.0.iter().find(|(came, ..)| came.load(Ordering::Relaxed))?;
        Some((*status, name))
    }

    /// Waits; a signal ends the wait with an error, whose message has the signal's name.
    pub(super) fn pause(&self, duration: Duration, message: impl Fn(&str) -> String) -> Result<()> {
        let until = Instant::now() + duration;
        loop {
            std::thread::sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
            if let Some((status, name)) = self.received() {
                return Err(status.error(message(name)));
            }
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Forgets a SIGINT that was meant for another program on the terminal.
    pub(super) fn forget_interrupt(&self) {
        let interrupts = self.0.iter().filter(|(_, status, _)| *status == ExitStatus::Interrupted);
        interrupts.for_each(|(came, ..)| came.store(false, Ordering::Relaxed));
    }
}
