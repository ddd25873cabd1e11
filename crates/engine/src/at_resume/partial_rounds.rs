//! Which agents a resume finds complete: the run log and git say whose work is in, and of the others the supervisor's
//! exit and `status.json` say how far they are (seed 003, Recovery Procedure 2; SPEC §7).

use std::time::Duration;

use lanewright_model::{Agent, ExitCause, JobExit, JobId, LaneId, LaneIndex, Round, Timestamp};
use lanewright_programs::process::{self, Heartbeat, Observation};
use lanewright_schedule::{AgentStep, Completion, RunState, Standing};
use lanewright_store::lane_files::{self, AgentStatus};
use lanewright_store::{LaneDirectory, RunDirectory};

/// How long an agent at work may give no sign of life, time asleep not counted (seed 003).
const STALE: Duration = Duration::from_secs(60 * 60);

pub fn partial_rounds(state: &RunState, run: &RunDirectory, now: Timestamp) -> Vec<(LaneId, Round, Completion)> {
    let begun = |&lane: &LaneIndex| state.lane(lane).has_begun() && !state.lane(lane).is_merged();
    let of_lane = |lane: LaneIndex| {
        let (plan, round) = (state.plan().lane(lane), state.round_at_work(lane)?);
        let mut completion = Completion::of(state.lane(lane), plan, round);
        for ((_, standing), agent) in completion.agents.iter_mut().zip(plan.round(round)) {
            // The log has the result of an attempt that ended.
            if let AgentStep::Running(job) = &state.lane(lane).agents()[agent].step
                && let Some((seen, status)) = observe(state, run, job)
            {
                let heartbeat = process::heartbeat(&run.job(job));
                let silent = match (&seen, &heartbeat) {
                    (Observation::Lost(_), Some(beat)) => Some(now.since(beat.updated_at)),
                    _ => {
                        let said = status.as_ref().and_then(|status| status.updated_at);
                        said.map(|since| awake_since(since, heartbeat, now))
                    }
                };
                let age = process::started_at(&run.job(job)).map(|since| awake_since(since, heartbeat, now));
                *standing = classify(&seen, status.as_ref(), silent, age);
            }
            let worker = &state.lane(lane).agents()[agent];
            if *standing != Standing::Complete
                && worker.attempt > 0
                && lost_status(state, &plan.id, &plan.agents[agent])
            {
                *standing = Standing::Missing(format!("its status.json is gone; else it would be {standing}"));
            }
        }
        (!completion.is_complete()).then(|| (plan.id.clone(), round, completion))
    };
    state.plan().indices().filter(begun).filter_map(of_lane).collect()
}

/// Whether the `status.json` of an agent that was started is gone from its lane's directory, which is there.
fn lost_status(state: &RunState, lane: &LaneId, agent: &Agent) -> bool {
    let Some(started) = state.started() else { return false };
    let directory = LaneDirectory::new(&started.options.worktree_root, &started.run_id, lane);
    directory.task_file().exists() && !directory.status_file(&agent.name).exists()
}

fn observe(state: &RunState, run: &RunDirectory, job: &JobId) -> Option<(Observation, Option<AgentStatus>)> {
    let started = state.started()?;
    let directory = LaneDirectory::new(&started.options.worktree_root, &started.run_id, job.lane.as_ref()?);
    let status = lane_files::read_status(&directory.status_file(job.agent()?));
    let seen = process::observe(&run.job(job)).ok()?;
    (seen != Observation::Absent).then_some((seen, status))
}

/// How long the job was awake since then, by the last heartbeat of its supervisor: one that lives beats as long as it is
/// awake.
fn awake_since(then: Timestamp, heartbeat: Option<Heartbeat>, now: Timestamp) -> Duration {
    match heartbeat {
        Some(beat) => beat.updated_at.since(then).saturating_sub(beat.asleep),
        None => now.since(then),
    }
}

/// The seed's table. An exit takes precedence over what the agent wrote: `COMPLETE` with exit code 1 is an error. `silent`:
/// how long ago the agent, or its supervisor for it, gave a sign of life; `age`: how long it has run.
fn classify(
    seen: &Observation,
    status: Option<&AgentStatus>,
    silent: Option<Duration>,
    age: Option<Duration>,
) -> Standing {
    let word = status.map(|status| status.report.status.as_str()).unwrap_or_default();
    let fault = status.map(|status| status.report.fault.as_str()).filter(|fault| !fault.is_empty());
    match seen {
        Observation::Exited(exit) if !exit.passed() => failed(exit, word),
        Observation::Exited(_) => match (fault, word) {
            (Some(fault), _) => Standing::Unknown(fault.to_owned()),
            (None, "ERROR" | "BLOCKED") => {
                Standing::Error(status.map(|s| s.report.message.clone()).unwrap_or_default())
            }
            _ => {
                Standing::Working("it succeeded while Lanewright was not running; its work is collected now".to_owned())
            }
        },
        Observation::Lost(_) if let Some(silent) = silent.filter(|silent| *silent > STALE) => {
            Standing::Timeout(format!("it died, and gave no sign of life for {} minutes", silent.as_secs() / 60))
        }
        Observation::Lost(_) => Standing::Error("it died without recording an exit".to_owned()),
        Observation::Running(_) | Observation::Starting => match (fault, silent) {
            (_, Some(silent)) if silent > STALE => {
                Standing::Timeout(format!("no sign of life for {} minutes", silent.as_secs() / 60))
            }
            (Some(fault), _) => Standing::Unknown(fault.to_owned()),
            _ => age.map_or_else(|| Standing::Working("it still runs".to_owned()), Standing::Running),
        },
        Observation::Planned | Observation::Absent => Standing::Missing("it was never begun".to_owned()),
    }
}

fn failed(exit: &JobExit, word: &str) -> Standing {
    let code = exit.exit_code;
    match exit.cause {
        ExitCause::TimedOut => Standing::Timeout(format!("ran out of time (exit code {code})")),
        ExitCause::Stopped => Standing::Working("it was stopped".to_owned()),
        _ if word == "COMPLETE" => Standing::Error(format!("says COMPLETE, but exited with code {code}")),
        _ => Standing::Error(format!("exited with code {code}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::ProcessId;
    use lanewright_model::event::AgentReport;

    const NOW: i64 = 10 * 3_600_000;

    fn status(word: &str, fault: &str, minutes_ago: i64) -> Option<AgentStatus> {
        let report = AgentReport { status: word.into(), fault: fault.into(), ..AgentReport::default() };
        Some(AgentStatus { report, updated_at: Some(Timestamp::from_unix_millis(NOW - minutes_ago * 60_000)) })
    }

    fn of(seen: Observation, status: Option<AgentStatus>) -> String {
        let silent = status.as_ref().and_then(|status| status.updated_at);
        let silent = silent.map(|since| Timestamp::from_unix_millis(NOW).since(since));
        let text = classify(&seen, status.as_ref(), silent, None).to_string();
        text.split(" - ").next().unwrap_or_default().to_owned()
    }

    fn exit(cause: ExitCause, exit_code: i32) -> Observation {
        let moment = Timestamp::from_unix_millis(NOW);
        let (command, tail, notes) = (String::new(), Vec::new(), String::new());
        Observation::Exited(JobExit { cause, exit_code, command, started_at: moment, finished_at: moment, tail, notes })
    }

    #[test]
    fn silence_excludes_time_asleep() {
        let at = |minutes: i64| Timestamp::from_unix_millis(minutes * 60_000);
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        let beat = |minute: i64, asleep| Some(Heartbeat { updated_at: at(minute), asleep });
        assert_eq!(awake_since(at(10), beat(20, Duration::ZERO), at(500)), minutes(10), "it sleeps now");
        assert_eq!(awake_since(at(10), beat(500, minutes(470)), at(500)), minutes(20), "it slept");
        assert_eq!(awake_since(at(10), beat(5, Duration::ZERO), at(5)), Duration::ZERO, "the clock was set back");
        assert_eq!(awake_since(at(10), None, at(80)), minutes(70), "no supervisor says anything");
    }

    #[test]
    fn exit_outweighs_status_and_stale_status_is_timeout() {
        let running = || Observation::Running(ProcessId { pid: 1, started: 1 });
        for (seen, status, expected) in [
            (exit(ExitCause::Exited, 1), status("COMPLETE", "", 0), "ERROR"),
            (exit(ExitCause::Exited, 0), status("ERROR", "", 0), "ERROR"),
            (exit(ExitCause::Exited, 0), status("COMPLETE", "", 0), "WORKING"),
            (exit(ExitCause::Exited, 0), status("", "half written", 0), "UNKNOWN"),
            (exit(ExitCause::Exited, 0), None, "WORKING"),
            (exit(ExitCause::TimedOut, 124), status("WORKING", "", 0), "TIMEOUT"),
            (running(), status("WORKING", "", 59), "WORKING"),
            (running(), status("WORKING", "", 61), "TIMEOUT"),
            (running(), status("", "its status `MAYBE` is none of …", 1), "UNKNOWN"),
            (running(), None, "WORKING"),
            (Observation::Lost(ProcessId { pid: 1, started: 1 }), status("COMPLETE", "", 0), "ERROR"),
            (Observation::Lost(ProcessId { pid: 1, started: 1 }), status("WORKING", "", 61), "TIMEOUT"),
            (Observation::Planned, None, "MISSING"),
        ] {
            assert_eq!(of(seen.clone(), status.clone()), expected, "{seen:?} {status:?}");
        }
    }
}
