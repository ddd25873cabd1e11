//! The names under which lanes and agents see their slots: `<root>/<run>/<lane>/code` and
//! `<root>/<run>/<lane>/agents/<agent>/code`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fs::atomic;
use crate::git::command::error::{GitError, io_error};
use crate::git::worktree::claim::Holder;
use crate::git::worktree::pool::{Pool, make_directory};
use crate::model::{LaneId, RunId};

impl Pool {
    /// Makes the link of `holder` lead to `slot`, in one step. A holder without a lane has none.
    ///
    /// # Errors
    /// [`GitError::NotOurs`] when something else than a link has its name, or a directory above it is a link.
    pub fn link(&self, holder: &Holder, slot: &Path) -> Result<(), GitError> {
        let Some(directory) = self.holder_directory(holder) else { return Ok(()) };
        self.refuse_links_above(&directory)?;
        make_directory(&directory)?;
        let link = directory.join("code");
        refuse_other_than_link(&link)?;
        atomic::link(slot, &link).map_err(io_error("create", &link))
    }

    /// Removes the link of `holder`; none there is as good.
    ///
    /// # Errors
    /// Those of [`Pool::link`].
    pub fn unlink(&self, holder: &Holder) -> Result<(), GitError> {
        let Some(directory) = self.holder_directory(holder) else { return Ok(()) };
        self.refuse_links_above(&directory)?;
        let link = directory.join("code");
        refuse_other_than_link(&link)?;
        match fs::remove_file(&link) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error("remove", &link)(error)),
            _ => Ok(()),
        }
    }

    /// Removes the directory of a lane: links and files in it and in its agents' directories. Answers what was kept: a
    /// directory that is neither the lane's nor an agent's is not ours.
    ///
    /// # Errors
    /// [`GitError::NotOurs`] when a directory above it is a link; [`GitError::File`].
    pub fn remove_lane_directory(&self, run: &RunId, lane: &LaneId) -> Result<Vec<PathBuf>, GitError> {
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

    fn remove_agent_directories(&self, agents: &Path, kept: &mut Vec<PathBuf>) -> Result<(), GitError> {
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

    fn refuse_links_above(&self, directory: &Path) -> Result<(), GitError> {
        let below_root = directory.ancestors().take_while(|part| *part != self.root());
        match below_root.filter(|part| part.is_symlink()).last() {
            Some(link) => Err(GitError::NotOurs { path: link.to_owned() }),
            None => Ok(()),
        }
    }
}

fn refuse_other_than_link(path: &Path) -> Result<(), GitError> {
    match fs::symlink_metadata(path) {
        Ok(kind) if !kind.is_symlink() => Err(GitError::NotOurs { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Removes the files and links in `directory`; answers the directories in it.
fn clear(directory: &Path) -> Result<Vec<PathBuf>, GitError> {
    let mut directories = Vec::new();
    for entry in fs::read_dir(directory).map_err(io_error("list", directory))? {
        let path = entry.map_err(io_error("list", directory))?.path();
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => directories.push(path),
            _ => fs::remove_file(&path).map_err(io_error("remove", &path))?,
        }
    }
    Ok(directories)
}
