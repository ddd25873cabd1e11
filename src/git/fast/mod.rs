//! What libgit2 does in process instead of the git program.

pub(crate) mod durable;
pub(crate) mod libgit2;
pub(crate) mod merge_by_name;
pub(crate) mod recent_objects;
