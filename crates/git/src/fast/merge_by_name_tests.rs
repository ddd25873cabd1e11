//! What names alone say is what git says: random histories, the git program beside.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Paths and what they hold.
type Files = BTreeMap<&'static str, String>;

const PATHS: &[&str] =
    &["a", "a/x", "a/y", "a/sub/x", "a/sub/y", "b/x", "b/y", "b/sub/x", "c/x", "c/y", "d", "e", "x", "y"];

/// One thing that happens to a tree.
#[derive(Debug, Clone)]
enum Step {
    Write(&'static str, u8),
    Delete(&'static str),
    Rename(&'static str, &'static str),
    RenameDirectory(&'static str, &'static str),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = || select(PATHS);
    let directory = || select(vec!["a", "a/sub", "b", "b/sub", "c", "new"]);
    let step = prop_oneof![
        3 => (path(), any::<u8>()).prop_map(|(path, text)| Step::Write(path, text)),
        2 => path().prop_map(Step::Delete),
        2 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (directory(), directory()).prop_map(|(from, to)| Step::RenameDirectory(from, to)),
    ];
    prop::collection::vec(step, 0..4)
}

/// Enough lines that git takes a file for a renamed one.
fn text(path: &str, seed: u8) -> String {
    (0..12).map(|line| format!("{path} {line} {}\n", if line == 5 { seed } else { 0 })).collect()
}

fn write(files: &mut Files, path: &'static str, text: String) {
    let in_the_way = |other: &str| path.starts_with(&format!("{other}/")) || other.starts_with(&format!("{path}/"));
    files.retain(|other, _| !in_the_way(other));
    files.insert(path, text);
}

fn take(files: &mut Files, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Write(path, seed) => write(files, path, text(path, *seed)),
            Step::Delete(path) => drop(files.remove(path)),
            Step::Rename(from, to) => {
                if let Some(text) = files.remove(from) {
                    write(files, to, text);
                }
            }
            Step::RenameDirectory(from, to) => {
                for path in PATHS {
                    let Some(rest) = path.strip_prefix(from).filter(|rest| rest.starts_with('/')) else { continue };
                    let moved = format!("{to}{rest}");
                    let known = PATHS.iter().find(|known| **known == moved).copied();
                    if let (Some(known), Some(text)) = (known, files.remove(path)) {
                        write(files, known, text);
                    }
                }
            }
        }
    }
}

fn commit(git: &Repository, files: &Files, parents: &[Oid]) -> Oid {
    let mut tree = git2::build::TreeUpdateBuilder::new();
    for (path, text) in files {
        tree.upsert(*path, git.blob(text.as_bytes()).unwrap(), git2::FileMode::Blob);
    }
    let empty = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
    let tree = git.find_tree(tree.create_updated(git, &empty).unwrap()).unwrap();
    let who = git2::Signature::now("Somebody", "somebody@example.invalid").unwrap();
    let parents: Vec<_> = parents.iter().map(|parent| git.find_commit(*parent).unwrap()).collect();
    git.commit(None, &who, &who, "m", &tree, &parents.iter().collect::<Vec<_>>()).unwrap()
}

/// The tree that git merges without a conflict.
fn by_git(place: &Path, ours: Oid, theirs: Oid) -> Option<String> {
    let arguments = ["merge-tree", "--write-tree", &ours.to_string(), &theirs.to_string()].map(str::to_owned);
    let output = Command::new("git").current_dir(place).args(arguments).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn merge_by_name_equals_merge_of_git() {
    let place = tempfile::tempdir().unwrap();
    let git = Repository::init(place.path()).unwrap();
    let plain = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let cases = (prop::collection::vec(select(PATHS), 4..10), steps(), steps());
    let outcome = runner.run(&cases, |(first, mine, others)| {
        let mut files = Files::new();
        first.into_iter().for_each(|path| write(&mut files, path, text(path, 0)));
        let base = commit(&git, &files, &[]);
        let (mut our_files, mut their_files) = (files.clone(), files);
        take(&mut our_files, &mine);
        take(&mut their_files, &others);
        let (ours, theirs) = (commit(&git, &our_files, &[base]), commit(&git, &their_files, &[base]));
        let tree = |commit| git.find_commit(commit).unwrap().tree_id();
        if let Some(merged) = plain_merge(&git, tree(base), tree(ours), tree(theirs)).unwrap() {
            prop_assert_eq!(Some(merged.to_string()), by_git(place.path(), ours, theirs), "{:?} {:?}", mine, others);
            plain.set(plain.get() + 1);
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(plain.get() > 50, "only {} merges were plain", plain.get());
}

#[test]
fn merge_by_name_leaves_renames_to_git() {
    let place = tempfile::tempdir().unwrap();
    let git = Repository::init(place.path()).unwrap();
    let files: Files = ["c/x", "c/y"].into_iter().map(|path| (path, text(path, 0))).collect();
    let base = commit(&git, &files, &[]);
    let made = |steps: &[Step]| {
        let mut files = files.clone();
        take(&mut files, steps);
        git.find_commit(commit(&git, &files, &[base])).unwrap().tree_id()
    };
    let (ours, theirs) = (made(&[Step::Rename("c/y", "d")]), made(&[Step::Delete("c/y")]));
    let base = git.find_commit(base).unwrap().tree_id();
    assert_eq!(plain_merge(&git, base, ours, theirs).unwrap(), None);
}
