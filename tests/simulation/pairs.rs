//! Two runs in one repository: each merges onto a branch that the other one moves.

use std::sync::Arc;

use lanewright_model::{LaneId, Plan, PlanParts};

use super::bugs::Bug;
use super::case::Case;
use super::dice::Dice;
use super::run::{MOST_STEPS, Simulation};
use super::story::Story;

/// What tells the seed of the second run from that of the first.
const SECOND: u64 = 0x5EC0_4D00_0000;

/// Runs the disturbed runs of two seeds step by step beside each other. Each must come to what its own plan demands, and
/// neither may lose what the other one merged.
///
/// # Errors
/// What must not happen and did.
pub fn check(seed: u64, bug: Option<Bug>) -> Result<(), String> {
    let (mut one, mut other) = (Case::disturbed(seed, bug), renamed(Case::disturbed(seed ^ SECOND, bug)));
    // The machine would sleep for both of them.
    (one.disturbances.sleeps, other.disturbances.sleeps) = (0, 0);
    let mut runs = [one, other].map(|case| Simulation::new(&case, Story::default()));
    let mut dice = Dice::new(seed ^ SECOND);
    // The run that has the repository, which the other one is given when its turn comes.
    let (mut holder, mut begun, mut ended, mut now) = (0, [false; 2], [false; 2], 0);
    for _ in 0..2 * MOST_STEPS {
        let at = if ended[0] || !ended[1] && dice.roll(2) == 1 { 1 } else { 0 };
        if at != holder {
            let [first, second] = &mut runs;
            std::mem::swap(&mut first.world.git, &mut second.world.git);
            holder = at;
        }
        let run = &mut runs[at];
        run.world.now = run.world.now.max(now);
        let outcome = match begun[at] {
            false => run.begin(),
            true => run.advance().map(|ending| ended[at] = ending.is_some()),
        };
        outcome.map_err(|finding| format!("run {at} of two: {finding}"))?;
        (begun[at], now) = (true, run.world.now);
        if ended == [true; 2] {
            return Ok(());
        }
    }
    Err("two runs do not end".to_owned())
}

/// The same with other names of lanes, by which the world tells what is whose.
fn renamed(case: Case) -> Case {
    let mut parts = PlanParts::from((*case.plan).clone());
    for lane in &mut parts.lanes {
        lane.id = LaneId::new(&lane.id.as_str().replace('L', "M")).unwrap();
    }
    Case { plan: Arc::new(Plan::new(parts).unwrap()), ..case }
}
