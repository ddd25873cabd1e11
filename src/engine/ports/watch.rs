//! Watching an attempt: while its agent works, its worktree is kept in a snapshot from time to time (SPEC §5).
//!
//! This stands beside the waiting for the job, not in its supervisor: a supervisor must be small, knows no git, and may
//! not write into the run log, which has one owner. So while no Lanekeeper lives nothing is kept; the agent goes on, and
//! the next Lanekeeper that attaches to it keeps what is there at once. Nothing is decided by what was kept: a snapshot
//! taken here is never a point to start again from, for no gate has passed it; and since only a running attempt is
//! watched, none is taken while lanes are put back.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::stream::CallSource;
use super::{Keeping, PortError, Ports};
use crate::event::{Event, SnapshotReason};
use crate::model::snapshot_rules::{Occasion, Progress, ToolCall};
use crate::model::{AgentName, JobExit, LaneIndex, Timestamp};
use crate::process::{self, Launched, ProcessError};

/// How often is looked.
const LOOK: Duration = Duration::from_millis(500);

/// An attempt that is watched.
pub(super) struct Watched {
    pub(super) lane: LaneIndex,
    pub(super) agent: AgentName,
    pub(super) worktree: PathBuf,
    /// Where the agent's tool calls are told.
    pub(super) tool_calls: CallSource,
}

/// How far an attempt has been watched.
struct Watch<'a> {
    ports: &'a Ports,
    watched: &'a Watched,
    kept_at: Timestamp,
    counted: u64,
    /// Where to read on in the file of tool calls.
    offset: u64,
}

impl Ports {
    /// Waits for the end of the job in `directory`, and keeps the worktree of an attempt meanwhile.
    pub(super) fn wait_and_watch(
        &self,
        directory: &std::path::Path,
        launched: Option<Launched>,
        watched: Option<&Watched>,
        tell: &dyn Fn(Event),
    ) -> Result<JobExit, PortError> {
        let Some(watched) = watched.filter(|_| !self.snapshots.is_idle()) else {
            return Ok(process::wait_without_secrets(directory, launched, &self.redactor)?);
        };
        // Nobody knows when that of an attempt from an earlier life was kept last.
        let kept_at = if launched.is_some() { self.clock.now() } else { Timestamp::from_unix_millis(0) };
        let mut watch = Watch { ports: self, watched, kept_at, counted: 0, offset: 0 };
        thread::scope(|scope| {
            let (living, ended) = mpsc::channel::<()>();
            let waiting = scope.spawn(move || -> Result<JobExit, ProcessError> {
                let _living = living;
                process::wait_without_secrets(directory, launched, &self.redactor)
            });
            watch.until(&ended, tell);
            Ok(waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
        })
    }
}

impl Watch<'_> {
    fn until(&mut self, ended: &Receiver<()>, tell: &dyn Fn(Event)) {
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            self.look(tell);
        }
    }

    fn look(&mut self, tell: &dyn Fn(Event)) {
        let calls = self.new_calls();
        let progress = Progress { kept_at: self.kept_at, counted: self.counted, calls: &calls };
        let occasion = self.ports.snapshots.occasion(&progress, self.ports.clock.now());
        self.counted += calls.len() as u64;
        if let Some(occasion) = occasion {
            tell(self.keep(reason(occasion)));
            self.kept_at = self.ports.clock.now();
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
        let keeping = Keeping { lane: *lane, agent: Some(agent), at: self.ports.clock.now(), reason };
        let kept = self.ports.keep_worktree(&keeping, worktree);
        let (lane, agent) = (self.ports.id(*lane), Some(agent.clone()));
        match kept {
            Ok(kept) => Event::SnapshotTaken { lane, agent, reason, commit: kept.commit, reference: kept.reference },
            Err(error) => Event::SnapshotFailed { lane, agent, reason, error: error.to_string() },
        }
    }
}

fn reason(occasion: Occasion) -> SnapshotReason {
    match occasion {
        Occasion::Interval => SnapshotReason::Interval,
        Occasion::ToolCalls => SnapshotReason::ToolCalls,
        Occasion::Risky => SnapshotReason::Risky,
    }
}
