//! What libgit2 says held against what the git program says.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lanewright_files::temporary_beside;

use super::*;
use crate::command::program::Git;
use crate::fast::patch::FILES;
use crate::repo::repository::commit_id;

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

    /// A commit like the head, but with the permissions that old and foreign programs gave to files.
    fn with_foreign_modes(&self) -> CommitId {
        let tree = Git::new(&self.root).args(["cat-file", "tree", "HEAD^{tree}"]).run().unwrap();
        let tree = tree.split(|&byte| byte == 0).map(|part| {
            // Each part ends with the mode and the name of the entry whose object the next one begins with.
            let at = part.windows(7).position(|window| window == b"100644 ");
            at.map_or_else(|| part.to_vec(), |at| [&part[..at], b"100664 ", &part[at + 7..]].concat())
        });
        let tree = tree.collect::<Vec<_>>().join(&0);
        let git = Git::new(&self.root).input(tree);
        let tree = git.args(["hash-object", "-t", "tree", "-w", "--literally", "--stdin"]).line().unwrap();
        self.commit_id(&self.git(&["commit-tree", "-p", "HEAD", "-m", "foreign", &tree]))
    }

    fn commit_id(&self, name: &str) -> CommitId {
        commit_id(self.git(&["rev-parse", name]).as_bytes()).unwrap()
    }

    fn repository(&self) -> Repository {
        Repository::locate(&self.root).unwrap()
    }
}

#[test]
fn is_ancestor_equals_git_at_any_depth() {
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
fn lost_objects_are_not_cached() {
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
fn objects_stay_readable_after_repack() {
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

#[test]
fn differences_equal_git_diff_tree() {
    let place = Place::new();
    let mut commits = vec![place.commit()];
    for (path, text) in [("a", "1"), ("d/x", "1"), ("d/y/z", "1"), ("d.txt", "1"), ("d/x", "2")] {
        place.write(path, text);
        commits.push(place.commit());
    }
    // A directory becomes a file, and a file a link.
    fs::remove_dir_all(place.root.join("d")).unwrap();
    place.write("d", "1");
    fs::remove_file(place.root.join("a")).unwrap();
    std::os::unix::fs::symlink("d", place.root.join("a")).unwrap();
    commits.push(place.commit());
    commits.push(place.with_foreign_modes());
    let listed = |text: String| -> Vec<Difference> {
        let line = |line: &str| {
            let (facts, path) = line.split_once('\t').unwrap();
            let mode = |at: usize| u32::from_str_radix(&facts[at..at + 6], 8).unwrap();
            Difference { path: path.as_bytes().to_vec(), from: mode(1), to: mode(8) }
        };
        text.lines().map(line).collect()
    };
    let (repository, index) = (place.repository(), place.root.join(".git/index"));
    for from in &commits {
        for to in &commits {
            let by_git = listed(place.git(&["diff-tree", "-r", "--no-renames", from.as_str(), to.as_str()]));
            assert_eq!(differences(&repository, from, to), Some(by_git));
        }
        let by_git = listed(place.git(&["diff-index", "--cached", "--no-renames", from.as_str()]));
        assert_eq!(staged(&repository, &index, from), Some(by_git));
    }
    place.write("intended", "1");
    place.git(&["add", "--intent-to-add", "intended"]);
    assert_eq!(staged(&repository, &index, &commits[0]), None);
}

#[test]
fn patches_equal_git_diff_up_to_limit() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\n");
    place.write("picture", "a\0b");
    let from = place.commit();
    place.write("a.txt", "one\n2\nthree\n");
    place.write("picture", "a\0c");
    place.write("z.txt", "z\n");
    let to = place.commit();
    let shown = |limit| place.repository().patches(&from, &to, limit).unwrap().files;
    let lines: Vec<_> = shown(9999).iter().map(|file| file.lines).collect();
    assert_eq!(lines, [Some((2, 1)), None, Some((1, 0))]);
    let text = |limit| String::from_utf8(shown(limit).into_iter().flat_map(|file| file.text).collect()).unwrap();
    let git = place.git(&["diff", "--no-ext-diff", from.as_str(), to.as_str(), "--", "a.txt", "z.txt"]);
    assert_eq!(text(9999).trim_end(), git);
    let room = git.find("+three").unwrap();
    assert_eq!(text(room + 3), git[..room], "the first line that does not fit is left out whole");
    let whole = |limit| shown(limit).iter().map(|file| file.whole).collect::<Vec<_>>();
    assert_eq!((whole(9999), whole(room)), (vec![true; 3], vec![false, true, false]));
}

/// Every kind of change, in a tree with directories that are the same in both.
#[test]
fn patches_of_odd_entries_equal_git_diff() {
    let place = Place::new();
    for path in ["same/deep/file", "d/x", "d/same/file", "e", "gone/file"] {
        place.write(path, "1\n");
    }
    let from = place.commit();
    for directory in ["d", "gone"] {
        fs::remove_dir_all(place.root.join(directory)).unwrap();
    }
    fs::remove_file(place.root.join("e")).unwrap();
    place.write("d", "1\n");
    std::os::unix::fs::symlink("d", place.root.join("e")).unwrap();
    (0..FILES).for_each(|number| place.write(&format!("many/{number:03}"), "1\n"));
    let to = place.commit();
    let patches = place.repository().patches(&from, &to, 1 << 20).unwrap();
    let text = String::from_utf8(patches.files.iter().flat_map(|file| file.text.clone()).collect()).unwrap();
    let git = place.git(&["diff", "--no-ext-diff", "--no-renames", from.as_str(), to.as_str()]);
    // Five other paths are changed, one of which is another kind of file, for which there are two texts.
    assert_eq!((patches.files.len(), patches.others), (FILES + 1, 5));
    assert!(git.starts_with(text.trim_end()), "{text}");
}

#[test]
fn commits_held_by_tip_are_found_at_once() {
    let place = Place::new();
    let (base, one) = (place.commit(), place.commit());
    place.git(&["checkout", "--quiet", "--detach", base.as_str()]);
    fs::write(place.root.join("other"), "").unwrap();
    let other = place.commit();
    let missing = CommitId::new(&"0123456789".repeat(4)).unwrap();
    let asked = BTreeSet::from([&base, &one, &other, &missing].map(Clone::clone));
    let held = |tip: &CommitId| place.repository().held_by(tip, &asked).unwrap();
    assert_eq!(held(&one), BTreeSet::from([base.clone(), one.clone()]));
    assert_eq!(held(&other), BTreeSet::from([base.clone(), other.clone()]));
    assert_eq!(held(&base), BTreeSet::from([base.clone()]));
}

#[test]
fn merge_base_equals_git() {
    let place = Place::new();
    let (base, one) = (place.commit(), place.commit());
    place.git(&["checkout", "--quiet", "--detach", base.as_str()]);
    std::fs::write(place.root.join("other"), "").unwrap();
    let other = place.commit();
    place.git(&["checkout", "--quiet", "--orphan", "alone"]);
    let alone = place.commit();
    let found = |one: &CommitId, other: &CommitId| merge_base(&place.repository(), one, other).unwrap();
    assert_eq!((found(&one, &other), found(&one, &base)), (Some(base.clone()), Some(base)));
    assert_eq!(found(&one, &alone), None);
}

/// Whether a thread or process waits for the lock in `file`.
fn is_waited_for(file: &Path) -> bool {
    let inode = format!(":{} ", fs::metadata(file).map(|facts| facts.ino()).unwrap_or_default());
    let locks = fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|line| line.contains("->") && line.contains(&inode))
}

#[test]
fn settings_writer_keeps_temporary_files_of_others() {
    let place = Place::new();
    place.commit();
    let repository = Repository::discover(&place.root).unwrap();
    let own = repository.own_directory().unwrap();
    let theirs = temporary_beside(&own.join("behind"));
    std::thread::scope(|scope| {
        let held = repository.holding(Guarded::Settings, |_| {
            let late = scope.spawn(|| change(&repository, repository.common_dir(), |_| Ok(())));
            while !is_waited_for(&own.join("settings.guard")) {
                assert!(!late.is_finished(), "it did not wait");
                std::thread::yield_now();
            }
            atomic::write(&own.join("libgit2.config"), DURABLE.as_bytes())?;
            fs::write(&theirs, "").unwrap();
            Ok(())
        });
        held.unwrap();
    });
    assert!(theirs.exists());
}
