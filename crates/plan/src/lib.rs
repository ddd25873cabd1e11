//! Plan files of every format into one [`lanewright_model::Plan`], and the settings of a repository, a user and a command
//! line into one value each, with every fault at once.
//!
//! A reader in `formats` makes a draft of the text, and `validate` makes a plan of the draft, the same for all formats.
//! Nothing here opens a file or runs a program: the texts and the environment are parameters.
//!
//! Begin with [`read()`], and with `formats` for another format; [`settings::KEYS`] is the list of all settings.

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

/// A regular expression of this crate; one that is invalid fails every test that uses it.
macro_rules! pattern {
    ($pattern:expr) => {
        std::sync::LazyLock::new(|| regex::Regex::new($pattern).expect("a regular expression"))
    };
}

mod automaton;
mod command;
mod dependencies;
mod diagnostic;
mod draft;
pub mod explain;
mod faults;
mod formats;
mod front_matter;
mod ids;
mod markdown;
mod origins;
mod overlap;
mod packages;
mod path;
pub mod places;
mod planning_files;
mod raw;
mod read;
mod repository_gates;
pub mod roadmap;
pub mod settings;
mod sharing;
mod source_text;
mod starter;
mod ticks;
mod tree;
mod validate;
mod yaml;

pub use diagnostic::{Diagnostic, Excerpt, Severity};
pub use draft::schema;
pub use formats::gsd::context_files as gsd_context_files;
pub use formats::gsd::is_plan_name as is_gsd_plan_name;
pub use formats::gsd::plan_is_done as gsd_plan_is_done;
pub use formats::gsd::{PlanBeside as GsdPlanBeside, plans_beside as gsd_plans_beside};
pub use formats::native::native_toml;
pub use lanewright_model::PlanFormat;
pub use origins::Origin;
pub use packages::{Package, names_scripts};
pub use planning_files::planning_files;
pub use read::{Fallbacks, ReadOptions, Reading, Source, SourceFile, read};
pub use repository_gates::{ProposedGate, RepositoryGates, repository_gates};
pub use sharing::{SharedPair, Sharing, Treatment};
pub use source_text::{MAX_TEXT, decode};
pub use starter::starter_prompt;
pub use ticks::{Tick, recording_command, ticked};
