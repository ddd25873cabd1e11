//! What no single output of a real tool shows: noise, mixtures and sizes.

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn diagnosed(output: &str) -> Diagnosis {
    diagnose(output, &[Path::new("/repo")])
}

fn files(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.findings.iter().filter_map(|finding| finding.file.as_deref()).collect()
}

#[test]
fn harmless_words_are_not_failures() {
    let harmless = [
        "test errors::compilation_error_is_reported ... ok",
        "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        "running the error: failed tests",
        "12 |     error!(\"src/a.c:3:5: error: x\");",
        "        log.error(\"App.java:3: error: x\");",
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0",
        "[INFO] There are no test failures",
        "[WARNING] /repo/src/main/java/app/Ledger.java:[3,17] [deprecation] old() has been deprecated",
        "    ✓ a failed error is shown (2 ms)",
        "Tests:       3 passed, 3 total",
        "--- PASS: TestErrorFailed (0.00s)",
        "tests/test_errors.py::test_failed PASSED                            [100%]",
        "============================== 3 passed in 0.01s ===============================",
        "src/a.c:3:5: warning: unused variable ‘x’ [-Wunused-variable]",
        "src/a.c:3:5: note: declared here",
        "warning: `ledger` (lib) generated 6 warnings",
        "0 errors, 0 warnings",
        "# fail 0",
        "100% tests passed, 0 tests failed out of 3",
        "make: Nothing to be done for 'all'.",
        "Error handling was improved in 1.2: see CHANGELOG.md:12",
        "    at app.Ledger.total(Ledger.java:7)",
        "at 12:30:15: connected",
    ];
    for line in harmless {
        assert_eq!(diagnosed(line), diagnosed(""), "{line}");
    }
    assert_eq!(diagnosed(&harmless.join("\n")), diagnosed(""));
}

#[test]
fn compilation_outranks_tests_outrank_style() {
    let style = "would reformat /repo/a.py\n";
    let test = "FAILED tests/test_a.py::test_a - assert 1 == 2\n";
    let compilation = "src/a.ts(1,25): error TS2307: Cannot find module './b'.\n";
    let class = |parts: &[&str]| diagnosed(&parts.concat()).class;
    assert_eq!(class(&[style]), FailureClass::Style);
    assert_eq!(class(&[style, test]), FailureClass::Test);
    assert_eq!(class(&[style, test, compilation]), FailureClass::Compilation);
    let mixed = diagnosed(&[style, compilation, test].concat());
    assert_eq!((mixed.tool.as_deref(), mixed.count, files(&mixed)), (Some("tsc"), 1, vec!["src/a.ts"]));
}

#[test]
fn captured_output_is_ignored() {
    let printed = "src/fake.c:3:5: error: printed\nfake.ts(1,2): error TS1: printed\n";
    let tests = format!("running 1 test\n{printed}test result: FAILED. 0 passed; 1 failed; 0 ignored\n");
    assert_eq!(diagnosed(&tests).class, FailureClass::Test);
    let then_built = format!("{tests}src/real.c:3:5: error: real\n");
    assert_eq!(files(&diagnosed(&then_built)), ["src/real.c"]);
}

#[test]
fn windows_paths_and_line_ends_are_read() {
    let output =
        "Build\r\nC:\\repo\\src\\a.ts(3,5): error TS2304: Cannot find name 'x'.\r\n\r\n./b.ts(1,1): error TS1: y\r\n";
    let diagnosis = diagnosed(output);
    assert_eq!(files(&diagnosis), [r"C:\repo\src\a.ts", "b.ts"]);
    assert_eq!(diagnosis.findings[0].message, "Cannot find name 'x'.");
}

#[test]
fn blank_line_ends_scope_of_heading() {
    let lint = |between: &str| diagnosed(&format!("/repo/src/a.ts\n{between}  1:2  error  Missing semicolon  semi\n"));
    assert_eq!(files(&lint("")), ["src/a.ts"]);
    assert_eq!(lint("\n"), diagnosed(""));
}

#[test]
fn generic_rules_apply_only_without_known_tool() {
    let zig = "src/main.zig:4:12: error: expected type 'u8'\n";
    let alone = diagnosed(zig);
    assert_eq!((alone.class, alone.tool.as_deref()), (FailureClass::Compilation, Some("other")));
    let lint = diagnosed("scripts/check.rb:7: comment is too long\n");
    assert_eq!((lint.class, files(&lint)), (FailureClass::Unknown, vec!["scripts/check.rb"]));
    let beside = diagnosed(&format!("{zig}test result: FAILED. 0 passed; 1 failed; 0 ignored\n"));
    assert_eq!((beside.class, beside.findings), (FailureClass::Test, vec![]));
}

#[test]
fn diagnose_reads_both_ends_of_long_output() {
    let noise = "Compiling something that takes long\n".repeat(150_000);
    let error = |file: &str| format!("{file}:1:1: error: x\n");
    let output = [error("first.c"), noise.clone(), error("middle.c"), noise, error("last.c")].concat();
    assert!(output.len() > 10_000_000);
    assert_eq!(files(&diagnosed(&output)), ["first.c", "last.c"]);
}

#[test]
fn many_unfinished_messages_are_read_in_bounded_time() {
    let wall = "error: x\nE   x\npanic: x\n".repeat(8_000);
    assert_eq!(files(&diagnosed(&format!("{wall}\nsrc/a.c:1:1: error: x\n"))), ["src/a.c"]);
}

#[test]
fn seen_pattern_matches_at_other_end_of_output() {
    let noise = "  2:1  info  nothing  x\n".repeat(60_000);
    let output = format!(
        "/repo/src/a.ts\n  1:1  warning  Unexpected console  no-console\n\n{noise}\nESLint found too many warnings (maximum: 0).\n"
    );
    assert_eq!(files(&diagnosed(&output)), ["src/a.ts"]);
}

#[test]
fn findings_beyond_limit_are_only_counted() {
    let output: String = (1..=70).map(|line| format!("a.py:{line}:1: E501 line too long\n")).collect();
    let diagnosis = diagnosed(&format!("{output}{output}"));
    assert_eq!((diagnosis.findings.len(), diagnosis.count), (MAX_FINDINGS, 70));
    let stated = diagnosed("✖ 120 problems (118 errors, 2 warnings)\n");
    assert_eq!((stated.class, stated.count), (FailureClass::Style, 118));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn diagnose_never_panics(parts in proptest::collection::vec(part(), 0..12)) {
        let diagnosis = diagnosed(&parts.join("\n"));
        prop_assert!(diagnosis.findings.len() <= diagnosis.count);
    }
}

/// Pieces of real output, torn and mixed.
fn part() -> impl Strategy<Value = String> {
    let known = [
        "error[E0308]: mismatched types",
        "  --> src/lib.rs:1:2",
        "running 1 test",
        "---- a stdout ----",
        "",
        "\u{1b}[31m",
        "thread 'a' panicked at src/lib.rs:99999999999:1:",
        "E   assert 1",
        "a.py:3: AssertionError",
        "/repo/src/a.ts",
        "  1:2  error  x  y",
        "  ● a › b",
        "--- FAIL: TestA",
        "    a_test.go:1: ä",
        "1 error generated.",
        "=====",
    ];
    prop_oneof![proptest::sample::select(known.to_vec()).prop_map(str::to_owned), "\\PC{0,40}", ".{0,20}"]
}

#[test]
fn worktree_files_become_relative() {
    let roots = [Path::new("/repo/slots/01"), Path::new("/repo/run/lane/code")];
    let table = [
        ("/repo/slots/01/src/lib.rs", "src/lib.rs"),
        ("/repo/run/lane/code/src/lib.rs", "src/lib.rs"),
        ("file:///repo/slots/01/a.mjs", "a.mjs"),
        ("/repo/slots/011/src/lib.rs", "/repo/slots/011/src/lib.rs"),
        ("/usr/include/stdio.h", "/usr/include/stdio.h"),
        ("./src/a.go", "src/a.go"),
        ("././/a.go", "a.go"),
        ("../other/a.c", "../other/a.c"),
        (r"C:\repo\src\a.cs", r"C:\repo\src\a.cs"),
        (".\\a.cs", ".\\a.cs"),
    ];
    for (file, name) in table {
        assert_eq!(relative_name(file, &roots), name);
    }
}
