//! Whether a worktree is clean beyond doubt, found out without a process (decision 56).
//!
//! No file is read: git wrote what it knows of each into the index, and a file is unchanged if all of that still holds. In
//! any doubt the git program is asked: flags, conflicts, submodules, a time that is not before that of the index, a name
//! that git may or may not ignore.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry};
use lanewright_files::{directory, regular_file};

use crate::fast::libgit2::open;

/// Whether every file of `worktree` is as `index`, its index file, says, and every other file is ignored.
pub(crate) fn is_surely_clean(worktree: &Path, index: &Path) -> bool {
    let look = || {
        let written = fs::symlink_metadata(index).ok()?;
        let known = Index::open(index).ok()?;
        let mut tracked = Tracked::new();
        for entry in known.iter() {
            let path = Path::new(OsStr::from_bytes(&entry.path));
            let found = fs::symlink_metadata(worktree.join(path)).ok()?;
            if !is_unchanged(&entry, &found, &written) {
                return None;
            }
            let parent = path.parent()?.to_owned();
            tracked.entry(parent).or_default().insert(path.file_name()?.to_owned());
        }
        let unknown = unknown_names(worktree, &tracked)?;
        (unknown.is_empty() || are_ignored(worktree, &tracked, &unknown)?).then_some(())
    };
    look().is_some()
}

/// The names of tracked files in each directory, relative to the worktree.
type Tracked = BTreeMap<PathBuf, BTreeSet<OsString>>;

fn is_unchanged(entry: &IndexEntry, found: &Metadata, index: &Metadata) -> bool {
    // Git keeps the lower 32 bits of what is larger.
    #[allow(clippy::cast_possible_truncation, reason = "as git does")]
    let low = |number: u64| number as u32;
    let kind = match entry.mode {
        0o100_644 => found.is_file() && found.mode() & 0o100 == 0,
        0o100_755 => found.is_file() && found.mode() & 0o100 != 0,
        0o120_000 => found.is_symlink(),
        _ => false,
    };
    let time = |at: git2::IndexTime| (i64::from(at.seconds()), i64::from(at.nanoseconds()));
    let written = (found.mtime(), found.mtime_nsec());
    kind && entry.flags & FLAGS == 0
        && entry.flags_extended == 0
        && time(entry.mtime) == written
        && time(entry.ctime) == (found.ctime(), found.ctime_nsec())
        && (entry.ino, entry.file_size) == (low(found.ino()), low(found.size()))
        && (entry.uid, entry.gid) == (found.uid(), found.gid())
        && written < (index.mtime(), index.mtime_nsec())
}

/// The side of a conflict, and whether git assumes that the file is unchanged.
const FLAGS: u16 = 0xB000;

/// What else is in directories with tracked files, a directory with a `/` at its end; `None`: that cannot be listed.
fn unknown_names(worktree: &Path, tracked: &Tracked) -> Option<Vec<PathBuf>> {
    let directories: BTreeSet<&Path> = tracked.keys().flat_map(|directory| directory.ancestors()).collect();
    let none = BTreeSet::new();
    let mut unknown = Vec::new();
    for directory in directories.iter().copied().chain(directories.is_empty().then_some(Path::new(""))) {
        let files = tracked.get(directory).unwrap_or(&none);
        for (found, kind) in directory::entries_with_kinds(&worktree.join(directory)).ok()? {
            let name = found.file_name()?;
            let path = directory.join(name);
            let is_known = if kind.is_dir() { directories.contains(path.as_path()) } else { files.contains(name) };
            let is_git = directory.as_os_str().is_empty() && name == ".git";
            if !is_known && !is_git {
                // A pattern for directories is not for a link to one; libgit2 follows it.
                if kind.is_symlink() {
                    return None;
                }
                let end: &[u8] = if kind.is_dir() { b"/" } else { b"" };
                unknown.push(PathBuf::from(OsString::from_vec([path.as_os_str().as_bytes(), end].concat())));
            }
        }
    }
    Some(unknown)
}

/// Whether git ignores all of `paths`; `None`: libgit2 may know less of that than git.
fn are_ignored(worktree: &Path, tracked: &Tracked, paths: &[PathBuf]) -> Option<bool> {
    let git = open(worktree).ok()?;
    let configuration = git.config().ok()?;
    // Git then reads other files of settings, with other ignore files.
    let elsewhere = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
    if elsewhere.iter().any(|name| std::env::var_os(name).is_some()) {
        return None;
    }
    if configuration.get_bool("core.ignorecase").unwrap_or(false) {
        return None;
    }
    let own = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let default = own("XDG_CONFIG_HOME").or_else(|| Some(own("HOME")?.join(".config"))).map(|it| it.join("git/ignore"));
    let of_user = configuration.get_path("core.excludesfile").ok().or(default);
    let in_tree = tracked.keys().map(|directory| worktree.join(directory).join(".gitignore"));
    let is_doubtful = |file: PathBuf| {
        let text = regular_file::read(file).unwrap_or_default();
        // Libgit2 strips a tab from the end of a pattern.
        text.split(|&byte| byte == b'\n').any(|line| line.starts_with(b"!") || line.ends_with(b"\t"))
    };
    if in_tree.chain(of_user).chain([git.commondir().join("info/exclude")]).any(is_doubtful) {
        return None;
    }
    Some(paths.iter().all(|path| git.is_path_ignored(path).unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::command::Git;

    fn git(worktree: &Path, arguments: &[&str]) -> String {
        Git::new(worktree)
            .args(["-c", "user.name=T", "-c", "user.email=t@example.invalid"])
            .args(arguments)
            .line()
            .unwrap()
    }

    /// A worktree whose files are older than its index.
    fn worktree(place: &Path) -> PathBuf {
        let worktree = place.join("w");
        fs::create_dir_all(worktree.join("src/deep")).unwrap();
        git(&worktree, &["init", "--quiet"]);
        let old = SystemTime::now() - Duration::from_secs(60);
        for (path, text) in [(".gitignore", "*.log\nout/\n"), ("a", "1"), ("src/b", "2"), ("src/deep/c", "3")] {
            fs::write(worktree.join(path), text).unwrap();
            fs::File::options().write(true).open(worktree.join(path)).unwrap().set_modified(old).unwrap();
        }
        git(&worktree, &["add", "--all"]);
        git(&worktree, &["commit", "--quiet", "--message", "x"]);
        git(&worktree, &["status"]);
        worktree
    }

    #[test]
    fn surely_clean_worktrees_are_clean_to_git() {
        type Change = fn(&Path);
        let changes: &[(&str, Change, bool)] = &[
            ("nothing", |_| {}, true),
            ("ignored file", |it| fs::write(it.join("src/x.log"), "").unwrap(), true),
            ("ignored directory", |it| fs::create_dir_all(it.join("out/deep")).unwrap(), true),
            ("new file", |it| fs::write(it.join("src/new"), "").unwrap(), false),
            ("new directory", |it| fs::create_dir(it.join("new")).unwrap(), false),
            ("changed file", |it| fs::write(it.join("a"), "2").unwrap(), false),
            ("missing file", |it| fs::remove_file(it.join("a")).unwrap(), false),
            (
                "link in place",
                |it| {
                    fs::remove_file(it.join("a")).unwrap();
                    std::os::unix::fs::symlink("src/b", it.join("a")).unwrap();
                },
                false,
            ),
            ("link to a directory", |it| std::os::unix::fs::symlink("/tmp", it.join("out")).unwrap(), false),
            (
                "exception",
                |it| {
                    fs::write(it.join(".git/info/exclude"), "*.tmp\n!b.tmp\n").unwrap();
                    fs::write(it.join("c.tmp"), "").unwrap();
                },
                false,
            ),
            ("assumed", |it| drop(git(it, &["update-index", "--assume-unchanged", "a"])), false),
            (
                "only the time",
                |it| drop(fs::File::options().write(true).open(it.join("a")).unwrap().set_modified(SystemTime::now())),
                false,
            ),
            ("no index", |it| fs::remove_file(it.join(".git/index")).unwrap(), false),
        ];
        for (what, change, expected) in changes {
            let place = tempfile::tempdir().unwrap();
            let worktree = worktree(place.path());
            change(&worktree);
            let is_clean = is_surely_clean(&worktree, &worktree.join(".git/index"));
            assert_eq!(is_clean, *expected, "{what}");
            assert!(!is_clean || git(&worktree, &["status", "--porcelain"]).is_empty(), "{what}");
        }
    }

    #[test]
    fn file_as_young_as_the_index_is_in_doubt() {
        let place = tempfile::tempdir().unwrap();
        let worktree = worktree(place.path());
        let index = worktree.join(".git/index");
        let written = fs::metadata(worktree.join("a")).unwrap().modified().unwrap();
        fs::File::options().write(true).open(&index).unwrap().set_modified(written).unwrap();
        assert!(!is_surely_clean(&worktree, &index));
    }
}
