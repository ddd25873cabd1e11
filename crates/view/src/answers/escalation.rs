//! What the user must decide when Lanewright has no retry left (seed 003, Recovery Escalation Policy).

use lanewright_model::cells::clean;
use lanewright_model::event::stage_in_words;
use lanewright_model::text::{counted, shell_line};
use lanewright_model::{FailureKind, JobRole, LaneId};
use serde::Serialize;

use crate::answers::commands::Commands;
use crate::history::{Ending, LaneHistory, RunHistory};

/// What the user has to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Escalation {
    /// The lane; null: the phase itself.
    pub lane: Option<LaneId>,
    /// What failed, or what must change.
    pub issue: String,
    /// The stage, and where the work is.
    pub current_state: String,
    /// What was tried already.
    pub recovery_attempts: String,
    /// What depends on it.
    pub impact: String,
    /// The likeliest first.
    pub options: Vec<Choice>,
}

/// One thing that the user can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Choice {
    /// The effect of the command.
    pub what: String,
    /// An argument vector.
    pub command: Vec<String>,
}

/// What must be decided about `lane`; `None` where it only waits for others, or for an answer.
pub(crate) fn escalation_of(history: &RunHistory, lane: &LaneHistory, commands: &Commands<'_>) -> Option<Escalation> {
    let (issue, again) = match lane.ending.as_ref()? {
        Ending::Failed(failure) => (&failure.message, advice(failure.kind)),
        Ending::Blocked(reason) if unmerged_dependencies(history, lane).is_empty() => {
            (reason, "Do what the issue asks for, then resume. Keeps all work.")
        }
        _ => return None,
    };
    Some(Escalation {
        lane: Some(lane.id.clone()),
        issue: clean(issue),
        current_state: current_state(history, lane),
        recovery_attempts: attempts(lane),
        impact: impact(history, lane),
        options: options(history, lane, again, commands),
    })
}

impl Escalation {
    /// Where the lane is, in a sentence: the stage is a word in lower case there.
    pub(crate) fn stage(&self) -> String {
        match self.current_state.split_once(", ") {
            Some((stage, place)) if self.lane.is_some() => format!("{}, {place}", stage_in_words(stage)),
            _ => self.current_state.clone(),
        }
    }

    /// As Markdown that reads as text.
    pub fn render(&self) -> String {
        let task = self.lane.as_ref().map_or("The phase".to_owned(), |lane| format!("Lane {lane}"));
        let mut text = format!("{task} needs a decision.\n\n");
        for (name, value) in [
            ("Reason", &self.issue),
            ("Stage", &self.stage()),
            ("Attempts", &self.recovery_attempts),
            ("Impact", &self.impact),
        ] {
            text.push_str(&format!("{name}: {value}\n"));
        }
        text.push_str("\nWhat you can do:\n");
        for (number, choice) in (1..).zip(&self.options) {
            text.push_str(&format!("{number}. {}\n   {}\n", choice.what, shell_line(&choice.command)));
        }
        text
    }
}

/// What to do before a resume.
fn advice(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Network | FailureKind::Quota => "Resume when the network or the service is back. No work is lost.",
        FailureKind::Idle => {
            "If the agent asked something, answer it in the plan or with -m, then resume. If its work may change nothing: `allow_empty = true`, and resume with --accept-plan-change."
        }
        FailureKind::Conflict => {
            "Merge the integration branch into the lane's in its worktree, commit, then resume: the lane is tested and merged without an agent."
        }
        FailureKind::Timeout => {
            "Raise the limit in the plan (`max_time` of the task or its lane; `timeout`, if the lane took too long as a whole) or make the task smaller, then resume with --accept-plan-change."
        }
        FailureKind::Rejected => "Describe more precisely what is wanted, in the plan or with -m, then resume.",
        _ => {
            "Fix the cause (plan, environment, or the work with a commit in the lane's worktree), then resume; retries start over."
        }
    }
}

/// The final gate is red: the lanes stay merged, and the last ones are the first suspects (SPEC §6).
pub(crate) fn final_gate(history: &RunHistory, commands: &Commands<'_>) -> Option<Escalation> {
    let exit = history.run.failed_final_gate()?;
    let mut merged: Vec<&LaneHistory> = history.lanes().iter().filter(|lane| lane.merge_commit.is_some()).collect();
    let culprit = history.run.culprit.as_ref();
    merged.sort_by_key(|lane| (Some(&lane.id) != culprit, std::cmp::Reverse(lane.finished)));
    let suspects: Vec<&str> = merged.iter().map(|lane| lane.id.as_str()).take(SUSPECTS).collect();
    let last = merged.first().map(|lane| &lane.id);
    let which = if culprit.is_some() { "whose merge broke it" } else { "merged last" };
    let fix = format!("Fix {} and resume: the gate runs again, no lane does.", history.run.base_branch());
    let mut options = vec![choice(fix, commands.resume())];
    options.extend(last.map(|lane| {
        let what =
            format!("Put {lane}, {which}, back: its merge is reverted and its work kept; a resume does it again.");
        choice(what, commands.rollback(Some(lane)))
    }));
    Some(Escalation {
        lane: None,
        issue: format!("the final gate failed: `{}` exited with code {}", clean(&exit.command), exit.exit_code),
        current_state: format!("{} merged into {}", counted(merged.len(), "lane"), history.run.base_branch()),
        recovery_attempts: "none: the lanes passed their own tests, so no agent is to blame".to_owned(),
        impact: format!(
            "{} holds work that does not pass; {which}: {}",
            history.run.base_branch(),
            suspects.join(", ")
        ),
        options,
    })
}

const SUSPECTS: usize = 3;

fn current_state(history: &RunHistory, lane: &LaneHistory) -> String {
    let place = match (lane.workplace.branch(), history.run.link(&lane.id, None)) {
        (Some(branch), Some(link)) => format!(", on branch {branch} in {}", link.display()),
        _ => ", nothing of it was made yet".to_owned(),
    };
    format!("{}{place}", lane.stage)
}

fn attempts(lane: &LaneHistory) -> String {
    let count = counted(lane.attempts(), "attempt");
    match lane.counted_retries().next_back() {
        None if lane.attempts() == 0 => "none".to_owned(),
        None => format!("{count}, no retry"),
        Some(last) => format!("{count} ({}: retry {})", last.agent, last.used()),
    }
}

fn impact(history: &RunHistory, lane: &LaneHistory) -> String {
    let waiting: Vec<&str> = history
        .lanes()
        .iter()
        .filter(|other| unmerged_dependencies(history, other).contains(&&lane.id))
        .map(|other| other.id.as_str())
        .collect();
    let waiting = match waiting.as_slice() {
        [] => "no other lane depends on it".to_owned(),
        [lane] => format!("{lane} depends on it"),
        lanes => format!("{} depend on it", lanes.join(", ")),
    };
    let kept = match lane.snapshots.last() {
        Some(snapshot) => format!("the latest work is saved as {}", snapshot.reference),
        None if lane.workplace.worktree.is_some() => "all work is in its worktree".to_owned(),
        None => "no work is at risk".to_owned(),
    };
    format!("{waiting}; {kept}")
}

fn unmerged_dependencies<'v>(history: &'v RunHistory, lane: &'v LaneHistory) -> Vec<&'v LaneId> {
    let merged = |id: &&LaneId| history.lane(id).is_some_and(|on| on.is_merged());
    lane.depends_on.iter().filter(|id| !merged(id)).collect()
}

fn options(history: &RunHistory, lane: &LaneHistory, again: &str, commands: &Commands<'_>) -> Vec<Choice> {
    let over = "Start the lane over. Its work is saved first; rollback prints where.";
    let skip = "Leave the lane out: what depends on it goes on without its work, which is kept.";
    let retry = can_use_advice(lane).then(|| {
        let what = "Let its agent try again, with your advice in its prompt; other failed lanes stay as they are.";
        choice(what, commands.retry_of(&lane.id, &history.run))
    });
    let accept = needs_plan_change(lane).then(|| "--accept-plan-change".to_owned());
    let resume = commands.resume_of(&history.run).into_iter().chain(accept).collect();
    let mut options = vec![choice(again, resume)];
    options.extend(retry);
    options.push(choice(over, commands.rollback(Some(&lane.id))));
    options.push(choice(skip, commands.skip(&lane.id)));
    options
}

/// Whether [`advice`] is to change the plan.
fn needs_plan_change(lane: &LaneHistory) -> bool {
    let in_plan = |kind| matches!(kind, FailureKind::Idle | FailureKind::Timeout);
    matches!(&lane.ending, Some(Ending::Failed(failure)) if in_plan(failure.kind))
}

/// Whether its agent can do something about why it does not go on.
fn can_use_advice(lane: &LaneHistory) -> bool {
    let outage = |kind| matches!(kind, FailureKind::Network | FailureKind::Quota);
    match &lane.ending {
        Some(Ending::Failed(failure)) => !outage(failure.kind) && !failed_in_setup(lane),
        Some(Ending::Blocked(_)) => {
            lane.jobs.last_ended(|job| job.job.is_attempt()).is_some_and(|job| job.blocked().is_some())
        }
        _ => false,
    }
}

fn failed_in_setup(lane: &LaneHistory) -> bool {
    let job = lane.last_failure.as_ref().and_then(|last| last.job.as_ref());
    job.is_some_and(|job| matches!(job.role, JobRole::Setup { .. }))
}

fn choice(what: impl Into<String>, command: Vec<String>) -> Choice {
    Choice { what: what.into(), command }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::event::Event;
    use lanewright_model::testing::*;
    use lanewright_model::{Failure, JobId};

    fn escalated(story: &Story) -> Vec<Escalation> {
        let history =
            RunHistory::for_plan(&plan(&[("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[])])).after(&story.records);
        let program = ["lanewright".to_owned()];
        let run = "r1".parse().unwrap();
        let commands = Commands { program: &program, run: &run };
        let of_lane = |lane| escalation_of(&history, lane, &commands);
        history.lanes().iter().filter_map(of_lane).chain(final_gate(&history, &commands)).collect()
    }

    #[test]
    fn escalation_of_failed_lane() {
        let second = attempt("SL-1", "engineer", 2);
        let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 1).job(&second).exited(&second, 101);
        let story = story.noted("SL-1").failed("SL-1");
        let reason = "it depends on SL-1, which failed".to_owned();
        let escalations = escalated(&story.then(Event::LaneBlocked { lane: lane("SL-2"), reason }));
        assert_eq!(escalations.len(), 1, "a lane that only waits for another is part of that one's impact");
        insta::assert_snapshot!(escalations[0].render(), @"
        Lane SL-1 needs a decision.

        Reason: TypeError: undefined is not a function
        Stage: implementation, on branch lane/P1/SL-1 in /w/P1-SL-AUTH-20251227/SL-1/code
        Attempts: 2 attempts (engineer: retry 1 of 1)
        Impact: SL-2 depends on it; all work is in its worktree

        What you can do:
        1. Fix the cause (plan, environment, or the work with a commit in the lane's worktree), then resume; retries start over.
           lanewright resume r1
        2. Let its agent try again, with your advice in its prompt; other failed lanes stay as they are.
           lanewright retry r1 SL-1 -m 'what to change'
        3. Start the lane over. Its work is saved first; rollback prints where.
           lanewright rollback r1 --lane SL-1
        4. Leave the lane out: what depends on it goes on without its work, which is kept.
           lanewright skip r1 SL-1
        ");
    }

    #[test]
    fn only_what_works_is_offered() {
        let offered = |story: Story| {
            let options = escalated(&story).swap_remove(0).options;
            options.iter().map(|choice| shell_line(&choice.command)).collect::<Vec<_>>().join("\n")
        };
        let failed = |kind| Event::LaneFailed { lane: lane("SL-1"), failure: Failure::new(kind, "it failed") };
        for kind in [FailureKind::Timeout, FailureKind::Idle] {
            assert!(
                offered(Story::begun().then(failed(kind))).starts_with("lanewright resume r1 --accept-plan-change\n")
            );
        }
        let setup = JobId { lane: Some(lane("SL-1")), role: JobRole::Setup { agent: None }, number: 1 };
        let story = Story::begun().opened("SL-1", 1).job(&setup).exited(&setup, 1).noted("SL-1").failed("SL-1");
        assert!(!offered(story).contains("retry"), "no agent worked, so none can try again");
    }

    #[test]
    fn a_run_that_goes_well_asks_for_nothing() {
        assert_eq!(escalated(&Story::begun().opened("SL-1", 1).merged("SL-1", 'd')), []);
    }
}
