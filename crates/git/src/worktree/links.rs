//! The names under which lanes and agents see their slots: `<root>/<run>/<lane>/code` and
//! `<root>/<run>/<lane>/agents/<agent>/code`.

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_files::directory::create_directory_unsynced;
use lanewright_files::{atomic, directory};
use lanewright_model::{LaneId, RunId};

use crate::command::{GitError, Result};
use crate::worktree::{Holder, Pool};

impl Pool {
    /// Makes the link of `holder` lead to `slot`, in one step. A holder without a lane has none.
    pub fn link(&self, holder: &Holder, slot: &Path) -> Result<()> {
        let Some(directory) = self.holder_directory(holder) else { return Ok(()) };
        self.refuse_links_above(&directory)?;
        create_directory_unsynced(&directory)?;
        let link = directory.join("code");
        refuse_other_than_link(&link)?;
        Ok(atomic::link(slot, &link)?)
    }

    /// What people call the worktree in `slot`: the link of `holder` if there is one, which is named after it.
    pub fn shown(&self, holder: &Holder, slot: &Path) -> PathBuf {
        let link = self.holder_directory(holder).map(|directory| directory.join("code"));
        link.filter(|link| link.is_symlink()).unwrap_or_else(|| slot.to_owned())
    }

    /// Removes the link of `holder`; none there is as good.
    pub fn unlink(&self, holder: &Holder) -> Result<()> {
        let Some(directory) = self.holder_directory(holder) else { return Ok(()) };
        self.refuse_links_above(&directory)?;
        let link = directory.join("code");
        refuse_other_than_link(&link)?;
        Ok(atomic::remove(&link)?)
    }

    /// Removes the directory of a lane: links and files in it and in its agents' directories. Returns what was kept: a
    /// directory that is neither the lane's nor an agent's is not Lanewright's.
    pub fn remove_lane_directory(&self, run: &RunId, lane: &LaneId) -> Result<Vec<PathBuf>> {
        let directory = self.root().join(run.as_str()).join(lane.as_str());
        let mut kept = Vec::new();
        if fs::symlink_metadata(&directory).is_ok() {
            self.refuse_links_above(&directory)?;
            for inner in clear(&directory)? {
                match inner == directory.join("agents") {
                    true => self.remove_agent_directories(&inner, &mut kept)?,
                    false => kept.push(inner),
                }
            }
        }
        for path in [directory.clone(), self.root().join(run.as_str())] {
            let _ = fs::remove_dir(path);
        }
        Ok(kept)
    }

    fn remove_agent_directories(&self, agents: &Path, kept: &mut Vec<PathBuf>) -> Result<()> {
        for agent in clear(agents)? {
            kept.extend(clear(&agent)?);
            let _ = fs::remove_dir(agent);
        }
        let _ = fs::remove_dir(agents);
        Ok(())
    }

    fn holder_directory(&self, holder: &Holder) -> Option<PathBuf> {
        let lane = holder.lane.as_ref()?;
        let directory = self.root().join(holder.run.as_str()).join(lane.as_str());
        Some(match &holder.agent {
            Some(agent) => directory.join("agents").join(agent.as_str()),
            None => directory,
        })
    }

    fn refuse_links_above(&self, directory: &Path) -> Result<()> {
        let below_root = directory.ancestors().take_while(|part| *part != self.root());
        match below_root.filter(|part| part.is_symlink()).last() {
            Some(link) => Err(GitError::NotOurs { path: link.to_owned() }),
            None => Ok(()),
        }
    }
}

fn refuse_other_than_link(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(kind) if !kind.is_symlink() => Err(GitError::NotOurs { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Removes the files and links in `path`; returns the directories in it.
fn clear(path: &Path) -> Result<Vec<PathBuf>> {
    let directories = directory::directories(path)?;
    for entry in directory::entries(path)?.iter().filter(|entry| !directories.contains(entry)) {
        atomic::remove(entry)?;
    }
    Ok(directories)
}
