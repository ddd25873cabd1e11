//! Runs the programs of forges.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lanewright_files::time_limit::output_within;
use lanewright_files::timing::{TARGET, outside};
use lanewright_model::text::{last_lines, shell_line};
use lanewright_model::{is_foreign_git_variable, is_transport_variable};

use super::error::ForgeError;

const LIMIT: Duration = Duration::from_secs(120);

const SHOWN_LINES: usize = 20;

/// What keeps programs from asking, from colours, and from news about themselves.
const QUIET: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GLAB_CHECK_UPDATE", "false"),
    // In a job of GitLab it takes the job's token, unless it has another one.
    ("GLAB_ENABLE_CI_AUTOLOGIN", "true"),
    ("NO_PROMPT", "1"),
    ("NO_COLOR", "1"),
    ("CLICOLOR_FORCE", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

pub(super) fn run(directory: &Path, words: &[String], variables: &[(String, String)]) -> Result<String, ForgeError> {
    let shown = || shell_line(words);
    let Some((program, arguments)) = words.split_first() else { return Err(ForgeError::NoCommand) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if is_foreign_git_variable(&name) && !is_transport_variable(&name) {
            command.env_remove(name);
        }
    }
    command.envs(QUIET.iter().copied()).envs(variables.iter().cloned());
    let _span = tracing::debug_span!(target: TARGET, "forge", title = program.as_str(), command = shown()).entered();
    let output = match outside(|| output_within(command, LIMIT)) {
        Ok(Some(output)) => output,
        Ok(None) => return Err(ForgeError::TimedOut { command: shown(), limit: LIMIT }),
        Err(source) => return Err(ForgeError::Start { command: shown(), source }),
    };
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let all = format!("{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let said = last_lines(&all, SHOWN_LINES).join("\n");
    Err(ForgeError::Failed { command: shown(), code: output.status.code(), said })
}

pub(super) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_executable(&directory.join(program)))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

pub(super) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// A line of a job's log, without the time that a forge puts before it.
pub(super) fn without_time(line: &str) -> &str {
    let is_time = |word: &str| word.len() > 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
    line.split_once(' ').filter(|(word, _)| is_time(word)).map_or(line, |(_, rest)| rest)
}
