//! Whether a gate failed in two worktrees in the same way (decision 71).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use lanewright_model::{Diagnosis, ExitCause, JobExit};
use regex::Regex;

/// How a gate failed in the worktree at `root`.
#[derive(Debug, Clone, Copy)]
pub struct FailedRun<'a> {
    pub exit: &'a JobExit,
    pub diagnosis: &'a Diagnosis,
    /// Absolute.
    pub root: &'a Path,
}

/// What differs in the output of two runs of the same program: how long it took and when, addresses, and numbers of
/// processes and threads. Other numbers may be what a test found.
static VARIABLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = [
        r"\b\d+(\.\d+)?\s?(ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?)\b",
        r"\b\d{4}-\d{2}-\d{2}(T?)",
        r"\b\d{1,2}:\d{2}(:\d{2})?(\.\d+)?Z?\b",
        r"\b0x[0-9a-fA-F]+\b",
        r"\(\d+\)",
        r"\bpid:? \d+\b",
        r"/tmp/[^\s'\x22`:,)]+",
    ];
    Regex::new(&words.join("|")).ok()
});

impl FailedRun<'_> {
    /// Whether there is any output to compare.
    pub fn says_anything(&self) -> bool {
        self.exit.tail.iter().any(|line| !line.trim().is_empty())
    }

    /// Whether both ended with the same command and exit code, and with the same complaints. Without complaints the last
    /// lines are compared; without any output nothing is known.
    pub fn is_like(&self, other: &Self) -> bool {
        let ended = |run: &Self| (run.exit.cause, run.exit.exit_code);
        let (one, two) = (self.diagnosis, other.diagnosis);
        let same_end = ended(self) == ended(other) && self.exit.command == other.exit.command;
        let same_class = (one.class, &one.tool, one.count) == (two.class, &two.tool, two.count);
        let same_words = match (self.complaints(), other.complaints()) {
            (one, two) if one.is_empty() && two.is_empty() => {
                let lines = self.lines();
                !lines.is_empty() && lines == other.lines()
            }
            (one, two) => one == two,
        };
        self.exit.cause == ExitCause::Exited && same_end && same_class && same_words
    }

    /// Whether the output names one of `paths`, relative to the worktree.
    pub fn names_any(&self, paths: &[String]) -> bool {
        let is_named = |path: &String| {
            let is_it = |word: &str| {
                let word = word.trim_end_matches('.').trim_start_matches("./");
                let has_end = |rest: &str| rest.is_empty() || rest.ends_with('/');
                // `src/a.rs` and `/slot/src/a.rs` name it, and so does `a.rs`: some tools print no directory.
                !word.is_empty()
                    && (word.strip_suffix(path.as_str()).is_some_and(has_end)
                        || path.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
            };
            let in_findings = || self.diagnosis.findings.iter().any(|finding| finding.may_name(path));
            in_findings() || self.exit.tail.iter().flat_map(|line| line.split(between_names)).any(is_it)
        };
        paths.iter().any(is_named)
    }

    /// Without lines and columns, which move with other changes.
    fn complaints(&self) -> BTreeSet<(Option<String>, String)> {
        let findings = &self.diagnosis.findings;
        let file = |file: &Option<String>| file.as_ref().map(|file| self.stable(file));
        findings.iter().map(|finding| (file(&finding.file), self.stable(&finding.message))).collect()
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.exit.tail.iter().map(|line| self.stable(line));
        lines.filter(|line| !line.is_empty()).collect()
    }

    /// The line without what differs from run to run.
    fn stable(&self, line: &str) -> String {
        let line = match self.root.to_str() {
            Some(root) if !root.is_empty() => without_relative_root(&line.replace(root, "."), root),
            _ => line.to_owned(),
        };
        let line = VARIABLE.as_ref().map_or(line.clone(), |variable| variable.replace_all(&line, "#").into_owned());
        line.trim().to_owned()
    }
}

/// The line with `.` in place of relative paths to `root`, which is a slot of a pool: `.worktrees/slots/01`, `../slots/01`.
fn without_relative_root(line: &str, root: &str) -> String {
    let Some((at, _)) = root.rmatch_indices('/').nth(1) else { return line.to_owned() };
    let end = &root[at + 1..];
    let names_root = |word: &str| {
        let (above, below) = word.split_once(end)?;
        let is_whole = (above.is_empty() || above.ends_with('/')) && (below.is_empty() || below.starts_with('/'));
        is_whole.then(|| format!(".{below}"))
    };
    line.split_inclusive(between_names)
        .flat_map(|part| {
            let word = part.trim_end_matches(between_names);
            [names_root(word).unwrap_or_else(|| word.to_owned()), part[word.len()..].to_owned()]
        })
        .collect()
}

/// Whether the character separates names of files in the output of tools.
fn between_names(character: char) -> bool {
    character.is_whitespace() || "'\"`()[]{}<>,;:=|".contains(character)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use lanewright_model::Timestamp;

    use super::*;
    use crate::diagnose::diagnose;

    struct Run(JobExit, Diagnosis, PathBuf);

    impl Run {
        fn new(root: &str, exit_code: i32, output: &str) -> Self {
            let at = Timestamp::from_unix_millis(0);
            let exit = JobExit {
                cause: ExitCause::Exited,
                exit_code,
                command: "make check".into(),
                started_at: at,
                finished_at: at,
                tail: output.lines().map(str::to_owned).collect(),
                notes: String::new(),
            };
            Self(exit, diagnose(output, &[Path::new(root)]), root.into())
        }

        fn run(&self) -> FailedRun<'_> {
            FailedRun { exit: &self.0, diagnosis: &self.1, root: &self.2 }
        }
    }

    fn alike(one: &str, two: &str) -> bool {
        let [one, two] = [Run::new("/slots/01", 1, one), Run::new("/slots/02", 1, two)];
        one.run().is_like(&two.run())
    }

    #[test]
    fn times_and_places_do_not_make_a_difference() {
        assert!(alike("no database at /slots/01/db after 3.1 s", "no database at /slots/02/db after 12 s"));
        assert!(alike("12:01:02 at 0x7f12 (123): stuck", "23:59:59 at 0x9aab (77): stuck"));
        assert!(alike(
            "tests/a.py:3: AssertionError\nFAILED tests/a.py::test_a - assert 1 == 2\n1 failed in 0.02s",
            "tests/a.py:3: AssertionError\nFAILED tests/a.py::test_a - assert 1 == 2\n1 failed, 3 passed in 0.09s"
        ));
        assert!(alike("in `../w/slots/01/x`, no Cargo.toml", "in `../w/slots/02/x`, no Cargo.toml"));
        assert!(alike("slots/01/a.py:3: error: no b", "slots/02/a.py:3: error: no b"));
        assert!(!alike("slots/010/a is missing", "slots/020/a is missing"));
    }

    #[test]
    fn another_result_is_another_failure() {
        assert!(!alike("expected 3, got 4", "expected 3, got 5"));
        assert!(!alike("FAILED tests/a.py::test_a - assert 1 == 2", "FAILED tests/a.py::test_a - assert 1 == 3"));
        assert!(!alike("", ""), "nothing is known");
        assert!(!alike("missing", ""));
        let [one, two] = [Run::new("/slots/01", 1, "stuck"), Run::new("/slots/02", 2, "stuck")];
        assert!(!one.run().is_like(&two.run()));
    }

    #[test]
    fn output_may_name_changed_files() {
        let named = |output: &str, path: &str| Run::new("/slots/01", 1, output).run().names_any(&[path.to_owned()]);
        assert!(named("src/a.rs:3:5: error", "src/a.rs"));
        assert!(named("in /slots/01/src/a.rs.", "src/a.rs"));
        assert!(named("LedgerTest.java: failed", "src/test/LedgerTest.java"));
        assert!(!named("a failed", "src/a.rs"));
        assert!(!named("src/b.rs: failed", "src/a.rs"));
        assert!(!named("src/a.rs.bak", "src/a.rs"));
    }
}
