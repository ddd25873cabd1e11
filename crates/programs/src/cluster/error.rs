//! Why an engine did not do what was asked of it, each with its remedy.

use std::io;
use std::time::Duration;

use lanewright_model::time::exact;

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("`{program}` is not installed here")]
    Missing { program: &'static str },
    #[error("cannot start `{program}`: {source}")]
    Start { program: &'static str, source: io::Error },
    #[error("`{program}` was stopped after {}", exact(*.limit))]
    TimedOut { program: &'static str, limit: Duration },
    #[error("{said}")]
    Refused { said: String, remedy: String },
    /// It does not answer, or takes nothing more for now.
    #[error("{said}")]
    Unavailable { said: String, remedy: String },
    #[error("`{program}` printed what it should not: {said}")]
    Answer { program: &'static str, said: String },
}

impl ClusterError {
    /// The same, for another order.
    pub(super) fn again(&self) -> Self {
        let (said, remedy) = (self.to_string(), self.remedy());
        if self.is_outage() { Self::Unavailable { said, remedy } } else { Self::Refused { said, remedy } }
    }

    /// Whether the same may be done later without a change to anything.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Unavailable { .. })
    }

    pub fn remedy(&self) -> String {
        match self {
            Self::Missing { .. } => "install Slurm's client commands (Debian: `apt install slurm-client`), or run \
                                     Lanewright on a machine that has them, such as the login node"
                .to_owned(),
            Self::Start { program, .. } => format!("check that `{program}` is executable"),
            Self::TimedOut { .. } => "check that Slurm's controller answers: scontrol ping".to_owned(),
            Self::Refused { remedy, .. } | Self::Unavailable { remedy, .. } => remedy.clone(),
            Self::Answer { program, .. } => format!("check that `{program}` is Slurm's"),
        }
    }
}
