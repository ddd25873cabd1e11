//! Merges lanes into the integration branch (SPEC §6, step 7).

use std::sync::Arc;

use lanewright_git::{self as git, Checkout, Integrated, Integration, Merge, Mode, Publication};
use lanewright_model::event::Event;
use lanewright_model::text::SAME_NUMBER;
use lanewright_model::{CommitId, LaneIndex};
use lanewright_schedule::RunState;

use super::tracking::errors_of;
use super::unsaved::Left;
use super::{Executor, ExecutorError, Prepared, Result, lane_head};

impl Executor {
    fn is_lost(&self, commit: &CommitId) -> Result<bool> {
        Ok(!git::damaged(&self.repository, std::slice::from_ref(commit))?.is_empty())
    }

    /// The merge of the lane with the integration branch, which failed the lane's tests; made again if git has lost it.
    pub(super) fn merge_again(&self, lane: LaneIndex, commit: &CommitId, head: &CommitId) -> Result<CommitId> {
        if !self.is_lost(commit)? {
            return Ok(commit.clone());
        }
        let (id, onto) = (self.id(lane), self.integration()?);
        let reserved = self.reserved(lane, None, &[], (&onto, head))?;
        match git::merge(&self.repository, &onto, head, &format!("Merge lane {id}"), &self.trailers(&id), &reserved)? {
            Merge::Done(merge) => Ok(merge),
            Merge::AlreadyIn | Merge::Conflict(_) => Ok(onto),
        }
    }

    /// The first of `accepted` that is not in the history of `head`. Usually the last one is the head itself, and nothing
    /// is looked up.
    fn first_missing<'c>(&self, accepted: &'c [CommitId], head: &CommitId) -> Result<Option<&'c CommitId>> {
        for commit in accepted.iter().filter(|commit| *commit != head) {
            match self.repository.is_ancestor(commit, head) {
                Ok(true) => {}
                Err(error) if self.repository.has_commit(commit)? => return Err(error.into()),
                Ok(false) | Err(_) => return Ok(Some(commit)),
            }
        }
        Ok(None)
    }

    /// Blocks the lane where its `head` lacks accepted work, which a merge or a push of it would leave out. Unless git has
    /// lost that, a rule of the scheduler is wrong; the check is there for unknown ones.
    pub(super) fn blocked_if_incomplete(
        &self,
        lane: LaneIndex,
        accepted: &[CommitId],
        head: &CommitId,
    ) -> Result<Option<Event>> {
        self.first_missing(accepted, head)?.map(|missing| self.incomplete(lane, head, missing)).transpose()
    }

    fn incomplete(&self, lane: LaneIndex, head: &CommitId, missing: &CommitId) -> Result<Event> {
        let (id, branch) = (self.id(lane), self.lane_branch(lane));
        let what =
            format!("{branch} at {} lacks accepted work ({}), so it goes no further", head.short(), missing.short());
        let reason = match self.repository.has_commit(missing)? {
            true => format!(
                "{what}; this is a mistake of Lanewright: please report it with the run log. To add the work: `git merge {}` \
                 in the lane's worktree, then resume",
                missing.short()
            ),
            false => format!("{what}; git has lost that commit: restore it, or roll the lane back to do it again"),
        };
        Ok(Event::LaneBlocked { lane: id, reason })
    }

    /// The message of the one commit of a lane.
    fn squash_message(&self, lane: LaneIndex, workers: &[usize], [base, head]: [&CommitId; 2]) -> Result<String> {
        let (id, plan) = (self.id(lane), self.plan.lane(lane));
        let Some(template) = &self.plan.commit_message else {
            return Ok(format!("Lane {id}{}", plan.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default()));
        };
        let files = self.repository.changed_paths(base, head)?;
        let agents: Vec<&str> = workers.iter().map(|&at| plan.agents[at].name.as_str()).collect();
        let task_name = plan.name.as_deref().unwrap_or(id.as_str());
        self.commit_message(template, lane, (&agents.join(", "), 1), ("", task_name), &files)
    }

    pub(super) fn stage_merge(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let head = lane_head(state, lane)?;
        let (context, worktree) = (self.lane_context(lane, state), state.lane(lane).worktree().cloned());
        let base = state.lane(lane).base().cloned().ok_or(ExecutorError::Missing("the lane's base"))?;
        let plan = self.plan.lane(lane);
        let (worker, workers) = (state.lane(lane).last_worker(plan), state.lane(lane).workers(plan));
        let (accepted, last) = (state.lane(lane).accepted().to_vec(), state.lane(lane).last_staged().cloned());
        let errors = errors_of(state, lane);
        let digest = state.digest_of_merge(lane);
        let regeneration = self.regeneration(lane, state);
        let asked_about = (state.lane(lane).changes(), state.lane(lane).protected().to_vec());
        Ok(self.task(lane, state, move |executor| {
            let (id, plan) = (executor.id(lane), executor.plan.lane(lane));
            if let Some(blocked) = executor.blocked_if_incomplete(lane, &accepted, &head)? {
                return Ok(vec![blocked]);
            }
            let onto = executor.integration()?;
            let name = plan.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            let reserved = executor.reserved(lane, Some(&base), &errors, (&onto, &head))?;
            let squash_message = executor.squash_message(lane, &workers, [&base, &head])?;
            let last_trailers: Vec<(&str, &str)> = Some(("Plan", digest.as_str()))
                .filter(|(_, digest)| !digest.is_empty())
                .into_iter()
                .chain(plan.closes.iter().map(|issue| ("Closes", issue.as_str())))
                .collect();
            let integration = Integration {
                style: plan.merge_style.unwrap_or(executor.facts.options.merge_style),
                onto: &onto,
                head: &head,
                merge_message: &format!("Merge lane {id}{name}"),
                squash_message: &squash_message,
                trailers: &executor.trailers(&id),
                last_trailers: &last_trailers,
                reserved: &reserved,
            };
            let mut events = Vec::new();
            let mut integrated = git::integrate(&executor.repository, &integration)?;
            if let Integrated::Conflict(paths) = &integrated {
                let made = executor.make_again(&regeneration, [&onto, &head], paths, &reserved)?;
                events.extend(made.note);
                if let Some(files) = made.files {
                    let reserved = [reserved.clone(), files].concat();
                    let settled = Integration { reserved: &reserved, ..integration };
                    integrated = git::integrate(&executor.repository, &settled)?;
                }
            }
            let (commit, squashed_instead) = match integrated {
                Integrated::AlreadyIn => {
                    let plan = Some(digest.clone());
                    return Ok(vec![Event::LaneMerged { lane: id, commit: onto.clone(), onto, plan }]);
                }
                Integrated::Conflict(paths) => {
                    let assignee = worker;
                    let with = format!("what was merged into {} meanwhile", executor.facts.base_branch);
                    events.push(executor.conflict(lane, assignee, paths, &with));
                    return Ok(events);
                }
                Integrated::Done { commit, squashed_instead } => (commit, squashed_instead),
            };
            if let Some(asked) = executor.more_protected(lane, &asked_about, [&onto, &head, &commit])? {
                return Ok(vec![asked]);
            }
            let moved = !executor.repository.is_ancestor(&onto, &head)?;
            let clashes = executor.repository.name_clashes([&onto, &head], &commit)?;
            if !clashes.by_case.is_empty() {
                let paths = clashes.by_case.into_iter().flat_map(|(own, there)| [own, there]).collect();
                let with = format!("files of {}: names differ only by letter case", executor.facts.base_branch);
                return Ok(vec![executor.conflict(lane, worker, paths, &with)]);
            }
            for (own, there) in clashes.by_number {
                let message = format!("added {own} beside {there}{SAME_NUMBER}");
                events.push(executor.note(lane, message));
            }
            if squashed_instead {
                let message =
                    "its commits cannot be put onto the branch one by one; they are one commit there".to_owned();
                events.push(executor.note(lane, message));
            }
            if moved && !plan.tests.is_empty() {
                if let Some(worktree) = &worktree {
                    events.extend(executor.reopen_if_lost(&worktree.path, &context)?);
                    let commits = [&head, &commit].into_iter().chain(&last).cloned().collect();
                    let left = Left { commits, files: git::changed_by_hand };
                    events.extend(executor.keep_unsaved(&context, None, Some(&worktree.path), &left)?);
                }
                let want = Checkout { branch: None, start: commit.clone(), mode: Mode::Reset, adopt: true };
                executor.pool_of(lane).open(&executor.holder(lane, None), &want)?;
            }
            events.extend(executor.left_out(lane, (&base, &head), &reserved)?);
            events.extend(executor.added_summary(lane, &reserved));
            events.extend(executor.unticked(lane, &reserved)?);
            events.push(Event::MergeStaged { lane: id, onto, commit, moved });
            Ok(events)
        }))
    }

    /// What another program did to the integration branch that a person must see to: its checkout was left behind, or it has
    /// lost merged work.
    pub(super) fn integration_moved(&self) -> Result<Option<String>> {
        let Some(missing_work) = &self.missing_work else { return Ok(None) };
        let branch = &self.facts.base_branch;
        match git::first_stale_checkout(&self.repository, branch)? {
            Some((worktree, blockers)) => Ok(Some(blockers.cannot_move(branch, &worktree))),
            None => Ok(missing_work()),
        }
    }

    pub(super) fn publish_merge(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let staged = state.lane(lane).staged().cloned().ok_or(ExecutorError::Missing("the staged merge"))?;
        let last = state.integration().cloned();
        // Another process staged it, perhaps one of a version that did not look; what this one stages it has looked at.
        let staged_before = state.resumes() > 0;
        let accepted = if staged_before { state.lane(lane).accepted().to_vec() } else { Vec::new() };
        let head = lane_head(state, lane)?;
        let (base, errors) = (state.lane(lane).base().cloned(), errors_of(state, lane));
        let plan = Some(state.digest_of_merge(lane));
        Ok(self.task(lane, state, move |executor| {
            let id = executor.id(lane);
            let branch = &executor.facts.base_branch;
            if executor.first_missing(&accepted, &head)?.is_some() {
                return Ok(vec![Event::MergeSuperseded { lane: id }]);
            }
            // Only where the branch is not where this run left it or ahead of that, work can be missing.
            let continues = |last: &CommitId| executor.repository.is_ancestor(last, &staged.onto).unwrap_or(false);
            if last.as_ref().is_some_and(|last| !continues(last))
                && let Some(moved) = executor.integration_moved()?
            {
                return Err(ExecutorError::Precondition(moved));
            }
            // Another clone that has the branch must know of the merge, or it merges the lane again.
            executor.before_publication.iter().try_for_each(|wait| wait()).map_err(ExecutorError::Precondition)?;
            let merged = Event::LaneMerged {
                lane: id.clone(),
                commit: staged.commit.clone(),
                onto: staged.onto.clone(),
                plan: plan.clone(),
            };
            let published = match git::publish(&executor.repository, branch, &staged.onto, &staged.commit) {
                // No ref leads to a staged merge. Its files are made of those of the lane and the branch.
                Err(_) if executor.is_lost(&staged.commit)? => return Ok(vec![Event::MergeSuperseded { lane: id }]),
                published => published?,
            };
            match published {
                Publication::Published | Publication::AlreadyThere => {
                    let commits = (&staged.onto, &head);
                    let delivered = executor.deliver_summary(lane, base.as_ref(), &errors, commits);
                    let failed = |error| vec![executor.note(lane, format!("its summary cannot be written: {error}"))];
                    let recorded = executor.record_in_store(lane).into_iter().collect();
                    Ok([delivered.unwrap_or_else(failed), recorded, vec![merged]].concat())
                }
                Publication::Moved(_) => Ok(vec![Event::MergeSuperseded { lane: id }]),
                Publication::CheckedOutDirty { worktree, blockers } => {
                    Err(ExecutorError::Precondition(blockers.cannot_move(branch, &worktree)))
                }
            }
        }))
    }
}
