//! Agents that do not end by themselves.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{TestEnv, wait_until};

/// Whether a process that an agent named in a file is alive.
fn alive(env: &TestEnv, file: &str) -> bool {
    let pid = env.scratch(file).trim().to_owned();
    let state = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

fn exits(env: &TestEnv) -> Vec<(String, i64)> {
    let exit = |job: serde_json::Value| {
        let cause = job["exit"]["cause"].as_str().expect("a cause").to_owned();
        (cause, job["exit"]["exit_code"].as_i64().expect("a code"))
    };
    env.events("job_exited").into_iter().map(exit).collect()
}

#[test]
fn agent_ignoring_its_timeout_is_killed_with_children() {
    let env = TestEnv::new();
    // The grandchild leaves the session, ignores SIGTERM too, and keeps the output open.
    env.plan(
        r#"
[timeouts]
agent = "1s"
kill_after = "200ms"
[[lane]]
id = "L"
retries = 1
command = '''
if [ $LANEWRIGHT_ATTEMPT = 2 ]; then echo x > x.txt; exit 0; fi
trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ > "$SCRATCH/grandchild"; while [ -d "$SCRATCH" ]; do sleep 0.05; done' &
echo $$ > "$SCRATCH/child"
while [ -d "$SCRATCH" ]; do sleep 0.05; done
'''
"#,
    );
    env.execute(&[]).exits(0);
    assert_eq!(exits(&env), [("timed_out".to_owned(), 137), ("exited".to_owned(), 0)]);
    assert!(!alive(&env, "child") && !alive(&env, "grandchild"));
    assert!(env.attempt_file("L", "agent", 2, "failure_context.json").contains("137"));
    assert!(env.holds("main", "x.txt"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn timed_out_agent_is_terminated_and_its_work_saved() {
    let env = TestEnv::new();
    env.plan(
        r#"
[timeouts]
agent = "1s"
[[lane]]
id = "L"
retries = 1
command = '''
[ $LANEWRIGHT_ATTEMPT = 2 ] && exit 0
echo half > half.txt
wait-for never
'''
"#,
    );
    env.execute(&[]).exits(0);
    assert_eq!(exits(&env), [("timed_out".to_owned(), 124), ("exited".to_owned(), 0)]);
    let kept = env.events("snapshot_taken").into_iter().find(|kept| kept["reason"] == "timeout");
    assert!(kept.is_some(), "the work was not kept");
    assert_eq!(env.file_at("main", "half.txt"), "half");
}

#[test]
fn processes_left_by_an_agent_end_with_it() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = 'setsid wait-for never & echo $! > \"$SCRATCH/server\"; echo x > x.txt'\n",
    );
    env.execute(&[]).exits(0);
    assert!(!alive(&env, "server"));
    assert!(env.holds("main", "x.txt"));
}

#[test]
fn agent_outlives_a_kill_and_resume_takes_its_work() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo begun >> \"$SCRATCH/began\"; wait-for go; echo x > x.txt; touch \"$SCRATCH/done\"'\n");
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    run.signal(rustix::process::Signal::KILL);
    run.wait().exits(137);
    env.write("scratch/go", "");
    wait_until("the agent's end", || env.path("scratch/done").exists());
    env.resume(&[]).exits(0);
    assert_eq!(env.scratch("began"), "begun\n");
    assert!(env.holds("main", "x.txt"));
    env.assert_nothing_left(&["main"]);
}

/// A gate that kills its supervisor, and would then run for ever.
const KILLS_ITS_SUPERVISOR: &str = "kill -KILL $PPID; wait-for never";

#[test]
fn gate_without_supervisor_runs_again_without_the_agent() {
    let env = TestEnv::new();
    // Each kind of gate loses its supervisor once.
    let once =
        |gate: &str| format!("[ -e \"$SCRATCH/{gate}\" ] || {{ touch \"$SCRATCH/{gate}\"; {KILLS_ITS_SUPERVISOR}; }}");
    env.plan(&format!(
        "[gates]\natomic = ['''{}''']\ncheckpoint = ['''{}''']\nfinal = ['''{}''']\n\
         [[lane]]\nid = \"L\"\nretries = 0\nsetup = ['''{}''']\ntests = ['''{}''']\n\
         command = 'echo begun >> \"$SCRATCH/began\"; echo x > x.txt'\n",
        once("atomic"),
        once("checkpoint"),
        once("final"),
        once("setup"),
        once("tests"),
    ));
    env.execute(&[]).exits(0);
    assert_eq!(env.scratch("began"), "begun\n");
    let lost = exits(&env).into_iter().filter(|(cause, _)| cause == "lost").count();
    assert!(lost >= 5, "{lost} gates lost their supervisor");
    assert!(env.events("failure_noted").is_empty());
    assert!(env.holds("main", "x.txt"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn gate_that_always_kills_its_supervisor_fails() {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nretries = 0\ntests = ['''{KILLS_ITS_SUPERVISOR}''']\n\
         command = 'echo begun >> \"$SCRATCH/began\"; echo x > x.txt'\n"
    ));
    env.execute(&[]).exits(1);
    assert_eq!(env.scratch("began"), "begun\n");
    assert_eq!(exits(&env).into_iter().filter(|(cause, _)| cause == "lost").count(), 3);
    let failure = env.events("lane_failed")[0]["failure"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(failure.contains("the supervisor of") && failure.contains("died 3 times"), "{failure}");
}

/// Ends an agent, which then exits with `code`, and after it its supervisor, as an engine does that signals the processes of
/// a job one after the other.
fn end_one_after_the_other(code: i64) -> Vec<(String, i64)> {
    let env = TestEnv::new();
    let handler = if code == 143 { String::new() } else { format!("trap 'exit {code}' TERM\n") };
    env.plan(&format!(
        r#"
[[lane]]
id = "L"
retries = 0
command = '''
if [ -e "$SCRATCH/agent" ]; then echo x > x.txt; exit 0; fi
{handler}echo $PPID > "$SCRATCH/supervisor"
echo $$ > "$SCRATCH/agent.new" && mv "$SCRATCH/agent.new" "$SCRATCH/agent"
while [ -d "$SCRATCH" ]; do sleep 0.05; done
'''
"#
    ));
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/agent").exists());
    let pid = |file: &str| Pid::from_raw(env.scratch(file).trim().parse().expect("a pid")).expect("a pid");
    let waits = code == 143;
    if !waits {
        // It sees the agent's end and its own signal together.
        kill_process(pid("supervisor"), Signal::STOP).expect("a signal");
    }
    kill_process(pid("agent"), Signal::TERM).expect("a signal");
    let was_seen = || kill_process(pid("agent"), Signal::CONT).is_err();
    wait_until("the agent's end", || if waits { was_seen() } else { !alive(&env, "agent") });
    // Without a supervisor that waits, there is none any more.
    let _ = kill_process(pid("supervisor"), Signal::TERM);
    let _ = kill_process(pid("supervisor"), Signal::CONT);
    run.wait();
    assert_eq!(env.holds("main", "x.txt"), code > 0);
    exits(&env)
}

#[test]
fn agent_ended_with_its_supervisor_counts_as_stopped() {
    for code in [143, 130, 1] {
        assert_eq!(end_one_after_the_other(code), [("stopped".to_owned(), 143), ("exited".to_owned(), 0)], "{code}");
    }
}

#[test]
fn success_just_before_the_supervisor_ends_counts() {
    assert_eq!(end_one_after_the_other(0), [("exited".to_owned(), 0)]);
}
