//! What a job cannot work with: each is a sentence with a remedy, and nothing is lost.

use super::service::{Kind, Service};
use super::{TWO, is_finished_by_next_job, killed};

#[test]
fn plan_input_is_never_a_line_of_shell() {
    let service = Service::github(TWO);
    for plan in ["$(touch \"$SCRATCH/shell\")", "; touch shell", "--help", "missing.toml", "../../../etc", "a\nb"] {
        let ended = service.job(&[("plan", plan)]).exits(2);
        assert!(ended.stderr.contains("plan"), "{plan}: {}", ended.stderr);
    }
    assert!(!service.env.path("scratch/shell").exists());
    assert_eq!((service.starts("A"), service.states().len()), (0, 0));
}

#[test]
fn state_that_was_forced_back_is_continued() {
    let service = Service::github(TWO);
    let mut job = service.start(&[]);
    job.wait_until("a first push", || service.states().len() == 1);
    let state = service.state();
    let older = service.env.git_at("origin.git", &["rev-parse", &state]);
    job.wait_until("A is merged", || service.starts("B") == 1 && service.has_pushed(&["lane_merged", "\"B\""]));
    job.dies(&service);
    service.env.git_at("origin.git", &["update-ref", &state, &older]);
    service.help();
    service.job(&[]).exits(0);
    assert_eq!(service.files(), ["a.txt", "b.txt"]);
    assert_eq!(service.states(), [] as [&str; 0]);
    // After the publication, too: the base decides.
    service.env.git_at("origin.git", &["update-ref", &state, &older]);
    let before = (service.main(), service.starts("A"), service.starts("B"));
    service.job(&[]).exits(0).says(&["main has all lanes of phase P1"]);
    assert_eq!((service.main(), service.starts("A"), service.starts("B")), before);
    assert_eq!(service.states(), [] as [&str; 0], "its work is in the base");
}

/// Puts another text in the place of the pushed one.
fn tamper(service: &Service, change: impl Fn(String) -> String) {
    let (env, state) = (&service.env, service.state());
    env.git(&["fetch", "--quiet", "origin", &format!("+{state}:refs/tampered")]);
    env.git(&["worktree", "add", "--quiet", "--detach", "../tampered", "refs/tampered"]);
    env.write("tampered/state.json", change(env.read("tampered/state.json")));
    env.git_at("tampered", &["commit", "--quiet", "--all", "--message", "tampered"]);
    env.git_at("tampered", &["push", "--quiet", "--force", "origin", &format!("HEAD:{state}")]);
    env.git(&["worktree", "remove", "--force", "../tampered"]);
}

#[test]
fn damaged_or_newer_state_is_left_alone() {
    let service = killed(Kind::Github);
    let (state, whole) = (service.state(), service.env.git_at("origin.git", &["rev-parse", &service.state()]));
    for (change, code, remedy) in [
        (&(|_| "{".to_owned()) as &dyn Fn(String) -> String, 6, "git push origin --delete refs/lanewright/state/P1-"),
        (&|text: String| text.replace("\"format\": \"1.", "\"format\": \"2."), 3, "LANEWRIGHT_VERSION"),
    ] {
        tamper(&service, change);
        let refs = service.env.git_at("origin.git", &["for-each-ref"]);
        service.job(&[]).exits(code).hints(remedy);
        assert_eq!(service.env.git_at("origin.git", &["for-each-ref"]), refs);
        service.env.git_at("origin.git", &["update-ref", &state, &whole]);
    }
    assert_eq!(service.starts("B"), 1);
    // That of another plan does not matter here.
    tamper(&service, |_| "{".to_owned());
    service.push("other.toml", "phase = \"P2\"\n[[lane]]\nid = \"O\"\ncommand = 'echo o > o.txt'\n");
    service.job(&[("plan", "other.toml")]).exits(0);
    service.env.git_at("origin.git", &["update-ref", &state, &whole]);
    is_finished_by_next_job(&service, &[], &["o.txt", "other.toml"]);
}

#[test]
fn clone_without_history_or_files_is_refused() {
    let service = killed(Kind::Github);
    service.env.git_at("origin.git", &["config", "uploadpack.allowFilter", "true"]);
    service.env.git_at("origin.git", &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let refs = service.env.git_at("origin.git", &["for-each-ref"]);
    for (flags, remedy) in [(["--depth", "1"], "fetch-depth: 0"), (["--filter", "blob:none"], "clone without --filter")]
    {
        let job = service.start_with(&[], |script| script, &[&["--quiet"], &flags[..]].concat());
        job.end(&service).exits(3).hints(remedy);
        assert_eq!(service.env.git_at("origin.git", &["for-each-ref"]), refs);
    }
    is_finished_by_next_job(&service, &[], &[]);
}
