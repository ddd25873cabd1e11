//! Pushes the branches of lanes and opens their pull requests (SPEC §6, step 7).

use std::path::Path;
use std::sync::Arc;

use lanewright_agents::diagnose::outage_in;
use lanewright_files::{atomic, directory};
use lanewright_git::{self as git, Checkout, GitError, Merge, Mode, PushRequest, Remote, branch_reference};
use lanewright_model::event::Event;
use lanewright_model::text::{last_lines, shell_line};
use lanewright_model::time::exact;
use lanewright_model::{CommitId, LaneIndex, Outage, OutageKind, PullRequest};
use lanewright_programs::forge::{Forge, ForgeError, Opened, Proposal};
use lanewright_schedule::{ProposalState, RunState};
use lanewright_store::run_log;

use super::unsaved::Left;
use super::{Answer, Executor, ExecutorError, LaneContext, Prepared, Result, lane_head};

/// How many lines of an error are searched for signs of an outage.
const LOOKED_AT: usize = 20;

const PRE_PUSH: &str = "pre-push";

/// What of the state a pull request is made of.
struct Facts {
    head: CommitId,
    target: String,
    known: Option<PullRequest>,
    before: Vec<PullRequest>,
}

impl Executor {
    /// Pushes the lane's branch: over what this run pushed before, and over nothing else.
    pub(super) fn push_branch(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let head = lane_head(state, lane)?;
        let proposal = state.lane(lane).proposal().clone();
        let accepted = state.lane(lane).accepted().to_vec();
        let worktree = state.lane(lane).worktree().map(|worktree| worktree.path.clone());
        let context = self.lane_context(lane, state);
        Ok(self.task(lane, state, move |executor| {
            if let Some(blocked) = executor.blocked_if_incomplete(lane, &accepted, &head)? {
                return Ok(vec![blocked]);
            }
            let pushed = executor.push(&context, &head, &proposal, worktree.as_deref());
            let (remote, branch) = (executor.forge()?.remote().to_owned(), executor.lane_branch(lane));
            let done = || vec![Event::BranchPushed { lane: executor.id(lane), remote, branch, head: head.clone() }];
            executor.retry_on_outage(lane, pushed.map(|taken_in| taken_in.unwrap_or_else(done)))
        }))
    }

    /// Pushes `head`; else what it did about commits of other people on the remote's branch.
    fn push(
        &self,
        context: &LaneContext,
        head: &CommitId,
        proposal: &ProposalState,
        worktree: Option<&Path>,
    ) -> Result<Option<Vec<Event>>> {
        let lane = context.lane;
        let branch = self.lane_branch(lane);
        let (remote, reference) = (self.remote()?, branch_reference(&branch));
        let expected = remote.commit_at(&reference)?;
        if expected.as_ref() == Some(head) {
            return Ok(None);
        }
        if let Some(theirs) = expected.as_ref().filter(|it| !self.may_replace(it, head, proposal)) {
            let taken_in = self.take_in_pushed(context, (head, theirs), proposal, worktree)?;
            return taken_in.map(Some).ok_or_else(|| foreign(&remote, &branch, Some(theirs)));
        }
        // A hook of the user's may upload what the commits only name, and looks at the files around it.
        let worktree = worktree.filter(|place| place.join(".git").exists());
        let request = PushRequest::new(&reference, Some(head), expected.as_ref());
        let request = PushRequest { hooks: true, worktree, ..request };
        let pushed = if self.repository.hooks_among(&[PRE_PUSH])?.is_empty() {
            remote.push(&request)?
        } else {
            let pool = self.pool_of(lane);
            let remote = pool.hook_limit().into_iter().fold(remote.clone(), Remote::within);
            pool.while_hook_runs(&self.holder(lane, None), PRE_PUSH, || remote.push(&request))?
        };
        match pushed {
            true => Ok(None),
            false => Err(foreign(&remote, &branch, None)),
        }
    }

    /// Merges what other people pushed to the lane's branch on top of what this run pushed there. The result is judged again.
    fn take_in_pushed(
        &self,
        context: &LaneContext,
        (head, theirs): (&CommitId, &CommitId),
        proposal: &ProposalState,
        worktree: Option<&Path>,
    ) -> Result<Option<Vec<Event>>> {
        let lane = context.lane;
        let (branch, remote) = (self.lane_branch(lane), self.remote()?);
        // What was pushed before a rollback is not to come back with it.
        let Some(pushed) = proposal.pushed() else { return Ok(None) };
        remote.fetch(&[branch_reference(&branch)])?;
        if !self.repository.has_commit(theirs)? || !self.repository.is_ancestor(pushed, theirs)? {
            return Ok(None);
        }
        let id = self.id(lane);
        let message = format!("Merge {branch} of {}", remote.name());
        let reserved = self.reserved(lane, None, &[], (head, theirs))?;
        let merge = match git::merge(&self.repository, head, theirs, &message, &self.trailers(&id), &reserved)? {
            Merge::Done(merge) => merge,
            Merge::AlreadyIn => return Ok(None),
            Merge::Conflict(paths) => {
                let place = worktree.unwrap_or(self.repository.main_worktree()).display();
                let fetch = shell_line(["git", "fetch", remote.name(), &branch]);
                return Err(ExecutorError::Precondition(format!(
                    "others pushed {} to {branch} on {}, which conflicts with the lane in {}; in {place}: {fetch}, git merge \
                     FETCH_HEAD, resolve and commit, then resume",
                    theirs.short(),
                    remote.name(),
                    paths.join(", ")
                )));
            }
        };
        let left = Left { commits: vec![merge.clone()], files: git::changed_by_hand };
        let mut events =
            self.keep_unsaved(context, None, worktree.filter(|place| place.join(".git").exists()), &left)?;
        let want = Checkout { branch: Some(branch.clone()), start: merge.clone(), mode: Mode::Reset, adopt: true };
        self.pool_of(lane).open(&self.holder(lane, None), &want)?;
        let note = format!("{} was pushed to {branch} on {} by others, and is merged", theirs.short(), remote.name());
        events.extend([
            self.note(lane, note),
            Event::BranchMoved { lane: id, agent: None, head: merge, theirs: Some(theirs.clone()) },
        ]);
        Ok(Some(events))
    }

    /// Whether the remote's branch holds nothing that would be lost: `head` holds it, or this run pushed it, without commits
    /// of others.
    fn may_replace(&self, there: &CommitId, head: &CommitId, proposal: &ProposalState) -> bool {
        // A commit that is unknown here counts as unrelated.
        let is_in = |commit: &CommitId, tip: &CommitId| self.repository.is_ancestor(commit, tip).unwrap_or(false);
        let is_kept = |theirs: &CommitId| !is_in(theirs, there) || is_in(theirs, head);
        is_in(there, head) || proposal.announced().contains(there) && proposal.others().iter().all(is_kept)
    }

    pub(super) fn open_pull_request(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let lane_state = state.lane(lane);
        let facts = Facts {
            head: lane_head(state, lane)?,
            target: state.proposal_target(lane),
            known: lane_state.proposal().pull_request().cloned(),
            before: state.proposals_before(lane),
        };
        Ok(self.task(lane, state, move |executor| {
            let opened = executor.propose(lane, &facts);
            let done = |(opened, note): (Opened, Option<Event>)| {
                let Opened { pull_request, updated } = opened;
                let (lane, head) = (executor.id(lane), facts.head.clone());
                note.into_iter().chain([Event::PullRequestOpened { lane, pull_request, head, updated }]).collect()
            };
            executor.retry_on_outage(lane, opened.map(done))
        }))
    }

    fn propose(&self, lane: LaneIndex, facts: &Facts) -> Result<(Opened, Option<Event>)> {
        let (base, note) = self.existing_target(lane, &facts.target)?;
        // Every record that led to this action is on disk.
        let records = run_log::read(&self.run.log()).map_err(|error| ExecutorError::Precondition(error.to_string()))?;
        let (title, mut body) =
            (self.pull_request_text)(&self.plan, &self.facts.run_id, lane, &records.records, &facts.before);
        let closed = self.plan.lane(lane).closes.iter().map(|issue| format!("\nCloses {issue}\n"));
        body.extend(closed);
        let id = self.id(lane);
        let body_file = self.run.pull_request(&id);
        let directory = body_file.parent().ok_or(ExecutorError::Missing("the lane's directory"))?;
        directory::create_directory(directory)?;
        atomic::write(&body_file, self.redactor.redact(&body).as_bytes())?;
        let variables =
            [("RUN_ID", self.facts.run_id.as_str()), ("PHASE", self.facts.phase.as_str()), ("LANE", id.as_str())];
        let variables = variables.map(|(name, value)| (format!("LANEWRIGHT_{name}"), value.to_owned()));
        let opened = self.forge()?.propose(&Proposal {
            branch: &self.lane_branch(lane),
            head: facts.head.as_str(),
            base: &base,
            title: &self.redactor.redact(&title),
            body_file: &body_file,
            known: facts.known.as_ref(),
            variables: &variables,
        })?;
        Ok((opened, note))
    }

    /// The branch to be merged into; the base branch if that of another lane was merged and removed.
    fn existing_target(&self, lane: LaneIndex, target: &str) -> Result<(String, Option<Event>)> {
        let base = &self.facts.base_branch;
        if target == base || self.remote()?.commit_at(&branch_reference(target))?.is_some() {
            return Ok((target.to_owned(), None));
        }
        let message = format!("{target} is gone from the remote, so the pull request asks to be merged into {base}");
        Ok((base.clone(), Some(self.note(lane, message))))
    }

    pub(super) fn forge(&self) -> Result<&Forge> {
        self.forge.as_ref().ok_or(ExecutorError::Missing("the forge"))
    }

    pub(super) fn remote(&self) -> Result<Remote> {
        Ok(Remote::named(&self.repository, self.forge()?.remote())?)
    }

    /// What is likely to pass by itself is tried again; anything else blocks the lane.
    fn retry_on_outage(&self, lane: LaneIndex, done: Answer) -> Answer {
        let Err(error) = done else { return done };
        // What a hook prints may look like an outage.
        if let ExecutorError::Git(GitError::Hook { .. }) = &error {
            return Err(error);
        }
        // The first line holds what was run, and so the lane's own words.
        let text = error.to_string();
        let said = text.split_once('\n').map_or(text.as_str(), |(_, said)| said);
        let outage = match &error {
            ExecutorError::Forge(ForgeError::TimedOut { limit, .. }) => {
                Some(Outage::new(OutageKind::Network, format!("the forge did not answer within {}", exact(*limit))))
            }
            _ => outage_in(&last_lines(said, LOOKED_AT)),
        };
        match outage {
            Some(outage) => Ok(vec![Event::ForgeUnavailable { lane: self.id(lane), outage }]),
            None => Err(error),
        }
    }
}

/// The remote's branch is not overwritten because it holds commits of others.
fn foreign(remote: &Remote, branch: &str, theirs: Option<&CommitId>) -> ExecutorError {
    let name = remote.name();
    let place = theirs.map_or_else(|| "moved just now".to_owned(), |theirs| format!("is at {}", theirs.short()));
    let look = shell_line(["git", "fetch", name, branch]);
    let delete = shell_line(["git", "push", name, "--delete", branch]);
    ExecutorError::Precondition(format!(
        "{branch} on {name} {place} and holds commits that this run did not push, so it is not overwritten; look at them \
         ({look}), delete or rename the branch there ({delete}), then resume"
    ))
}
