//! Whether a script can fail, and what at its end only shows output.

use std::ops::Range;

use super::parse::parse;
use super::syntax::{Command, Kind, Link, List, Pipeline, Script, edited, has_letter};

/// Programs that only show what they read.
const DISPLAYS: [&str; 5] = ["tail", "head", "cat", "less", "more"];

/// Programs that pass on what they read, and fail for no content.
const FILTERS: [&str; 15] =
    ["tail", "head", "cat", "less", "more", "wc", "sort", "uniq", "cut", "tr", "column", "nl", "tee", "rev", "fold"];

/// Programs that always succeed.
const ALWAYS: [&str; 15] = [
    "true", ":", "echo", "printf", "export", "local", "declare", "readonly", "unset", "set", "sleep", "pwd", "date",
    "clear", "shopt",
];

/// The part of `text` because of which it cannot fail, as it is written: `|| true`, `; echo done`. `None`: it can, or it
/// is no script. All programs of a pipeline are judged.
pub fn cannot_fail(text: &str) -> Option<String> {
    let script = parse(text)?;
    let status = of_script(&script, false);
    let last = script.lists.last().filter(|_| !status.fails && !status.exits)?;
    let (link, pipeline) = last.pipelines.iter().rev().find(|(link, _)| *link != Link::And)?;
    let rest = text.get(pipeline.range.start..last.range().end)?;
    let mark = match link {
        Link::Or => "|| ",
        _ if script.lists.len() > 1 => "; ",
        _ => "",
    };
    Some(format!("{mark}{rest}"))
}

#[derive(Debug, Clone, Copy, Default)]
struct Status {
    /// Its last status may be a failure.
    fails: bool,
    /// It may end early with a failure.
    exits: bool,
}

/// What `script` depends on; with `strict` it ends at the first failure that `set -e` sees.
fn of_script(script: &Script, mut strict: bool) -> Status {
    let mut status = Status::default();
    for (at, list) in script.lists.iter().enumerate() {
        let own = of_list(list, strict);
        let is_seen = list.pipelines.iter().all(|(link, pipeline)| *link != Link::And && !pipeline.negated);
        status.exits |= own.exits || (strict && own.fails && is_seen);
        // A listing of files may be a check, a look at one behind other commands is none.
        let looks = at > 0 && shows(list.last()) && list.last().commands[0].program() != Some("ls");
        status.fails = own.fails && !looks;
        strict |= sets_errexit(list);
    }
    status
}

fn sets_errexit(list: &List) -> bool {
    let words = &list.first().commands[0].words;
    let is_set = words.first().is_some_and(|word| word.text == "set");
    is_set && words.iter().any(|word| word.text.starts_with('-') && word.text.contains('e'))
}

fn of_list(list: &List, strict: bool) -> Status {
    let mut status = Status::default();
    for (link, pipeline) in &list.pipelines {
        let own = of_pipeline(pipeline, strict);
        status.exits |= own.exits;
        status.fails = match link {
            Link::First => own.fails,
            Link::And => status.fails || own.fails,
            Link::Or => status.fails && own.fails && !shows(pipeline),
        };
    }
    status.fails &= !list.background;
    status
}

/// Whether a pipeline is a single command that shows files.
fn shows(pipeline: &Pipeline) -> bool {
    let program = pipeline.commands[0].program().unwrap_or_default();
    pipeline.commands.len() == 1 && (DISPLAYS.contains(&program) || matches!(program, "ls" | "find"))
}

fn of_pipeline(pipeline: &Pipeline, strict: bool) -> Status {
    let all: Vec<Status> = pipeline.commands.iter().map(|command| of_command(command, strict)).collect();
    let lone = all.len() == 1;
    Status {
        fails: pipeline.negated || all.iter().any(|own| own.fails || (!lone && own.exits)),
        exits: lone && all[0].exits,
    }
}

fn of_command(command: &Command, strict: bool) -> Status {
    let of_script = |script: &Script| of_script(script, strict);
    match &command.kind {
        Kind::Function { .. } => Status::default(),
        Kind::Arithmetic => Status { fails: true, exits: false },
        Kind::Group { subshell, script } => {
            let own = of_script(script);
            if *subshell { Status { fails: own.fails || own.exits, exits: false } } else { own }
        }
        Kind::Control { conditions, bodies, .. } => {
            let asked = conditions.iter().map(of_script).any(|own| own.exits);
            let done = bodies.iter().map(of_script).fold(Status::default(), |one, other| Status {
                fails: one.fails || other.fails,
                exits: one.exits || other.exits,
            });
            Status { exits: done.exits || asked, ..done }
        }
        Kind::Simple => of_words(command),
    }
}

/// What `-c SCRIPT` depends on, where another shell judges only the last program of a pipeline; `None`: a script's file, or
/// no script.
fn inner_script(words: &[&str]) -> Option<Status> {
    let at = words.iter().position(|word| has_letter(word, &['c']) && word.ends_with('c'))?;
    let options = &words[..=at];
    let is_option = |word: &&str| word.starts_with('-') || matches!(*word, "pipefail" | "errexit" | "nounset");
    let mut script = parse(words.get(at + 1)?).filter(|_| options.iter().all(is_option))?;
    if !options.contains(&"pipefail") && !words[at + 1].contains("pipefail") {
        let pipelines = script.lists.iter_mut().flat_map(|list| &mut list.pipelines);
        pipelines.for_each(|(_, pipeline)| drop(pipeline.commands.drain(..pipeline.commands.len() - 1)));
    }
    let strict = options.iter().any(|word| word.starts_with('-') && word.contains('e') || *word == "errexit");
    let inner = of_script(&script, strict);
    Some(Status { fails: inner.fails || inner.exits, exits: false })
}

fn of_words(command: &Command) -> Status {
    let words = command.texts();
    let Some((&program, rest)) = words.split_first() else {
        // Of assignments, the last substitution decides.
        let last = command.substituted.last().or(command.backticked.last());
        return last.map(|script| of_script(script, false)).unwrap_or_default();
    };
    let program = ["/bin/", "/usr/bin/"].iter().find_map(|place| program.strip_prefix(place)).unwrap_or(program);
    if matches!(program, "sh" | "bash")
        && let Some(inner) = inner_script(rest)
    {
        return inner;
    }
    if matches!(program, "exit" | "return") {
        let fails = rest.first() != Some(&"0");
        return Status { fails, exits: fails };
    }
    let leaves = program == "cd" && matches!(rest, [] | [".." | "-"]);
    let lists = program == "find" && !rest.contains(&"-exec") || program == "ls" && operands(rest) == 0;
    let waits_for_all = program == "wait" && rest.is_empty();
    let fails = !(leaves
        || lists
        || waits_for_all
        || ALWAYS.contains(&program)
        || is_filter(program, rest)
        || program == "git" && only_shows(rest));
    Status { fails, exits: false }
}

/// Whether a command only passes on what it reads, and fails for none of it.
pub(super) fn passes_on(command: &Command) -> bool {
    command
        .texts()
        .split_first()
        .is_some_and(|(program, rest)| command.kind == Kind::Simple && is_filter(program, rest))
}

/// Whether a program with these arguments reads its standard input and fails for none of it.
fn is_filter(program: &str, rest: &[&str]) -> bool {
    let options_only = operands(rest) == 0;
    match program {
        "tee" => true,
        // What it reads may be no JSON; what the filter finds is printed and decides nothing.
        "jq" => {
            let filter = rest.iter().find(|word| !word.starts_with('-')).copied().unwrap_or(".");
            let decides = rest.iter().any(|word| matches!(*word, "-e" | "--exit-status")) || filter.contains("error");
            !decides && !matches!(filter, "." | "empty")
        }
        "cut" | "tr" => FILTERS.contains(&program) && !rest.is_empty(),
        "sed" => operands(rest) == 1 && !rest.iter().any(|word| word.contains('q')),
        "awk" => operands(rest) == 1 && !rest.iter().any(|word| word.contains("exit")),
        _ => FILTERS.contains(&program) && options_only,
    }
}

/// How many arguments are neither options nor the numbers that belong to them.
fn operands(rest: &[&str]) -> usize {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    rest.iter().filter(|word| (!word.starts_with(['-', '+']) || word.len() == 1) && !is_number(word)).count()
}

/// Whether git only shows something, and succeeds whatever that is.
fn only_shows(rest: &[&str]) -> bool {
    let own: Vec<&str> = rest.iter().copied().take_while(|word| *word != "--").collect();
    let mut named = own.iter().filter(|word| !word.starts_with('-'));
    let command = named.next();
    // Work is committed before a lane's tests look at it: without a commit to compare with there is no difference.
    let compares = named.next().is_some();
    let decides = |word: &&str| matches!(*word, "--exit-code" | "--quiet" | "-q") || (*word == "--check" && compares);
    let decides = own.iter().any(decides);
    command.is_some_and(|word| matches!(*word, "status" | "diff" | "log" | "branch")) && !decides
}

/// `text` without the programs at the end of its pipelines that only show output and so hide whether it succeeded:
/// `make | tail -20` as `make`. What is kept of a run holds all of the output.
pub fn without_display_filters(text: &str) -> String {
    let Some(script) = parse(text).filter(|_| !text.contains("PIPESTATUS")) else { return text.to_owned() };
    let mut cuts = Vec::new();
    displays(&script, &mut cuts);
    edited(text, cuts.into_iter().map(|cut| (cut, String::new())).collect())
}

fn displays(script: &Script, cuts: &mut Vec<Range<usize>>) {
    for pipeline in script.lists.iter().flat_map(|list| &list.pipelines).map(|(_, pipeline)| pipeline) {
        let shown = display_filters(pipeline);
        let left = pipeline.commands.len() - shown;
        let last = &pipeline.commands[left - 1];
        if let Kind::Group { script, .. } = &last.kind {
            displays(script, cuts);
        }
        if shown > 0 {
            cuts.push(last.range.end..pipeline.range.end);
        }
    }
}

/// How many programs at the end of a pipeline only show output, and so hide whether it succeeded.
pub(super) fn display_filters(pipeline: &Pipeline) -> usize {
    let is_shown = |command: &&Command| {
        let words = command.texts();
        let shows = words.first().is_some_and(|program| DISPLAYS.contains(program) && operands(&words[1..]) == 0);
        shows && !command.writes && !words.contains(&"-f")
    };
    pipeline.commands[1..].iter().rev().take_while(is_shown).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cannot_fail_names_the_hiding_part() {
        let cases = [
            ("npm test || true", Some("|| true")),
            ("npm test || echo 'none yet'", Some("|| echo 'none yet'")),
            ("npm test; echo done", Some("; echo done")),
            ("npm test || cat log", Some("|| cat log")),
            ("npm test || /bin/true", Some("|| /bin/true")),
            ("npm test > log 2>&1; tail -5 log", Some("; tail -5 log")),
            ("npm test; ls", Some("; ls")),
            ("npm run build; ls dist/a.js", None),
            ("npm test; cd ..", Some("; cd ..")),
            ("bash -c 'npm test || true'", Some("bash -c 'npm test || true'")),
            ("bash -lc 'npm test'", None),
            ("bash -c 'npm test | tail -5'", Some("bash -c 'npm test | tail -5'")),
            ("bash -euo pipefail -c 'npm test | tail -5; echo done'", None),
            ("bash check.sh -c 'x || true'", None),
            ("npm start & p=$!; wait $p", None),
            ("set -e\n! grep -q a b\ntrue", Some("; true")),
            ("set -e\nfor f in a b; do\n grep -q x $f\n echo $f\ndone\necho all", None),
            ("set -e\n{ make | tee log; echo built; }\necho done", None),
            ("x=`npm test`", None),
            ("find src -name '*.py' -exec python -m py_compile {} +", None),
            ("find src -name a.ts", Some("find src -name a.ts")),
            ("find src -name a.ts | grep -q .", None),
            ("grep -q a b && echo ok || echo no", Some("|| echo no")),
            ("(cd web && npm test) || :", Some("|| :")),
            (
                "if grep -q a b; then echo yes; else echo no; fi",
                Some("if grep -q a b; then echo yes; else echo no; fi"),
            ),
            ("echo done", Some("echo done")),
            ("x=$(ls | wc -l)\necho $x", Some("; echo $x")),
            ("git status --short", Some("git status --short")),
            ("npm start &", Some("npm start")),
            ("npm test", None),
            ("npm test | tail -5", None),
            ("npm test || exit 1", None),
            ("npm test && echo ok", None),
            ("npm test || { echo no; exit 1; }", None),
            ("if grep -q a b; then echo yes; else exit 1; fi", None),
            ("! grep a b", None),
            ("grep a b && exit 1 || exit 0", None),
            ("grep a b && exit 1; true", None),
            ("set -e\nnpm test\necho done", None),
            ("x=$(npm test)", None),
            ("test -f a || test -f b", None),
            ("git diff --check -- a b", Some("git diff --check -- a b")),
            ("git diff --check main -- a", None),
            ("git diff --exit-code", None),
            ("(exit 1) || true", Some("|| true")),
            ("for f in a b; do test -f $f || exit 1; done", None),
            ("((1 > 2))", None),
        ];
        for (script, because) in cases {
            assert_eq!(cannot_fail(script).as_deref(), because, "{script}");
        }
    }

    #[test]
    fn display_filters_are_removed() {
        let cases = [
            ("pytest -q | tail -20", "pytest -q"),
            ("pytest 2>&1 | head -n 5 | cat", "pytest 2>&1"),
            ("cd a && npm test | tail -20 && make | head", "cd a && npm test && make"),
            ("(cd a && make | tail -3)", "(cd a && make)"),
            ("make | tail -3; ls | head", "make; ls"),
            ("! grep a b | head -1", "! grep a b"),
            ("a | tail -1 | grep -q ok", "a | tail -1 | grep -q ok"),
            ("a | tail -5 > log", "a | tail -5 > log"),
            ("a | cat - b", "a | cat - b"),
            ("test $(ls | head -3) = x", "test $(ls | head -3) = x"),
            ("echo 'a | tail -1'", "echo 'a | tail -1'"),
            ("make | tee log | tail -1", "make | tee log"),
            ("a | tail -5 # all", "a # all"),
        ];
        for (script, expected) in cases {
            assert_eq!(without_display_filters(script), expected, "{script}");
        }
    }
}
