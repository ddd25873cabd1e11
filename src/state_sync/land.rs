//! Restores a fetched run in this clone.
//!
//! Everything is checked before anything is created. What is created before the run log is harmless without it
//! and found again by the next try; the log comes last and in one step.

use std::path::Path;

use anyhow::Result;

use super::arrive::{Arrived, Contents};
use super::error::StateSyncError;
use super::seen_reference;
use super::send::continues;
use super::worktrees::open_all;
use crate::event::{Event, Place, RunMoved};
use crate::git::{Pool, Publication, Remote, Repository, obstacle_to_publishing, point_reference, publish};
use crate::model::{CommitId, ExitCause, JobExit, JobId, MergeMode, Timestamp};
use crate::schedule::RunState;
use crate::store::{Journal, RunDirectory, run_files, run_log};

#[derive(Debug)]
pub struct Landing<'a> {
    pub repository: &'a Repository,
    pub pool: &'a Pool,
    pub remote: &'a Remote,
    /// The files that the run gets; its lock is held.
    pub directory: &'a RunDirectory,
    pub host: &'a str,
    pub now: Timestamp,
}

/// How an arrived state stands to what this clone has of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    New,
    /// The run here holds everything that arrived, and perhaps more.
    Known,
    /// The run here is another one, or was left behind.
    Other,
}

#[derive(Debug)]
pub struct Landed {
    /// The jobs that ran there, and are done again.
    pub lost: Vec<JobId>,
    pub integration: Option<(Option<CommitId>, CommitId)>,
    pub worktrees: usize,
}

pub fn standing(arrived: &Arrived, directory: &RunDirectory) -> Result<Standing> {
    if !directory.log().exists() {
        return Ok(Standing::New);
    }
    let (log, _) = run_log::read_durable(&directory.log())?;
    Ok(if continues(&log, &arrived.manifest) { Standing::Known } else { Standing::Other })
}

impl Landing<'_> {
    /// Remembers that the remote is at what arrived, so that the next push continues from there.
    pub fn remember(&self, arrived: &Arrived) -> Result<()> {
        let seen = seen_reference(self.remote, &arrived.manifest.run_id);
        Ok(point_reference(self.repository, &seen, &arrived.commit)?)
    }

    /// Puts down a run that is not here.
    ///
    /// # Errors
    /// [`StateSyncError`]; what arrived damaged, or does not fit in, is refused before anything is made.
    pub fn put_down(&self, arrived: &Arrived) -> Result<Landed> {
        if self.remote.is_shallow_here()? {
            return Err(StateSyncError::Shallow.into());
        }
        let contents = arrived.open(self.repository)?;
        let integration = self.integration(arrived, &contents.state)?;
        let missing = self.missing(arrived)?;
        run_files::put_down(self.directory, &contents.files)?;
        for (name, commit) in &missing {
            point_reference(self.repository, name, commit)?;
        }
        if let Some((from, to)) = &integration {
            self.move_integration(arrived, from.as_ref(), to)?;
        }
        let run = &arrived.manifest.run_id;
        let slots = open_all(self.pool, run, &contents.state, &contents.records)?;
        let lost: Vec<JobId> = sorted(contents.state.running_jobs());
        let worktrees = slots.len();
        self.write_log(arrived, &contents, slots, &lost)?;
        self.remember(arrived)?;
        Ok(Landed { lost, integration, worktrees })
    }

    fn missing(&self, arrived: &Arrived) -> Result<Vec<(String, CommitId)>> {
        let manifest = &arrived.manifest;
        let branches = manifest.branches.iter().map(|(name, commit)| (format!("refs/heads/{name}"), commit));
        let references = manifest.references.iter().map(|(name, commit)| (name.clone(), commit));
        let mut missing = Vec::new();
        for (name, commit) in branches.chain(references) {
            match self.repository.commit_at(&name)? {
                Some(found) if found == *commit => {}
                Some(found) => {
                    let (found, wanted, run) =
                        (found.short().to_owned(), commit.short().to_owned(), manifest.run_id.clone());
                    return Err(StateSyncError::InTheWay { name, found, wanted, run }.into());
                }
                None => missing.push((name, commit.clone())),
            }
        }
        Ok(missing)
    }

    /// Where the integration branch has to go from and to: only where this run merges into it, and only forward.
    fn integration(&self, arrived: &Arrived, state: &RunState) -> Result<Option<(Option<CommitId>, CommitId)>> {
        let (branch, there) = (&arrived.manifest.base_branch, &arrived.manifest.integration);
        let Some(here) = self.repository.branch_commit(branch)? else { return Ok(Some((None, there.clone()))) };
        let merges_here = state.started().is_some_and(|started| started.options.merge == MergeMode::Local);
        if !merges_here || self.repository.is_ancestor(there, &here)? {
            return Ok(None);
        }
        if !self.repository.is_ancestor(&here, there)? {
            let (here, there) = (here.short().to_owned(), there.short().to_owned());
            let (branch, run) = (branch.clone(), arrived.manifest.run_id.clone());
            return Err(StateSyncError::Diverged { branch, here, there, run }.into());
        }
        match obstacle_to_publishing(self.repository, branch, &here, there)? {
            Some(obstacle) => Err(obstructed(branch, &obstacle).into()),
            None => Ok(Some((Some(here), there.clone()))),
        }
    }

    fn move_integration(&self, arrived: &Arrived, from: Option<&CommitId>, to: &CommitId) -> Result<()> {
        let branch = &arrived.manifest.base_branch;
        let Some(from) = from else {
            return Ok(point_reference(self.repository, &format!("refs/heads/{branch}"), to)?);
        };
        match publish(self.repository, branch, from, to)? {
            Publication::Published | Publication::AlreadyThere => Ok(()),
            other => Err(obstructed(branch, &other).into()),
        }
    }

    /// The log as it arrived, and after it what became of the run by coming here.
    fn write_log(&self, arrived: &Arrived, contents: &Contents, slots: Vec<(u32, u32)>, lost: &[JobId]) -> Result<()> {
        let to = Place {
            host: self.host.to_owned(),
            repository: self.repository.main_worktree().to_owned(),
            worktree_root: self.pool.root().to_owned(),
        };
        let moved = Event::RunMoved(Box::new(RunMoved { from: arrived.manifest.place(), to, slots }));
        let ended = lost.iter().map(|job| self.lost(job, arrived));
        let events: Vec<Event> = std::iter::once(moved).chain(ended).collect();
        Ok(Journal::install(&self.directory.log(), &contents.log, self.now, &events)?)
    }

    /// The end of a job that ran elsewhere: as if it had been stopped, which uses no retry.
    fn lost(&self, job: &JobId, arrived: &Arrived) -> Event {
        let exit = JobExit {
            cause: ExitCause::Stopped,
            exit_code: 143,
            command: job.to_string(),
            started_at: arrived.manifest.at,
            finished_at: self.now,
            tail: Vec::new(),
            notes: format!("it ran on {}, and nothing is known of it since", arrived.manifest.host),
        };
        Event::JobExited { job: job.clone(), exit, report: None, reading: None, transcript: None }
    }
}

fn sorted<'a>(jobs: impl Iterator<Item = &'a JobId>) -> Vec<JobId> {
    let mut jobs: Vec<JobId> = jobs.cloned().collect();
    jobs.sort();
    jobs
}

fn obstructed(branch: &str, obstacle: &Publication) -> StateSyncError {
    let reason = match obstacle {
        Publication::CheckedOutDirty { worktree, obstacles } => {
            let (place, paths) = (shown(worktree), obstacles.paths.join(", "));
            format!("`{branch}` is checked out in {place}, and in the way there is: {paths}; {}", obstacles.remedy)
        }
        _ => format!("`{branch}` moved meanwhile; do the same again"),
    };
    StateSyncError::Obstructed(reason)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
