//! The message of Claude Code to a hook.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// The fields that matter here; each may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Input {
    pub(crate) session_id: String,
    pub(super) cwd: PathBuf,
    pub(crate) prompt: String,
    /// Whether the session continues only because a hook asked for it.
    pub(super) stop_hook_active: bool,
    pub(super) tool_name: String,
    pub(super) tool_input: Value,
}

/// How much is read, in bytes; results of tools may be large, and this is larger.
const MOST: u64 = 64 << 20;

impl Input {
    /// Reads standard input to its end; `None`: it is not such a message.
    pub(crate) fn read() -> Option<Self> {
        let mut bytes = Vec::new();
        io::stdin().lock().take(MOST).read_to_end(&mut bytes).ok()?;
        // Serde would take a list for the fields in their order.
        bytes.trim_ascii_start().strip_prefix(b"{")?;
        serde_json::from_slice(&bytes).inspect_err(|error| tracing::debug!("standard input: {error}")).ok()
    }
}
