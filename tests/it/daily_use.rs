//! What a user types and reads every day: short names, completion, the manual, hints and the words at the end of a run.

use std::process::Command;

use crate::support::{RUN, TestEnv};

/// `A` fails until `a` is there, and `B` until `b` is; `C` passes.
fn two_failed() -> TestEnv {
    let env = TestEnv::new();
    let lane = |id: &str, file: &str| {
        format!(
            "[[lane]]\nid = \"{id}\"\nretries = 0\n\
             command = 'test -e \"$SCRATCH/{file}\" && echo {id} > {file}.txt'\n"
        )
    };
    env.plan(&format!("{}{}{}", lane("A", "a"), lane("B", "b"), "[[lane]]\nid = \"C\"\ncommand = 'echo c > c.txt'\n"));
    env.execute(&[]).exits(1);
    env
}

#[test]
fn resume_of_a_lane_ends_with_that_lane() {
    let env = two_failed();
    env.write("scratch/b", "");
    let ended = env.resume(&["--lane", "B"]).exits(0);
    assert!(ended.stderr.contains("B done, P1 is not complete · 1 failed · 2 merged\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("Next actions: 1 lane left (B: agent at task 1)"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("P1 failed") && !ended.stderr.contains("run failed"), "{}", ended.stderr);
}

#[test]
fn hint_after_a_plan_change_repeats_the_command() {
    let env = two_failed();
    let plan = env.read("plan.toml");
    env.write("plan.toml", plan.replace("echo c >", "echo C >"));
    let accept = "--accept-plan-change";
    env.lanewright(&["retry", "A", "-m", "try"]).exits(2).hints(&format!("lanewright retry {RUN} A -m try {accept}"));
    env.resume(&["--lane", "B"]).exits(2).hints(&format!("lanewright resume {RUN} --lane B {accept}"));
    env.resume(&[]).exits(2).hints(&format!("lanewright resume {RUN} {accept}"));
    let page = env.lanewright(&["status", "A"]).exits(0).stdout;
    assert!(page.contains("after a change of the plan with --accept-plan-change"), "{page}");
}

#[test]
fn why_and_log_are_status_and_logs() {
    let env = two_failed();
    for [short, long] in [["why", "status"], ["log", "logs"]] {
        let outputs = [short, long].map(|command| env.lanewright(&[command, "A"]).exits(0).stdout);
        assert!(outputs[0] == outputs[1] && !outputs[0].is_empty(), "{short}: {outputs:?}");
    }
    let help = env.lanewright(&["--help"]).exits(0).stdout;
    assert!(help.contains("[alias: why]") && help.contains("[alias: log]"), "{help}");
}

#[test]
fn unchanged_work_of_an_attempt_is_not_reported() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'exit 1'\n\
         [[lane]]\nid = \"M\"\nretries = 0\ncommand = 'echo m > m.txt; exit 1'\n",
    );
    let ended = env.execute(&[]).exits(1).says(&["M agent: work in progress saved as refs/"]);
    assert!(!ended.stderr.contains("L agent: work in progress"), "{}", ended.stderr);
}

#[test]
fn failed_tests_without_retries_send_nothing_back() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ntests = ['exit 1']\ncommand = 'echo l > l.txt'\n");
    let ended = env.execute(&[]).exits(1);
    assert!(!ended.stderr.contains("sent back"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("complete, "), "a single agent is not counted: {}", ended.stderr);
    env.plan("[[lane]]\nid = \"L\"\nretries = 1\ntests = ['exit 1']\ncommand = 'echo l > l.txt'\n");
    env.execute(&["--run-id", "r2", "--new-run"]).exits(1).says(&["L agent: sent back to the agent: retry 1 of 1"]);
}

#[test]
fn merged_lane_names_no_removed_refs() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'test $LANEWRIGHT_ATTEMPT = 2 || { echo x > x.txt; exit 1; }; echo l > l.txt'\n");
    env.execute(&[]).exits(0);
    let page = env.lanewright(&["status", "L"]).exits(0).stdout;
    assert!(!page.contains("refs/lanewright") && !page.contains("lane/P1/L"), "{page}");
}

#[test]
fn missing_git_identity_is_reported_at_the_start() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo l > l.txt'\n");
    env.write("gitconfig", "[init]\ndefaultBranch = main\n");
    let ended = env.execute(&[]).exits(0);
    let (warned, begun) = (ended.stderr.find("no git identity is set"), ended.stderr.find("attempt 1 started"));
    assert!(warned.is_some() && warned < begun, "{}", ended.stderr);
    ended.hints("git config --global user.name");
    env.write("gitconfig", "[user]\nname = Tester\nemail = tester@example.invalid\n");
    let again = env.execute(&["--run-id", "r2", "--new-run"]);
    assert!(!again.stderr.contains("identity"), "{}", again.stderr);
}

#[test]
fn commits_say_what_was_done() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"MUL\"\ncommand = 'echo m > m.txt'\n\
         [[lane]]\nid = \"ADD\"\nname = \"Addition\"\nprompt = \"Write add().\"\ncommand = 'echo a > a.txt'\n",
    );
    env.execute(&[]).exits(0);
    let subjects = env.git(&["log", "--format=%s", "main"]);
    let subjects: Vec<&str> = subjects.lines().collect();
    assert!(subjects.contains(&"MUL: task 1 by agent"), "{subjects:?}");
    assert!(subjects.contains(&"ADD Addition: Write add()."), "{subjects:?}");
}

/// What a real bash completes `line` to, whose script is that of the README.
fn completed(env: &TestEnv, line: &str) -> String {
    completed_in(env, "repo", line)
}

fn completed_in(env: &TestEnv, directory: &str, line: &str) -> String {
    let script = "source <(lanewright completions bash); read -ra COMP_WORDS <<< \"$LINE\"; \
                  [[ \"$LINE\" == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_TYPE=9; \
                  COMP_LINE=$LINE; COMP_POINT=${#LINE}; compopt() { :; }; \
                  $(complete -p lanewright | sed 's/.*-F \\([^ ]*\\).*/\\1/') lanewright; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = Command::new("bash");
    env.pin(&mut command).args(["--norc", "-c", script]).env("LINE", line).current_dir(env.path(directory));
    let output = command.output().expect("bash");
    String::from_utf8(output.stdout).expect("UTF-8") + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn bash_completes_files_runs_and_lanes() {
    let env = two_failed();
    env.write("repo/phase-one.toml", "");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lanewright"), env.path("bin/lanewright")).expect("a link");
    for (line, found) in [
        ("lanewright execute-phase pha", "phase-one.toml"),
        ("lanewright resume r", RUN),
        ("lanewright why ", "A"),
        ("lanewright log r1 ", "B"),
        ("lanewright approv", "approve"),
        ("lanewright execute-lane ../plan.toml ", "C"),
        ("lanewright execute-phase ../plan.toml --lane ", "B"),
        ("lanewright rollback r1 --lane A --to after_", "after_lane_start"),
        ("lanewright rollback r1 --lane A --to ", "1"),
    ] {
        let text = completed(&env, line);
        assert!(text.lines().any(|candidate| candidate.trim() == found), "{line}: {text}");
    }
    let snapshot = env.lanewright(&["checkpoints", "create", "A", "--format", "json"]).exits(0).json();
    let snapshot = snapshot["name"].as_str().expect("a name").to_owned();
    let has = |line: &str| completed(&env, line).contains(&snapshot);
    assert!(has("lanewright checkpoints show "));
    assert!(!has("lanewright log-event "), "an event has a name of its own");
    let refs = env.refs();
    let of_snapshots: Vec<&String> = refs.iter().filter(|name| name.contains("lanewright/checkpoint")).collect();
    of_snapshots.iter().for_each(|name| drop(env.git(&["update-ref", "-d", name])));
    assert!(!has("lanewright checkpoints show "), "its ref is gone");
    let elsewhere = format!("lanewright -C {} resume r", env.path("repo").display());
    let text = completed_in(&env, "scratch", &elsewhere);
    assert!(text.lines().any(|candidate| candidate.trim() == RUN), "{text}");
}

#[test]
fn synopsis_of_the_manual_shows_values() {
    let env = TestEnv::without_repository();
    env.lanewright(&["man", "--dir", "pages"]).exits(0);
    let synopsis = |page: &str| {
        let text = env.read(&format!("repo/pages/lanewright-{page}.1"));
        let (_, rest) = text.split_once(".SH SYNOPSIS\n").expect("a synopsis");
        rest.split("\n.SH").next().expect("its text").replace("\\fR", "").replace("\\fB", "").replace("\\fI", "")
    };
    let resume = synopsis("resume").replace("\\-", "-");
    for part in ["[-m|--message TEXT]", "[--lane LANE]...", "[--wait]", "[RUN]"] {
        assert!(resume.contains(part), "{part} is not in {resume}");
    }
    assert!(synopsis("log-error").replace("\\-", "-").contains("--error-type <TYPE>"));
}
