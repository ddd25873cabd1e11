//! The commands that the text of a plan has one run: lines, list items, sentences with code in them, scripts in fences.
//!
//! A command counts only where the words around it say no more than that it is run and succeeds. What is expected of it
//! may stand on the same line or on the next.

use std::ops::Range;
use std::sync::LazyLock;

use lanewright_agents::shell::{Command, Kind, List, Script, is_search, parse};
use regex::Regex;

use super::classify::{is_plain_command, is_word_of_script, may_be_command, words};
use super::never_exits::never_exits;
use super::vocabulary::{ABSENCE, CALLED_ALONE, FAILURE_WORDS, GLUE, OUTCOMES, POSITIVE, is_assignment, is_in};
use crate::markdown::inline::{codes, dedent, is_nothing, one_line, without_code};
use crate::markdown::list_item;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// A line or a list item, with the lines that belong to it.
    Statement(String),
    /// What a fence of shell holds.
    Script(String),
}

/// The commands that a text has one run and succeed.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let parts = statements(text);
    let said = |at: Option<usize>| match at.and_then(|at| parts.get(at)) {
        Some(Part::Statement(said)) => said.as_str(),
        _ => "",
    };
    let of = |(at, part): (usize, &Part)| match part {
        Part::Statement(said) => in_statement(said),
        Part::Script(script) => {
            // The text before and after a script may say that its searches find nothing.
            let turned = [at.checked_sub(1), Some(at + 1)].into_iter().any(|at| expects_failure(said(at), true));
            in_script(script).into_iter().filter(|command| !(turned && searches(command))).collect()
        }
    };
    parts.iter().enumerate().flat_map(of).collect()
}

/// The statements and scripts of `text`. Fences of other languages are left out.
fn statements(text: &str) -> Vec<Part> {
    let mut found: Vec<Part> = Vec::new();
    let mut fence: Option<(bool, String)> = None;
    let (mut open, mut margin) = (false, 0);
    for written in text.lines() {
        let line = written.trim();
        if let Some(info) = line.strip_prefix("```") {
            open = false;
            match fence.take() {
                Some((is_shell, script)) => found.extend(is_shell.then_some(Part::Script(script))),
                None => fence = Some((is_shell(info), String::new())),
            }
            continue;
        }
        if let Some((_, script)) = &mut fence {
            script.push_str(written);
            script.push('\n');
            continue;
        }
        let white = written.len() - written.trim_start().len();
        let item = list_item(line, 0..line.len()).map(|(item, _)| &line[item]);
        match found.last_mut() {
            _ if line.is_empty() => open = false,
            Some(Part::Statement(last)) if open && continues(last, line, item, white > margin) => {
                last.push('\n');
                last.push_str(line);
            }
            _ => {
                (open, margin) = (true, white);
                found.push(Part::Statement(item.unwrap_or(line).to_owned()));
            }
        }
    }
    found
}

/// Whether a fence with these words behind it holds shell.
fn is_shell(info: &str) -> bool {
    let word = info.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
    matches!(word.as_str(), "" | "sh" | "bash" | "shell" | "console" | "zsh" | "shell-session")
}

fn continues(last: &str, line: &str, item: Option<&str>, deeper: bool) -> bool {
    let ends_open = last.ends_with(['\\', ',']) || last.ends_with("&&") || last.ends_with("||");
    let expects = line.split_whitespace().next().is_some_and(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        is_in("expect expected should must result output returns outputs", &word)
    });
    let own = is_plain_command(line) || before_outcome(line).is_some();
    let says_more = line.starts_with(|c: char| c.is_lowercase() || "(→-".contains(c));
    let done = last.ends_with(['.', ';', ':']) && !expects;
    item.is_none() && (ends_open || expects || (!own && !done && (says_more || (deeper && !line.starts_with('`')))))
}

/// The commands that a statement has one run and succeed.
pub(crate) fn in_statement(text: &str) -> Vec<String> {
    let text = text.trim();
    if let Some(command) = text.strip_prefix("$ ") {
        return Some(command.trim()).filter(|command| may_be_command(command)).map(str::to_owned).into_iter().collect();
    }
    let joined = text.replace("\\\n", " ").replace("&&\n", "&& ").replace("||\n", "|| ");
    if is_plain_command(&joined) {
        return vec![one_line(&joined)];
    }
    let spans = codes(text);
    if spans.is_empty() {
        return before_outcome(text).into_iter().collect();
    }
    let alone = spans.len() == 1
        && spans[0].outer.start == 0
        && text[spans[0].outer.end..].trim_matches(['.', ';', ' ']).is_empty();
    let visible = without_code(text);
    // In a sentence, a lone word is the name of a program more often than a call of it.
    let is_call = |command: &str| command.contains(' ') || is_in(CALLED_ALONE, command) || command.starts_with("./");
    let is_command = |command: &str| {
        may_be_command(command) && (alone || (knows_program(command) && is_call(command))) && ends(command)
    };
    let commands: Vec<(usize, usize, String)> = spans
        .into_iter()
        .map(|span| (span.outer.start, span.outer.end, command_text(&text[span.inner])))
        .filter(|(_, _, command)| is_command(command))
        .collect();
    let mut found = Vec::new();
    let mut behind = 0;
    for (at, (start, end, command)) in commands.iter().enumerate() {
        let next = commands.get(at + 1).map_or(text.len(), |next| next.0);
        let search = searches(command);
        if leads_in(&visible[behind..*start])
            && affirms(&visible[*end..next], search)
            && !context_expects_failure(&visible[behind..*start], &visible[*end..next], search)
        {
            found.push(command.clone());
        }
        behind = *end;
    }
    found
}

/// The commands of a cell of a command column.
pub(crate) fn commands_of_cell(text: &str) -> Vec<String> {
    if is_nothing(text) {
        return Vec::new();
    }
    if !codes(text).is_empty() {
        return in_statement(text);
    }
    let line = one_line(text);
    let sure = is_plain_command(&line) || (may_be_command(&line) && line.contains(" --"));
    Some(line).filter(|_| sure).into_iter().collect()
}

/// Code as a command: in one line, unless its line ends mean something: in quotes, and in here-documents.
fn command_text(code: &str) -> String {
    let written = dedent(code);
    let keeps = written.contains('\n') && (written.contains("<<") || words_with_lines(&written).next().is_some());
    if keeps { written } else { one_line(code) }
}

/// Whether a script holds a program of several lines in quotes, as `python3 -c "…"` does: its line ends are a part of it.
pub(crate) fn quotes_program(script: &str) -> bool {
    let is_code =
        |(before, _): (String, String)| is_in("-c -e -r -p --eval --print --command awk gawk sed jq", &before);
    script.contains('\n') && words_with_lines(script).any(is_code)
}

/// The words of a script with line ends in them, each with the word before it.
fn words_with_lines(script: &str) -> impl Iterator<Item = (String, String)> {
    let parsed = parse(script).unwrap_or_default();
    let commands = parsed.commands().into_iter().map(|(command, _)| command.words.clone());
    let pairs = commands.flat_map(|words| {
        let before = std::iter::once(String::new()).chain(words.iter().map(|word| word.text.clone()));
        before.zip(words.clone()).collect::<Vec<_>>()
    });
    let found: Vec<(String, String)> = pairs
        .filter(|(_, word)| script[word.range.clone()].contains('\n'))
        .map(|(before, word)| (before, word.text))
        .collect();
    found.into_iter()
}

fn context_expects_failure(before: &str, behind: &str, search: bool) -> bool {
    let lead = before.rsplit(['.', ';', '\n']).next().unwrap_or("");
    expects_failure(lead, search) || expects_failure(&outcome(behind, search), search)
}

/// What behind a command says what is expected of it.
fn outcome(behind: &str, search: bool) -> String {
    let sentences = behind.split(['\n', ';']).flat_map(|line| line.split(". "));
    let expects = |sentence: &&str| {
        let first = sentence.split_whitespace().next().unwrap_or("").to_lowercase();
        search || is_in("expect expected expected: should must exit exits it", &first)
    };
    let kept: Vec<&str> =
        sentences.enumerate().filter(|(at, sentence)| *at == 0 || expects(sentence)).map(|(_, part)| part).collect();
    kept.join(" ")
}

/// A command that begins a line of prose: `npm run build succeeds without errors`.
fn before_outcome(text: &str) -> Option<String> {
    let line = text.lines().next()?;
    let words = words(line)?;
    let at = words.iter().position(|word| {
        let plain = word.text.trim_end_matches([',', '.', ':', ';']);
        !word.quoted
            && (is_in(OUTCOMES, plain)
                || matches!(plain, "-" | "—" | "–" | "→" | "->" | "all")
                || word.text.starts_with('('))
    })?;
    let end = words.get(at)?.range.start;
    let command = line[..end].trim();
    let search = searches(command);
    let spoken =
        |word: &lanewright_agents::shell::Word| !word.quoted && is_in("for the a an in that of to with", &word.text);
    let sure = is_plain_command(command) && at > 1 && !listens(command) && !words[..at].iter().any(spoken);
    (sure && affirms(&line[end..], search) && !expects_failure(&outcome(&text[end..], search), search))
        .then(|| command.to_owned())
}

/// Whether a command's exit code says whether it found something.
pub(crate) fn searches(command: &str) -> bool {
    let script = parse(command).unwrap_or_default();
    let programs =
        script.last_pipeline().filter(|pipeline| !pipeline.negated).into_iter().flat_map(|pipeline| &pipeline.commands);
    let mut programs = programs.filter_map(|command| command.arguments().next());
    programs.any(|program| is_search(&program.text) || is_in("find ls git test [ diff wc jq", &program.text))
}

/// Whether the words before a command say no more than that it is run: nothing, `Run`, `TypeScript compiles:`.
fn leads_in(before: &str) -> bool {
    let lead = before.trim().trim_end_matches(['*', '_', ' ']);
    let last = lead.rsplit(['.', ';', '\n']).next().unwrap_or("").trim();
    let spoken = last.trim_matches(|c: char| "(),—–-:*".contains(c) || c.is_whitespace());
    let mut plain = spoken.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    (lead.ends_with(':') && last.len() <= 120) || plain.all(|word| is_in(GLUE, &word.to_lowercase()))
}

/// Whether the text after a command is one that follows a command to run.
fn affirms(behind: &str, search: bool) -> bool {
    let rest = behind.trim_start();
    let first = rest.split(|c: char| !(c.is_alphanumeric() || c == '-')).next().unwrap_or("").to_lowercase();
    let mut next = rest.split_whitespace().skip(1);
    let is_state = matches!(first.as_str(), "is" | "are" | "stays" | "remains")
        && next
            .next()
            .is_some_and(|word| is_in("green clean passing successful ok happy", word.trim_end_matches([',', '.'])));
    let found =
        search && is_in("finds shows returns lists matches exists confirms contains reports prints outputs", &first);
    rest.is_empty() || is_in(POSITIVE, &first) || is_state || found || !rest.starts_with(|c: char| c.is_alphanumeric())
}

static NO_ERRORS: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = "type|types|typescript|ts|lint|linting|linter|compile|compiler|compilation|build|runtime|console|syntax|import|test";
    let what = "errors?|warnings?|failures?|issues?|regressions?|problems?|failed";
    let pattern =
        format!(r"\b(?:no|zero|0|without(?: any)?|free of)\s+(?:(?:{kinds})\s+)*(?:{what})\b(?:\s+or\s+(?:{what}))?");
    Regex::new(&pattern).expect("a regular expression")
});

/// Whether `said` of a command says that its success is not what is wanted, or not always.
pub(crate) fn expects_failure(said: &str, search: bool) -> bool {
    let said = said.to_lowercase().replace("non-zero", "nonzero");
    let said = if search { said.into() } else { NO_ERRORS.replace_all(&said, " ") };
    let mut words =
        said.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '\'')).filter(|word| !word.is_empty());
    words.any(|word| is_in(FAILURE_WORDS, word) || word.ends_with("n't") || (search && is_in(ABSENCE, word)))
}

fn knows_program(command: &str) -> bool {
    let command = command.trim_start_matches(['(', '!', ' ']);
    let words = words(command).unwrap_or_default();
    let program = words.iter().find(|word| !is_assignment(&word.text));
    program.is_some_and(|word| is_word_of_script(&word.text))
}

/// Whether a command in backticks is one that ends by itself and needs nothing that runs beside it.
fn ends(command: &str) -> bool {
    !listens(command) && !never_exits(command) && (is_plain_command(command) || !starts_server(command))
}

fn listens(command: &str) -> bool {
    let first = command.split_whitespace().next().unwrap_or("");
    ["curl", "wget", "open", "http", "psql", "ssh"].contains(&first)
}

fn starts_server(command: &str) -> bool {
    let parts = ["run dev", "start", "serve", "watch", "runserver", "up"];
    parts.iter().any(|part| command.split_once(' ').is_some_and(|(_, rest)| rest.contains(part)))
}

/// The commands of a fence of shell: one by one where they are independent, else the script as a whole.
fn in_script(script: &str) -> Vec<String> {
    let lines = script.lines().map(|line| line.trim_start().strip_prefix("$ ").unwrap_or(line));
    let script = lines.collect::<Vec<_>>().join("\n");
    let script = script.trim();
    let Some(parsed) = parse(script) else { return Vec::new() };
    let places: Vec<Range<usize>> = parsed.lists.iter().map(List::range).collect();
    let behind = |at: usize| &script[places[at].end..places.get(at + 1).map_or(script.len(), |next| next.start)];
    if depends_on_itself(&parsed, script) {
        let turned = (0..places.len()).any(|at| expects_failure(&remark(behind(at)), true));
        let known = |(command, _): &(&Command, bool)| {
            command.arguments().next().is_some_and(|word| is_word_of_script(&word.text))
        };
        let runs = parsed.commands().iter().any(known) || may_be_command(script);
        let sure = runs && !turned && ends(script);
        return sure.then(|| script.to_owned()).into_iter().collect();
    }
    let command = |(at, place): (usize, &Range<usize>)| {
        let command = &script[place.clone()];
        // The text on the line of the previous command belongs to that one.
        let lead = match at.checked_sub(1) {
            Some(before) => behind(before).split_once('\n').map_or("", |(_, rest)| rest),
            None => &script[..place.start],
        };
        let search = searches(command);
        let unclear = search && says_outcome_unclearly(behind(at));
        let turned =
            unclear || expects_failure(&remark(behind(at)), search) || (search && expects_failure(above(lead), true));
        let sure = may_be_command(command) && ends(command) && !turned;
        sure.then(|| command.to_owned())
    };
    places.iter().enumerate().filter_map(command).collect()
}

fn above(gap: &str) -> &str {
    gap.trim_end().lines().last().unwrap_or("").trim()
}

/// What the comments behind a command say of its outcome; those of the next command say something else.
fn remark(gap: &str) -> String {
    let mut lines = gap.lines();
    let own = lines.next().unwrap_or("").trim_start_matches([';', ' ']).trim_start_matches('#').to_owned();
    let marks = ["expect", "should", "must", "output", "->", "→", "=>", "returns", "prints"];
    let tells = |line: &&str| {
        let line = line.to_lowercase();
        marks.iter().any(|mark| line.contains(mark)) || line.trim().bytes().all(|byte| byte.is_ascii_digit())
    };
    let below = lines.map(str::trim).take_while(|line| !line.is_empty());
    let below = below.map(|line| line.trim_start_matches('#').trim()).filter(tells);
    [own].into_iter().chain(below.map(str::to_owned)).collect::<Vec<_>>().join(" ")
}

/// Whether comments below a command, with nothing below them, say what it shows, and not in words that are known.
fn says_outcome_unclearly(gap: &str) -> bool {
    let below = gap.split_once('\n').map_or("", |(_, below)| below);
    let comments: Vec<&str> = below.lines().map(str::trim).take_while(|line| line.starts_with('#')).collect();
    let ends = below.lines().nth(comments.len()).is_none_or(|line| line.trim().is_empty());
    let said = comments.join(" ").to_lowercase();
    let found = ["match", "found", "exist", "present", "at least", "show", "should be there"];
    !comments.is_empty() && ends && !found.iter().any(|word| said.contains(word))
}

/// Whether the lines of a script need those before them.
fn depends_on_itself(parsed: &Script, script: &str) -> bool {
    let binds = |program: &str| is_in("export set source . trap pushd popd exit unset alias", program);
    let mut moves = 0;
    for list in &parsed.lists {
        let command = &list.first().commands[0];
        let program = command.arguments().next().map(|word| word.text.as_str());
        let plain = matches!(command.kind, Kind::Simple | Kind::Group { subshell: true, .. });
        let alone = list.pipelines.len() == 1;
        if !plain
            || list.background
            || (command.kind == Kind::Simple && program.is_none_or(binds))
            || (program == Some("cd") && alone)
        {
            return true;
        }
        moves += usize::from(program == Some("cd"));
    }
    // `cd web && npm test` on one line of several is independent, unless what follows may have to run there.
    let stays = moves == 1 && parsed.lists.len() > 1 && {
        let first = &parsed.lists[0];
        let place = first.first().commands[0].words.get(1).map_or("", |word| &word.text);
        !script[first.range().end..].contains(&format!("{}/", place.trim_end_matches('/')))
    };
    stays || script.contains("<<")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_runs_or_only_mentions_a_command() {
        let cases: &[(&str, &[&str])] = &[
            ("`npm test`", &["npm test"]),
            ("`npx tsc --noEmit` passes", &["npx tsc --noEmit"]),
            ("`npx tsc --noEmit` passes without errors, and all looks well", &["npx tsc --noEmit"]),
            ("TypeScript compiles without errors: `npx tsc --noEmit`", &["npx tsc --noEmit"]),
            ("Run `npm run build` - should compile without errors.", &["npm run build"]),
            ("Run: `uv run pytest tests/a.py -v`", &["uv run pytest tests/a.py -v"]),
            ("Verify that `cargo test` passes", &["cargo test"]),
            ("`ruff check src` and `mypy src` are green", &["ruff check src", "mypy src"]),
            ("Exported: `grep \"export x\" src/a.ts`", &["grep \"export x\" src/a.ts"]),
            ("npx tsc --noEmit passes", &["npx tsc --noEmit"]),
            ("npm run build succeeds without errors", &["npm run build"]),
            ("ls src/a.ts src/b.ts all exist", &["ls src/a.ts src/b.ts"]),
            ("make check", &["make check"]),
            ("$ make check", &["make check"]),
            ("`npm run build` succeeds; `npm test` passes (all of it)", &["npm run build", "npm test"]),
            ("`grep -rn old src` returns no matches", &[]),
            ("`grep -rn old src`\nExpected: zero matches", &[]),
            ("No uses left: `grep -rn old src`", &[]),
            ("`pytest tests/a.py` fails as yet", &[]),
            ("`npx tsc --noEmit` shows no new errors", &[]),
            ("`npx tsc --noEmit` shows only pre-existing errors", &[]),
            ("Check that `make` is documented", &[]),
            ("The `npm test` script exists in package.json", &[]),
            ("`npm run dev` starts", &[]),
            ("Confirm `cargo test` fails", &[]),
            ("`npm test` or `pnpm test`", &[]),
            ("Run `npm test` if it is there", &[]),
            ("If `make` is there, `make check` passes", &[]),
            ("Exports `import a from 'b'`: `foo.bar()`", &[]),
            ("grep for \"x\" in src returns a line", &[]),
            ("Run any linters (`vale`, `markdownlint`)", &[]),
            ("`pytest` passes", &["pytest"]),
            ("All tests pass", &[]),
            ("make sure that it works", &[]),
            ("`curl localhost:3000/health` returns 200", &[]),
            ("Review formatting in `README.md` and `docs/a.md`.", &[]),
        ];
        for (text, commands) in cases {
            assert_eq!(in_statement(text), *commands, "{text}");
        }
    }

    #[test]
    fn expectation_belongs_to_preceding_command() {
        let text = "test -f a\nmake b passes\n1. Run `a`\n   and more\n2. `grep x y`\n   Expected: none\n\nAll of it\n```bash\nls a\n```\n```ts\nlet\n```\nmake \\\n  b";
        let statement = |text: &str| Part::Statement(text.to_owned());
        let expected = [
            statement("test -f a"),
            statement("make b passes"),
            statement("Run `a`\nand more"),
            statement("`grep x y`\nExpected: none"),
            statement("All of it"),
            Part::Script("ls a\n".to_owned()),
            statement("make \\\nb"),
        ];
        assert_eq!(statements(text), expected);
    }

    #[test]
    fn independent_script_lines_are_separate_commands() {
        let cases: &[(&str, &[&str])] = &[
            ("# it is there\ntest -f a\n\ngrep -q b a", &["test -f a", "grep -q b a"]),
            (
                "# all\nnpm test   # the lot\n\n$ npm run e2e -- \\\n  --slow\n",
                &["npm test", "npm run e2e -- \\\n  --slow"],
            ),
            ("cd web\nnpm test", &["cd web\nnpm test"]),
            ("grep -c x a\n# 0", &[]),
            ("grep -r alt src\n# Erwartet: nichts\n\n# neu\ngrep neu src\n# expected: a match", &["grep neu src"]),
            ("# no old name is left\nrg old src\n# new ones\nrg new src", &["rg new src"]),
            ("grep x a  # expect no match\nls a # should be there", &["ls a"]),
            ("npm test # expected: 5 passed, no errors", &["npm test"]),
            ("npm run dev", &[]),
            ("cd a && make\ncd a && npm test", &["cd a && make", "cd a && npm test"]),
            ("cd a && make\ntest -f a/b", &["cd a && make", "test -f a/b"]),
            ("cd a && npm ci\nnpm test", &["cd a && npm ci\nnpm test"]),
            ("echo \"a # b\"", &["echo \"a # b\""]),
            ("python - <<'E'\nprint(1)\nE\nnpm test", &["python - <<'E'\nprint(1)\nE\nnpm test"]),
            ("for f in a b; do\n  test -f $f || exit 1\ndone", &["for f in a b; do\n  test -f $f || exit 1\ndone"]),
            ("npm test (all)", &[]),
        ];
        for (script, commands) in cases {
            assert_eq!(in_script(script), *commands, "{script}");
        }
    }
}
