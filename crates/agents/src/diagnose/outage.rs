//! Detects from the last lines of an attempt's output that it failed because an external service was unavailable.

use std::sync::LazyLock;
use std::time::Duration;

use lanewright_model::runner::OutagePatterns;
use lanewright_model::text::headline;
use lanewright_model::{ExitCause, JobExit, Outage, OutageKind, Transcript};
use regex::{Captures, Regex, RegexSet};

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

/// What was out, if that is why an attempt ended without success. `tail` are the last lines that the program said, without
/// the words of the agent in it; `more` is what it prints besides what all programs do.
pub fn outage(
    exit: &JobExit,
    tail: &[String],
    transcript: Option<&Transcript>,
    more: Option<&OutagePatterns>,
) -> Option<Outage> {
    let reported = transcript.cloned().unwrap_or_default();
    let lines = match exit.cause {
        ExitCause::Exited if exit.passed() && reported.error.is_empty() => return None,
        ExitCause::Exited => closing_lines(tail, &reported),
        // It says so only with the trouble that it was dealing with to the last.
        ExitCause::TimedOut => reported.warning.lines().map(str::to_owned).collect(),
        ExitCause::Stopped | ExitCause::NotStarted | ExitCause::Lost => return None,
    };
    let kind = reported.outage.filter(|_| exit.cause == ExitCause::Exited);
    let said = || kind.map(|kind| Outage { kind, line: headline(&reported.error, 200), retry_after: None });
    find_outage(&lines, more).or_else(said)
}

/// The lines in which it may stand: from its error on, where the stream tells one, for what came before is over; else
/// all of the last.
fn closing_lines(tail: &[String], reported: &Transcript) -> Vec<String> {
    let error = headline(&reported.error, usize::MAX);
    let from = match error.as_str() {
        "" => 0,
        error => tail.iter().rposition(|line| line.contains(error)).unwrap_or(tail.len()),
    };
    let said = reported.warning.lines().chain(reported.error.lines()).map(str::to_owned);
    said.chain(tail[from..].iter().cloned()).collect()
}

/// What was out, if that is why a program failed that said `lines`: one that speaks to a remote or to a forge.
pub fn outage_in(lines: &[String]) -> Option<Outage> {
    find_outage(lines, None)
}

/// What was out, if one of `lines` says so. The last that does counts.
fn find_outage(lines: &[String], more: Option<&OutagePatterns>) -> Option<Outage> {
    let none = OutagePatterns::default();
    let more = more.unwrap_or(&none);
    let own = [(OutageKind::Quota, patterns(&more.quota)), (OutageKind::Network, patterns(&more.network))];
    let known = || own.iter().chain(OUTAGES.iter());
    let kind_of = |line: &str| known().find(|(_, patterns)| patterns.is_match(line)).map(|(kind, _)| *kind);
    let (line, kind) = lines.iter().rev().find_map(|line| Some((line, kind_of(line)?)))?;
    let retry_after = lines.iter().rev().find_map(|line| WAIT.as_ref()?.captures(line).as_ref().and_then(duration));
    Some(Outage { kind, line: headline(line.trim(), 200), retry_after })
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
        find_outage(&lines, None).map(|outage| (outage.kind, outage.retry_after.map(|wait| wait.as_secs())))
    }

    #[test]
    fn outage_patterns_compile() {
        assert_eq!(patterns(NETWORK).len() + patterns(QUOTA).len(), NETWORK.len() + QUOTA.len());
        assert!(WAIT.is_some());
    }

    #[test]
    fn known_outage_messages_are_recognized() {
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

    fn exit(cause: ExitCause, exit_code: i32, tail: &[&str]) -> JobExit {
        let at = lanewright_model::Timestamp::from_unix_millis(0);
        let tail = tail.iter().map(|&line| line.to_owned()).collect();
        JobExit { cause, exit_code, command: "x".into(), started_at: at, finished_at: at, tail, notes: String::new() }
    }

    #[test]
    fn outage_before_reported_error_is_ignored() {
        let tail = ["connection refused", "trying again", "error: invalid key", "see the manual"];
        let reported = |error: &str| Transcript { error: error.to_owned(), ..Transcript::default() };
        let kind = |exit: &JobExit, reported: &Transcript| {
            outage(exit, &exit.tail, Some(reported), None).map(|outage| outage.kind)
        };
        let failed = exit(ExitCause::Exited, 1, &tail);
        assert_eq!(kind(&failed, &reported("invalid key")), None);
        assert_eq!(kind(&failed, &reported("connection refused")), Some(OutageKind::Network));
        assert_eq!(kind(&failed, &Transcript::default()), Some(OutageKind::Network));
        assert_eq!(kind(&exit(ExitCause::Exited, 0, &tail), &Transcript::default()), None);
        assert_eq!(kind(&exit(ExitCause::Exited, 0, &tail), &reported("HTTP status 429")), Some(OutageKind::Quota));
        let quota = Transcript { outage: Some(OutageKind::Quota), ..reported("come back") };
        assert_eq!(kind(&failed, &quota), Some(OutageKind::Quota));
    }

    #[test]
    fn timed_out_agent_reports_last_warning_as_outage() {
        let waiting = Transcript { warning: "waiting: connection refused".into(), ..Transcript::default() };
        let late = exit(ExitCause::TimedOut, 124, &["connection refused"]);
        assert_eq!(
            outage(&late, &late.tail, Some(&waiting), None).map(|outage| outage.kind),
            Some(OutageKind::Network)
        );
        assert_eq!(outage(&late, &late.tail, None, None), None);
        let stopped = exit(ExitCause::Stopped, 143, &["connection refused"]);
        assert_eq!(outage(&stopped, &stopped.tail, Some(&waiting), None), None);
    }

    #[test]
    fn runner_outage_patterns_take_precedence() {
        let more = OutagePatterns { quota: vec!["come back tomorrow".into()], network: vec!["429".into()] };
        let kind = |line: &str| find_outage(&[line.to_owned()], Some(&more)).map(|outage| outage.kind);
        assert_eq!(kind("Come back tomorrow."), Some(OutageKind::Quota));
        assert_eq!(kind("HTTP 429"), Some(OutageKind::Network));
        assert_eq!(kind("connection refused"), Some(OutageKind::Network));
    }

    #[test]
    fn agent_failures_are_not_outages() {
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
