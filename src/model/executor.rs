//! Executors: engines of a cluster, such as Slurm, that run commands on other machines, as the settings describe them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::redact::looks_secret;
use super::word::word_enum;

word_enum! {
    /// The engines that can be used.
    ExecutorKind {
        /// Slurm, through its commands.
        Slurm = "slurm",
    }
}

/// One engine with what its jobs are submitted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorSettings {
    pub kind: ExecutorKind,
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    /// Further arguments of `sbatch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The directory on the node that `lanekeeper work` keeps clones in.
    pub cache: Option<PathBuf>,
    /// The directory on the node that the output of jobs is written to.
    pub output: Option<PathBuf>,
    /// What Lanekeeper is called on the node.
    pub program: Option<String>,
    /// Variables of jobs; a value `$NAME` is that of the variable NAME here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// How many lanes may be on it at once.
    pub max_lanes: Option<NonZeroU32>,
}

impl ExecutorSettings {
    pub const KEYS: &[&str] =
        &["kind", "partition", "account", "qos", "arguments", "cache", "output", "program", "environment", "max_lanes"];

    /// Every fault that the types do not exclude: the key that has it, and what is wrong with its value.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let texts = [("partition", &self.partition), ("account", &self.account), ("qos", &self.qos)];
        let texts = texts.into_iter().chain([("program", &self.program)]);
        let texts = texts.filter_map(|(key, text)| Some((key, word_fault(text.as_deref()?)?)));
        let paths = [("cache", &self.cache), ("output", &self.output)];
        let relative = paths.into_iter().filter(|(_, path)| path.as_ref().is_some_and(|path| !path.is_absolute()));
        let relative =
            relative.map(|(key, _)| (key, "it is a directory on the node, so write an absolute path".into()));
        let variables = self.environment.iter().filter_map(|(name, value)| variable_fault(name, value));
        texts.chain(relative).chain(variables.map(|fault| ("environment", fault))).collect()
    }
}

fn word_fault(text: &str) -> Option<String> {
    let is_odd =
        text.is_empty() || text.starts_with('-') || text.contains(|c: char| c.is_whitespace() || c.is_control());
    is_odd.then(|| format!("{text:?} is not a name: it may not be empty, begin with `-` or contain spaces"))
}

fn variable_fault(name: &str, value: &str) -> Option<String> {
    let is_name = |name: &str| {
        let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !is_name(name) {
        return Some(format!("`{name}` is not the name of a variable"));
    }
    match value.strip_prefix('$') {
        Some(other) if !is_name(other) => Some(format!("`{value}` is not `$` and the name of a variable")),
        None if looks_secret(name) => {
            Some(format!("{name} looks like a secret; write `{name} = \"${name}\"`, and set it here"))
        }
        _ => None,
    }
}
