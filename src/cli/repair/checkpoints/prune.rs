//! `checkpoints prune`.

use lanewright_engine::prune::{Fate, PruneOptions, fates};
use lanewright_model::text::{counted, shell_line};
use lanewright_store::RunLock;
use serde_json::{Value, json};

use super::find::records_of_named;
use crate::cli::args::PruneCheckpoints;
use crate::cli::runs::RunRecords;
use crate::cli::snapshots::{Found, candidates, existing, remove};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, now};

pub(crate) fn run(within: &RepositoryContext, arguments: &PruneCheckpoints) -> Result<ExitStatus> {
    let run = records_of_named(within, arguments.run.run.as_ref())?;
    let keep = arguments.keep.or(within.settings.checkpoint_keep.value).map(|keep| keep.get());
    let options = PruneOptions { keep, older_than: arguments.older_than, force: arguments.force };
    if (options.keep, options.older_than) == (None, None) {
        let again = shell_line(["lanewright", "checkpoints", "prune", run.run.as_str(), "--keep", "5"]);
        return Err(ExitStatus::Usage
            .error("neither --keep nor --older-than nor `checkpoint_keep` says which")
            .hint(format!("for example: {again}")));
    }
    // What is not forced touches nothing that a run still needs, so it may be worked on meanwhile.
    let _lock = match arguments.force {
        true => {
            run.directory.create()?;
            Some(RunLock::acquire(&run.directory.lock(), &within.holder(&run.run))?)
        }
        false => None,
    };
    let checking = within.activity("Checking snapshots");
    let found = existing(within, &run)?;
    let judged = fates(&candidates(within, &run, &found)?, &options, now());
    drop(checking);
    let removing = within.counted_activity("Removing snapshots", judged.iter().filter(|it| **it == Fate::Goes).count());
    let mut outcome = Vec::new();
    for (found, fate) in found.iter().zip(judged) {
        let removed = fate == Fate::Goes && (arguments.dry_run || remove(within, found)?);
        outcome.push((found, fate, removed));
        if removed {
            removing.advance();
        }
    }
    drop(removing);
    report(within, &run, arguments, &outcome)
}

fn report(
    within: &RepositoryContext,
    run: &RunRecords,
    arguments: &PruneCheckpoints,
    outcome: &[(&Found, Fate, bool)],
) -> Result<ExitStatus> {
    let one = |(found, fate, removed): &(&Found, Fate, bool)| {
        let it = &found.snapshot;
        json!({"name": it.name, "reference": it.reference, "commit": it.commit, "removed": removed, "why": fate.words()})
    };
    let all: Vec<Value> = outcome.iter().map(one).collect();
    let json = json!({"run_id": run.run, "dry_run": arguments.dry_run, "snapshots": all});
    let mut text = String::new();
    let verb = if arguments.dry_run { "would remove" } else { "removed" };
    for (found, fate, removed) in outcome {
        let it = &found.snapshot;
        match (fate, removed) {
            (Fate::Goes, true) => text += &format!("{verb}  {} ({})\n", it.name, it.commit),
            (Fate::Goes, false) => text += &format!("kept  {}: its ref was moved by another program\n", it.name),
            (Fate::NotMeant, _) => {}
            (fate, _) => text += &format!("kept  {}: {}\n", it.name, fate.words()),
        }
    }
    let removed = outcome.iter().filter(|(_, _, removed)| *removed).count();
    text += &format!("{verb} {} of {}\n", counted(removed, "snapshot"), outcome.len());
    within.context.printer.print(text, &json)
}
