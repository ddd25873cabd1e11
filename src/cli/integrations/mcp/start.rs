//! `ExecutePhase`: starts a phase in a process of its own.

use std::path::Path;

use lanewright_model::RunId;
use lanewright_model::event::Event;
use serde_json::json;

use super::parameters::{ExecutePhase, lane};
use crate::cli::Result;
use crate::cli::child::detached::{Start, start};
use crate::cli::child::{Caller, Outcome};
use crate::cli::run_id::new_run_id;

/// Starts the phase, and waits until it has begun or was refused.
pub(crate) fn execute(caller: &Caller, wanted: &ExecutePhase) -> Outcome {
    let state = caller.state()?;
    let run = loop {
        let run = new_run_id(&stem(&wanted.plan));
        if !state.has(&run) {
            break run;
        }
    };
    let words = words(wanted, &run)?;
    // The run's own directory is made only once nothing is left that can be refused.
    let output = std::env::temp_dir().join(format!("lanewright-{run}.log"));
    let log = state.run(&run).log();
    let begun = start(caller, &words, (&output, &log), |event, _| matches!(event, Event::RunStarted(_)).then_some(()))?;
    Ok(match begun {
        Start::Ended(said) => json!({"run_id": null, "begun": false, "message": said.trim()}),
        start => json!({
            "run_id": run, "begun": matches!(start, Start::Begun(())), "output": output,
            "next": ["RunStatus", "ReadLogs", "ReadDiff"],
        }),
    })
}

/// The name of the plan's file, as far as an id may have it.
fn stem(plan: &str) -> String {
    let stem = Path::new(plan).file_stem().unwrap_or_default().to_string_lossy();
    stem.chars().map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '-' }).collect()
}

fn words(wanted: &ExecutePhase, run: &RunId) -> Result<Vec<String>> {
    // A name that begins with a dash is no flag.
    let plan = if wanted.plan.starts_with('-') { format!("./{}", wanted.plan) } else { wanted.plan.clone() };
    let mut words = vec!["execute-phase".to_owned(), plan, format!("--run-id={run}")];
    words.extend(["--yes", "--progress", "plain", "--on-lock-conflict", "fail"].map(str::to_owned));
    for name in &wanted.lanes {
        words.push(format!("--lane={}", lane(name)?));
    }
    words.extend(wanted.base.as_ref().map(|base| format!("--base={base}")));
    words.extend(wanted.runner.as_ref().map(|runner| format!("--runner={runner}")));
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_become_flags() {
        let run = RunId::new("r1").unwrap();
        let lanes = vec!["A".to_owned()];
        let wanted = ExecutePhase { plan: "-x".into(), lanes, base: Some("-y".into()), runner: None };
        let words = words(&wanted, &run).unwrap();
        assert_eq!(words[1], "./-x");
        assert!(words.contains(&"--lane=A".to_owned()) && words.contains(&"--base=-y".to_owned()), "{words:?}");
        super::words(&ExecutePhase { lanes: vec!["--help".to_owned()], ..wanted }, &run).unwrap_err();
    }

    #[test]
    fn run_id_begins_with_plan_name() {
        for (plan, begin) in [("docs/phase 2.md", "phase-2-"), (".planning/phases/02-api", "02-api-"), ("/", "run-")] {
            let run = new_run_id(&stem(plan));
            assert!(run.as_str().starts_with(begin), "{plan}: {run}");
        }
    }
}
