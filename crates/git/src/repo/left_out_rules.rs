//! What commits leave out of lanes' work, as far as settings decide it; `query::left_out` applies it.

use lanewright_model::ownership::Ownership;

/// What is left out of commits, in addition to the rules that always hold.
#[derive(Debug, Clone)]
pub struct LeftOutRules {
    /// What is committed in spite of the rules; `None`: nothing.
    pub take: Option<Ownership>,
    /// The size in bytes of the largest new file that is committed; `None`: no limit.
    pub max_file_size: Option<u64>,
}

impl Default for LeftOutRules {
    fn default() -> Self {
        Self { take: None, max_file_size: Some(50 << 20) }
    }
}
