//! `demo`: a real run in a scratch repository, with failures that are fixed, a kill and a resume.
//!
//! Nothing is simulated: this same program is started as a user starts it, its progress goes to standard error, and the
//! claims about it are checked on disk and in git. If one is wrong, the demo ends with exit code 1.

mod scratch;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use lanewright_model::Progress;
use lanewright_model::text::shell_line;
use lanewright_programs::process;
use scratch::{RUN, Scratch};
use serde_json::json;

use super::args::{self, Format};
use super::signals::Signals;
use super::{CliError, Context, ExitStatus, Hint, Printer};
use crate::progress::{Block, choose};

/// The attempts at work when Lanewright is killed; the beginnings of the lines that they write when they start. The first
/// one ends while no Lanewright runs.
const AT_WORK: [(&str, &str); 3] = [("SEARCH", "SEARCH indexer 1"), ("API", "API engineer 2"), ("DOCS", "DOCS ")];

/// One attempt for each of six agents, one more after the failed test, one more after the conflict.
const ATTEMPTS: usize = 8;

/// A file of each lane on main in the end, with words that it holds.
const RESULTS: [(&str, &str); 5] = [
    ("schema/orders.sql", "CREATE TABLE orders"),
    ("api/health.txt", "200 OK"),
    ("docs/guide.md", "The chapter of the editor."),
    ("search/index.txt", "orders"),
    ("site/index.txt", "The chapter of the writer."),
];

/// How long a step may take. Generous, for machines that are busy with other things.
const LONGEST_STEP: Duration = Duration::from_secs(120);

pub(super) fn run(context: &Context, arguments: &args::Demo) -> Result<ExitStatus> {
    let signals = Signals::watch()?;
    let mut scratch = Scratch::make(&context.directory, arguments)?;
    let demo = Demo { printer: context.printer, signals, scratch: &scratch };
    let Err(error) = demo.play() else { return Ok(ExitStatus::Done) };
    let error = CliError::from(error);
    let signalled = [ExitStatus::HungUp, ExitStatus::Interrupted, ExitStatus::Terminated];
    if signalled.contains(&error.status) || error.status == ExitStatus::Done {
        return Err(error.into());
    }
    scratch.keep();
    let message = format!("the demo failed: {}", error.message);
    Err(ExitStatus::Failed.error(message).hint(format!("everything is kept in {}", scratch.directory().display())))
}

struct Demo<'a> {
    printer: Printer,
    /// They end the demo only after it has cleaned up.
    signals: Signals,
    scratch: &'a Scratch,
}

impl Demo<'_> {
    fn play(&self) -> Result<()> {
        let scratch = self.scratch;
        self.step("scratch", &format!("a git repository in {}", scratch.repository().display()))?;
        self.step("plan", "5 lanes, 6 agents (shell scripts); a test fails at first, and two agents conflict")?;
        self.pause()?;
        self.run_until_killed()?;
        self.pause()?;
        scratch.release(AT_WORK[0].0)?;
        self.wait("an agent ends while no Lanewright runs", || scratch.has_ended("SEARCH"))?;
        self.step("unseen", "SEARCH indexer: finished while no Lanewright ran; its exit code waits on disk")?;
        self.pause()?;
        AT_WORK[1..].iter().try_for_each(|(lane, _)| scratch.release(lane))?;
        let mut resumed = self.start("resume", &["resume"])?;
        self.wait("the resumed run ends", || Ok(resumed.0.try_wait()?.is_some()))?;
        let status = resumed.0.wait()?;
        ensure!(status.success(), "the resume ended with {status}");
        self.check()?;
        self.show("graph", &["git", "log", "--graph", "--oneline", "main"])?;
        self.show("status", &["lanewright", "status", RUN])?;
        if let Some(report) = scratch.report()? {
            self.step("report", &report.display().to_string())?;
        }
        for (what, path) in scratch.places().into_iter().filter(|_| scratch.is_kept()) {
            self.step("look at", &format!("{what}: {}", path.display()))?;
        }
        let end = if scratch.is_kept() { "" } else { "; the scratch repository is removed (--keep leaves it)" };
        self.step("done", &format!("every claim was checked{end}"))
    }

    /// Starts the run, and kills it when agents of three lanes are at work: two of them to fix what failed.
    fn run_until_killed(&self) -> Result<()> {
        let mut started =
            self.start("start", &["execute-phase", "plan.toml", "--run-id", RUN, "--max-parallel", "4"])?;
        self.wait("agents of three lanes are at work", || {
            if let Some(status) = started.0.try_wait()? {
                bail!("the run ended with {status} before agents of three lanes were at work");
            }
            let starts = self.scratch.starts()?;
            let is_at_work = |beginning: &str| {
                starts.iter().any(|line| line.starts_with(beginning) && !(beginning == "DOCS " && line.ends_with(" 1")))
            };
            Ok(AT_WORK.iter().all(|(_, beginning)| is_at_work(beginning)))
        })?;
        self.pause()?;
        started.0.kill()?;
        started.0.wait()?;
        if self.is_live() {
            // What was drawn last stays on the terminal after a kill.
            Block::new(io::stderr()).clear()?;
        }
        let lanes = AT_WORK.map(|(lane, _)| lane).join(", ");
        self.step("kill -9", &format!("process {} is dead; the agents of {lanes} work on", started.0.id()))
    }

    fn check(&self) -> Result<()> {
        let starts = self.scratch.starts()?;
        let unique: BTreeSet<&String> = starts.iter().collect();
        ensure!((starts.len(), unique.len()) == (ATTEMPTS, ATTEMPTS), "agents were started as {starts:?}");
        self.step("checked", &format!("nothing ran twice: {ATTEMPTS} attempts, {ATTEMPTS} starts in starts.log"))?;
        for (path, words) in RESULTS {
            let text = self.scratch.output("git", &["show", &format!("main:{path}")])?;
            ensure!(text.contains(words), "{path} on main lacks `{words}`");
        }
        let dirty = self.scratch.output("git", &["status", "--porcelain"])?;
        ensure!(dirty.is_empty(), "the worktree of main is not clean:\n{dirty}");
        let worktrees = self.scratch.output("git", &["worktree", "list"])?;
        ensure!(worktrees.lines().count() == 1, "worktrees are left:\n{worktrees}");
        self.step("checked", "main holds the work of all agents, and no worktree is left")
    }

    /// This same program as a child. Its progress is shown to people; programs get the steps only.
    fn start(&self, step: &str, arguments: &[&str]) -> Result<Running> {
        let mut command = self.scratch.command(process::current_program()?);
        command.arg0("lanewright").args(arguments).args(["--progress", self.progress().word()]);
        // A group of its own: Ctrl-C at the terminal is for the demo, which then ends what it has started.
        command.process_group(0).stdout(Stdio::null());
        if self.printer.format() == Format::Json {
            command.stderr(Stdio::null());
        }
        self.step(step, &shell_line([&["lanewright"], arguments].concat()))?;
        Ok(Running(command.spawn().context("cannot start this program again")?))
    }

    /// As a user sees it, except where it ends before it can be seen.
    fn progress(&self) -> Progress {
        if self.scratch.pause.is_zero() { Progress::Plain } else { Progress::Auto }
    }

    fn is_live(&self) -> bool {
        let term = std::env::var("TERM").ok();
        let shown = choose(self.progress(), io::stderr().is_terminal(), term.as_deref());
        self.printer.format() == Format::Text && shown == Progress::Live
    }

    /// Leaves time to read.
    fn pause(&self) -> Result<()> {
        let begun = Instant::now();
        self.wait("there was time to read", || Ok(begun.elapsed() >= self.scratch.pause))
    }

    fn wait(&self, what: &str, mut reached: impl FnMut() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + LONGEST_STEP;
        while !reached()? {
            if let Some((status, _)) = self.signals.received() {
                return Err(status.error("the demo was interrupted; what it had started is stopped"));
            }
            ensure!(Instant::now() < deadline, "it took more than {} s until {what}", LONGEST_STEP.as_secs());
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn step(&self, step: &str, text: &str) -> Result<()> {
        match self.printer.format() {
            Format::Text => self.printer.out(format_args!("{step:9} {text}\n")),
            Format::Json => self.printer.out(format_args!("{}\n", json!({"step": step, "text": text}))),
        }
    }

    /// A step that is a command with its output.
    fn show(&self, step: &str, words: &[&str]) -> Result<()> {
        let lanewright = process::current_program()?;
        let program = if words[0] == "git" { words[0].as_ref() } else { lanewright.as_os_str() };
        let output = self.scratch.output(program, &words[1..])?;
        self.step(step, &shell_line(words.iter().copied()))?;
        match self.printer.format() {
            Format::Text => {
                let lines: String = output.trim_end().lines().map(|line| format!("  {line}\n")).collect();
                self.printer.out(format_args!("\n{lines}\n"))
            }
            Format::Json => output.lines().try_for_each(|line| self.step(step, line)),
        }
    }
}

/// A child that is killed with the demo.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
