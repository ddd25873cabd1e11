use lanewright_model::testing::{Story, attempt, lane, plan, program, tests_of};
use lanewright_model::{Checkpoint, CheckpointStatus, Demand};

use super::*;

/// What the pull request of a lane says that took two attempts and passed its tests.
fn text_of(change: impl FnOnce(&mut Lane), verdicts: Vec<Verdict>) -> (String, String) {
    let plan = plan(&[("SL-1", &[], &[])]);
    let mut of_lane = plan.lane(plan.find(&lane("SL-1")).unwrap()).clone();
    of_lane.tests = vec![CommandLine::Shell("cargo test ledger".to_owned())];
    change(&mut of_lane);
    let jobs = [(attempt("SL-1", "engineer", 1), 1), (attempt("SL-1", "engineer", 2), 0), (tests_of("SL-1", 1), 0)];
    let reached = Checkpoint::new(Stage::BeforeLaneStart, CheckpointStatus::Ready);
    let story = jobs
        .iter()
        .fold(Story::begun().reached("SL-1", reached), |story, (job, code)| story.job(job).exited(job, *code));
    let head = lanewright_model::testing::commit('b');
    let story = story.then(lanewright_model::event::Event::MustHavesChecked { lane: lane("SL-1"), head, verdicts });
    let history = RunHistory::for_plan(&plan).after(&story.records);
    let before = [PullRequest { url: "https://example.com/1".to_owned(), number: Some(1), base: "main".to_owned() }];
    let run = history.run.run_id().unwrap().clone();
    super::text(&Context {
        history: &history,
        plan: &of_lane,
        before: &before,
        commands: Commands { program: &program(), run: &run },
    })
}

#[test]
fn it_tells_what_was_done_and_how_to_go_on() {
    let verdict = |holds| Verdict {
        kind: Demand::Artifact,
        about: "a.rs".into(),
        asked: vec![],
        holds,
        missing: false,
        why: vec![],
    };
    let named = |lane: &mut Lane| {
        lane.name = Some("Ledger schema".to_owned());
        lane.agents[0].tasks[0].name = Some("Tables".to_owned());
    };
    let text = text_of(named, vec![verdict(Some(true)), verdict(Some(false))]);
    assert_eq!(text.0, "SL-1: Ledger schema");
    let expected = "Lane `SL-1` of phase P1 (Billing), run `P1-SL-AUTH-20251227`.\n\
        \nTo be merged after https://example.com/1.\n\
        \n## Work\n\n- `engineer` (implementation), 2 attempts\n  - task `1`: Tables\n\
        \n## Tests\n\n- `cargo test ledger`\n\nExit code 0 after 1m 00s.\n\
        \n## Must-haves\n\n";
    assert!(text.1.starts_with(expected), "{}", text.1);
    for part in [
        "- [x] ",
        "- [ ] ",
        "\n## Checkpoints\n\n- 2025-12-27 10:00:01 UTC `before_lane_start`\n",
        "- put the lane back: `lanewright rollback P1-SL-AUTH-20251227 --lane SL-1`\n",
    ] {
        assert!(text.1.contains(part), "{part} is missing:\n{}", text.1);
    }
}

#[test]
fn plan_texts_are_escaped_in_pull_requests() {
    let odd = "<img src=x> @everyone fixes #1 ](http://evil) `rm` \u{1b}[31mred\n# Heading";
    let text = text_of(
        |lane| {
            lane.name = Some(odd.to_owned());
            lane.agents[0].tasks[0].prompt = odd.to_owned();
            lane.tests = vec![CommandLine::Shell("echo `a` ``b``".to_owned())];
        },
        vec![],
    );
    assert_eq!(text.0.lines().count(), 1);
    assert!(!text.0.contains('\u{1b}'));
    for wrong in ["<img", "@everyone", "#1", "\n# Heading", "\u{1b}"] {
        assert!(!text.1.contains(wrong), "{wrong} is in it:\n{}", text.1);
    }
    assert!(text.1.contains("- ``` echo `a` ``b`` ```"), "{}", text.1);
}

#[test]
fn a_forge_takes_whatever_length_comes_of_it() {
    let long = |lane: &mut Lane| {
        lane.name = Some("ü".repeat(500));
        lane.tests = vec![CommandLine::Shell("é".repeat(300)); 2_000];
    };
    let text = text_of(long, vec![]);
    assert!(text.0.chars().count() <= LONGEST_TITLE);
    assert!(text.1.len() < 65_536 && text.1.ends_with("run log.\n"));
}
