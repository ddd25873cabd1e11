//! One run to simulate: everything that decides how it goes.

use std::sync::Arc;

use lanewright_model::Plan;

use super::bugs::Bug;
use super::dice::Dice;
use super::disturbances::Disturbances;
use super::plans::{Script, random_plan};
use super::run::{Ending, Simulation};
use super::sleep::with_limits;
use super::story::Story;

#[derive(Clone)]
pub struct Case {
    pub seed: u64,
    pub plan: Arc<Plan>,
    pub script: Script,
    pub disturbances: Disturbances,
    /// What happens by chance: when jobs end, and when the run is disturbed.
    pub dice: Dice,
    pub bug: Option<Bug>,
}

impl Case {
    pub fn new(seed: u64, crashes: u32, bug: Option<Bug>) -> Self {
        Self {
            seed,
            plan: Arc::new(with_limits(random_plan(&mut Dice::new(seed)))),
            script: Script::new(seed),
            disturbances: Disturbances::new(seed, crashes),
            dice: dice(seed, crashes),
            bug,
        }
    }

    /// The disturbed run of a seed.
    pub fn disturbed(seed: u64, bug: Option<Bug>) -> Self {
        Self::new(seed, 1 + (seed % 4) as u32, bug)
    }

    /// The same without a disturbance.
    pub fn undisturbed(&self) -> Self {
        Self { disturbances: Disturbances::default(), dice: dice(self.seed, 0), ..self.clone() }
    }

    /// # Errors
    /// What must not happen and did.
    pub fn simulate(&self) -> Result<Ending, String> {
        Simulation::new(self, Story::default()).run()
    }

    /// The same, with what happened.
    pub fn tell(&self) -> (Result<Ending, String>, Vec<String>) {
        let mut simulation = Simulation::new(self, Story::recording());
        (simulation.run(), simulation.story.lines())
    }

    /// Runs it with and without disturbances; both must end alike.
    ///
    /// # Errors
    /// What must not happen and did.
    pub fn check(&self) -> Result<(), String> {
        let undisturbed = self.undisturbed().simulate()?;
        let disturbed = self.simulate()?;
        match undisturbed.agrees_with(&disturbed) {
            true => Ok(()),
            false => Err(format!("{undisturbed:?} without a disturbance, {disturbed:?} with disturbances")),
        }
    }
}

/// The disturbed and the undisturbed run of a seed share what their script says, and nothing that happens by chance.
fn dice(seed: u64, crashes: u32) -> Dice {
    Dice::new(seed ^ u64::from(crashes) << 40)
}
