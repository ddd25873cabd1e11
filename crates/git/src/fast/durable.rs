//! Refs and the objects behind a commit, which must survive a power failure, and those that a prune must not take.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid, Tree};
use lanewright_files::directory::sync_if_there;
use lanewright_files::threads::map_shares;
use lanewright_model::CommitId;

use crate::command::{GitError, Result};
use crate::fast::libgit2::{change, oid};
use crate::repo::{Repository, loose};

/// Makes the ref `name` durable: git syncs the file, but not the directory entry.
pub(crate) fn reference(repository: &Repository, name: &str) -> Result<()> {
    let file = repository.common_dir().join(name);
    Ok(file.parent().map_or(Ok(()), sync_if_there)?)
}

/// Makes the deletion of refs durable. Git removes a directory with its last ref.
pub(crate) fn deleted_references(repository: &Repository, names: &[String]) -> Result<()> {
    let files = names.iter().map(|name| repository.common_dir().join(name));
    let nearest = |file: PathBuf| file.ancestors().skip(1).find(|place| place.is_dir()).map(Path::to_owned);
    let directories: BTreeSet<PathBuf> = files.filter_map(nearest).collect();
    Ok(directories.iter().try_for_each(|directory| sync_if_there(directory))?)
}

/// Makes everything durable that `tip` reaches and `since` does not: an agent's own git does not sync what it writes,
/// and git does not write an object a second time.
pub(crate) fn objects<'a>(
    repository: &Repository,
    tip: &CommitId,
    since: impl IntoIterator<Item = &'a CommitId>,
) -> Result<()> {
    let since: Vec<&CommitId> = since.into_iter().collect();
    let known = &repository.durable_objects;
    let has = |object| known.has(repository.common_dir(), object);
    match repository.in_process(|git| new_objects(git, &has, tip, &since)) {
        Some(objects) => {
            sync_objects(repository, &names(&objects))?;
            remember(repository, objects.iter().copied().take(REMEMBERED));
            known.add(repository.common_dir(), objects);
            Ok(())
        }
        None => sync_objects(repository, &listed_objects(repository, tip, &since)?),
    }
}

/// How many objects of one commit are remembered at most: each is read once more.
const REMEMBERED: usize = 1024;

/// The largest object that is remembered, in bytes. A file that large is in a worktree, too.
const LARGEST: usize = 1 << 20;

fn remember(repository: &Repository, objects: impl Iterator<Item = Oid>) {
    let known = |object: &Oid| repository.recent_objects.locked().objects.contains_key(object);
    let new: Vec<Oid> = objects.filter(|object| !known(object)).collect();
    let read = repository.in_process(|git| {
        let odb = git.odb()?;
        let is_small = |object: &Oid| odb.read_header(*object).is_ok_and(|(size, _)| size <= LARGEST);
        let read = |object| odb.read(object).map(|found| (object, found.kind(), found.data().to_vec()));
        new.into_iter().filter(is_small).map(read).collect::<Result<Vec<_>, _>>()
    });
    let mut recent = repository.recent_objects.locked();
    read.into_iter().flatten().for_each(|(object, kind, bytes)| recent.add(object, kind, bytes));
}

impl Repository {
    /// Stores the objects again that this process has made and that git has lost. Returns how many these are.
    pub fn restore_recent_objects(&self) -> usize {
        let recent = self.recent_objects.locked();
        let lost = self.in_process(|git| {
            let odb = git.odb()?;
            Ok(recent.objects.iter().filter(|(object, _)| !odb.exists(**object)).collect::<Vec<_>>())
        });
        let lost = lost.unwrap_or_default();
        let restored = change(self, self.main_worktree(), |git| {
            let odb = git.odb()?;
            lost.iter().try_for_each(|(_, (kind, bytes))| odb.write(*kind, bytes).map(drop))
        });
        restored.map_or(0, |()| lost.len())
    }
}

fn sync_objects(repository: &Repository, names: &[String]) -> Result<()> {
    refuse_lost(repository, names)?;
    let mut paths: Vec<PathBuf> = names.iter().filter_map(|name| loose(repository.common_dir(), name)).collect();
    if !syncs_names_with_files(repository.common_dir()) {
        let directories: BTreeSet<PathBuf> = paths.iter().filter_map(|file| Some(file.parent()?.to_owned())).collect();
        paths.extend(directories);
    }
    sync_paths(&paths)
}

/// Whether the file system makes the name of a file durable with the file, so that the directory needs no sync: true of
/// ext4, XFS, Btrfs and tmpfs. Git relies on it everywhere.
fn syncs_names_with_files(place: &Path) -> bool {
    const KNOWN: [u64; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994];
    rustix::fs::statfs(place).is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| KNOWN.contains(&kind)))
}

/// Refuses objects of which git has neither a file nor a place in a pack: they were removed before a ref led to them.
fn refuse_lost(repository: &Repository, names: &[String]) -> Result<()> {
    // A file that a power cut left empty is none: git writes no object whose file exists.
    let size = |name: &str| Some(loose(repository.common_dir(), name)?.metadata().ok()?.len());
    if let Some(object) = names.iter().find(|name| size(name) == Some(0)) {
        return Err(GitError::LostObject { object: object.clone() });
    }
    let is_loose = |name: &&String| size(name).is_some();
    let packed: Vec<&String> = names.iter().filter(|name| !is_loose(name)).collect();
    if packed.is_empty() {
        return Ok(());
    }
    let lost = repository.in_process(|git| {
        let odb = git.odb()?;
        let is_there = |name: &str| Oid::from_str(name).is_ok_and(|object| odb.exists(object));
        Ok(packed.iter().find(|name| !is_there(name)).map(|name| name.to_string()))
    });
    match lost.flatten() {
        Some(object) => Err(GitError::LostObject { object }),
        None => Ok(()),
    }
}

fn listed_objects(repository: &Repository, tip: &CommitId, since: &[&CommitId]) -> Result<Vec<String>> {
    let git = repository.git().args(["rev-list", "--objects", "--no-object-names", tip.as_str()]);
    let listing = git.arg("--not").args(since.iter().map(|commit| commit.as_str())).run()?;
    Ok(String::from_utf8_lossy(&listing).lines().map(str::to_owned).collect())
}

fn names(objects: &BTreeSet<Oid>) -> Vec<String> {
    objects.iter().map(Oid::to_string).collect()
}

/// The commits that are new, and the objects of each that its first parent does not have in the same place and that are
/// not known. That parent is one of those commits as well, or is durable.
fn new_objects(
    git: &git2::Repository,
    known: &dyn Fn(Oid) -> bool,
    tip: &CommitId,
    since: &[&CommitId],
) -> Result<BTreeSet<Oid>, git2::Error> {
    // What `tip` reaches and `since` does not.
    let mut walk = git.revwalk()?;
    walk.push(oid(tip)?)?;
    since.iter().try_for_each(|commit| walk.hide(oid(commit)?))?;
    let commits = walk.collect::<Result<Vec<_>, _>>()?;
    let mut found = BTreeSet::new();
    for id in commits.into_iter().filter(|id| !known(*id)) {
        let commit = git.find_commit(id)?;
        let parent = commit.parents().next().map(|parent| parent.tree()).transpose()?;
        found.insert(id);
        gather(git, &commit.tree()?, parent.as_ref(), known, &mut found)?;
    }
    Ok(found)
}

fn gather(
    git: &git2::Repository,
    tree: &Tree,
    parent: Option<&Tree>,
    known: &dyn Fn(Oid) -> bool,
    to: &mut BTreeSet<Oid>,
) -> Result<(), git2::Error> {
    if parent.is_some_and(|parent| parent.id() == tree.id()) || known(tree.id()) || !to.insert(tree.id()) {
        return Ok(());
    }
    for entry in tree {
        let before = parent.and_then(|parent| parent.get_name_bytes(entry.name_bytes()));
        match entry.kind() {
            _ if before.as_ref().is_some_and(|before| before.id() == entry.id()) || known(entry.id()) => {}
            Some(ObjectType::Tree) => {
                let before = before.filter(|before| before.kind() == Some(ObjectType::Tree));
                let before = before.map(|before| git.find_tree(before.id())).transpose()?;
                gather(git, &git.find_tree(entry.id())?, before.as_ref(), known, to)?;
            }
            // A commit of another repository.
            Some(ObjectType::Commit) => {}
            _ => drop(to.insert(entry.id())),
        }
    }
    Ok(())
}

/// Threads that sync at once: they share the file system's commits and the disk's flushes.
const SYNCING_THREADS: usize = 32;

pub(crate) fn sync_paths(paths: &[PathBuf]) -> Result<()> {
    let share = paths.len().div_ceil(SYNCING_THREADS).max(2);
    Ok(map_shares(paths, share, |path| sync_if_there(path)).into_iter().collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::command::program::Git;
    use crate::repo::known_objects::DurableObjects;

    fn git_in(place: &Path, arguments: &[&str]) -> String {
        let git = Git::new(place).configured("user.name=x").configured("user.email=x@localhost");
        git.args(arguments).line().unwrap()
    }

    #[test]
    fn commit_with_an_emptied_file_is_not_durable() {
        let directory = tempfile::tempdir().unwrap();
        let place = std::fs::canonicalize(directory.path()).unwrap();
        let git = |arguments: &[&str]| git_in(&place, arguments);
        git(&["init", "--quiet"]);
        std::fs::write(place.join("a"), "1").unwrap();
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "-m", "x"]);
        let commit = CommitId::new(&git(&["rev-parse", "HEAD"])).unwrap();
        let blob = git(&["rev-parse", "HEAD:a"]);
        let repository = Repository::discover(&place).unwrap();
        let file = loose(repository.common_dir(), &blob).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "").unwrap();
        let refused = objects(&repository, &commit, []);
        assert!(matches!(&refused, Err(GitError::LostObject { object }) if *object == blob), "{refused:?}");
    }

    #[test]
    fn new_objects_include_all_that_git_lists() {
        let directory = tempfile::tempdir().unwrap();
        let place = std::fs::canonicalize(directory.path()).unwrap();
        let git = |arguments: &[&str]| git_in(&place, arguments);
        let commit = |path: &str, text: &str| {
            let path = place.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            git(&["add", "--all"]);
            git(&["commit", "--quiet", "-m", "x"]);
            CommitId::new(&git(&["rev-parse", "HEAD"])).unwrap()
        };
        git(&["init", "--quiet"]);
        let first = commit("src/deep/a", "1");
        commit("src/deep/b", "2");
        git(&["checkout", "--quiet", "-b", "side", first.as_str()]);
        commit("other/a", "3");
        git(&["checkout", "--quiet", "-"]);
        git(&["merge", "--quiet", "--no-ff", "-m", "merge", "side"]);
        // As before, so that the merge has something nobody else has, and back.
        std::fs::rename(place.join("src"), place.join("file")).unwrap();
        commit("src", "a file now");
        let tip = commit("file/a", "4");
        let repository = Repository::discover(&place).unwrap();
        let next = commit("again", "5");
        for since in [vec![], vec![&first]] {
            let known = DurableObjects::default();
            let has = |object| known.has(repository.common_dir(), object);
            let new = |tip| repository.in_process(|git| new_objects(git, &has, tip, &since)).unwrap();
            let found = names(&new(&tip));
            let listed = listed_objects(&repository, &tip, &since).unwrap();
            assert!(listed.len() > 8);
            assert_eq!(listed.into_iter().filter(|name| !found.contains(name)).collect::<Vec<_>>(), [""; 0]);
            // What is known is not looked at again; what is new beside it is.
            known.add(repository.common_dir(), new(&tip));
            assert_eq!(new(&tip).len(), 0);
            assert_eq!(new(&next).len(), 3, "a commit, its tree, a file");
            // What is written again has to be synced again.
            let file = loose(repository.common_dir(), tip.as_str()).unwrap();
            let bytes = std::fs::read(&file).unwrap();
            std::fs::remove_file(&file).unwrap();
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(names(&new(&tip)), [tip.as_str()]);
        }
    }
}
