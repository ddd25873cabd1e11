//! What agents' git commands changed outside their worktrees, by the trace that git writes where variables ask for
//! it: what is found was done by the agent, whatever the user does meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use lanewright_files::{atomic, regular_file};
use lanewright_git as git;
use lanewright_model::text::{headline, shell_line};
use lanewright_model::{JobId, OutsideChanges, Timestamp};
use lanewright_programs::process;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::brief::BriefFiles;
use crate::executor::{Executor, Result};

/// The variable that names the file, which the user may have set.
const TARGET: &str = "GIT_TRACE2_EVENT";

/// How long a command is shown.
const LONGEST: usize = 100;

/// A git command that changed another checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::executor) struct OutsideCall {
    command: String,
    place: PathBuf,
    /// Where it moved the head from and to, shortened.
    moved: Option<(String, String)>,
}

impl fmt::Display for OutsideCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in {}", headline(&self.command, LONGEST), self.place.display())?;
        match &self.moved {
            Some((from, to)) => write!(f, " (its HEAD moved {from} → {to})"),
            None => Ok(()),
        }
    }
}

impl Executor {
    /// The variables with which git traces what the agent of an attempt does, into `file`.
    pub(super) fn git_trace(&self, file: &Path) -> Vec<(String, String)> {
        if self.outside_changes == OutsideChanges::Off || std::env::var_os(TARGET).is_some() {
            return Vec::new();
        }
        let file = file.to_string_lossy().into_owned();
        // Of each command its start, its place and its end, nothing about its work.
        let variables =
            [(TARGET, file.as_str()), ("GIT_TRACE2_EVENT_NESTING", "1"), ("GIT_TRACE2_ENV_VARS", "GIT_DIR")];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// What the agent of an attempt changed by git commands outside its worktree, in other checkouts of the repository.
    pub(in crate::executor) fn outside_calls(&self, job: &JobId) -> Vec<OutsideCall> {
        let text = regular_file::read_left(&BriefFiles::outside_calls(&self.run.job(job)));
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Takes them from the trace of an attempt that has ended in `worktree`; the trace is removed.
    ///
    /// # Errors
    /// The files in the attempt's directory cannot be written.
    pub(super) fn keep_outside_calls(&self, job: &JobId, worktree: &Path) -> Result<()> {
        let directory = self.run.job(job);
        let trace = BriefFiles::git_trace(&directory);
        if !trace.exists() {
            return Ok(());
        }
        let found = self.calls_in(&trace, worktree)?;
        if !found.is_empty() {
            atomic::replace(&BriefFiles::outside_calls(&directory), json!(found).to_string().as_bytes())?;
        }
        Ok(atomic::remove(&trace)?)
    }

    fn calls_in(&self, file: &Path, worktree: &Path) -> Result<Vec<OutsideCall>> {
        let others = self.repository.checkouts()?;
        let mut trace = Trace::default();
        let read = process::each_line(file, |line| {
            trace.read(line);
            Ok(true)
        });
        if let Err(error) = read {
            tracing::warn!("{} cannot be read: {error}", file.display());
        }
        let place_of = |call: &Call| {
            let common = self.repository.common_dir();
            // A relative one is below the directory that the command ran in.
            let named =
                call.git_dir.as_deref().and_then(|named| Some(resolved(&call.worktree.as_deref()?.join(named))));
            match named {
                Some(named) if named == common => Some(self.repository.main_worktree().to_owned()),
                Some(named) => others.iter().find(|other| git::is_directory_of(&named, other)).cloned(),
                None => {
                    let place = resolved(call.worktree.as_deref()?);
                    others.iter().find(|other| resolved(other) == place).cloned()
                }
            }
        };
        let own = resolved(worktree);
        let mut found: Vec<OutsideCall> = Vec::new();
        for call in trace.calls.into_values().filter(Call::has_written) {
            let Some(place) = place_of(&call).filter(|place| resolved(place) != own) else { continue };
            let moved = call.started.and_then(|since| git::last_move_of_head(&place, since));
            let moved = moved.map(|(from, to)| (from.short().to_owned(), to.short().to_owned()));
            let command = self.redactor.redact(&shell_line(without_values(call.argv))).into_owned();
            let call = OutsideCall { command, place, moved };
            if !found.contains(&call) {
                found.push(call);
            }
        }
        Ok(found)
    }
}

/// The words of a git command, of its settings (`-c`) the names alone: tokens are passed by them.
fn without_values(mut words: Vec<String>) -> Vec<String> {
    for at in 1..words.len() {
        if words[at - 1] == "-c"
            && let Some((name, _)) = words[at].split_once('=')
        {
            words[at] = format!("{name}=…");
        }
    }
    words
}

fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The commands of a trace, by the names of their processes.
#[derive(Default)]
struct Trace {
    calls: BTreeMap<String, Call>,
}

#[derive(Debug, Default)]
struct Call {
    started: Option<Timestamp>,
    argv: Vec<String>,
    name: String,
    worktree: Option<PathBuf>,
    git_dir: Option<PathBuf>,
    code: Option<i32>,
}

#[derive(Deserialize)]
struct Line {
    event: String,
    /// Those of the processes that started it, and its own, with `/` between.
    sid: String,
    time: Option<Timestamp>,
    argv: Option<Vec<String>>,
    worktree: Option<PathBuf>,
    name: Option<String>,
    param: Option<String>,
    value: Option<serde_json::Value>,
    code: Option<i32>,
}

impl Trace {
    fn read(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<Line>(line) else { return };
        let call = self.calls.entry(line.sid).or_default();
        match line.event.as_str() {
            "start" => (call.started, call.argv) = (line.time, line.argv.unwrap_or_default()),
            "cmd_name" => call.name = line.name.unwrap_or_default(),
            "def_repo" => call.worktree = call.worktree.take().or(line.worktree),
            "def_param" if line.param.as_deref() == Some("GIT_DIR") => {
                call.git_dir = line.value.and_then(|value| Some(value.as_str()?.into()));
            }
            "exit" => call.code = line.code,
            _ => {}
        }
    }
}

/// Commands that change a checkout or its refs, however they are called.
const WRITERS: &[&str] = &[
    "add",
    "am",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "commit",
    "filter-branch",
    "merge",
    "mv",
    "pull",
    "read-tree",
    "rebase",
    "replace",
    "reset",
    "restore",
    "revert",
    "rm",
    "switch",
    "update-index",
    "update-ref",
];

/// Commands that do so with the first of these words.
const WRITERS_WITH: &[(&str, &[&str])] = &[
    ("stash", &["push", "save", "pop", "apply", "drop", "clear", "branch", "store"]),
    ("worktree", &["add", "move", "prune", "remove"]),
    ("reflog", &["delete", "expire"]),
    ("notes", &["add", "append", "copy", "edit", "merge", "prune", "remove"]),
];

/// Options with which `branch` changes something, and those with which it and `tag` only list.
const CHANGING: &[&str] = &[
    "-d",
    "-D",
    "-m",
    "-M",
    "-c",
    "-C",
    "-f",
    "-u",
    "--delete",
    "--move",
    "--copy",
    "--force",
    "--set-upstream-to",
    "--unset-upstream",
    "--edit-description",
];
const LISTING: &[&str] = &[
    "-l",
    "--list",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
    "-n",
    "--format",
    "--sort",
    "--column",
    "-v",
    "-vv",
    "--verify",
    "--show-current",
];
const LISTING_BRANCHES: &[&str] = &["-a", "-r", "--all", "--remotes"];

/// Options with which a command changes nothing.
const HARMLESS: &[&str] = &["--dry-run", "--help", "--refresh", "--really-refresh"];

impl Call {
    /// Whether it succeeded and changes the checkout or refs of the repository that it ran in.
    fn has_written(&self) -> bool {
        let after = self.argv.iter().position(|word| *word == self.name).map_or(self.argv.len(), |at| at + 1);
        let words: Vec<&str> = self.argv[after..].iter().map(String::as_str).collect();
        let (options, others): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        let has = |known: &[&str]| options.iter().any(|word| known.contains(&word.split('=').next().unwrap_or(word)));
        let is_dry = || options.iter().any(|word| !word.starts_with("--") && word.contains('n'));
        let with =
            |(name, words): &(&str, &[&str])| *name == self.name && others.first().is_some_and(|it| words.contains(it));
        let writes = match self.name.as_str() {
            "add" | "clean" | "mv" | "rm" if is_dry() => false,
            name if WRITERS.contains(&name) => !has(HARMLESS),
            "stash" if others.is_empty() => true,
            "branch" => has(CHANGING) || !others.is_empty() && !has(LISTING) && !has(LISTING_BRANCHES),
            "tag" => !others.is_empty() && !has(LISTING),
            "symbolic-ref" => others.len() > 1 || has(&["-d", "--delete"]),
            _ => WRITERS_WITH.iter().any(with),
        };
        writes && self.code == Some(0)
    }
}

#[cfg(test)]
mod tests;
