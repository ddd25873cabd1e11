//! What several commands have: headings of options, limits, and how a flag becomes a setting.

use std::time::Duration;

use clap::Args;
use lanewright_model::{Dollars, Progress};
use lanewright_plan::settings::{Layer, Origin, Setting};

use super::choice;

/// Headings of the options, in the order in which help shows them.
pub(super) const WHAT: &str = "What to run";
pub(super) const HOW: &str = "How to run it";
pub(super) const LIMITS: &str = "Limits";
pub(super) const SESSION: &str = "Sessions and output";
pub(super) const PLAN: &str = "Reading the plan";

#[derive(Debug, Args)]
pub(crate) struct ProgressArgs {
    /// auto, live, plain, json or none [default: auto]
    #[arg(long, value_name = "HOW", value_parser = choice::<Progress>(), hide_possible_values = true)]
    progress: Option<Progress>,
}

impl ProgressArgs {
    pub(crate) fn layer(&self) -> Layer {
        Layer { progress: flag("--progress", &self.progress), ..Layer::default() }
    }
}

pub(crate) type Limit = Option<Duration>;

pub(crate) type CostLimit = Option<Dollars>;

pub(crate) type CountLimit = Option<u64>;

pub(super) fn flag<T: Clone>(name: &'static str, value: &Option<T>) -> Option<Setting<T>> {
    value.clone().map(|value| Setting::new(value, Origin::Flag(name)))
}

pub(super) fn optional<T: Clone>(name: &'static str, value: &Option<T>) -> Option<Setting<Option<T>>> {
    value.clone().map(|value| Setting::new(Some(value), Origin::Flag(name)))
}

pub(super) fn switch(name: &'static str, given: bool, value: bool) -> Option<Setting<bool>> {
    given.then(|| Setting::new(value, Origin::Flag(name)))
}
