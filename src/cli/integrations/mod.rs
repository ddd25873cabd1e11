//! Other programs: those that call Lanewright, with what they need for that in a repository, and those that it notifies.

pub(super) mod hook;
pub(super) mod init;
pub(super) mod mcp;
pub(super) mod notify;
