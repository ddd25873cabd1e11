//! The message for a person when Lanekeeper can do no more by itself (seed 003, Recovery Escalation Policy).

use serde::Serialize;

use super::cells::clean;
use super::commands::Commands;
use super::lane_view::{Ending, LaneView};
use super::run_view::RunView;
use crate::model::text::{counted, shell_line};
use crate::model::{Failure, FailureKind, LaneId};

/// What a person has to decide, and everything needed for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Escalation {
    /// The lane; `None`: the phase itself.
    pub lane: Option<LaneId>,
    /// What is wrong.
    pub issue: String,
    /// Where it stands.
    pub current_state: String,
    /// What was tried.
    pub recovery_attempts: String,
    /// What is at risk.
    pub impact: String,
    /// What may be done, the likeliest first.
    pub options: Vec<Choice>,
}

/// One way on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What it does, and what speaks for and against it.
    pub what: String,
    /// What to type.
    pub command: Vec<String>,
}

/// What a person has to decide, lane by lane. Lanes that only wait for others, or for an answer, are not among them.
pub fn escalations(view: &RunView, commands: &Commands<'_>) -> Vec<Escalation> {
    let of_lane = |lane: &LaneView| match lane.ending.as_ref()? {
        Ending::Failed(failure) => Some(failed(view, lane, failure, commands)),
        Ending::Blocked(reason) if unmerged_dependencies(view, lane).is_empty() => {
            Some(blocked(view, lane, reason, commands))
        }
        _ => None,
    };
    view.lanes().iter().filter_map(of_lane).chain(final_gate(view, commands)).collect()
}

impl Escalation {
    /// The message of the seed, as Markdown that reads as text.
    pub fn render(&self) -> String {
        let task = self.lane.as_ref().map_or("The phase".to_owned(), |lane| format!("Lane {lane}"));
        let mut text = format!("{task} needs a decision. What you can do:\n\n");
        for (name, value) in [
            ("Reason", &self.issue),
            ("Stage", &self.current_state),
            ("Attempts", &self.recovery_attempts),
            ("Impact", &self.impact),
        ] {
            text.push_str(&format!("{name}: {value}\n"));
        }
        text.push('\n');
        for (number, choice) in (1..).zip(&self.options) {
            text.push_str(&format!("{number}. {}\n   {}\n", choice.what, shell_line(&choice.command)));
        }
        text
    }
}

fn failed(view: &RunView, lane: &LaneView, failure: &Failure, commands: &Commands<'_>) -> Escalation {
    let again = match failure.kind {
        FailureKind::Network | FailureKind::Quota => "Resume when the network or the service is back. No work is lost.",
        FailureKind::Idle => {
            "If the agent asked something, answer it in the plan or with -m, then resume. If its work may change nothing: `allow_empty = true`, and resume with --accept-plan-change."
        }
        FailureKind::Conflict => "Settle the conflict on the lane's branch or on the integration branch, then resume.",
        FailureKind::Rejected => "Describe more precisely what is wanted, in the plan or with -m, then resume.",
        _ => "Fix the cause (plan, environment or the lane's worktree), then resume; retries start over.",
    };
    Escalation {
        lane: Some(lane.id.clone()),
        issue: clean(&failure.message),
        current_state: standing(lane),
        recovery_attempts: tried(lane),
        impact: impact(view, lane),
        options: options(view, lane, again, commands),
    }
}

fn blocked(view: &RunView, lane: &LaneView, reason: &str, commands: &Commands<'_>) -> Escalation {
    Escalation {
        lane: Some(lane.id.clone()),
        issue: clean(reason),
        current_state: standing(lane),
        recovery_attempts: tried(lane),
        impact: impact(view, lane),
        options: options(view, lane, "Do what the issue asks for, then resume. Keeps all work.", commands),
    }
}

/// The final gate is red: the lanes stay merged, and the last ones are the first suspects (SPEC §6).
fn final_gate(view: &RunView, commands: &Commands<'_>) -> Option<Escalation> {
    let exit = view.run.failed_final_gate()?;
    let mut merged: Vec<&LaneView> = view.lanes().iter().filter(|lane| lane.merge_commit.is_some()).collect();
    let culprit = view.run.culprit.as_ref();
    merged.sort_by_key(|lane| (Some(&lane.id) != culprit, std::cmp::Reverse(lane.finished)));
    let suspects: Vec<&str> = merged.iter().map(|lane| lane.id.as_str()).take(SUSPECTS).collect();
    let last = merged.first().map(|lane| &lane.id);
    let which = if culprit.is_some() { "whose merge broke it" } else { "merged last" };
    let mut options = vec![Choice {
        what: format!("Mend {} and resume: the gate runs again, no lane does.", view.run.base_branch),
        command: commands.resume(),
    }];
    options.extend(last.map(|lane| Choice {
        what: format!("Put {lane}, {which}, back: its merge is reverted and its work kept; a resume does it again."),
        command: commands.rollback(Some(lane)),
    }));
    options.push(abandon(commands.clean(), "Leave it as it is: the lanes stay merged."));
    Some(Escalation {
        lane: None,
        issue: format!("the final gate failed: `{}` exited with code {}", clean(&exit.command), exit.exit_code),
        current_state: format!("{} merged into {}", counted(merged.len(), "lane"), view.run.base_branch),
        recovery_attempts: "none: the lanes passed their own tests, so no agent is to blame".to_owned(),
        impact: format!("{} holds work that does not pass; {which}: {}", view.run.base_branch, suspects.join(", ")),
        options,
    })
}

/// How many lanes are named as suspects.
const SUSPECTS: usize = 3;

fn standing(lane: &LaneView) -> String {
    let place = match (lane.branch(), &lane.worktree) {
        (Some(branch), Some(worktree)) => format!(", on branch {branch} in {}", worktree.path.display()),
        _ => ", nothing of it was made yet".to_owned(),
    };
    format!("{}{place}", lane.stage)
}

fn tried(lane: &LaneView) -> String {
    let attempts = counted(lane.attempts(), "attempt");
    match lane.retries.last() {
        None if lane.attempts() == 0 => "none".to_owned(),
        None => format!("{attempts}, no retry"),
        Some(last) => format!("{attempts} ({} retries used by {})", last.used(), last.agent),
    }
}

fn impact(view: &RunView, lane: &LaneView) -> String {
    let waiting: Vec<&str> = view
        .lanes()
        .iter()
        .filter(|other| unmerged_dependencies(view, other).contains(&&lane.id))
        .map(|other| other.id.as_str())
        .collect();
    let waiting = match waiting.as_slice() {
        [] => "no other lane depends on it".to_owned(),
        [lane] => format!("{lane} depends on it"),
        lanes => format!("{} depend on it", lanes.join(", ")),
    };
    let kept = match lane.snapshots.last() {
        Some(snapshot) => format!("the latest work is saved as {}", snapshot.reference),
        None if lane.worktree.is_some() => "all work is in its worktree".to_owned(),
        None => "no work is at risk".to_owned(),
    };
    format!("{waiting}; {kept}")
}

fn unmerged_dependencies<'v>(view: &'v RunView, lane: &'v LaneView) -> Vec<&'v LaneId> {
    let merged = |id: &&LaneId| view.lane(id).is_some_and(|lane| lane.merge_commit.is_some() || lane.merged_before);
    lane.depends_on.iter().filter(|id| !merged(id)).collect()
}

fn options(view: &RunView, lane: &LaneView, again: &str, commands: &Commands<'_>) -> Vec<Choice> {
    vec![
        Choice { what: again.to_owned(), command: view.resume(commands) },
        Choice {
            what: "Start the lane over. Its work is saved first; rollback prints where.".to_owned(),
            command: commands.rollback(Some(&lane.id)),
        },
        abandon(commands.status(), "Abandon the lane: other lanes are not touched, its branch and worktree stay."),
    ]
}

fn abandon(command: Vec<String>, what: &str) -> Choice {
    Choice { what: what.to_owned(), command }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::view::testing::*;

    fn told(story: &Story) -> Vec<Escalation> {
        let view = RunView::for_plan(&plan(&[("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[])])).after(&story.records);
        let program = ["lanekeeper".to_owned()];
        let run = "r1".parse().unwrap();
        escalations(&view, &Commands { program: &program, run: &run })
    }

    #[test]
    fn a_failed_lane_is_told_with_what_was_tried_what_is_at_risk_and_what_to_type() {
        let second = attempt("SL-1", "engineer", 2);
        let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 1).job(&second).exited(&second, 101);
        let story = story.noted("SL-1").failed("SL-1");
        let reason = "it depends on SL-1, which failed".to_owned();
        let told = told(&story.then(Event::LaneBlocked { lane: lane("SL-2"), reason }));
        assert_eq!(told.len(), 1, "a lane that only waits for another is part of that one's impact");
        insta::assert_snapshot!(told[0].render(), @"
        Lane SL-1 needs a decision. What you can do:

        Reason: TypeError: undefined is not a function
        Stage: IMPLEMENTATION, on branch lane/P1/SL-1 in /w/slots/01
        Attempts: 2 attempts (1 of 1 retries used by engineer)
        Impact: SL-2 depends on it; all work is in its worktree

        1. Fix the cause (plan, environment or the lane's worktree), then resume; retries start over.
           lanekeeper resume r1
        2. Start the lane over. Its work is saved first; rollback prints where.
           lanekeeper rollback r1 --lane SL-1
        3. Abandon the lane: other lanes are not touched, its branch and worktree stay.
           lanekeeper status r1
        ");
    }

    #[test]
    fn a_run_that_goes_well_asks_for_nothing() {
        assert_eq!(told(&Story::begun().opened("SL-1", 1).merged("SL-1", 'd')), []);
    }
}
