//! What lanes are to do, as digests, by which a later run of a plan recognizes the lanes that are merged already.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::dag::LaneIndex;
use super::digest::sha256;
use super::id::LaneId;
use super::plan::{Agent, Lane, Plan, Task};
use super::redact::{is_secret, redacted};
use super::replaced::AgentPart;

/// The digests of a plan's lanes, computed once.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaneDigests(OnceLock<Vec<String>>);

impl PartialEq for LaneDigests {
    /// They follow from the plan.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// How many hexadecimal digits a digest has.
const DIGITS: usize = 16;

/// How a lane is carried out: changed, its work is the same.
const OF_LANE: [&str; 15] = [
    "depends_on",
    "user_setup",
    "approval",
    "timeout",
    "budget",
    "closes",
    "retries",
    "uses",
    "setup",
    "copy",
    "merge_style",
    "resume",
    "agent_worktrees",
    "executor",
    "resources",
];
/// An agent without a name of its own is called like its runner.
const OF_AGENT: [&str; 6] = ["name", "runner", "fallback", "options", "timeout", "allow_empty"];
const OF_TASK: [&str; 2] = ["max_time", "allow_empty"];

impl Plan {
    /// The digest of what the lane at `index` is to do, and of what the lanes that it depends on are to do: 16 hexadecimal
    /// digits. It leaves out how that is carried out (runners, limits, retries, pools, worktrees, approvals), the gates of the
    /// whole phase, tests of the settings, and the values of secrets.
    pub fn lane_digest(&self, index: LaneIndex) -> &str {
        &self.digests.0.get_or_init(|| self.lane_digests())[index.at()]
    }

    fn lane_digests(&self) -> Vec<String> {
        let mut digests = vec![String::new(); self.lanes.len()];
        for &index in self.dag().order() {
            let mut needed: Vec<&String> = self.dag().dependencies(index).iter().map(|on| &digests[on.at()]).collect();
            needed.sort_unstable();
            let provided = self.interfaces.iter().filter(|interface| interface.provider == Some(index));
            let provided: Vec<_> = provided.map(|interface| (&interface.id, &interface.text)).collect();
            let work = json!({
                "phase": self.phase, "lane": self.work_of(self.lane(index)), "needed": needed, "provided": provided,
            });
            let mut digest = sha256(without_empty(work).unwrap_or_default().to_string());
            digest.truncate(DIGITS);
            digests[index.at()] = digest;
        }
        digests
    }
}

impl Plan {
    fn work_of(&self, lane: &Lane) -> Value {
        let mut work = object(lane, &OF_LANE);
        // A repository that gets a setting for all lanes has not changed what each of them is to do.
        if lane.has_usual_tests {
            work.retain(|key, _| !["tests", "has_usual_tests"].contains(&key.as_str()));
        }
        hide_secrets(&mut work);
        let agents = lane.agents.iter().map(|agent| {
            let mut own = object(agent, &OF_AGENT);
            if self.runner(agent).is_some_and(|runner| runner.command == agent.command) {
                own.remove("command");
            }
            hide_secrets(&mut own);
            let tasks = agent.tasks.iter().map(|task| {
                let mut said = object(task, &OF_TASK);
                said.insert("prompt".to_owned(), Value::String(self.planned_prompt(&lane.id, agent, task)));
                Value::Object(said)
            });
            own.insert("tasks".to_owned(), tasks.collect());
            Value::Object(own)
        });
        work.insert("agents".to_owned(), agents.collect());
        Value::Object(work)
    }

    /// The SHA-256 of the prompt that the plan file has, also where a retry replaced it.
    fn planned_prompt(&self, lane: &LaneId, agent: &Agent, task: &Task) -> String {
        let part = AgentPart::Prompt(task.id.clone());
        let known = self.replaced.iter().find(|it| (&it.lane, &it.agent, &it.part) == (lane, &agent.name, &part));
        known.map_or_else(|| sha256(&task.prompt), |replaced| replaced.planned_sha256.clone())
    }
}

fn object(part: &impl Serialize, without: &[&str]) -> Map<String, Value> {
    let Ok(Value::Object(mut object)) = serde_json::to_value(part) else { return Map::new() };
    object.retain(|key, _| !without.contains(&key.as_str()));
    object
}

/// A plan that was stored has marks in their place.
fn hide_secrets(object: &mut Map<String, Value>) {
    let Some(Value::Object(variables)) = object.get_mut("env") else { return };
    for (name, value) in variables {
        if value.as_str().is_some_and(|text| is_secret(name, text, &[])) {
            *value = Value::String(redacted(name));
        }
    }
}

/// The value with its keys in order and without what says nothing, so that a key that a later version adds changes no digest
/// of a plan that does not use it.
fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().map(|item| without_empty(item).unwrap_or_default()).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(object) => {
            let kept = object.into_iter().filter_map(|(key, value)| Some((key, without_empty(value)?)));
            let mut kept: Vec<(String, Value)> = kept.collect();
            kept.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            (!kept.is_empty()).then(|| Value::Object(kept.into_iter().collect()))
        }
        said => Some(said),
    }
}

#[cfg(test)]
#[path = "lane_digest_tests.rs"]
mod tests;
