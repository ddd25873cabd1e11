//! The git program: the one place that starts it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use lanewright_files::time_limit::output_within;
use lanewright_files::timing::{TARGET, outside};
use lanewright_model::text::shell_line;
use lanewright_model::time::exact;
use lanewright_model::{is_display_variable, is_foreign_git_variable, is_transport_variable};
use rustix::fs::{Access, access};

use crate::command::GitError;
use crate::command::places::named_places;

#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("cannot start git in {directory}: {source}")]
    Start { directory: PathBuf, source: io::Error },
    #[error("`{command}` in {directory} {}: {}", ended(*.code), cause_first(stderr))]
    Failed { command: String, directory: PathBuf, code: Option<i32>, stderr: String },
    #[error("`{command}` in {directory} was stopped after {}", exact(*.limit))]
    TimedOut { command: String, directory: PathBuf, limit: Duration },
}

fn ended(code: Option<i32>) -> String {
    code.map_or_else(|| "was ended by a signal".to_owned(), |code| format!("failed with exit code {code}"))
}

/// What git printed, with the line first that says why it gave up: where a message is shortened, its end is missing.
fn cause_first(said: &str) -> String {
    let mut lines: Vec<&str> = said.trim().lines().collect();
    lines.sort_by_key(|line| !line.starts_with("fatal: "));
    lines.dedup();
    lines.join("\n")
}

/// Settings of every git command of ours. Objects and refs are on disk before git reports them; no background work is
/// left behind in the user's repository; a ref that another process updates is waited for.
const CONFIGURATION: &[&str] = &[
    "core.fsync=committed",
    "core.fsyncMethod=batch",
    "core.fsmonitor=false",
    // Else it would run in submodules, whose settings an agent may have written.
    "submodule.recurse=false",
    "core.filesRefLockTimeout=10000",
    "core.packedRefsTimeout=10000",
    "commit.gpgSign=false",
    // As messages of ours are.
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Settings with which git compares files with an index as carefully as it can.
const CAREFUL: &[&str] = &[
    // With it git does not list a directory whose time is as it was, which is easily set back.
    "core.untrackedCache=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.ignoreStat=false",
];

#[derive(Debug, Clone)]
pub(crate) struct Git<'a> {
    directory: &'a Path,
    configuration: Vec<Cow<'a, str>>,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    /// What hooks get of the variables of this process; `None`: nothing.
    for_hooks: BTreeMap<&'a str, Option<String>>,
    stdin: Option<&'a File>,
    input: Option<Vec<u8>>,
    reaches_out: bool,
    limit: Option<Duration>,
    searches_upwards: bool,
}

impl<'a> Git<'a> {
    /// A git command in `directory`, which is never taken for a part of a repository above it.
    pub(crate) fn new(directory: &'a Path) -> Self {
        let mut git = Self { searches_upwards: false, ..Self::searching(directory) };
        if let Some(parent) = directory.parent() {
            git = git.variable("GIT_CEILING_DIRECTORIES", parent);
        }
        git
    }

    /// A git command in `directory`, where git looks for the repository upwards.
    pub(crate) fn searching(directory: &'a Path) -> Self {
        Self {
            directory,
            configuration: CONFIGURATION.iter().copied().map(Cow::from).collect(),
            arguments: Vec::new(),
            variables: Vec::new(),
            for_hooks: BTreeMap::new(),
            stdin: None,
            input: None,
            reaches_out: false,
            limit: None,
            searches_upwards: true,
        }
    }

    /// Runs no hook (seed 002).
    pub(crate) fn without_hooks(self) -> Self {
        self.configured("core.hooksPath=/dev/null")
    }

    /// Gives the hooks that it runs these variables.
    pub(crate) fn giving_hooks(mut self, variables: BTreeMap<&'a str, Option<String>>) -> Self {
        self.for_hooks = variables;
        self
    }

    pub(crate) fn configured(mut self, setting: impl Into<Cow<'a, str>>) -> Self {
        self.configuration.push(setting.into());
        self
    }

    /// Compares files with the index as carefully as git can, whatever the user's settings are.
    pub(crate) fn comparing_carefully(mut self) -> Self {
        self.configuration.extend(CAREFUL.iter().copied().map(Cow::from));
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// Writes nothing for convenience, such as a refreshed index.
    pub(crate) fn reading_only(self) -> Self {
        self.variable("GIT_OPTIONAL_LOCKS", "0")
    }

    /// Does not make each object durable: the caller does that for all of them at once.
    pub(crate) fn unsynced(self) -> Self {
        self.configured("core.fsync=pack,pack-metadata")
    }

    /// Keeps the variables that configure how git reaches other machines, and never asks the user.
    pub(crate) fn reaching_out(mut self) -> Self {
        self.reaches_out = true;
        self.variable("SSH_ASKPASS", "")
    }

    /// Kills it, with everything that it started, if it takes longer than `limit`.
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Another command with the same settings and variables.
    pub(crate) fn with_arguments<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Self {
        let (configuration, variables) = (self.configuration.clone(), self.variables.clone());
        let searches_upwards = self.searches_upwards;
        Self { configuration, variables, searches_upwards, ..Self::searching(self.directory) }.args(arguments)
    }

    /// Gives it a lock file, which is empty, as its standard input: a git that outlives a killed Lanewright keeps the lock.
    pub(crate) fn stdin(mut self, lock: &'a File) -> Self {
        self.stdin = Some(lock);
        self
    }

    /// Gives it `bytes` on its standard input, in place of a lock file.
    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    pub(crate) fn attempt(&self) -> Result<Output, ProgramError> {
        let _span = tracing::debug_span!(target: TARGET, "git", title = self.title(), command = self.shown()).entered();
        let output = self.command().and_then(|mut command| {
            outside(|| match self.limit {
                Some(limit) => output_within(command, limit),
                None => command.output().map(Some),
            })
        });
        match output {
            Ok(Some(output)) => Ok(output),
            Ok(None) => {
                let (command, directory) = (self.shown(), self.directory.to_owned());
                Err(ProgramError::TimedOut { command, directory, limit: self.limit.unwrap_or_default() })
            }
            Err(source) => Err(ProgramError::Start { directory: self.directory.to_owned(), source }),
        }
    }

    /// Runs it; a code other than 0 is an error.
    pub(crate) fn run(&self) -> Result<Vec<u8>, ProgramError> {
        let output = self.attempt()?;
        if output.status.success() { Ok(output.stdout) } else { Err(self.failure(&output)) }
    }

    /// Runs it; its output as text without the newline.
    pub(crate) fn line(&self) -> Result<String, ProgramError> {
        let answer = self.run()?;
        Ok(String::from_utf8_lossy(&answer).trim_end_matches('\n').to_owned())
    }

    /// The same; `None`: its exit code is 1.
    pub(crate) fn line_if_any(&self) -> Result<Option<String>, ProgramError> {
        let output = self.attempt()?;
        match output.status.code() {
            Some(0) => Ok(Some(path_text(&output.stdout).trim_end_matches('\n').to_owned())),
            Some(1) => Ok(None),
            _ => Err(self.failure(&output)),
        }
    }

    /// Runs it; whether its exit code is 0 and not 1.
    pub(crate) fn yes(&self) -> Result<bool, ProgramError> {
        Ok(self.line_if_any()?.is_some())
    }

    /// Runs it; the parts of its `-z` output.
    pub(crate) fn paths(&self) -> Result<Vec<String>, ProgramError> {
        Ok(nul_separated(&self.run()?).map(path_text).collect())
    }

    /// The error for a failed `output` of this command.
    pub(crate) fn failure(&self, output: &Output) -> ProgramError {
        ProgramError::Failed {
            command: self.shown(),
            directory: self.directory.to_owned(),
            code: output.status.code(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn title(&self) -> String {
        let mut words = self.arguments.iter().map(|argument| argument.to_string_lossy());
        let mut command = words.next().unwrap_or_default();
        while command.starts_with('-') {
            // Of what comes before the command, this is the only option with a word of its own.
            let skipped = usize::from(command == "--git-dir");
            command = words.nth(skipped).unwrap_or_default();
        }
        format!("git {command}")
    }

    fn shown(&self) -> String {
        let arguments = self.arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
        shell_line(std::iter::once("git".to_owned()).chain(arguments))
    }

    fn is_kept_out(&self, variable: &OsStr) -> bool {
        is_foreign_git_variable(variable) && !(self.reaches_out && is_transport_variable(variable))
    }

    fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(program());
        for (name, _) in std::env::vars_os().filter(|(name, _)| self.is_kept_out(name)) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        for (name, value) in &self.for_hooks {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.envs(named_places(self.directory, self.searches_upwards).into_iter().flatten());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.arg("-C").arg(self.directory);
        command.args(self.configuration.iter().flat_map(|setting| ["-c", setting.as_ref()]));
        command.args(&self.arguments);
        command.stdin(match (&self.input, self.stdin) {
            (Some(bytes), _) => {
                let mut file = tempfile::tempfile()?;
                file.write_all(bytes)?;
                file.rewind()?;
                Stdio::from(file)
            }
            (None, Some(lock)) => Stdio::from(lock.try_clone()?),
            (None, None) => Stdio::null(),
        });
        Ok(command)
    }
}

/// The git program of `PATH`, looked up once: else each start asks the kernel about every directory before it.
fn program() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut candidates = std::env::split_paths(&path).filter(|it| it.is_absolute()).map(|it| it.join("git"));
        let is_program = |file: &PathBuf| access(file, Access::EXEC_OK).is_ok() && file.is_file();
        candidates.find(is_program).unwrap_or_else(|| PathBuf::from("git"))
    })
}

/// Runs git for the user: with their settings, their pager and their terminal. The exit code; `None`: a signal ended it.
pub fn run_for_user(directory: &Path, arguments: &[OsString]) -> Result<Option<i32>, GitError> {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if is_foreign_git_variable(&name) && !is_display_variable(&name) {
            command.env_remove(name);
        }
    }
    command.envs(named_places(directory, true).into_iter().flatten());
    let ended = command.arg("-C").arg(directory).args(arguments).status();
    let start = |source| ProgramError::Start { directory: directory.to_owned(), source };
    Ok(ended.map_err(start)?.code())
}

/// The oldest git with which the tests are run.
const NEEDED: [u32; 2] = [2, 39];

/// The oldest git that merges with drivers and without a worktree.
const MERGES_WITH_DRIVERS: [u32; 2] = [2, 41];

/// Makes sure that the git program is not too old, before anything is made with it.
pub fn require_version() -> Result<(), GitError> {
    let found = version()?;
    match version_in(&found) {
        Some(version) if version < NEEDED => {
            Err(GitError::TooOld { found, needed: NEEDED.map(|part| part.to_string()).join(".") })
        }
        _ => Ok(()),
    }
}

/// Whether merges of ours run the merge drivers that the user has set.
pub fn merges_with_drivers() -> Result<bool, GitError> {
    Ok(version_in(&version()?).is_none_or(|version| version >= MERGES_WITH_DRIVERS))
}

/// What `git version` says behind these words.
pub fn version() -> Result<String, GitError> {
    let said = Git::searching(Path::new(".")).arg("version").line()?;
    Ok(said.trim_start_matches("git version ").to_owned())
}

/// The first two numbers of a version; `None`: it is something else.
fn version_in(version: &str) -> Option<[u32; 2]> {
    let mut parts = version.split('.').map(|part| part.trim().parse().ok());
    Some([parts.next()??, parts.next()??])
}

pub(crate) fn nul_separated(answer: &[u8]) -> impl Iterator<Item = &[u8]> {
    answer.split(|&byte| byte == 0).filter(|part| !part.is_empty())
}

/// Bytes as text, with U+FFFD for what is not UTF-8.
pub(crate) fn path_text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_from_vendor_builds() {
        let said = ["2.9.5", "2.41.0.windows.1", "2.50.1 (Apple Git-155)", "3.0-rc1"];
        assert_eq!(said.map(version_in), [Some([2, 9]), Some([2, 41]), Some([2, 50]), None]);
        assert!(version_in("2.9.5") < Some(NEEDED) && version_in("3.0.1") > Some(NEEDED));
        assert_eq!(version_in("hub version 2.14"), None);
    }

    #[test]
    fn cause_of_a_failure_comes_first() {
        let said = "key: none\nerror: filter failed\nerror: filter failed\nfatal: secret: filter failed\n";
        assert_eq!(cause_first(said), "fatal: secret: filter failed\nkey: none\nerror: filter failed");
    }

    #[test]
    fn failure_shows_command_directory_code_and_stderr() {
        let directory = tempfile::tempdir().unwrap();
        let message = Git::new(directory.path()).args(["rev-parse", "a b"]).run().unwrap_err().to_string();
        for part in ["git rev-parse 'a b'", directory.path().to_str().unwrap(), "128", "not a git repository"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
