//! The one place where what went wrong becomes a message, hints and an exit code.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::printer::OutputError;
use crate::model::text::counted;
use crate::settings::{Faults, Severity};

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $kind:literal, $meaning:literal;)*) => {
        /// How a command ended, as the exit code says it; the same for every command (SPEC §2).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ExitStatus { $($(#[$doc])* $name = $code,)* }

        impl ExitStatus {
            /// Every status, in the order of the codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word that the machine form of an error uses.
            pub fn kind(self) -> &'static str {
                match self { $(Self::$name => $kind,)* }
            }

            /// What it means, for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

statuses! {
    /// All is well.
    Done = 0, "done", "done";
    /// Lanes failed, or something happened that no other code tells.
    Failed = 1, "failed", "at least one lane failed";
    /// The caller can mend it by calling otherwise.
    Usage = 2, "usage", "bad usage, or an invalid plan or configuration";
    /// Something outside must come first.
    Blocked = 3, "blocked", "blocked: a person must act";
    /// Another live session has it.
    Held = 4, "held", "held by another live session";
    /// Somebody else changed what a resume would go on with.
    ExternalChanges = 5, "external_changes", "external changes found at resume";
    /// State is damaged.
    Corrupted = 6, "corrupted", "corrupted state that could not be repaired";
    /// It can never be done, for example the resume of a completed run.
    InvalidOperation = 7, "INVALID_OPERATION", "INVALID_OPERATION, such as the resume of a completed run";
    /// It cannot be done now, for example a resume without a checkpoint.
    InvalidState = 8, "INVALID_STATE", "INVALID_STATE, such as a resume with no checkpoint";
    /// `--timeout` passed.
    TimedOut = 124, "timed_out", "--timeout passed";
    /// Ctrl-C.
    Interrupted = 130, "interrupted", "stopped by SIGINT (Ctrl-C); resumable";
    /// SIGTERM.
    Terminated = 143, "terminated", "stopped by SIGTERM; resumable";
}

impl ExitStatus {
    /// The exit code.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        status.code().into()
    }
}

/// The exit codes as `--help` shows them.
pub fn exit_code_table() -> String {
    ExitStatus::ALL.iter().fold("Exit codes:".to_owned(), |mut table, status| {
        let _ = write!(table, "\n  {:>3}  {}", status.code(), status.meaning());
        table
    })
}

/// Why a command did not do what it was asked for.
///
/// With [`ExitStatus::Done`] it says nothing: the reader of our output went away, which is nobody's fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    /// The exit code to end with.
    pub status: ExitStatus,
    /// What happened, and where.
    pub message: String,
    /// What to do about it, each a line of its own.
    pub hints: Vec<String>,
}

impl CliError {
    /// An error without hints.
    pub fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hints: Vec::new() }
    }

    /// The same with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The machine form.
    pub fn to_json(&self) -> Value {
        json!({
            "code": self.status.code(),
            "kind": self.status.kind(),
            "message": self.message,
            "hints": self.hints,
        })
    }
}

impl From<OutputError> for CliError {
    fn from(OutputError(error): OutputError) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(ExitStatus::Done, ""),
            _ => Self::new(ExitStatus::Failed, format!("cannot write to standard output: {error}")),
        }
    }
}

impl From<Faults> for CliError {
    fn from(Faults(faults): Faults) -> Self {
        let errors = faults.iter().filter(|fault| fault.severity == Severity::Error);
        let mut message = format!("the configuration is invalid ({})", counted(errors.count(), "error"));
        for fault in &faults {
            let warning = if fault.severity == Severity::Warning { "warning: " } else { "" };
            let _ = write!(message, "\n  {warning}{fault}");
        }
        Self {
            hints: faults.into_iter().filter_map(|fault| fault.help).collect(),
            ..Self::new(ExitStatus::Usage, message)
        }
    }
}

impl From<&clap::Error> for CliError {
    /// What clap says in lines of its own, taken apart: the message, then its tips and where to read more.
    fn from(refusal: &clap::Error) -> Self {
        let text = refusal.render().to_string();
        let (message, rest) = text.trim_end().split_once("\n\n").unwrap_or((text.trim_end(), ""));
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let tips = rest.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
        let more = rest.lines().filter(|line| line.starts_with("For more information"));
        let hints = tips.chain(more).map(str::to_owned).collect();
        Self { hints, ..Self::new(ExitStatus::Usage, message) }
    }
}

impl From<crate::git::GitError> for CliError {
    fn from(error: crate::git::GitError) -> Self {
        use crate::git::GitError;
        let status = match error {
            GitError::TooOld { .. }
            | GitError::NotARepository { .. }
            | GitError::Bare { .. }
            | GitError::NoMainWorktree { .. }
            | GitError::RefFormat { .. }
            | GitError::UnbornHead { .. } => ExitStatus::Usage,
            _ => ExitStatus::Blocked,
        };
        // The library's messages name the remedy behind a semicolon; at the edge it is a line of its own.
        match error.to_string().split_once("; ") {
            Some((message, remedy)) => Self::new(status, message).hint(remedy),
            None => Self::new(status, error.to_string()),
        }
    }
}

impl From<crate::fs::FileError> for CliError {
    fn from(error: crate::fs::FileError) -> Self {
        Self::new(ExitStatus::Blocked, error.to_string())
            .hint("free disk space or fix the permissions, then repeat the command")
    }
}

impl From<crate::store::LogError> for CliError {
    fn from(error: crate::store::LogError) -> Self {
        use crate::store::LogError;
        let status = match error {
            LogError::TamperedWith { restored: Ok(_), .. } => ExitStatus::Corrupted,
            LogError::Damaged { .. } | LogError::TamperedWith { restored: Err(_), .. } => {
                return Self::new(ExitStatus::Corrupted, error.to_string()).hint(TO_THE_DOCTOR);
            }
            LogError::Empty { .. } => ExitStatus::InvalidState,
            _ => ExitStatus::Blocked,
        };
        Self::new(status, error.to_string())
    }
}

impl From<crate::store::checkpoints::CheckpointsError> for CliError {
    fn from(error: crate::store::checkpoints::CheckpointsError) -> Self {
        Self::new(ExitStatus::Corrupted, error.to_string()).hint(TO_THE_DOCTOR)
    }
}

/// What to type where state is damaged.
pub(in crate::cli) const TO_THE_DOCTOR: &str = "to see what can be repaired: lanekeeper doctor";

impl From<crate::store::lock::LockError> for CliError {
    fn from(error: crate::store::lock::LockError) -> Self {
        use crate::store::lock::LockError;
        match error {
            LockError::Held { .. } => Self::new(ExitStatus::Held, error.to_string())
                .hint("`lanekeeper status` shows what it does, `lanekeeper stop RUN` stops it"),
            _ => Self::new(ExitStatus::Blocked, error.to_string()),
        }
    }
}

impl From<crate::recover::resume::ResumeError> for CliError {
    fn from(error: crate::recover::resume::ResumeError) -> Self {
        use crate::recover::resume::ResumeError;
        let status = match &error {
            ResumeError::HalfRolledBack { .. } => ExitStatus::Blocked,
            ResumeError::Complete(_) => ExitStatus::InvalidOperation,
            ResumeError::NoCheckpoint(_) => ExitStatus::InvalidState,
            ResumeError::NoBeginning(_) | ResumeError::Contradiction { .. } => ExitStatus::Corrupted,
        };
        Self::new(status, error.to_string())
    }
}

impl From<crate::travel::TravelError> for CliError {
    fn from(error: crate::travel::TravelError) -> Self {
        use crate::travel::TravelError;
        let message = error.to_string();
        match error {
            TravelError::Git(error) => error.into(),
            TravelError::Log(error) => error.into(),
            TravelError::File(error) => error.into(),
            TravelError::Unreadable { .. } => Self::new(ExitStatus::Corrupted, message).hint(TO_THE_DOCTOR),
            TravelError::NoState { remote, .. } => Self::new(ExitStatus::InvalidState, message)
                .hint(format!("to see what is there: lanekeeper state list --remote {remote}")),
            TravelError::Damaged { remote, run, .. } => Self::new(ExitStatus::Corrupted, message)
                .hint("nothing was changed here; push it again from where it ran, with --force")
                .hint(format!("or give it up: lanekeeper state drop {run} --remote {remote} --force")),
            TravelError::NewerFormat { .. } => Self::new(ExitStatus::Blocked, message).hint("use a newer Lanekeeper"),
            TravelError::Superseded { remote, run, .. } => Self::new(ExitStatus::Held, message)
                .hint(format!(
                    "to take theirs: lanekeeper clean {run} --force --logs, then lanekeeper state pull {run}"
                ))
                .hint(format!("to keep this one: lanekeeper state push {run} --remote {remote} --force")),
            TravelError::Shallow => Self::new(ExitStatus::Blocked, message)
                .hint("fetch the rest: git fetch --unshallow (in GitHub Actions: fetch-depth: 0)"),
            TravelError::InTheWay { name, .. } => Self::new(ExitStatus::Blocked, message)
                .hint(format!("if nothing needs it any more: git update-ref -d {name}; then pull again")),
            TravelError::Diverged { branch, there, .. } => Self::new(ExitStatus::Blocked, message)
                .hint(format!("to join them: git switch {branch} && git merge {there}, then pull again")),
            TravelError::Obstructed(_) => Self::new(ExitStatus::Blocked, message),
        }
    }
}

impl From<crate::engine::DriverError> for CliError {
    fn from(error: crate::engine::DriverError) -> Self {
        use crate::engine::DriverError;
        use crate::engine::spine::SpineError;
        use crate::store::LogError;
        if let DriverError::Spine(SpineError::Log(LogError::TamperedWith { restored, .. })) = &error {
            let stopped = Self::new(ExitStatus::Corrupted, format!("the run stopped: {error}"));
            return match restored {
                Ok(_) => stopped.hint("no work is lost; to continue: lanekeeper resume"),
                Err(_) => stopped.hint(TO_THE_DOCTOR),
            };
        }
        Self::new(ExitStatus::Blocked, format!("the run stopped: {error}"))
            .hint("running agents continue under their supervisors; fix the cause, then `lanekeeper resume`")
    }
}
