//! Lines that are commands, and lines that are none.

use super::*;

#[test]
fn ambiguous_plain_line_is_not_a_command() {
    let commands = [
        "cargo test --lib ledger",
        "npm test",
        "npm test -- --run auth",
        "make",
        "make check",
        "test -f src/a.gd",
        "grep -q \"class A has\" src/a.gd",
        "! grep -q 'x' src/a.gd",
        "go test ./...",
        "cd web && npx tsc --noEmit",
        "CI=1 yarn test",
        "./gradlew compileJava",
        "scripts/check.sh --fast",
        ".venv/bin/python -m pytest",
        "cmake -B build -DCMAKE_BUILD_TYPE=Release",
        "ls src/a.gd && ls src/b.gd",
        "docker compose config",
    ];
    for line in commands {
        assert!(is_plain_command(line), "{line}");
    }
    let prose = [
        "cmake -B build succeeds without errors",
        "npm test passes",
        "make sure that it works",
        "find the button",
        "test that login works",
        "go to /login",
        "All tests pass",
        "Run `npm test`",
        "cargo test (all green)",
        "pytest tests/a.py — all pass",
        "npm run dev",
        "vite --watch",
        "node starts",
        "Import runs",
        "grep 'unclosed",
        "git status is clean",
        "cat shows two lines",
        "npm run build, then look",
        "",
        "src/a.rs",
        "echo hello world",
        "curl -X POST localhost:3000/refresh",
        "docs/readme.md",
    ];
    for line in prose {
        assert!(!is_plain_command(line), "{line}");
    }
}

#[test]
fn marked_text_is_a_command_unless_prose() {
    let commands = [
        "npm test",
        "foo --bar",
        "test -f a && test -f b",
        "cd '/some where' && grep -n x y",
        "./run",
        "make",
        "(cd web && npm test)",
        "bash -c 'x'",
        "$HOME/bin/x --y",
        "# first\nnpm test",
        "mytool check src/",
    ];
    for text in commands {
        assert!(may_be_command(text), "{text}");
    }
    let none = [
        "",
        "MISSING — no test yet",
        "MISSING",
        "TODO: write one",
        "N/A",
        "none",
        "Manual check in the browser",
        "All tests pass",
        "build succeeds",
        "src/a.rs",
        "GameState.current",
        "# only a remark",
        "手で確認",
        "look at the page and click through",
    ];
    for text in none {
        assert!(!may_be_command(text), "{text}");
    }
}

#[test]
fn remark_after_command_is_cut_off() {
    let cases = [
        ("npx tsc --noEmit — no errors", ("npx tsc --noEmit", "no errors")),
        ("grep ' — ' a.md", ("grep ' — ' a.md", "")),
        ("npm test -- --run", ("npm test -- --run", "")),
        ("pytest -v -- all tests should pass", ("pytest -v", "all tests should pass")),
        ("npx vitest run -- src/a.test.ts -- 5 tests pass", ("npx vitest run -- src/a.test.ts", "5 tests pass")),
        ("git diff -- src/a", ("git diff -- src/a", "")),
    ];
    for (line, parts) in cases {
        assert_eq!(without_remark(line), parts, "{line}");
    }
}

#[test]
fn unknown_program_call_is_not_prose() {
    let calls = [
        "forge test",
        "dune build",
        "lake build",
        "bats tests",
        "mkdocs build",
        "Rscript tests.R",
        "nix build",
        "gleam test",
        "alembic upgrade head",
    ];
    for line in calls {
        assert!(may_be_call(line) || may_be_command(line), "{line}");
    }
    let prose = [
        "build succeeds",
        "Run tests",
        "Code review",
        "look at the page",
        "manual inspection",
        "check logs.",
        "see above",
        "none needed",
        "forge test — all pass",
        "forge",
        "type check, then lint",
        "open every page in turn",
        "",
        "\\",
    ];
    for line in prose {
        assert!(!may_be_call(line) && !may_be_command(line), "{line}");
    }
}

#[test]
fn verdicts_and_check_boxes_are_not_commands() {
    for line in [
        "grep \"x\" file confirms export",
        "grep x a OR grep y a confirms integration",
        "npm test passes",
        "[ ] Server starts",
        "[ -f a ] is there",
        "cargo test --lib shows it",
    ] {
        assert!(!is_plain_command(line) && !may_be_command(line), "{line}");
    }
    for line in
        ["grep -n returns a.rs", "[ -f a ] && [ -f b ]", "[ -f a ]; ls a", "pytest -k returns", "test -f a || echo OR"]
    {
        assert!(may_be_command(line), "{line}");
    }
}

#[test]
fn overlong_line_is_not_a_command() {
    for part in ["a -- b ", "node -e 'x — y ", "a — b ' ", "npx npm ", "a & b ", "[ "] {
        for length in [2_000, 8_000, 64_000, 1_000_000] {
            let line = part.repeat(length / part.len());
            let (command, _) = without_remark(&line);
            assert!(length < 64_000 || !may_be_command(&line), "{part}");
            let _ = (may_be_call(command), is_plain_command(command), never_exits(&line));
        }
    }
}
