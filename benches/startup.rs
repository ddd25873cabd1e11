//! How long commands take that are called often: `cargo bench --bench startup [-- CALLS]`.
//!
//! The real binary is called in a repository with 10 runs, then with 1,000, three of which are unfinished; `git` beside it
//! is the yardstick of the machine as it is now. The time is that of the whole process, the commands take turns.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(missing_docs, reason = "a program")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const LANEWRIGHT: &str = env!("CARGO_BIN_EXE_lanewright");

/// What commands may take, and hooks.
const LIMITS: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(20)];

/// Its lane is merged unless its command leaves something else behind.
const PLAN: &str =
    "phase = \"P1\"\n[[lane]]\nid = \"A\"\ncommand = \"COMMAND\"\nretries = 0\ntests = [\"test ! -e other\"]\n";

const HOOKS: [&str; 4] = ["session-start", "user-prompt-submit", "post-tool-use", "stop"];

fn main() -> Result<()> {
    let calls = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(50);
    println!("{LANEWRIGHT}: {:.1} MB", fs::metadata(LANEWRIGHT)?.len() as f64 / 1e6);
    let scratch = tempfile::tempdir()?;
    let few = prepare(&scratch.path().join("few"), 10)?;
    let many = prepare(&scratch.path().join("many"), 1000)?;
    let command = |name: &str, words: &[&str], repository: &Path| Case::new(name, words, repository, Some(LIMITS[0]));
    let mut cases = vec![
        Case { program: "git", ..Case::new("git --version", &["--version"], &few, None) },
        Case { program: "git", ..Case::new("git status", &["status"], &few, None) },
        command("lanewright --version", &["--version"], &few),
        command("lanewright status, 10 runs", &["status"], &few),
        command("lanewright status, 1,000 runs", &["status"], &many),
    ];
    for (repository, runs) in [(&few, "10"), (&many, "1,000")] {
        let hook =
            |hook: &&str| Case::new(&format!("hook {hook}, {runs} runs"), &["hook", hook], repository, Some(LIMITS[1]));
        cases.extend(HOOKS.iter().map(hook));
    }
    for _ in 0..calls {
        cases.iter_mut().try_for_each(Case::call)?;
    }
    cases.iter_mut().for_each(Case::tell);
    Ok(())
}

/// A command, and how long each of its calls took.
struct Case {
    name: String,
    program: &'static str,
    words: Vec<String>,
    repository: PathBuf,
    limit: Option<Duration>,
    times: Vec<Duration>,
}

impl Case {
    fn new(name: &str, words: &[&str], repository: &Path, limit: Option<Duration>) -> Self {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Self {
            name: name.to_owned(),
            program: LANEWRIGHT,
            words,
            repository: repository.to_owned(),
            limit,
            times: Vec::new(),
        }
    }

    fn call(&mut self) -> Result<()> {
        let input =
            format!("{{\"session_id\":\"s\",\"cwd\":\"{}\",\"prompt\":\"continue\"}}", self.repository.display());
        let mut command = Command::new(self.program);
        command.current_dir(&self.repository).args(&self.words);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command.spawn()?;
        // What reads nothing may have ended already.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        child.wait()?;
        self.times.push(start.elapsed());
        Ok(())
    }

    fn tell(&mut self) {
        self.times.sort_unstable();
        let (median, slowest) = (self.times[self.times.len() / 2], self.times[self.times.len() - 1]);
        let verdict = if self.limit.is_some_and(|limit| median > limit) { "  over the limit" } else { "" };
        println!("{:<36} median {median:>9.2?}  slowest {slowest:>9.2?}{verdict}", self.name);
    }
}

/// Makes a repository with that many runs: real ones, and copies of the finished one.
fn prepare(repository: &Path, runs: usize) -> Result<PathBuf> {
    fs::create_dir_all(repository)?;
    let git = |arguments: &[&str]| Command::new("git").current_dir(repository).args(arguments).status();
    git(&["init", "--quiet"])?;
    git(&["config", "user.name", "x"])?;
    git(&["config", "user.email", "x@example.invalid"])?;
    git(&["commit", "--quiet", "--allow-empty", "-m", "first"])?;
    let plan = repository.join("plan.toml");
    for (run, command) in
        [("done", "touch go"), ("open-1", "touch other"), ("open-2", "touch other"), ("open-3", "touch other")]
    {
        fs::write(&plan, PLAN.replace("COMMAND", command))?;
        let words = ["execute-phase", "plan.toml", "--run-id", run, "--new-run", "--session-id", "s"];
        Command::new(LANEWRIGHT)
            .current_dir(repository)
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
    }
    let logs = repository.join(".claude/ai-dev-kit/run-logs");
    let text = fs::read(logs.join("done.jsonl"))?;
    (4..runs).try_for_each(|number| copy(&logs, number, &text))?;
    Ok(repository.to_owned())
}

/// A finished run of so many hours ago.
fn copy(logs: &Path, number: usize, text: &[u8]) -> std::io::Result<()> {
    let path = logs.join(format!("done-{number}.jsonl"));
    fs::write(&path, text)?;
    let hours = Duration::from_secs(3600 * number as u64);
    fs::File::options().write(true).open(path)?.set_modified(SystemTime::now() - hours)
}
