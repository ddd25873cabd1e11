//! Phase plans in Markdown, from the file to the merged result (SPEC §3.3).

use crate::support::TestEnv;

const PLAN: &str = "# P4: Reports

## Interface Freeze Gates

- [ ] IF-0-P4-TABLE: the table that reports read
- [x] IF-0-P4-CLOCK: what time it is

## Lane Index & Dependencies

- SL-1 - Table; Depends on: (none); Blocks: SL-2; Parallel-safe: yes
- SL-2 - Pages; Depends on: (none — but see SL-1); Blocks: none; Parallel-safe: yes

## Lanes

### SL-1 - Table

- **Scope**: the table
- **Owned files**: `src/table.txt`, `tests/table.txt`
- **Interfaces provided**: IF-0-P4-TABLE
- **Interfaces consumed**: IF-0-P4-CLOCK
- **Tasks**:
  - impl: write `src/table.txt`
  - test: write `tests/table.txt`
  - verify: `test -e src/table.txt && test -e tests/table.txt`

### SL-2 - Pages

- **Scope**: the pages
- **Owned files**: `src/pages.txt`
- **Interfaces provided**: none
- **Interfaces consumed**: IF-0-P4-TABLE
- **Tasks**:
  - impl: write `src/pages.txt`
";

fn env(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "runner = 'agent'\n[runners.agent]\ncommand = 'agent.sh'\n");
    env.program(
        "agent.sh",
        "#!/bin/sh\n\
         file=$(sed -n 's/.*write `\\([a-z/.]*\\)`.*/\\1/p' \"$LANEWRIGHT_PROMPT_FILE\" | head -n 1)\n\
         echo \"$LANEWRIGHT_LANE ${file:-nothing}\" >> \"$SCRATCH/log\"\n\
         [ -z \"$file\" ] || { mkdir -p \"$(dirname \"$file\")\"; echo x > \"$file\"; }\n",
    );
    env.write("repo/P4.md", plan);
    env.commit("the plan");
    env
}

#[test]
fn a_phase_plan_runs_tests_first_and_closes_its_gates() {
    let env = env(PLAN);
    let ended = env.lanewright(&["execute-phase", "P4.md", "--run-id", "r1"]).exits(0);
    let log = env.scratch("log");
    let written: Vec<&str> = log.lines().filter(|line| !line.ends_with("nothing")).collect();
    assert_eq!(written, ["SL-1 tests/table.txt", "SL-1 src/table.txt", "SL-2 src/pages.txt"], "{log}");
    ended.says(&["interface gates: all 2 closed"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn open_interface_gates_are_shown_until_provided() {
    let env = env(&PLAN.replace("test -e src/table.txt &&", "test -e src/nowhere.txt &&"));
    let ended = env.lanewright(&["execute-phase", "P4.md", "--run-id", "r1", "--retries", "0"]).exits(1);
    ended.says(&["interface gates: 1 of 2 closed; open: IF-0-P4-TABLE (SL-1)"]);
}

#[test]
fn interface_gate_without_provider_warns_or_fails() {
    let env =
        env(&PLAN.replace("provided**: IF-0-P4-TABLE", "provided**: none").replace("Blocks: SL-2", "Blocks: none"));
    let check = |more: &[&str]| env.lanewright(&[&["plan", "check", "P4.md"], more].concat());
    check(&[]).exits(0).says(&["IF-0-P4-TABLE"]);
    check(&["--strict-gates"]).exits(2).says(&["IF-0-P4-TABLE"]);
}

#[test]
fn a_retired_plan_is_refused_unless_it_is_forced() {
    let env = env(&format!("---\nstatus: retired\n---\n\n{PLAN}"));
    env.lanewright(&["execute-phase", "P4.md"]).exits(2).says(&["retired"]);
    env.lanewright(&["execute-phase", "P4.md", "--force", "--run-id", "r1"]).exits(0);
}

#[test]
fn file_that_is_not_a_plan_is_named_by_its_kind() {
    let env = env("# Notes\n\nSome prose about this and that.\n");
    env.lanewright(&["execute-phase", "P4.md"]).exits(2).says(&["this is a Markdown document without lanes"]);
}

#[test]
fn missing_runner_is_named_once_when_the_plan_runs() {
    let env = env(PLAN);
    env.write("repo/lanewright.toml", "[runners.agent]\ncommand = 'agent.sh'\n");
    env.commit("no runner");
    for words in [["plan", "check"], ["plan", "show"], ["plan", "graph"], ["plan", "convert"]] {
        env.lanewright(&[&words[..], &["P4.md"]].concat()).exits(0);
    }
    let refused = env.lanewright(&["execute-phase", "P4.md"]).exits(2).says(&["no runner is set for 2 lanes"]);
    assert_eq!(refused.stderr.matches("no runner").count(), 1, "{}", refused.stderr);
    assert!(!env.path("scratch/log").exists());
    env.lanewright(&["execute-phase", "P4.md", "--runner", "agent"]).exits(0);
}

#[test]
fn runner_option_replaces_runner_of_lane_plan() {
    let policy = "\n## Execution Policy\n\n- default: executor=`other`, unsupported=`block`\n";
    let env = env(&format!("{PLAN}{policy}"));
    env.lanewright(&["plan", "check", "P4.md"]).exits(2);
    env.lanewright(&["execute-phase", "P4.md", "--runner", "agent"]).exits(0);
    assert!(env.holds("main", "src/pages.txt"));
}
