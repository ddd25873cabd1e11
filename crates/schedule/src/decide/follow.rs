//! What becomes of pull requests after they were opened (`follow`).

use std::collections::BTreeMap;
use std::time::Duration;

use lanewright_model::retry::LONGEST_BACKOFF;
use lanewright_model::text::counted;
use lanewright_model::{
    ChecksState, Failure, FailureKind, Follow, LaneIndex, PullRequestStatus, Remark, ReviewState, Timestamp,
};

use crate::action::Action;
use crate::decide::deciding::Deciding;
use crate::decide::failure_routing::send_back;
use crate::state::RunState;

/// Checks may begin some time after a push: without any, a pull request is not merged before that.
const CHECKS_BEGIN: Duration = Duration::from_secs(60);

/// How long the forge is left alone at least.
const SHORTEST_WAIT: Duration = Duration::from_millis(200);

/// Asks about the pull requests that are followed, and has those merged that may be; whether any is still followed.
pub(crate) fn follow(deciding: &mut Deciding) -> bool {
    let (state, now) = (deciding.state, deciding.now);
    let Some(follow) = state.follow() else { return false };
    let asked = state.following.asked();
    let (mut end, mut open, mut merges) = (None, Vec::new(), false);
    for &lane in state.indexes.followed() {
        let Some(until) = until(state, lane, follow).filter(|_| !escalate(deciding, lane, follow)) else { continue };
        if asked.is_none() || until > now && !is_over(deciding, lane, follow) {
            open.push(lane);
            end = end.max(Some(until));
        }
        merges |= follow.auto_merge && merge(deciding, lane);
    }
    if merges {
        // What is answered meanwhile would be of before.
        return true;
    }
    let Some(end) = end else {
        block_failed(deciding);
        return false;
    };
    let moment = next(state, &open);
    if asked.is_none() || moment < end {
        if deciding.due(moment) {
            deciding.want(Action::CheckPullRequests);
        }
    } else {
        deciding.due(end);
    }
    true
}

/// Says of a lane that was sent back often enough, and is asked for more, that it waits for the user; whether that is so.
fn escalate(deciding: &mut Deciding, lane: LaneIndex, follow: Follow) -> bool {
    let proposal = &deciding.state.lane(lane).proposal;
    let is_asked = proposal.rounds >= follow.rounds && proposal.status().is_some_and(|status| status.unanswered > 0);
    if is_asked {
        block(deciding, lane, &format!(", after it was sent back {}", counted(follow.rounds as usize, "time")));
    }
    is_asked
}

/// Says of lanes whose checks still fail when they are not followed any more that they wait for the user.
fn block_failed(deciding: &mut Deciding) {
    let state = deciding.state;
    let fails = |lane: &&LaneIndex| {
        state
            .lane(**lane)
            .proposal
            .status()
            .is_some_and(|status| status.checks == ChecksState::Failed && !status.is_closed())
    };
    state.indexes.followed().iter().filter(fails).for_each(|lane| block(deciding, *lane, ""));
}

fn block(deciding: &mut Deciding, lane: LaneIndex, how: &str) {
    let proposal = &deciding.state.lane(lane).proposal;
    let (Some(status), Some(pull_request)) = (proposal.status(), proposal.pull_request()) else { return };
    let reason = format!("its pull request is {status}{how}; look at {}, then `lanewright follow`", pull_request.url);
    deciding.block(lane, reason);
}

/// Until when the lane's pull request is followed.
fn until(state: &RunState, lane: LaneIndex, follow: Follow) -> Option<Timestamp> {
    let made = state.lane(lane).proposal.made_at()?;
    Some(made.max(state.alive_since?).plus(follow.time))
}

/// Whether it is closed, or its checks passed and it is approved, so that it only waits to be merged by the user.
fn is_over(deciding: &mut Deciding, lane: LaneIndex, follow: Follow) -> bool {
    let Some(status) = deciding.state.lane(lane).proposal.status() else { return false };
    let is_done = !follow.auto_merge && status.may_be_merged() && status.review == ReviewState::Approved;
    status.is_closed() || is_done && have_checks_begun(deciding, lane, status)
}

/// Whether checks have begun, or have had the time that they may take to begin.
fn have_checks_begun(deciding: &mut Deciding, lane: LaneIndex, status: &PullRequestStatus) -> bool {
    let made = deciding.state.lane(lane).proposal.made_at();
    status.checks != ChecksState::None || made.is_none_or(|made| deciding.due(made.plus(CHECKS_BEGIN)))
}

/// When the forge is asked again: not at once about what was opened just now.
fn next(state: &RunState, lanes: &[LaneIndex]) -> Timestamp {
    let first = state.first_backoff().max(SHORTEST_WAIT);
    let made = lanes.iter().filter_map(|&lane| state.lane(lane).proposal.made_at()).max();
    let opened = made.filter(|made| state.alive_since.is_some_and(|since| *made >= since));
    let asked = state.following.next(first, &format!("{}/pull requests", state.plan.phase));
    asked.into_iter().chain(opened.map(|made| made.plus(first))).max().unwrap_or(Timestamp::from_unix_millis(0))
}

/// Has the lane's pull request merged, if nothing speaks against it, as the forge answered in this life of the run, and those
/// before it are merged; whether that is so.
fn merge(deciding: &mut Deciding, lane: LaneIndex) -> bool {
    let state = deciding.state;
    let proposal = &state.lane(lane).proposal;
    let (Some(status), Some(answered)) = (proposal.status(), state.following.answered()) else { return false };
    let is_refused = proposal.refused.is_some_and(|refused| answered < refused.plus(LONGEST_BACKOFF));
    let may_be = status.may_be_merged()
        && !is_refused
        && proposal.is_up_to_date(answered)
        && state.proposals_before(lane).is_empty()
        && have_checks_begun(deciding, lane, status);
    if may_be {
        deciding.want(Action::MergePullRequest(lane));
    }
    may_be
}

/// Sends a lane back whose pull request got `remarks`.
pub(crate) fn answer(deciding: &mut Deciding, lane: LaneIndex, remarks: &[Remark]) {
    send_back(deciding, lane, Failure::new(FailureKind::Rejected, text(remarks)));
}

/// `check build failed, 2 comments of reviewer`.
fn summary(remarks: &[Remark]) -> String {
    let checks: Vec<&str> =
        remarks.iter().filter(|remark| remark.is_of_check()).map(|remark| remark.by.as_str()).collect();
    let mut comments: BTreeMap<&str, usize> = BTreeMap::new();
    for remark in remarks.iter().filter(|remark| !remark.is_of_check()) {
        *comments.entry(&remark.by).or_default() += 1;
    }
    let noun = if checks.len() == 1 { "check" } else { "checks" };
    let failed = (!checks.is_empty()).then(|| format!("{noun} {} failed", checks.join(", ")));
    let said = comments.into_iter().map(|(by, count)| format!("{} of {by}", counted(count, "comment")));
    failed.into_iter().chain(said).collect::<Vec<_>>().join(", ")
}

/// What the agent is given: reviewers' words are quoted, and logs are code.
fn text(remarks: &[Remark]) -> String {
    let one = |remark: &Remark| {
        let place = match (&remark.path, remark.line) {
            (Some(path), Some(line)) => format!(" on {path}, line {line}"),
            (Some(path), None) => format!(" on {path}"),
            _ => String::new(),
        };
        let (heading, before) = match remark.is_of_check() {
            true => (format!("The check {} failed:", remark.by), "    "),
            false => (format!("{} wrote{place}:", remark.by), "> "),
        };
        let lines: Vec<String> =
            remark.text.lines().map(|line| format!("{before}{line}").trim_end().to_owned()).collect();
        format!("\n\n{heading}\n\n{}", lines.join("\n"))
    };
    let all: String = remarks.iter().map(one).collect();
    format!("the pull request was sent back: {}{all}", summary(remarks))
}

#[cfg(test)]
mod tests;
