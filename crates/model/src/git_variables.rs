//! Which of git's environment variables are passed to child processes.

use std::ffi::OsStr;

/// The variables of git's that belong to the user and the machine. All others name a repository, an index or a moment
/// of the process that started Lanewright (a hook, an alias, an agent) and must reach neither git nor agents.
const KEPT_VARIABLES: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
];

/// Whether `name` is a variable of git's that must not be handed on.
pub fn is_foreign_git_variable(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("GIT_") && !KEPT_VARIABLES.contains(&name.as_ref())
}

/// How names begin of variables that say how other machines are reached, and with which credentials. `GIT_CONFIG_COUNT`
/// and what belongs to it are what CI systems give credentials with.
const TRANSPORT_PREFIXES: &[&str] = &[
    "GIT_ASKPASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
    "GIT_HTTP_",
    "GIT_PROXY_",
    "GIT_SSH_VARIANT",
    "GIT_SSL_",
];

/// Whether `name` is a variable of git's that commands need which reach another machine.
pub fn is_transport_variable(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    TRANSPORT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// How names begin of variables that say how git shows something to the user.
const DISPLAY_PREFIXES: &[&str] = &["GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_EDITOR", "GIT_CONFIG_"];

/// Whether `name` is a variable of git's that counts where git works on the user's terminal.
pub fn is_display_variable(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    DISPLAY_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_variables_of_git_are_foreign() {
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_AUTHOR_DATE", "GIT_CONFIG_PARAMETERS"] {
            assert!(is_foreign_git_variable(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "GIT_CONFIG_GLOBAL", "GIT_COMMITTER_EMAIL"] {
            assert!(!is_foreign_git_variable(OsStr::new(name)), "{name}");
        }
        assert!(is_transport_variable(OsStr::new("GIT_CONFIG_KEY_0")));
        assert!(!is_transport_variable(OsStr::new("GIT_CONFIG_PARAMETERS")), "those of `git -c` are the caller's");
    }
}
