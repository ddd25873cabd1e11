//! The commands that the text of a task or of a criterion has one run, where they are unmistakable, and whether a task
//! only checks something.

use std::sync::LazyLock;

use lanewright_agents::shell::is_search;
use lanewright_model::plan::Skipped;
use lanewright_model::{CommandLine, LaneId};
use regex::Regex;

use crate::command::{Commands, GateFault, acts_in_account, expects_failure, in_statement, is_in, may_be_command};
use crate::draft::TaskDraft;
use crate::markdown::inline::{codes, one_line};
use crate::markdown::list_items;
use crate::path::is_file_name;

use super::paths_in_text::paths_in_text;

/// A verb that a task begins with which changes no file.
static CHECKS: LazyLock<Regex> = pattern!(
    r"(?i)^\W*(?:(?:re-?)?run|execute|verify|validate|confirm|check|ensure|smoke[- ]test|manually|manual|実行|検証|確認|运行|执行|验证|检查)\b"
);

/// Words behind which a person is meant.
static PERSON: LazyLock<Regex> = pattern!(
    r"(?i)\b(?:manual|manually|visual|visually|by hand|by eye|in (?:a|the) browser|on (?:a|the) (?:device|phone)|quickstart\.md)\b|手动|手動|人工|目視"
);

/// What a sentence has behind its command that is not a part of it.
static BEHIND: LazyLock<Regex> = pattern!(
    r"(?i)\s+(?:to (?:verify|ensure|check|confirm|make|see|validate|install)|and (?:verify|ensure|check|confirm|fix)|until|so that|with no|-|–|—|\()(?:\s|$|\S)"
);

static INSIDE: LazyLock<Regex> =
    pattern!(r"(?i)\b(?:in|inside|from|within|under)\s+(?:the\s+)?([`\[]?[A-Za-z0-9_./-]+[`\]]?)");

/// What the text of a task has one run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The commands that judge work, and those that do not and why.
    pub(crate) commands: Commands,
    /// Those that set something up or change files, such as `npm ci` and `cargo fmt`: an agent runs them.
    pub(crate) actions: Vec<String>,
}

/// The commands that a text has one run and succeed; each item of a list is read by itself.
pub(crate) fn commands_in_text(text: &str) -> Run {
    let mut run = Run::default();
    let mut found: Vec<String> = Vec::new();
    for item in list_items(text) {
        found.extend(in_item(&item));
    }
    let (actions, commands) = found.into_iter().partition(|command| is_action(command));
    run.actions = actions;
    run.commands = Commands::judged(commands);
    let mut known: Vec<String> = Vec::new();
    run.commands.gates.retain(|gate| {
        !known.contains(gate) && (known.len() < MAX_COMMANDS) && {
            known.push(gate.clone());
            true
        }
    });
    run
}

const MAX_COMMANDS: usize = 100;

fn in_item(item: &str) -> Vec<String> {
    let said = one_line(item);
    let spans = codes(&said);
    let mut commands = in_statement(&said);
    match spans.first() {
        None => {
            let bare = without_verb(&said).map(|rest| BEHIND.find(rest).map_or(rest, |behind| &rest[..behind.start()]));
            let own = bare.map(|rest| in_statement(rest.trim().trim_end_matches(['.', ':', ';']))).unwrap_or_default();
            commands = if own.is_empty() { commands } else { own };
            commands.retain(|command| is_sure_without_backticks(command));
        }
        // `Verify the whole compilation with` is more than leads in a command elsewhere.
        Some(first) if only_checks(&said) && !expects_failure(&said[..first.outer.start], true) => {
            let own = in_statement(&format!("Run {}", &said[first.outer.start..]));
            commands = if own.len() > commands.len() { own } else { commands };
        }
        Some(_) => {}
    }
    if only_checks(&said) {
        // Programs of services, most of which are no commands of a sentence otherwise.
        let named = spans.iter().map(|span| said[span.inner.clone()].trim()).filter(|code| acts_in_account(code));
        let more: Vec<String> =
            named.filter(|code| !commands.iter().any(|known| known == code)).map(str::to_owned).collect();
        commands.extend(more);
    }
    let behind = |command: &str| said.find(command).map_or("", |at| &said[at + command.len()..]);
    // What a search must find is for a reader to judge, unless the command says so.
    commands.retain(|command| !(searches(command) && FINDINGS.is_match(behind(command))));
    commands.retain(|command| judges(command) || is_action(command) || !MAKES.is_match(behind(command)));
    let located = |command: String| match directory(&said, &command) {
        Some(directory) => format!("cd {} && {command}", directory.trim_end_matches('/')),
        None => command,
    };
    commands.into_iter().map(located).collect()
}

/// What a sentence says about the findings of a search before it.
static FINDINGS: LazyLock<Regex> = pattern!(
    r"(?i)\b(?:expect(?:ed|s)?|zero|none|nothing|no|only|capture|record|snapshot|baseline|outputs?|returns?|hits|match(?:es)?)\b"
);

/// What a sentence says behind a command that makes something, and succeeds once.
static MAKES: LazyLock<Regex> = pattern!(
    r"(?i)^`?\s*(?:to|and) (?:generate|create|install|add|scaffold|set ?up|initiali[sz]e|update|migrate|seed|sync|copy|download)\b"
);

/// Whether a command is a search whose exit code says only whether it found something.
fn searches(command: &str) -> bool {
    let program = command.split_whitespace().find(|word| !word.contains('='));
    program.is_some_and(is_search)
}

/// Whether a command tests or builds, whatever it leaves behind.
fn judges(command: &str) -> bool {
    ["test", "build", "lint", "check", "vet", "compile"].iter().any(|word| command.contains(word))
}

/// Where a command runs: `in backend/` behind it says so.
fn directory(said: &str, command: &str) -> Option<String> {
    let behind = &said[said.find(command)? + command.len()..];
    let end = codes(behind).first().map_or(behind.len(), |next| next.outer.end);
    let inside = INSIDE.captures(&behind[..end])?.get(1)?.as_str();
    let named = paths_in_text(&format!("`{}`", inside.trim_matches(['`', '[', ']']))).into_iter().next()?;
    let is_marked = named.path.ends_with('/') || inside.starts_with(['`', '[']);
    (is_marked && !is_file_name(&named.path)).then_some(named.path)
}

/// Whether words without backticks are a command rather than its name: `pytest`, `npm test`, not `ruff linter`.
fn is_sure_without_backticks(command: &str) -> bool {
    match command.split_whitespace().collect::<Vec<_>>().as_slice() {
        [program] => is_in("pytest tox nox ctest rspec phpunit jest", program),
        // `npm check on the client` is no command, and `npm lint` is none either.
        [_, _, rest @ ..]
            if rest.iter().any(|word| is_in("on in for with against across over from the all and", word)) =>
        {
            false
        }
        ["npm", verb, ..] => is_in("test t run run-script exec", verb),
        [_, verb, ..] => {
            verb.contains(['-', '/', '.', '=', ':'])
                || is_in("test tests run lint build check clippy fmt format vet typecheck exec unit e2e", verb)
        }
        [] => false,
    }
}

/// The text behind `Run`, `Verify that`.
fn without_verb(text: &str) -> Option<&str> {
    let verb = CHECKS.find(text)?;
    Some(text[verb.end()..].trim_start_matches(|c: char| c == ':' || c.is_whitespace()))
}

/// Programs that write files as they like them, and how they are asked to look only.
const FORMATTERS: &str = "black gofmt goimports isort prettier rustfmt shfmt yapf";
const LOOKS_ONLY: &str = "\
    --check -check -c -l -d --diff --dry-run --list-different --set-exit-if-changed --check-formatted --check-only \
    --verify-no-changes";

/// Whether words are a formatter's, which changes files and succeeds: `dart format`, `npx prettier --write .`.
fn formats(words: &[&str]) -> bool {
    let words = match words {
        ["npx" | "bunx", rest @ ..] | ["uv" | "poetry" | "pipenv", "run", rest @ ..] => rest,
        ["pnpm" | "yarn", "exec" | "dlx", rest @ ..] => rest,
        _ => words,
    };
    let is_formatter = match words {
        ["cargo" | "go" | "terraform" | "deno" | "forge", "fmt", ..] => true,
        ["dart" | "ruff" | "mix" | "dotnet" | "biome", "format", ..] => true,
        [program, ..] => is_in(FORMATTERS, program),
        [] => false,
    };
    is_formatter && !words.iter().any(|word| is_in(LOOKS_ONLY, word))
}

/// Whether a command sets up what others need or changes files, which an agent does once.
fn is_action(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let last = words.iter().rposition(|word| *word == "&&").map_or(0, |at| at + 1);
    match words.get(last..).unwrap_or_default() {
        words if formats(words) => true,
        ["go", "mod", verb, ..] => !is_in("verify", verb),
        ["go", "generate" | "list", ..] => true,
        ["npx", "cap", ..] | ["docker" | "docker-compose", "logs" | "ps" | "images" | "pull", ..] => true,
        ["docker", "compose", "logs" | "ps" | "images" | "pull", ..] => true,
        // `./scripts/docker.sh dev` starts what runs on.
        [program, "dev" | "start" | "serve" | "up"] if program.contains('/') => true,
        [program, verb, ..]
            if is_in("npm pnpm yarn bun uv poetry pip pip3 pipenv bundle composer apt brew go cargo", program) =>
        {
            is_in("install i ci sync lock add init get update upgrade fetch remove create", verb)
        }
        ["yarn"] => true,
        [program, ..] => {
            is_in("npx", program) && words.iter().any(|word| word.starts_with("create-") || *word == "init")
        }
        [] => false,
    }
}

/// Whether a task only runs or checks something, so that it may change no file.
pub(crate) fn only_checks(text: &str) -> bool {
    CHECKS.is_match(text)
}

/// Whether a person must do or see what a text asks for.
pub(crate) fn needs_person(text: &str) -> bool {
    PERSON.is_match(text)
}

/// Whether only a person can check what a text has checked: they must see it, or all of its commands need an account.
pub(crate) fn is_check_by_person(text: &str) -> bool {
    let needs_account = || {
        let commands = commands_in_text(text).commands;
        commands.gates.is_empty() && commands.others.iter().any(|(_, why)| *why == GateFault::NeedsAccount)
    };
    only_checks(text) && (needs_person(text) || needs_account())
}

/// What only a person tests, whatever else a title says: a `manual toggle` is work of agents.
static TESTED_BY_HAND: LazyLock<Regex> = pattern!(
    r"(?i)\b(?:manual(?:ly)?|visual(?:ly)?)[\s-]+(?:\w+\s+)?(?:test|verif|check|qa\b|valid|review|inspect)|\bby (?:hand|eye)\b|(?:手动|手動|人工)(?:测试|验证|检查|テスト|確認|検証)|目視"
);

/// Whether an item of a list is a test that only a person can do.
pub(crate) fn is_tested_by_hand(title: &str) -> bool {
    // What a long title ends with is an example or a remark.
    let start = &title[..title.floor_char_boundary(80)];
    is_check_by_person(title) || needs_person(title) && TESTED_BY_HAND.is_match(start)
}

/// What to do where nothing is left but what `--skip-manual` leaves out.
pub(crate) const ASK_PERSON: &str = "tick what is done, or leave out `--skip-manual`";

/// How many tasks a message names.
const MAX_NAMED: usize = 8;

/// The tasks of `list` that are left out because a person does them, in one entry.
pub(crate) fn manual_left_out<'t>(list: &str, tasks: impl Iterator<Item = &'t str>) -> Option<Skipped> {
    let tasks: Vec<&str> = tasks.collect();
    // Ids are ASCII.
    let lane = LaneId::new(&format!("{}-manual", &list[..list.len().min(50)])).ok().filter(|_| !tasks.is_empty())?;
    let reason = format!("a person does these, and they are left out: {}", named(&tasks));
    Some(Skipped { lane, name: None, reason })
}

/// The first of `names`, and how many more there are.
pub(crate) fn named(names: &[&str]) -> String {
    let first = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MAX_NAMED);
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// The gates of tasks that only check: they judge the whole lane, and what is merged of it. `openspec validate` judges no code.
pub(crate) fn tests_of(tasks: &[TaskDraft]) -> Option<Vec<CommandLine>> {
    let mut tests: Vec<CommandLine> = Vec::new();
    for gate in tasks.iter().filter(|task| task.allow_empty).flat_map(|task| &task.verify) {
        if !tests.contains(gate) && !gate.to_string().starts_with("openspec ") {
            tests.push(gate.clone());
        }
    }
    Some(tests).filter(|tests| !tests.is_empty())
}

/// Whether a task is done where its commands succeed: it only checks, and all that it names in code is commands.
pub(crate) fn is_only_commands(text: &str, run: &Run) -> bool {
    let said = one_line(text);
    let is_command = |code: &str| may_be_command(code) || run.commands.gates.iter().any(|gate| gate.contains(code));
    let all = codes(&said).into_iter().all(|code| is_command(&said[code.inner]));
    only_checks(text)
        && !run.commands.gates.is_empty()
        && run.commands.others.is_empty()
        && run.actions.is_empty()
        && all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_with_their_directory() {
        let cases: &[(&str, &[&str])] = &[
            ("Verify types pass: `uv run mypy src/` in backend/", &["cd backend && uv run mypy src/"]),
            (
                "Verify the build `npm run build` inside [web/](file:///c:/x/web) directory",
                &["cd web && npm run build"],
            ),
            ("Run all tests together (`uv run pytest tests/`)", &["uv run pytest tests/"]),
            ("Run lint and types (`uv run ruff check`, `uv run mypy`)", &["uv run ruff check", "uv run mypy"]),
            ("Run npm test to verify all tests pass", &["npm test"]),
            ("Run npm run lint to ensure code quality", &["npm run lint"]),
            ("Verify npm run lint passes in web/", &["cd web && npm run lint"]),
            ("Run full suite: `make test` - 10 passed", &["make test"]),
            ("- Test with `cargo test`\n- `cargo clippy`", &["cargo test", "cargo clippy"]),
            ("Run `docker exec web npm test`", &["docker exec web npm test"]),
            ("Run `cargo fmt --check` in app/", &["cd app && cargo fmt --check"]),
            ("Run `npm run build` to create dist/", &["npm run build"]),
            ("Run `rg -q 'fn main' src/`", &["rg -q 'fn main' src/"]),
        ];
        for (text, expected) in cases {
            let run = commands_in_text(text);
            assert_eq!(run.commands.gates, *expected, "{text}: {run:?}");
        }
    }

    #[test]
    fn servers_installs_and_prose_are_no_gates() {
        for text in [
            "Verify server starts: `uv run uvicorn src.main:app` in backend/",
            "Run `uv sync` to install dependencies in backend/",
            "Run full E2E suite and validate against `quickstart.md`",
            "Create `src/a.py` with `def test()`",
            "Verify all tests pass",
            "Run the test suite",
            "Run tests to see that they work",
            "Run ruff linter and fix what it finds",
            "Run mypy type checker",
            "Run npm check on frontend (apps/web) - 0 errors",
            "Run npm lint",
            "Run `dart format` on all files",
            "Run `cargo fmt` and `npx prettier --write .`",
            "Run `go mod edit -droprequire a/b`, then `go mod tidy`",
            "Run `npx cap add android` to generate `android/`",
            "Run `./tools/schema.sh` to generate the types",
            "Confirm that it starts: run `./scripts/docker.sh dev`",
            "Verify `docker logs web --tail 20` shows no error",
            "Run `rg -n '/api/v1/' src/` and capture the result. Expected: zero",
            "Run `rg -n 'TODO' src/`; output must have the known ones only",
        ] {
            assert_eq!(commands_in_text(text).commands.gates, Vec::<String>::new(), "{text}");
        }
        assert_eq!(commands_in_text("Run `poetry lock && poetry install` to update").actions.len(), 1);
        assert!(!is_action("go mod verify") && !is_action("uv run black --check ."));
    }

    #[test]
    fn checks_are_separated_from_work() {
        for text in ["Run npm test", "Verify that it loads", "Validate quickstart.md", "検証 する"] {
            assert!(only_checks(text), "{text}");
        }
        for text in ["Create a check", "Runtime errors are shown", "Verification code"] {
            assert!(!only_checks(text), "{text}");
        }
        assert!(needs_person("Run quickstart.md checks") && needs_person("手动测试") && !needs_person("Add manuals"));
        let by_hand = [
            "Verify visual parity",
            "Manually test it",
            "测试（需手动测试）",
            "UI: manual testing",
            "Look at it by eye",
            "Run `vercel deploy` and see the preview",
        ];
        assert!(by_hand.into_iter().all(is_tested_by_hand));
        let by_agents = ["Use a drawer with manual toggle", "Add a Visual Studio template", "Test it", "Add a manual"];
        assert!(!by_agents.into_iter().any(is_tested_by_hand));
        let sure = |text: &str| is_only_commands(text, &commands_in_text(text));
        assert!(sure("Run linting: `make lint`") && sure("Run npm test to verify all tests pass"));
        assert!(!sure("Run `make lint` and add `src/a.py`") && !sure("Add `make lint` target"));
    }
}
