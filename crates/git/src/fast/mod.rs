//! What libgit2 does in process instead of the git program: the only access to it, one function for each question.
//!
//! A function returns `None` where libgit2 cannot answer, or did nothing. The git program is run then: it waits for the locks
//! of other processes, knows every format of a repository, and its messages can be looked up.

pub(crate) mod case_twins;
pub(crate) mod copied_objects;
pub(crate) mod durable;
pub(crate) mod libgit2;
pub(crate) mod merge_by_name;
pub(crate) mod merge_contents;
pub(crate) mod patch;
pub(crate) mod surely_clean;
