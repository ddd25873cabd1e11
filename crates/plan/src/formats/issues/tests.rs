use lanewright_model::{CommandLine, Lane, Plan, PlanFormat};

use crate::{Fallbacks, ReadOptions, Reading, Source, SourceFile, read};

/// As `gh api repos/…/issues` prints them, shortened.
const GITHUB: &str = r##"[
  {"number": 12, "title": "Sign in", "state": "open", "labels": [{"name": "P1"}, {"name": "ready"}],
   "milestone": {"title": "v1"}, "body": "<!-- Explain it -->\r\nWrite `src/login.rs`.\r\n\r\nBlocked by #7, #9 and #99\r\n\r\n## Acceptance criteria\r\n- [ ] `cargo test login` passes\r\n- [ ] It is fast"},
  {"number": 9, "title": "Sessions", "state": "open", "labels": [], "milestone": null, "body": null, "blocked_by": [7]},
  {"number": 7, "title": "Database", "state": "open", "labels": [{"name": "ready"}], "body": "Mentions depends on nothing, and #12."},
  {"number": 3, "title": "Done", "state": "closed", "labels": [{"name": "ready"}], "body": ""},
  {"number": 4, "title": "A pull request", "state": "open", "labels": [], "pull_request": {}, "body": ""}
]"##;

const GITLAB: &str = r##"[{"id": 900, "iid": 5, "title": "Sign in", "state": "opened", "labels": ["ready"],
  "description": "- **Depends on:** #6"}, {"id": 901, "iid": 6, "title": "Base", "state": "opened", "labels": [], "description": ""}]"##;

fn reading(text: &str, options: ReadOptions<'_>) -> Reading {
    let files = [SourceFile { path: "issues.json", text }];
    let fallbacks = Fallbacks { runner: Some("agent"), ..Fallbacks::default() };
    let source = Source { files: &files, fallbacks, options, ..Source::default() };
    read(&source, &|_| Err(String::new()), &|_| Some(CommandLine::Shell("agent".to_owned())))
}

fn plan(text: &str) -> Plan {
    let reading = reading(text, ReadOptions::default());
    assert_eq!(reading.format, Some(PlanFormat::Issues));
    reading.plan.unwrap_or_else(|| panic!("{:#?}", reading.diagnostics))
}

fn shape(plan: &Plan) -> Vec<String> {
    let lane = |lane: &Lane| {
        let on: Vec<String> = lane.depends_on.iter().map(|&on| plan.lane(on).id.to_string()).collect();
        format!("{}<{}", lane.id, on.join(","))
    };
    plan.lanes.iter().map(lane).collect()
}

#[test]
fn open_issues_are_lanes_in_the_order_of_their_dependencies() {
    let plan = plan(GITHUB);
    assert_eq!(shape(&plan), ["issue-7<", "issue-9<issue-7", "issue-12<issue-9"]);
    assert_eq!(plan.skipped.iter().map(|it| it.lane.to_string()).collect::<Vec<_>>(), ["issue-3"]);
    let lane = &plan.lanes[2];
    assert_eq!((lane.name.as_deref(), lane.closes.as_slice()), (Some("Sign in"), &["#12".to_owned()][..]));
    assert_eq!(lane.tests.iter().map(ToString::to_string).collect::<Vec<_>>(), ["cargo test login"]);
    assert_eq!(lane.owns, ["src/login.rs"]);
    let task = &lane.agents[0].tasks[0];
    assert!(task.prompt.starts_with("# Issue #12: Sign in\n\nWrite `src/login.rs`."), "{}", task.prompt);
    assert!(!task.prompt.contains("Explain it"), "{}", task.prompt);
    assert_eq!(task.acceptance_criteria.len(), 2);
}

#[test]
fn issues_of_gitlab_are_read_as_well() {
    assert_eq!(shape(&plan(GITLAB)), ["issue-6<", "issue-5<issue-6"]);
}

#[test]
fn a_label_or_a_milestone_chooses() {
    let tagged = |tag: &str| reading(GITHUB, ReadOptions { tag: Some(tag), ..ReadOptions::default() });
    let v1 = tagged("v1");
    assert!(v1.plan.is_none(), "#12 waits for issues that are not part of it");
    let ready = tagged("Ready").plan.expect("a plan");
    assert_eq!((shape(&ready), ready.phase.to_string()), (vec!["issue-7<".to_owned()], "Ready".to_owned()));
    let unknown = tagged("redy").diagnostics;
    assert!(unknown.iter().any(|it| it.help.as_deref() == Some("did you mean `ready`?")), "{unknown:#?}");
}

#[test]
fn what_is_not_wanted_or_waits_elsewhere_is_left_out() {
    let text = r##"[{"number": 1, "title": "a\n\nCloses: #9", "body": "```\nBlocked by #2\n```"},
      {"number": 2, "title": "b", "blocked_elsewhere": ["https://forge.example/lib/7"]},
      {"number": "x", "title": "c\u0000", "wanted": false}]"##;
    let plan = plan(text);
    assert_eq!(shape(&plan), ["issue-1<"]);
    assert_eq!(plan.lanes[0].name.as_deref(), Some("a"));
    assert!(plan.skipped[0].reason.contains("https://forge.example/lib/7, which is open"), "{:?}", plan.skipped);
}

#[test]
fn faults_have_a_place() {
    for (text, message) in [
        (r#"[{"number": "x", "title": "a"}, {"number": 1, "title": "b"}]"#, "this issue has no `number`"),
        (r#"[{"number": 1, "title": "a"}, {"number": 1, "title": "b"}]"#, "there are two tasks `issue-1`"),
        (r#"[{"number": 1, "title": "a", "blocked_by": [1]}]"#, "depends on itself"),
        (
            r#"[{"number": 1, "title": "a", "blocked_by": [2]}, {"number": 2, "title": "b", "body": "Depends on #1"}]"#,
            "wait for each other",
        ),
        (r#"[7, {"number": 1, "title": "a"}]"#, "an issue is a table"),
        (r#"[{"number": 1, "title": "a"},"#, "invalid JSON"),
        (r#"[{"number": 1, "title": "a", "state": "closed"}]"#, "all tasks of this list are done"),
    ] {
        let reading = reading(text, ReadOptions::default());
        let messages: Vec<&str> = reading.diagnostics.iter().map(|it| it.message.as_str()).collect();
        assert!(reading.plan.is_none() && messages.iter().any(|it| it.contains(message)), "{text}: {messages:?}");
    }
}
