//! Objects that another store has: what some commits and an index hold, copied into the repository.
//!
//! The store is an agent's own. Nothing of its settings is read, every object is hashed before it is written, and none is
//! written before what it leads to, so that an object that the repository has is one that is whole.

use std::collections::HashSet;
use std::path::Path;

use git2::{ErrorCode, ObjectType, OdbLookupFlags, Oid};
use lanewright_model::CommitId;

use crate::fast::libgit2::{FIRST, oid, open, open_index};
use crate::repo::Repository;

/// What becomes of objects that neither the repository nor the store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Refused,
    /// A partial clone fetches them when they are needed.
    Promised,
}

/// Copies what `tips`, and the index in the file `index`, lead to from the store in `from`, not yet durably; the error is what
/// is missing or damaged. `None`: libgit2 cannot read the repository, or may not write to it.
///
/// An index that cannot be read is as good as none.
pub(crate) fn copy_objects(
    repository: &Repository,
    from: &Path,
    tips: &[&CommitId],
    index: Option<&Path>,
    missing: Missing,
) -> Option<Result<(), String>> {
    repository.write_in_process(|own| {
        let lent = open(repository.common_dir())?;
        let store = lent.odb()?;
        store.add_disk_alternate(from.to_str().ok_or_else(|| git2::Error::from_str("its path is not UTF-8"))?)?;
        // Trees that the index has not kept are made in memory.
        store.add_new_mempack_backend(FIRST)?;
        let mut wanted: Vec<Oid> = index.map(|index| objects_of_index(&lent, index)).unwrap_or_default();
        let needed = wanted.len();
        wanted.extend(tips.iter().map(|tip| oid(tip)).collect::<Result<Vec<_>, _>>()?);
        let copying = Copying { lent: &lent, store: &store, own: &own.odb()?, missing };
        let (staged, commits) = wanted.split_at(needed);
        // What is only staged is in the worktree as well.
        let _ = copying.copy(staged);
        match copying.copy(commits) {
            Err(Fault::Own(error)) => Err(error),
            Err(Fault::Theirs(error)) => Ok(Err(error.message().to_owned())),
            Ok(()) => Ok(Ok(())),
        }
    })
}

/// The tree of an index, or where it has none, because of a conflict, the blobs.
fn objects_of_index(lent: &git2::Repository, index: &Path) -> Vec<Oid> {
    if let Ok(tree) = open_index(index).and_then(|mut index| index.write_tree_to(lent)) {
        return vec![tree];
    }
    let entries = git2::Index::open(index).map(|index| index.iter().collect::<Vec<_>>()).unwrap_or_default();
    entries.into_iter().filter(|entry| entry.mode != SUBMODULE).map(|entry| entry.id).collect()
}

/// The mode of a commit of another repository.
const SUBMODULE: u32 = 0o160_000;

struct Copying<'a> {
    lent: &'a git2::Repository,
    store: &'a git2::Odb<'a>,
    own: &'a git2::Odb<'a>,
    missing: Missing,
}

enum Step {
    Look(Oid),
    /// What it leads to is there now.
    Write(Oid),
}

enum Fault {
    /// It cannot be written here.
    Own(git2::Error),
    /// It is missing or damaged there.
    Theirs(git2::Error),
}

impl From<git2::Error> for Fault {
    fn from(error: git2::Error) -> Self {
        Self::Theirs(error)
    }
}

impl Copying<'_> {
    fn copy(&self, wanted: &[Oid]) -> Result<(), Fault> {
        let mut seen = HashSet::new();
        let mut steps: Vec<Step> = wanted.iter().copied().map(Step::Look).collect();
        while let Some(step) = steps.pop() {
            match step {
                Step::Look(object) if !seen.insert(object) || self.has(object) => {}
                Step::Look(object) => {
                    let found = match self.store.read(object) {
                        Err(error) if error.code() == ErrorCode::NotFound && self.is_promised(wanted, object) => {
                            continue;
                        }
                        found => found?,
                    };
                    match found.kind() {
                        ObjectType::Blob => self.write(object, &found)?,
                        kind => {
                            steps.push(Step::Write(object));
                            steps.extend(self.below(object, kind)?.into_iter().map(Step::Look));
                        }
                    }
                }
                Step::Write(object) => self.write(object, &self.store.read(object)?)?,
            }
        }
        Ok(())
    }

    fn has(&self, object: Oid) -> bool {
        self.own.exists_ext(object, OdbLookupFlags::NO_REFRESH)
    }

    fn is_promised(&self, wanted: &[Oid], object: Oid) -> bool {
        self.missing == Missing::Promised && !wanted.contains(&object)
    }

    fn below(&self, object: Oid, kind: ObjectType) -> Result<Vec<Oid>, git2::Error> {
        Ok(match kind {
            ObjectType::Commit => {
                let commit = self.lent.find_commit(object)?;
                commit.parent_ids().chain([commit.tree_id()]).collect()
            }
            ObjectType::Tree => {
                let tree = self.lent.find_tree(object)?;
                let own = tree.iter().filter(|entry| entry.kind() != Some(ObjectType::Commit));
                own.map(|entry| entry.id()).collect()
            }
            ObjectType::Tag => vec![self.lent.find_tag(object)?.target_id()],
            _ => Vec::new(),
        })
    }

    fn write(&self, object: Oid, found: &git2::OdbObject<'_>) -> Result<(), Fault> {
        match self.own.write(found.kind(), found.data()).map_err(Fault::Own)? == object {
            true => Ok(()),
            false => Err(git2::Error::from_str(&format!("object {object} is damaged")).into()),
        }
    }
}

/// The commits that objects of the repository or of the directory `from` are, or, of tags, lead to; those that lead to
/// something else are `None`.
pub(crate) fn commits_behind<'o>(
    repository: &Repository,
    from: &Path,
    objects: impl Iterator<Item = &'o str>,
) -> Option<Vec<Option<CommitId>>> {
    repository.examine(|git| {
        git.odb()?.add_disk_alternate(from.to_str().ok_or_else(|| git2::Error::from_str("its path is not UTF-8"))?)?;
        let commit_of = |object: &str| {
            let commit = git.find_object(Oid::from_str(object).ok()?, None).ok()?.peel_to_commit().ok()?;
            CommitId::new(&commit.id().to_string()).ok()
        };
        Ok(objects.map(commit_of).collect())
    })
}
