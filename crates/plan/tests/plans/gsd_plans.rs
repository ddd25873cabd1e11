//! GSD phases as people write them: every directory of `fixtures/plans/gsd` is one.
//!
//! What is read stands in a file `expected` beside the plans; `UPDATE_EXPECTED=1` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_model::{CommandLine, Lane, Plan, user_setup};
use lanewright_plan::{PlanFormat, ReadOptions, Reading, Source, SourceFile, decode, is_gsd_plan_name, read};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/plans/gsd")
}

fn names_in(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn runner(name: &str) -> Option<CommandLine> {
    (name == "agent").then(|| CommandLine::Arguments(vec!["agent".to_owned()]))
}

/// Reads plans given as paths with their texts.
fn read_plans(files: &[(String, String)], beside: &[String], options: ReadOptions<'_>) -> Reading {
    let files: Vec<SourceFile<'_>> = files.iter().map(|(path, text)| SourceFile { path, text }).collect();
    let fallbacks = lanewright_plan::Fallbacks { runner: Some("agent"), ..Default::default() };
    let source =
        Source { files: &files, beside, format: Some(PlanFormat::Gsd), fallbacks, options, ..Source::default() };
    read(&source, &|_| Err("no file".to_owned()), &runner)
}

fn read_phase(phase: &str, options: ReadOptions<'_>) -> Reading {
    let directory = fixtures().join(phase);
    let names = names_in(&directory);
    let file = |name: &String| (format!("{phase}/{name}"), fs::read_to_string(directory.join(name)).unwrap());
    let files: Vec<(String, String)> = names.iter().filter(|name| is_gsd_plan_name(name)).map(file).collect();
    read_plans(&files, &names, options)
}

fn read_text(text: &str) -> Reading {
    read_plans(&[("05-web/05-01-PLAN.md".to_owned(), text.to_owned())], &[], ReadOptions::default())
}

fn good(reading: Reading) -> Plan {
    let shown: String = reading.diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
    reading.plan.unwrap_or_else(|| panic!("{shown}"))
}

fn lane<'a>(plan: &'a Plan, id: &str) -> &'a Lane {
    plan.lanes.iter().find(|lane| lane.id.as_str() == id).unwrap()
}

/// Everything of a plan but its prompts.
fn shown(reading: &Reading) -> String {
    let mut text = String::new();
    if let Some(plan) = &reading.plan {
        writeln!(text, "phase {}: {}", plan.phase, plan.title.as_deref().unwrap_or("-")).unwrap();
        for lane in &plan.lanes {
            show_lane(plan, lane, &mut text);
        }
        for &(first, then) in &plan.sequences {
            writeln!(text, "{} before {}", plan.lane(first).id, plan.lane(then).id).unwrap();
        }
        for skipped in &plan.skipped {
            writeln!(text, "skipped {}: {}", skipped.lane, skipped.reason).unwrap();
        }
    }
    for diagnostic in &reading.diagnostics {
        writeln!(text, "{diagnostic}").unwrap();
    }
    text
}

fn show_lane(plan: &Plan, lane: &Lane, text: &mut String) {
    let after: Vec<&str> = lane.depends_on.iter().map(|&on| plan.lane(on).id.as_str()).collect();
    writeln!(text, "lane {} after {after:?}: {}", lane.id, lane.name.as_deref().unwrap_or("-")).unwrap();
    writeln!(text, "  owns {:?} {:?}", lane.ownership, lane.owns).unwrap();
    if !lane.approval.is_empty() {
        writeln!(text, "  approval {:?}", lane.approval).unwrap();
    }
    if !lane.must_haves.is_empty() {
        writeln!(text, "  must {}", serde_json::to_string(&lane.must_haves).unwrap()).unwrap();
    }
    for task in &lane.agents[0].tasks {
        writeln!(text, "  task {} {}: {}", task.id, task.kind, task.name.as_deref().unwrap_or("-")).unwrap();
        let details = [
            ("files", task.files.clone()),
            ("verify", task.verify.iter().map(ToString::to_string).collect()),
            ("criteria", task.acceptance_criteria.clone()),
        ];
        for (what, list) in details.into_iter().filter(|(_, list)| !list.is_empty()) {
            writeln!(text, "    {what} {list:?}").unwrap();
        }
    }
}

#[test]
fn gsd_phases_match_expected_files() {
    let mut count = 0;
    for phase in names_in(&fixtures()) {
        count += 1;
        let reading = read_phase(&phase, ReadOptions::default());
        assert_eq!(reading.plan.is_none(), reading.diagnostics.iter().any(|fault| fault.is_error()), "{phase}");
        let beside = fixtures().join(&phase).join("expected");
        if std::env::var("UPDATE_EXPECTED").is_ok_and(|wish| wish == "1") {
            fs::write(&beside, shown(&reading)).unwrap();
        }
        assert_eq!(shown(&reading), fs::read_to_string(&beside).unwrap_or_default(), "{phase}");
    }
    assert!(count >= 14, "there are too few phases");
}

fn prompts(reading: Reading) -> Vec<String> {
    let plan = good(reading);
    plan.lanes.iter().flat_map(|lane| &lane.agents[0].tasks).map(|task| task.prompt.clone()).collect()
}

#[test]
fn last_task_prompt_gets_the_closing_text() {
    let plan = good(read_phase("01-ledger", ReadOptions::default()));
    let tasks = &lane(&plan, "01-01").agents[0].tasks;
    for task in tasks {
        for told in [
            "Lay the tables",
            "@src/main.rs",
            "service: bank",
            "env_vars: [BANK_KEY]",
            "Do not change `.planning/STATE.md`",
        ] {
            assert!(task.prompt.contains(told), "{told} is missing:\n{}", task.prompt);
        }
    }
    let (first, last) = (&tasks[0].prompt, &tasks[1].prompt);
    for own in [
        "whole cents && never fractions",
        "docs/bookings.md",
        "The names read well.",
        "test -s src/ledger/schema.sql && grep",
    ] {
        assert!(first.contains(own) && !last.contains(own), "{own}");
    }
    let closing = ["The whole ledger builds.", "Nothing else changed", "01-01-SUMMARY.md", "A booking has two sides"];
    for told in closing.into_iter().chain(["Work test first", "Loading an empty file", "src/ledger/tests.rs (new)"]) {
        assert!(last.contains(told) && !first.contains(told), "{told}");
    }
    assert!(!first.contains("files_modified") && !first.contains("<task") && !first.contains("</"), "{first}");
}

#[test]
fn task_text_is_never_lost() {
    let tasks = prompts(read_phase("06-tasks", ReadOptions::default()));
    let page = &tasks[0];
    for told in ["First the page", "<name>Not a task</name>", "<b>bold</b> && <i>more</i>", "owner: web", "npm test"] {
        assert!(page.contains(told), "{told}:\n{page}");
    }
    assert!(tasks[1].contains("Work test first"));
    for told in ["of the type `research`", "Without a name.", "Kept.", "Loose words."] {
        assert!(tasks[2].contains(told), "{told}");
    }
    assert!(tasks[3].contains("Ends where the next begins.") && !tasks[3].contains("Write the last."));
    assert!(tasks[4].contains("Write the last.") && tasks[4].contains("At the end."));
    let headings = prompts(read_phase("07-headings", ReadOptions::default()));
    assert!(headings[0].contains("Write the reader.") && headings[0].contains("# Task 9"));
    assert!(headings[1].contains("A step of it.") && headings[1].contains("All of it."));
    assert!(headings.iter().all(|prompt| prompt.contains("Work of plan 01.")));
    let places = prompts(read_phase("02-places", ReadOptions::default()));
    assert!(places[1].contains("Come late.") && !places[1].contains("depends_on"), "{}", places[1]);
    assert!(places[2].contains("All is well.") && places[2].contains("Said at the top"));
    assert!(places[3].contains("Stand in a fence.") && !places[3].contains("```yaml"), "{}", places[3]);
    assert!(places[4].contains("Indented, and without any task."));
}

#[test]
fn checkpoint_prompt_is_plain_text() {
    let tasks = prompts(read_phase("08-people", ReadOptions::default()));
    let look = "Look\n\nWhat was built:\n\nA page with a table.\n\nHow to verify:\n\n1. Open the page.\n\
                2. Look at the table.\n\nHow to verify:\n\nnpm test\n\nHow to answer:\n\nSay \"approved\".";
    assert_eq!(tasks[1], look);
    let decide = "Which colour?\n\nDecide:\n\nWhich colour?\n\nContext:\n\nThe table is grey.\n\nOptions:\n\n\
                  - blue: Blue\n  For: Calm\n  Against: Cold\n\n- red: Red\n\nHow to answer:\n\nName one.";
    assert_eq!(tasks[2], decide);
    assert!(tasks[0].contains("The page is seen."), "the only task of an agent is its last");
}

const SMALL: &str = "---\nphase: 05-web\nplan: 01\nwave: 1\ndepends_on: []\nfiles_modified:\n  - src/a.rs\n---\n\n\
                     <objective>\nBuild it.\n</objective>\n\n<task type=\"auto\">\n  <name>A</name>\n  <action>\n\
                     Write a.\n  </action>\n  <verify>\n    <automated>test -f src/a.rs</automated>\n  </verify>\n</task>\n";

#[test]
fn gsd_ignores_line_ends_bom_and_nul() {
    let plan = good(read_text(SMALL));
    let crlf = SMALL.replace('\n', "\r\n");
    assert_eq!(good(read_text(&crlf)), plan);
    let marked = [b"\xef\xbb\xbf", SMALL.as_bytes()].concat();
    assert_eq!(good(read_text(decode("p", &marked).unwrap())), plan);
    let nul = read_text(&SMALL.replace("Write a.", "Write\0 a."));
    let place = nul.diagnostics.iter().map(|fault| (fault.line, fault.column)).collect::<Vec<_>>();
    assert_eq!(place, [(17, Some(6))]);
    assert_eq!(good(nul), plan);
    let in_front = good(read_text(&SMALL.replace("- src/a.rs", "- src/\0a.rs\n  - src/a.rs")));
    assert!(lane(&in_front, "05-01").owns.iter().all(|glob| !glob.contains('\0')));
}

#[test]
fn plan_with_summary_is_skipped_unless_redo() {
    let lanes =
        |options| good(read_phase("10-done", options)).lanes.iter().map(|lane| lane.id.to_string()).collect::<Vec<_>>();
    assert_eq!(lanes(ReadOptions::default()), ["10-03"]);
    assert_eq!(lanes(ReadOptions { redo: true, ..ReadOptions::default() }), ["10-01", "10-02", "10-03"]);
    let unfinished = ["10-02".to_owned()];
    let again = good(read_phase("10-done", ReadOptions { unfinished: &unfinished, ..ReadOptions::default() }));
    assert_eq!(again.lanes.len(), 2);
    assert_eq!(again.lanes[1].depends_on.len(), 1, "one that runs again is waited for");
}

#[test]
fn all_done_phase_suggests_redo() {
    let files = [("05-web/05-01-PLAN.md".to_owned(), SMALL.to_owned())];
    for summary in ["05-01-SUMMARY.md", "05-01-Summary.md"] {
        let reading = read_plans(&files, &[summary.to_owned()], ReadOptions::default());
        assert!(reading.plan.is_none());
        let fault = &reading.diagnostics[0];
        assert!(fault.message.contains(summary) && fault.help.as_ref().unwrap().contains("--redo"), "{fault}");
    }
    let named = [("05-web/05-PLAN-01.md".to_owned(), SMALL.to_owned())];
    assert!(read_plans(&named, &["05-01-SUMMARY.md".to_owned()], ReadOptions::default()).plan.is_none());
    assert!(read_plans(&named, &["05-SUMMARY-01.md".to_owned()], ReadOptions::default()).plan.is_none());
    let bare = [("fix/PLAN.md".to_owned(), SMALL.to_owned())];
    assert!(read_plans(&bare, &["SUMMARY.md".to_owned()], ReadOptions::default()).plan.is_none());
    assert!(read_plans(&bare, &["05-01-SUMMARY.md".to_owned()], ReadOptions::default()).plan.is_some());
}

#[test]
fn single_plan_warns_about_missing_dependencies() {
    let text = SMALL.replace("depends_on: []", "depends_on: [05-02, 05-03, 02, 04-01]").replace("wave: 1", "wave: 4");
    let files = [("05-web/05-01-PLAN.md".to_owned(), text)];
    let beside = ["05-02-PLAN.md", "05-02-SUMMARY.md", "05-03-PLAN.md"].map(str::to_owned);
    let reading = read_plans(&files, &beside, ReadOptions::default());
    let told: Vec<&str> = reading.diagnostics.iter().map(|fault| fault.message.as_str()).collect();
    let expected =
        ["the plan `05-03` is not part of what is run, and has no SUMMARY", "the plan `04-01` is not in this phase"];
    assert_eq!(told, expected);
    assert!(good(reading).lanes[0].depends_on.is_empty());
}

#[test]
fn phase_is_named_after_directory_or_header() {
    let phase = |path: &str, text: &str| {
        let plan = good(read_plans(&[(path.to_owned(), text.to_owned())], &[], ReadOptions::default()));
        plan.phase.to_string()
    };
    assert_eq!(phase("/r/.planning/phases/05-web/05-01-PLAN.md", SMALL), "05-web");
    assert_eq!(phase("05-01-PLAN.md", SMALL), "05-web");
    assert_eq!(phase("05-01-PLAN.md", "Do it."), "phase");
    assert_eq!(phase(&format!("07-{}/07-01-PLAN.md", "long-name-".repeat(30)), SMALL).len(), 62);
    assert_eq!(phase("日本/05-01-PLAN.md", &SMALL.replace("05-web", "07.1")), "07.1");
}

/// The format that is told from a file's content.
fn format_of(path: &str, text: &str) -> Option<PlanFormat> {
    let source = Source { files: &[SourceFile { path, text }], ..Source::default() };
    read(&source, &|_| Err(String::new()), &|_| None).format
}

#[test]
fn gsd_is_detected_by_content() {
    let task = "<objective>\nx\n</objective>\n<task>\n<action>y</action>\n</task>\n";
    let headings = "# Fix\n\n## Task 1: a\n\nDo a.\n\n## Task 2: b\n\nDo b.\n";
    let plans = [
        ("05-01-PLAN.md", SMALL),
        ("anything.md", SMALL),
        ("-", SMALL),
        ("work.md", task),
        ("work.md", headings),
        ("05-01-PLAN.md", "# Plan 05-01: Only prose\n\n## Context\n\nDo it.\n"),
        (".planning/fix/PLAN.md", "# Fix\n\nDo it.\n"),
        ("a.md", "# P\n\n```yaml\nphase: 5\nplan: 1\nwave: 1\n```\n\nDo it.\n"),
    ];
    for (path, text) in plans {
        assert_eq!(format_of(path, text), Some(PlanFormat::Gsd), "{path}: {text}");
    }
    let summary = "---\nphase: 05-web\nplan: 01\nsubsystem: web\nduration: 5min\ncompleted: 2026-01-01\n---\n# Done\n";
    let others = [
        ("05-01-SUMMARY.md", SMALL),
        ("done.md", summary),
        ("ROADMAP.md", "# Roadmap\n\n- [ ] Phase 1\n"),
        ("README.md", headings),
        ("05-CONTEXT.md", task),
        ("detailed-plan.md", task),
        ("notes.md", "# Notes\n\n```xml\n<task type=\"auto\">\n</task>\n```\n"),
        ("PLAN.md", "# Our plans\n\nTo be the best.\n"),
        ("plan.toml", "phase = \"P1\"\nprompt = \"\"\"\n<task type=\"auto\">\n\"\"\"\n"),
        ("plan.yaml", "---\nphase: P1\nwave: 1\nlane:\n  - id: A\n"),
        ("empty.md", ""),
    ];
    for (path, text) in others {
        assert_ne!(format_of(path, text), Some(PlanFormat::Gsd), "{path}: {text}");
    }
}

/// Texts that are far too large, too deep or never closed.
fn monsters() -> Vec<(&'static str, String)> {
    let repeated = |text: &str, bytes: usize| text.repeat(bytes / text.len());
    let size = 1 << 18;
    vec![
        ("tasks", repeated("<task>\n", size)),
        ("actions", format!("<task>\n{}", repeated("<action>\n", size))),
        ("one line", repeated("<task><name>", size)),
        ("names in a line", format!("<task>{}", repeated("<read_first>x</read_first>", size))),
        ("fences", repeated("```a\n", size)),
        ("longer and longer fences", (3..1_500).map(|length| format!("{}x\n", "`".repeat(length))).collect()),
        ("quotes", repeated("<task name=\"\n", size)),
        ("headings", repeated("## Task 1\n", size)),
        ("rulers", repeated("---\na: 1\n", size)),
        ("front matter", format!("---\n{}", repeated("wave: 1\n", size))),
        ("a field", format!("---\nwave: {}\n---\nx", "9".repeat(size))),
        ("brackets", format!("---\nwave: 1\ndepends_on: {}\n---\nx", "[".repeat(100_000))),
        ("anchors", format!("---\nwave: 1\na: &a [x]\n{}---\nx", repeated("b: [*a, *a]\n", 100_000))),
        ("bullets", format!("---\nwave: 1\nfiles_modified:\n{}---\nx", repeated("  - \"\\q\"\n", 200_000))),
        ("files", format!("<task><files>{}</files></task>", repeated("a/b.rs, ", 200_000))),
        ("commands", format!("<task>\n<verify>\n{}</verify>\n</task>", repeated("test -f a\n", size))),
        ("automated", format!("<task>\n<verify>\n{}</verify>\n</task>", repeated("<automated>", size))),
        ("options", format!("<task type=\"checkpoint:decision\">\n<options>\n{}", repeated("<option>", size))),
        ("changes of directory", format!("<task>\n{}", repeated("cd '/a && cd \"/b ", size))),
        ("labels", format!("## Task 1\n{}", repeated("**Verify:** x\n", size))),
        ("NUL", "\0".repeat(size)),
    ]
}

/// Far more than the slowest needs on a busy machine, far less than quadratic time would take.
const LONGEST: Duration = Duration::from_secs(60);

#[test]
fn huge_gsd_plans_are_read_in_bounded_time() {
    for (name, text) in monsters() {
        let start = Instant::now();
        let reading = read_text(&text);
        assert!(start.elapsed() < LONGEST, "{name}: {:?}", start.elapsed());
        assert_eq!(reading.plan.is_none(), reading.diagnostics.iter().any(|fault| fault.is_error()), "{name}");
    }
}

#[test]
fn repeated_common_text_is_limited() {
    let long = "x".repeat(1 << 20);
    let text = format!("<objective>\n{long}\n</objective>\n{}", "<task><action>a</action></task>\n".repeat(500));
    let plan = good(read_text(&text));
    let told: usize = plan.lanes[0].agents[0].tasks.iter().map(|task| task.prompt.len()).sum();
    assert!((1 << 20..16 << 20).contains(&told), "{told}");
}

#[test]
fn unusable_gates_stay_in_the_prompt() {
    let checks = ["tail -f log", "ls /Users/someone/app/a", "ls app/(group)/page.tsx", "dune build"];
    let checks: String = checks.iter().map(|check| format!("<automated>{check}</automated>\n")).collect();
    let text = format!("<task type=\"auto\">\n<name>A</name>\n<verify>\n{checks}</verify>\n</task>\n");
    let reading = read_text(&text);
    assert_eq!(reading.diagnostics.len(), 2, "{:?}", reading.diagnostics);
    let plan = good(reading);
    let task = &plan.lanes[0].agents[0].tasks[0];
    let gates: Vec<String> = task.verify.iter().map(ToString::to_string).collect();
    assert_eq!(gates, ["ls app/\\(group\\)/page.tsx", "dune build"]);
    assert!(task.prompt.contains("tail -f log") && task.prompt.contains("ls /Users/someone/app/a"), "{}", task.prompt);
}

#[test]
fn task_without_files_may_be_empty() {
    let cases = [("", true), ("None (testing only)", true), ("(none)", true), ("n/a", true), ("src/a.ts", false)];
    for (files, expected) in cases {
        let plan = good(read_text(&format!("<task type=\"auto\"><name>A</name><files>{files}</files></task>\n")));
        assert_eq!(plan.lanes[0].agents[0].tasks[0].allow_empty, expected, "{files}");
    }
    let plan = good(read_text("<task type=\"auto\"><name>A</name><action>Write it.</action></task>\n"));
    assert!(!plan.lanes[0].agents[0].tasks[0].allow_empty);
}

#[test]
fn lanes_sharing_a_file_are_reported_together() {
    let plan = |number: u32, name: &str| {
        let text =
            format!("---\nfiles_modified: [src/shared.ts, src/{name}.ts]\n---\n<task><name>{name}</name></task>\n");
        (format!("05-web/05-0{number}-PLAN.md"), text)
    };
    let files = [plan(1, "a"), plan(2, "b"), plan(3, "c")];
    let reading = read_plans(&files, &[], ReadOptions::default());
    let told: Vec<String> = reading.diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect();
    let expected = "lanes `05-01`, `05-02` and `05-03` all own `src/shared.ts`, so they run one after the other";
    assert_eq!(told, [expected]);
}

#[test]
fn marker_floods_are_read_in_bounded_time() {
    for (mark, count) in [("a -- b ", 20_000), ("node -e 'x — y ", 40_000), ("( ", 80_000), ("([{", 40_000)] {
        let field = mark.repeat(count);
        let start = Instant::now();
        good(read_text(&format!("<task>\n<name>A</name>\n<verify><automated>{field}</automated></verify>\n</task>\n")));
        assert!(start.elapsed() < LONGEST, "{mark}: {:?}", start.elapsed());
    }
}

#[test]
fn nothing_of_a_user_setup_is_dropped() {
    let setup = |items: &str| {
        let text = format!(
            "---\nphase: 05-web\nplan: 01\nwave: 1\nuser_setup:\n{items}---\n<tasks>\n<task type=\"auto\"><name>One</name>\n\
             <action>Do it.</action></task>\n</tasks>\n"
        );
        lane(&good(read_text(&text)), "05-01").user_setup.clone()
    };
    let to_do = |items: &str| user_setup::to_do(&setup(items), |_| true);
    let stripe = "  - service: stripe\n    why: \"Create an account first\"\n";
    let steps = "    account_setup: [{task: Sign up, url: \"https://stripe.com\"}]\n\
                 \x20   local_dev: [\"stripe listen --forward-to localhost:3000\"]\n";
    assert_eq!(
        to_do(&format!("{stripe}{steps}")),
        ["Sign up: https://stripe.com", "stripe listen --forward-to localhost:3000"]
    );
    assert_eq!(to_do(stripe), ["stripe: Create an account first"]);
    assert_eq!(to_do("  - service: stripe\n"), ["stripe"]);
    assert_eq!(to_do("  - task: Sign up\n    location: the web\n"), ["Sign up (the web)"]);
    assert_eq!(to_do("  - service: s\n    steps:\n      - {task: Do, details: [a, b]}\n"), ["Do: a, b"]);
    let mapping = "  - service: s\n    env_vars: {A_KEY: the web, B_KEY: a friend}\n";
    assert_eq!(to_do(mapping), ["set A_KEY (the web)", "set B_KEY (a friend)"]);
    let remark = setup(&format!("{stripe}    plan: free\n    env_vars: [A_KEY]\n"));
    assert_eq!(remark[0].why.as_deref(), Some("Create an account first; plan: free"));
}
