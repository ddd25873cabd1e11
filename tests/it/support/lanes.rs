//! Runs of one shell line for each lane, and what became of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::{Ended, RUN, Running, STATE, TestEnv, wait_until};

impl TestEnv {
    /// Writes the plan of these lanes: name, what it depends on, the shell line of its one agent.
    pub(crate) fn lanes(&self, lanes: &[(&str, &[&str], &str)]) {
        let lane = |(id, depends_on, line): &(&str, &[&str], &str)| {
            // A run that takes the place of one whose log was lost finds the work done.
            let owned = if line.contains("README.md") { "README.md" } else { id };
            format!(
                "[[lane]]\nid = \"{id}\"\nagent_worktrees = \"on\"\nowns = [\"{id}/**\", \"{owned}\"]\ndepends_on = {depends_on:?}\nretries = 0\n\
                 [[lane.agent]]\nname = \"engineer\"\nround = \"implementation\"\nallow_empty = true\ncommand = [\"sh\", \"-c\", {line:?}]\n\n"
            )
        };
        self.plan(&format!("base_branch = \"main\"\n\n{}", lanes.iter().map(lane).collect::<String>()));
    }

    /// Starts run [`RUN`] and kills Lanewright, and nothing else, once `sign` exists.
    pub(crate) fn execute_and_kill_at(&self, sign: &str) {
        let running = self.execute_until(sign);
        running.signal(Signal::KILL);
        running.wait().exits(137);
    }

    /// Starts run [`RUN`] and waits until `sign` exists.
    pub(crate) fn execute_until(&self, sign: &str) -> Running {
        self.until_exists(self.start(&[]), sign)
    }

    /// Starts the binary and waits until `sign` exists.
    pub(crate) fn start_until(&self, arguments: &[&str], sign: &str) -> Running {
        self.until_exists(self.start_with(arguments, |command| command), sign)
    }

    fn until_exists(&self, mut running: Running, sign: &str) -> Running {
        wait_until(&format!("{sign} exists"), || {
            assert!(!running.has_ended(), "the run ended before {sign} existed");
            self.path(sign).exists()
        });
        running
    }

    /// Runs the binary with these variables.
    pub(crate) fn lanewright_in(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
        self.lanewright_with(arguments, |command| command.envs(variables.iter().copied()))
    }

    pub(crate) fn main(&self) -> String {
        self.git(&["rev-parse", "main"])
    }

    /// The files of a commit, each with its blob.
    pub(crate) fn tree(&self, commit: &str) -> String {
        self.git(&["ls-tree", "-r", commit])
    }

    pub(crate) fn branches(&self) -> String {
        self.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"])
    }

    /// The refs of snapshots.
    pub(crate) fn kept(&self) -> Vec<String> {
        self.git(&["for-each-ref", "--format=%(refname)", "refs/lanewright"]).lines().map(str::to_owned).collect()
    }

    /// Every object that a ref reaches.
    pub(crate) fn reachable(&self) -> BTreeSet<String> {
        let listing = self.git(&["rev-list", "--objects", "--no-object-names", "--all"]);
        listing.lines().map(str::to_owned).collect()
    }

    /// The name of every file in `worktree` that is not ignored, and the blob that would hold it.
    pub(crate) fn manifest(&self, worktree: &Path) -> Vec<(String, String)> {
        let files = self.git_in(worktree, &["ls-files", "--cached", "--others", "--exclude-standard"]);
        let present = files.lines().filter(|file| worktree.join(file).exists());
        let mut blobs: Vec<_> =
            present.map(|file| (file.to_owned(), self.git_in(worktree, &["hash-object", file]))).collect();
        blobs.sort();
        blobs
    }

    /// The worktree of the lane's agent.
    pub(crate) fn code(&self, lane: &str) -> PathBuf {
        fs::canonicalize(self.path(&format!("repo.lanes/{RUN}/{lane}/agents/engineer/code"))).expect("a worktree")
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.path(&format!("repo/{STATE}/{RUN}.jsonl"))
    }
}
