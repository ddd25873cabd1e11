//! Repairs what the run log names and another program removed: claims, branches, git's records of worktrees, objects, snapshots.
//!
//! An action that git refuses is tried again after such a repair. Objects need no refs of their own for that: what no ref
//! leads to yet can be made again from what is recorded and from the files (decision 21).

pub mod damaged_objects;
mod reopen;

use lanewright_git::{self as git, ClaimFound, GitError, Holder};
use lanewright_model::event::{Event, Worktree};
use lanewright_model::{AgentName, CommitId, LaneIndex};
use lanewright_schedule::{AgentState, AgentStep, LaneState, RunState};

use super::{Answer, Executor, ExecutorError, Moment};
use damaged_objects::{LostHead, Restored};

/// How often an action is tried that git refuses.
const TRIES: u32 = 4;

/// A worktree that is held according to the run log.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    pub(super) holder: Holder,
    /// How to open it again: for a merge that is being tested, without a branch.
    pub(super) worktree: Worktree,
    pub(super) branch: Option<(String, CommitId)>,
    pub(super) busy: bool,
    /// The commits that its work can continue from if the head is lost, the best first.
    pub(super) points: Vec<CommitId>,
    /// Whether an agent is at a task there, and commits what it finds.
    pub(super) is_worked_on: bool,
    /// The agent whose head the branch has.
    pub(super) worker: Option<AgentName>,
    /// An agent's work there is not committed yet. If the worktree is gone, so is that work: the commit must fail, not
    /// find an empty worktree.
    pub(super) unsaved: bool,
}

/// A worktree of a lane, or of an agent with its own, that is open according to the run log.
pub(crate) struct OpenWorktree {
    /// The agent's index; `None`: the lane's.
    pub(crate) agent: Option<usize>,
    /// While the lane's tests judge its merge, the lane's worktree is at the staged commit, on no branch.
    pub(crate) worktree: Worktree,
    /// The last recorded head of its branch.
    pub(crate) head: CommitId,
}

pub(crate) fn open_worktrees(state: &RunState, lane: LaneIndex) -> Vec<OpenWorktree> {
    let (lane_state, plan) = (state.lane(lane), state.plan().lane(lane));
    if lane_state.is_elsewhere() {
        return Vec::new();
    }
    let open = |agent, worktree: Option<&Worktree>, head: Option<&CommitId>| {
        let worktree = worktree.cloned()?;
        let head = head.cloned().unwrap_or_else(|| worktree.head.clone());
        Some(OpenWorktree { agent, worktree, head })
    };
    let mut own = open(None, lane_state.worktree(), lane_state.head());
    if let (Some(own), Some(staged)) = (&mut own, lane_state.merge_under_test(plan)) {
        own.worktree.branch.clear();
        own.worktree.head = staged.commit.clone();
    }
    let agents = lane_state.agents().iter().enumerate().filter(|(agent, _)| !plan.shares_worktree(*agent));
    own.into_iter()
        .chain(agents.filter_map(|(at, agent)| open(Some(at), agent.worktree.as_ref(), agent.head.as_ref())))
        .collect()
}

impl Executor {
    pub(super) fn holdings(&self, lane: LaneIndex, state: &RunState) -> Vec<Holding> {
        let plan = self.plan.lane(lane);
        let holding = |OpenWorktree { agent, worktree, head }| {
            let works_here = |other: Option<usize>| match agent {
                Some(agent) => other == Some(agent),
                None => other.is_none_or(|other| plan.shares_worktree(other)),
            };
            let branch = agent.map_or_else(|| self.lane_branch(lane), |agent| self.agent_branch(lane, agent));
            let lane_state = state.lane(lane);
            let mut workers = lane_state.agents().iter().enumerate();
            let is_at_a_task = |at: &usize| works_here(Some(*at)) && lane_state.is_worked_on(plan, Some(*at));
            let worker = (0..plan.agents.len()).find(is_at_a_task);
            Holding {
                points: points(lane_state, agent.or(worker)),
                is_worked_on: lane_state.is_worked_on(plan, agent),
                worker: worker.map(|at| plan.agents[at].name.clone()),
                holder: self.holder(lane, agent),
                worktree,
                branch: Some((branch, head)),
                busy: self.is_busy(lane, state, works_here),
                unsaved: workers.any(|(at, worker)| works_here(Some(at)) && is_uncommitted(worker)),
            }
        };
        open_worktrees(state, lane).into_iter().map(holding).collect()
    }

    fn is_busy(&self, lane: LaneIndex, state: &RunState, own: impl Fn(Option<usize>) -> bool) -> bool {
        let plan = self.plan.lane(lane);
        let at = |job: &lanewright_model::JobId| {
            job.agent().and_then(|name| plan.agents.iter().position(|agent| agent.name == *name))
        };
        state.lane(lane).running().iter().any(|job| own(at(job)))
    }

    /// Carries out `work`. Where git refuses, what the run log names and is missing is restored, and it is tried again.
    pub(super) fn persist<T>(
        &self,
        moment: &Moment,
        tell: &dyn Fn(Event),
        work: impl Fn() -> Result<T, ExecutorError>,
    ) -> Result<T, ExecutorError> {
        for tried in 1..TRIES {
            match work() {
                Err(error @ (ExecutorError::Git(_) | ExecutorError::File(_))) => {
                    let repaired = self.repair(moment, true);
                    // What was just made may have been removed before a ref led to it.
                    if repaired.is_empty() && (tried > 1 || !may_pass(&error)) {
                        return Err(error);
                    }
                    repaired.into_iter().for_each(tell);
                }
                done => return done,
            }
        }
        work()
    }

    /// Restores what is missing of a lane, and returns what was. With `reopen` worktrees that are gone are opened again,
    /// unless a job is recorded as running there.
    fn repair(&self, moment: &Moment, reopen: bool) -> Vec<Event> {
        let mut events = Vec::new();
        let mut note = |answer: Answer| match answer {
            Ok(found) => events.extend(found),
            Err(error) => tracing::debug!("a repair failed: {error}"),
        };
        note(Ok(self.restore_recent(Some(moment.lane)).into_iter().collect()));
        note(self.restore_damaged(moment).map(|(events, _)| events));
        for holding in &moment.holdings {
            note(self.regain(holding, moment, reopen && !holding.busy && !holding.unsaved));
            if !holding.busy {
                note(self.restore_objects(holding, moment));
            }
        }
        note(self.restore_snapshot(moment));
        events
    }

    /// The same for every lane that has something left to do, as a resume begins.
    pub fn repair_all(&self, state: &RunState) -> Vec<Event> {
        let lanes = self.plan.indices().filter(|&lane| state.lane(lane).is_left_to_do());
        lanes.flat_map(|lane| self.repair(&self.moment(lane, state), true)).collect()
    }

    /// The same for a lane that is about to be rolled back, whose worktrees that are gone need not be opened again.
    pub(crate) fn repair_for_rollback(&self, lane: LaneIndex, state: &RunState) -> Vec<Event> {
        let restored = self.restore_lane(lane, state, LostHead::FallBack).unwrap_or_else(|error| {
            tracing::debug!("a repair failed: {error}");
            Restored::default()
        });
        [restored.events, self.repair(&self.moment(lane, state), false)].concat()
    }

    pub(super) fn restore_recent(&self, lane: Option<LaneIndex>) -> Option<Event> {
        let restored = self.repository.restore_recent_objects();
        let message = format!("git had lost {restored} objects that were just made; they were stored again");
        (restored > 0).then(|| Event::Noted { lane: lane.map(|lane| self.id(lane)), message })
    }

    /// Notes the holder of each slot according to the run log, so that a slot without a claim is not given to another.
    pub fn note_holders(&self, state: &RunState) {
        for lane in self.plan.indices().filter(|&lane| state.lane(lane).is_left_to_do()) {
            for holding in self.holdings(lane, state) {
                self.pool.note_holder(holding.worktree.slot, &holding.holder);
            }
        }
    }

    /// Makes sure that the holder's claim, its branch and its worktree exist; `reopen`: a worktree that is gone is opened
    /// again, else only what is still there is made known to git again.
    pub(super) fn regain(&self, holding: &Holding, moment: &Moment, reopen: bool) -> Answer {
        let Holding { holder, worktree, .. } = holding;
        let mut events = Vec::new();
        let place = self.pool.shown(holder, &worktree.path);
        let place = place.display();
        match self.pool.restore_claim(holder, worktree)? {
            ClaimFound::Held => {}
            ClaimFound::Restored => events.push(self.note_repair(moment, format!("the claim on {place} was restored"))),
            ClaimFound::Released => return Ok(events),
        }
        events.extend(self.restore_branch(holding, moment)?);
        if self.pool.register_again(worktree)? {
            let message = format!("git had lost track of the worktree {place}; it was registered again");
            events.push(self.note_repair(moment, message));
        } else if reopen {
            events.extend(self.reopen(holding, moment)?);
        }
        Ok(events)
    }

    /// Makes a branch again that was deleted: where its worktree last stood, if that continues the last recorded head,
    /// else at that head, else where it was opened.
    fn restore_branch(&self, holding: &Holding, moment: &Moment) -> Answer {
        let Some((branch, recorded)) = &holding.branch else { return Ok(Vec::new()) };
        // One that leads to a damaged commit is there.
        if !matches!(self.repository.branch_commit(branch), Ok(None)) {
            return Ok(Vec::new());
        }
        let last = self.repository.last_head_on(&holding.worktree.path, branch);
        let continues = |last: &CommitId| {
            *last == *recorded || self.repository.is_ancestor(recorded, last).is_ok_and(|continues| continues)
        };
        let candidates = last.filter(continues).into_iter().chain([recorded.clone(), holding.worktree.head.clone()]);
        for commit in candidates {
            if self.repository.has_commit(&commit)? {
                self.repository.make_branch(branch, &commit)?;
                let message = format!("branch {branch} was gone; it was made again at {}", commit.short());
                return Ok(vec![self.note_repair(moment, message)]);
            }
        }
        Ok(Vec::new())
    }

    /// Stores objects again, from the files of the worktree, that git has lost.
    pub(super) fn restore_objects(&self, holding: &Holding, moment: &Moment) -> Answer {
        let worktree = &holding.worktree;
        if self.repository.vouch_for(&worktree.path).is_err() {
            return Ok(Vec::new());
        }
        let base = &self.facts.base_commit;
        let restored = git::restore_lost_objects(&self.repository, &worktree.path, base)?;
        if restored == 0 {
            return Ok(Vec::new());
        }
        let message = format!(
            "git had lost {restored} objects of {}; they were stored again from its files",
            self.pool.shown(&holding.holder, &worktree.path).display()
        );
        Ok(vec![self.note_repair(moment, message)])
    }

    /// Sets the ref of the lane's newest snapshot again, which Lanewright never removes before the lane is merged.
    fn restore_snapshot(&self, moment: &Moment) -> Answer {
        let Some((reference, commit)) = moment.known.last().filter(|_| !moment.landed) else { return Ok(Vec::new()) };
        if self.repository.target_of(reference)?.is_some() || !self.repository.has_commit(commit)? {
            return Ok(Vec::new());
        }
        let kept = git::keep(&self.repository, reference, commit.clone())?;
        Ok(vec![self.note_repair(moment, format!("the snapshot {} was gone; it was set again", kept.reference))])
    }

    pub(super) fn note_repair(&self, moment: &Moment, message: String) -> Event {
        Event::Noted { lane: Some(self.id(moment.lane)), message }
    }
}

/// Where the work of an agent, or of the lane, can start again: the newest first.
fn points(lane: &LaneState, agent: Option<usize>) -> Vec<CommitId> {
    let mut points = agent.map_or_else(Vec::new, |agent| lane.agents()[agent].good_points());
    points.extend(lane.merges().iter().rev().map(|(_, head)| head.clone()));
    points
}

fn is_uncommitted(worker: &AgentState) -> bool {
    worker.step == AgentStep::Committing
}

/// Whether the same may succeed a moment later although nothing was missing.
fn may_pass(error: &ExecutorError) -> bool {
    let ExecutorError::Git(error) = error else { return true };
    matches!(
        error,
        GitError::Program(_)
            | GitError::File(_)
            | GitError::LostObject { .. }
            | GitError::BadClaim { .. }
            | GitError::NotOurs { .. }
    )
}
