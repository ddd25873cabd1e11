//! Commands that change what a run does: its answers, lanes that are tried again or left out, its stop.

pub(super) mod answer;
pub(crate) mod ask;
pub(super) mod recover;
pub(super) mod retry;
pub(super) mod skip;
pub(super) mod stop;
pub(super) mod tell;
