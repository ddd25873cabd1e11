//! Walls: what the processes of a job may write, read and reach.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::word_enum;

word_enum! {
    /// Whether jobs run in a sandbox.
    SandboxChoice {
        /// Without one.
        Off = "off",
        /// In the best one that this machine can build, else without one.
        Auto = "auto",
        /// In one; without one no run starts.
        On = "on",
    }
}

/// The wall around a job. Everything can be read but `hidden`, nothing can be written but `writable` and a temporary directory
/// that the job has alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    pub builder: WallBuilder,
    /// Files and directories; absolute. Those that do not exist are left out.
    pub writable: Vec<PathBuf>,
    /// What lies in `writable` and stays as it is. Landlock has no such exceptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<PathBuf>,
    /// What cannot be read. Landlock has no such exceptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<PathBuf>,
    /// Whether other machines can be reached.
    pub network: bool,
}

/// What builds a wall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WallBuilder {
    /// Namespaces, made by the program `bwrap` at this path.
    Bubblewrap(PathBuf),
    /// Rules of the kernel for the processes of the job.
    Landlock,
}

word_enum! {
    /// What becomes of an attempt whose agent changed another checkout of the repository.
    #[derive(Default)]
    OutsideChanges {
        /// It fails.
        #[default]
        Fail = "fail",
        /// It is reported.
        Report = "report",
        /// Nothing is looked at.
        Off = "off",
    }
}
