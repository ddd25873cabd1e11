//! Conflicts in files that a command makes again, such as lock files: the setting `regenerate`.

use crate::support::TestEnv;

/// Two lanes that each add a dependency, and make the lock file again from all that they have, at the same time.
fn locked(setting: &str, lock: &str, flags: &[&str]) -> (TestEnv, crate::support::Ended) {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", setting);
    env.write("repo/web/deps/base", "base 1\n");
    env.write(&format!("repo/{lock}"), "base 1\n");
    env.commit("a lock file");
    let lane = |own: &str, other: &str| {
        format!(
            "[[lane]]\nid = \"{own}\"\nretries = 1\ntests = 'cat web/deps/* | cmp - {lock}'\ncommand = '''\n\
             echo start >> \"$SCRATCH/starts\"\necho {own} 1 > web/deps/{own}\ncat web/deps/* > {lock}\n\
             touch \"$SCRATCH/{own}\"\nwait-for {other}\n'''\n"
        )
    };
    env.plan(&(lane("a", "b") + &lane("b", "a")));
    let ended = env.execute(&[&["--max-parallel", "2"], flags].concat());
    (env, ended)
}

fn starts(env: &TestEnv) -> usize {
    env.scratch("starts").lines().count()
}

#[test]
fn lock_file_is_made_again_instead_of_paying_an_agent() {
    let setting = "[regenerate]\n\"*.lock\" = \"cat deps/* > my.lock\"\n";
    for flags in [&[][..], &["--merge", "squash"], &["--merge", "rebase"]] {
        let (env, ended) = locked(setting, "web/my.lock", flags);
        ended.exits(0).says(&["the conflict in web/my.lock was settled by `cd ./web"]);
        assert_eq!(starts(&env), 2, "{flags:?}");
        assert_eq!(env.file_at("main", "web/my.lock"), "a 1\nb 1\nbase 1");
        assert!(env.events("failure_noted").is_empty());
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn agents_of_one_lane_have_their_lock_file_made_again() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "[regenerate]\n\"my.lock\" = \"cat deps/* > my.lock\"\n");
    env.write("repo/deps/base", "base\n");
    env.write("repo/my.lock", "base\n");
    env.commit("a lock file");
    let agent = |name: &str| {
        format!(
            "[[lane.agent]]\nname = \"{name}\"\n\
             command = 'echo s >> \"$SCRATCH/starts\"; echo {name} > deps/{name}; cat deps/* > my.lock'\n"
        )
    };
    env.plan(&format!("[[lane]]\nid = \"L\"\n{}{}", agent("one"), agent("two")));
    env.execute(&["--max-parallel", "2"])
        .exits(0)
        .says(&["the conflict in my.lock was settled by `cat deps/* > my.lock`"]);
    assert_eq!(starts(&env), 2);
    assert_eq!(env.file_at("main", "my.lock"), "base\none\ntwo");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn command_that_fails_or_changes_more_settles_nothing() {
    let faults = [
        ("echo no registry; exit 3", "it exited with code 3: no registry"),
        ("cat web/deps/* > my.lock; echo more >> README.md", "it changed other files: README.md"),
        ("rm my.lock", "my.lock cannot be read"),
    ];
    for (command, why) in faults {
        let (env, ended) = locked(&format!("[regenerate]\n\"my.lock\" = \"{command}\"\n"), "my.lock", &[]);
        ended.exits(0).says(&["the conflict in my.lock was not settled by", why]);
        assert_eq!(starts(&env), 3, "as without the setting, the agent works again");
        assert_eq!(env.events("failure_noted")[0]["failure"]["kind"], "conflict");
        assert_eq!(env.file_at("main", "README.md"), "A project.");
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn conflict_in_another_file_too_runs_no_command() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "[regenerate]\n\"my.lock\" = \"touch \\\"$SCRATCH/ran\\\"\"\n");
    env.write("repo/my.lock", "base\n");
    env.commit("a lock file");
    let lane = |own: &str, other: &str| {
        format!(
            "[[lane]]\nid = \"{own}\"\nretries = 1\ncommand = 'echo {own} >> my.lock; echo {own} >> other; \
             touch \"$SCRATCH/{own}\"; wait-for {other}'\n"
        )
    };
    env.plan(&(lane("a", "b") + &lane("b", "a")));
    env.execute(&["--max-parallel", "2"]).exits(0);
    assert_eq!(env.events("failure_noted")[0]["failure"]["paths"].as_array().expect("paths").len(), 2);
    assert!(!env.path("scratch/ran").exists());
}

/// Another lane that adds a dependency, and one whose `command` changes the lock file at the same time.
fn conflicting(command: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "[regenerate]\n\"my.lock\" = \"cat deps/* > my.lock\"\n");
    env.write("repo/deps/base", "base 1\n");
    env.write("repo/my.lock", "base 1\n");
    env.commit("a lock file");
    let lane = |id: &str, depends: &str, command: &str| {
        format!("[[lane]]\nid = \"{id}\"\nretries = 0\n{depends}command = '''\n{command}\n'''\n")
    };
    let first = lane("A", "", "wait-for b; echo new 1 > deps/new; cat deps/* > my.lock");
    let second = lane(
        "B",
        "",
        &format!(
            "touch \"$SCRATCH/b\"; {command}; until git -C \"$SCRATCH/../repo\" cat-file -e main:deps/new; do sleep 0.05; done"
        ),
    );
    env.plan(&(first + &second));
    env
}

#[test]
fn what_a_lane_changed_in_the_lock_file_alone_is_a_conflict() {
    let env = conflicting("sed -i 's/base 1/base 2/' my.lock");
    env.execute(&["--max-parallel", "2"]).exits(1).says(&["conflicts"]);
    assert_eq!(env.file_at("main", "my.lock"), "base 1\nnew 1");
}

#[test]
fn removed_lock_file_does_not_come_back() {
    let env = conflicting("git rm -q my.lock; echo x > deps/x");
    env.execute(&["--max-parallel", "2"]).exits(1).says(&["conflicts"]);
}
