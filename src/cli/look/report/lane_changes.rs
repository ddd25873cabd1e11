//! What the lanes of a run changed, for its report: between commits that the run log names, so that neither worktrees nor
//! branches of others are looked at.

use std::collections::HashMap;

use lanewright_git::Repository;
use lanewright_model::event::Record;
use lanewright_model::{CommitId, LaneId, Redactor};
use lanewright_view::history::changes::LaneWork;
use lanewright_view::report::{ChangedFile, LaneChanges, MOST_CHANGES};

use crate::cli::runs::started;

/// The changes of one lane are worth this many bytes.
const MOST_OF_A_LANE: usize = 100_000;

/// What lanes changed up to their merge, else up to what the log says was saved last. Lanes whose changes cannot be read
/// are missing.
pub(super) fn changes_of(
    repository: &Repository,
    records: &[Record],
    redactor: &Redactor,
) -> HashMap<LaneId, LaneChanges> {
    let integration = started(records).and_then(|it| repository.branch_commit(&it.base_branch).ok().flatten());
    let works = LaneWork::all(records);
    let limit = (MOST_CHANGES / works.len().max(1)).min(MOST_OF_A_LANE);
    let of = |(lane, work): (&LaneId, LaneWork)| {
        let (from, to) = ends(repository, work, integration.as_ref())?;
        let patches = repository.patches(&from, &to, limit).filter(|it| !it.files.is_empty())?;
        let text = |bytes: &[u8]| redactor.redact(&String::from_utf8_lossy(bytes)).into_owned();
        let files = patches.files.into_iter().map(|file| ChangedFile {
            path: text(&file.path),
            lines: file.lines,
            text: text(&file.text),
            whole: file.whole,
        });
        Some((lane.clone(), LaneChanges { files: files.collect(), others: patches.others }))
    };
    works.into_iter().filter_map(of).collect()
}

fn ends(repository: &Repository, work: LaneWork, integration: Option<&CommitId>) -> Option<(CommitId, CommitId)> {
    if let Some(merge) = work.merged {
        return Some(merge);
    }
    let to = work.newest?;
    let from = repository.starting_point(&to, work.base.as_ref(), integration).ok()?;
    Some((from, to))
}
