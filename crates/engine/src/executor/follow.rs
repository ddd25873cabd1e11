//! Asks the forge what became of pull requests, and takes in what other people pushed to their branches.

use std::path::Path;
use std::sync::Arc;

use lanewright_agents::diagnose::diagnose;
use lanewright_git::{branch_reference, move_branch};
use lanewright_model::event::Event;
use lanewright_model::safe_text::one_line;
use lanewright_model::text::{headline, last_lines};
use lanewright_model::{
    ChecksState, CommitId, Follow, LaneIndex, PullRequest, PullRequestState, PullRequestStatus, Remark, ReviewState,
    Timestamp,
};
use lanewright_programs::forge::{Check, Comment, Review};
use lanewright_schedule::{ProposalState, RunState};

use super::{Executor, ExecutorError, Prepared, Result, Task, lane_head};

/// How long a check that failed waits for others that have not ended, so that an agent is given them together.
const OTHERS_END: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// How many remarks an agent is given at once, and how many bytes of all; the others come next.
const REMARKS: usize = 50;
const BYTES: usize = 40_000;

/// How many bytes of a comment, and of the log of a check, it is given at most, and where there are many.
const REMARK: usize = 4_000;
const SHORT_REMARK: usize = 800;

/// How many lines of the end of a check's log.
const LOG_LINES: usize = 60;

/// A remark without its text, and the whole of that.
type WholeRemark = (Remark, String);

/// A lane whose pull request is followed.
struct Followed {
    lane: LaneIndex,
    number: u64,
    url: String,
    head: CommitId,
    /// Whether it was sent back less often than it may be.
    may_continue: bool,
    proposal: ProposalState,
}

impl Executor {
    pub(super) fn check_pull_requests(self: &Arc<Self>, state: &RunState) -> Task {
        let executor = self.clone();
        let most = state.follow().map_or(Follow::ROUNDS, |follow| follow.rounds);
        let followed = |lane: LaneIndex| {
            let proposal = state.lane(lane).proposal().clone();
            let pull_request = proposal.pull_request()?;
            let number = pull_request.number.unwrap_or(lane.at() as u64);
            let (url, head) = (pull_request.url.clone(), lane_head(state, lane).ok()?);
            let may_continue = proposal.rounds() < most;
            Some(Followed { lane, number, url, head, may_continue, proposal })
        };
        let followed: Vec<Followed> =
            self.plan.indices().filter(|lane| state.lane(*lane).is_followed()).filter_map(followed).collect();
        Box::new(move |_| {
            let (mut events, error) = match executor.look_at(&followed) {
                Ok((events, error)) => (events, error),
                Err(error) => (Vec::new(), Some(error)),
            };
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            events.push(Event::PullRequestsChecked { error });
            events
        })
    }

    /// What is new, and the first error about one of them, which keeps the others from nothing.
    fn look_at(&self, followed: &[Followed]) -> Result<(Vec<Event>, Option<ExecutorError>)> {
        let asked: Vec<(u64, &str)> = followed.iter().map(|it| (it.number, it.url.as_str())).collect();
        let mut reviews = self.forge()?.reviews(&asked)?;
        let (mut events, mut first) = (Vec::new(), None);
        for it in followed {
            match reviews.remove(&it.number).map(|review| self.changes(it, &review)) {
                Some(Ok((changes, error))) => {
                    events.extend(changes);
                    first = first.or(error);
                }
                Some(Err(error)) => first = first.or(Some(error)),
                None => events.extend(self.gone(it)),
            }
        }
        Ok((events, first))
    }

    /// The forge does not know the pull request any more.
    fn gone(&self, followed: &Followed) -> Option<Event> {
        let status = PullRequestStatus {
            state: PullRequestState::Closed,
            checks: ChecksState::None,
            review: ReviewState::None,
            retargeted: None,
            moved_to: None,
            failed: Vec::new(),
            unanswered: 0,
        };
        self.changed(followed, status)
    }

    fn changed(&self, followed: &Followed, status: PullRequestStatus) -> Option<Event> {
        let is_new = followed.proposal.status() != Some(&status);
        is_new.then(|| Event::PullRequestChanged { lane: self.id(followed.lane), status })
    }

    /// What is new about a pull request, and what could not be found out about it.
    fn changes(&self, followed: &Followed, review: &Review) -> Result<(Vec<Event>, Option<ExecutorError>)> {
        let proposal = &followed.proposal;
        let moved_to = CommitId::new(&review.head).ok().filter(|head| *head != followed.head);
        // Right after a push the forge may still have the head before.
        let is_late = moved_to.as_ref().is_some_and(|head| proposal.announced().contains(head));
        if is_late && review.state == PullRequestState::Open {
            return Ok((Vec::new(), None));
        }
        let base = proposal.pull_request().map(|it| it.base.as_str());
        let failed: Vec<&Check> = review.deciding_checks().filter(|check| check.state == ChecksState::Failed).collect();
        let mut status = PullRequestStatus {
            state: review.state,
            checks: review.checks_state(),
            review: if review.draft { ReviewState::Required } else { review.review },
            retargeted: Some(review.base.clone()).filter(|now| Some(now.as_str()) != base),
            moved_to,
            failed: failed.iter().map(|check| one_line(&check.name)).collect(),
            unanswered: 0,
        };
        status.failed.sort();
        if review.state != PullRequestState::Open {
            return Ok((self.changed(followed, status).into_iter().collect(), None));
        }
        let (comments, error) = self.comments(proposal, review)?;
        // One of those that are not known may have to be answered before it is merged.
        status.unanswered = usize::from(error.is_some());
        let mut remarks: Vec<WholeRemark> = self.failed_checks(proposal, review, &failed);
        remarks.extend(comments);
        remarks.truncate(REMARKS);
        let room = (BYTES / remarks.len().max(1)).clamp(SHORT_REMARK, REMARK);
        let remarks = remarks.into_iter().map(|(remark, text)| Remark { text: self.cut(&text, room), ..remark });
        let remarks: Vec<Remark> =
            remarks.filter(|remark| remark.is_of_check() || !remark.text.trim().is_empty()).collect();
        if remarks.is_empty() {
            return Ok((self.changed(followed, status).into_iter().collect(), error));
        }
        if !followed.may_continue {
            status.unanswered = remarks.len();
            return Ok((self.changed(followed, status).into_iter().collect(), error));
        }
        let mut events = Vec::new();
        match self.take_in(followed, status.moved_to.as_ref())? {
            Ok(head) => {
                events.extend(self.changed(followed, status));
                events.push(Event::FeedbackReceived { lane: self.id(followed.lane), head, remarks });
            }
            Err(why) => {
                status.unanswered = remarks.len();
                // Once for each time that something changes there.
                if let Some(changed) = self.changed(followed, status) {
                    events.extend([changed, self.note(followed.lane, why)]);
                }
            }
        }
        Ok((events, error))
    }

    /// The checks that failed and that no agent was given, once the others have ended, or have not for long.
    fn failed_checks(&self, proposal: &ProposalState, review: &Review, failed: &[&Check]) -> Vec<WholeRemark> {
        let some_run = review.deciding_checks().any(|check| check.state == ChecksState::Pending);
        let waited = proposal.failed_since().is_some_and(|since| self.clock.now().since(since) >= OTHERS_END);
        if some_run && !waited {
            return Vec::new();
        }
        let new = failed.iter().filter(|check| !proposal.is_answered(&remark_id(check))).take(REMARKS);
        let remark = |check: &&Check| {
            let log = self.forge().map(|forge| forge.log_of(check)).unwrap_or_default();
            let (id, by) = (remark_id(check), one_line(&check.name));
            (Remark { id, by, path: None, line: None, text: String::new() }, readable(&log))
        };
        new.map(remark).collect()
    }

    /// What people wrote who may write to the repository, and no agent was given; the error is why some are not known.
    fn comments(&self, proposal: &ProposalState, review: &Review) -> Result<(Vec<WholeRemark>, Option<ExecutorError>)> {
        let (mut remarks, mut unknown) = (Vec::new(), None);
        let is_of_this_run =
            |at: Option<Timestamp>| proposal.known_since().is_none_or(|since| at.is_none_or(|at| at >= since));
        let new = |comment: &&Comment| !proposal.is_answered(&comment.id) && is_of_this_run(comment.at);
        for comment in review.comments.iter().filter(new) {
            match self.forge()?.counts(comment, &self.reviewers.listed, &self.reviewers.known) {
                Ok(false) => {}
                Ok(true) => {
                    let (id, by, line) = (comment.id.clone(), one_line(&comment.by), comment.line);
                    let path = comment.path.as_deref().map(one_line);
                    remarks.push((Remark { id, by, path, line, text: String::new() }, comment.text.clone()));
                }
                Err(error) => unknown = unknown.or(Some(error.into())),
            }
        }
        Ok((remarks, unknown))
    }

    /// Without secrets and what a terminal would obey; of a long text the middle is left out.
    fn cut(&self, text: &str, room: usize) -> String {
        let lines: Vec<String> = text.lines().map(one_line_kept).collect();
        let text = self.redactor.redact(&lines.join("\n")).into_owned();
        if text.len() <= room {
            return text;
        }
        let head = &text[..text.floor_char_boundary(room / 2)];
        let tail = &text[text.ceil_char_boundary(text.len() - room / 2)..];
        format!("{head}\n[{} bytes are left out]\n{tail}", text.len() - head.len() - tail.len())
    }

    /// The head from which the lane continues, with what other people pushed; the inner error is why it cannot.
    fn take_in(&self, followed: &Followed, moved_to: Option<&CommitId>) -> Result<Result<CommitId, String>> {
        let Some(theirs) = moved_to else { return Ok(Ok(followed.head.clone())) };
        let (branch, remote) = (self.lane_branch(followed.lane), self.remote()?);
        let reference = branch_reference(&branch);
        remote.fetch(&[&reference])?;
        let name = remote.name();
        if !self.repository.has_commit(theirs)? {
            return Ok(Err(format!("{branch} on {name} is moving; it is looked at again")));
        }
        if !self.repository.is_ancestor(&followed.head, theirs)? {
            return Ok(Err(format!(
                "{branch} on {name} was rewritten and lacks commits of this run, so its agents do not continue there"
            )));
        }
        if let Some(place) = self.repository.where_checked_out(&branch)? {
            return Ok(Err(format!(
                "{branch} moved on {name} and is checked out in {}, so its agents do not continue; switch to another branch there",
                place.display()
            )));
        }
        match self.repository.branch_commit(&branch)? {
            // It was removed here, or a process that died took in other commits.
            None => self.repository.make_branch(&branch, theirs)?,
            Some(here) if here == followed.head || self.repository.is_ancestor(&here, theirs)? => {
                move_branch(&self.repository, &branch, &here, theirs)?;
            }
            Some(here) => {
                return Ok(Err(format!(
                    "{branch} is at {} here, with commits that {name} lacks, so its agents do not continue; push them there",
                    here.short()
                )));
            }
        }
        Ok(Ok(theirs.clone()))
    }

    /// Has the lane's pull request merged; one that asks to be merged into a branch which is merged itself is retargeted first.
    pub(super) fn merge_pull_request(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let proposal = state.lane(lane).proposal();
        let known = proposal.pull_request().cloned().ok_or(ExecutorError::Missing("the pull request"))?;
        let number = known.number.ok_or(ExecutorError::Missing("the number of the pull request"))?;
        let status = proposal.status().cloned().ok_or(ExecutorError::Missing("what the forge says"))?;
        let (own, target) = (lane_head(state, lane)?, state.proposal_target(lane));
        let head = status.moved_to.clone().unwrap_or_else(|| own.clone());
        let executor = self.clone();
        Ok(Box::new(move |_| {
            let (lane, style) = (executor.id(lane), executor.facts.options.merge_style);
            let retargets = status.retargeted.is_none() && known.base != target;
            let done = executor.forge().and_then(|forge| {
                let done = match retargets {
                    true => forge.retarget(number, &target),
                    false => forge.merge(number, head.as_str(), style),
                };
                Ok(done?)
            });
            vec![match done {
                Ok(()) if retargets => {
                    let pull_request = PullRequest { base: target, ..known };
                    Event::PullRequestOpened { lane, pull_request, head: own, updated: true }
                }
                Ok(()) => {
                    let status = PullRequestStatus { state: PullRequestState::Merged, ..status };
                    Event::PullRequestChanged { lane, status }
                }
                Err(error) => Event::PullRequestRefused { lane, reason: headline(&error.to_string(), 500) },
            }]
        }))
    }
}

fn remark_id(check: &Check) -> String {
    format!("{}{}", Remark::CHECK, check.id)
}

/// What of a log says why the job failed: what is recognised, then its end.
fn readable(log: &str) -> String {
    let findings = diagnose(log, &[Path::new("/")]).findings;
    let mut lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.extend(last_lines(log, LOG_LINES));
    lines.join("\n")
}

/// A line as it may stand in a text, with its indentation.
fn one_line_kept(line: &str) -> String {
    let indent: String = line.chars().take_while(|c| *c == ' ' || *c == '\t').collect();
    format!("{indent}{}", one_line(line))
}
