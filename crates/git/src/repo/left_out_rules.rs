//! What commits leave out of lanes' work and what worktrees get for it, as far as settings decide it; `query::left_out` and
//! `worktree::copy_ignored` apply it.

use lanewright_model::ownership::Ownership;

/// What is left out of commits, in addition to the rules that always hold.
#[derive(Debug, Clone)]
pub struct LeftOutRules {
    /// What is committed in spite of the rules; `None`: nothing.
    pub take: Option<Ownership>,
    /// The size in bytes of the largest new file that is committed; `None`: no limit.
    pub max_file_size: Option<u64>,
    /// How many bytes of ignored files are copied into a worktree; `None`: no limit.
    pub copy_limit: Option<u64>,
    /// Whether worktrees get the files of submodules.
    pub fills_submodules: bool,
}

impl Default for LeftOutRules {
    fn default() -> Self {
        Self { take: None, max_file_size: Some(50 << 20), copy_limit: Some(10 << 30), fills_submodules: false }
    }
}
