//! New files that git ignores although they may be work.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lanewright_files::regular_file;

use crate::command::{Git, Result, path_text};
use crate::fast::libgit2::IndexEntry;
use crate::query::generated_files::copied;
use crate::query::index::find_untracked;
use crate::query::left_out::is_made_again;
use crate::query::{LeftOut, LeftOutReason, index_entries};
use crate::repo::Repository;

/// How many untracked files of a worktree are examined.
const MOST: usize = 20_000;

/// A file that git ignores, and what is said of it: of a tree that is ignored as a whole, one thing.
#[derive(Debug)]
pub(crate) struct Ignored {
    pub(crate) path: Vec<u8>,
    pub(crate) left_out: LeftOut,
}

impl Repository {
    /// What git ignores in `worktree` by the rules of the repository or of the user that no program makes again, no editor
    /// left, and nothing copied there.
    ///
    /// # Errors
    /// What git returns.
    pub fn ignored_in(&self, worktree: &Path) -> Result<Vec<LeftOut>> {
        let found = ignored(worktree, &index_entries(worktree)?, |rule| !rule.is_of_this_clone())?;
        Ok(each_once(found))
    }

    /// The same beside the entries of its `index` by the rules that the user has for all repositories, and others do not.
    pub(crate) fn ignored_by_user(&self, worktree: &Path, index: &[IndexEntry]) -> Result<Vec<Ignored>> {
        match self.user_has_rules()? {
            true => ignored(worktree, index, Rule::is_of_user),
            false => Ok(Vec::new()),
        }
    }

    /// Whether the user's ignore file for all repositories has rules.
    fn user_has_rules(&self) -> Result<bool> {
        let home = std::env::home_dir();
        let named = self.configuration()?.get("core.excludesfile").map(|named| match named.strip_prefix("~/") {
            Some(below) => home.clone().unwrap_or_default().join(below),
            None => self.main_worktree().join(named),
        });
        let directory = std::env::var_os("XDG_CONFIG_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
        let usual = || Some(directory.or_else(|| Some(home.clone()?.join(".config")))?.join("git/ignore"));
        let text = named.or_else(usual).and_then(|file| regular_file::read(file).ok()).unwrap_or_default();
        Ok(text.split(|&byte| byte == b'\n').any(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#")))
    }
}

/// What is said of `files`.
pub(crate) fn each_once(files: Vec<Ignored>) -> Vec<LeftOut> {
    let mut said: Vec<LeftOut> = files.into_iter().map(|file| file.left_out).collect();
    said.sort_by(|one, other| one.path.cmp(&other.path));
    said.dedup();
    said
}

fn ignored(worktree: &Path, index: &[IndexEntry], counts: impl Fn(&Rule) -> bool) -> Result<Vec<Ignored>> {
    let tracked = index.iter().map(|entry| entry.path.clone()).collect();
    let mut tops = Vec::new();
    find_untracked(worktree, b"", &tracked, &mut |path| {
        tops.push(path);
        false
    });
    let copied = copied(worktree)?;
    let is_work = |path: &[u8]| !is_made_again(worktree, path) && !copied.contains(path);
    tops.retain(|path| is_work(path));
    // Most are ignored as a whole, by a rule that does not count, and never looked into.
    let mut rules = rules_of(worktree, &tops)?;
    tops.retain(|path| rules.get(path).is_none_or(&counts));
    let found = Found::below(worktree, tops, is_work);
    let inner: Vec<Vec<u8>> = found.directories.iter().chain(&found.files).cloned().collect();
    let inner: Vec<Vec<u8>> = inner.into_iter().filter(|path| outermost(path, &rules).is_none()).collect();
    rules.extend(rules_of(worktree, &inner)?);
    let ignored = found.files.into_iter().filter_map(|path| {
        let (place, rule) = outermost(&path, &rules).filter(|(_, rule)| counts(rule))?;
        let slash = if place.len() < path.len() { "/" } else { "" };
        let reason = LeftOutReason::Ignored(format!("{}:{}", rule.file, rule.line));
        let left_out = LeftOut { path: path_text(place) + slash, reason, files: Vec::new() };
        Some(Ignored { path, left_out })
    });
    Ok(ignored.collect())
}

/// What of `path` is ignored, it or a directory that it is in, and why.
fn outermost<'p, 'r>(path: &'p [u8], rules: &'r BTreeMap<Vec<u8>, Rule>) -> Option<(&'p [u8], &'r Rule)> {
    let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
    above.chain([path]).find_map(|place| Some((place, rules.get(place)?)))
}

/// Paths that are in no index.
#[derive(Default)]
struct Found {
    directories: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
}

impl Found {
    /// What is at `tops` of `worktree`, and below them, as far as it is work.
    fn below(worktree: &Path, tops: Vec<Vec<u8>>, is_work: impl Fn(&[u8]) -> bool) -> Self {
        let (mut found, mut due) = (Self::default(), VecDeque::from(tops));
        while let Some(path) = due.pop_front().filter(|_| found.files.len() < MOST) {
            let place = worktree.join(OsStr::from_bytes(&path));
            if !is_work(&path) {
                continue;
            }
            if fs::symlink_metadata(&place).is_ok_and(|it| it.is_dir()) {
                let names = fs::read_dir(&place).into_iter().flatten().flatten();
                due.extend(names.map(|entry| [&path, &b"/"[..], entry.file_name().as_bytes()].concat()));
                found.directories.push(path);
            } else {
                found.files.push(path);
            }
        }
        found
    }
}

/// What has a path ignored.
struct Rule {
    file: String,
    line: String,
}

impl Rule {
    /// `.git/info/exclude`, where the user and Lanewright name files that stay out of one clone.
    fn is_of_this_clone(&self) -> bool {
        self.file.ends_with("info/exclude")
    }

    fn is_of_user(&self) -> bool {
        let is_of_repository = Path::new(&self.file).is_relative() && self.file.ends_with(".gitignore");
        !is_of_repository && !self.is_of_this_clone()
    }
}

/// Those of `paths` that git ignores, each with the rule that decides.
fn rules_of(worktree: &Path, paths: &[Vec<u8>]) -> Result<BTreeMap<Vec<u8>, Rule>> {
    if paths.is_empty() {
        return Ok(BTreeMap::new());
    }
    let git = Git::new(worktree).reading_only().input(paths.join(&0)).args(["check-ignore", "-z", "-v", "--stdin"]);
    let output = git.attempt()?;
    // A name that git takes for a pattern of its own ends it: what came before is known, and the work counts more.
    let parts: Vec<&[u8]> = output.stdout.split(|&byte| byte == 0).collect();
    let ignored = parts.as_chunks().0.iter().filter(|[_, _, pattern, _]| !pattern.starts_with(b"!"));
    let rule = |file: &[u8], line: &[u8]| Rule { file: path_text(file), line: path_text(line) };
    Ok(ignored.map(|[file, line, _, path]| (path.to_vec(), rule(file, line))).collect())
}
