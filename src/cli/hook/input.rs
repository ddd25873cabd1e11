//! What Claude Code tells a hook.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// The fields that matter to us; each may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Input {
    /// The session.
    pub(super) session_id: String,
    /// Where the session works now.
    pub(super) cwd: PathBuf,
    /// What the user typed.
    pub(super) prompt: String,
    /// Whether the session goes on only because a hook wanted it to.
    pub(super) stop_hook_active: bool,
    /// The tool that was used.
    pub(super) tool_name: String,
    /// What it was given.
    pub(super) tool_input: Value,
}

/// How much is read, in bytes; results of tools may be large, and this is larger.
const MOST: u64 = 64 << 20;

impl Input {
    /// Reads standard input to its end; `None`: it is not what a hook is told.
    pub(super) fn read() -> Option<Self> {
        let mut bytes = Vec::new();
        io::stdin().lock().take(MOST).read_to_end(&mut bytes).ok()?;
        // Serde would take a list for the fields in their order.
        bytes.trim_ascii_start().strip_prefix(b"{")?;
        serde_json::from_slice(&bytes).inspect_err(|error| tracing::debug!("standard input: {error}")).ok()
    }
}
