//! Secrets of a plan's environments, which are never stored (decision 0022): a plan that is written to disk has a mark in
//! the place of each, and one that is read has them filled in from where they stand.

use std::collections::BTreeMap;

use super::id::{AgentName, LaneId};
use super::plan::{Plan, PlanParts};
use super::redact::{is_secret, redacted};

/// A value that a stored plan does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// Whose environment it belongs to.
    pub owner: EnvironmentOwner,
    pub name: String,
}

/// Which part of a plan has an environment of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvironmentOwner {
    Lane(LaneId),
    /// An agent of a lane.
    Agent(LaneId, AgentName),
    /// A runner, by its name.
    Runner(String),
}

impl Plan {
    /// The plan as it may be stored: without the values that [`is_secret`] finds in its environments.
    #[must_use]
    pub fn without_secrets(&self, patterns: &[String]) -> Self {
        self.with_values(|variable, value| is_secret(&variable.name, value, patterns).then(|| redacted(&variable.name)))
    }

    /// The plan with the withheld values that `find` returns.
    #[must_use]
    pub fn with_secrets(&self, find: impl Fn(&Withheld) -> Option<String>) -> Self {
        self.with_values(|variable, value| if is_mark(&variable.name, value) { find(variable) } else { None })
    }

    /// The values that are still missing.
    pub fn withheld(&self) -> Vec<Withheld> {
        let mut missing = Vec::new();
        each_value(&mut PlanParts::from(self.clone()), |variable, value| {
            if is_mark(&variable.name, value) {
                missing.push(variable);
            }
        });
        missing
    }

    /// A value of one of its environments; `None` where it is missing here as well.
    pub fn value_of(&self, wanted: &Withheld) -> Option<String> {
        let mut found = None;
        each_value(&mut PlanParts::from(self.clone()), |variable, value| {
            if variable == *wanted && !is_mark(&variable.name, value) {
                found = Some(value.clone());
            }
        });
        found
    }

    fn with_values(&self, change: impl Fn(&Withheld, &str) -> Option<String>) -> Self {
        let mut parts = PlanParts::from(self.clone());
        each_value(&mut parts, |variable, value| {
            if let Some(new) = change(&variable, value) {
                *value = new;
            }
        });
        // Environments have no part in what makes a plan valid.
        Plan::new(parts).unwrap_or_else(|_| self.clone())
    }
}

fn is_mark(name: &str, value: &str) -> bool {
    value == redacted(name)
}

fn each_value(parts: &mut PlanParts, mut act: impl FnMut(Withheld, &mut String)) {
    let mut each = |owner: EnvironmentOwner, environment: &mut BTreeMap<String, String>| {
        environment
            .iter_mut()
            .for_each(|(name, value)| act(Withheld { owner: owner.clone(), name: name.clone() }, value));
    };
    for lane in &mut parts.lanes {
        each(EnvironmentOwner::Lane(lane.id.clone()), &mut lane.env);
        for agent in &mut lane.agents {
            each(EnvironmentOwner::Agent(lane.id.clone(), agent.name.clone()), &mut agent.env);
        }
    }
    for (name, runner) in &mut parts.runners {
        each(EnvironmentOwner::Runner(name.clone()), &mut runner.environment);
    }
}

impl std::fmt::Display for Withheld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = &self.name;
        match &self.owner {
            EnvironmentOwner::Lane(lane) => write!(f, "{name} of lane {lane}"),
            EnvironmentOwner::Agent(lane, agent) => write!(f, "{name} of {lane}/{agent}"),
            EnvironmentOwner::Runner(runner) => write!(f, "{name} of runner {runner}"),
        }
    }
}
