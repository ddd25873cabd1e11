//! What is unmistakably a command: only that is ever run. Prose stays prose.

use super::inline::{codes, is_nothing, one_line, without_code, without_parentheses};

/// Programs whose names are no English words.
const PROGRAMS: &[&str] = &[
    "actionlint",
    "ansible-playbook",
    "awk",
    "bash",
    "bats",
    "bazel",
    "black",
    "bun",
    "bundle",
    "cargo",
    "clang",
    "cmake",
    "cmp",
    "composer",
    "coverage",
    "ctest",
    "curl",
    "cypress",
    "dart",
    "deno",
    "docker",
    "docker-compose",
    "dotnet",
    "egrep",
    "eslint",
    "flake8",
    "flutter",
    "g++",
    "gcc",
    "gh",
    "git",
    "glab",
    "gofmt",
    "golangci-lint",
    "gradle",
    "grep",
    "hadolint",
    "helm",
    "hugo",
    "java",
    "javac",
    "jest",
    "jq",
    "just",
    "kubectl",
    "ls",
    "markdownlint",
    "mdbook",
    "mix",
    "mkdir",
    "mkdocs",
    "mocha",
    "mvn",
    "mypy",
    "ninja",
    "node",
    "nox",
    "npm",
    "npx",
    "nx",
    "perl",
    "php",
    "phpunit",
    "pip",
    "pipenv",
    "playwright",
    "pnpm",
    "poetry",
    "pre-commit",
    "prettier",
    "psql",
    "pwsh",
    "pyright",
    "pytest",
    "python",
    "python3",
    "rails",
    "rake",
    "rg",
    "rm",
    "rspec",
    "rubocop",
    "ruby",
    "ruff",
    "rustc",
    "rustfmt",
    "sed",
    "sh",
    "shellcheck",
    "sqlite3",
    "stylelint",
    "swift",
    "tar",
    "terraform",
    "tox",
    "tsc",
    "tsx",
    "turbo",
    "uv",
    "uvx",
    "vale",
    "vite",
    "vitest",
    "wget",
    "xargs",
    "xcodebuild",
    "yamllint",
    "yarn",
    "yq",
    "zig",
    "zsh",
    "[",
    "[[",
];

/// Programs whose names are words as well.
const WORDS: &[&str] = &[
    "cat", "cd", "cp", "diff", "echo", "env", "exit", "export", "false", "find", "go", "head", "make", "mv", "printf",
    "seq", "set", "sort", "source", "stat", "tail", "tee", "test", "time", "timeout", "touch", "tree", "true", "type",
    "wc", "which",
];

/// What may stand around commands without saying anything else of them.
const GLUE: &[&str] = &[
    "run",
    "runs",
    "running",
    "then",
    "and",
    "also",
    "finally",
    "first",
    "pass",
    "passes",
    "passing",
    "must",
    "succeed",
    "succeeds",
    "exit",
    "exits",
    "code",
    "0",
    "green",
    "is",
    "are",
    "all",
    "from",
    "the",
    "repo",
    "repository",
    "root",
    "plus",
    "clean",
    "should",
    "cleanly",
    "both",
    "command",
    "commands",
    "after",
    "that",
    "to",
];

/// Words after a command that turn its outcome around.
const TURNING: &[&str] = &[
    "fail",
    "nonzero",
    "non-zero",
    "no match",
    "no output",
    "no hit",
    "no result",
    "nothing",
    "empty",
    "zero ",
    "reject",
    "not ",
    "only if",
    "optional",
    "manual",
];

/// The commands of a cell of a command column.
pub(super) fn in_cell(text: &str) -> Vec<String> {
    if is_nothing(text) {
        return Vec::new();
    }
    let spans = codes(text);
    if spans.is_empty() {
        return Some(one_line(text)).filter(|line| is_command(line, false)).into_iter().collect();
    }
    in_statement(text)
}

/// The commands of a sentence: those in backticks, where the sentence says no more than that they are run.
pub(super) fn in_statement(text: &str) -> Vec<String> {
    let spans = codes(text);
    let all: Vec<String> = spans.iter().map(|code| one_line(&text[code.inner.clone()])).collect();
    if all.is_empty() || !all.iter().all(|line| is_command(line, true)) {
        return leading(text);
    }
    let around = without_parentheses(&without_code(text)).to_lowercase();
    let mut words = around.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    if words.all(|word| GLUE.contains(&word)) { all } else { leading(text) }
}

/// The command that a sentence begins with, where what follows does not turn its outcome around.
fn leading(text: &str) -> Vec<String> {
    let text = text.trim();
    let Some(code) = codes(text).into_iter().next().filter(|code| code.outer.start == 0) else { return Vec::new() };
    let line = one_line(&text[code.inner]);
    let rest = text[code.outer.end..].trim_start().to_lowercase();
    let ends = rest.is_empty() || rest.starts_with([';', '.', ',', '(', '—', '–', '-']);
    let turned = TURNING.iter().any(|word| rest.contains(word));
    Some(line).filter(|line| ends && !turned && is_command(line, true)).into_iter().collect()
}

/// The commands of a script: one for each line, or all of it where lines depend on each other.
pub(super) fn in_script(script: &str) -> Vec<String> {
    let lines = logical_lines(script);
    let begins = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or("");
        let controls =
            ["for", "while", "until", "if", "case", "function", "trap", "set", "export", "cd", "source", ".", "{", "("];
        controls.contains(&first) || is_assignment(line) || line.ends_with('&') || line.contains("<<")
    };
    if lines.iter().any(|line| begins(line)) {
        return if lines.iter().any(|line| is_command(line, true)) {
            vec![script.trim().to_owned()]
        } else {
            Vec::new()
        };
    }
    lines.into_iter().filter(|line| is_command(line, true)).collect()
}

/// The lines of a script that are no comments, without prompts, with continued ones joined.
fn logical_lines(script: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut continues = false;
    for line in script.lines() {
        let plain = line.trim();
        let plain = plain.strip_prefix("$ ").unwrap_or(plain);
        if plain.is_empty() || (plain.starts_with('#') && !continues) {
            continues = false;
            continue;
        }
        let plain = without_comment(plain);
        let (part, more) = plain.strip_suffix('\\').map_or((plain, false), |part| (part.trim_end(), true));
        match lines.last_mut().filter(|_| continues) {
            Some(last) => {
                last.push(' ');
                last.push_str(part);
            }
            None => lines.push(part.to_owned()),
        }
        continues = more;
    }
    lines
}

/// `line` without the comment at its end.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return line[..at].trim_end(),
            _ => {}
        }
        before = c;
    }
    line
}

/// `NAME=value` and nothing to run with it.
fn is_assignment(line: &str) -> bool {
    let name = line.split('=').next().unwrap_or("");
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name && line.len() > name.len() && (line.contains("$(") || line.split_whitespace().count() == 1)
}

/// Whether `line` is a command; `quoted` says that it stands in backticks or in a script.
fn is_command(line: &str, quoted: bool) -> bool {
    let mut words = line.split_whitespace().peekable();
    let is_setting = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        })
    };
    while words.next_if(|word| matches!(*word, "!" | "(" | "{" | "sudo" | "time" | "env") || is_setting(word)).is_some()
    {
    }
    let Some(program) = words.next() else { return false };
    let program = program.trim_start_matches(['(', '{']);
    let rest: Vec<&str> = words.collect();
    let is_argument = |word: &&str| {
        word.starts_with('-')
            || word.contains(['/', '.', '=', '$', '"', '\'', '*'])
            || matches!(*word, "&&" | "||" | "|" | ">" | "!" | "]")
    };
    if is_script(program) {
        return quoted || !rest.is_empty() || program.starts_with("./");
    }
    if PROGRAMS.contains(&program) {
        return quoted || rest.len() < 8 || rest.iter().any(is_argument);
    }
    if WORDS.contains(&program) {
        return if quoted {
            !rest.is_empty() || matches!(program, "make" | "true" | "false")
        } else {
            rest.iter().any(is_argument)
        };
    }
    let plausible = program.len() > 1
        && program.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-+".contains(&byte));
    quoted && plausible && program.as_bytes()[0].is_ascii_lowercase() && rest.iter().any(is_argument)
}

/// A program that is named by its path.
fn is_script(word: &str) -> bool {
    let is_path = word.contains('/') && !word.contains(['*', '<', '`', '(']) && !word.contains("://");
    is_path
        && (word.starts_with("./")
            || word.contains("/bin/")
            || word.starts_with("bin/")
            || word.ends_with(".sh")
            || word.starts_with("$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_command_column() {
        let cases: &[(&str, &[&str])] = &[
            ("`npm run test -- tests/unit`", &["npm run test -- tests/unit"]),
            ("pytest tests/a.py -v", &["pytest tests/a.py -v"]),
            ("`npm run build && npx tool --help`", &["npm run build && npx tool --help"]),
            ("`a-tool check --all`, then `pytest -q`", &["a-tool check --all", "pytest -q"]),
            ("`pytest -q` (if there is none, say so)", &["pytest -q"]),
            ("`ruff check src/`; there is no other linter here", &["ruff check src/"]),
            ("Manual review", &[]),
            ("test coverage is complete", &[]),
            ("see `## Verification` step 2", &[]),
            ("`src/cli/index.ts`", &[]),
            ("—", &[]),
            ("n/a", &[]),
            ("`rg -n old src/` returns no matches", &[]),
            ("`rg -n old src/`, which must fail", &[]),
            ("`test ! -e old.txt || make check`", &["test ! -e old.txt || make check"]),
            ("`TMPDIR=/var/tmp uv run pytest`", &["TMPDIR=/var/tmp uv run pytest"]),
            ("`! rg -n old src/`", &["! rg -n old src/"]),
            ("`./check.sh`", &["./check.sh"]),
            ("`git status --short` shows owned paths only", &[]),
        ];
        for (text, commands) in cases {
            assert_eq!(in_cell(text), *commands, "{text}");
        }
    }

    #[test]
    fn a_sentence_is_no_command_for_the_code_that_it_holds() {
        for text in [
            "Review formatting in `README.md` and `docs/a.md`.",
            "Check that `make` is documented",
            "Confirm `cargo test` fails",
        ] {
            assert!(in_statement(text).is_empty(), "{text}");
        }
        assert_eq!(
            in_statement("run `cargo test` and `cargo fmt --check` from the repo root"),
            ["cargo test", "cargo fmt --check"]
        );
    }

    #[test]
    fn scripts_go_line_by_line_unless_lines_depend_on_each_other() {
        let simple = "# all\nnpm test   # the lot\n\n$ npm run e2e -- \\\n  --slow\nok 12 tests\n";
        assert_eq!(in_script(simple), ["npm test", "npm run e2e -- --slow"]);
        let script = "cd web\nnpm test\n";
        assert_eq!(in_script(script), ["cd web\nnpm test"]);
        assert_eq!(in_script("echo \"a # b\""), ["echo \"a # b\""]);
    }
}
