//! The manifest of a pushed state: its run, its progress, and the commits of its branches and refs.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use lanewright_model::cells::clean;
use lanewright_model::digest::sha256;
use lanewright_model::event::{AGENT_BRANCHES, LANE_BRANCHES, Place, RunOutcome};
use lanewright_model::{CommitId, PhaseId, RunId, Timestamp};
use lanewright_store::run_files::RunFile;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::state_sync::error::{Result, StateSyncError};

/// The version of what is pushed, `major.minor`.
pub(super) const FORMAT: &str = "1.0";

pub(super) const NAME: &str = "state.json";

/// The directories of a state: the files of the run, and the pieces of its log.
pub(super) const FILES: &str = "files/";
pub(super) const LOG: &str = "log/";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub lanewright: String,
    pub run_id: RunId,
    pub phase: PhaseId,
    pub host: String,
    pub repository: PathBuf,
    pub worktree_root: PathBuf,
    pub records: u64,
    pub at: Timestamp,
    pub log_bytes: u64,
    pub log_sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
    pub base_branch: String,
    pub integration: CommitId,
    /// What the names of the run's branches begin with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub branch_prefix: String,
    /// The run's branches with unmerged work, without `refs/heads/`.
    pub branches: BTreeMap<String, CommitId>,
    pub references: BTreeMap<String, CommitId>,
    /// The only process that may push the run; `None`: any whose log continues this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The run that placed it, of which it is a lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_by: Option<RunId>,
    /// A commit of the base branch that has the work of a run that is done, by other commits than its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<CommitId>,
}

/// What a process pushes a run under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Differs for every claim, so that no two claims are the same commit.
    pub id: String,
    pub host: String,
    pub at: Timestamp,
}

impl Claim {
    pub fn new(host: String, at: Timestamp) -> Self {
        Self { id: Uuid::now_v7().to_string(), host, at }
    }
}

/// The part of a manifest that decides whether the rest can be read.
#[derive(Deserialize)]
struct Head {
    format: String,
}

impl Manifest {
    /// Reads a manifest that any process may have written.
    pub(super) fn read(bytes: &[u8], remote: &str, run: &RunId) -> Result<Self> {
        let damaged = |reason: String| StateSyncError::damaged(remote, run, &reason);
        let head: Head = serde_json::from_slice(bytes).map_err(|error| damaged(format!("{NAME}: {error}")))?;
        let major = |format: &str| format.split('.').next().and_then(|number| number.parse::<u32>().ok());
        if major(&head.format) != major(FORMAT) {
            return Err(StateSyncError::NewerFormat { run: run.clone(), found: clean(&head.format), known: FORMAT });
        }
        let mut manifest: Self = serde_json::from_slice(bytes).map_err(|error| damaged(format!("{NAME}: {error}")))?;
        // It is shown in lists and messages.
        manifest.host = clean(&manifest.host);
        manifest.claim.iter_mut().for_each(|claim| claim.host = clean(&claim.host));
        match manifest.fault(run) {
            Some(fault) => Err(damaged(format!("{NAME}: {fault}"))),
            None => Ok(manifest),
        }
    }

    /// The file of a state that holds it.
    pub(super) fn file(&self) -> serde_json::Result<RunFile> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok((NAME.to_owned(), text))
    }

    /// Whether the process that pushed it had ended the run, in whatever way.
    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// Whether the state was pushed with a beginning of this log.
    pub(super) fn is_continued_by(&self, log: &[u8]) -> bool {
        let length = usize::try_from(self.log_bytes).unwrap_or(usize::MAX);
        log.get(..length).is_some_and(|beginning| sha256(beginning) == self.log_sha256)
    }

    pub fn is_done(&self) -> bool {
        self.outcome == Some(RunOutcome::Done)
    }

    pub(super) fn place(&self) -> Place {
        let (repository, worktree_root) = (self.repository.clone(), self.worktree_root.clone());
        Place { host: self.host.clone(), repository, worktree_root }
    }

    pub(super) fn commits(&self) -> Vec<CommitId> {
        let named = std::iter::once(&self.integration).chain(self.branches.values()).chain(self.references.values());
        let mut commits: Vec<CommitId> = named.cloned().collect();
        commits.sort();
        commits.dedup();
        commits
    }

    fn fault(&self, run: &RunId) -> Option<String> {
        if self.run_id != *run {
            return Some(format!("it is of run {}", self.run_id));
        }
        if !is_branch(&self.base_branch) {
            return Some(format!("`{}` can be no branch", self.base_branch));
        }
        if let Some(place) = [&self.repository, &self.worktree_root].into_iter().find(|place| !is_normalized(place)) {
            return Some(format!("`{}` is no absolute path", place.display()));
        }
        let own = [LANE_BRANCHES, AGENT_BRANCHES].map(|names| format!("{}{names}/{}/", self.branch_prefix, self.phase));
        let foreign = |name: &&String| !is_own(name, &own);
        if let Some(name) = self.branches.keys().find(foreign) {
            return Some(format!("`{name}` is no branch of a lane of phase {}", self.phase));
        }
        let spaces = ["refs/lanewright/checkpoint/".to_owned(), "refs/tags/checkpoint/".to_owned()];
        let foreign = self.references.keys().find(|name| !is_own(name, &spaces));
        foreign.map(|name| format!("`{name}` is no checkpoint"))
    }
}

/// Whether git takes `name` for a branch's, in every place and every option that it is given as, and a person can read it.
fn is_branch(name: &str) -> bool {
    let sound = git2::Reference::is_valid_name(&format!("refs/heads/{name}")) && clean(name) == name;
    sound && !name.starts_with('-') && !matches!(name, "HEAD" | "@")
}

/// Whether a path is absolute and leads straight down.
fn is_normalized(path: &Path) -> bool {
    path.is_absolute() && path.components().all(|part| part != Component::ParentDir)
}

/// Whether `name` begins with one of `prefixes`, and git and a file system take the rest for what it is.
fn is_own(name: &str, prefixes: &[String]) -> bool {
    let Some(rest) = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix.as_str())) else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let sound = |part: &str| !part.starts_with(['.', '-']) && !part.ends_with(".lock") && !part.ends_with('.');
    !name.contains("..") && rest.split('/').all(|part| !part.is_empty() && part.bytes().all(plain) && sound(part))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn manifest() -> Manifest {
        let commit = |digit: char| CommitId::new(&digit.to_string().repeat(40)).unwrap();
        Manifest {
            format: FORMAT.to_owned(),
            lanewright: "0.1.0".to_owned(),
            run_id: RunId::new("r1").unwrap(),
            phase: PhaseId::new("P1").unwrap(),
            host: "ci".to_owned(),
            repository: "/ci".into(),
            worktree_root: "/ci.lanes".into(),
            records: 7,
            at: Timestamp::from_unix_millis(0),
            log_bytes: 1,
            log_sha256: String::new(),
            outcome: None,
            base_branch: "main".to_owned(),
            integration: commit('a'),
            branch_prefix: String::new(),
            branches: BTreeMap::from([("lane/P1/A".to_owned(), commit('b'))]),
            references: BTreeMap::from([("refs/lanewright/checkpoint/P1-A/t".to_owned(), commit('b'))]),
            claim: None,
            placed_by: None,
            published: None,
        }
    }

    fn read(text: &str) -> Result<Manifest, String> {
        Manifest::read(text.as_bytes(), "origin", &RunId::new("r1").unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn manifest_round_trips_with_each_commit_once() {
        let text = serde_json::to_string(&manifest()).unwrap();
        assert_eq!(read(&text).unwrap(), manifest());
        assert_eq!(manifest().commits().len(), 2);
        let named = text.replace("lane/P1/A", "bot/lane/P1/A");
        assert!(read(&named).unwrap_err().contains("damaged"));
        assert!(read(&named.replace("\"branches\"", "\"branch_prefix\":\"bot/\",\"branches\"")).is_ok());
    }

    #[test]
    fn names_of_other_runs_are_refused() {
        let text = serde_json::to_string(&manifest()).unwrap();
        let foreign = [
            ("lane/P1/A", "main"),
            ("lane/P1/A", "lane/P2/A"),
            ("lane/P1/A", "lane/P1/../../main"),
            ("lane/P1/A", "lane/P1/A.lock"),
            ("lane/P1/A", "lane/P1/"),
            ("refs/lanewright/checkpoint/P1-A/t", "refs/heads/main"),
            ("refs/lanewright/checkpoint/P1-A/t", "refs/lanewright/checkpoint/a b"),
            ("\"run_id\":\"r1\"", "\"run_id\":\"r2\""),
            ("\"main\"", "\"-evil\""),
            ("\"main\"", "\"HEAD\""),
            ("\"main\"", "\"x/../y\""),
            ("\"main\"", "\"a b\""),
            ("\"main\"", "\"\""),
            ("\"main\"", "\"a\u{202e}b\""),
            ("\"/ci.lanes\"", "\"\""),
            ("\"/ci.lanes\"", "\"/ci/../etc\""),
        ];
        for (known, name) in foreign {
            let error = read(&text.replace(known, name)).unwrap_err();
            assert!(error.contains("damaged"), "{name}: {error}");
        }
    }

    #[test]
    fn host_name_cannot_forge_a_line() {
        let text = serde_json::to_string(&manifest()).unwrap();
        let forged = text.replace("\"ci\"", r#""ci\u001b[2K\r\nPulled run r9""#);
        assert_eq!(read(&forged).unwrap().host, "ci  Pulled run r9");
        let error = read(&text.replace("lane/P1/A", r"lane\u001b[2K\nforged")).unwrap_err();
        assert!(!error.contains(char::is_control), "{error:?}");
    }

    #[test]
    fn newer_minor_is_read_other_major_is_refused() {
        let text = serde_json::to_string(&manifest()).unwrap();
        assert_eq!(read(&text.replace("\"1.0\"", "\"1.7\",\"colour\":\"red\"")).unwrap().format, "1.7");
        let error = read(r#"{"format":"2.0","colour":"red"}"#).unwrap_err();
        assert!(error.contains("has format 2.0"), "{error}");
        assert!(read("{}").unwrap_err().contains("damaged"));
    }
}
