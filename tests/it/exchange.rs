//! What jobs and the exchange do not do at once, or not at all.

use std::fs;

use rustix::process::{Signal, kill_process};

use crate::executors::{slurm, this};
use crate::placement::{
    assert_merged, assert_merged_in, chain, has_begun, in_other, refs, submitted, wait_for_the_claim, worker,
};
use crate::support::{TestEnv, wait_until};

/// What git leaves of a ref that it was changing when its machine lost power.
fn lock_left(env: &TestEnv, run: &str) -> std::path::PathBuf {
    let lock = env.path(&format!("exchange.git/refs/lanewright/state/{run}.lock"));
    fs::create_dir_all(lock.parent().expect("a parent")).expect("a directory");
    fs::write(&lock, "").expect("a file");
    lock
}

#[test]
fn stale_lock_on_exchange_delays_only_its_lane() {
    let env = slurm(this());
    env.plan(
        "[defaults]\nexecutor = 'main'\n[[lane]]\nid = 'A'\ncommand = 'echo a >a.txt'\n\
         [[lane]]\nid = 'B'\ncommand = 'echo b >b.txt'\n",
    );
    env.commit("settings");
    let lock = lock_left(&env, "r1.A");
    let run = env.start(&[]);
    wait_until("the warning", || run.has_said("lane A: ") && run.has_said("r1.A.lock': File exists"));
    wait_until("the other lane", || run.has_said("B: merged"));
    fs::remove_file(lock).expect("a removal");
    run.wait().exits(0);
    assert_eq!(submitted(&env), 2);
}

#[test]
fn a_job_that_finds_a_lock_pushes_once_it_is_gone() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    let lock = lock_left(&env, "r1.A");
    env.write("scratch/go", "");
    let job = env.scratch("submitted").trim().to_owned();
    let printed = || fs::read_to_string(env.path(&format!("scratch/{job}.out"))).unwrap_or_default();
    wait_until("another attempt", || {
        printed().contains("r1.A.lock': File exists") && printed().contains("trying again")
    });
    fs::remove_file(lock).expect("a removal");
    assert_merged(&env, run.wait());
    assert_eq!((submitted(&env), env.scratch("attempts").lines().count()), (2, 1));
}

#[test]
fn why_a_job_waits_is_in_the_run_log_and_in_status() {
    let env = chain();
    env.write("scratch/never", "");
    let run = env.start(&[]);
    wait_until("the reason", || run.has_said("A: job 7 waits: no node has enough free (Resources)"));
    assert!(env.lanewright(&["status"]).exits(0).stdout.contains("job 7 waits: no node has enough free (Resources)"));
    env.write("scratch/never", "ReqNodeNotAvail, UnavailableNodes:n1");
    let lasting = "job 7 waits: a node that it needs is down, drained, reserved or in use (ReqNodeNotAvail, \
                   UnavailableNodes:n1); that may last until somebody acts: ";
    wait_until("the other reason", || run.has_said(lasting));
    assert!(env.lanewright(&["status", "--format", "json"]).exits(0).stdout.contains(lasting));
    env.write("scratch/never", "");
    wait_until("the first reason again", || {
        env.lanewright(&["status"]).exits(0).stdout.contains("job 7 waits: no node has enough free (Resources)")
    });
    env.lanewright(&["stop"]);
    run.wait().exits(143);
}

#[test]
fn an_exchange_that_goes_away_is_reported_once() {
    let env = slurm(this());
    env.plan(
        "[[lane]]\nid = 'A'\nexecutor = 'main'\n\
         command = 'echo $$ >>$SCRATCH/attempts; wait-for go; echo a >a.txt'\n\
         [[lane]]\nid = 'LOOKS'\ncommand = 'wait-for away; sleep 4; echo b >b.txt'\n",
    );
    env.commit("settings");
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    fs::rename(env.path("exchange.git"), env.path("away.git")).expect("renamed");
    wait_until("the warning", || run.has_said("the exchange: "));
    // The exchange is looked at several times until this lane ends.
    env.write("scratch/away", "");
    wait_until("the lane that works here", || run.has_said("LOOKS: merged"));
    fs::rename(env.path("away.git"), env.path("exchange.git")).expect("renamed");
    env.write("scratch/go", "");
    let ended = run.wait().exits(0);
    assert_eq!(ended.stderr.matches("the exchange: ").count(), 1, "{}", ended.stderr);
}

#[test]
fn a_run_that_died_while_git_fetched_goes_on() {
    let env = chain();
    let mut run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    run.kill();
    run.wait();
    let incoming = env.path("repo/.git/refs/lanewright/incoming");
    fs::create_dir_all(&incoming).expect("a directory");
    fs::write(incoming.join("r1.A.lock"), "").expect("a file");
    env.write("scratch/go", "");
    assert_merged(&env, env.resume(&["--yes"]));
}

/// A lane with two agents: the end of the quick one has the start of the slow one pushed.
pub(crate) fn two_agents() -> TestEnv {
    let env = slurm("often");
    env.program("often", &format!("#!/bin/sh\nexec {} \"$@\" --push-every 0s\n", this()));
    env.plan(
        "[[lane]]\nid = 'A'\nexecutor = 'main'\n\
         [[lane.agent]]\nname = 'slow'\n\
         command = 'echo >>$SCRATCH/attempts; wait-for go; echo a >a.txt'\n\
         [[lane.agent]]\nname = 'quick'\n\
         command = 'wait-for attempts; echo b >b.txt'\n",
    );
    env.commit("settings");
    env
}

pub(crate) fn wait_for_the_slow_agent(env: &TestEnv) {
    wait_until("the start of the agent that works on", || {
        let log = fs::read_to_string(env.log_file()).unwrap_or_default();
        log.lines().any(|line| line.contains("job_started") && line.contains("slow"))
    });
}

/// A clone that reaches the exchange as the remote `x`.
pub(crate) fn clone(env: &TestEnv) {
    env.git(&["remote", "add", "x", "../exchange.git"]);
    env.git_at("", &["clone", "--quiet", "--origin", "x", "repo", "other"]);
    env.git_at("other", &["remote", "set-url", "x", "../exchange.git"]);
}

#[test]
fn returned_unmerged_lane_moves_to_another_clone() {
    let env = slurm(this());
    env.plan("[[lane]]\nid = 'A'\nexecutor = 'main'\ncommand = 'echo a >a.txt'\n");
    env.commit("settings");
    clone(&env);
    env.write("repo/a.txt", "in the way of the merge");
    env.execute(&["--state-remote", "x"]).exits(3);
    in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0);
    in_other(&env, &["resume", "--yes", "--state-remote", "x"]).wait().exits(0);
    assert_eq!(env.git_at("other", &["show", "main:a.txt"]).trim(), "a");
    assert_eq!(submitted(&env), 1);
    assert_eq!(env.git_at("exchange.git", &["for-each-ref", "refs/lanewright/owner"]), "");
}

#[test]
fn a_pull_that_is_refused_leaves_the_run_where_it_is() {
    let env = chain();
    clone(&env);
    env.git_at("other", &["-c", "user.name=T", "-c", "user.email=t@x", "commit", "--allow-empty", "-qm", "other"]);
    env.write("scratch/go", "");
    env.write("repo/b.txt", "in the way of the merge");
    env.execute(&["--state-remote", "x"]).exits(3);
    let owner = || env.git_at("exchange.git", &["rev-parse", "refs/lanewright/owner/r1"]);
    let before = owner();
    in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(3);
    assert_eq!(owner(), before);
}

#[test]
fn moved_run_with_remote_agent_can_be_rolled_back() {
    let env = two_agents();
    clone(&env);
    let run = env.start(&["--state-remote", "x"]);
    wait_for_the_slow_agent(&env);
    in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0);
    run.wait().exits(4);
    env.resume(&["--yes"]).exits(4);
    env.lanewright(&["rollback", "--yes"]).exits(0);
    env.lanewright(&["doctor"]).exits(0);
    assert!(env.lanewright(&["status", "r1"]).exits(0).stdout.contains("rolled back"));
    env.write("scratch/go", "");
    in_other(&env, &["resume", "--yes", "--state-remote", "x"]).wait().exits(0);
    assert_eq!(env.git_at("other", &["show", "main:a.txt"]).trim(), "a");
}

#[test]
fn run_with_local_lanes_ends_once_other_clone_pulls() {
    let env = slurm(this());
    env.plan(
        "[[lane]]\nid = 'A'\nexecutor = 'main'\ncommand = 'echo a >a.txt'\n\
         [[lane]]\nid = 'HERE'\ncommand = 'echo >>$SCRATCH/here; wait-for go; echo h >h.txt'\n",
    );
    env.commit("settings");
    clone(&env);
    let run = env.start(&["--state-remote", "x"]);
    wait_until("the merge", || run.has_said("A: merged") && env.path("scratch/here").exists());
    wait_until("the merge in the state", || {
        env.git_at("exchange.git", &["for-each-ref", "refs/lanewright/state/r1.A"]).is_empty()
    });
    in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0);
    run.wait().exits(4);
    env.write("scratch/go", "");
    in_other(&env, &["resume", "--yes", "--state-remote", "x"]).wait().exits(0);
    let merges = |clone: &str| env.git_at(clone, &["log", "--merges", "--first-parent", "--format=%s", "main"]);
    assert_eq!((merges("repo").lines().count(), merges("other").lines().count()), (1, 2));
}

#[test]
fn a_run_is_stopped_while_its_exchange_is_away() {
    let env = chain();
    let plan = env.path("plan.toml").display().to_string();
    let arguments = ["execute-phase", &plan, "--run-id", "r1"];
    let died = env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT_CRASH_POINT", "before_offer:1"));
    assert!(died.was_killed(), "{}", died.stderr);
    fs::rename(env.path("exchange.git"), env.path("away.git")).expect("renamed");
    let run = env.start_with(&["resume", "--yes"], |command| command);
    wait_until("the warning", || run.has_said("the exchange: "));
    env.lanewright(&["stop"]);
    run.wait().exits(143);
}

#[test]
fn forced_stop_ends_despite_unresponsive_exchange() {
    let env = chain();
    clone(&env);
    let hangs = |command: &str| {
        format!(
            "#!/bin/sh\n[ -e $SCRATCH/hang ] && echo >>$SCRATCH/hung-{command}\nwhile [ -e $SCRATCH/hang ]; do sleep 0.05; done\n\
             exec git {command} \"$@\"\n"
        )
    };
    env.program("slow-upload", &hangs("upload-pack"));
    env.program("slow-receive", &hangs("receive-pack"));
    env.git(&["config", "remote.x.uploadpack", "slow-upload"]);
    env.git(&["config", "remote.x.receivepack", "slow-receive"]);
    let run = env.start(&["--exchange", "x", "--state-remote", "x"]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    env.write("scratch/hang", "");
    // What asks the exchange about lanes; what pushes the state of the run may hang first.
    wait_until("a question without an answer", || env.path("scratch/hung-upload-pack").exists());
    env.lanewright(&["stop", "--force"]);
    run.wait().exits(143).says(&["A: the exchange or the executor did not answer"]);
    fs::remove_file(env.path("scratch/hang")).expect("a removal");
    env.write("scratch/go", "");
    assert_merged(&env, env.resume(&["--yes", "--exchange", "x", "--state-remote", "x"]));
    assert_eq!((submitted(&env), env.scratch("attempts").lines().count()), (2, 1));
}

#[test]
fn failed_job_start_is_reported_with_job_output() {
    let env = slurm("no-such-program");
    env.plan("[[lane]]\nid = 'A'\ncommand = 'true'\nexecutor = 'main'\n");
    env.commit("settings");
    let said = env.execute(&[]).exits(1);
    said.says(&["its job ended with exit code 127; it printed: ", "no-such-program: not found"]);
}

#[test]
fn the_diff_of_a_lane_that_works_elsewhere_says_so() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    env.lanewright(&["diff", "A"]).exits(8).says(&["job 7 of main on "]);
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
}

#[test]
fn a_forced_stop_ends_although_the_exchange_is_away() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    fs::rename(env.path("exchange.git"), env.path("away.git")).expect("renamed");
    env.lanewright(&["stop", "--force"]);
    run.wait().exits(143);
    fs::rename(env.path("away.git"), env.path("exchange.git")).expect("renamed");
    env.write("scratch/go", "");
    assert_merged(&env, env.resume(&["--yes"]));
}

#[test]
fn the_state_of_the_run_is_pushed_before_its_offers() {
    let env = chain();
    clone(&env);
    env.write("scratch/go", "");
    // The run's own state takes longer to arrive than what is pushed beside it.
    update_hook(&env, "case $1 in */state/r1) sleep 1 ;; esac");
    died_at(&env, "offered:1", &["--state-remote", "x"]);
    let offered = env.git_at("exchange.git", &["grep", "--count", "lane_offered", "refs/lanewright/state/r1"]);
    assert!(!offered.is_empty());
    in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0);
    assert_merged_in(&env, "other", in_other(&env, &["resume", "--yes", "--state-remote", "x"]).wait());
    assert_eq!((submitted(&env), env.scratch("attempts").lines().count()), (2, 1));
}

/// What the exchange does before it moves the ref `$1` from `$2` to `$3`.
fn update_hook(env: &TestEnv, script: &str) {
    hook(env, "update", &format!("#!/bin/sh\n{script}\n"));
}

/// A hook of the exchange.
fn hook(env: &TestEnv, name: &str, script: &str) {
    let hook = env.path(&format!("exchange.git/hooks/{name}"));
    env.program(name, script);
    fs::create_dir_all(hook.parent().expect("a parent")).expect("a directory");
    fs::rename(env.path(&format!("bin/{name}")), hook).expect("renamed");
}

/// A run that died at `point`.
fn died_at(env: &TestEnv, point: &str, flags: &[&str]) {
    let plan = env.path("plan.toml").display().to_string();
    let arguments = [&["execute-phase", &plan, "--run-id", "r1"], flags].concat();
    let died = env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT_CRASH_POINT", point));
    assert!(died.was_killed(), "{}", died.stderr);
}

#[test]
fn stale_clone_does_not_adopt_a_placed_run() {
    let env = chain();
    clone(&env);
    died_at(&env, "before_offer:1", &[]);
    // As if it had not come that far.
    env.git_at("exchange.git", &["update-ref", "-d", "refs/lanewright/owner/r1"]);
    env.lanewright(&["state", "push", "--remote", "x"]).exits(0);
    in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0);
    let run = env.start_with(&["resume", "--yes"], |command| command);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    let here = env.path("repo").display().to_string();
    in_other(&env, &["resume", "--yes"]).wait().exits(4).says(&["run r1 was continued elsewhere", &here]);
    env.write("scratch/go", "");
    assert_merged(&env, run.wait());
}

#[test]
fn pull_succeeds_while_the_other_clone_pushes() {
    let env = chain();
    clone(&env);
    died_at(&env, "offered:1", &["--state-remote", "x"]);
    update_hook(
        &env,
        "[ $1 = refs/lanewright/owner/r1 ] || exit 0\necho >>$SCRATCH/races\n\
         [ $(wc -l <$SCRATCH/races) -le 3 ] || exit 0\n\
         git update-ref $1 $(git -c user.name=T -c user.email=t@x commit-tree -p $2 -m quicker $2^{tree})",
    );
    let pulled = in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0);
    assert!(!pulled.stderr.contains("may still place"), "{}", pulled.stderr);
    assert_eq!(env.scratch("races").lines().count(), 4);
    env.resume(&["--yes"]).exits(4).says(&["run r1 was continued elsewhere"]);
    env.write("scratch/go", "");
    assert_merged_in(&env, "other", in_other(&env, &["resume", "--yes", "--state-remote", "x"]).wait());
}

#[test]
fn the_beginning_of_a_runs_id_means_no_lane_of_it() {
    let env = slurm(this());
    env.plan("[[lane]]\nid = 'AB'\nexecutor = 'main'\napproval = ['changes']\ncommand = 'echo a >a.txt'\n");
    env.commit("settings");
    clone(&env);
    env.execute(&["--state-remote", "x"]).exits(3);
    assert_eq!(refs(&env), ["refs/lanewright/owner/r1", "refs/lanewright/state/r1.AB"]);
    let pull = |name: &str| in_other(&env, &["state", "pull", name, "--remote", "x"]).wait();
    let pulled = pull("r").exits(0);
    assert!(pulled.stdout.starts_with("Pulled run r1, "), "{}", pulled.stdout);
    env.lanewright(&["state", "drop", "r", "--remote", "x", "--force"]).exits(0);
    pull("r1.A").exits(8).says(&["x has no state of run r1.A"]);
    pull("r1").exits(8);
}

#[test]
fn a_lane_whose_branch_cannot_be_set_is_not_done() {
    let env = slurm(this());
    env.plan("[[lane]]\nid = 'A'\nexecutor = 'main'\ncommand = 'echo a >a.txt'\n");
    env.commit("settings");
    // A directory where the ref is to be.
    env.git(&["branch", "lane/P1/A/other"]);
    let ended = env.execute(&["--merge", "none"]).exits(3);
    ended.says(&["lane/P1/A", "fix the cause, then resume"]);
    assert!(!env.git_at("exchange.git", &["for-each-ref", "refs/lanewright/state/r1.A"]).is_empty());
    env.git(&["branch", "--delete", "--force", "lane/P1/A/other"]);
    env.resume(&["--yes"]).exits(0);
    assert_eq!(env.git(&["show", "lane/P1/A:a.txt"]).trim(), "a");
}

/// Kills the process that pushes an offer before it gets the answer: jobs push with a claim.
const KILL_AT_OFFER: &str = r#"#!/bin/sh
while read -r _ new name; do
    case $name in */r1.A) git show "$new:state.json" | grep -q '"claim"' || kill -9 "$(cat "$SCRATCH/pid")" ;; esac
done
"#;

#[test]
fn kill_before_second_offer_reply_keeps_the_result() {
    let env = chain();
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_for_the_claim(&env);
    env.write("scratch/pid", run.pid().to_string());
    hook(&env, "post-receive", KILL_AT_OFFER);
    kill_process(worker(&env, 7), Signal::KILL).expect("a signal");
    env.write("scratch/lost.7", "");
    run.wait().exits(137);
    fs::remove_file(env.path("exchange.git/hooks/post-receive")).expect("a removal");
    env.write("scratch/go", "");
    assert_merged(&env, env.resume(&["--yes"]));
    assert_eq!(submitted(&env), 3);
}
