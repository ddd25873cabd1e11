//! A phase in jobs of a CI service, none of which needs a person at a machine: what the templates run, in whatever way the
//! jobs end and whatever happens between them. Each ends in merged work, or in a sentence with what to do.

mod bad_input;
mod protected;
mod service;
mod templates;

use rustix::process::Signal;

use crate::support::Ended;
use service::{Kind, Service};

/// A is quick; B waits for help.
const TWO: &str = "[[lane]]
id = \"A\"
command = 'echo began >> \"$SCRATCH/A\" && echo a > a.txt'
[[lane]]
id = \"B\"
command = 'echo began >> \"$SCRATCH/B\" && wait-for help && echo b > b.txt'
";

/// A lane that fails until `scratch/passes` is there.
const FAILS: &str = "[[lane]]
id = \"A\"
retries = 0
command = 'echo began >> \"$SCRATCH/A\" && [ -e \"$SCRATCH/passes\" ] && echo a > a.txt'
";

fn lane_with_approvals(approval: &str) -> String {
    let command = "echo began >> \"$SCRATCH/A\" && echo \"draft $LANEWRIGHT_ATTEMPT\" > a.txt";
    format!("[[lane]]\nid = \"A\"\napproval = {approval}\ncommand = '{command}'\n")
}

/// The lines that a service shows in red or yellow, but for what a user should know of the plan and of main.
fn complaints(ended: &Ended) -> Vec<&str> {
    let is_known = |line: &str| line.contains("no gate, so only") || line.contains("warning: main moved from");
    let is_complaint = |line: &&str| (line.starts_with("error") || line.starts_with("warning")) && !is_known(line);
    ended.stderr.lines().filter(is_complaint).collect()
}

/// A job that has merged A, and whose B waits for help, dies.
fn killed(kind: Kind) -> Service {
    let service = Service::new(kind, TWO);
    let mut job = service.start(&[]);
    job.wait_until("A is merged", || service.starts("B") == 1 && service.has_pushed(&["lane_merged", "\"B\""]));
    job.dies(&service);
    service
}

/// Another job ends the phase: what was merged is not done again.
fn is_finished_by_next_job(service: &Service, inputs: &[(&str, &str)], more: &[&str]) {
    service.help();
    let ended = service.job(inputs).exits(0).says(&["Continuing run P1-"]);
    assert_eq!(complaints(&ended), [] as [&str; 0]);
    assert_eq!((service.starts("A"), service.starts("B")), (1, 2));
    assert_eq!(service.files(), [&["a.txt", "b.txt"], more].concat());
    assert_eq!(service.states(), [] as [&str; 0]);
}

#[test]
fn ci_job_runs_the_phase_and_publishes_it() {
    for kind in [Kind::Github, Kind::Gitlab] {
        let service = Service::new(kind, TWO);
        service.help();
        let ended = service
            .job(&[])
            .exits(0)
            .says(&["origin has no unfinished run of phase P1.", " to main on origin: it is at "]);
        assert_eq!(complaints(&ended), [] as [&str; 0]);
        assert_eq!(service.files(), ["a.txt", "b.txt"]);
        assert_eq!(service.states(), [] as [&str; 0]);
        let who = service.env.git_at("origin.git", &["log", "--format=%an", "main"]);
        let bot = if kind == Kind::Github { "github-actions[bot]" } else { "GitLab CI" };
        assert!(who.lines().filter(|name| *name != "Tester").all(|name| name == bot), "{kind:?}: {who}");
    }
}

#[test]
fn ci_job_continues_one_that_died() {
    for kind in [Kind::Github, Kind::Gitlab] {
        is_finished_by_next_job(&killed(kind), &[], &[]);
    }
}

#[test]
fn ci_job_joins_what_was_pushed_to_main_meanwhile() {
    let service = killed(Kind::Github);
    service.push("other.txt", "other\n");
    is_finished_by_next_job(&service, &[], &["other.txt"]);
}

#[test]
fn ci_job_joins_what_was_pushed_to_main_during_it() {
    let service = Service::github(TWO);
    let mut job = service.start(&[]);
    job.wait_until("B began", || service.starts("B") == 1);
    service.push("other.txt", "other\n");
    service.help();
    job.end(&service).exits(0);
    assert_eq!(service.files(), ["a.txt", "b.txt", "other.txt"]);
    assert_eq!(service.states(), [] as [&str; 0]);
}

#[test]
fn conflict_with_main_ends_in_what_to_type() {
    let service = killed(Kind::Github);
    service.push("a.txt", "mine\n");
    let main = service.main();
    let ended = service.job(&[]).exits(3).says(&["changed the same places: a.txt; nothing was changed"]);
    assert_eq!(service.main(), main);
    let hint = ended.stderr.lines().find_map(|line| line.split_once("on your machine: ")).expect("a hint").1;
    assert!(hint.ends_with("then run the workflow again"), "{hint}");
    // What the hint says fixes it.
    let line = hint.split_once("; resolve").expect("commands").0;
    service.env.git(&["config", "pull.rebase", "false"]);
    let mut shell = std::process::Command::new("sh");
    let merged = service.env.pin(&mut shell).args(["-c", line]).status().expect("sh");
    assert!(!merged.success(), "there is a conflict");
    service.env.write("repo/a.txt", "both\n");
    service.env.git(&["add", "a.txt"]);
    service.env.git(&["commit", "--quiet", "--no-edit"]);
    service.env.git(&["push", "--quiet", "origin", "main"]);
    is_finished_by_next_job(&service, &[], &[]);
    assert_eq!(service.env.git_at("origin.git", &["show", "main:a.txt"]), "both");
}

#[test]
fn repaired_plan_is_accepted_by_an_input() {
    for kind in [Kind::Github, Kind::Gitlab] {
        let service = killed(kind);
        service.help();
        let plan = service.env.read("repo/plan.toml").replace("echo b >", "echo better >");
        service.push("plan.toml", &plan);
        let input = match kind {
            Kind::Github => "run the workflow again with accept_plan_change = true",
            Kind::Gitlab => "run the pipeline again with LANEWRIGHT_CI_ACCEPT_PLAN_CHANGE = true",
        };
        service.job(&[]).exits(2).says(&["has changed since run P1-"]).hints(input);
        assert_eq!(service.states().len(), 1);
        is_finished_by_next_job(&service, &[("accept_plan_change", "true")], &[]);
        assert_eq!(service.env.git_at("origin.git", &["show", "main:b.txt"]), "better");
    }
}

#[test]
fn broken_plan_loses_nothing() {
    let service = killed(Kind::Github);
    let plan = service.env.read("repo/plan.toml");
    service.push("plan.toml", "phase = ");
    service.job(&[]).exits(2).says(&["is not a valid plan"]);
    service.push("plan.toml", &plan);
    is_finished_by_next_job(&service, &[], &[]);
}

#[test]
fn approval_is_answered_by_an_input() {
    let service = Service::github(&lane_with_approvals("[\"changes\"]"));
    let ended = service.job(&[]).exits(3).says(&[
        "A waits for the approval of its changes: run the workflow again with approve = A",
        "approve = A, or with reject = A and message = what to change",
    ]);
    let diff = ended.stderr.lines().find_map(|line| line.split_once("to see its changes, on your machine: "));
    let mut shell = std::process::Command::new("sh");
    let shown = service.env.pin(&mut shell).args(["-c", diff.expect("a command").1]).output().expect("sh");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("+draft 1"), "{shown:?}");
    service.job(&[("approve", "B")]).exits(2).says(&["the run has no lane `B`"]);
    service.job(&[("approve", "A")]).exits(0);
    assert_eq!((service.files(), service.starts("A")), (vec!["a.txt".to_owned()], 1));
    assert_eq!(service.states(), [] as [&str; 0]);
}

#[test]
fn repeated_job_does_not_answer_twice() {
    let service = Service::github(&lane_with_approvals("[\"plan\", \"changes\"]"));
    service.job(&[]).exits(3).says(&["A waits for the approval of its plan"]);
    service.again(7, &[("approve", "A")]).exits(3).says(&["A waits for the approval of its changes"]);
    let said = "lane A was approved by run 7 of GitHub Actions already";
    service.again(7, &[("approve", "A")]).exits(3).says(&[said, "A waits for the approval of its changes"]);
    assert_eq!(service.files(), [] as [&str; 0]);
    service.again(8, &[("approve", "A")]).exits(0);
    service.again(8, &[("approve", "A")]).exits(0).says(&["no unfinished run of this plan waits for it"]);
    assert_eq!((service.files(), service.starts("A")), (vec!["a.txt".to_owned()], 1));
}

#[test]
fn rejected_changes_go_back_to_the_agent() {
    let service = Service::new(Kind::Gitlab, &lane_with_approvals("[\"changes\"]"));
    service.job(&[]).exits(3).says(&["run the pipeline again with LANEWRIGHT_CI_APPROVE = A"]);
    let needed = "with LANEWRIGHT_CI_REJECT = A and LANEWRIGHT_CI_MESSAGE = what to change";
    service.job(&[("reject", "A")]).exits(2).says(&["a rejection needs a message"]).hints(needed);
    let inputs = [("reject", "A"), ("message", "longer; $(touch \"$SCRATCH/shell\") `touch \"$SCRATCH/shell\"`")];
    service.job(&inputs).exits(3).says(&["A waits for the approval of its changes"]);
    assert!(!service.env.path("scratch/shell").exists(), "an input was a line of shell");
    service.job(&[("approve", "A")]).exits(0);
    assert_eq!(
        (service.env.git_at("origin.git", &["show", "main:a.txt"]).as_str(), service.starts("A")),
        ("draft 2", 2)
    );
}

#[test]
fn failed_lane_is_retried_by_an_input() {
    let service = Service::github(FAILS);
    service.job(&[]).exits(1).says(&["A failed: run the workflow again with retry = A"]);
    assert_eq!(service.states().len(), 1);
    service.env.write("scratch/passes", "");
    service.job(&[("retry", "A"), ("message", "try harder")]).exits(0);
    assert_eq!((service.files(), service.starts("A")), (vec!["a.txt".to_owned()], 2));
    assert_eq!(service.states(), [] as [&str; 0]);
    service.job(&[("retry", "A")]).exits(0).says(&["no unfinished run of this plan waits for it"]);
    assert_eq!(service.starts("A"), 2);
}

#[test]
fn lanes_that_were_cut_off_run_after_a_retried_one() {
    let service = Service::github(&[FAILS, &TWO.replace("\"A\"", "\"C\"").replace("SCRATCH/A", "SCRATCH/C")].concat());
    let mut job = service.start(&[]);
    job.wait_until("A failed", || service.starts("B") == 1 && service.has_pushed(&["lane_failed"]));
    job.dies(&service);
    service.help();
    service.env.write("scratch/passes", "");
    service.job(&[("retry", "A B")]).exits(0).says(&["lane B neither failed nor is it blocked"]);
    assert_eq!(["A", "B", "C"].map(|lane| service.starts(lane)), [2, 2, 1]);
    assert_eq!(service.files(), ["a.txt", "b.txt"]);
}

#[test]
fn finished_phase_is_not_run_again() {
    let service = Service::github(TWO);
    service.help();
    service.job(&[]).exits(0);
    let main = service.main();
    let ended = service.job(&[]).exits(0);
    assert!(ended.stdout.contains("nothing to do: 2 of 2 lanes were merged by run P1-"), "{}", ended.stdout);
    assert_eq!(complaints(&ended), [] as [&str; 0]);
    assert_eq!((service.main(), service.starts("A"), service.starts("B")), (main, 1, 1));
}

#[test]
fn state_of_another_plan_does_not_decide() {
    let service = Service::github(FAILS);
    service.push("other.toml", "phase = \"P2\"\n[[lane]]\nid = \"O\"\ncommand = 'echo o > o.txt'\n");
    service.job(&[]).exits(1);
    let failed = service.state();
    let ended = service.job(&[("plan", "other.toml")]).exits(0).says(&["no unfinished run of phase P2"]);
    assert_eq!(complaints(&ended), [] as [&str; 0]);
    assert_eq!(service.states(), [failed]);
    service.env.write("scratch/passes", "");
    service.job(&[]).exits(0);
    assert_eq!(service.files(), ["a.txt", "o.txt", "other.toml"]);
    assert_eq!(service.states(), [] as [&str; 0]);
}

#[test]
fn of_two_jobs_at_once_one_run_is_published() {
    let service = Service::github(TWO);
    let mut first = service.start(&[]);
    first.wait_until("A is merged", || service.starts("B") == 1 && service.has_pushed(&["lane_merged", "\"B\""]));
    let mut second = service.start(&[]);
    second.wait_until("B began there, too", || service.starts("B") == 2);
    service.help();
    let ended = [first.end(&service), second.end(&service)];
    let codes = ended.each_ref().map(|ended| ended.code);
    // The job whose push was refused says so, unless it began after the other one had published.
    assert!(codes.contains(&0) && codes.iter().all(|code| [0, 4].contains(code)), "{codes:?}");
    service.job(&[]).exits(0);
    assert_eq!(service.files(), ["a.txt", "b.txt"]);
    assert_eq!((service.states().len(), service.starts("A")), (0, 1));
}

#[test]
fn cancelled_job_is_continued_by_the_next() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let service = Service::github(TWO);
        let mut job = service.start(&[]);
        job.wait_until("A is merged", || service.starts("B") == 1 && service.has_pushed(&["lane_merged", "\"B\""]));
        job.cancel(&service, signal).exits(code);
        assert!(service.has_pushed(&["run_finished"]), "the end is pushed");
        is_finished_by_next_job(&service, &[], &[]);
    }
}

#[test]
fn job_without_time_left_asks_for_another() {
    let service = Service::github(TWO);
    // The agent waits in vain until the limit.
    let shorter = |script: String| {
        assert!(script.contains("--timeout 5h"), "{script}");
        script.replace("--timeout 5h", "--timeout 2s")
    };
    let ended = service.start_with(&[], shorter, &["--quiet"]).end(&service).exits(75);
    assert!(ended.stderr.contains("the next one continues the run"), "{}", ended.stderr);
    service.help();
    service.job(&[]).exits(0);
    assert_eq!(service.files(), ["a.txt", "b.txt"]);
}

#[test]
fn deleted_state_starts_the_phase_over() {
    let service = killed(Kind::Github);
    service.env.git(&["push", "--quiet", "origin", "--delete", &service.state()]);
    service.help();
    service.job(&[]).exits(0).says(&["origin has no unfinished run"]);
    assert_eq!((service.starts("A"), service.starts("B")), (2, 2));
    assert_eq!(service.files(), ["a.txt", "b.txt"]);
}

#[test]
fn run_that_was_rolled_back_is_not_continued() {
    let service = killed(Kind::Github);
    let rolled_back = service.state();
    let (env, run) = (&service.env, rolled_back.rsplit('/').next().expect("a name"));
    for command in [&["state", "pull", "--plan", "plan.toml"][..], &["rollback", "--yes"], &["state", "push", run]] {
        env.lanewright(command).exits(0);
    }
    service.help();
    service.job(&[]).exits(0).says(&["origin has no unfinished run"]);
    assert_eq!((service.starts("A"), service.starts("B")), (2, 2));
    assert_eq!(service.files(), ["a.txt", "b.txt"]);
    assert!(!service.states().contains(&rolled_back), "what was given up is removed");
}

#[test]
fn answer_from_a_machine_is_continued_by_a_job() {
    let service = Service::github(&lane_with_approvals("[\"changes\"]"));
    service.job(&[]).exits(3);
    let env = &service.env;
    for command in [&["state", "pull"][..], &["approve", "A"], &["state", "push"]] {
        env.lanewright(command).exits(0);
    }
    service.job(&[]).exits(0);
    assert_eq!(service.files(), ["a.txt"]);
}

#[test]
fn done_run_whose_job_died_is_published() {
    let service = Service::github(TWO);
    service.help();
    let env = &service.env;
    env.git_at("", &["clone", "--quiet", "origin.git", "dead"]);
    let command = ["execute-phase", "plan.toml", "--state-remote", "origin"];
    env.lanewright_with(&command, |command| command.current_dir(env.path("dead"))).exits(0);
    assert_eq!(service.files(), [] as [&str; 0]);
    service.job(&[]).exits(0);
    assert_eq!((service.starts("A"), service.starts("B")), (1, 1));
    assert_eq!(service.files(), ["a.txt", "b.txt"]);
    assert_eq!(service.states(), [] as [&str; 0]);
}

#[test]
fn unmerged_branches_are_published() {
    let service = Service::github(TWO);
    service.push("lanewright.toml", "merge = \"none\"\n");
    service.help();
    service.job(&[]).exits(0);
    let branches = service.env.git_at("origin.git", &["for-each-ref", "--format=%(refname)", "refs/heads"]);
    assert_eq!(branches, "refs/heads/lane/P1/A\nrefs/heads/lane/P1/B\nrefs/heads/main");
    // Nothing but the state says that they are done.
    let (main, state) = (service.main(), service.state());
    let ended = service.job(&[]).exits(0);
    assert!(ended.stdout.contains("nothing to do: 2 of 2 lanes were done by run P1-"), "{}", ended.stdout);
    assert_eq!((service.starts("A"), service.starts("B"), service.main(), service.state()), (1, 1, main, state));
    service.env.git(&["fetch", "--quiet", "origin"]);
    service.env.git(&["merge", "--quiet", "--no-edit", "origin/main", "origin/lane/P1/A", "origin/lane/P1/B"]);
    service.env.git(&["push", "--quiet", "origin", "main"]);
    service.job(&[]).exits(0);
    assert_eq!((service.starts("A"), service.starts("B"), service.states().len()), (1, 1, 1));
}

#[test]
fn state_with_unmerged_work_outlives_its_phase() {
    let service =
        Service::github("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo precious > precious.txt; exit 1'\n");
    service.job(&[]).exits(1);
    let state = service.state();
    let plan = "phase = \"P1\"\n[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n";
    service.push("plan.toml", plan);
    let env = &service.env;
    env.lanewright(&["execute-phase", "plan.toml"]).exits(0);
    env.git(&["push", "--quiet", "origin", "main"]);
    let drop = format!("lanewright state drop {} --remote origin --force", state.rsplit('/').next().expect("a name"));
    service.job(&[]).exits(0).says(&["it holds work that main does not", &drop]);
    assert_eq!(service.state(), state);
}

#[test]
fn lane_that_is_approved_and_rejected_is_refused() {
    let service = Service::github(&lane_with_approvals("[\"changes\"]"));
    service.job(&[]).exits(3);
    let inputs = [("approve", "A"), ("reject", "A"), ("message", "no")];
    service.job(&inputs).exits(2).says(&["lane A is both approved and rejected; nothing was done"]);
    assert_eq!((service.files(), service.starts("A")), (vec![], 1));
}

#[test]
fn roadmap_is_continued_at_its_open_phase() {
    let service = Service::github(TWO);
    let agent = "#!/bin/sh\necho began >> \"$SCRATCH/$LANEWRIGHT_LANE\"\n[ $LANEWRIGHT_LANE != 02-01 ] || wait-for help\n\
                 echo x > $LANEWRIGHT_LANE.txt\n\
                 for d in .planning/phases/*; do [ ! -e $d/$LANEWRIGHT_LANE-PLAN.md ] || echo x > $d/$LANEWRIGHT_LANE-SUMMARY.md; done\n";
    service.env.program("agent.sh", agent);
    let task = "<task type=\"auto\"><name>n</name><action>Do it.</action></task>\n";
    service.push(".planning/phases/01-base/01-01-PLAN.md", task);
    service.push(".planning/phases/02-next/02-01-PLAN.md", task);
    service.push(".planning/ROADMAP.md", "# Roadmap\n- [ ] **Phase 1: Base**\n- [ ] **Phase 2: Next**\n");
    service.push("lanewright.toml", "runner = \"agent\"\n[runners.agent]\ncommand = \"agent.sh\"\n");
    let roadmap = [("plan", ".planning/ROADMAP.md")];
    let mut job = service.start(&roadmap);
    job.wait_until("02-01 began", || service.states().len() == 2 && service.starts("02-01") == 1);
    job.dies(&service);
    service.help();
    service.job(&roadmap).exits(0).says(&["Continuing run 01-base-", "Continuing run 02-next-"]);
    assert_eq!(["01-01", "02-01"].map(|lane| service.starts(lane)), [1, 2]);
    assert!(service.files().contains(&"02-01.txt".to_owned()));
    assert_eq!(service.states(), [] as [&str; 0]);
    service.job(&roadmap).exits(0).says(&["Every phase of .planning/ROADMAP.md is done."]);
}

#[test]
fn two_unfinished_runs_of_a_plan_are_named() {
    let service = Service::github(FAILS);
    let env = &service.env;
    for run in ["r1", "r2"] {
        env.lanewright(&["execute-phase", "plan.toml", "--run-id", run, "--new-run"]).exits(1);
        env.lanewright(&["state", "push", run]).exits(0);
    }
    let ended = service.job(&[]).exits(2).says(&["phase P1 has 2 unfinished runs on main"]).hints("r1, r2");
    ended.hints("on your machine: lanewright state drop RUN --remote origin --force");
    env.lanewright(&["state", "drop", "r2", "--force"]).exits(0);
    env.write("scratch/passes", "");
    service.job(&[]).exits(0).says(&["Continuing run r1"]);
    assert_eq!(service.files(), ["a.txt"]);
}
