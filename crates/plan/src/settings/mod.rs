//! Settings: layers from flag to default, each value with its origin (SPEC §2).
//!
//! Pure: the texts of the files and the environment come in as data. [`Layers::read`] checks everything that was
//! written anywhere and answers with every fault at once; what it returns can no longer fail.

pub mod environment;
mod fault;
mod file;
mod invocation;
pub mod key;
mod layers;
mod list_options;
mod origin;
mod render;
mod table;
mod template;
pub mod value;

pub use crate::diagnostic::Severity;
pub use fault::{Fault, Faults, FilePosition, nearest};
pub use file::ConfigFile;
pub(crate) use file::in_files;
pub use invocation::{Environment, Invocation, absolute};
pub use key::Key;
pub use lanewright_model::Progress;
pub use layers::Layers;
pub use origin::{Origin, Setting};
pub use render::{json, table};
pub use table::{KEYS, Layer, Settings};
pub use template::template;
pub use value::{OnConflict, OnLockConflict, Webhook};

#[cfg(test)]
mod tests;
