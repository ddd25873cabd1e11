use std::time::Duration;

use super::Claim::{Free, Left, Live, Merged};
use super::*;
use crate::model::plan::{AgentWorktrees, RetryFrom};
use crate::model::{
    Agent, AgentName, CommandLine, Gates, Lane, LaneId, PhaseId, PlanParts, Round, Task, TaskId, TaskKind, Timeouts,
};

fn lane(id: &str, depends_on: &[u32], minutes: u64, uses: &[&str]) -> Lane {
    let task = Task {
        id: TaskId::new("1").unwrap(),
        name: None,
        kind: TaskKind::Auto,
        prompt: String::new(),
        verify: Vec::new(),
        max_time: Some(Duration::from_secs(60 * minutes)),
        files: Vec::new(),
        interfaces: Vec::new(),
        acceptance_criteria: Vec::new(),
        allow_empty: false,
    };
    let agent = Agent {
        name: AgentName::new("engineer").unwrap(),
        round: Round::Implementation,
        command: CommandLine::Shell("true".to_owned()),
        runner: "command".to_owned(),
        options: Default::default(),
        env: Default::default(),
        timeout: None,
        allow_empty: false,
        tasks: vec![task],
    };
    Lane {
        id: LaneId::new(id).unwrap(),
        name: None,
        depends_on: depends_on.iter().copied().map(LaneIndex).collect(),
        owns: Vec::new(),
        ownership: Default::default(),
        must_haves: Default::default(),
        tests: Vec::new(),
        approval: Vec::new(),
        timeout: None,
        retries: 3,
        uses: uses.iter().map(|&pool| pool.to_owned()).collect(),
        setup: Vec::new(),
        copy: Vec::new(),
        env: Default::default(),
        resume: RetryFrom::Continue,
        merge_style: None,
        agent_worktrees: AgentWorktrees::On,
        agents: vec![agent],
    }
}

fn plan(lanes: Vec<Lane>, exclusions: &[(u32, u32)]) -> Plan {
    let parts = PlanParts {
        phase: PhaseId::new("P1").unwrap(),
        title: None,
        base_branch: None,
        max_parallel: None,
        merge: None,
        timeouts: Timeouts::default(),
        pools: [("two".to_owned(), 2)].into(),
        gates: Gates::default(),
        lanes,
        exclusions: exclusions.iter().map(|&(one, other)| (LaneIndex(one), LaneIndex(other))).collect(),
        sequences: Vec::new(),
        added_edges: Vec::new(),
        interfaces: Vec::new(),
        skipped: Vec::new(),
        runners: std::collections::BTreeMap::new(),
        commit_message: None,
        prompts: std::collections::BTreeMap::new(),
    };
    Plan::new(parts).unwrap()
}

/// `A` alone, `B` before `C`, `D` after `A` and `C`; `B` begins the longest way.
fn diamond() -> Plan {
    plan(vec![lane("A", &[], 9, &[]), lane("B", &[], 5, &[]), lane("C", &[1], 5, &[]), lane("D", &[0, 2], 1, &[])], &[])
}

const A: LaneIndex = LaneIndex(0);
const B: LaneIndex = LaneIndex(1);
const C: LaneIndex = LaneIndex(2);

#[test]
fn the_longest_remaining_path_goes_first() {
    assert_eq!(next_lane(&diamond(), &[Free; 4], None), NextLane::Lane(B));
    let alike = plan(vec![lane("A", &[], 5, &[]), lane("B", &[], 5, &[])], &[]);
    assert_eq!(next_lane(&alike, &[Free; 2], None), NextLane::Lane(A));
}

#[test]
fn a_lane_that_somebody_has_is_passed_over() {
    for taken in [Live, Left, Merged] {
        assert_eq!(next_lane(&diamond(), &[Free, taken, Free, Free], None), NextLane::Lane(A), "{taken:?}");
    }
}

#[test]
fn a_dependency_that_is_not_merged_keeps_a_lane_waiting_whoever_has_it() {
    for unmerged in [Free, Live, Left] {
        let claims = [Merged, unmerged, Free, Free];
        assert_eq!(hindrance(&diamond(), &claims, C), Some(Hindrance::Needs(vec![B])), "{unmerged:?}");
    }
    assert_eq!(next_lane(&diamond(), &[Merged, Merged, Free, Free], None), NextLane::Lane(C));
}

#[test]
fn a_preferred_lane_goes_first_only_if_it_may_begin() {
    assert_eq!(next_lane(&diamond(), &[Free; 4], Some(A)), NextLane::Lane(A));
    assert_eq!(next_lane(&diamond(), &[Live, Free, Free, Free], Some(A)), NextLane::Lane(B));
    assert_eq!(next_lane(&diamond(), &[Merged, Free, Free, Free], Some(A)), NextLane::Lane(B));
    assert_eq!(next_lane(&diamond(), &[Free; 4], Some(C)), NextLane::Lane(B));
}

#[test]
fn nothing_left_is_told_lane_by_lane_and_all_merged_is_something_else() {
    let waiting = [(A, Hindrance::Left), (B, Hindrance::Held), (C, Hindrance::Needs(vec![B]))];
    let expected = [&waiting[..], &[(LaneIndex(3), Hindrance::Needs(vec![A, C]))]].concat();
    assert_eq!(next_lane(&diamond(), &[Left, Live, Free, Free], None), NextLane::Nothing(expected));
    assert_eq!(next_lane(&diamond(), &[Merged; 4], None), NextLane::AllMerged);
    assert_eq!(next_lane(&plan(Vec::new(), &[]), &[], None), NextLane::AllMerged);
}

#[test]
fn lanes_that_exclude_each_other_do_so_across_sessions() {
    let apart = plan(vec![lane("A", &[], 5, &[]), lane("B", &[], 5, &[]), lane("C", &[], 1, &[])], &[(0, 1)]);
    assert_eq!(hindrance(&apart, &[Live, Free, Free], B), Some(Hindrance::Beside(A)));
    assert_eq!(hindrance(&apart, &[Free, Live, Free], A), Some(Hindrance::Beside(B)));
    assert_eq!(next_lane(&apart, &[Live, Free, Free], None), NextLane::Lane(C));
    for past in [Merged, Left] {
        assert_eq!(hindrance(&apart, &[past, Free, Free], B), None, "{past:?}");
    }
}

#[test]
fn a_pool_is_shared_by_all_sessions() {
    let names = ["A", "B", "C"];
    let pooled = |pool: &str| plan(names.iter().map(|id| lane(id, &[], 5, &[pool])).collect(), &[]);
    assert_eq!(hindrance(&pooled("two"), &[Live, Free, Free], B), None);
    assert_eq!(hindrance(&pooled("two"), &[Live, Live, Free], C), Some(Hindrance::PoolInUse("two".to_owned())));
    assert_eq!(hindrance(&pooled("unsized"), &[Live, Free, Free], B), Some(Hindrance::PoolInUse("unsized".to_owned())));
}
