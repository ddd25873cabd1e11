//! The world that survives a crash: jobs, git, and what was written down.

mod expected;
mod following;
mod jobs;
mod merging;
mod repository;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lanewright_model::CommitId;
use lanewright_model::event::{
    AgentReport, Event, Idle, LanePoint, OpenedWorktree, Reading, Record, SnapshotReason, Worktree,
};
use lanewright_model::{
    ChangeSize, Demand, ExitCause, Failure, FailureKind, HumanGate, JobExit, JobId, JobRole, Lane, LaneId, LaneIndex,
    Plan, Round, Stage, TaskId, Timestamp, Verdict,
};
use lanewright_schedule::{Action, LaneState, Rebuild, RestartFrom, RunState};
use repository::{Content, Repository};
use rustc_hash::{FxHashMap, FxHashSet};

use super::bugs::Bug;
use super::dice::Dice;
use super::plans::Script;
use super::run::BY_HAND;
use super::user::Deed;
use super::watch::Watch;

pub struct World {
    pub plan: Arc<Plan>,
    pub script: Script,
    pub bug: Option<Bug>,
    pub dice: Dice,
    pub now: i64,
    planned: FxHashSet<JobId>,
    checkpoints: FxHashSet<(LaneId, Stage)>,
    pub jobs: FxHashMap<JobId, SimJob>,
    /// How often the machine was started again.
    pub boot: u32,
    /// Those that have no exit.
    pub running: BTreeSet<JobId>,
    tries: FxHashMap<String, u32>,
    /// Attempts that ended well and changed nothing.
    idle: FxHashSet<JobId>,
    pub git: Repository,
    pub merges: Vec<LaneIndex>,
    lane_branches: BTreeMap<LaneIndex, CommitId>,
    agent_branches: BTreeMap<(LaneIndex, usize), CommitId>,
    /// What agents committed in git directories of their own, and was not taken over yet.
    private: BTreeMap<(LaneIndex, usize), CommitId>,
    open: BTreeSet<(LaneIndex, Option<usize>)>,
    /// Lanes that have worked and are not over.
    holding: BTreeSet<LaneIndex>,
    /// The candidates that were chosen.
    chosen: BTreeMap<LaneIndex, usize>,
    /// What keeps the work of those that were not.
    kept: BTreeMap<(LaneIndex, usize), CommitId>,
    /// Lanes that the user leaves out.
    skipped: BTreeSet<LaneIndex>,
    /// What people committed on the branches of lanes that are not built again since.
    by_hand: BTreeMap<LaneIndex, BTreeSet<String>>,
    /// How many snapshots that agents are to start from turn out to be damaged.
    pub damages: u32,
    /// Agents whose work nobody could keep.
    unkept: FxHashSet<(LaneIndex, usize)>,
    /// Heads of lanes that were looked at for what the lane must have, and whether it was there.
    looked_at: BTreeMap<LaneIndex, Vec<(CommitId, bool)>>,
    /// What the remote has of the lanes' branches, and the heads that were announced before they were pushed.
    remote: BTreeMap<LaneIndex, CommitId>,
    announced: FxHashSet<(LaneId, CommitId)>,
    /// How many pull requests the forge has for each lane, and for which head they were last brought up to date.
    pub pulls: BTreeMap<LaneIndex, (usize, CommitId)>,
    /// Lanes whose pull requests the forge merged.
    pub merged_there: BTreeSet<LaneIndex>,
    /// The heads of lanes that their tests passed at, and the merges.
    tested: FxHashSet<CommitId>,
    /// Merges that hold more than the head that was tested.
    moved: FxHashSet<CommitId>,
    pub watch: Watch,
    pub violations: Vec<String>,
}

/// How a job ended, what its agent said, and what its output means.
pub type End = (JobExit, Option<AgentReport>, Option<Box<Reading>>);

pub struct SimJob {
    pub ends_at: i64,
    pub stopped: bool,
    pub exit: Option<End>,
    /// What it tests.
    judges: Option<CommitId>,
}

impl World {
    pub fn new(plan: Arc<Plan>, script: Script, dice: Dice, bug: Option<Bug>) -> Self {
        let leaves_rebases = script.user_leaves_rebases();
        Self {
            watch: Watch::new(plan.clone()),
            plan,
            script,
            bug,
            dice,
            now: 0,
            planned: FxHashSet::default(),
            checkpoints: FxHashSet::default(),
            jobs: FxHashMap::default(),
            boot: 0,
            running: BTreeSet::new(),
            tries: FxHashMap::default(),
            idle: FxHashSet::default(),
            git: Repository::new(leaves_rebases),
            merges: Vec::new(),
            lane_branches: BTreeMap::new(),
            agent_branches: BTreeMap::new(),
            private: BTreeMap::new(),
            open: BTreeSet::new(),
            holding: BTreeSet::new(),
            chosen: BTreeMap::new(),
            kept: BTreeMap::new(),
            skipped: BTreeSet::new(),
            by_hand: BTreeMap::new(),
            damages: 0,
            unkept: FxHashSet::default(),
            looked_at: BTreeMap::new(),
            remote: BTreeMap::new(),
            announced: FxHashSet::default(),
            pulls: BTreeMap::new(),
            merged_there: BTreeSet::new(),
            tested: FxHashSet::default(),
            moved: FxHashSet::default(),
            violations: Vec::new(),
        }
    }

    pub fn time(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.now)
    }

    pub fn complain(&mut self, violation: impl Into<String>) {
        self.violations.push(violation.into());
    }

    fn content(&self, commit: &CommitId) -> Content {
        self.git.content(commit)
    }

    pub fn integrated(&self) -> Content {
        self.content(&self.git.integration)
    }

    fn merge(&mut self, ours: &CommitId, theirs: &CommitId) -> CommitId {
        self.git.merge(ours, theirs)
    }

    /// Everything that the lane's agents have to bring.
    pub fn pieces(&self, lane: LaneIndex) -> BTreeSet<String> {
        let plan = self.plan.lane(lane);
        let is_at_work = |agent: &usize| {
            plan.agents[*agent].candidate.is_none() || self.chosen.get(&lane).is_none_or(|chosen| chosen == agent)
        };
        let of_agent = |index: usize| {
            let agent = &plan.agents[index];
            // What may be empty is not done again.
            let most = if plan.must_change_files(index) { 1_000 } else { 1 };
            let never = move |task: &TaskId| self.script.idle_passes(&plan.id, agent.name.as_str(), task) >= most;
            let own = agent.tasks.iter().filter(move |task| !task.kind.is_human() && !never(&task.id));
            own.map(move |task| format!("{}/{}/{}", plan.id, agent.name, task.id))
        };
        plan.round(Round::Implementation).filter(is_at_work).flat_map(of_agent).collect()
    }

    pub fn has_candidates(&self) -> bool {
        self.plan.lanes.iter().any(|lane| lane.candidates().next().is_some())
    }

    /// Whether all candidates of a lane must have their turn: a refusal in any lane keeps those with its account waiting.
    pub fn needs_every_candidate(&self) -> bool {
        let lanes = self.plan.lanes.iter().filter(|lane| lane.candidates().next().is_some());
        lanes.into_iter().any(|lane| self.script.needs_every_candidate(&lane.id))
    }

    /// What candidates brought is the same whichever was chosen.
    pub fn without_names(&self, piece: &str) -> String {
        let lane = piece.split('/').next().and_then(|lane| self.plan.find(&LaneId::new(lane).ok()?));
        match lane.filter(|lane| self.plan.lane(*lane).candidates().next().is_some()) {
            Some(lane) => format!("{} by a candidate", self.id(lane)),
            None => piece.to_owned(),
        }
    }

    /// Only the chosen candidate is in the lane, and what the others did is kept.
    fn expect_chosen(&mut self, lane: LaneIndex, content: &Content, state: &RunState) {
        let plan = self.plan.clone();
        let plan = plan.lane(lane);
        let chosen = self.chosen.get(&lane).copied();
        for candidate in plan.candidates().filter(|candidate| chosen != Some(*candidate)) {
            let (id, name) = (&plan.id, &plan.agents[candidate].name);
            let own = format!("{id}/{name}/");
            if content.iter().any(|piece| piece.starts_with(&own)) {
                self.complain(format!("{id} was merged with the work of {name}, which was not chosen"));
            }
            let worker = &state.lane(lane).agents()[candidate];
            let work = worker.head.as_ref().map(|head| self.content(head)).unwrap_or_default();
            let kept = self.kept.get(&(lane, candidate)).map(|kept| self.content(kept)).unwrap_or_default();
            if work.iter().any(|piece| piece.starts_with(&own) && !kept.contains(piece)) {
                self.complain(format!("{id} was merged and the work of {name} is not kept"));
            }
        }
        if plan.candidates().next().is_some() && !self.chosen.contains_key(&lane) {
            self.complain(format!("{} was merged and no candidate was chosen", plan.id));
        }
    }

    /// A person's answer: sometimes no, the first time, to a task that has one before it.
    pub fn answer(&mut self, lane: &Lane, gate: HumanGate) -> Event {
        let first = |task: &TaskId| lane.agents.iter().any(|agent| agent.tasks[0].id == *task);
        let mendable = matches!(&gate, HumanGate::Task(task) if !first(task));
        let refuses = self.script.person_refuses(&lane.id, &gate.to_string());
        let approved = !self.fails_once(&format!("{} {gate} person", lane.id), mendable && refuses);
        Event::GateAnswered { lane: lane.id.clone(), gate, approved, message: "hm".into() }
    }

    /// What is on disk now, as far as something must be there before it is acted upon.
    pub fn learn(&mut self, durable: &[Record]) {
        for record in durable {
            self.violations.extend(self.watch.see(record));
            match &record.event {
                Event::JobPlanned { job, .. } => drop(self.planned.insert(job.clone())),
                Event::CheckpointReached { lane: Some(lane), checkpoint } => {
                    self.checkpoints.insert((lane.clone(), checkpoint.stage));
                    if let (Stage::PrePr, Some(head)) = (checkpoint.stage, &checkpoint.head_sha) {
                        self.announced.insert((lane.clone(), head.clone()));
                    }
                }
                Event::LaneMerged { lane, .. } | Event::LaneFailed { lane, .. } | Event::LaneBlocked { lane, .. } => {
                    self.holding.remove(&self.plan.find(lane).unwrap());
                }
                Event::CandidateChosen { lane, agent, .. } => {
                    let lane = self.plan.find(lane).unwrap();
                    let at = self.plan.lane(lane).agents.iter().position(|known| known.name == *agent);
                    self.chosen.extend(at.map(|at| (lane, at)));
                }
                Event::LaneSkipped { lane, .. } => {
                    self.holding.remove(&self.plan.find(lane).unwrap());
                    self.skipped.insert(self.plan.find(lane).unwrap());
                }
                Event::LaneRolledBack { lane, point, .. } => {
                    self.holding.remove(&self.plan.find(lane).unwrap());
                    self.skipped.remove(&self.plan.find(lane).unwrap());
                    if point.is_none() {
                        self.chosen.remove(&self.plan.find(lane).unwrap());
                    }
                    let stays = |stage: Stage| point.is_some() && stage != Stage::PrePr;
                    self.checkpoints.retain(|(of, stage)| of != lane || stays(*stage));
                }
                _ => {}
            }
        }
    }

    fn expect_checkpoint(&mut self, lane: LaneIndex, stage: Stage) {
        let id = self.id(lane);
        if !self.checkpoints.contains(&(id.clone(), stage)) {
            self.complain(format!("checkpoint {stage} of {id} was not on disk before it was acted upon"));
        }
    }

    /// Whether the lane is not on the integration branch and can begin again with the same outcome.
    pub fn may_roll_back(&self, lane: LaneIndex) -> bool {
        !self.merges.contains(&lane) && !self.script.is_idle_once(&self.id(lane))
    }

    /// Those of the lanes whose agents come to the same when they work once more.
    pub fn may_work_again(&self, mut lanes: Vec<LaneId>) -> Vec<LaneId> {
        lanes.retain(|lane| !self.script.is_idle_once(lane));
        lanes
    }

    /// A person commits on the lane's branch. Not in place of an agent that is idle or never succeeds: that changes what
    /// the run comes to.
    pub fn commit_by_hand(&mut self, lane: LaneIndex) {
        let Some(head) = self.lane_branches.get(&lane).cloned() else { return };
        let is_unkept = self.unkept.iter().any(|(of, _)| *of == lane);
        if self.is_hopeless(lane) || self.script.is_idle_once(&self.id(lane)) || is_unkept {
            return;
        }
        let piece = format!("{}{BY_HAND}{}", self.id(lane), self.git.commits);
        let mut content = (*self.content(&head)).clone();
        content.insert(piece.clone());
        self.by_hand.entry(lane).or_default().insert(piece);
        let commit = self.git.commit(&[&head], content);
        self.lane_branches.insert(lane, commit);
    }

    /// The lane's branch, if it is not where the run log has it.
    pub fn moved_branch(&self, lane: LaneIndex, state: &RunState) -> Option<CommitId> {
        self.lane_branches.get(&lane).filter(|head| state.lane(lane).head() != Some(*head)).cloned()
    }

    /// Removes the branches and worktrees of the lane; its work is in snapshots.
    pub fn roll_back(&mut self, lane: LaneIndex) {
        self.by_hand.remove(&lane);
        self.looked_at.remove(&lane);
        self.close(lane);
    }

    /// Its branches and worktrees are gone.
    pub fn close(&mut self, lane: LaneIndex) {
        self.lane_branches.remove(&lane);
        self.agent_branches.retain(|(of, _), _| *of != lane);
        self.private.retain(|(of, _), _| *of != lane);
        self.open.retain(|(of, _)| *of != lane);
        self.unkept.retain(|(of, _)| *of != lane);
    }

    /// Whether a lane can be taken back to where it stood before: no person has worked in it since.
    pub fn may_return(&self, lane: LaneIndex) -> bool {
        !self.by_hand.contains_key(&lane) && self.unkept.iter().all(|(of, _)| *of != lane)
    }

    /// Its branches and worktrees are those that it had `then`, after the record `seq`.
    pub fn return_to(&mut self, lane: LaneIndex, seq: u64, then: &LaneState) -> LanePoint {
        let plan = self.plan.clone();
        let mut worktrees = Vec::new();
        self.chosen.remove(&lane);
        self.chosen.extend(then.chosen().map(|chosen| (lane, chosen)));
        if let (Some(opened), Some(head)) = (then.worktree(), then.head()) {
            self.lane_branches.insert(lane, head.clone());
            self.open.insert((lane, None));
            let worktree = Worktree { head: head.clone(), ..opened.clone() };
            worktrees.push(OpenedWorktree { agent: None, worktree, snapshot: None });
        }
        for (at, agent) in then.agents().iter().enumerate() {
            if let (Some(opened), Some(head)) = (&agent.worktree, &agent.head) {
                self.agent_branches.insert((lane, at), head.clone());
                self.open.insert((lane, Some(at)));
                let agent = Some(plan.lane(lane).agents[at].name.clone());
                let worktree = Worktree { head: head.clone(), ..opened.clone() };
                worktrees.push(OpenedWorktree { agent, worktree, snapshot: None });
            }
        }
        let (stage, base) = (then.stage(), then.base().cloned().expect("a lane with a checkpoint has a base"));
        LanePoint { name: seq.to_string(), seq, stage, base, worktrees, again: Vec::new() }
    }

    /// The merges of lanes are taken out of the integration branch again.
    pub fn undo_merges(&mut self, lanes: &[LaneIndex]) {
        let prefixes: Vec<String> = lanes.iter().map(|&lane| format!("{}/", self.id(lane))).collect();
        let commit = self.git.revert(|piece| prefixes.iter().any(|prefix| piece.starts_with(prefix)));
        self.merges.retain(|lane| !lanes.contains(lane));
        self.publish_beside_user(commit);
    }

    /// Another program removes a lane's branch, and the resume restores it from the run log; whether there was one.
    pub fn lose_a_branch(&mut self, state: &RunState) -> bool {
        let recorded = |lane: &&LaneIndex| state.lane(**lane).head() == self.lane_branches.get(*lane);
        let lanes: Vec<LaneIndex> = self.lane_branches.keys().filter(recorded).copied().collect();
        let at = self.dice.roll(lanes.len() as u32) as usize;
        let Some(&lane) = lanes.get(at) else { return false };
        let lane_state = state.lane(lane);
        let from = if self.bug == Some(Bug::RestoredAtBase) { lane_state.base() } else { lane_state.head() };
        self.lane_branches.insert(lane, from.cloned().unwrap());
        true
    }

    /// An agent moves the integration branch as `git update-ref` does, with work on top of it.
    pub fn move_branch_by_plumbing(&mut self) {
        let tip = self.git.integration.clone();
        let mut content = (*self.content(&tip)).clone();
        content.insert(format!("plumbing{BY_HAND}{}", self.git.commits));
        let commit = self.git.commit(&[&tip], content);
        self.git.move_branch(commit);
    }

    /// Carries out what is no job; the same promises as the real executors: done already is found done.
    pub fn carry_out(&mut self, action: &Action, lane_branch: Option<CommitId>, state: &RunState) -> Vec<Event> {
        match action {
            Action::CheckLane(lane) => {
                let base = self.base(*lane, state);
                let lane = self.id(*lane);
                let missing = if self.script.lacks_setup(&lane) { vec!["API_KEY".to_owned()] } else { vec![] };
                vec![Event::LaneBased { lane, base, port: 1, missing }]
            }
            Action::OpenWorktree { lane, agent } => self.open_worktree(*lane, *agent, state),
            Action::CommitWork(lane, agent) => self.commit_work(*lane, *agent, state),
            Action::Snapshot { lane, agent, reason } => vec![self.snapshot(*lane, *agent, *reason, state)],
            Action::MergeAgent(lane, agent) => self.merge_agent(*lane, *agent, lane_branch, state),
            Action::ReleaseAgent(lane, agent) => {
                self.open.remove(&(*lane, Some(*agent)));
                vec![Event::WorktreeReleased { lane: self.id(*lane), agent: self.agent(*lane, *agent) }]
            }
            Action::ResetAgent(lane, agent) => self.reset_agent(*lane, *agent, state),
            Action::ResetLane(lane) => self.reset_lane(*lane, state),
            Action::StageMerge(lane) => self.stage_merge(*lane, state),
            Action::PublishMerge(lane) => self.publish(*lane, state),
            Action::PushBranch(lane) => vec![self.push_branch(*lane, state)],
            Action::OpenPullRequest(lane) => vec![self.open_pull_request(*lane, state)],
            Action::CheckPullRequests => self.check_pull_requests(state),
            Action::MergePullRequest(lane) => vec![self.merge_pull_request(*lane, state)],
            Action::CleanLane(lane) => {
                if self.open.iter().any(|(of, agent)| of == lane && agent.is_some()) {
                    self.complain(format!("{} is over, and an agent has its worktree still", self.id(*lane)));
                }
                self.open.remove(&(*lane, None));
                vec![Event::LaneCleaned { lane: self.id(*lane), kept: vec![] }]
            }
            Action::BisectMerges(lane) => {
                let culprit = lane.map(|lane| self.agent(lane, state.lane(lane).merges()[0].0).to_string());
                vec![Event::MergesBisected { lane: lane.map(|lane| self.id(lane)), culprit, commit: None }]
            }
            Action::CheckMustHaves(lane) => vec![self.check_must_haves(*lane, state)],
            Action::MeasureChanges(lane) => vec![self.measure_changes(*lane, state)],
            Action::OpenFinal => vec![Event::FinalOpened { worktree: worktree("final", self.git.integration.clone()) }],
            Action::EmptyPool => vec![Event::PoolEmptied { kept: vec![] }],
            Action::RunJob(_) | Action::StopJob { .. } => unreachable!("jobs are started elsewhere"),
            Action::PlaceLane(_) | Action::FollowLane(_) | Action::StopPlacement { .. } => {
                unreachable!("no plan has an executor")
            }
        }
    }

    /// The branch that a merge of an agent starts from.
    pub fn lane_branch_of(&self, action: &Action) -> Option<CommitId> {
        match action {
            Action::MergeAgent(lane, _) => self.lane_branches.get(lane).cloned(),
            _ => None,
        }
    }

    fn id(&self, lane: LaneIndex) -> LaneId {
        self.plan.lane(lane).id.clone()
    }

    fn agent(&self, lane: LaneIndex, agent: usize) -> lanewright_model::AgentName {
        self.plan.lane(lane).agents[agent].name.clone()
    }

    fn open_worktree(&mut self, lane: LaneIndex, agent: Option<usize>, state: &RunState) -> Vec<Event> {
        self.expect_checkpoint(lane, Stage::BeforeLaneStart);
        let lane_state = state.lane(lane);
        let head = match agent {
            None => {
                let start = lane_state.base().cloned().unwrap();
                for dependency in self.plan.clone().dag().dependencies(lane) {
                    if !self.skipped.contains(dependency)
                        && !self.content(&start).is_superset(&self.pieces(*dependency))
                    {
                        self.complain(format!(
                            "{} started without the work of {}",
                            self.id(lane),
                            self.id(*dependency)
                        ));
                    }
                }
                self.lane_branches.entry(lane).or_insert(start).clone()
            }
            Some(agent) => {
                let start = lane_state.head().cloned().unwrap();
                self.agent_branches.insert((lane, agent), start.clone());
                start
            }
        };
        self.open.insert((lane, agent));
        let agent = agent.map(|agent| self.agent(lane, agent));
        vec![Event::WorktreeOpened { lane: self.id(lane), agent, worktree: worktree("b", head) }]
    }

    fn branch(&mut self, lane: LaneIndex, agent: usize) -> CommitId {
        if self.plan.lane(lane).shares_worktree(agent) {
            return self.lane_branch(lane);
        }
        let known = self.agent_branches.get(&(lane, agent)).cloned();
        self.expect_known(known, lane)
    }

    fn move_to(&mut self, (lane, agent): (LaneIndex, usize), head: CommitId) {
        if self.plan.lane(lane).shares_worktree(agent) {
            self.lane_branches.insert(lane, head);
        } else {
            self.agent_branches.insert((lane, agent), head);
        }
    }

    fn lane_branch(&mut self, lane: LaneIndex) -> CommitId {
        let known = self.lane_branches.get(&lane).cloned();
        self.expect_known(known, lane)
    }

    fn expect_known(&mut self, branch: Option<CommitId>, lane: LaneIndex) -> CommitId {
        branch.unwrap_or_else(|| {
            self.complain(format!("{} needs a branch that is not there", self.id(lane)));
            self.git.integration.clone()
        })
    }

    fn commit_work(&mut self, lane: LaneIndex, agent: usize, state: &RunState) -> Vec<Event> {
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let worker = &lane_state.agents()[agent];
        let task = plan.agents[agent].tasks[worker.task].id.clone();
        let (name, must_change) = (plan.agents[agent].name.clone(), plan.must_change_files(agent));
        let start = lane_state.start_of(agent).unwrap();
        let task_start = worker.good.as_ref().unwrap_or(start);
        let role = JobRole::Attempt { agent: name.clone(), task: task.clone() };
        let job = JobId { lane: Some(self.id(lane)), role, number: worker.attempt };
        if self.private.contains_key(&(lane, agent)) {
            self.complain(format!("work of {job} was committed before its git directory was taken over"));
        }
        let mut head = self.branch(lane, agent);
        if !self.idle.contains(&job) && !self.commits_itself(&job) {
            head = self.with_work_of(&job, &head);
        }
        let content = self.content(&head);
        let idle = match () {
            () if !must_change => Idle::No,
            () if content == self.content(start) => Idle::Agent,
            () if content == self.content(task_start) => Idle::Task,
            () => Idle::No,
        };
        self.move_to((lane, agent), head.clone());
        let lines = self.script.lines(&self.id(lane), self.agent(lane, agent).as_str());
        let size = self.plan.lane(lane).agents[agent].candidate;
        let size = size.map(|_| ChangeSize { added: lines, ..ChangeSize::default() });
        // A commit holds everything that is in the worktree.
        self.unkept.remove(&(lane, agent));
        vec![Event::WorkCommitted {
            lane: self.id(lane),
            agent: self.agent(lane, agent),
            head,
            changed: vec![],
            prohibited: vec![],
            idle,
            ignored: vec![],
            size,
        }]
    }

    fn snapshot(&mut self, lane: LaneIndex, agent: usize, reason: SnapshotReason, state: &RunState) -> Event {
        let who = (lane, agent);
        let (lane, agent) = (self.id(lane), Some(self.agent(lane, agent)));
        self.unkept.remove(&who);
        let has_candidates = self.plan.lane(who.0).candidates().next().is_some();
        let is_needed = has_candidates && self.script.needs_every_candidate(&lane);
        if self.dice.roll(20) == 0 && !is_needed {
            // What passed its gate is committed; what failed may be in the worktree only.
            if !matches!(reason, SnapshotReason::Task | SnapshotReason::Candidate) {
                self.unkept.insert(who);
            }
            return Event::SnapshotFailed { lane, agent, reason, error: "no space".into() };
        }
        if reason == SnapshotReason::Candidate {
            self.kept.extend(state.lane(who.0).agents()[who.1].head.clone().map(|head| (who, head)));
        }
        Event::snapshot(lane, agent, reason, commit_name(0), "refs/x".into())
    }

    fn merge_agent(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        lane_branch: Option<CommitId>,
        state: &RunState,
    ) -> Vec<Event> {
        let (id, name) = (self.id(lane), self.agent(lane, agent));
        if self.fails_once(&format!("{lane:?} {agent} conflict"), self.script.agent_conflict(&id, agent)) {
            let failure = Failure::new(FailureKind::Conflict, "conflict");
            return vec![Event::FailureNoted { lane: id, agent: Some(name), task: None, failure }];
        }
        // The branch of one that was not chosen at first may be gone.
        let theirs = match self.plan.lane(lane).agents[agent].candidate {
            Some(_) => state.lane(lane).agents()[agent].head.clone().unwrap(),
            None => self.branch(lane, agent),
        };
        let head = if self.bug == Some(Bug::MergeForgotten) && self.dice.roll(4) == 0 {
            state.lane(lane).head().cloned().unwrap()
        } else {
            let ours = lane_branch.unwrap_or_else(|| self.lane_branch(lane));
            self.merge(&ours, &theirs)
        };
        self.lane_branches.insert(lane, head.clone());
        vec![Event::AgentMerged { lane: id, agent: name, head }]
    }

    fn reset_agent(&mut self, lane: LaneIndex, agent: usize, state: &RunState) -> Vec<Event> {
        if self.unkept.contains(&(lane, agent)) {
            self.complain(format!("work of {} that nobody could keep was thrown away", self.id(lane)));
        }
        let worker = &state.lane(lane).agents()[agent];
        let (id, name, shares) = (self.id(lane), self.agent(lane, agent), self.plan.lane(lane).shares_worktree(agent));
        let head = match worker.restart {
            RestartFrom::LaneHead => state.lane(lane).head().cloned(),
            _ => worker.good.clone().or(state.lane(lane).head().cloned()),
        };
        let head = head.unwrap();
        let before = worker.good_points().into_iter().nth(1).filter(|_| worker.restart == RestartFrom::LastGood);
        let fall_back = before.filter(|_| self.damages > 0 && !shares && !self.script.is_idle_once(&id));
        let Some(before) = fall_back else {
            if !shares {
                self.agent_branches.insert((lane, agent), head.clone());
            }
            return vec![Event::AgentReset { lane: id, agent: name, head }];
        };
        self.damages -= 1;
        self.agent_branches.insert((lane, agent), before.clone());
        if self.bug == Some(Bug::DamageNotSeen) {
            return vec![Event::AgentReset { lane: id, agent: name, head }];
        }
        let (error, commit) = ("an object is damaged".to_owned(), head);
        let damaged = Event::SnapshotDamaged {
            lane: id.clone(),
            agent: Some(name.clone()),
            commit,
            reference: String::new(),
            error,
        };
        vec![damaged, Event::AgentReset { lane: id, agent: name, head: before }]
    }

    fn reset_lane(&mut self, lane: LaneIndex, state: &RunState) -> Vec<Event> {
        let base = match state.lane(lane).rebuild() {
            Some(Rebuild::OnMerge(commit)) => commit.clone(),
            Some(Rebuild::OnFirstBase) => state.lane(lane).first_base().cloned().unwrap(),
            _ => self.git.integration.clone(),
        };
        self.lane_branches.insert(lane, base.clone());
        let content = self.content(&base);
        self.by_hand.entry(lane).or_default().retain(|piece| content.contains(piece));
        vec![Event::LaneReset { lane: self.id(lane), base }]
    }

    /// What a lane has depends on its head, however often and in which life one looks.
    fn check_must_haves(&mut self, lane: LaneIndex, state: &RunState) -> Event {
        let head = state.lane(lane).head().cloned().unwrap();
        let lacking = self.script.lacking_heads(&self.id(lane)) as usize;
        let looked_at = self.looked_at.entry(lane).or_default();
        let known = looked_at.iter().find(|(known, _)| *known == head).map(|(_, holds)| *holds);
        let holds = known.unwrap_or(looked_at.len() >= lacking);
        looked_at.retain(|(known, _)| *known != head);
        looked_at.push((head.clone(), holds));
        let (missing, holds, about) = (!holds, Some(holds), "work".to_owned());
        let verdict = Verdict { kind: Demand::Artifact, about, asked: vec![], holds, missing, why: vec![] };
        Event::MustHavesChecked { lane: self.id(lane), head, verdicts: vec![verdict] }
    }

    fn measure_changes(&self, lane: LaneIndex, state: &RunState) -> Event {
        let head = state.lane(lane).head().cloned().unwrap();
        let changes = ChangeSize { files: 1, ..ChangeSize::default() };
        let lane = self.id(lane);
        let globs = self.script.protect();
        let protected = globs.into_iter().filter(|_| self.script.touches_protected(&lane)).collect();
        Event::ChangesMeasured { lane, head, changes, protected }
    }

    fn fails_once(&mut self, key: &str, fails: bool) -> bool {
        let tries = self.tries.entry(key.to_owned()).or_default();
        *tries += 1;
        fails && *tries == 1
    }

    /// Moves the branch, and the checkout that has it; the user may switch to the branch between the two.
    fn publish_beside_user(&mut self, commit: CommitId) {
        let had_branch = self.git.user.on_branch;
        let switches = !had_branch && !self.git.user.dirty && self.dice.roll(4) == 0;
        if switches {
            self.git.user.check_out(&self.git.integration.clone());
            self.git.user.on_branch = true;
        }
        let before = self.git.integration.clone();
        self.git.move_branch(commit.clone());
        let has_branch = if self.bug == Some(Bug::SwitchNotSeen) { had_branch } else { self.git.user.on_branch };
        // A fast-forward starts from what the branch was: index and files that are elsewhere stay there.
        if has_branch && self.git.user.index == before {
            self.git.user.check_out(&commit);
        }
        if self.git.user.on_branch && (self.git.user.index != commit || self.git.user.files != commit) {
            self.complain("the user's checkout was left behind by a publication");
        }
    }

    /// The user does something beside the run.
    pub fn let_user_act(&mut self) -> Option<Deed> {
        let deed = self.git.user.act(&mut self.dice);
        match deed {
            // What status shows there keeps the user from committing it.
            Some(Deed::Commit) if self.stale_checkout().is_some() => {}
            // Without a checkout that has it, another clone pushes.
            Some(Deed::Commit) => {
                let mine = if self.git.user.on_branch { &self.git.user.index } else { &self.git.integration }.clone();
                if !self.content(&mine).is_superset(&self.integrated()) {
                    self.complain("the user's commit reverts what was merged");
                }
                let commit = self.git.commit(&[&mine], self.content(&mine));
                if self.git.user.on_branch {
                    self.git.user.check_out(&commit);
                }
                self.git.move_branch(commit);
            }
            Some(Deed::Switch) => {
                self.git.user.on_branch = !self.git.user.on_branch;
                self.git.user.check_out(&self.git.integration.clone());
            }
            None => {}
        }
        let is_tip = |commit: &CommitId| self.git.tips.contains(commit);
        if !is_tip(&self.git.user.index) || !is_tip(&self.git.user.files) {
            self.complain("the user's checkout holds what the branch never was");
        }
        deed
    }

    /// The user ends whatever keeps the integration branch from moving.
    pub fn make_way(&mut self) {
        let tip = self.git.integration.clone();
        self.git.user.make_way(&tip);
    }

    /// Only what is on record moves a lane's branch.
    fn expect_branch(&mut self, lane: LaneIndex, state: &RunState) {
        if self.lane_branches.get(&lane) != state.lane(lane).head() {
            self.complain(format!("the branch of {} is not where the run log has it", self.id(lane)));
        }
    }

    /// The doctor looks at a stopped run: a lane whose merge is staged has its worktree at that merge, not at its branch.
    pub fn examine(&mut self, state: &RunState) {
        for lane in self.plan.clone().indices() {
            if let (Some(staged), Some(Bug::StagedMergeIsDamage)) = (state.lane(lane).staged(), self.bug) {
                self.lane_branches.insert(lane, staged.commit.clone());
            }
        }
    }
}

fn commit_name(number: u32) -> CommitId {
    CommitId::new(&format!("{number:040x}")).unwrap()
}

fn worktree(branch: &str, head: CommitId) -> Worktree {
    Worktree { slot: 0, path: "/w".into(), branch: branch.into(), head }
}

fn exit(cause: ExitCause, exit_code: i32) -> JobExit {
    let moment = Timestamp::from_unix_millis(0);
    JobExit {
        cause,
        exit_code,
        command: "x".into(),
        started_at: moment,
        finished_at: moment,
        tail: vec![],
        notes: String::new(),
    }
}
