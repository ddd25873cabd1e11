//! Running the git program, and its errors.

pub(crate) mod error;
pub(crate) mod places;
pub(crate) mod program;

pub(crate) use error::{GitError, Result, io_error};
pub(crate) use places::{COMMON, PRIVATE, PRIVATE_GIT, entry_behind, link_target, read_line};
pub(crate) use program::{Git, ProgramError, nul_separated, path_text};
