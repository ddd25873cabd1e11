//! A git directory for each agent that works (decision 72).
//!
//! While an agent works, the `.git` of its worktree leads to `<common>/lanewright/private/<entry>/git`: a git directory with
//! its own head, refs, index, settings, hooks' list and objects, which reads the settings, hooks and objects of the repository
//! and writes none of them. Git's own directory for the worktree, the *entry* in `<common>/worktrees`, stays, and is what
//! Lanewright works with all the time ([`crate::command::places`]). [`bring_over`] copies commits and index there, as often as
//! wanted; [`take_over`] does so at the end and names what else the agent left; [`restore_link`] makes `.git` lead to the entry
//! again. Each may be interrupted and asked again.

mod files;
mod home;
mod make;
mod references;
mod settings;
mod stray;
mod take_over;

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_files::directory;

use crate::command::{GitError, PRIVATE, Result};
use crate::repo::{Guarded, Repository};
use home::{Home, Stage};
pub use home::{LeftBehind, private_git_directory};
pub(crate) use make::KEYS;
pub use settings::settings_have_credentials;
pub use stray::{KeptOfRemoved, Rescued, kept_of_removed};
use stray::{Stray, discard_home};

/// What became of an agent's git directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenOver {
    /// Commits that nothing in the repository leads to; their objects are there.
    pub left: Vec<LeftBehind>,
    /// Where the git directory is kept, because not all else that it has can be had, and why.
    pub kept: Option<(PathBuf, String)>,
    /// Why the agent's commits cannot be had; `None`: they are in the repository.
    pub lost: Option<String>,
    /// Whether another program removed the git directory with its record: what the agent committed is in its files only.
    pub removed: bool,
}

/// What of git an agent in `worktree` must be able to write, whether or not it is made yet, and nothing else of it: its own
/// git directory, and those of submodules.
///
/// # Errors
/// Git's directories for worktrees cannot be read, or [`GitError::NotOurs`].
pub fn agent_git_directories(repository: &Repository, worktree: &Path) -> Result<Vec<PathBuf>> {
    let Some(home) = Home::of(repository, worktree)? else {
        return Err(GitError::NotOurs { path: worktree.to_owned() });
    };
    Ok(vec![home.git(), home.entry.join("modules")])
}

/// Makes a git directory for the agent that is about to work in `worktree`, one of the pool's, in place of one that an agent
/// before it had. Nothing is made durable: after a power cut the agent starts again.
///
/// # Errors
/// [`GitError::NotOurs`], or what cannot be read or written.
pub fn make_private(repository: &Repository, worktree: &Path) -> Result<()> {
    let Some(home) = Home::of(repository, worktree)? else {
        return Err(GitError::NotOurs { path: worktree.to_owned() });
    };
    if home.is_given() {
        take_over(repository, worktree)?;
    }
    home.holding(|| {
        let earlier = home.record()?;
        remove(&home)?;
        home.make(earlier)
    })
}

/// Copies what the agent in `worktree` committed and staged so far into the repository, and moves its branch there; the
/// agent may be at work. Without a git directory of its own there is nothing to do.
///
/// # Errors
/// [`GitError::PrivateLost`]: the agent removed or damaged it.
pub fn bring_over(repository: &Repository, worktree: &Path) -> Result<()> {
    let Some(home) = Home::of(repository, worktree)?.filter(Home::is_given) else { return Ok(()) };
    home.holding(|| match home.record()? {
        Some(mut record) if record.stage == Stage::Working => home.bring_over(&mut record).map(drop),
        _ => Ok(()),
    })
}

/// The same once the agent is gone, with everything else that it left. `None`: it had no git directory of its own.
///
/// # Errors
/// What cannot be written here. What the agent removed or damaged is an answer.
pub fn take_over(repository: &Repository, worktree: &Path) -> Result<Option<TakenOver>> {
    let Some(home) = Home::of(repository, worktree)?.filter(Home::is_given) else { return Ok(None) };
    home.holding(|| {
        if !home.place.exists() {
            home.lead_back()?;
            return Ok(Some(TakenOver { removed: true, ..TakenOver::default() }));
        }
        let Some(mut record) = home.record()? else { return Ok(None) };
        if record.stage == Stage::Working {
            record.stage = match home.take_all(&mut record) {
                Ok(()) => Stage::TakenOver,
                Err(GitError::PrivateLost { reason, .. }) => Stage::Lost(reason),
                Err(error) => return Err(error),
            };
            home.write(&record)?;
        }
        let kept = record.rest.as_ref().map(|reason| (home.kept_place(&record), reason.clone()));
        let lost = match record.stage {
            Stage::Lost(reason) => Some(reason),
            Stage::Working | Stage::TakenOver => None,
        };
        Ok(Some(TakenOver { left: record.left, kept, lost, removed: false }))
    })
}

/// Makes the `.git` of `worktree` lead to git's directory for it, and removes what was taken over from the agent's. What the
/// agent left besides stays named until the next one gets a git directory, or the worktree another holder.
///
/// # Errors
/// What cannot be written.
pub fn restore_link(repository: &Repository, worktree: &Path) -> Result<()> {
    let Some(home) = Home::of(repository, worktree)?.filter(Home::is_given) else { return Ok(()) };
    home.holding(|| {
        let record = home.record()?;
        home.lead_back()?;
        record.map_or(Ok(()), |record| home.discard_git(&record).map(drop))
    })
}

/// Takes over and removes the git directory of an agent that is gone from `worktree`, if there is one.
pub(crate) fn forget_private(repository: &Repository, worktree: &Path) -> Result<()> {
    let Some(home) = Home::of(repository, worktree)?.filter(Home::is_given) else { return Ok(()) };
    take_over(repository, worktree)?;
    home.holding(|| remove(&home))
}

/// Removes what is left of the git directory of an agent whose worktree had the entry `entry`.
pub(crate) fn remove_private_of(repository: &Repository, entry: &Path) -> Result<()> {
    let Some(name) = entry.file_name() else { return Ok(()) };
    let place = repository.common_dir().join(PRIVATE).join(name);
    discard_home(repository, &place)
}

/// Removes the git directories of agents whose worktrees are gone, and rescues what they did.
pub(crate) fn remove_private_leftovers(repository: &Repository) -> Result<()> {
    rescue(repository)?.iter().for_each(|kept| repository.notice(kept));
    let private = repository.common_dir().join(PRIVATE);
    for place in directory::entries(&private)? {
        let has_entry = repository.entries_directory().join(place.file_name().unwrap_or_default()).exists();
        if !has_entry && Stray::in_place(repository, &place)?.is_none() {
            discard_home(repository, &place)?;
        }
    }
    let _ = fs::remove_dir(&private);
    Ok(())
}

/// Copies what agents did in git directories of their own whose worktrees are gone into the repository, moves their branches
/// there, and removes the directories. What no branch has is kept by refs below `refs/lanewright/rescued`, and named. Where git
/// still lists the worktree, it may be in a place that this process does not see, and only the branch is brought over.
///
/// # Errors
/// What cannot be read or written here. A directory of which not all can be read is moved aside, and named.
pub fn rescue(repository: &Repository) -> Result<Vec<Rescued>> {
    if strays(repository)?.is_empty() {
        return Ok(Vec::new());
    }
    let mut rescued = Vec::new();
    repository.holding(Guarded::Private, |_| {
        for place in strays(repository)? {
            // One that cannot be read is in nobody's way but that of its own worktree.
            match Stray::in_place(repository, &place).and_then(|stray| stray.map_or(Ok(Vec::new()), Stray::rescue)) {
                Ok(kept) => rescued.extend(kept),
                Err(error) => rescued.push(Rescued::NotYet { place, reason: error.to_string() }),
            }
        }
        Ok(())
    })?;
    Ok(rescued)
}

/// The git directories of agents whose worktrees are not there, and those of which that cannot be said.
fn strays(repository: &Repository) -> Result<Vec<PathBuf>> {
    let mut found = directory::entries(&repository.common_dir().join(PRIVATE))?;
    found.retain(|place| match Stray::in_place(repository, place) {
        Ok(stray) => stray.is_some_and(|stray| !stray.has_worktree()),
        Err(_) => true,
    });
    Ok(found)
}

/// Brings over what all agents committed, who may be at work, and rescues what is of those whose worktrees are gone.
///
/// # Errors
/// As [`rescue`].
pub fn bring_over_all(repository: &Repository) -> Result<Vec<Rescued>> {
    let rescued = rescue(repository)?;
    for place in directory::entries(&repository.common_dir().join(PRIVATE))? {
        let worktree = Stray::in_place(repository, &place)?.and_then(|stray| stray.worktree());
        match worktree.map_or(Ok(()), |worktree| bring_over(repository, &worktree)) {
            Err(GitError::PrivateLost { .. }) => {}
            done => done?,
        }
    }
    Ok(rescued)
}

/// The caller holds the lock of the entry.
fn remove(home: &Home<'_>) -> Result<()> {
    home.lead_back()?;
    discard_home(home.repository, &home.place)
}
