//! What is packed piece by piece is what is packed at once.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use lanewright_git::Repository;
use lanewright_model::event::{Event, RunOptions, SnapshotReason};
use lanewright_model::testing::{self, at, plan, tests_of};
use lanewright_model::{JobSpec, LaneId, OnOrphan, RunId};
use lanewright_store::{Journal, StateDirectory};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::state_sync::OwnPushes;

/// A run in a repository of its own.
struct Run {
    root: TempDir,
    source: Source,
    journal: Journal,
}

fn started(base: &str) -> Event {
    let options = RunOptions { max_parallel: 1, ..testing::run_options() };
    let (run_id, base_commit) = (RunId::new("r1").unwrap(), CommitId::new(base).unwrap());
    Event::RunStarted(Box::new(RunStarted { run_id, base_commit, options, ..testing::run_started() }))
}

fn git(root: &TempDir, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(root.path()).args(["-c", "user.name=n", "-c", "user.email=e"]).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Run {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        git(&root, &["init", "--quiet", "--initial-branch=main"]);
        git(&root, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
        let state = StateDirectory::new(root.path());
        state.create().unwrap();
        let run = RunId::new("r1").unwrap();
        let directory = state.run(&run);
        directory.create().unwrap();
        let plan = plan(&[("A", &[], &[])]);
        fs::write(directory.plan(), serde_json::to_vec(&plan).unwrap()).unwrap();
        let mut journal = Journal::create(&directory.log(), &run, &plan.phase).unwrap();
        journal.append(at(0), &started(&git(&root, &["rev-parse", "HEAD"]))).unwrap();
        journal.sync().unwrap();
        let repository = Repository::locate(root.path()).unwrap();
        let source = Source { repository, directory, run, host: "h".into(), claim: None, pushes: OwnPushes::default() };
        Self { root, source, journal }
    }

    fn note(&mut self, count: usize) {
        for _ in 0..count {
            self.journal.append(at(1), &Event::Noted { lane: None, message: "n".into() }).unwrap();
        }
        self.journal.sync().unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.source.directory.directory().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        for above in path.parent().unwrap().ancestors().filter(|above| above.is_file() || above.is_symlink()) {
            fs::remove_file(above).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        self.remove(name);
        fs::write(path, text).unwrap();
    }

    fn remove(&self, name: &str) {
        let path = self.path(name);
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).unwrap();
        } else if path.is_symlink() || path.exists() {
            fs::remove_file(path).unwrap();
        }
    }

    /// Writes the same number of bytes into the same file, whose time of modification stays.
    fn overwrite(&self, name: &str, letter: char) {
        let path = self.path(name);
        let Some(before) = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file) else { return };
        let text = letter.to_string().repeat(usize::try_from(before.len()).unwrap());
        let changed = |file: &fs::Metadata| (file.ctime(), file.ctime_nsec());
        while changed(&fs::symlink_metadata(&path).unwrap()) == changed(&before) {
            fs::write(&path, &text).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(before.modified().unwrap()).unwrap();
        }
    }

    fn specify(&self, job: &str, secret: &str) {
        let spec = JobSpec {
            job: tests_of("A", 1),
            steps: Vec::new(),
            directory: "/".into(),
            environment: BTreeMap::from([("A_TOKEN".to_owned(), secret.to_owned())]),
            input: None,
            timeout: None,
            kill_after: Default::default(),
            heartbeat: Default::default(),
            output_limit: None,
            withheld: Vec::new(),
            status: None,
            on_orphan: OnOrphan::Continue,
            redact: Vec::new(),
            runner: None,
            wall: None,
        };
        let spec = serde_json::to_string(&spec).unwrap();
        self.write(&format!("lanes/{job}/spec.json"), &spec);
    }

    /// Packs with `packer`, and everything at once: both must be the same. Returns what the commit has.
    fn pack(&self, packer: &mut Packer) -> String {
        packer.files.assume_stable();
        let changed = packer.pack(&self.source).unwrap();
        let whole = Packer::default().pack(&self.source).unwrap();
        let listed = |packed: &Packed| git(&self.root, &["ls-tree", "-r", packed.commit.as_str()]);
        assert_eq!(listed(&changed), listed(&whole));
        assert_eq!((changed.commit, changed.log), (whole.commit.clone(), whole.log));
        git(&self.root, &["ls-tree", "-r", whole.commit.as_str()])
    }
}

const NAMES: &[&str] = &["a.md", "lanes/A/1.md", "lanes/A/2.json", "lanes/A", "lanes/B/c/d/output.log", "e"];

#[derive(Debug, Clone)]
enum Change {
    Write(usize, u8),
    Overwrite(usize, u8),
    Remove(usize),
    Link(usize),
    Rename(usize, usize),
    Specify(u8),
    Note(usize),
    Forget,
}

fn change() -> impl Strategy<Value = Change> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), 0..4u8).prop_map(|(name, text)| Change::Write(name, text)),
        3 => (name(), 0..4u8).prop_map(|(name, text)| Change::Overwrite(name, text)),
        2 => name().prop_map(Change::Remove),
        1 => name().prop_map(Change::Link),
        1 => (name(), name()).prop_map(|(from, to)| Change::Rename(from, to)),
        2 => (0..4u8).prop_map(Change::Specify),
        2 => (1..700usize).prop_map(Change::Note),
        1 => Just(Change::Forget),
    ]
}

/// The secret or the text of number `which`; the texts hold the secrets.
fn secret(which: u8) -> String {
    format!("s3cr3t-{which}")
}

fn apply(run: &mut Run, change: &Change) {
    match *change {
        Change::Write(name, text) => run.write(NAMES[name], &format!("\"with {}\"", secret(text))),
        Change::Overwrite(name, text) => run.overwrite(NAMES[name], char::from(b'a' + text)),
        Change::Remove(name) => run.remove(NAMES[name]),
        Change::Link(name) => {
            run.write(NAMES[name], "");
            run.remove(NAMES[name]);
            symlink("/etc/passwd", run.path(NAMES[name])).unwrap();
        }
        Change::Rename(from, to) if run.path(NAMES[from]).is_file() && from != to => {
            let text = fs::read_to_string(run.path(NAMES[from])).unwrap();
            run.write(NAMES[to], "");
            if run.path(NAMES[from]).is_file() {
                fs::rename(run.path(NAMES[from]), run.path(NAMES[to])).unwrap();
            } else {
                run.write(NAMES[to], &text);
            }
        }
        Change::Rename(..) => {}
        Change::Specify(which) => run.specify("B/c", &secret(which)),
        Change::Note(count) => run.note(count),
        Change::Forget => {
            git(&run.root, &["update-ref", "-d", "refs/lanewright/outgoing/r1"]);
            git(&run.root, &["gc", "--quiet", "--prune=now"]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn incremental_pack_equals_full_pack(
        changes in prop::collection::vec(prop::collection::vec(change(), 1..4), 1..8)
    ) {
        let (mut run, mut packer) = (Run::new(), Packer::default());
        run.pack(&mut packer);
        for some in &changes {
            some.iter().for_each(|change| apply(&mut run, change));
            run.pack(&mut packer);
        }
    }
}

#[test]
fn change_with_same_size_and_mtime_is_packed() {
    let (run, mut packer) = (Run::new(), Packer::default());
    run.write("a.md", "aaaa");
    let before = run.pack(&mut packer);
    run.overwrite("a.md", 'b');
    assert_ne!(run.pack(&mut packer), before);
}

#[test]
fn removed_and_linked_files_are_not_packed() {
    let (run, mut packer) = (Run::new(), Packer::default());
    ["a.md", "lanes/A/b.md", "c"].iter().for_each(|name| run.write(name, "x"));
    run.pack(&mut packer);
    run.remove("lanes/A");
    run.remove("a.md");
    symlink("c", run.path("a.md")).unwrap();
    run.remove("c");
    run.write("c/d", "x");
    let listed = run.pack(&mut packer);
    let files: Vec<&str> = listed.lines().filter_map(|line| line.split_once("files/")).map(|it| it.1).collect();
    assert_eq!(files, ["c/d", "plan.json"]);
}

#[test]
fn new_secret_is_removed_from_unchanged_files() {
    let (run, mut packer) = (Run::new(), Packer::default());
    run.write("a.md", "with s3cr3t-1");
    run.pack(&mut packer);
    run.specify("A", "s3cr3t-1");
    run.pack(&mut packer);
    assert_eq!(git(&run.root, &["show", "refs/lanewright/outgoing/r1:files/a.md"]), "with [redacted:A_TOKEN]");
}

#[test]
fn replaced_log_or_plan_is_read_from_the_start() {
    let (mut run, mut packer) = (Run::new(), Packer::default());
    run.note(1100);
    run.pack(&mut packer);
    let log = fs::read_to_string(run.source.directory.log()).unwrap();
    let shorter: String = log.split_inclusive('\n').take(600).collect();
    fs::write(run.source.directory.log(), shorter).unwrap();
    let listed = run.pack(&mut packer);
    assert!(listed.contains("log/000002.jsonl") && !listed.contains("log/000003.jsonl"), "{listed}");
    let plan = plan(&[("A", &[], &[]), ("B", &[], &[])]);
    fs::write(run.source.directory.plan(), serde_json::to_vec(&plan).unwrap()).unwrap();
    run.pack(&mut packer);
    assert_eq!(packer.log.state.unwrap().plan().lanes.len(), 2);
}

#[test]
fn existing_snapshots_of_the_log_are_packed() {
    let (mut run, mut packer) = (Run::new(), Packer::default());
    let head = CommitId::new(&git(&run.root, &["rev-parse", "HEAD"])).unwrap();
    let lane = LaneId::new("A").unwrap();
    let name = |reason: SnapshotReason| format!("refs/lanewright/checkpoint/P1-A/{}", reason.word());
    let taken = |reason: SnapshotReason| Event::snapshot(lane.clone(), None, reason, head.clone(), name(reason));
    let reasons = [SnapshotReason::External, SnapshotReason::Rollback];
    for reason in reasons {
        git(&run.root, &["update-ref", &name(reason), head.as_str()]);
        run.journal.append(at(1), &taken(reason)).unwrap();
    }
    run.journal.append(at(1), &taken(SnapshotReason::Stop)).unwrap();
    let rolled_back =
        Event::LaneRolledBack { lane: lane.clone(), integration: None, kept: reasons.map(name).to_vec(), point: None };
    run.journal.append(at(2), &rolled_back).unwrap();
    run.note(1);
    let manifest = packer.pack(&run.source).unwrap().manifest;
    let names: Vec<&String> = manifest.references.keys().collect();
    assert_eq!(names, [&name(SnapshotReason::External), &name(SnapshotReason::Rollback)]);
    run.pack(&mut packer);
}
