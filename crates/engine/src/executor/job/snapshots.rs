//! Saves the worktree of an attempt in snapshots while its agent works (SPEC §5).
//!
//! This is done beside the wait for the job, not in its supervisor: a supervisor must be small, knows no git, and may
//! not write into the run log, which has one owner. So while no Lanewright runs nothing is saved; the agent continues, and
//! the next Lanewright that attaches to it saves its worktree at once. No decision depends on these snapshots: one
//! taken here is never a point to start again from, for no gate has passed it; and since only a running attempt is
//! watched, none is taken during a rollback.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use lanewright_model::event::{Event, SnapshotReason};
use lanewright_model::snapshot_rules::{Progress, SnapshotTrigger, ToolCall};
use lanewright_model::{AgentName, JobExit, LaneIndex, Timestamp};
use lanewright_programs::process::{self, Launched, ProcessError};

use super::output::CallSource;
use crate::executor::{Executor, Result, SnapshotTarget};

const INTERVAL: Duration = Duration::from_millis(500);

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
            let (living, ended) = mpsc::channel::<()>();
            let waiting = scope.spawn(move || -> Result<JobExit, ProcessError> {
                let _living = living;
                process::wait_without_secrets(directory, launched, &self.redactor)
            });
            watch.poll_until_end(&ended, emit);
            Ok(waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
        })
    }
}

impl Watch<'_> {
    fn poll_until_end(&mut self, ended: &Receiver<()>, emit: &dyn Fn(Event)) {
        while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            self.check(emit);
        }
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
