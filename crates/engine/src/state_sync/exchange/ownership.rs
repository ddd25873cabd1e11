//! Which clone places the lanes of a run: the one that has the run's ref below `refs/lanewright/owner/` of the exchange. All
//! that it pushes there moves this ref as well, in one atomic push, so that nothing of it succeeds once another clone has the
//! run.

use std::path::PathBuf;
use std::time::Duration;

use lanewright_git::{Bundle, PushRequest, Remote, Repository, force_reference, forget_reference, write_bundle};
use lanewright_model::cells::clean;
use lanewright_model::{CommitId, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::{OWNERS, STATES, remote_directory};

const FILE: &str = "owner.json";

/// How often the run is taken from a clone that pushes at the same time.
const TRIES: usize = 20;

/// What the ref holds: the process that moved it last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    process: String,
    host: String,
    repository: PathBuf,
    at: Timestamp,
    /// Makes each push another commit.
    push: String,
}

/// The right of a process to place lanes of a run.
pub struct Ownership {
    repository: Repository,
    remote: Remote,
    run: RunId,
    owner: Owner,
    /// Whether the process has moved the ref, and where the ref was then.
    has_begun: bool,
    expected: Option<CommitId>,
}

impl Ownership {
    pub fn new(repository: &Repository, remote: &Remote, run: &RunId, (host, at): (&str, Timestamp)) -> Self {
        let owner = Owner {
            process: Uuid::now_v7().to_string(),
            host: host.to_owned(),
            repository: repository.main_worktree().to_owned(),
            at,
            push: String::new(),
        };
        let (repository, remote, run) = (repository.clone(), remote.clone(), run.clone());
        Self { repository, remote, run, owner, has_begun: false, expected: None }
    }

    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Whether this clone has pushed for the run and not given it up, so that something of it may be on the remote.
    pub fn is_known(&self) -> Result<bool> {
        Ok(self.repository.commit_at(&self.seen())?.is_some())
    }

    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes the run if no clone has it, or from an earlier process of this clone, unless this process has it already.
    /// `false`: another process was quicker.
    ///
    /// # Errors
    /// [`StateSyncError::Taken`] when another clone has it, or what git says.
    pub fn begin(&mut self) -> Result<bool> {
        if self.has_begun {
            return Ok(true);
        }
        self.expected = self.free()?;
        if let Some(there) = self.expected.clone() {
            // The next push replaces what it is known by where its answer was lost.
            self.remember(there)?;
        }
        self.has_begun = self.push_over(&[])?;
        Ok(self.has_begun)
    }

    /// Refuses where another clone has the run; nothing is changed.
    pub fn check_free(&self) -> Result<()> {
        self.free().map(drop)
    }

    /// Where the ref is, if no other clone has the run.
    fn free(&self) -> Result<Option<CommitId>> {
        let there = self.there()?;
        match &there {
            Some(theirs) if !self.pushed()?.contains(theirs) => Err(self.taken(theirs)),
            _ => Ok(there),
        }
    }

    /// Takes the run from the clone that has it, at the request of a user. `false`: none has it.
    ///
    /// # Errors
    /// [`StateSyncError::Taken`] when the other clone pushes faster than this one, or what git says.
    pub fn take(&mut self) -> Result<bool> {
        for _ in 0..TRIES {
            self.expected = self.there()?;
            if self.expected.is_none() {
                return Ok(false);
            }
            if self.push_over(&[])? {
                self.has_begun = true;
                return Ok(true);
            }
        }
        self.there()?.map_or(Ok(false), |there| Err(self.taken(&there)))
    }

    /// Pushes several refs, while no other clone has the run: all, or none if one of them is not where it is expected.
    ///
    /// # Errors
    /// [`StateSyncError::Taken`] when another clone has the run, or what git says.
    pub fn push(&mut self, requests: &[PushRequest<'_>]) -> Result<bool> {
        if !self.begin()? {
            return Ok(false);
        }
        if self.push_over(requests)? {
            return Ok(true);
        }
        let there = self.there()?;
        self.check(there)?;
        Ok(false)
    }

    /// Whether another clone has the run. Another thread may push for this one at the same time.
    pub fn is_taken(&self) -> Result<bool> {
        let (there, pushed) = (self.there()?, self.pushed()?);
        Ok(there.is_some_and(|there| !pushed.contains(&there) && !self.is_from_here(&there)))
    }

    fn is_from_here(&self, commit: &CommitId) -> bool {
        let owner = self.repository.file_in(commit, FILE).ok().flatten();
        let owner = owner.and_then(|owner| serde_json::from_slice::<Owner>(&owner).ok());
        owner.is_some_and(|it| it.host == self.owner.host && it.repository == self.owner.repository)
    }

    /// From now on each question to the remote takes no longer than `limit`.
    pub fn limit_time(&mut self, limit: Duration) {
        self.remote = self.remote.clone().within(limit);
    }

    pub fn is_ours(&self) -> Result<bool> {
        let (there, pushed) = (self.there()?, self.pushed()?);
        Ok(there.is_some_and(|there| pushed.contains(&there)))
    }

    /// What this clone pushed last, as far as it knows.
    fn pushed(&self) -> Result<Vec<CommitId>> {
        let pushed = [self.seen(), self.outgoing()].map(|reference| self.repository.commit_at(&reference));
        Ok(pushed.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn push_over(&mut self, requests: &[PushRequest<'_>]) -> Result<bool> {
        let owner = Owner { push: Uuid::now_v7().to_string(), ..self.owner.clone() };
        let bundle = Bundle {
            tree: None,
            removed: &[],
            files: &[(FILE.to_owned(), serde_json::to_vec(&owner)?)],
            commits: &[],
            message: &format!("Lanewright: {} places the lanes of run {}", owner.host, self.run),
            at: owner.at,
        };
        let commit = write_bundle(&self.repository, &self.outgoing(), &bundle)?;
        if !self.push_with(requests, Some(&commit))? {
            return Ok(false);
        }
        self.remember(commit)?;
        forget_reference(&self.repository, &self.outgoing())?;
        Ok(true)
    }

    fn push_with(&self, requests: &[PushRequest<'_>], owner: Option<&CommitId>) -> Result<bool> {
        let reference = self.reference();
        let own = PushRequest::new(&reference, owner, self.expected.as_ref());
        let all: Vec<PushRequest<'_>> = requests.iter().copied().chain([own]).collect();
        Ok(self.remote.push_together(&all)?)
    }

    /// The runs whose states the remote has, in the order of their names.
    pub fn runs(&mut self) -> Result<Vec<(RunId, CommitId)>> {
        let reference = self.reference();
        let (mut runs, mut owner) = (Vec::new(), None);
        for (name, commit) in self.remote.references(&[STATES, &reference])? {
            match name.strip_prefix(STATES).map(RunId::new) {
                Some(Ok(run)) => runs.push((run, commit)),
                None if name == reference => owner = Some(commit),
                _ => {}
            }
        }
        if self.has_begun {
            self.check(owner)?;
        }
        Ok(runs)
    }

    /// Gives the run up: nothing of it is on the remote any more.
    pub fn end(&mut self) -> Result<()> {
        if self.expected.is_some() && !self.push_with(&[], None)? {
            let there = self.there()?;
            return self.check(there);
        }
        (self.has_begun, self.expected) = (false, None);
        Ok(forget_reference(&self.repository, &self.seen())?)
    }

    /// Whether the ref is where this process left it. The answer to a push may have been lost, and what was removed may be
    /// pushed again.
    fn check(&mut self, there: Option<CommitId>) -> Result<()> {
        match there {
            Some(there) if Some(&there) == self.expected.as_ref() => {}
            Some(there) if self.owner_at(&there).is_some_and(|owner| owner.process == self.owner.process) => {
                self.remember(there)?;
            }
            Some(there) => return Err(self.taken(&there)),
            None => self.expected = None,
        }
        Ok(())
    }

    fn remember(&mut self, commit: CommitId) -> Result<()> {
        force_reference(&self.repository, &self.seen(), &commit)?;
        self.expected = Some(commit);
        Ok(())
    }

    fn there(&self) -> Result<Option<CommitId>> {
        Ok(self.remote.commit_at(&self.reference())?)
    }

    fn owner_at(&self, commit: &CommitId) -> Option<Owner> {
        let incoming = format!("{OWNERS}incoming/{}", self.run);
        let fetched = self.remote.fetch(&[format!("+{}:{incoming}", self.reference())]);
        let owner = fetched.and_then(|()| self.repository.file_in(commit, FILE));
        let forgotten = forget_reference(&self.repository, &incoming);
        serde_json::from_slice(&owner.and_then(|owner| forgotten.map(|()| owner)).ok()??).ok()
    }

    fn taken(&self, there: &CommitId) -> StateSyncError {
        let by = match self.owner_at(there) {
            Some(owner) => {
                let place = format!("{} in {}", owner.host, owner.repository.display());
                format!("{} since {}", clean(&place), owner.at)
            }
            None => "another clone".to_owned(),
        };
        let (run, remote) = (self.run.clone(), self.remote.name().to_owned());
        StateSyncError::Taken { run, by, remote, reference: self.reference() }
    }

    fn reference(&self) -> String {
        format!("{OWNERS}{}", self.run)
    }

    /// Where this clone keeps what it pushed last.
    fn seen(&self) -> String {
        format!("{OWNERS}seen/{}/{}", remote_directory(&self.remote), self.run)
    }

    fn outgoing(&self) -> String {
        format!("{OWNERS}outgoing/{}", self.run)
    }
}
