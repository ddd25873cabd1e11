//! Plans and their parts for the unit tests of this module.

use std::time::Duration;

use lanewright_model::plan::{AgentWorktrees, RetryFrom};
use lanewright_model::{
    Agent, AgentName, CommandLine, CommitId, ExitCause, Gates, JobExit, Lane, LaneId, LaneIndex, PhaseId, Plan,
    PlanParts, Round, Task, TaskId, TaskKind, Timeouts, Timestamp,
};

/// A lane with one agent, `engineer`, and its one task.
pub(crate) fn lane(id: &str, depends_on: &[u32], minutes: u64, uses: &[&str]) -> Lane {
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
        executor: None,
        resources: Default::default(),
        agents: vec![agent],
    }
}

pub(crate) fn plan(lanes: Vec<Lane>, exclusions: &[(u32, u32)]) -> Plan {
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
        executors: Default::default(),
        prompts: Default::default(),
        commit_message: None,
        replaced: Vec::new(),
    };
    Plan::new(parts).unwrap()
}

pub(crate) fn commit(number: u32) -> CommitId {
    CommitId::new(&format!("{number:040x}")).unwrap()
}

pub(crate) fn moment(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

pub(crate) fn exit(cause: ExitCause, exit_code: i32) -> JobExit {
    JobExit {
        cause,
        exit_code,
        command: "agent --go".into(),
        started_at: moment(0),
        finished_at: moment(0),
        tail: vec!["a".into(), " ".into(), "b".into()],
        notes: "why".into(),
    }
}
