//! One lane: defaults filled in, globs and pools checked.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::LazyLock;

use lanewright_model::plan::{AgentWorktrees, RetryFrom};
use lanewright_model::{Budget, CommandLine, ExecutorKind, HERE, Lane, LaneId, LaneIndex, MergeChoice, Resources};

use regex::Regex;

use super::agents::{Context, agents};
use super::exclusions::glob_fault;
use super::names::unknown;
use super::order::called;
use crate::Fallbacks;
use crate::draft::{LaneDraft, PlanDraft};
use crate::faults::{Faults, quoted};
use crate::source_text::{At, value};

/// How often a failed task is tried again where the plan does not say (SPEC §7).
pub(crate) const RETRIES: u32 = 3;

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
    let executor = executor(lane, context);
    check_image(lane, executor.as_deref(), context);
    if let Some(executor) = executor.as_ref().filter(|_| agents.iter().any(|agent| agent.candidate.is_some())) {
        let message = format!("candidates work only on this machine; lane {} works on {executor}", called(lane));
        let span = lane.executor.as_ref().map_or(lane.span, |named| named.span);
        faults.error_with(span, message, "write `executor = \"local\"` or `candidates = 1` in the lane");
    }
    let tests = tests(lane, &context.fallbacks);
    let is_judged = !tests.is_empty() || !plan.gates.checkpoint.is_empty();
    Some(Lane {
        id: id?,
        name: value(&lane.name),
        depends_on,
        owns: globs(&lane.owns, "owns"),
        ownership: value(&lane.ownership).unwrap_or_default(),
        must_haves: lane.must_haves.clone(),
        user_setup: lane.user_setup.clone(),
        criteria: lane.criteria.clone(),
        has_usual_tests: lane.tests.is_none() && !tests.is_empty(),
        tests,
        approval: values(&lane.approval),
        timeout: value(&lane.timeout),
        closes: closes(lane, context.faults),
        budget: Budget { cost: value(&lane.max_cost), tokens: value(&lane.max_tokens).map(u64::from) },
        retries: value(&lane.retries).or(context.fallbacks.retries).unwrap_or(RETRIES),
        uses: values(&lane.uses),
        setup: lane.setup.clone().unwrap_or_else(|| shell_lines(context.fallbacks.setup)),
        copy: match &lane.copy {
            None if executor.is_none() => context.fallbacks.copy.to_vec(),
            own => globs(own, "copy"),
        },
        env: env(&lane.env),
        merge_style: value(&lane.merge).and_then(MergeChoice::style),
        resume: value(&lane.resume).unwrap_or(RetryFrom::Continue),
        agent_worktrees: value(&lane.agent_worktrees)
            .unwrap_or_else(|| AgentWorktrees::unless_said(agents.len(), is_judged)),
        executor,
        resources: Resources {
            cpus: value(&lane.cpus).and_then(NonZeroU32::new),
            memory_mib: value(&lane.memory_mib).and_then(NonZeroU32::new),
            gpus: value(&lane.gpus).and_then(NonZeroU32::new),
            image: value(&lane.image),
            time: value(&lane.job_time),
        },
        agents: Some(agents).filter(|agents| !agents.is_empty())?,
    })
}

/// What judges the lane alone before it is merged; an empty list of its own is one.
pub(super) fn tests(lane: &LaneDraft, fallbacks: &Fallbacks<'_>) -> Vec<CommandLine> {
    lane.tests.clone().unwrap_or_else(|| shell_lines(fallbacks.tests))
}

fn shell_lines(lines: &[String]) -> Vec<CommandLine> {
    lines.iter().cloned().map(CommandLine::Shell).collect()
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

/// The executor whose jobs work on the lane; `None`: this machine.
fn executor(lane: &LaneDraft, context: &Context<'_>) -> Option<String> {
    let fallback = || context.fallbacks.executor.map(|name| At::new(name.to_owned(), lane.span));
    let named = lane.executor.clone().or_else(fallback).filter(|named| named.value != HERE)?;
    let (known, faults) = (context.fallbacks.executors, context.faults);
    if kind_of(&named.value, context).is_none() {
        let message =
            format!("executor {} is not defined; lane {} is to work on it", quoted(&named.value), called(lane));
        match known {
            [] => {
                let help = format!("describe it as [executors.{}] in lanewright.toml", named.value);
                faults.error_with(named.span, message, help);
            }
            known => unknown(&named, &message, known.iter().map(|(name, _)| *name).chain([HERE]), faults),
        }
    }
    if let Some(glob) = lane.copy.iter().flatten().next() {
        let message =
            format!("`copy` works only for lanes on this machine; lane {} works on {}", called(lane), named.value);
        faults.error_with(glob.span, message, "write the files in `setup`, or put them into the image or a Secret");
    }
    Some(named.value)
}

fn kind_of(executor: &str, context: &Context<'_>) -> Option<ExecutorKind> {
    context.fallbacks.executors.iter().find(|(name, _)| *name == executor).map(|(_, kind)| *kind)
}

/// Only pods have an image.
fn check_image(lane: &LaneDraft, executor: Option<&str>, context: &Context<'_>) {
    let Some(image) = &lane.image else { return };
    let place = match executor {
        None => "this machine".to_owned(),
        Some(name) if kind_of(name, context) == Some(ExecutorKind::Slurm) => format!("{name}, which is a Slurm"),
        Some(_) => return,
    };
    let message = format!("`image` has no effect: lane {} works on {place}", called(lane));
    context.faults.warning(image.span, message, "name an executor of kind `kubernetes`, or remove `image`");
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

/// What a forge takes for an issue: `#12`, `group/project#12`, an address.
static ISSUE: LazyLock<Regex> = pattern!(r"^(?:[A-Za-z0-9_./-]*#[1-9][0-9]*|https?://[!-~]+)$");

fn closes(lane: &LaneDraft, faults: &Faults<'_>) -> Vec<String> {
    for issue in lane.closes.iter().filter(|issue| !ISSUE.is_match(&issue.value)) {
        let message = format!("{} is no issue that a commit could close", quoted(&issue.value));
        faults.error_with(issue.span, message, "write `#12`, `group/project#12` or the address of the issue");
    }
    if let (Some(first), Some(style)) = (lane.closes.first(), &lane.merge)
        && style.value == MergeChoice::Ff
    {
        let message = "with `merge = \"ff\"` the lane has no merge commit, so only its pull request can close issues";
        faults.warning(first.span, message, "choose another style for the lane, or leave `closes` out");
    }
    lane.closes.iter().map(|issue| issue.value.clone()).collect()
}
