//! How long hooks take: `cargo bench --bench hooks`.
//!
//! The real binary is called in a repository with three unfinished runs and as many finished ones as a hook looks at; the
//! time is that of the whole process.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(missing_docs, reason = "a program")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a hook may take.
const LIMIT: Duration = Duration::from_millis(50);

/// How often each is called.
const CALLS: usize = 50;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let repository = scratch.path().join("repo");
    prepare(&repository)?;
    for event in ["session-start", "user-prompt-submit", "post-tool-use", "stop"] {
        let mut times = (0..CALLS).map(|_| time(&repository, event)).collect::<Result<Vec<_>>>()?;
        times.sort_unstable();
        let (median, slowest) = (times[CALLS / 2], times[CALLS - 1]);
        let verdict = if slowest > LIMIT { "  over the limit" } else { "" };
        println!("{event:<20} median {median:>9.2?}  slowest {slowest:>9.2?}{verdict}");
    }
    Ok(())
}

/// Makes a repository whose runs are those of a real one, many times over.
fn prepare(repository: &Path) -> Result<()> {
    fs::create_dir_all(repository)?;
    let git = |arguments: &[&str]| Command::new("git").current_dir(repository).args(arguments).status();
    git(&["init", "--quiet"])?;
    git(&[
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.invalid",
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "first",
    ])?;
    let plan = repository.join("plan.toml");
    for (run, go) in [("done", true), ("open-1", false), ("open-2", false), ("open-3", false)] {
        let command = if go { "touch go" } else { "touch other" };
        fs::write(&plan, PLAN.replace("COMMAND", command))?;
        lanekeeper(repository, &["execute-phase", "plan.toml", "--run-id", run, "--new-run", "--session-id", "s"])?
            .status()?;
    }
    let logs = repository.join(".claude/ai-dev-kit/run-logs");
    let text = fs::read_to_string(logs.join("done.jsonl"))?;
    (0..96).try_for_each(|number| fs::write(logs.join(format!("done-{number}.jsonl")), &text))?;
    Ok(())
}

/// Its lane is merged unless its command leaves something else behind.
const PLAN: &str =
    "phase = \"P1\"\n[[lane]]\nid = \"A\"\ncommand = \"COMMAND\"\nretries = 0\ntests = [\"test ! -e other\"]\n";

fn time(repository: &Path, event: &str) -> Result<Duration> {
    let input = format!("{{\"session_id\":\"s\",\"cwd\":\"{}\",\"prompt\":\"continue\"}}", repository.display());
    let start = Instant::now();
    let mut hook = lanekeeper(repository, &["hook", event])?.stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = hook.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    hook.wait()?;
    Ok(start.elapsed())
}

fn lanekeeper(repository: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    command.current_dir(repository).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}
