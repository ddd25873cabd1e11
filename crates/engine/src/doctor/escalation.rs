//! The options shown to the user if nothing can be repaired for certain (seed 003, Recovery Escalation Policy).

use std::collections::BTreeMap;
use std::path::Path;

use lanewright_model::event::Event;
use lanewright_model::text::{counted, shell_line};
use lanewright_model::{CheckpointRecord, CheckpointStatus, RunId};
use lanewright_schedule::Fault;

use crate::doctor::{Escalation, Expected, HoldingSeen, LogSeen, RecoveryOption, RunFacts, RunTraces};

impl RunTraces {
    /// Whether a branch, a snapshot or a worktree may hold work.
    pub(super) fn holds_work(&self) -> bool {
        !self.slots.is_empty() || !self.branches.is_empty() || !self.snapshots.is_empty()
    }

    /// Whether a lane is neither complete nor rolled back.
    pub(super) fn is_unfinished(&self) -> bool {
        self.newest().any(|record| !record.is_over())
    }

    /// The newest record of each lane.
    fn newest(&self) -> impl Iterator<Item = &CheckpointRecord> {
        let mut newest: BTreeMap<_, &CheckpointRecord> = BTreeMap::new();
        for record in self.records.iter().filter(|record| record.lane.is_some()) {
            let known = newest.entry(&record.lane).or_insert(record);
            if known.timestamp < record.timestamp {
                *known = record;
            }
        }
        newest.into_values()
    }

    pub(super) fn branch_names(&self) -> String {
        self.branches.iter().map(|(name, _)| short(name)).collect::<Vec<_>>().join(", ")
    }
}

fn short(reference: &str) -> &str {
    reference.strip_prefix("refs/heads/").unwrap_or(reference)
}

pub(super) fn lost_log(facts: &RunFacts, traces: &RunTraces, issue: &str) -> Escalation {
    let merged = merged_lanes(facts, traces);
    let mut state = vec![format!("merged lanes, as far as is known: {}", listed(&merged))];
    state.extend(traces.records.iter().filter(|it| it.status != CheckpointStatus::Complete).map(|it| {
        let lane = it.lane.as_ref().map_or("the phase", |lane| lane.as_str());
        format!("checkpoints.json: {lane} {} {}", it.stage, it.status)
    }));
    state.extend(traces.branches.iter().map(|(name, at)| format!("branch {} is at {at}", short(name))));
    state.extend(traces.snapshots.iter().map(|(name, at)| format!("{name} keeps {at}")));
    state.extend(traces.slots.iter().map(|slot| format!("worktree {}", slot.path.display())));
    Escalation {
        issue: issue.to_owned(),
        current_state: state,
        recovery_attempts: attempts(facts),
        impact: "nothing in git is lost: every branch, snapshot and worktree stays as it is; what is lost is what \
                 Lanewright knew of the run"
            .to_owned(),
        options: [run_again(facts, traces, &merged), reconstruct(facts, traces), keep_everything(&facts.run, traces)],
    }
}

/// The lanes that the intact part of the log or the checkpoints take for merged.
fn merged_lanes(facts: &RunFacts, traces: &RunTraces) -> Vec<String> {
    let mut merged: Vec<String> = Vec::new();
    if let LogSeen::Damaged(salvage) = &facts.log {
        merged.extend(salvage.records.iter().filter_map(|record| match &record.event {
            Event::LaneMerged { lane, .. } => Some(lane.to_string()),
            _ => None,
        }));
    }
    let is_done = |record: &&CheckpointRecord| record.is_over() && record.status == CheckpointStatus::Complete;
    merged.extend(traces.newest().filter(is_done).filter_map(|it| Some(it.lane.as_ref()?.to_string())));
    merged.sort();
    merged.dedup();
    merged
}

fn attempts(facts: &RunFacts) -> String {
    match &facts.log {
        LogSeen::Damaged(salvage) => format!(
            "what the other files and git say was compared with the {} before the damaged lines",
            counted(salvage.records.len(), "record")
        ),
        _ => {
            "checkpoints.json, the run's directory, branches and refs were searched; they do not say what the options \
              of the run were, nor which tasks passed"
                .to_owned()
        }
    }
}

fn run_again(facts: &RunFacts, traces: &RunTraces, merged: &[String]) -> RecoveryOption {
    let path = traces.plan.as_deref().map_or("PLAN".into(), Path::to_string_lossy);
    let mut words = vec!["lanewright", "execute-phase", &path, "--new-run"];
    let plan = facts.plan.pinned.as_ref().and_then(|plan| plan.as_ref().ok());
    let mut open: Vec<&str> = match plan {
        Some(plan) => plan.lanes.iter().map(|lane| lane.id.as_str()).collect(),
        None => traces.records.iter().filter_map(|it| it.lane.as_ref()).map(|lane| lane.as_str()).collect(),
    };
    open.retain(|lane| !merged.iter().any(|it| it == lane));
    open.sort_unstable();
    open.dedup();
    if !merged.is_empty() {
        words.extend(open.iter().flat_map(|lane| ["--lane", lane]));
    }
    option(
        "run the lanes that are not merged again, in a new run beside this one",
        "for: certain, and needs no knowledge of the old run; against: agents do their work again, also those \
                    of merged lanes that others depend on, and what the old branches hold is to be merged by hand if it \
                    is wanted",
        vec![shell_line(words)],
    )
}

fn reconstruct(facts: &RunFacts, traces: &RunTraces) -> RecoveryOption {
    if let LogSeen::Damaged(salvage) = &facts.log
        && !salvage.records.is_empty()
    {
        let log = facts.log_path.to_string_lossy().into_owned();
        let aside = format!("{log}.damaged");
        let count = salvage.records.len().to_string();
        let cut = format!("{} > {}", shell_line(["head", "-n", &count, &aside]), shell_line([&log]));
        let run = facts.run.as_str();
        return option(
            format!("continue from the {} that can be trusted", counted(salvage.records.len(), "record")),
            "for: keeps the run; against: what came later is forgotten, so agents may do work again on top \
                        of the existing work, and lanes that were merged since may block",
            [shell_line(["mv", &log, &aside]), cut].into_iter().chain(fix_and_resume(run)).collect(),
        );
    }
    let look = traces.branches.iter().map(|(name, _)| shell_line(["git", "log", "--stat", short(name)]));
    let open = traces.branches.iter().enumerate().map(|(number, (name, _))| {
        let place = format!("../rescued-{}", number + 1);
        shell_line(["git", "worktree", "add", "--detach", &place, short(name)])
    });
    let snapshots = traces.snapshots.iter().map(|(name, _)| shell_line(["git", "show", "--stat", name]));
    option(
        "take the work out of git by hand",
        "for: keeps what the agents did; against: a person has to judge and merge it",
        look.chain(open).chain(snapshots).collect(),
    )
}

fn keep_everything(run: &RunId, traces: &RunTraces) -> RecoveryOption {
    let slots = traces.slots.iter().map(|slot| shell_line(["git", "-C", &slot.path.to_string_lossy(), "status"]));
    abandon(run, slots.collect())
}

fn abandon(run: &RunId, commands: Vec<String>) -> RecoveryOption {
    option(
        format!("abandon run {run} and leave everything as it is"),
        "for: costs nothing now; against: its worktrees and branches stay until a person removes them",
        commands,
    )
}

fn option(what: impl Into<String>, judgement: &str, commands: Vec<String>) -> RecoveryOption {
    RecoveryOption { what: what.into(), judgement: judgement.to_owned(), commands }
}

fn fix_and_resume(run: &str) -> [String; 2] {
    [shell_line(["lanewright", "doctor", run, "--fix"]), shell_line(["lanewright", "resume", run])]
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

pub(super) fn contradiction(facts: &RunFacts, expected: &Expected, issue: String) -> Escalation {
    let run = facts.run.as_str();
    let plan = expected.started.plan_path.to_string_lossy().into_owned();
    let opened = expected.opened().into_iter();
    let state = opened
        .map(|(owned, it)| format!("{} was opened on branch {}", expected.shown(&owned, it).display(), it.branch));
    Escalation {
        issue,
        current_state: state.collect(),
        recovery_attempts: format!("the plan's file {plan} was read; it is not what the run began with"),
        impact: "the run cannot continue; its branches, snapshots and worktrees stay as they are".to_owned(),
        options: [
            option(
                "run the phase again, in a new run beside this one",
                "for: certain; against: agents do their work again",
                vec![shell_line(["lanewright", "execute-phase", &plan, "--new-run"])],
            ),
            option(
                format!("put {plan} back as it was (SHA-256 {}), then repair", facts.plan.source_sha256),
                "for: the run continues; against: the old text must be found",
                [shell_line(["git", "log", "--", &plan])].into_iter().chain(fix_and_resume(run)).collect(),
            ),
            abandon(&facts.run, Vec::new()),
        ],
    }
}

pub(super) fn unusable_plan(facts: &RunFacts, expected: &Expected, issue: String) -> Escalation {
    let contradiction = contradiction(facts, expected, issue);
    let [again, put_back, _] = contradiction.options;
    let what = match &facts.plan.unfit {
        Some(Fault::UnknownAgent(lane, agent)) => {
            format!(
                "give the agents of {lane} in the plan file the names that they have in the run log, such as `name = \"{agent}\"`, and continue with that"
            )
        }
        _ => "continue with the plan file as it is now, or with plan.json if there is no plan file".to_owned(),
    };
    let accept = option(
        what,
        "for: the run continues; against: its lanes may get other instructions than before",
        vec![shell_line(["lanewright", "resume", facts.run.as_str(), "--accept-plan-change"])],
    );
    Escalation { options: [accept, put_back, again], ..contradiction }
}

/// For a worktree or branch of a lane that only the user can restore.
pub(super) fn worktree(
    facts: &RunFacts,
    seen: &HoldingSeen,
    issue: String,
    tried: &str,
    by_hand: Vec<String>,
) -> Escalation {
    let run = facts.run.as_str();
    let worktree = &seen.holding.worktree;
    let mut state = vec![format!("branch {} last stood at {}", worktree.branch, seen.holding.head)];
    state.extend(seen.branch.as_ref().map(|at| format!("branch {} is at {at}", worktree.branch)));
    state.extend(seen.snapshot.as_ref().map(|name| format!("{name} keeps what was there")));
    let lane = seen.owned.0.as_ref();
    let rollback = lane.map(|lane| shell_line(["lanewright", "rollback", run, "--lane", lane.as_str()]));
    let resume = shell_line(["lanewright", "resume", run]);
    Escalation {
        issue,
        current_state: state,
        recovery_attempts: tried.to_owned(),
        impact: "the lane cannot continue; other lanes can".to_owned(),
        options: [
            option(
                "roll the lane back and run it again",
                "for: certain, and what is left of its work is kept in snapshots; against: its agents do \
                            their work again",
                rollback.into_iter().chain([resume]).collect(),
            ),
            option(
                "fix it by hand, then repair the rest",
                "for: keeps the lane's work where it is; against: a person has to look",
                by_hand.into_iter().chain(fix_and_resume(run)).collect(),
            ),
            option("leave the lane as it is", "for: costs nothing now; against: the run stays unfinished", Vec::new()),
        ],
    }
}
