//! What must survive a power failure: files of ours, directories, refs, and the objects behind a commit.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use git2::{ObjectType, Oid, Tree};
use rustix::fs::Mode;

use super::error::{GitError, io_error};
use super::program::Git;
use super::repository::Repository;
use crate::fs::{ORDINARY, PRIVATE, Staged, atomic, handle, regular_file};
use crate::model::CommitId;

/// The prefix of a file that is being written; one that is left over belongs to a dead process.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// Writes a whole file, readable by its owner only, in one step.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    let mut staged = staged(unfinished(), path, PRIVATE, bytes)?;
    staged.put()?;
    Ok(staged.sync_name()?)
}

/// The same as [`write`] where nothing may be there yet. `false`: something is.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<bool, GitError> {
    put_new(staged(unfinished(), path, PRIVATE, bytes)?)
}

/// The same by way of the file `temporary` beside it, for directories in which nothing clears away what is half written.
pub(crate) fn create_by_way_of(temporary: &Path, path: &Path, bytes: &[u8]) -> Result<bool, GitError> {
    atomic::remove(temporary)?;
    put_new(staged(temporary.file_name().unwrap_or_default().to_owned(), path, ORDINARY, bytes)?)
}

fn unfinished() -> OsString {
    format!("{UNFINISHED}{}", uuid::Uuid::now_v7()).into()
}

fn staged(temporary: OsString, path: &Path, mode: Mode, bytes: &[u8]) -> Result<Staged, GitError> {
    let staged = Staged::create_as(temporary, path, mode)?;
    staged.write(bytes)?;
    staged.sync()?;
    Ok(staged)
}

fn put_new(mut staged: Staged) -> Result<bool, GitError> {
    Ok(staged.put_new()? && staged.sync_name().map(|()| true)?)
}

/// Removes what was being written in a directory when its writer died. Who writes there holds a lock, as the caller does.
pub(crate) fn remove_unfinished(directory: &Path) -> Result<(), GitError> {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file durably; none there is as good.
pub(crate) fn remove(path: &Path) -> Result<(), GitError> {
    Ok(atomic::remove_durably(path)?)
}

/// Makes the entries of a directory durable; no directory there is as good.
pub(crate) fn directory(path: &Path) -> Result<(), GitError> {
    sync(path).map_err(io_error("sync", path))
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn sync(path: &Path) -> std::io::Result<()> {
    let opened = if path.is_dir() { regular_file::open_directory(path) } else { regular_file::open(path) };
    match opened {
        Ok(file) => handle::sync(path, &file),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the ref `name` durable. Git syncs the file; the directory entry is ours to sync.
pub(crate) fn reference(repository: &Repository, name: &str) -> Result<(), GitError> {
    directory(parent(&repository.common_dir().join(name)))
}

/// Makes everything durable that `tip` reaches and `since` does not: an agent's own git does not sync what it writes,
/// and git does not write an object a second time.
pub(crate) fn objects(repository: &Repository, tip: &CommitId, since: &[CommitId]) -> Result<(), GitError> {
    let known = repository.durable_objects();
    let has = |object| known.has(repository, object);
    match repository.in_process(|git| new_objects(git, &has, tip, since)) {
        Some(objects) => {
            sync_objects(repository, &names(&objects))?;
            repository.recent_objects().remember(repository, objects.iter().copied().take(REMEMBERED));
            known.add(repository, objects);
            Ok(())
        }
        None => sync_objects(repository, &listed_objects(repository, tip, since)?),
    }
}

/// How many objects of one commit are remembered at most: each is read once more.
const REMEMBERED: usize = 1024;

/// Where git has a loose object.
pub(super) fn loose(repository: &Repository, name: &str) -> Option<PathBuf> {
    Some(repository.common_dir().join("objects").join(name.get(..2)?).join(name.get(2..)?))
}

/// Objects that this process has made durable with everything that they lead to, so that it need not do so again: one
/// snapshot of an agent's work holds mostly what the one before held. Each by its file: one that is pruned and comes back is
/// another.
#[derive(Debug, Clone, Default)]
pub(crate) struct DurableObjects(Arc<Mutex<HashMap<Oid, FileId>>>);

/// Inode and birth of a file.
type FileId = (u64, SystemTime);

fn file_id(file: &Path) -> Option<FileId> {
    let found = std::fs::metadata(file).ok()?;
    Some((found.ino(), found.created().ok()?))
}

impl DurableObjects {
    fn add(&self, repository: &Repository, objects: BTreeSet<Oid>) {
        let files =
            objects.into_iter().filter_map(|object| Some((object, file_id(&loose(repository, &object.to_string())?)?)));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(files);
    }

    fn has(&self, repository: &Repository, object: Oid) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&object).copied();
        known.is_some_and(|known| loose(repository, &object.to_string()).and_then(|file| file_id(&file)) == Some(known))
    }
}

fn sync_objects(repository: &Repository, names: &[String]) -> Result<(), GitError> {
    refuse_lost(repository, names)?;
    let mut paths: Vec<PathBuf> = names.iter().filter_map(|name| loose(repository, name)).collect();
    let directories: BTreeSet<PathBuf> = paths.iter().map(|file| parent(file).to_owned()).collect();
    paths.extend(directories);
    sync_paths(&paths)
}

/// Refuses objects of which git has neither a file nor a place in a pack: they were removed before a ref led to them.
fn refuse_lost(repository: &Repository, names: &[String]) -> Result<(), GitError> {
    let is_loose = |name: &&String| loose(repository, name).is_some_and(|file| file.exists());
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

fn listed_objects(repository: &Repository, tip: &CommitId, since: &[CommitId]) -> Result<Vec<String>, GitError> {
    let git = Git::new(repository.main_worktree()).args(["rev-list", "--objects", "--no-object-names", tip.as_str()]);
    let listing = git.arg("--not").args(since.iter().map(CommitId::as_str)).run()?;
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
    since: &[CommitId],
) -> Result<BTreeSet<Oid>, git2::Error> {
    let since = since.iter().map(|commit| Oid::from_str(commit.as_str())).collect::<Result<Vec<_>, _>>()?;
    let tip = Oid::from_str(tip.as_str())?;
    let commits = match few_new_commits(git, known, tip, &since)? {
        Some(commits) => commits,
        None => new_commits(git, tip, &since)?,
    };
    let mut found = BTreeSet::new();
    for &id in &commits {
        let commit = git.find_commit(id)?;
        let parent = commit.parents().next().map(|parent| parent.tree()).transpose()?;
        found.insert(id);
        gather(git, &commit.tree()?, parent.as_ref(), known, &mut found)?;
    }
    Ok(found)
}

/// What `tip` reaches and `since` does not.
fn new_commits(git: &git2::Repository, tip: Oid, since: &[Oid]) -> Result<Vec<Oid>, git2::Error> {
    let mut walk = git.revwalk()?;
    walk.push(tip)?;
    since.iter().try_for_each(|commit| walk.hide(*commit))?;
    walk.collect()
}

/// So many new commits are looked for without going through the history.
const FEW: usize = 16;

/// The same where every way back from `tip` soon meets one that is known or one of `since`.
fn few_new_commits(
    git: &git2::Repository,
    known: &dyn Fn(Oid) -> bool,
    tip: Oid,
    since: &[Oid],
) -> Result<Option<Vec<Oid>>, git2::Error> {
    let (mut new, mut ahead) = (Vec::new(), vec![tip]);
    while let Some(commit) = ahead.pop() {
        if known(commit) || since.contains(&commit) || new.contains(&commit) {
            continue;
        }
        let parents = git.find_commit(commit)?;
        if new.len() == FEW || parents.parent_count() == 0 {
            return Ok(None);
        }
        new.push(commit);
        ahead.extend(parents.parent_ids());
    }
    Ok(Some(new))
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

fn sync_paths(paths: &[PathBuf]) -> Result<(), GitError> {
    let share = paths.len().div_ceil(SYNCING_THREADS).max(2);
    std::thread::scope(|scope| {
        let threads: Vec<_> = paths.chunks(share).map(|chunk| scope.spawn(|| sync_each(chunk))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn sync_each(paths: &[PathBuf]) -> Result<(), GitError> {
    paths.iter().try_for_each(|path| sync(path).map_err(io_error("sync", path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_object_of_what_is_new_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let place = std::fs::canonicalize(directory.path()).unwrap();
        let git = |arguments: &[&str]| {
            let git = Git::new(&place).configured("user.name=x").configured("user.email=x@localhost");
            git.args(arguments).line().unwrap()
        };
        let commit = |path: &str, text: &str| {
            let path = place.join(path);
            std::fs::create_dir_all(parent(&path)).unwrap();
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
        for since in [vec![], vec![first]] {
            let known = DurableObjects::default();
            let has = |object| known.has(&repository, object);
            let new = |tip| repository.in_process(|git| new_objects(git, &has, tip, &since)).unwrap();
            let found = names(&new(&tip));
            let listed = listed_objects(&repository, &tip, &since).unwrap();
            assert!(listed.len() > 8);
            assert_eq!(listed.into_iter().filter(|name| !found.contains(name)).collect::<Vec<_>>(), [""; 0]);
            // What is known is not looked at again; what is new beside it is.
            known.add(&repository, new(&tip));
            assert_eq!(new(&tip).len(), 0);
            assert_eq!(new(&next).len(), 3, "a commit, its tree, a file");
            // What is written again has to be synced again.
            let file = loose(&repository, tip.as_str()).unwrap();
            let bytes = std::fs::read(&file).unwrap();
            std::fs::remove_file(&file).unwrap();
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(names(&new(&tip)), [tip.as_str()]);
        }
    }
}
