//! Run logs: torn, damaged, gone, or not fitting the plan.

use lanewright_model::event::Record;
use lanewright_model::text::{counted, shell_line};
use lanewright_store::recovery::run_log::Salvage;

use crate::doctor::escalation;
use crate::doctor::{Expected, Finding, Kind, LogSeen, Repair, RunFacts, RunTraces, Severity};

pub(super) fn findings(facts: &RunFacts) -> Vec<Finding> {
    let of_log = |kind, evidence: String| Finding::at(kind, Severity::Error, &facts.log_path, evidence);
    let finding = match &facts.log {
        LogSeen::Whole { torn: false, .. } => None,
        LogSeen::Whole { torn: true, records } => Some(torn(facts, records)),
        LogSeen::Damaged(salvage) => Some(damaged(facts, salvage)),
        LogSeen::Missing => missing(facts),
        LogSeen::Empty => Some(empty(facts)),
        LogSeen::Newer(format) => Some(
            of_log(Kind::LogNewerFormat, format!("it has format {format}, which this program does not read"))
                .needs_user("use the Lanewright that began the run, or a newer one; the log is never touched"),
        ),
        LogSeen::Unreadable(reason) => {
            Some(of_log(Kind::LogUnreadable, reason.clone()).needs_user("make the file readable"))
        }
    };
    finding.map(|finding| finding.of_run(&facts.run)).into_iter().collect()
}

fn torn(facts: &RunFacts, records: &[Record]) -> Finding {
    let evidence = format!("a write was cut short after line {}; nothing was done because of it", records.len());
    Finding::at(Kind::LogTorn, Severity::Warning, &facts.log_path, evidence)
        .repaired_by_resume(Repair::CutLog(facts.log_path.clone()))
}

fn empty(facts: &RunFacts) -> Finding {
    let remove = shell_line(["rm", &facts.log_path.to_string_lossy()]);
    let finding = Finding::at(Kind::LogEmpty, Severity::Warning, &facts.log_path, "it holds no record");
    let traces = facts.traces.as_ref().filter(|traces| traces.holds_work());
    match traces {
        Some(traces) => finding.escalated(escalation::lost_log(facts, traces, "the run log is empty")),
        None => finding.hint(format!("the run died before anything was done; to forget it: {remove}")),
    }
}

fn damaged(facts: &RunFacts, salvage: &Salvage) -> Finding {
    let finding = |evidence| Finding::at(Kind::LogDamaged, Severity::Error, &facts.log_path, evidence);
    let replace = || Repair::ReplaceLog(facts.log_path.clone(), salvage.text.clone());
    if salvage.lost.is_empty() {
        return finding(nothing_lost(salvage)).repaired_by(replace());
    }
    let faults: Vec<String> = salvage.lost.iter().take(5).map(ToString::to_string).collect();
    let more = salvage.lost.len().saturating_sub(faults.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let (intact, stranded) = (counted(salvage.records.len(), "record"), counted(salvage.stranded, "record"));
    let evidence = format!("{}{more}; {intact} before that and {stranded} after it can be read", faults.join("; "));
    let Some(traces) = &facts.traces else { return finding(evidence).needs_user("restore the log from a backup") };
    let later = unknown_to_log(&salvage.records, salvage.stranded, traces);
    if later.is_empty() && !salvage.records.is_empty() {
        let sound = "; git, checkpoints.json and the jobs' files know of nothing that came later";
        return finding(evidence + sound).repaired_by(replace());
    }
    let issue = format!("the run log cannot be trusted from line {} on", salvage.lost[0].line);
    let mut escalation = escalation::lost_log(facts, traces, &issue);
    escalation.current_state.extend(later.into_iter().map(|what| format!("not in what can be trusted: {what}")));
    finding(evidence).escalated(escalation)
}

fn nothing_lost(salvage: &Salvage) -> String {
    let lines: Vec<String> = salvage.needless.iter().map(ToString::to_string).collect();
    format!("line {} is no record of the run, and none is missing", lines.join(", "))
}

/// What exists that the intact beginning of a log does not know. If there is nothing, the run is in the
/// same state as if it had been killed there.
fn unknown_to_log(records: &[Record], stranded: usize, traces: &RunTraces) -> Vec<String> {
    let Some(expected) = Expected::of(records) else { return vec!["how the run began".to_owned()] };
    let mut later = Vec::new();
    if stranded > 0 {
        later.push(format!("{} after the damage", counted(stranded, "record")));
    }
    let end = records.last().map(|record| record.at);
    let newer = traces.records.iter().filter(|it| Some(it.timestamp) > end);
    later.extend(newer.map(|it| {
        let lane = it.lane.as_ref().map_or("the phase".to_owned(), |lane| format!("lane {lane}"));
        format!("checkpoint {} of {lane}: {} at {}", it.stage, it.status, it.timestamp)
    }));
    let known_jobs: Vec<_> = expected.jobs().map(|job| job.job.directory()).collect();
    later.extend(traces.jobs.iter().filter(|it| !known_jobs.contains(it)).map(|it| format!("job {}", it.display())));
    let snapshot = |name: &str| expected.snapshots().any(|known| known == name);
    later.extend(traces.snapshots.iter().filter(|(name, _)| !snapshot(name)).map(|(name, _)| name.clone()));
    let held = |slot: &&lanewright_git::Slot| expected.opened().iter().any(|(_, it)| it.path == slot.path);
    later.extend(traces.slots.iter().filter(|it| !held(it)).map(|it| format!("worktree {}", it.path.display())));
    let gone = expected.opened().into_iter().filter(|(_, it)| traces.slots.iter().all(|slot| slot.path != it.path));
    later.extend(gone.map(|(owned, it)| format!("that {} was given back", expected.shown(&owned, it).display())));
    let merges = traces.unknown_merges.iter().map(|commit| format!("{} on the integration branch", commit.short()));
    later.extend(merges);
    later
}

/// A run that was cleaned leaves its checkpoints, and nothing is wrong then.
fn missing(facts: &RunFacts) -> Option<Finding> {
    let traces = facts.traces.as_ref()?;
    let mut seen = Vec::new();
    seen.extend(traces.has_directory.then(|| format!("{} is there", facts.directory.display())));
    seen.extend((!traces.records.is_empty()).then(|| counted(traces.records.len(), "record") + " in checkpoints.json"));
    seen.extend((!traces.slots.is_empty()).then(|| counted(traces.slots.len(), "worktree")));
    seen.extend((!traces.branches.is_empty()).then(|| format!("branches: {}", traces.branch_names())));
    seen.extend((!traces.snapshots.is_empty()).then(|| counted(traces.snapshots.len(), "snapshot")));
    let evidence = format!("there is no run log; {}", seen.join(", "));
    let finding = |severity| Finding::at(Kind::LogMissing, severity, &facts.log_path, evidence.clone());
    if traces.holds_work() || traces.is_unfinished() {
        let escalation = escalation::lost_log(facts, traces, "the run log is gone");
        return Some(finding(Severity::Error).escalated(escalation));
    }
    let away = shell_line(["rm", "-r", &facts.directory.to_string_lossy()]);
    let over = format!("no lane, branch or worktree of the run is left to resume; to forget it: {away}");
    Some(finding(Severity::Note).hint(over))
}
