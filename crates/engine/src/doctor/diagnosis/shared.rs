//! What all runs share: checkpoints, slots, locks of git's, refs, supervisors, disks.

use std::collections::BTreeMap;

use lanewright_git::{KeptOfRemoved, Slot};
use lanewright_model::text::{counted, shell_line};
use lanewright_model::{CheckpointRecord, LaneId, PhaseId, RunId, Stage};

use crate::at_resume::has_begun;
use crate::doctor::{Facts, Finding, IndexTrouble, Kind, Repair, RunFacts, Severity, is_same_record};

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let shared = &facts.shared;
    let mut findings = checkpoints(facts);
    for (root, slots) in &shared.slots {
        findings.extend(slots.iter().filter_map(|slot| slot_finding(facts, root, slot)));
    }
    // One that a run holds is missing, and is made again.
    let is_free = |place: &std::path::PathBuf| shared.all_known && !shared.held_slots.contains(place);
    let free = shared.prunable.iter().filter(|(_, prunable)| is_free(&prunable.place));
    findings.extend(free.map(|(root, prunable)| {
        let place = prunable.place.to_string_lossy().into_owned();
        let finding = |evidence| Finding::new(Kind::WorktreePrunable, Severity::Warning, &place, evidence);
        match &prunable.only_here {
            Some(commit) => finding(format!("it is gone, and nothing else holds its commit {commit}")).needs_user(
                format!("to keep the commit: {}", shell_line(["git", "branch", "rescued", commit.as_str()])),
            ),
            None => finding("it is gone, no run uses it, and git still lists it".to_owned())
                .repaired_by_resume(Repair::Forget { root: root.clone(), entry: prunable.entry.clone() }),
        }
    }));
    findings.extend(shared.index_locks.iter().filter_map(|lock| dead_lock(Kind::IndexLock, lock)));
    findings.extend(shared.reference_locks.iter().filter_map(|lock| dead_lock(Kind::RefLock, lock)));
    findings.extend(shared.damaged_indexes.iter().filter_map(damaged_index));
    findings.extend(shared.stray_references.iter().map(|(name, commit)| {
        let evidence = format!("it keeps {}, and no run that is known made it", commit.short());
        let (look, delete) =
            (shell_line(["git", "show", "--stat", name]), shell_line(["git", "update-ref", "-d", name]));
        Finding::new(Kind::RefWithoutRun, Severity::Warning, name, evidence)
            .hint(format!("it may hold work; to look at it: {look}; to let it go: {delete}"))
    }));
    let kept = |place: &str, look: [&str; 3], delete: &[&str]| {
        let evidence = "it keeps work of an agent whose worktree was removed";
        let (look, delete) = (shell_line(std::iter::once("git").chain(look)), shell_line(delete.iter().copied()));
        Finding::new(Kind::WorkKept, Severity::Note, place, evidence)
            .hint(format!("to look at it: {look}; to delete it: {delete}"))
    };
    let KeptOfRemoved { references, directories } = &shared.kept_of_removed;
    findings.extend(
        references.iter().map(|(name, _)| kept(name, ["show", "--stat", name], &["git", "update-ref", "-d", name])),
    );
    findings.extend(directories.iter().map(|directory| {
        let place = directory.to_string_lossy();
        kept(&place, [&format!("--git-dir={place}"), "log", "--all"], &["rm", "-r", &place])
    }));
    findings.extend(shared.trash.iter().map(|place| {
        let hint = "to delete it, or to see what prevents that: lanewright clean";
        Finding::at(Kind::TrashLeft, Severity::Note, place, "it was removed and is not deleted").hint(hint)
    }));
    findings.extend(shared.stray_supervisors.iter().map(|(process, job)| {
        let evidence = format!("process {} supervises it, and no run log takes it for running", process.pid);
        let stop = shell_line(["kill", "-TERM", &process.pid.to_string()]);
        Finding::at(Kind::SupervisorWithoutRun, Severity::Error, job, evidence)
            .needs_user(format!("to stop the agent, whose files stay: {stop}"))
    }));
    findings.extend(shared.disks.iter().filter_map(|(path, free, all)| disk(path, *free, *all)));
    findings
}

fn checkpoints(facts: &Facts) -> Vec<Finding> {
    let path = &facts.shared.checkpoints_path;
    match &facts.shared.checkpoints {
        Some(Err(reason)) => {
            let finding = Finding::at(Kind::CheckpointsUnreadable, Severity::Error, path, reason.clone());
            vec![match facts.shared.held.first() {
                Some(run) => finding.needs_user(while_held(run)),
                None => {
                    let records = facts.shared.known_records.clone();
                    finding.repaired_by(Repair::RebuildCheckpoints(path.clone(), records))
                }
            }]
        }
        Some(Ok(records)) => {
            // Of two records of a stage the last one counts.
            let found: CurrentRecords<'_> = records.iter().map(|record| (key(record), record)).collect();
            facts.runs.iter().filter_map(|run| outdated_checkpoints(facts, run, &found)).collect()
        }
        None => Vec::new(),
    }
}

fn while_held(run: &RunId) -> String {
    format!("a live session writes it too; stop it first: {}", shell_line(["lanewright", "stop", run.as_str()]))
}

type Key<'r> = (&'r RunId, &'r PhaseId, Option<&'r LaneId>, Stage);

type CurrentRecords<'r> = BTreeMap<Key<'r>, &'r CheckpointRecord>;

fn key(record: &CheckpointRecord) -> Key<'_> {
    (&record.run_id, &record.phase, record.lane.as_ref(), record.stage)
}

fn outdated_checkpoints(facts: &Facts, run: &RunFacts, found: &CurrentRecords<'_>) -> Option<Finding> {
    let current = |record: &CheckpointRecord| found.get(&key(record)).copied();
    let records = run.checkpoints.records.iter();
    let behind = records.filter(|record| current(record).is_none_or(|known| !is_same_record(known, record)));
    let behind: Vec<CheckpointRecord> = behind.cloned().collect();
    // A run that died before any lane began has a finding of its own.
    let has_begun = run.log.certain().is_none_or(has_begun);
    if behind.is_empty() || !has_begun {
        return None;
    }
    let missing = behind.iter().filter(|record| current(record).is_none()).count();
    let evidence = format!(
        "{} of the run log {} missing and {} old",
        counted(behind.len(), "record"),
        missing,
        behind.len() - missing
    );
    let path = facts.shared.checkpoints_path.clone();
    let finding = Finding::at(Kind::CheckpointsBehind, Severity::Warning, &path, evidence).of_run(&run.run);
    let repair = Repair::UpdateCheckpoints(path, behind);
    Some(if run.checkpoints.late { finding.repaired_by_resume(repair) } else { finding.repaired_by(repair) })
}

fn slot_finding(facts: &Facts, root: &std::path::Path, slot: &Slot) -> Option<Finding> {
    if let Err(reason) = &slot.holder {
        if facts.shared.held_slots.contains(&slot.path) {
            return None;
        }
        let finding = Finding::at(Kind::ClaimDamaged, Severity::Error, &slot.claim, reason.clone());
        return Some(match facts.shared.all_known && facts.shared.held.is_empty() {
            true => finding.repaired_by(Repair::DropClaim { root: root.to_owned(), claim: slot.claim.clone() }),
            false => finding.needs_user("a run that cannot be looked at now may hold the slot; fix or stop that first"),
        });
    }
    let known = facts.shared.held_slots.contains(&slot.path);
    if slot.work.is_empty() || known || !facts.shared.all_known {
        return None;
    }
    let work: Vec<&str> = slot.work.iter().take(5).map(String::as_str).collect();
    let evidence = format!("no run holds it, and it holds: {}", work.join(", "));
    let look = shell_line(["git", "-C", &slot.path.to_string_lossy(), "status"]);
    let finding = Finding::at(Kind::SlotHoldsWork, Severity::Warning, &slot.path, evidence);
    Some(finding.hint(format!("it is kept and never used again until that is committed somewhere: {look}")))
}

fn dead_lock(kind: Kind, lock: &IndexTrouble) -> Option<Finding> {
    let remove = shell_line(["rm", &lock.path.to_string_lossy()]);
    let finding = |evidence: &str| Finding::at(kind, Severity::Warning, &lock.path, evidence);
    match (lock.in_use, &lock.pool) {
        (Some(true), _) => None,
        (Some(false), Some(_)) => {
            let repair = Repair::RemoveLocks(lock.worktree.clone());
            Some(finding("no git is at work there, so its owner is dead").repaired_by_resume(repair))
        }
        (Some(false), None) => {
            let evidence = "no git is at work in your own worktree, so its owner seems to be dead";
            Some(finding(evidence).needs_user(format!("it is yours; if no git of yours runs: {remove}")))
        }
        (None, _) => {
            let evidence = "whether a git is at work there is unknown on this system";
            Some(finding(evidence).needs_user(format!("if none is: {remove}")))
        }
    }
}

fn damaged_index(index: &IndexTrouble) -> Option<Finding> {
    let finding = Finding::at(Kind::IndexDamaged, Severity::Error, &index.path, "git cannot read it");
    match (index.in_use, &index.pool) {
        (Some(true), _) => None,
        (Some(false), Some(_)) => Some(finding.repaired_by(Repair::MakeIndex(index.clone()))),
        _ => {
            let (path, worktree) = (index.path.to_string_lossy(), index.worktree.to_string_lossy());
            let aside = shell_line(["mv", &path, &format!("{path}.damaged")]);
            let make = shell_line(["git", "-C", &worktree, "reset", "--quiet"]);
            Some(finding.needs_user(format!("no file changes, but nothing is staged then: {aside} && {make}")))
        }
    }
}

/// Less free space than this is reported on any disk, in bytes.
const LITTLE: u64 = 1 << 30;

fn disk(path: &std::path::Path, free: u64, all: u64) -> Option<Finding> {
    if free >= LITTLE && free.saturating_mul(20) >= all {
        return None;
    }
    let evidence = format!("{} MB are free of {} MB", free >> 20, all >> 20);
    let finding = Finding::at(Kind::DiskNearlyFull, Severity::Warning, path, evidence);
    Some(finding.hint("a full disk stops a run, and loses nothing; to make room: lanewright clean --logs"))
}
