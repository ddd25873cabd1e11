//! Detects from the last lines of an attempt's output that it failed because an external service was unavailable.

use std::ops::Range;
use std::sync::LazyLock;

use chrono::TimeZone;
use lanewright_model::text::headline;
use lanewright_model::{ExitCause, JobExit, Outage, OutageKind, Runner, Timestamp, Transcript};
use regex::Regex;

use ends::End;

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

/// What the programs of forges and git print besides when a server fails or is not reached. A test that an agent ran may
/// print the same.
const REMOTE: &[&str] =
    &[r"\bHTTP 50[0234]\b", r"\berror connecting to \S", r"\bdial tcp\b.*: no such host\b", r"\bi/o timeout\b"];

/// What services and their programs print when they take no more requests for now.
const QUOTA: &[&str] = &[
    r"\b429 too many requests\b",
    r"\b(http|status|error|code)\D{0,12}\b429\b",
    r"\brate[ _-]?limit(s|ed|ing)?\b.{0,40}\b(exceeded|reached|hit|error)\b",
    r"\brate_limit_(error|exceeded)\b",
    r"\b(exceeded|reached|hit)\b.{0,40}\b(rate limit|quota|usage limit)\b",
    r"\b(quota|usage limit|session limit)\b.{0,40}\b(exceeded|exhausted|reached)\b",
    r"\b(resource_exhausted|overloaded_error)\b",
];

/// What programs print when their key is refused.
const WRONG_KEY: &[&str] = &[
    r"\b(http|status|error|code)\D{0,12}\b401\b",
    r"\b401 unauthorized\b",
    r"\b(authentication_error|invalid_api_key)\b",
    r"\b(invalid|incorrect|expired|missing) (x-)?api[ _-]?key\b",
    r"\bapi key (is |was )?(not valid|invalid|expired|missing)\b",
];

const WRONG_MODEL: &[&str] = &[r"\bmodel_not_found\b"];

/// What programs print when they cannot work until a person changes something else: an empty account, a certificate.
const REFUSED: &[&str] = &[
    r"\b(http|status|error|code)\D{0,12}\b402\b",
    r"\b(permission_error|insufficient_quota|billing_error)\b",
    r"\b(credit balance is too low|insufficient (credits?|balance|funds))\b",
    r"\bcertificate (verify failed|has expired|is not yet valid)\b",
    r"\b(self[- ]signed certificate|unable to (get local issuer|verify the first) certificate)\b",
];

/// Why an attempt could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    WrongVersion,
    WrongKey,
    WrongModel,
    Refused,
    Quota,
    Network,
}

impl Cause {
    fn kind(self) -> OutageKind {
        match self {
            Self::WrongVersion | Self::WrongKey | Self::WrongModel | Self::Refused => OutageKind::Refused,
            Self::Quota => OutageKind::Quota,
            Self::Network => OutageKind::Network,
        }
    }

    /// What the user can do about it.
    fn remedy(self, runner: &Runner) -> Option<String> {
        match self {
            Self::WrongVersion => Some(match &runner.install {
                Some(install) => format!("{VERSION}: {install}"),
                None => VERSION.to_owned(),
            }),
            Self::WrongKey => {
                Some(&runner.key.obtain).filter(|how| !how.is_empty()).map(|how| format!("to get a key: {how}"))
            }
            Self::WrongModel => Some("set `model` to one that it offers".to_owned()),
            Self::Refused | Self::Quota | Self::Network => None,
        }
    }
}

const VERSION: &str = "correct the arguments of `command`, or install a version that takes them";

/// What all programs print when they cannot work until a person changes something …
static REFUSALS: LazyLock<Vec<(Cause, Vec<Regex>)>> = LazyLock::new(|| {
    vec![(Cause::WrongKey, all(WRONG_KEY)), (Cause::WrongModel, all(WRONG_MODEL)), (Cause::Refused, all(REFUSED))]
});

/// … and when something is out.
static OUTAGES: LazyLock<Vec<(Cause, Vec<Regex>)>> =
    LazyLock::new(|| vec![(Cause::Quota, all(QUOTA)), (Cause::Network, all(NETWORK))]);

static REMOTE_OUTAGES: LazyLock<Vec<(Cause, Vec<Regex>)>> =
    LazyLock::new(|| [&OUTAGES[..], &[(Cause::Network, all(REMOTE))]].concat());

static FIELDS: LazyLock<Vec<Regex>> = LazyLock::new(|| all(ends::FIELDS));
static SENTENCES: LazyLock<Vec<Regex>> = LazyLock::new(|| all(ends::SENTENCES));

/// What was out, if that is why an attempt ended without success. `tail` are the last lines that the program said, without
/// the words of the agent in it; `runner` describes what it prints besides what all programs do; `zone`: that of its times of
/// day. The line of the outage ends with what the user can do, where that is known.
pub fn outage(
    exit: &JobExit,
    tail: &[String],
    transcript: Option<&Transcript>,
    runner: Option<&Runner>,
    zone: &impl TimeZone,
) -> Option<Outage> {
    let reported = transcript.cloned().unwrap_or_default();
    let lines = match exit.cause {
        ExitCause::Exited if exit.passed() && reported.error.is_empty() => return None,
        ExitCause::Exited => closing_lines(tail, &reported),
        // It says so only with the trouble that it was dealing with to the last.
        ExitCause::TimedOut => reported.warning.lines().map(str::to_owned).collect(),
        ExitCause::NotStarted => return Some(Outage::new(OutageKind::Refused, headline(&exit.notes, 200))),
        ExitCause::Stopped | ExitCause::Lost => return None,
    };
    if let Some(line) = missing_program(exit, tail) {
        return Some(Outage::new(OutageKind::Refused, headline(line, 200)));
    }
    let kind = reported.outage.filter(|_| exit.cause == ExitCause::Exited);
    let said = || kind.map(|kind| Outage::new(kind, headline(&reported.error, 200)));
    let mut known = runner.map(|runner| patterns_of(runner, transcript)).unwrap_or_default();
    // Without rules for its output a program has no words of its own: a test that it ran may have said that.
    if transcript.is_some() {
        known.extend(REFUSALS.iter().cloned());
    }
    known.extend(OUTAGES.iter().cloned());
    let of_its_error = 0..reported.warning.lines().count() + reported.error.lines().count();
    let (found, own_lines) = match find_outage(&lines, &known) {
        Some((found, cause, at)) => {
            let remedy = runner.and_then(|runner| cause.remedy(runner)).map(|remedy| format!("; {remedy}"));
            let near = at.saturating_sub(NEAR)..at + NEAR + 1;
            let own_lines = if of_its_error.contains(&at) { of_its_error } else { near };
            (Outage { line: found.line + &remedy.unwrap_or_default(), ..found }, own_lines)
        }
        None => (said()?, of_its_error),
    };
    let own_ends = runner.map(|runner| all(&runner.outages.ends)).unwrap_or_default();
    let outage = with_end(found, &lines, own_lines, &own_ends, exit.finished_at, zone);
    let is_ahead = |until: &Timestamp| outage.kind == OutageKind::Quota && *until > exit.finished_at;
    let limited_until = reported.limited_until.filter(is_ahead);
    Some(Outage { until: limited_until.or(outage.until), ..outage })
}

/// How many lines before and after the one that reports an outage belong to it.
const NEAR: usize = 2;

/// Where a shell says that it did not find the agent's program, or may not run it; what the program could not run itself is
/// not meant.
fn missing_program<'t>(exit: &JobExit, tail: &'t [String]) -> Option<&'t str> {
    static SAID: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        let why = "not found|no such file or directory|permission denied";
        all(&[
            format!(r#"(?P<program>[^\s:'"‘’`]+)['"’`]?: (?:command )?(?:{why})"#),
            format!(r"(?:{why}): (?P<program>\S+)"),
        ])
    });
    if !matches!((exit.cause, exit.exit_code), (ExitCause::Exited, 126 | 127)) {
        return None;
    }
    let is_word =
        |program: &str| exit.command.split([' ', '\t', '\n', '\'', '"', ';', '(', '&']).any(|word| word == program);
    let is_shells =
        |line: &&String| SAID.iter().filter_map(|said| said.captures(line)).any(|said| is_word(&said["program"]));
    tail.iter().rev().find(is_shells).map(|line| line.trim())
}

/// The outage with the end that the last line of those which name one does: in a sentence only one of `own_lines`.
fn with_end(
    outage: Outage,
    lines: &[String],
    own_lines: Range<usize>,
    own: &[Regex],
    now: Timestamp,
    zone: &impl TimeZone,
) -> Outage {
    let end_in = |(at, line): (usize, &String)| {
        let sentences = if own_lines.contains(&at) { &SENTENCES[..] } else { &[] };
        [own, &FIELDS[..], sentences].into_iter().find_map(|patterns| ends::end(line, patterns, now, zone))
    };
    match lines.iter().enumerate().rev().find_map(end_in) {
        Some(End::After(wait)) => Outage { retry_after: Some(wait), ..outage },
        Some(End::At(moment)) => Outage { until: Some(moment), ..outage },
        None => outage,
    }
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
    let is_error = |line: &str| line.strip_prefix("error: ").is_some_and(|line| reported.error.contains(line));
    said.chain(tail[from..].iter().filter(|line| !is_error(line)).cloned()).collect()
}

/// What was out, if that is why a program failed that said `lines`: one that speaks to a remote or to a forge.
pub fn outage_in(lines: &[String]) -> Option<Outage> {
    find_outage(lines, &REMOTE_OUTAGES).map(|(outage, ..)| outage)
}

/// What `runner` describes, of what an attempt with this transcript can have met.
fn patterns_of(runner: &Runner, transcript: Option<&Transcript>) -> Vec<(Cause, Vec<Regex>)> {
    let own = &runner.outages;
    // A program that works knows its arguments: a program that it ran does not.
    let wrong_version: &[String] =
        if transcript.is_some_and(Transcript::shows_no_work) { &own.wrong_version } else { &[] };
    vec![
        (Cause::WrongVersion, all(wrong_version)),
        (Cause::WrongKey, all(&own.wrong_key)),
        (Cause::WrongModel, all(&own.wrong_model)),
        (Cause::Refused, all(&own.refused)),
        (Cause::Quota, all(&own.quota)),
        (Cause::Network, all(&own.network)),
    ]
}

/// Those of `lines` in which a program says that it does not take the arguments of `runner`.
pub fn of_wrong_version(runner: &Runner, mut lines: Vec<String>) -> Vec<String> {
    let patterns = all(&runner.outages.wrong_version);
    lines.retain(|line| patterns.iter().any(|pattern| pattern.is_match(line)));
    lines
}

/// What was out and why, if one of `lines` says so, and which: the last that does.
fn find_outage(lines: &[String], known: &[(Cause, Vec<Regex>)]) -> Option<(Outage, Cause, usize)> {
    let in_line = |line: &str| {
        known.iter().find_map(|(cause, patterns)| {
            let said = patterns.iter().find_map(|pattern| pattern.captures(line))?;
            Some((*cause, said.name("reason").map_or(line, |reason| reason.as_str()).trim().to_owned()))
        })
    };
    let (at, (cause, said)) = (0..lines.len()).rev().find_map(|at| Some((at, in_line(&lines[at])?)))?;
    Some((Outage::new(cause.kind(), headline(&said, 200)), cause, at))
}

/// None of the patterns is wrong: tests compile ours, and those of descriptions are checked when they are read.
fn all<S: AsRef<str>>(patterns: &[S]) -> Vec<Regex> {
    let pattern = |text: &S| regex::RegexBuilder::new(text.as_ref()).case_insensitive(true).build().ok();
    patterns.iter().filter_map(pattern).collect()
}

mod ends;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::Utc;
    use lanewright_model::Usage;

    use super::*;

    fn exit(cause: ExitCause, exit_code: i32, tail: &[&str]) -> JobExit {
        let at = lanewright_model::Timestamp::from_unix_millis(0);
        let tail = tail.iter().map(|&line| line.to_owned()).collect();
        JobExit { cause, exit_code, command: "x".into(), started_at: at, finished_at: at, tail, notes: String::new() }
    }

    fn runner(outages: &str) -> Runner {
        let text = format!("command = 'x'\ninstall = 'npm install x'\nkey.obtain = 'x login'\n[outages]\n{outages}");
        toml::from_str::<lanewright_model::runner::RunnerText>(&text).unwrap().complete().unwrap()
    }

    fn of(text: &str) -> Option<OutageKind> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let known = [&REFUSALS[..], &OUTAGES[..]].concat();
        find_outage(&lines, &known).map(|(outage, ..)| outage.kind)
    }

    #[test]
    fn outage_patterns_compile() {
        let known = [NETWORK, REMOTE, QUOTA, WRONG_KEY, WRONG_MODEL, REFUSED];
        assert_eq!(known.map(|texts| all(texts).len()), known.map(<[_]>::len));
        assert_eq!((FIELDS.len(), SENTENCES.len()), (ends::FIELDS.len(), ends::SENTENCES.len()));
    }

    #[test]
    fn known_outage_messages_are_recognized() {
        use OutageKind::{Network, Quota, Refused};
        for (text, expected) in [
            ("curl: (6) Could not resolve host: api.example.com", Network),
            ("fatal: unable to access 'https://example.com/': Failed to connect: Connection refused", Network),
            ("Error: getaddrinfo EAI_AGAIN api.example.com", Network),
            ("HTTP/1.1 429 Too Many Requests\nRetry-After: 20", Quota),
            ("API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}", Quota),
            ("Rate limit reached for requests. Please try again in 2m", Quota),
            ("You exceeded your current quota, please check your plan", Quota),
            ("Usage limit reached, try again in 5 hours", Quota),
            ("{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}", Quota),
            ("API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\"}}", Refused),
            ("Invalid API key · Please run /login", Refused),
            ("Your credit balance is too low to access the API", Refused),
            ("Error: unable to verify the first certificate", Refused),
        ] {
            assert_eq!(of(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn outages_of_forges_and_remotes_are_recognized() {
        for line in [
            "gh: Internal Server Error (HTTP 500)",
            "HTTP 502: Bad Gateway (https://api.github.com/graphql)",
            "error: RPC failed; HTTP 503 curl 22 The requested URL returned error: 503",
            "error connecting to api.github.com",
            "dial tcp: lookup gitlab.com on 127.0.0.53:53: no such host",
            "dial tcp 140.82.121.6:443: i/o timeout",
        ] {
            assert_eq!(outage_in(&[line.to_owned()]).map(|outage| outage.kind), Some(OutageKind::Network), "{line}");
        }
        for line in ["HTTP 404: Not Found", "HTTP 422: Validation Failed", "see pull/500"] {
            assert_eq!(outage_in(&[line.to_owned()]), None, "{line}");
        }
    }

    #[test]
    fn a_missing_program_is_no_failure_of_the_agent() {
        let kind = |exit: &JobExit| outage(exit, &exit.tail, None, None, &Utc).map(|outage| (outage.kind, outage.line));
        let of = |command: &str, exit_code: i32, line: &str| {
            let exit = JobExit { command: command.into(), ..exit(ExitCause::Exited, exit_code, &[line, ""]) };
            kind(&exit).map(|(kind, said)| (kind, said == line))
        };
        let missing = Some((OutageKind::Refused, true));
        assert_eq!(of("codex exec 'do it'", 127, "sh: 1: codex: not found"), missing);
        assert_eq!(of("codex exec", 127, "bash: line 1: codex: command not found"), missing);
        assert_eq!(of("codex exec", 127, "zsh:1: command not found: codex"), missing);
        assert_eq!(of("env A=1 ./agent.sh", 126, "env: './agent.sh': Permission denied"), missing);
        for (command, exit_code, line) in [
            ("npm test", 1, "sh: 1: npm: not found"),
            ("sh agent.sh", 127, "agent.sh: 1: npm: not found"),
            ("sh agent.sh", 127, "sh: 1: npm: not found"),
            ("codex exec", 127, "my own code"),
        ] {
            assert_eq!(of(command, exit_code, line), None, "{command}: {line}");
        }
        let not_started = JobExit { notes: "no /bin/x".into(), ..exit(ExitCause::NotStarted, -1, &[]) };
        assert_eq!(kind(&not_started), Some((OutageKind::Refused, "no /bin/x".to_owned())));
    }

    #[test]
    fn the_last_line_that_names_an_end_counts() {
        let failed = exit(ExitCause::Exited, 1, &["HTTP 429", "retry-after: 7", "retry-after: 9", "gave up"]);
        let outage = outage(&failed, &failed.tail, None, None, &Utc).unwrap();
        assert_eq!((outage.line.as_str(), outage.retry_after), ("HTTP 429", Some(Duration::from_secs(9))));
        let failed =
            exit(ExitCause::Exited, 1, &["retry-after: 7", "", "", "HTTP 429", "", "", "try again in 5 hours"]);
        let outage = super::outage(&failed, &failed.tail, None, None, &Utc).unwrap();
        assert_eq!(
            outage.retry_after,
            Some(Duration::from_secs(7)),
            "a sentence that is far away is of something else"
        );
        let own = runner("ends = ['pause of (?<wait>[0-9]+)']");
        let failed = exit(ExitCause::Exited, 1, &["HTTP 429", "pause of 20"]);
        let outage = super::outage(&failed, &failed.tail, None, Some(&own), &Utc).unwrap();
        assert_eq!(outage.retry_after, Some(Duration::from_secs(20)));
    }

    #[test]
    fn outage_before_reported_error_is_ignored() {
        let tail = ["connection refused", "trying again", "error: invalid key", "see the manual"];
        let reported = |error: &str| Transcript { error: error.to_owned(), ..Transcript::default() };
        let kind = |exit: &JobExit, reported: &Transcript| {
            outage(exit, &exit.tail, Some(reported), None, &Utc).map(|outage| outage.kind)
        };
        let failed = exit(ExitCause::Exited, 1, &tail);
        assert_eq!(kind(&failed, &reported("invalid key")), None);
        assert_eq!(kind(&failed, &reported("connection refused")), Some(OutageKind::Network));
        assert_eq!(kind(&failed, &Transcript::default()), Some(OutageKind::Network));
        assert_eq!(kind(&exit(ExitCause::Exited, 0, &tail), &Transcript::default()), None);
        assert_eq!(kind(&exit(ExitCause::Exited, 0, &tail), &reported("HTTP status 429")), Some(OutageKind::Quota));
        let quota = Transcript { outage: Some(OutageKind::Quota), ..reported("come back") };
        assert_eq!(kind(&failed, &quota), Some(OutageKind::Quota));
        let limited_until = Some(Timestamp::from_unix_millis(5000));
        let limited = Transcript { limited_until, ..reported("HTTP 429, try again in 5 hours") };
        assert_eq!(outage(&failed, &failed.tail, Some(&limited), None, &Utc).unwrap().until, limited_until);
        let network = Transcript { limited_until, ..reported("connection refused") };
        assert_eq!(outage(&failed, &failed.tail, Some(&network), None, &Utc).unwrap().until, None);
    }

    #[test]
    fn timed_out_agent_reports_last_warning_as_outage() {
        let waiting = Transcript { warning: "waiting: connection refused".into(), ..Transcript::default() };
        let late = exit(ExitCause::TimedOut, 124, &["connection refused"]);
        assert_eq!(
            outage(&late, &late.tail, Some(&waiting), None, &Utc).map(|outage| outage.kind),
            Some(OutageKind::Network)
        );
        assert_eq!(outage(&late, &late.tail, None, None, &Utc), None);
        let stopped = exit(ExitCause::Stopped, 143, &["connection refused"]);
        assert_eq!(outage(&stopped, &stopped.tail, Some(&waiting), None, &Utc), None);
    }

    #[test]
    fn runner_outage_patterns_take_precedence() {
        let own = runner("quota = ['come back tomorrow']\nnetwork = ['429']");
        let kind = |line: &str| {
            let failed = exit(ExitCause::Exited, 1, &[line]);
            outage(&failed, &failed.tail, None, Some(&own), &Utc).map(|outage| outage.kind)
        };
        assert_eq!(kind("Come back tomorrow."), Some(OutageKind::Quota));
        assert_eq!(kind("HTTP 429"), Some(OutageKind::Network));
        assert_eq!(kind("connection refused"), Some(OutageKind::Network));
    }

    #[test]
    fn of_first_lines_only_those_about_arguments_count() {
        let own = runner("wrong_version = ['^error: unknown option']\nquota = ['429']");
        let first = ["a test answers status code 401", "HTTP 429", "error: unknown option '--x'"].map(str::to_owned);
        assert_eq!(of_wrong_version(&own, first.to_vec()), ["error: unknown option '--x'"]);
    }

    #[test]
    fn a_refusal_is_shown_once_with_what_the_user_can_do() {
        let own = runner("wrong_model = ['(?<reason>no model \\w+)']\nwrong_version = ['^error: unknown option']");
        let line = |tail: &[&str], reported: &Transcript| {
            let failed = exit(ExitCause::Exited, 1, tail);
            outage(&failed, &failed.tail, Some(reported), Some(&own), &Utc).map(|outage| outage.line)
        };
        let reported = |error: &str| Transcript { error: error.to_owned(), ..Transcript::default() };
        let key = line(&["error: Invalid API key"], &reported("Invalid API key"));
        assert_eq!(key.as_deref(), Some("Invalid API key; to get a key: x login"));
        let model = line(&["error: no model opuss. Run --model"], &reported("no model opuss. Run --model"));
        assert_eq!(model.as_deref(), Some("no model opuss; set `model` to one that it offers"));
        let version = ["error: unknown option '--x'", "(Did you mean --y?)"];
        assert_eq!(
            line(&version, &Transcript::default()).as_deref(),
            Some(
                "error: unknown option '--x'; correct the arguments of `command`, or install a version that takes them: npm install x"
            )
        );
        for busy in [
            Transcript { session: Some("s1".into()), ..Transcript::default() },
            Transcript { message: "done".into(), ..Transcript::default() },
            Transcript { usage: Usage { output_tokens: 1, ..Usage::default() }, ..Transcript::default() },
        ] {
            assert_eq!(line(&version, &busy), None, "a program that it ran does not know the option");
        }
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
