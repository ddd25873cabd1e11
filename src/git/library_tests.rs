//! What libgit2 says held against what the git program says.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use super::*;
use crate::git::program::Git;
use crate::git::repository::commit_id;

struct Place {
    root: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Self { root: directory.path().canonicalize().unwrap().join("repo"), _directory: directory };
        fs::create_dir(&place.root).unwrap();
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        place.git(&["config", "user.name", "someone"]);
        place.git(&["config", "user.email", "someone@example.invalid"]);
        place
    }

    fn git(&self, arguments: &[&str]) -> String {
        let answer = Git::new(&self.root).args(arguments).run().unwrap();
        String::from_utf8_lossy(&answer).trim_end().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self) -> CommitId {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=more"]);
        self.commit_id("HEAD")
    }

    fn commit_id(&self, name: &str) -> CommitId {
        commit_id(self.git(&["rev-parse", name]).as_bytes()).unwrap()
    }

    fn repository(&self) -> Repository {
        Repository::locate(&self.root).unwrap()
    }
}

/// What `git diff-tree` says, in the same words.
fn told(place: &Place, from: &CommitId, to: &CommitId) -> Vec<(String, u32, u32)> {
    let listing = place.git(&["diff-tree", "-r", "-z", "--no-renames", from.as_str(), to.as_str()]);
    let parts: Vec<&str> = listing.split_terminator('\0').collect();
    let mode = |text: &str| u32::from_str_radix(text, 8).unwrap();
    let pairs = parts.chunks_exact(2);
    pairs.map(|pair| (pair[1].to_owned(), mode(&pair[0][1..7]), mode(&pair[0][8..14]))).collect()
}

#[test]
fn two_commits_differ_as_git_says() {
    let place = Place::new();
    for path in ["a", "a.b", "b/x", "b/y", "c/deep/er", "z"] {
        place.write(path, path);
    }
    let mut commits = vec![place.commit()];
    // A directory in a file's place and the other way round, beside names that sort between them.
    fs::remove_file(place.root.join("a")).unwrap();
    place.write("a/b", "below");
    fs::remove_dir_all(place.root.join("b")).unwrap();
    place.write("b", "a file");
    commits.push(place.commit());
    fs::remove_file(place.root.join("z")).unwrap();
    symlink("a.b", place.root.join("z")).unwrap();
    place.git(&["update-index", "--chmod=+x", "c/deep/er"]);
    place.git(&["config", "core.filemode", "false"]);
    commits.push(place.commit());
    let link = format!("160000,{},c/module", commits[0]);
    place.git(&["update-index", "--add", "--cacheinfo", &link]);
    place.git(&["commit", "--quiet", "--message=a link to another repository"]);
    commits.push(place.commit_id("HEAD"));
    place.git(&["rm", "--quiet", "-r", "--cached", "."]);
    place.git(&["commit", "--quiet", "--message=nothing is left"]);
    commits.push(place.commit_id("HEAD"));
    // What old programs wrote: other modes of files and directories.
    let raw = |text: &[u8]| {
        fs::write(place.root.join(".git/raw"), text).unwrap();
        place.git(&["hash-object", "-t", "tree", "-w", "--literally", ".git/raw"])
    };
    let entry = |mode: &str, name: &str, object: &str| {
        [format!("{mode} {name}\0").as_bytes(), Oid::from_str(object).unwrap().as_bytes()].concat()
    };
    let blob = place.git(&["hash-object", "-w", ".git/HEAD"]);
    for below in ["f", "g"] {
        let inner = raw(&entry("100664", below, &blob));
        let tree = raw(&[entry("40755", "d", &inner), entry("100775", "run", &blob)].concat());
        commits.push(commit_id(place.git(&["commit-tree", &tree, "-m", "old"]).as_bytes()).unwrap());
    }
    let repository = place.repository();
    for (from, to) in commits.iter().flat_map(|from| commits.iter().map(move |to| (from, to))) {
        let found = repository.in_process(|git| differences(git, from, to)).unwrap();
        let found: Vec<_> =
            found.iter().map(|it| (String::from_utf8_lossy(&it.path).into_owned(), it.from, it.to)).collect();
        assert_eq!(found, told(&place, from, to), "{from} {to}");
    }
}

#[test]
fn ancestors_are_those_that_git_lists_however_far_back() {
    let place = Place::new();
    place.commit();
    let tree = place.git(&["rev-parse", "HEAD^{tree}"]);
    let mut commits = vec![place.commit_id("HEAD")];
    // Merges that reach back over more than the few that are looked at one by one, and a second root.
    for number in 1..60_usize {
        let parents = [number - 1, number / 2, number / 3];
        let mut arguments = vec!["commit-tree".to_owned(), tree.clone(), format!("-m{number}")];
        let parents = if number == 31 { &[][..] } else { &parents[..1 + number % 3] };
        let parents: BTreeSet<_> = parents.iter().copied().collect();
        arguments.extend(parents.iter().flat_map(|&at| ["-p".to_owned(), commits[at].to_string()]));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        commits.push(commit_id(place.git(&arguments).as_bytes()).unwrap());
    }
    let repository = place.repository();
    for descendant in &commits {
        let listed = place.git(&["rev-list", descendant.as_str()]);
        let listed: BTreeSet<&str> = listed.lines().collect();
        for ancestor in &commits {
            let found = repository.is_ancestor(ancestor, descendant).unwrap();
            assert_eq!(found, listed.contains(ancestor.as_str()), "{ancestor} of {descendant}");
        }
    }
}

#[test]
fn what_git_has_lost_is_not_remembered() {
    let place = Place::new();
    place.write("file", "only once");
    let commit = place.commit();
    let blob = place.git(&["rev-parse", "HEAD:file"]);
    let repository = place.repository();
    let read = |name: &str| repository.in_process(|git| git.find_object(Oid::from_str(name)?, None).map(drop));
    let names = [commit.as_str(), &blob, &place.git(&["rev-parse", "HEAD^{tree}"])];
    for name in names {
        assert_eq!(read(name), Some(()));
        fs::remove_file(repository.common_dir().join("objects").join(&name[..2]).join(&name[2..])).unwrap();
        assert_eq!(read(name), None);
    }
}

#[test]
fn what_was_open_before_settings_changed_is_opened_anew() {
    let place = Place::new();
    let commit = place.commit();
    let repository = place.repository();
    let make = |name: &str| {
        let full = format!("refs/heads/{name}");
        change(&repository, &place.root, |git| git.reference(&full, oid(&commit)?, false, "made").map(drop)).unwrap();
        repository.common_dir().join("logs/refs/heads").join(name).exists()
    };
    assert!(make("with-log"));
    place.git(&["config", "core.logAllRefUpdates", "false"]);
    assert!(!make("without"));
}

#[test]
fn what_another_repository_lent_is_gone_with_it() {
    let (place, lender) = (Place::new(), Place::new());
    place.commit();
    lender.write("file", "theirs");
    let lent = lender.commit();
    let repository = place.repository();
    let has = || repository.in_process(|git| git.find_commit(oid(&lent)?).map(drop)).is_some();
    let alternates = repository.common_dir().join("objects/info/alternates");
    fs::write(&alternates, format!("{}\n", lender.root.join(".git/objects").display())).unwrap();
    assert!(has());
    fs::remove_file(&alternates).unwrap();
    assert!(!has());
}

#[test]
fn another_worktree_in_the_place_of_one_is_opened_anew() {
    let place = Place::new();
    place.commit();
    let repository = place.repository();
    let worktree = place.root.with_file_name("worktree");
    let name = |entry: &str| {
        // A worktree's entry is named after its directory, so it gets its place afterwards.
        place.git(&["worktree", "add", "--quiet", "--detach", &format!("../{entry}")]);
        place.git(&["worktree", "move", &format!("../{entry}"), "../worktree"]);
        let path = change(&repository, &worktree, |git| Ok(git.path().to_owned())).unwrap();
        place.git(&["worktree", "remove", "../worktree"]);
        path.file_name().unwrap().to_owned()
    };
    assert_eq!([name("first"), name("second")], ["first", "second"]);
}

#[test]
fn other_programs_may_take_what_is_open_away() {
    let place = Place::new();
    place.write("file", "packed");
    let commit = place.commit();
    let repository = place.repository();
    let holds = |commit: &CommitId| repository.in_process(|git| git.find_commit(oid(commit)?)?.tree().map(drop));
    assert_eq!(holds(&commit), Some(()));
    for _ in 0..2 {
        // A pack takes the place of what was open, and another one the place of that.
        let mut pack = Command::new("git");
        pack.current_dir(&place.root).args(["repack", "-a", "-d", "-f", "--quiet"]).stdin(Stdio::null());
        assert!(pack.status().unwrap().success());
        assert_eq!(holds(&commit), Some(()));
        let next = place.commit();
        assert_eq!(holds(&next), Some(()));
    }
}
