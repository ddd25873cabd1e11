//! Executors: engines of a cluster, Slurm or Kubernetes, that run commands on other machines, as the settings describe
//! them.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::redact::looks_secret;
use super::text::counted;
use super::time::{exact, optional_millis};
use super::word_enum;

word_enum! {
    /// The engines that can be used.
    ExecutorKind {
        /// Slurm, through its commands.
        Slurm = "slurm",
        /// Kubernetes, through its API.
        Kubernetes = "kubernetes",
    }
}

/// What this machine is called where an executor is meant.
pub const HERE: &str = "local";

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
    /// The context of the kubeconfig; without one, the current one.
    pub context: Option<String>,
    /// Without one, that of the context.
    pub namespace: Option<String>,
    pub image: Option<String>,
    pub service_account: Option<String>,
    /// The Secret whose keys become variables of jobs.
    pub secret: Option<String>,
    /// What is merged into each pod.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub pod_patch: Map<String, Value>,
    /// The directory on the node that `lanewright work` keeps clones in.
    pub cache: Option<PathBuf>,
    /// The directory on the node that the output of jobs is written to.
    pub output: Option<PathBuf>,
    /// What Lanewright is called on the node.
    pub program: Option<String>,
    /// Variables of jobs; a value `$NAME` is that of the variable NAME here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// How many lanes may be on it at once.
    pub max_lanes: Option<NonZeroU32>,
}

/// What a lane's job asks its executor for; `None`: the default, which [`Resources::cpus`] and the others say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<NonZeroU32>,
    /// In MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<NonZeroU32>,
    /// Graphics processors; `None`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<NonZeroU32>,
    /// In place of the executor's `image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How long the job may take.
    #[serde(with = "optional_millis", skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
}

impl Resources {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// 1 unless the plan says otherwise.
    pub fn cpus(&self) -> u32 {
        self.cpus.map_or(1, NonZeroU32::get)
    }

    /// 2 GiB unless the plan says otherwise.
    pub fn memory_mib(&self) -> u32 {
        self.memory_mib.map_or(2048, NonZeroU32::get)
    }

    /// Whole minutes; 8 hours unless the plan says otherwise.
    pub fn minutes(&self) -> u64 {
        self.time.map_or(8 * 60, |time| time.as_secs().div_ceil(60).max(1))
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} MiB", counted(self.cpus() as usize, "CPU"), self.memory_mib())?;
        self.gpus.map_or(Ok(()), |gpus| write!(f, ", {}", counted(gpus.get() as usize, "GPU")))?;
        write!(f, ", {}", exact(Duration::from_secs(60 * self.minutes())))?;
        self.image.as_ref().map_or(Ok(()), |image| write!(f, ", image {image}"))
    }
}

impl ExecutorSettings {
    pub const KEYS: &[&str] = &[
        "kind",
        "partition",
        "account",
        "qos",
        "arguments",
        "context",
        "namespace",
        "image",
        "service_account",
        "secret",
        "pod_patch",
        "cache",
        "output",
        "program",
        "environment",
        "max_lanes",
    ];

    /// What `lanewright work` is given as `--cache`. In a container the home directory may not exist.
    pub fn node_cache(&self) -> Option<&Path> {
        let default = (self.kind == ExecutorKind::Kubernetes).then_some(Path::new("/var/cache/lanewright"));
        self.cache.as_deref().or(default)
    }

    /// Every fault that the types do not exclude: the key that has it, and what is wrong with its value.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let values = serde_json::to_value(self).unwrap_or_default();
        let is_word = |key: &&&'static str| !["cache", "output"].contains(*key);
        let words =
            Self::KEYS.iter().filter(is_word).filter_map(|key| Some((*key, word_fault(values[*key].as_str()?)?)));
        let paths = [("cache", &self.cache), ("output", &self.output)];
        let relative = paths.into_iter().filter(|(_, path)| path.as_ref().is_some_and(|path| !path.is_absolute()));
        let relative =
            relative.map(|(key, _)| (key, "it is a directory on the node, so write an absolute path".into()));
        let variables = self.environment.iter().filter_map(|(name, value)| variable_fault(name, value));
        let variables = variables.map(|fault| ("environment", fault));
        words.chain(relative).chain(variables).chain(self.kind_faults(&values)).collect()
    }

    /// Keys of the other kind, and those that this kind needs.
    fn kind_faults(&self, values: &Value) -> Vec<(&'static str, String)> {
        let is_set = |key: &&'static str| !values[*key].is_null();
        let (kind, others) = match self.kind {
            ExecutorKind::Slurm => ("kubernetes", KUBERNETES_KEYS),
            ExecutorKind::Kubernetes => ("slurm", SLURM_KEYS),
        };
        let foreign = others.iter().copied().filter(is_set);
        let foreign = foreign.map(|key| (key, format!("only executors of kind `{kind}` have it")));
        let lacks_image = self.kind == ExecutorKind::Kubernetes && self.image.is_none();
        let image = lacks_image.then(|| {
            ("image", "it is missing; write `image = \"REGISTRY/NAME:TAG\"`, an image with Lanewright and git".into())
        });
        foreign.chain(image).collect()
    }
}

const SLURM_KEYS: &[&str] = &["partition", "account", "qos", "arguments", "output"];

const KUBERNETES_KEYS: &[&str] = &["context", "namespace", "image", "service_account", "secret", "pod_patch"];

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
