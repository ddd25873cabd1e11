//! Asking the process that works on a run to do something, and waiting until the run log says that it has heard.

use std::time::{Duration, Instant};

use super::error::{CliError, ExitStatus};
use crate::event::Event;
use crate::store::lock::is_held;
use crate::store::{Follower, Request, RunDirectory, requests};

/// How long a live process may take to hear a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the run log is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Leaves `request` and waits until the log holds an event that `is_answer`. `false`: the process ended before it heard.
///
/// A request that nobody heard is taken back, so that no later resume finds it.
pub(super) fn ask(
    directory: &RunDirectory,
    request: &Request,
    is_answer: impl Fn(&Event) -> bool,
) -> Result<bool, CliError> {
    let mut log = Follower::new(&directory.log());
    log.poll()?;
    let waiting = requests::submit(&directory.requests(), request)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Looked at before the log: what a process that has ended wrote last is in the log by then.
        let held = is_held(&directory.lock());
        if log.poll()?.records.iter().any(|record| is_answer(&record.event)) {
            return Ok(true);
        }
        if !held || Instant::now() > deadline {
            let withdrawn = requests::withdraw(&waiting)?;
            return if held { Err(unheard(withdrawn)) } else { Ok(false) };
        }
        std::thread::sleep(LOOK);
    }
}

fn unheard(withdrawn: bool) -> CliError {
    let seconds = PATIENCE.as_secs();
    let message = if withdrawn {
        format!("the process that works on the run did not hear within {seconds} s; the request was taken back")
    } else {
        format!("the process that works on the run took the request and recorded nothing within {seconds} s")
    };
    CliError::new(ExitStatus::Held, message).hint("see whether it is alive: lanekeeper status")
}
