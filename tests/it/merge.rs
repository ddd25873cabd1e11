//! How finished lanes reach the integration branch, and what that does to the user's checkout.

use crate::support::TestEnv;

const CHAIN: &str = "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n\
     [[lane]]\nid = \"B\"\ncommand = 'echo b > b.txt'\n\
     [[lane]]\nid = \"C\"\ndepends_on = [\"A\", \"B\"]\nretries = 0\ncommand = 'cat a.txt b.txt > c.txt'\n";

#[test]
fn merge_none_keeps_branches_and_feeds_dependants() {
    let env = TestEnv::new();
    env.plan(CHAIN);
    let (before, main) = (env.users_checkout(), env.git(&["rev-parse", "main"]));
    env.execute(&["--merge", "none"]).exits(0);
    assert_eq!(env.git(&["rev-parse", "main"]), main);
    assert_eq!(env.file_at("lane/P1/C", "c.txt"), "a\nb");
    assert!(env.holds("lane/P1/A", "a.txt") && env.holds("lane/P1/B", "b.txt"));
    for branch in ["lane/P1/A", "lane/P1/B", "lane/P1/C"] {
        env.git(&["merge-base", "--is-ancestor", "main", branch]);
    }
    let branches = env.refs().into_iter().filter(|name| name.starts_with("refs/heads/")).collect::<Vec<_>>();
    assert_eq!(branches, ["refs/heads/lane/P1/A", "refs/heads/lane/P1/B", "refs/heads/lane/P1/C", "refs/heads/main"]);
    env.git(&["branch", "-D", "lane/P1/A", "lane/P1/B", "lane/P1/C"]);
    for name in env.refs().iter().filter(|name| name.starts_with("refs/lanewright/")) {
        env.git(&["update-ref", "-d", name]);
    }
    assert_eq!(env.users_checkout(), before);
}

#[test]
fn dirty_base_checkout_blocks_the_merge() {
    let env = TestEnv::new();
    env.write("repo/a.txt", "mine, untracked\n");
    env.write("repo/README.md", "Edited.\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt; echo more >> README.md'\n");
    let (before, main) = (env.users_checkout(), env.git(&["rev-parse", "main"]));
    let told = env.execute(&[]).exits(3).says(&["README.md", "commit or stash"]).stderr;
    let [warned, began] = ["files with uncommitted changes in", "attempt 1 started"].map(|text| told.find(text));
    assert!(warned.is_some() && warned < began, "told before agents are paid: {told}");
    assert_eq!(env.git(&["rev-parse", "main"]), main);
    assert_eq!(env.read("repo/a.txt"), "mine, untracked\n");
    assert_eq!(env.read("repo/README.md"), "Edited.\n");
    assert_eq!(env.users_checkout().without_refs(), before.without_refs());

    env.git(&["stash", "--quiet", "--include-untracked"]);
    env.resume(&[]).exits(0);
    assert_eq!(env.read("repo/a.txt"), "a\n");
    assert_eq!(env.read("repo/README.md"), "A project.\nmore\n");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(env.events("job_planned").len(), 1, "the work was done again");
    env.git(&["stash", "drop", "--quiet"]);
    env.assert_nothing_left(&["main"]);
}

/// Old and foreign programs wrote trees with permissions that git does not compare.
#[test]
fn files_of_a_tree_with_mode_100664_count_as_unchanged() {
    let env = TestEnv::new();
    let tree = "git cat-file tree 'HEAD^{tree}' | LC_ALL=C sed 's/100644 README/100664 README/' \
                | git hash-object -t tree -w --literally --stdin";
    let commit = format!("git reset -q --hard $(git commit-tree -p HEAD -m foreign $({tree}))");
    assert!(
        std::process::Command::new("sh")
            .args(["-c", &commit])
            .current_dir(env.path("repo"))
            .status()
            .unwrap()
            .success()
    );
    assert_ne!(env.git(&["rev-parse", "HEAD^{tree}"]), env.git(&["rev-parse", "HEAD~1^{tree}"]));
    assert_eq!(env.git(&["diff", "--raw", "HEAD~1", "HEAD"]), "");
    let start = env.git(&["rev-parse", "main"]);
    env.plan(
        r#"
[[lane]]
id = "IDLE"
owns = ["d/**"]
command = "true"
allow_empty = true
[[lane]]
id = "EDIT"
depends_on = ["IDLE"]
command = "echo more >> README.md"
"#,
    );
    env.execute(&[]).exits(0);
    assert_eq!(env.read("repo/README.md"), "A project.\nmore\n");
    assert_eq!(env.git(&["rev-parse", "main^1"]), start, "the idle lane was merged");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn user_edits_outside_the_lanes_block_nothing() {
    let env = TestEnv::new();
    for name in ["one", "two", "three"] {
        env.write(&format!("repo/{name}.txt"), "old\n");
    }
    env.commit("more");
    env.write("repo/README.md", "Edited.\n");
    env.write("repo/one.txt", "staged\n");
    env.write("repo/added.txt", "staged\n");
    env.git(&["add", "one.txt", "added.txt"]);
    env.git(&["rm", "--quiet", "two.txt"]);
    std::fs::remove_file(env.path("repo/three.txt")).expect("a file");
    let before = env.git(&["status", "--porcelain"]);
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'echo b >> a.txt'\n",
    );
    env.execute(&[]).exits(0);
    assert_eq!(env.git(&["status", "--porcelain"]), before);
    assert_eq!((env.read("repo/a.txt"), env.read("repo/README.md")), ("a\nb\n".into(), "Edited.\n".into()));
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt", "one.txt", "three.txt", "two.txt"]);
}

#[test]
fn user_commits_on_the_base_branch_are_merged_in() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/began\"; wait-for go; echo a > a.txt'\n");
    let run = env.start(&[]);
    crate::support::wait_until("the agent", || env.path("scratch/began").exists());
    env.write("repo/mine.txt", "mine\n");
    env.commit("mine");
    env.write("scratch/go", "");
    run.wait().exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt", "mine.txt"]);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn user_edit_of_an_owned_file_blocks_the_lane() {
    let env = TestEnv::new();
    env.write("repo/README.md", "Edited.\n");
    env.plan(
        "[[lane]]\nid = \"A\"\nowns = [\"README.md\"]\ncommand = 'touch \"$SCRATCH/began\"; echo x >> README.md'\n",
    );
    env.execute(&[]).exits(3).says(&["A owns files with uncommitted changes", "README.md"]);
    assert!(!env.path("scratch/began").exists());
    assert_eq!(env.read("repo/README.md"), "Edited.\n");
    env.commit("edited");
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "README.md"), "Edited.\nx");
}

#[test]
fn a_lane_that_changes_nothing_is_merged_as_it_is() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nallow_empty = true\ncommand = 'true'\n[[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'echo b > b.txt'\n");
    env.execute(&[]).exits(0);
    assert!(env.holds("main", "b.txt"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn existing_foreign_lane_branch_blocks_and_is_kept() {
    let env = TestEnv::new();
    env.git(&["branch", "lane/P1/A"]);
    let theirs = env.git(&["rev-parse", "lane/P1/A"]);
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(3).says(&["lane/P1/A"]);
    assert_eq!(env.git(&["rev-parse", "lane/P1/A"]), theirs);
}

/// Gives a line of the run log another text, with the right checksum.
fn rewrite(log: &std::path::Path, is_meant: impl Fn(&str) -> bool, change: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(log).expect("a log");
    let rewritten = text.lines().map(|line| {
        if !is_meant(line) {
            return format!("{line}\n");
        }
        let (body, _) = line.rsplit_once(",\"crc\":").expect("a checksum");
        let body = change(body);
        format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
    });
    std::fs::write(log, rewritten.collect::<String>()).expect("a log");
}

/// A lane of two agents.
pub(crate) const TWO_AGENTS: &str = "[[lane]]\nid = \"L\"\n[[lane.agent]]\nname = \"one\"\ncommand = 'echo 1 > one'\n\
     [[lane.agent]]\nname = \"two\"\ncommand = 'echo 2 > two'\n";

/// As if a rule had lost work of L's agents on the way, and only `kept` was left: log and branch agree on it.
pub(crate) fn lose_accepted_work(env: &TestEnv, kept: &str) {
    let head = merged_head(env, env.events("agent_merged").len() - 1);
    env.git_in(&env.path("repo.lanes/r1/L/code"), &["reset", "--quiet", "--hard", kept]);
    rewrite(
        &env.log_file(),
        |line| line.contains("\"agent_merged\"") && line.contains(&head),
        |line| line.replace(&head, kept),
    );
}

/// The lane's head after the merge of its agent with this number, from 0.
pub(crate) fn merged_head(env: &TestEnv, number: usize) -> String {
    env.events("agent_merged")[number]["head"].as_str().expect("a commit").to_owned()
}

#[test]
fn lane_without_accepted_work_is_not_merged() {
    let env = TestEnv::new();
    env.plan(&TWO_AGENTS.replace("\"L\"\n", "\"L\"\napproval = [\"changes\"]\n"));
    env.execute(&["--max-parallel", "1"]).exits(3);
    let base = env.main();
    let first = merged_head(&env, 0);
    lose_accepted_work(&env, &base);
    env.lanewright(&["approve", "r1", "L", "--gate", "changes"]).exits(0);
    env.resume(&[]).exits(3).says(&["lane/P1/L", "lacks accepted work", "git merge"]);
    assert_eq!(env.main(), base, "nothing was merged");
    env.git_in(&env.path("repo.lanes/r1/L/code"), &["merge", "--quiet", &first]);
    env.resume(&[]).exits(3).says(&["approval"]);
    env.lanewright(&["approve", "r1", "L", "--gate", "changes", "--resume"]).exits(0);
    assert!(env.holds("main", "one"));
}

#[test]
fn merge_staged_without_accepted_work_is_not_published() {
    let env = TestEnv::new();
    env.plan(TWO_AGENTS);
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1", "--max-parallel", "1"];
    env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", "before_publish_merge:1"));
    assert_eq!(env.events("merge_staged").len(), 1);
    let base = env.main();
    lose_accepted_work(&env, &base);
    env.resume(&[]).exits(3).says(&["lane/P1/L", "lacks accepted work"]);
    assert_eq!(env.main(), base, "nothing was merged");
}

/// Two lanes that begin at the same commit, of which B is merged last.
fn side_by_side(a: &str, b: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        "[defaults]\nretries = 0\n[[lane]]\nid = \"A\"\ncommand = 'wait-for b && mkdir -p db && echo a > {a}'\n\
         [[lane]]\nid = \"B\"\ncommand = 'touch \"$SCRATCH/b\" && mkdir -p db && echo b > {b} && \
         until git -C $SCRATCH/../repo cat-file -e main:{a} 2>/dev/null; do sleep 0.02; done'\n"
    ));
    env
}

#[test]
fn names_that_differ_by_case_are_a_conflict() {
    let env = side_by_side("notes.md", "Notes.md");
    env.execute(&[]).exits(1).says(&["names differ only by letter case", "Notes.md", "notes.md"]);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "notes.md"]);
}

#[test]
fn name_that_differs_by_case_from_the_bases_is_a_conflict() {
    let env = TestEnv::new();
    let lane = |id: &str, command: &str| {
        format!("[[lane]]\nid = \"{id}\"\nretries = 1\ncommand = '''{command}; echo x > {id}.txt'''\n")
    };
    env.write("repo/docs/Guide.md", "a guide\n");
    env.commit("a guide");
    env.plan(&(lane("A", "[ $LANEWRIGHT_ATTEMPT != 1 ] || echo x > Readme.md") + &lane("B", "git mv docs Docs")));
    env.execute(&[]).exits(0).says(&["names differ only by letter case", "Readme.md", "README.md"]);
    assert_eq!(env.events("failure_noted").len(), 1, "a file that a lane renames is no other one");
    assert_eq!(env.files("main"), [".gitignore", "A.txt", "B.txt", "Docs/Guide.md", "README.md"]);
}

#[test]
fn files_with_one_number_are_named() {
    let env = side_by_side("db/0007_users.sql", "db/0007_orders.sql");
    let line = "B: added db/0007_orders.sql beside db/0007_users.sql, which has the same number";
    let ended = env.execute(&[]).exits(0);
    let (_, summary) = ended.stderr.split_once("run done after").expect("a summary");
    assert!(summary.contains(line), "{summary}");
    let status = env.lanewright(&["status", "r1"]).exits(0).stdout;
    assert!(status.contains(line), "{status}");
}

/// After a conflict the lane is built again, on what others merged: their files are not its own.
#[test]
fn prompt_after_a_conflict_names_only_the_lanes_own_files_with_one_number() {
    let env = TestEnv::new();
    let merged = |lane: &str, more: &str| {
        format!(
            "[[lane]]\nid = \"{lane}\"\ncommand = 'wait-for C && wait-for D && mkdir db && echo x > db/0007_{lane}.sql{more}'\n"
        )
    };
    let in_conflict = |lane: &str, more: &str| {
        let both = "git -C $SCRATCH/../repo cat-file -e main:db/0007_A.sql 2>/dev/null && \
                    git -C $SCRATCH/../repo cat-file -e main:db/0007_B.sql 2>/dev/null";
        format!(
            "[[lane]]\nid = \"{lane}\"\nretries = 1\ncommand = '''echo {lane}$LANEWRIGHT_ATTEMPT > {lane}.txt; \
             if [ $LANEWRIGHT_ATTEMPT = 2 ]; then cp $LANEWRIGHT_PROMPT_FILE $SCRATCH/prompt.{lane}; exit; fi; \
             {more}touch $SCRATCH/{lane}; until {both}; do sleep 0.02; done'''\n"
        )
    };
    env.plan(&format!(
        "max_parallel = 4\n{}{}{}{}",
        merged("A", " && echo a > C.txt && echo a > D.txt"),
        merged("B", ""),
        in_conflict("C", "mkdir db; echo c > db/0007_C.sql; "),
        in_conflict("D", ""),
    ));
    env.execute(&[]).exits(0);
    let prompt = env.scratch("prompt.C");
    assert!(prompt.contains("db/0007_C.sql beside db/0007_"), "{prompt}");
    let prompt = env.scratch("prompt.D");
    assert!(!prompt.contains(" beside db/"), "{prompt}");
}

#[test]
fn prompt_after_a_failed_merge_names_files_with_one_number() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'wait-for b && mkdir db && echo a > db/0007_users.sql'\n\
         [[lane]]\nid = \"B\"\nretries = 1\ntests = ['test ! -e db/0007_users.sql || test ! -e db/0007_orders.sql']\n\
         command = '''if [ $LANEWRIGHT_ATTEMPT = 1 ]; then touch \"$SCRATCH/b\" && mkdir db && echo b > db/0007_orders.sql && \
         until git -C $SCRATCH/../repo cat-file -e main:db/0007_users.sql 2>/dev/null; do sleep 0.02; done; \
         else grep -q \"db/0007_orders.sql beside db/0007_users.sql\" $LANEWRIGHT_PROMPT_FILE && \
         git mv db/0007_orders.sql db/0008_orders.sql; fi'''\n",
    );
    env.execute(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "db/0007_users.sql", "db/0008_orders.sql"]);
}
