//! The machine sleeps in the middle of a run: time passes, and nothing goes on meanwhile. Lanewright notices it when it
//! runs again, unless it dies before.

use std::time::Duration;

use lanewright_model::event::Event;
use lanewright_model::{Plan, PlanParts};

use super::dice::Dice;
use super::run::Simulation;

/// The time limit of every lane and of the run: far more than one needs awake, and less than most sleeps take.
pub const LIMIT: Duration = Duration::from_secs(10 * 60);

/// When the machine sleeps. The dice are its own, so that sleeping changes nothing else.
pub struct Sleeps {
    dice: Dice,
    /// How long it slept since Lanewright ran last.
    pub unnoticed: Option<Duration>,
}

impl Sleeps {
    pub fn new(dice: &Dice) -> Self {
        Self { dice: Dice::new(u64::from(dice.clone().of("sleep"))), unnoticed: None }
    }

    /// What Lanewright notes first when it runs again.
    pub fn notice(&mut self) -> Option<Event> {
        self.unnoticed.take().map(|duration| Event::Slept { duration })
    }
}

impl Simulation {
    /// Perhaps the machine sleeps for minutes or hours: what was under way ends later by as much.
    pub fn perhaps_sleep(&mut self) {
        if self.left.sleeps == 0 || self.sleeps.dice.roll(25) != 0 {
            return;
        }
        self.left.sleeps -= 1;
        let duration = Duration::from_secs(60 * u64::from(1 + self.sleeps.dice.roll(600)));
        let later = i64::try_from(duration.as_millis()).unwrap();
        self.world.now += later;
        self.world.jobs.values_mut().filter(|job| job.exit.is_none()).for_each(|job| job.ends_at += later);
        self.under_way.iter_mut().for_each(|way| way.put_off(later));
        // It may sleep twice before Lanewright runs again, which then sees one sleep of both lengths.
        self.sleeps.unnoticed = Some(self.sleeps.unnoticed.unwrap_or_default() + duration);
        self.story.note(self.world.now, || format!("the machine slept for {duration:?}"));
    }
}

/// The plan with a time limit for every lane.
pub fn with_limits(plan: Plan) -> Plan {
    let mut parts = PlanParts::from(plan);
    parts.lanes.iter_mut().for_each(|lane| lane.timeout = Some(LIMIT));
    Plan::new(parts).unwrap()
}
