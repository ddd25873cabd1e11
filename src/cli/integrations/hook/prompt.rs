//! `hook user-prompt-submit`: what the user says while a run is under way is noted, and moves nothing (seed 003,
//! Multiple Interruption Handling).

use std::thread;

use lanewright_model::Interruption;
use lanewright_store::lane_files::add_interruption;

use super::input::Input;
use super::interruption::{Kind, kind, reply};
use super::unfinished::{SessionRuns, Unfinished};
use crate::cli::now;

/// Records the prompt in the lanes of this session's unfinished runs; returns how to resume them if the prompt asks for it,
/// or how to give the answer that it may be to a lane that waits for one.
pub(super) fn note_prompt(session: &SessionRuns, input: &Input) -> Option<String> {
    let own = session.own();
    let kind = kind(&input.prompt);
    note(&own, kind);
    if let Some(answer) = reply(&input.prompt).and_then(|reply| session.answers(reply)) {
        return Some(answer);
    }
    if kind != Kind::Resumption {
        return None;
    }
    if let Some(run) = own.iter().find(|run| !run.held && run.waits_for_answer()) {
        return Some(format!(
            "The user wants work to continue, but a lane waits for the user's answer, and a resume alone waits again: \
             {}{}",
            run.described(),
            session.ways_on(run)
        ));
    }
    let resting: Vec<String> = own.iter().filter(|run| !run.held).map(|run| run.described()).collect();
    let run = own.iter().find(|run| !run.held)?;
    Some(format!(
        "The user wants work to continue; {}\nIf the run is meant, continue it in the background with `{}`, and do nothing \
         by hand; it stands where it stood before the interruption.",
        resting.join("\n"),
        session.command(run, "resume")
    ))
}

/// Each file is synced, so they are written side by side.
fn note(runs: &[&Unfinished], kind: Kind) {
    let interruption = &Interruption { kind: kind.word().to_owned(), timestamp: now() };
    thread::scope(|scope| {
        for (lane, _) in runs.iter().flat_map(|run| &run.lanes) {
            scope.spawn(move || {
                if let Err(error) = add_interruption(lane, interruption) {
                    tracing::debug!("{error}");
                }
            });
        }
    });
}
