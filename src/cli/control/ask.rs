//! Asking the process that works on a run to do something, until the run log shows that it did.

use std::time::{Duration, Instant};

use lanewright_model::event::Event;
use lanewright_store::lock::{LockError, is_held};
use lanewright_store::{Follower, Holder, Request, RunDirectory, RunLock, requests};

use crate::cli::{ExitStatus, Hint, Result};

/// How long a live process may take to record a request.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// The time between two looks at the run log.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The run's lock, if no process works on the run; `None` once the process that does has recorded the `request`.
pub(crate) fn lock_or_ask(
    directory: &RunDirectory,
    holder: &Holder,
    mut request: impl FnMut() -> Result<Request>,
) -> Result<Option<RunLock>> {
    loop {
        match RunLock::acquire(&directory.lock(), holder) {
            Ok(lock) => return Ok(Some(lock)),
            Err(LockError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if ask(directory, &request()?)? {
            return Ok(None);
        }
    }
}

/// Leaves `request` and waits until the log has its answer; `false`: the process ended first.
///
/// A request without an answer is withdrawn, so that no later resume finds it.
fn ask(directory: &RunDirectory, request: &Request) -> Result<bool> {
    let mut log = Follower::new(&directory.log());
    log.poll()?;
    let waiting = requests::submit(&directory.requests(), request)?;
    let deadline = Instant::now() + LONGEST_ANSWER;
    loop {
        // Before the log: what a process that has ended wrote last is in the log already.
        let held = is_held(&directory.lock());
        if log.poll()?.records.iter().any(|record| is_answer(&record.event, request)) {
            return Ok(true);
        }
        if !held || Instant::now() > deadline {
            let withdrawn = requests::withdraw(&waiting)?;
            return if held { Err(unanswered(withdrawn)) } else { Ok(false) };
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn is_answer(event: &Event, request: &Request) -> bool {
    match (request, event) {
        (Request::Stop { lane, .. }, Event::StopRequested { lane: stopped, .. }) => lane == stopped,
        (Request::Answer { lane, gate, .. }, Event::GateAnswered { lane: answered, gate: at, .. }) => {
            (lane, gate) == (answered, at)
        }
        (Request::Record { reference, .. }, Event::SnapshotTaken { reference: taken, .. }) => reference == taken,
        _ => false,
    }
}

fn unanswered(withdrawn: bool) -> anyhow::Error {
    let seconds = LONGEST_ANSWER.as_secs();
    let message = if withdrawn {
        format!("the process that works on the run did not hear within {seconds} s; the request was taken back")
    } else {
        format!("the process that works on the run took the request and recorded nothing within {seconds} s")
    };
    ExitStatus::Held.error(message).hint("see whether it is alive: lanewright status")
}
