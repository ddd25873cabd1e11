//! Objects that cannot be read, because a bad disk or a power cut emptied, changed or removed them: which ones a commit
//! needs, and how they are stored again. Called before an agent's work is committed, by a resume, a rollback and the doctor.
//!
//! Git writes no object whose file exists, whatever is in that file. So a damaged one has to make room first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Odb, Oid};
use lanewright_files::atomic;
use lanewright_files::directory::{create_directories, free_name, sync_directory};
use lanewright_model::CommitId;

use crate::command::{Git, Result, io_error, nul_separated, path_text};
use crate::fast::durable;
use crate::fast::libgit2::oid;
use crate::recovery::unreadable_commits::complaint_about;
use crate::repo::{Repository, loose};
use crate::snapshot::index::write_all_objects;

/// An object that a commit needs and that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostObject {
    pub object: String,
    /// Its path in the commit; empty: the commit itself, one before it, or its root directory.
    pub path: String,
    pub reason: String,
}

/// The largest object of which every byte is read. Of a larger one only its kind and size are.
const LARGEST: usize = 16 << 20;

/// How many commits before one are read at most.
const MOST_COMMITS: usize = 1000;

/// Which of `tips` cannot be read, each with the objects that are lost: of the commit, of those before it up to `bases`,
/// and of its tree. What the tree of the first base holds in the same place is not read, so the cost is that of the changes.
pub fn lost_objects(
    repository: &Repository,
    bases: &[CommitId],
    tips: &BTreeSet<CommitId>,
) -> Result<BTreeMap<CommitId, Vec<LostObject>>> {
    let examined = repository.examine(|git| {
        let bases = bases.iter().map(oid).collect::<Result<Vec<_>, _>>()?;
        let mut examination = Examination { git, odb: git.odb()?, bases, known: HashMap::new(), lost: Vec::new() };
        let mut all = BTreeMap::new();
        for tip in tips {
            examination.commits(oid(tip)?);
            all.insert(tip.clone(), std::mem::take(&mut examination.lost));
        }
        Ok(all)
    });
    let mut lost = match examined {
        Some(lost) => lost,
        None => tips.iter().map(|tip| Ok((tip.clone(), complaint_about(repository, tip)?))).collect::<Result<_>>()?,
    };
    lost.retain(|_, lost| !lost.is_empty());
    Ok(lost)
}

struct Examination<'a> {
    git: &'a git2::Repository,
    odb: Odb<'a>,
    bases: Vec<Oid>,
    /// What is wrong with each object that was read.
    known: HashMap<Oid, Option<String>>,
    lost: Vec<LostObject>,
}

impl Examination<'_> {
    /// Reads a commit, its tree, and the commits before it that no base has.
    fn commits(&mut self, tip: Oid) {
        let mut open = vec![tip];
        let mut seen = BTreeSet::new();
        while let Some(commit) = open.pop().filter(|_| seen.len() < MOST_COMMITS) {
            let is_base = self.bases.contains(&commit);
            if is_base || !seen.insert(commit) || !self.is_whole(commit, "") {
                continue;
            }
            let Ok(found) = self.git.find_commit(commit) else { continue };
            if commit == tip {
                let base = self.bases.first().and_then(|base| Some(self.git.find_commit(*base).ok()?.tree_id()));
                self.tree(found.tree_id(), base, "");
            }
            let descends = |parent: &Oid| {
                self.bases.iter().any(|base| self.git.graph_descendant_of(*base, *parent).is_ok_and(|it| it))
            };
            open.extend(found.parent_ids().filter(|parent| !descends(parent)).collect::<Vec<_>>());
        }
    }

    fn tree(&mut self, tree: Oid, base: Option<Oid>, path: &str) {
        if base == Some(tree) || !self.is_whole(tree, path) {
            return;
        }
        let Ok(found) = self.git.find_tree(tree) else { return };
        let base = base.and_then(|base| self.git.find_tree(base).ok());
        for entry in &found {
            let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let before = base.as_ref().and_then(|base| entry_id(base, entry.name_bytes()));
            match entry.kind() {
                Some(ObjectType::Tree) => self.tree(entry.id(), before, &path),
                Some(ObjectType::Blob) if before != Some(entry.id()) => drop(self.is_whole(entry.id(), &path)),
                // The commits of submodules are in other repositories.
                _ => {}
            }
        }
    }

    fn is_whole(&mut self, object: Oid, path: &str) -> bool {
        let reason = self.known.entry(object).or_insert_with(|| fault_of(&self.odb, object));
        let lost =
            reason.clone().map(|reason| LostObject { object: object.to_string(), path: path.to_owned(), reason });
        let is_whole = lost.is_none();
        self.lost.extend(lost);
        is_whole
    }
}

fn entry_id(tree: &git2::Tree<'_>, name: &[u8]) -> Option<Oid> {
    tree.iter().find(|entry| entry.name_bytes() == name).map(|entry| entry.id())
}

/// What is wrong with an object. Reading it all compares it with its name.
fn fault_of(odb: &Odb<'_>, object: Oid) -> Option<String> {
    let read = odb.read_header(object).and_then(|(size, _)| match size > LARGEST {
        true => Ok(()),
        false => odb.read(object).map(drop),
    });
    match read {
        Ok(()) => None,
        Err(error) if error.code() == ErrorCode::NotFound => Some("is missing".to_owned()),
        Err(error) => Some(format!("is damaged ({})", error.message())),
    }
}

/// Moves the files of damaged objects out of the way of whole ones, to where they are kept, and returns that directory.
pub fn set_damaged_objects_aside(repository: &Repository, objects: &BTreeSet<String>) -> Result<Option<PathBuf>> {
    let common = repository.common_dir();
    let mut place = None;
    for (object, file) in objects.iter().filter_map(|object| Some((object, loose(common, object)?))) {
        if file.exists() {
            let kept = place.insert(common.join(KEPT)).join(object);
            create_directories(common, Path::new(KEPT))?;
            atomic::rename(&file, &free_name(&kept, ".damaged-"))?;
            file.parent().map_or(Ok(()), sync_directory)?;
        }
    }
    Ok(place)
}

/// Where damaged objects are kept, below git's directory.
const KEPT: &str = "lanewright/damaged";

/// Stores again what the files of `worktree` or its index make, and git cannot read: `objects`, and those that only a lost
/// commit or directory leads to. Every file is read.
///
/// The objects are made in a directory of their own, where git sees no other: also those that a damaged pack has.
pub fn store_objects_again(repository: &Repository, worktree: &Path, objects: &BTreeSet<String>) -> Result<usize> {
    write_all_objects(worktree, |made| {
        let made = loose_objects(made)?;
        let faults = repository.examine(|git| {
            let odb = git.odb()?;
            let is_lost = |object: &String| Ok(fault_of(&odb, Oid::from_str(object)?).is_some());
            made.keys()
                .filter_map(|object| is_lost(object).map(|lost| lost.then(|| object.clone())).transpose())
                .collect()
        });
        let mut written = Vec::new();
        for object in faults.as_ref().unwrap_or(objects) {
            let (Some(file), Some(to)) = (made.get(object), loose(repository.common_dir(), object)) else { continue };
            set_damaged_objects_aside(repository, &BTreeSet::from([object.clone()]))?;
            let below = &Path::new("objects").join(&object[..2]);
            create_directories(repository.common_dir(), below)?;
            atomic::rename(file, &to)?;
            written.extend(to.parent().map(Path::to_owned).into_iter().chain([to]));
        }
        durable::sync_paths(&written)?;
        Ok(written.len() / 2)
    })
}

/// The files of the objects in an object directory without packs.
fn loose_objects(directory: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let entries =
        |of: &Path| std::fs::read_dir(of)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found = BTreeMap::new();
    for shard in entries(directory).map_err(io_error("read", directory))?.iter().filter(|it| name(it).len() == 2) {
        for file in entries(shard).map_err(io_error("read", shard))? {
            found.insert(format!("{}{}", name(shard), name(&file)), file);
        }
    }
    Ok(found)
}

/// Stores objects again that git has lost, from the files of `worktree`: what its index and its head since `base` name.
/// An index that still names lost objects then is made again as the head has it. Returns how many objects were lost and
/// are stored again.
///
/// Git protects objects that nothing refers to yet only by their age, which `git gc --prune=now` ignores. An object is
/// named by its content, so the files of a worktree are a copy of most of them.
pub fn restore_lost_objects(repository: &Repository, worktree: &Path, base: &CommitId) -> Result<usize> {
    let lost = named_and_lost(worktree, base)?;
    if lost.is_empty() {
        return Ok(0);
    }
    store_objects_again(repository, worktree, &lost)?;
    if !lost_in_index(worktree)?.is_empty() {
        repository.make_index(worktree)?;
    }
    Ok(lost.len().saturating_sub(named_and_lost(worktree, base)?.len()))
}

/// The objects that the index of `worktree`, or its head since `base`, names and git has not.
fn named_and_lost(worktree: &Path, base: &CommitId) -> Result<BTreeSet<String>> {
    let mut lost = lost_in_index(worktree)?;
    let git = Git::new(worktree).args(["rev-list", "--objects", "--missing=print", "HEAD", "--not", base.as_str()]);
    let listing = git.attempt()?;
    let listing = String::from_utf8_lossy(&listing.stdout);
    lost.extend(listing.lines().filter_map(|line| Some(line.strip_prefix('?')?.to_owned())));
    Ok(lost)
}

fn lost_in_index(worktree: &Path) -> Result<BTreeSet<String>> {
    let staged = Git::new(worktree).reading_only().args(["ls-files", "-z", "--stage"]).run()?;
    let object = |entry| path_text(entry).split(' ').nth(1).map(|object| format!("{object}\n"));
    // The commits of submodules are in other repositories.
    let own = nul_separated(&staged).filter(|entry| !entry.starts_with(b"160000 "));
    let names: BTreeSet<String> = own.filter_map(object).collect();
    let list = names.into_iter().collect::<String>().into_bytes();
    let kinds = Git::new(worktree).args(["cat-file", "--batch-check=%(objecttype)"]).input(list).run()?;
    let missing = |line: &str| line.strip_suffix(" missing").map(str::to_owned);
    Ok(String::from_utf8_lossy(&kinds).lines().filter_map(missing).collect())
}
