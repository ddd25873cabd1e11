//! Running the git program, and its errors.

pub(crate) mod error;
pub(crate) mod program;

pub(crate) use error::{GitError, Result, io_error};
pub(crate) use program::{Git, ProgramError, nul_separated, path_text};
