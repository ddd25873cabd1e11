//! Time as data: nothing here reads a clock.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Offset, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// A time in UTC, in ISO-8601 with milliseconds: `2026-01-31T12:00:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String", extend("pattern" = PATTERN)))]
#[serde(transparent)]
pub struct Timestamp(pub DateTime<Utc>);

#[cfg(feature = "schema")]
const PATTERN: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$";

impl Timestamp {
    /// The moment `milliseconds` after the Unix epoch; out of range becomes the epoch.
    pub fn from_unix_millis(milliseconds: i64) -> Self {
        Self(DateTime::from_timestamp_millis(milliseconds).unwrap_or_default())
    }

    pub fn unix_millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        (self.0 - earlier.0).to_std().unwrap_or_default()
    }

    /// The moment `duration` later, at millisecond resolution.
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_unix_millis(self.unix_millis().saturating_add(millis))
    }

    /// `20260131T120000.000Z`: without characters that a ref or a file name may not hold.
    pub fn compact(self) -> String {
        self.0.format("%Y%m%dT%H%M%S%.3fZ").to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A moment, with the offset of the user's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    pub at: Timestamp,
    pub offset: FixedOffset,
}

impl LocalTime {
    /// The moment, for where no zone of a user is known.
    pub fn utc(at: Timestamp) -> Self {
        Self { at, offset: Utc.fix() }
    }

    /// How people read that something lasts to `moment`: ` until 03:00 (2h 10m)`, with the date if it is not within 20 hours. Empty
    /// once the moment has come.
    pub fn until(self, moment: Timestamp) -> String {
        let rest = moment.since(self.at);
        if rest.is_zero() {
            return String::new();
        }
        let format = if rest < DAY { "%H:%M" } else { "%Y-%m-%d %H:%M" };
        format!(" until {} ({})", moment.0.with_timezone(&self.offset).format(format), short(rest))
    }
}

/// Within which a time of day says which day is meant.
const DAY: Duration = Duration::from_secs(20 * 3600);

/// Durations in state files: whole milliseconds.
pub mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

/// The same for durations that may be absent.
pub mod optional_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::millis::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

/// `3h ago`: for people, in the largest unit that fits.
pub fn ago(duration: Duration) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "d"), (3600, "h"), (60, "m")];
    let seconds = duration.as_secs();
    let unit = UNITS.iter().find(|(length, _)| seconds >= *length);
    unit.map_or_else(|| "just now".to_owned(), |(length, unit)| format!("{}{unit} ago", seconds / length))
}

/// How long something took, in whole seconds or minutes: `12s`, `3m 05s`, `1h 02m`. For people, never read back.
pub fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A limit as a user would type it: `100ms`, `10m`, `1h 30m`.
pub fn exact(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_whole_seconds_and_limits_are_exact() {
        let millis = [0, 999, 12_999, 60_000, 185_000, 3_599_999, 3_720_000, 90_000_000].map(Duration::from_millis);
        assert_eq!(millis.map(short), ["0s", "0s", "12s", "1m 00s", "3m 05s", "59m 59s", "1h 02m", "25h 00m"]);
        assert_eq!([100, 600_000, 5_400_000].map(Duration::from_millis).map(exact), ["100ms", "10m", "1h 30m"]);
    }

    #[test]
    fn end_of_wait_is_a_time_of_day_where_that_is_clear() {
        let at = Timestamp::from_unix_millis(0);
        let now = LocalTime { at, offset: FixedOffset::east_opt(3600).unwrap() };
        let shown = [0, 7_800, 90_000].map(|seconds| now.until(at.plus(Duration::from_secs(seconds))));
        assert_eq!(shown, ["", " until 03:10 (2h 10m)", " until 1970-01-02 02:00 (25h 00m)"]);
    }
}
