//! Asking the process that works on a run to do something, until the run log shows that it did.

use std::time::{Duration, Instant};

use lanewright_model::event::Event;
use lanewright_model::{Redactor, RunId};
use lanewright_store::lock::{LockError, is_held};
use lanewright_store::{Follower, Holder, Journal, Request, RunDirectory, RunLock, requests};

use crate::cli::run::complete_files_of;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, now};

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

/// Has the process that works on the run record what `request` asks for, or records it if there is none.
pub(crate) fn record(within: &RepositoryContext, run: &RunId, redactor: Redactor, request: Request) -> Result<()> {
    let directory = within.state.run(run);
    directory.create()?;
    let Some(_lock) = lock_or_ask(&directory, &within.holder(run), || Ok(request.clone()))? else {
        return Ok(());
    };
    let (journal, _) = Journal::open(&directory.log())?;
    let mut journal = journal.redacting(redactor);
    journal.append(now(), &Event::from(request))?;
    journal.sync()?;
    drop(journal);
    complete_files_of(within, run);
    Ok(())
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
        let is_answered = log.poll()?.records.iter().any(|record| is_answer(&record.event, request));
        // Events may have the same name: one that was recorded before this request was taken is another caller's.
        if is_answered
            && !(matches!(request, Request::Log { .. } | Request::Tell { .. } | Request::Pick { .. })
                && waiting.exists())
        {
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
        (Request::Tell { lane, message }, Event::MessageSent { lane: told, message: said }) => {
            (lane, message) == (told, said)
        }
        (Request::Pick { lane, agent }, Event::CandidatePicked { lane: of, agent: picked }) => {
            (lane, agent) == (of, picked)
        }
        (Request::Log { lane, name, .. }, Event::EventLogged { lane: about, name: logged, .. }) => {
            (lane, name) == (about, logged)
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
