//! What the benches share: medians, and ratios within one run.

#![allow(dead_code, reason = "each bench uses its own part")]

use std::time::Duration;

/// What the benches answer.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The middle one of `values`, which must not be empty; of an even number the lower one.
pub fn median<T: PartialOrd + Copy>(values: &[T]) -> T {
    let mut sorted = values.to_vec();
    sorted.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    sorted[(sorted.len() - 1) / 2]
}

/// How long ours took against theirs, round by round: the median, the smallest and the largest ratio.
pub fn ratios(ours: &[Duration], theirs: &[Duration]) -> (f64, f64, f64) {
    let each: Vec<f64> =
        ours.iter().zip(theirs).map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64()).collect();
    let (low, high) = each.iter().fold((f64::MAX, f64::MIN), |(low, high), &it| (low.min(it), high.max(it)));
    (median(&each), low, high)
}
