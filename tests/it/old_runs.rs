//! Runs that an earlier version left, with the files that it wrote.

use std::path::Path;
use std::process::{Command, Stdio};

use lanewright_model::CheckpointStatus::{self, Blocked, Complete, Failed};

use crate::run_states::assert_same;
use crate::support::{CHECKPOINTS, STATE, TestEnv};

/// The CRC-32 of a line, as the log has it.
fn checksum(line: &str) -> u32 {
    let table = |byte: u32| (0..8).fold(byte, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 });
    !line.bytes().fold(!0_u32, |crc, byte| (crc >> 8) ^ table((crc ^ u32::from(byte)) & 0xFF))
}

/// The repository, the plan and the state of the run in `fixtures/journals/run-0.1`.
fn old_run() -> TestEnv {
    let env = TestEnv::without_repository();
    let root = env.path("repo").parent().expect("a directory").to_str().expect("UTF-8").to_owned();
    let fixture = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/journals/run-0.1").join(name);
    let text = |name: &str| std::fs::read_to_string(fixture(name)).expect(name).replace("@ROOT@", &root);
    env.git(&["init", "--quiet"]);
    let commits = std::fs::File::open(fixture("repository.txt")).expect("the commits");
    let mut import = Command::new("git");
    let import = env.pin(&mut import).args(["fast-import", "--quiet"]).stdin(Stdio::from(commits));
    assert!(import.status().expect("git").success());
    env.git(&["reset", "--quiet", "--hard", "main"]);
    let lines = text("r1.jsonl");
    let lines = lines.lines().map(|line| line.strip_suffix('}').expect("an object"));
    let log: String = lines.map(|line| format!("{line},\"crc\":\"{:08x}\"}}\n", checksum(line))).collect();
    env.write(&format!("repo/{STATE}/r1.jsonl"), log);
    env.write(&format!("repo/{STATE}/r1/plan.json"), text("plan.json"));
    env.write(&format!("repo/{CHECKPOINTS}"), text("checkpoints.json"));
    env.write("plan.toml", text("plan.toml"));
    env
}

#[test]
fn resume_of_a_run_of_0_1_makes_its_records_true() {
    let env = old_run();
    let before = env.read(&format!("repo/{CHECKPOINTS}"));
    let foreign: Vec<&str> =
        before.lines().filter(|line| line.contains("z9")).map(|it| it.trim_matches([' ', ','])).collect();
    assert!(before.contains("retrying") && !before.contains("\"lane\":\"-\"") && foreign.len() == 2);

    // B fails first: the file says so, and A is not retried any more.
    env.resume(&[]).exits(1);
    let read = assert_same(&env);
    let statuses: Vec<CheckpointStatus> = read.iter().map(|(_, status, _)| *status).collect();
    assert_eq!(statuses, [Failed, Complete, Failed, Blocked], "{read:?}");
    assert_eq!(env.checkpoint("A", "retry_attempt")["status"], "complete");

    env.write("scratch/fixed", "");
    env.resume(&[]).exits(0);
    let read = assert_same(&env);
    assert!(read.len() == 4 && read.iter().all(|(_, status, _)| *status == Complete), "{read:?}");
    let after = env.read(&format!("repo/{CHECKPOINTS}"));
    for record in foreign {
        assert!(after.contains(record), "{record}\nis not in\n{after}");
    }
    assert!(["a.txt", "b.txt", "c.txt"].iter().all(|file| env.holds("main", file)));
}
