//! Native plans in TOML and JSON (SPEC §3.1); YAML, which front matter is written in as well, has its reader in `yaml`.

pub(super) mod json;
pub mod native_toml;
pub(super) mod toml_tree;
