//! From facts to findings, without any access to files, git or processes.

mod files;
mod log;
mod objects;
mod refusals;
mod shared;
mod worktrees;

use lanewright_model::text::shell_line;
use lanewright_programs::process::Observation;

use crate::doctor::{Facts, Finding, Kind, RunFacts, Severity};

/// Everything that is wrong, and what is worth knowing; what has to be repaired first comes first.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = facts.runs.iter().flat_map(run).collect();
    findings.extend(refusals::held_phases(facts));
    findings.extend(shared::findings(facts));
    findings
}

fn run(facts: &RunFacts) -> Vec<Finding> {
    if facts.held {
        let place = facts.directory.join("run.lock");
        let held = Finding::at(Kind::RunHeld, Severity::Note, &place, "a live session works on the run");
        let stop = shell_line(["lanewright", "stop", facts.run.as_str()]);
        return vec![
            held.of_run(&facts.run).hint(format!("it is not looked at while it is worked on; to stop it: {stop}")),
        ];
    }
    let mut findings = log::findings(facts);
    if let Some(expected) = &facts.expected {
        findings.extend(files::plan(facts, expected));
        findings.extend(facts.holdings.iter().flat_map(|seen| worktrees::findings(facts, expected, seen)));
        findings.extend(objects::findings(facts, expected));
        findings.extend(facts.tasks.iter().flat_map(|task| files::task(facts, expected, task)));
        findings.extend(facts.statuses.iter().map(|status| files::status(facts, status)));
        findings.extend(jobs(facts));
        findings.extend(refusals::findings(facts, expected));
    }
    findings
}

fn jobs(facts: &RunFacts) -> Vec<Finding> {
    let resume = shell_line(["lanewright", "resume", facts.run.as_str()]);
    let mut findings = Vec::new();
    for (job, directory, seen) in &facts.jobs {
        let finding = match seen {
            Ok(Observation::Lost(supervisor)) => {
                let evidence = format!("{job} is said to run, and its supervisor (pid {}) is gone", supervisor.pid);
                Finding::at(Kind::JobWithoutSupervisor, Severity::Note, directory, evidence)
                    .hint(format!("a resume keeps what it left and does it again: {resume}"))
            }
            Err(reason) => {
                let aside = format!("{}.damaged", directory.display());
                let away = shell_line(["mv", &directory.to_string_lossy(), &aside]);
                Finding::at(Kind::JobDamaged, Severity::Error, directory, format!("{job}: {reason}"))
                    .needs_user(format!("to have the job run again: {away}"))
            }
            Ok(_) => continue,
        };
        findings.push(finding.of_run(&facts.run).of(&(job.lane.clone(), job.agent().cloned())));
    }
    findings
}

#[cfg(test)]
mod tests;
