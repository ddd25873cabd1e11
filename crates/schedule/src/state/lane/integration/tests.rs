use super::*;
use crate::sample_plans::commit;

#[test]
fn agents_come_in_the_order_of_their_last_merge() {
    let mut integration = Integration::default();
    for (agent, head) in [(0, 1), (1, 2), (1, 2), (0, 3), (2, 4)] {
        integration.merged(agent, &commit(head));
    }
    assert_eq!(integration.agents(), [1, 0, 2]);
    assert_eq!(integration.merges().len(), 4);
    assert!(integration.has(2) && !integration.has(3));
    integration.restart();
    assert!(integration.agents().is_empty());
}

#[test]
fn integration_queue_is_first_come_first_served() {
    let agents = |steps: &[AgentStep]| -> Vec<AgentState> {
        steps.iter().map(|step| AgentState { step: step.clone(), ..AgentState::default() }).collect()
    };
    let mut integration = Integration::default();
    integration.line_up(&agents(&[AgentStep::Ready, AgentStep::Merging]));
    integration.line_up(&agents(&[AgentStep::Merging, AgentStep::Merging]));
    assert_eq!(integration.queue, [1, 0]);
    integration.line_up(&agents(&[AgentStep::Merging, AgentStep::Done]));
    assert_eq!(integration.queue, [0]);
}
