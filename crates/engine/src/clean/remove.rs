//! Removes what the scan found. What cannot be removed stays, with the reason; repeating the command removes the rest.

use std::fs;
use std::io;

use lanewright_files::atomic;
use lanewright_git::{self as git, GitError};
use lanewright_model::CommitId;
use lanewright_store::{RunDirectory, RunLock};

use super::{CleanScope, Item, Leftover};
use crate::doctor::Expected;

#[derive(Debug, thiserror::Error)]
enum RemoveError {
    #[error("{}", .0.with_remedy())]
    Git(#[from] GitError),
    #[error("{0}")]
    InUse(String),
}

/// Removes all of `found` that may be removed, except the log; calls `removed` for each. Returns the same list with the
/// results.
pub fn remove(around: &CleanScope<'_>, run: &Expected, found: Vec<Leftover>, removed: &dyn Fn()) -> Vec<Leftover> {
    let base = around.repository.branch_commit(&run.started.base_branch).ok().flatten();
    let base = base.unwrap_or_else(|| run.started.base_commit.clone());
    let mut left: Vec<Leftover> = Vec::new();
    let mut emptied = false;
    for mut leftover in found {
        // Slots first: the refs that are removed later hold their commits.
        if !matches!(leftover.item, Item::Held(_)) && !std::mem::replace(&mut emptied, true) {
            empty_pool(around, run, &mut left);
        }
        if leftover.goes() {
            let blocked = matches!(leftover.item, Item::Log(_)) && left.iter().any(Leftover::was_refused);
            let done = match &leftover.item {
                _ if blocked => Err("something of the run could not be removed".to_owned()),
                item => remove_one(around, run, item, &base).map_err(|error| error.to_string()),
            };
            match done {
                Ok(()) => removed(),
                Err(reason) => leftover.refuse(&reason),
            }
        }
        left.push(leftover);
    }
    // The directories above the lanes' are empty only now.
    empty_pool(around, run, &mut left);
    left
}

fn empty_pool(around: &CleanScope<'_>, run: &Expected, left: &mut [Leftover]) {
    let kept = match around.pool.empty(&run.started.run_id, None) {
        Ok(kept) => kept,
        Err(error) => return tracing::warn!("the pool cannot be emptied: {}", error.with_remedy()),
    };
    for slot in kept {
        let about = |leftover: &&mut Leftover| matches!(&leftover.item, Item::Held(held) if held.path == slot.path);
        if let Some(leftover) = left.iter_mut().find(about).filter(|leftover| leftover.goes()) {
            leftover.refuse(&slot.reason);
        }
    }
}

fn remove_one(around: &CleanScope<'_>, run: &Expected, item: &Item, base: &CommitId) -> Result<(), RemoveError> {
    let in_use = |reason: String| Err(RemoveError::InUse(reason));
    match item {
        Item::Held(slot) => {
            around.pool.throw_away(slot, base)?;
            around.pool.unlink(&slot.holder)?;
        }
        Item::Free(path) if fs::symlink_metadata(path).is_ok() => {
            return in_use("another process took it meanwhile".to_owned());
        }
        Item::Free(_) | Item::Log(_) => {}
        Item::Branch(name, at) => {
            if let Some(place) = around.repository.where_checked_out(name)? {
                return Err(GitError::BranchInTheWay { branch: name.clone(), place: Some(place) }.into());
            }
            delete(around, &format!("refs/heads/{name}"), at)?;
        }
        Item::Snapshot(name, at) => delete(around, name, at)?,
        Item::LaneDirectory(lane, _) => {
            let kept = around.pool.remove_lane_directory(&run.started.run_id, lane)?;
            let names: Vec<String> = kept.iter().map(|it| it.display().to_string()).collect();
            if !names.is_empty() {
                return in_use(format!("it holds what is not Lanewright's: {}", names.join(", ")));
            }
        }
    }
    Ok(())
}

fn delete(around: &CleanScope<'_>, reference: &str, at: &CommitId) -> Result<(), RemoveError> {
    let moved = git::delete_references(around.repository, &[(reference.to_owned(), at.clone())])?;
    match moved.is_empty() {
        true => Ok(()),
        false => Err(RemoveError::InUse("another process moved it meanwhile".to_owned())),
    }
}

/// Removes a run's directory and its log, and the lock last, while it is still held: a process that waits for the run then
/// finds none.
pub fn remove_run(run: &RunDirectory, lock: RunLock) -> io::Result<()> {
    let directory = run.directory();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        if path != run.lock() {
            atomic::remove_all(&path)?;
        }
    }
    atomic::remove_all(&run.log())?;
    atomic::remove_all(&run.lock())?;
    fs::remove_dir(&directory)?;
    drop(lock);
    Ok(())
}
