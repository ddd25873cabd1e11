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
    /// A later plan of a chain, any phase of a roadmap, or a phase after a resumed run.
    Later,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Start the lanes that no earlier run did; if there are none, continue with the next phase.
    Start,
    Resume,
    RollBack,
    Skip,
    /// There is no run to resume or to roll back.
    RefuseNoRun,
    /// The plan's files say that everything is done.
    NothingLeft,
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
        (_, _, Position::Single) if !work_left => Outcome::NothingLeft,
        _ if !work_left => Outcome::Skip,
        _ => Outcome::Start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [(Position, bool); 6] = [
        (Position::Single, true),
        (Position::Single, false),
        (Position::First, true),
        (Position::First, false),
        (Position::Later, true),
        (Position::Later, false),
    ];

    const BEGIN: &str = "start nothing start skip start skip";

    /// The outcome for each combination; the columns are those of [`COLUMNS`].
    #[rustfmt::skip]
    const TABLE: &[(Intent, Option<Progress>, &str)] = &[
        (Intent::Start, None, BEGIN),
        (Intent::Start, Some(Progress::Unfinished), BEGIN),
        (Intent::Start, Some(Progress::Complete), BEGIN),
        (Intent::StartBeside, None, BEGIN),
        (Intent::StartBeside, Some(Progress::Unfinished), BEGIN),
        (Intent::StartBeside, Some(Progress::Complete), BEGIN),
        (Intent::Resume, None, "no-run no-run no-run no-run start skip"),
        (Intent::Resume, Some(Progress::Unfinished), "resume resume resume resume resume resume"),
        (Intent::Resume, Some(Progress::Complete), "resume resume start skip start skip"),
        (Intent::Rollback, None, "no-run no-run no-run no-run no-run no-run"),
        (Intent::Rollback, Some(Progress::Unfinished), "back back back back back back"),
        (Intent::Rollback, Some(Progress::Complete), "back back back back back back"),
    ];

    fn word(outcome: Outcome) -> &'static str {
        match outcome {
            Outcome::Start => "start",
            Outcome::Resume => "resume",
            Outcome::RollBack => "back",
            Outcome::Skip => "skip",
            Outcome::RefuseNoRun => "no-run",
            Outcome::NothingLeft => "nothing",
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
