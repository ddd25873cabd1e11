//! Saves the worktree of an attempt in snapshots while its agent works (SPEC §5).
//!
//! This is done beside the wait for the job, not in its supervisor: a supervisor must be small, knows no git, and may
//! not write into the run log, which has one owner. So while no Lanewright runs nothing is saved; the agent continues, and
//! the next Lanewright that attaches to it saves its worktree at once. No decision depends on these snapshots: one
//! taken here is never a point to start again from, for no gate has passed it; and since only a running attempt is
//! watched, none is taken during a rollback.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use lanewright_model::event::{Event, SnapshotReason};
use lanewright_model::snapshot_rules::{Progress, SnapshotTrigger, ToolCall};
use lanewright_model::{AgentName, JobExit, LaneIndex, Timestamp};
use lanewright_programs::process::{self, Changes, Launched, ProcessError};

use super::output::CallSource;
use crate::executor::{Executor, Result, SnapshotTarget};

/// How often an agent that works is looked at, and one whose files cannot be watched.
const INTERVAL: Duration = Duration::from_millis(500);

/// How often an agent is looked at that reports nothing: the wait for the next snapshot stands still while the machine sleeps.
const QUIET_INTERVAL: Duration = Duration::from_secs(60);

/// For all attempts of this process: there may be many.
static CHANGES: LazyLock<Option<Changes>> = LazyLock::new(|| Changes::start(INTERVAL));

enum Wake {
    Changed,
    Ended,
}

/// Reports the end when it is dropped, also by a panic.
struct Waiting(Sender<Wake>);

impl Drop for Waiting {
    fn drop(&mut self) {
        // Nothing waits for it where the watch panicked.
        let _ = self.0.send(Wake::Ended);
    }
}

pub(super) struct Watched {
    pub(super) lane: LaneIndex,
    pub(super) agent: AgentName,
    pub(super) worktree: PathBuf,
    pub(super) tool_calls: CallSource,
}

struct Watch<'a> {
    executor: &'a Executor,
    watched: &'a Watched,
    kept_at: Timestamp,
    counted: u64,
    /// Where to read on in the file of tool calls.
    offset: u64,
}

impl Executor {
    /// Waits for the end of the job in `directory`, and saves the worktree of an attempt while it runs.
    pub(super) fn wait_and_watch(
        &self,
        directory: &std::path::Path,
        launched: Option<Launched>,
        watched: Option<&Watched>,
        emit: &dyn Fn(Event),
    ) -> Result<JobExit> {
        let Some(watched) = watched.filter(|_| !self.snapshots.is_idle()) else {
            return Ok(process::wait_without_secrets(directory, launched, &self.redactor)?);
        };
        // It is unknown when the worktree of an attempt that another process launched was saved last.
        let kept_at = if launched.is_some() { self.clock.now() } else { Timestamp::from_unix_millis(0) };
        let mut watch = Watch { executor: self, watched, kept_at, counted: 0, offset: 0 };
        thread::scope(|scope| {
            let (sender, wakes) = mpsc::channel();
            let of_wait = Waiting(sender.clone());
            let waiting = scope.spawn(move || -> Result<JobExit, ProcessError> {
                let _of_wait = of_wait;
                process::wait_without_secrets(directory, launched, &self.redactor)
            });
            watch.look_until_end(sender, &wakes, emit);
            Ok(waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
        })
    }
}

impl Watch<'_> {
    fn look_until_end(&mut self, sender: Sender<Wake>, wakes: &Receiver<Wake>, emit: &dyn Fn(Event)) {
        let path = self.watched.tool_calls.path();
        let changed = move || drop(sender.send(Wake::Changed));
        let directory = path.parent().zip(CHANGES.as_ref());
        let watch = directory.and_then(|(directory, changes)| changes.watch(directory, path.file_name(), changed));
        // What was reported before the watch began reports no change.
        let mut limit = INTERVAL;
        while !matches!(wakes.recv_timeout(limit), Ok(Wake::Ended)) {
            let before = self.offset;
            self.check(emit);
            limit = if watch.is_some() && self.offset == before { self.quiet_until() } else { INTERVAL };
        }
    }

    /// For how long nothing but a change is a reason to look.
    fn quiet_until(&self) -> Duration {
        let due = self.executor.snapshots.due_in(self.kept_at, self.executor.clock.now());
        due.unwrap_or(QUIET_INTERVAL).clamp(INTERVAL, QUIET_INTERVAL)
    }

    fn check(&mut self, emit: &dyn Fn(Event)) {
        let calls = self.new_calls();
        let progress = Progress { kept_at: self.kept_at, counted: self.counted, calls: &calls };
        let trigger = self.executor.snapshots.trigger(&progress, self.executor.clock.now());
        self.counted += calls.len() as u64;
        if let Some(trigger) = trigger {
            emit(self.keep(reason(trigger)));
            self.kept_at = self.executor.clock.now();
        }
    }

    fn new_calls(&mut self) -> Vec<ToolCall> {
        let path = self.watched.tool_calls.path();
        let Ok(new) = process::lines_since(path, self.offset, false) else { return Vec::new() };
        self.offset = new.next;
        self.watched.tool_calls.calls(&new.lines)
    }

    fn keep(&self, reason: SnapshotReason) -> Event {
        let Watched { lane, agent, worktree, .. } = self.watched;
        let target = SnapshotTarget { lane: *lane, agent: Some(agent), at: self.executor.clock.now(), reason };
        let kept = self.executor.keep_worktree(&target, worktree);
        self.executor.snapshot_event(*lane, agent, reason, kept)
    }
}

fn reason(trigger: SnapshotTrigger) -> SnapshotReason {
    match trigger {
        SnapshotTrigger::Interval => SnapshotReason::Interval,
        SnapshotTrigger::ToolCalls => SnapshotReason::ToolCalls,
        SnapshotTrigger::Risky => SnapshotReason::Risky,
    }
}
