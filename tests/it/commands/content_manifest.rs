//! Whether content was lost: every blob that was there before is in a ref or in a file afterwards.

#![allow(clippy::unwrap_used, dead_code, reason = "a helper of several tests fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The blobs of a repository, each with a place where it was seen: a ref's object, or a file of a worktree.
#[derive(Debug, Clone)]
pub struct BlobManifest {
    repository: PathBuf,
    roots: Vec<PathBuf>,
    blobs: BTreeMap<String, String>,
}

impl BlobManifest {
    /// Every blob that a ref of the repository with its main worktree at `repository` reaches, and that of every file in
    /// a worktree below one of `roots`, ignored ones included.
    pub fn take(repository: &Path, roots: &[PathBuf]) -> Self {
        let mut blobs = reachable_blobs(repository);
        for root in roots {
            blobs.extend(files_of_worktrees(repository, root));
        }
        Self { repository: repository.to_owned(), roots: roots.to_vec(), blobs }
    }

    /// The same with every file below `directory`, whether or not it is a worktree's.
    pub fn and_files_below(mut self, directory: &Path) -> Self {
        self.blobs.extend(hashes(&self.repository, &all_files(directory)));
        self
    }

    /// The same without what was in files below `gone`, which the test itself is about to destroy, unless it is
    /// somewhere else as well.
    pub fn without_files_below(self, gone: &Path) -> Self {
        let elsewhere = reachable_blobs(&self.repository);
        let prefix = gone.display().to_string();
        let stays = |blob: &String, place: &String| elsewhere.contains_key(blob) || !place.starts_with(&prefix);
        let blobs = self.blobs.into_iter().filter(|(blob, place)| stays(blob, place)).collect();
        Self { blobs, ..self }
    }

    /// The same without what was in files whose path holds `part`, such as ignored ones, which go when a worktree is given
    /// back.
    pub fn without_files_like(self, part: &str) -> Self {
        let blobs = self.blobs.into_iter().filter(|(_, place)| !place.contains(part)).collect();
        Self { blobs, ..self }
    }

    /// Asserts that every blob is in a ref, or in some file below the roots or in the repository's state directory.
    #[track_caller]
    pub fn assert_all_there(&self) {
        let mut present: BTreeSet<String> = reachable_blobs(&self.repository).into_keys().collect();
        let state = self.repository.join(".claude");
        for root in self.roots.iter().chain([&self.repository, &state]) {
            present.extend(hashes(&self.repository, &all_files(root)).into_iter().map(|(blob, _)| blob));
        }
        let lost: Vec<_> = self.blobs.iter().filter(|(blob, _)| !present.contains(*blob)).collect();
        assert!(lost.is_empty(), "{} blobs are lost: {lost:#?}", lost.len());
    }

    /// How many there are: a manifest of nothing proves nothing.
    pub fn len(&self) -> usize {
        self.blobs.len()
    }
}

fn git(repository: &Path, arguments: &[&str], input: &str) -> String {
    use std::io::Write;
    let mut command = Command::new("git");
    command.current_dir(repository).args(arguments).env("GIT_OPTIONAL_LOCKS", "0").env("GIT_CONFIG_NOSYSTEM", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn reachable_blobs(repository: &Path) -> BTreeMap<String, String> {
    let objects = git(repository, &["rev-list", "--objects", "--all"], "");
    let names: BTreeMap<&str, &str> = objects.lines().map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
    let asked: String = names.keys().map(|name| format!("{name}\n")).collect();
    let kinds = git(repository, &["cat-file", "--batch-check=%(objectname) %(objecttype)"], &asked);
    let blobs = kinds.lines().filter_map(|line| line.strip_suffix(" blob"));
    blobs.map(|blob| (blob.to_owned(), format!("{} in a ref", names[blob]))).collect()
}

/// The files of every directory below `root` that has a `.git`.
fn files_of_worktrees(repository: &Path, root: &Path) -> Vec<(String, String)> {
    let worktrees = directories(root).into_iter().filter(|directory| directory.join(".git").exists());
    worktrees.flat_map(|worktree| hashes(repository, &all_files(&worktree))).collect()
}

fn hashes(repository: &Path, files: &[PathBuf]) -> Vec<(String, String)> {
    let plain = |path: &&PathBuf| !path.to_string_lossy().contains('\n');
    let files: Vec<String> = files.iter().filter(plain).map(|path| path.display().to_string()).collect();
    let listed: String = files.iter().map(|path| format!("{path}\n")).collect();
    let hashes = git(repository, &["hash-object", "--no-filters", "--stdin-paths"], &listed);
    hashes.lines().map(str::to_owned).zip(files).collect()
}

fn directories(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git" {
            found.extend(directories(&entry.path()));
        }
    }
    found
}

/// Every regular file below `root`, git's own left out.
fn all_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && entry.file_name() != ".git" => found.extend(all_files(&entry.path())),
            Ok(kind) if kind.is_file() && entry.file_name() != ".git" => found.push(entry.path()),
            _ => {}
        }
    }
    found
}
