//! Branches that take no push: a job proposes the work, and later ones update that.

use super::TWO;
use super::service::Service;
use crate::follow::comment;
use crate::publish::{protect, they_push, they_squash, unprotected};
use crate::pull_requests::{GH, pull, pulls};
use crate::support::TestEnv;

/// A service whose forge has a program.
fn on_forge(settings: &str) -> Service {
    let service = Service::github(TWO);
    service.push("lanewright.toml", settings);
    service.env.program("gh", GH);
    service.env.write("scratch/pulls/count", "0");
    service.help();
    service
}

/// The run whose state the remote has.
fn run(service: &Service) -> String {
    service.state().rsplit('/').next().expect("a name").to_owned()
}

#[test]
fn protected_branch_gets_one_pull_request() {
    let service = on_forge("forge = \"gh\"\n");
    let env = &service.env;
    protect(env, "error: GH006: Protected branch update failed for refs/heads/main.");
    let before = service.main();
    service.job(&[]).exits(0).says(&["Opened the pull request of run P1-"]);
    let run = run(&service);
    let ended = service.job(&[]).exits(0).says(&["Updated the pull request of run P1-"]);
    assert_eq!(ended.stderr.matches("Updated the pull request").count(), 1, "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("GH006").count(), 1, "{}", ended.stderr);
    assert_eq!((pulls(env).as_str(), service.main()), ("1", before));
    unprotected(env, || {
        env.git_at("", &["clone", "--quiet", "origin.git", "theirs"]);
        env.git_at("theirs", &["merge", "--quiet", "--no-ff", "--no-edit", &format!("origin/lanewright/{run}")]);
        env.git_at("theirs", &["push", "--quiet", "origin", "main"]);
    });
    service.job(&[]).exits(0);
    assert_eq!((service.starts("A"), service.starts("B")), (1, 1));
    assert_eq!(service.files(), ["a.txt", "b.txt", "lanewright.toml"]);
    assert_eq!(service.states(), [] as [&str; 0]);
}

#[test]
fn work_waits_where_no_pull_request_can_be_opened() {
    let service = Service::github(TWO);
    service.push("lanewright.toml", "forge = \"gh\"\n");
    service.env.program("gh", "#!/bin/sh\necho not logged in >&2\nexit 4\n");
    protect(&service.env, "error: GH006: Protected branch update failed for refs/heads/main.");
    service.help();
    service.job(&[]).exits(3).says(&["Open a pull request of it into main"]);
    service.state();
    unprotected(&service.env, || service.job(&[]).exits(0));
    assert_eq!((service.starts("A"), service.starts("B")), (1, 1));
    assert_eq!(service.states(), [] as [&str; 0]);
}

#[test]
fn work_to_be_reviewed_is_never_pushed() {
    let service = on_forge("forge = \"gh\"\npublish = \"pr\"\n");
    let before = service.main();
    for said in ["Opened the pull request", "Updated the pull request"] {
        service.job(&[]).exits(0).says(&[said]);
        assert_eq!((pulls(&service.env).as_str(), service.main()), ("1", before.clone()));
        service.state();
    }
    assert_eq!((service.starts("A"), service.starts("B")), (1, 1));
}

/// What a job does once the pull request was squashed, and then whatever `later` does.
fn squashed(later: impl FnOnce(&TestEnv)) {
    let service = on_forge("forge = \"gh\"\n");
    let env = &service.env;
    protect(env, "error: GH006: Protected branch update failed for refs/heads/main.");
    service.job(&[]).exits(0);
    they_squash(env, &format!("lanewright/{}", run(&service)));
    later(env);
    let main = service.main();
    for _ in 0..2 {
        let ended = service.job(&[]).exits(0);
        assert!(ended.stdout.contains("nothing to do: 2 of 2 lanes were merged by run P1-"), "{}", ended.stdout);
        assert_eq!((service.starts("A"), service.starts("B"), service.main()), (1, 1, main.clone()));
        assert_eq!(pulls(env), "1");
    }
    service.state();
}

#[test]
fn squashed_phase_is_not_run_again() {
    squashed(|_| {});
}

#[test]
fn squashed_phase_that_was_changed_since_is_done() {
    squashed(|env| drop(they_push(env, "main", "a.txt", "changed since\n")));
}

#[test]
fn a_later_job_has_lanes_continue_that_reviewers_sent_back() {
    let service = on_forge("forge = \"gh\"\nmerge = \"pr\"\nfollow = \"1ms\"\n");
    let env = &service.env;
    service.job(&[]).exits(0);
    assert_eq!(pulls(env), "2");
    let starts = || (service.starts("A"), service.starts("B"));
    assert_eq!(starts(), (1, 1));
    env.write("scratch/writers", "reviewer\n");
    let of_a = (1..=2).find(|number| pull(env, *number, "head") == "lane/P1/A").expect("one of A");
    env.write(&format!("scratch/pulls/{of_a}.comments"), comment(5, "reviewer", "please look again"));
    for _ in 0..2 {
        service.job(&[]).exits(0);
        assert_eq!((starts(), pulls(env).as_str()), ((2, 1), "2"), "a comment is answered once");
    }
}
