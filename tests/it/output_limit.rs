//! Outputs of more than `output_limit`: the disk keeps free, and what Lanewright reads of them stays right.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{RUN, STATE, TestEnv, all_files, wait_until};

const LIMIT: u64 = 1 << 20;

/// What the real program printed, with 20 MB of results of tools after its first line.
fn chatty_agent() -> String {
    let recorded = format!("{}/fixtures/streams/claude/write.log", env!("CARGO_MANIFEST_DIR"));
    let noise = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"noise"}]}}"#;
    format!(
        "#!/bin/sh\necho good > one.txt\nhead -n 1 '{recorded}'\nyes '{noise}' | head -n 250000\n\
         wait-for go\ntail -n +2 '{recorded}'\n"
    )
}

#[test]
fn middle_of_large_output_is_left_out_and_its_ends_are_read() {
    let env = TestEnv::new();
    env.program("claude", &chatty_agent());
    env.plan("[[lane]]\nid = \"ONE\"\nrunner = \"claude\"\n[[lane.task]]\nid = \"1\"\nprompt = \"Write one.txt\"\n");
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN];
    let run = env.start_with(&arguments, |command| {
        let settings = [("LANEWRIGHT_OUTPUT_LIMIT", "1MiB"), ("LANEWRIGHT_HEARTBEAT", "100ms")];
        command.env("ANTHROPIC_API_KEY", "k-for-tests").envs(settings)
    });
    let output = || -> Option<PathBuf> {
        all_files(&env.path(&format!("repo/{STATE}"))).into_iter().find(|file| file.ends_with("output.log"))
    };
    let size =
        || output().map(|file| file.metadata().expect("an output")).map(|file| (file.len(), file.blocks() * 512));
    wait_until("20 MB of noise", || size().is_some_and(|(length, _)| length > 20_000_000));
    wait_until("a gap", || size().is_some_and(|(_, disk)| disk <= 2 * LIMIT));
    let shown = env.lanewright(&["logs", RUN, "ONE", "--raw"]).exits(0).stdout;
    assert!(shown.len() < 2 * LIMIT as usize && shown.contains("left out here"), "{}", shown.len());
    env.write("scratch/go", "");
    run.wait().exits(0);

    let text = std::fs::read_to_string(output().expect("an output")).expect("text");
    assert!(text.len() as u64 <= LIMIT, "{}", text.len());
    assert!(text.starts_with("{\"type\":\"system\",\"subtype\":\"init\""), "{}", &text[..100]);
    assert_eq!(text.matches("bytes of the output were left out here (output_limit)]\n").count(), 1);
    assert!(text.lines().all(|line| line.starts_with(['[', '{']) && line.ends_with([']', '}'])), "lines are whole");
    let tail = env.lanewright(&["logs", RUN, "ONE", "--tail", "1"]).exits(0).stdout;
    assert!(tail.ends_with("\nThe file is written.\n"), "{tail}");
    let status = env.lanewright(&["status", RUN, "--format", "json"]).exits(0).stdout;
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let usage = json!({"tool_calls": 1, "input_tokens": 300, "output_tokens": 60, "cache_read_tokens": 120,
        "cache_write_tokens": 30, "cost_usd": 0.003248});
    assert_eq!(status["lanes"][0]["usage"], usage);
    let session = &env.events("job_exited")[0];
    assert!(session.to_string().contains("4d8b4655-f317-4d29-b663-d678b1613395"), "{session}");
}
