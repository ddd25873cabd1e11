//! The planning files of a GSD project after a lane is merged (SPEC §3.2).

use std::collections::BTreeMap;

use lanewright_model::{MergedPlan, PlanningFiles};

use super::roadmap::number_of;
use super::tracking::DonePlan;
use super::{gsd_plan_is_done, gsd_plans_beside};

fn summary(plan: &str) -> String {
    format!("{plan}-SUMMARY.md")
}

/// What the planning files hold once `merged` is done.
pub fn planning_files(merged: &MergedPlan<'_>) -> PlanningFiles {
    let [of_head, of_branch] = merged.names;
    let beside = [of_branch, of_head].concat();
    let plans = gsd_plans_beside(&beside);
    let own = plans.iter().find(|plan| merged.file.map_or(plan.id == merged.lane, |file| plan.name == file));
    let plan = own.map_or_else(|| merged.lane.to_owned(), |own| own.id.clone());
    let has_summary = of_head.contains(&summary(&plan)) || own.is_some_and(|own| gsd_plan_is_done(&own.name, of_head));
    let mut is_done: BTreeMap<String, bool> = plans.iter().map(|plan| (plan.id.clone(), plan.is_done)).collect();
    if merged.file.is_none() {
        for lane in merged.lanes {
            is_done.entry(lane.clone()).or_insert_with(|| beside.contains(&summary(lane)));
        }
    }
    is_done.insert(plan.clone(), true);
    // One file alone does not tell how many there are.
    let counts = merged.directory.is_some() && (own.is_some() || merged.file.is_none());
    let in_phase = !merged.directory.into_iter().flatten().any(|part| part == "quick");
    let done = DonePlan {
        plan: &plan,
        phase: number_of(merged.phase).filter(|_| in_phase),
        count: counts.then(|| (is_done.values().filter(|done| **done).count(), is_done.len())),
        date: merged.date,
    };
    let [roadmap, state] = merged.texts;
    let texts = [roadmap.map(|text| done.in_roadmap(text)), state.map(|text| done.in_state(text))];
    let is_missing = merged.directory.is_some() && !has_summary;
    PlanningFiles { texts, summary: is_missing.then(|| (summary(&plan), summary_text(&plan, merged))) }
}

fn summary_text(plan: &str, MergedPlan { name, date, source: (run, head), .. }: &MergedPlan<'_>) -> String {
    let name = name.map(|name| format!(": {name}")).unwrap_or_default();
    format!(
        "# Plan {plan}{name}\n\nDone on {date}. The agent left no summary of its own; Lanewright merged its work ({head}) in run {run}.\n"
    )
}
