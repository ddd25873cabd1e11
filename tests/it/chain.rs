//! Phases that follow each other: `--next-phase` and roadmaps (SPEC §2).

use crate::support::TestEnv;

/// Writes a plan of one lane that notes that it ran; `command` comes first.
fn phase(env: &TestEnv, name: &str, command: &str) -> String {
    let text = format!(
        "phase = \"{name}\"\n[[lane]]\nid = \"L\"\nretries = 0\n\
         command = '{command}echo {name} >> \"$SCRATCH/ran\"; echo {name} > {name}.txt'\n"
    );
    env.write(&format!("{name}.toml"), &text);
    env.path(&format!("{name}.toml")).to_string_lossy().into_owned()
}

fn signals(text: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with("PHASE_COMPLETE_")).map(str::to_owned).collect()
}

#[test]
fn chained_phases_run_in_order_and_print_signals() {
    let env = TestEnv::new();
    let [one, two, three] = ["P1", "P2", "P3"].map(|name| phase(&env, name, ""));
    let ended = env.lanewright(&["execute-phase", &one, "--next-phase", &two, "--next-phase", &three]).exits(0);
    assert_eq!(env.scratch("ran"), "P1\nP2\nP3\n");
    let expected = [
        format!("PHASE_COMPLETE_CONTINUE: {two}"),
        format!("PHASE_COMPLETE_CONTINUE: {three}"),
        "PHASE_COMPLETE_STOP: that was the last phase".to_owned(),
    ];
    assert_eq!(signals(&ended.stdout), expected);
    assert!(env.holds("main", "P3.txt"));
}

#[test]
fn failed_phase_ends_the_chain_until_a_resume() {
    let env = TestEnv::new();
    let one = phase(&env, "P1", "");
    let two = phase(&env, "P2", "[ -e \"$SCRATCH/fixed\" ] || exit 3; ");
    let three = phase(&env, "P3", "");
    let ended = env.lanewright(&["execute-phase", &one, "--next-phase", &two, "--next-phase", &three]).exits(1);
    assert_eq!(signals(&ended.stdout)[1], "PHASE_COMPLETE_STOP: at least one lane failed");
    assert_eq!(env.scratch("ran"), "P1\n");
    env.write("scratch/fixed", "");
    let ended = env.lanewright(&["resume"]).exits(0);
    assert_eq!(env.scratch("ran"), "P1\nP2\nP3\n", "what is done is not done again");
    assert_eq!(signals(&ended.stdout).last().map(String::as_str), Some("PHASE_COMPLETE_STOP: that was the last phase"));
}

#[test]
fn the_resume_of_one_lane_does_not_start_the_next_phase() {
    let env = TestEnv::new();
    let lane = |id: &str| format!("[[lane]]\nid = \"{id}\"\nretries = 0\ncommand = 'test -e \"$SCRATCH/{id}\"'\n");
    env.plan(&[lane("A"), lane("B")].concat().replace("command", "allow_empty = true\ncommand"));
    let next = phase(&env, "P2", "");
    env.execute(&["--next-phase", &next]).exits(1);
    env.write("scratch/A", "");
    let ended = env.lanewright(&["resume", "--lane", "A"]).exits(0);
    assert_eq!(signals(&ended.stdout), [] as [&str; 0]);
    env.write("scratch/B", "");
    let ended = env.lanewright(&["resume", "--lane", "B"]).exits(0);
    assert_eq!(signals(&ended.stdout)[0], format!("PHASE_COMPLETE_CONTINUE: {next}"));
}

#[test]
fn chain_resume_skips_completed_phases() {
    let env = TestEnv::new();
    let one = phase(&env, "P1", "");
    let two = phase(&env, "P2", "[ -e \"$SCRATCH/fixed\" ] || exit 3; ");
    let chain = ["execute-phase", &one, "--next-phase", &two];
    env.lanewright(&chain).exits(1);
    env.write("scratch/fixed", "");
    let resumed = env.lanewright(&[&chain[..], &["--resume"]].concat()).exits(0);
    assert!(resumed.stdout.contains("nothing to do: 1 of 1 lane was merged"), "{}", resumed.stdout);
    assert_eq!(env.scratch("ran"), "P1\nP2\n");
}

#[test]
fn invalid_chain_is_refused_before_anything_runs() {
    let env = TestEnv::new();
    let (one, two) = (phase(&env, "P1", ""), phase(&env, "P2", ""));
    env.lanewright(&["execute-phase", &one, "--next-phase", "nowhere.toml"]).exits(2).says(&["nowhere.toml"]);
    let unmerged = ["execute-phase", &one, "--next-phase", &two, "--merge", "none"];
    env.lanewright(&unmerged).exits(2).says(&["merge = none"]);
    let dry = env.lanewright(&["execute-phase", &one, "--next-phase", &two, "--dry-run"]).exits(0);
    assert!(signals(&dry.stdout).is_empty() && !env.path("scratch/ran").exists(), "{}", dry.stdout);
}
