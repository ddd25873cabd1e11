//! Plan files of every format into one [`crate::model::Plan`], with every fault at once.
//!
//! The way of a plan: its text becomes a draft, the draft a plan (`validate`, the same for all). A native plan becomes a
//! tree with places on the way (`toml_tree`, `yaml`, `json`, then `native`); `gsd` reads the plans of a GSD phase and
//! `lanes` phase plans in Markdown. Nothing here opens a file or runs a program.

mod automaton;
mod before;
mod command;
mod diagnostic;
mod draft;
pub mod explain;
mod faults;
mod format;
mod front_matter;
pub mod graph;
mod gsd;
mod ids;
mod json;
mod keys;
mod lanes;
mod markdown;
mod native;
pub mod native_toml;
mod overlap;
mod path;
mod planning_files;
mod read;
pub mod roadmap;
mod scalar;
pub mod schema;
mod source;
mod source_text;
mod toml_tree;
pub mod tracking;
mod tree;
mod validate;
mod yaml;

pub use crate::model::PlanFormat;
pub use diagnostic::{Diagnostic, Excerpt, Severity};
pub use gsd::is_plan_name as is_gsd_plan_name;
pub use gsd::plan_is_done as gsd_plan_is_done;
pub use gsd::{PlanBeside as GsdPlanBeside, plans_beside as gsd_plans_beside};
pub(crate) use planning_files::planning_files;
pub use read::{Reading, read};
pub use source::{Fallbacks, ReadOptions, Source, SourceFile};
pub use source_text::{MAX_TEXT, decode};
