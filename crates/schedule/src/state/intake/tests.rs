use super::*;
use crate::sample_plans::commit;

#[test]
fn agents_come_in_the_order_of_their_last_merge() {
    let mut intake = Intake::default();
    for (agent, head) in [(0, 1), (1, 2), (1, 2), (0, 3), (2, 4)] {
        intake.merged(agent, &commit(head));
    }
    assert_eq!(intake.agents(), [1, 0, 2]);
    assert_eq!(intake.merges().len(), 4);
    assert!(intake.has(2) && !intake.has(3));
    intake.begin_again();
    assert!(intake.agents().is_empty());
}

#[test]
fn agents_line_up_once_and_leave_when_their_work_is_judged() {
    let agents = |steps: &[AgentStep]| -> Vec<AgentState> {
        steps.iter().map(|step| AgentState { step: step.clone(), ..AgentState::default() }).collect()
    };
    let mut intake = Intake::default();
    intake.line_up(&agents(&[AgentStep::Ready, AgentStep::Merging]));
    intake.line_up(&agents(&[AgentStep::Merging, AgentStep::Merging]));
    assert_eq!(intake.queue, [1, 0]);
    intake.line_up(&agents(&[AgentStep::Merging, AgentStep::Done]));
    assert_eq!(intake.queue, [0]);
}
