//! The phases that the name of a plan stands for, before anything is decided about them.

use std::path::{Path, PathBuf};

use lanewright_engine::state_sync::Manifest;
use lanewright_git::Repository;
use lanewright_model::event::RunStarted;
use lanewright_model::{PhaseId, RunId};
use lanewright_plan::settings::{Layer, Layers};

use crate::cli::run::execute::start::{self, PhaseRest};
use crate::cli::run::intent::{PlanFile, PlanText, RunRequest, phase_sequence};
use crate::cli::{Context, RepositoryContext, Result};

pub(crate) struct PlannedPhase {
    pub(crate) phase: PhaseId,
    /// The branch that its lanes are merged into.
    pub(crate) base: String,
    /// Absolute.
    path: PathBuf,
}

impl PlannedPhase {
    pub(crate) fn is_phase_of(&self, pushed: &Manifest) -> bool {
        pushed.phase == self.phase && pushed.base_branch == self.base
    }

    pub(crate) fn is_phase_of_run(&self, run: &RunStarted) -> bool {
        run.phase == self.phase && run.base_branch == self.base
    }

    /// Whether a run of this phase gets such a name where the user chooses none.
    pub(crate) fn may_have_named(&self, run: &RunId) -> bool {
        let rest = run.as_str().strip_prefix(self.phase.as_str()).and_then(|rest| rest.strip_prefix('-'));
        // The time comes next.
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    }
}

/// Reads plans with the settings of `layer`, and starts nothing.
pub(crate) struct PlanReader {
    /// With the settings of no plan.
    general: RepositoryContext,
    layers: Layers,
}

impl PlanReader {
    pub(crate) fn new(context: &Context, layer: Layer) -> Result<Self> {
        let (repository, layers) = (Repository::discover(&context.directory)?, context.layers(layer)?);
        let general = RepositoryContext::new(context, repository, layers.resolve(None));
        Ok(Self { general, layers })
    }

    /// The phases of a plan's file, of a directory or of a roadmap, in order, also those that are done. Warnings are left to
    /// the command that runs them.
    ///
    /// # Errors
    /// What is not a plan, or has errors, which are reported.
    pub(crate) fn phases(&self, plan: &Path) -> Result<Vec<PlannedPhase>> {
        let planned = |path: &PathBuf| {
            let (within, plan) = self.read(path)?;
            Ok(PlannedPhase { phase: plan.plan.phase.clone(), base: within.base_branch()?, path: path.clone() })
        };
        phase_sequence(&self.general.context, plan, true)?.plans.iter().map(planned).collect()
    }

    /// Whether these are the phases of a roadmap, of which those that are done are passed over.
    pub(crate) fn is_roadmap(&self, plan: &Path) -> Result<bool> {
        Ok(phase_sequence(&self.general.context, plan, true)?.of_roadmap)
    }

    /// What is left of the phase, according to the logs here and the commits of its base.
    pub(crate) fn left_of(&self, phase: &PlannedPhase) -> Result<PhaseRest> {
        let (within, plan) = self.read(&phase.path)?;
        Ok(start::choose(&within, &RunRequest::default(), &plan)?.rest())
    }

    fn read(&self, path: &Path) -> Result<(RepositoryContext, PlanFile)> {
        let text = PlanText::open(path)?;
        let reading = text.whole(&self.general.settings);
        let plan = match reading.plan {
            Some(_) => text.accepted(reading)?,
            None => text.accept(&self.general.context, reading)?,
        };
        Ok((self.general.with_settings(self.layers.resolve(Some(&plan.plan))), plan))
    }
}
