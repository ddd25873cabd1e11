//! GSD phases from their directory to the merged result (SPEC §3.2).

use crate::support::{RUN, TestEnv};

const PHASE: &str = "repo/.planning/phases/01-base";

/// A phase of three plans, of which the first two touch one file; the third asks a person.
fn phase() -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "runner = 'agent'\n[runners.agent]\ncommand = 'agent.sh'\n");
    env.program(
        "agent.sh",
        "#!/bin/sh\n\
         echo \"begin $LANEWRIGHT_LANE $LANEWRIGHT_TASK\" >> \"$SCRATCH/log\"\n\
         cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.$LANEWRIGHT_LANE.$LANEWRIGHT_TASK\"\n\
         echo \"$LANEWRIGHT_LANE\" >> shared.txt\n\
         mkdir -p .planning; echo \"agent of $LANEWRIGHT_LANE\" >> .planning/STATE.md\n\
         [ ! -e \"$SCRATCH/wait\" ] || wait-for go\n\
         echo \"end $LANEWRIGHT_LANE $LANEWRIGHT_TASK\" >> \"$SCRATCH/log\"\n",
    );
    let plan = |number: &str, more: &str, tasks: &str| {
        format!(
            "---\nphase: 01-base\nplan: {number}\ntype: execute\nautonomous: true\n{more}---\n\n\
             <objective>\nObjective of {number}.\n</objective>\n\n<tasks>\n{tasks}</tasks>\n"
        )
    };
    let task = |action: &str| {
        format!(
            "<task type=\"auto\">\n  <name>Name of {action}</name>\n  <files>shared.txt</files>\n  \
             <action>Do {action}.</action>\n  <verify><automated>test -e shared.txt</automated></verify>\n</task>\n"
        )
    };
    let touching = "wave: 1\ndepends_on: []\nfiles_modified: [shared.txt]\n";
    env.write(&format!("{PHASE}/01-01-PLAN.md"), plan("01", touching, &task("one")));
    env.write(&format!("{PHASE}/01-02-PLAN.md"), plan("02", touching, &task("two")));
    let person = "<task type=\"checkpoint:human-verify\">\n<what-built>A thing</what-built>\n\
                  <how-to-verify>Look at it.</how-to-verify>\n</task>\n";
    let last = plan("03", "wave: 2\ndepends_on: [\"01\"]\nfiles_modified: []\n", &(task("three") + person));
    env.write(&format!("{PHASE}/01-03-PLAN.md"), &last);
    env.write(
        "repo/.planning/ROADMAP.md",
        "# Roadmap\n- [ ] **Phase 1: Base**\n  - [ ] 01-01-PLAN.md\n  - [ ] 01-02-PLAN.md\n",
    );
    env.write("repo/.planning/STATE.md", "Phase: 1 of 1 (Base)\nPlan: 0 of 3\nLast activity: never\n");
    env.commit("the plans");
    env
}

fn execute(env: &TestEnv, more: &[&str]) -> crate::support::Ended {
    let path = env.path(PHASE);
    let phase = ["execute-phase", path.to_str().expect("UTF-8"), "--run-id", "r1", "--max-parallel", "4"];
    env.lanewright(&[&phase[..], more].concat())
}

#[test]
fn gsd_phase_runs_asks_the_user_and_separates_files() {
    let env = phase();
    execute(&env, &[]).exits(3).says(&["01-03"]);
    env.lanewright(&["approve", "r1", "01-03", "--gate", "task:2"]).exits(0);
    env.lanewright(&["resume", "r1"]).exits(0);
    let log = env.scratch("log");
    let order: Vec<&str> = log.lines().filter(|line| !line.contains("01-03")).collect();
    assert_eq!(
        order,
        ["begin 01-01 1", "end 01-01 1", "begin 01-02 1", "end 01-02 1"],
        "one file, one after the other"
    );
    assert!(env.scratch("prompt.01-02.1").contains("Do two."));
    assert_eq!(log.lines().filter(|line| line.starts_with("begin")).count(), 3, "every task once: {log}");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn gsd_state_is_written_by_lanewright_only_when_asked() {
    for tracking in [false, true] {
        let env = phase();
        env.write("repo/.planning/phases/01-base/01-03-SUMMARY.md", "done before\n");
        if tracking {
            let config = "runner = 'agent'\ngsd.tracking = true\n[runners.agent]\ncommand = 'agent.sh'\n";
            env.write("repo/lanewright.toml", config);
        }
        env.commit("settings");
        execute(&env, &[]).exits(0);
        let (state, roadmap) = (env.file_at("main", ".planning/STATE.md"), env.file_at("main", ".planning/ROADMAP.md"));
        assert!(!state.contains("agent of"), "{state}");
        assert_eq!(state.contains("is done"), tracking, "{state}");
        assert_eq!(roadmap.contains("- [x] 01-02-PLAN.md"), tracking, "{roadmap}");
        assert_eq!(roadmap.contains("- [x] **Phase 1: Base** (completed "), tracking, "{roadmap}");
        let noted = env.events("noted").iter().any(|event| event.to_string().contains("Lanewright keeps them"));
        assert!(noted, "what an agent wrote is left out without a word");
        assert_eq!(env.file_at("main", "shared.txt"), "01-01\n01-02");
        let summary = ".planning/phases/01-base/01-02-SUMMARY.md";
        assert_eq!(env.holds("main", summary), tracking);
    }
}

#[test]
fn any_plan_of_a_tracked_phase_can_be_rolled_back() {
    let env = TestEnv::new();
    let config = "runner = 'agent'\ngsd.tracking = true\nmax_parallel = 1\n[runners.agent]\ncommand = 'agent.sh'\n";
    env.write("repo/lanewright.toml", config);
    env.program("agent.sh", "#!/bin/sh\necho x > \"of-$LANEWRIGHT_LANE.txt\"\n");
    for plan in ["01-01", "01-02"] {
        let text = "---\ntype: execute\nautonomous: true\n---\n\n<tasks>\n<task type=\"auto\">\n<name>Name</name>\n\
                    <action>Do it.</action>\n</task>\n</tasks>\n";
        env.write(&format!("repo/.planning/phases/01-a/{plan}-PLAN.md"), text);
    }
    let (roadmap, state) = (".planning/ROADMAP.md", ".planning/STATE.md");
    env.write(&format!("repo/{roadmap}"), "# Roadmap\n- [ ] Phase 1: A\n- [ ] 01-01-PLAN.md\n- [ ] 01-02-PLAN.md\n");
    env.write(&format!("repo/{state}"), "# State\n\nLast activity: never\n");
    env.commit("the plans");
    let phase = env.path("repo/.planning/phases/01-a").to_string_lossy().into_owned();
    env.lanewright(&["execute-phase", &phase, "--run-id", RUN]).exits(0);
    env.lanewright(&["rollback", RUN, "--lane", "01-01", "--yes"]).exits(0);
    let left = env.file_at("main", roadmap);
    assert!(left.contains("- [ ] 01-01-PLAN.md\n- [x] 01-02-PLAN.md"), "{left}");
    assert!(env.file_at("main", state).contains("01-02"), "{}", env.file_at("main", state));
    assert!(!env.holds("main", "of-01-01.txt") && env.holds("main", "of-01-02.txt"));
    env.resume(&[]).exits(0);
    assert!(env.file_at("main", roadmap).contains("- [x] 01-01-PLAN.md\n- [x] 01-02-PLAN.md"));
}

/// The ticked lines of the roadmap once what `arguments` name below the phases was run, of a directory with `plans`.
fn ticked(directory: &str, plans: &[&str], runs: &[&[&str]]) -> Vec<Vec<String>> {
    let env = TestEnv::new();
    let config = "runner = 'agent'\ngsd.tracking = true\n[runners.agent]\ncommand = 'agent.sh'\n";
    env.write("repo/lanewright.toml", config);
    env.program("agent.sh", "#!/bin/sh\necho x > \"of-$LANEWRIGHT_LANE.txt\"\n");
    for plan in plans {
        let text = "---\ntype: execute\nautonomous: true\n---\n\n<tasks>\n<task type=\"auto\">\n<name>Name</name>\n\
                    <action>Do it.</action>\n</task>\n</tasks>\n";
        env.write(&format!("repo/.planning/phases/{directory}/{plan}"), text);
    }
    let phases = ["1: A", "2: B", "2.1: C", "7: Q"].map(|phase| format!("- [ ] Phase {phase}\n")).concat();
    let names = ["01-01", "01-02", "02-01", "07-01", "07-02"].map(|plan| format!("- [ ] {plan}-PLAN.md\n")).concat();
    let rows = ["1. A", "2. B", "2.1. C", "7. Q"].map(|phase| format!("| {phase} | 0/9 | - | - |\n")).concat();
    env.write("repo/.planning/ROADMAP.md", format!("# Roadmap\n{phases}{names}{rows}"));
    env.commit("the plans");
    let after = |(at, run): (usize, &&[&str])| {
        let path = env.path(&format!("repo/.planning/phases/{}", run[0])).to_string_lossy().into_owned();
        let id = format!("r{at}");
        env.lanewright(&[&["execute-phase", &path, "--run-id", &id], &run[1..]].concat()).exits(0);
        let roadmap = env.file_at("main", ".planning/ROADMAP.md");
        let changed =
            roadmap.lines().filter(|line| line.starts_with("- [x]") || line.contains('|') && !line.contains("0/9"));
        let short = |line: &str| {
            let line = line.trim_start_matches("- [x] ").split(" (completed").next().unwrap_or_default();
            line.split(" | ").take(2).collect::<Vec<_>>().join(" ").trim_start_matches("| ").to_owned()
        };
        changed.map(short).collect()
    };
    runs.iter().enumerate().map(after).collect()
}

#[test]
fn gsd_roadmap_ticks_phase_of_plan_directory() {
    let bare = ticked("07-q", &["01-PLAN.md", "02-PLAN.md"], &[&["07-q"]]);
    assert_eq!(bare, [["Phase 7: Q", "07-01-PLAN.md", "07-02-PLAN.md", "7. Q 2/2"]]);
    let only = ticked("02-next", &["PLAN.md"], &[&["02-next"]]);
    assert_eq!(only, [["Phase 2: B", "2. B 1/1"]]);
    let between = ticked("02.1-c", &["02.1-01-PLAN.md"], &[&["02.1-c/02.1-01-PLAN.md"]]);
    assert_eq!(between, [["Phase 2.1: C", "2.1. C 1/1"]]);
}

#[test]
fn gsd_phase_is_ticked_only_after_its_last_plan() {
    let plans = ["01-01-setup-PLAN.md", "01-02-PLAN.md"];
    let done = ["Phase 1: A", "01-01-PLAN.md", "01-02-PLAN.md", "1. A 2/2"];
    let files = ticked("01-a", &plans, &[&["01-a/01-01-setup-PLAN.md"], &["01-a/01-02-PLAN.md"]]);
    assert_eq!(files[0], ["01-01-PLAN.md", "1. A 1/2"], "one file is not the phase");
    assert_eq!(files[1], done);
    let lanes = ticked("01-a", &plans, &[&["01-a", "--lane", "01-02"], &["01-a"]]);
    assert_eq!(lanes[0], ["01-02-PLAN.md", "1. A 1/2"], "one lane is not the phase");
    assert_eq!(lanes[1], done);
}

#[test]
fn gsd_plan_with_summary_is_skipped_unless_redone() {
    let env = phase();
    env.write("repo/.planning/phases/01-base/01-01-SUMMARY.md", "done\n");
    env.write("repo/.planning/phases/01-base/01-03-SUMMARY.md", "done\n");
    env.commit("done");
    let shown = env.lanewright(&["plan", "show", env.path(PHASE).to_str().expect("UTF-8")]).exits(0);
    assert!(shown.stdout.contains("skipped        01-01"), "{}", shown.stdout);
    execute(&env, &[]).exits(0);
    assert_eq!(env.scratch("log").lines().filter(|line| line.starts_with("begin")).count(), 1);
}

#[test]
fn new_gsd_summary_does_not_change_the_running_plan() {
    let env = phase();
    env.program(
        "agent.sh",
        &format!(
            "#!/bin/sh\n[ $LANEWRIGHT_LANE != 01-02 ] || [ -e \"$SCRATCH/fixed\" ] || exit 1\n\
        echo x >> \"$SCRATCH/began.$LANEWRIGHT_LANE\"; echo x >> shared.txt\n\
        echo done > {}/$LANEWRIGHT_LANE-SUMMARY.md\n",
            PHASE.trim_start_matches("repo/")
        ),
    );
    env.write("repo/.planning/phases/01-base/01-03-SUMMARY.md", "done before\n");
    env.commit("done before");
    execute(&env, &["--retries", "0"]).exits(1);
    env.write("scratch/fixed", "");
    env.lanewright(&["resume", "r1"]).exits(0);
    assert_eq!(env.scratch("began.01-01"), "x\n", "what was merged is not done again");
    assert!(env.holds("main", ".planning/phases/01-base/01-02-SUMMARY.md"));
}

#[test]
fn a_plan_that_changed_is_refused_with_what_changed() {
    let env = phase();
    execute(&env, &[]).exits(3);
    let path = format!("{PHASE}/01-03-PLAN.md");
    let text = env.read(&path);
    env.write(&path, text.replace("depends_on: [\"01\"]", "depends_on: [\"01\", \"02\"]"));
    env.lanewright(&["resume", "r1"]).exits(2).says(&["lane 01-03 depended on [01-01] and depends on [01-01, 01-02]"]);
    env.write(&path, text.replace("Do three.", "Do four."));
    env.lanewright(&["resume", "r1"]).exits(2).says(&["lane 01-03: task 1 (prompt)"]);
}

/// Two phases of one or two plans each whose agents write their summaries, and a roadmap.
fn project() -> TestEnv {
    let env = phase();
    env.program(
        "agent.sh",
        "#!/bin/sh\n\
         [ ! -e \"$SCRATCH/broken.$LANEWRIGHT_LANE\" ] || exit 1\n\
         echo \"$LANEWRIGHT_LANE\" >> \"$SCRATCH/ran\"\n\
         for d in .planning/phases/*; do [ ! -e $d/$LANEWRIGHT_LANE-PLAN.md ] || echo x > $d/$LANEWRIGHT_LANE-SUMMARY.md; done\n\
         echo x > shared.txt\n",
    );
    env.git(&["rm", "--quiet", ".planning/phases/01-base/01-03-PLAN.md"]);
    env.write(
        "repo/.planning/phases/02-next/02-01-PLAN.md",
        "<task type=\"auto\"><name>n</name><action>Do it.</action></task>\n",
    );
    env.write("repo/.planning/ROADMAP.md", "# Roadmap\n- [ ] **Phase 1: Base**\n- [ ] **Phase 2: Next**\n");
    env.commit("a project");
    env
}

fn roadmap(env: &TestEnv, more: &[&str]) -> crate::support::Ended {
    env.lanewright(&[&["execute-phase", ".planning/ROADMAP.md"][..], more].concat())
}

#[test]
fn roadmap_runs_only_plans_left_by_single_lanes() {
    let env = project();
    // Its agent leaves no summary, so that only the run log knows.
    env.write("repo/.planning/phases/01-base/01-01-PLAN.md", "<task><action>Do one.</action></task>\n");
    env.write("repo/.planning/phases/01-base/01-02-PLAN.md", "<task><action>Do two.</action></task>\n");
    env.program(
        "agent.sh",
        "#!/bin/sh\necho \"$LANEWRIGHT_LANE\" >> \"$SCRATCH/ran\"; echo x > $LANEWRIGHT_LANE.txt\n",
    );
    env.commit("plans");
    env.lanewright(&["execute-lane", PHASE.trim_start_matches("repo/"), "01-01"]).exits(0);
    roadmap(&env, &[]).exits(0);
    assert_eq!(env.scratch("ran"), "01-01\n01-02\n02-01\n");
    env.write("repo/.planning/phases/01-base/01-03-PLAN.md", "<task><action>Do three.</action></task>\n");
    env.commit("one more");
    roadmap(&env, &[]).exits(0);
    assert_eq!(env.scratch("ran"), "01-01\n01-02\n02-01\n01-03\n");
}

#[test]
fn agent_that_writes_only_gsd_state_is_idle() {
    let env = phase();
    env.program("agent.sh", "#!/bin/sh\necho seen >> .planning/STATE.md; echo 'Which database?'\n");
    execute(&env, &["--retries", "0"]).exits(1).says(&["changed no file", "Which database?"]);
    assert!(env.events("lane_merged").is_empty());
}

#[test]
fn a_roadmap_of_several_phases_is_no_native_plan() {
    let env = project();
    let phases = [".planning/phases/01-base", ".planning/phases/02-next"];
    env.lanewright(&["plan", "convert", ".planning/ROADMAP.md"]).exits(2).hints(phases[0]).hints(phases[1]);
    env.lanewright(&["plan", "convert", phases[0]]).exits(0);
}

#[test]
fn done_gsd_phase_is_skipped_and_can_be_rolled_back() {
    let env = project();
    let (one, two) = (".planning/phases/01-base", ".planning/phases/02-next");
    env.write("scratch/broken.02-01", "");
    env.lanewright(&["execute-phase", one, "--next-phase", two, "--retries", "0"]).exits(1);
    let done = env.lanewright(&["execute-phase", one]).exits(0);
    assert!(done.stdout.contains("nothing to do: every plan of phase 01-base is done"), "{}", done.stdout);
    env.lanewright(&["plan", "check", one]).exits(0);
    std::fs::remove_file(env.path("scratch/broken.02-01")).expect("the file");
    let chain = ["execute-phase", one, "--next-phase", two, "--resume"];
    env.lanewright(&chain).exits(0).says(&["Phase 01-base is complete"]);
    assert_eq!(env.scratch("ran"), "01-01\n01-02\n02-01\n");
    env.lanewright(&["execute-phase", two, "--rollback", "--yes"]).exits(8).hints("name it: --run-id RUN");
    let done = env.lanewright(&["status", "@latest", "--format", "json"]).exits(0).json();
    let run = done["run_id"].as_str().expect("a run");
    env.lanewright(&["execute-phase", two, "--rollback", "--run-id", run, "--yes"]).exits(0);
    assert!(!env.holds("main", ".planning/phases/02-next/02-01-SUMMARY.md"));
}

#[test]
fn a_roadmap_is_gone_on_with_between_two_phases() {
    let env = project();
    env.lanewright(&["execute-phase", ".planning/phases/01-base"]).exits(0);
    roadmap(&env, &["--resume"]).exits(0);
    assert_eq!(env.scratch("ran"), "01-01\n01-02\n02-01\n");
}

#[test]
fn ignored_summary_is_delivered_and_not_committed() {
    for (tracking, writes) in [(false, true), (true, true), (true, false)] {
        let env = TestEnv::new();
        let config = "runner = 'agent'\n[runners.agent]\ncommand = 'agent.sh'\n";
        env.write("repo/lanewright.toml", format!("{}{config}", if tracking { "gsd.tracking = true\n" } else { "" }));
        env.write("repo/.gitignore", ".planning/\n");
        env.commit("settings");
        let directory = ".planning/phases/01-base";
        let tasks = "<tasks>\n<task type=\"auto\">\n<name>Name</name>\n<action>Do it.</action>\n\
                     <verify>test -e x.txt</verify>\n</task>\n</tasks>\n";
        for plan in ["01-01", "01-02"] {
            let text = format!("---\ntype: execute\nautonomous: true\n---\n\n{tasks}");
            env.write(&format!("repo/{directory}/{plan}-PLAN.md"), text);
        }
        env.write(&format!("repo/{directory}/01-02-SUMMARY.md"), "done before\n");
        let write = format!("mkdir -p {directory}; echo real > {directory}/$LANEWRIGHT_LANE-SUMMARY.md\n");
        env.program("agent.sh", &format!("#!/bin/sh\necho x > x.txt\n{}", if writes { &write } else { "" }));
        let ended = env.lanewright(&["execute-phase", directory, "--run-id", "r1"]).exits(0);
        let summary = format!("{directory}/01-01-SUMMARY.md");
        assert!(!env.holds("main", &summary), "an ignored file is committed");
        let text = env.read(&format!("repo/{summary}"));
        assert_eq!(text == "real\n", writes, "{text}");
        assert_eq!(ended.stderr.contains("the agent left no summary"), !writes, "{}", ended.stderr);
        assert_eq!(env.read(&format!("repo/{directory}/01-02-SUMMARY.md")), "done before\n");
    }
}
