//! What becomes of two lanes that share files: whether they run side by side and are merged, or one after the other.

use std::collections::{HashMap, HashSet};

use lanewright_agents::shell::cannot_fail;
use lanewright_model::CommandLine;
use lanewright_model::plan::SharedFiles;

use super::lane::tests;
use crate::Fallbacks;
use crate::dependencies::Dependencies;
use crate::draft::{LaneDraft, Overlaps, PlanDraft};
use crate::sharing::Treatment;

/// How many lanes that name a file are asked whether they make it before others.
const MAX_ASKED: usize = 64;

/// The rule that holds: that of the call, of the plan, of the settings, of the plan's format. `None`: no lanes may share.
pub(super) fn rule(draft: &PlanDraft, fallbacks: &Fallbacks<'_>) -> Option<SharedFiles> {
    let of_plan = draft.shared_files.as_ref().map(|rule| rule.value);
    let of_format = match draft.overlaps {
        Overlaps::Refused => None,
        Overlaps::Shared(rule) => Some(rule),
    };
    fallbacks.lists.shared_files.or(of_plan).or(fallbacks.shared_files).or(of_format)
}

pub(super) struct Decision<'a> {
    rule: SharedFiles,
    draft: &'a PlanDraft,
    order: &'a Dependencies,
    /// Whether the tests of each lane can fail: they run again on what is merged.
    is_judged: Vec<bool>,
    owned: Vec<HashSet<&'a str>>,
    /// The lanes that own each glob that any lane creates.
    owners: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Decision<'a> {
    pub(super) fn new(
        draft: &'a PlanDraft,
        order: &'a Dependencies,
        rule: SharedFiles,
        fallbacks: &Fallbacks<'_>,
    ) -> Self {
        let created: HashSet<&str> = draft.lanes.iter().flat_map(|lane| &lane.creates).map(String::as_str).collect();
        let globs = |lane: &'a LaneDraft| lane.owns.iter().flatten().map(|glob| glob.value.as_str());
        let mut owners: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, lane) in draft.lanes.iter().enumerate() {
            for glob in globs(lane).filter(|glob| created.contains(glob)) {
                owners.entry(glob).or_default().push(at);
            }
        }
        let owned =
            draft.lanes.iter().map(|lane| globs(lane).filter(|glob| created.contains(glob)).collect()).collect();
        let is_judged = draft.lanes.iter().map(|lane| is_judged(lane, fallbacks)).collect();
        Self { rule, draft, order, is_judged, owned, owners }
    }

    pub(super) fn treatment(&self, one: usize, other: usize) -> Treatment {
        match (self.rule, self.created(one, other).or_else(|| self.created(other, one))) {
            (SharedFiles::Exclude, _) => Treatment::Excluded,
            (_, Some(file)) => Treatment::Created(file.to_owned()),
            (SharedFiles::Auto, None) if !(self.is_judged[one] && self.is_judged[other]) => Treatment::Untested,
            _ => Treatment::Merged,
        }
    }

    /// A file of both lanes that `creator` makes and that is not there before.
    fn created(&self, creator: usize, other: usize) -> Option<&'a str> {
        let both = self.draft.lanes[creator].creates.iter().map(String::as_str);
        let is_new = |file: &&str| !self.draft.existing.contains(*file) && !self.is_made_before(file, creator, other);
        both.filter(|file| self.owned[other].contains(file)).find(is_new)
    }

    /// Whether a lane that both wait for names the file.
    fn is_made_before(&self, file: &str, one: usize, other: usize) -> bool {
        let mut owners = self.owners.get(file).into_iter().flatten().take(MAX_ASKED);
        owners.any(|&before| self.order.waits(one, before) && self.order.waits(other, before))
    }
}

fn is_judged(lane: &LaneDraft, fallbacks: &Fallbacks<'_>) -> bool {
    tests(lane, fallbacks).iter().any(|command| match command {
        CommandLine::Shell(line) => cannot_fail(line).is_none(),
        CommandLine::Arguments(_) => true,
    })
}
