//! A setting's value with its origin.

use std::fmt;

use super::fault::FilePosition;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The command line; the flag as typed.
    Flag(&'static str),
    Environment(String),
    Plan,
    File(FilePosition),
    Default,
}

impl Origin {
    /// Whether the value was given for this one call and so also overrides what a plan says of single lanes.
    pub fn outranks_plan(&self) -> bool {
        matches!(self, Self::Flag(_) | Self::Environment(_))
    }

    pub fn layer(&self) -> &'static str {
        match self {
            Self::Flag(_) => "flag",
            Self::Environment(_) => "environment",
            Self::Plan => "plan",
            Self::File(_) => "file",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => f.write_str(name),
            Self::Environment(name) => f.write_str(name),
            Self::File(place) => place.fmt(f),
            Self::Plan | Self::Default => f.write_str(self.layer()),
        }
    }
}
