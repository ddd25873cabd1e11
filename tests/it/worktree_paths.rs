//! `path` and `open`: the worktree of a lane.

use std::fs;

use crate::support::TestEnv;

fn env() -> TestEnv {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\napproval = [\"changes\"]\n\
         [[lane.agent]]\nname = \"one\"\nround = \"implementation\"\ncommand = 'echo 1 > one.txt'\n\
         [[lane.agent]]\nname = \"two\"\nround = \"implementation\"\ncommand = 'echo 2 > two.txt'\n\
         [[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n\
         [[lane]]\nid = \"N\"\ndepends_on = [\"L\"]\ncommand = 'echo n > n.txt'\n",
    );
    env.execute(&[]).exits(3);
    env
}

#[test]
fn a_worktree_is_named_after_its_lane() {
    let env = env();
    let printed = |words: &[&str]| env.lanewright(&[&["path"], words].concat()).exits(0).stdout;
    assert_eq!(printed(&["L"]), format!("{}\n", env.path("repo.lanes/r1/L/code").display()));
    assert_eq!(printed(&["r1", "L"]), printed(&["L"]));
    let files: Vec<bool> =
        ["one.txt", "two.txt"].iter().map(|file| env.path("repo.lanes/r1/L/code").join(file).exists()).collect();
    assert_eq!(files, [true, true]);
    let json = env.lanewright(&["path", "L", "--format", "json"]).exits(0).json();
    assert_eq!(json["path"], env.path("repo.lanes/r1/L/code").to_str().expect("UTF-8"));
}

#[test]
fn a_lane_without_a_worktree_says_so() {
    let env = env();
    for lane in ["M", "N"] {
        env.lanewright(&["path", lane]).exits(8).says(&["has no worktree now"]).hints("lanewright status r1");
        env.lanewright(&["open", lane, "--with", "true"]).exits(8);
    }
    env.lanewright(&["path", "O"]).exits(8).hints("did you mean");
}

#[test]
fn open_uses_editor_of_user_or_given_command() {
    let env = env();
    env.program("editor", "#!/bin/sh\nprintf '%s|' \"$@\" > \"$SCRATCH/edited\"; pwd -P >> \"$SCRATCH/edited\"\n");
    let slot = fs::canonicalize(env.path("repo.lanes/r1/L/code")).expect("a worktree");
    env.lanewright_in(&["open", "L"], &[("EDITOR", "editor --wait"), ("VISUAL", "")]).exits(0);
    assert_eq!(env.scratch("edited"), format!("--wait|.|{}\n", slot.display()));
    env.lanewright(&["open", "L", "--with", "ls *.txt > \"$SCRATCH/listed\""]).exits(0);
    assert_eq!(env.scratch("listed"), "one.txt\ntwo.txt\n");
    env.lanewright(&["open", "L"]).exits(2).says(&["neither VISUAL nor EDITOR"]).hints("--with");
    env.lanewright(&["open", "L", "--with", "exit 3"]).exits(1).says(&["`exit 3` ended with"]);
}
