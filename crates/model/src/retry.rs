//! What a retry is, and when it may begin.

use std::time::Duration;

use super::word_enum;

word_enum! {
    // seed 000, Recovery Protocol; SPEC §7.
    /// What a further attempt is for.
    RetryLevel {
        /// Level 1: the same approach, with the errors of earlier attempts.
        Retry = "retry",
        /// Level 2: from the last state that passed, with a different approach.
        Rollback = "rollback",
        /// Not counted as a retry: an external service was unavailable, a session was gone, or a gate ran again after a
        /// resume.
        Wait = "wait",
    }
}

/// The longest delay between two attempts.
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(5 * 60);

/// How long a network or a quota may be out before the lanes that wait for it fail, unless a setting says otherwise.
pub const OUTAGE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a runner must be paused before another one takes its place, unless a setting says otherwise.
pub const FALLBACK_AFTER: Duration = Duration::from_secs(5 * 60);

/// Exponential backoff with jitter that is derived from `key` and `attempt`, so that a replay gives the same delays.
///
/// `attempt` counts from 1; the delay lies between half and the whole of `first * 2^(attempt - 1)`, at most
/// [`LONGEST_BACKOFF`].
pub fn backoff(first: Duration, key: &str, attempt: u32) -> Duration {
    let doubled = first.saturating_mul(1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
    let whole = doubled.min(LONGEST_BACKOFF);
    let jitter = f64::from(crc32fast::hash(format!("{key}#{attempt}").as_bytes())) / f64::from(u32::MAX);
    whole.mul_f64(0.5 + 0.5 * jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_within_their_jitter_and_stay_bounded() {
        let first = Duration::from_secs(1);
        for attempt in 1..=40 {
            let whole = first.saturating_mul(2u32.saturating_pow(attempt - 1)).min(LONGEST_BACKOFF);
            let delay = backoff(first, "P1/SL-1/engineer", attempt);
            assert!(delay >= whole / 2 && delay <= whole, "attempt {attempt}: {delay:?}");
        }
    }

    #[test]
    fn backoff_is_deterministic_per_key() {
        let delay = |key| backoff(Duration::from_secs(60), key, 2);
        assert_eq!(delay("a"), delay("a"));
        assert_ne!(delay("a"), delay("b"));
    }
}
