//! Arguments that name a run, a lane or an agent.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use lanewright_model::LaneId;

/// What is typed for a run (its id, the beginning of its id, or `@latest`), for a lane or for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// The run that began last, whatever became of it.
    const LATEST: &str = "@latest";

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_latest(&self) -> bool {
        self.0 == Self::LATEST
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match LaneId::new(text) {
            _ if text == Self::LATEST => Ok(Self(text.to_owned())),
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) if text.starts_with('@') => Err(format!("{error}; the newest run is {}", Self::LATEST)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArg {
    /// The run, or the beginning of its id [default: the newest]
    ///
    /// Or @latest, the newest run. The default is the newest unfinished run, else the newest that was not rolled back.
    pub(crate) run: Option<Name>,
}

/// `[RUN] [LANE]`
#[derive(Debug, Args)]
pub(crate) struct LaneArgs {
    /// The run, or the beginning of its id [default: the newest]
    ///
    /// Or @latest, the newest run. The default is the newest unfinished run, else the newest that was not rolled back.
    ///
    /// Where a lane is named and no run, the first word is the lane. It is a run if a run has exactly this id; otherwise
    /// a lane if the default run has such a lane; otherwise the beginning of a run's id.
    pub(crate) run: Option<Name>,
    /// The lane
    pub(crate) lane: Option<Name>,
}

/// `[RUN] [LANE] [AGENT]`
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    place: LaneArgs,
    /// The agent of the lane
    agent: Option<Name>,
}

impl LaneArgs {
    pub(crate) fn names(&self) -> Vec<&Name> {
        self.run.iter().chain(&self.lane).collect()
    }
}

impl AgentArgs {
    pub(crate) fn names(&self) -> Vec<&Name> {
        self.place.run.iter().chain(&self.place.lane).chain(&self.agent).collect()
    }
}
