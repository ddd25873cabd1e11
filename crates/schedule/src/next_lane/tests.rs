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
fn a_lane_that_another_session_has_is_passed_over() {
    for taken in [Live, Left, Merged] {
        assert_eq!(next_lane(&diamond(), &[Free, taken, Free, Free], None), NextLane::Lane(A), "{taken:?}");
    }
}

#[test]
fn a_dependency_that_is_not_merged_keeps_a_lane_waiting_whoever_has_it() {
    for unmerged in [Free, Live, Left] {
        let claims = [Merged, unmerged, Free, Free];
        assert_eq!(hindrance(&diamond(), &claims, C), Some(Hindrance::Needs(vec![B])), "{unmerged:?}");
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
fn nothing_left_is_explained_lane_by_lane_and_differs_from_all_merged() {
    let waiting = [(A, Hindrance::Left), (B, Hindrance::Held), (C, Hindrance::Needs(vec![B]))];
    let expected = [&waiting[..], &[(LaneIndex(3), Hindrance::Needs(vec![A, C]))]].concat();
    assert_eq!(next_lane(&diamond(), &[Left, Live, Free, Free], None), NextLane::Nothing(expected));
    assert_eq!(next_lane(&diamond(), &[Merged; 4], None), NextLane::AllMerged);
    assert_eq!(next_lane(&plan(Vec::new(), &[]), &[], None), NextLane::AllMerged);
}

#[test]
fn lanes_that_exclude_each_other_do_so_across_sessions() {
    let apart = plan(vec![lane("A", &[], 5, &[]), lane("B", &[], 5, &[]), lane("C", &[], 1, &[])], &[(0, 1)]);
    assert_eq!(hindrance(&apart, &[Live, Free, Free], B), Some(Hindrance::Beside(A)));
    assert_eq!(hindrance(&apart, &[Free, Live, Free], A), Some(Hindrance::Beside(B)));
    assert_eq!(next_lane(&apart, &[Live, Free, Free], None), NextLane::Lane(C));
    for past in [Merged, Left] {
        assert_eq!(hindrance(&apart, &[past, Free, Free], B), None, "{past:?}");
    }
}

#[test]
fn a_pool_is_shared_by_all_sessions() {
    let names = ["A", "B", "C"];
    let pooled = |pool: &str| plan(names.iter().map(|id| lane(id, &[], 5, &[pool])).collect(), &[]);
    assert_eq!(hindrance(&pooled("two"), &[Live, Free, Free], B), None);
    assert_eq!(hindrance(&pooled("two"), &[Live, Live, Free], C), Some(Hindrance::PoolInUse("two".to_owned())));
    assert_eq!(hindrance(&pooled("unsized"), &[Live, Free, Free], B), Some(Hindrance::PoolInUse("unsized".to_owned())));
}

#[test]
fn a_lane_that_comes_later_in_turn_goes_last_until_the_first_one_is_merged() {
    let lanes = vec![lane("A", &[], 1, &[]), lane("B", &[], 9, &[]), lane("C", &[], 5, &[])];
    let parts = PlanParts::from(plan(lanes, &[]));
    let in_turn = Plan::new(PlanParts { sequences: vec![(A, B)], ..parts }).unwrap();
    assert_eq!(next_lane(&in_turn, &[Free; 3], None), NextLane::Lane(C));
    assert_eq!(next_lane(&in_turn, &[Free, Free, Merged], None), NextLane::Lane(A));
    assert_eq!(next_lane(&in_turn, &[Merged, Free, Free], None), NextLane::Lane(B));
    assert_eq!(next_lane(&in_turn, &[Live, Free, Merged], None), NextLane::Lane(B));
}
