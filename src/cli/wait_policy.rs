//! Waiting for locks of other processes (`--on-lock-conflict wait`, and git's lock on packed refs).

use std::time::{Duration, Instant};

use lanewright_files::awake::AwakeClock;
use lanewright_git::{GitError, Repository};
use lanewright_model::time::exact;
use lanewright_plan::settings::{OnLockConflict, Settings};

use super::error::is_held;
use super::signals::Signals;
use super::{CliError, Context, ExitStatus, Result};

const PAUSE: Duration = Duration::from_millis(300);

/// Repeats `attempt` while a live session holds what it needs, if the settings say so. A signal ends the wait, and so does
/// the run's time limit.
pub(super) fn retry_while_held<T>(
    context: &Context,
    settings: &Settings,
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut clock = AwakeClock::start();
    let mut wait = None;
    loop {
        let error = match attempt() {
            Err(error) if is_held(&error) => CliError::from(error),
            done => return done,
        };
        if settings.on_lock_conflict.value != OnLockConflict::Wait {
            return Err(error.into());
        }
        let wait = Wait::begun(&mut wait)?;
        wait.report(context, &error.message);
        if let Some(limit) = settings.timeout.value.filter(|limit| clock.elapsed() >= *limit) {
            let message = format!("waited {} in vain: {}", exact(limit), error.message);
            return Err(CliError { status: ExitStatus::TimedOut, message, ..error }.into());
        }
        wait.pause()?;
    }
}

/// How long a lock of git's is waited for, which no git holds for longer than a moment.
const LONGEST_GIT_LOCK: Duration = Duration::from_secs(10);

/// Waits until no other git holds the lock on packed refs. Git itself would wait as long for each ref that it deletes,
/// without a message.
pub(super) fn wait_for_refs(context: &Context, repository: &Repository) -> Result<()> {
    let (lock, began) = (repository.packed_refs_lock(), Instant::now());
    let mut wait = None;
    while let Ok(facts) = lock.symlink_metadata() {
        let age = facts.modified().ok().and_then(|since| since.elapsed().ok()).unwrap_or_default();
        if age.max(began.elapsed()) >= LONGEST_GIT_LOCK {
            return Err(GitError::RefsLocked { lock }.into());
        }
        let wait = Wait::begun(&mut wait)?;
        wait.report(context, &format!("{} exists: another git changes refs", lock.display()));
        wait.pause()?;
    }
    Ok(())
}

struct Wait {
    signals: Signals,
    reported: String,
}

impl Wait {
    /// Begins to listen before anything is reported: a reader of the report may send a signal at once.
    fn begun(wait: &mut Option<Self>) -> Result<&mut Self> {
        let begun = match wait.take() {
            Some(begun) => begun,
            None => Self { signals: Signals::watch()?, reported: String::new() },
        };
        Ok(wait.insert(begun))
    }

    fn report(&mut self, context: &Context, reason: &str) {
        if self.reported != reason {
            context.printer.note(format!("Waiting: {reason}"));
            reason.clone_into(&mut self.reported);
        }
    }

    fn pause(&self) -> Result<()> {
        self.signals.pause(PAUSE, |name| format!("{name} came while waiting; nothing was begun"))
    }
}
