//! Makes the git directory of an agent.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use lanewright_files::directory::create_directory_unsynced;
use lanewright_files::{atomic, regular_file};
use lanewright_model::CommitId;

use super::files::{STASH, branch_in, copy_with_time, read_small, shared_indexes};
use super::home::{Home, LeftBehind, Record, Stage, TOKEN};
use super::references::{Reference, References};
use crate::command::{Result, io_error};
use crate::history::identity::fallback_identity;

/// Files of git's directory for a worktree that its agent's own has as well, and those of the common one.
const OF_ENTRY: &[&str] = &["HEAD", "config.worktree", "info/sparse-checkout"];
const OF_COMMON: &[&str] = &["shallow", "info/exclude", "info/attributes", "info/grafts"];

/// Where filters that are not git's own look for their keys, in the git directory of the worktree, not in the common one.
pub(crate) const KEYS: &[&str] = &["git-crypt"];

/// Refs of one worktree, and the list of stashes, which is the user's.
const NOT_SHARED: &[&str] = &["refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// Making it.
impl Home<'_> {
    /// `earlier`: of the attempt before.
    pub(super) fn make(&self, earlier: Option<Record>) -> Result<()> {
        let common = self.repository.common_dir();
        let git = self.git();
        for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            create_directory_unsynced(&git.join(directory))?;
        }
        let copy = |from: &Path, name: &str| copy_with_time(&from.join(name), &git.join(name));
        OF_ENTRY.iter().try_for_each(|name| copy(&self.entry, name))?;
        OF_COMMON.iter().try_for_each(|name| copy(common, name))?;
        for name in shared_indexes(&self.entry)?.iter().map(String::as_str).chain(["index"]) {
            copy(&self.entry, name)?;
        }
        self.copy_operations(&self.entry, &git)?;
        let mut references = References::of(common, NOT_SHARED)?;
        references.peel(self.repository);
        atomic::replace(&self.place.join("refs"), references.packed().as_bytes())?;
        let (own, sparse) =
            earlier.as_ref().map(|earlier| (earlier.branch.clone(), earlier.sparse.clone())).unwrap_or_default();
        let before = earlier.map(|earlier| [earlier.found, earlier.left].concat()).unwrap_or_default();
        let found = self.give_again(before, &mut references)?;
        atomic::replace(&git.join("packed-refs"), references.packed().as_bytes())?;
        for (name, target) in &references.symbolic {
            let file = git.join(name);
            create_directory_unsynced(file.parent().unwrap_or(&git))?;
            atomic::replace(&file, format!("ref: {target}\n").as_bytes())?;
        }
        atomic::replace(&git.join("objects/info/alternates"), &self.alternates())?;
        if let Some(sparse) = &sparse {
            let own = read_small(&self.entry.join("config.worktree")).unwrap_or_default();
            atomic::replace(&git.join("config.worktree"), format!("{own}{sparse}").as_bytes())?;
        }
        atomic::replace(&git.join("config"), &self.settings(sparse.is_some())?)?;
        for name in KEYS {
            if common.join(name).exists() {
                atomic::link(&common.join(name), &git.join(name))?;
            }
        }
        // The files of submodules lead there, also after the agent, and of those that it adds.
        create_directory_unsynced(&self.entry.join("modules"))?;
        atomic::link(&self.entry.join("modules"), &git.join("modules"))?;
        // On no branch it is on its way back to the one that it was given.
        let branch = branch_in(&git).or(own);
        let base = branch.as_ref().and_then(|name| CommitId::new(references.named.get(name)?.object.as_str()).ok());
        let settings = read_small(&self.entry.join("config.worktree"));
        let link = regular_file::read_text(self.worktree.join(".git")).map_err(io_error("read", self.worktree))?;
        let token = uuid::Uuid::now_v7().to_string();
        atomic::replace(&self.entry.join(TOKEN), token.as_bytes())?;
        let (worktree, left) = (self.worktree.to_owned(), Vec::new());
        let record = Record {
            link,
            worktree,
            branch,
            base,
            settings,
            stage: Stage::Working,
            token,
            found,
            left,
            rest: None,
            sparse,
        };
        self.write(&record)?;
        let target = [b"gitdir: ", git.as_os_str().as_encoded_bytes(), b"\n"].concat();
        if self.write_link(&target)? {
            return Ok(());
        }
        Err(io_error("read", &self.worktree.join(".git"))(io::ErrorKind::NotFound.into()))
    }

    /// Has the agent find what attempts before it left, of which commits the repository still has.
    fn give_again(&self, before: Vec<LeftBehind>, references: &mut References) -> Result<Vec<LeftBehind>> {
        if before.is_empty() {
            return Ok(before);
        }
        let commits = before.iter().map(|left| left.commit.clone());
        let there: BTreeSet<CommitId> = self.repository.existing_commits(commits)?.into_iter().collect();
        let mut stashes = String::new();
        let mut last = None;
        let mut found = Vec::new();
        for left in before.into_iter().filter(|left| there.contains(&left.commit)) {
            if left.name == STASH {
                let from =
                    last.map_or_else(|| "0".repeat(left.commit.as_str().len()), |last: CommitId| last.to_string());
                let (to, who) = (&left.commit, fallback_identity());
                stashes.extend([format!("{from} {to} {who} 1 +0000\tstash of an earlier attempt\n")]);
                last = Some(left.commit.clone());
            } else if left.name.starts_with("refs/") && references.may_have(&left.name) {
                let object = left.commit.to_string();
                references.named.insert(left.name.clone(), Reference { object, peeled: None });
            } else {
                continue;
            }
            found.push(left);
        }
        if let Some(last) = last {
            let git = self.git();
            create_directory_unsynced(&git.join("logs/refs"))?;
            atomic::replace(&git.join("logs/refs/stash"), stashes.as_bytes())?;
            atomic::replace(&git.join("refs/stash"), format!("{last}\n").as_bytes())?;
        }
        Ok(found)
    }
}
