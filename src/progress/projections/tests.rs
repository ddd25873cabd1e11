use std::fs;
use std::sync::{Arc, Mutex};

use lanewright_model::event::{LaneStage, SnapshotReason};
use lanewright_model::testing::{Story, agent, lane, plan};
use lanewright_store::checkpoints::{self, CheckpointEntry};

use super::*;

/// A worktree root, a state directory, and which lanes were removed.
struct Scene {
    root: tempfile::TempDir,
    removed: Arc<Mutex<Vec<LaneId>>>,
}

impl Scene {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap(), removed: Arc::default() }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// The story, with its worktrees here.
    fn told(&self, story: &Story) -> Vec<Record> {
        let mut records = story.records.clone();
        if let Event::RunStarted(started) = &mut records[0].event {
            started.options.worktree_root = self.root.path().to_owned();
        }
        records
    }

    fn begin(&self, history: &[Record]) -> ProjectionWriter {
        let removed = self.removed.clone();
        let remove = Box::new(move |lane: &LaneId| removed.lock().unwrap().push(lane.clone()));
        let files = RunFiles {
            log_path: self.path("run.jsonl"),
            checkpoint_path: self.path("checkpoints.json"),
            program: vec!["lanewright".to_owned()],
            repository: self.root.path().to_owned(),
        };
        let plan = Arc::new(plan(&[("SL-1", &[], &[]), ("SL-2", &[], &[])]));
        ProjectionWriter::begin(files, vec![self.path("errors.jsonl")], remove, &plan, Arc::new(history.to_vec()))
            .unwrap()
    }

    /// Lane, stage and status of what `checkpoints.json` holds.
    fn checkpoints(&self) -> Vec<String> {
        let entries = checkpoints::read(&self.path("checkpoints.json")).unwrap();
        let words = |entry| match entry {
            CheckpointEntry::Record(record) => {
                format!("{} {} {}", record.lane.map_or("-".into(), String::from), record.stage, record.status)
            }
            CheckpointEntry::Foreign { index, .. } => format!("foreign {index}"),
        };
        let mut all: Vec<String> = entries.into_iter().map(words).collect();
        // What has not begun has a record, too.
        all.retain(|line| !line.starts_with("- ") && line != "SL-2 before_lane_start ready");
        all.sort();
        all
    }

    fn state_of(&self, lane: &str) -> Option<String> {
        let path = self.path(&format!("P1-SL-AUTH-20251227/{lane}/task.json"));
        lane_files::read_task(&path).unwrap().map(|task| task.state)
    }

    fn errors(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.path("errors.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn opened() -> Story {
    Story::begun().opened("SL-1", 1)
}

fn rolled_back(story: Story) -> Story {
    story.then(Event::LaneRolledBack { lane: lane("SL-1"), integration: None, kept: vec![], point: None })
}

/// Once the writer, and so its process, has ended.
const OPENED: [&str; 2] = ["SL-1 after_lane_start ready", "SL-1 before_lane_start complete"];

#[test]
fn records_during_one_write_are_batched_into_one() {
    let (news, inbox) = mpsc::channel();
    let scene = Scene::new();
    let records = scene.told(&opened().blocked("SL-1", "main is dirty"));
    let mut state = Pending::new(
        RunFiles {
            log_path: "/log".into(),
            checkpoint_path: "/checkpoints.json".into(),
            program: vec!["lanewright".to_owned()],
            repository: "/repo".into(),
        },
        &Arc::new(plan(&[("SL-1", &[], &[])])),
    );
    news.send(records.clone()).unwrap();
    let mut news = Some(news);
    let mut written = Vec::new();
    follow(&inbox, &mut state, &mut Pace::new(Instant::now()), |state, due, pace| {
        if let Some(news) = news.take() {
            for record in records.iter().cycle().take(1000) {
                news.send(vec![record.clone()]).unwrap();
            }
        }
        written.push((due, state.checkpoints.len()));
        state.news = News::default();
        pace.wrote_checkpoints(1, Instant::now());
        pace.wrote_small_files(Instant::now());
    });
    // What comes during the write waits, and the end leaves it to the last write.
    assert_eq!(written, [(News { checkpoints: true, is_urgent: true, small_files: true }, 3)]);
    assert!(state.news.checkpoints && state.news.is_urgent);
}

#[test]
fn everything_is_written_when_the_writer_is_gone() {
    for finish in [true, false] {
        let scene = Scene::new();
        let writer = scene.begin(&[]);
        let records = scene.told(&opened().moved("SL-2", LaneStage::Waiting, LaneStage::Init));
        records.iter().for_each(|record| writer.send(std::slice::from_ref(record)));
        if finish {
            writer.finish().unwrap()
        } else {
            drop(writer)
        }
        assert_eq!(scene.checkpoints(), OPENED);
        assert_eq!(scene.state_of("SL-1").as_deref(), Some("IMPLEMENTATION"));
        assert_eq!(scene.state_of("SL-2"), None, "SL-2 holds no worktree");
    }
}

#[test]
fn projections_missed_by_crash_are_written_at_start() {
    let scene = Scene::new();
    scene.begin(&scene.told(&Story::begun().opened("SL-2", 3))).finish().unwrap();
    let history = scene.told(&Story::begun().opened("SL-2", 3).failed("SL-2").opened("SL-1", 1));
    scene.begin(&history).finish().unwrap();
    let expected = [OPENED[0], OPENED[1], "SL-2 after_lane_start failed", "SL-2 before_lane_start complete"];
    assert_eq!(scene.checkpoints(), expected);
    assert_eq!(scene.state_of("SL-1").as_deref(), Some("IMPLEMENTATION"));
    assert_eq!(scene.errors().len(), 1, "{:?}", scene.errors());
    scene.begin(&history).finish().unwrap();
    assert_eq!(scene.errors().len(), 1, "the failure was told again: {:?}", scene.errors());
}

#[test]
fn a_resume_writes_its_session_into_every_open_lane() {
    let scene = Scene::new();
    let history = scene.told(&opened());
    let writer = scene.begin(&history);
    writer.send(&scene.told(&opened().resumed())[history.len()..]);
    writer.finish().unwrap();
    let path = scene.path("P1-SL-AUTH-20251227/SL-1/task.json");
    assert_eq!(lane_files::read_task(&path).unwrap().unwrap().session_id, "second-session");
}

#[test]
fn what_others_wrote_survives() {
    let scene = Scene::new();
    fs::write(scene.path("checkpoints.json"), r#"[{"stage": "theirs", "x": 1}]"#).unwrap();
    scene.begin(&scene.told(&opened())).finish().unwrap();
    assert_eq!(scene.checkpoints(), [OPENED[0], OPENED[1], "foreign 0"]);
    assert!(fs::read_to_string(scene.path("checkpoints.json")).unwrap().contains(r#"{"stage": "theirs", "x": 1}"#));
}

#[test]
fn unreadable_checkpoint_file_is_kept_and_reported() {
    let scene = Scene::new();
    fs::write(scene.path("checkpoints.json"), "[{]").unwrap();
    let writer = scene.begin(&scene.told(&opened()));
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:1:3: ", scene.path("checkpoints.json").display())), "{error}");
    assert_eq!(fs::read_to_string(scene.path("checkpoints.json")).unwrap(), "[{]");
    assert_eq!(scene.state_of("SL-1").as_deref(), Some("IMPLEMENTATION"));
}

#[test]
fn what_could_not_be_written_is_written_once_it_can_be() {
    let scene = Scene::new();
    fs::write(scene.path("checkpoints.json"), "[{]").unwrap();
    let writer = scene.begin(&scene.told(&opened()));
    fs::write(scene.path("checkpoints.json"), "[]").unwrap();
    writer.finish().unwrap();
    assert_eq!(scene.checkpoints(), OPENED);
}

#[test]
fn missing_worktree_root_fails_only_lane_files() {
    let scene = Scene::new();
    let mut records = scene.told(&opened());
    if let Event::RunStarted(started) = &mut records[0].event {
        started.options.worktree_root = scene.path("gone");
    }
    let error = scene.begin(&records).finish().unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
    assert_eq!(scene.checkpoints(), OPENED);
}

#[test]
fn directory_of_finished_lane_is_not_created_again() {
    for story in [opened().merged("SL-1", 'd'), rolled_back(opened())] {
        let scene = Scene::new();
        let writer = scene.begin(&[]);
        let late = story.moved("SL-1", LaneStage::Complete, LaneStage::Cleanup);
        writer.send(&scene.told(&late));
        writer.finish().unwrap();
        assert_eq!(*scene.removed.lock().unwrap(), [lane("SL-1")]);
        assert_eq!(scene.state_of("SL-1"), None);
    }
}

#[test]
fn leftover_lane_directory_is_removed_at_start() {
    let scene = Scene::new();
    let writer = scene.begin(&scene.told(&rolled_back(opened())));
    assert_eq!(*scene.removed.lock().unwrap(), [lane("SL-1")], "removed later, it would take the new one with it");
    writer.finish().unwrap();
    let again = Scene::new();
    again.begin(&again.told(&rolled_back(opened()).opened("SL-1", 1))).finish().unwrap();
    assert_eq!(*again.removed.lock().unwrap(), [], "the lane lives again");
    assert_eq!(again.state_of("SL-1").as_deref(), Some("IMPLEMENTATION"));
}

#[test]
fn failures_are_written_once_those_of_the_history_too() {
    let scene = Scene::new();
    let history = scene.told(&opened().noted("SL-1"));
    let writer = scene.begin(&history);
    let snapshot = Event::SnapshotFailed {
        lane: lane("SL-1"),
        agent: Some(agent("engineer")),
        reason: SnapshotReason::Failure,
        error: "no space".to_owned(),
    };
    writer.send(&scene.told(&opened().noted("SL-1").noted("SL-1").then(snapshot).failed("SL-1"))[history.len()..]);
    writer.finish().unwrap();
    let errors = scene.errors();
    let types: Vec<&str> = errors.iter().map(|error| error["error_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["validation", "validation", "state", "validation"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&errors[1]).unwrap(), @r#"
    {
      "timestamp": "2025-12-27T10:00:10.000Z",
      "phase": "P1",
      "plan": "/repo/plans/phase 1.toml",
      "lane": "SL-1",
      "task": "1",
      "specialist": "engineer",
      "error_type": "validation",
      "details": "TypeError: undefined is not a function\n`cargo test auth` exited with 101\nTest failed: AuthService.register"
    }
    "#);
    assert!(errors[3]["details"].as_str().unwrap().starts_with("the lane failed: TypeError"));
}
