//! The agent's `status.json`, written on its behalf until it writes it itself.
//!
//! The agent may write at any moment, so the supervisor never overwrites: it *exchanges* its new text with what is
//! there, and restores what it finds to be not its own. A process that still has the exchanged file open writes into
//! that one, so it is kept until the next beat and looked at again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lanewright_files::atomic;
use lanewright_files::regular_file::{Links, read_with};
use lanewright_model::job::StatusSpec;
use lanewright_model::{ExitCause, JobExit, Timestamp};
use serde_json::{Value, json};

use crate::process::files::text_of;

/// The largest file that is compared with what the supervisor wrote, in bytes; an agent wrote a larger one.
const LARGEST: u64 = 1 << 20;

pub(super) struct StatusFile {
    spec: StatusSpec,
    /// What the supervisor wrote last; `None` once the agent has written.
    ours: Option<Vec<u8>>,
    /// What it wrote before that, as long as that file is kept aside.
    aside: Option<Vec<u8>>,
}

impl StatusFile {
    /// Writes WORKING, over whatever an earlier attempt left there.
    pub(super) fn begin(spec: StatusSpec, now: Timestamp) -> io::Result<Self> {
        let text = text_of(&status(&spec, "WORKING", "", now))?;
        if let Some(directory) = spec.path.parent() {
            fs::create_dir_all(directory)?;
        }
        atomic::replace(&spec.path, &text)?;
        Ok(Self { spec, ours: Some(text), aside: None })
    }

    pub(super) fn beat(&mut self, now: Timestamp) -> io::Result<()> {
        let text = text_of(&status(&self.spec, "WORKING", "", now))?;
        self.offer(text)
    }

    /// Writes how it ended, unless the agent has written.
    pub(super) fn finish(mut self, exit: &JobExit) -> io::Result<()> {
        let word = if exit.passed() { "COMPLETE" } else { "ERROR" };
        let text = text_of(&status(&self.spec, word, &error_message(exit), exit.finished_at))?;
        let offered = self.offer(text);
        self.look_aside()?;
        match fs::remove_file(self.aside_path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => offered,
        }
    }

    /// Replaces the file by `text` if the supervisor wrote it.
    fn offer(&mut self, text: Vec<u8>) -> io::Result<()> {
        self.look_aside()?;
        let Some(ours) = &self.ours else { return Ok(()) };
        if written(&self.spec.path).as_ref() != Some(ours) {
            self.ours = None;
            return Ok(());
        }
        let aside = self.aside_path();
        atomic::replace(&aside, &text)?;
        atomic::exchange(&aside, &self.spec.path)?;
        let found = written(&aside);
        if found.is_none() || found == self.ours {
            self.aside = self.ours.replace(text);
            return Ok(());
        }
        self.ours = None;
        atomic::exchange(&aside, &self.spec.path)?;
        // Two words within this moment: the later one is what came out now.
        if written(&aside).as_ref() != Some(&text) {
            atomic::rename(&aside, &self.spec.path)?;
        }
        Ok(())
    }

    /// Restores the file that was set aside if the agent wrote into it.
    fn look_aside(&mut self) -> io::Result<()> {
        let Some(aside) = self.aside.take() else { return Ok(()) };
        let path = self.aside_path();
        if written(&path).as_ref() != Some(&aside) && path.symlink_metadata().is_ok() {
            atomic::rename(&path, &self.spec.path)?;
            self.ours = None;
        }
        Ok(())
    }

    fn aside_path(&self) -> PathBuf {
        let mut name = self.spec.path.file_name().unwrap_or_default().to_owned();
        name.push(".aside");
        self.spec.path.with_file_name(name)
    }
}

/// What is in a file that an agent may have put there. Of one that is not a small regular file, only that the agent wrote it
/// matters here.
fn written(path: &Path) -> Option<Vec<u8>> {
    read_with(path, Links::Refuse, LARGEST).ok()
}

/// The file's fields (SPEC §4).
fn status(spec: &StatusSpec, word: &str, error: &str, now: Timestamp) -> Value {
    json!({
        "agent": spec.agent,
        "task": spec.task,
        "status": word,
        // No exit code is an approval: that takes a word of the agent's own.
        "decision": "PENDING",
        "round": spec.round,
        "retry_count": spec.retry_count,
        "error_message": error,
        "work_remaining": "",
        "blocked_by": "",
        "feedback": "",
        "updated_at": now,
    })
}

fn error_message(exit: &JobExit) -> String {
    let what = match exit.cause {
        ExitCause::Exited if exit.exit_code == 0 => return String::new(),
        ExitCause::Exited => format!("`{}` ended with code {}", exit.command, exit.exit_code),
        ExitCause::TimedOut => format!("`{}` ran out of time ({})", exit.command, exit.exit_code),
        ExitCause::Stopped => format!("`{}` was stopped ({})", exit.command, exit.exit_code),
        ExitCause::NotStarted => format!("`{}` could not be started", exit.command),
        ExitCause::Lost => format!("the supervisor of `{}` died", exit.command),
    };
    if exit.notes.is_empty() { what } else { format!("{what}: {}", exit.notes) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn begun(directory: &Path) -> StatusFile {
        let spec = StatusSpec {
            path: directory.join("agents/status.json"),
            agent: "engineer".into(),
            task: "1".into(),
            round: "review".into(),
            retry_count: 2,
        };
        StatusFile::begin(spec, Timestamp::from_unix_millis(0)).unwrap()
    }

    fn exit(exit_code: i32) -> JobExit {
        let moment = Timestamp::from_unix_millis(9);
        JobExit {
            cause: ExitCause::Exited,
            exit_code,
            command: "agent".into(),
            started_at: moment,
            finished_at: moment,
            tail: Vec::new(),
            notes: String::new(),
        }
    }

    fn text(file: &Path) -> String {
        fs::read_to_string(file).unwrap()
    }

    #[test]
    fn beats_renew_the_time_only() {
        let directory = tempfile::tempdir().unwrap();
        let mut status = begun(directory.path());
        let path = status.spec.path.clone();
        let first = text(&path);
        for moment in [1, 2, 3] {
            status.beat(Timestamp::from_unix_millis(moment)).unwrap();
        }
        assert_eq!(text(&path), first.replace("00.000Z", "00.003Z"));
        assert!(first.contains(r#""status": "WORKING""#) && first.contains(r#""retry_count": 2"#), "{first}");
    }

    #[test]
    fn status_written_between_beats_survives() {
        let directory = tempfile::tempdir().unwrap();
        let mut status = begun(directory.path());
        let path = status.spec.path.clone();
        status.beat(Timestamp::from_unix_millis(1)).unwrap();
        fs::write(&path, "mine").unwrap();
        status.beat(Timestamp::from_unix_millis(2)).unwrap();
        status.finish(&exit(0)).unwrap();
        assert_eq!(text(&path), "mine");
    }

    #[test]
    fn status_written_through_open_file_survives_beat() {
        let directory = tempfile::tempdir().unwrap();
        let mut status = begun(directory.path());
        let path = status.spec.path.clone();
        let mut open = fs::OpenOptions::new().write(true).open(&path).unwrap();
        status.beat(Timestamp::from_unix_millis(1)).unwrap();
        open.set_len(0).unwrap();
        open.write_all(b"mine").unwrap();
        status.finish(&exit(1)).unwrap();
        assert_eq!(text(&path), "mine");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn exit_writes_status_for_silent_agent() {
        let directory = tempfile::tempdir().unwrap();
        let status = begun(directory.path());
        let path = status.spec.path.clone();
        status.finish(&exit(0)).unwrap();
        assert!(text(&path).contains("COMPLETE") && text(&path).contains("PENDING"));
        begun(directory.path()).finish(&exit(3)).unwrap();
        assert!(text(&path).contains("ERROR") && text(&path).contains("PENDING"));
        assert!(text(&path).contains("`agent` ended with code 3"));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }
}
