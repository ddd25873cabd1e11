//! What the output of a job that failed means: pure, told by patterns.

mod delegate;
mod excerpt;
mod gate;
mod outage;
mod place;
mod rule_text;
mod rules;
mod scan;

pub use delegate::{Delegate, MAX_VIOLATIONS_OF_SAME_AGENT, re_delegation};
pub use excerpt::LOOKED_AT;
pub use gate::{MAX_FINDINGS, diagnose};
pub use outage::outage;
