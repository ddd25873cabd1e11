//! Whether the work of a run is on the remote's own branches, so that its state is not the only place that has it.

use lanewright_git::{Remote, Repository, branch_reference};
use lanewright_model::CommitId;

use crate::state_sync::error::Result;
use crate::state_sync::manifest::Manifest;

/// The branches of a run whose work the remote's branches do not hold, sorted; none: all of it is published. The remote is
/// asked, and what it has is fetched. The run's integration branch has to be there under its name; unmerged work
/// counts as published on that branch, too. So does work that the forge squashed or rebased.
pub fn unpublished(repository: &Repository, remote: &Remote, manifest: &Manifest) -> Result<Vec<String>> {
    let base = branch_reference(&manifest.base_branch);
    let wanted: Vec<String> =
        std::iter::once(base.clone()).chain(manifest.branches.keys().map(|name| branch_reference(name))).collect();
    let there = published(repository, remote, &wanted)?;
    let of_base: Vec<&CommitId> = there.iter().filter(|(name, _)| *name == base).map(|(_, commit)| commit).collect();
    let all: Vec<&CommitId> = there.iter().map(|(_, commit)| commit).collect();
    let mut missing = Vec::new();
    if !is_in(repository, &manifest.integration, &of_base)? {
        missing.push(manifest.base_branch.clone());
    }
    for (name, commit) in &manifest.branches {
        if !is_in(repository, commit, &all)? {
            missing.push(name.clone());
        }
    }
    missing.sort();
    Ok(missing)
}

/// Whether nothing is lost with the state of a run. The remote's integration branch then has the merges of a run that is
/// done, which say what they did; of another run it has at least the work, that of snapshots too. What is not in this clone
/// counts as missing.
///
/// # Errors
/// The remote cannot be reached, or a commit cannot be read.
pub fn is_all_in_base(repository: &Repository, remote: &Remote, manifest: &Manifest) -> Result<bool> {
    let there = published(repository, remote, &[branch_reference(&manifest.base_branch)])?;
    let heads: Vec<&CommitId> = there.iter().map(|(_, commit)| commit).collect();
    if manifest.is_done() {
        let &[head] = heads.as_slice() else { return Ok(false) };
        return manifest.is_told_by(repository, head);
    }
    let made =
        [&manifest.integration].into_iter().chain(manifest.branches.values()).chain(manifest.references.values());
    for commit in made {
        if !is_in(repository, commit, &heads)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Manifest {
    /// Whether the commits of `head` say that the lanes of the run are done, which is done. Those that a forge squashed do
    /// not, nor those of lanes that the run did not merge itself.
    ///
    /// # Errors
    /// A commit cannot be read.
    pub fn is_told_by(&self, repository: &Repository, head: &CommitId) -> Result<bool> {
        let is_own =
            self.published.is_none() && self.branches.is_empty() && repository.has_commit(&self.integration)?;
        Ok(is_own && repository.has_commit(head)? && repository.is_ancestor(&self.integration, head)?)
    }
}

/// Where those of the refs `wanted` are that the remote has. Their commits are here then.
fn published(repository: &Repository, remote: &Remote, wanted: &[String]) -> Result<Vec<(String, CommitId)>> {
    let prefixes: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let mut there = remote.references(&prefixes)?;
    there.retain(|(name, _)| wanted.contains(name));
    let mut unknown = Vec::new();
    for (name, commit) in &there {
        if !repository.has_commit(commit)? {
            unknown.push(name.clone());
        }
    }
    if !unknown.is_empty() {
        remote.fetch(&unknown)?;
    }
    Ok(there)
}

/// Whether one of `heads` has the work of `commit`. What is not here has none.
fn is_in(repository: &Repository, commit: &CommitId, heads: &[&CommitId]) -> Result<bool> {
    if !repository.has_commit(commit)? {
        return Ok(false);
    }
    for head in heads {
        if repository.has_commit(head)? && repository.has_work_of(head, commit)? {
            return Ok(true);
        }
    }
    Ok(false)
}
