//! What the formats of other programs have in common: check boxes, and the files, commands and documents that their
//! tasks name.

pub(crate) mod acceptance;
pub(super) mod boxes;
pub(super) mod commands_in_text;
pub(super) mod companions;
pub(super) mod documents;
pub(super) mod items;
pub(super) mod paths_in_text;
