//! Where a lane waits for a person.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::id::TaskId;
use super::plan::Approval;

/// A gate that only the user can open: `setup`, `plan` or `changes` for an approval, `task:ID` for a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String", extend("pattern" = "^(setup|plan|changes|task:.+)$")))]
pub enum HumanGate {
    /// `setup`, `plan` or `changes`.
    Approval(Approval),
    /// `task:ID`; on the command line the id alone will do.
    Task(TaskId),
}

impl fmt::Display for HumanGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approval(approval) => approval.fmt(f),
            Self::Task(task) => write!(f, "task:{task}"),
        }
    }
}

impl FromStr for HumanGate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(approval) = Approval::from_word(text) {
            return Ok(Self::Approval(approval));
        }
        let task = TaskId::new(text.strip_prefix("task:").unwrap_or(text));
        task.map(Self::Task).map_err(|error| format!("neither `setup` nor `plan` nor `changes` nor a task: {error}"))
    }
}

impl HumanGate {
    /// `setup`, `plan`, `changes` or `task 2`: for people, after "its".
    pub fn for_people(&self) -> String {
        match self {
            Self::Approval(approval) => approval.to_string(),
            Self::Task(task) => format!("task {task}"),
        }
    }
}

impl From<Approval> for HumanGate {
    fn from(approval: Approval) -> Self {
        Self::Approval(approval)
    }
}

impl Serialize for HumanGate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanGate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_named_like_approval_is_distinct() {
        let task = HumanGate::Task(TaskId::new("plan").unwrap());
        assert_eq!(task.to_string().parse(), Ok(task));
        assert_eq!("plan".parse(), Ok(HumanGate::Approval(Approval::Plan)));
        assert_eq!("2.1".parse(), Ok(HumanGate::Task(TaskId::new("2.1").unwrap())));
        assert!("../x".parse::<HumanGate>().is_err());
    }
}
