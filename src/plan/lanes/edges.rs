//! The order between lanes: `Depends on`, `Blocks`, open gates; and the lanes that run alone.

use std::collections::BTreeSet;
use std::ops::Range;

use super::context::Context;
use super::label::Label;
use super::references::{Reference, gates_named, references};
use crate::model::plan::EdgeOrigin;
use crate::plan::before::Before;
use crate::plan::draft::InterfaceDraft;
use crate::plan::faults::quoted;
use crate::plan::markdown::inline::{is_nothing, one_line, parts, without_code, without_parentheses};
use crate::plan::source_text::At;

#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) depends_on: Vec<At<String>>,
    pub(super) also_after: Vec<(At<String>, EdgeOrigin)>,
    pub(super) excludes: Vec<At<String>>,
    /// All lanes of the first two.
    waits: BTreeSet<usize>,
}

struct Need {
    lane: usize,
    gate: usize,
    at: Range<usize>,
}

pub(super) struct Edges {
    pub(super) lanes: Vec<Order>,
    pub(super) before: Before,
    pub(super) interfaces: Vec<InterfaceDraft>,
}

pub(super) fn edges(context: &Context<'_>) -> Edges {
    let mut lanes: Vec<Order> = context.lanes.iter().map(|_| Order::default()).collect();
    let mut needs = Vec::new();
    for label in [Label::DependsOn, Label::Blocks] {
        (0..lanes.len()).for_each(|lane| named(context, lane, label, &mut lanes, &mut needs));
    }
    (0..lanes.len()).for_each(|lane| consumed(context, lane, &mut needs));
    let waits: Vec<Vec<usize>> = lanes.iter().map(|lane| lane.waits.iter().copied().collect()).collect();
    let mut before = Before::new(&waits);
    let providers = providers(context);
    for need in &needs {
        need_gate(context, need, &providers[need.gate], &mut lanes, &mut before);
    }
    lacking(context, &needs, &providers);
    exclusive(context, &mut lanes, &before);
    let interfaces = interfaces(context, &providers, &before);
    Edges { lanes, before, interfaces }
}

/// What the value of `Depends on` or `Blocks` of a lane names.
fn named(context: &Context<'_>, lane: usize, label: Label, lanes: &mut [Order], needs: &mut Vec<Need>) {
    let verb = if label == Label::Blocks { "blocks" } else { "depends on" };
    let of_field = |range| references(context.document.text, range, lane, &context.names);
    for reference in context.lanes[lane].field(label).flat_map(of_field) {
        match reference {
            Reference::Lane(other, at) if other == lane => itself(context, lane, at, verb),
            Reference::Lane(other, at) if label == Label::Blocks => {
                if lanes[other].waits.insert(lane) {
                    let id = context.at(context.lanes[lane].id.clone(), at);
                    lanes[other].also_after.push((id, EdgeOrigin::Blocks));
                }
            }
            Reference::Lane(other, at) => {
                if lanes[lane].waits.insert(other) {
                    lanes[lane].depends_on.push(context.at(context.lanes[other].id.clone(), at));
                }
            }
            Reference::Gate(at) if label == Label::DependsOn => match context.gates.find(context.text(at.clone())) {
                Some(gate) => needs.push(Need { lane, gate, at }),
                None => unlisted(context, lane, at),
            },
            Reference::Unknown(at) => unknown(context, lane, at, verb),
            Reference::Gate(at) | Reference::Foreign(at) => foreign(context, lane, at, verb),
        }
    }
}

fn consumed(context: &Context<'_>, lane: usize, needs: &mut Vec<Need>) {
    for range in context.lanes[lane].field(Label::Consumed) {
        let visible = without_parentheses(context.text(range.clone()));
        for (name, at) in gates_named(&visible) {
            if let Some(gate) = context.gates.find(&name) {
                needs.push(Need { lane, gate, at: range.start + at.start..range.start + at.end });
            }
        }
    }
}

/// The lanes that provide each gate: those that list it, else those that name it in what they provide.
fn providers(context: &Context<'_>) -> Vec<Vec<usize>> {
    let count = context.gates.list.len();
    let mut listed: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    let mut named = listed.clone();
    for (lane, text) in context.lanes.iter().enumerate() {
        for range in text.field(Label::Provided) {
            let value = context.text(range);
            if is_nothing(value) {
                continue;
            }
            for (name, at) in gates_named(value) {
                let Some(gate) = context.gates.find(&name) else { continue };
                named[gate].insert(lane);
                if begins_item(value, at.start) {
                    listed[gate].insert(lane);
                }
            }
        }
    }
    let best = |(listed, named): (BTreeSet<usize>, BTreeSet<usize>)| if listed.is_empty() { named } else { listed };
    listed.into_iter().zip(named).map(best).map(|lanes| lanes.into_iter().collect()).collect()
}

/// Whether an item of the list begins at `at`, or right before marks of emphasis.
fn begins_item(value: &str, at: usize) -> bool {
    let before = value[..at].trim_end_matches([' ', '\t', '*', '`', '_']);
    let line = before.rsplit('\n').next().unwrap_or(before);
    before.is_empty()
        || before.ends_with([',', ';', '\n'])
        || matches!(line.trim(), "-" | "*" | "+" | "- [ ]" | "- [x]" | "and")
        || line.trim_end().ends_with(" and")
        || line.trim_end().ends_with(" through")
}

/// Lets the lane wait for the lanes that provide an open gate.
fn need_gate(context: &Context<'_>, need: &Need, providers: &[usize], lanes: &mut [Order], before: &mut Before) {
    let gate = &context.gates.list[need.gate];
    if gate.closed || providers.contains(&need.lane) {
        return;
    }
    let later = |&&provider: &&usize| before.waits(provider, need.lane);
    if !providers.is_empty() && providers.iter().all(|provider| later(&provider)) {
        let (own, id) = (quoted(&context.lanes[need.lane].id), quoted(&gate.id));
        let provider = quoted(&context.lanes[providers[0]].id);
        let message = format!("lane {own} needs gate {id}, which {provider} provides only after it");
        context.warning(need.at.clone(), message, "tick the gate if it is closed already, or turn the order around");
        return;
    }
    for &provider in providers {
        if !before.waits(provider, need.lane) && lanes[need.lane].waits.insert(provider) {
            before.add(need.lane, provider);
            let id = context.at(context.lanes[provider].id.clone(), need.at.clone());
            lanes[need.lane].also_after.push((id, EdgeOrigin::Interface(gate.id.clone())));
        }
    }
}

/// Notes every open gate that lanes need and no lane provides.
fn lacking(context: &Context<'_>, needs: &[Need], providers: &[Vec<usize>]) {
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); context.gates.list.len()];
    for need in needs {
        if waiting[need.gate].last() != Some(&need.lane) && !waiting[need.gate].contains(&need.lane) {
            waiting[need.gate].push(need.lane);
        }
    }
    for ((gate, lanes), providers) in context.gates.list.iter().zip(waiting).zip(providers) {
        if gate.closed || !providers.is_empty() || lanes.is_empty() {
            continue;
        }
        let names: Vec<String> = lanes.iter().take(8).map(|&lane| quoted(&context.lanes[lane].id)).collect();
        let more = if lanes.len() > 8 { ", …" } else { "" };
        let id = quoted(&gate.id);
        let message =
            format!("gate {id} is open and no lane provides it, but it is needed by {}{more}", names.join(", "));
        let help =
            format!("tick it once it holds, or name {id} under `Interfaces provided` of the lane that closes it");
        context.lack(context.options.strict_gates, gate.at.clone(), message, help);
    }
}

/// Keeps lanes that are not parallel-safe apart from every lane that has no order with them.
fn exclusive(context: &Context<'_>, lanes: &mut [Order], before: &Before) {
    let alone: Vec<Option<Range<usize>>> =
        context.lanes.iter().map(|lane| runs_alone(context, lane.field(Label::ParallelSafe))).collect();
    for (lane, at) in alone.iter().enumerate() {
        let Some(at) = at else { continue };
        for (other, also) in alone.iter().enumerate() {
            let twice = other < lane && also.is_some();
            if other != lane && !twice && !before.ordered(lane, other) {
                lanes[lane].excludes.push(context.at(context.lanes[other].id.clone(), at.clone()));
            }
        }
    }
}

/// Where a lane says that it is not parallel-safe.
fn runs_alone(context: &Context<'_>, values: impl Iterator<Item = Range<usize>>) -> Option<Range<usize>> {
    let mut found = None;
    for range in values {
        let value = context.text(range.clone());
        let word =
            value.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("").to_lowercase();
        match word.as_str() {
            "no" | "false" | "never" => found = Some(range),
            "yes" | "true" | "mixed" | "partial" | "partially" | "" => {}
            _ => {
                let message = format!("{} is neither yes nor no; the lane is taken as parallel-safe", quoted(value));
                context.warning(range, message, "write `Parallel-safe: yes` or `Parallel-safe: no`");
            }
        }
    }
    found
}

/// The gates with the lane whose merge closes each: of several the one that comes last.
fn interfaces(context: &Context<'_>, providers: &[Vec<usize>], before: &Before) -> Vec<InterfaceDraft> {
    for (id, at) in &context.gates.repeated {
        context.warning(
            at.clone(),
            format!("gate {} stands here a second time", quoted(id)),
            "leave one of the two out",
        );
    }
    let interface = |(gate, providers): (&super::gates::Gate, &Vec<usize>)| {
        let behind = |lane: usize| providers.iter().filter(|&&other| before.waits(lane, other)).count();
        let last = providers.iter().copied().max_by_key(|&lane| (behind(lane), lane));
        InterfaceDraft {
            id: context.at(gate.id.clone(), gate.at.clone()),
            text: gate.text.clone(),
            closed: gate.closed,
            provider: last.map(|lane| context.at(context.lanes[lane].id.clone(), gate.at.clone())),
        }
    };
    context.gates.list.iter().zip(providers).map(interface).collect()
}

fn itself(context: &Context<'_>, lane: usize, at: Range<usize>, verb: &str) {
    let message = format!("lane {} {verb} itself", quoted(&context.lanes[lane].id));
    context.warning(at, message, "leave it out; it orders nothing");
}

fn unknown(context: &Context<'_>, lane: usize, at: Range<usize>, verb: &str) {
    let name = context.text(at.clone());
    let message =
        format!("lane {} {verb} {}, which is no lane of this plan", quoted(&context.lanes[lane].id), quoted(name));
    let help = match context.nearest(name) {
        Some(near) => format!("did you mean `{near}`? as it is, it orders nothing"),
        None => "add the lane or leave the name out; it orders nothing".to_owned(),
    };
    context.warning(at, message, help);
}

fn unlisted(context: &Context<'_>, lane: usize, at: Range<usize>) {
    let name = quoted(context.text(at.clone()));
    let message = format!(
        "lane {} depends on gate {name}, which is not among the interface freeze gates",
        quoted(&context.lanes[lane].id)
    );
    context.warning(at, message, "list the gate, or leave it out; it is taken as closed");
}

fn foreign(context: &Context<'_>, lane: usize, at: Range<usize>, verb: &str) {
    let said = quoted(context.text(at.clone()));
    let message = format!("lane {} {verb} {said}, which is no lane of this plan", quoted(&context.lanes[lane].id));
    context.warning(at, message, "what lies outside of this phase is not waited for: see to it before the run");
}

/// The items of a list of interfaces.
pub(super) fn interface_items(value: &str) -> Vec<String> {
    if is_nothing(value) {
        return Vec::new();
    }
    let bulleted = value.lines().any(|line| line.trim_start().starts_with("- "));
    let separators: &[char] = match (bulleted, without_code(value).contains(';')) {
        (true, _) => &['\n'],
        (false, true) => &[';'],
        (false, false) => &[','],
    };
    let items = parts(value, separators).into_iter().map(|range| one_line(&value[range]));
    let items = items.map(|item| item.trim_start_matches("- ").trim_end_matches('.').to_owned());
    items.filter(|item| !is_nothing(item)).collect()
}
