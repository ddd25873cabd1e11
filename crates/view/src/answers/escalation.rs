//! What the user must decide when Lanewright has no retry left (seed 003, Recovery Escalation Policy).

use lanewright_model::cells::clean;
use lanewright_model::event::stage_in_words;
use lanewright_model::text::{counted, shell_line};
use lanewright_model::{FailureKind, JobRole, LaneId};
use serde::Serialize;

use crate::answers::commands::Commands;
use crate::history::{Ending, LaneHistory, RunFacts, RunHistory};

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
    /// What speaks for it.
    pub pros: String,
    /// What speaks against it.
    pub cons: String,
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

    /// `Lane SL-1 needs a decision.`
    pub(crate) fn title(&self) -> String {
        let task = self.lane.as_ref().map_or("The phase".to_owned(), |lane| format!("Lane {lane}"));
        format!("{task} needs a decision.")
    }

    /// The facts under the headings of the seed.
    pub(crate) fn facts(&self) -> [(&'static str, String); 4] {
        [
            ("Issue", self.issue.clone()),
            ("Current State", self.stage()),
            ("Recovery Attempts", self.recovery_attempts.clone()),
            ("Impact", self.impact.clone()),
        ]
    }

    /// As Markdown that reads as text.
    pub fn render(&self) -> String {
        self.render_with(&|command| shell_line(command))
    }

    /// The same with commands as `how` shows them.
    pub(crate) fn render_with(&self, how: &dyn Fn(&[String]) -> String) -> String {
        let mut text = format!("{}\n\n", self.title());
        for (name, value) in self.facts() {
            text.push_str(&format!("{name}: {value}\n"));
        }
        text.push_str("\nOptions:\n");
        for (number, choice) in (1..).zip(&self.options) {
            let (judgement, command) = (choice.judgement(), how(&choice.command));
            text.push_str(&format!("{number}. {}\n   {judgement}\n   {command}\n", choice.what));
        }
        text
    }
}

impl Choice {
    /// `for: …; against: …`
    pub(crate) fn judgement(&self) -> String {
        format!("for: {}; against: {}", self.pros, self.cons)
    }
}

/// What to do before a resume.
fn advice(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Network | FailureKind::Quota => {
            "Resume when the network or the service is back. No work is lost. With `fallback` in the runner's `[runners.NAME]`, another runner does the work meanwhile; new runs wait as long as `outage_limit` says."
        }
        FailureKind::Idle => {
            "If the agent asked something, answer it in the plan or with -m, then resume. If its work may change nothing: `allow_empty = true`, and resume with --accept-plan-change."
        }
        FailureKind::Conflict => {
            "Merge the integration branch into the lane's in its worktree, commit, then resume: the lane is tested and merged without an agent."
        }
        FailureKind::Timeout => {
            "Raise the limit in the plan (`max_time` of the task or its lane; `timeout`, if the lane took too long as a whole) or make the task smaller, then resume with --accept-plan-change."
        }
        FailureKind::Rejected => {
            "Describe with -m, or in the plan, more precisely what is wanted, then resume; after a change of the plan with --accept-plan-change."
        }
        _ => {
            "Fix the cause (environment, plan, or the work with a commit in the lane's worktree), then resume; after a change of the plan with --accept-plan-change."
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
    let judged = ("no lane works again", "the fix is yours to make");
    let mut options = vec![choice(fix, judged, commands.resume())];
    options.extend(last.map(|lane| {
        let what = format!("Undo {lane}, {which}: its merge is reverted and its work kept; a resume does it again.");
        let judged =
            ("the branch is as it was before that merge", "its agents work again, and it may not be the cause");
        choice(what, judged, commands.rollback(Some(lane)))
    }));
    let stay = format!("Give up: leave {} as it is, with the work in it.", history.run.base_branch());
    let judged = ("costs nothing now", "the phase stays failed, and the branch does not pass its gate");
    options.push(choice(stay, judged, commands.status()));
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
        None => format!("{count}, no retry of its own"),
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
    let kept = match lane.snapshots.iter().rfind(|snapshot| !snapshot.unchanged) {
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
    let resume = resume_after(lane, &history.run, commands);
    let judged = match &lane.ending {
        Some(Ending::Failed(failure)) if failure.kind.is_outage() => {
            ("all work is kept, and nothing has to be changed", "it fails again while the service is away")
        }
        _ => ("all work is kept, and retries start over", "you have to find the cause; all that failed runs again"),
    };
    let mut options = vec![choice(again, judged, resume)];
    if can_use_advice(lane) {
        let what = "Let its agent try again, with your advice in its prompt; other failed lanes stay as they are.";
        let judged = ("the agent does the work, on top of what it has", "it costs another attempt, and may fail again");
        options.push(choice(what, judged, commands.retry_of(&lane.id, &history.run)));
    }
    let over = "Start the lane over. Its work is saved first; rollback prints where.";
    let judged = ("nothing of the failed work is in the way", "its agents do all of the lane again");
    options.push(choice(over, judged, commands.rollback(Some(&lane.id))));
    // A merged lane cannot be skipped.
    if !lane.is_merged() {
        let skip = "Abandon the lane: what depends on it goes on without its work, which is kept.";
        let judged = ("the rest of the run can end", "its work is missing in what is merged");
        options.push(choice(skip, judged, commands.skip(&lane.id)));
    } else if lane.pull_request.is_some() {
        let follow = "Have the lane continue with what failed or was said in its pull request.";
        let judged = ("its agent does the work", "it costs another attempt, and may fail again");
        options.insert(0, choice(follow, judged, commands.follow()));
    }
    options
}

/// Whether only a changed plan lets it continue, as [`advice`] or the reason says.
fn needs_plan_change(lane: &LaneHistory) -> bool {
    match &lane.ending {
        Some(Ending::Failed(failure)) => matches!(failure.kind, FailureKind::Idle | FailureKind::Timeout),
        Some(Ending::Blocked(_)) => lane.budget.exhausted_by(&lane.usage()).is_some(),
        _ => false,
    }
}

/// The command that resumes the run of a lane.
pub(crate) fn resume_after(lane: &LaneHistory, run: &RunFacts, commands: &Commands<'_>) -> Vec<String> {
    let accept = needs_plan_change(lane).then(|| "--accept-plan-change".to_owned());
    commands.resume_of(run).into_iter().chain(accept).collect()
}

/// Whether its agent can do something about why it does not go on.
pub(crate) fn can_use_advice(lane: &LaneHistory) -> bool {
    match &lane.ending {
        Some(Ending::Failed(failure)) => !failure.kind.is_outage() && !failed_in_setup(lane),
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

fn choice(what: impl Into<String>, (pros, cons): (&str, &str), command: Vec<String>) -> Choice {
    Choice { what: what.into(), pros: pros.to_owned(), cons: cons.to_owned(), command }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::event::Event;
    use lanewright_model::testing::*;
    use lanewright_model::{Failure, JobId, PullRequest};

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

        Issue: TypeError: undefined is not a function
        Current State: implementation, on branch lane/P1/SL-1 in /w/P1-SL-AUTH-20251227/SL-1/code
        Recovery Attempts: 2 attempts (engineer: retry 1 of 1)
        Impact: SL-2 depends on it; all work is in its worktree

        Options:
        1. Fix the cause (environment, plan, or the work with a commit in the lane's worktree), then resume; after a change of the plan with --accept-plan-change.
           for: all work is kept, and retries start over; against: you have to find the cause; all that failed runs again
           lanewright resume r1
        2. Let its agent try again, with your advice in its prompt; other failed lanes stay as they are.
           for: the agent does the work, on top of what it has; against: it costs another attempt, and may fail again
           lanewright retry r1 SL-1 -m 'what to change'
        3. Start the lane over. Its work is saved first; rollback prints where.
           for: nothing of the failed work is in the way; against: its agents do all of the lane again
           lanewright rollback r1 --lane SL-1
        4. Abandon the lane: what depends on it goes on without its work, which is kept.
           for: the rest of the run can end; against: its work is missing in what is merged
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
        let outage =
            escalated(&Story::begun().then(failed(FailureKind::Quota))).swap_remove(0).options.swap_remove(0).what;
        assert!(outage.contains("`fallback`") && outage.contains("`outage_limit`"), "{outage}");
        let pull_request = PullRequest { url: "https://forge/1".to_owned(), number: Some(1), base: "main".to_owned() };
        let opened = Event::PullRequestOpened { lane: lane("SL-1"), pull_request, head: commit('c'), updated: false };
        let story = Story::begun().opened("SL-1", 1).then(opened).merged("SL-1", 'd').blocked("SL-1", "checks failed");
        let proposed = offered(story);
        assert!(proposed.starts_with("lanewright follow r1\n") && !proposed.contains("skip"), "{proposed}");
        let setup = JobId { lane: Some(lane("SL-1")), role: JobRole::Setup { agent: None }, number: 1 };
        let story = Story::begun().opened("SL-1", 1).job(&setup).exited(&setup, 1).noted("SL-1").failed("SL-1");
        assert!(!offered(story).contains("retry"), "no agent worked, so none can try again");
    }

    #[test]
    fn a_run_that_goes_well_asks_for_nothing() {
        assert_eq!(escalated(&Story::begun().opened("SL-1", 1).merged("SL-1", 'd')), []);
    }
}
