//! One lane: defaults filled in, globs and pools checked.

use std::collections::{BTreeMap, BTreeSet};

use super::Context;
use super::agents::agents;
use super::apart::glob_fault;
use super::names::unknown;
use super::order::called;
use crate::model::plan::{AgentWorktrees, RetryFrom};
use crate::model::{Lane, LaneId, LaneIndex};
use crate::plan_source::draft::{LaneDraft, PlanDraft};
use crate::plan_source::faults::{Faults, quoted};
use crate::plan_source::source_text::At;

/// How often a failed task is tried again where the plan does not say (SPEC §7).
pub(in crate::plan_source) const RETRIES: u32 = 3;

/// The lane that `lane` and the plan's defaults describe; `None` without a valid id or any agent.
pub(super) fn lower(
    plan: &PlanDraft,
    lane: &LaneDraft,
    id: Option<LaneId>,
    depends_on: Vec<LaneIndex>,
    context: &Context<'_>,
) -> Option<Lane> {
    let (faults, defaults) = (context.faults, &plan.defaults);
    let agents = agents(lane, defaults, context);
    let globs = |own: &Option<Vec<At<String>>>, common: &Option<Vec<At<String>>>, key: &str| {
        let globs = own.as_ref().or(common.as_ref()).map(Vec::as_slice).unwrap_or_default();
        globs.iter().for_each(|glob| check_glob(glob, key, faults));
        values(globs)
    };
    let uses = lane.uses.as_ref().or(defaults.uses.as_ref()).map(Vec::as_slice).unwrap_or_default();
    uses.iter().for_each(|pool| check_pool(pool, lane, plan, faults));
    Some(Lane {
        id: id?,
        name: lane.name.as_ref().map(|name| name.value.clone()),
        depends_on,
        owns: globs(&lane.owns, &defaults.owns, "owns"),
        ownership: value(&lane.ownership, &defaults.ownership).unwrap_or_default(),
        must_haves: lane.must_haves.clone(),
        tests: lane.tests.clone().or_else(|| defaults.tests.clone()).unwrap_or_default(),
        approval: values(lane.approval.as_ref().or(defaults.approval.as_ref()).map(Vec::as_slice).unwrap_or_default()),
        timeout: value(&lane.timeout, &defaults.timeout),
        retries: value(&lane.retries, &defaults.retries).or(context.fallbacks.retries).unwrap_or(RETRIES),
        uses: values(uses),
        setup: lane.setup.clone().or_else(|| defaults.setup.clone()).unwrap_or_default(),
        copy: globs(&lane.copy, &defaults.copy, "copy"),
        env: env(&defaults.env, &lane.env),
        resume: value(&lane.resume, &defaults.resume).unwrap_or(RetryFrom::Continue),
        agent_worktrees: value(&lane.agent_worktrees, &defaults.agent_worktrees).unwrap_or(AgentWorktrees::On),
        agents: Some(agents).filter(|agents| !agents.is_empty())?,
    })
}

/// The lane's value, else the default one.
pub(super) fn value<T: Clone>(own: &Option<At<T>>, common: &Option<At<T>>) -> Option<T> {
    own.as_ref().or(common.as_ref()).map(|given| given.value.clone())
}

/// What stands in a list, each once.
fn values<T: Clone + Ord>(list: &[At<T>]) -> Vec<T> {
    let mut seen = BTreeSet::new();
    list.iter().map(|item| &item.value).filter(|value| seen.insert(*value)).cloned().collect()
}

/// Later variables of the same name win.
pub(super) fn env(common: &[(At<String>, String)], own: &[(At<String>, String)]) -> BTreeMap<String, String> {
    common.iter().chain(own).map(|(name, value)| (name.value.clone(), value.clone())).collect()
}

fn check_glob(glob: &At<String>, key: &str, faults: &Faults<'_>) {
    if let Some(fault) = glob_fault(&glob.value) {
        let message = format!("{} in `{key}` is no usable glob: {fault}", quoted(&glob.value));
        faults.error_with(glob.span, message, "write for example `src/api/**` or `docs/*.md`");
    }
}

fn check_pool(pool: &At<String>, lane: &LaneDraft, plan: &PlanDraft, faults: &Faults<'_>) {
    let mut known = plan.pools.iter().map(|(name, _)| name.value.as_str());
    if !known.clone().any(|name| name == pool.value) {
        let message =
            format!("lane {} uses the pool {}, which the plan does not have", called(lane), quoted(&pool.value));
        if known.next().is_none() {
            faults.error_with(pool.span, message, format!("declare it: `[pools]`, then `{} = 1`", pool.value));
        } else {
            unknown(pool, &message, plan.pools.iter().map(|(name, _)| name.value.as_str()), faults);
        }
    }
}
