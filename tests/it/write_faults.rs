//! Files of the user's repository, of git and of the pool whose writing is refused, with each error that a disk may have.

use std::fs;
use std::path::PathBuf;

use lanewright_files::fault::WRITE_FAULT_VARIABLE;

use crate::support::{TestEnv, all_files};

/// An error's name, and what the system says for it.
const FAULTS: [(&str, &str); 3] =
    [("ENOSPC", "No space left on device"), ("EIO", "Input/output error"), ("EACCES", "Permission denied")];

const SETTINGS: &str = "repo/.claude/settings.json";

/// The files of the checkout with what they hold.
fn checkout(env: &TestEnv) -> Vec<(PathBuf, Vec<u8>)> {
    let root = env.path("repo");
    let files = all_files(&root).into_iter().filter(|path| !path.starts_with(root.join(".git")));
    files.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

/// Whether an `init` in which the write `fault` fails is refused; nothing is changed then, and the next one succeeds.
fn init_is_refused(fault: &str, words: &str) -> bool {
    let env = TestEnv::new();
    env.write(SETTINGS, "{\n  \"model\": \"x\"\n}\n");
    let before = checkout(&env);
    let ended = env.lanewright_with(&["init", "--yes"], |command| command.env(WRITE_FAULT_VARIABLE, fault));
    let refused = ended.code != 0;
    if refused {
        ended.says(&["cannot ", words]).hints("nothing was written").exits(3);
        assert_eq!(checkout(&env), before, "{fault}");
        assert!(!env.path("repo/.claude/commands").exists(), "{fault}: an empty directory is left");
        env.lanewright(&["init", "--yes"]).exits(0);
    }
    assert!(env.read(SETTINGS).contains("\"model\": \"x\"") && env.read(SETTINGS).contains("hooks"), "{fault}");
    assert_eq!(checkout(&env).len(), before.len() + 4, "{fault}");
    refused
}

#[test]
fn init_survives_a_failure_of_any_write() {
    for (name, words) in FAULTS {
        let refused = (1..).take_while(|number| init_is_refused(&format!("{name}:{number}"), words)).count();
        // A directory, and of five files and an old one: the file, its text, a sync, but for the old one its place.
        assert_eq!(refused, 1 + 6 * 3 + 5, "{name}");
    }
}

/// Runs a lane in which the N-th write of files with `part` in their path, and every later one, is refused.
#[track_caller]
fn assert_refused_and_done_later(part: &str, number: usize) {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    let (name, words) = FAULTS[number % FAULTS.len()];
    let fault = format!("{name}:{number}:{part}");
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1"];
    let ended = env.lanewright_with(&arguments, |command| command.env(WRITE_FAULT_VARIABLE, &fault));
    assert_eq!(ended.code, 3, "{fault}: {}", ended.stderr);
    ended.says(&["cannot ", part, words]);
    assert!(temporary(&env).is_empty(), "{fault}: {:?}", temporary(&env));
    let resumed = env.resume(&[]);
    if resumed.code == NO_RUN {
        env.execute(&[]).exits(0)
    } else {
        resumed.exits(0)
    };
    assert!(env.holds("main", "a.txt"), "{fault}");
    env.assert_nothing_left(&["main"]);
}

/// The exit code where no run was begun.
const NO_RUN: i32 = 8;

/// Files that are half written, or not yet in their place.
fn temporary(env: &TestEnv) -> Vec<PathBuf> {
    let is_temporary = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".unfinished-") || name.ends_with(".tmp")
    };
    all_files(&env.path("")).into_iter().filter(is_temporary).collect()
}

/// The file itself, its text, its place; then those of the claim that follows it.
#[test]
fn unwritable_claim_blocks_the_lane_until_a_resume() {
    (1..=5).for_each(|number| assert_refused_and_done_later("/slots/01.claim", number));
}

#[test]
fn unwritable_pool_blocks_the_lane_until_a_resume() {
    ["/slots", "/A/code"].iter().for_each(|part| assert_refused_and_done_later(part, 1));
}

#[test]
fn unwritable_state_stops_the_run_until_a_resume() {
    (1..=5).for_each(|number| assert_refused_and_done_later(".git/info/exclude", number));
    (1..=3).for_each(|number| assert_refused_and_done_later(".git/lanewright/published.json", number));
    for part in [".git/lanewright", ".git/lanewright/pool.guard", ".git/worktrees/01/lanewright.lock", ".git/objects"] {
        assert_refused_and_done_later(part, 1);
    }
}

#[test]
fn unwritable_job_files_stop_the_run_until_a_resume() {
    (1..=3).for_each(|number| assert_refused_and_done_later("/spec.json", number));
}
