//! One lane: defaults filled in, globs and pools checked.

use std::collections::{BTreeMap, BTreeSet};

use super::agents::{Context, agents};
use super::apart::glob_fault;
use super::names::unknown;
use super::order::called;
use crate::model::plan::{AgentWorktrees, RetryFrom};
use crate::model::{Lane, LaneId, LaneIndex, MergeChoice};
use crate::plan::draft::{LaneDraft, PlanDraft};
use crate::plan::faults::{Faults, quoted};
use crate::plan::source_text::{At, value};

/// How often a failed task is tried again where the plan does not say (SPEC §7).
pub(in crate::plan) const RETRIES: u32 = 3;

/// The lane that `lane` describes; `None` without a valid id or any agent.
pub(super) fn lane(
    plan: &PlanDraft,
    lane: &LaneDraft,
    id: Option<LaneId>,
    depends_on: Vec<LaneIndex>,
    context: &Context<'_>,
) -> Option<Lane> {
    let faults = context.faults;
    let agents = agents(lane, context);
    let globs = |globs: &Option<Vec<At<String>>>, key: &str| {
        globs.iter().flatten().for_each(|glob| check_glob(glob, key, faults));
        values(globs)
    };
    lane.uses.iter().flatten().for_each(|pool| check_pool(pool, lane, plan, faults));
    Some(Lane {
        id: id?,
        name: value(&lane.name),
        depends_on,
        owns: globs(&lane.owns, "owns"),
        ownership: value(&lane.ownership).unwrap_or_default(),
        must_haves: lane.must_haves.clone(),
        tests: lane.tests.clone().unwrap_or_default(),
        approval: values(&lane.approval),
        timeout: value(&lane.timeout),
        retries: value(&lane.retries).or(context.fallbacks.retries).unwrap_or(RETRIES),
        uses: values(&lane.uses),
        setup: lane.setup.clone().unwrap_or_default(),
        copy: globs(&lane.copy, "copy"),
        env: env(&lane.env),
        merge_style: value(&lane.merge).and_then(MergeChoice::style),
        resume: value(&lane.resume).unwrap_or(RetryFrom::Continue),
        agent_worktrees: value(&lane.agent_worktrees).unwrap_or(AgentWorktrees::On),
        agents: Some(agents).filter(|agents| !agents.is_empty())?,
    })
}

/// The values of a list, each once.
fn values<T: Clone + Ord>(list: &Option<Vec<At<T>>>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    list.iter().flatten().map(|item| &item.value).filter(|value| seen.insert(*value)).cloned().collect()
}

/// Later variables of the same name win.
pub(super) fn env(variables: &[(At<String>, String)]) -> BTreeMap<String, String> {
    variables.iter().map(|(name, value)| (name.value.clone(), value.clone())).collect()
}

fn check_glob(glob: &At<String>, key: &str, faults: &Faults<'_>) {
    if let Some(fault) = glob_fault(&glob.value) {
        let message = format!("{} in `{key}` is no usable glob: {fault}", quoted(&glob.value));
        faults.error_with(glob.span, message, "write for example `src/api/**` or `docs/*.md`");
    }
}

fn check_pool(pool: &At<String>, lane: &LaneDraft, plan: &PlanDraft, faults: &Faults<'_>) {
    let known: Vec<&str> = plan.pools.iter().map(|(name, _)| name.value.as_str()).collect();
    if known.contains(&pool.value.as_str()) {
        return;
    }
    let message = format!("lane {} uses the pool {}, which the plan does not have", called(lane), quoted(&pool.value));
    if known.is_empty() {
        faults.error_with(pool.span, message, format!("declare it: `[pools]`, then `{} = 1`", pool.value));
    } else {
        unknown(pool, &message, known, faults);
    }
}
