//! Every environment variable that is read, and the layer of settings that they make.

use super::table::{KEYS, Layer};
use super::{Environment, Fault, Key, Origin, Surroundings, absolute, nearest};

macro_rules! variables {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal;)*) => {
        $($(#[doc = $doc])+ pub const $name: &str = $text;)*

        /// Every variable that Lanekeeper reads itself, with what it is for.
        pub const VARIABLES: &[(&str, &str)] = &[$(($text, concat!($($doc),+)),)*];
    };
}

variables! {
    /// Sets `base`.
    BASE = "LANEKEEPER_BASE";
    /// Sets `max_parallel`.
    MAX_PARALLEL = "LANEKEEPER_MAX_PARALLEL";
    /// Sets `runner`.
    RUNNER = "LANEKEEPER_RUNNER";
    /// Sets `retries`.
    RETRIES = "LANEKEEPER_RETRIES";
    /// Sets `allow_empty`.
    ALLOW_EMPTY = "LANEKEEPER_ALLOW_EMPTY";
    /// Sets `merge`.
    MERGE = "LANEKEEPER_MERGE";
    /// Sets `worktree_root`.
    WORKTREE_ROOT = "LANEKEEPER_WORKTREE_ROOT";
    /// Sets `checkpoint_path`.
    CHECKPOINT_PATH = "LANEKEEPER_CHECKPOINT_PATH";
    /// Sets `log_path`.
    LOG_PATH = "LANEKEEPER_LOG_PATH";
    /// Sets `progress`.
    PROGRESS = "LANEKEEPER_PROGRESS";
    /// Sets `fail_fast`.
    FAIL_FAST = "LANEKEEPER_FAIL_FAST";
    /// Sets `bisect_merges`.
    BISECT_MERGES = "LANEKEEPER_BISECT_MERGES";
    /// Sets `must_haves`.
    MUST_HAVES = "LANEKEEPER_MUST_HAVES";
    /// Sets `timeout`.
    TIMEOUT = "LANEKEEPER_TIMEOUT";
    /// Sets `max_cost`.
    MAX_COST = "LANEKEEPER_MAX_COST";
    /// Sets `max_tokens`.
    MAX_TOKENS = "LANEKEEPER_MAX_TOKENS";
    /// Sets `kill_after`.
    KILL_AFTER = "LANEKEEPER_KILL_AFTER";
    /// Sets `backoff`.
    BACKOFF = "LANEKEEPER_BACKOFF";
    /// Sets `outage_limit`.
    OUTAGE_LIMIT = "LANEKEEPER_OUTAGE_LIMIT";
    /// Sets `task_timeout`.
    TASK_TIMEOUT = "LANEKEEPER_TASK_TIMEOUT";
    /// Sets `specialist_timeout`.
    SPECIALIST_TIMEOUT = "LANEKEEPER_SPECIALIST_TIMEOUT";
    /// Sets `specialist_timeout`, usually in seconds (seed 002).
    SPECIALIST_TIMEOUT_SEED = "SPECIALIST_TIMEOUT";
    /// Sets `on_orphan`.
    ON_ORPHAN = "LANEKEEPER_ON_ORPHAN";
    /// Sets `keep_pool`.
    KEEP_POOL = "LANEKEEPER_KEEP_POOL";
    /// Sets `keep_caches`.
    KEEP_CACHES = "LANEKEEPER_KEEP_CACHES";
    /// Sets `checkpoint_tags`.
    CHECKPOINT_TAGS = "LANEKEEPER_CHECKPOINT_TAGS";
    /// Sets `checkpoint_every`.
    CHECKPOINT_EVERY = "LANEKEEPER_CHECKPOINT_EVERY";
    /// Sets `checkpoint_every_tool_calls`.
    CHECKPOINT_EVERY_TOOL_CALLS = "LANEKEEPER_CHECKPOINT_EVERY_TOOL_CALLS";
    /// Sets `checkpoint_before`, one pattern a line.
    CHECKPOINT_BEFORE = "LANEKEEPER_CHECKPOINT_BEFORE";
    /// Sets `checkpoint_keep`.
    CHECKPOINT_KEEP = "LANEKEEPER_CHECKPOINT_KEEP";
    /// Sets `gsd_tracking`.
    GSD_TRACKING = "LANEKEEPER_GSD_TRACKING";
    /// Sets `redact`, one pattern a line.
    REDACT = "LANEKEEPER_REDACT";
    /// Sets `heartbeat`.
    HEARTBEAT = "LANEKEEPER_HEARTBEAT";
    /// Sets `allow_unknown`.
    ALLOW_UNKNOWN = "LANEKEEPER_ALLOW_UNKNOWN";
    /// Sets `session_id`.
    SESSION_ID = "LANEKEEPER_SESSION_ID";
    /// Sets `session_id` where `LANEKEEPER_SESSION_ID` does not.
    CLAUDE_SESSION_ID = "CLAUDE_SESSION_ID";
    /// The same, as Claude Code sets it for what it starts.
    CLAUDE_CODE_SESSION_ID = "CLAUDE_CODE_SESSION_ID";
    /// Sets `on_lock_conflict`.
    ON_LOCK_CONFLICT = "LANEKEEPER_ON_LOCK_CONFLICT";
    /// Sets `state_remote`.
    STATE_REMOTE = "LANEKEEPER_STATE_REMOTE";
    /// Sets `ci`.
    CI = "LANEKEEPER_CI";
    /// Sets `forge`.
    FORGE = "LANEKEEPER_FORGE";
    /// Sets `pull_request_command`, one word a line.
    PULL_REQUEST_COMMAND = "LANEKEEPER_PULL_REQUEST_COMMAND";
    /// Sets `remote`.
    REMOTE = "LANEKEEPER_REMOTE";
    /// Which diagnostics are written, where no `-v` says so: `info`, `lanekeeper::git=debug`.
    LOG = "LANEKEEPER_LOG";
    /// Where the user's configuration directory is; default `$HOME/.config`.
    XDG_CONFIG_HOME = "XDG_CONFIG_HOME";
    /// The user's home.
    HOME = "HOME";
}

/// The layer that `variables` make. An empty variable counts as absent.
pub(super) fn read(variables: &Environment, surroundings: &Surroundings) -> (Layer, Vec<Fault>) {
    let mut layer = Layer::default();
    let mut faults = unknown(variables);
    for key in KEYS {
        let Some(name) = key.variables.iter().find(|name| is_set(variables, name)) else { continue };
        if let Err(message) = set(&mut layer, key, name, variables) {
            faults.push(Fault::error(Origin::Environment((*name).to_owned()), message));
        }
    }
    (layer.place_paths(|path| absolute(&surroundings.directory, path)), faults)
}

fn is_set(variables: &Environment, name: &str) -> bool {
    variables.get(name).is_some_and(|value| !value.is_empty())
}

fn set(layer: &mut Layer, key: &Key, name: &str, variables: &Environment) -> Result<(), String> {
    let text = variables[name].to_str().ok_or_else(|| format!("`{name}` is not UTF-8"))?;
    let read = layer.set(key.name, text, Origin::Environment(name.to_owned()));
    read.map_err(|message| format!("`{name}` is {}: {message}", key.kind))
}

/// Variables that look like a misspelt one of ours. Others with our prefix are what an agent is told.
fn unknown(variables: &Environment) -> Vec<Fault> {
    let prefix = "LANEKEEPER_";
    let known = || VARIABLES.iter().filter_map(|(name, _)| name.strip_prefix(prefix));
    let ours = variables.keys().filter_map(|name| name.strip_prefix(prefix));
    ours.filter(|name| !known().any(|other| other == *name))
        .filter_map(|name| Some((name, nearest(name, known())?)))
        .map(|(name, meant)| {
            let name = format!("{prefix}{name}");
            let message = format!("the variable `{name}` means nothing to Lanekeeper");
            Fault::warning(Origin::Environment(name), message).help(format!("did you mean `{prefix}{meant}`?"))
        })
        .collect()
}
