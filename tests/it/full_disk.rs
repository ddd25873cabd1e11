//! A disk that is full in the middle of a publication. A limit on the size of files stands for it, which every user can
//! set: what is written ends after so many bytes, at any place of the checkout.

use std::process::Command;

use crate::support::{Ended, TestEnv};

/// Sizes, in KiB, at which a file of 300 KiB is cut short.
const MOMENTS: [u32; 6] = [68, 100, 131, 200, 256, 299];

/// A resume in which no file may become larger than `limit` KiB.
fn resume_on_full_disk(env: &TestEnv, limit: u32) -> Ended {
    let mut command = Command::new("sh");
    // The shell counts blocks of 512 bytes. Writers are refused, as by a full disk, and not killed.
    let line = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" resume r1", limit * 2);
    env.pin(&mut command).args(["-c", &line, env!("CARGO_BIN_EXE_lanewright")]);
    let output = command.output().expect("sh");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code().unwrap_or(128), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// A run that died just before `point`, whose lane adds a file of 300 KiB and changes another one.
fn dead_before(point: &str, plan: &str, attributes: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/.gitattributes", attributes);
    env.write("repo/grows.bin", "small\n");
    env.git(&["config", "filter.same.clean", "cat"]);
    env.git(&["config", "filter.same.smudge", "cat"]);
    env.commit("more");
    env.program("big", "#!/bin/sh\nhead -c 307200 /dev/zero | tr '\\0' \"$1\"\n");
    env.plan(plan);
    let plan = env.path("plan.toml");
    let run = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    env.lanewright_with(&run, |command| command.env("LANEWRIGHT_CRASH_POINT", format!("before_{point}:1"))).exits(137);
    env
}

#[track_caller]
fn assert_whole(env: &TestEnv) {
    env.resume(&[]).exits(0);
    assert_eq!(env.read("repo/big.bin"), "b".repeat(307_200));
    assert_eq!(env.read("repo/grows.bin"), "g".repeat(307_200));
    assert_eq!(env.read("repo/small.txt"), "small\n");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(env.git(&["show", "--no-patch", "--format=%P", "main"]).split(' ').count(), 2);
    env.assert_nothing_left(&["main"]);
}

const LANE: &str = "[[lane]]\nid = \"A\"\ncommand = 'big b > big.bin; big g > grows.bin; echo small > small.txt'\n";

/// Files are written by Lanewright itself, or by git where a filter is set.
#[test]
fn full_disk_at_publication_is_finished_by_resume() {
    for attributes in ["", "*.bin filter=same\n"] {
        for limit in MOMENTS {
            let env = dead_before("publish_merge", LANE, attributes);
            let ended = resume_on_full_disk(&env, limit);
            assert_eq!(ended.code, 3, "{limit} KiB, `{attributes}`: {}", ended.stderr);
            assert_whole(&env);
        }
    }
}

#[test]
fn full_disk_at_publication_keeps_a_similar_user_file() {
    let env = dead_before("publish_merge", LANE, "*.bin filter=same\n");
    assert_eq!(resume_on_full_disk(&env, 100).code, 3);
    let theirs = format!("{}mine", "b".repeat(1000));
    env.write("repo/big.bin", &theirs);
    env.resume(&[]).exits(3);
    assert_eq!(env.read("repo/big.bin"), theirs);
    std::fs::remove_file(env.path("repo/big.bin")).expect("the user's file");
    assert_whole(&env);
}

#[test]
fn full_disk_at_lane_merge_is_no_user_change() {
    let plan = "[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\n\
        [[lane.agent]]\nname = \"one\"\ncommand = 'big b > big.bin; echo small > small.txt'\n\
        [[lane.agent]]\nname = \"two\"\ncommand = 'big g > grows.bin'\n";
    for attributes in ["", "*.bin filter=same\n"] {
        for limit in [100, 256] {
            let env = dead_before("merge_agent", plan, attributes);
            let ended = resume_on_full_disk(&env, limit);
            assert_eq!(ended.code, 3, "{limit} KiB, `{attributes}`: {}", ended.stderr);
            assert_whole(&env);
        }
    }
}
