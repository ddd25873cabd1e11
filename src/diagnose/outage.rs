//! Whether an attempt failed because something outside was out: told by the last lines of its output.

use std::sync::LazyLock;
use std::time::Duration;

use regex::{Captures, Regex, RegexSet};

use crate::model::runner::OutagePatterns;
use crate::model::{Outage, OutageKind};

/// What programs print when a host cannot be reached: the words of the resolver, of sockets, of curl, of Node.js and of
/// Python's and Rust's HTTP clients.
const NETWORK: &[&str] = &[
    r"could not resolve (host|proxy)",
    r"(temporary failure in|failure in) name resolution",
    r"name or service not known",
    r"\bnetwork is (unreachable|down)\b",
    r"\bno route to host\b",
    r"\bconnection (refused|reset by peer|timed out)\b",
    r"\b(ECONNREFUSED|ECONNRESET|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH)\b",
    r"\bapi connection error\b",
    r"\b(error|failed) sending request for url\b",
    r"\bTLS handshake (timeout|timed out)\b",
    r"\b(502 bad gateway|503 service unavailable|504 gateway time-?out)\b",
];

/// What services and their programs print when they take no more requests for now.
const QUOTA: &[&str] = &[
    r"\b429 too many requests\b",
    r"\b(http|status|error|code)\D{0,12}\b429\b",
    r"\brate[ _-]?limit(s|ed|ing)?\b.{0,40}\b(exceeded|reached|hit|error)\b",
    r"\brate_limit_(error|exceeded)\b",
    r"\b(exceeded|reached|hit)\b.{0,40}\b(rate limit|quota|usage limit)\b",
    r"\b(quota|usage limit|session limit)\b.{0,40}\b(exceeded|exhausted|reached)\b",
    r"\b(insufficient_quota|resource_exhausted|overloaded_error)\b",
];

static OUTAGES: LazyLock<[(OutageKind, RegexSet); 2]> =
    LazyLock::new(|| [(OutageKind::Quota, patterns(QUOTA)), (OutageKind::Network, patterns(NETWORK))]);

/// `Retry-After: 20`, `try again in 1.5s`, `retry after 2 minutes`.
static WAIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?i)(?:retry[ _-]?after|(?:try again|retry) (?:in|after))\D{0,5}(?<number>\d+(?:\.\d+)?)\s*(?<unit>ms|s|sec|m|min|h|hour)?";
    Regex::new(words).ok()
});

/// What was out, if one of `lines`, the last of an attempt's output, says so. The last that does counts. `more` is what
/// the agent's program prints besides what all programs do.
pub fn outage(lines: &[String], more: Option<&OutagePatterns>) -> Option<Outage> {
    let none = OutagePatterns::default();
    let more = more.unwrap_or(&none);
    let own = [(OutageKind::Quota, patterns(&more.quota)), (OutageKind::Network, patterns(&more.network))];
    let known = || own.iter().chain(OUTAGES.iter());
    let kind_of = |line: &str| known().find(|(_, patterns)| patterns.is_match(line)).map(|(kind, _)| *kind);
    let (line, kind) = lines.iter().rev().find_map(|line| Some((line, kind_of(line)?)))?;
    let retry_after = lines.iter().rev().find_map(|line| WAIT.as_ref()?.captures(line).as_ref().and_then(duration));
    Some(Outage { kind, line: crate::model::text::headline(line.trim(), 200), retry_after })
}

fn duration(captures: &Captures<'_>) -> Option<Duration> {
    let number: f64 = captures.name("number")?.as_str().parse().ok()?;
    let seconds = match captures.name("unit").map_or("s", |unit| unit.as_str()) {
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" | "hour" => 3600.0,
        _ => 1.0,
    };
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// None of the patterns is wrong: tests compile ours, and those of descriptions are checked when they are read.
fn patterns<S: AsRef<str>>(patterns: &[S]) -> RegexSet {
    regex::RegexSetBuilder::new(patterns.iter().map(AsRef::as_ref)).case_insensitive(true).build().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(OutageKind, Option<u64>)> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        outage(&lines, None).map(|outage| (outage.kind, outage.retry_after.map(|wait| wait.as_secs())))
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(patterns(NETWORK).len() + patterns(QUOTA).len(), NETWORK.len() + QUOTA.len());
        assert!(WAIT.is_some());
    }

    #[test]
    fn what_programs_say_when_something_is_out_is_known() {
        let network = |wait| Some((OutageKind::Network, wait));
        let quota = |wait| Some((OutageKind::Quota, wait));
        for (text, expected) in [
            ("curl: (6) Could not resolve host: api.example.com", network(None)),
            ("fatal: unable to access 'https://example.com/': Failed to connect: Connection refused", network(None)),
            ("Error: getaddrinfo EAI_AGAIN api.example.com", network(None)),
            ("HTTP/1.1 429 Too Many Requests\nRetry-After: 20", quota(Some(20))),
            ("API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}", quota(None)),
            ("Rate limit reached for requests. Please try again in 2m", quota(Some(120))),
            ("You exceeded your current quota, please check your plan", quota(None)),
            ("Usage limit reached, try again in 5 hours", quota(Some(5 * 3600))),
            ("{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}", quota(None)),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_runners_own_words_count_before_those_of_all_programs() {
        let more = OutagePatterns { quota: vec!["come back tomorrow".into()], network: vec!["429".into()] };
        let kind = |line: &str| outage(&[line.to_owned()], Some(&more)).map(|outage| outage.kind);
        assert_eq!(kind("Come back tomorrow."), Some(OutageKind::Quota));
        assert_eq!(kind("HTTP 429"), Some(OutageKind::Network));
        assert_eq!(kind("connection refused"), Some(OutageKind::Network));
    }

    #[test]
    fn failures_of_the_agents_own_are_no_outage() {
        for text in [
            "test rate_limiter_allows_429_requests ... FAILED",
            "assertion failed: quota == 3",
            "src/net.rs:429:5: error[E0308]: mismatched types",
            "wrote the retry logic; see connection.rs",
            "error: expected `;`, found `}`",
            "",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
