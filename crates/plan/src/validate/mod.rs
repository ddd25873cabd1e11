//! A draft into a plan: everything that relates one part of a plan to another is checked here, for every format.

mod agents;
mod candidates;
mod exclusions;
mod lane;
mod names;
mod order;
mod shared_files;

use crate::draft::{InterfaceDraft, PlanDraft};
use crate::faults::{Faults, quoted};
use crate::sharing::Sharing;
use crate::source_text::{At, value};
pub(super) use agents::{Context, NAMELESS, NO_RUNNER, ONLY_TASK, Runners, own_task};
pub(super) use exclusions::glob_fault;
pub(super) use lane::RETRIES;
use lanewright_agents::prompt::check_commit_message;
use lanewright_model::plan::Interface;
use lanewright_model::{MergeChoice, PhaseId, Plan, PlanParts, Timeouts};
use names::LaneIds;
pub(super) use order::IN_ORDER;

pub(super) const MAX_LANES: usize = 10_000;

/// Checks `draft` and makes a plan of it, and says which lanes share files; `None` where there is any error.
pub(super) fn validate(mut draft: PlanDraft, context: &Context<'_>) -> Option<(Plan, Sharing)> {
    let faults = context.faults;
    if draft.lanes.len() > MAX_LANES {
        faults.error(draft.lanes[MAX_LANES].span, format!("a plan has at most {MAX_LANES} lanes"));
        return None;
    }
    let merge = merge(&draft, faults);
    let defaults = std::mem::take(&mut draft.defaults);
    for lane in &mut draft.lanes {
        lane.fill(&defaults);
        lane.merge = lane.merge.take().filter(|own| Some(own.value.style()) != merge.map(MergeChoice::style));
    }
    let draft = &draft;
    let phase = draft.phase.as_ref().and_then(|phase| names::id(phase, PhaseId::new, "a phase", faults));
    let ids = names::lane_ids(&draft.lanes, faults);
    let (edges, added_edges) = order::edges(&draft.lanes, &ids, faults);
    let dag = order::acyclic(&draft.lanes, edges.clone(), context.is_list, faults);
    let mut exclusions = exclusions::declared(&draft.lanes, &ids, faults);
    let (mut sequences, mut pairs) = (Vec::new(), Vec::new());
    if let Some(dag) = &dag {
        if !draft.is_partial {
            order::check_waves(&draft.lanes, dag, faults);
        }
        (sequences, pairs) = exclusions::check_ownership(draft, dag, &exclusions, (context.faults, &context.fallbacks));
        exclusions.extend(sequences.iter().map(|&(first, then)| (first.min(then), first.max(then))));
    }
    let interfaces = interfaces(draft, &ids, faults);
    let base_branch = draft.base_branch.as_ref().map(|name| branch(name, faults));
    let lanes = draft.lanes.iter().zip(&ids.known).zip(edges);
    let lanes: Vec<_> = lanes.map(|((lane, id), edges)| lane::lane(draft, lane, id.clone(), edges, context)).collect();
    let commit_message = draft.commit_message.as_ref().map(|text| commit_message(text, faults));
    if faults.any_error() {
        return None;
    }
    let timeouts = Timeouts::default();
    let parts = PlanParts {
        phase: phase?,
        title: value(&draft.title),
        base_branch,
        max_parallel: value(&draft.max_parallel),
        merge,
        timeouts: Timeouts {
            agent: value(&draft.timeouts.agent),
            gate: value(&draft.timeouts.gate).unwrap_or(timeouts.gate),
            kill_after: value(&draft.timeouts.kill_after).unwrap_or(timeouts.kill_after),
        },
        pools: draft.pools.iter().map(|(name, size)| (name.value.clone(), *size)).collect(),
        gates: draft.gates.clone(),
        require_gates: draft.require_gates,
        lanes: lanes.into_iter().collect::<Option<_>>()?,
        exclusions: exclusions.into_iter().collect(),
        sequences,
        added_edges,
        interfaces,
        skipped: draft.skipped.clone(),
        lists: Vec::new(),
        companions: Vec::new(),
        // Runners are not described in the plan: the caller adds them.
        runners: std::collections::BTreeMap::new(),
        executors: std::collections::BTreeMap::new(),
        commit_message,
        replaced: Vec::new(),
        prompts: Default::default(),
    };
    let plan = Plan::new(parts).ok()?;
    let sharing = Sharing::new(&plan, shared_files::rule(draft, &context.fallbacks), pairs);
    Some((plan, sharing))
}

fn interfaces(draft: &PlanDraft, ids: &LaneIds<'_>, faults: &Faults<'_>) -> Vec<Interface> {
    names::unique(draft.interfaces.iter().map(|interface| &interface.id), "an interface", false, faults);
    let provider = |interface: &InterfaceDraft| {
        let lane = interface.provider.as_ref()?;
        let found = ids.at.get(lane.value.as_str()).copied();
        if found.is_none() {
            let (id, lane_id) = (quoted(&interface.id.value), quoted(&lane.value));
            let message = format!("interface {id} is provided by {lane_id}, but this plan has no such lane");
            names::unknown(lane, &message, ids.at.keys().copied(), faults);
        }
        found
    };
    let interface = |draft: &InterfaceDraft| Interface {
        id: draft.id.value.clone(),
        text: draft.text.clone(),
        closed: draft.closed,
        provider: provider(draft),
    };
    draft.interfaces.iter().map(interface).collect()
}

/// What holds for all lanes. Lanes that are merged here may choose the style; whether they are is the same for all.
fn merge(draft: &PlanDraft, faults: &Faults<'_>) -> Option<MergeChoice> {
    let general = value(&draft.merge).or(value(&draft.defaults.merge));
    let own = || draft.lanes.iter().filter_map(|lane| lane.merge.as_ref());
    let all_say = own().count() == draft.lanes.len();
    let common = general.or_else(|| own().next().filter(|_| all_say).map(|choice| choice.value));
    for choice in own().chain(draft.defaults.merge.as_ref()) {
        // Where nothing is said for all, a style is for the case that the settings have lanes merged here.
        let agrees = match common {
            Some(common) => choice.value.mode() == common.mode(),
            None => choice.value.style().is_some(),
        };
        if !agrees {
            different_merge(choice, faults);
        }
    }
    common
}

fn different_merge(choice: &At<MergeChoice>, faults: &Faults<'_>) {
    let message = format!("`merge = \"{}\"` holds for this lane only, but lanes cannot differ in it", choice.value);
    faults.error_with(choice.span, message, "write `merge` once, at the top of the plan");
}

fn commit_message(template: &At<String>, faults: &Faults<'_>) -> String {
    if let Err(error) = check_commit_message(&template.value) {
        let message = format!("this is no template of a commit's message: {}", error.reason);
        let help = "write for example `{{ lane }}: {{ task_name }}`; see docs/prompts.md";
        faults.error_with(template.span, message, help);
    }
    template.value.clone()
}

fn branch(name: &At<String>, faults: &Faults<'_>) -> String {
    if !is_branch_name(&name.value) {
        let help = "use a name that `git check-ref-format --branch` takes";
        faults.error_with(name.span, format!("{} cannot name a branch", quoted(&name.value)), help);
    }
    name.value.clone()
}

/// Whether git takes `name` for a branch, by the rules that matter for an untrusted name.
pub(super) fn is_branch_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let bad = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock") || part.ends_with('.');
    let whole = name.starts_with('-') || name.contains(forbidden) || name.contains("..") || name.contains("@{");
    !(whole || name.split('/').any(bad))
}
