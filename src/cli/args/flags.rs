//! What several commands have: headings of options, limits, and how a flag becomes a setting.

use std::time::Duration;

use lanewright_model::Dollars;
use lanewright_plan::settings::{Origin, Setting};

/// Headings of the options, in the order in which help shows them.
pub(super) const WHAT: &str = "What to run";
pub(super) const HOW: &str = "How to run it";
pub(super) const LIMITS: &str = "Limits";
pub(super) const SESSION: &str = "Sessions and output";
pub(super) const PLAN: &str = "Reading the plan";

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
