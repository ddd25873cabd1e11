//! Detects unfinished runs by the ends of their logs: for hooks, which may not take the time to read them whole,
//! and for `status`, which has to look at all of them.

use std::cmp::Reverse;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lanewright_files::directory::entries;
use lanewright_files::threads::{map_shares, share_of_core};
use lanewright_files::{FileError, regular_file};
use lanewright_model::event::{Event, RunOutcome, RunStarted};
use lanewright_model::{LaneId, RunId, Timestamp};
use serde::Deserialize;

use super::layout::{LaneDirectory, StateDirectory, began, moment, run_of};
use super::record;

/// How many logs are looked at, those that changed last.
const LOGS: usize = 100;

/// How much of the beginning of a log is read, in bytes: its first line, and whether anything came of it.
const HEAD: u64 = 1 << 15;

/// How much of the end of a log is read, in bytes: little at first, for a run that is over ends its log with saying so.
const TAILS: [u64; 2] = [1 << 11, 1 << 14];

/// An unfinished run, as far as both ends of its log tell of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Glance {
    pub started: RunStarted,
    /// Where its worktrees are: where it began, or where it was taken to.
    pub worktree_root: PathBuf,
    /// How it ended for now; `None`: it works, or was interrupted.
    pub outcome: Option<RunOutcome>,
    /// The lanes that were answered after it had ended.
    pub answered: Vec<LaneId>,
    /// How long its log is, in bytes.
    pub length: u64,
}

impl StateDirectory {
    /// The unfinished runs among the hundred whose logs changed last, latest first. Logs of other
    /// writers, logs that are kept elsewhere and logs that cannot be read are passed over.
    pub fn unfinished_at_a_glance(&self) -> Vec<Glance> {
        let mut logs: Vec<(SystemTime, PathBuf)> =
            entries(&self.path()).unwrap_or_default().into_iter().filter_map(changed_log).collect();
        logs.sort_unstable_by_key(|(changed, _)| Reverse(*changed));
        logs.iter().take(LOGS).filter_map(|(_, log)| glance(log).ok().flatten()).collect()
    }
}

/// What the logs of a repository are, as far as their ends tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// The runs that may be unfinished, in any order: all but those whose logs end with saying that they are done or
    /// rolled back.
    pub open: Vec<RunId>,
    logs: Vec<(Seen, PathBuf)>,
}

impl Logs {
    /// Without the runs that were rolled back.
    #[must_use]
    pub fn without_rolled_back(mut self) -> Self {
        self.logs.retain(|(seen, _)| seen.outcome != Some(RunOutcome::RolledBack));
        self
    }
}

impl StateDirectory {
    /// Looks at every log; each is opened once.
    ///
    /// # Errors
    /// `FileError` when a directory is there and cannot be read.
    pub fn logs_at_a_glance(&self) -> Result<Logs, FileError> {
        let paths: Vec<PathBuf> = entries(&self.path())?.into_iter().filter(|path| run_of(path).is_some()).collect();
        // A matter of system calls, of which every core can do its share.
        let share = share_of_core(paths.len(), ALONE);
        let seen = map_shares(&paths, share, |log| seen(log).unwrap_or_default());
        let open = match &self.log {
            Some(_) => self.runs()?,
            None => {
                let is_open = |seen: &Seen| !seen.outcome.is_some_and(RunOutcome::is_over);
                paths.iter().zip(&seen).filter(|(_, seen)| is_open(seen)).filter_map(|(path, _)| run_of(path)).collect()
            }
        };
        Ok(Logs { open, logs: seen.into_iter().zip(paths).collect() })
    }

    /// The run that began last; `None`: there is none. Of its `logs` some are read: as many as may have begun later.
    ///
    /// # Errors
    /// `FileError` when the directory is there and cannot be read.
    pub fn newest(&self, logs: &Logs) -> Result<Option<RunId>, FileError> {
        if self.log.is_some() {
            return Ok(self.runs()?.into_iter().next());
        }
        // None begins after its last change.
        let mut logs: Vec<_> =
            logs.logs.iter().filter_map(|(seen, log)| Some((seen.changed, run_of(log)?, log))).collect();
        logs.sort_unstable_by(|one, other| other.cmp(one));
        let mut newest: Option<(Timestamp, RunId)> = None;
        for (changed, run, log) in logs {
            if newest.as_ref().is_some_and(|(began, _)| changed < Some(*began)) {
                break;
            }
            if self.has(&run) {
                newest = newest.max(Some((began(log), run)));
            }
        }
        Ok(newest.map(|(_, run)| run))
    }
}

impl LaneDirectory {
    /// The directories of the lanes of `run` that are there, in the order of their names.
    pub fn all_of(worktree_root: &Path, run: &RunId) -> Vec<Self> {
        let paths = entries(&worktree_root.join(run.as_str())).unwrap_or_default();
        let names = paths.iter().filter_map(|path| LaneId::new(path.file_name()?.to_str()?).ok());
        let mut lanes: Vec<LaneId> = names.collect();
        lanes.sort_unstable();
        lanes.iter().map(|lane| Self::new(worktree_root, run, lane)).collect()
    }
}

fn changed_log(path: PathBuf) -> Option<(SystemTime, PathBuf)> {
    run_of(&path)?;
    let metadata = path.symlink_metadata().ok().filter(|metadata| metadata.is_file())?;
    Some((metadata.modified().ok()?, path))
}

/// What is seen of a log that is looked at in passing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    /// How its run ended; `None`: it has not.
    outcome: Option<RunOutcome>,
    changed: Option<Timestamp>,
}

/// So many logs are looked at by one thread.
const ALONE: usize = 100;

fn seen(log: &Path) -> io::Result<Seen> {
    let file = regular_file::open(log)?;
    let metadata = file.metadata()?;
    let last = last_outcome(&end(&file, metadata.len(), TAILS[0])?);
    Ok(Seen { outcome: last.flatten(), changed: metadata.modified().ok().and_then(moment) })
}

/// What both ends of a log tell; `None`: its run is over, has not begun, or is not ours.
fn glance(log: &Path) -> io::Result<Option<Glance>> {
    let file = regular_file::open(log)?;
    let length = file.metadata()?.len();
    let (mut outcome, mut tail) = (None, Vec::new());
    for most in TAILS {
        if outcome.is_none() {
            tail = end(&file, length, most)?;
            outcome = last_outcome(&tail);
        }
    }
    if outcome.flatten().is_some_and(RunOutcome::is_over) {
        return Ok(None);
    }
    let head = piece(&file, 0, HEAD.min(length))?;
    let started = head.split(|&byte| byte == b'\n').next().and_then(event);
    let begun = length > HEAD || lines(&head).any(|line| [CHECKPOINT, BLOCKED].iter().any(|word| says(line, word)));
    Ok(match started {
        Some(Event::RunStarted(started)) if begun => {
            let worktree_root = worktree_root(&started, &file, length)?;
            let (outcome, answered) = (outcome.flatten(), answered(&tail));
            Some(Glance { started: *started, worktree_root, outcome, answered, length })
        }
        _ => None,
    })
}

/// Where the run's worktrees are. Only a run that is not where it began is searched for where it was taken to, first at
/// its end: what was said last counts.
fn worktree_root(started: &RunStarted, log: &File, length: u64) -> io::Result<PathBuf> {
    let began = &started.options.worktree_root;
    if began.is_dir() {
        return Ok(began.clone());
    }
    for (from, most) in [(length.saturating_sub(MOST), MOST), (0, MOST)] {
        let part = piece(log, from, most.min(length))?;
        let moved = lines(&part).rev().find(|line| says(line, b"\"event\":\"run_moved\"")).and_then(event);
        if let Some(Event::RunMoved(moved)) = moved {
            return Ok(moved.to.worktree_root);
        }
    }
    Ok(began.clone())
}

/// How much of each end of a log is searched for where its run was taken to, in bytes.
const MOST: u64 = 1 << 18;

/// Without one of these a run has nothing to continue: `at_resume::has_begun`.
const CHECKPOINT: &[u8] = b"\"event\":\"checkpoint_reached\"";
const BLOCKED: &[u8] = b"\"event\":\"lane_blocked\"";

/// The lanes that were answered after the run had ended.
fn answered(tail: &[u8]) -> Vec<LaneId> {
    let after = lines(tail).rev().take_while(|line| record::word_of(line) != Some("run_finished"));
    let answers = after.filter(|line| record::word_of(line) == Some("gate_answered")).filter_map(event);
    answers.filter_map(|answer| answer.lane().cloned()).collect()
}

/// The state of the run by the last line that has one; `None`: no line does.
fn last_outcome(tail: &[u8]) -> Option<Option<RunOutcome>> {
    lines(tail).rev().find_map(|line| {
        let may_tell =
            [b"\"event\":\"run_".as_slice(), b"\"event\":\"lane_rolled_back\"", b"\"event\":\"rollback_begun\""];
        may_tell
            .iter()
            .any(|word| says(line, word))
            .then(|| ending(line).or_else(|| event(line)?.facts().run_outcome))
            .flatten()
    })
}

/// What [`Event::run_outcome`] says of the end of a run, without the rest of the line being read: there are many of these.
fn ending(line: &[u8]) -> Option<Option<RunOutcome>> {
    #[derive(Deserialize)]
    struct Ending {
        outcome: RunOutcome,
    }
    let is_one = record::word_of(line) == Some("run_finished") && record::is_intact(line);
    let ending: Option<Ending> = is_one.then(|| serde_json::from_slice(line).ok()).flatten();
    ending.map(|ending| Some(ending.outcome))
}

fn event(line: &[u8]) -> Option<Event> {
    Some(record::decode(line, record::FORMAT).ok()?.record.event)
}

fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

/// The columns of a line are longer than this by no name that there can be, in bytes.
const COLUMNS: usize = 512;

/// Whether `word` is among the columns of a line.
fn says(line: &[u8], word: &[u8]) -> bool {
    line[..line.len().min(COLUMNS)].windows(word.len()).any(|part| part == word)
}

fn end(file: &File, length: u64, most: u64) -> io::Result<Vec<u8>> {
    piece(file, length.saturating_sub(most), most.min(length))
}

fn piece(file: &File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], from + read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Journal;
    use crate::samples::{at, lane, noted, phase, started};
    use lanewright_model::event::{Place, RunMoved};
    use lanewright_model::{Checkpoint, CheckpointStatus, Stage};

    fn checkpoint() -> Event {
        let checkpoint = Checkpoint::new(Stage::BeforeLaneStart, CheckpointStatus::Ready);
        Event::CheckpointReached { lane: Some(lane()), checkpoint }
    }

    fn finished(outcome: RunOutcome) -> Event {
        Event::RunFinished { outcome, code: 0 }
    }

    /// What is seen of a run whose log holds `events` after its first line.
    fn seen(events: &[Event]) -> Option<Option<RunOutcome>> {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        state.create().unwrap();
        let run = RunId::new("r1").unwrap();
        let mut journal = Journal::create(&state.run(&run).log(), &run, &phase()).unwrap();
        for event in [&[started()], events].concat() {
            journal.append(at(1), &event).unwrap();
        }
        journal.sync().unwrap();
        state.unfinished_at_a_glance().pop().map(|glance| glance.outcome)
    }

    #[test]
    fn a_run_is_unfinished_until_its_last_word_is_that_it_is_done() {
        let rolled_back = Event::LaneRolledBack { lane: lane(), integration: None, kept: vec![] };
        assert_eq!(seen(&[checkpoint()]), Some(None));
        assert_eq!(seen(&[checkpoint(), finished(RunOutcome::Blocked)]), Some(Some(RunOutcome::Blocked)));
        assert_eq!(seen(&[checkpoint(), finished(RunOutcome::Done)]), None);
        assert_eq!(seen(&[checkpoint(), finished(RunOutcome::Done), noted(None, "x")]), None);
        assert_eq!(seen(&[checkpoint(), finished(RunOutcome::Done), rolled_back.clone()]), Some(None));
        let begun = Event::RollbackBegun { lane: lane() };
        assert_eq!(seen(&[checkpoint(), finished(RunOutcome::Done), begun]), Some(None));
        assert_eq!(seen(&[checkpoint(), rolled_back, finished(RunOutcome::RolledBack)]), None);
    }

    #[test]
    fn a_run_that_never_began_is_nothing_to_tell_of() {
        assert_eq!(seen(&[]), None);
        assert_eq!(seen(&[noted(None, "\"event\":\"lane_blocked")]), None);
    }

    #[test]
    fn a_run_that_was_taken_elsewhere_has_its_worktrees_there() {
        let root = tempfile::tempdir().unwrap();
        let (state, run) = (StateDirectory::new(root.path()), RunId::new("r1").unwrap());
        state.create().unwrap();
        let place = |root: &str| Place { host: "x".into(), repository: root.into(), worktree_root: root.into() };
        let moved = |to| Event::RunMoved(Box::new(RunMoved { from: place("/ci"), to: place(to), slots: vec![] }));
        let mut journal = Journal::create(&state.run(&run).log(), &run, &phase()).unwrap();
        for event in [started(), checkpoint(), moved("/first"), moved("/second"), noted(None, "x")] {
            journal.append(at(1), &event).unwrap();
        }
        journal.sync().unwrap();
        let seen = state.unfinished_at_a_glance();
        assert_eq!(seen.iter().map(|it| it.worktree_root.to_str().unwrap()).collect::<Vec<_>>(), ["/second"]);
    }

    #[test]
    fn a_long_log_is_known_by_its_ends() {
        let long = vec![noted(None, &"x".repeat(1000)); 100];
        assert_eq!(seen(&[vec![checkpoint()], long.clone()].concat()), Some(None));
        assert_eq!(seen(&[vec![checkpoint()], long, vec![finished(RunOutcome::Done)]].concat()), None);
    }

    #[test]
    fn each_of_many_logs_is_recognized() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        state.create().unwrap();
        let log = |events: &[Event]| {
            let run = RunId::new("r1").unwrap();
            let mut journal = Journal::create(&state.run(&run).log(), &run, &phase()).unwrap();
            events.iter().for_each(|event| drop(journal.append(at(1), event).unwrap()));
            journal.sync().unwrap();
            let text = std::fs::read(state.run(&run).log()).unwrap();
            std::fs::remove_file(state.run(&run).log()).unwrap();
            text
        };
        let (open, done) =
            (log(&[started(), checkpoint()]), log(&[started(), checkpoint(), finished(RunOutcome::Done)]));
        for number in 0..ALONE * 2 + 7 {
            let text = [&done, &open, &done, &done][number % 4];
            std::fs::write(state.path().join(format!("r{number}.jsonl")), text).unwrap();
        }
        let logs = state.logs_at_a_glance().unwrap();
        let kind_of = |name: &str| name.trim_start_matches('r').parse::<usize>().unwrap() % 4;
        assert_eq!(logs.open.len(), 52);
        assert!(logs.open.iter().all(|run| kind_of(run.as_str()) == 1));
    }

    #[test]
    fn whatever_else_lies_there_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        assert_eq!(state.unfinished_at_a_glance(), []);
        state.create().unwrap();
        std::fs::create_dir(state.path().join("directory.jsonl")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", state.path().join("link.jsonl")).unwrap();
        let pipe = state.path().join("pipe.jsonl");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        std::fs::write(state.path().join("torn.jsonl"), "{\"seq\":1,\"event\":\"run_").unwrap();
        assert_eq!(state.unfinished_at_a_glance(), []);
    }
}
