//! Which lanes an earlier run did with the same text, so that a new run of the plan leaves them out (decision 61). Pure.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_model::text::{counted, listed};
use lanewright_model::{CommitId, LaneId, LaneIndex, MergeMode, Plan, RunId};

/// How the newest run that completed a lane did so, according to its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) run: RunId,
    pub(super) mode: MergeMode,
    /// The commit of the merge; with `none` and `pr` the head of the lane's branch.
    pub(super) commit: CommitId,
    /// What that was made on top of; the same commit if the lane changed nothing.
    pub(super) onto: CommitId,
    /// Whether the lane was to do what it is to do now; `None`: the log does not say.
    pub(super) is_same: Option<bool>,
    /// The lane's branch.
    pub(super) branch: String,
}

/// Where a completed lane's work is now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) in_base: bool,
    pub(super) reverted: bool,
    /// The lane's branch is where the run left it.
    pub(super) on_branch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Done(Place),
    /// Its work is in place, and it is to do something else now.
    Changed,
    /// Its work is in place, and it is not known what it was to do.
    Unknown,
    /// Its work was taken out, or is in place in another way than wanted.
    Gone,
}

/// Where the work of a lane is that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the integration branch.
    Merged,
    /// On the lane's branch only, as with `none` and an open pull request.
    Branch,
}

/// The run that did a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DoneBy {
    pub(crate) run: RunId,
    pub(crate) place: Place,
}

/// Judges a completion for a run that merges as `mode`: with another mode a branch alone is not what is wanted.
pub(super) fn verdict(completion: &Completion, found: Found, mode: MergeMode) -> Verdict {
    // A revert of the commit that a lane without changes ended at undoes another lane.
    let is_merged = found.in_base && (!found.reverted || completion.commit == completion.onto);
    let is_left = found.on_branch && completion.mode == mode && mode != MergeMode::Local;
    let place = match (is_merged, is_left) {
        (true, _) => Place::Merged,
        (false, true) => Place::Branch,
        (false, false) => return Verdict::Gone,
    };
    match completion.is_same {
        Some(true) => Verdict::Done(place),
        Some(false) => Verdict::Changed,
        None => Verdict::Unknown,
    }
}

/// Those of the `wanted` lanes that have to run: those that are not done, or are asked for `again`, and those whose work is
/// only on a branch and that one of these builds on, which would begin without it.
pub(crate) fn left_of(
    plan: &Plan,
    wanted: &[LaneIndex],
    done: &BTreeMap<LaneId, DoneBy>,
    again: impl Fn(&LaneId) -> bool,
) -> Vec<LaneIndex> {
    let by = |lane: LaneIndex| done.get(&plan.lane(lane).id).filter(|_| !again(&plan.lane(lane).id));
    let all: BTreeSet<LaneIndex> = wanted.iter().copied().collect();
    let mut left: BTreeSet<LaneIndex> = wanted.iter().copied().filter(|lane| by(*lane).is_none()).collect();
    for &lane in plan.dag().order().iter().rev().filter(|lane| all.contains(lane)) {
        let is_on_branch = by(lane).is_some_and(|done| done.place == Place::Branch);
        if is_on_branch && plan.dag().dependants(lane).iter().any(|dependant| left.contains(dependant)) {
            left.insert(lane);
        }
    }
    wanted.iter().copied().filter(|lane| left.contains(lane)).collect()
}

/// How many runs and lanes a sentence names.
const NAMED: usize = 5;

/// How many of the `wanted` lanes are done, and by which runs.
pub(crate) fn done_in_words(wanted: usize, done: &[(LaneId, DoneBy)], base: &str) -> String {
    let runs: BTreeSet<&RunId> = done.iter().map(|(_, by)| &by.run).collect();
    let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
    let on_branches = done.iter().filter(|(_, by)| by.place == Place::Branch);
    let on_branches: Vec<String> = on_branches.map(|(lane, _)| lane.to_string()).collect();
    let were = if done.len() == 1 { "was" } else { "were" };
    let how = if on_branches.is_empty() { "merged" } else { "done" };
    let run = if runs.len() == 1 { "run" } else { "runs" };
    let rest = match on_branches.as_slice() {
        [] => String::new(),
        lanes => format!("; not merged into {base}: {}", listed(lanes, NAMED)),
    };
    let of = counted(wanted, "lane");
    format!("{} of {of} {were} {how} by {run} {}{rest}", done.len(), listed(&runs, NAMED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::testing::{commit, lane, plan};

    fn completion(mode: MergeMode, is_same: Option<bool>) -> Completion {
        let (run, branch) = (RunId::new("r1").unwrap(), "lane/P1/A".to_owned());
        Completion { run, mode, commit: commit('b'), onto: commit('a'), is_same, branch }
    }

    const NOWHERE: Found = Found { in_base: false, reverted: false, on_branch: false };
    const IN_BASE: Found = Found { in_base: true, ..NOWHERE };
    const REVERTED: Found = Found { reverted: true, ..IN_BASE };
    const ON_BRANCH: Found = Found { on_branch: true, ..NOWHERE };

    #[test]
    fn lane_is_done_while_its_work_is_in_place() {
        use MergeMode::{Local, None as Left, Pr};
        let same = |mode| completion(mode, Some(true));
        let cases = [
            (Local, IN_BASE, Local, Verdict::Done(Place::Merged)),
            (Local, REVERTED, Local, Verdict::Gone),
            (Local, NOWHERE, Local, Verdict::Gone),
            (Local, ON_BRANCH, Local, Verdict::Gone),
            (Pr, IN_BASE, Local, Verdict::Done(Place::Merged)),
            (Pr, ON_BRANCH, Pr, Verdict::Done(Place::Branch)),
            (Pr, ON_BRANCH, Local, Verdict::Gone),
            (Pr, NOWHERE, Pr, Verdict::Gone),
            (Left, ON_BRANCH, Left, Verdict::Done(Place::Branch)),
            (Left, ON_BRANCH, Pr, Verdict::Gone),
            (Local, IN_BASE, Pr, Verdict::Done(Place::Merged)),
        ];
        for (before, found, now, expected) in cases {
            assert_eq!(verdict(&same(before), found, now), expected, "{before:?} {found:?} {now:?}");
        }
    }

    #[test]
    fn other_or_unknown_text_is_not_done() {
        assert_eq!(verdict(&completion(MergeMode::Local, Some(false)), IN_BASE, MergeMode::Local), Verdict::Changed);
        assert_eq!(verdict(&completion(MergeMode::Local, None), IN_BASE, MergeMode::Local), Verdict::Unknown);
        assert_eq!(verdict(&completion(MergeMode::Local, Some(false)), REVERTED, MergeMode::Local), Verdict::Gone);
    }

    #[test]
    fn lane_without_changes_outlives_the_revert_of_another() {
        let mut nothing = completion(MergeMode::Local, Some(true));
        nothing.onto = nothing.commit.clone();
        assert_eq!(verdict(&nothing, REVERTED, MergeMode::Local), Verdict::Done(Place::Merged));
    }

    fn done(lanes: &[(&str, &str, Place)]) -> BTreeMap<LaneId, DoneBy> {
        let by = |run: &str, place| DoneBy { run: RunId::new(run).unwrap(), place };
        lanes.iter().map(|(id, run, place)| (lane(id), by(run, *place))).collect()
    }

    #[test]
    fn lanes_are_left_that_are_not_done_or_asked_for_again() {
        let plan = plan(&[("A", &[], &[]), ("B", &["A"], &[]), ("C", &["B"], &[])]);
        let all: Vec<LaneIndex> = plan.indices().collect();
        let left = |lanes: &[(&str, &str, Place)], again: &[&str]| {
            let left = left_of(&plan, &all, &done(lanes), |lane| again.contains(&lane.as_str()));
            left.iter().map(|lane| plan.lane(*lane).id.to_string()).collect::<Vec<_>>().concat()
        };
        let (merged, branch) = (Place::Merged, Place::Branch);
        assert_eq!(left(&[], &[]), "ABC");
        assert_eq!(left(&[("A", "r1", merged), ("C", "r1", merged)], &[]), "B");
        assert_eq!(left(&[("A", "r1", merged), ("B", "r1", merged), ("C", "r1", merged)], &[]), "");
        assert_eq!(left(&[("A", "r1", merged), ("B", "r1", merged), ("C", "r1", merged)], &["A"]), "A");
        assert_eq!(left(&[("A", "r1", branch), ("B", "r1", branch), ("C", "r1", branch)], &[]), "");
        assert_eq!(left(&[("A", "r1", branch), ("B", "r1", branch)], &[]), "ABC", "C would begin without B");
        assert_eq!(left(&[("A", "r1", branch), ("B", "r1", merged)], &[]), "C", "B holds A");
    }

    #[test]
    fn message_counts_lanes_and_names_runs() {
        let said = |lanes: &[(&str, &str, Place)]| {
            let done: Vec<(LaneId, DoneBy)> = done(lanes).into_iter().collect();
            done_in_words(done.len(), &done, "main")
        };
        let (merged, branch) = (Place::Merged, Place::Branch);
        assert_eq!(said(&[("A", "r1", merged)]), "1 of 1 lane was merged by run r1");
        let two = said(&[("A", "r2", merged), ("B", "r1", merged)]);
        assert_eq!(two, "2 of 2 lanes were merged by runs r1, r2");
        let left = said(&[("A", "r1", merged), ("B", "r1", branch)]);
        assert_eq!(left, "2 of 2 lanes were done by run r1; not merged into main: B");
    }
}
