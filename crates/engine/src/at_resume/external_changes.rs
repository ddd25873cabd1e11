//! Changes in worktrees and branches while no process of the run worked there (SPEC §9; seed 001).
//!
//! The history has the last known content of each worktree: a head that was checked out or committed, or a snapshot.
//! Nothing is reported where a job ran after that, or where a step may have been interrupted.

use std::path::PathBuf;

use lanewright_git::{self as git, GitError, Repository, Undone};
use lanewright_model::event::Worktree;
use lanewright_model::{AgentName, CommitId, LaneId, LaneIndex, MergeMode, Plan};
use lanewright_schedule::RunState;
use lanewright_view::RunHistory;
use lanewright_view::history::{LaneHistory, Workplace};

/// A worktree that changed since it was last known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalChange {
    pub lane: LaneIndex,
    /// Whose worktree; `None`: the lane's.
    pub agent: Option<AgentName>,
    pub worktree: Worktree,
    /// The link to it that is named after the lane, else its path.
    pub place: PathBuf,
    /// Files that changed and are committed nowhere.
    pub paths: Vec<String>,
    pub moved: Option<Moved>,
    /// An agent has something left to do there, and continues from what it finds.
    pub is_worked_on: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub from: CommitId,
    pub to: CommitId,
    /// Whether it still has the work of the run.
    pub continues: bool,
}

impl ExternalChange {
    /// Whether the user decides if the run may continue with it.
    pub fn needs_consent(&self) -> bool {
        let is_rewritten = self.moved.as_ref().is_some_and(|moved| !moved.continues);
        !self.paths.is_empty() || is_rewritten && !self.is_worked_on
    }

    /// `SL-1`, or `SL-1 engineer`.
    pub fn whose(&self, plan: &Plan) -> String {
        let lane = &plan.lane(self.lane).id;
        self.agent.as_ref().map_or_else(|| lane.to_string(), |agent| format!("{lane} {agent}"))
    }
}

/// A merged lane whose work is no longer in the integration branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneMerge {
    pub lane: LaneId,
    /// What `git cherry-pick -m 1` is given to bring it back: a commit, or several with options.
    pub picked: Vec<String>,
    /// What happened, in a sentence without a full stop.
    pub message: String,
}

#[derive(Debug, Default)]
pub struct ExternalChanges {
    pub changes: Vec<ExternalChange>,
    /// In the order in which the lanes were merged.
    pub undone: Vec<UndoneMerge>,
    /// What else the user should know, each in a sentence.
    pub warnings: Vec<String>,
}

/// Looks for changes in every worktree at rest of the lanes that `wanted` names.
pub fn external_changes(
    repository: &Repository,
    state: &RunState,
    history: &RunHistory,
    wanted: impl Fn(&LaneId) -> bool,
) -> Result<ExternalChanges, GitError> {
    let mut found = ExternalChanges::default();
    let plan = state.plan();
    for at in plan.indices().filter(|&at| wanted(&plan.lane(at).id) && state.is_changed_by_others_only(at)) {
        let Some(lane) = history.lane(&plan.lane(at).id) else { continue };
        let mut workplaces: Vec<_> = lane.workplaces().collect();
        workplaces.sort_by_key(|(agent, _)| *agent);
        for (agent, workplace) in workplaces {
            let link = history.run.link(&lane.id, agent);
            found.add(repository, (state, at), agent, workplace, link);
        }
    }
    found.warnings.extend(integration_moved(repository, state)?);
    found.undone = undone_merges(repository, history)?;
    Ok(found)
}

impl ExternalChanges {
    fn add(
        &mut self,
        repository: &Repository,
        (state, lane): (&RunState, LaneIndex),
        agent: Option<&AgentName>,
        workplace: &Workplace,
        link: Option<PathBuf>,
    ) {
        let (lane_state, plan) = (state.lane(lane), state.plan().lane(lane));
        let Some(worktree) = workplace.worktree.as_ref().filter(|worktree| !worktree.branch.is_empty()) else { return };
        let path = &worktree.path;
        let was_only_made = || repository.own_entry(path).is_some_and(|entry| git::is_untouched(path, &entry));
        if !path.join(".git").exists() || was_only_made() || git::is_half_updated(path).unwrap_or(false) {
            return;
        }
        let staged = lane_state.last_staged().filter(|_| agent.is_none());
        let index = agent.and_then(|agent| plan.agents.iter().position(|it| it.name == *agent));
        let is_worked_on = lane_state.is_worked_on(plan, index);
        let (agent, worktree) = (agent.cloned(), worktree.clone());
        let place = link.filter(|link| link.exists()).unwrap_or_else(|| worktree.path.clone());
        let mut change = ExternalChange { lane, agent, worktree, place, paths: Vec::new(), moved: None, is_worked_on };
        let base = lane_state.base().filter(|_| change.agent.is_none());
        let rebuilt_on = state.integration().filter(|_| change.agent.is_none() && lane_state.rebuild().is_some());
        match changes_at(repository, workplace, &change, [staged, base, rebuilt_on]) {
            Ok((moved, paths)) => {
                (change.moved, change.paths) = (moved, paths);
                self.changes.extend(Some(change).filter(|change| change.moved.is_some() || !change.paths.is_empty()));
            }
            // For example a missing commit: the doctor reports it, and it is no reason to refuse.
            Err(error) => {
                let (whose, place) = (change.whose(state.plan()), change.place.display());
                self.warnings.push(format!("{whose}: whether {place} was changed is unknown: {}", error.with_remedy()));
            }
        }
    }
}

/// The lanes whose merged work is no longer in the integration branch, except those that the user
/// accepted at an earlier resume.
pub fn undone_merges(repository: &Repository, history: &RunHistory) -> Result<Vec<UndoneMerge>, GitError> {
    let started = history.run.start.as_ref().filter(|start| start.options.merge == MergeMode::Local);
    let Some(started) = started else { return Ok(Vec::new()) };
    let branch = &started.base_branch;
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(Vec::new()) };
    let mut merged: Vec<&LaneHistory> = history.lanes().iter().filter(|lane| lane.merge_commit.is_some()).collect();
    merged.sort_by_key(|lane| lane.finished);
    let mut found = Vec::new();
    for lane in merged {
        let Some((onto, merge)) = lane.merge().filter(|(onto, merge)| onto != merge) else { continue };
        let what = match git::undone(repository, [onto, merge], &tip) {
            Ok(None) => continue,
            Ok(Some(Undone::By(commit))) => format!("{} undid it", commit.short()),
            Ok(Some(Undone::Rewritten)) => "its history was rewritten without it".to_owned(),
            // The doctor reports what git has lost.
            Err(_) => continue,
        };
        let message = format!("{branch} no longer has the work of {} (merged as {}): {what}", lane.id, merge.short());
        if history.run.notes.iter().all(|note| note.message != message) {
            let picked = match repository.parent_of(merge)?.as_ref() == Some(onto) {
                true => vec![merge.short().to_owned()],
                false => vec!["--first-parent".to_owned(), format!("{}..{}", onto.short(), merge.short())],
            };
            found.push(UndoneMerge { lane: lane.id.clone(), picked, message });
        }
    }
    Ok(found)
}

/// How the branch moved, and the files that changed and are committed nowhere. `staged`: a merge that may be checked out;
/// `base`: of a lane; `rebuilt_on`: the branch onto which a lane was to be put, as it may have been.
fn changes_at(
    repository: &Repository,
    workplace: &Workplace,
    ExternalChange { worktree, is_worked_on, .. }: &ExternalChange,
    [staged, base, rebuilt_on]: [Option<&CommitId>; 3],
) -> Result<(Option<Moved>, Vec<String>), GitError> {
    let nothing = Ok((None, Vec::new()));
    let (path, content) = (&worktree.path, workplace.content.as_ref());
    let Some(recorded) = &workplace.head else { return nothing };
    let Some(head) = present_head(repository, worktree)? else { return nothing };
    // A snapshot is made on the head that the agent left.
    let left = match content {
        Some(content) if content == recorded => None,
        Some(content) if workplace.reopened_at.as_ref() == Some(content) => Some(content.clone()),
        Some(content) => repository.parent_of(content)?,
        None => None,
    };
    let from = left.unwrap_or_else(|| recorded.clone());
    // A lane without work has nothing to lose.
    let is_empty = base == Some(recorded) && repository.is_ancestor(&head, recorded)?;
    let is_reset = rebuilt_on.is_some_and(|tip| repository.is_ancestor(&head, tip).unwrap_or(false));
    // The doctor may have made a branch again at a snapshot.
    let is_known =
        is_empty || is_reset || head == from || head == *recorded || Some(&head) == staged || Some(&head) == content;
    let moved = match is_known {
        true => None,
        false => Some(Moved { continues: repository.is_ancestor(&from, &head)?, from, to: head.clone() }),
    };
    let Some(content) = content else {
        // What an agent left that is not done is not known.
        return Ok((moved, if *is_worked_on { Vec::new() } else { git::changed_by_hand(repository, path)? }));
    };
    let paths = git::without_generated(path, recorded, git::changed_since(repository, path, content)?)?;
    if head == *recorded {
        return Ok((moved, paths));
    }
    // What was committed is not lost: the branch has it.
    let dirty = git::changed_since(repository, path, &head)?;
    Ok((moved, paths.into_iter().filter(|path| dirty.contains(path)).collect()))
}

/// Where the worktree stands, on whatever branch, and else the branch that it should have.
fn present_head(repository: &Repository, worktree: &Worktree) -> Result<Option<CommitId>, GitError> {
    let head = repository.head_at(&worktree.path).ok();
    head.map_or_else(|| repository.branch_commit(&worktree.branch), |head| Ok(Some(head.commit)))
}

fn integration_moved(repository: &Repository, state: &RunState) -> Result<Option<String>, GitError> {
    let Some((started, known)) = state.started().zip(state.integration()) else { return Ok(None) };
    let now = repository.branch_commit(&started.base_branch)?;
    let moved = now.filter(|now| now != known);
    Ok(moved.map(|now| {
        let (branch, from, to) = (&started.base_branch, known.short(), now.short());
        format!("{branch} moved from {from} to {to}; lanes are merged into it as it is now")
    }))
}
