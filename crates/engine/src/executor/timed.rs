//! Measures actions: how long git worked goes into the run log, and everything into `--timings`.

use lanewright_files::timing::{self, TARGET};
use lanewright_model::event::Event;
use lanewright_model::{AgentName, JobExit, JobId, LaneId};
use lanewright_schedule::Action;
use lanewright_store::{Journal, LogError};

use super::crash::{CrashPoint, crash_point};
use super::{Executor, Result, Task, subject};

impl Executor {
    /// Carries out `task`, which does `action`. Each answer is preceded by how long git worked for it.
    pub(crate) fn timed(&self, action: &Action, task: Task, emit: &dyn Fn(Event)) -> Vec<Event> {
        let (lane, agent) = subject(action, &self.plan);
        let span = tracing::debug_span!(target: TARGET, "action", title = action.word(), row = row(lane.as_ref(), agent.as_ref()));
        let _entered = span.entered();
        // What an earlier task on this thread left does not belong to this one.
        timing::take();
        let worked = || {
            let took_ms = u64::try_from(timing::take().as_millis()).unwrap_or(u64::MAX);
            (took_ms > 0).then(|| Event::GitWorked { lane: lane.clone(), took_ms })
        };
        let answers = task(&|event| worked().into_iter().chain([event]).for_each(emit));
        worked().into_iter().chain(answers).collect()
    }
}

pub(crate) fn sync_log(journal: &mut Journal) -> Result<(), LogError> {
    crash_point(CrashPoint::BeforeSync);
    tracing::debug_span!(target: TARGET, "sync log").in_scope(|| journal.sync())?;
    crash_point(CrashPoint::AfterSync);
    Ok(())
}

/// The row of a trace on which everything of an agent, a lane or the phase is drawn.
pub fn row(lane: Option<&LaneId>, agent: Option<&AgentName>) -> String {
    match (lane, agent) {
        (Some(lane), Some(agent)) => format!("{lane} {agent}"),
        (Some(lane), None) => lane.to_string(),
        (None, _) => "phase".to_owned(),
    }
}

pub(super) fn job_span(job: &JobId, wait: impl FnOnce() -> Result<JobExit>) -> Result<JobExit> {
    use tracing::field::Empty;
    let span = tracing::debug_span!(
        target: TARGET, "job", title = job.role.word(), job = %job, exit_code = Empty, started_at = Empty, finished_at = Empty
    );
    let ended = span.in_scope(wait);
    if let Ok(exit) = &ended
        && !span.is_disabled()
    {
        span.record("exit_code", exit.exit_code);
        span.record("started_at", exit.started_at.to_string());
        span.record("finished_at", exit.finished_at.to_string());
    }
    ended
}
