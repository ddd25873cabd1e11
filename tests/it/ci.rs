//! What a CI service is told when a run ends there.

use std::process::Command;

use serde_json::Value;

use crate::documents::junit_faults;
use crate::report::MIXED;
use crate::support::{Ended, RUN, STATE, TestEnv};

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.plan(MIXED);
    env
}

fn run_in(env: &TestEnv, flags: &[&str], service: impl Fn(&mut Command) -> &mut Command) -> Ended {
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN];
    env.lanewright_with(&[&arguments, flags].concat(), service)
}

/// As GitHub's runner starts a step.
fn on_github(env: &TestEnv, flags: &[&str]) -> Ended {
    let summary = env.path("scratch/summary.md");
    run_in(env, flags, |command| command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", &summary))
}

/// The commands that GitHub obeys, but for those that fold lines.
fn commands(text: &str) -> Vec<&str> {
    let is_fold = |line: &str| line.starts_with("::group::") || line == "::endgroup::";
    text.lines().filter(|line| line.starts_with("::") && !is_fold(line)).collect()
}

const TOLD: [&str; 3] = [
    "::error file=src/lib.rs,line=3,col=5,title=B%3A gate::mismatched types",
    "::warning title=A%3A must-have::artifact a.txt: `b` not found in it",
    "::warning title=C%3A blocked::it depends on B, which failed",
];

#[test]
fn github_gets_annotations_and_a_job_summary() {
    let env = env();
    env.write("scratch/summary.md", "# What came before\n");
    let ended = on_github(&env, &[]).exits(1);
    assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), TOLD);
    assert_eq!(commands(&ended.stderr), Vec::<&str>::new());
    let summary = env.scratch("summary.md");
    assert!(summary.starts_with("# What came before\n## P1 Billing\n"), "{summary}");
    assert!(summary.contains("<summary>B failed:"), "{summary}");
}

#[test]
fn end_of_run_is_not_wrapped_without_a_terminal() {
    let env = TestEnv::new();
    let files = [1, 2, 3].map(|number| format!("a-file-with-a-long-name-that-the-lane-does-not-own-{number}.txt"));
    let command = format!("touch {}", files.join(" "));
    env.plan(&format!("[[lane]]\nid = \"A\"\nowns = [\"a/**\"]\nretries = 0\ncommand = '{command}'\n"));
    let ended = env.execute(&["--progress", "none"]).exits(1);
    let is_whole = |line: &str| files.iter().all(|file| line.contains(file));
    assert!(ended.stderr.lines().any(is_whole), "{}", ended.stderr);
}

#[test]
fn annotations_leave_json_on_standard_output_alone() {
    for flags in [&["--progress", "json"][..], &["--format", "json", "--progress", "none"]] {
        let env = env();
        let ended = on_github(&env, flags).exits(1);
        assert_eq!(commands(&ended.stdout), Vec::<&str>::new());
        assert_eq!(commands(&ended.stderr), TOLD);
    }
}

#[test]
fn agent_output_cannot_issue_github_commands() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo \"::error::mine\"; echo \"::add-mask::x\"; exit 1'\n");
    let ended = on_github(&env, &[]).exits(1);
    assert!(ended.stderr.contains("::error::mine"), "{}", ended.stderr);
    let obeyed = |line: &&str| line.trim_start().starts_with("::");
    let groups: Vec<&str> = ended.stderr.lines().filter(obeyed).map(|line| line.split(' ').next().unwrap()).collect();
    assert!(groups.len() == 2 && groups[0].starts_with("::group::") && groups[1] == "::endgroup::", "{groups:?}");
    assert_eq!(commands(&ended.stdout).len(), 1);
}

#[test]
fn full_or_unwritable_job_summary_only_warns() {
    let env = env();
    env.write("scratch/summary.md", "x".repeat(1 << 20));
    on_github(&env, &[]).exits(1).says(&["the job summary", "full"]);
    assert_eq!(env.scratch("summary.md").len(), 1 << 20);
    env.write("scratch/summary.md", "x".repeat((1 << 20) - 3000));
    env.resume(&["--ci", "none"]).exits(1);
    let summary = env.path("scratch/summary.md");
    env.lanewright_with(&["resume", RUN, "--ci", "github"], |it| it.env("GITHUB_STEP_SUMMARY", &summary)).exits(1);
    let added = env.scratch("summary.md");
    assert!(added.len() <= 1 << 20 && added.ends_with("tells everything.*\n\n"), "{}", &added[added.len() - 200..]);
    let nowhere = env.path("no/such/summary.md");
    env.lanewright_with(&["resume", RUN, "--ci", "github"], |it| it.env("GITHUB_STEP_SUMMARY", &nowhere))
        .exits(1)
        .says(&["could not be written"]);
}

/// Two lanes side by side, each with an attempt that fails and one that passes.
const SIDE_BY_SIDE: &str = "[[lane]]\nid = \"A\"\ncommand = 'touch $SCRATCH/a; wait-for b; for i in 1 2 3; do echo of-A; done; \
    [ $LANEWRIGHT_ATTEMPT = 2 ] && echo a > a.txt'\n\
    [[lane]]\nid = \"B\"\ncommand = 'touch $SCRATCH/b; wait-for a; for i in 1 2 3; do echo of-B; done; \
    [ $LANEWRIGHT_ATTEMPT = 2 ] && echo b > b.txt'\n";

#[test]
fn output_of_failed_attempts_is_folded_on_github() {
    let env = TestEnv::new();
    env.plan(SIDE_BY_SIDE);
    let ended = on_github(&env, &[]).exits(0);
    let mut group: Option<Vec<&str>> = None;
    let mut titles = Vec::new();
    for line in ended.stderr.lines() {
        match (&mut group, line.strip_prefix("::group::")) {
            (None, Some(title)) => {
                titles.push(title);
                group = Some(Vec::new());
            }
            (Some(lines), None) if line == "::endgroup::" => {
                let lane = if titles.last().unwrap().contains(" A ") { "of-A" } else { "of-B" };
                assert_eq!(*lines, [lane; 3]);
                group = None;
            }
            (Some(lines), None) => lines.push(line),
            (None, None) => assert!(!line.starts_with("::") && !line.contains("of-"), "{line}"),
            (Some(_), Some(_)) => panic!("a group within a group:\n{}", ended.stderr),
        }
    }
    assert_eq!((titles.len(), group), (2, None), "{}", ended.stderr);
    assert!(titles.iter().all(|title| title.contains("attempt 1") && title.contains("exit code 1")), "{titles:?}");
}

#[test]
fn output_of_failed_attempts_is_folded_on_gitlab() {
    let env = TestEnv::new();
    env.plan(SIDE_BY_SIDE);
    let ended = run_in(&env, &[], |command| command.env("GITLAB_CI", "true")).exits(0);
    let of = |word: &str| -> Vec<String> {
        let parts = ended.stderr.split(word).skip(1);
        parts.map(|rest| rest.split(['\r', '[']).next().unwrap().to_owned()).collect()
    };
    let (starts, ends) = (of("section_start:"), of("section_end:"));
    assert_eq!((starts.len(), &starts), (2, &ends), "{:?}", ended.stderr);
    assert_ne!(starts[0], starts[1]);
    let env = TestEnv::new();
    env.plan(SIDE_BY_SIDE);
    let unfolded = run_in(&env, &["--ci", "none"], |command| command.env("GITLAB_CI", "true")).exits(0);
    assert!(!unfolded.stderr.contains("section_start"), "{}", unfolded.stderr);
}

#[test]
fn gitlab_gets_files_that_it_reads() {
    let env = env();
    let ended = run_in(&env, &[], |command| command.env("GITLAB_CI", "true")).exits(1);
    assert_eq!(commands(&ended.stdout), Vec::<&str>::new());
    let issues = env.read(&format!("repo/{STATE}/{RUN}/gl-code-quality-report.json"));
    let issues: Value = serde_json::from_str(&issues).expect("JSON");
    let issue = &issues[0];
    assert_eq!((&issue["location"]["path"], &issue["location"]["lines"]["begin"]), (&"src/lib.rs".into(), &3.into()));
    for field in ["description", "check_name", "fingerprint", "severity"] {
        assert!(issue[field].is_string(), "{field}");
    }
    assert_eq!(junit_faults(&env.read(&format!("repo/{STATE}/{RUN}/junit.xml"))), Vec::<String>::new());
}

#[test]
fn the_flag_is_stronger_than_the_surroundings() {
    let env = env();
    let ended = on_github(&env, &["--ci", "none"]).exits(1);
    assert_eq!(ended.stdout, "");
    assert!(!env.path("scratch/summary.md").exists());
}

#[test]
fn timed_out_run_writes_report_and_can_be_resumed() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'wait-for go; echo a > a.txt'\n");
    let ended = on_github(&env, &["--timeout", "1s"]).exits(124).says(&["lanewright resume r1"]);
    assert_eq!(commands(&ended.stdout), ["::warning title=A%3A stopped::in implementation"]);
    let report: Value = serde_json::from_str(&env.read(&format!("repo/{STATE}/{RUN}/report.json"))).expect("JSON");
    assert_eq!((&report["stop"], &report["exit_code"]), (&"timeout".into(), &124.into()));
    assert!(
        env.read(&format!("repo/{STATE}/{RUN}/junit.xml"))
            .contains("<error message=\"in implementation\" type=\"stopped\"")
    );
    env.write("scratch/go", "");
    env.resume(&["--timeout", "none"]).exits(0);
    let report: Value = serde_json::from_str(&env.read(&format!("repo/{STATE}/{RUN}/report.json"))).expect("JSON");
    assert_eq!((&report["stop"], &report["exit_code"]), (&Value::Null, &0.into()));
}

#[test]
fn a_secret_is_in_no_report() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nname = \"with s3cr3t-t0ken\"\nretries = 0\ncommand = 'echo s3cr3t-t0ken; exit 1'\n",
    );
    let summary = env.path("scratch/summary.md");
    let ended = run_in(&env, &[], |command| {
        command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", &summary).env("MY_TOKEN", "s3cr3t-t0ken")
    });
    let ended = ended.exits(1);
    assert!(!ended.stdout.contains("s3cr3t"), "{}", ended.stdout);
    for name in ["report.json", "report.md", "report.html", "junit.xml"] {
        let text = env.read(&format!("repo/{STATE}/{RUN}/{name}"));
        assert!(!text.contains("s3cr3t") && text.contains("redacted"), "{name}: {text}");
    }
    assert!(!env.scratch("summary.md").contains("s3cr3t"));
}
