//! For tests of several crates: records made by hand, and random ones.

#![allow(clippy::unwrap_used, reason = "only tests use it")]

mod any;
mod every_event;

use std::path::PathBuf;
use std::time::Duration;

use crate::event::*;
use crate::plan::{AgentWorktrees, RetryFrom};
use crate::*;

pub use any::{any_records, any_run};
pub use every_event::{every_event, sample_checkpoint, sample_exit};

pub fn lane(name: &str) -> LaneId {
    LaneId::new(name).unwrap()
}

pub fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

pub fn task(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

/// A commit whose digits are all the same.
pub fn commit(digit: char) -> CommitId {
    CommitId::new(&digit.to_string().repeat(40)).unwrap()
}

/// The moment `seconds` after 2025-12-27T10:00:00Z.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_766_829_600_000 + seconds * 1000)
}

pub fn program() -> Vec<String> {
    vec!["lanewright".to_owned()]
}

pub fn owner(session: &str) -> Owner {
    Owner {
        session_id: session.to_owned(),
        process: ProcessId { pid: 7, started: 1 },
        host: "build".to_owned(),
        boot: String::new(),
    }
}

pub fn worktree(slot: u32, branch: &str, head: char) -> Worktree {
    Worktree { slot, path: format!("/w/slots/{slot:02}").into(), branch: branch.to_owned(), head: commit(head) }
}

pub fn attempt(lane_id: &str, agent_name: &str, number: u32) -> JobId {
    let role = JobRole::Attempt { agent: agent(agent_name), task: task("1") };
    JobId { lane: Some(lane(lane_id)), role, number }
}

pub fn tests_of(lane_id: &str, number: u32) -> JobId {
    JobId { lane: Some(lane(lane_id)), role: JobRole::Tests, number }
}

pub fn gate_failure() -> Failure {
    Failure {
        command: Some("cargo test auth".to_owned()),
        exit_code: Some(101),
        log: vec!["Test failed: AuthService.register".to_owned()],
        ..Failure::new(FailureKind::Gate, "TypeError: undefined is not a function")
    }
}

/// A plan of lanes, each with its dependencies and human gates, and the agent `engineer` with the task `1`.
pub fn plan(lanes: &[(&str, &[&str], &[Approval])]) -> Plan {
    let index = |name: &&str| LaneIndex(u32::try_from(lanes.iter().position(|(id, ..)| id == name).unwrap()).unwrap());
    let made = lanes.iter().map(|(id, needs, approval)| Lane {
        approval: approval.to_vec(),
        ..plan_lane(id, needs.iter().map(index).collect())
    });
    Plan::new(PlanParts { title: Some("Billing".to_owned()), lanes: made.collect(), ..empty_plan() }).unwrap()
}

/// A plan with nothing in it.
pub fn empty_plan() -> PlanParts {
    PlanParts {
        phase: PhaseId::new("P1").unwrap(),
        title: None,
        base_branch: None,
        max_parallel: None,
        merge: None,
        timeouts: Timeouts::default(),
        pools: Default::default(),
        gates: Gates::default(),
        require_gates: None,
        lanes: Vec::new(),
        exclusions: Vec::new(),
        sequences: Vec::new(),
        added_edges: Vec::new(),
        interfaces: Vec::new(),
        skipped: Vec::new(),
        lists: Vec::new(),
        companions: Vec::new(),
        runners: Default::default(),
        executors: Default::default(),
        commit_message: None,
        replaced: Vec::new(),
        prompts: Default::default(),
    }
}

/// A lane with the agent `engineer` and its task `1`, and nothing else.
pub fn plan_lane(id: &str, depends_on: Vec<LaneIndex>) -> Lane {
    Lane {
        id: lane(id),
        name: None,
        depends_on,
        owns: Vec::new(),
        ownership: Default::default(),
        must_haves: Default::default(),
        user_setup: Default::default(),
        criteria: None,
        tests: Vec::new(),
        has_usual_tests: false,
        approval: Vec::new(),
        timeout: None,
        closes: Vec::new(),
        budget: Budget::default(),
        retries: 3,
        uses: Vec::new(),
        setup: Vec::new(),
        copy: Vec::new(),
        env: Default::default(),
        resume: RetryFrom::Continue,
        merge_style: None,
        agent_worktrees: AgentWorktrees::On,
        executor: None,
        resources: Default::default(),
        agents: vec![plan_agent("engineer", vec![plan_task("1")])],
    }
}

/// An agent that implements `tasks`.
pub fn plan_agent(name: &str, tasks: Vec<Task>) -> Agent {
    Agent {
        name: agent(name),
        round: Round::Implementation,
        command: CommandLine::Shell("true".to_owned()),
        runner: "command".to_owned(),
        fallback: None,
        options: Default::default(),
        env: Default::default(),
        timeout: None,
        allow_empty: false,
        candidate: None,
        tasks,
    }
}

pub fn plan_task(id: &str) -> Task {
    Task {
        id: task(id),
        name: None,
        kind: TaskKind::Auto,
        prompt: String::new(),
        command: None,
        verify: Vec::new(),
        max_time: None,
        files: Vec::new(),
        interfaces: Vec::new(),
        acceptance_criteria: Vec::new(),
        allow_empty: false,
    }
}

/// Records that follow each other by a second, or by what [`Story::wait`] says.
#[derive(Clone, Default)]
pub struct Story {
    pub records: Vec<Record>,
    seconds: i64,
}

impl Story {
    /// A run that has started, onto `main`.
    pub fn begun() -> Self {
        Self::default().then(started(&[]))
    }

    pub fn then(mut self, event: Event) -> Self {
        let seq = self.records.len() as u64 + 1;
        self.records.push(Record { seq, at: at(self.seconds), event, origin: None });
        self.seconds += 1;
        self
    }

    pub fn wait(mut self, seconds: i64) -> Self {
        self.seconds += seconds;
        self
    }

    pub fn now(&self) -> Timestamp {
        at(self.seconds)
    }

    pub fn moved(self, id: &str, from: LaneStage, to: LaneStage) -> Self {
        self.then(Event::LaneMoved { lane: lane(id), from, to })
    }

    pub fn reached(self, id: &str, checkpoint: Checkpoint) -> Self {
        self.then(Event::CheckpointReached { lane: Some(lane(id)), checkpoint })
    }

    /// From the queue to agents that may start.
    pub fn opened(self, id: &str, slot: u32) -> Self {
        let ready = Checkpoint::new(Stage::BeforeLaneStart, CheckpointStatus::Ready);
        let begun = Checkpoint::new(Stage::AfterLaneStart, CheckpointStatus::InProgress);
        let opened = |agent: Option<&str>, slot, branch: String| Event::WorktreeOpened {
            lane: lane(id),
            agent: agent.map(self::agent),
            worktree: worktree(slot, &branch, 'a'),
        };
        self.moved(id, LaneStage::Waiting, LaneStage::Init)
            .then(Event::LaneBased { lane: lane(id), base: commit('a'), port: 4000, missing: vec![] })
            .reached(id, ready)
            .moved(id, LaneStage::Init, LaneStage::Classified)
            .then(opened(None, slot, format!("lane/P1/{id}")))
            .then(opened(Some("engineer"), slot + 1, format!("lane-agent/P1/{id}/engineer")))
            .reached(id, begun)
            .moved(id, LaneStage::Classified, LaneStage::Implementation)
    }

    pub fn job(self, job: &JobId) -> Self {
        let supervisor = ProcessId { pid: 9, started: 2 };
        self.then(Event::planned(job.clone())).then(Event::JobStarted { job: job.clone(), supervisor })
    }

    /// A job that took a minute.
    pub fn exited(self, job: &JobId, exit_code: i32) -> Self {
        let started_at = self.now();
        let story = self.wait(60);
        let exit = JobExit {
            cause: ExitCause::Exited,
            exit_code,
            command: "cargo test auth".to_owned(),
            started_at,
            finished_at: story.now(),
            tail: vec!["Test failed: AuthService.register".to_owned()],
            notes: String::new(),
        };
        story.then(Event::JobExited { job: job.clone(), exit, report: None, reading: None, transcript: None })
    }

    /// A merge of the agent's work into the lane, and of the lane into `main`.
    pub fn merged(self, id: &str, digit: char) -> Self {
        self.then(Event::WorkCommitted {
            lane: lane(id),
            agent: agent("engineer"),
            head: commit('b'),
            changed: vec!["src/auth.ts".to_owned()],
            prohibited: Vec::new(),
            idle: Idle::No,
            ignored: Vec::new(),
            size: None,
        })
        .then(Event::AgentMerged { lane: lane(id), agent: agent("engineer"), head: commit('c') })
        .moved(id, LaneStage::Implementation, LaneStage::AwaitingUserApproval)
        .reached(id, Checkpoint::new(Stage::PrePr, CheckpointStatus::InProgress))
        .then(Event::MergeStaged { lane: lane(id), onto: commit('a'), commit: commit(digit), moved: false })
        .then(Event::LaneMerged { lane: lane(id), commit: commit(digit), onto: commit('a'), plan: None })
        .moved(id, LaneStage::AwaitingUserApproval, LaneStage::Complete)
        .moved(id, LaneStage::Complete, LaneStage::Cleanup)
        .then(Event::LaneCleaned { lane: lane(id), kept: Vec::new() })
    }

    /// Attempt `number` fails, and is retried as `number` of `max`.
    pub fn retried(self, id: &str, number: u32, max: u32) -> Self {
        let context = (1..=number).flat_map(|attempt| gate_failure().context(attempt)).collect();
        let checkpoint = Checkpoint {
            retry_attempt: Some(number),
            max_retries: Some(max),
            failure_context: context,
            ..Checkpoint::new(Stage::RetryAttempt, CheckpointStatus::Retrying)
        };
        let story = self.job(&attempt(id, "engineer", number)).exited(&attempt(id, "engineer", number), 101).noted(id);
        let (lane, agent, level) = (lane(id), agent("engineer"), RetryLevel::Retry);
        let not_before = story.now().plus(Duration::from_secs(5));
        story.then(Event::RetryPlanned { lane, agent, level, not_before, checkpoint })
    }

    pub fn noted(self, id: &str) -> Self {
        let (lane, agent, task) = (lane(id), Some(agent("engineer")), Some(task("1")));
        self.then(Event::FailureNoted { lane, agent, task, failure: gate_failure() })
    }

    pub fn failed(self, id: &str) -> Self {
        self.then(Event::LaneFailed { lane: lane(id), failure: gate_failure() })
    }

    pub fn blocked(self, id: &str, reason: &str) -> Self {
        self.then(Event::LaneBlocked { lane: lane(id), reason: reason.to_owned() })
    }

    pub fn finished(self, outcome: RunOutcome, code: u8) -> Self {
        self.then(Event::RunFinished { outcome, code })
    }

    pub fn resumed(self) -> Self {
        self.then(resumed(1, owner("second-session")))
    }

    /// A resume of some lanes alone.
    pub fn resumed_for(self, names: &[&str]) -> Self {
        let mut event = resumed(1, owner("second-session"));
        if let Event::RunResumed { lanes, .. } = &mut event {
            *lanes = names.iter().map(|name| lane(name)).collect();
        }
        self.then(event)
    }
}

/// A resume that asks for nothing.
pub fn resumed(number: u32, owner: Owner) -> Event {
    Event::RunResumed {
        plan_sha256: None,
        pinned_sha256: None,
        number,
        owner,
        timeout: None,
        budget: None,
        message: String::new(),
        message_for: None,
        lanes: Vec::new(),
        retried: Vec::new(),
        follow: None,
        level: None,
    }
}

/// The first event of a run of these lanes; of none: of all.
pub fn started(lanes: &[&str]) -> Event {
    let mut started = run_started();
    started.options.lanes = lanes.iter().map(|name| lane(name)).collect();
    Event::RunStarted(Box::new(started))
}

pub fn run_started() -> RunStarted {
    RunStarted {
        format: "1.0".to_owned(),
        lanewright: "0.1.0".to_owned(),
        run_id: RunId::new("P1-SL-AUTH-20251227").unwrap(),
        phase: PhaseId::new("P1").unwrap(),
        plan_path: PathBuf::from("/repo/plans/phase 1.toml"),
        plan_sha256: String::new(),
        pinned_sha256: String::new(),
        base_branch: "main".to_owned(),
        base_commit: commit('a'),
        owner: owner("first-session"),
        options: run_options(),
    }
}

pub fn run_options() -> RunOptions {
    RunOptions {
        max_parallel: 2,
        merge: MergeMode::Local,
        merge_style: Default::default(),
        fail_fast: false,
        bisect_merges: false,
        gsd_tracking: false,
        must_haves: Default::default(),
        lanes: Vec::new(),
        done: Vec::new(),
        worktree_root: PathBuf::from("/w"),
        branch_prefix: String::new(),
        branch_suffix: String::new(),
        keep_pool: false,
        keep_caches: false,
        git_directory: crate::GitDirectory::Shared,
        protect: Vec::new(),
        checkpoint_tags: false,
        backoff: Duration::from_secs(1),
        outage_limit: crate::retry::OUTAGE_LIMIT,
        fallback_after: crate::retry::FALLBACK_AFTER,
        follow: None,
        specialist_timeout: Duration::from_secs(300),
        on_orphan: OnOrphan::Continue,
        timeout: None,
        next_phases: None,
        placed_by: None,
        plan_format: None,
        plan_tag: None,
        list_options: Default::default(),
        budget: Budget::default(),
        git_settings: None,
    }
}
