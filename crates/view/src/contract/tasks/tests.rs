use lanewright_model::event::Event;
use lanewright_model::testing::*;
use lanewright_model::{AgentPhase, Failure, FailureKind};

use super::*;

fn task_of(story: &Story) -> TaskFile {
    file_of(&plan(&[("SL-1", &[], &[])]), story)
}

fn file_of(plan: &Plan, story: &Story) -> TaskFile {
    task_file(&RunHistory::for_plan(plan).after(&story.records), plan, &lane("SL-1")).unwrap()
}

fn status(story: &Story) -> String {
    task_of(story).agents[&agent("engineer")].status.clone()
}

#[test]
fn a_lane_at_work_holds_every_field_of_the_contract() {
    let (from, to) = (AgentPhase::Planned, AgentPhase::Executing);
    let moved = Event::AgentMoved { lane: lane("SL-1"), agent: agent("engineer"), from, to };
    let story = Story::begun().opened("SL-1", 1).job(&attempt("SL-1", "engineer", 1)).then(moved);
    insta::assert_snapshot!(serde_json::to_string_pretty(&task_of(&story)).unwrap(), @r#"
    {
      "task_name": "SL-1",
      "session_id": "first-session",
      "state": "IMPLEMENTATION",
      "created": "2025-12-27T10:00:01.000Z",
      "phase": "P1",
      "required_agents": [
        "engineer"
      ],
      "agents": {
        "engineer": {
          "status": "WORKING",
          "state": "EXECUTING",
          "transition_log": [
            {
              "from": "PLANNED",
              "to": "EXECUTING",
              "timestamp": "2025-12-27T10:00:11.000Z"
            }
          ],
          "retry_count": 0,
          "branch": "lane-agent/P1/SL-1/engineer",
          "worktree": "/w/slots/02"
        }
      },
      "checkpoint": {
        "commit_sha": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      },
      "transition_log": [
        {
          "from": "WAITING",
          "to": "INIT",
          "timestamp": "2025-12-27T10:00:01.000Z"
        },
        {
          "from": "INIT",
          "to": "CLASSIFIED",
          "timestamp": "2025-12-27T10:00:04.000Z"
        },
        {
          "from": "CLASSIFIED",
          "to": "IMPLEMENTATION",
          "timestamp": "2025-12-27T10:00:08.000Z"
        }
      ],
      "interruptions": []
    }
    "#);
}

#[test]
fn agent_status_words_in_task_file() {
    let job = attempt("SL-1", "engineer", 1);
    let open = || Story::begun().opened("SL-1", 1);
    assert_eq!(status(&open()), "MISSING");
    assert_eq!(status(&open().job(&job)), "WORKING");
    assert_eq!(status(&open().job(&job).exited(&job, 0)), "COMPLETE");
    assert_eq!(status(&open().job(&job).exited(&job, 1)), "ERROR");
    assert_eq!(status(&open().merged("SL-1", 'd')), "COMPLETE");
    let late = Failure::new(FailureKind::Timeout, "10 minutes passed");
    let noted = Event::FailureNoted { lane: lane("SL-1"), agent: Some(agent("engineer")), task: None, failure: late };
    assert_eq!(status(&open().job(&job).then(noted)), "TIMEOUT");
}

#[test]
fn an_agent_with_tasks_left_is_not_complete() {
    let mut parts = lanewright_model::PlanParts::from(plan(&[("SL-1", &[], &[])]));
    let more = lanewright_model::Task { id: task("2"), ..parts.lanes[0].agents[0].tasks[0].clone() };
    parts.lanes[0].agents[0].tasks.push(more);
    let job = attempt("SL-1", "engineer", 1);
    let story = Story::begun().opened("SL-1", 1).job(&job).exited(&job, 0);
    let file = file_of(&Plan::new(parts).unwrap(), &story);
    assert_eq!(file.agents[&agent("engineer")].status, "WORKING");
}

#[test]
fn retries_are_counted_and_outlive_a_rollback() {
    let rolled_back = Event::LaneRolledBack { lane: lane("SL-1"), integration: None, kept: vec![], point: None };
    let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 3).retried("SL-1", 2, 3).then(rolled_back);
    let engineer = &task_of(&story).agents[&agent("engineer")];
    assert_eq!((engineer.retry_count, engineer.status.as_str()), (2, "MISSING"));
    assert_eq!(task_of(&story).state, "WAITING");
    assert_eq!(task_of(&story).checkpoint.commit_sha, None);
}

#[test]
fn the_session_follows_a_resume() {
    let story = Story::begun().opened("SL-1", 1).opened("SL-9", 3).resumed();
    assert_eq!(task_of(&story).session_id, "second-session");
}
