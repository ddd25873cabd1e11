//! Lanes that work on an executor, with stand-ins for Slurm's commands that run jobs as processes on this machine.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::documents::Schema;
use crate::exchange::{clone, two_agents, wait_for_the_slow_agent};
use crate::executors::{slurm, this};
use crate::support::{Ended, Running, TestEnv, wait_until};

/// Two lanes on the executor, the second after the first, and one here. `$1` in `scratch` lets the first lane pass.
const CHAIN: &str = "
[defaults]
executor = 'main'
[[lane]]
id = 'A'
command = 'echo $$ >>$SCRATCH/attempts; wait-for go; echo a >a.txt'
[[lane]]
id = 'B'
command = 'cat a.txt >b.txt; echo written'
tests = ['test -f b.txt']
depends_on = ['A']
[[lane]]
id = 'HERE'
command = 'echo here >here.txt'
executor = 'local'
";

pub(crate) fn chain() -> TestEnv {
    let env = slurm(this());
    env.plan(CHAIN);
    env.commit("settings");
    env
}

pub(crate) fn submitted(env: &TestEnv) -> usize {
    fs::read_to_string(env.path("scratch/submitted")).unwrap_or_default().lines().count()
}

pub(crate) fn has_begun(env: &TestEnv, attempts: usize) -> bool {
    fs::read_to_string(env.path("scratch/attempts")).unwrap_or_default().lines().count() >= attempts
}

/// The process that works as job `id`.
pub(crate) fn worker(env: &TestEnv, id: u32) -> Pid {
    let pid = env.scratch(&format!("pid.{id}")).trim().parse().expect("a pid");
    Pid::from_raw(pid).expect("a pid")
}

pub(crate) fn wait_for_the_claim(env: &TestEnv) {
    wait_until("the claim", || {
        let status = env.lanewright(&["status", "--format", "json"]).exits(0).json();
        let lane = status["lanes"].as_array().expect("a list").iter().find(|lane| lane["lane"] == "A").cloned();
        let elsewhere = lane.expect("the lane")["elsewhere"].clone();
        elsewhere["executor"] == "main" && elsewhere["job"] == "7" && elsewhere["host"] != Value::Null
    });
}

pub(crate) fn assert_merged(env: &TestEnv, ended: Ended) {
    assert_merged_in(env, "repo", ended);
}

/// Everything is merged, each lane once.
pub(crate) fn assert_merged_in(env: &TestEnv, clone: &str, ended: Ended) {
    ended.exits(0);
    assert_eq!(env.git_at(clone, &["show", "main:b.txt"]).trim(), "a");
    assert_eq!(env.git_at(clone, &["show", "main:here.txt"]).trim(), "here");
    let merges = env.git_at(clone, &["log", "--merges", "--first-parent", "--format=%s", "main"]);
    let mut merges: Vec<&str> = merges.lines().collect();
    merges.sort_unstable();
    assert_eq!(merges, ["Merge lane A", "Merge lane B", "Merge lane HERE"]);
}

#[test]
fn lanes_work_as_jobs_and_are_merged_here() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    let told = env.lanewright(&["tell", "r1", "A", "-m", "use the v2 API"]).exits(0).stdout;
    assert!(told.contains("only if the lane is offered again") && !told.contains("next"), "{told}");
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
    assert_eq!(submitted(&env), 2);
    assert_eq!(env.git_at("exchange.git", &["for-each-ref"]), "", "the states of merged lanes are removed");
    assert!(env.lanewright(&["logs", "B"]).exits(0).stdout.contains("written"), "what jobs printed is here");
    let stages = ["before_lane_start", "after_lane_start", "after_lane_tests", "pre_pr"];
    stages.iter().for_each(|stage| drop(env.checkpoint("A", stage)));
}

#[test]
fn a_lane_whose_job_died_is_given_to_another() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    kill_process(worker(&env, 7), Signal::KILL).expect("a signal");
    wait_until("the second attempt", || has_begun(&env, 2));
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
    assert_eq!(submitted(&env), 3);
    let report = env.lanewright(&["report", "--format", "json"]).exits(0).json();
    Schema::named("report").accepts(&report);
    let lane = &report["lanes"].as_array().expect("a list")[0];
    let jobs = lane["placements"].as_array().expect("a list");
    let outcomes: Vec<&Value> = jobs.iter().map(|job| &job["outcome"]).collect();
    assert_eq!((lane["elsewhere"].is_null(), outcomes), (true, vec![&Value::Null, &"done".into()]), "{jobs:#?}");
    for job in jobs {
        assert!(["host", "claimed", "ended", "reason"].iter().all(|fact| !job[fact].is_null()), "{job:#}");
    }
}

#[test]
fn late_job_of_a_reassigned_lane_changes_nothing() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    let first = worker(&env, 7);
    kill_process(first, Signal::STOP).expect("a signal");
    env.write("scratch/lost.7", "");
    wait_until("the second attempt", || has_begun(&env, 2));
    env.write("scratch/go", "");
    kill_process(first, Signal::CONT).expect("a signal");
    assert_merged(&env, run.wait());
    wait_until("the end of the first job", || env.path("scratch/code.7").exists());
    assert_eq!(env.scratch("code.7").trim(), "75");
}

#[test]
fn lane_state_is_copied_again_after_failed_copy() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    let outputs = env.log_file().with_extension("").join("lanes/A");
    fs::create_dir_all(outputs.parent().expect("a parent")).expect("a directory");
    fs::write(&outputs, "").expect("a file");
    env.write("scratch/go", "");
    wait_until("the warning", || run.has_said("the state of lane A"));
    fs::remove_file(&outputs).expect("a removal");
    assert_merged(&env, run.wait());
}

#[test]
fn lane_removed_from_the_exchange_is_offered_again() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    env.git_at("exchange.git", &["update-ref", "-d", "refs/lanewright/state/r1.A"]);
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
    assert_eq!(env.scratch("code.7").trim(), "75");
}

#[test]
fn placed_lane_is_rolled_back_after_the_run_stopped() {
    let env = chain();
    let mut run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    run.kill();
    run.wait();
    env.lanewright(&["rollback", "--lane", "A", "--yes"]).exits(3).hints("resume the run and stop it");
    let run = env.start_with(&["resume", "--yes"], |command| command);
    // Until then the command would hold the lock that the resume takes.
    wait_until("the resume", || !env.events("run_resumed").is_empty());
    env.lanewright(&["stop"]).exits(0);
    run.wait().exits(143);
    env.lanewright(&["rollback", "--lane", "A", "--yes"]).exits(0);
    assert_eq!(refs(&env), ["refs/lanewright/owner/r1"], "what was rolled back is removed");
    env.write("scratch/go", "");
    assert_merged(&env, env.resume(&[]));
}

/// Another clone, with the run as it is now; what pulling it said.
fn other_clone(env: &TestEnv) -> Ended {
    clone(env);
    env.lanewright(&["state", "push", "--remote", "x"]).exits(0);
    in_other(env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0)
}

pub(crate) fn in_other(env: &TestEnv, arguments: &[&str]) -> Running {
    env.start_with(arguments, |command| command.current_dir(env.path("other")))
}

/// What the exchange has, but for the state of the run itself, which tests push by hand.
pub(crate) fn refs(env: &TestEnv) -> Vec<String> {
    let refs = env.git_at("exchange.git", &["for-each-ref", "--format=%(refname)"]);
    refs.lines().filter(|name| *name != "refs/lanewright/state/r1").map(str::to_owned).collect()
}

#[test]
fn resume_in_other_clone_does_not_resubmit_jobs() {
    let env = two_agents();
    let mut run = env.start(&[]);
    wait_for_the_slow_agent(&env);
    run.kill();
    run.wait();
    let pulled = other_clone(&env);
    assert!(!pulled.stdout.contains("will run again here"), "{}", pulled.stdout);
    env.write("scratch/go", "");
    in_other(&env, &["resume", "--yes"]).wait().exits(0);
    assert_eq!((submitted(&env), env.scratch("attempts").lines().count()), (1, 1));
    assert_eq!(env.git_at("other", &["show", "main:a.txt"]).trim(), "a");
    assert!(refs(&env).is_empty(), "{:?}", refs(&env));
}

#[test]
fn a_process_ends_whose_run_goes_on_in_another_clone() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    other_clone(&env);
    let there = in_other(&env, &["resume", "--yes"]);
    let other = env.path("other").display().to_string();
    run.wait().exits(4).says(&["run r1 was continued elsewhere", &other]);
    env.resume(&["--yes"]).exits(4).says(&["run r1 was continued elsewhere", &other]);
    env.lanewright(&["clean", "r1", "--force", "--logs", "--yes"]).exits(0).says(&["was continued elsewhere"]);
    env.write("scratch/go", "");
    assert_merged_in(&env, "other", there.wait());
    assert_eq!((submitted(&env), env.scratch("attempts").lines().count()), (2, 1));
    assert!(refs(&env).is_empty(), "{:?}", refs(&env));
}

#[test]
fn adopting_clone_overwrites_the_last_push() {
    let env = chain();
    clone(&env);
    let run = env.start(&["--state-remote", "x"]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    wait_until("a state of the run", || {
        !env.git_at("exchange.git", &["for-each-ref", "refs/lanewright/state/r1"]).is_empty()
    });
    in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0);
    run.wait().exits(4);
    env.write("scratch/go", "");
    assert_merged_in(&env, "other", in_other(&env, &["resume", "--yes", "--state-remote", "x"]).wait());
    let state = env.git_at("exchange.git", &["show", "refs/lanewright/state/r1:state.json"]);
    let state: Value = serde_json::from_str(&state).expect("JSON");
    assert_eq!((state["outcome"].as_str(), state["repository"].as_str()), (Some("done"), env.path("other").to_str()));
}

#[test]
fn lane_stays_on_the_exchange_until_its_merge_is_pushed() {
    let env = chain();
    env.git_at("", &["init", "--quiet", "--bare", "states.git"]);
    env.git(&["remote", "add", "y", "../states.git"]);
    let run = env.start(&["--state-remote", "y"]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    fs::rename(env.path("states.git"), env.path("away.git")).expect("renamed");
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
    let left = ["owner/r1", "state/r1.A", "state/r1.B"].map(|name| format!("refs/lanewright/{name}"));
    assert_eq!(refs(&env), left);
}

#[test]
fn withdrawn_lane_is_not_pushed_by_its_old_job() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    let first = worker(&env, 7);
    kill_process(first, Signal::STOP).expect("a signal");
    env.write("scratch/lost.7", "");
    env.lanewright(&["stop"]);
    run.wait().exits(143);
    let state = || env.git_at("exchange.git", &["rev-parse", "refs/lanewright/state/r1.A"]);
    let taken_back = state();
    env.write("scratch/go", "");
    kill_process(first, Signal::CONT).expect("a signal");
    wait_until("the end of the job", || {
        fs::read_to_string(env.path("scratch/code.7")).is_ok_and(|code| !code.is_empty())
    });
    assert_eq!((env.scratch("code.7").trim(), state()), ("75", taken_back));
}

#[test]
fn crash_at_any_placement_step_does_not_repeat_work() {
    for point in ["before_offer:1", "offered:1", "submitted:1", "copied:1", "copied:2", "refs_removed:1"] {
        let env = chain();
        env.write("scratch/go", "");
        let plan = env.path("plan.toml").display().to_string();
        let arguments = ["execute-phase", &plan, "--run-id", "r1"];
        let died = env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT_CRASH_POINT", point));
        assert!(died.was_killed(), "no run comes to {point}: {}", died.stderr);
        assert_merged(&env, env.resume(&["--yes"]));
        assert_eq!((submitted(&env), env.scratch("attempts").lines().count()), (2, 1), "{point}");
        assert!(refs(&env).is_empty(), "{point}: {:?}", refs(&env));
        let stages = ["before_lane_start", "after_lane_start", "after_lane_tests", "pre_pr"];
        stages.iter().for_each(|stage| drop(env.checkpoint("A", stage)));
    }
}

#[test]
fn clean_removes_refs_of_failed_lane_from_exchange() {
    let env = slurm(this());
    env.plan("[defaults]\nexecutor = 'main'\n[[lane]]\nid = 'A'\ncommand = 'exit 9'\nretries = 0\n");
    env.commit("settings");
    env.execute(&[]).exits(1);
    assert_eq!(refs(&env), ["refs/lanewright/owner/r1", "refs/lanewright/state/r1.A"]);
    env.lanewright(&["clean", "r1", "--force", "--yes"]).exits(0);
    assert!(refs(&env).is_empty(), "{:?}", refs(&env));
    assert_eq!(env.git(&["for-each-ref", "refs/lanewright/owner", "refs/lanewright/remotes"]), "");
}

#[test]
fn crash_during_job_submission_submits_no_second_job() {
    let env = chain();
    env.write("scratch/kill", "");
    env.write("scratch/go", "");
    let ended = env.execute(&[]);
    assert!(ended.was_killed());
    assert_merged(&env, env.resume(&[]));
    assert_eq!(submitted(&env), 2);
}

#[test]
fn lane_fails_after_three_jobs_without_progress() {
    let env = slurm("/bin/false");
    env.plan("[[lane]]\nid = 'A'\ncommand = 'true'\nexecutor = 'main'\n");
    env.commit("settings");
    let said = env.execute(&[]).exits(1);
    said.says(&["A failed: 3 jobs in a row ended before the lane did", "its job ended with exit code 1"]);
    assert_eq!(submitted(&env), 3);
}

const ONE: &str = "[[lane]]\nid = 'A'\ncommand = 'echo a >a.txt'\n";

#[test]
fn an_engine_that_refuses_a_job_blocks_the_lane() {
    let env = slurm(this());
    env.plan(ONE);
    env.commit("settings");
    let said = env.execute(&["--executor", "nowhere"]).exits(3);
    said.says(&["A blocked: it cannot be placed: ", "invalid partition specified: nope", "correct what it names"]);
}

#[test]
fn job_submission_is_retried_while_engine_refuses() {
    for (fault, shown) in [
        ("echo 'sbatch: error: Unable to contact slurm controller' >&2; exit 1", "scontrol ping"),
        ("kill -9 $$", "`sbatch` was ended by signal 9"),
        ("exit 0", "`sbatch` printed nothing"),
        ("echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1", "set `max_lanes` of `[executors.NAME]`"),
    ] {
        let env = slurm(this());
        env.plan(ONE);
        env.commit("settings");
        env.program("sbatch.real", &fs::read_to_string(env.path("bin/sbatch")).expect("a script"));
        env.program("sbatch", &format!("#!/bin/sh\n[ -e $SCRATCH/back ] && exec sbatch.real \"$@\"\n{fault}\n"));
        let run = env.start(&["--executor", "main"]);
        wait_until("the warning", || run.has_said(shown));
        env.write("scratch/back", "");
        run.wait().exits(0);
        assert_eq!(submitted(&env), 1);
    }
}

/// What the doctor finds about the exchange: the kinds with their lanes.
fn diagnosis(env: &TestEnv) -> Vec<(String, String)> {
    let report = env.lanewright(&["doctor", "--format", "json"]).exits(0).json();
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("a list").iter();
    let found = findings.map(|finding| (word(finding, "kind"), word(finding, "lane")));
    let is_about_it =
        |kind: &str| ["lane-state", "lane-claim", "run-taken", "exchange"].iter().any(|it| kind.starts_with(it));
    found.filter(|(kind, _)| is_about_it(kind)).collect()
}

#[test]
fn the_doctor_compares_the_exchange_with_the_lanes() {
    let env = chain();
    let mut run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    run.kill();
    run.wait();
    let found = |kind: &str, lane: &str| diagnosis(&env).contains(&(kind.to_owned(), lane.to_owned()));
    assert_eq!(diagnosis(&env), []);
    fs::rename(env.path("exchange.git"), env.path("away.git")).expect("renamed");
    assert!(found("exchange-unreachable", ""), "{:?}", diagnosis(&env));
    fs::rename(env.path("away.git"), env.path("exchange.git")).expect("renamed");
    let state = env.git_at("exchange.git", &["rev-parse", "refs/lanewright/state/r1.A"]);
    env.git_at("exchange.git", &["update-ref", "-d", "refs/lanewright/state/r1.A"]);
    assert!(found("lane-state-missing", "A"), "{:?}", diagnosis(&env));
    env.git_at("exchange.git", &["update-ref", "refs/lanewright/state/r1.A", &state]);
    other_clone(&env);
    let there = in_other(&env, &["resume", "--yes"]);
    wait_until("the other clone to have the run", || found("run-taken", ""));
    env.write("scratch/go", "");
    assert_merged_in(&env, "other", there.wait());
}

#[test]
fn the_doctor_finds_states_that_nothing_needs() {
    let env = slurm(this());
    env.plan("[defaults]\nexecutor = 'main'\n[[lane]]\nid = 'A'\ncommand = 'exit 9'\nretries = 0\n");
    env.commit("settings");
    env.execute(&[]).exits(1);
    let state = env.git_at("exchange.git", &["rev-parse", "refs/lanewright/state/r1.A"]);
    assert_eq!(diagnosis(&env), []);
    env.lanewright(&["rollback", "--lane", "A", "--yes"]).exits(0);
    env.git_at("exchange.git", &["update-ref", "refs/lanewright/state/r1.A", &state]);
    assert_eq!(diagnosis(&env), [("lane-state-left".to_owned(), "A".to_owned())]);
}

/// Makes the state of lane A the one of a job that pushed last in 2020, on the exchange and in what the run has seen.
fn set_back(env: &TestEnv) {
    let (exchange, name) = ("exchange.git", "refs/lanewright/state/r1.A");
    let state = env.git_at(exchange, &["show", &format!("{name}:state.json")]);
    let mut state: Value = serde_json::from_str(&state).expect("JSON");
    state["at"] = "2020-01-01T00:00:00.000Z".into();
    env.write("scratch/state.json", state.to_string());
    let file = env.path("scratch/state.json").display().to_string();
    let blob = env.git_at(exchange, &["hash-object", "-w", &file]);
    env.git_at(exchange, &["read-tree", name]);
    env.git_at(exchange, &["update-index", "--add", "--cacheinfo", &format!("100644,{},state.json", blob.trim())]);
    let tree = env.git_at(exchange, &["write-tree"]);
    let commit = env.git_at(exchange, &["commit-tree", "-m", "set back", tree.trim()]);
    env.git_at(exchange, &["update-ref", name, commit.trim()]);
    let seen = env.git(&["for-each-ref", "--format=%(refname)", "refs/lanewright/remotes"]);
    env.git(&["fetch", "--quiet", "../exchange.git", &format!("+{name}:{}", seen.trim())]);
}

#[test]
fn the_doctor_finds_claims_that_no_job_has_any_more() {
    let env = chain();
    let mut run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    run.kill();
    run.wait();
    set_back(&env);
    assert_eq!(diagnosis(&env), []);
    kill_process(worker(&env, 7), Signal::KILL).expect("a signal");
    wait_until("the end of the job", || fs::read_to_string(env.path("scratch/code.7")).is_ok_and(|it| !it.is_empty()));
    assert_eq!(diagnosis(&env), [("lane-claim-silent".to_owned(), "A".to_owned())]);
}

#[test]
fn live_output_of_a_cluster_job_is_shown() {
    let env = slurm(this());
    let talks = "echo \"one $A_TOKEN\"; echo $$ >>$SCRATCH/attempts; wait-for go; \
                 echo two; echo a >a.txt";
    env.plan(&format!(
        "[[lane]]\nid = 'A'\ncommand = '{talks}'\nexecutor = 'main'\n[[lane]]\nid = 'HERE'\ncommand = 'echo here'\n"
    ));
    env.commit("settings");
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    let run = env.start_with(&arguments, |command| {
        command.env("A_TOKEN", "s3cr3t-t0ken-of-A").env("LANEWRIGHT_PASS_ENV", "A_TOKEN")
    });
    wait_until("the lane's agent", || has_begun(&env, 1));
    let one = "one [redacted:A_TOKEN]";
    wait_until("its output", || env.lanewright(&["logs", "A"]).exits(0).stdout.contains(one));
    assert!(env.lanewright(&["logs"]).exits(0).stdout.contains(&format!(" A    | {one}\n")));
    assert_eq!(env.lanewright(&["logs", "A", "--raw"]).exits(0).stdout, "", "nothing was pushed");
    let follows = env.start_with(&["logs", "A", "--follow"], |command| command);
    let job = env.scratch("submitted").trim().to_owned();
    let printed = || fs::read_to_string(env.path(&format!("scratch/{job}.out"))).unwrap_or_default();
    assert!(!printed().contains("s3cr3t"), "{}", printed());
    env.write("scratch/go", "");
    run.wait();
    let said = follows.wait().exits(0).stdout;
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("==>")).collect();
    assert_eq!(lines, [one, "two"], "each line once");
    assert_eq!(said.lines().next().map(|line| line.starts_with("==> A/")), Some(true), "{said}");
}

#[test]
fn placed_lanes_share_remaining_token_budget() {
    let env = slurm(this());
    let stream = format!("{}/fixtures/streams/claude/write.log", env!("CARGO_MANIFEST_DIR"));
    let claude = format!(
        "#!/bin/sh\necho $LANEWRIGHT_LANE >>$SCRATCH/calls\ncat >\"$LANEWRIGHT_LANE-$(wc -l <$SCRATCH/calls)\"\ncat '{stream}'\n"
    );
    env.program("claude", &claude);
    let lane = |id: &str| {
        let task = |number: u32| format!("[[lane.task]]\nid = '{number}'\nprompt = 'Write'\n");
        format!(
            "[[lane]]\nid = '{id}'\nexecutor = 'main'\nrunner = 'claude'\n{}",
            (1..=3).map(task).collect::<String>()
        )
    };
    env.plan(&[lane("A"), lane("B")].concat());
    // Of the repository's settings, which the jobs see, too.
    env.write("repo/lanewright.toml", format!("max_tokens = 1500\n{}", env.read("repo/lanewright.toml")));
    env.commit("settings");
    let with_key =
        |arguments: &[&str]| env.lanewright_with(arguments, |command| command.env("ANTHROPIC_API_KEY", "k-for-tests"));
    let plan = env.path("plan.toml");
    let blocked = with_key(&["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"]).exits(3);
    // A call uses 510, so each lane has used up its 750 after two. The first that comes back may get more.
    blocked.says(&["budget reached: 2", " of 1500 tokens", "lanewright resume r1 --max-tokens"]);
    let calls = || env.scratch("calls").lines().count();
    assert!([4, 5].contains(&calls()), "{}", calls());
    with_key(&["resume", "r1", "--max-tokens", "none"]).exits(0);
    assert_eq!(calls(), 6);
}
