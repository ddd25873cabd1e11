use std::collections::BTreeMap;

use super::*;

fn gates(files: &[(&str, &str)]) -> RepositoryGates {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    repository_gates(&|name| files.get(name).map(|text| Ok((*text).to_owned())))
}

fn commands(files: &[(&str, &str)]) -> Vec<String> {
    let found = gates(files);
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    found.gates.into_iter().map(|gate| gate.command).collect()
}

const PACKAGE: &str =
    r#"{"scripts": {"build": "tsc -b", "test": "vitest", "lint": "eslint .", "check-types": "tsc --noEmit"}}"#;

#[test]
fn scripts_run_by_the_package_manager_of_the_lock_file() {
    assert_eq!(
        commands(&[("package.json", PACKAGE)]),
        ["npm run lint", "npm run check-types", "npm test", "npm run build"]
    );
    for (lock, test, lint) in [
        ("package-lock.json", "npm test", "npm run lint"),
        ("pnpm-lock.yaml", "pnpm test", "pnpm run lint"),
        ("yarn.lock", "yarn test", "yarn run lint"),
        ("bun.lock", "bun run test", "bun run lint"),
        ("bun.lockb", "bun run test", "bun run lint"),
    ] {
        let found = commands(&[("package.json", PACKAGE), (lock, "")]);
        assert!(found.contains(&test.to_owned()) && found.contains(&lint.to_owned()), "{lock}: {found:?}");
    }
    let named = r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "jest"}}"#;
    assert_eq!(commands(&[("package.json", named)]), ["pnpm test"]);
    assert_eq!(commands(&[("package.json", &named.replace("pnpm", "rm -rf x;"))]), ["npm test"]);
}

#[test]
fn scripts_that_cannot_judge_are_left_out() {
    for script in [
        "echo \\\"Error: no test specified\\\" && exit 1",
        "jest --watch",
        "react-scripts test",
        "ng test",
        "eslint . --fix",
        "eslint . --fix=true",
        "prettier -w .",
        "tsc -w",
        "npm run loop",
        "npm run lint && npm run fixing",
        "jest || true",
        "echo none",
        "",
    ] {
        let others = r#""fixing": "eslint --fix .", "loop": "npm run loop""#;
        let package = format!(r#"{{"scripts": {{"test": "{script}", "lint": 1, {others}}}}}"#);
        assert_eq!(commands(&[("package.json", &package)]), [""; 0], "{script}");
    }
    assert_eq!(commands(&[("package.json", r#"{"scripts": {"test": "CI=true react-scripts test"}}"#)]), ["npm test"]);
    let linked = r#"{"scripts": {"test": "npm run unit && jest -w 2", "unit": "vitest run"}}"#;
    assert_eq!(commands(&[("package.json", linked)]), ["npm test"]);
    assert_eq!(commands(&[("package.json", r#"{"scripts": ["test"]}"#), ("Cargo.toml", "")]), [""; 0]);
}

#[test]
fn languages_are_tested_by_their_usual_commands() {
    assert_eq!(commands(&[("Cargo.toml", "[package]\nname = 'a'")]), ["cargo test"]);
    assert_eq!(commands(&[("Cargo.toml", "[workspace]")]), ["cargo test"]);
    assert_eq!(commands(&[("Cargo.toml", "[package]\n[workspace]")]), ["cargo test --workspace"]);
    assert_eq!(commands(&[("go.mod", "module a")]), ["go test ./..."]);
}

#[test]
fn python_tools_count_where_they_are_configured() {
    let project = |text: &str| commands(&[("pyproject.toml", text)]);
    assert_eq!(project("[project]\nname = 'pytest'\n"), [""; 0], "a name is no dependency");
    assert_eq!(project("[project]\ndependencies = ['pytest-html']\n"), [""; 0]);
    assert_eq!(project("[tool.ruff]\nline-length = 100\n[tool.pytest.ini_options]\n"), ["ruff check", "pytest"]);
    for text in [
        "[dependency-groups]\ndev = ['pytest>=8']\n",
        "[project.optional-dependencies]\ntest = ['pytest']\n",
        "[tool.poetry.group.dev.dependencies]\npytest = '^8'\n",
        "[tool.uv]\ndev-dependencies = ['pytest']\n",
    ] {
        assert_eq!(project(text), ["pytest"], "{text}");
    }
    assert_eq!(commands(&[("pytest.ini", ""), ("uv.lock", "")]), ["uv run pytest"]);
    assert_eq!(commands(&[("pytest.ini", ""), ("poetry.lock", "")]), ["poetry run pytest"]);
    assert_eq!(commands(&[("tox.ini", "[tox]\n[testenv]\n")]), ["tox"]);
    assert_eq!(commands(&[("tox.ini", "[tox]\n[pytest]\n")]), ["pytest"], "tox would run it, too");
    assert_eq!(commands(&[("ruff.toml", "")]), ["ruff check"]);
}

#[test]
fn targets_of_task_runners_take_the_place_of_commands() {
    let make =
        "CHECK := a\ntest: CFLAGS = x\nbuild test:\n\tcargo test\nlint : ; ruff check\ncheck:\n\n.PHONY: check\n";
    let found = commands(&[("Makefile", make), ("Cargo.toml", "[package]"), ("package.json", PACKAGE)]);
    assert_eq!(found, ["make lint", "make test", "npm run check-types", "npm run build"]);
    assert_eq!(commands(&[("Makefile", "test := x\ntest = a:b\n\ttest: y\n# test: z\n")]), [""; 0]);
    let idle = "test:\n\t@echo no tests\nlint:\n\t-ruff check\ncheck:\n\t@echo begins\n\t@make all\n";
    assert_eq!(commands(&[("Makefile", idle)]), ["make check"]);
    let just = "test *args:\n  cargo test {{args}}\n@lint mode='a:b':\n  x\ncheck name:\n  y\n";
    assert_eq!(commands(&[("justfile", just), ("go.mod", "")]), ["just lint", "just test"]);
    assert_eq!(commands(&[("justfile", "test := 'x'\n  test:\n"), ("go.mod", "")]), ["go test ./..."]);
    assert_eq!(
        commands(&[("justfile", just), ("Makefile", make.replace("check:\n", "check: a\n").as_str())]),
        ["just lint", "just test", "make check"]
    );
}

#[test]
fn sources_are_named() {
    let files = [("package.json", PACKAGE), ("Makefile", "test:\n\tx\n"), ("go.mod", "")];
    let sources: Vec<String> = gates(&files).gates.into_iter().map(|gate| gate.source).collect();
    assert_eq!(sources[..2], ["`test` of Makefile", "`scripts.lint` of package.json"]);
}

#[test]
fn damaged_manifests_are_warnings_with_their_place() {
    let files = [("package.json", "{\n  \"scripts\": {,\n"), ("Cargo.toml", "[package]\nname = \n"), ("go.mod", "")];
    let found = gates(&files);
    assert_eq!(found.gates.iter().map(|gate| gate.command.as_str()).collect::<Vec<_>>(), ["go test ./..."]);
    let places: Vec<_> = found.faults.iter().map(|fault| (fault.path.as_str(), fault.line, fault.is_error())).collect();
    assert_eq!(places, [("package.json", 2, false), ("Cargo.toml", 2, false)]);
    let refused = repository_gates(&|name| (name == "package.json").then(|| Err("not UTF-8".to_owned())));
    assert_eq!((refused.gates.len(), refused.faults.len()), (0, 1));
    let marked = format!("\u{feff}{PACKAGE}");
    assert_eq!(commands(&[("package.json", &marked)]).len(), 4);
}
