//! Attempts of a paused runner: none begins before the pause ends, and then one.

use std::collections::BTreeMap;

use lanewright_model::event::{Event, Record};
use lanewright_model::{JobId, JobRole, Plan, Timestamp};

#[derive(Default)]
pub struct Pauses {
    paused: BTreeMap<String, Pause>,
    /// The run has ended since it was last resumed.
    has_ended: bool,
}

struct Pause {
    until: Option<Timestamp>,
    probe: Option<JobId>,
}

impl Pauses {
    pub fn see(&mut self, plan: &Plan, record: &Record) -> Option<String> {
        match &record.event {
            Event::RunnerPaused { account, until, .. } => {
                let probe = self.paused.remove(shared(account)).and_then(|known| known.probe);
                self.paused.insert(shared(account).to_owned(), Pause { until: *until, probe });
            }
            Event::RunnerContinued { account } => drop(self.paused.remove(shared(account))),
            Event::RunFinished { .. } => self.has_ended = true,
            Event::RunResumed { .. } => {
                for pause in self.paused.values_mut().filter(|pause| self.has_ended || pause.until.is_none()) {
                    pause.until = Some(record.at);
                }
                self.has_ended = false;
            }
            Event::JobExited { job, .. } => {
                for pause in self.paused.values_mut() {
                    pause.probe.take_if(|probe| probe == job);
                }
            }
            Event::JobPlanned { job } => {
                let pause = self.paused.get_mut(&account(plan, job)?)?;
                if pause.until.is_none_or(|until| record.at < until) {
                    return Some(format!("{job} was planned while its runner is paused"));
                }
                if let Some(probe) = pause.probe.replace(job.clone()) {
                    return Some(format!("{job} was planned while {probe} finds out whether the pause is over"));
                }
            }
            _ => {}
        }
        None
    }
}

/// What `Bug::ProbesTogether` makes an account of.
fn shared(account: &str) -> &str {
    account.split(" of ").next().unwrap_or(account)
}

fn account(plan: &Plan, job: &JobId) -> Option<String> {
    let JobRole::Attempt { agent, .. } = &job.role else { return None };
    let lane = plan.lane(plan.find(job.lane.as_ref()?)?);
    Some(lane.agents.iter().find(|known| known.name == *agent)?.command.to_string())
}
