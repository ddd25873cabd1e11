//! Tries a remote as an exchange, with refs that are removed again: by itself, and with a job on another machine.

use std::slice;

use lanewright_git::{Bundle, PushRequest, Remote, Repository, forget_reference, write_bundle};
use lanewright_model::{CommitId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::state_sync::error::Result;

const PROBES: &str = "refs/lanewright/probe/";
const ANSWER: &str = "answer.json";

pub fn is_probe(reference: &str) -> bool {
    let name = reference.strip_prefix(PROBES).unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// What a job says of the machine it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    pub host: String,
    pub lanewright: String,
    pub git: String,
}

#[derive(Debug)]
pub struct Probe<'a> {
    repository: &'a Repository,
    remote: &'a Remote,
    reference: String,
}

impl<'a> Probe<'a> {
    pub fn new(repository: &'a Repository, remote: &'a Remote) -> Self {
        Self::at(repository, remote, format!("{PROBES}{}", Uuid::now_v7()))
    }

    /// The one that another process made.
    pub fn at(repository: &'a Repository, remote: &'a Remote, reference: String) -> Self {
        Self { repository, remote, reference }
    }

    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Pushes two refs at once and removes both. `false`: another process changed them meanwhile.
    pub fn push_two(&self, at: Timestamp) -> Result<bool> {
        let commit = self.commit(&[], &[], at)?;
        let names = [format!("{}-a", self.reference), format!("{}-b", self.reference)];
        let push = |(to, expected): (Option<&CommitId>, Option<&CommitId>)| {
            self.remote.push_together(&names.each_ref().map(|name| PushRequest::new(name, to, expected)))
        };
        Ok(push((Some(&commit), None))? && push((None, Some(&commit)))?)
    }

    /// Makes the ref, for a job to answer.
    pub fn offer(&self, at: Timestamp) -> Result<CommitId> {
        let commit = self.commit(&[], &[], at)?;
        self.push(Some(&commit), None)?;
        Ok(commit)
    }

    /// Answers `offer`. `false`: it is not offered any more.
    pub fn answer(&self, offer: &CommitId, answer: &ProbeAnswer, at: Timestamp) -> Result<bool> {
        if self.now()?.as_ref() != Some(offer) {
            return Ok(false);
        }
        self.fetch()?;
        let file = (ANSWER.to_owned(), serde_json::to_vec(answer)?);
        let commit = self.commit(&[file], slice::from_ref(offer), at)?;
        self.push(Some(&commit), Some(offer))
    }

    /// The answer to `offer`; `None`: there is none yet.
    pub fn answered(&self, offer: &CommitId) -> Result<Option<ProbeAnswer>> {
        let Some(commit) = self.now()?.filter(|now| now != offer) else { return Ok(None) };
        self.fetch()?;
        let file = self.repository.file_in(&commit, ANSWER)?.unwrap_or_default();
        self.forget()?;
        Ok(Some(serde_json::from_slice(&file)?))
    }

    /// Removes every ref of this try that is on the remote.
    pub fn withdraw(&self) -> Result<()> {
        for (reference, commit) in self.remote.references(&[&self.reference])? {
            self.remote.push(&PushRequest::new(&reference, None, Some(&commit)))?;
        }
        self.forget()
    }

    fn now(&self) -> Result<Option<CommitId>> {
        Ok(self.remote.commit_at(&self.reference)?)
    }

    fn push(&self, commit: Option<&CommitId>, expected: Option<&CommitId>) -> Result<bool> {
        Ok(self.remote.push(&PushRequest::new(&self.reference, commit, expected))?)
    }

    /// Its objects, kept by the ref of the same name here.
    fn fetch(&self) -> Result<()> {
        Ok(self.remote.fetch(&[format!("+{0}:{0}", self.reference)])?)
    }

    fn commit(&self, files: &[(String, Vec<u8>)], commits: &[CommitId], at: Timestamp) -> Result<CommitId> {
        let bundle = Bundle { tree: None, removed: &[], files, commits, message: "Lanewright: probe", at };
        Ok(write_bundle(self.repository, &self.reference, &bundle)?)
    }

    pub fn forget(&self) -> Result<()> {
        Ok(forget_reference(self.repository, &self.reference)?)
    }
}
