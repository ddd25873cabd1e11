//! The names of agents that a plan file does not name.

use std::collections::BTreeSet;

use lanewright_model::event::{Event, Record};
use lanewright_model::{AgentName, Lane, Plan, PlanParts};

/// `plan`, read from its file, with the names of agents that the run log has: an agent without a name is called like its
/// runner, and keeps that name in a run when its file names another runner later.
pub fn with_recorded_names(plan: Plan, records: &[Record]) -> Plan {
    let mut parts = PlanParts::from(plan.clone());
    parts.lanes.iter_mut().for_each(|lane| keep_name(lane, records));
    Plan::new(parts).unwrap_or(plan)
}

/// Nothing shows which is which where several agents got other runners.
fn keep_name(lane: &mut Lane, records: &[Record]) {
    let recorded = recorded(lane, records);
    let is_gone = |name: &&&AgentName| lane.agents.iter().all(|agent| agent.name != ***name);
    let gone: Vec<AgentName> = recorded.iter().filter(is_gone).map(|name| (*name).clone()).collect();
    let [gone] = gone.as_slice() else { return };
    let is_new = |name: &AgentName, runner: &str| name.as_str() == runner && !recorded.contains(name);
    let mut new = lane.agents.iter_mut().filter(|agent| is_new(&agent.name, &agent.runner));
    if let (Some(only), None) = (new.next(), new.next()) {
        only.name.clone_from(gone);
    }
}

fn recorded<'r>(lane: &Lane, records: &'r [Record]) -> BTreeSet<&'r AgentName> {
    let of_lane = records.iter().filter(|record| record.event.lane() == Some(&lane.id));
    let agent = |record: &'r Record| match &record.event {
        Event::JobPlanned { job, .. } => job.agent(),
        _ => None,
    };
    of_lane.filter_map(agent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::Agent;
    use lanewright_model::testing::{Story, agent, attempt, plan};

    /// The names in a plan with agents that are called like their runners `now`, of a run in which `before` worked.
    fn names(now: &[&str], before: &[&str]) -> Vec<String> {
        let mut parts = PlanParts::from(plan(&[("SL-1", &[], &[])]));
        let template = parts.lanes[0].agents[0].clone();
        let unnamed = |name: &&str| Agent { name: agent(name), runner: (*name).to_owned(), ..template.clone() };
        parts.lanes[0].agents = now.iter().map(unnamed).collect();
        let story = before.iter().fold(Story::begun(), |story, name| story.job(&attempt("SL-1", name, 1)));
        let plan = with_recorded_names(Plan::new(parts).unwrap(), &story.records);
        plan.lanes[0].agents.iter().map(|agent| agent.name.to_string()).collect()
    }

    #[test]
    fn agent_keeps_its_recorded_name_if_unambiguous() {
        assert_eq!(names(&["two"], &["one"]), ["one"]);
        assert_eq!(names(&["two", "three"], &["two", "one"]), ["two", "one"]);
        assert_eq!(names(&["one", "two"], &["one"]), ["one", "two"]);
        assert_eq!(names(&["three", "four"], &["one"]), ["three", "four"]);
        assert_eq!(names(&["three", "four"], &["one", "two"]), ["three", "four"]);
    }
}
