//! Lanes whose work no command judges: refused where gates are required, else reported.

use lanewright_agents::shell;
use lanewright_model::{Lane, LaneId, Plan};
use lanewright_plan::settings::Settings;
use lanewright_plan::{Diagnostic, Reading, Severity};

use super::plan_file::PlanText;
use crate::cli::repository_gates::lanes_without_gate;

impl PlanText {
    /// With `require_gates`, refuses lanes that no command judges.
    pub(super) fn requiring_gates(&self, mut reading: Reading, settings: &Settings) -> Reading {
        let Some(plan) = &reading.plan else { return reading };
        let setting = &settings.require_gates;
        let is_required = plan.require_gates.filter(|_| !setting.origin.outranks_plan()).unwrap_or(setting.value);
        let refuse = |lane: &Lane| {
            let message = format!("lane {} has no gate that can fail, and gates are required", lane.id);
            let help = "set `tests` in lanewright.toml, which `lanewright init --gates` writes for this repository, or in the \
                        plan, or `verify` of the lane's tasks or `atomic` in `[gates]`; or unset `require_gates`";
            self.at_lane(Severity::Error, lane, ("", 0), &message, help)
        };
        let ungated = plan.lanes.iter().filter(|lane| is_required && !shell::has_gate(plan, lane));
        let faults: Vec<Diagnostic> = ungated.map(refuse).collect();
        if !faults.is_empty() {
            reading.plan = None;
            reading.diagnostics.extend(faults);
            Diagnostic::sort(&mut reading.diagnostics);
        }
        reading
    }

    /// A warning about those of the plan's lanes that are merged without a gate, at the first one; `help` says what to do.
    pub(crate) fn without_gates(&self, plan: &Plan, lanes: &[LaneId], help: &str) -> Option<Diagnostic> {
        let first = plan.lanes.iter().find(|lane| lanes.contains(&lane.id))?;
        Some(self.at_lane(Severity::Warning, first, ("", 0), &lanes_without_gate(lanes), help))
    }
}
