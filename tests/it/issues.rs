//! `plan new --from issues`: a plan of what is open on the forge.

use crate::support::TestEnv;

/// `gh` that prints two pages of issues, and what one of them waits for.
const GH: &str = r##"#!/bin/sh
echo "$*" >> "$SCRATCH/calls"
case "$*" in
"auth status"*) exit 0 ;;
*dependencies*) echo '[{"number": 1, "state": "open"}, {"number": 8, "state": "closed"}]' ;;
*) cat <<'JSON'
[{"number": 2, "title": "Sign in; closes #77", "state": "open", "labels": [{"name": "ready"}], "body": "Write `in.txt`",
  "issue_dependencies_summary": {"blocked_by": 2}},
 {"number": 3, "title": "Sign out", "state": "open", "labels": [{"name": "Ready"}], "body": "Blocked by #4"}]
[{"number": 1, "title": "Base", "state": "open", "labels": [{"name": "ready"}], "body": null},
 {"number": 4, "title": "Later", "state": "open", "labels": [], "body": ""},
 {"number": 5, "title": "A pull request", "state": "open", "labels": [], "body": "", "pull_request": {}}]
JSON
;;
esac
"##;

fn env(program: &str, script: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write(
        "repo/lanewright.toml",
        format!("forge = '{program}'\nrunner = 'agent'\n[runners.agent]\ncommand = 'agent.sh'\n"),
    );
    env.program("agent.sh", "#!/bin/sh\necho \"$LANEWRIGHT_LANE\" > \"$LANEWRIGHT_LANE.txt\"\n");
    env.program(program, script);
    env.git(&["remote", "add", "origin", "https://github.example.com/acme/shop.git"]);
    env.commit("the settings");
    env
}

#[test]
fn open_issues_become_lanes_and_their_merges_close_them() {
    let env = env("gh", GH);
    let new = ["plan", "new", "plan.toml", "--from", "issues", "--label", "ready", "--test", "test -e issue-1.txt"];
    let said = env.lanewright(&new).exits(0);
    assert!(said.stdout.contains("Wrote plan.toml. It has 2 issues"), "{}", said.stdout);
    said.says(&["issue-3 is left out: it waits for issue-4"]);
    let calls = env.scratch("calls");
    assert!(
        calls.contains("repos/acme/shop/issues/2/dependencies/blocked_by") && !calls.contains("issues/3/dep"),
        "{calls}"
    );
    let text = env.read("repo/plan.toml");
    for part in
        ["closes = [\"#2\"]", "depends_on = [\"issue-1\"]", "# Issue #2: Sign in; closes 77", "test -e issue-1.txt"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    env.lanewright(&["plan", "check", "plan.toml"]).exits(0);
    env.commit("the plan");
    env.lanewright(&["run", "plan.toml", "--run-id", "r1"]).exits(0);
    let messages = env.git(&["log", "--first-parent", "--format=%B", "main"]);
    assert!(messages.contains("Closes: #1") && messages.contains("Closes: #2"), "{messages}");
    assert!(!messages.contains("#77"), "{messages}");
    assert!(env.holds("main", "issue-2.txt"));
    env.lanewright(&new).exits(2).says(&["plan.toml"]);
}

#[test]
fn issues_of_gitlab_are_asked_for_through_glab() {
    let script = r##"#!/bin/sh
case "$*" in
*links*) echo '[{"iid": 7, "link_type": "blocks"}, {"iid": 9, "link_type": "relates_to"}]' ;;
"api "*issues*) echo '[{"id": 70, "iid": 7, "title": "After", "state": "opened", "labels": [], "description": "x"},
  {"id": 60, "iid": 6, "title": "Before", "state": "opened", "labels": [], "description": "y", "blocking_issues_count": 1}]' ;;
esac
"##;
    let env = env("glab", script);
    env.lanewright(&["plan", "new", "--from", "issues", "--milestone", "none"]).exits(2).hints("--milestone");
    env.lanewright(&["plan", "new", "--from", "issues", "--phase", "P7"]).exits(0);
    let text = env.read("repo/plan.toml");
    assert!(text.contains("depends_on = [\"issue-6\"]") && text.contains("phase = \"P7\""), "{text}");
}

#[test]
fn a_forge_that_fails_leaves_no_plan() {
    for (script, said) in [
        (
            "#!/bin/sh\ncase \"$*\" in auth*) ;; *) echo 'HTTP 500: try later' >&2; exit 1 ;; esac\n",
            "HTTP 500: try later",
        ),
        ("#!/bin/sh\ncase \"$*\" in auth*) ;; *) echo '<html>' ;; esac\n", "must print a list of issues"),
        ("#!/bin/sh\ncase \"$*\" in auth*) ;; *) echo '[7]' ;; esac\n", "must print a list of issues"),
        ("#!/bin/sh\ncase \"$*\" in auth*) ;; *) echo '[]' ;; esac\n", "this list has no tasks"),
        ("#!/bin/sh\nexit 1\n", "not logged in"),
    ] {
        let env = env("gh", script);
        let ended = env.lanewright(&["plan", "new", "--from", "issues"]);
        assert!(ended.code != 0 && ended.stderr.contains(said), "{said}: {}", ended.stderr);
        assert!(!env.path("repo/plan.toml").exists());
    }
}

#[test]
fn what_is_no_issue_is_refused() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = \"true\"\ncloses = [\"#1\\nRun: x\", \"soon\"]\n");
    env.execute(&[]).exits(2).says(&["`soon` is no issue that a commit could close"]);
}
