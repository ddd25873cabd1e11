//! The one place where an error becomes a message, hints and an exit code.

use std::error::Error;
use std::fmt::{Display, Write};
use std::io;
use std::process::ExitCode;

use rustix::io::Errno;
use serde::Serialize;
use serde_json::{Value, json};

use crate::progress::projections::ProjectionError;
use lanewright_engine::at_resume::ResumeError;
use lanewright_engine::doctor::DoctorError;
use lanewright_engine::drive::DriverError;
use lanewright_engine::executor::ExecutorError;
use lanewright_engine::rollback::RollbackError;
use lanewright_engine::state_sync::StateSyncError;
use lanewright_files::FileError;
use lanewright_git::GitError;
use lanewright_model::text::counted;
use lanewright_plan::settings::{Faults, Severity};
use lanewright_programs::forge::ForgeError;
use lanewright_programs::process::ProcessError;
use lanewright_schedule::Fault;
use lanewright_schedule::RunLoopError;
use lanewright_store::LogError;
use lanewright_store::checkpoints::CheckpointsError;
use lanewright_store::lock::LockError;

pub(crate) use anyhow::Result;

macro_rules! statuses {
    ($($name:ident = $code:literal, $kind:literal, $meaning:literal;)*) => {
        /// How a command ended; the same codes for every command (SPEC §2).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum ExitStatus { $($name = $code,)* }

        impl ExitStatus {
            /// In the order of the codes.
            pub(super) const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word in the JSON form of an error.
            pub(super) fn kind(self) -> &'static str {
                match self { $(Self::$name => $kind,)* }
            }

            pub(super) fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

statuses! {
    Done = 0, "done", "done";
    Failed = 1, "failed", "at least one lane failed";
    Usage = 2, "usage", "bad usage, or an invalid plan or configuration";
    Blocked = 3, "blocked", "blocked: a person must act";
    Held = 4, "held", "held by another live session";
    ExternalChanges = 5, "external_changes", "external changes found at resume";
    Corrupted = 6, "corrupted", "corrupted state that could not be repaired";
    InvalidOperation = 7, "INVALID_OPERATION", "INVALID_OPERATION, such as the resume of a completed run";
    InvalidState = 8, "INVALID_STATE", "INVALID_STATE, such as a resume with no checkpoint";
    NotOffered = 75, "not_offered", "claimed or withdrawn (`work`), or another job must continue (`ci`)";
    TimedOut = 124, "timed_out", "--timeout passed";
    HungUp = 129, "hung_up", "the terminal was closed (SIGHUP); agents continue, resumable";
    Interrupted = 130, "interrupted", "stopped by SIGINT (Ctrl-C); resumable";
    Terminated = 143, "terminated", "stopped by SIGTERM; resumable";
}

impl ExitStatus {
    pub(super) fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn of_code(code: u64) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| u64::from(status.code()) == code)
    }

    /// An error that ends the command with this status.
    pub(super) fn error(self, message: impl Into<String>) -> anyhow::Error {
        self.failure(message).into()
    }

    fn failure(self, message: impl Into<String>) -> CliError {
        CliError { status: self, message: message.into(), hints: Vec::new() }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        status.code().into()
    }
}

pub(super) fn exit_code_table() -> String {
    ExitStatus::ALL.iter().fold("Exit codes:".to_owned(), |mut table, status| {
        let _ = write!(table, "\n  {:>3}  {}", status.code(), status.meaning());
        table
    })
}

/// Why a command failed, as it is shown. With [`ExitStatus::Done`] nothing is shown: the reader of the output went away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CliError {
    pub(super) status: ExitStatus,
    pub(super) message: String,
    /// What to do about it, each a line of its own.
    pub(super) hints: Vec<String>,
}

/// An error, which ends the command.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ErrorLine<'a> {
    /// The exit code.
    #[cfg_attr(test, schemars(extend("enum" = errors().map(ExitStatus::code).collect::<Vec<_>>())))]
    code: u8,
    /// What the exit code means, in a word.
    #[cfg_attr(test, schemars(extend("enum" = errors().map(ExitStatus::kind).collect::<Vec<_>>())))]
    kind: &'static str,
    message: &'a str,
    /// What to do about it.
    hints: &'a [String],
}

#[cfg(test)]
fn errors() -> impl Iterator<Item = ExitStatus> {
    ExitStatus::ALL.iter().copied().filter(|status| *status != ExitStatus::Done)
}

/// A warning, which does not end the command.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct WarningLine<'a> {
    #[cfg_attr(test, schemars(extend("const" = WarningLine::KIND)))]
    kind: &'static str,
    message: String,
    /// What to do about it.
    hints: &'a [String],
}

impl<'a> WarningLine<'a> {
    const KIND: &'static str = "warning";

    pub(super) fn new(message: impl Display, hints: &'a [String]) -> Self {
        Self { kind: Self::KIND, message: message.to_string(), hints }
    }
}

impl CliError {
    pub(super) fn to_json(&self) -> Value {
        let (code, kind) = (self.status.code(), self.status.kind());
        json!(ErrorLine { code, kind, message: &self.message, hints: &self.hints })
    }

    /// The message and what to do about it, for texts that have one line for both.
    pub(super) fn one_line(&self) -> String {
        std::iter::once(&self.message).chain(&self.hints).map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

pub(crate) trait Hint {
    fn hint(self, hint: impl Into<String>) -> anyhow::Error;
}

impl Hint for anyhow::Error {
    fn hint(self, hint: impl Into<String>) -> Self {
        CliError::from(self).hinted(hint).into()
    }
}

/// Whether another live session holds what was wanted.
pub(super) fn is_held(error: &anyhow::Error) -> bool {
    error.chain().find_map(known).is_some_and(|error| error.status == ExitStatus::Held)
}

impl From<anyhow::Error> for CliError {
    /// The first cause that is known decides; the contexts before it are part of the message.
    fn from(error: anyhow::Error) -> Self {
        let mut message = String::new();
        for cause in error.chain() {
            let known = known(cause);
            let text = known.as_ref().map_or_else(|| cause.to_string(), |known| known.message.clone());
            // Many errors quote their source.
            if !message.contains(&text) {
                let separator = if message.is_empty() { "" } else { ": " };
                let _ = write!(message, "{separator}{text}");
            }
            if let Some(known) = known {
                return Self { message, ..known };
            }
        }
        ExitStatus::Failed.failure(message)
    }
}

fn known(error: &(dyn Error + 'static)) -> Option<CliError> {
    let of = error;
    None.or_else(|| of.downcast_ref::<CliError>().cloned())
        .or_else(|| of.downcast_ref().map(of_output))
        .or_else(|| of.downcast_ref().map(of_faults))
        .or_else(|| of.downcast_ref().map(of_git))
        .or_else(|| of.downcast_ref::<FileError>().map(|error| blocked(error).hinted(FREE_SPACE)))
        .or_else(|| of.downcast_ref().map(of_log))
        .or_else(|| of.downcast_ref::<CheckpointsError>().map(|error| corrupted(error).hinted(SEE_DOCTOR)))
        .or_else(|| of.downcast_ref().map(of_lock))
        .or_else(|| of.downcast_ref().map(of_resume))
        .or_else(|| of.downcast_ref().map(of_state))
        .or_else(|| of.downcast_ref().map(of_driver))
        .or_else(|| of.downcast_ref::<Fault>().map(corrupted))
        .or_else(|| of.downcast_ref().map(of_forge))
        .or_else(|| executor_error(of).map(of_executor))
        .or_else(|| of.downcast_ref::<ProjectionError>().map(blocked))
        .or_else(|| of.downcast_ref::<ProcessError>().map(blocked))
}

fn blocked(error: &impl Error) -> CliError {
    ExitStatus::Blocked.failure(error.to_string())
}

fn corrupted(error: &impl Error) -> CliError {
    ExitStatus::Corrupted.failure(error.to_string())
}

/// Standard output did not take what was written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub(super) struct OutputError(#[source] pub(super) io::Error);

impl OutputError {
    /// Whether the reader is gone: a closed pipe, or a closed terminal.
    fn is_gone(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe || self.0.raw_os_error() == Some(Errno::IO.raw_os_error())
    }
}

/// A run does not fail because its output has no reader any more.
pub(super) fn unless_gone(printed: Result<()>) -> Result<()> {
    match printed {
        Err(error) if error.downcast_ref().is_some_and(OutputError::is_gone) => Ok(()),
        printed => printed,
    }
}

fn of_output(error: &OutputError) -> CliError {
    match error.is_gone() {
        true => ExitStatus::Done.failure(""),
        false => ExitStatus::Failed.failure(error.to_string()),
    }
}

fn of_faults(Faults(faults): &Faults) -> CliError {
    let errors = faults.iter().filter(|fault| fault.severity == Severity::Error);
    let mut message = format!("the configuration is invalid ({})", counted(errors.count(), "error"));
    for fault in faults {
        let warning = if fault.severity == Severity::Warning { "warning: " } else { "" };
        let _ = write!(message, "\n  {warning}{fault}");
    }
    let hints = faults.iter().filter_map(|fault| fault.help.clone()).collect();
    CliError { hints, ..ExitStatus::Usage.failure(message) }
}

impl From<&clap::Error> for CliError {
    /// Clap's message, its tips, and where to read more.
    fn from(refusal: &clap::Error) -> Self {
        let text = refusal.render().to_string();
        let (message, rest) = text.trim_end().split_once("\n\n").unwrap_or((text.trim_end(), ""));
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let tips = rest.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
        let more = rest.lines().filter(|line| line.starts_with("For more information"));
        let hints = tips.chain(more).map(str::to_owned).collect();
        Self { hints, ..ExitStatus::Usage.failure(message) }
    }
}

fn of_git(error: &GitError) -> CliError {
    let status = match error {
        GitError::TooOld { .. }
        | GitError::NotARepository { .. }
        | GitError::Bare { .. }
        | GitError::NoMainWorktree { .. }
        | GitError::RefFormat { .. }
        | GitError::UnbornHead { .. } => ExitStatus::Usage,
        _ => ExitStatus::Blocked,
    };
    CliError { hints: error.remedy().into_iter().collect(), ..status.failure(error.to_string()) }
}

/// What to type where a file cannot be written.
const FREE_SPACE: &str = "free disk space or fix the permissions, then repeat the command";

fn of_log(error: &LogError) -> CliError {
    let message = error.to_string();
    match error {
        LogError::TamperedWith { restored: Ok(_), .. } => ExitStatus::Corrupted.failure(message),
        LogError::Damaged { .. } | LogError::TamperedWith { restored: Err(_), .. } => {
            ExitStatus::Corrupted.failure(message).hinted(SEE_DOCTOR)
        }
        LogError::Empty { .. } => ExitStatus::InvalidState.failure(message),
        _ => ExitStatus::Blocked.failure(message),
    }
}

/// What to type where stored state is damaged.
pub(super) const SEE_DOCTOR: &str = "to see what can be repaired: lanewright doctor";

fn of_lock(error: &LockError) -> CliError {
    match error {
        LockError::Held { .. } => ExitStatus::Held
            .failure(error.to_string())
            .hinted("`lanewright status` shows what it does, `lanewright stop RUN` stops it"),
        _ => blocked(error),
    }
}

fn of_resume(error: &ResumeError) -> CliError {
    let status = match error {
        ResumeError::HalfRolledBack { .. } => ExitStatus::Blocked,
        ResumeError::Complete(_) => ExitStatus::InvalidOperation,
        ResumeError::NoCheckpoint(_) => ExitStatus::InvalidState,
        ResumeError::NoBeginning(_) | ResumeError::Contradiction { .. } => ExitStatus::Corrupted,
    };
    let failure = status.failure(error.to_string());
    match error {
        ResumeError::Contradiction { fault: Fault::UnknownAgent(..), .. } => failure.hinted(SEE_DOCTOR),
        _ => failure,
    }
}

/// That of the executor, with which a rollback or a repair may fail as well.
fn executor_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a ExecutorError> {
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(RollbackError::Executor(error)), _) | (_, Some(DoctorError::Executor(error))) => Some(error),
        _ => error.downcast_ref(),
    }
}

fn of_executor(error: &ExecutorError) -> CliError {
    match error {
        ExecutorError::Git(error) => of_git(error),
        ExecutorError::Forge(error) => of_forge(error),
        error => blocked(error),
    }
}

fn of_forge(error: &ForgeError) -> CliError {
    blocked(error).hinted(error.remedy())
}

fn of_state(error: &StateSyncError) -> CliError {
    let with = |status: ExitStatus| status.failure(error.to_string());
    match error {
        StateSyncError::Unreadable { .. } => with(ExitStatus::Corrupted).hinted(SEE_DOCTOR),
        StateSyncError::NoState { remote, .. } => {
            with(ExitStatus::InvalidState).hinted(format!("to list its runs: lanewright state list --remote {remote}"))
        }
        StateSyncError::Damaged { remote, run, .. } => with(ExitStatus::Corrupted)
            .hinted("nothing was changed here; push it again from where it ran, with --force")
            .hinted(format!("or give it up: lanewright state drop {run} --remote {remote} --force")),
        StateSyncError::NewerFormat { .. } => with(ExitStatus::Blocked).hinted("use a newer Lanewright"),
        StateSyncError::Superseded { remote, run, .. } => with(ExitStatus::Held)
            .hinted(format!("to take theirs: lanewright clean {run} --force --logs, then lanewright state pull {run}"))
            .hinted(format!("to keep this one: lanewright state push {run} --remote {remote} --force")),
        StateSyncError::Claimed { run, remote, .. } => with(ExitStatus::Held)
            .hinted(format!("when it has ended: lanewright state pull {run} --remote {remote}"))
            .hinted(format!("to take it away from there: lanewright state push {run} --remote {remote} --force")),
        StateSyncError::Fenced { .. } => with(ExitStatus::NotOffered),
        StateSyncError::Taken { run, remote, reference, .. } => with(ExitStatus::Held)
            .hinted(format!("to have it here, push its state there; then: lanewright clean {run} --force --logs, and lanewright state pull {run}"))
            .hinted(format!("to give up what is there: git push {remote} --delete {reference}, then lanewright resume {run}")),
        StateSyncError::Shallow => with(ExitStatus::Blocked)
            .hinted("fetch the rest: git fetch --unshallow (in GitHub Actions: fetch-depth: 0; in GitLab CI: GIT_DEPTH: \"0\")"),
        StateSyncError::InTheWay { name, .. } => with(ExitStatus::Blocked)
            .hinted(format!("if nothing needs it any more: git update-ref -d {name}; then pull again")),
        StateSyncError::Diverged { branch, there, .. } => with(ExitStatus::Blocked)
            .hinted(format!("to join them: git switch {branch} && git merge {there}, then pull again")),
        StateSyncError::Obstructed(_) => with(ExitStatus::Blocked),
        StateSyncError::Failed(_) | StateSyncError::Json(_) => with(ExitStatus::Failed),
        StateSyncError::Git(error) => of_git(error),
        StateSyncError::File(error) => blocked(error).hinted(FREE_SPACE),
        StateSyncError::Log(error) => of_log(error),
    }
}

fn of_driver(error: &DriverError) -> CliError {
    let message = format!("the run stopped: {error}");
    match error {
        DriverError::HungUp => ExitStatus::HungUp.failure(message).hinted("to continue: lanewright resume"),
        DriverError::RunLoop(RunLoopError::Log(LogError::TamperedWith { restored: Ok(_), .. })) => {
            ExitStatus::Corrupted.failure(message).hinted("no work is lost; to continue: lanewright resume")
        }
        DriverError::RunLoop(RunLoopError::Log(LogError::TamperedWith { restored: Err(_), .. })) => {
            ExitStatus::Corrupted.failure(message).hinted(SEE_DOCTOR)
        }
        _ => ExitStatus::Blocked
            .failure(message)
            .hinted("running agents continue under their supervisors; fix the cause, then `lanewright resume`"),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn first_known_cause_decides_status() {
        let git = || GitError::UnbornHead { path: "/r".into() };
        let error = CliError::from(Err::<(), _>(git()).context("cannot start").unwrap_err());
        assert_eq!(error.status, ExitStatus::Usage);
        assert_eq!(error.message, "cannot start: /r has no commit yet");
        assert_eq!(error.hints, ["make a first one (`git commit --allow-empty -m start`)"]);
        let own = ExitStatus::Held.error("it is held").hint("wait").context("outer");
        assert!(is_held(&own));
        let own = CliError::from(own);
        assert_eq!((own.message.as_str(), own.hints.as_slice()), ("outer: it is held", ["wait".to_owned()].as_slice()));
        let pipe = OutputError(io::ErrorKind::BrokenPipe.into());
        assert_eq!(CliError::from(anyhow::Error::from(pipe)), ExitStatus::Done.failure(""));
    }

    #[test]
    fn semicolon_in_git_message_starts_no_hint() {
        let pattern = GitError::BadPattern { pattern: "a; b".into(), reason: "it is not a glob".into() };
        let error = CliError::from(anyhow::Error::from(pattern));
        assert_eq!(error.message, "`a; b` is not a valid file pattern: it is not a glob");
        assert!(error.hints.is_empty());
    }

    #[test]
    fn unknown_error_fails_and_source_is_printed_once() {
        let disk = FileError::Io { action: "write", path: "/f".into(), source: io::Error::other("disk full") };
        let error = CliError::from(Err::<(), _>(io::Error::from(disk)).context("cannot save").unwrap_err());
        assert_eq!(
            (error.status, error.message.as_str()),
            (ExitStatus::Failed, "cannot save: cannot write /f: disk full")
        );
        assert!(error.hints.is_empty());
    }
}
