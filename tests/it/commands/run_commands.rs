//! Commands that look at runs and answer them, on run logs made by hand.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lanewright_model::event::*;
use lanewright_model::*;
use lanewright_plan::{Source, SourceFile};
use lanewright_programs::process::LiveProcess;
use lanewright_programs::process::{self, Observation};
use lanewright_store::{Holder, Journal, Request, RunDirectory, RunLock, StateDirectory, requests, run_log};

use crate::support::TestEnv;

const PLAN: &str = r#"
phase = "P1"
title = "Billing"
[[lane]]
id = "SL-1"
approval = ["plan", "changes"]
[[lane.agent]]
name = "engineer"
command = ["true"]
[[lane]]
id = "SL-2"
[[lane.agent]]
name = "engineer"
command = ["true"]
"#;

pub(super) fn state(env: &TestEnv) -> StateDirectory {
    StateDirectory::new(&env.path("repo"))
}

fn start(env: &TestEnv, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

/// A run in which `SL-1` waits for an approval of its plan.
pub(super) fn waiting_run(env: &TestEnv, name: &str) -> Run {
    use LaneStage::{Classified, Init, Requirements, Synthesis, Waiting};
    let mut run = Run::begun(env, name, 0);
    run.moved(Waiting, Init);
    run.say(Event::LaneBased { lane: lane("SL-1"), base: commit(), port: 4000, missing: vec![] });
    let checkpoint = Checkpoint::new(Stage::BeforeLaneStart, CheckpointStatus::Ready);
    run.say(Event::CheckpointReached { lane: Some(lane("SL-1")), checkpoint });
    run.moved(Init, Classified);
    run.moved(Classified, Requirements);
    run.moved(Requirements, Synthesis);
    run
}

/// A run whose log is written by the test.
pub(super) struct Run {
    directory: RunDirectory,
    journal: Journal,
    at: Timestamp,
}

impl Run {
    pub(super) fn begun(env: &TestEnv, name: &str, day: i64) -> Self {
        let id = RunId::new(name).expect("a run id");
        let state = state(env);
        state.create().expect("the state directory");
        let directory = state.run(&id);
        directory.create().expect("the run directory");
        let none = |_: &str| Err(String::new());
        let reading = lanewright_plan::read(
            &Source { files: &[SourceFile { path: "p.toml", text: PLAN }], ..Source::default() },
            &none,
            &|_| None,
        );
        let plan = reading.plan.expect("a valid plan");
        fs::write(directory.plan(), serde_json::to_string(&plan).expect("JSON")).expect("the plan");
        let journal = Journal::create(&directory.log(), &id, &plan.phase).expect("a run log");
        let mut run =
            Self { directory, journal, at: Timestamp::from_unix_millis(1_767_225_600_000 + day * 86_400_000) };
        run.say(started(id));
        run
    }

    fn say(&mut self, event: Event) {
        self.at = self.at.plus(Duration::from_secs(1));
        self.journal.append(self.at, &event).expect("appended");
        self.journal.sync().expect("durable");
    }

    fn moved(&mut self, from: LaneStage, to: LaneStage) {
        self.say(Event::LaneMoved { lane: lane("SL-1"), from, to });
    }

    pub(super) fn checkpoint(&mut self) {
        let checkpoint = Checkpoint::new(Stage::BeforeLaneStart, CheckpointStatus::Ready);
        self.say(Event::CheckpointReached { lane: Some(lane("SL-2")), checkpoint });
    }

    pub(super) fn job(&mut self, lane_id: &str, role: JobRole, output: &str) -> JobId {
        let job = JobId { lane: Some(lane(lane_id)), role, number: 1 };
        self.say(Event::planned(job.clone()));
        self.write(&job, output);
        job
    }

    fn write(&self, job: &JobId, output: &str) {
        let directory = self.directory.job(job);
        fs::create_dir_all(&directory).expect("the job's directory");
        let path = process::output_log(&directory);
        let old = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, old + output).expect("output");
    }

    fn exited(&mut self, job: &JobId, exit_code: i32) {
        let (started_at, finished_at) = (self.at, self.at);
        let command = "true".to_owned();
        let (cause, tail, notes) = (ExitCause::Exited, Vec::new(), String::new());
        let exit = JobExit { cause, exit_code, command, started_at, finished_at, tail, notes };
        self.say(Event::JobExited { job: job.clone(), exit, report: None, reading: None, transcript: None });
    }

    pub(super) fn finished(&mut self, outcome: RunOutcome) {
        self.say(Event::RunFinished { outcome, code: 0 });
    }

    fn hold(&self) -> RunLock {
        let run = RunId::new("r1").expect("an id");
        let holder = Holder { owner: owner(), run, since: Timestamp::from_unix_millis(0), program: Vec::new() };
        RunLock::acquire(&self.directory.lock(), &holder).expect("the lock")
    }

    pub(super) fn last(&self) -> Event {
        run_log::read(&self.directory.log()).expect("the log").records.pop().expect("a record").event
    }

    /// Waits for a request and takes it.
    fn request(&self) -> Request {
        until("a request", || requests::take(&self.directory.requests()).expect("requests").requests.pop())
    }
}

/// A command whose output is read while it goes on.
struct Watched {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Watched {
    fn over(mut child: Child) -> Self {
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take().expect("its output");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    fn wait_for(&mut self, part: &str) {
        let deadline = Duration::from_secs(60);
        while !self.seen.last().is_some_and(|line| line.contains(part)) {
            let line = self.lines.recv_timeout(deadline);
            self.seen.push(line.unwrap_or_else(|_| panic!("waited in vain for {part}: {:?}", self.seen)));
        }
    }

    /// All lines, once it has ended well.
    fn end(mut self) -> Vec<String> {
        assert!(self.child.wait().expect("its end").success());
        self.seen.extend(self.lines);
        self.seen
    }
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn lane(name: &str) -> LaneId {
    LaneId::new(name).expect("a lane id")
}

fn commit() -> CommitId {
    CommitId::new(&"a".repeat(40)).expect("a commit")
}

fn owner() -> Owner {
    Owner { session_id: "s".into(), process: ProcessId::current(), host: "here".into(), boot: String::new() }
}

pub(super) fn attempt() -> JobRole {
    JobRole::Attempt { agent: AgentName::new("engineer").expect("a name"), task: TaskId::new("1").expect("an id") }
}

fn started(run_id: RunId) -> Event {
    let options = RunOptions { worktree_root: "/nowhere".into(), ..testing::run_options() };
    let started = RunStarted {
        run_id,
        plan_path: "/plan.toml".into(),
        base_commit: commit(),
        owner: owner(),
        options,
        ..testing::run_started()
    };
    Event::RunStarted(Box::new(started))
}

/// Every file of the state and what it holds.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let held = fs::read(&path).expect("a file");
            found.insert(path, held);
        }
    }
    found
}

#[test]
fn status_selects_unfinished_run_and_writes_nothing() {
    let scratch = TestEnv::new();
    let run = waiting_run(&scratch, "r-waiting");
    let mut done = Run::begun(&scratch, "r-done", 9);
    done.checkpoint();
    done.finished(RunOutcome::Done);
    let before = files(&state(&scratch).path());
    let ended = scratch.lanewright(&["status"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("P1 Billing · interrupted"), "{}", ended.stdout);
    assert!(ended.stdout.contains("lanewright approve r-waiting SL-1 --gate plan\n"), "{}", ended.stdout);
    let _lock = run.hold();
    let json = scratch.lanewright(&["status", "r-waiting", "--format", "json"]).stdout;
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&summary["run_id"], &summary["held"]), (&"r-waiting".into(), &true.into()));
    assert_eq!(summary["lanes"][0]["stage"], "SYNTHESIS");
    let mut after = files(&state(&scratch).path());
    after.remove(&run.directory.lock());
    assert_eq!(after, before);
}

#[test]
fn status_shows_the_newest_run_and_names_the_others() {
    let scratch = TestEnv::new();
    waiting_run(&scratch, "old");
    let mut new = Run::begun(&scratch, "new", 9);
    new.checkpoint();
    let ended = scratch.lanewright(&["status"]);
    assert!(ended.stdout.contains("run new\n"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("Other unfinished runs: old. See: lanewright status RUN\n"), "{}", ended.stdout);
}

#[test]
fn a_run_that_is_not_there_is_named_with_those_that_are() {
    let scratch = TestEnv::new();
    let ended = scratch.lanewright(&["status"]);
    assert_eq!(ended.code, 8);
    assert!(ended.stderr.contains("no runs in this repository yet\nhint: start one: "), "{}", ended.stderr);
    waiting_run(&scratch, "billing-1");
    for command in [&["status", "biling-1"][..], &["logs", "biling-1"], &["stop", "biling-1"]] {
        let ended = scratch.lanewright(command);
        assert_eq!(ended.code, 8);
        assert!(ended.stderr.contains("did you mean `billing-1`?"), "{}", ended.stderr);
    }
    assert!(scratch.lanewright(&["status", "x"]).stderr.contains("the newest runs: billing-1"));
}

#[test]
fn status_tells_of_damage_and_shows_the_rest() {
    let scratch = TestEnv::new();
    let run = waiting_run(&scratch, "r");
    let log = fs::read_to_string(run.directory.log()).unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    lines[4] = "{\"rotten\":";
    fs::write(run.directory.log(), lines.join("\n") + "\n").unwrap();
    let ended = scratch.lanewright(&["status", "r"]);
    assert_eq!(ended.code, 0);
    assert!(ended.stderr.contains("r.jsonl is damaged: line 5:"), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("waiting for approval") || ended.stdout.contains("needs approval"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_watched_run_is_shown_until_it_ends() {
    let scratch = TestEnv::new();
    let mut run = waiting_run(&scratch, "r");
    let lock = run.hold();
    let mut objects = Watched::over(start(&scratch, &["status", "r", "--watch", "--format", "json"]));
    let mut lines = Watched::over(start(&scratch, &["status", "r", "--watch"]));
    let mut lane = Watched::over(start(&scratch, &["status", "r", "SL-1", "--watch"]));
    objects.wait_for("\"resumes\":0");
    lane.wait_for("SL-1");
    lines.wait_for("SL-1");
    run.say(testing::resumed(7, owner()));
    objects.wait_for("\"resumes\":7");
    run.say(Event::Noted { lane: None, message: "hear, hear".into() });
    lines.wait_for("hear, hear");
    run.say(Event::Noted { lane: Some(LaneId::new("SL-2").unwrap()), message: "of the other".into() });
    run.say(Event::Noted { lane: Some(LaneId::new("SL-1").unwrap()), message: "of the lane".into() });
    lane.wait_for("of the lane");
    run.finished(RunOutcome::Blocked);
    let text = objects.end().join("\n");
    let summaries = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
    assert_eq!(summaries.last().unwrap().unwrap()["outcome"], "blocked", "{text}");
    let text = lines.end().join("\n");
    assert!(text.contains("P1 Billing · blocked"), "{text}");
    let text = lane.end().join("\n");
    assert!(text.contains("\nSL-1 · needs approval") || text.contains("\nSL-1 "), "the page of the lane:\n{text}");
    assert!(!text.contains("of the other") && !text.contains("P1 Billing · blocked"), "{text}");
    drop(lock);
}

#[test]
fn logs_show_job_output_in_order_with_filters() {
    let scratch = TestEnv::new();
    let mut run = Run::begun(&scratch, "r", 0);
    let first = run.job("SL-2", attempt(), "one\n\u{1b}[31mtwo\u{1b}[0m");
    run.exited(&first, 3);
    run.job("SL-1", JobRole::Tests, "three\n");
    run.job("SL-1", attempt(), "");
    let ended = scratch.lanewright(&["logs", "r"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let without_times: Vec<&str> = lines.iter().map(|line| line.get(9..).unwrap_or(line)).collect();
    let expected = [
        "SL-2 | ==> engineer/1 attempt 1",
        "SL-2 | one",
        "SL-2 | two",
        "SL-2 | <== engineer/1 attempt 1 · exit 3 after 0s",
        "SL-1 | ==> tests 1",
        "SL-1 | three",
        "SL-1 | ==> engineer/1 attempt 1",
    ];
    assert_eq!((ended.code, without_times.as_slice()), (0, &expected[..]));
    let has_time = |line: &&str| line.as_bytes()[2] == b':' && line.as_bytes()[5] == b':';
    assert_eq!(lines.iter().filter(|line| has_time(line)).count(), 4, "{lines:?}");
    let one = scratch.lanewright(&["logs", "r", "SL-2"]).stdout;
    assert_eq!(one, "==> SL-2/engineer/1 attempt 1 · exit 3 <==\none\ntwo\n");
    let tail = scratch.lanewright(&["logs", "r", "SL-2", "SL-1", "--tail", "1"]).stdout;
    assert!(tail.contains("| two\n") && tail.contains("| three\n") && !tail.contains("| one\n"), "{tail}");
    assert!(tail.lines().filter(|line| line.contains("==>")).all(|line| has_time(&line)), "{tail}");
    let since = |since: &str| scratch.lanewright(&["logs", "r", "--since", since]).stdout;
    assert!(!since("1s").contains("two") && since("1s").contains("three"), "{}", since("1s"));
    assert!(since("2020-01-31T14:30:00Z").contains("two"));
    let none = scratch.lanewright(&["logs", "r", "SL-2", "--since", "1s"]);
    assert!(none.stderr.contains("without --since there are 1"), "{}", none.stderr);
    let none = scratch.lanewright(&["logs", "r", "SL-2", "--tail", "0"]);
    assert!(none.stderr.contains("--tail 0 shows no lines"), "{}{}", none.stdout, none.stderr);
    assert_eq!(scratch.lanewright(&["logs", "r", "--since", "soon"]).code, 2);
    assert_eq!(scratch.lanewright(&["logs", "r", "SL-1", "engineer"]).stdout.lines().count(), 1);
    let json = scratch.lanewright(&["logs", "r", "SL-2", "--format", "json"]).stdout;
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[1]["line"], &lines[1]["job"]["lane"]), (&"two".into(), &"SL-2".into()));
    assert_eq!((&lines[1]["lane"], &lines[1]["agent"]), (&"SL-2".into(), &"engineer".into()));
    assert_eq!(lines[1].get("time"), Some(&serde_json::Value::Null), "nobody saw when it was written");
    let wrong = scratch.lanewright(&["logs", "r", "SL-3"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("the run has no lane `SL-3`\nhint: did you mean `SL-"), "{}", wrong.stderr);
    let wrong = scratch.lanewright(&["logs", "r", "SL-1", "enginer"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean `engineer`?"), "{}", wrong.stderr);
}

#[test]
fn followed_logs_go_on_until_the_run_ends() {
    let scratch = TestEnv::new();
    let mut run = Run::begun(&scratch, "r", 0);
    let lock = run.hold();
    let first = run.job("SL-1", attempt(), "one\nhalf");
    let mut follow = Watched::over(start(&scratch, &["logs", "r", "--follow"]));
    follow.wait_for("one");
    run.write(&first, " a line\n");
    follow.wait_for("half a line");
    let second = run.job("SL-2", attempt(), "from another\n");
    follow.wait_for("from another");
    run.write(&first, "last");
    run.exited(&first, 0);
    follow.wait_for("last");
    run.exited(&second, 0);
    run.finished(RunOutcome::Done);
    let expected = [
        "SL-1 | ==> engineer/1 attempt 1",
        "SL-1 | one",
        "SL-1 | half a line",
        "SL-2 | ==> engineer/1 attempt 1",
        "SL-2 | from another",
        "SL-1 | last",
        "SL-1 | <== engineer/1 attempt 1 · exit 0 after 0s",
        "SL-2 | <== engineer/1 attempt 1 · exit 0 after 0s",
    ];
    let lines: Vec<String> = follow.end().iter().map(|line| line.get(9..).unwrap_or_default().to_owned()).collect();
    assert_eq!(lines, expected);
    drop(lock);
}

#[test]
fn a_live_run_is_asked_to_stop() {
    let scratch = TestEnv::new();
    let mut run = waiting_run(&scratch, "r");
    let _lock = run.hold();
    let stop = scratch.start_with(&["stop", "r", "SL-1", "--force"], |command| command);
    assert_eq!(run.request(), Request::Stop { lane: Some(lane("SL-1")), force: true });
    run.say(Event::StopRequested { lane: None, reason: StopReason::Request, force: true });
    run.say(Event::StopRequested { lane: Some(lane("SL-1")), reason: StopReason::Request, force: true });
    let ended = stop.wait();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("Lane SL-1 of run r is stopping"), "{}", ended.stdout);
}

#[test]
fn stop_of_dead_run_ends_its_jobs_and_keeps_the_log() {
    let scratch = TestEnv::new();
    let mut run = waiting_run(&scratch, "r");
    assert_eq!(scratch.lanewright(&["stop", "r"]).stdout, "Run r is not running.\n");
    let job = run.job("SL-1", attempt(), "");
    let directory = run.directory.job(&job);
    let spec = JobSpec {
        job,
        steps: vec![CommandLine::Arguments(vec!["sleep".into(), "600".into()])],
        directory: scratch.path("repo"),
        environment: BTreeMap::new(),
        input: None,
        timeout: None,
        kill_after: Duration::from_secs(5),
        heartbeat: Duration::from_secs(5),
        output_limit: None,
        withheld: Vec::new(),
        status: None,
        on_orphan: OnOrphan::Continue,
        redact: Vec::new(),
        runner: None,
        wall: None,
    };
    let launched = process::launch(Path::new(env!("CARGO_BIN_EXE_lanewright")), &directory, &spec).unwrap();
    let log = fs::read(run.directory.log()).unwrap();
    assert_eq!(scratch.lanewright(&["stop", "r", "SL-2"]).stdout, "Lane SL-2 of run r is not running.\n");
    until("the job", || matches!(process::observe(&directory).unwrap(), Observation::Running(_)).then_some(()));
    let ended = scratch.lanewright(&["stop", "r"]);
    assert_eq!(ended.stdout, "Run r was not running; 1 job that went on without it stopped.\n", "{}", ended.stderr);
    let exit = process::wait(&directory, Some(launched)).unwrap();
    assert_eq!(exit.cause, ExitCause::Stopped);
    assert_eq!(fs::read(run.directory.log()).unwrap(), log);
}

#[test]
fn answer_to_inactive_run_is_written_to_log() {
    let scratch = TestEnv::new();
    let mut run = waiting_run(&scratch, "r");
    run.finished(RunOutcome::Blocked);
    let ended = scratch.lanewright(&["reject", "r", "SL-1", "-m", "smaller steps"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(
        ended.stdout,
        "The plan of SL-1 was rejected; the run is not active; continue with:\n  lanewright resume r\n"
    );
    let message = "smaller steps".to_owned();
    assert_eq!(
        run.last(),
        Event::GateAnswered { lane: lane("SL-1"), gate: Approval::Plan.into(), approved: false, message }
    );
    let again = scratch.lanewright(&["approve", "r", "SL-1"]);
    assert_eq!(again.code, 7);
    assert!(again.stderr.contains("its plan was rejected already"), "{}", again.stderr);
}

#[test]
fn answer_to_unasked_gate_is_refused_and_not_logged() {
    let scratch = TestEnv::new();
    let run = waiting_run(&scratch, "r");
    let log = fs::read(run.directory.log()).unwrap();
    let refused = [
        (&["approve", "r", "SL-1", "--gate", "changes"][..], 7, "waits for an answer to its plan, not to its changes"),
        (&["approve", "r", "SL-2"], 7, "lane SL-2 does not wait for an answer: it is at waiting"),
        (&["reject", "r", "SL-9"], 2, "the run has no lane `SL-9`"),
    ];
    for lock in [None, Some(run.hold())] {
        for (command, code, message) in &refused {
            let ended = scratch.lanewright(command);
            assert_eq!(ended.code, *code, "held: {}: {}", lock.is_some(), ended.stderr);
            assert!(ended.stderr.contains(message), "{}", ended.stderr);
        }
    }
    assert_eq!(fs::read(run.directory.log()).unwrap(), log);
    assert!(requests::take(&run.directory.requests()).unwrap().requests.is_empty());
}

#[test]
fn an_answer_to_a_live_run_reaches_its_process() {
    let scratch = TestEnv::new();
    let mut run = waiting_run(&scratch, "r");
    let _lock = run.hold();
    let approve = scratch.start_with(&["approve", "r", "SL-1", "--format", "json"], |command| command);
    let message = String::new();
    let answer =
        Request::Answer { lane: lane("SL-1"), gate: Approval::Plan.into(), approved: true, message: message.clone() };
    assert_eq!(run.request(), answer);
    run.say(Event::GateAnswered { lane: lane("SL-1"), gate: Approval::Plan.into(), approved: true, message });
    let ended = approve.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&told["gate"], &told["live"]), (&"plan".into(), &true.into()));
}

#[test]
fn answer_is_recorded_if_the_run_dies_meanwhile() {
    let scratch = TestEnv::new();
    let run = waiting_run(&scratch, "r");
    let lock = run.hold();
    let approve = scratch.start_with(&["approve", "r", "SL-1"], |command| command);
    until("a request", || fs::read_dir(run.directory.requests()).unwrap().next()).unwrap();
    drop(lock);
    let ended = approve.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("lanewright resume r"), "{}", ended.stdout);
    assert!(matches!(run.last(), Event::GateAnswered { approved: true, .. }));
    assert_eq!(fs::read_dir(run.directory.requests()).unwrap().count(), 0, "a later resume would hear it twice");
}
