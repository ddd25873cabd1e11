//! What a plan says of a lane: the labelled fields of its entry in the index and of its own section.

use std::ops::Range;

use super::names::{Names, lane_mentions};
use super::tasks::Tasks;
use crate::markdown::inline::bare;
use crate::markdown::trim;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Scope,
    Owned,
    Provided,
    Consumed,
    Tasks,
    Acceptance,
    DependsOn,
    Blocks,
    ParallelSafe,
    Hint,
}

impl Label {
    pub(super) fn is_of_index(self) -> bool {
        matches!(self, Self::DependsOn | Self::Blocks | Self::ParallelSafe | Self::Hint)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) label: Label,
    /// The bytes of its value, which may begin on the label's line.
    pub(super) value: Range<usize>,
}

/// The field that a paragraph begins: `**Scope**: x`, `**Scope:** x`, `Scope: x`, `**Scope**`.
pub(super) fn labelled(text: &str, range: Range<usize>) -> Option<Field> {
    let line = &text[range.clone()];
    let bold = || {
        let (word, rest) = line.strip_prefix("**")?.split_once("**")?;
        let begun = rest.trim_start();
        let ends = begun.is_empty() || begun.starts_with([':', '-', '—', '–', '(']) || word.trim().ends_with(':');
        Some((label(word).filter(|_| ends)?, begun.trim_start_matches([':', '—', '–'])))
    };
    let plain = || {
        let (word, rest) = line.split_once(':').filter(|(word, _)| word.len() < 40)?;
        Some((label(word)?, rest.trim_start_matches('*')))
    };
    let (label, rest) = bold().or_else(plain)?;
    Some(Field { label, value: trim(text, range.end - rest.len()..range.end) })
}

pub(super) fn label(word: &str) -> Option<Label> {
    let word = bare(word).trim_end_matches(':').replace(['-', '_'], " ").to_lowercase();
    let word = word.split(" (").next().unwrap_or(&word);
    Some(match word.trim() {
        "scope" | "goal" | "objective" => Label::Scope,
        "owned files" | "files owned" | "files" | "owns" | "owned paths" | "file ownership" => Label::Owned,
        "interfaces provided" | "interface provided" | "provides" | "provided interfaces" => Label::Provided,
        "interfaces consumed" | "interface consumed" | "consumes" | "consumed interfaces" => Label::Consumed,
        "tasks" | "task list" | "task table" | "atomic tasks" => Label::Tasks,
        "acceptance criteria" | "acceptance" => Label::Acceptance,
        "depends on" | "depends" | "dependencies" | "dependency" | "blocked by" => Label::DependsOn,
        "blocks" | "unblocks" => Label::Blocks,
        "parallel safe" | "parallel safety" | "parallel" => Label::ParallelSafe,
        "execution hint" | "execution hints" => Label::Hint,
        _ => return None,
    })
}

/// What the index, a section, or both say of a lane.
#[derive(Debug, Default)]
pub(super) struct LaneText {
    pub(super) id: String,
    pub(super) at: Range<usize>,
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// The rest of its section.
    pub(super) notes: Vec<Range<usize>>,
    pub(super) has_section: bool,
    pub(super) tasks: Tasks,
}

impl LaneText {
    /// The values of a field, in the index and in the lane's own section.
    pub(super) fn field(&self, label: Label) -> impl Iterator<Item = Range<usize>> {
        self.fields.iter().filter(move |field| field.label == label).map(|field| field.value.clone())
    }

    fn add_section(&mut self, section: Self) {
        self.fields.extend(section.fields);
        self.notes.extend(section.notes);
        self.has_section = true;
        if self.name.is_empty() {
            self.name = section.name;
        }
    }
}

/// Joins the index and the sections: the lanes in the order of the index, then those that it leaves out.
pub(super) fn join(mut lanes: Vec<LaneText>, sections: Vec<LaneText>, phase: &str) -> (Vec<LaneText>, Names) {
    let mut names = Names::of_phase(phase);
    lanes.iter().for_each(|lane| names.add(&lane.id));
    let mut others = Vec::new();
    for section in sections {
        match names.find(&section.id) {
            Some(lane) => lanes[lane].add_section(section),
            None => others.push(section),
        }
    }
    let mut without_section: Vec<usize> = (0..lanes.len()).filter(|&lane| !lanes[lane].has_section).collect();
    for section in others {
        let alias = without_section.iter().position(|&lane| is_alias(&lanes[lane], &section));
        match names.find(&section.id).or_else(|| alias.map(|at| without_section.swap_remove(at))) {
            Some(lane) => {
                names.alias(&section.id, lane);
                lanes[lane].add_section(section);
            }
            None => {
                names.add(&section.id);
                lanes.push(section);
            }
        }
    }
    (lanes, names)
}

/// Whether a section that the index does not list describes a lane of it without a section: the index names its id in
/// the lane's title, or both have the same title.
fn is_alias(lane: &LaneText, section: &LaneText) -> bool {
    let is_id = |range: Range<usize>| lane.name[range].eq_ignore_ascii_case(&section.id);
    let same_name = !section.name.is_empty() && lane.name.eq_ignore_ascii_case(&section.name);
    same_name || lane_mentions(&lane.name).into_iter().any(|mention| is_id(mention.range))
}
