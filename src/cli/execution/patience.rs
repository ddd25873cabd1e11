//! Waiting for what a living session holds (`--on-lock-conflict wait`).

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::git::{GitError, Repository};
use crate::model::time::short;
use crate::settings::{OnLockConflict, Settings};

/// How often what is waited for is tried.
const PAUSE: Duration = Duration::from_millis(300);

/// Tries until nobody who lives is in the way, if the settings say so; says for whom it waits. A signal ends the wait,
/// and so does the run's time limit.
pub(super) fn patiently<T>(
    context: &Context,
    settings: &Settings,
    mut attempt: impl FnMut() -> Result<T, CliError>,
) -> Result<T, CliError> {
    let began = Instant::now();
    let mut wait: Option<Wait> = None;
    loop {
        let error = match attempt() {
            Err(error) if error.status == ExitStatus::Held => error,
            done => return done,
        };
        if settings.on_lock_conflict.value != OnLockConflict::Wait {
            return Err(error);
        }
        let wait = match &mut wait {
            Some(wait) => wait,
            // Before anything is told: who reads it may send a signal.
            none => none.insert(Wait::begin().map_err(deaf)?),
        };
        wait.tell(context, &error.message);
        if let Some(limit) = settings.timeout.value.filter(|limit| began.elapsed() >= *limit) {
            let message = format!("waited {} in vain: {}", short(limit), error.message);
            return Err(CliError { status: ExitStatus::TimedOut, message, ..error });
        }
        wait.pause()?;
    }
}

/// How long a lock of git's is waited for, which no git holds for longer than a moment.
const GIT_PATIENCE: Duration = Duration::from_secs(10);

/// Waits until no other git holds the lock on packed refs. Git itself would wait as long for each ref that it deletes,
/// and say nothing.
pub(in crate::cli) fn wait_for_refs(context: &Context, repository: &Repository) -> Result<(), CliError> {
    let (lock, began) = (repository.packed_refs_lock(), Instant::now());
    let mut wait: Option<Wait> = None;
    while let Ok(facts) = lock.symlink_metadata() {
        let age = facts.modified().ok().and_then(|since| since.elapsed().ok()).unwrap_or_default();
        if age.max(began.elapsed()) >= GIT_PATIENCE {
            return Err(GitError::RefsLocked { lock }.into());
        }
        let wait = match &mut wait {
            Some(wait) => wait,
            none => none.insert(Wait::begin().map_err(deaf)?),
        };
        wait.tell(context, &format!("{} exists: another git changes refs", lock.display()));
        wait.pause()?;
    }
    Ok(())
}

fn deaf(error: std::io::Error) -> CliError {
    CliError::new(ExitStatus::Failed, format!("signals cannot be waited for: {error}"))
}

/// A wait that hears signals.
struct Wait {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    told: String,
}

impl Wait {
    fn begin() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let hang_up = signal(SignalKind::hangup())?;
        drop(entered);
        Ok(Self { runtime, interrupt, terminate, hang_up, told: String::new() })
    }

    /// Says for whom it waits, once.
    fn tell(&mut self, context: &Context, reason: &str) {
        if self.told != reason {
            context.printer.note(format!("Waiting: {reason}"));
            reason.clone_into(&mut self.told);
        }
    }

    /// Lets some time go by; a signal is an error with its exit code.
    fn pause(&mut self) -> Result<(), CliError> {
        let ended =
            |status, name: &str| Err(CliError::new(status, format!("{name} came while waiting; nothing was begun")));
        let Self { runtime, interrupt, terminate, hang_up, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => ended(ExitStatus::Interrupted, "SIGINT"),
                _ = terminate.recv() => ended(ExitStatus::Terminated, "SIGTERM"),
                _ = hang_up.recv() => ended(ExitStatus::Terminated, "SIGHUP"),
                () = sleep(PAUSE) => Ok(()),
            }
        })
    }
}
