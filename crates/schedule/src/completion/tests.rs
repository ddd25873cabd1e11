use std::time::Duration;

use lanewright_model::Timestamp;
use lanewright_model::event::SnapshotReason;

use super::*;
use crate::sample_plans::lane;

fn standing(step: AgentStep, attempt: u32) -> Standing {
    let plan = lane("A", &[], 1, &[]);
    let mut state = LaneState::new(&plan, 0);
    let agent = &mut state.attempts.agents_mut()[0];
    (agent.step, agent.attempt) = (step, attempt);
    let completion = Completion::of(&state, &plan, Round::Implementation);
    assert_eq!(completion.agents[0].0, plan.agents[0].name);
    assert!(Completion::of(&state, &plan, Round::Review).agents.is_empty());
    completion.agents[0].1.clone()
}

#[test]
fn standing_follows_agent_step() {
    let failed = |kind| Failure::new(kind, "why");
    let (error, timeout) = (Standing::Error("why".into()), Standing::Timeout("why".into()));
    let working = Standing::Working("its work is not taken yet".into());
    assert_eq!(standing(AgentStep::Done, 1), Standing::Complete);
    assert_eq!(standing(AgentStep::Failed(failed(FailureKind::Crash)), 1), error);
    assert_eq!(standing(AgentStep::PermanentlyFailed(failed(FailureKind::Timeout)), 1), timeout);
    assert_eq!(standing(AgentStep::Judging(failed(FailureKind::Gate)), 1), error);
    assert_eq!(standing(AgentStep::Blocked("why".into()), 1), error);
    let salvaging = AgentStep::Salvaging(SnapshotReason::Failure, Some(failed(FailureKind::Crash)));
    assert_eq!(standing(salvaging, 1), error);
    assert_eq!(standing(AgentStep::Ready, 0), Standing::Missing("it was never begun".into()));
    assert_eq!(standing(AgentStep::Ready, 1), working);
    assert_eq!(standing(AgentStep::Retrying(Timestamp::from_unix_millis(0)), 0), working);
}

#[test]
fn candidates_that_were_not_chosen_do_not_count() {
    let mut plan = lane("A", &[], 1, &[]);
    plan.agents.push(plan.agents[0].clone());
    let mut state = LaneState::new(&plan, 0);
    let agents = state.attempts.agents_mut();
    (agents[0].step, agents[1].step) = (AgentStep::Unchosen { passed: true }, AgentStep::Done);
    assert_eq!(Completion::of(&state, &plan, Round::Implementation).agents.len(), 1);
}

#[test]
fn a_round_is_complete_when_all_of_it_is() {
    let name = |name: &str| AgentName::new(name).unwrap();
    let of = |standings: &[Standing]| Completion {
        agents: standings.iter().map(|standing| (name("a"), standing.clone())).collect(),
    };
    let why = || "why".to_owned();
    let all = [
        (Standing::Complete, "COMPLETE"),
        (Standing::Error(why()), "ERROR - why"),
        (Standing::Unknown(why()), "UNKNOWN - why"),
        (Standing::Timeout(why()), "TIMEOUT - why"),
        (Standing::Working(why()), "WORKING - why"),
        (Standing::Running(Duration::from_secs(59)), "WORKING for 59s"),
        (Standing::Running(Duration::from_secs(12 * 60 + 59)), "WORKING for 12m"),
        (Standing::Running(Duration::from_secs(125 * 60)), "WORKING for 125m"),
        (Standing::Missing(why()), "MISSING - why"),
    ];
    for (standing, words) in &all {
        assert_eq!(standing.to_string(), *words);
    }
    let mixed = of(&all.map(|(standing, _)| standing));
    assert_eq!(mixed.to_string(), "1/9 complete, 2 errors, 1 timeout, 1 missing");
    assert!(!mixed.is_complete());
    assert!(of(&[Standing::Complete, Standing::Complete]).is_complete());
}
