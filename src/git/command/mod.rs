//! Running the git program, and its errors.

pub(crate) mod error;
pub(crate) mod program;
