//! Which files of a state belong to jobs that its log planned.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lanewright_model::event::{Event, Record};
use lanewright_model::{JobId, LaneId};
use lanewright_store::run_files::RunFile;

/// The directories of jobs that the own run of `lane` planned.
pub fn jobs_of(lane: &LaneId, records: &[Record]) -> HashSet<PathBuf> {
    let own = records.iter().filter(|record| record.origin.is_none());
    planned(own).filter(|job| job.lane.as_ref() == Some(lane)).map(JobId::directory).collect()
}

/// Leaves out files of jobs that were never planned: in their places others are planned later.
pub(crate) fn retain_planned(files: &mut Vec<RunFile>, records: &[Record]) {
    let jobs: HashSet<PathBuf> = planned(records.iter()).map(JobId::directory).collect();
    let is_of_a_job = |path: &str| path.starts_with("lanes/") || path.starts_with("final-");
    files.retain(|(path, _)| !is_of_a_job(path) || is_below_one(path, &jobs));
}

fn planned<'a>(records: impl Iterator<Item = &'a Record>) -> impl Iterator<Item = &'a JobId> {
    records.filter_map(|record| match &record.event {
        Event::JobPlanned { job, .. } => Some(job),
        _ => None,
    })
}

pub(crate) fn is_below_one(path: &str, directories: &HashSet<PathBuf>) -> bool {
    Path::new(path).ancestors().skip(1).any(|above| directories.contains(above))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::JobRole;
    use lanewright_model::testing::{at, attempt, lane};

    fn record(event: Event) -> Record {
        Record { seq: 7, at: at(1), event, origin: None }
    }

    #[test]
    fn files_of_unplanned_jobs_are_left_out() {
        let planned = attempt("A", "x", 1);
        let of = |job: &JobId| (job.directory().join("exit.json").display().to_string(), Vec::new());
        let mut files = vec![
            of(&planned),
            of(&attempt("A", "x", 2)),
            of(&JobId { lane: None, role: JobRole::Final, number: 1 }),
            ("report.txt".to_owned(), Vec::new()),
        ];
        let kept = [files[0].clone(), files[3].clone()];
        let records = [record(Event::planned(planned))];
        retain_planned(&mut files, &records);
        assert_eq!(files, kept);
        assert!(jobs_of(&lane("B"), &records).is_empty());
    }
}
