//! The order between lanes: `Depends on`, `Blocks`, open gates; and the lanes that run alone.

use std::collections::BTreeSet;
use std::ops::Range;

use lanewright_model::plan::EdgeOrigin;

use super::context::Context;
use super::gates::Gate;
use super::lane_text::Label;
use super::references::{Reference, gates_named, references};
use crate::dependencies::Dependencies;
use crate::draft::InterfaceDraft;
use crate::faults::quoted;
use crate::markdown::inline::{is_nothing, without_parentheses};
use crate::source_text::At;

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
    pub(super) dependencies: Dependencies,
    pub(super) interfaces: Vec<InterfaceDraft>,
}

pub(super) fn edges(context: &Context<'_>) -> Edges {
    let all = 0..context.lanes.len();
    let lanes = all.clone().map(|_| Order::default()).collect();
    let mut reader = Reader {
        context,
        lanes,
        needs: Vec::new(),
        providers: providers(context),
        dependencies: Dependencies::new(&[]),
    };
    for label in [Label::DependsOn, Label::Blocks] {
        all.clone().for_each(|lane| reader.named(lane, label));
    }
    all.for_each(|lane| reader.consumed(lane));
    let waits: Vec<Vec<usize>> = reader.lanes.iter().map(|lane| lane.waits.iter().copied().collect()).collect();
    reader.dependencies = Dependencies::new(&waits);
    for need in std::mem::take(&mut reader.needs) {
        reader.wait_for_gate(&need);
        reader.needs.push(need);
    }
    reader.note_open_gates();
    reader.exclude();
    let interfaces = reader.interfaces();
    Edges { lanes: reader.lanes, dependencies: reader.dependencies, interfaces }
}

/// The lanes that provide each gate: those that list it, else those that name it in what they provide.
fn providers(context: &Context<'_>) -> Vec<Vec<usize>> {
    let mut listed: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); context.gates.list.len()];
    let mut named = listed.clone();
    for (lane, text) in context.lanes.iter().enumerate() {
        let values = text.field(Label::Provided).map(|range| context.text(range));
        for value in values.filter(|value| !is_nothing(value)) {
            for (name, at) in gates_named(value) {
                let Some(gate) = context.gates.find(&name) else { continue };
                named[gate].insert(lane);
                if begins_item(&value[..at.start]) {
                    listed[gate].insert(lane);
                }
            }
        }
    }
    let best = |(listed, named): (BTreeSet<usize>, BTreeSet<usize>)| if listed.is_empty() { named } else { listed };
    listed.into_iter().zip(named).map(best).map(|lanes| lanes.into_iter().collect()).collect()
}

/// Whether an item of the list begins behind `before`.
fn begins_item(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t', '*', '`', '_']);
    let line = before.rsplit('\n').next().unwrap_or(before).trim();
    before.is_empty()
        || before.ends_with([',', ';', '\n'])
        || matches!(line, "-" | "+" | "- [ ]" | "- [x]" | "and")
        || line.ends_with(" and")
        || line.ends_with(" through")
}

struct Reader<'a> {
    context: &'a Context<'a>,
    lanes: Vec<Order>,
    needs: Vec<Need>,
    /// By gate.
    providers: Vec<Vec<usize>>,
    dependencies: Dependencies,
}

impl Reader<'_> {
    fn id(&self, lane: usize) -> &str {
        &self.context.lanes[lane].id
    }

    fn at(&self, lane: usize, place: &Range<usize>) -> At<String> {
        At::new(self.id(lane).to_owned(), place.clone())
    }

    /// Adds what the value of `Depends on` or `Blocks` of a lane names.
    fn named(&mut self, lane: usize, label: Label) {
        let context = self.context;
        let blocks = label == Label::Blocks;
        let verb = if blocks { "blocks" } else { "depends on" };
        let of_field = |range| references(context.document.text, range, lane, &context.names);
        for (reference, at) in context.lanes[lane].field(label).flat_map(of_field) {
            let name = context.text(at.clone());
            let gate = context.gates.find(name);
            match reference {
                Reference::Lane(other) if other == lane => {
                    self.note(lane, at, &format!("{verb} itself"), "leave it out; it orders nothing");
                }
                Reference::Lane(other) if blocks => {
                    if self.lanes[other].waits.insert(lane) {
                        let id = self.at(lane, &at);
                        self.lanes[other].also_after.push((id, EdgeOrigin::Blocks));
                    }
                }
                Reference::Lane(other) => {
                    if self.lanes[lane].waits.insert(other) {
                        let id = self.at(other, &at);
                        self.lanes[lane].depends_on.push(id);
                    }
                }
                Reference::Gate if !blocks => match gate {
                    Some(gate) => self.needs.push(Need { lane, gate, at }),
                    None => {
                        let fault = "which is not among the interface freeze gates";
                        let help = "list the gate, or leave it out; it is taken as closed";
                        self.note(lane, at, &format!("depends on gate {}, {fault}", quoted(name)), help);
                    }
                },
                Reference::Unknown | Reference::Gate | Reference::Foreign => {
                    let near = Some(name).filter(|_| reference == Reference::Unknown).map(|name| context.nearest(name));
                    let help = match near {
                        Some(Some(near)) => &format!("did you mean `{near}`? as it is, it orders nothing"),
                        Some(None) => "add the lane or leave the name out; it orders nothing",
                        None => "what lies outside of this phase is not waited for: see to it before the run",
                    };
                    self.note(lane, at, &format!("{verb} {}, but this plan has no such lane", quoted(name)), help);
                }
            }
        }
    }

    fn note(&self, lane: usize, at: Range<usize>, said: &str, help: &str) {
        self.context.faults.warning(at, format!("lane {} {said}", quoted(self.id(lane))), help);
    }

    fn consumed(&mut self, lane: usize) {
        for range in self.context.lanes[lane].field(Label::Consumed) {
            let visible = without_parentheses(self.context.text(range.clone()));
            for (name, at) in gates_named(&visible) {
                if let Some(gate) = self.context.gates.find(&name) {
                    self.needs.push(Need { lane, gate, at: range.start + at.start..range.start + at.end });
                }
            }
        }
    }

    /// Has the lane wait for the lanes that provide an open gate.
    fn wait_for_gate(&mut self, need: &Need) {
        let (gate, providers) = (&self.context.gates.list[need.gate], &self.providers[need.gate]);
        if gate.closed || providers.is_empty() || providers.contains(&need.lane) {
            return;
        }
        let id = &gate.id.value;
        if providers.iter().all(|&provider| self.dependencies.waits(provider, need.lane)) {
            let said =
                format!("needs gate {}, which {} provides only after it", quoted(id), quoted(self.id(providers[0])));
            let help = "tick the gate if it is closed already, or turn the order around";
            return self.note(need.lane, need.at.clone(), &said, help);
        }
        for provider in providers.clone() {
            if !self.dependencies.waits(provider, need.lane) && self.lanes[need.lane].waits.insert(provider) {
                self.dependencies.add(need.lane, provider);
                let lane = self.at(provider, &need.at);
                self.lanes[need.lane].also_after.push((lane, EdgeOrigin::Interface(id.clone())));
            }
        }
    }

    /// Notes every open gate that lanes need and no lane provides.
    fn note_open_gates(&self) {
        let context = self.context;
        let is_open = |(gate, providers): &(&Gate, &Vec<usize>)| !gate.closed && providers.is_empty();
        let gates = context.gates.list.iter().zip(&self.providers).enumerate();
        for (number, (gate, _)) in gates.filter(|(_, gate)| is_open(gate)) {
            let lanes: BTreeSet<usize> =
                self.needs.iter().filter(|need| need.gate == number).map(|need| need.lane).collect();
            if lanes.is_empty() {
                continue;
            }
            let names: Vec<String> = lanes.iter().take(8).map(|&lane| quoted(self.id(lane))).collect();
            let more = if lanes.len() > 8 { ", …" } else { "" };
            let (id, names) = (quoted(&gate.id.value), names.join(", "));
            let message = format!("gate {id} is open and no lane provides it, but it is needed by {names}{more}");
            let help =
                format!("tick it once it holds, or name {id} under `Interfaces provided` of the lane that closes it");
            context.report(context.options.strict_gates, gate.id.span, message, help);
        }
    }

    /// Keeps lanes that are not parallel-safe apart from every lane that has no order with them.
    fn exclude(&mut self) {
        let alone: Vec<Option<Range<usize>>> = (0..self.lanes.len()).map(|lane| self.runs_alone(lane)).collect();
        for (lane, at) in alone.iter().enumerate() {
            let Some(at) = at else { continue };
            for (other, also) in alone.iter().enumerate() {
                let twice = other < lane && also.is_some();
                if other != lane && !twice && !self.dependencies.ordered(lane, other) {
                    let id = self.at(other, at);
                    self.lanes[lane].excludes.push(id);
                }
            }
        }
    }

    /// Where a lane says that it is not parallel-safe.
    fn runs_alone(&self, lane: usize) -> Option<Range<usize>> {
        let mut found = None;
        for range in self.context.lanes[lane].field(Label::ParallelSafe) {
            let value = self.context.text(range.clone());
            let word = value.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("");
            match word.to_lowercase().as_str() {
                "no" | "false" | "never" => found = Some(range),
                "yes" | "true" | "mixed" | "partial" | "partially" | "" => {}
                _ => {
                    let message =
                        format!("{} is neither yes nor no; the lane is taken as parallel-safe", quoted(value));
                    let help = "write `Parallel-safe: yes` or `Parallel-safe: no`";
                    self.context.faults.warning(range, message, help);
                }
            }
        }
        found
    }

    /// The gates with the lane whose merge closes each; of several lanes, the last.
    fn interfaces(&self) -> Vec<InterfaceDraft> {
        for id in &self.context.gates.repeated {
            let message = format!("duplicate gate {}", quoted(&id.value));
            self.context.faults.warning(id.span, message, "leave one of the two out");
        }
        let interface = |(gate, providers): (&Gate, &Vec<usize>)| {
            let behind = |lane: usize| providers.iter().filter(|&&other| self.dependencies.waits(lane, other)).count();
            let last = providers.iter().copied().max_by_key(|&lane| (behind(lane), lane));
            InterfaceDraft {
                id: gate.id.clone(),
                text: gate.text.clone(),
                closed: gate.closed,
                provider: last.map(|lane| At::new(self.id(lane).to_owned(), gate.id.span)),
            }
        };
        self.context.gates.list.iter().zip(&self.providers).map(interface).collect()
    }
}
