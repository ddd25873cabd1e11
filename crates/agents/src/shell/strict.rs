//! How a gate's line is run: so that a failure anywhere in a pipeline is one.

use std::ops::Range;

use lanewright_model::CommandLine;

use super::exit_status::{display_filters, passes_on};
use super::parse::parse;
use super::syntax::{Command, Kind, Pipeline, Script, edited, has_letter};

const SEARCHES: [&str; 6] = ["grep", "rg", "egrep", "fgrep", "ag", "ack"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// Any: every command of it decides for itself.
    Posix,
    /// bash: without it, only the last program of a pipeline is judged.
    ForPipelines,
    /// bash: no other shell takes it.
    Bash,
}

/// Which shell the line of a gate needs.
pub fn shell_of(text: &str) -> Shell {
    match parse(text) {
        Some(script) if script.needs_bash || ["pipefail", "PIPESTATUS"].iter().any(|name| text.contains(name)) => {
            Shell::Bash
        }
        Some(script) if !script.stages().is_empty() => Shell::ForPipelines,
        None if text.contains("[[") => Shell::Bash,
        _ => Shell::Posix,
    }
}

/// The program and its arguments that run the command of a gate, where there is a bash.
pub fn gate_arguments(command: &CommandLine) -> Vec<String> {
    match command {
        CommandLine::Shell(line) if shell_of(line) != Shell::Posix => {
            vec!["bash".to_owned(), "-c".to_owned(), strict(line)]
        }
        command => command.to_arguments(),
    }
}

/// `text` for bash: a pipeline fails where any of its programs does. One that died of SIGPIPE (141) did
/// not fail; one that is missing (127) fails the whole script, also behind `!`.
///
/// A display filter at its end is left out. A search that found nothing for what judges its output did not fail, and one
/// that stops at the first match reads on, because many programs fail when their output is not read. Only the last
/// program counts behind `!` and in a condition, where a failure would pass for success, and before a search for failures
/// that something else judges.
pub fn strict(text: &str) -> String {
    let Some(script) = parse(text).filter(|_| !text.contains("PIPESTATUS")) else { return text.to_owned() };
    let mut edits = Vec::new();
    for stage in script.stages() {
        let (open, close) = if stage.alone { (" (", ')') } else { ("{", '}') };
        let reads_on = if stage.reads_on { " on" } else { "" };
        let begin = stage.place.start;
        edits.push((begin..begin, format!("{open} trap '_stage {}{reads_on}' EXIT; ", stage.harmless)));
        edits.push((stage.place.end..stage.end, format!("; {close}")));
    }
    if edits.is_empty() { text.to_owned() } else { PRELUDE.to_owned() + &edited(text, edits) }
}

/// On the script's first line, so that the line numbers of its errors hold. Each program of a pipeline runs in a shell of
/// its own, at whose end `_stage` decides; `program || _stage` would switch `set -e` off in it.
const PRELUDE: &str = "set -o pipefail; trap 'exit 127' USR1; \
    _stage() { local code=$?; [ -z \"$2\" ] || cat >/dev/null; case $code in 141) exit 0;; 127) kill -s USR1 $$;; esac; \
    [ $code -gt $1 ] || exit 0; exit $code; }; ";

/// A command of a pipeline with others.
struct Stage {
    place: Range<usize>,
    /// Up to here the text is left out: the display filters behind it.
    end: usize,
    /// Nothing is left of its pipeline but this.
    alone: bool,
    /// The exit codes up to this one are no failure.
    harmless: u8,
    /// It may end before it has read everything.
    reads_on: bool,
}

/// What becomes of a pipeline's exit code.
#[derive(Debug, Clone, Copy, Default)]
struct Context {
    /// It is asked by `if`, `while` or `until`.
    is_condition: bool,
    is_followed: bool,
    /// Its output is a value: `$( … )`.
    is_value: bool,
}

impl Script {
    fn stages(&self) -> Vec<Stage> {
        let mut found = Vec::new();
        self.collect_stages(Context::default(), &mut found);
        found
    }

    fn collect_stages(&self, context: Context, found: &mut Vec<Stage>) {
        for list in &self.lists {
            for (at, (_, pipeline)) in list.pipelines.iter().enumerate() {
                let is_followed = at + 1 < list.pipelines.len();
                pipeline.collect_stages(Context { is_followed, ..context }, found);
            }
        }
    }
}

impl Pipeline {
    fn collect_stages(&self, context: Context, found: &mut Vec<Stage>) {
        let shown = if context.is_value { 0 } else { display_filters(self) };
        let kept = &self.commands[..self.commands.len() - shown];
        let last = kept.len() - 1;
        let is_used = |at: usize| {
            let written = kept[last].writes || context.is_value;
            written || kept[at + 1..].iter().any(|later| !passes_on(later))
        };
        let is_judged = |at: usize| context.is_followed || is_used(at);
        let seeker = kept.iter().rposition(seeks_failures).filter(|&seeker| is_judged(seeker));
        let turns = (self.negated || context.is_condition) && !passes_on(&kept[last]);
        for (at, command) in kept.iter().enumerate() {
            let harmless = match () {
                () if at == last => 0,
                () if turns || seeker.is_some_and(|seeker| at < seeker) => u8::MAX,
                () if is_used(at) => finds_nothing(command),
                () => 0,
            };
            let end = if at == last && shown > 0 { self.range.end } else { command.range.end };
            found.extend((self.commands.len() > 1).then(|| Stage {
                place: command.range.clone(),
                end,
                alone: last == 0,
                harmless,
                reads_on: at > 0 && stops_early(command),
            }));
            command.collect_inner(found);
        }
    }
}

impl Command {
    fn collect_inner(&self, found: &mut Vec<Stage>) {
        let asked = match &self.kind {
            Kind::Control { conditions, .. } => conditions.as_slice(),
            _ => &[],
        };
        for script in self.scripts() {
            let is_condition = asked.iter().any(|condition| std::ptr::eq(condition, script));
            script.collect_stages(Context { is_condition, ..Context::default() }, found);
        }
        let value = Context { is_value: true, ..Context::default() };
        self.substituted.iter().for_each(|script| script.collect_stages(value, found));
    }
}

/// The highest exit code with which a command only says that it found nothing.
fn finds_nothing(command: &Command) -> u8 {
    let last = match &command.kind {
        Kind::Group { script, .. } => Some(script),
        Kind::Control { bodies, is_loop: true, .. } => bodies.first(),
        _ => None,
    };
    if let Some(script) = last {
        let lists = script.lists.last().is_some_and(|list| list.pipelines.len() > 1);
        let command = script.last_pipeline().and_then(|pipeline| pipeline.commands.last());
        return command.map_or(0, finds_nothing).max(u8::from(lists));
    }
    let words: Vec<&str> = command.texts().into_iter().map(|word| word.rsplit('/').next().unwrap_or("")).collect();
    let searches = words.iter().any(|word| is_search(word));
    match words.first() {
        Some(&"xargs") if searches => 123,
        Some(&("command" | "git")) => u8::from(searches),
        Some(&("zgrep" | "diff" | "cmp")) => 1,
        Some(program) => u8::from(is_search(program)),
        None => 0,
    }
}

fn stops_early(command: &Command) -> bool {
    let quiet = |word: &str| matches!(word, "--quiet" | "--silent") || has_letter(word, &['q', 'm']);
    command.program().is_some_and(is_search)
        && command.arguments().skip(1).any(|word| !word.quoted && quiet(&word.text))
}

/// Whether a program searches for lines, and exits with 1 if it finds none.
pub fn is_search(program: &str) -> bool {
    SEARCHES.contains(&program)
}

/// Whether a command searches only for lines that report failures: `grep -E "error TS|FAILED"`.
pub fn seeks_failures(command: &Command) -> bool {
    let texts = command.texts();
    let words = texts.get(1..).unwrap_or_default();
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let pattern = words.iter().find(|word| !word.starts_with('-') && !is_number(word));
    command.program().is_some_and(is_search)
        && !words.iter().any(|word| has_letter(word, &['v']))
        && pattern.is_some_and(|pattern| pattern.split('|').all(names_failure))
}

/// Whether a pattern finds failures by a word for them, and not that there are none (`0 failed`).
fn names_failure(pattern: &str) -> bool {
    let mut depth = 0_usize;
    let plain = pattern.chars().filter(|&c| {
        depth = if c == '[' { depth + 1 } else { depth };
        let outside = depth == 0;
        depth = if c == ']' { depth.saturating_sub(1) } else { depth };
        outside
    });
    let plain: String = plain.collect();
    let words = || plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let none = words().any(|word| matches!(word.to_ascii_lowercase().as_str(), "0" | "no" | "zero" | "without"));
    let failure = |word: &str| {
        let lower = word.to_ascii_lowercase();
        let named = ["error", "errors", "err", "fail", "fails", "failed", "failure", "failures", "cannot", "panicked"];
        named.contains(&lower.as_str())
            || word == "Traceback"
            || matches!(word, "ImportError" | "SyntaxError" | "TypeError")
    };
    !none && words().any(failure)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// The exit code of `script` where bash runs it as a gate.
    fn code(script: &str) -> i32 {
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(strict(script)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        bash.status().unwrap().code().unwrap()
    }

    #[test]
    fn strict_pipeline_fails_with_any_of_its_programs() {
        let cases = [
            ("false | tail -1", 1),
            ("(exit 7) | cat | cat", 7),
            ("no-such-program -x 2>&1 | tail -1", 127),
            ("! no-such-program | grep x", 127),
            ("no-such-program | grep x || true", 127),
            ("seq 99999 | head -1", 0),
            ("python3 -c 'for i in range(99999): print(i)' | head -1", 0),
            ("grep -c none /dev/null | head -5", 1),
            ("grep none /dev/null | sort", 1),
            ("false 2>&1 | grep -E 'error|FAILED' | head -20", 1),
            ("set -e\necho nowhere | while read -r f; do test -e $f; echo $f; done", 1),
            ("set -e\n{ false; echo built; } | tee /dev/null", 1),
            ("set -e\n(seq 99999; echo b) | grep -q 1", 0),
            ("check() { no-such-program | tee /dev/null; }; check", 127),
            ("check() { false | tee /dev/null; }\ncheck", 1),
            ("true | tail -3; test ${PIPESTATUS[0]} -eq 0", 0),
            ("false | tail -3; test ${PIPESTATUS[0]} -eq 0", 1),
            ("for ((i = 0; i < 2; i++)); do true; done", 0),
            ("seq 99999 | grep -q 1 && test -e /nowhere", 1),
            ("seq 99999 | grep -q 1 && true", 0),
            ("! seq 99999 | grep -q 1", 1),
            ("! echo a | grep -q n", 0),
            ("echo a | grep -q n", 1),
            ("x=$(yes | head -1) && test $x = y", 0),
            ("for i in 1 2; do echo $i; done | grep -q 2", 0),
            ("if seq 9 | head -1; then exit 4; fi", 4),
            ("cat <<END | grep -q b\na | x\nEND", 1),
            ("cat <<END | grep -q x # no\na | x\nEND\ntrue", 0),
            ("set -e\nfalse | cat\ntrue", 1),
            ("no-such-program || true", 0),
            ("{ seq 99999; } | { grep -q 1; }", 0),
            ("yes | { head -1; } | grep -q y", 0),
            ("(seq 9 | head -1) | cat", 0),
            ("test \"$(seq 3 | wc -l)\" -eq 3", 0),
            ("[[ $(yes | head -1) == y ]]", 0),
            ("grep -c none /dev/null | xargs test 0 -eq", 0),
            ("cat /nowhere | grep -c none | xargs test 0 -eq", 1),
            ("grep x /nowhere | wc -l | xargs test 0 -eq", 2),
            ("(echo 'error TS'; false) | grep 'error TS' | wc -l | xargs test 0 -eq", 123),
            ("true | grep 'error TS' | wc -l | xargs test 0 -eq", 0),
            ("(echo '1 failed'; false) | grep -qE '[1-9] (failed|error)' && echo red", 0),
            ("(echo '1 failed'; false) | grep -q failed", 1),
            ("(echo '1 failed, 2 passed'; false) | grep -qE 'failed|passed' && echo ended", 1),
            ("(echo '0 failed'; false) | grep -q '0 failed' && echo green", 1),
            ("! (echo error; false) | grep -q error", 1),
            ("if (echo error; false) | grep -q error; then exit 3; fi", 3),
            ("(echo error; false) | grep -q error && exit 3 || true", 3),
            ("if true; then false | cat; fi", 1),
            ("! no-such-program x | head -5", 127),
            ("no-such-program 2>&1 | tail -3; true", 127),
            ("if false 2>&1 | tail -5; then echo pass; else exit 3; fi", 3),
            ("if ! false | tee /dev/null; then exit 3; fi", 3),
            ("(echo dist/ErrorPage.js; false) | grep -q ErrorPage && echo built", 1),
            ("x=$(grep none /dev/null | wc -l) && test $x -eq 0", 0),
            ("set -e\ncount=$(grep -rn none /dev/null | wc -l)\ntest $count -eq 0", 0),
            ("x=$(false | wc -l) && test $x -eq 0", 1),
            ("echo /dev/null | xargs grep -l none | wc -l | xargs test 0 -eq", 0),
            ("{ grep none /dev/null; } | wc -l | xargs test 0 -eq", 0),
            ("for f in a b; do [ $f = a ] && echo $f; done | grep -q a", 0),
            ("diff /dev/null /proc/version | grep -q '^>'", 0),
            ("python3 -c 'for i in range(99999): print(i)' | grep -q 5", 0),
            ("(cat; exit 4) </dev/null | head -1", 4),
        ];
        for (script, expected) in cases {
            assert_eq!(code(script), expected, "{script}: {}", strict(script));
        }
    }

    #[test]
    fn lines_without_pipeline_are_unchanged() {
        for script in ["make", "a || b", "grep 'a | b' c", "# a | b\nls", "not ( shell"] {
            assert_eq!(strict(script), script);
        }
        let shells = [
            ("make", Shell::Posix),
            ("a | b", Shell::ForPipelines),
            ("[[ -f a ]]", Shell::Bash),
            ("diff <(a) <(b)", Shell::Bash),
            ("a &> b", Shell::Bash),
            ("grep '[[:space:]]' a", Shell::Posix),
            ("x && [[ -f a ]]", Shell::Bash),
            ("for ((;;)); do break; done", Shell::Bash),
            ("test ${PIPESTATUS[0]} -eq 0", Shell::Bash),
            ("f() { a | b; }; f", Shell::ForPipelines),
            ("[[ $v =~ ^([0-9]+)$ ]]", Shell::Bash),
            ("set -o pipefail; make", Shell::Bash),
            ("echo $(a | b)", Shell::ForPipelines),
        ];
        for (script, shell) in shells {
            assert_eq!(shell_of(script), shell, "{script}");
        }
    }
}
