//! What a person sets up before a lane can start (SPEC §3.2).

use serde::{Deserialize, Serialize};

/// What has to be set up of one service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSetup {
    /// The name of the service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// What it is needed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Variables that the lane's agents need in their environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_vars: Vec<SetupVariable>,
    /// What a person does by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dashboard_config: Vec<SetupStep>,
}

impl UserSetup {
    /// Changes every free text with `change`; the names of variables stay as they are.
    pub fn change_texts(&mut self, change: &mut dyn FnMut(&mut String)) {
        change(&mut self.service);
        self.why.iter_mut().for_each(&mut *change);
        self.env_vars.iter_mut().filter_map(|variable| variable.source.as_mut()).for_each(&mut *change);
        for step in &mut self.dashboard_config {
            change(&mut step.task);
            step.location.iter_mut().for_each(&mut *change);
        }
    }
}

/// An environment variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupVariable {
    pub name: String,
    /// Where its value is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A step that a person carries out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupStep {
    pub task: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// Whether a lane waits for a person with that setup, of which the variables `missing` are not set.
pub fn is_due(setup: &[UserSetup], missing: &[String]) -> bool {
    !missing.is_empty() || setup.iter().any(|service| !service.dashboard_config.is_empty())
}

/// What a person has to do, each in a few words. Of the variables those of which `is_wanted` holds.
pub fn to_do(setup: &[UserSetup], is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let place = |place: &Option<String>| place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    let variables = setup.iter().flat_map(|service| &service.env_vars).filter(|variable| is_wanted(&variable.name));
    let variables = variables.map(|variable| format!("set {}{}", variable.name, place(&variable.source)));
    let steps = setup.iter().flat_map(|service| &service.dashboard_config);
    variables.chain(steps.map(|step| format!("{}{}", step.task, place(&step.location)))).collect()
}
