//! How the progress of a run is shown.

use super::word_enum;

word_enum! {
    /// What `--progress` asks for.
    Progress {
        /// Live on a terminal, else plain.
        Auto = "auto",
        /// Lines that are redrawn.
        Live = "live",
        /// A line for each event.
        Plain = "plain",
        /// A JSON object for each event, on standard output.
        Json = "json",
        None = "none",
    }
}

word_enum! {
    /// What people are notified of.
    NotifyOn {
        /// A person must answer, or do something.
        NeedsYou = "needs_you",
        /// A lane or the run failed.
        Failed = "failed",
        /// Lanes wait for a runner whose service takes no more requests for a while.
        Paused = "paused",
        /// The run is done.
        Done = "done",
    }
}
