//! New files that lanes' work leaves out: trees that programs make again, files of editors and desktops, large files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use lanewright_files::regular_file;
use lanewright_model::CommitId;
use lanewright_model::text::counted;

use crate::command::{Git, Result, nul_separated, path_text};
use crate::fast::libgit2::IndexEntry;
use crate::query::{copied_in_commits, copies_in, index_entries, untracked, without_known};
use crate::repo::{LeftOutRules, Repository};

/// A file or a tree of new files that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Relative to the worktree; that of a tree ends with `/`, unless a link stands for it.
    pub path: String,
    pub reason: LeftOutReason,
    pub(crate) files: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOutReason {
    /// Programs make its files again.
    Tree,
    /// An editor or a desktop made it.
    Editor,
    /// It was copied from the checkout, where git ignores it.
    Copied,
    /// Git ignores it because of this line of an ignore file.
    Ignored(String),
    /// It has that many bytes.
    Large(u64),
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            LeftOutReason::Tree if !self.path.ends_with('/') => write!(f, "{} (a link)", self.path),
            LeftOutReason::Tree => write!(f, "{} ({})", self.path, counted(self.files.len(), "file")),
            LeftOutReason::Editor => write!(f, "{}", self.path),
            LeftOutReason::Copied => write!(f, "{} (copied from the checkout)", self.path),
            LeftOutReason::Ignored(rule) => write!(f, "{} (ignored by {rule})", self.path),
            LeftOutReason::Large(size) if *size < 10_000_000 => write!(f, "{} ({} kB)", self.path, size.div_ceil(1000)),
            LeftOutReason::Large(size) => write!(f, "{} ({} MB)", self.path, size / 1_000_000),
        }
    }
}

impl LeftOut {
    fn copied(path: &[u8]) -> Self {
        Self { path: path_text(path), reason: LeftOutReason::Copied, files: vec![path.to_vec()] }
    }
}

/// The first line of a file that marks a cache (bford.info/cachedir).
const CACHE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

impl LeftOutRules {
    pub(crate) fn takes(&self, path: &[u8]) -> bool {
        self.take.as_ref().is_some_and(|take| take.allows(&path_text(path)))
    }

    /// Whether any of `paths`, which are new, may have to be left out. Of most lanes none has, which is all that they pay
    /// for.
    fn may_concern<'a>(&self, worktree: &Path, mut paths: impl Iterator<Item = &'a [u8]>) -> bool {
        paths.any(|path| is_suspicious(path) || self.is_large_on_disk(worktree, path).is_some())
    }

    /// The size of a file that is larger on disk than the limit.
    fn is_large_on_disk(&self, worktree: &Path, path: &[u8]) -> Option<u64> {
        let found = fs::symlink_metadata(worktree.join(OsStr::from_bytes(path))).ok()?;
        Some(found.len()).filter(|&size| found.is_file() && self.max_file_size.is_some_and(|limit| size > limit))
    }

    /// Those of the `new` paths that are in trees to leave out, by tree. `tracked` are the paths that are not new: a tree
    /// with one of them is taken.
    fn trees<'a>(
        &self,
        worktree: &Path,
        new: impl Iterator<Item = &'a [u8]> + Clone,
        tracked: &BTreeSet<&[u8]>,
    ) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let is_tracked = |tree: &[u8]| tracked.range(tree..).next().is_some_and(|next| next.starts_with(tree));
        let marked: BTreeSet<&[u8]> = new.clone().filter_map(|path| marked_tree(worktree, path)).collect();
        let mut trees = BTreeMap::<Vec<u8>, Vec<Vec<u8>>>::new();
        for path in new {
            let directories = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..=at]);
            // What is installed into a tree that is tracked belongs to it, trees within included.
            let outermost =
                directories.clone().find(|&tree| is_tree(tree) || (marked.contains(tree) && !is_tracked(tree)));
            if outermost.is_none() && is_link_to_tree(worktree, path) && !self.takes(path) {
                trees.entry(path.to_vec()).or_default().push(path.to_vec());
            }
            if let Some(tree) = outermost.filter(|&tree| !is_tracked(tree) && !self.takes(path)) {
                trees.entry(tree.to_vec()).or_default().push(path.to_vec());
            }
        }
        trees
    }

    /// Those of the `new` paths that are to be left out. `sizes` returns the sizes of files as git stores them.
    fn sort_out(
        &self,
        worktree: &Path,
        new: &[&[u8]],
        tracked: &BTreeSet<&[u8]>,
        sizes: impl FnOnce(&[(&[u8], u64)]) -> Result<Vec<u64>>,
    ) -> Result<Vec<LeftOut>> {
        let trees = self.trees(worktree, new.iter().copied(), tracked);
        let in_trees: BTreeSet<&[u8]> = trees.values().flatten().map(Vec::as_slice).collect();
        let others: Vec<&[u8]> =
            new.iter().copied().filter(|&path| !in_trees.contains(path) && !self.takes(path)).collect();
        let one = |path: &[u8], reason| LeftOut { path: path_text(path), reason, files: vec![path.to_vec()] };
        let (editors, others): (Vec<&[u8]>, Vec<&[u8]>) = others.into_iter().partition(|&path| is_of_editor(path));
        let large: Vec<(&[u8], u64)> =
            others.into_iter().filter_map(|path| Some((path, self.is_large_on_disk(worktree, path)?))).collect();
        let sizes = if large.is_empty() { Vec::new() } else { sizes(&large)? };
        let large = large.iter().zip(sizes).filter(|(_, size)| self.max_file_size.is_some_and(|limit| *size > limit));
        let large: Vec<LeftOut> = large.map(|((path, _), size)| one(path, LeftOutReason::Large(size))).collect();
        let editors = editors.into_iter().map(|path| one(path, LeftOutReason::Editor)).collect();
        let trees = trees.into_iter().map(|(tree, files)| LeftOut {
            path: path_text(&tree),
            reason: LeftOutReason::Tree,
            files,
        });
        Ok([trees.collect(), editors, large].concat())
    }

    /// What is to be left out of the paths that the index of `git` has `after` an addition and not `before`.
    pub(crate) fn left_out_of_addition<'a>(
        &self,
        worktree: &Path,
        [before, after]: [&[IndexEntry]; 2],
        git: impl Fn() -> Git<'a>,
    ) -> Result<Vec<LeftOut>> {
        let new = new_paths(before, after);
        let copies = self.new_copies(worktree, after, &["HEAD"], &git)?;
        if !self.may_concern(worktree, new.iter().copied()) {
            return Ok(copies.into_iter().map(LeftOut::copied).collect());
        }
        let changes = Changes::since(git(), "HEAD")?;
        let (new, known): (Vec<&[u8]>, Vec<&[u8]>) = new.into_iter().partition(|path| changes.added.contains(*path));
        let new: Vec<&[u8]> = new.into_iter().filter(|path| !copies.contains(path)).collect();
        let tracked = before.iter().map(|entry| entry.path.as_slice()).chain(known).collect();
        let mut left_out = self.sort_out(worktree, &new, &tracked, |files| sizes_in_index(&git, files))?;
        left_out.retain(|it| !changes.have_removed_the_like(it));
        left_out.extend(copies.into_iter().map(LeftOut::copied));
        Ok(left_out)
    }

    /// The same of the paths that the index has `after` an addition and none of the `known` commits has: an agent may have
    /// staged them itself.
    pub(crate) fn left_out_of_commit<'a>(
        &self,
        worktree: &Path,
        [before, after]: [&[IndexEntry]; 2],
        known: &[&CommitId],
        git: impl Fn() -> Git<'a>,
    ) -> Result<Vec<LeftOut>> {
        let is_large = |entry: &IndexEntry| match entry.size {
            Some(size) => self.max_file_size.is_some_and(|limit| u64::from(size) > limit),
            None => self.is_large_on_disk(worktree, &entry.path).is_some(),
        };
        let staged_before = || before.iter().any(|entry| is_suspicious(&entry.path) || is_large(entry));
        if !self.may_concern(worktree, new_paths(before, after).into_iter())
            && !staged_before()
            && copies_in(worktree, after)?.is_empty()
        {
            return Ok(Vec::new());
        }
        self.left_out_of_index(worktree, after, known, git)
    }

    /// What is to be left out of the paths of the `index` of `git` that none of the `known` commits has.
    fn left_out_of_index<'a>(
        &self,
        worktree: &Path,
        index: &[IndexEntry],
        known: &[&CommitId],
        git: impl Fn() -> Git<'a>,
    ) -> Result<Vec<LeftOut>> {
        let changes: Vec<Changes> =
            known.iter().map(|commit| Changes::since(git(), commit.as_str())).collect::<Result<_>>()?;
        let paths = index.iter().map(|entry| entry.path.as_slice());
        let is_new = |path: &&[u8]| changes.iter().all(|changes| changes.added.contains(*path));
        let (new, tracked): (Vec<&[u8]>, Vec<&[u8]>) = paths.partition(is_new);
        let known: Vec<&str> = known.iter().map(|commit| commit.as_str()).collect();
        let copies = self.new_copies(worktree, index, &known, &git)?;
        let new: Vec<&[u8]> = new.into_iter().filter(|path| !copies.contains(path)).collect();
        let tracked = tracked.into_iter().collect();
        let mut left_out = self.sort_out(worktree, &new, &tracked, |files| sizes_in_index(&git, files))?;
        left_out.retain(|it| !changes.iter().any(|changes| changes.have_removed_the_like(it)));
        left_out.extend(copies.into_iter().map(LeftOut::copied));
        Ok(left_out)
    }

    /// The paths of the `index` of `git` that hold what was copied into `worktree` and what none of the `known` commits has,
    /// at any path.
    fn new_copies<'a, 'i>(
        &self,
        worktree: &Path,
        index: &'i [IndexEntry],
        known: &[&str],
        git: &impl Fn() -> Git<'a>,
    ) -> Result<BTreeSet<&'i [u8]>> {
        let mut copies = copies_in(worktree, index)?;
        copies.retain(|path, _| !self.takes(path));
        let mut new: HashSet<String> = copies.values().cloned().collect();
        without_known(git, known, &mut new)?;
        copies.retain(|_, blob| new.contains(blob));
        Ok(copies.into_keys().collect())
    }

    /// The `untracked` paths of `worktree` without those in trees to leave out.
    pub(crate) fn without_trees(&self, worktree: &Path, untracked: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        if !untracked.iter().any(|path| is_suspicious(path)) {
            return Ok(untracked);
        }
        let index = index_entries(worktree)?;
        let tracked = index.iter().map(|entry| entry.path.as_slice()).collect();
        let trees = self.trees(worktree, untracked.iter().map(Vec::as_slice), &tracked);
        let in_trees: BTreeSet<&[u8]> = trees.values().flatten().map(Vec::as_slice).collect();
        Ok(untracked.iter().filter(|path| !in_trees.contains(path.as_slice())).cloned().collect())
    }

    /// Those of `paths` that are neither left out while untracked in `worktree`, nor files of editors that are gone again.
    pub(crate) fn without_left_out(&self, worktree: &Path, paths: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        if !self.may_concern(worktree, paths.iter().map(Vec::as_slice)) {
            return Ok(paths);
        }
        let index = index_entries(worktree)?;
        let tracked: BTreeSet<&[u8]> = index.iter().map(|entry| entry.path.as_slice()).collect();
        // The file that marks a tree may not have changed itself.
        let untracked = untracked(worktree)?;
        let new: Vec<&[u8]> =
            untracked.iter().chain(&paths).map(Vec::as_slice).collect::<BTreeSet<_>>().into_iter().collect();
        let new: Vec<&[u8]> = new.into_iter().filter(|path| !tracked.contains(path)).collect();
        let on_disk = |files: &[(&[u8], u64)]| Ok(files.iter().map(|(_, size)| *size).collect());
        let left_out = self.sort_out(worktree, &new, &tracked, on_disk)?;
        let left_out: BTreeSet<&[u8]> = left_out.iter().flat_map(|it| &it.files).map(Vec::as_slice).collect();
        Ok(paths.iter().filter(|path| !left_out.contains(path.as_slice())).cloned().collect())
    }
}

impl Repository {
    /// Whether a snapshot holds files of editors or large ones, which commits leave out, and which its first parent has not.
    ///
    /// # Errors
    /// What git returns.
    pub fn holds_left_out(&self, snapshot: &CommitId) -> Result<bool> {
        let rules = &self.left_out_rules;
        let git = self.git().args(["diff-tree", "-r", "-z", "--name-only", "--no-commit-id", "--diff-filter=A"]);
        let added = git.args([&format!("{snapshot}^1"), snapshot.as_str()]).run()?;
        let added: Vec<&[u8]> = nul_separated(&added).filter(|path| !rules.takes(path)).collect();
        if added.iter().any(|path| is_of_editor(path)) {
            return Ok(true);
        }
        let Some(limit) = rules.max_file_size.filter(|_| !added.is_empty()) else { return Ok(false) };
        let sizes = stored_sizes(self.git(), &format!("{snapshot}:"), &added)?;
        Ok(sizes.into_iter().flatten().any(|size| size > limit))
    }

    /// What of the `changed` paths of the head of `worktree`, which its index has, is in none of the `known` commits and should
    /// have been left out; of copied files also what is in a commit before it. `commits` are the last one that may be the
    /// agent's own, and the head.
    ///
    /// # Errors
    /// What `known` or git returns.
    pub fn left_out_of_head(
        &self,
        (worktree, commits): (&Path, [&CommitId; 2]),
        known: impl Fn() -> Result<Vec<CommitId>>,
        changed: &[String],
    ) -> Result<Vec<LeftOut>> {
        let rules = &self.left_out_rules;
        let mut copied = copied_in_commits(worktree, commits, &known, changed)?;
        copied.retain(|path| !rules.takes(path));
        if !copied.is_empty() {
            return Ok(copied.iter().map(|path| LeftOut::copied(path)).collect());
        }
        let index = index_entries(worktree)?;
        if !rules.may_concern(worktree, changed.iter().map(String::as_bytes)) && copies_in(worktree, &index)?.is_empty()
        {
            return Ok(Vec::new());
        }
        let git = || Git::new(worktree).reading_only();
        rules.left_out_of_index(worktree, &index, &known()?.iter().collect::<Vec<_>>(), git)
    }
}

/// How the index of `git` differs from a commit: what was moved is neither added nor removed.
struct Changes {
    added: BTreeSet<Vec<u8>>,
    removed: Vec<Vec<u8>>,
}

impl Changes {
    fn since(git: Git<'_>, commit: &str) -> Result<Self> {
        // However many files were moved, and also where something else is in their place.
        let git = git.args(["diff-index", "--cached", "-z", "--name-status", "--diff-filter=ADM"]);
        let git = git.args(["--find-renames", "-l0", "--break-rewrites", "--ignore-submodules=none", commit, "--"]);
        let listing = git.run()?;
        let parts: Vec<&[u8]> = nul_separated(&listing).collect();
        let mut changes = Self { added: BTreeSet::new(), removed: Vec::new() };
        for pair in parts.chunks_exact(2) {
            match pair[0].first() {
                Some(b'A') => drop(changes.added.insert(pair[1].to_vec())),
                Some(b'D') => changes.removed.push(pair[1].to_vec()),
                _ => {}
            }
        }
        Ok(changes)
    }

    /// Whether a file or tree of the same name was removed: it may have been moved and changed, and is the only one left.
    fn have_removed_the_like(&self, left_out: &LeftOut) -> bool {
        let name = file_name(left_out.path.trim_end_matches('/').as_bytes());
        let mut names = self.removed.iter().map(|path| path.split(|&byte| byte == b'/'));
        match left_out.reason {
            LeftOutReason::Tree => names.any(|mut parts| parts.any(|part| part == name)),
            _ => self.removed.iter().any(|path| file_name(path) == name),
        }
    }
}

/// The paths that `after` has and `before` has not; git sorts both.
fn new_paths<'a>(before: &[IndexEntry], after: &'a [IndexEntry]) -> Vec<&'a [u8]> {
    let mut known = before.iter().map(|entry| entry.path.as_slice()).peekable();
    let is_new = |path: &&[u8]| {
        while known.next_if(|known| known < path).is_some() {}
        known.peek() != Some(path)
    };
    after.iter().map(|entry| entry.path.as_slice()).filter(is_new).collect()
}

/// The sizes of the blobs that the index of `git` has for files, of which the size on disk is known.
fn sizes_in_index<'a>(git: impl Fn() -> Git<'a>, files: &[(&[u8], u64)]) -> Result<Vec<u64>> {
    let paths: Vec<&[u8]> = files.iter().map(|(path, _)| *path).collect();
    let stored = stored_sizes(git(), ":", &paths)?;
    Ok(files.iter().zip(stored).map(|((_, on_disk), stored)| stored.unwrap_or(*on_disk)).collect())
}

/// The sizes of the blobs at `paths` below `place`, which is `:` for the index of `git`; `None`: it cannot be asked.
fn stored_sizes(git: Git<'_>, place: &str, paths: &[&[u8]]) -> Result<Vec<Option<u64>>> {
    // Each name is a line.
    let is_line = |path: &&&[u8]| !path.contains(&b'\n');
    let names = paths.iter().filter(is_line).map(|path| [place.as_bytes(), path, b"\n"].concat());
    let git = git.input(names.collect::<Vec<_>>().concat());
    let sizes = path_text(&git.args(["cat-file", "--batch-check=%(objectsize)"]).run()?);
    let mut sizes = sizes.lines();
    Ok(paths.iter().map(|path| if is_line(&path) { sizes.next()?.parse().ok() } else { None }).collect())
}

/// Whether the name of a file, or of a directory that it is in, may be a reason to leave it out.
fn is_suspicious(path: &[u8]) -> bool {
    let slashes = || path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    [CACHE_TAG, VIRTUAL_ENVIRONMENT].contains(&file_name(path))
        || is_of_editor(path)
        || may_be_link_to_tree(path)
        || slashes().any(|at| is_tree(&path[..=at]))
}

/// Whether what is at `path`, a file or a directory, which is untracked, is made again by programs or was left by an editor.
pub(crate) fn is_made_again(worktree: &Path, path: &[u8]) -> bool {
    let place = worktree.join(OsStr::from_bytes(path));
    let is_cache = || regular_file::read(place.join("CACHEDIR.TAG")).is_ok_and(|text| text.starts_with(CACHE));
    let is_environment = || place.join(OsStr::from_bytes(VIRTUAL_ENVIRONMENT)).is_file();
    is_of_editor(path) || is_tree(&[path, b"/"].concat()) || is_environment() || is_cache()
}

/// Whether a directory, whose path ends with `/`, is to be left out because of its name.
fn is_tree(directory: &[u8]) -> bool {
    let is = |name: &[u8]| {
        let rest = directory.strip_suffix(b"/").and_then(|directory| directory.strip_suffix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(b"/"))
    };
    TREES.iter().any(|name| is(name))
}

/// Whether the name is one of trees that people link to instead of making them again.
fn may_be_link_to_tree(path: &[u8]) -> bool {
    is_tree(&[path, b"/"].concat()) || [&b".venv"[..], b"venv"].contains(&file_name(path))
}

/// Whether what is at `path` was installed: it is in such a tree.
pub(crate) fn is_in_environment(path: &[u8]) -> bool {
    let mut slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.any(|(at, _)| may_be_link_to_tree(&path[..at]))
}

/// Whether a link stands for a tree to leave out: a pattern of `.gitignore` that ends with a slash does not match it.
fn is_link_to_tree(worktree: &Path, path: &[u8]) -> bool {
    let place = || worktree.join(OsStr::from_bytes(path));
    may_be_link_to_tree(path)
        && fs::symlink_metadata(place()).is_ok_and(|it| it.is_symlink())
        && (place().join(OsStr::from_bytes(VIRTUAL_ENVIRONMENT)).is_file()
            || is_tree(&[path, b"/"].concat()) && !leads_to_work(worktree, path))
}

/// Whether a link leads to a place in the worktree that is in no tree to leave out.
fn leads_to_work(worktree: &Path, path: &[u8]) -> bool {
    let inside = fs::read_link(worktree.join(OsStr::from_bytes(path))).ok().and_then(|to| place_inside(path, &to));
    let is_work =
        |place: PathBuf| !place.ancestors().any(|above| is_tree(&[above.as_os_str().as_bytes(), b"/"].concat()));
    inside.is_some_and(is_work)
}

/// Where the link `path` leads, both relative to the root of the worktree; `None`: out of it.
fn place_inside(path: &[u8], target: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::from(OsStr::from_bytes(path));
    inside.pop();
    for part in target.components() {
        let is_inside = match part {
            Component::Normal(name) => {
                inside.push(name);
                true
            }
            Component::ParentDir => inside.pop(),
            Component::CurDir => true,
            Component::RootDir | Component::Prefix(_) => false,
        };
        if !is_inside {
            return None;
        }
    }
    Some(inside)
}

/// Whether `path` of `worktree` is a link that leads out of it.
pub fn is_link_out(worktree: &Path, path: &str) -> bool {
    fs::read_link(worktree.join(path)).is_ok_and(|target| place_inside(path.as_bytes(), &target).is_none())
}

const TREES: [&[u8]; 3] = [b"node_modules", b"__pycache__", b".claude/checkpoints"];

/// The directory, with a `/` at its end, that the file `path` marks as one to leave out; never the whole worktree.
fn marked_tree<'a>(worktree: &Path, path: &'a [u8]) -> Option<&'a [u8]> {
    let name = file_name(path);
    let directory = &path[..path.len() - name.len()];
    let marks = || match name {
        VIRTUAL_ENVIRONMENT => true,
        CACHE_TAG => {
            regular_file::read(worktree.join(OsStr::from_bytes(path))).is_ok_and(|text| text.starts_with(CACHE))
        }
        _ => false,
    };
    (!directory.is_empty() && marks()).then_some(directory)
}

const CACHE_TAG: &[u8] = b"CACHEDIR.TAG";
const VIRTUAL_ENVIRONMENT: &[u8] = b"pyvenv.cfg";

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// Whether an editor or a desktop names its own files like that: locks, swap files, backups, settings of folders.
fn is_of_editor(path: &[u8]) -> bool {
    let name = file_name(path);
    let is_swap_file = |[dot, s, w, last]: [u8; 4]| [dot, s, w] == *b".sw" && last.is_ascii_lowercase();
    [&b".DS_Store"[..], b"Thumbs.db", b"desktop.ini"].contains(&name)
        || name.starts_with(b".#")
        || (name.len() > 1 && name.ends_with(b"~"))
        || (name.len() > 2 && name.starts_with(b"#") && name.ends_with(b"#"))
        || (name.len() > 4 && name.starts_with(b".") && name.last_chunk().copied().is_some_and(is_swap_file))
}

#[cfg(test)]
mod tests;
