//! Where everything of Lanewright's is on disk (SPEC §4). Names are made of checked ids, so no path leaves its root.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lanewright_files::directory::{create_directories, entries};
use lanewright_files::{FileError, directory, regular_file};
use lanewright_model::ownership::RUN_LOG_DIRECTORY;
use lanewright_model::{AgentName, JobId, LaneId, PhaseId, ReportFormat, RunId, Timestamp};
use serde::Deserialize;

/// The state of all runs of a repository.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    pub(super) repository: PathBuf,
    checkpoints: Option<PathBuf>,
    pub(super) log: Option<PathBuf>,
    /// What `-C` names, where the caller is elsewhere.
    called_in: Option<PathBuf>,
}

/// What a lock keeps others from.
#[derive(Debug, Clone, Copy)]
pub enum LockScope<'a> {
    /// Running all lanes of a phase.
    Phase(&'a PhaseId),
    /// Running one lane of a phase.
    Lane(&'a PhaseId, &'a LaneId),
    /// Selecting lanes of a phase; held for a moment only.
    Choice(&'a PhaseId),
}

impl StateDirectory {
    /// The state below the root of the repository's main worktree; makes nothing.
    pub fn new(main_worktree_root: &Path) -> Self {
        Self { repository: main_worktree_root.to_owned(), checkpoints: None, log: None, called_in: None }
    }

    /// The same for a caller who names a directory of the repository (`-C`), and has to name it in the next command, too.
    #[must_use]
    pub fn called_in(self, directory: Option<PathBuf>) -> Self {
        Self { called_in: directory, ..self }
    }

    /// The same with another place for `checkpoints.json` (`--checkpoint-path`).
    #[must_use]
    pub fn with_checkpoints(self, path: PathBuf) -> Self {
        Self { checkpoints: Some(path), ..self }
    }

    /// The same with another place for the run log of the one run that is meant (`--log-path`).
    #[must_use]
    pub fn with_log(self, path: PathBuf) -> Self {
        Self { log: Some(path), ..self }
    }

    /// The same with every run log in its usual place.
    #[must_use]
    pub fn with_usual_logs(self) -> Self {
        Self { log: None, ..self }
    }

    /// Whether it is about one run whose log has another place.
    pub fn has_own_log(&self) -> bool {
        self.log.is_some()
    }

    /// The words that call Lanewright for these runs: its name, and flags for what is elsewhere than usual.
    pub fn program(&self) -> Vec<String> {
        let flag = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| [name.to_owned(), path.to_string_lossy().into_owned()])
        };
        let elsewhere =
            [flag("-C", &self.called_in), flag("--checkpoint-path", &self.checkpoints), flag("--log-path", &self.log)];
        std::iter::once("lanewright".to_owned()).chain(elsewhere.into_iter().flatten().flatten()).collect()
    }

    /// Makes the directories, mode 0700, those of the overrides too.
    pub fn create(&self) -> Result<(), FileError> {
        create_directories(&self.repository, &Path::new(RUN_LOG_DIRECTORY).join(LOCKS).join("phases"))?;
        let overrides = [&self.checkpoints, &self.log];
        overrides.into_iter().flatten().filter_map(|path| path.parent()).try_for_each(directory::create_directory)
    }

    /// `.claude/ai-dev-kit/run-logs` in the repository.
    pub fn path(&self) -> PathBuf {
        self.repository.join(RUN_LOG_DIRECTORY)
    }

    /// The file that all runs write their checkpoints to.
    pub fn checkpoints(&self) -> PathBuf {
        self.checkpoints.clone().unwrap_or_else(|| self.path().join("checkpoints.json"))
    }

    pub fn errors(&self) -> PathBuf {
        self.path().join(ERRORS)
    }

    /// The lock file for `scope`; makes its directory.
    pub fn lock(&self, scope: LockScope<'_>) -> Result<PathBuf, FileError> {
        // No id begins with a dot, so no run's directory is ever in the way.
        let relative = Path::new(RUN_LOG_DIRECTORY).join(LOCKS);
        let (directory, name) = match scope {
            LockScope::Phase(phase) => (relative.join("phases"), phase.as_str()),
            LockScope::Lane(phase, lane) => (relative.join("lanes").join(phase.as_str()), lane.as_str()),
            LockScope::Choice(phase) => (relative.join("choices"), phase.as_str()),
        };
        create_directories(&self.repository, &directory)?;
        Ok(self.repository.join(directory).join(format!("{name}.lock")))
    }

    /// The locks of all lanes of `phase` that were ever taken, whatever plan named them.
    pub fn lane_locks(&self, phase: &PhaseId) -> Result<Vec<(LaneId, PathBuf)>, FileError> {
        let path = self.path().join(LOCKS).join("lanes").join(phase.as_str());
        let mut locks: Vec<(LaneId, PathBuf)> = entries(&path)?
            .into_iter()
            .filter_map(|path| {
                let name = path.file_name()?.to_str()?.strip_suffix(".lock")?;
                Some((LaneId::new(name).ok()?, path))
            })
            .collect();
        locks.sort_unstable();
        Ok(locks)
    }

    /// Every run that has a log here, the newest first. A log that cannot be read counts from its last change. With
    /// `StateDirectory::with_log` it is the one run whose log that is.
    pub fn runs(&self) -> Result<Vec<RunId>, FileError> {
        Ok(self.begun(|_| true)?.into_iter().map(|(_, run)| run).collect())
    }

    /// The runs of `phase`, by the first lines of their logs, each with when it began, the newest first. Nothing more is
    /// read of any log.
    pub fn runs_of(&self, phase: &PhaseId) -> Result<Vec<(Timestamp, RunId)>, FileError> {
        self.begun(|first| first.is_some_and(|first| first.phase == *phase))
    }

    fn begun(&self, wanted: impl Fn(Option<&FirstLine>) -> bool) -> Result<Vec<(Timestamp, RunId)>, FileError> {
        if let Some(log) = &self.log {
            let first = Head::of(log).first.filter(|first| wanted(Some(first)));
            return Ok(first.map(|first| (first.ts, first.run_id)).into_iter().collect());
        }
        let begun = |path: PathBuf| {
            let (run, head) = (run_of(&path)?, Head::of(&path));
            let is_wanted = !head.is_foreign && wanted(head.first.as_ref());
            is_wanted.then(|| (head.began(&path), run))
        };
        let mut runs: Vec<_> = entries(&self.path())?.into_iter().filter_map(begun).collect();
        runs.sort_unstable_by(|one, other| other.cmp(one));
        Ok(runs)
    }

    pub fn has(&self, run: &RunId) -> bool {
        let log = self.run(run).log();
        let is_another = |first: FirstLine| self.log.is_some() && first.run_id != *run;
        let is_its = |head: Head| !head.is_foreign && !head.first.is_some_and(is_another);
        log.exists() && is_its(Head::of(&log))
    }

    pub fn run(&self, run: &RunId) -> RunDirectory {
        RunDirectory { root: self.path(), run: run.clone(), log: self.log.clone() }
    }
}

const LOCKS: &str = ".locks";

const ERRORS: &str = "errors.jsonl";

#[derive(Debug, Clone)]
pub struct RunDirectory {
    root: PathBuf,
    run: RunId,
    log: Option<PathBuf>,
}

impl RunDirectory {
    /// Makes the run's directory, mode 0700.
    pub fn create(&self) -> Result<(), FileError> {
        create_directories(&self.root, &Path::new(self.run.as_str()).join("requests"))
    }

    /// Makes the run's directory, mode 0700, unless a run has that name. `false`: one has.
    pub fn create_new(&self) -> Result<bool, FileError> {
        // A log with a path of its own is the user's choice, and the same for every name.
        let has_log = self.log.is_none() && self.log().exists();
        Ok(!has_log && directory::create_new(&self.root, OsStr::new(self.run.as_str()))?)
    }

    pub fn log(&self) -> PathBuf {
        self.log.clone().unwrap_or_else(|| self.root.join(format!("{}.jsonl", self.run)))
    }

    pub fn directory(&self) -> PathBuf {
        self.root.join(self.run.as_str())
    }

    pub fn plan(&self) -> PathBuf {
        self.directory().join("plan.json")
    }

    /// The pinned plan before it was replaced last.
    pub fn previous_plan(&self) -> PathBuf {
        self.directory().join("plan.previous.json")
    }

    /// A job's directory: its specification, output and exit.
    pub fn job(&self, job: &JobId) -> PathBuf {
        self.directory().join(job.directory())
    }

    /// Where other processes leave requests for the process that runs the run.
    pub fn requests(&self) -> PathBuf {
        self.directory().join("requests")
    }

    /// The lock of the process that runs the run.
    pub fn lock(&self) -> PathBuf {
        self.directory().join("run.lock")
    }

    /// The lock of the process that runs a gate of the run by hand, beside which no process may work on the run.
    pub fn gate_lock(&self) -> PathBuf {
        self.directory().join("gate.lock")
    }

    pub fn escalations(&self) -> PathBuf {
        self.directory().join("escalations.md")
    }

    /// The execution report as it was when the run last ended (SPEC §11).
    pub fn report(&self, format: ReportFormat) -> PathBuf {
        self.directory().join(match format {
            ReportFormat::Text => "report.txt",
            ReportFormat::Json => "report.json",
            ReportFormat::Markdown => "report.md",
            ReportFormat::Html => "report.html",
            ReportFormat::Junit => "junit.xml",
            ReportFormat::CodeQuality => "gl-code-quality-report.json",
        })
    }

    pub fn pull_request(&self, lane: &LaneId) -> PathBuf {
        self.directory().join("pull-requests").join(format!("{lane}.md"))
    }

    /// The summaries that the agents of a lane wrote where git ignores them, until the lane is merged.
    pub fn summaries(&self, lane: &LaneId) -> PathBuf {
        self.directory().join("summaries").join(lane.as_str())
    }

    pub fn errors(&self) -> PathBuf {
        self.directory().join(ERRORS)
    }
}

/// What a lane and its agents have below the worktree root, beside the worktrees themselves.
#[derive(Debug, Clone)]
pub struct LaneDirectory {
    pub(super) root: PathBuf,
    pub(super) relative: PathBuf,
}

impl LaneDirectory {
    /// The directory of `lane` in `run`; the worktree root must be there before anything is written.
    pub fn new(worktree_root: &Path, run: &RunId, lane: &LaneId) -> Self {
        Self { root: worktree_root.to_owned(), relative: Path::new(run.as_str()).join(lane.as_str()) }
    }

    pub fn path(&self) -> PathBuf {
        self.root.join(&self.relative)
    }

    pub fn task_file(&self) -> PathBuf {
        self.path().join("task.json")
    }

    pub fn status_file(&self, agent: &AgentName) -> PathBuf {
        self.path().join("agents").join(agent.as_str()).join("status.json")
    }
}

/// The run whose log is at `path`, by its name.
pub(super) fn run_of(path: &Path) -> Option<RunId> {
    RunId::new(path.file_name()?.to_str()?.strip_suffix(".jsonl")?).ok()
}

/// When a run began according to its log, else when the log was changed last.
pub(super) fn began(log: &Path) -> Timestamp {
    Head::of(log).began(log)
}

fn changed(log: &Path) -> Option<Timestamp> {
    moment(fs::metadata(log).ok()?.modified().ok()?)
}

/// What the beginning of a log tells.
#[derive(Default)]
struct Head {
    first: Option<FirstLine>,
    /// Whether another program wrote it: it names events, and its lines have neither a number nor a checksum. A damaged log
    /// of Lanewright's has either.
    is_foreign: bool,
}

impl Head {
    /// Nothing is known of a log that cannot be read.
    fn of(log: &Path) -> Self {
        let mut bytes = Vec::new();
        let read = regular_file::open(log).and_then(|file| {
            let mut file = BufReader::with_capacity(FIRST_LINE, file.take(HEAD));
            file.read_until(b'\n', &mut bytes)?;
            let first = serde_json::from_slice(&bytes).ok();
            if !bytes.starts_with(b"{\"seq\":") {
                file.read_to_end(&mut bytes)?;
            }
            Ok(first)
        });
        let has = |part: &[u8]| bytes.windows(part.len()).any(|found| found == part);
        let is_foreign = || !bytes.starts_with(b"{\"seq\":") && has(b"\"event\"") && !has(b",\"crc\":\"");
        read.map(|first| Self { first, is_foreign: is_foreign() }).unwrap_or_default()
    }

    fn began(&self, log: &Path) -> Timestamp {
        let first = self.first.as_ref().map(|first| first.ts);
        first.or_else(|| changed(log)).unwrap_or(Timestamp::from_unix_millis(0))
    }
}

/// The first line of a log is rarely longer, in bytes.
const FIRST_LINE: usize = 2048;

/// How many bytes of a log show which program wrote it.
const HEAD: u64 = 1 << 16;

/// The time of a file; `None`: it is before 1970, or far from now.
pub(super) fn moment(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp::from_unix_millis)
}

#[derive(Deserialize)]
struct FirstLine {
    ts: Timestamp,
    run_id: RunId,
    phase: PhaseId,
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::journal::Journal;
    use crate::samples::{at, lane, noted, phase};
    use lanewright_model::JobRole;

    fn state() -> (tempfile::TempDir, StateDirectory) {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        (root, state)
    }

    #[test]
    fn state_directory_layout_is_private() {
        let (root, state) = state();
        state.create().unwrap();
        let run = state.run(&RunId::new("r1").unwrap());
        run.create().unwrap();
        let base = root.path().join(".claude/ai-dev-kit/run-logs");
        assert_eq!(state.checkpoints(), base.join("checkpoints.json"));
        assert_eq!(run.log(), base.join("r1.jsonl"));
        let job = JobId { lane: Some(lane()), role: JobRole::Tests, number: 1 };
        assert_eq!(run.job(&job), base.join("r1/lanes/SL-1/tests-1"));
        for path in [base, run.directory(), run.requests()] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn linked_state_directory_is_refused() {
        let (root, state) = state();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), root.path().join(".claude")).unwrap();
        assert!(matches!(state.create(), Err(FileError::SymbolicLink { path }) if path.ends_with(".claude")));
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn path_overrides_move_checkpoints_and_log() {
        let (root, state) = state();
        let place = |name: &str| root.path().join("deep/er").join(name);
        let state = state.with_checkpoints(place("c.json")).with_log(place("l.jsonl"));
        state.create().unwrap();
        assert!(root.path().join("deep/er").is_dir());
        assert_eq!(state.checkpoints(), place("c.json"));
        let run = RunId::new("r1").unwrap();
        assert_eq!(state.run(&run).log(), place("l.jsonl"));
        let (checkpoints, log) = (place("c.json"), place("l.jsonl"));
        let flags = ["--checkpoint-path", checkpoints.to_str().unwrap(), "--log-path", log.to_str().unwrap()];
        assert_eq!(state.program()[1..], flags);
        assert_eq!(state.runs().unwrap(), []);
        let mut journal = Journal::create(&log, &run, &phase()).unwrap();
        journal.append(at(1), &noted(None, "x")).unwrap();
        journal.sync().unwrap();
        assert_eq!(state.runs().unwrap(), std::slice::from_ref(&run));
        assert!(state.has(&run) && !state.has(&RunId::new("r2").unwrap()));
        assert_eq!(state.with_usual_logs().runs().unwrap(), []);
    }

    #[test]
    fn runs_are_listed_newest_first() {
        let (_root, state) = state();
        assert_eq!(state.runs().unwrap(), []);
        state.create().unwrap();
        for (name, millis) in [("old", 1), ("new", 9_000), ("middle", 5_000)] {
            let run = RunId::new(name).unwrap();
            let mut journal = Journal::create(&state.run(&run).log(), &run, &phase()).unwrap();
            journal.append(at(millis), &noted(None, "x")).unwrap();
            journal.sync().unwrap();
        }
        fs::write(state.path().join("empty.jsonl"), "").unwrap();
        let ancient = File::options().write(true).open(state.path().join("empty.jsonl")).unwrap();
        ancient.set_modified(UNIX_EPOCH).unwrap();
        for strange in ["-x.jsonl", "a b.jsonl", "checkpoints.json", ".jsonl"] {
            fs::write(state.path().join(strange), "").unwrap();
        }
        let runs: Vec<String> = state.runs().unwrap().into_iter().map(String::from).collect();
        assert_eq!(runs, ["new", "middle", "old", "empty"]);
    }

    #[test]
    fn runs_of_phase_are_found_by_first_lines() {
        let (_root, state) = state();
        state.create().unwrap();
        let other = PhaseId::new("P2").unwrap();
        for (name, phase, millis) in [("old", &phase(), 1), ("other", &other, 2), ("new", &phase(), 3)] {
            let run = RunId::new(name).unwrap();
            let mut journal = Journal::create(&state.run(&run).log(), &run, phase).unwrap();
            journal.append(at(millis), &noted(None, "x")).unwrap();
            journal.sync().unwrap();
        }
        // What follows the first line does not matter.
        let old = state.run(&RunId::new("old").unwrap()).log();
        let line = fs::read_to_string(&old).unwrap();
        fs::write(&old, format!("{line}damaged\n")).unwrap();
        fs::write(state.path().join("empty.jsonl"), "").unwrap();
        fs::write(state.path().join("foreign.jsonl"), line.replace("\"seq\":1,", "").replace("crc", "x")).unwrap();
        let runs = state.runs_of(&phase()).unwrap();
        let names: Vec<_> = runs.iter().map(|(began, run)| (*began, run.as_str())).collect();
        assert_eq!(names, [(at(3), "new"), (at(1), "old")]);
        assert_eq!(state.with_log(old).runs_of(&other).unwrap(), []);
    }

    #[test]
    fn lock_scopes_have_distinct_files() {
        let (_root, state) = state();
        let (a, ab, b, c) = ("a", "a.b", "b", "b.c");
        let lane = |lane: &str| LaneId::new(lane).unwrap();
        let phase = |phase: &str| PhaseId::new(phase).unwrap();
        let paths = [
            state.lock(LockScope::Phase(&phase(ab))).unwrap(),
            state.lock(LockScope::Choice(&phase(ab))).unwrap(),
            state.lock(LockScope::Lane(&phase(ab), &lane(b))).unwrap(),
            state.lock(LockScope::Lane(&phase(a), &lane(b))).unwrap(),
            state.lock(LockScope::Lane(&phase(a), &lane(c))).unwrap(),
        ];
        let different: std::collections::HashSet<_> = paths.iter().collect();
        assert_eq!(different.len(), paths.len());
        assert!(paths.iter().all(|path| path.parent().unwrap().is_dir()));
    }

    #[test]
    fn foreign_logs_are_not_runs() {
        let (_root, state) = state();
        state.create().unwrap();
        let run = |name: &str| RunId::new(name).unwrap();
        let mut journal = Journal::create(&state.run(&run("r1")).log(), &run("r1"), &phase()).unwrap();
        journal.append(at(1), &noted(None, "\"event\"")).unwrap();
        journal.sync().unwrap();
        let ours = fs::read(state.run(&run("r1")).log()).unwrap();
        let first_byte_changed = [b"X", &ours[1..]].concat();
        for (name, text) in [
            ("other", &b"{\"ts\":\"2026-01-01T00:00:00Z\",\"run_id\":\"x\",\"event\":\"lane_start\"}\n"[..]),
            ("empty", b""),
            ("garbage", b"nonsense"),
            ("hurt", &first_byte_changed),
            ("torn", &ours[..40]),
        ] {
            fs::write(state.run(&run(name)).log(), text).unwrap();
        }
        let mut runs: Vec<String> = state.runs().unwrap().into_iter().map(String::from).collect();
        runs.sort();
        assert_eq!(runs, ["empty", "garbage", "hurt", "r1", "torn"]);
        assert!(state.has(&run("hurt")) && !state.has(&run("other")));
    }
}
