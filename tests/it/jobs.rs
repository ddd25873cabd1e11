//! Supervision with real processes: `docs/supervision.md`, held against the binary.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

#[cfg(target_os = "linux")]
mod walls;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lanewright_model::job::StatusSpec;
use lanewright_model::{CommandLine, ExitCause, JobExit, JobId, JobRole, JobSpec, OnOrphan, ProcessId};
use lanewright_programs::process::LiveProcess;
use lanewright_programs::process::{Launched, Observation, StopOutcome, launch, observe, output_log, stop, wait};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::wait_until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_lanewright");

/// A job in a scratch directory, whose processes can be told by their environment.
struct Job {
    scratch: tempfile::TempDir,
    directory: PathBuf,
    spec: JobSpec,
}

impl Job {
    /// A job of one shell line, which runs in the scratch directory.
    fn shell(line: &str) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mark = scratch.path().to_str().unwrap().to_owned();
        let spec = JobSpec {
            job: JobId { lane: None, role: JobRole::Final, number: 1 },
            steps: vec![CommandLine::Shell(line.to_owned())],
            directory: scratch.path().to_owned(),
            environment: BTreeMap::from([("MARK".to_owned(), mark)]),
            input: None,
            timeout: None,
            kill_after: Duration::from_secs(60),
            heartbeat: Duration::from_millis(50),
            output_limit: None,
            withheld: Vec::new(),
            status: None,
            on_orphan: OnOrphan::Continue,
            redact: Vec::new(),
            runner: None,
            wall: None,
        };
        Self { directory: scratch.path().join("job"), scratch, spec }
    }

    fn launch(&self) -> Launched {
        launch(Path::new(PROGRAM), &self.directory, &self.spec).unwrap()
    }

    fn run(&self) -> JobExit {
        wait(&self.directory, Some(self.launch())).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    fn output(&self) -> String {
        fs::read_to_string(output_log(&self.directory)).unwrap_or_default()
    }

    /// Waits until the agent has written `name`.
    fn until_written(&self, name: &str) {
        wait_until(name, || !self.text(name).is_empty());
    }

    /// Every living process that inherited the job's mark.
    fn survivors(&self) -> Vec<i32> {
        let mark = format!("MARK={}", self.scratch.path().display()).into_bytes();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let marked = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|entry| entry == mark)
        };
        pids.filter(marked).filter(|&pid| ProcessId::of(pid).is_some_and(|id| id.is_alive())).collect()
    }

    fn supervisor(&self) -> ProcessId {
        let mut found = None;
        wait_until("a running supervisor", || match observe(&self.directory).unwrap() {
            Observation::Running(supervisor) => found.replace(supervisor).is_none(),
            _ => false,
        });
        found.unwrap()
    }

    /// Starts the supervisor from a shell, so that what started it can be killed.
    fn launch_from_a_shell(&self) -> Child {
        fs::create_dir_all(&self.directory).unwrap();
        fs::write(self.directory.join("spec.json"), serde_json::to_vec(&self.spec).unwrap()).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", r#""$0" supervise "$1" & wait"#, PROGRAM]).arg(&self.directory);
        shell.stdin(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for Job {
    /// A test that failed leaves nothing running.
    fn drop(&mut self) {
        self.survivors().into_iter().filter_map(Pid::from_raw).for_each(|pid| {
            let _ = kill_process(pid, Signal::KILL);
        });
    }
}

/// As the process table has it; `getsid` gives no pid for a session whose leader is outside this container.
fn leads_a_session(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let session = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(3));
    session.is_some_and(|session| session == pid.to_string())
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn agent_ignoring_sigterm_is_killed_with_grandchildren() {
    let mut job =
        Job::shell("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo up; sleep 1000' & sleep 1000; sleep 1000");
    job.spec.timeout = Some(Duration::from_millis(300));
    job.spec.kill_after = Duration::from_millis(300);
    let exit = job.run();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::TimedOut, 137), "{exit:?}");
    assert_eq!(exit.tail, ["up"]);
    assert!(exit.finished_at.since(exit.started_at) >= Duration::from_millis(600), "{exit:?}");
    assert_eq!(job.survivors(), [0; 0]);
    assert_eq!(observe(&job.directory).unwrap(), Observation::Exited(exit));
}

#[test]
fn an_agent_that_sleeps_ends_with_124() {
    let mut job = Job::shell("sleep 1000");
    job.spec.timeout = Some(Duration::from_millis(100));
    let exit = job.run();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::TimedOut, 124), "{exit:?}");
    assert_eq!(exit.notes, "the time limit of 100ms passed");
}

#[test]
fn the_time_limit_is_for_all_steps_together() {
    let mut job = Job::shell("true");
    job.spec.steps = vec![CommandLine::Shell("sleep 0.2".into()); 1000];
    job.spec.timeout = Some(Duration::from_millis(500));
    assert_eq!(job.run().exit_code, 124);
}

#[test]
fn processes_that_never_stop_forking_are_swept() {
    let job = Job::shell("for i in 1 2 3; do perl ./hop.pl & done; sleep 1000");
    // Each process lives only until it has forked the next, which goes into a session of its own.
    let hop = r#"use POSIX; while (-e "go") { exit if fork; POSIX::setsid(); mark() unless ++$hops % 20; }
        sub mark { open(my $file, ">>", "hops"); print $file "on\n"; }"#;
    fs::write(job.file("hop.pl"), hop).unwrap();
    fs::write(job.file("go"), "").unwrap();
    let launched = job.launch();
    wait_until("hops", || job.text("hops").lines().count() > 10);
    stop(&job.directory, true).unwrap();
    let exit = wait(&job.directory, Some(launched)).unwrap();
    let hops = job.text("hops");
    assert_eq!((exit.cause, exit.exit_code, exit.notes.as_str()), (ExitCause::Stopped, 137, ""));
    assert_eq!(job.survivors(), [0; 0]);
    assert_eq!(job.text("hops"), hops, "none is left to hop");
}

#[test]
fn background_processes_end_without_changing_the_exit() {
    let job = Job::shell("setsid sh -c 'sleep 1000' & sh -c 'sleep 1000 & sleep 1000' & echo done");
    let exit = job.run();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::Exited, 0), "{exit:?}");
    assert!(exit.notes.starts_with("ended ") && exit.notes.ends_with("that it left behind"), "{exit:?}");
    assert_eq!(job.survivors(), [0; 0]);
}

#[test]
fn job_steps_run_in_order_until_first_failure() {
    let mut job = Job::shell("read word; echo got $word; echo to-stderr >&2; echo to-stdout");
    job.spec.steps.push(CommandLine::Arguments(["sh", "-c", "cat; echo $0; exit 7", "$HOME"].map(String::from).into()));
    job.spec.steps.push(CommandLine::Shell("echo never".into()));
    fs::write(job.file("input"), "something\nelse\n").unwrap();
    job.spec.input = Some(job.file("input"));
    let exit = job.run();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::Exited, 7), "{exit:?}");
    assert_eq!(job.output(), "got something\nto-stderr\nto-stdout\n$HOME\n");
    assert_eq!(exit.command, "sh -c 'cat; echo $0; exit 7' '$HOME'");
    assert_eq!(exit.tail, ["got something", "to-stderr", "to-stdout", "$HOME"]);
}

#[test]
fn a_death_by_signal_is_reported_as_shells_do() {
    assert_eq!(Job::shell("kill -SEGV $$").run().exit_code, 139);
}

#[test]
fn program_that_cannot_start_is_named_with_directory() {
    let mut job = Job::shell("");
    job.spec.steps = vec![CommandLine::Arguments(vec!["./no such agent".into()])];
    let exit = job.run();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::NotStarted, 127), "{exit:?}");
    assert!(exit.notes.contains("`'./no such agent'` in /"), "{exit:?}");
    job.spec.directory = job.file("gone");
    job.directory = job.file("second job");
    assert!(job.run().notes.contains("there is no directory"));
}

#[test]
fn reader_of_job_files_does_not_block_supervisor_start() {
    let job = Job::shell("true");
    fs::create_dir_all(&job.directory).unwrap();
    let lock = fs::File::create(job.directory.join("lock")).unwrap();
    lock.lock_shared().unwrap();
    let launched = job.launch();
    wait_until("the supervisor's own session", || leads_a_session(launched.supervisor().pid));
    assert_eq!(observe(&job.directory).unwrap(), Observation::Planned);
    drop(lock);
    assert!(wait(&job.directory, Some(launched)).unwrap().passed());
}

#[test]
fn a_job_that_is_launched_eight_times_at_once_runs_once() {
    let job = Job::shell("echo ran >> count; sleep 0.3");
    let exits = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8).map(|_| scope.spawn(|| job.run())).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(job.text("count"), "ran\n");
    assert!(exits.iter().all(|exit| exit.passed() && *exit == exits[0]), "{exits:?}");
    assert_eq!(job.run(), exits[0], "launching it later tells the same exit");
    assert_eq!(job.text("count"), "ran\n");
}

#[test]
fn killed_supervisor_is_lost_and_its_processes_end() {
    let inner = "trap '' TERM; echo up > inner; exec sleep 1000";
    let job = Job::shell(&format!("(setsid sh -c \"{inner}\" &); echo ran >> count; exec sleep 1000"));
    let launched = job.launch();
    job.until_written("inner");
    job.until_written("count");
    wait_until("the two that stay", || job.survivors().len() == 2);
    let supervisor = job.supervisor();
    assert_eq!(supervisor, launched.supervisor());
    kill(supervisor.pid);
    wait_until("the loss", || observe(&job.directory).unwrap() == Observation::Lost(supervisor));
    assert!(Command::new(PROGRAM).arg("supervise").arg(&job.directory).status().unwrap().success());
    assert_eq!(observe(&job.directory).unwrap(), Observation::Lost(supervisor), "it is not begun again");
    assert_eq!(stop(&job.directory, false).unwrap(), StopOutcome::Lost);

    let exit = wait(&job.directory, Some(launched)).unwrap();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::Lost, -1), "{exit:?}");
    assert!(exit.notes.ends_with("killed 2 survivors"), "{exit:?}");
    assert_eq!(job.survivors(), [0; 0]);
    assert_eq!(job.run(), exit, "a lost job is never run again");
    assert_eq!(job.text("count"), "ran\n");
}

#[test]
fn a_job_that_is_stopped_before_it_began_never_begins() {
    let job = Job::shell("echo ran >> count");
    assert_eq!(stop(&job.directory, false).unwrap(), StopOutcome::NeverBegun);
    let told = observe(&job.directory).unwrap();
    let exit = job.run();
    assert_eq!(told, Observation::Exited(exit.clone()));
    assert_eq!((exit.cause, exit.exit_code, job.text("count").as_str()), (ExitCause::Stopped, 143, ""));
    assert_eq!(stop(&job.directory, false).unwrap(), StopOutcome::Ended);
}

#[test]
fn stop_file_before_supervisor_start_stops_job() {
    let job = Job::shell("echo ran >> count");
    fs::create_dir_all(&job.directory).unwrap();
    fs::write(job.directory.join("stop"), "").unwrap();
    assert_eq!((job.run().cause, job.text("count").as_str()), (ExitCause::Stopped, ""));
}

#[test]
fn a_stopped_agent_may_finish_its_sentence() {
    let job = Job::shell("trap 'echo saved > saved; exit 0' TERM; echo up > up; while [ -e up ]; do sleep 0.05; done");
    let launched = job.launch();
    job.until_written("up");
    assert_eq!(stop(&job.directory, false).unwrap(), StopOutcome::Asked);
    let exit = wait(&job.directory, Some(launched)).unwrap();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::Stopped, 143), "{exit:?}");
    assert_eq!(job.text("saved"), "saved\n");
}

#[test]
fn a_second_stop_kills() {
    let job = Job::shell("trap 'echo asked > asked' TERM; echo up > up; while [ -e up ]; do sleep 0.05; done");
    let launched = job.launch();
    job.until_written("up");
    stop(&job.directory, false).unwrap();
    job.until_written("asked");
    stop(&job.directory, false).unwrap();
    let exit = wait(&job.directory, Some(launched)).unwrap();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::Stopped, 137), "{exit:?}");
}

#[test]
fn a_forced_stop_does_not_ask() {
    let job = Job::shell("trap 'echo asked > asked; exit' TERM; echo up > up; while [ -e up ]; do sleep 0.05; done");
    let launched = job.launch();
    job.until_written("up");
    stop(&job.directory, true).unwrap();
    let exit = wait(&job.directory, Some(launched)).unwrap();
    assert_eq!((exit.cause, exit.exit_code, job.text("asked").as_str()), (ExitCause::Stopped, 137, ""));
    assert_eq!(job.survivors(), [0; 0]);
}

fn with_status(line: &str) -> Job {
    let mut job = Job::shell(line);
    let path = job.file("agent/status.json");
    let (agent, task, round) = ("engineer".into(), "1".into(), "implementation".into());
    job.spec.status = Some(StatusSpec { path, agent, task, round, retry_count: 0 });
    job
}

#[test]
fn status_file_is_refreshed_and_records_exit_code() {
    let job = with_status("while [ ! -e go ]; do sleep 0.05; done; exit 3");
    let launched = job.launch();
    job.until_written("agent/status.json");
    let first = job.text("agent/status.json");
    assert!(first.contains("WORKING"), "{first}");
    wait_until("a beat", || job.text("agent/status.json") != first);
    assert!(job.text("agent/status.json").contains("WORKING"));
    assert!(fs::read_to_string(job.directory.join("heartbeat")).unwrap().contains("updated_at"));
    fs::write(job.file("go"), "").unwrap();
    assert_eq!(wait(&job.directory, Some(launched)).unwrap().exit_code, 3);
    assert!(job.text("agent/status.json").contains("ended with code 3"));
}

#[test]
fn a_status_that_the_agent_wrote_is_never_touched() {
    let job = with_status("echo '{\"status\": \"BLOCKED\"}' > agent/status.json; sleep 0.3");
    assert!(job.run().passed());
    assert_eq!(job.text("agent/status.json"), "{\"status\": \"BLOCKED\"}\n");
}

#[test]
fn git_environment_does_not_reach_the_agent() {
    let mut job = Job::shell("env");
    job.spec.environment.insert("GIT_AUTHOR_NAME".into(), "wanted".into());
    fs::create_dir_all(&job.directory).unwrap();
    fs::write(job.directory.join("spec.json"), serde_json::to_vec(&job.spec).unwrap()).unwrap();
    let mut supervisor = Command::new(PROGRAM);
    supervisor.arg("supervise").arg(&job.directory).env("GIT_DIR", "/elsewhere").env("KEPT", "yes");
    assert!(supervisor.status().unwrap().success());
    let output = job.output();
    assert!(output.contains("KEPT=yes") && output.contains("GIT_AUTHOR_NAME=wanted"), "{output}");
    assert!(!output.contains("GIT_DIR") && !output.contains("LANEWRIGHT_LAUNCHER"), "{output}");
}

/// A shell would put it right by itself, so there is none.
#[test]
fn programs_that_believe_pwd_work_where_they_should() {
    let mut job = Job::shell("");
    job.spec.steps = vec![CommandLine::Arguments(vec!["printenv".into(), "PWD".into()])];
    fs::create_dir_all(&job.directory).unwrap();
    fs::write(job.directory.join("spec.json"), serde_json::to_vec(&job.spec).unwrap()).unwrap();
    let mut supervisor = Command::new(PROGRAM);
    supervisor.arg("supervise").arg(&job.directory).env("PWD", "/elsewhere");
    assert!(supervisor.status().unwrap().success());
    assert_eq!(job.output().trim_end(), job.scratch.path().to_str().unwrap());
}

#[test]
fn agent_outlives_killed_launcher_and_is_adopted() {
    let job = Job::shell("echo up > up; while [ ! -e go ]; do sleep 0.05; done; echo finished > finished");
    let mut launcher = job.launch_from_a_shell();
    job.until_written("up");
    let supervisor = job.supervisor();
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert_eq!(observe(&job.directory).unwrap(), Observation::Running(supervisor));
    let exit = std::thread::scope(|scope| {
        let adopted = scope.spawn(|| wait(&job.directory, None).unwrap());
        fs::write(job.file("go"), "").unwrap();
        adopted.join().unwrap()
    });
    assert!(exit.passed() && job.text("finished") == "finished\n", "{exit:?}");
}

#[test]
fn on_orphan_stop_ends_agent_after_launcher_death() {
    let mut job = Job::shell("echo up > up; sleep 1000");
    job.spec.on_orphan = OnOrphan::Stop;
    let mut launcher = job.launch_from_a_shell();
    job.until_written("up");
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    let exit = wait(&job.directory, None).unwrap();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::Stopped, 143), "{exit:?}");
    assert_eq!(job.survivors(), [0; 0]);
}

#[test]
fn agent_has_no_terminal_and_survives_sighup() {
    let job =
        Job::shell("ps -o tty=,sid=,pgid=,pid= -p $$ > row; echo up > up; while [ ! -e go ]; do sleep 0.05; done");
    let launched = job.launch();
    job.until_written("up");
    let supervisor = job.supervisor();
    kill_process(Pid::from_raw(supervisor.pid).unwrap(), Signal::HUP).unwrap();
    fs::write(job.file("go"), "").unwrap();
    assert!(wait(&job.directory, Some(launched)).unwrap().passed());
    let row = job.text("row");
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((row[0], row[1]), ("?", supervisor.pid.to_string().as_str()), "no terminal, the supervisor's session");
    assert_eq!(row[2], row[3], "a process group of its own");
}

#[test]
fn exit_file_write_is_retried_until_it_succeeds() {
    let job = Job::shell("mkdir job/exit.json");
    let launched = job.launch();
    let log = job.directory.join("supervisor.log");
    wait_until("a complaint", || fs::read_to_string(&log).unwrap_or_default().contains("cannot write"));
    fs::remove_dir(job.directory.join("exit.json")).unwrap();
    assert!(wait(&job.directory, Some(launched)).unwrap().passed());
}

#[test]
fn a_spec_that_cannot_be_read_is_reported_as_an_exit() {
    let job = Job::shell("true");
    fs::create_dir_all(&job.directory).unwrap();
    fs::write(job.directory.join("spec.json"), "{").unwrap();
    let supervised = Command::new(PROGRAM).arg("supervise").arg(&job.directory).status().unwrap();
    let exit = wait(&job.directory, None).unwrap();
    assert!(supervised.success() && exit.notes.contains("spec.json is damaged"), "{exit:?}");
    assert_eq!(exit.cause, ExitCause::NotStarted);
}

#[test]
fn a_launcher_that_is_named_and_is_gone_ends_the_job() {
    let mut job = Job::shell("sleep 1000");
    job.spec.on_orphan = OnOrphan::Stop;
    fs::create_dir_all(&job.directory).unwrap();
    fs::write(job.directory.join("spec.json"), serde_json::to_vec(&job.spec).unwrap()).unwrap();
    let me = ProcessId::current();
    let mut supervisor = Command::new(PROGRAM);
    supervisor
        .arg("supervise")
        .arg(&job.directory)
        .env("LANEWRIGHT_LAUNCHER", format!("{}:{}", me.pid, me.started + 1));
    assert!(supervisor.status().unwrap().success());
    assert_eq!(wait(&job.directory, None).unwrap().cause, ExitCause::Stopped);
}

#[test]
fn state_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let job = Job::shell("true");
    job.run();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&job.directory), 0o700);
    let files: BTreeMap<String, u32> = fs::read_dir(&job.directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), mode(&entry.path())))
        .collect();
    let names = ["exit.json", "heartbeat", "lock", "output.log", "spec.json", "supervisor.json", "supervisor.log"];
    assert_eq!(files, BTreeMap::from(names.map(|name| (name.to_owned(), 0o600))));
}

#[test]
fn the_marker_names_the_agent() {
    let job = Job::shell("echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done");
    let launched = job.launch();
    job.until_written("pid");
    let marker = || fs::File::open(job.directory.join("supervisor.json")).unwrap();
    let pid = job.text("pid").trim().to_owned();
    wait_until("the agent's pid in the marker", || {
        BufReader::new(marker()).lines().any(|line| line.unwrap().contains(&format!("\"pid\": {pid}")))
    });
    fs::write(job.file("go"), "").unwrap();
    assert!(wait(&job.directory, Some(launched)).unwrap().passed());
}

#[test]
fn a_gate_fails_where_any_program_of_its_pipeline_does() {
    let gate = Job::shell("sh -c 'echo out; exit 3' | cat");
    assert_eq!(gate.run().exit_code, 3);
    let mut setup = Job::shell("false | cat");
    setup.spec.job.role = JobRole::Setup { agent: None };
    assert!(setup.run().passed(), "what is no gate is run as it is written");
    let filtered = Job::shell("sh -c 'exit 3' | head -1");
    assert_eq!(filtered.run().exit_code, 3);
    let read_on = Job::shell("seq 99999 | grep -q 1");
    assert!(read_on.run().passed());
}

#[test]
fn pipeline_without_bash_passes_if_last_program_does() {
    let mut job = Job::shell("false | true");
    std::os::unix::fs::symlink("/bin/sh", job.file("sh")).unwrap();
    job.spec.environment.insert("PATH".to_owned(), job.scratch.path().display().to_string());
    let exit = job.run();
    assert!(exit.passed() && exit.notes.contains("no bash"), "{exit:?}");
}

/// Longer than the limits of jobs that are asleep meanwhile, which are long enough for what they do awake.
const ASLEEP: Duration = Duration::from_secs(9);

#[test]
fn time_asleep_counts_for_no_limit_of_a_job() {
    let limit = ASLEEP - Duration::from_secs(1);
    let mut limited = Job::shell("echo $$ > up; while [ ! -e go ]; do sleep 0.05; done");
    limited.spec.timeout = Some(limit);
    // It is asked to end, and takes the time that it was given.
    let mut stopped = Job::shell("trap 'echo $$ > up' TERM; echo up > begun; while [ ! -e go ]; do sleep 0.05; done");
    stopped.spec.kill_after = limit;
    let launched = [limited.launch(), stopped.launch()];
    stopped.until_written("begun");
    stop(&stopped.directory, false).unwrap();
    let jobs = [&limited, &stopped];
    jobs.iter().for_each(|job| job.until_written("up"));
    let signal_all = |signal| {
        for job in jobs {
            let agent = Pid::from_raw(job.text("up").trim().parse().unwrap()).unwrap();
            kill_process(Pid::from_raw(job.supervisor().pid).unwrap(), signal).unwrap();
            kill_process_group(agent, signal).unwrap();
        }
    };
    signal_all(Signal::STOP);
    std::thread::sleep(ASLEEP);
    signal_all(Signal::CONT);
    let slept = |job: &Job| {
        // The first one may not have been written before the sleep.
        let heartbeat = fs::read(job.directory.join("heartbeat")).unwrap_or_else(|_| b"{}".to_vec());
        let heartbeat: serde_json::Value = serde_json::from_slice(&heartbeat).unwrap();
        heartbeat["asleep_ms"].as_u64().unwrap_or_default()
    };
    for job in jobs {
        wait_until("a heartbeat with the time asleep", || slept(job) >= 8000);
        fs::write(job.file("go"), "").unwrap();
    }
    let exits = jobs.iter().zip(launched).map(|(job, launched)| wait(&job.directory, Some(launched)).unwrap());
    let exits: Vec<(ExitCause, i32)> = exits.map(|exit| (exit.cause, exit.exit_code)).collect();
    assert_eq!(exits, [(ExitCause::Exited, 0), (ExitCause::Stopped, 143)]);
}
