//! The smallest run in which the same goes wrong: few lanes, agents, tasks and disturbances.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lanewright_model::{Budget, LaneIndex, Plan, PlanParts};

use super::case::Case;
use super::dice::Dice;
use super::disturbances::Disturbances;

/// With so many other dice a smaller run is tried before it counts as one in which nothing goes wrong.
const TRIES: u64 = 200;

const TIME: Duration = Duration::from_secs(30);

/// `case`, in which something goes wrong, made smaller as long as the same does and there is time.
pub fn shrink(mut case: Case) -> Case {
    let Err(finding) = case.check() else { return case };
    let (kind, until) = (kind(&finding), Instant::now() + TIME);
    while let Some(smaller) = smaller(&case).into_iter().find_map(|candidate| fails(candidate, &kind, until)) {
        case = smaller;
    }
    case
}

/// What names of lanes and numbers have no part in.
fn kind(finding: &str) -> String {
    let words = finding.split(|letter: char| !letter.is_alphabetic()).filter(|word| word.len() > 2);
    words.take(8).collect::<Vec<_>>().join(" ")
}

fn fails(candidate: Case, kind: &str, until: Instant) -> Option<Case> {
    let others = (1..=TRIES).map(|number| Dice::new(candidate.seed ^ number << 48));
    let dice = std::iter::once(candidate.dice.clone()).chain(others);
    dice.take_while(|_| Instant::now() < until)
        .map(|dice| Case { dice, ..candidate.clone() })
        .find(|case| case.check().is_err_and(|finding| self::kind(&finding) == kind))
}

fn smaller(case: &Case) -> Vec<Case> {
    let with = |disturbances| Case { disturbances, ..case.clone() };
    let fewer = fewer_disturbances(case.disturbances).into_iter().map(with);
    let plans = smaller_plans(&case.plan).into_iter().map(|plan| Case { plan: Arc::new(plan), ..case.clone() });
    plans.chain(fewer).collect()
}

fn fewer_disturbances(now: Disturbances) -> Vec<Disturbances> {
    let less = |number: u32| number.saturating_sub(1);
    let all = [
        Disturbances { crashes: less(now.crashes), ..now },
        Disturbances { stops: less(now.stops), ..now },
        Disturbances { rollbacks: less(now.rollbacks), ..now },
        Disturbances { skips: less(now.skips), ..now },
        Disturbances { hands: less(now.hands), ..now },
        Disturbances { torn: false, ..now },
        Disturbances { whole_rollbacks: false, ..now },
        Disturbances { losses: less(now.losses), ..now },
        Disturbances { plumbing: less(now.plumbing), ..now },
        Disturbances { sleeps: less(now.sleeps), ..now },
        Disturbances { fail_fast: false, ..now },
        Disturbances { budget: Budget::default(), ..now },
    ];
    all.into_iter().filter(|fewer| *fewer != now).collect()
}

fn smaller_plans(plan: &Plan) -> Vec<Plan> {
    let parts = || PlanParts::from(plan.clone());
    let mut all: Vec<PlanParts> = Vec::new();
    if plan.lanes.len() > 1 {
        all.extend(plan.indices().map(|lane| without_lane(parts(), lane)));
    }
    all.push(PlanParts { gates: Default::default(), ..parts() });
    all.push(PlanParts { exclusions: vec![], sequences: vec![], ..parts() });
    for lane in plan.indices().map(LaneIndex::at) {
        for agent in 0..plan.lanes[lane].agents.len() {
            let mut fewer = parts();
            fewer.lanes[lane].agents.remove(agent);
            all.extend((!fewer.lanes[lane].agents.is_empty()).then_some(fewer));
            let mut shorter = parts();
            shorter.lanes[lane].agents[agent].tasks.truncate(1);
            all.push(shorter);
        }
        let mut bare = parts();
        bare.lanes[lane].uses.clear();
        bare.lanes[lane].setup.clear();
        bare.lanes[lane].depends_on.clear();
        all.push(bare);
        let mut unjudged = parts();
        unjudged.lanes[lane].tests.clear();
        unjudged.lanes[lane].approval.clear();
        unjudged.lanes[lane].must_haves = Default::default();
        all.push(unjudged);
    }
    all.into_iter().filter_map(|parts| Plan::new(parts).ok()).filter(|smaller| smaller != plan).collect()
}

/// The plan without a lane; what named it does not.
fn without_lane(mut parts: PlanParts, gone: LaneIndex) -> PlanParts {
    let mut numbers = BTreeMap::new();
    for lane in (0..parts.lanes.len() as u32).map(LaneIndex).filter(|lane| *lane != gone) {
        numbers.insert(lane, LaneIndex(numbers.len() as u32));
    }
    let pair = |(one, other): (LaneIndex, LaneIndex)| Some((*numbers.get(&one)?, *numbers.get(&other)?));
    parts.lanes.remove(gone.at());
    for lane in &mut parts.lanes {
        lane.depends_on = lane.depends_on.iter().filter_map(|on| numbers.get(on).copied()).collect();
    }
    parts.exclusions = parts.exclusions.into_iter().filter_map(pair).collect();
    parts.sequences = parts.sequences.into_iter().filter_map(pair).collect();
    parts
}
