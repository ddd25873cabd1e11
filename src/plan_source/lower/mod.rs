//! A draft into a plan: everything that relates one part of a plan to another is checked here, for every format.

pub(super) mod agents;
mod apart;
pub(super) mod lane;
mod names;
mod order;
pub(super) mod program;
mod prompt;
pub(super) mod tasks;

use std::time::Duration;

use crate::model::plan::Interface;
use crate::model::{CommandLine, MergeMode, PhaseId, Plan, PlanParts, Timeouts};
use crate::plan_source::Fallbacks;
use crate::plan_source::draft::{InterfaceDraft, LaneDraft, PlanDraft};
use crate::plan_source::faults::{Faults, quoted};
use crate::plan_source::source_text::At;
pub(super) use apart::glob_fault;
use names::LaneIds;

/// The most lanes of a plan.
pub(super) const MAX_LANES: usize = 10_000;

/// How prompt files are read.
pub(super) type Load<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// How a runner's command is found.
pub(super) type Runners<'a> = dyn Fn(&str) -> Option<CommandLine> + 'a;

/// What lowering asks the outside for, and where it leaves faults.
pub(super) struct Context<'a> {
    pub(super) faults: &'a Faults<'a>,
    pub(super) load: &'a Load<'a>,
    pub(super) runners: &'a Runners<'a>,
    pub(super) fallbacks: Fallbacks<'a>,
    /// Whether an agent without a command and a runner is no fault of the plan.
    pub(super) runner_may_be_unset: bool,
}

/// What a lane's agents and tasks are lowered with.
struct Surroundings<'a> {
    lane: &'a LaneDraft,
    defaults: &'a LaneDraft,
    context: &'a Context<'a>,
    /// What an agent is told that is told nothing of its own.
    prompt: String,
    /// The time limit of tasks that have none of their own.
    max_time: Option<Duration>,
}

impl<'a> Surroundings<'a> {
    fn new(lane: &'a LaneDraft, defaults: &'a LaneDraft, context: &'a Context<'a>) -> Self {
        let own = prompt::prompt(&lane.prompt, context).or_else(|| prompt::prompt(&defaults.prompt, context));
        let name = || lane.name.as_ref().or(lane.id.as_ref()).map(|name| name.value.clone());
        let prompt = own.or_else(name).unwrap_or_default();
        Self { lane, defaults, context, prompt, max_time: lane::value(&lane.max_time, &defaults.max_time) }
    }
}

/// Checks `draft` and makes a plan of it; `None` where there is any error.
pub(super) fn lower(draft: &PlanDraft, context: &Context<'_>) -> Option<Plan> {
    let faults = context.faults;
    if draft.lanes.len() > MAX_LANES {
        faults.error(draft.lanes[MAX_LANES].span, format!("a plan has at most {MAX_LANES} lanes"));
        return None;
    }
    let phase = phase(draft, faults);
    let ids = names::lane_ids(&draft.lanes, faults);
    let (edges, added_edges) = order::edges(&draft.lanes, &ids, faults);
    let dag = order::acyclic(&draft.lanes, edges.clone(), faults);
    let mut exclusions = apart::exclusions(&draft.lanes, &ids, faults);
    let mut sequences = Vec::new();
    if let Some(dag) = &dag {
        if !draft.is_partial {
            order::check_waves(&draft.lanes, dag, faults);
        }
        sequences = apart::check(draft, dag, &exclusions, faults);
        exclusions.extend(sequences.iter().map(|&(first, then)| (first.min(then), first.max(then))));
    }
    let interfaces = interfaces(draft, &ids, faults);
    let merge = merge(draft, faults);
    let base_branch = draft.base_branch.as_ref().map(|name| branch(name, faults));
    let lower_lane =
        |(at, lane): (usize, _)| lane::lower(draft, lane, ids.known[at].clone(), edges[at].clone(), context);
    let lanes: Vec<_> = draft.lanes.iter().enumerate().map(lower_lane).collect();
    if faults.any_error() {
        return None;
    }
    let parts = PlanParts {
        phase: phase?,
        title: draft.title.as_ref().map(|title| title.value.clone()),
        base_branch,
        max_parallel: draft.max_parallel.as_ref().map(|number| number.value),
        merge,
        timeouts: timeouts(draft),
        pools: draft.pools.iter().map(|(name, size)| (name.value.clone(), *size)).collect(),
        gates: draft.gates.clone(),
        lanes: lanes.into_iter().collect::<Option<_>>()?,
        exclusions: exclusions.into_iter().collect(),
        sequences,
        added_edges,
        interfaces,
        skipped: draft.skipped.clone(),
        // What a runner is, the plan does not say: whoever reads it adds them.
        runners: std::collections::BTreeMap::new(),
    };
    Plan::new(parts).ok()
}

fn interfaces(draft: &PlanDraft, ids: &LaneIds<'_>, faults: &Faults<'_>) -> Vec<Interface> {
    names::unique(draft.interfaces.iter().map(|interface| &interface.id), "an interface", false, faults);
    let lower = |interface: &InterfaceDraft| {
        let provider = interface.provider.as_ref().and_then(|lane| {
            let found = ids.at.get(lane.value.as_str()).copied();
            if found.is_none() {
                let id = quoted(&interface.id.value);
                let message =
                    format!("interface {id} is provided by {}, which is no lane of this plan", quoted(&lane.value));
                names::unknown(lane, &message, ids.at.keys().copied(), faults);
            }
            found
        });
        Interface { id: interface.id.value.clone(), text: interface.text.clone(), closed: interface.closed, provider }
    };
    draft.interfaces.iter().map(lower).collect()
}

fn phase(draft: &PlanDraft, faults: &Faults<'_>) -> Option<PhaseId> {
    let given = draft.phase.as_ref()?;
    names::id(given, PhaseId::new, "a phase", faults)
}

fn timeouts(draft: &PlanDraft) -> Timeouts {
    let default = Timeouts::default();
    let given = &draft.timeouts;
    Timeouts {
        agent: given.agent.as_ref().map(|time| time.value),
        gate: given.gate.as_ref().map_or(default.gate, |time| time.value),
        kill_after: given.kill_after.as_ref().map_or(default.kill_after, |time| time.value),
    }
}

/// The one way in which all lanes are merged. A lane may repeat it, but there is one integration branch.
fn merge(draft: &PlanDraft, faults: &Faults<'_>) -> Option<MergeMode> {
    let general = draft.defaults.merge.as_ref().or(draft.merge.as_ref());
    let effective = |lane: &LaneDraft| lane.merge.as_ref().or(general).map(|mode| mode.value);
    let first = draft.lanes.first().and_then(effective);
    let common = draft.merge.as_ref().map(|mode| mode.value).or(general.map(|mode| mode.value)).or(first);
    let own = draft.lanes.iter().filter_map(|lane| lane.merge.as_ref()).chain(draft.defaults.merge.as_ref());
    for mode in own.filter(|mode| Some(mode.value) != common) {
        different_merge(mode, faults);
    }
    let silent = draft.lanes.iter().any(|lane| effective(lane).is_none());
    if let Some(mode) = draft.lanes.iter().filter_map(|lane| lane.merge.as_ref()).next().filter(|_| silent) {
        different_merge(mode, faults);
    }
    common
}

fn different_merge(mode: &At<MergeMode>, faults: &Faults<'_>) {
    let message = format!("`merge = \"{}\"` holds for this lane only, but lanes cannot differ in it", mode.value);
    faults.error_with(mode.span, message, "write `merge` once, at the top of the plan");
}

/// Checks the rules of git for a branch name that matter for a name from a stranger.
fn branch(name: &At<String>, faults: &Faults<'_>) -> String {
    let text = name.value.as_str();
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock") || part.ends_with('.');
    let bad = text.starts_with('-') || text.contains(forbidden) || text.contains("..") || text.contains("@{");
    if bad || text.split('/').any(part) {
        let help = "use a name that `git check-ref-format --branch` takes";
        faults.error_with(name.span, format!("{} cannot name a branch", quoted(text)), help);
    }
    text.to_owned()
}
