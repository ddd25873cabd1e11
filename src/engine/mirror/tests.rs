use std::fs;
use std::sync::{Arc, Mutex};

use super::*;
use crate::event::{LaneStage, SnapshotReason};
use crate::store::checkpoints::{self, CheckpointEntry};
use crate::view::testing::{Story, agent, lane, plan};

/// A worktree root, a state directory, and which lanes were removed.
struct Place {
    root: tempfile::TempDir,
    removed: Arc<Mutex<Vec<LaneId>>>,
}

impl Place {
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

    fn begin(&self, history: &[Record]) -> Mirror {
        let removed = self.removed.clone();
        let remove = Box::new(move |lane: &LaneId| removed.lock().unwrap().push(lane.clone()));
        let places = RunPlaces {
            log_path: self.path("run.jsonl"),
            checkpoint_path: self.path("checkpoints.json"),
            program: vec!["lanekeeper".to_owned()],
            repository: self.root.path().to_owned(),
        };
        let plan = plan(&[("SL-1", &[], &[]), ("SL-2", &[], &[])]);
        Mirror::begin(places, self.path("errors.jsonl"), remove, &plan, Arc::new(history.to_vec())).unwrap()
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
        entries.into_iter().map(words).collect()
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
    story.then(Event::LaneRolledBack { lane: lane("SL-1"), integration: None, kept: vec![] })
}

const OPENED: [&str; 2] = ["SL-1 before_lane_start ready", "SL-1 after_lane_start in_progress"];

#[test]
fn a_thousand_records_that_came_during_one_write_are_one_more_write() {
    let (news, inbox) = mpsc::channel();
    let place = Place::new();
    let records = place.told(&opened());
    let mut state = Folded::new(&crate::view::testing::places(), &plan(&[("SL-1", &[], &[])]));
    news.send(records[..1].to_vec()).unwrap();
    let mut news = Some(news);
    let mut written = Vec::new();
    follow(&inbox, &mut state, |state| {
        if let Some(news) = news.take() {
            for _ in 0..1000 / records.len() {
                records.iter().for_each(|record| news.send(vec![record.clone()]).unwrap());
            }
        }
        written.push(state.checkpoints.len());
    });
    assert_eq!(written, [0, 2]);
}

#[test]
fn a_write_is_followed_by_ten_times_as_long_a_rest() {
    assert_eq!(rest_after(Duration::from_millis(90)), Duration::from_millis(900));
    assert_eq!(rest_after(Duration::from_micros(1)), SHORTEST_REST);
}

#[test]
fn everything_is_written_when_the_mirror_is_gone() {
    for finish in [true, false] {
        let place = Place::new();
        let mirror = place.begin(&[]);
        let records = place.told(&opened().moved("SL-2", LaneStage::Waiting, LaneStage::Init));
        records.iter().for_each(|record| mirror.send(std::slice::from_ref(record)));
        if finish {
            mirror.finish().unwrap()
        } else {
            drop(mirror)
        }
        assert_eq!(place.checkpoints(), OPENED);
        assert_eq!(place.state_of("SL-1").as_deref(), Some("IMPLEMENTATION"));
        assert_eq!(place.state_of("SL-2"), None, "SL-2 holds no worktree");
    }
}

#[test]
fn what_a_crash_kept_from_being_written_is_written_first() {
    let place = Place::new();
    place.begin(&place.told(&Story::begun().opened("SL-2", 3))).finish().unwrap();
    let history = place.told(&Story::begun().opened("SL-2", 3).failed("SL-2").opened("SL-1", 1));
    place.begin(&history).finish().unwrap();
    let expected = ["SL-2 before_lane_start ready", "SL-2 after_lane_start failed", OPENED[0], OPENED[1]];
    assert_eq!(place.checkpoints(), expected);
    assert_eq!(place.state_of("SL-1").as_deref(), Some("IMPLEMENTATION"));
    assert_eq!(place.errors().len(), 1, "{:?}", place.errors());
    place.begin(&history).finish().unwrap();
    assert_eq!(place.errors().len(), 1, "the failure was told again: {:?}", place.errors());
}

#[test]
fn a_resume_writes_its_session_into_every_open_lane() {
    let place = Place::new();
    let history = place.told(&opened());
    let mirror = place.begin(&history);
    mirror.send(&place.told(&opened().resumed())[history.len()..]);
    mirror.finish().unwrap();
    let path = place.path("P1-SL-AUTH-20251227/SL-1/task.json");
    assert_eq!(lane_files::read_task(&path).unwrap().unwrap().session_id, "second-session");
}

#[test]
fn what_others_wrote_survives() {
    let place = Place::new();
    fs::write(place.path("checkpoints.json"), r#"[{"stage": "theirs", "x": 1}]"#).unwrap();
    place.begin(&place.told(&opened())).finish().unwrap();
    assert_eq!(place.checkpoints(), ["foreign 0", OPENED[0], OPENED[1]]);
    assert!(fs::read_to_string(place.path("checkpoints.json")).unwrap().contains(r#"{"stage": "theirs", "x": 1}"#));
}

#[test]
fn an_unreadable_file_is_named_and_left_alone_and_stops_nothing_else() {
    let place = Place::new();
    fs::write(place.path("checkpoints.json"), "[{]").unwrap();
    let mirror = place.begin(&place.told(&opened()));
    let error = mirror.finish().unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:1:3: ", place.path("checkpoints.json").display())), "{error}");
    assert_eq!(fs::read_to_string(place.path("checkpoints.json")).unwrap(), "[{]");
    assert_eq!(place.state_of("SL-1").as_deref(), Some("IMPLEMENTATION"));
}

#[test]
fn what_could_not_be_written_is_written_once_it_can_be() {
    let place = Place::new();
    fs::write(place.path("checkpoints.json"), "[{]").unwrap();
    let mirror = place.begin(&place.told(&opened()));
    fs::write(place.path("checkpoints.json"), "[]").unwrap();
    mirror.finish().unwrap();
    assert_eq!(place.checkpoints(), OPENED);
}

#[test]
fn a_worktree_root_that_is_gone_keeps_only_the_lanes_files_behind() {
    let place = Place::new();
    let mut records = place.told(&opened());
    if let Event::RunStarted(started) = &mut records[0].event {
        started.options.worktree_root = place.path("gone");
    }
    let error = place.begin(&records).finish().unwrap_err();
    assert!(matches!(error, MirrorError::Task(_)), "{error}");
    assert!(error.to_string().contains("gone"), "{error}");
    assert_eq!(place.checkpoints(), OPENED);
}

#[test]
fn a_lane_that_is_over_loses_its_directory_and_gets_no_new_one() {
    for story in [opened().merged("SL-1", 'd'), rolled_back(opened())] {
        let place = Place::new();
        let mirror = place.begin(&[]);
        let late = story.moved("SL-1", LaneStage::Complete, LaneStage::Cleanup);
        mirror.send(&place.told(&late));
        mirror.finish().unwrap();
        assert_eq!(*place.removed.lock().unwrap(), [lane("SL-1")]);
        assert_eq!(place.state_of("SL-1"), None);
    }
}

#[test]
fn a_directory_that_a_crash_left_is_removed_before_the_lane_can_begin_again() {
    let place = Place::new();
    let mirror = place.begin(&place.told(&rolled_back(opened())));
    assert_eq!(*place.removed.lock().unwrap(), [lane("SL-1")], "removed later, it would take the new one with it");
    mirror.finish().unwrap();
    let again = Place::new();
    again.begin(&again.told(&rolled_back(opened()).opened("SL-1", 1))).finish().unwrap();
    assert_eq!(*again.removed.lock().unwrap(), [], "the lane lives again");
    assert_eq!(again.state_of("SL-1").as_deref(), Some("IMPLEMENTATION"));
}

#[test]
fn failures_are_told_once_those_of_the_history_too() {
    let place = Place::new();
    let history = place.told(&opened().noted("SL-1"));
    let mirror = place.begin(&history);
    let snapshot = Event::SnapshotFailed {
        lane: lane("SL-1"),
        agent: Some(agent("engineer")),
        reason: SnapshotReason::Failure,
        error: "no space".to_owned(),
    };
    mirror.send(&place.told(&opened().noted("SL-1").noted("SL-1").then(snapshot).failed("SL-1"))[history.len()..]);
    mirror.finish().unwrap();
    let errors = place.errors();
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
