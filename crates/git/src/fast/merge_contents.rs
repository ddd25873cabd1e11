//! Merges of files that both sides changed, where git is too old to make them without a worktree (before 2.41). Merge drivers
//! of the user's are not run: such files are merged as text.

use git2::{Index, IndexConflict, IndexEntry, MergeFileOptions, Oid, Repository};
use lanewright_model::CommitId;

use crate::command::path_text;
use crate::fast::libgit2::oid;
use crate::repo::repository;

/// The tree in which two commits are merged, seen from `base` or else from where they parted, and the paths in conflict, which
/// it holds with marks; written and not yet durable. `None`: libgit2 cannot read the repository.
pub(crate) fn merged_tree(
    repository: &repository::Repository,
    base: Option<&CommitId>,
    ours: &CommitId,
    theirs: &CommitId,
) -> Option<(String, Vec<String>)> {
    repository.write_in_process(|git| {
        let (ours, theirs) = (git.find_commit(oid(ours)?)?, git.find_commit(oid(theirs)?)?);
        let mut merged = match base {
            Some(base) => {
                git.merge_trees(&git.find_commit(oid(base)?)?.tree()?, &ours.tree()?, &theirs.tree()?, None)?
            }
            None => git.merge_commits(&ours, &theirs, None)?,
        };
        let conflicts: Vec<IndexConflict> = merged.conflicts()?.collect::<Result<_, _>>()?;
        let mut paths = Vec::new();
        for conflict in conflicts {
            paths.extend(resolve(git, &mut merged, &conflict)?);
        }
        paths.sort();
        paths.dedup();
        Ok((merged.write_tree_to(git)?.to_string(), paths))
    })
}

/// Puts the file of a conflict into `merged`: with marks if both sides have it, else as the side has it that changed it.
fn resolve(git: &Repository, merged: &mut Index, conflict: &IndexConflict) -> Result<Option<String>, git2::Error> {
    let sides = [&conflict.our, &conflict.their, &conflict.ancestor];
    let Some(first) = sides.into_iter().flatten().next() else { return Ok(None) };
    let path = first.path.clone();
    let name = path_text(&path);
    let kept = match (&conflict.our, &conflict.their) {
        (Some(our), Some(their)) => Some((with_marks(git, conflict.ancestor.as_ref(), our, their)?, our.mode)),
        (Some(one), None) | (None, Some(one)) => Some((one.id, one.mode)),
        (None, None) => None,
    };
    for stage in 1..=3 {
        // Not every conflict has all stages.
        let _ = merged.remove(std::path::Path::new(&name), stage);
    }
    if let Some((id, mode)) = kept {
        merged.add(&IndexEntry { id, mode, path, flags: 0, flags_extended: 0, ..blank() })?;
    }
    Ok(Some(name))
}

/// The blob of a file with the marks of a conflict; of what is no text, our side.
fn with_marks(
    git: &Repository,
    ancestor: Option<&IndexEntry>,
    our: &IndexEntry,
    their: &IndexEntry,
) -> Result<Oid, git2::Error> {
    let empty = IndexEntry { id: git.blob(b"")?, mode: our.mode, path: our.path.clone(), ..blank() };
    let mut options = MergeFileOptions::new();
    options.our_label("ours").their_label("theirs");
    match git.merge_file_from_index(ancestor.unwrap_or(&empty), our, their, Some(&mut options)) {
        Ok(file) => git.blob(file.content()),
        Err(_) => Ok(our.id),
    }
}

fn blank() -> IndexEntry {
    let zero = git2::IndexTime::new(0, 0);
    let id = Oid::ZERO_SHA1;
    IndexEntry {
        ctime: zero,
        mtime: zero,
        dev: 0,
        ino: 0,
        mode: 0,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: Vec::new(),
    }
}
