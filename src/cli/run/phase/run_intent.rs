//! What happens to a plan: the table of what was asked for and what exists. Pure.

use crate::cli::args::Intent;

/// The latest run of the plan on its base, or the named one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not finished, or named by the user.
    Unfinished,
    Complete,
}

/// The place of a plan among those that the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    Single,
    /// The first of a chain made with `--next-phase`.
    First,
    /// A later plan of that chain.
    Later,
    /// Any phase of a roadmap, or a phase after a resumed run: what is merged is not run again.
    Roadmap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Start,
    /// Start the lanes that no earlier run of the plan merged; if there are none, continue with the next phase.
    StartUnmerged,
    Resume,
    RollBack,
    Skip,
    /// There is no run to resume or to roll back.
    RefuseNoRun,
    RefuseNothingLeft,
}

/// What to do with a plan whose latest run is `run`; `work_left`: its files do not say that everything is done.
pub(crate) fn outcome(intent: Intent, run: Option<Progress>, position: Position, work_left: bool) -> Outcome {
    match (intent, run, position) {
        (Intent::Rollback, None, _) | (Intent::Resume, None, Position::Single | Position::First) => {
            Outcome::RefuseNoRun
        }
        (Intent::Rollback, Some(_), _) => Outcome::RollBack,
        (Intent::Resume, Some(Progress::Unfinished), _) => Outcome::Resume,
        // A resume of a complete run is refused, with the reason.
        (Intent::Resume, Some(Progress::Complete), Position::Single) => Outcome::Resume,
        (_, _, Position::Single) if !work_left => Outcome::RefuseNothingLeft,
        _ if !work_left => Outcome::Skip,
        (Intent::Resume, _, _) | (_, _, Position::Roadmap) => Outcome::StartUnmerged,
        (Intent::Start | Intent::StartBeside, _, _) => Outcome::Start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [(Position, bool); 8] = [
        (Position::Single, true),
        (Position::Single, false),
        (Position::First, true),
        (Position::First, false),
        (Position::Later, true),
        (Position::Later, false),
        (Position::Roadmap, true),
        (Position::Roadmap, false),
    ];

    const BEGIN: &str = "start nothing start skip start skip unmerged skip";

    /// The outcome for each combination; the columns are those of [`COLUMNS`].
    #[rustfmt::skip]
    const TABLE: &[(Intent, Option<Progress>, &str)] = &[
        (Intent::Start, None, BEGIN),
        (Intent::Start, Some(Progress::Unfinished), BEGIN),
        (Intent::Start, Some(Progress::Complete), BEGIN),
        (Intent::StartBeside, None, BEGIN),
        (Intent::StartBeside, Some(Progress::Unfinished), BEGIN),
        (Intent::StartBeside, Some(Progress::Complete), BEGIN),
        (Intent::Resume, None, "no-run no-run no-run no-run unmerged skip unmerged skip"),
        (Intent::Resume, Some(Progress::Unfinished), "resume resume resume resume resume resume resume resume"),
        (Intent::Resume, Some(Progress::Complete), "resume resume unmerged skip unmerged skip unmerged skip"),
        (Intent::Rollback, None, "no-run no-run no-run no-run no-run no-run no-run no-run"),
        (Intent::Rollback, Some(Progress::Unfinished), "back back back back back back back back"),
        (Intent::Rollback, Some(Progress::Complete), "back back back back back back back back"),
    ];

    fn word(outcome: Outcome) -> &'static str {
        match outcome {
            Outcome::Start => "start",
            Outcome::StartUnmerged => "unmerged",
            Outcome::Resume => "resume",
            Outcome::RollBack => "back",
            Outcome::Skip => "skip",
            Outcome::RefuseNoRun => "no-run",
            Outcome::RefuseNothingLeft => "nothing",
        }
    }

    #[test]
    fn every_combination_has_one_outcome() {
        let mut rows = Vec::new();
        for (intent, run, expected) in TABLE {
            let found = COLUMNS.map(|(position, work_left)| word(outcome(*intent, *run, position, work_left)));
            assert_eq!(found.join(" "), *expected, "{intent:?} {run:?}");
            assert!(!rows.contains(&(*intent, *run)), "{intent:?} {run:?} is listed twice");
            rows.push((*intent, *run));
        }
        assert_eq!(rows.len(), 4 * 3, "intents × runs");
    }
}
