//! Timing what is done: how long git worked is told to the run log, and all of it to `--timings`.

use super::{PortError, Ports, Task};
use crate::event::Event;
use crate::model::{AgentName, JobExit, JobId, LaneId};
use crate::schedule::Action;
use crate::timing::{self, TARGET};

impl Ports {
    /// Carries out `task`, which does `action`. Before each answer stands how long git worked for it.
    pub(in crate::engine) fn timed(&self, action: &Action, task: Task, tell: &dyn Fn(Event)) -> Vec<Event> {
        let (lane, agent) = (action.lane(&self.plan), self.agent_of(action));
        let span = tracing::debug_span!(target: TARGET, "action", title = action.word(), row = row(lane.as_ref(), agent.as_ref()));
        let _entered = span.entered();
        // What an earlier task on this thread did not tell is none of this one's.
        timing::take();
        let worked = || {
            let took_ms = u64::try_from(timing::take().as_millis()).unwrap_or(u64::MAX);
            (took_ms > 0).then(|| Event::GitWorked { lane: lane.clone(), took_ms })
        };
        let answers = task(&|event| worked().into_iter().chain([event]).for_each(tell));
        worked().into_iter().chain(answers).collect()
    }

    fn agent_of(&self, action: &Action) -> Option<AgentName> {
        match *action {
            Action::RunJob(ref job) | Action::StopJob { ref job, .. } => job.agent().cloned(),
            Action::OpenWorktree { lane, agent: Some(agent) }
            | Action::CommitWork { lane, agent }
            | Action::Snapshot { lane, agent, .. }
            | Action::MergeAgent { lane, agent }
            | Action::ReleaseAgent { lane, agent }
            | Action::ResetAgent { lane, agent } => Some(self.plan.lane(lane).agents[agent].name.clone()),
            _ => None,
        }
    }
}

/// The row of a trace on which everything of an agent, a lane or the phase is drawn.
pub fn row(lane: Option<&LaneId>, agent: Option<&AgentName>) -> String {
    match (lane, agent) {
        (Some(lane), Some(agent)) => format!("{lane} {agent}"),
        (Some(lane), None) => lane.to_string(),
        (None, _) => "phase".to_owned(),
    }
}

/// Waits for a job by `wait`, and tells the trace how it went.
pub(super) fn job_span(job: &JobId, wait: impl FnOnce() -> Result<JobExit, PortError>) -> Result<JobExit, PortError> {
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
