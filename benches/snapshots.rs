//! How long keeping and committing work take: `cargo bench --bench snapshots`.
//!
//! Both are done as the engine has them done, in a worktree of 9,000 and one of 50,000 files of which ten changed, in
//! turns with what a person would do there by hand.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(missing_docs, reason = "a program")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lanewright_git::{CommitRequest, Repository, SnapshotRequest, commit_all, snapshot};

/// How many times each is done.
const ROUNDS: usize = 9;

/// How many files change in between.
const CHANGED: usize = 10;

/// How many files are in a directory.
const TOGETHER: usize = 20;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for files in [9_000, 50_000] {
        // Nothing is deleted before the end: some file systems make files slowly for a minute then.
        let place = scratch.path().join(files.to_string());
        let tree = Tree::plant(&place.join("repo"), files)?;
        tree.compare_snapshots()?;
        tree.compare_commits()?;
    }
    Ok(())
}

/// A repository in which files are edited.
struct Tree {
    place: PathBuf,
    files: usize,
    repository: Repository,
}

impl Tree {
    /// Everything is in one pack, as after a clone, and the index knows all of it.
    fn plant(place: &Path, files: usize) -> Result<Self> {
        fs::create_dir_all(place)?;
        git(place, &["init", "--quiet", "--initial-branch=main"])?;
        git(place, &["config", "user.name", "x"])?;
        git(place, &["config", "user.email", "x@example.invalid"])?;
        // Nothing goes on behind our back.
        git(place, &["config", "gc.auto", "0"])?;
        for number in 0..files {
            let path = place.join(name(number));
            fs::create_dir_all(path.parent().unwrap_or(place))?;
            fs::write(path, format!("// {number}\n{}", "fn nothing() {}\n".repeat(number % 40)))?;
        }
        git(place, &["add", "--all"])?;
        git(place, &["commit", "--quiet", "-m", "first"])?;
        git(place, &["repack", "-a", "-d", "--quiet"])?;
        wait_for_the_next_second(place)?;
        git(place, &["status"])?;
        // Nobody's tree is on its way to the disk when it is worked on.
        Command::new("sync").status()?;
        Ok(Self { place: place.to_owned(), files, repository: Repository::discover(place)? })
    }

    /// Files all over the tree change, others in each round.
    fn edit(&self, round: usize) -> Result<()> {
        for number in 0..CHANGED {
            let path = self.place.join(name((number * self.files / CHANGED + round * 7) % self.files));
            fs::write(&path, format!("{}// {round}\n", fs::read_to_string(&path)?))?;
        }
        Ok(())
    }

    fn compare_snapshots(&self) -> Result<()> {
        let head = self.repository.head_at(&self.place)?.commit;
        let keep = |round: usize| -> Result<()> {
            let request = SnapshotRequest {
                worktree: &self.place,
                reference: &format!("refs/lanewright/checkpoint/P1-A/{round}"),
                message: "kept",
                head: &head,
                since: &head,
            };
            snapshot(&self.repository, &request)?;
            Ok(())
        };
        let begun = Instant::now();
        keep(ROUNDS)?;
        let first = begun.elapsed();
        keep(ROUNDS + 1)?;
        let times = self.in_turns(keep, |_| git(&self.place, &["status"]), false)?;
        self.tell("snapshot", "git status", times);
        println!("{:>6} files  the first snapshot of a worktree {first:>9.2?}", self.files);
        Ok(())
    }

    fn compare_commits(&self) -> Result<()> {
        let ours = |_| -> Result<()> {
            let since = &self.repository.head_at(&self.place)?.commit;
            let (worktree, branch) = (&self.place, "main");
            let request = CommitRequest { worktree, branch, message: "work", trailers: &[], since };
            commit_all(&self.repository, &request)?;
            Ok(())
        };
        let theirs = |_| {
            git(&self.place, &["add", "--all"])?;
            git(&self.place, &["commit", "--quiet", "-m", "work"])
        };
        let times = self.in_turns(ours, theirs, true)?;
        self.tell("commit", "git add && git commit", times);
        Ok(())
    }

    /// The times of both, who is first by turns: each after edits of its own, or both after the same.
    fn in_turns(
        &self,
        ours: impl Fn(usize) -> Result<()>,
        theirs: impl Fn(usize) -> Result<()>,
        own_edits: bool,
    ) -> Result<[Vec<Duration>; 2]> {
        let acts: [&dyn Fn(usize) -> Result<()>; 2] = [&ours, &theirs];
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for turn in 0..2 {
                if turn == 0 || own_edits {
                    self.edit(2 * round + turn)?;
                }
                let whose = (round + turn) % 2;
                let begun = Instant::now();
                acts[whose](round)?;
                times[whose].push(begun.elapsed());
            }
        }
        Ok(times)
    }

    fn tell(&self, ours: &str, theirs: &str, times: [Vec<Duration>; 2]) {
        let [one, other] = times.map(median);
        let ratio = one.as_secs_f64() / other.as_secs_f64();
        println!("{:>6} files  {ours} {one:>9.2?}  {theirs} {other:>9.2?}  ratio {ratio:.2}", self.files);
    }
}

fn name(number: usize) -> String {
    let directory = number / TOGETHER;
    format!("m{:03}/d{:02}/f{:02}.rs", directory / 50, directory % 50, number % TOGETHER)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// What is as young as the index is read again by every command.
fn wait_for_the_next_second(place: &Path) -> Result<()> {
    let second = |path: &Path| -> Result<_> {
        Ok(fs::metadata(path)?.modified()?.duration_since(std::time::SystemTime::UNIX_EPOCH)?.as_secs())
    };
    let probe = place.join(".git/probe");
    while {
        fs::write(&probe, "")?;
        second(&probe)? <= second(&place.join(".git/index"))?
    } {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn git(place: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    command.current_dir(place).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status()?.success() { Ok(()) } else { Err(format!("git {arguments:?} failed").into()) }
}
