//! Refs, commits, objects and indexes, read and written without a process.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Once;

use git2::{ConfigLevel, ErrorCode, IndexEntryExtendedFlag, IndexEntryFlag, ObjectType, Oid, RepositoryOpenFlags};
use lanewright_files::{atomic, regular_file, remove_unfinished};
use lanewright_model::CommitId;

use crate::command::{entry_behind, link_target};
use crate::repo::{Guarded, Repository, Stamps};

/// Objects and refs are on disk before libgit2 reports them, as with the git program. It has no other way to be configured so.
const DURABLE: &str = "[core]\n\tfsyncObjectFiles = true\n";

impl Repository {
    /// `None`: libgit2 cannot answer. It reads no SHA-256 repositories, and knows fewer extensions and trusted owners.
    pub(super) fn in_process<T>(
        &self,
        question: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
    ) -> Option<T> {
        let common = self.common_dir();
        self.handles.with([common, common], || open(common), question)
    }

    /// The same for what writes objects, which are not durable then.
    pub(super) fn write_in_process<T>(
        &self,
        write: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
    ) -> Option<T> {
        self.may_write_in_process().then(|| self.in_process(write)).flatten()
    }

    /// The same in a repository that is opened for this question: nothing is known from before, such as the contents of an
    /// object that was damaged since.
    pub(crate) fn examine<T>(&self, question: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>) -> Option<T> {
        question(&open(self.common_dir()).ok()?).ok()
    }

    /// Whether libgit2 may write into the repository: what others are to write to as well (`core.sharedRepository`) gets its
    /// permissions from git alone.
    fn may_write_in_process(&self) -> bool {
        let own = |value: &str| ["umask", "false", "0", "no", "off", ""].contains(&value.to_ascii_lowercase().as_str());
        self.configuration().is_ok_and(|known| known.get("core.sharedrepository").is_none_or(own))
    }
}

/// The first paragraph of a commit's message, as one line.
pub(crate) fn subject_of(repository: &Repository, commit: &CommitId) -> Option<String> {
    repository.in_process(|git| {
        let commit = git.find_commit(oid(commit)?)?;
        Ok(String::from_utf8_lossy(commit.summary_bytes().unwrap_or_default()).into_owned())
    })
}

/// Where the ref `name` (a full name) leads to; `Some(None)`: there is no such ref.
pub(crate) fn commit_at(repository: &Repository, name: &str) -> Option<Option<CommitId>> {
    repository.in_process(|git| match git.find_reference(name) {
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        found => commit_id(found?.peel_to_commit()?.id()).map(Some),
    })
}

/// What tags among `objects` lead to; nothing for other objects, and for what is lost.
pub(crate) fn peeled<'o>(
    repository: &Repository,
    objects: impl Iterator<Item = &'o str>,
) -> Option<Vec<Option<String>>> {
    repository.in_process(|git| {
        let of = |object: &str| {
            let found = git.find_object(Oid::from_str(object).ok()?, Some(ObjectType::Tag)).ok()?;
            Some(found.peel(ObjectType::Any).ok()?.id().to_string())
        };
        Ok(objects.map(of).collect())
    })
}

/// What the ref `name` (a full name) leads to, which may be lost; `Some(None)`: there is no such ref.
pub(crate) fn target_of(repository: &Repository, name: &str) -> Option<Option<CommitId>> {
    repository.in_process(|git| match git.find_reference(name) {
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        found => found?.resolve()?.target().map(commit_id).transpose(),
    })
}

pub(crate) fn is_ancestor(repository: &Repository, ancestor: &CommitId, descendant: &CommitId) -> Option<bool> {
    repository.in_process(|git| descends(git, oid(ancestor)?, oid(descendant)?))
}

/// The best common ancestor; `Some(None)`: there is none.
pub(crate) fn merge_base(repository: &Repository, one: &CommitId, other: &CommitId) -> Option<Option<CommitId>> {
    repository.in_process(|git| match git.merge_base(oid(one)?, oid(other)?) {
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        found => commit_id(found?).map(Some),
    })
}

/// Whether `commit` changed something since its history parted from that of `tip`, and a merge of it into `tip` would
/// change no file. Attributes that name a merge driver are not looked at.
pub(crate) fn merges_into_nothing(repository: &Repository, tip: &CommitId, commit: &CommitId) -> Option<bool> {
    repository.examine(|git| {
        // A merge writes the contents that it makes.
        git.odb()?.add_new_mempack_backend(i32::MAX)?;
        let (tip, commit) = (git.find_commit(oid(tip)?)?, git.find_commit(oid(commit)?)?);
        let Ok(base) = git.merge_base(tip.id(), commit.id()) else { return Ok(false) };
        if git.find_commit(base)?.tree_id() == commit.tree_id() {
            return Ok(false);
        }
        let merged = git.merge_commits(&tip, &commit, None)?;
        let changes = || git.diff_tree_to_index(Some(&tip.tree()?), Some(&merged), None);
        Ok(!merged.has_conflicts() && changes()?.deltas().len() == 0)
    })
}

/// The refs whose names match `pattern`, each with the object that it leads to, which may be lost.
pub(crate) fn references(repository: &Repository, pattern: &str) -> Option<Vec<(String, CommitId)>> {
    // They are listed before the others, so one that `git pack-refs` moves there meanwhile may be missed.
    let packed = Stamps::of([repository.common_dir().join("packed-refs")]);
    let broken = || git2::Error::from_str("it leads nowhere");
    let listed = repository.in_process(|git| {
        let named = |reference: git2::Reference<'_>| {
            let object = reference.resolve()?.target().ok_or_else(broken)?;
            Ok((reference.name()?.to_owned(), commit_id(object)?))
        };
        git.references_glob(pattern)?.map(|reference| named(reference?)).collect()
    });
    listed.filter(|_| packed.are_current())
}

/// A path that two commits, or a commit and an index, hold differently.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Difference {
    pub(crate) path: Vec<u8>,
    /// Its mode in the first; 0: it is not there.
    pub(crate) from: u32,
    /// Its mode in the second.
    pub(crate) to: u32,
}

pub(crate) fn differences(repository: &Repository, from: &CommitId, to: &CommitId) -> Option<Vec<Difference>> {
    repository.in_process(|git| compared(git, from, git.find_commit(oid(to)?)?.tree_id()))
}

/// How the index in `file` differs from `commit`.
pub(crate) fn staged(repository: &Repository, file: &Path, commit: &CommitId) -> Option<Vec<Difference>> {
    let compare = || {
        let git = open(repository.common_dir())?;
        // Trees that the index has not kept are made in memory.
        git.odb()?.add_new_mempack_backend(FIRST)?;
        compared(&git, commit, open_index(file)?.write_tree_to(&git)?)
    };
    compare().ok()
}

/// The priority of a place for objects before which no other comes.
pub(super) const FIRST: i32 = 1000;

/// What two trees hold at a path that they hold differently: an object and its mode each; `None`: nothing.
#[derive(Debug)]
pub(super) struct ChangedEntry {
    pub(super) path: Vec<u8>,
    pub(super) from: Option<(Oid, u32)>,
    pub(super) to: Option<(Oid, u32)>,
}

fn compared(git: &git2::Repository, from: &CommitId, to: Oid) -> Result<Vec<Difference>, git2::Error> {
    let changed = changed_entries(git, git.find_commit(oid(from)?)?.tree_id(), to)?;
    let mode = |entry: Option<(Oid, u32)>| entry.map_or(0, |(_, mode)| mode);
    let difference = |it: ChangedEntry| Difference { path: it.path, from: mode(it.from), to: mode(it.to) };
    Ok(changed.into_iter().map(difference).collect())
}

/// Not libgit2's own comparison, which reads the directories that are the same in both, too.
pub(super) fn changed_entries(git: &git2::Repository, from: Oid, to: Oid) -> Result<Vec<ChangedEntry>, git2::Error> {
    let mut found = Vec::new();
    compare(git, [Some(from), Some(to)], b"", &mut found)?;
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Compares two directories, each a tree or nothing, at `prefix`.
fn compare(
    git: &git2::Repository,
    [from, to]: [Option<Oid>; 2],
    prefix: &[u8],
    found: &mut Vec<ChangedEntry>,
) -> Result<(), git2::Error> {
    let (mut before, after) = (entries(git, from)?, entries(git, to)?);
    let mut pairs: Vec<_> = after.into_iter().map(|(name, new)| (before.remove(&name), Some(new), name)).collect();
    pairs.extend(before.into_iter().map(|(name, old)| (Some(old), None, name)));
    for (old, new, name) in pairs.into_iter().filter(|(old, new, _)| old != new) {
        let path = [prefix, &name].concat();
        let tree = |entry: Option<(Oid, u32)>| entry.filter(|(_, mode)| *mode == TREE).map(|(tree, _)| tree);
        if tree(old).is_some() || tree(new).is_some() {
            compare(git, [tree(old), tree(new)], &[&path, &b"/"[..]].concat(), found)?;
        }
        let other = |entry: Option<(Oid, u32)>| entry.filter(|(_, mode)| *mode != TREE);
        let (from, to) = (other(old), other(new));
        if from.is_some() || to.is_some() {
            found.push(ChangedEntry { path, from, to });
        }
    }
    Ok(())
}

/// The mode of a directory.
const TREE: u32 = 0o040_000;

fn entries(git: &git2::Repository, tree: Option<Oid>) -> Result<BTreeMap<Vec<u8>, (Oid, u32)>, git2::Error> {
    let Some(tree) = tree else { return Ok(BTreeMap::new()) };
    let entry = |it: git2::TreeEntry<'_>| (it.name_bytes().to_vec(), (it.id(), canonical(it.filemode_raw())));
    Ok(git.find_tree(tree)?.iter().map(entry).collect())
}

/// The mode as git compares it: trees of old or foreign programs have files with other permissions, such as 100664.
fn canonical(mode: i32) -> u32 {
    match mode.cast_unsigned() {
        file if file & 0o170_000 == 0o100_000 => {
            if file & 0o100 == 0 {
                0o100_644
            } else {
                0o100_755
            }
        }
        other => other,
    }
}

pub(super) fn open_index(file: &Path) -> Result<git2::Index, git2::Error> {
    let index = git2::Index::open(file)?;
    // To git, what is only intended to be added (`git add -N`) is not staged.
    let intended = |entry: git2::IndexEntry| entry.flags_extended & IndexEntryExtendedFlag::INTENT_TO_ADD.bits() != 0;
    if index.iter().any(intended) { Err(git2::Error::from_str("it has no content yet")) } else { Ok(index) }
}

/// The tree of the index in `file`, written and not yet durable.
pub(crate) fn tree_of_index(repository: &Repository, file: &Path) -> Option<String> {
    repository.write_in_process(|git| Ok(open_index(file)?.write_tree_to(git)?.to_string()))
}

pub(crate) fn tree_of(repository: &Repository, commit: &CommitId) -> Option<String> {
    repository.in_process(|git| Ok(git.find_commit(oid(commit)?)?.tree_id().to_string()))
}

/// The trailers of a commit's message; none of a commit that cannot be read.
pub fn trailers_of(repository: &Repository, commit: &CommitId) -> BTreeMap<String, String> {
    let read = repository.in_process(|git| {
        let commit = git.find_commit(oid(commit)?)?;
        Ok(trailers_in(&String::from_utf8_lossy(commit.message_bytes())))
    });
    read.unwrap_or_default()
}

/// The trailers of a message; of several of one name the last.
pub(crate) fn trailers_in(message: &str) -> BTreeMap<String, String> {
    let Ok(trailers) = git2::message_trailers_strs(message) else { return BTreeMap::new() };
    trailers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What `pick` finds in the messages of the newest `most` commits that `tip` holds, the newest first.
pub(crate) fn in_messages<T>(
    repository: &Repository,
    tip: &CommitId,
    most: usize,
    pick: &dyn Fn(CommitId, &str) -> Option<T>,
) -> Option<Vec<T>> {
    repository.in_process(|git| {
        let mut walk = git.revwalk()?;
        walk.set_sorting(git2::Sort::TIME)?;
        walk.push(oid(tip)?)?;
        let mut found = Vec::new();
        for id in walk.take(most) {
            let id = id?;
            let commit = git.find_commit(id)?;
            found.extend(pick(commit_id(id)?, &String::from_utf8_lossy(commit.message_bytes())));
        }
        Ok(found)
    })
}

pub(crate) fn contents(repository: &Repository, object: &str) -> Option<Vec<u8>> {
    repository.in_process(|git| Ok(git.find_blob(Oid::from_str(object)?)?.content().to_vec()))
}

/// A ref that is to be set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefUpdate<'a> {
    /// The full name.
    pub(crate) name: &'a str,
    /// Where it must be now; `None`: it must not exist.
    pub(crate) old: Option<&'a CommitId>,
    pub(crate) to: &'a CommitId,
    /// The note in the reflog, also in that of the head of the worktree in which it is done, if that is on the ref.
    pub(crate) why: &'a str,
}

/// Sets a ref of the user's, durably.
pub(crate) fn set_reference(repository: &Repository, worktree: &Path, update: &RefUpdate<'_>) -> Option<()> {
    change(repository, worktree, |git| set(git, update))
}

/// Sets a ref of Lanewright's. After a power cut it may be as before, or empty: the run log says where it belongs.
pub(crate) fn set_own_reference(repository: &Repository, worktree: &Path, update: &RefUpdate<'_>) -> Option<()> {
    change_own(repository, worktree, |git| set(git, update))
}

fn set(git: &git2::Repository, update: &RefUpdate<'_>) -> Result<(), git2::Error> {
    let RefUpdate { name, old, to, why } = *update;
    let set = match old {
        Some(old) => git.reference_matching(name, oid(to)?, true, oid(old)?, why),
        None => git.reference(name, oid(to)?, false, why),
    };
    set.map(drop)
}

/// Puts the head of `worktree`, one of Lanewright's, on no branch, at `commit`.
pub(crate) fn detach(repository: &Repository, worktree: &Path, commit: &CommitId, why: &str) -> Option<()> {
    change_own(repository, worktree, |git| git.reference("HEAD", oid(commit)?, true, why).map(drop))
}

/// Deletes a ref of Lanewright's that is at `expected` and not packed, not yet durably; `None`: it did not.
pub(crate) fn delete_reference(repository: &Repository, name: &str, expected: &CommitId) -> Option<()> {
    let deleted = change_own(repository, repository.main_worktree(), |git| {
        let mut reference = git.find_reference(name)?;
        let as_expected = reference.target() == Some(oid(expected)?);
        if as_expected { reference.delete().map(|()| true) } else { Ok(false) }
    });
    deleted.filter(|deleted| *deleted).map(drop)
}

/// Makes a commit, not yet durable, by `author`: a name and an address.
pub(crate) fn commit(
    repository: &Repository,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
    author: (&str, &str),
) -> Option<CommitId> {
    repository.write_in_process(|git| {
        let author = git2::Signature::now(author.0, author.1)?;
        let tree = git.find_tree(Oid::from_str(tree)?)?;
        let parents = parents.iter().map(|parent| git.find_commit(oid(parent)?));
        let parents = parents.collect::<Result<Vec<_>, git2::Error>>()?;
        commit_id(git.commit(None, &author, &author, message, &tree, &parents.iter().collect::<Vec<_>>())?)
    })
}

/// Whether a file holds, byte by byte, what `blob` does.
pub(crate) fn holds(file: &Path, blob: Oid) -> bool {
    Oid::hash_file(ObjectType::Blob, file).is_ok_and(|found| found == blob)
}

pub(crate) fn blob_of(bytes: &[u8]) -> Option<String> {
    Oid::hash_object(ObjectType::Blob, bytes).ok().map(|blob| blob.to_string())
}

/// A commit's message as `git commit --cleanup=whitespace` stores it.
pub(crate) fn clean_message(text: &str) -> String {
    git2::message_prettify(text, None).unwrap_or_else(|_| text.to_owned())
}

pub(crate) struct IndexEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    /// The blob of a file; `None`: its name is not of libgit2's kind.
    pub(crate) object: Option<Oid>,
    /// Whether it is one side of a conflict.
    pub(crate) conflicts: bool,
    /// Whether git assumes it to be unchanged.
    pub(crate) assumed: bool,
    pub(crate) skipped: bool,
    /// The lower half of the file's size when git last looked at it; `None`: unknown.
    pub(crate) size: Option<u32>,
}

pub(crate) fn index_entries(file: &Path) -> Option<Vec<IndexEntry>> {
    let index = git2::Index::open(file).ok()?;
    let entry = |entry: git2::IndexEntry| IndexEntry {
        path: entry.path,
        mode: entry.mode,
        object: Some(entry.id),
        conflicts: entry.flags & STAGE != 0,
        assumed: entry.flags & IndexEntryFlag::VALID.bits() != 0,
        skipped: entry.flags_extended & IndexEntryExtendedFlag::SKIP_WORKTREE.bits() != 0,
        size: Some(entry.file_size),
    };
    Some(index.iter().map(entry).collect())
}

/// The bits of an entry's flags that are not 0 in a conflict.
const STAGE: u16 = 0x3000;

/// Whether the index in `file` exists and cannot be read.
pub(crate) fn is_damaged_index(file: &Path) -> bool {
    file.is_file() && git2::Index::open(file).is_err()
}

/// Changes something durably at `place`, a worktree or the common directory.
pub(super) fn change<T>(
    repository: &Repository,
    place: &Path,
    act: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
) -> Option<T> {
    if !repository.may_write_in_process() {
        return None;
    }
    let own = repository.own_directory().ok()?;
    let settings = own.join("libgit2.config");
    let is_written = || regular_file::read(&settings).is_ok_and(|known| known == DURABLE.as_bytes());
    if !is_written() {
        let written = repository.holding(Guarded::Settings, |_| {
            // Processes that found them written meanwhile have unfinished files of their own there.
            if !is_written() {
                remove_unfinished(&own)?;
                atomic::write(&settings, DURABLE.as_bytes())?;
            }
            Ok(())
        });
        written.ok()?;
    }
    let opened = || open_durable(place, &settings);
    if place == repository.main_worktree() {
        return repository.handles.with([place, repository.common_dir()], opened, act);
    }
    // Not kept: a worktree may be made again.
    opened().and_then(|git| act(&git)).ok()
}

/// The same without waiting for the disk.
fn change_own<T>(
    repository: &Repository,
    place: &Path,
    act: impl FnOnce(&git2::Repository) -> Result<T, git2::Error>,
) -> Option<T> {
    if place == repository.main_worktree() {
        return repository.write_in_process(act);
    }
    // Not kept: a worktree may be made again.
    repository.may_write_in_process().then(|| open(place).and_then(|git| act(&git)).ok()).flatten()
}

fn open_durable(place: &Path, settings: &Path) -> Result<git2::Repository, git2::Error> {
    let git = open(place)?;
    git.config()?.add_file(settings, ConfigLevel::App, true)?;
    // Where it does not know of the setting, it must not write.
    match git.config()?.get_bool("core.fsyncObjectFiles")? {
        true => Ok(git),
        false => Err(git2::Error::from_str("it would not write durably")),
    }
}

pub(super) fn open(place: &Path) -> Result<git2::Repository, git2::Error> {
    static OPTIONS: Once = Once::new();
    OPTIONS.call_once(|| {
        // What git has lost must not be believed to be there.
        git2::opts::enable_caching(false);
        // It would look at every object that a new tree names, also at those of its parent's. The new ones are looked at
        // when they are made durable.
        git2::opts::strict_object_creation(false);
    });
    // Never by the settings of an agent that works there.
    let behind = link_target(place).and_then(|target| entry_behind(&target));
    git2::Repository::open_ext(behind.as_deref().unwrap_or(place), RepositoryOpenFlags::NO_SEARCH, &[] as &[&Path])
}

pub(crate) fn oid(commit: &CommitId) -> Result<Oid, git2::Error> {
    Oid::from_str(commit.as_str())
}

fn commit_id(object: Oid) -> Result<CommitId, git2::Error> {
    CommitId::new(&object.to_string()).map_err(|_| git2::Error::from_str("it is not the name of a commit"))
}

/// How many commits are looked at one by one: mostly the one was made of the other a few commits before.
const NEAR: usize = 12;

fn descends(git: &git2::Repository, ancestor: Oid, descendant: Oid) -> Result<bool, git2::Error> {
    let (mut seen, mut ahead) = (Vec::new(), VecDeque::from([descendant]));
    while let Some(commit) = ahead.pop_front().filter(|_| seen.len() < NEAR) {
        if commit == ancestor {
            return Ok(true);
        }
        if !seen.contains(&commit) {
            seen.push(commit);
            ahead.extend(git.find_commit(commit)?.parent_ids());
        }
    }
    git.graph_descendant_of(descendant, ancestor)
}

#[cfg(test)]
#[path = "libgit2_tests.rs"]
mod tests;
