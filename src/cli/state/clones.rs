//! Removes the clones of runs that a node keeps in its cache.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use lanewright_engine::state_sync::{KEPT, runs_of};
use lanewright_files::directory::entries;
use lanewright_files::lock::exclusively;
use lanewright_git::{Remote, Repository, forget_reference};
use lanewright_model::RunId;
use lanewright_model::event::Event;
use lanewright_programs::process::{self, Observation};
use lanewright_store::lock::is_held;
use lanewright_store::{RunDirectory, StateDirectory, run_log};

use crate::cli::Result;

/// How long processes that a dead job left may take to end.
const LONGEST_STOP: Duration = Duration::from_secs(10);

/// Removes the clones of runs that the exchange does not have any more, and what the mirror keeps of them: no job will
/// continue those.
pub(super) fn remove_forgotten(mirror: &Repository, exchange: &Remote, clones: &Path) -> Result<()> {
    exclusively(&clones.with_extension("lock"), |_| {
        // Read before the exchange is: a run is there before a clone is made for it.
        let cloned: Vec<RunId> = entries(clones)?.iter().filter_map(|place| id(place.file_name()?.to_str()?)).collect();
        let kept = mirror.references(KEPT)?;
        let kept = kept.iter().filter_map(|(name, _)| Some((name, id(name.strip_prefix(KEPT)?.trim_matches('/'))?)));
        let kept: Vec<(&String, RunId)> = kept.collect();
        let there: HashSet<RunId> = runs_of(exchange)?.into_iter().map(|(run, _)| run).collect();
        for run in cloned.iter().filter(|run| !there.contains(*run)) {
            let place = clones.join(run.as_str());
            let unused = entries(&place)?.into_iter().filter(|clone| !is_held(&clone.join("lock")));
            unused.for_each(|clone| remove(&clone, &StateDirectory::new(&clone.join("repository")).run(run)));
            // It has none left, or a job still uses one.
            let _ = std::fs::remove_dir(&place);
        }
        kept.iter()
            .filter(|(_, run)| !there.contains(run))
            .try_for_each(|(name, _)| Ok(forget_reference(mirror, name)?))
    })?
}

fn id(name: &str) -> Option<RunId> {
    RunId::new(name).ok()
}

/// Stops what a dead job left running, and removes the clone in `place`. What is still in use stays.
pub(super) fn remove(place: &Path, run: &RunDirectory) {
    let until = Instant::now() + LONGEST_STOP;
    loop {
        let running = process::supervisors_below(place);
        if running.is_empty() {
            break;
        }
        if Instant::now() > until {
            return tracing::warn!("processes still work in {}", place.display());
        }
        for (_, job) in running {
            if let Err(error) = process::stop(&job, true) {
                tracing::warn!("{} cannot be stopped: {error}", job.display());
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    end_orphans(run);
    if let Err(error) = std::fs::remove_dir_all(place) {
        tracing::warn!("{} cannot be removed: {error}", place.display());
    }
}

/// Kills agents whose supervisors died.
fn end_orphans(run: &RunDirectory) {
    let records = run_log::read_some(&run.log(), |word| word == "job_planned").unwrap_or_default();
    for record in records {
        let Event::JobPlanned { job, .. } = &record.event else { continue };
        let job = run.job(job);
        let is_lost = matches!(process::observe(&job), Ok(Observation::Lost(_)));
        if is_lost && let Err(error) = process::sweep(&job) {
            tracing::warn!("{error}");
        }
    }
}
