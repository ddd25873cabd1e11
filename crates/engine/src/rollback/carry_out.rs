//! Carries out a rollback: each step is recorded before the next one, and detects whether it was done before.

use std::path::PathBuf;

use lanewright_git::{self as git, Checkout, Mode, Snapshot};
use lanewright_model::event::{Event, LanePoint, LaneStage, OpenedWorktree, Record, RunOutcome, SnapshotReason};
use lanewright_model::{AgentName, CommitId, LaneId, Timestamp};
use lanewright_programs::process;
use lanewright_schedule::RunState;
use lanewright_store::Journal;
use lanewright_view::history::SnapshotView;

use super::merges::{self, Reverted};
use super::plan::{LaneToRollBack, RollbackPlan};
use super::points::{Point, SavedFiles};
use super::{Result, returns, worktrees};
use crate::executor::crash::{CrashPoint, crash_point};
use crate::executor::timed::sync_log;
use crate::executor::{Executor, ExecutorError, SnapshotTarget};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBackLane {
    pub lane: LaneId,
    pub kept: Vec<SnapshotView>,
    /// New paths of files that were found where its worktrees should be.
    pub aside: Vec<PathBuf>,
    /// Lists of the plan in which what it did stays ticked, because they changed there since.
    pub left_ticked: Vec<String>,
    /// The commit that undid its merge, if it was merged.
    pub undone_by: Option<CommitId>,
}

/// What is said of a list in which the ticks of a lane stay.
pub fn left_ticked(list: &str) -> String {
    format!("what it did stays ticked in {list}, which changed there since or has uncommitted changes; open it by hand")
}

struct Rollback<'a> {
    executor: &'a Executor,
    journal: &'a mut Journal,
    state: &'a mut RunState,
    watch: &'a mut dyn FnMut(&[Record]),
}

/// Rolls the lanes back. The caller holds the run's lock; `watch` gets every record once it is durable.
///
/// # Errors
/// Before `RollbackBegun` nothing was changed but
/// repairs; after it the same rollback, requested again, finishes.
pub fn carry_out(
    executor: &Executor,
    journal: &mut Journal,
    state: &mut RunState,
    plan: &RollbackPlan,
    watch: &mut dyn FnMut(&[Record]),
) -> Result<Vec<RolledBackLane>> {
    let mut rollback = Rollback { executor, journal, state, watch };
    if plan.lanes.is_empty() {
        // One that died after its last lane did not come to these.
        return if plan.ends_run { rollback.end_run().map(|()| Vec::new()) } else { Ok(Vec::new()) };
    }
    rollback.repair(plan)?;
    check_worktrees(executor, plan)?;
    let staged = merges::checked(executor, &plan.lanes)?;
    plan.lanes.iter().try_for_each(|lane| returns::check(executor, lane, &staged))?;
    let to = |lane: &LaneToRollBack| lane.point.as_ref().map(|point| point.name.clone()).unwrap_or_default();
    let begun = plan.lanes.iter().map(|lane| Event::RollbackBegun { lane: rollback.id(lane), to: to(lane) }).collect();
    rollback.record(begun)?;
    rollback.stop_jobs(plan)?;
    // The agents that have just stopped may have changed what was checked above.
    rollback.repair(plan)?;
    check_worktrees(executor, plan)?;
    let kept = plan.lanes.iter().map(|lane| rollback.keep(lane)).collect::<Result<Vec<_>, _>>()?;
    let undone = merges::undo(executor, &plan.lanes)?;
    crash_point(CrashPoint::RollbackStep("undo_merges"));
    let lanes = plan.lanes.iter().zip(kept);
    let rolled_back = lanes.map(|(lane, kept)| rollback.reset_lane(lane, kept, &undone)).collect::<Result<_, _>>()?;
    let moves = rollback.state.unrecorded_moves();
    if !moves.is_empty() {
        rollback.record(moves)?;
    }
    if plan.ends_run {
        rollback.end_run()?;
    } else {
        rollback.release_final()?;
        rollback.empty_pool()?;
    }
    Ok(rolled_back)
}

/// Refuses a rollback that would lose what is in a worktree or take a branch from the user. Changes nothing.
pub fn check_worktrees(executor: &Executor, plan: &RollbackPlan) -> Result<()> {
    plan.lanes.iter().try_for_each(|lane| worktrees::check(executor, lane))
}

impl Rollback<'_> {
    fn id(&self, lane: &LaneToRollBack) -> LaneId {
        self.executor.plan.lane(lane.lane).id.clone()
    }

    /// Appends events to the run log; they are durable afterwards.
    fn record(&mut self, events: Vec<Event>) -> Result<()> {
        let mut records = Vec::new();
        for event in events {
            records.push(self.journal.append(self.executor.clock.now(), &event)?);
        }
        sync_log(self.journal)?;
        for record in &records {
            self.state.apply(record)?;
        }
        (self.watch)(&records);
        Ok(())
    }

    /// Restores what was removed of the lanes, such as claims, without which their worktrees are not known.
    fn repair(&mut self, plan: &RollbackPlan) -> Result<()> {
        let repaired = plan.lanes.iter().flat_map(|lane| self.executor.repair_for_rollback(lane.lane, self.state));
        let repaired: Vec<Event> = repaired.collect();
        if repaired.is_empty() { Ok(()) } else { self.record(repaired) }
    }

    fn stop_jobs(&mut self, plan: &RollbackPlan) -> Result<()> {
        let directories: Vec<_> = plan.jobs.iter().map(|job| self.executor.run.job(job)).collect();
        for directory in &directories {
            process::stop(directory, false)?;
        }
        for (job, directory) in plan.jobs.iter().cloned().zip(&directories) {
            let mut exit = process::wait_without_secrets(directory, None, &self.executor.redactor)?;
            crash_point(CrashPoint::RollbackStep("stop_job"));
            // Without it, what the attempt cost is in no sum.
            let transcript = self.executor.read_stopped(&job, &mut exit, self.state).map(Box::new);
            self.record(vec![Event::JobExited { job, exit, report: None, reading: None, transcript }])?;
        }
        Ok(())
    }

    /// When the rollback of a lane began, which names its snapshots; the same when it is asked for again.
    fn began(&self, lane: &LaneToRollBack) -> Timestamp {
        self.state.lane(lane.lane).since().unwrap_or_else(|| self.executor.clock.now())
    }

    /// Keeps everything of the lane that nothing else holds: what is uncommitted in its worktrees, and what is on its
    /// branches alone. Returns all saved work of the lane, earlier snapshots included.
    fn keep(&mut self, lane: &LaneToRollBack) -> Result<Vec<SnapshotView>> {
        let (executor, at) = (self.executor, self.began(lane));
        let mut kept = worktrees::existing(executor, &lane.kept)?;
        let mut heads = Vec::new();
        for slot in worktrees::held(executor, lane.lane)?.into_iter().filter(|slot| slot.provisioned) {
            let agent = slot.holder.agent;
            // Of an agent whose end no process recorded.
            if let Some(taken) = git::take_over(&executor.repository, &slot.path)? {
                heads.extend(taken.left.into_iter().map(|left| (agent.clone(), left.commit)));
                git::restore_link(&executor.repository, &slot.path)?;
            }
            if git::uncommitted_paths(&executor.repository, &slot.path)?.is_empty() {
                heads.push((agent, git::head_of(&slot.path)?.commit));
                continue;
            }
            let target =
                SnapshotTarget { lane: lane.lane, agent: agent.as_ref(), at, reason: SnapshotReason::Rollback };
            let snapshot = executor.keep_worktree(&target, &slot.path)?;
            kept.push(self.record_kept(lane, agent, snapshot)?);
        }
        for (agent, branch) in worktrees::branches(executor, lane) {
            // Of one whose commit is lost nothing is left to save.
            let head = executor.repository.target_of(&git::branch_reference(&branch))?;
            if let Some(head) = head
                && executor.repository.has_commit(&head)?
            {
                heads.push((agent, head));
            }
        }
        let merged = lane.merge.is_some();
        // The branch of a lane that was merged is gone; its head is in the history that is about to be undone, or git may
        // have removed it, if its commits were not merged themselves.
        if let Some(head) = lane.head.clone().filter(|_| merged)
            && executor.repository.has_commit(&head)?
        {
            heads.push((None, head));
        }
        let integration = executor.integration()?;
        let mut fallback = None;
        for (agent, head) in heads {
            let mut holders: Vec<&CommitId> = kept.iter().map(|work| &work.commit).collect();
            holders.push(&executor.facts.base_commit);
            holders.extend((!merged).then_some(&integration));
            // One whose history cannot be read holds nothing for certain.
            let is_held = |holder: &CommitId| executor.repository.is_ancestor(&head, holder).unwrap_or_default();
            if !holders.into_iter().any(is_held) {
                let snapshot = executor.keep_commit(lane.lane, &head, at)?;
                kept.push(self.record_kept(lane, agent, snapshot)?);
            } else if fallback.is_none() && head != executor.facts.base_commit {
                fallback = Some((agent, head));
            }
        }
        // By this one the rollback can be undone.
        let is_own = |work: &SnapshotView| work.reason == SnapshotReason::Rollback;
        if let Some((agent, head)) = fallback.filter(|_| lane.point.is_some() && !kept.iter().any(is_own)) {
            let snapshot = executor.keep_commit(lane.lane, &head, at)?;
            kept.push(self.record_kept(lane, agent, snapshot)?);
        }
        Ok(kept)
    }

    fn record_kept(
        &mut self,
        lane: &LaneToRollBack,
        agent: Option<AgentName>,
        Snapshot { commit, reference }: Snapshot,
    ) -> Result<SnapshotView> {
        crash_point(CrashPoint::RollbackStep("keep"));
        let (lane, reason, at) = (self.id(lane), SnapshotReason::Rollback, self.executor.clock.now());
        let (agent_name, name) = (agent.clone(), reference.clone());
        let work = SnapshotView {
            agent: agent_name,
            reason,
            commit: commit.clone(),
            reference: name,
            at,
            unchanged: false,
            context: None,
        };
        self.record(vec![Event::snapshot(lane, agent, reason, commit, reference)])?;
        Ok(work)
    }

    fn reset_lane(
        &mut self,
        lane: &LaneToRollBack,
        kept: Vec<SnapshotView>,
        undone: &Reverted,
    ) -> Result<RolledBackLane> {
        let id = self.id(lane);
        let aside = self.release(lane)?;
        crash_point(CrashPoint::RollbackStep("release"));
        worktrees::delete_branches(self.executor, lane)?;
        crash_point(CrashPoint::RollbackStep("delete_branches"));
        let (then, files) = match &lane.point {
            Some(point) => self.open_again(lane, point, undone)?,
            None => (None, Vec::new()),
        };
        crash_point(CrashPoint::RollbackStep("open_again"));
        let undone_by = undone.by.iter().find(|(it, _)| *it == lane.lane).map(|(_, commit)| commit.clone());
        let references = kept.iter().map(|work| work.reference.clone()).collect();
        let integration = undone_by.as_ref().and(undone.tip.clone());
        // On another base than it was judged on, it is judged again.
        let moved = then.as_ref().filter(|then| !then.again.is_empty() && then.stage > LaneStage::Implementation);
        let head = moved.and_then(|then| then.worktrees.iter().find(|opened| opened.agent.is_none()));
        let head = head.map(|opened| opened.worktree.head.clone());
        let left = undone.left_ticked.iter().filter(|(it, _)| *it == lane.lane).map(|(_, path)| left_ticked(path));
        let left = left.map(|message| Event::Noted { lane: Some(id.clone()), message });
        let mut events: Vec<Event> = left.collect();
        events.push(Event::LaneRolledBack { lane: id.clone(), integration, kept: references, point: then });
        events.extend(files);
        events.extend(head.map(|head| Event::BranchMoved { lane: id.clone(), agent: None, head, theirs: None }));
        self.record(events)?;
        let left_ticked = undone.left_ticked.iter().filter(|(it, _)| *it == lane.lane).map(|(_, path)| path.clone());
        Ok(RolledBackLane { lane: id, kept, aside, left_ticked: left_ticked.collect(), undone_by })
    }

    /// Opens the worktrees that the lane had at the point, with what they held then. Returns what is to be recorded of it:
    /// the point, and the snapshots whose files are in the worktrees.
    fn open_again(
        &mut self,
        lane: &LaneToRollBack,
        point: &Point,
        undone: &Reverted,
    ) -> Result<(Option<Box<LanePoint>>, Vec<Event>)> {
        let (executor, id) = (self.executor, self.id(lane));
        let again = returns::made_again(executor, lane, point, undone)?;
        let (mut recorded, base) = (Vec::new(), point.then.base().ok_or(ExecutorError::Missing("the lane's base"))?);
        let (name, seq, stage) = (point.name.clone(), point.seq, point.then.stage());
        let mut then = LanePoint { name, seq, stage, base: base.clone(), worktrees: Vec::new(), again };
        then.base = then.now(base);
        for (at, head) in returns::branches(executor, lane.lane, &point.then) {
            let agent = at.map(|at| executor.plan.lane(lane.lane).agents[at].name.clone());
            let branch = at.map_or_else(|| executor.lane_branch(lane.lane), |at| executor.agent_branch(lane.lane, at));
            let plan = executor.plan.lane(lane.lane);
            let has_own = |name: &AgentName| {
                (0..plan.agents.len()).any(|at| plan.agents[at].name == *name && !plan.shares_worktree(at))
            };
            let in_it = |saved: &&SavedFiles| saved.agent.as_ref().filter(|name| has_own(name)) == agent.as_ref();
            let saved: Vec<&SavedFiles> = point.files.iter().filter(in_it).collect();
            let head = returns::head_then(executor, &head, point, &saved)?;
            let want = Checkout { branch: Some(branch), start: then.now(&head), mode: Mode::Reset, adopt: true };
            let worktree = executor.open(&executor.holder(lane.lane, at), &want, lane.lane)?;
            let files = saved.iter().find(|saved| returns::is_of_files(executor, saved));
            let files = files.or(saved.first().filter(|_| point.merged_since));
            if let Some(SavedFiles { agent, commit, reference }) = files {
                let now = then.now(commit);
                git::restore(&worktree.path, &now)?;
                let (lane, agent, reason) = (id.clone(), agent.clone(), SnapshotReason::Restore);
                let (commit, reference) = (commit.clone(), reference.clone());
                if now == commit {
                    recorded.push(executor.taken(lane, agent, reason, Snapshot { commit, reference }));
                }
            }
            let snapshot = files.map(|saved| saved.commit.clone());
            then.worktrees.push(OpenedWorktree { agent, worktree, snapshot });
        }
        self.state.note_point(lane.lane, point.seq, (*point.then).clone());
        Ok((Some(Box::new(then)), recorded))
    }

    /// Gives the lane's slots back, clean and on no branch, and removes the links to them. Returns where something that
    /// was in the place of a worktree was moved to.
    fn release(&mut self, lane: &LaneToRollBack) -> Result<Vec<PathBuf>> {
        let (executor, at) = (self.executor, self.began(lane));
        let mut moved = Vec::new();
        for slot in worktrees::held(executor, lane.lane)? {
            let lost = executor.pool.set_lost_aside(&slot.holder, &slot.path, at)?;
            if let Some(aside) = lost.and_then(|lost| lost.aside) {
                let message = format!("what was in the place of a worktree is now {}", aside.display());
                moved.push(aside);
                self.record(vec![Event::Noted { lane: Some(self.id(lane)), message }])?;
            }
            let mut heads = Vec::new();
            if slot.provisioned {
                let head = git::head_of(&slot.path)?.commit;
                git::restore(&slot.path, &head)?;
                heads.push(head);
            }
            executor.pool.unlink(&slot.holder)?;
            executor.pool.release(&slot.holder, &heads)?;
        }
        Ok(moved)
    }

    /// Releases the slot of the final gate, whose result no longer applies. Files that the gate left are discarded.
    fn release_final(&self) -> Result<()> {
        let executor = self.executor;
        let slots = executor.pool.held_by(&executor.facts.run_id)?;
        for slot in slots.iter().filter(|slot| slot.holder.lane.is_none()) {
            executor.pool.throw_away(slot, &executor.integration()?)?;
        }
        Ok(())
    }

    fn end_run(&mut self) -> Result<()> {
        self.release_final()?;
        self.empty_pool()?;
        crash_point(CrashPoint::RollbackStep("empty_pool"));
        self.record(vec![Event::RunFinished { outcome: RunOutcome::RolledBack, code: 0 }])
    }

    /// A run without slots needs no pool until it is resumed.
    fn empty_pool(&mut self) -> Result<()> {
        let executor = self.executor;
        let run = &executor.facts.run_id;
        if executor.facts.options.keep_pool || !executor.pool.held_by(run)?.is_empty() {
            return Ok(());
        }
        let left = executor.pool.empty(run, None)?;
        let kept = left.iter().map(|left| format!("{}: {}", left.path.display(), left.reason)).collect();
        self.record(vec![Event::PoolEmptied { kept }])
    }
}
