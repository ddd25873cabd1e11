use lanewright_model::PlanParts;

use super::Claim::{Free, Left, Live, Merged};
use super::*;
use crate::sample_plans::{lane, plan};

/// `A` alone, `B` before `C`, `D` after `A` and `C`; `B` begins the longest way.
fn diamond() -> Plan {
    plan(vec![lane("A", &[], 9, &[]), lane("B", &[], 5, &[]), lane("C", &[1], 5, &[]), lane("D", &[0, 2], 1, &[])], &[])
}

const A: LaneIndex = LaneIndex(0);
const B: LaneIndex = LaneIndex(1);
const C: LaneIndex = LaneIndex(2);

#[test]
fn the_longest_remaining_path_goes_first() {
    assert_eq!(next_lane(&diamond(), &[Free; 4], None), NextLane::Lane(B));
    let alike = plan(vec![lane("A", &[], 5, &[]), lane("B", &[], 5, &[])], &[]);
    assert_eq!(next_lane(&alike, &[Free; 2], None), NextLane::Lane(A));
}

#[test]
fn lane_of_live_session_is_skipped() {
    for taken in [Live, Left, Merged] {
        assert_eq!(next_lane(&diamond(), &[Free, taken, Free, Free], None), NextLane::Lane(A), "{taken:?}");
    }
}

#[test]
fn unmerged_dependency_blocks_lane() {
    for unmerged in [Free, Live, Left] {
        let claims = [Merged, unmerged, Free, Free];
        assert_eq!(blocker(&diamond(), &claims, C), Some(Blocker::Needs(vec![B])), "{unmerged:?}");
    }
    assert_eq!(next_lane(&diamond(), &[Merged, Merged, Free, Free], None), NextLane::Lane(C));
}

#[test]
fn a_preferred_lane_goes_first_only_if_it_may_begin() {
    assert_eq!(next_lane(&diamond(), &[Free; 4], Some(A)), NextLane::Lane(A));
    assert_eq!(next_lane(&diamond(), &[Live, Free, Free, Free], Some(A)), NextLane::Lane(B));
    assert_eq!(next_lane(&diamond(), &[Merged, Free, Free, Free], Some(A)), NextLane::Lane(B));
    assert_eq!(next_lane(&diamond(), &[Free; 4], Some(C)), NextLane::Lane(B));
}

#[test]
fn no_next_lane_lists_reasons() {
    let waiting = [(A, Blocker::Left), (B, Blocker::Held), (C, Blocker::Needs(vec![B]))];
    let expected = [&waiting[..], &[(LaneIndex(3), Blocker::Needs(vec![A, C]))]].concat();
    assert_eq!(next_lane(&diamond(), &[Left, Live, Free, Free], None), NextLane::Nothing(expected));
    assert_eq!(next_lane(&diamond(), &[Merged; 4], None), NextLane::AllMerged);
    assert_eq!(next_lane(&plan(Vec::new(), &[]), &[], None), NextLane::AllMerged);
}

#[test]
fn exclusions_hold_across_sessions() {
    let apart = plan(vec![lane("A", &[], 5, &[]), lane("B", &[], 5, &[]), lane("C", &[], 1, &[])], &[(0, 1)]);
    assert_eq!(blocker(&apart, &[Live, Free, Free], B), Some(Blocker::Beside(A)));
    assert_eq!(blocker(&apart, &[Free, Live, Free], A), Some(Blocker::Beside(B)));
    assert_eq!(next_lane(&apart, &[Live, Free, Free], None), NextLane::Lane(C));
    for past in [Merged, Left] {
        assert_eq!(blocker(&apart, &[past, Free, Free], B), None, "{past:?}");
    }
}

#[test]
fn a_pool_is_shared_by_all_sessions() {
    let names = ["A", "B", "C"];
    let pooled = |pool: &str| plan(names.iter().map(|id| lane(id, &[], 5, &[pool])).collect(), &[]);
    assert_eq!(blocker(&pooled("two"), &[Live, Free, Free], B), None);
    assert_eq!(blocker(&pooled("two"), &[Live, Live, Free], C), Some(Blocker::PoolInUse("two".to_owned())));
    assert_eq!(blocker(&pooled("unsized"), &[Live, Free, Free], B), Some(Blocker::PoolInUse("unsized".to_owned())));
}

#[test]
fn lane_later_in_sequence_goes_last() {
    let lanes = vec![lane("A", &[], 1, &[]), lane("B", &[], 9, &[]), lane("C", &[], 5, &[])];
    let parts = PlanParts::from(plan(lanes, &[]));
    let in_turn = Plan::new(PlanParts { sequences: vec![(A, B)], ..parts }).unwrap();
    assert_eq!(next_lane(&in_turn, &[Free; 3], None), NextLane::Lane(C));
    assert_eq!(next_lane(&in_turn, &[Free, Free, Merged], None), NextLane::Lane(A));
    assert_eq!(next_lane(&in_turn, &[Merged, Free, Free], None), NextLane::Lane(B));
    assert_eq!(next_lane(&in_turn, &[Live, Free, Merged], None), NextLane::Lane(B));
}
