//! The work of agents: committed, merged into the lane, reset.

use std::sync::Arc;

use lanewright_agents::prompt::{self, CommitValues};
use lanewright_git::{self as git, Checkout, CommitRequest, GitError, Merge, Mode, Snapshot};
use lanewright_model::event::{Event, Idle, Worktree};
use lanewright_model::ownership::{Ownership, RUN_LOG_DIRECTORY, is_prohibited};
use lanewright_model::text::{headline, listed};
use lanewright_model::{CommitId, Failure, FailureKind, Lane, LaneIndex, Round, TaskId};
use lanewright_schedule::{RestartFrom, RunState};

use super::unsaved::Left;
use super::{Answer, Executor, ExecutorError, LaneContext, Prepared, Result, lane_head};

/// How many files a note names.
const FILES: usize = 5;

impl Executor {
    pub(super) fn workplace(&self, lane: LaneIndex, agent: usize, state: &RunState) -> Result<Worktree> {
        let own = state.lane(lane).workplace(self.plan.lane(lane), agent);
        own.cloned().ok_or(ExecutorError::Missing("the agent's worktree"))
    }

    pub(super) fn commit_work(self: &Arc<Self>, lane: LaneIndex, agent: usize, state: &RunState) -> Prepared {
        let worktree = self.workplace(lane, agent, state)?;
        let worker = &state.lane(lane).agents()[agent];
        let start = state.lane(lane).start_of(agent).cloned();
        let start = start.ok_or(ExecutorError::Missing("the agent's first commit"))?;
        let (task, attempt, context) = (worker.task, worker.attempt, self.lane_context(lane, state));
        let recorded = worker.head.clone().unwrap_or_else(|| start.clone());
        let task_start = worker.good.clone().unwrap_or_else(|| start.clone());
        let runner = worker.fallback().cloned();
        Ok(self.task(lane, state, move |executor| {
            let plan = &executor.plan.lane(lane).agents[agent];
            // A worktree that is gone stays gone here, and the commit fails: the agent's work went with it.
            let holding = context.holding(&worktree.path);
            let found = holding.map_or(Ok(Vec::new()), |holding| executor.restore_holding(holding, &context, false))?;
            let since = [&start, &recorded, &task_start];
            match executor.commit((lane, agent, task, attempt), &worktree, since, runner.as_ref()) {
                Err(ExecutorError::Git(error)) => {
                    let message = mistake_of_agent(error)?;
                    Ok(vec![Event::FailureNoted {
                        lane: executor.id(lane),
                        agent: Some(plan.name.clone()),
                        task: Some(plan.tasks[task].id.clone()),
                        failure: Failure::new(FailureKind::Report, message),
                    }])
                }
                answer => Ok([found, answer?].concat()),
            }
        }))
    }

    pub(super) fn commit_message(
        &self,
        template: &str,
        lane: LaneIndex,
        (agent, attempt): (&str, u32),
        (task, task_name): (&str, &str),
        files: &[String],
    ) -> Result<String> {
        let plan = self.plan.lane(lane);
        let (lane, lane_name) = (plan.id.as_str(), plan.name.as_deref().unwrap_or_default());
        let (phase, run) = (self.facts.phase.as_str(), self.facts.run_id.as_str());
        let values = CommitValues { phase, run, lane, lane_name, agent, attempt, task, task_name, files };
        Ok(self.redactor.redact(&prompt::commit_message(template, &values)?).into_owned())
    }

    /// Commits `paths`, which the user changed in a worktree at rest, and sets its branch to its head.
    pub fn commit_changes_by_hand(&self, lane: LaneIndex, worktree: &Worktree, paths: &[String]) -> Result<CommitId> {
        let (id, path, branch) = (self.id(lane), &worktree.path, &worktree.branch);
        self.repository.refuse_foreign_worktree(path)?;
        self.refuse_embedded(path)?;
        let head = git::adopt_head(&self.repository, path, branch)?;
        let inner = self.repository.embedded_repositories(&self.facts.base_commit, &head)?;
        if !inner.is_empty() {
            let (place, inner) = (path.display(), inner.join(", "));
            return Err(ExecutorError::Precondition(format!(
                "{branch} in {place} has repositories in it, of which git keeps only the commit ({inner}); take them out \
                 of its history, then resume"
            )));
        }
        let (message, trailers) = (format!("{id}: changes made by hand"), self.trailers(&id));
        let since = &self.facts.base_commit;
        let request = CommitRequest { worktree: path, branch, message: &message, trailers: &trailers, since };
        Ok(git::commit_paths(&self.repository, &request, paths)?)
    }

    /// Commits what is uncommitted in the worktree of an agent that began at `start`, whose task began at `task_start`, and
    /// that was last seen at `recorded`.
    fn commit(
        &self,
        (lane, agent, task, attempt): (LaneIndex, usize, usize, u32),
        worktree: &Worktree,
        [start, recorded, task_start]: [&CommitId; 3],
        runner: Option<&String>,
    ) -> Answer {
        let (plan, id) = (self.plan.lane(lane), self.id(lane));
        let (name, task) = (&plan.agents[agent].name, &plan.agents[agent].tasks[task]);
        self.repository.refuse_foreign_worktree(&worktree.path)?;
        // Git's record of the worktree may have been gone when the attempt ended.
        if git::private_git_directory(&worktree.path).is_some() {
            git::take_over(&self.repository, &worktree.path)?;
            git::restore_link(&self.repository, &worktree.path)?;
        }
        let branch = self.agent_branch(lane, agent);
        let before = git::adopt_head(&self.repository, &worktree.path, &branch)?;
        let subject = task.name.clone().unwrap_or_else(|| headline(&task.prompt, 60));
        let subject = if subject.is_empty() { format!("task {}", task.id) } else { subject };
        let mut trailers = self.trailers(&id);
        trailers.extend([("Agent", name.as_str()), ("Task", task.id.as_str())]);
        trailers.extend(runner.map(|runner| ("Runner", runner.as_str())));
        let message = match &self.plan.commit_message {
            None => work_message(plan, (name.as_str(), task.id.as_str()), &subject),
            Some(template) => {
                let files = match template.contains("files") {
                    true => git::uncommitted_paths(&self.repository, &worktree.path)?,
                    false => Vec::new(),
                };
                self.commit_message(template, lane, (name.as_str(), attempt), (task.id.as_str(), &subject), &files)?
            }
        };
        let (path, trailers) = (&worktree.path, &trailers[..]);
        let request = CommitRequest { worktree: path, branch: &branch, message: &message, trailers, since: start };
        let mut committed = git::commit_all(&self.repository, &request)?;
        if let Err(gone) = self.repository.refuse_foreign_worktree(&worktree.path) {
            // Files that were being removed are no deletions of the agent's.
            git::move_branch(&self.repository, &branch, &committed.head, &before)?;
            return Err(gone.into());
        }
        if !self.repository.is_related(start, &committed.head)? {
            let message = git::message(&message, trailers);
            committed.head = self.repository.graft(&branch, [&committed.head, recorded], &message)?;
        }
        let changed = self.repository.changed_paths(start, &committed.head)?;
        let left_out: Vec<String> = committed.left_out.iter().map(ToString::to_string).collect();
        let mut noted = Vec::from_iter(self.note_left_out(lane, &committed.left_out));
        let attempted = (lane, agent, &task.id, attempt);
        let reach = self.reach(attempted, path, [start, recorded, &committed.head], &changed)?;
        noted.extend(reach.notes);
        if let Some(failure) = reach.failure {
            noted.push(Event::FailureNoted {
                lane: id,
                agent: Some(name.clone()),
                task: Some(task.id.clone()),
                failure,
            });
            return Ok(noted);
        }
        let known = || {
            // What is on the integration branch came with a merge or a rebase.
            let integration = self.repository.branch_commit(&self.facts.base_branch)?;
            Ok([recorded, start].into_iter().cloned().chain(integration).collect())
        };
        let own = self.repository.left_out_of_head((&worktree.path, [&before, &committed.head]), known, &changed)?;
        if !own.is_empty() {
            let failed = self.left_out_is_committed(lane, agent, &task.id, &own);
            noted.push(failed);
            return Ok(noted);
        }
        let changed = git::without_generated(&worktree.path, &committed.head, changed)?;
        let owns = Ownership::allowed_to(plan).map_err(|error| ExecutorError::Precondition(error.to_string()))?;
        let mut prohibited: Vec<String> =
            changed.iter().filter(|path| is_prohibited(path) || !owns.allows(path)).cloned().collect();
        let inner =
            self.repository.embedded_repositories(start, &committed.head)?.into_iter().chain(committed.embedded);
        prohibited.extend(inner.map(|path| format!("{path}/.git")));
        let counts = |paths: &[String]| paths.iter().any(|path| !self.is_tracking(path));
        let idle = if !plan.must_change_files(agent) {
            Idle::No
        } else if !counts(&changed) {
            Idle::Agent
        } else if !task.allow_empty
            && task_start != start
            && !counts(&self.repository.changed_paths(task_start, &committed.head)?)
        {
            Idle::Task
        } else {
            Idle::No
        };
        let mut events = Vec::new();
        let state_files = git::untracked_below(&worktree.path, RUN_LOG_DIRECTORY)?;
        if !state_files.is_empty() {
            let names = listed(&state_files, FILES);
            events.push(self.note(lane, format!("state files in the worktree of {name} are not committed: {names}")));
        }
        let ignored = match idle {
            Idle::No => Vec::new(),
            _ => {
                let ignored = self.repository.ignored_in(&worktree.path)?;
                let ignored = ignored.iter().map(ToString::to_string).filter(|it| !left_out.contains(it));
                left_out.iter().cloned().chain(ignored).take(FILES).collect()
            }
        };
        let (at, agent, head) = (agent, name.clone(), committed.head);
        events.extend(noted);
        let size = plan.agents[at].candidate.map(|_| self.size_between(start, &head)).transpose()?;
        events.push(Event::WorkCommitted { lane: id, agent, head, changed, prohibited, idle, ignored, size });
        Ok(events)
    }

    pub(super) fn merge_agent(self: &Arc<Self>, lane: LaneIndex, agent: usize, state: &RunState) -> Prepared {
        let lane_state = state.lane(lane);
        let worktree = lane_state.worktree().cloned().ok_or(ExecutorError::Missing("the lane's worktree"))?;
        let head = lane_head(state, lane)?;
        let theirs = lane_state.agents()[agent].head.clone().ok_or(ExecutorError::Missing("the agent's head"))?;
        let context = self.lane_context(lane, state);
        let regeneration = self.regeneration(lane, state);
        Ok(self.task(lane, state, move |executor| {
            let (id, plan) = (executor.id(lane), executor.plan.lane(lane));
            let name = plan.agents[agent].name.clone();
            let title = plan.name.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
            let branch = executor.lane_branch(lane);
            let missing = || GitError::BranchMissing { branch: branch.clone() };
            let ours = executor.repository.branch_commit(&branch)?.ok_or_else(missing)?;
            let mut trailers = executor.trailers(&id);
            trailers.push(("Agent", name.as_str()));
            let message = format!("Merge {name} into {id}{title}");
            let merge = |decided: &[_]| git::merge(&executor.repository, &ours, &theirs, &message, &trailers, decided);
            let (mut merged, mut settled) = (merge(&[])?, None);
            if let Merge::Conflict(paths) = &merged {
                let made = executor.make_again(&regeneration, [&ours, &theirs], paths, &[])?;
                settled = made.note;
                if let Some(files) = made.files {
                    merged = merge(&files)?;
                }
            }
            let merged = match merged {
                Merge::Conflict(paths) => {
                    let conflict = executor.conflict(lane, Some(agent), paths, "what other agents of the lane did");
                    return Ok(settled.into_iter().chain([conflict]).collect());
                }
                Merge::AlreadyIn => ours,
                Merge::Done(merged) => {
                    git::move_branch(&executor.repository, &branch, &ours, &merged)?;
                    merged
                }
            };
            let mut events = executor.reopen_if_lost(&worktree.path, &context)?;
            events.extend(settled);
            if merged != head {
                let kept = executor.update_worktree(&context, &worktree, &branch, [&head, &merged])?;
                events.extend(kept.into_iter().map(|kept| executor.put_aside(lane, None, kept)));
            }
            events.push(Event::AgentMerged { lane: id, agent: name, head: merged });
            Ok(events)
        }))
    }

    /// Brings the lane's worktree to the merge. What gates left in the way is saved first.
    fn update_worktree(
        &self,
        context: &LaneContext,
        worktree: &Worktree,
        branch: &str,
        [from, to]: [&CommitId; 2],
    ) -> Result<Vec<Snapshot>> {
        self.repository.refuse_foreign_worktree(&worktree.path)?;
        if git::is_half_updated(&worktree.path)? {
            // The update that is finished now replaces all files, also what the user changed since.
            self.keep_worktree(&context.before_reset(None), &worktree.path)?;
        }
        match git::set_worktree_to(&self.repository, &worktree.path, branch, [from, to]) {
            Err(GitError::Dirty { .. } | GitError::Program(_) | GitError::OperationInProgress { .. }) => {
                self.keep_worktree(&context.before_reset(None), &worktree.path)?;
                git::restore(&worktree.path, to)?;
            }
            done => done?,
        }
        self.unrecorded(context, None)
    }

    /// A merge that both sides have to say something about: the later one is done again on the new base (SPEC §7).
    pub(super) fn conflict(&self, lane: LaneIndex, agent: Option<usize>, paths: Vec<String>, with: &str) -> Event {
        let agent = agent.map(|agent| self.agent_name(lane, agent));
        let message = format!("the work conflicts with {with}");
        let failure = Failure { paths, ..Failure::new(FailureKind::Conflict, message) };
        Event::FailureNoted { lane: self.id(lane), agent, task: None::<TaskId>, failure }
    }

    pub(super) fn release_agent(self: &Arc<Self>, lane: LaneIndex, agent: usize, state: &RunState) -> Prepared {
        let worktree = self.workplace(lane, agent, state)?;
        let mut kept_by = vec![lane_head(state, lane)?];
        kept_by.extend(state.lane(lane).kept_candidates().map(|(_, commit)| commit.clone()));
        let context = self.lane_context(lane, state);
        Ok(self.task(lane, state, move |executor| {
            let mut events = executor.reopen_if_lost(&worktree.path, &context)?;
            let holder = executor.holder(lane, Some(agent));
            let left = executor.release_worktree(&holder, &worktree, &kept_by, &context)?;
            let name = executor.agent_name(lane, agent);
            for left in left {
                events.push(executor.leftover(lane, agent, left)?);
            }
            events.push(Event::WorktreeReleased { lane: executor.id(lane), agent: name });
            Ok(events)
        }))
    }

    /// What was left in a worktree after its agent's work was taken: by gates, whose leftovers go when the lane is
    /// merged, or by the agent, of whom it is neither merged nor discarded.
    fn leftover(&self, lane: LaneIndex, agent: usize, left: Snapshot) -> Result<Event> {
        let agent = &self.plan.lane(lane).agents[agent];
        let message = match agent.round {
            Round::Implementation if !self.repository.holds_left_out(&left.commit)? => {
                return Ok(self.put_aside(lane, Some(agent.name.clone()), left));
            }
            Round::Implementation => {
                format!("files that {} did not commit are saved as {}", agent.name, left.reference)
            }
            _ => format!("changes by {} are not merged; they are saved as {}", agent.name, left.reference),
        };
        Ok(self.note(lane, message))
    }

    /// The first of `points` that can be read, and events for the damaged ones before it: a power cut or a bad disk may take
    /// what a commit holds.
    fn first_intact(&self, lane: LaneIndex, agent: usize, points: Vec<CommitId>) -> Result<(CommitId, Vec<Event>)> {
        let damaged = git::damaged(&self.repository, &points)?;
        let mut events = Vec::new();
        for commit in points {
            let Some(error) = damaged.get(&commit) else { return Ok((commit, events)) };
            let agent = Some(self.agent_name(lane, agent));
            let (lane, error) = (self.id(lane), error.clone());
            events.push(Event::SnapshotDamaged { lane, agent, commit, reference: String::new(), error });
        }
        let why: Vec<String> = damaged.values().cloned().collect();
        Err(ExecutorError::Precondition(format!(
            "no state that it could start again from can be read ({}); see what `git fsck` says, put the objects back \
             and resume",
            why.join("; ")
        )))
    }

    /// Puts the agent's worktree where its next attempt starts from. What the agent left in it was saved before.
    pub(super) fn reset_agent(self: &Arc<Self>, lane: LaneIndex, agent: usize, state: &RunState) -> Prepared {
        let lane_state = state.lane(lane);
        let worker = &lane_state.agents()[agent];
        let mut points = if worker.restart == RestartFrom::LastGood { worker.good_points() } else { Vec::new() };
        if points.is_empty() {
            points.push(lane_head(state, lane)?);
        }
        let shared = self.plan.lane(lane).shares_worktree(agent);
        let (worktree, context) = (self.workplace(lane, agent, state)?, self.lane_context(lane, state));
        let known: Vec<CommitId> = [lane_state.head(), worker.head.as_ref(), lane_state.last_staged()]
            .into_iter()
            .flatten()
            .cloned()
            .chain(worker.good_points())
            .collect();
        // What was left by an attempt that failed was saved then.
        let is_complete = worker.past.last().is_some_and(|past| past.task.is_none());
        Ok(self.task(lane, state, move |executor| {
            let mut events = executor.reopen_if_lost(&worktree.path, &context)?;
            let holder = executor.holder(lane, (!shared).then_some(agent));
            let branch = Some(executor.agent_branch(lane, agent));
            let (start, damaged) = executor.first_intact(lane, agent, points.clone())?;
            events.extend(damaged);
            if is_complete {
                let left =
                    Left { commits: known.iter().chain([&start]).cloned().collect(), files: git::changed_by_hand };
                events.extend(executor.keep_unsaved(
                    &context,
                    (!shared).then_some(agent),
                    Some(&worktree.path),
                    &left,
                )?);
            }
            executor
                .pool_of(lane)
                .open(&holder, &Checkout { branch, start: start.clone(), mode: Mode::Reset, adopt: true })?;
            let name = executor.agent_name(lane, agent);
            events.push(Event::AgentReset { lane: executor.id(lane), agent: name, head: start });
            Ok(events)
        }))
    }
}

/// What an agent did wrong with its worktree, so that its work cannot be taken; an error that is not its doing stays one.
fn mistake_of_agent(error: GitError) -> Result<String, GitError> {
    match error {
        GitError::NotOurs { path } => Ok(format!(
            "the worktree {} was removed, or replaced by something else, and with it what was not committed; work in it \
             and leave it and its .git in place",
            path.display()
        )),
        GitError::Astray { .. } | GitError::OperationInProgress { .. } | GitError::Unreadable { .. } => {
            Ok(error.with_remedy())
        }
        error => Err(error),
    }
}

/// What was done: the titles of the lane and of the task, each once.
fn work_message(lane: &Lane, (agent, task): (&str, &str), subject: &str) -> String {
    let id = lane.id.as_str();
    let title = lane.name.as_deref().map(|name| headline(name, 60)).filter(|title| title != id && !title.is_empty());
    let what = (![id, title.as_deref().unwrap_or_default()].contains(&subject)).then_some(subject);
    match (title, what) {
        (Some(title), Some(what)) => format!("{id} {title}: {what}"),
        (Some(title), None) => format!("{id}: {title}"),
        (None, Some(what)) => format!("{id}: {what}"),
        (None, None) => format!("{id}: task {task} by {agent}"),
    }
}

#[cfg(test)]
mod tests {
    use lanewright_model::testing::plan;

    use super::*;

    #[test]
    fn commit_names_lane_and_task_once() {
        let lane = plan(&[("MUL", &[], &[])]).lanes[0].clone();
        let message = |name: Option<&str>, subject: &str| {
            let lane = Lane { name: name.map(str::to_owned), ..lane.clone() };
            work_message(&lane, ("engineer", "1"), subject)
        };
        assert_eq!(message(None, "MUL"), "MUL: task 1 by engineer");
        assert_eq!(message(Some("MUL"), "MUL"), "MUL: task 1 by engineer");
        assert_eq!(message(Some("Multiplication"), "Multiplication"), "MUL: Multiplication");
        assert_eq!(message(None, "Write mul()"), "MUL: Write mul()");
        assert_eq!(message(Some("Multiplication"), "Write mul()"), "MUL Multiplication: Write mul()");
    }
}
