//! Restores a fetched run in this clone.
//!
//! Everything is checked before anything is created. What is created before the run log is harmless without it
//! and found again by the next try; the log comes last and in one step.

use lanewright_git::{Pool, Publication, Remote, Repository, force_reference, publish, publish_blocker};
use lanewright_model::event::{Event, Place, RunMoved};
use lanewright_model::{CommitId, ExitCause, JobExit, JobId, MergeMode, Timestamp};
use lanewright_schedule::RunState;
use lanewright_store::{Journal, RunDirectory, run_files, run_log};

use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::manifest::Manifest;
use crate::state_sync::pull::worktrees::open_all;
use crate::state_sync::pull::{Contents, ReceivedState};
use crate::state_sync::seen_reference;

#[derive(Debug)]
pub struct Destination<'a> {
    pub repository: &'a Repository,
    pub pool: &'a Pool,
    pub remote: &'a Remote,
    /// The files that the run gets; its lock is held.
    pub directory: &'a RunDirectory,
    pub host: &'a str,
    pub now: Timestamp,
}

/// What this clone has of a received run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalRun {
    Missing,
    /// The local log contains everything that was received, and possibly more.
    UpToDate,
    /// What was received continues the local log.
    Behind,
    Different,
}

#[derive(Debug)]
pub struct Restored {
    /// The jobs that were running there; they run again here.
    pub lost: Vec<JobId>,
    pub integration: Option<(Option<CommitId>, CommitId)>,
    pub worktrees: usize,
}

pub fn local_run(repository: &Repository, received: &ReceivedState, directory: &RunDirectory) -> Result<LocalRun> {
    if !directory.log().exists() {
        return Ok(LocalRun::Missing);
    }
    let (log, _) = run_log::read_durable(&directory.log())?;
    Ok(match () {
        () if received.manifest.is_continued_by(&log) => LocalRun::UpToDate,
        () if received.log(repository)?.starts_with(&log) => LocalRun::Behind,
        () => LocalRun::Different,
    })
}

impl Destination<'_> {
    /// Records the received commit as the state of the remote, so that the next push continues from there.
    pub fn remember(&self, received: &ReceivedState) -> Result<()> {
        let seen = seen_reference(self.remote, &received.manifest.run_id);
        Ok(force_reference(self.repository, &seen, &received.commit)?)
    }

    /// Restores a run that this clone does not have.
    ///
    /// # Errors
    /// A state that is damaged or conflicts with this clone is refused before anything is written ([`StateSyncError`]).
    pub fn restore(&self, received: &ReceivedState) -> Result<Restored> {
        let Fitting { contents, integration, missing } =
            fitting(self.repository, self.remote, self.directory, received)?;
        run_files::restore(self.directory, &contents.files)?;
        for (name, commit) in &missing {
            force_reference(self.repository, name, commit)?;
        }
        if let Some((from, to)) = &integration {
            self.move_integration(received, from.as_ref(), to)?;
        }
        let run = &received.manifest.run_id;
        let slots = open_all(self.pool, run, &contents.state, &contents.records)?;
        let mut lost: Vec<JobId> = contents.state.running_jobs().cloned().collect();
        lost.sort();
        let worktrees = slots.len();
        self.write_log(received, &contents, slots, &lost)?;
        self.remember(received)?;
        Ok(Restored { lost, integration, worktrees })
    }

    fn move_integration(&self, received: &ReceivedState, from: Option<&CommitId>, to: &CommitId) -> Result<()> {
        let branch = &received.manifest.base_branch;
        let Some(from) = from else {
            return Ok(force_reference(self.repository, &format!("refs/heads/{branch}"), to)?);
        };
        match publish(self.repository, branch, from, to)? {
            Publication::Published | Publication::AlreadyThere => Ok(()),
            other => Err(obstructed(branch, &other)),
        }
    }

    /// Writes the received log, followed by the events of the move to this clone.
    fn write_log(
        &self,
        received: &ReceivedState,
        contents: &Contents,
        slots: Vec<(u32, u32)>,
        lost: &[JobId],
    ) -> Result<()> {
        let to = Place {
            host: self.host.to_owned(),
            repository: self.repository.main_worktree().to_owned(),
            worktree_root: self.pool.root().to_owned(),
        };
        let moved = Event::RunMoved(Box::new(RunMoved { from: received.manifest.place(), to, slots }));
        let ended = lost.iter().map(|job| lost_job(job, &received.manifest, self.now));
        let events: Vec<Event> = std::iter::once(moved).chain(ended).collect();
        Ok(Journal::install(&self.directory.log(), &contents.log, self.now, &events)?)
    }
}

/// What a run that fits into this clone consists of, and what changes here with it.
struct Fitting {
    contents: Contents,
    integration: Option<(Option<CommitId>, CommitId)>,
    missing: Vec<(String, CommitId)>,
}

/// Checks whether a run can be restored in this clone, in whose `directory` its files would be.
pub fn check(
    repository: &Repository,
    remote: &Remote,
    directory: &RunDirectory,
    received: &ReceivedState,
) -> Result<()> {
    fitting(repository, remote, directory, received).map(drop)
}

fn fitting(
    repository: &Repository,
    remote: &Remote,
    directory: &RunDirectory,
    received: &ReceivedState,
) -> Result<Fitting> {
    if remote.is_shallow_here()? {
        return Err(StateSyncError::Shallow);
    }
    let contents = received.open(repository)?;
    let published = received.manifest.published.clone().or_else(|| directory.publication());
    let integration = integration_move(repository, received, &contents.state, published.as_ref())?;
    Ok(Fitting { integration, missing: missing(repository, received)?, contents })
}

fn missing(repository: &Repository, received: &ReceivedState) -> Result<Vec<(String, CommitId)>> {
    let manifest = &received.manifest;
    let branches = manifest.branches.iter().map(|(name, commit)| (format!("refs/heads/{name}"), commit));
    let references = manifest.references.iter().map(|(name, commit)| (name.clone(), commit));
    let mut missing = Vec::new();
    for (name, commit) in branches.chain(references) {
        match repository.commit_at(&name)? {
            Some(found) if found == *commit => {}
            Some(found) => {
                let (found, wanted, run) =
                    (found.short().to_owned(), commit.short().to_owned(), manifest.run_id.clone());
                return Err(StateSyncError::InTheWay { name, found, wanted, run });
            }
            None => missing.push((name, commit.clone())),
        }
    }
    Ok(missing)
}

/// Where the integration branch has to go from and to: only where this run merges into it, only forward, and not where it has
/// the work by other commits.
fn integration_move(
    repository: &Repository,
    received: &ReceivedState,
    state: &RunState,
    published: Option<&CommitId>,
) -> Result<Option<(Option<CommitId>, CommitId)>> {
    let (branch, there) = (&received.manifest.base_branch, &received.manifest.integration);
    let Some(here) = repository.branch_commit(branch)? else { return Ok(Some((None, there.clone()))) };
    let merges_here = state.started().is_some_and(|started| started.options.merge == MergeMode::Local);
    if !merges_here || repository.is_ancestor(there, &here)? {
        return Ok(None);
    }
    if !repository.is_ancestor(&here, there)? {
        let is_published = match published {
            Some(at) => repository.has_commit(at)? && repository.is_ancestor(at, &here)?,
            None => false,
        };
        if received.manifest.is_done() && (is_published || repository.has_work_of(&here, there)?) {
            return Ok(None);
        }
        let (here, there) = (here.short().to_owned(), there.short().to_owned());
        let (branch, run) = (branch.clone(), received.manifest.run_id.clone());
        return Err(StateSyncError::Diverged { branch, here, there, run });
    }
    match publish_blocker(repository, branch, &here, there)? {
        Some(obstacle) => Err(obstructed(branch, &obstacle)),
        None => Ok(Some((Some(here), there.clone()))),
    }
}

/// The end of a job that ran elsewhere: as if it had been stopped, which uses no retry.
pub fn lost_job(job: &JobId, there: &Manifest, at: Timestamp) -> Event {
    let exit = JobExit {
        cause: ExitCause::Stopped,
        exit_code: 143,
        command: job.to_string(),
        started_at: there.at,
        finished_at: at,
        tail: Vec::new(),
        notes: format!("it ran on {}, and nothing is known of it since", there.host),
    };
    Event::JobExited { job: job.clone(), exit, report: None, reading: None, transcript: None }
}

fn obstructed(branch: &str, obstacle: &Publication) -> StateSyncError {
    let reason = match obstacle {
        Publication::CheckedOutDirty { worktree, blockers } => {
            let (place, paths) = (worktree.display(), blockers.paths.join(", "));
            format!("`{branch}` is checked out in {place}, and in the way there is: {paths}; {}", blockers.remedy)
        }
        _ => format!("`{branch}` moved meanwhile; do the same again"),
    };
    StateSyncError::Obstructed(reason)
}
