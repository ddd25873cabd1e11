//! Which commands can judge work as gates, and why the others cannot.

use std::sync::LazyLock;

use lanewright_agents::shell::{
    Command, Link, Pipeline, Script, cannot_fail, edited, has_letter, is_search, parse, seeks_failures,
    with_literal_parentheses, without_display_filters,
};
use regex::Regex;

use super::classify::characters;
use super::never_exits::never_exits;
use super::repository_root::relocated;
use super::vocabulary::{CLEANERS, DANGERS, NEED_ACCOUNT, WITHOUT_ACCOUNT, is_in};
use crate::faults::{Faults, quoted};
use crate::source_text::Span;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GateFault {
    /// No shell takes it.
    NotACommand,
    /// It serves or watches.
    NeverExits,
    /// It succeeds whatever happens, because of this part.
    CannotFail(String),
    /// It prints a count that nothing compares.
    PrintsCount,
    /// It lists what is left over, and whether anything may be is not in its exit code.
    ListsRemainder,
    /// It tidies up, or changes more than the worktree.
    ChangesOnly,
    /// It is written for another shell.
    Windows,
    /// Something of it is still to be filled in.
    Placeholder,
    /// It names files of another machine.
    ForeignPath,
    /// It looks at a file that only Lanewright changes.
    ManagedFile,
    /// It acts in an account of a service.
    NeedsAccount,
    /// The plan expects another outcome than success.
    ExpectsFailure,
}

impl GateFault {
    pub(crate) fn warn(&self, command: &str, place: Span, faults: &Faults<'_>) {
        let (fault, help) = match self {
            Self::NotACommand => ("is not a command that a shell takes".to_owned(), "write a shell line"),
            Self::NeverExits => ("never ends by itself".to_owned(), "write a command that ends"),
            Self::CannotFail(part) if part == command && part.starts_with("git ") => {
                ("cannot fail: the work is committed before gates run".to_owned(), "name a commit to compare with")
            }
            Self::CannotFail(part) if part == command => ("cannot fail".to_owned(), "write a command that can"),
            Self::CannotFail(part) => (format!("cannot fail because of {}", quoted(part)), "leave that part out"),
            Self::PrintsCount => {
                ("prints a count that nothing compares".to_owned(), "compare it, for example with `test`")
            }
            Self::ListsRemainder => {
                let help = "write `!` before it if nothing may be left, or `grep -q` behind it if something must be";
                ("succeeds where lines are left over".to_owned(), help)
            }
            Self::ChangesOnly => {
                ("removes or changes something, and checks nothing".to_owned(), "write what must hold afterwards")
            }
            Self::Windows => ("is not written for a POSIX shell".to_owned(), "write it for `sh`"),
            Self::Placeholder => ("has a part that is still to be filled in".to_owned(), "fill it in"),
            Self::ForeignPath => ("names files of another machine".to_owned(), "name files from the repository's root"),
            Self::ManagedFile => ("looks at a file that Lanewright keeps".to_owned(), "check files of the lane"),
            Self::NeedsAccount => {
                ("needs an account of a service".to_owned(), "say `manual` where a person is to run it")
            }
            Self::ExpectsFailure => ("is expected not to succeed".to_owned(), "write `!` before it if it must fail"),
        };
        let help = format!("{help}; it is not a gate, and the agent is shown it");
        faults.warning(place, format!("{} {fault}", quoted(command)), help);
    }
}

/// The gate that a command makes: without what hides its outcome, with parentheses as the shell takes them.
pub(crate) fn gate(command: &str) -> Result<String, GateFault> {
    let command = command.trim();
    if is_for_windows(command) {
        return Err(GateFault::Windows);
    }
    if has_placeholder(command) {
        return Err(GateFault::Placeholder);
    }
    let written = with_literal_parentheses(command).ok_or(GateFault::NotACommand)?;
    let script = parse(&written).ok_or(GateFault::NotACommand)?;
    if never_exits(&written) {
        return Err(GateFault::NeverExits);
    }
    if script.commands().iter().any(|(command, _)| needs_account(command)) {
        return Err(GateFault::NeedsAccount);
    }
    if changes_only(&script) {
        return Err(GateFault::ChangesOnly);
    }
    let Some(result) = script.last_pipeline() else { return Err(GateFault::NotACommand) };
    if prints_count(result) {
        return Err(GateFault::PrintsCount);
    }
    if lists_left_over(result) {
        return Err(GateFault::ListsRemainder);
    }
    if lists_failures(result) {
        return Err(GateFault::ExpectsFailure);
    }
    let gate = without_display_filters(&written);
    cannot_fail(&gate).map_or(Ok(gate), |because| Err(GateFault::CannotFail(because)))
}

/// The gate that a script of several lines makes: all of its lines must succeed.
pub(crate) fn script_gate(script: &str) -> Result<String, GateFault> {
    let script = script.trim();
    match parse(script).filter(|parsed| script.contains('\n') && parsed.lists.len() > 1) {
        Some(parsed) if script.starts_with("set -e") => gate(&strict_lists(script, &parsed)),
        Some(parsed) => gate(&format!("set -e\n{}", strict_lists(script, &parsed))),
        _ => gate(script),
    }
}

/// `script` with an exit behind each list whose failure `set -e` does not see: `! a`, `a && b`.
fn strict_lists(script: &str, parsed: &Script) -> String {
    let unseen = |(link, pipeline): &(Link, Pipeline)| *link == Link::And || pipeline.negated;
    let before = parsed.lists.iter().take(parsed.lists.len() - 1);
    let lists = before.filter(|list| !list.background && list.pipelines.iter().any(unseen));
    let ends = lists.map(|list| list.range().end);
    edited(script, ends.map(|end| (end..end, " || exit 1".to_owned())).collect())
}

fn is_for_windows(script: &str) -> bool {
    let words = "Test-Path Select-String Write-Host Get-Content Get-ChildItem Out-Null $env: Get-Item Where-Object \
        Measure-Object Write-Output ForEach-Object 2>nul";
    let phrases = ["findstr ", "\"Visual Studio", "cmd /c", ">nul "];
    let own = script.starts_with("pwsh");
    let calls = script.split([' ', ';', '&', '|']).any(|word| {
        let program = word.ends_with(".exe") || word.ends_with(".bat") || word.ends_with(".cmd");
        word == "powershell" || word.contains("/Scripts/") || program || word.starts_with(".\\")
    });
    let names = words.split_whitespace().chain(phrases).any(|word| script.contains(word));
    calls || (!own && names)
}

static IN_ANGLES: LazyLock<Regex> = pattern!(r"(?:^|[^<])<[A-Za-z](?:[A-Za-z0-9_ -]*[A-Za-z0-9_-])?>");

/// `<phase>`, `path/to/file`, `YOUR_KEY`, `...` outside of quotes.
fn has_placeholder(script: &str) -> bool {
    let (read, _) = characters(script, "\"'`");
    let visible: String = read.iter().map(|read| if read.quote.is_some() { '_' } else { read.c }).collect();
    let words = ["res://", "path/to/", "YOUR_", "your-", "{{", "<<phase", "{phase}", "{plan}", "{N}"];
    let dots = visible.split_whitespace().any(|word| matches!(word, "..." | "…" | "XXX"));
    IN_ANGLES.is_match(&visible) || dots || words.iter().any(|word| visible.contains(word))
}

/// `grep x a | wc -l`
fn prints_count(pipeline: &Pipeline) -> bool {
    let programs: Vec<&str> = pipeline.commands.iter().filter_map(Command::program).collect();
    let counts = pipeline.commands.len() > 1 && programs.last() == Some(&"wc");
    counts && !pipeline.negated && programs.iter().any(|program| is_search(program) || *program == "find")
}

/// `grep x a | grep -v y`
fn lists_left_over(pipeline: &Pipeline) -> bool {
    let mut commands = filters(pipeline);
    let excludes = commands.next().is_some_and(|command| {
        let mut options = command.arguments().skip(1).filter(|word| !word.quoted).map(|word| word.text.as_str());
        let inverted = options.any(|word| has_letter(word, &['v']) || word == "--invert-match");
        command.program().is_some_and(is_search) && inverted
    });
    excludes && commands.next().is_some() && !pipeline.negated
}

/// `make 2>&1 | grep error`
fn lists_failures(pipeline: &Pipeline) -> bool {
    let mut commands = filters(pipeline);
    let shows = |command: &Command| command.program().is_some_and(|name| is_in("cat ls echo git curl find jq", name));
    let seeks = commands.next().is_some_and(seeks_failures) && !pipeline.negated;
    seeks && commands.next().is_some_and(|producer| !shows(producer) && !producer.program().is_some_and(is_search))
}

/// The commands of a pipeline, last first, without those that only show what the others print.
fn filters(pipeline: &Pipeline) -> impl Iterator<Item = &Command> {
    let shows = |command: &&Command| command.program().is_some_and(|name| is_in("head tail cat sort uniq less", name));
    pipeline.commands.iter().rev().skip_while(shows)
}

/// Whether a script only tidies up, or does to the machine or the repository what no check does.
fn changes_only(script: &Script) -> bool {
    let commands = script.commands();
    let simple = || commands.iter().filter_map(|(command, _)| Some((command, command.program()?)));
    let all_tidy = simple().any(|(_, name)| is_in(CLEANERS, name))
        && simple().all(|(_, name)| is_in(CLEANERS, name) || is_in("cd echo true", name));
    all_tidy || simple().any(|(command, _)| is_dangerous(command))
}

/// Whether a command ends the user's programs, moves the repository's state, or removes what is outside of the worktree.
fn is_dangerous(command: &Command) -> bool {
    let words = command.texts();
    let caller = |word: &&&str| is_in("sudo npx bunx exec", word) || word.starts_with('-');
    let called = words.iter().take_while(caller).count();
    let Some((program, rest)) = words[called..].split_first() else { return false };
    let mut operands = rest.iter().filter(|word| !word.starts_with('-')).copied();
    let (first, second) = (operands.next().unwrap_or(""), operands.next().unwrap_or(""));
    let outside = |word: &&str| {
        let temporary = ["/tmp/", "/var/tmp/", "/dev/"].iter().any(|place| word.starts_with(place));
        (word.starts_with(['/', '~']) && !temporary) || word.starts_with("..") || word.starts_with("$HOME")
    };
    let drops = |word: &&str| {
        let text = word.to_ascii_uppercase();
        ["DROP ", "TRUNCATE ", "DELETE FROM", "FLUSHALL", "FLUSHDB"].iter().any(|statement| text.contains(statement))
    };
    let rest_has = |options: &[&str]| rest.iter().any(|word| options.contains(word));
    match *program {
        "git" if is_in("tag stash", first) && (is_in("list show", second) || rest_has(&["--list", "-l"])) => false,
        "git" => is_in("reset clean checkout restore stash push commit rebase merge switch add rm tag", first),
        "rm" | "mv" => rest.iter().any(outside),
        "xargs" => rest.iter().any(|word| is_in("kill rm", word)),
        "find" => rest_has(&["-delete"]),
        "sed" => rest.iter().any(|word| word.starts_with("-i")),
        "docker" | "podman" | "docker-compose" => {
            rest_has(&["prune"]) || is_in("rm rmi kill", first) || rest_has(&["down"]) && rest_has(&["-v", "--volumes"])
        }
        "terraform" => is_in("apply destroy", first),
        "kubectl" => is_in("apply delete", first),
        "supabase" => first == "db" && is_in("reset push", second) && !rest_has(&["--dry-run"]),
        "prisma" => first == "db" && second == "push" || first == "migrate" && is_in("reset deploy", second),
        "rails" | "rake" => rest.iter().any(|word| is_in("db:drop db:reset", word)),
        "psql" | "mysql" | "sqlite3" | "redis-cli" => rest.iter().any(drops),
        "npm" | "pnpm" | "yarn" | "cargo" | "make" | "uv" | "poetry" | "just" => {
            let task = if first == "run" { second } else { first };
            is_in("publish clean distclean add remove", task)
        }
        name => is_in(DANGERS, name),
    }
}

/// Whether code in a sentence is a command that acts in an account: more than the name of its program.
pub(crate) fn acts_in_account(code: &str) -> bool {
    let script = parse(code).unwrap_or_default();
    code.contains(' ') && script.commands().iter().any(|(command, _)| needs_account(command))
}

/// Whether a command says nothing without the credentials of an account.
fn needs_account(command: &Command) -> bool {
    let words = command.texts();
    let words = match words.as_slice() {
        ["pnpm" | "yarn", "exec" | "dlx", rest @ ..] => rest,
        ["uv" | "poetry" | "pipenv" | "bundle", "run" | "exec", rest @ ..] => rest,
        all => all,
    };
    let is_here = |word: &&&str| {
        is_in(WITHOUT_ACCOUNT, word) || ["localhost", "127.0.0.1"].iter().any(|here| word.contains(here))
    };
    if words.iter().any(|word| is_here(&word)) {
        return false;
    }
    let named = words.iter().filter(|word| !word.starts_with('-') && !is_in("sudo npx bunx exec", word));
    // `vercel@latest`
    let named: Vec<&str> = named.map(|word| word.split('@').next().unwrap_or(word)).take(3).collect();
    NEED_ACCOUNT.iter().any(|known| known.split(' ').enumerate().all(|(at, word)| named.get(at) == Some(&word)))
}

/// Commands, separated by whether they can judge work.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Commands {
    pub(crate) gates: Vec<String>,
    /// Those that are no gates.
    pub(crate) others: Vec<(String, GateFault)>,
}

impl Commands {
    pub(crate) fn judged(commands: Vec<String>) -> Self {
        let mut judged = Self::default();
        for command in commands {
            match script_gate(&command) {
                Ok(gate) => judged.gates.push(gate),
                Err(why) => judged.others.push((command, why)),
            }
        }
        judged
    }

    /// Puts the lane's worktree in place of `root`; a gate that names other files of another machine is none. Whether any
    /// gate was changed.
    pub(crate) fn relocate(&mut self, root: Option<&str>) -> bool {
        let mut any = false;
        for gate in std::mem::take(&mut self.gates) {
            match relocated(&gate, root) {
                Some(moved) => {
                    any |= moved != gate;
                    self.gates.push(moved);
                }
                None => self.others.push((gate, GateFault::ForeignPath)),
            }
        }
        any
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.gates.extend(other.gates);
        self.others.extend(other.others);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gates.is_empty() && self.others.is_empty()
    }

    pub(crate) fn warn(&self, place: impl Into<Span>, faults: &Faults<'_>) {
        let place = place.into();
        for (command, why) in &self.others {
            // `set -e` is Lanewright's own.
            why.warn(command.strip_prefix("set -e\n").unwrap_or(command), place, faults);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::statement::commands_of_cell;
    use super::*;

    #[test]
    fn gate_refuses_commands_that_cannot_judge() {
        let gates = [
            ("npm test", "npm test"),
            ("jq . a.json", "jq . a.json"),
            ("jq -e '.a' b.json", "jq -e '.a' b.json"),
            ("npm test 2>&1 | tail -20", "npm test 2>&1"),
            ("! grep -rn x src | grep -v test", "! grep -rn x src | grep -v test"),
            ("npx tsc | grep error | wc -l | xargs test 0 -eq", "npx tsc | grep error | wc -l | xargs test 0 -eq"),
            ("grep -v '#' a | grep -q b", "grep -v '#' a | grep -q b"),
            ("ls app/(a)/b.ts", "ls app/\\(a\\)/b.ts"),
            ("test $(grep -c x a | wc -l) -gt 2", "test $(grep -c x a | wc -l) -gt 2"),
            ("ls src/*.ts | wc -l", "ls src/*.ts | wc -l"),
            ("rm -rf dist && npm run build", "rm -rf dist && npm run build"),
            ("grep -q '<div>' a", "grep -q '<div>' a"),
            ("supabase test db", "supabase test db"),
            ("wrangler deploy --dry-run", "wrangler deploy --dry-run"),
            ("aws --endpoint-url=http://localhost:4566 s3 ls", "aws --endpoint-url=http://localhost:4566 s3 ls"),
            ("grep -q aws a", "grep -q aws a"),
            ("go test ./...", "go test ./..."),
            ("python -m x < a > b", "python -m x < a > b"),
            ("cat <<EOF > a\nb\nEOF\ntest -f a", "cat <<EOF > a\nb\nEOF\ntest -f a"),
            ("grep -q x <a >b", "grep -q x <a >b"),
            ("npx tsc | tail -3; test ${PIPESTATUS[0]} -eq 0", "npx tsc | tail -3; test ${PIPESTATUS[0]} -eq 0"),
        ];
        for (command, expected) in gates {
            assert_eq!(gate(command).as_deref(), Ok(expected), "{command}");
        }
        let none = [
            ("npm test || true", GateFault::CannotFail("|| true".to_owned())),
            ("npm test | tail -3; echo done", GateFault::CannotFail("; echo done".to_owned())),
            ("npm start", GateFault::NeverExits),
            ("npm test (all green)", GateFault::NotACommand),
            ("grep -rn x src | wc -l", GateFault::PrintsCount),
            ("grep -rn x src | grep -v test", GateFault::ListsRemainder),
            ("npx tsc --noEmit 2>&1 | grep -E 'error TS' | head -5", GateFault::ExpectsFailure),
            ("grep -rn x src | grep -v test | head -5", GateFault::ListsRemainder),
            ("rm -rf /tmp/x", GateFault::ChangesOnly),
            ("cd a && rm -r b", GateFault::ChangesOnly),
            ("git checkout -- a && npm test", GateFault::ChangesOnly),
            ("pkill -f next; npm test", GateFault::ChangesOnly),
            ("lsof -ti:3000 | xargs kill", GateFault::ChangesOnly),
            ("rm -rf ~/.cache && make", GateFault::ChangesOnly),
            ("make clean", GateFault::ChangesOnly),
            ("npm run clean && npm test", GateFault::ChangesOnly),
            ("find . -name '*.pyc' -delete", GateFault::ChangesOnly),
            ("sudo rm -rf /var/x", GateFault::ChangesOnly),
            ("npx supabase db reset 2>/dev/null; npm run build", GateFault::ChangesOnly),
            ("npx --yes prisma migrate reset --force", GateFault::ChangesOnly),
            ("docker compose down -v", GateFault::ChangesOnly),
            ("psql -c 'drop table x'", GateFault::ChangesOnly),
            ("stripe trigger payment_intent.succeeded", GateFault::NeedsAccount),
            ("npx --yes vercel@latest deploy --prod", GateFault::NeedsAccount),
            ("cd web && pnpm dlx wrangler deploy", GateFault::NeedsAccount),
            ("supabase db push", GateFault::NeedsAccount),
            ("gh run list | grep -q success", GateFault::NeedsAccount),
            ("uv run aws s3 ls", GateFault::NeedsAccount),
            (".\\gradlew.bat test", GateFault::Windows),
            ("powershell -Command \"x\"", GateFault::Windows),
            ("cd a && .venv/Scripts/python -m x", GateFault::Windows),
            ("test -f res://a.json", GateFault::Placeholder),
            ("jq '.a' b.json", GateFault::CannotFail("jq '.a' b.json".to_owned())),
            ("findstr /C:\"x\" a.txt", GateFault::Windows),
            ("ls a && curl <url>", GateFault::Placeholder),
            ("cat path/to/file", GateFault::Placeholder),
            ("", GateFault::NotACommand),
        ];
        for (command, why) in none {
            assert_eq!(gate(command), Err(why), "{command}");
        }
    }

    #[test]
    fn script_gate_requires_every_line() {
        assert_eq!(script_gate("cd web\nnpm test\n").as_deref(), Ok("set -e\ncd web\nnpm test"));
        assert_eq!(script_gate("npm test \\\n  --all").as_deref(), Ok("npm test \\\n  --all"));
        assert_eq!(script_gate("cat <<E | grep -q x\nx\nE").as_deref(), Ok("cat <<E | grep -q x\nx\nE"));
        assert_eq!(script_gate("make\nnpm test || true").as_deref(), Ok("set -e\nmake\nnpm test || true"));
        assert_eq!(
            script_gate("! grep -q a b\ntest -f a && test -f b # x\nnpm test").as_deref(),
            Ok("set -e\n! grep -q a b || exit 1\ntest -f a && test -f b || exit 1 # x\nnpm test")
        );
        assert_eq!(script_gate("echo a\nnpm test || true"), Err(GateFault::CannotFail("|| true".to_owned())));
    }

    #[test]
    fn command_column_cells_become_gates() {
        let cases: &[(&str, &[&str])] = &[
            ("`npm run test -- tests/unit`", &["npm run test -- tests/unit"]),
            ("pytest tests/a.py -v", &["pytest tests/a.py -v"]),
            ("`npm run build && npx tool --help`", &["npm run build && npx tool --help"]),
            ("`ruff check --all`, then `pytest -q`", &["ruff check --all", "pytest -q"]),
            ("`pytest -q` (if there is none, say so)", &[]),
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
            ("`pytest -q | tail -3`", &["pytest -q"]),
            ("`python - <<'E'\n    print(1)\n    E`", &["python - <<'E'\nprint(1)\nE"]),
            ("`pytest a\n    b`", &["pytest a b"]),
            ("`python -c \"a\n    b\"`", &["python -c \"a\nb\""]),
        ];
        for (text, commands) in cases {
            assert_eq!(Commands::judged(commands_of_cell(text)).gates, *commands, "{text}");
        }
    }
}
