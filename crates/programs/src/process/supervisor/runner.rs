//! Runs the steps of a job and ends what they leave behind.

use std::fs::File;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lanewright_agents::shell::{Shell, gate_arguments, shell_of};
use lanewright_files::awake::{AwakeClock, TICK};
use lanewright_files::regular_file::{Links, open_with};
use lanewright_model::text::counted;
use lanewright_model::time::exact;
use lanewright_model::{CommandLine, ExitCause, JobExit, JobSpec, OnOrphan, ProcessId, Wall, WallBuilder};
use rustix::fd::OwnedFd;
use rustix::process::{Signal as SystemSignal, WaitOptions, WaitStatus};

use super::complain;
use super::signals::Signals;
use super::status::StatusFile;
use super::termination::{Signal, StopRequest, Termination};
use crate::process::LiveProcess;
use crate::process::files::{Heartbeat, JobFiles, Marker, TOKEN_VARIABLE, now};
use crate::process::gap::Limiter;
use crate::process::launch::LAUNCHER_VARIABLE;
use crate::process::{output_log, platform, tail, tree};
use crate::wall::{self, Scratch};

/// How long a tree is killed again and again before its survivors are left to the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(60);

/// The exit code of a step that SIGTERM ended.
const TERMINATED: i32 = 143;

/// How long after a step has ended a request to stop still belongs to its end: an engine that ends a job signals its
/// processes one after the other. After SIGTERM it is to be expected; a program that handles it may exit with any code, and
/// few of those that fail were asked to.
fn same_stop(code: i32) -> Duration {
    match code {
        0 => Duration::ZERO,
        TERMINATED => Duration::from_secs(3),
        _ => Duration::from_millis(200),
    }
}

/// The longest time between two looks at the clock.
const LONGEST_TICK: Duration = Duration::from_secs(10);

/// Between two looks at an output that grows fast.
const FAST_OUTPUT_TICK: Duration = Duration::from_millis(100);

/// The shortest time between two heartbeats.
const SHORTEST_BEAT: Duration = Duration::from_millis(50);

pub(super) struct Runner<'a> {
    files: &'a JobFiles,
    signals: &'a Signals,
    spec: &'a JobSpec,
    marker: Marker,
    output: File,
    /// `None`: the output has no limit, or the file system cannot keep one.
    limiter: Option<Limiter>,
    status: Option<&'a mut StatusFile>,
    /// The Lanewright whose death ends the job, if one does, and a pidfd of it where the system has them.
    launcher: Option<(ProcessId, Option<OwnedFd>)>,
    /// When the job began, as the machine's uptime.
    began: Duration,
    termination: Termination,
    /// What the termination counts by.
    awake: AwakeClock,
    next_beat: Instant,
    /// The step that runs or ran last: its pid, and its exit code once it has ended.
    main: (i32, Option<i32>),
    groups: Vec<i32>,
    notes: Vec<String>,
    /// The job's own directory for temporary files, where it has a wall.
    scratch: Option<Scratch>,
}

impl<'a> Runner<'a> {
    /// Prepares to run `spec`; the time limit begins here.
    pub(super) fn new(
        files: &'a JobFiles,
        signals: &'a Signals,
        spec: &'a JobSpec,
        marker: Marker,
        output: File,
        status: Option<&'a mut StatusFile>,
        launcher: Option<ProcessId>,
    ) -> Self {
        Self {
            files,
            signals,
            spec,
            marker,
            output,
            limiter: spec.output_limit.map(Limiter::new),
            status,
            launcher: launcher
                .filter(|_| spec.on_orphan == OnOrphan::Stop)
                .map(|launcher| (launcher, platform::end_of(launcher))),
            began: platform::uptime(),
            termination: Termination::new(spec.timeout, spec.kill_after),
            awake: AwakeClock::start(),
            next_beat: Instant::now(),
            main: (0, None),
            groups: Vec::new(),
            notes: Vec::new(),
            scratch: None,
        }
    }

    pub(super) fn run(mut self) -> JobExit {
        let (mut cause, mut exit_code) = self.run_steps();
        if let Some(ending) = self.termination.cause() {
            cause = ending;
        }
        self.end_tree();
        if matches!(cause, ExitCause::TimedOut | ExitCause::Stopped) {
            exit_code = self.termination.exit_code();
        }
        JobExit {
            cause,
            exit_code,
            command: self.marker.command,
            started_at: self.marker.started_at,
            finished_at: self.marker.started_at.plus(platform::uptime().saturating_sub(self.began)),
            tail: Vec::new(),
            notes: self.notes.join("; "),
        }
    }

    fn run_steps(&mut self) -> (ExitCause, i32) {
        let mut code = 0;
        if self.spec.wall.is_some() {
            match Scratch::create() {
                Ok(scratch) => self.scratch = Some(scratch),
                Err(error) => {
                    self.notes.push(format!("no directory for temporary files can be made: {error}"));
                    return (ExitCause::NotStarted, 127);
                }
            }
        }
        for (number, step) in self.spec.steps.iter().enumerate() {
            self.marker.command = step.to_string();
            if let Err(error) = self.start(step, number == 0) {
                self.notes.push(not_started(step, self.spec, &error));
                return (ExitCause::NotStarted, 127);
            }
            code = self.await_main();
            if let Some(said) = self.refused_by_bubblewrap(code) {
                // In a sandbox that is there, the program is not.
                let reason = match said.strip_prefix("bwrap: execvp ") {
                    Some(program) => program.to_owned(),
                    None => format!("the sandbox cannot be built: {said}"),
                };
                self.notes.push(format!("cannot start `{step}`: {reason}"));
                return (ExitCause::NotStarted, 127);
            }
            if code != 0 || self.termination.cause().is_some() {
                break;
            }
        }
        (ExitCause::Exited, code)
    }

    /// Starts a step in a process group of its own, in the supervisor's session, which has no terminal.
    fn start(&mut self, step: &CommandLine, first: bool) -> io::Result<()> {
        let in_bash = self.runs_in_bash(step);
        let arguments = if in_bash { gate_arguments(step) } else { step.to_arguments() };
        let child = match self.spawn(&arguments, first) {
            Err(error) if in_bash && error.kind() == io::ErrorKind::NotFound && self.spec.directory.is_dir() => {
                self.notes.push("there is no bash: only the last program of a pipeline was judged".to_owned());
                self.spawn(&step.to_arguments(), first)?
            }
            child => child?,
        };
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        self.main = (pid, None);
        self.groups.push(pid);
        self.marker.agent = ProcessId::of(pid);
        // The token finds the agent as well, so a full disk is no reason to end it.
        self.files.write_marker(&self.marker).unwrap_or_else(complain);
        Ok(())
    }

    /// Whether it is the line of a gate that sh would judge by the last program of a pipeline, or not take at all.
    fn runs_in_bash(&self, step: &CommandLine) -> bool {
        let needs_bash = matches!(step, CommandLine::Shell(line) if shell_of(line) != Shell::Posix);
        needs_bash && self.spec.job.role.is_gate()
    }

    fn spawn(&self, arguments: &[String], first: bool) -> io::Result<Child> {
        let input = match &self.spec.input {
            Some(path) if first => open_with(path, Links::Refuse)?.into(),
            _ => Stdio::null(),
        };
        let [out, err] = [self.output.try_clone()?, self.output.try_clone()?];
        wall::spawn(self.spec.wall.as_ref().zip(self.scratch.as_ref()), arguments, &self.spec.directory, |command| {
            command.stdin(input).stdout(out).stderr(err);
            set_environment(command, self.spec, &self.marker.token);
            // Some programs believe it rather than ask the kernel, and would work where Lanewright was started.
            command.env("PWD", &self.spec.directory).env_remove("OLDPWD");
        })
    }

    /// Waits until the step has ended or the job is being ended; the step's exit code, where it has one.
    fn await_main(&mut self) -> i32 {
        loop {
            self.turn(Duration::MAX);
            match self.main.1 {
                Some(code) => {
                    self.await_stop(same_stop(code));
                    return code;
                }
                None if self.termination.cause().is_some() => return 0,
                None => {}
            }
        }
    }

    /// Whether the namespaces of the job are made by `bwrap`, whose processes are part of its tree.
    fn has_bubblewrap(&self) -> bool {
        matches!(&self.spec.wall, Some(Wall { builder: WallBuilder::Bubblewrap(_), .. }))
    }

    /// What `bwrap` printed, where it ended before it started the program.
    fn refused_by_bubblewrap(&self, code: i32) -> Option<String> {
        let last =
            (code == 1 && self.has_bubblewrap()).then(|| tail(&output_log(self.files.directory()), 1).ok())??;
        last.into_iter().next().filter(|line| line.starts_with("bwrap: "))
    }

    /// Waits whether a signal that the step may have ended of was for the supervisor, too.
    fn await_stop(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        while self.termination.cause().is_none() && Instant::now() < until {
            self.turn(until.saturating_duration_since(Instant::now()));
        }
    }

    fn end_tree(&mut self) {
        if !self.anything_left() {
            return;
        }
        if self.termination.cause().is_none() {
            // The first process of a namespace is there as long as another one is, and a moment longer.
            let left = tree::descendants(&self.groups).len().saturating_sub(self.has_bubblewrap().into());
            if left > 0 {
                self.notes.push(format!("ended {} that it left behind", counted(left, "background program")));
            }
            let signal = self.termination.begin(ExitCause::Exited, self.awake.elapsed());
            self.send(signal);
        }
        let mut patience = None;
        while self.anything_left() {
            if !self.termination.is_killing() {
                self.turn(Duration::MAX);
                continue;
            }
            let awake = self.awake.elapsed();
            if awake > *patience.get_or_insert(awake + KILL_PATIENCE) {
                return self.note_survivors();
            }
            self.kill_tree();
            self.turn(Duration::from_millis(2));
        }
    }

    /// Sleeps until something happens, but not longer than `at_most`, and does what it calls for.
    fn turn(&mut self, at_most: Duration) {
        let awake = self.awake.elapsed();
        let due = self.termination.next().map_or(Duration::MAX, |due| due.saturating_sub(awake));
        let beat = self.next_beat.saturating_duration_since(Instant::now());
        let launcher = self.launcher.as_ref().map(|(_, end)| end.as_ref());
        // A sleep of the machine takes at most a tenth of a limit's rest.
        let tick = if matches!(launcher, Some(None)) { TICK } else { (due / 10).clamp(TICK, LONGEST_TICK) };
        let output = if self.limiter.as_ref().is_some_and(Limiter::is_busy) { FAST_OUTPUT_TICK } else { tick };
        let pause = due.min(beat).min(at_most).min(tick).min(output);
        self.awake.plan(pause);
        self.signals.sleep(launcher.flatten(), pause);
        self.collect();
        self.due_signals().into_iter().for_each(|signal| self.send(signal));
        if let Some(Err(error)) = self.limiter.as_mut().map(|limiter| limiter.enforce(&self.output)) {
            complain(format!("the output is not limited: {error}"));
            self.limiter = None;
        }
        let now = Instant::now();
        if now >= self.next_beat {
            self.beat();
            self.next_beat = now + self.spec.heartbeat.max(SHORTEST_BEAT);
        }
    }

    fn due_signals(&mut self) -> Vec<Signal> {
        let now = self.awake.elapsed();
        // No limit passes for a step that has ended by itself, and no request comes in time for one that has succeeded.
        let ended = self.main.1.filter(|_| self.termination.cause().is_none());
        if ended == Some(0) {
            return Vec::new();
        }
        let mut requests = self.signals.requests();
        if self.launcher.as_ref().is_some_and(|(launcher, _)| !launcher.is_alive()) {
            self.launcher = None;
            self.notes.push("the Lanewright that started it died".into());
            requests.push(StopRequest::Stop);
        }
        let mut signals: Vec<Signal> =
            requests.into_iter().filter_map(|request| self.termination.request(request, now)).collect();
        if ended.is_none()
            && let Some(signal) = self.termination.due(now)
        {
            if signal == Signal::Terminate {
                self.notes.push(format!("the time limit of {} passed", exact(self.spec.timeout.unwrap_or_default())));
            }
            signals.push(signal);
        }
        signals
    }

    fn send(&mut self, signal: Signal) {
        match signal {
            Signal::Terminate => {
                let mut targets = tree::descendants(&self.groups);
                // It ends when the program that it started has, with the same exit code.
                targets.retain(|target| !self.has_bubblewrap() || target.id.pid != self.main.0);
                tree::signal_all(&targets, SystemSignal::TERM);
            }
            Signal::Kill => self.kill_tree(),
        }
    }

    /// One attempt at killing the whole tree. A process that loses its parent becomes the supervisor's child, and own
    /// children are killed faster than they can fork.
    fn kill_tree(&mut self) {
        tree::signal_all(&tree::descendants(&self.groups), SystemSignal::KILL);
        let pause = Instant::now() + Duration::from_millis(5);
        while self.collect() && Instant::now() < pause {
            tree::kill_children();
        }
    }

    fn collect(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == self.main.0 => {
                    self.main.1 = Some(code_of(status));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn anything_left(&mut self) -> bool {
        self.collect() || (!platform::ADOPTS_ORPHANS && !tree::descendants(&self.groups).is_empty())
    }

    fn note_survivors(&mut self) {
        let pids: Vec<i32> = tree::descendants(&self.groups).iter().map(|row| row.id.pid).collect();
        self.notes.push(format!("processes {pids:?} do not die; see what they wait for (`ps -o stat,wchan`)"));
    }

    /// Writes the heartbeats. On a full disk they fail; the agent continues.
    fn beat(&mut self) {
        let now = now();
        let asleep = now.since(self.marker.started_at).saturating_sub(self.awake.elapsed());
        self.files.write_heartbeat(&Heartbeat { updated_at: now, asleep }).unwrap_or_else(complain);
        if let Some(status) = &mut self.status {
            status.beat(now).unwrap_or_else(complain);
        }
    }
}

/// The supervisor's own environment without what a launcher left in it and what the job does not get, then what the spec
/// adds.
fn set_environment(command: &mut Command, spec: &JobSpec, token: &str) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| !spec.inherits(name)) {
        command.env_remove(name);
    }
    command.env_remove(LAUNCHER_VARIABLE).envs(&spec.environment).env(TOKEN_VARIABLE, token);
}

/// The exit code in a shell's convention.
fn code_of(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(1)
}

fn not_started(step: &CommandLine, spec: &JobSpec, error: &io::Error) -> String {
    let place = spec.directory.display();
    if !spec.directory.is_dir() {
        return format!("cannot start `{step}`: there is no directory {place}");
    }
    match &spec.input {
        Some(input) if !input.is_file() => format!("cannot start `{step}`: there is no input file {}", input.display()),
        _ => format!("cannot start `{step}` in {place}: {error}"),
    }
}
