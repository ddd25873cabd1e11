//! Identifiers: the only strings of a plan that become part of paths and ref names, and the names of commits.
//!
//! The rule is one for all that a plan has (SPEC §13): `[A-Za-z0-9][A-Za-z0-9._-]{0,63}` and no `..`. Two more
//! names are refused because git refuses them as a part of a branch name: a trailing `.` and a trailing
//! `.lock`. A run, which has files and directories of its name, cannot have that of a file of Lanewright's either.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest identifier, in bytes.
pub const MAX_ID_LENGTH: usize = 64;

/// What the refs of the snapshots of a lane are named after: `P1-SL-1`. A lane that is called after the number of its
/// phase and a plan, such as `10-01` of the phase `10-auth`, has the number of the plan only: `10-auth-01`.
pub fn snapshot_group(phase: &str, lane: &str) -> String {
    let number = phase.split('-').next().filter(|number| number.starts_with(|c: char| c.is_ascii_digit()));
    let plan = lane.split_once('-').filter(|(of, plan)| Some(*of) == number && !plan.is_empty());
    format!("{phase}-{}", plan.map_or(lane, |(_, plan)| plan))
}

/// Why a string is not a valid identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidId(String);

fn check(text: &str) -> Result<(), InvalidId> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    Err(InvalidId(match text.chars().next() {
        None => "an id cannot be empty".to_owned(),
        Some(first) if !first.is_ascii_alphanumeric() => {
            format!("an id begins with a letter or a digit, not with `{first}`")
        }
        _ if let Some(bad) = text.chars().find(|&c| !allowed(c)) => {
            format!("an id holds letters, digits, `.`, `_` and `-` only, not `{bad}`")
        }
        _ if text.len() > MAX_ID_LENGTH => {
            format!("an id has at most {MAX_ID_LENGTH} characters, this one has {}", text.len())
        }
        // It would read as a parent directory or a revision range.
        _ if text.contains("..") => "an id cannot hold `..`".to_owned(),
        _ if let Some(end) = [".", ".lock"].iter().find(|end| text.ends_with(*end)) => {
            format!("an id cannot end with `{end}`, git refuses it in a branch name")
        }
        _ => return Ok(()),
    }))
}

fn check_run(text: &str) -> Result<(), InvalidId> {
    check(text)?;
    // Some file systems ignore case.
    let name = text.to_ascii_lowercase();
    let reserved = name.split('.').next().is_some_and(|stem| RESERVED.contains(&stem));
    if reserved || name.contains(".jsonl") {
        let why = "because Lanewright has other files of that name";
        return Err(InvalidId(format!("a run cannot be called `{text}`, {why}")));
    }
    Ok(())
}

fn check_commit(text: &str) -> Result<(), InvalidId> {
    let is_whole = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_whole { Ok(()) } else { Err(InvalidId(format!("`{text}` is no full commit name"))) }
}

/// The files and directories beside those of runs, in the state directory and below the worktree root, without what
/// follows a dot. Logs, and what is made of a damaged one, have `.jsonl` in their names.
const RESERVED: &[&str] = &["checkpoints", "errors", "slots", "trash"];

#[cfg(feature = "schema")]
const NAME_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

#[cfg(feature = "schema")]
const COMMIT_PATTERN: &str = "^([0-9a-f]{40}|[0-9a-f]{64})$";

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident: $check:ident, $pattern:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(extend("pattern" = $pattern)))]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` against its rule.
            ///
            /// # Errors
            /// [`InvalidId`] names the first rule that `text` breaks.
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

id_types! {
    /// Names a phase, for example `P1`.
    PhaseId: check, NAME_PATTERN;
    /// Names a lane, unique in its plan, for example `SL-API`.
    LaneId: check, NAME_PATTERN;
    /// Names an agent, unique in its lane, for example `engineer`.
    AgentName: check, NAME_PATTERN;
    /// Names a task, unique in its lane.
    TaskId: check, NAME_PATTERN;
    /// Names an event that a script or an agent records, for example `deployed`.
    EventName: check, NAME_PATTERN;
    /// Names a run, unique in its repository.
    RunId: check_run, NAME_PATTERN;
    /// A commit's full object name in hexadecimal.
    CommitId: check_commit, COMMIT_PATTERN;
}

impl CommitId {
    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_of_a_gsd_plan_have_its_own_number() {
        let cases = [
            ("P1", "SL-1", "P1-SL-1"),
            ("10-error-recovery", "10-01", "10-error-recovery-01"),
            ("10", "10-01", "10-01"),
            ("02.1-x", "02.1-03-b", "02.1-x-03-b"),
            ("10-x", "1-01", "10-x-1-01"),
            ("10-x", "10", "10-x-10"),
        ];
        for (phase, lane, expected) in cases {
            assert_eq!(snapshot_group(phase, lane), expected);
        }
    }

    #[test]
    fn safe_names_are_accepted() {
        for text in ["a", "SL-1", "0", "07.1-01", "A_b.c-d", &"x".repeat(64)] {
            assert_eq!(LaneId::new(text).map(String::from), Ok(text.to_owned()));
        }
    }

    #[test]
    fn names_that_leave_a_root_or_confuse_git_are_refused() {
        for text in ["", "../x", "-x", ".x", "a/b", "a..b", "a b", "a\0", "ä", "x.lock", "x.", &"x".repeat(65)] {
            assert!(LaneId::new(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn a_run_has_no_name_of_another_file_of_lanewrights() {
        let reserved = [
            "errors",
            "checkpoints",
            "checkpoints.json",
            "Checkpoints.JSON.damaged-1",
            "slots",
            "trash",
            "r1.jsonl",
            "r1.jsonl.arriving",
        ];
        for name in reserved {
            assert!(RunId::new(name).unwrap_err().to_string().contains("other files"), "{name}");
            assert!(LaneId::new(name).is_ok(), "{name}");
        }
        for name in ["errors-2", "my-slots", "r1.json"] {
            assert!(RunId::new(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_bad_name_in_a_state_file_is_refused_at_read() {
        assert!(serde_json::from_str::<RunId>("\"../../etc\"").is_err());
    }
}
