//! `plan new`: a plan to start from.

use std::process::Command;

use crate::support::{Terminal, TestEnv};

/// Writes the prompts of the starter `file`.
fn write_prompts(env: &TestEnv, file: &str) {
    let starter = env.read(&format!("repo/{file}"));
    assert!(starter.contains("Describe here what"), "{starter}");
    env.write(&format!("repo/{file}"), starter.replace("Describe here what", "Do what"));
}

#[test]
fn the_plan_is_valid_and_says_what_the_flags_say() {
    let env = TestEnv::new();
    let lanes = ["--lane", "Ledger schema", "--lane", "SL-API", "--phase", "P7"];
    let flags = ["--runner", "codex", "--test", "make \"test\""];
    env.lanewright(&[&["plan", "new", "new.toml"], lanes.as_slice(), &flags].concat()).exits(0);
    write_prompts(&env, "new.toml");
    let shown = env.lanewright(&["plan", "show", "new.toml", "--format", "json"]).exits(0).json();
    assert_eq!(shown["phase"], "P7");
    let ids: Vec<_> = shown["lanes"].as_array().expect("lanes").iter().map(|it| it["lane"]["id"].clone()).collect();
    assert_eq!(ids, ["ledger-schema", "SL-API"]);
    let lane = &shown["lanes"][0]["lane"];
    assert_eq!((&lane["name"], &lane["tests"][0]), (&"Ledger schema".into(), &"make \"test\"".into()));
    assert_eq!(lane["agents"][0]["runner"], "codex");
    // What is commented out is right, too.
    let all = env.read("repo/new.toml").replace("# depends_on", "depends_on").replace("# [gates]", "[gates]");
    let all =
        all.replace("# final", "final").replace("# merge", "merge").replace("# max_", "max_").replace("# owns", "owns");
    env.write("repo/all.toml", all.replace("# approval", "approval"));
    env.lanewright(&["plan", "check", "all.toml"]).exits(0);
    let own = env.read("repo/new.toml").replace("runner = ", "# runner = ").replace("# command", "command");
    env.write("repo/own.toml", own);
    let own = env.lanewright(&["plan", "show", "own.toml", "--format", "json"]).exits(0).stdout;
    assert!(own.contains("my-agent --prompt-file"), "{own}");
}

#[test]
fn plan_new_without_terminal_overwrites_only_by_force() {
    let env = TestEnv::new();
    let told = env.lanewright(&["plan", "new"]).exits(0);
    assert!(told.stdout.contains("lanewright run plan.toml"), "{}", told.stdout);
    write_prompts(&env, "plan.toml");
    env.lanewright(&["plan", "check", "plan.toml"]).exits(0);
    let before = env.read("repo/plan.toml");
    env.lanewright(&["plan", "new", "--phase", "P2"]).exits(2).says(&["exists already"]).hints("--force");
    assert_eq!(env.read("repo/plan.toml"), before);
    env.lanewright(&["plan", "new", "--phase", "P2", "--force"]).exits(0);
    assert!(env.read("repo/plan.toml").contains("phase = \"P2\""));
}

#[test]
fn no_agent_starts_with_the_prompt_of_the_starter() {
    let env = TestEnv::new();
    env.lanewright(&["plan", "new", "new.toml", "--lane", "A", "--runner", "codex"]).exits(0);
    for arguments in [["plan", "check", "new.toml"].as_slice(), &["run", "new.toml"]] {
        let refused = env.lanewright(arguments).exits(2).says(&["the prompt that `lanewright plan new` wrote"]);
        assert!(refused.stderr.contains("new.toml:"), "{}", refused.stderr);
    }
    let prompt = env.read("repo/new.toml").lines().last().expect("a prompt").replace("prompt = ", "");
    env.write("repo/work.txt", prompt.trim_matches('"'));
    env.write(
        "repo/file.toml",
        "phase = \"P1\"\n[[lane]]\nid = \"A\"\nrunner = \"codex\"\nprompt_file = \"work.txt\"\n",
    );
    env.lanewright(&["plan", "check", "file.toml"]).exits(2).says(&["the prompt that `lanewright plan new` wrote"]);
}

#[test]
fn an_empty_prompt_is_refused_with_its_place() {
    let env = TestEnv::new();
    env.write("repo/work.txt", " \n");
    for key in ["prompt = \"\"", "prompt = \" \"", "prompt_file = \"work.txt\""] {
        env.write("repo/a.toml", format!("phase = \"P1\"\n[[lane]]\nid = \"A\"\nrunner = \"codex\"\n{key}\n"));
        env.lanewright(&["plan", "check", "a.toml"]).exits(2).says(&["the prompt is empty", "a.toml:5"]);
    }
}

#[test]
fn lanes_option_takes_commas_and_warns_of_case() {
    let env = TestEnv::new();
    env.lanewright(&["plan", "new", "a.toml", "--lane", "add,sub, read me,", "--lane", "b"]).exits(0);
    let ids = |file: &str| {
        let text = env.read(file);
        text.lines().filter(|line| line.starts_with("id = ")).map(|line| line[5..].replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(ids("repo/a.toml"), ["add", "sub", "read-me", "b"]);
    let told = env.lanewright(&["plan", "new", "b.toml", "--lane", "a,A"]).exits(0);
    assert!(told.stderr.contains("`a` and `A` differ by case only"), "{}", told.stderr);
    assert_eq!(ids("repo/b.toml"), ["a", "A"]);
}

#[test]
fn plan_new_outside_repository_writes_with_warning() {
    let env = TestEnv::new();
    let told = env.lanewright(&["plan", "new"]).exits(0);
    assert_eq!(told.stderr, "");
    std::fs::create_dir(env.path("scratch/none")).expect("a directory");
    let place = env.path("scratch/none");
    let told = env.lanewright_with(&["plan", "new"], |command| command.current_dir(&place)).exits(0);
    assert!(
        told.stderr.contains("warning: ") && told.stderr.contains("not inside a git repository"),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains("git init") && env.path("scratch/none/plan.toml").exists(), "{}", told.stderr);
}

#[test]
fn invalid_input_is_refused_and_writes_no_plan() {
    let env = TestEnv::new();
    env.lanewright(&["plan", "new", "--lane", "a b", "--lane", "A-B"]).exits(0);
    env.lanewright(&["plan", "new", "x.toml", "--lane", "a b", "--lane", "a  b"]).exits(2).says(&["the id `a-b`"]);
    env.lanewright(&["plan", "new", "x.toml", "--lane", "?"]).exits(2).says(&["no id"]);
    env.lanewright(&["plan", "new", "x.toml", "--lane", ""]).exits(2).says(&["no id"]);
    env.lanewright(&["plan", "new", "x.toml", "--runner", "claud"]).exits(2).says(&["there is no runner `claud`"]);
    let unbalanced = env.lanewright(&["plan", "new", "x.toml", "--test", "echo \""]).exits(2).stderr;
    assert!(unbalanced.contains("error: the shell refuses the gate") && !unbalanced.contains(".toml"), "{unbalanced}");
    assert!(!env.path("repo/x.toml").exists());
}

#[test]
fn plan_new_refuses_unusable_path_with_hint() {
    let env = TestEnv::new();
    let new = |file: &str| env.lanewright(&["plan", "new", file, "--force"]).exits(2);
    new("p.json").says(&["p.json would be a plan in TOML"]).hints("name it p.toml");
    new("a/b/p.toml").says(&["there is no directory"]).hints("mkdir -p");
    std::os::unix::fs::symlink("nowhere", env.path("repo/link.toml")).expect("a link");
    new("link.toml").says(&["link.toml is a symbolic link to a file that does not exist"]).hints("remove the link");
    assert!(env.path("repo/link.toml").is_symlink());
    std::fs::create_dir(env.path("repo/plans")).expect("a directory");
    new("plans").says(&["plans is a directory"]).hints("plans/plan.toml");
}

/// `plan new` on a terminal.
fn on_a_terminal(env: &TestEnv) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command).args(["plan", "new"]);
    Terminal::asking(command)
}

#[test]
fn a_wrong_answer_is_asked_for_again() {
    let env = TestEnv::new();
    let mut terminal = on_a_terminal(&env);
    for (question, answer) in [
        ("Id of the phase [P1]: ", "../x"),
        ("Try again.\nId of the phase [P1]:", "P7"),
        ("Name of a lane:", "?"),
        ("no id can be made of the lane's name `?`. Try again.\nName of a lane:", "Ledger schema"),
        ("Another lane, or nothing:", "Ledger  schema"),
        ("two lanes would have the id `ledger-schema`. Try again.\nAnother lane, or nothing:", ""),
        ("Runner of the agents [claude]:", "claud"),
        ("there is no runner `claud`. Try again.\nRunner of the agents [claude]:", ""),
        ("Command that must pass before a lane is merged, or nothing:", "echo \""),
        ("Try again.\nCommand that must pass before a lane is merged, or nothing:", "make test"),
    ] {
        terminal.wait_for(question.trim_end());
        terminal.enter(answer);
    }
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
    let plan = env.read("repo/plan.toml");
    for line in ["phase = \"P7\"", "id = \"ledger-schema\"", "runner = \"claude\"", "tests = [\"make test\"]"] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    assert_eq!(plan.matches("[[lane]]").count(), 1);
}

#[test]
fn without_an_answer_nothing_is_written() {
    let env = TestEnv::new();
    let mut terminal = on_a_terminal(&env);
    terminal.wait_for("Id of the phase");
    terminal.enter("P7\n\u{4}");
    assert_eq!(terminal.end(), Some(2), "{}", terminal.text());
    assert!(!env.path("repo/plan.toml").exists());
}
