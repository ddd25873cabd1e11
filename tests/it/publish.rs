//! The work of a run on the remote's branch: real pushes to a real bare repository, whose hooks refuse what forges refuse
//! in their words, and the `gh` of `pull_requests`, which keeps its pull requests in files.

use std::fs;

use serde_json::Value;

use crate::pull_requests::{ONE, pull, pulls, remote_head, world};
use crate::state::{PUSHED, has, lanewright_in, pushed_log};
use crate::support::{Ended, TestEnv};

const FROM: &str = "lanewright/r1";

const URL: &str = "https://github.com/acme/shop/pull/1";

/// A run that is done, whose merges are in the branch here and not on the remote.
fn done() -> TestEnv {
    let env = world(ONE);
    env.execute(&[]).exits(0);
    env
}

/// The same with a branch that is protected as on GitHub.
fn protected() -> TestEnv {
    let env = done();
    protect(&env, "error: GH006: Protected branch update failed for refs/heads/main.");
    env
}

pub(crate) fn protect(env: &TestEnv, said: &str) {
    let hook = "#!/bin/sh\nwhile read old new name; do\n    [ \"$name\" != refs/heads/main ] || { echo 'SAID' >&2; exit 1; }\ndone\n";
    env.program("../origin.git/hooks/pre-receive", &hook.replace("SAID", said));
}

/// What a person does on the forge, which its rules do not refuse.
pub(crate) fn unprotected<T>(env: &TestEnv, act: impl FnOnce() -> T) -> T {
    let (hook, aside) = (env.path("origin.git/hooks/pre-receive"), env.path("origin.git/hooks/aside"));
    let is_there = hook.exists();
    if is_there {
        fs::rename(&hook, &aside).expect("the hook");
    }
    let done = act();
    if is_there {
        fs::rename(&aside, &hook).expect("the hook");
    }
    done
}

/// Another clone, which has what the remote has of `branch`.
fn theirs(env: &TestEnv, branch: &str) {
    if !env.path("theirs").exists() {
        env.git_at("", &["clone", "--quiet", "origin.git", "theirs"]);
    }
    env.git_at("theirs", &["fetch", "--quiet", "--prune", "origin"]);
    env.git_at("theirs", &["checkout", "--quiet", "-B", branch, &format!("origin/{branch}")]);
}

/// Another user commits a file to a branch of the remote.
pub(crate) fn they_push(env: &TestEnv, branch: &str, file: &str, text: &str) -> String {
    unprotected(env, || {
        theirs(env, branch);
        env.write(&format!("theirs/{file}"), text);
        env.git_at("theirs", &["add", "--all"]);
        env.git_at("theirs", &["commit", "--quiet", "--message", "theirs"]);
        env.git_at("theirs", &["push", "--quiet", "origin", branch]);
    });
    remote_head(env, branch)
}

/// The forge merges the pull request from the branch `from`, as one commit, and removes that.
pub(crate) fn they_squash(env: &TestEnv, from: &str) {
    unprotected(env, || {
        theirs(env, from);
        theirs(env, "main");
        env.write("scratch/pulls/1.merged", remote_head(env, from));
        env.git_at("theirs", &["merge", "--quiet", "--squash", from]);
        env.git_at("theirs", &["commit", "--quiet", "--message", "P1 (#1)"]);
        env.git_at("theirs", &["push", "--quiet", "origin", "main", &format!(":{from}")]);
    });
}

fn publish(env: &TestEnv, flags: &[&str]) -> Ended {
    env.lanewright(&[&["publish"], flags].concat())
}

fn heads(env: &TestEnv) -> String {
    env.git_at("origin.git", &["for-each-ref", "--format=%(objectname) %(refname)"])
}

#[test]
fn publish_pushes_a_done_run_once() {
    let env = done();
    let ended = publish(&env, &[]).exits(0);
    assert!(ended.stdout.starts_with("Pushed run r1 to main on origin"), "{}", ended.stdout);
    assert_eq!(remote_head(&env, "main"), env.git(&["rev-parse", "main"]));
    let before = heads(&env);
    assert!(!before.contains("lanewright"), "a state that nothing asked for: {before}");
    let again = publish(&env, &["r1", "--format", "json"]).exits(0).json();
    assert_eq!((&again["state"], &again["published"]), (&"published".into(), &true.into()));
    assert_eq!(heads(&env), before);
    assert!(!env.path("scratch/gh-calls").exists(), "a forge was asked");
}

#[test]
fn publish_merges_what_the_remote_has() {
    let env = done();
    let (ours, theirs) = (env.git(&["rev-parse", "main"]), they_push(&env, "main", "t.txt", "t\n"));
    let ended = publish(&env, &["--format", "json"]).exits(0).json();
    let head = remote_head(&env, "main");
    assert_eq!((&ended["state"], &ended["merged"]), (&"pushed".into(), &true.into()));
    assert_eq!(env.git_at("origin.git", &["rev-parse", "main^1", "main^2"]), format!("{ours}\n{theirs}"));
    assert_eq!(env.git(&["rev-parse", "main"]), head, "the branch here has followed");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(env.read("repo/t.txt"), "t\n");
    env.lanewright(&["doctor"]).exits(0);
    let again = env.lanewright(&["execute-phase", "../plan.toml", "--run-id", "r2"]).exits(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
}

#[test]
fn publish_leaves_a_checkout_with_changes_as_it_is() {
    let env = done();
    they_push(&env, "main", "README.md", "theirs\n");
    env.write("repo/README.md", "mine\n");
    let ours = env.git(&["rev-parse", "main"]);
    publish(&env, &[])
        .exits(0)
        .says(&["was left as it is because of README.md"])
        .hints("git pull --no-rebase origin main");
    assert_eq!(env.git_at("origin.git", &["rev-parse", "main^1"]), ours);
    assert_eq!((env.read("repo/README.md"), env.git(&["rev-parse", "main"])), ("mine\n".to_owned(), ours));
}

#[test]
fn conflict_changes_nothing_and_can_be_resolved() {
    let env = done();
    they_push(&env, "main", "a.txt", "theirs\n");
    let (checkout, main, remote) = (env.users_checkout(), env.git(&["rev-parse", "main"]), heads(&env));
    let ended = publish(&env, &[]).exits(3).says(&["`main` on origin conflicts", "a.txt", "nothing was pushed"]);
    ended.hints("git pull --no-rebase origin main");
    assert_eq!(env.users_checkout().without_refs(), checkout.without_refs());
    assert_eq!((env.git(&["rev-parse", "main"]), heads(&env)), (main, remote));
    env.git(&["pull", "--quiet", "--no-rebase", "--no-edit", "-X", "ours", "origin", "main"]);
    publish(&env, &[]).exits(0);
    assert_eq!(env.git_at("origin.git", &["show", "main:a.txt"]), "a");
}

/// A hook of the user's during which another user pushes, the first time or each time.
fn race(env: &TestEnv, condition: &str) {
    theirs(env, "main");
    let hook = format!(
        "#!/bin/sh\nunset $(git rev-parse --local-env-vars)\n{condition}\ncd '{}'\necho x >> x.txt\ngit add x.txt\n\
         git commit --quiet --message theirs\ngit push --quiet origin main\n",
        env.path("theirs").display()
    );
    env.program("../repo/.git/hooks/pre-push", &hook);
}

#[test]
fn branch_that_moves_meanwhile_is_merged_again() {
    let env = done();
    race(&env, "[ ! -e \"$SCRATCH/raced\" ] || exit 0; touch \"$SCRATCH/raced\"");
    publish(&env, &[]).exits(0);
    assert_eq!(env.git_at("origin.git", &["ls-tree", "--name-only", "main", "a.txt", "x.txt"]), "a.txt\nx.txt");
    assert_eq!(env.git(&["rev-parse", "main"]), remote_head(&env, "main"));
}

#[test]
fn branch_that_always_moves_is_given_up() {
    let env = done();
    race(&env, "true");
    publish(&env, &[]).exits(3).says(&["moved during each of 5 attempts"]).hints("lanewright publish r1");
    assert!(!env.git_at("origin.git", &["ls-tree", "--name-only", "main"]).contains("a.txt"));
}

#[test]
fn only_a_done_run_is_published() {
    let env = world("[[lane]]\nid = \"A\"\nretries = 0\ncommand = '[ -e \"$SCRATCH/ok\" ] && echo a > a.txt'\n");
    publish(&env, &[]).exits(8).says(&["no runs in this repository"]);
    env.execute(&[]).exits(1);
    let before = heads(&env);
    publish(&env, &[]).exits(7).says(&["run r1 is not done"]).hints("lanewright resume r1");
    env.write("scratch/ok", "");
    env.lanewright(&["retry", "A"]).exits(0);
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    publish(&env, &["r1"]).exits(7).says(&["was rolled back"]);
    assert_eq!(heads(&env), before);
}

#[test]
fn branch_without_the_merges_is_not_published() {
    let env = done();
    env.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let before = heads(&env);
    publish(&env, &[]).exits(3).says(&["merged lane A", "moved or rewritten"]).hints("git push origin main");
    assert_eq!(heads(&env), before);
}

#[test]
fn runs_that_merge_nothing_have_nothing_to_publish() {
    for (mode, why) in [("none", "branches of its lanes"), ("pr", "in a pull request")] {
        let env = world(ONE);
        env.execute(&["--merge", mode]).exits(0);
        let before = heads(&env);
        let ended = publish(&env, &[]).exits(0);
        assert!(ended.stdout.contains("nothing to publish") && ended.stdout.contains(why), "{}", ended.stdout);
        assert_eq!(heads(&env), before);
    }
}

#[test]
fn protected_branch_falls_back_to_one_pull_request() {
    let env = protected();
    let (main, before) = (env.git(&["rev-parse", "main"]), remote_head(&env, "main"));
    let ended = publish(&env, &[]).exits(0).says(&["GH006: Protected branch update failed", "a pull request is used"]);
    assert_eq!(ended.stderr.matches("warning:").count(), 1, "{}", ended.stderr);
    assert_eq!(ended.stdout, format!("Opened the pull request of run r1, {FROM} into main: {URL}\n"));
    assert_eq!((remote_head(&env, "main"), remote_head(&env, FROM)), (before, main));
    assert_eq!((pull(&env, 1, "head"), pull(&env, 1, "base")), (FROM.to_owned(), "main".to_owned()));
    assert_eq!(pull(&env, 1, "title"), "P1 (run r1)");
    let body = pull(&env, 1, "body");
    assert!(body.starts_with("## P1\n\ndone") && body.contains("| A |"), "{body}");
    let again = publish(&env, &["--format", "json"]).exits(0).json();
    assert_eq!((&again["state"], &again["updated"]), (&"proposed".into(), &true.into()));
    assert_eq!((&again["published"], &again["pull_request"]["url"]), (&false.into(), &URL.into()));
    assert_eq!((pulls(&env).as_str(), pull(&env, 1, "body")), ("1", body));
}

#[test]
fn rules_of_other_forges_fall_back_too() {
    for said in [
        "error: GH013: Repository rule violations found for refs/heads/main.",
        "GitLab: You are not allowed to push code to protected branches on this project.",
        "push rule: ask the platform team",
    ] {
        let env = done();
        protect(&env, said);
        publish(&env, &[]).exits(0).says(&[said]);
        assert_eq!(pulls(&env), "1", "{said}");
    }
}

#[test]
fn merged_pull_request_counts_as_published() {
    let env = protected();
    env.lanewright(&["state", "push"]).exits(0);
    publish(&env, &[]).exits(0);
    let kept = env.lanewright(&["state", "drop"]).exits(0).stdout;
    assert!(kept.contains("kept run r1"), "{kept}");
    unprotected(&env, || {
        theirs(&env, FROM);
        theirs(&env, "main");
        env.git_at("theirs", &["merge", "--quiet", "--no-ff", "--no-edit", FROM]);
        env.git_at("theirs", &["push", "--quiet", "origin", "main"]);
    });
    let ended = publish(&env, &[]).exits(0);
    assert!(ended.stdout.contains("is published: main on origin has its work"), "{}", ended.stdout);
    let dropped = env.lanewright(&["state", "drop"]).exits(0).stdout;
    assert!(dropped.contains("dropped run r1"), "{dropped}");
    let before = heads(&env);
    publish(&env, &[]).exits(0);
    assert_eq!(heads(&env), before, "the state was pushed again");
}

#[test]
fn squashed_pull_request_counts_as_published() {
    let env = protected();
    env.lanewright(&["state", "push"]).exits(0);
    publish(&env, &[]).exits(0);
    they_squash(&env, FROM);
    let before = remote_head(&env, "main");
    let ended = publish(&env, &[]).exits(0);
    assert!(ended.stdout.contains("is published: main on origin has its work"), "{}", ended.stdout);
    assert_eq!((remote_head(&env, "main"), pulls(&env).as_str()), (before, "1"));
    let none = env.lanewright(&["state", "drop"]).exits(0).stdout;
    assert!(none.contains("dropped run r1"), "{none}");
}

#[test]
fn squashed_work_that_was_changed_since_is_published() {
    let env = protected();
    publish(&env, &[]).exits(0);
    they_squash(&env, FROM);
    they_push(&env, "main", "a.txt", "changed since\n");
    let before = heads(&env);
    let ended = publish(&env, &[]).exits(0);
    assert_eq!(ended.stdout, format!("Run r1 is published: {URL} was merged.\n"));
    assert_eq!((heads(&env), pulls(&env).as_str()), (before, "1"));
    env.git(&["fetch", "--quiet", "origin"]);
    env.git(&["reset", "--quiet", "--hard", "origin/main"]);
    let again = env.lanewright(&["execute-phase", "../plan.toml"]).exits(0);
    assert!(again.stdout.contains("nothing to do: 1 of 1 lane was merged by run r1"), "{}", again.stdout);
}

#[test]
fn squashed_work_that_was_reverted_is_done_again() {
    let env = protected();
    publish(&env, &[]).exits(0);
    they_squash(&env, FROM);
    publish(&env, &[]).exits(0);
    env.git(&["fetch", "--quiet", "origin"]);
    env.git(&["reset", "--quiet", "--hard", "origin/main"]);
    // A forge may name the pull request, and no commit.
    env.git(&["revert", "--no-commit", "HEAD"]);
    env.git(&["commit", "--quiet", "--message", "Revert P1 (#2)"]);
    publish(&env, &["r1"]).exits(3).says(&["main does not hold"]);
    env.lanewright(&["execute-phase", "../plan.toml", "--run-id", "r2"]).exits(0);
    assert_eq!(env.read("repo/a.txt"), "a\n");
}

#[test]
fn revert_of_other_work_leaves_squashed_work_done() {
    let env = protected();
    publish(&env, &[]).exits(0);
    they_push(&env, "main", "x.txt", "x\n");
    env.git(&["fetch", "--quiet", "origin"]);
    let theirs = env.git(&["rev-parse", "origin/main"]);
    unprotected(&env, || {
        env.git_at("theirs", &["revert", "--no-edit", &theirs]);
        env.git_at("theirs", &["push", "--quiet", "origin", "main"]);
    });
    they_squash(&env, FROM);
    publish(&env, &[]).exits(0);
    they_push(&env, "main", "a.txt", "changed since\n");
    env.git(&["fetch", "--quiet", "origin"]);
    env.git(&["reset", "--quiet", "--hard", "origin/main"]);
    publish(&env, &["r1"]).exits(0);
    let again = env.lanewright(&["execute-phase", "../plan.toml"]).exits(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
}

#[test]
fn squashed_lanes_are_not_run_again() {
    let env = protected();
    publish(&env, &[]).exits(0);
    they_squash(&env, FROM);
    env.git(&["fetch", "--quiet", "origin"]);
    env.git(&["reset", "--quiet", "--hard", "origin/main"]);
    let again = env.lanewright(&["execute-phase", "../plan.toml"]).exits(0);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
    env.git(&["revert", "--no-edit", "HEAD"]);
    env.lanewright(&["execute-phase", "../plan.toml", "--run-id", "r2"]).exits(0);
    assert_eq!(env.read("repo/a.txt"), "a\n", "what was taken out is done again");
}

#[test]
fn work_that_a_merge_driver_would_drop_is_not_published() {
    let env = world("[[lane]]\nid = \"A\"\ncommand = 'echo ours > gen.txt'\n");
    env.write("repo/.gitattributes", "gen.txt merge=ours\n");
    env.commit("attributes");
    env.git(&["push", "--quiet", "origin", "main"]);
    env.git(&["config", "merge.ours.driver", "true"]);
    env.execute(&[]).exits(0);
    they_push(&env, "main", "gen.txt", "theirs\n");
    env.lanewright(&["state", "push"]).exits(0);
    env.git(&["fetch", "--quiet", "origin"]);
    env.lanewright(&["state", "drop", "r1"]).exits(3).says(&["main on origin has not all the work of run r1"]);
    let ended = publish(&env, &[]);
    // A git before 2.41 does not run the driver.
    if ended.stderr.contains("conflicts with the work of the run in gen.txt") {
        ended.exits(3);
    } else {
        assert!(ended.exits(0).stdout.starts_with("Pushed run r1 to main on origin"));
        assert!(env.git_at("origin.git", &["log", "--format=%B", "main"]).contains("Run: r1"), "its commits are there");
    }
}

#[test]
fn lanes_of_an_unfinished_run_are_named() {
    let env = done();
    let plan = "phase = \"P2\"\n[[lane]]\nid = \"X\"\ncommand = 'echo x > x.txt'\n\
                [[lane]]\nid = \"Y\"\nretries = 0\ndepends_on = [\"X\"]\ncommand = 'exit 1'\n";
    env.write("second.toml", plan);
    env.lanewright(&["execute-phase", "../second.toml", "--run-id", "r2"]).exits(1);
    publish(&env, &["r1"])
        .exits(0)
        .says(&["main has lanes of run r2, which is not done: X"])
        .hints("to finish it: lanewright resume r2");
}

#[test]
fn commits_of_reviewers_stay_in_the_pull_request() {
    let env = protected();
    publish(&env, &[]).exits(0);
    let theirs = they_push(&env, FROM, "review.txt", "theirs\n");
    publish(&env, &[]).exits(0);
    assert_eq!((remote_head(&env, FROM), pulls(&env).as_str()), (theirs.clone(), "1"));
    env.write("repo/more.txt", "more\n");
    env.commit("more");
    publish(&env, &[]).exits(0);
    let head = remote_head(&env, FROM);
    assert_eq!(env.git_at("origin.git", &["rev-parse", &format!("{head}^2")]), theirs);
    assert_eq!(pulls(&env), "1");
}

#[test]
fn pull_request_at_once_asks_for_no_push() {
    let env = done();
    let main = remote_head(&env, "main");
    env.write("repo/lanewright.toml", "publish = \"pr\"\n");
    let ended = publish(&env, &[]).exits(0);
    assert!(ended.stdout.starts_with("Opened") && ended.stderr.is_empty(), "{} {}", ended.stdout, ended.stderr);
    assert_eq!((remote_head(&env, "main"), pulls(&env).as_str()), (main, "1"));
    publish(&env, &["--as", "push"]).exits(0);
    assert_eq!(remote_head(&env, "main"), env.git(&["rev-parse", "main"]));
}

#[test]
fn push_alone_opens_no_pull_request() {
    let env = protected();
    publish(&env, &["--as", "push"]).exits(3).says(&["GH006"]).hints("lanewright publish r1 --as pr");
    assert_eq!((pulls(&env).as_str(), heads(&env).contains(FROM)), ("0", false));
}

#[test]
fn other_refusals_are_errors() {
    let env = done();
    let before = heads(&env);
    env.git_at("origin.git", &["config", "receive.maxInputSize", "1"]);
    publish(&env, &[]).exits(3).says(&["refuses refs/heads/main", "unpack"]).hints("lanewright publish r1");
    assert_eq!((heads(&env), pulls(&env).as_str()), (before, "0"));
    fs::rename(env.path("origin.git"), env.path("elsewhere.git")).expect("a move");
    publish(&env, &[]).exits(3).says(&["remote `origin`"]).hints("git remote -v");
    env.git(&["remote", "remove", "origin"]);
    publish(&env, &[]).exits(3).says(&["there is no remote `origin`"]);
}

#[test]
fn work_is_pushed_where_no_forge_can_be_asked() {
    let page = "https://github.com/acme/shop/compare/main...lanewright/r1?expand=1";
    for prepare in ["gh-logged-out", "gh-says"] {
        let env = protected();
        env.write(&format!("scratch/{prepare}"), "GitHub Actions is not permitted to create or approve pull requests");
        let ended = publish(&env, &[]).exits(3);
        assert_eq!(
            ended.stdout,
            format!("Pushed run r1 to {FROM} on origin. Open a pull request of it into main: {page}\n"),
            "{prepare}"
        );
        let ended = match prepare {
            "gh-says" => ended.says(&["not permitted to create"]),
            _ => ended.says(&["not logged in"]).hints("GH_TOKEN"),
        };
        assert_eq!(ended.stderr.matches("warning:").count(), 2, "{}", ended.stderr);
        assert_eq!((remote_head(&env, FROM), pulls(&env)), (env.git(&["rev-parse", "main"]), "0".to_owned()));
        fs::remove_file(env.path(&format!("scratch/{prepare}"))).expect("a removal");
        publish(&env, &[]).exits(0);
        assert_eq!(pulls(&env), "1");
    }
}

#[test]
fn work_is_pushed_where_no_forge_is_installed() {
    let env = protected();
    fs::remove_file(env.path("bin/gh")).expect("a removal");
    let path = std::env::var_os("PATH").expect("a PATH");
    for program in ["git", "sh", "cat", "env"] {
        let found = std::env::split_paths(&path).map(|it| it.join(program)).find(|it| it.exists()).expect("a program");
        std::os::unix::fs::symlink(found, env.path(&format!("bin/{program}"))).expect("a link");
    }
    let alone = env.path("bin");
    let ended = env.lanewright_with(&["publish"], |command| command.env("PATH", &alone)).exits(3);
    assert!(ended.stdout.contains("Open a pull request of it into main"), "{}", ended.stdout);
    ended.says(&["`gh` is not installed"]).hints("apt install gh");
}

#[test]
fn publish_works_from_a_shallow_clone_or_says_why_not() {
    let env = world(ONE);
    they_push(&env, "main", "older.txt", "older\n");
    let address = format!("file://{}", env.path("origin.git").display());
    env.git_at("", &["clone", "--quiet", "--depth", "1", &address, "shallow"]);
    lanewright_in(&env, "shallow", &["execute-phase", "../plan.toml", "--run-id", "r1"]).exits(0);
    they_push(&env, "main", "newer.txt", "newer\n");
    lanewright_in(&env, "shallow", &["publish"]).exits(0);
    let files = env.git_at("origin.git", &["ls-tree", "--name-only", "main"]);
    assert!(["a.txt", "newer.txt", "older.txt"].iter().all(|file| files.contains(file)), "{files}");
    unprotected(&env, || {
        env.git_at("theirs", &["checkout", "--quiet", "--orphan", "other"]);
        env.git_at("theirs", &["commit", "--quiet", "--message", "no common history"]);
        env.git_at("theirs", &["push", "--quiet", "--force", "origin", "other:main"]);
    });
    let before = heads(&env);
    lanewright_in(&env, "shallow", &["publish", "r1"]).exits(3).says(&["shallow clone"]).hints("--unshallow");
    assert_eq!(heads(&env), before);
}

#[test]
fn newest_state_is_pushed_before_the_branch() {
    let env = world(ONE);
    env.execute(&["--state-remote", "origin"]).exits(0);
    env.lanewright(&["log-event", "reviewed", "--lane", "A"]).exits(0);
    assert!(!has(&pushed_log(&env), "event_logged", "A"));
    publish(&env, &[]).exits(0);
    assert!(has(&pushed_log(&env), "event_logged", "A"));
    assert!(env.lanewright(&["state", "drop"]).exits(0).stdout.contains("dropped run r1"));
}

#[test]
fn nothing_is_published_where_the_state_is_refused() {
    let env = world(ONE);
    env.execute(&["--state-remote", "origin"]).exits(0);
    env.git_at("", &["clone", "--quiet", "origin.git", "other"]);
    lanewright_in(&env, "other", &["state", "pull"]).exits(0);
    lanewright_in(&env, "other", &["log-event", "elsewhere", "--lane", "A"]).exits(0);
    lanewright_in(&env, "other", &["state", "push"]).exits(0);
    env.lanewright(&["log-event", "here", "--lane", "A"]).exits(0);
    let before = heads(&env);
    publish(&env, &[]).exits(4).says(&["does not continue the one here"]);
    assert_eq!(heads(&env), before);
}

/// A job of a CI service: a new clone that has the state of the run, with the address of the forge.
fn next_job(env: &TestEnv, clone: &str, run: &[&str]) {
    env.git_at("", &["clone", "--quiet", "origin.git", clone]);
    let (bare, url) = (env.path("origin.git"), "https://github.com/acme/shop.git");
    env.git_at(clone, &["config", &format!("url.{}.insteadOf", bare.display()), url]);
    env.git_at(clone, &["remote", "set-url", "origin", url]);
    lanewright_in(env, clone, &[&["state", "pull"], run].concat()).exits(0);
}

#[test]
fn later_jobs_publish_into_the_same_pull_request() {
    let env = protected();
    env.lanewright(&["state", "push"]).exits(0);
    publish(&env, &[]).exits(0);
    for job in ["second", "third"] {
        next_job(&env, job, &[]);
        let ended = lanewright_in(&env, job, &["publish"]).exits(0);
        assert!(ended.stdout.starts_with("Updated the pull request"), "{}", ended.stdout);
    }
    assert_eq!(pulls(&env), "1");
    they_squash(&env, FROM);
    env.git_at("", &["clone", "--quiet", "origin.git", "last"]);
    lanewright_in(&env, "last", &["state", "pull"]).exits(8).says(&["no unfinished run"]);
    lanewright_in(&env, "last", &["state", "drop"]).exits(0);
    assert!(!env.git_at("origin.git", &["for-each-ref", PUSHED]).contains("state"));
}

#[test]
fn later_jobs_update_the_pull_requests_of_lanes() {
    let lanes = "[[lane]]\nid = \"A\"\ncommand = 'date +%s%N > a.txt'\n\
                 [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'cat a.txt > b.txt'\n";
    let env = world(lanes);
    env.write("scratch/gh-says-of", "lane/P1/B");
    env.execute(&["--merge", "pr", "--state-remote", "origin"]).exits(3);
    fs::remove_file(env.path("scratch/gh-says-of")).expect("a removal");
    next_job(&env, "second", &[]);
    lanewright_in(&env, "second", &["resume", "--state-remote", "origin"]).exits(0);
    assert_eq!(pulls(&env), "2");
    next_job(&env, "third", &["r1"]);
    lanewright_in(&env, "third", &["rollback", "r1", "--yes"]).exits(0);
    lanewright_in(&env, "third", &["resume", "r1", "--state-remote", "origin"]).exits(0);
    assert_eq!((pulls(&env).as_str(), pull(&env, 1, "head")), ("2", "lane/P1/A".to_owned()));
    assert_eq!(remote_head(&env, "lane/P1/A"), env.git_at("third", &["rev-parse", "lane/P1/A"]));
}

/// Answers as GitLab's API does, and notes the calls and the token that each could use.
const GLAB: &str = r#"#!/bin/sh
echo "$* [$GITLAB_TOKEN|$GLAB_ENABLE_CI_AUTOLOGIN]" >> "$SCRATCH/glab-calls"
case "$*" in
    *" user") echo '{"id":1}' ;;
    *POST*) cat "$SCRATCH/mr" ;;
    *) if [ -e "$SCRATCH/opened" ]; then printf '[%s]' "$(cat "$SCRATCH/mr")"; else echo '[]'; fi ;;
esac
case "$*" in *POST*) touch "$SCRATCH/opened" ;; esac
"#;

#[test]
fn gitlab_job_publishes_with_its_own_token() {
    let env = done();
    let (bare, url) = (env.path("origin.git"), "https://gitlab.example.com/acme/shop.git");
    env.git(&["config", &format!("url.{}.insteadOf", bare.display()), url]);
    env.git(&["remote", "set-url", "origin", url]);
    env.program("glab", GLAB);
    let merge_request: Value = serde_json::json!({
        "iid": 7, "web_url": "https://gitlab.example.com/acme/shop/-/merge_requests/7", "state": "opened",
        "target_branch": "main", "sha": "x", "source_project_id": 1, "target_project_id": 1,
    });
    env.write("scratch/mr", merge_request.to_string());
    protect(&env, "GitLab: You are not allowed to push code to protected branches on this project.");
    let job = |token: Option<&str>| {
        let ended = env.lanewright_with(&["publish"], |command| {
            command.env("GITLAB_CI", "true").env("CI_JOB_TOKEN", "j0b").envs(token.map(|it| ("GITLAB_TOKEN", it)))
        });
        let calls = env.scratch("glab-calls");
        fs::remove_file(env.path("scratch/glab-calls")).expect("a removal");
        (ended.exits(0).stdout, calls)
    };
    let (said, calls) = job(None);
    assert!(said.contains("merge_requests/7") && !calls.contains(" user ["), "{said}{calls}");
    assert!(calls.lines().all(|line| line.ends_with("[|true]")), "{calls}");
    let (said, calls) = job(Some("t0ken"));
    assert!(said.starts_with("Updated") && calls.contains(" user ["), "{said}{calls}");
    assert_eq!(calls.matches("POST").count(), 0, "{calls}");
}
