//! Paths of a commit that differ only by letter case.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use git2::{ObjectType, Oid};
use lanewright_model::CommitId;

use super::libgit2::oid;
use crate::repo::Repository;

/// Those of `paths`, files of `commit`, from which another path there differs only by letter case, with that.
pub(crate) fn case_twins(
    repository: &Repository,
    commit: &CommitId,
    paths: &[String],
) -> Option<Vec<(String, String)>> {
    repository.in_process(|git| {
        let root = git.find_commit(oid(commit)?)?.tree_id();
        let mut trees = Trees::default();
        let mut found = Vec::new();
        for path in paths {
            found.extend(trees.twin(git, root, path, true)?.map(|twin| (path.clone(), twin)));
        }
        Ok(found)
    })
}

#[derive(Clone)]
struct TreeEntry {
    name: String,
    object: Oid,
    is_tree: bool,
}

/// The entries of trees by their names in lower case.
#[derive(Default)]
struct Trees(BTreeMap<Oid, BTreeMap<String, Vec<TreeEntry>>>);

impl Trees {
    fn alike(&mut self, git: &git2::Repository, tree: Oid, name: &str) -> Result<Vec<TreeEntry>, git2::Error> {
        let entries = match self.0.entry(tree) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let mut entries = BTreeMap::<String, Vec<TreeEntry>>::new();
                for entry in git.find_tree(tree)?.iter() {
                    let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
                    let (lower, is_tree) = (name.to_lowercase(), entry.kind() == Some(ObjectType::Tree));
                    entries.entry(lower).or_default().push(TreeEntry { name, object: entry.id(), is_tree });
                }
                place.insert(entries)
            }
        };
        Ok(entries.get(&name.to_lowercase()).cloned().unwrap_or_default())
    }

    /// Another path of the tree that differs from `path` only by letter case. `is_same`: the tree's own path does not differ.
    fn twin(
        &mut self,
        git: &git2::Repository,
        tree: Oid,
        path: &str,
        is_same: bool,
    ) -> Result<Option<String>, git2::Error> {
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        for TreeEntry { name, object, is_tree } in self.alike(git, tree, first)? {
            let is_same = is_same && name == first;
            match rest {
                None if !is_same && !is_tree => return Ok(Some(name)),
                Some(rest) if is_tree => {
                    if let Some(below) = self.twin(git, object, rest, is_same)? {
                        return Ok(Some(format!("{name}/{below}")));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }
}
