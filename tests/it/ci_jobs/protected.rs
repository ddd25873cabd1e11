//! Branches that take no push: a job proposes the work, and later ones update that.

use super::TWO;
use super::service::Service;
use crate::publish::{protect, unprotected};
use crate::pull_requests::{GH, pulls};

#[test]
fn protected_branch_gets_one_pull_request() {
    let service = Service::github(TWO);
    let env = &service.env;
    service.push("lanewright.toml", "forge = \"gh\"\n");
    env.program("gh", GH);
    env.write("scratch/pulls/count", "0");
    protect(env, "error: GH006: Protected branch update failed for refs/heads/main.");
    service.help();
    let before = service.main();
    service.job(&[]).exits(0).says(&["Opened the pull request of run P1-"]);
    let run = service.state().rsplit('/').next().expect("a name").to_owned();
    service.job(&[]).exits(0).says(&["Updated the pull request of run P1-"]);
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
