//! When an outage ends, in the words of the program that reports it.

use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, Datelike, Days, FixedOffset, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use chrono_tz::Tz;
use lanewright_model::Timestamp;
use regex::{Captures, Regex};

/// How long to wait, or until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    After(Duration),
    At(Timestamp),
}

/// The fields of answers and of logs: `Retry-After: 20`, `"retryDelay": "32s"`, `"resets_at": 1735689600`.
pub(super) const FIELDS: &[&str] = &[
    r#"\bretry[ _-]?(?:after|delay)(?P<ms>[_-]ms)?\W{1,6}(?P<wait>\d[\w.:/ -]*)"#,
    r#"\bretry-after: (?P<until>[a-z]{3}, \d[\w: ]+GMT)"#,
    r#"\bresets?_in(?:_seconds)?\W{1,6}(?P<wait>\d[\w.:/ -]*)"#,
    r#"\bresets?_at\W{1,6}(?P<until>\d[\w.:+-]*)"#,
    r"\blimit reached\|(?P<until>\d{9,13})",
];

/// What programs of all kinds say: `try again in 3 days 2 hours`, `resets 3pm (Europe/Berlin)`.
pub(super) const SENTENCES: &[&str] = &[
    r"\b(?:(?:try again|retry(?:ing)?|resets?|available again|come back) (?:in|after)|wait(?: for)?) (?:about )?(?P<wait>(?:\d|an? )[\w.,:/ -]*)",
    r"\b(?:try again|retry|resets?|reset (?:time|at)|available again|come back|until)\W{0,4}(?:(?:at|on|is)\W{1,4})?(?P<until>[\w:+.,/() -]+)",
];

/// The longest wait that is believed: 400 days.
const LONGEST: Duration = Duration::from_secs(400 * 86_400);

/// A time that is over for less than this is not the next day's: clocks differ, and a line is read late.
const JUST_OVER: Duration = Duration::from_secs(15 * 60);

/// The end that `line` names by one of `patterns`, if it was said `now` by a program whose times of day are of `zone` where it
/// names none.
pub(super) fn end<Z: TimeZone>(line: &str, patterns: &[Regex], now: Timestamp, zone: &Z) -> Option<End> {
    let of = |captures: Captures<'_>| {
        let wait = captures.name("wait").and_then(|text| wait(text.as_str(), captures.name("ms").is_some()));
        let until = || captures.name("until").and_then(|text| until(text.as_str(), now.0, zone));
        wait.map(End::After).or_else(|| until().map(|moment| End::At(Timestamp(moment))))
    };
    patterns.iter().flat_map(|pattern| pattern.captures_iter(line)).find_map(of)
}

/// The words for a unit of time, each with its length in milliseconds.
const UNITS: &[(&[&str], f64)] = &[
    (&["ms", "msec", "msecs", "millisecond", "milliseconds", "millis"], 1.0),
    (&["s", "sec", "secs", "second", "seconds"], 1e3),
    (&["m", "min", "mins", "minute", "minutes"], 60e3),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600e3),
    (&["d", "day", "days"], 86_400e3),
    (&["w", "week", "weeks"], 604_800e3),
];

static PART: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)^(?:,|and|\s)*(?P<number>\d+(?:\.\d+)?|an?\b)\s*(?P<unit>[a-z]*)").ok());

/// `20`, `1.5s`, `3 days 2 hours 5 minutes`, `1h2m`, `an hour`; a number alone counts seconds, or milliseconds where the
/// text says so.
fn wait(text: &str, in_millis: bool) -> Option<Duration> {
    let (mut rest, mut millis, mut parts) = (text, 0.0, 0);
    while let Some(part) = PART.as_ref()?.captures(rest) {
        let number = part["number"].parse().unwrap_or(1.0);
        let unit = part["unit"].to_ascii_lowercase();
        let known = UNITS.iter().find(|(words, _)| words.contains(&unit.as_str())).map(|(_, millis)| *millis);
        // A time of day is none of these, nor is a date.
        let is_clock = rest[part.name("number")?.end()..].starts_with([':', '/', '-']);
        let of_unit = match known {
            Some(of_unit) => of_unit,
            None if parts > 0 || !unit.is_empty() || is_clock => break,
            None if in_millis => 1.0,
            None => 1e3,
        };
        millis += number * of_unit;
        parts += 1;
        rest = &rest[part[0].len()..];
        if unit.is_empty() {
            break;
        }
    }
    let wait = (parts > 0).then(|| Duration::try_from_secs_f64(millis / 1e3).unwrap_or(LONGEST));
    wait.map(|wait| wait.min(LONGEST))
}

static CLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let date = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?";
    let iso = r"(?P<iso>\d{4}-\d{2}-\d{2})";
    let week = r"(?P<weekday>mon|tue|wed|thu|fri|sat|sun)[a-z]*";
    let time =
        r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::(?P<second>\d{2})(?:\.\d+)?)?(?:\s*(?P<half>[ap]\.?m\b\.?))?";
    // An hour alone may count something else, and what follows a time at once ends a range, unless a date is before it.
    let offset = r"(?:(?:utc|gmt) ?(?P<east>[+-]\d{1,2})(?::?(?P<east_minutes>\d{2}))?\b|(?P<only>[+-]\d{2}:?\d{2})\b)";
    let zone = format!(r"(?:{offset}|(?P<zone>[a-z]+(?:/[a-z\d_+-]+)*))");
    let day = format!(r"(?:{date}|{iso}|{week}|today|(?P<tomorrow>tomorrow))");
    let whole = format!(
        r"(?i)^(?:{day}(?:,| at)?(?:,|T| )\s*)?(?:at )?{time}(?:,? (?P<then>tomorrow)\b)?(?P<before_zone>\s*\(?)(?:{zone}\)?)?"
    );
    Regex::new(&whole).ok()
});

/// The moment that `text` begins with: RFC 3339, seconds or milliseconds since 1970, or a time of day, which is the next one.
fn until<Z: TimeZone>(text: &str, now: DateTime<Utc>, local: &Z) -> Option<DateTime<Utc>> {
    let text = text.trim_start();
    let word = text.split_whitespace().next()?.trim_end_matches(['.', ',', ')']);
    if let Ok(moment) = DateTime::parse_from_rfc3339(word) {
        return Some(moment.to_utc());
    }
    if let (9..=13, Ok(number)) = (word.len(), word.parse::<i64>()) {
        return DateTime::from_timestamp_millis(if word.len() > 11 { number } else { number * 1000 });
    }
    if let Ok(moment) = DateTime::parse_from_rfc2822(text) {
        return Some(moment.to_utc());
    }
    let clock = CLOCK.as_ref()?.captures(text)?;
    match (offset(&clock), clock.name("zone").and_then(|zone| zone_named(zone.as_str()))) {
        (Some(offset), _) => moment(&clock, now, &offset),
        (None, Some(zone)) => moment(&clock, now, &zone),
        (None, None) => moment(&clock, now, local),
    }
}

/// `UTC+2` is two hours east of Greenwich; the zone `Etc/GMT+2` is two hours west of it.
fn offset(clock: &Captures<'_>) -> Option<FixedOffset> {
    if let Some(only) = clock.name("only") {
        return only.as_str().parse().ok().filter(|_| clock.name("iso").is_some() || !clock["before_zone"].is_empty());
    }
    let east = clock.name("east")?.as_str();
    let hours: i32 = east[1..].parse().ok().filter(|hours| *hours <= 14)?;
    let minutes = clock.name("east_minutes").and_then(|text| text.as_str().parse().ok()).unwrap_or(0);
    FixedOffset::east_opt((hours * 60 + minutes) * if east.starts_with('-') { -60 } else { 60 })
}

/// What the database of zones does not know by these names, or without their summer time.
const SHORT_ZONES: &[(&[&str], &str)] = &[
    (&["pst", "pdt", "pt"], "America/Los_Angeles"),
    (&["mst", "mdt", "mt"], "America/Denver"),
    (&["cst", "cdt", "ct"], "America/Chicago"),
    (&["est", "edt", "et"], "America/New_York"),
    (&["bst"], "Europe/London"),
    (&["cest"], "Europe/Berlin"),
    (&["jst"], "Asia/Tokyo"),
    (&["z"], "UTC"),
];

fn zone_named(text: &str) -> Option<Tz> {
    let short = SHORT_ZONES.iter().find(|(names, _)| names.contains(&text.to_ascii_lowercase().as_str()));
    let name = short.map_or(text, |(_, name)| name);
    Tz::from_str_insensitive(name).ok()
}

fn moment<Z: TimeZone>(clock: &Captures<'_>, now: DateTime<Utc>, zone: &Z) -> Option<DateTime<Utc>> {
    let number = |name: &str| clock.name(name).and_then(|text| text.as_str().parse::<u32>().ok());
    let (hour, minute) = (number("hour")?, number("minute"));
    let half = clock.name("half").map(|half| half.as_str().to_ascii_lowercase());
    let hour = match half {
        // A number alone is no time.
        None => minute.map(|_| hour)?,
        Some(_) if hour > 12 => return None,
        Some(half) => hour % 12 + if half.starts_with('p') { 12 } else { 0 },
    };
    let time = NaiveTime::from_hms_opt(hour, minute.unwrap_or(0), number("second").unwrap_or(0))?;
    let today = now.with_timezone(zone).date_naive();
    let on = |date: NaiveDate| in_zone(date.and_time(time), zone);
    if let Some(date) = clock.name("iso") {
        return on(date.as_str().parse().ok()?);
    }
    if clock.name("tomorrow").or(clock.name("then")).is_some() {
        return on(today.succ_opt()?);
    }
    let is_over = |moment: DateTime<Utc>| moment + JUST_OVER < now;
    if let (Some(month), Some(day)) = (clock.name("month"), number("day")) {
        let month = chrono::Month::try_from(
            MONTHS.iter().position(|name| month.as_str().eq_ignore_ascii_case(name))? as u8 + 1,
        );
        let date = |year| NaiveDate::from_ymd_opt(year, month.ok()?.number_from_month(), day);
        return match clock.name("year") {
            Some(year) => on(date(year.as_str().parse().ok()?)?),
            // What is over for more than half a year is next year's.
            None => {
                let this = on(date(today.year())?)?;
                if this + Days::new(183) < now { on(date(today.year() + 1)?) } else { Some(this) }
            }
        };
    }
    // Shortly after midnight, a time of yesterday is just over.
    let mut days = today.pred_opt().unwrap_or(today).iter_days().take(10);
    match clock.name("weekday").map(|day| day.as_str().parse::<chrono::Weekday>()) {
        Some(Ok(weekday)) => {
            days.filter(|day| day.weekday() == weekday).filter_map(on).find(|moment| !is_over(*moment))
        }
        _ => days.find_map(|day| on(day).filter(|moment| !is_over(*moment))),
    }
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A time that clocks skip when summer begins is as long after the hour before; of one that they show twice, the later.
fn in_zone<Z: TimeZone>(time: NaiveDateTime, zone: &Z) -> Option<DateTime<Utc>> {
    match zone.from_local_datetime(&time) {
        LocalResult::Single(moment) | LocalResult::Ambiguous(_, moment) => Some(moment.to_utc()),
        LocalResult::None => {
            let before = zone.from_local_datetime(&(time - chrono::Duration::hours(1))).latest()?;
            Some(before.to_utc() + chrono::Duration::hours(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns() -> Vec<Regex> {
        FIELDS.iter().chain(SENTENCES).map(|pattern| Regex::new(&format!("(?i){pattern}")).unwrap()).collect()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp(DateTime::parse_from_rfc3339(text).unwrap().to_utc())
    }

    /// The end in seconds, or the moment, said at `now` by a program in Kolkata.
    fn ends(line: &str, now: &str) -> Option<String> {
        let kolkata = FixedOffset::east_opt(19_800).unwrap();
        Some(match end(line, &patterns(), at(now), &kolkata)? {
            End::After(wait) => wait.as_secs_f64().to_string(),
            End::At(moment) => moment.to_string().replace(":00.000Z", ""),
        })
    }

    #[test]
    fn ends_are_read_as_programs_say_them() {
        for (line, expected) in [
            ("Retry-After: 20", "20"),
            ("retry-after-ms: 1500", "1.5"),
            ("\"retryDelay\": \"32.5s\"", "32.5"),
            ("Please retry in 1h2m3.5s.", "3723.5"),
            ("Rate limit reached. Please try again in 2m", "120"),
            ("or try again in 3 days 2 hours 5 minutes.", "266700"),
            ("Your quota will reset after 21h0m9s.", "75609"),
            ("You've hit your usage limit. Try again at 3:00 AM.", "2026-03-01T21:30"),
            ("You've hit your limit · resets 3pm (Europe/Berlin)", "2026-03-01T14:00"),
            ("You've hit your weekly limit · resets Mar 4, 3pm (UTC)", "2026-03-04T15:00"),
            ("limit will reset at 2026-03-04T15:00:00+01:00.", "2026-03-04T14:00"),
            ("usage limit reached, resets 2026-03-04T15:00:00Z", "2026-03-04T15:00"),
            ("try again in 20 - or later", "20"),
            ("Claude AI usage limit reached|1772373600", "2026-03-01T14:00"),
            ("try again at Mar 5th, 2027 3:07 PM", "2027-03-05T09:37"),
            ("resets Jan 2, 3:30am (America/New_York)", "2026-01-02T08:30"),
            ("resets Monday 9:00 am (UTC)", "2026-03-02T09:00"),
            ("try again at 17:05 (+02:00)", "2026-03-01T15:05"),
            ("try again at 17:03 UTC+2", "2026-03-01T15:03"),
            ("try again at 17:03 GMT-3", "2026-03-01T20:03"),
            ("try again at 17:03 GMT+05:30.", "2026-03-02T11:33"),
            ("try again at 2026-11-30 17:03 UTC+2", "2026-11-30T15:03"),
            ("resets 2026-03-28T02:30:00 Europe/Berlin", "2026-03-28T01:30"),
            ("resets 5pm (Etc/GMT+2)", "2026-03-01T19:00"),
            ("resets 17:03Z", "2026-03-01T17:03"),
            ("resets 5pm PST", "2026-03-02T01:00"),
            ("try again tomorrow at 7am.", "2026-03-02T01:30"),
            ("try again at 7am tomorrow.", "2026-03-02T01:30"),
            ("resets at 2026-03-01 23:03:00.250 UTC", "2026-03-01T23:03"),
            ("resets at 17:03 UTC-00:30", "2026-03-01T17:33"),
            ("resets at 17:03 -03:30", "2026-03-01T20:33"),
            ("resets at 17:03 -5 files", "2026-03-02T11:33"),
            ("resets at 8pm (+1 day)", "2026-03-01T14:30"),
            ("resets at 20:00-22:00", "2026-03-01T14:30"),
            ("resets today at 8pm", "2026-03-01T14:30"),
            ("resets 2026-03-04 15:00:00 UTC", "2026-03-04T15:00"),
            ("Retry-After: Wed, 04 Mar 2026 15:00:00 GMT", "2026-03-04T15:00"),
            ("{\"resets_at\":1772373600}", "2026-03-01T14:00"),
            ("\"resets_in_seconds\": 90", "90"),
            ("please try again in an hour", "3600"),
            ("wait 5 minutes before you send more", "300"),
            ("retry-after: 99999999999999", "34560000"),
        ] {
            assert_eq!(ends(line, "2026-03-01T13:10:00Z").as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_words_name_no_end() {
        for line in [
            "try again later",
            "try again at once",
            "You have reached your limit of 5 requests",
            "retry the request at another time",
            "resets your session",
            "at 12 of 30 files",
            "HTTP 429: retry 1 due to a limit",
            "[at 14:05:11] HTTP 429",
            "try again in 5 files",
            "resets 27:00 PM",
        ] {
            assert_eq!(ends(line, "2026-03-01T13:10:00Z"), None, "{line}");
        }
    }

    #[test]
    fn a_time_of_day_is_the_next_one_unless_it_was_just_now() {
        let line = "resets 3pm (UTC)";
        assert_eq!(ends(line, "2026-03-01T14:59:00Z").as_deref(), Some("2026-03-01T15:00"));
        assert_eq!(ends(line, "2026-03-01T15:10:00Z").as_deref(), Some("2026-03-01T15:00"));
        assert_eq!(ends(line, "2026-03-01T15:20:00Z").as_deref(), Some("2026-03-02T15:00"));
        let midnight = "2026-03-02T00:00:10Z";
        assert_eq!(ends("try again at 11:59 PM (UTC)", midnight).as_deref(), Some("2026-03-01T23:59"));
        assert_eq!(ends("resets Sunday 11:59 PM (UTC)", midnight).as_deref(), Some("2026-03-01T23:59"));
        assert_eq!(ends("try again at 11:40 PM (UTC)", midnight).as_deref(), Some("2026-03-02T23:40"));
    }

    #[test]
    fn clocks_that_change_give_a_time_all_the_same() {
        let skipped = "resets 2:30am (Europe/Berlin)";
        assert_eq!(ends(skipped, "2026-03-29T00:10:00Z").as_deref(), Some("2026-03-29T01:30"));
        assert_eq!(ends(skipped, "2026-10-24T22:10:00Z").as_deref(), Some("2026-10-25T01:30"), "the later of two");
    }
}
