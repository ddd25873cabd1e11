//! A run that stands still in the middle, with all kinds of work in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::commands::content_manifest::BlobManifest;
use crate::support::{Ended, Running, TestEnv};

/// One lane is merged. The agent of the other has a commit of its own, and changed, staged, new and ignored files; it
/// failed, and passes when it may.
const DONE: (&str, &[&str], &str) = ("SL-1", &[], "echo SL-1 >> $SCRATCH/ran; mkdir -p SL-1 && echo one > SL-1/a");
const OPEN: (&str, &[&str], &str) = (
    "SL-2",
    &["SL-1"],
    "mkdir -p SL-2 ignored; echo mine > SL-2/committed; git add .; git commit -qm half; echo changed >> SL-2/committed; \
     echo new > SL-2/new; echo staged > SL-2/staged; git add SL-2/staged; echo x > ignored/cache; \
     [ -e $SCRATCH/may-pass ] && echo done > SL-2/done",
);

/// What a Lanewright or a git of its own leaves that is killed.
const REPAIRED_BY_RESUME: [&str; 3] = ["log-torn", "index-lock", "worktree-prunable"];

/// A run with something to lose.
pub struct Patient {
    pub scratch: TestEnv,
}

impl Patient {
    /// Run `r1`, which has failed and can be resumed; the doctor finds nothing wrong with it.
    pub fn new() -> Self {
        let scratch = TestEnv::new();
        scratch.lanes(&[DONE, OPEN]);
        scratch.execute(&[]).exits(1);
        let patient = Self { scratch };
        assert_eq!(patient.kinds(&patient.look().exits(0)), Vec::<String>::new(), "before any damage");
        patient
    }

    /// `doctor --format json`, which writes nothing.
    pub fn look(&self) -> Ended {
        self.scratch.lanewright(&["doctor", "--format", "json"])
    }

    /// `doctor --fix --format json`.
    pub fn fix(&self) -> Ended {
        self.scratch.lanewright(&["doctor", "--fix", "--format", "json"])
    }

    /// Runs commands that were printed.
    #[track_caller]
    pub fn paste(&self, commands: &[String]) {
        for line in commands {
            self.shell(line).exits(0);
        }
    }

    /// What becomes of a line that a person types.
    pub fn shell(&self, line: &str) -> Ended {
        let program = Path::new(env!("CARGO_BIN_EXE_lanewright")).parent().unwrap();
        let mut shell = Command::new("sh");
        let path =
            format!("{}:{}:{}", program.display(), self.scratch.path("bin").display(), std::env::var("PATH").unwrap());
        self.scratch.pin(&mut shell).args(["-c", line]).env("PATH", path);
        Running::start(shell).wait()
    }

    /// The words for what was found. How full the machine's disk is says nothing about the run.
    pub fn kinds(&self, ended: &Ended) -> Vec<String> {
        let findings = ended.json()["findings"].as_array().unwrap().clone();
        let kinds = findings.iter().map(|finding| finding["kind"].as_str().unwrap().to_owned());
        kinds.filter(|kind| kind != "disk-nearly-full").collect()
    }

    /// What was found of that kind.
    #[track_caller]
    pub fn finding(&self, ended: &Ended, kind: &str) -> Value {
        let report = ended.json();
        let found = report["findings"].as_array().unwrap().iter().find(|finding| finding["kind"] == kind).cloned();
        found.unwrap_or_else(|| panic!("no {kind}: {}", ended.stdout))
    }

    /// Every blob there is.
    pub fn manifest(&self) -> BlobManifest {
        let manifest = BlobManifest::take(&self.scratch.path("repo"), &[self.scratch.path("repo.lanes")]);
        assert!(manifest.len() >= 3, "{manifest:?}");
        manifest
    }

    /// Every file and link below the test's directory, with what it holds, and git's refs.
    pub fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.scratch.path("")];
        while let Some(directory) = open.pop() {
            found.insert(directory.clone(), Vec::new());
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let path = entry.path();
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => open.push(path),
                    kind if kind.is_symlink() => {
                        let target = fs::read_link(&path).unwrap();
                        found.insert(path, target.to_string_lossy().into_owned().into_bytes());
                    }
                    _ => {
                        let held = fs::read(&path).unwrap_or_default();
                        found.insert(path, held);
                    }
                }
            }
        }
        found
    }

    /// The damage is named, by each kind; looking at it changes nothing.
    #[track_caller]
    pub fn is_found(&self, kinds: &[&str]) {
        self.is_named(kinds, 6);
    }

    #[track_caller]
    pub fn is_named(&self, kinds: &[&str], code: i32) {
        let before = self.everything();
        let looked = self.look().exits(code);
        let found = self.kinds(&looked);
        for kind in kinds {
            assert!(found.iter().any(|it| it == kind), "{kind} is not among {found:?}: {}", looked.stdout);
        }
        assert!(found.iter().all(|it| kinds.contains(&it.as_str())), "{found:?} for {kinds:?}: {}", looked.stdout);
        self.scratch.lanewright(&["doctor"]).exits(code);
        let after = self.everything();
        let changed: Vec<&PathBuf> =
            before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
        assert!(changed.is_empty(), "looking changed {changed:?}");
    }

    /// `--fix` repairs everything, and asked again finds nothing to do.
    #[track_caller]
    pub fn is_repaired(&self) -> Ended {
        let fixed = self.fix().exits(0);
        let before = self.everything();
        let again = self.fix().exits(0);
        let left = self.kinds(&again);
        let report = again.json();
        let all = report["findings"].as_array().unwrap();
        assert!(all.iter().all(|it| it["outcome"] == "found" && it["needs_action"] == false), "{left:?}");
        let after = self.everything();
        let changed: Vec<_> = before.iter().filter(|(path, held)| after.get(*path) != Some(held)).collect();
        assert!(changed.is_empty(), "the second time changed {:?}", changed.iter().map(|it| it.0).collect::<Vec<_>>());
        self.look().exits(0);
        fixed
    }

    /// The run goes on to its end with all that its agents do.
    #[track_caller]
    pub fn goes_on(&self) {
        fs::write(self.scratch.path("scratch/may-pass"), "").unwrap();
        self.scratch.resume(&["--accept-plan-change"]).exits(0);
        let files = self.scratch.tree("main");
        for file in ["SL-1/a", "SL-2/committed", "SL-2/new", "SL-2/staged", "SL-2/done"] {
            assert!(files.contains(file), "{file} is not in {files}");
        }
        self.look().exits(0);
    }

    /// The whole course: damage, look, repair, resume; nothing is lost.
    #[track_caller]
    pub fn recovers_from(kinds: &[&str], damage: impl FnOnce(&Self)) -> Self {
        let patient = Self::new();
        let manifest = patient.manifest();
        damage(&patient);
        let harmless = kinds.iter().all(|kind| REPAIRED_BY_RESUME.contains(kind));
        patient.is_named(kinds, if harmless { 0 } else { 6 });
        patient.is_repaired();
        manifest.assert_all_there();
        patient.goes_on_without_loss(manifest);
        patient
    }

    /// The same when what is not ignored was there before the worktrees were given back.
    #[track_caller]
    pub fn goes_on_without_loss(&self, manifest: BlobManifest) {
        let manifest = manifest.without_files_like("/ignored/");
        self.goes_on();
        manifest.assert_all_there();
    }

    /// The agent's worktree.
    pub fn slot(&self) -> PathBuf {
        self.scratch.code("SL-2")
    }

    /// The lane's own worktree.
    pub fn lane_slot(&self) -> PathBuf {
        fs::canonicalize(self.scratch.path("repo.lanes/r1/SL-2/code")).unwrap()
    }

    /// A file of the lane's that others read.
    pub fn lane_file(&self, name: &str) -> PathBuf {
        self.scratch.path(&format!("repo.lanes/r1/SL-2/{name}"))
    }

    /// The state directory.
    pub fn state(&self, name: &str) -> PathBuf {
        self.scratch.path(&format!("repo/.claude/ai-dev-kit/run-logs/{name}"))
    }

    /// Git's own directory for a worktree.
    pub fn entry(&self, worktree: &Path) -> PathBuf {
        let link = fs::read_to_string(worktree.join(".git")).unwrap();
        PathBuf::from(link.trim().strip_prefix("gitdir: ").unwrap())
    }
}

/// Changes JSON in a file.
pub fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, serde_json::to_string_pretty(&value).unwrap()).unwrap();
}
