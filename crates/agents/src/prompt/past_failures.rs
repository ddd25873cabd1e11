//! Why earlier attempts failed, as texts for prompts: every failure once, and no output twice.

use lanewright_model::failure::{CONTEXT_LOG_ENTRIES, DECIDE_YOURSELF};
use lanewright_model::{Failure, FailureKind};

/// What a template can show of earlier attempts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PastFailures {
    /// One text for each failure: what failed, and below it the end of its output as indented code.
    pub failures: Vec<String>,
    /// The last lines of the attempt before, unless they are part of the last failure.
    pub last_words: Vec<String>,
    /// What the gate that failed last complained about, each with its place.
    pub complaints: Vec<String>,
}

/// Failures that differ only in the number of their attempt.
struct FailureGroup<'a> {
    attempts: Vec<u32>,
    failure: &'a Failure,
    log: &'a [String],
}

impl PastFailures {
    /// `lessons`: each failure with the number of its attempt, oldest first. `last_words`: the last lines of the attempt
    /// before, which take the place of the last failure's own log where that is their end.
    pub fn new(lessons: &[(u32, &Failure)], last_words: Vec<String>) -> Self {
        let mut groups: Vec<FailureGroup<'_>> = Vec::new();
        for &(attempt, failure) in lessons {
            // The newest stays last.
            let known = groups.iter().position(|group| is_same(group.failure, failure));
            let mut attempts = known.map(|at| groups.remove(at).attempts).unwrap_or_default();
            attempts.push(attempt);
            groups.push(FailureGroup { attempts, failure, log: end_of(&failure.log) });
        }
        let repeats = |group: &&mut FailureGroup<'_>| !group.log.is_empty() && last_words.ends_with(group.log);
        let repeated = groups.last_mut().filter(repeats).map(|group| group.log = &last_words).is_some();
        let failures = groups.iter().map(FailureGroup::text).collect();
        let complaints = lessons.last().map(|(_, failure)| complaints(failure)).unwrap_or_default();
        Self { failures, last_words: if repeated { Vec::new() } else { last_words }, complaints }
    }
}

fn is_same(one: &Failure, other: &Failure) -> bool {
    (&one.message, &one.paths, end_of(&one.log)) == (&other.message, &other.paths, end_of(&other.log))
}

fn end_of(log: &[String]) -> &[String] {
    &log[log.len().saturating_sub(CONTEXT_LOG_ENTRIES)..]
}

fn complaints(failure: &Failure) -> Vec<String> {
    failure.diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings).map(ToString::to_string).collect()
}

impl FailureGroup<'_> {
    fn text(&self) -> String {
        let mut text = format!("{}: {}", self.attempts(), indented(self.failure.message.lines(), "  "));
        if !self.failure.paths.is_empty() {
            text.push_str(&format!(" [{}]", self.failure.paths.join(", ")));
        }
        if self.failure.kind == FailureKind::Idle {
            text.push_str(&format!("\n\n  {DECIDE_YOURSELF}"));
        }
        if !self.log.is_empty() {
            // Code within an item of a list.
            text.push_str(&format!("\n\n      {}", indented(self.log.iter().map(String::as_str), "      ")));
        }
        text
    }

    /// `Attempt 1`, `Attempts 1, 2 and 4`.
    fn attempts(&self) -> String {
        let numbers: Vec<String> = self.attempts.iter().map(u32::to_string).collect();
        match numbers.split_last() {
            Some((last, before)) if !before.is_empty() => format!("Attempts {} and {last}", before.join(", ")),
            _ => format!("Attempt {}", numbers.concat()),
        }
    }
}

/// The lines, all but the first and empty ones behind `indent`.
fn indented<'a>(lines: impl Iterator<Item = &'a str>, indent: &str) -> String {
    let line = |(at, line): (usize, &str)| match at {
        0 => line.to_owned(),
        _ if line.is_empty() => "\n".to_owned(),
        _ => format!("\n{indent}{line}"),
    };
    lines.enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str, log: &[&str]) -> Failure {
        let log = log.iter().map(|line| (*line).to_owned()).collect();
        Failure { log, ..Failure::new(FailureKind::Crash, message) }
    }

    #[test]
    fn failure_log_lines_are_kept_verbatim() {
        let failed = failure("exited with code 2", &["0", "fn a() {", "", "    - b", "}", "^"]);
        let past = PastFailures::new(&[(1, &failed)], vec!["said".to_owned()]);
        let expected = "Attempt 1: exited with code 2\n\n      fn a() {\n\n          - b\n      }\n      ^";
        assert_eq!(past.failures, [expected]);
        assert_eq!(past.last_words, ["said"]);
    }

    #[test]
    fn repeated_failure_and_output_are_shown_once() {
        let (one, other) = (failure("no", &["x", "y"]), failure("gate", &["z"]));
        let words = ["w", "x", "y"].map(str::to_owned).to_vec();
        let past = PastFailures::new(&[(1, &one), (2, &other), (3, &one), (4, &one)], words);
        assert_eq!(
            past.failures,
            ["Attempt 2: gate\n\n      z", "Attempts 1, 3 and 4: no\n\n      w\n      x\n      y"]
        );
        assert_eq!(past.last_words, [""; 0]);
    }
}
