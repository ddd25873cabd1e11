//! `merge = "squash"`, `"rebase"` and `"ff"`: what the integration branch looks like, and that everything which asks
//! whether a lane's work is in it knows.

use crate::support::{RUN, TestEnv};

/// A lane whose agent commits by itself, in another name, and leaves a file behind; and a lane that starts later.
const PLAN: &str = r#"
[[lane]]
id = "A"
name = "First"
command = '''
echo one > one.txt && git add . && git -c user.name=Ann -c user.email=ann@example.invalid commit -qm "one

Signed-off-by: Ann <ann@example.invalid>" --date=2020-01-01T00:00:00Z
echo two > two.txt'''
[[lane]]
id = "B"
depends_on = ["A"]
command = 'echo b > b.txt'
"#;

fn run(style: &str, plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!("merge = \"{style}\"\n{plan}"));
    env.execute(&[]).exits(0);
    env
}

/// The first-parent way from the first commit: subject, author and number of parents of each commit.
fn history(env: &TestEnv) -> Vec<String> {
    let listing = env.git(&["log", "--first-parent", "--reverse", "--format=%s|%an|%p", "main"]);
    let entry = |line: &str| {
        let (text, parents) = line.rsplit_once('|').expect("three fields");
        format!("{text}|{}", parents.split_whitespace().count())
    };
    listing.lines().skip(1).map(entry).collect()
}

fn trailers(env: &TestEnv, commit: &str) -> String {
    env.git(&["log", "-1", "--format=%(trailers:only,unfold)", commit])
}

#[test]
fn a_squash_is_one_commit_for_each_lane() {
    let env = run("squash", PLAN);
    assert_eq!(history(&env), ["Lane A (First)|Tester|1", "Lane B|Tester|1"]);
    let expected = format!("Co-authored-by: Ann <ann@example.invalid>\nRun: {RUN}\nLane: A\nPlan: ");
    assert!(trailers(&env, "main~1").starts_with(&expected));
    assert_eq!(env.files("main"), [".gitignore", "README.md", "b.txt", "one.txt", "two.txt"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn rebase_keeps_commits_with_author_date_and_trailers() {
    for style in ["rebase", "ff"] {
        let env = run(style, PLAN);
        let found = history(&env);
        assert_eq!(found[0], "one|Ann|1", "{style}: {found:?}");
        assert_eq!(found.len(), 3, "{style}: {found:?}");
        assert!(found.iter().all(|commit| commit.ends_with("|1")), "{style}: {found:?}");
        let one = "main~2";
        assert_eq!(env.git(&["log", "-1", "--format=%ad", "--date=short", one]), "2020-01-01");
        let expected = format!("Signed-off-by: Ann <ann@example.invalid>\nRun: {RUN}\nLane: A");
        assert_eq!(trailers(&env, one).trim(), expected, "{style}");
        assert_eq!(env.files("main"), [".gitignore", "README.md", "b.txt", "one.txt", "two.txt"]);
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn fast_forward_sets_branch_to_lane_commit() {
    let env = run("ff", "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    let committed = env.events("work_committed")[0]["head"].as_str().expect("a commit").to_owned();
    assert_eq!(env.git(&["rev-parse", "main"]), committed);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn parallel_lanes_are_merged_into_linear_history() {
    for style in ["squash", "rebase", "ff"] {
        let lane = |id: &str| {
            format!("[[lane]]\nid = \"{id}\"\ntests = [\"test -e {id}.txt\"]\ncommand = 'echo x > {id}.txt'\n")
        };
        let env = run(style, &[lane("A"), lane("B"), lane("C")].concat());
        assert_eq!(history(&env).len(), 3, "{style}");
        assert!(history(&env).iter().all(|commit| commit.ends_with("|1")), "{style}: {:?}", history(&env));
        assert_eq!(env.files("main"), [".gitignore", "A.txt", "B.txt", "C.txt", "README.md"]);
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn a_lane_chooses_its_own_style() {
    let plan = PLAN.replace("id = \"B\"\n", "id = \"B\"\nmerge = \"merge\"\n");
    let env = run("squash", &plan);
    assert_eq!(history(&env), ["Lane A (First)|Tester|1", "Merge lane B|Tester|2"]);
    let env = TestEnv::new();
    env.plan(&plan);
    env.execute(&["--merge", "squash"]).exits(0);
    assert_eq!(history(&env), ["Lane A (First)|Tester|1", "Lane B|Tester|1"], "the flag counts for all lanes");
}

#[test]
fn a_conflict_is_resolved_by_the_lane_as_with_a_merge() {
    let lane = |own: &str, other: &str| {
        let wait = format!("touch \"$SCRATCH/{own}\" && wait-for {other}");
        format!("[[lane]]\nid = \"{own}\"\ncommand = '{wait} && echo {own} >> shared.txt'\n")
    };
    for style in ["squash", "rebase", "ff"] {
        let env = run(style, &(lane("A", "B") + &lane("B", "A")));
        let mut lines: Vec<String> = env.file_at("main", "shared.txt").lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["A", "B"], "{style}");
        assert_eq!(env.events("failure_noted").len(), 1, "{style}");
        assert_eq!(history(&env).len(), 2, "{style}: {:?}", history(&env));
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn commits_that_only_a_merge_holds_together_become_one() {
    // Both sides of the agent's own merge change the same line, and the merge resolves it.
    let agent = "git config user.name Ann && git config user.email a@example.invalid && base=$(git rev-parse HEAD) && \
                 echo left > README.md && git commit -qam left && git switch -q --detach $base && \
                 echo right > README.md && git commit -qam right && right=$(git rev-parse HEAD) && \
                 git switch -q - && git merge -q -s ours -m both $right && git config --unset user.name && \
                 git config --unset user.email";
    let env = run("rebase", &format!("[[lane]]\nid = \"A\"\ncommand = '{agent}'\n"));
    assert_eq!(history(&env), ["Lane A|Ann|1"]);
    assert_eq!(env.file_at("main", "README.md"), "left");
    let noted = env.events("noted").into_iter().any(|it| it["message"].to_string().contains("one commit"));
    assert!(noted);
}

#[test]
fn a_rollback_undoes_all_of_a_lane_and_it_can_run_again() {
    for style in ["squash", "rebase", "ff"] {
        let env = run(style, PLAN);
        let tip = env.git(&["rev-parse", "main"]);
        // What was merged as other commits is kept by nothing but the branch.
        env.git(&["reflog", "expire", "--expire=now", "--all"]);
        env.git(&["gc", "--quiet", "--prune=now"]);
        env.lanewright(&["doctor", RUN]).exits(0);
        env.lanewright(&["rollback", RUN, "--lane", "B", "--yes"]).exits(0);
        assert_eq!(env.files("main"), [".gitignore", "README.md", "one.txt", "two.txt"], "{style}");
        env.lanewright(&["rollback", RUN, "--yes"]).exits(0);
        assert_eq!(env.files("main"), [".gitignore", "README.md"], "{style}");
        env.git(&["merge-base", "--is-ancestor", &tip, "main"]);
        env.lanewright(&["rollback", RUN, "--yes"]).exits(0);
        env.resume(&[]).exits(0);
        assert_eq!(env.files("main"), [".gitignore", "README.md", "b.txt", "one.txt", "two.txt"], "{style}");
    }
}

#[test]
fn resume_refuses_user_revert_but_not_lane_removal() {
    for style in ["squash", "rebase", "ff"] {
        let env = TestEnv::new();
        env.plan(&format!(
            "merge = \"{style}\"\n[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n\
             [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'git rm -q a.txt && git commit -qm gone && echo b > b.txt'\n\
             [[lane]]\nid = \"C\"\ndepends_on = [\"B\"]\nretries = 0\ncommand = 'test -e $SCRATCH/go && echo c > c.txt'\n"
        ));
        env.execute(&[]).exits(1);
        let onto = env.events("lane_merged")[1]["onto"].as_str().expect("a commit").to_owned();
        env.git(&["revert", "--no-edit", &format!("{onto}..main")]);
        env.write("scratch/go", "");
        let refused = env.resume(&[]).exits(5);
        assert!(refused.stderr.contains("no longer has the work of B"), "{style}: {}", refused.stderr);
        assert!(!refused.stderr.contains("the work of A"), "{style}: {}", refused.stderr);
        let hint = refused.stderr.lines().find(|line| line.contains("git cherry-pick")).expect("a hint").to_owned();
        let words: Vec<&str> = hint.split("git cherry-pick ").nth(1).expect("a command").split(' ').collect();
        env.git(&[["cherry-pick"].as_slice(), &words].concat());
        env.resume(&[]).exits(0);
        assert_eq!(env.files("main"), [".gitignore", "README.md", "b.txt", "c.txt"], "{style}");
    }
}

#[test]
fn merged_lanes_are_recognized_after_log_deletion() {
    for style in ["squash", "rebase", "ff"] {
        let env = run(style, PLAN);
        env.lanewright(&["clean", RUN, "--yes", "--logs"]).exits(0);
        let plan = env.path("plan.toml");
        let again = env.lanewright(&["execute-lane", plan.to_str().expect("text"), "B"]);
        let said = again.stdout + &again.stderr;
        assert!(said.contains("merged"), "{style}: {said}");
        assert_eq!(said.contains("nothing to do"), style != "ff", "{style}: {said}");
        assert_eq!(history(&env).last().map(|it| it.ends_with("|1")), Some(true));
    }
}

#[test]
fn commit_message_template_is_used_and_validated() {
    let template = "commit_message = \"{{ lane_name }}: {{ task_name }} by {{ agent }} {{ attempt }}\\n\\n{{ files | join(',') }}\"\n";
    let lane =
        "[[lane]]\nid = \"A\"\nname = \"First\"\ncommand = 'echo a > a.txt; echo b > b.txt'\nprompt = \"Do it\"\n";
    let message = |env: &TestEnv, commit: &str| env.git(&["log", "-1", "--format=%B", commit]).trim().to_owned();
    let env = run("ff", &(template.to_owned() + lane));
    let trailers = format!("Run: {RUN}\nLane: A");
    let expected = format!("First: Do it by agent 1\n\na.txt,b.txt\n\n{trailers}\nAgent: agent\nTask: 1");
    assert_eq!(message(&env, "main"), expected);
    let env = run("squash", &(template.to_owned() + lane));
    let expected = format!("First: First by agent 1\n\na.txt,b.txt\n\n{trailers}\nPlan: ");
    assert!(message(&env, "main").starts_with(&expected));
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "commit_message = \"{{ lame }}\"\n");
    env.plan(lane);
    env.execute(&[]).exits(2).says(&["lanewright.toml:1:18", "`lame` is none of"]);
    env.write("repo/lanewright.toml", "");
    env.plan(&("commit_message = \"{{ lane \"\n".to_owned() + lane));
    env.execute(&[]).exits(2).says(&["plan.toml:2:18", "no template of a commit's message"]);
}
