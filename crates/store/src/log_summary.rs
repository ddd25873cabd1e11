//! Detects unfinished runs by the ends of their logs: for hooks, which may not take the time to read them whole,
//! and for `status`, which has to look at all of them.

use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lanewright_files::directory::entries;
use lanewright_files::threads::{map_shares, share_of_core};
use lanewright_files::{FileError, regular_file};
use lanewright_model::event::{Event, RunOutcome, RunStarted};
use lanewright_model::{LaneId, RunId, Timestamp};
use serde::Deserialize;

use super::layout::{LaneDirectory, RunDirectory, StateDirectory, began, moment, run_of};
use super::record;

/// How many logs are looked at, those that changed last.
const LOGS: usize = 100;

/// How much of the beginning of a log is read, in bytes: its first line, and whether anything came of it.
const HEAD: u64 = 1 << 15;

/// How much of the end of a log is read, in bytes: little at first, for a run that is over ends its log with saying so.
const TAILS: [u64; 2] = [1 << 11, 1 << 14];

/// An unfinished run, as far as both ends of its log tell of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSummary {
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
    pub fn unfinished_runs(&self) -> Vec<LogSummary> {
        let mut logs: Vec<(SystemTime, PathBuf)> =
            entries(&self.path()).unwrap_or_default().into_iter().filter_map(changed_log).collect();
        logs.sort_unstable_by_key(|(changed, _)| Reverse(*changed));
        logs.iter().take(LOGS).filter_map(|(_, log)| log_summary(log).ok().flatten()).collect()
    }
}

/// What the logs of a repository are, as far as their ends tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// The runs that may be unfinished, in any order: all but those whose logs end with saying that they are done or
    /// rolled back.
    pub open: Vec<RunId>,
    logs: Vec<(LogEnd, PathBuf)>,
}

impl Logs {
    /// Without the runs that were rolled back.
    #[must_use]
    pub fn without_rolled_back(mut self) -> Self {
        self.logs.retain(|(log_end, _)| log_end.outcome != Some(RunOutcome::RolledBack));
        self
    }
}

impl StateDirectory {
    /// Looks at every log; each is opened once.
    pub fn log_summaries(&self) -> Result<Logs, FileError> {
        let paths: Vec<PathBuf> = entries(&self.path())?.into_iter().filter(|path| run_of(path).is_some()).collect();
        // A matter of system calls, of which every core can do its share.
        let share = share_of_core(paths.len(), ALONE);
        let log_end = map_shares(&paths, share, |log| log_end(log).unwrap_or_default());
        let open = match &self.log {
            Some(_) => self.runs()?,
            None => {
                let is_open = |log_end: &LogEnd| !log_end.outcome.is_some_and(RunOutcome::is_over);
                paths
                    .iter()
                    .zip(&log_end)
                    .filter(|(_, log_end)| is_open(log_end))
                    .filter_map(|(path, _)| run_of(path))
                    .collect()
            }
        };
        Ok(Logs { open, logs: log_end.into_iter().zip(paths).collect() })
    }

    /// The run that began last; `None`: there is none. Of its `logs` some are read: as many as may have begun later.
    pub fn newest(&self, logs: &Logs) -> Result<Option<RunId>, FileError> {
        if self.log.is_some() {
            return Ok(self.runs()?.into_iter().next());
        }
        // None begins after its last change.
        let mut logs: Vec<_> =
            logs.logs.iter().filter_map(|(log_end, log)| Some((log_end.changed, run_of(log)?, log))).collect();
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

impl RunDirectory {
    /// Whether the log ends with saying that its run is done or rolled back.
    pub fn is_over(&self) -> bool {
        log_end(&self.log()).is_ok_and(|end| end.outcome.is_some_and(RunOutcome::is_over))
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

/// What is read of a log for a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LogEnd {
    /// How its run ended; `None`: it has not.
    outcome: Option<RunOutcome>,
    changed: Option<Timestamp>,
}

/// So many logs are looked at by one thread.
const ALONE: usize = 100;

fn log_end(log: &Path) -> io::Result<LogEnd> {
    let file = regular_file::open(log)?;
    let metadata = file.metadata()?;
    let last = last_outcome(&end(&file, metadata.len(), TAILS[0])?);
    Ok(LogEnd { outcome: last.flatten(), changed: metadata.modified().ok().and_then(moment) })
}

/// What both ends of a log tell; `None`: its run is over, has not begun, or is not ours.
fn log_summary(log: &Path) -> io::Result<Option<LogSummary>> {
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
    let begun =
        length > HEAD || lines(&head).any(|line| record::word_of(line).is_some_and(|word| BEGUN.contains(&word)));
    Ok(match started {
        Some(Event::RunStarted(started)) if begun => {
            let worktree_root = worktree_root(&started, &file, length)?;
            let (outcome, answered) = (outcome.flatten(), answered(&tail));
            Some(LogSummary { started: *started, worktree_root, outcome, answered, length })
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
        let moved = lines(&part).rev().find(|line| record::word_of(line) == Some("run_moved")).and_then(event);
        if let Some(Event::RunMoved(moved)) = moved {
            return Ok(moved.to.worktree_root);
        }
    }
    Ok(began.clone())
}

/// How much of each end of a log is searched for where its run was taken to, in bytes.
const MOST: u64 = 1 << 18;

/// Without one of these a run has nothing to continue: `at_resume::has_begun`.
const BEGUN: [&str; 2] = ["checkpoint_reached", "lane_blocked"];

/// The lanes that were answered after the run had ended.
fn answered(tail: &[u8]) -> Vec<LaneId> {
    let after = lines(tail).rev().take_while(|line| record::word_of(line) != Some("run_finished"));
    let answers = after.filter(|line| record::word_of(line) == Some("gate_answered")).filter_map(event);
    answers.filter_map(|answer| answer.lane().cloned()).collect()
}

/// The state of the run by the last line that has one; `None`: no line does.
fn last_outcome(tail: &[u8]) -> Option<Option<RunOutcome>> {
    let may_have = |word: &str| word.starts_with("run_") || ["lane_rolled_back", "rollback_begun"].contains(&word);
    let mut lines = lines(tail).rev().filter(|line| record::word_of(line).is_some_and(may_have));
    lines.find_map(|line| ending(line).or_else(|| event(line)?.facts().run_outcome))
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

/// What commands may append after the end of a run, in any number, and callers with data of any length.
const AFTER_END: [&str; 4] = ["event_logged", "gate_answered", "lane_skipped", "snapshot_taken"];

/// The last `most` bytes, and more while no whole line in them tells whether the run has ended.
fn end(file: &File, length: u64, mut most: u64) -> io::Result<Vec<u8>> {
    loop {
        let tail = piece(file, length.saturating_sub(most), most.min(length))?;
        let tells = |line| record::word_of(line).is_some_and(|word| !AFTER_END.contains(&word));
        if most >= length || lines(&tail).skip(1).any(tells) {
            return Ok(tail);
        }
        most = most.saturating_mul(8);
    }
}

fn piece(mut file: &File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(length).read_to_end(&mut bytes)?;
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

    /// The end that is read of a run whose log holds `events` after its first line.
    fn log_end(events: &[Event]) -> Option<Option<RunOutcome>> {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        state.create().unwrap();
        let run = RunId::new("r1").unwrap();
        let mut journal = Journal::create(&state.run(&run).log(), &run, &phase()).unwrap();
        for event in [&[started()], events].concat() {
            journal.append(at(1), &event).unwrap();
        }
        journal.sync().unwrap();
        state.unfinished_runs().pop().map(|log_summary| log_summary.outcome)
    }

    #[test]
    fn run_is_unfinished_until_outcome_is_done() {
        let rolled_back = Event::LaneRolledBack { lane: lane(), integration: None, kept: vec![], point: None };
        assert_eq!(log_end(&[checkpoint()]), Some(None));
        assert_eq!(log_end(&[checkpoint(), finished(RunOutcome::Blocked)]), Some(Some(RunOutcome::Blocked)));
        assert_eq!(log_end(&[checkpoint(), finished(RunOutcome::Done)]), None);
        assert_eq!(log_end(&[checkpoint(), finished(RunOutcome::Done), noted(None, "x")]), None);
        assert_eq!(log_end(&[checkpoint(), finished(RunOutcome::Done), rolled_back.clone()]), Some(None));
        let begun = Event::RollbackBegun { lane: lane(), to: String::new() };
        assert_eq!(log_end(&[checkpoint(), finished(RunOutcome::Done), begun]), Some(None));
        assert_eq!(log_end(&[checkpoint(), rolled_back, finished(RunOutcome::RolledBack)]), None);
    }

    #[test]
    fn run_without_checkpoint_is_not_unfinished() {
        assert_eq!(log_end(&[]), None);
        assert_eq!(log_end(&[noted(None, "\"event\":\"lane_blocked")]), None);
    }

    #[test]
    fn moved_run_has_worktrees_at_new_root() {
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
        let log_end = state.unfinished_runs();
        assert_eq!(log_end.iter().map(|it| it.worktree_root.to_str().unwrap()).collect::<Vec<_>>(), ["/second"]);
    }

    #[test]
    fn long_log_is_summarized_by_its_ends() {
        let long = vec![noted(None, &"x".repeat(1000)); 100];
        assert_eq!(log_end(&[vec![checkpoint()], long.clone()].concat()), Some(None));
        assert_eq!(log_end(&[vec![checkpoint()], long, vec![finished(RunOutcome::Done)]].concat()), None);
    }

    #[test]
    fn events_of_callers_do_not_hide_the_end() {
        let logged = |data: String| {
            let name = lanewright_model::EventName::new("measured").unwrap();
            Event::EventLogged { lane: None, name, data: Some(data.into()) }
        };
        let (short, long) = (vec![logged("x".repeat(500)); 100], vec![logged("x".repeat(1 << 18))]);
        for events in [short, long] {
            let ended = |outcome| [vec![checkpoint(), finished(outcome)], events.clone()].concat();
            assert_eq!(log_end(&ended(RunOutcome::Done)), None);
            assert_eq!(log_end(&ended(RunOutcome::Failed)), Some(Some(RunOutcome::Failed)));
            assert_eq!(log_end(&[vec![checkpoint()], events].concat()), Some(None));
        }
    }

    #[test]
    fn many_logs_are_summarized() {
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
        let logs = state.log_summaries().unwrap();
        let kind_of = |name: &str| name.trim_start_matches('r').parse::<usize>().unwrap() % 4;
        assert_eq!(logs.open.len(), 52);
        assert!(logs.open.iter().all(|run| kind_of(run.as_str()) == 1));
        let is_over = |number: usize| state.run(&RunId::new(&format!("r{number}")).unwrap()).is_over();
        assert!(is_over(0) && !is_over(1) && is_over(2) && !is_over(ALONE * 3), "the last one has no log");
    }

    #[test]
    fn unknown_files_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        assert_eq!(state.unfinished_runs(), []);
        state.create().unwrap();
        std::fs::create_dir(state.path().join("directory.jsonl")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", state.path().join("link.jsonl")).unwrap();
        let pipe = state.path().join("pipe.jsonl");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        std::fs::write(state.path().join("torn.jsonl"), "{\"seq\":1,\"event\":\"run_").unwrap();
        assert_eq!(state.unfinished_runs(), []);
    }
}
