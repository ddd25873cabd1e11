//! Lanes that may not meet: exclusions, pools of one, and ownership of the same files.

use std::collections::{BTreeMap, BTreeSet};

use lanewright_model::ownership::glob;
use lanewright_model::plan::SharedFiles;
use lanewright_model::{Dag, LaneIndex};

use super::names::LaneIds;
use super::order::{called, references};
use super::shared_files;
use crate::Fallbacks;
use crate::dependencies::{Dependencies, topological_order};
use crate::draft::{LaneDraft, PlanDraft};
use crate::faults::{Faults, quoted};
use crate::overlap::{Overlap, Owned, overlaps};
use crate::sharing::{Pair, Treatment};
use crate::source_text::{At, Span};

/// How many pairs of lanes with overlapping globs are reported.
const MAX_OVERLAPS: usize = 50;

/// How many globs all lanes of a plan may own together.
const MAX_GLOBS: usize = 20_000;

const MAX_GROUPS: usize = 20;

const MAX_GLOB: usize = 1024;

/// Pairs of lanes that the plan keeps apart, each in plan order.
pub(super) fn declared(
    lanes: &[LaneDraft],
    ids: &LaneIds<'_>,
    faults: &Faults<'_>,
) -> BTreeSet<(LaneIndex, LaneIndex)> {
    let mut pairs = BTreeSet::new();
    for (index, lane) in LaneIndex::first(lanes.len()).zip(lanes) {
        for other in references(lane, index, &lane.excludes, "excludes", ids, faults) {
            pairs.insert((index.min(other), index.max(other)));
        }
    }
    pairs
}

/// Checks every glob, and that lanes which may run at the same time own nothing in common. Gives the pairs that are
/// kept apart for it where the plan's format or a setting allows that, the lane that comes first first; and what becomes
/// of each pair of lanes that share files.
pub(super) fn check_ownership(
    draft: &PlanDraft,
    dag: &Dag,
    exclusions: &BTreeSet<(LaneIndex, LaneIndex)>,
    (faults, fallbacks): (&Faults<'_>, &Fallbacks<'_>),
) -> (Vec<(LaneIndex, LaneIndex)>, Vec<Pair>) {
    let owned = owned(draft);
    if let Some((_, glob)) = owned.get(MAX_GLOBS) {
        faults.error(glob.span, format!("the lanes of a plan own at most {MAX_GLOBS} globs together"));
        return (Vec::new(), Vec::new());
    }
    let rule = shared_files::rule(draft, fallbacks);
    report_letter_case(draft, &owned, rule.is_some(), faults);
    let asked: Vec<Owned<'_>> = owned.iter().map(|(lane, glob)| Owned { lane: lane.at(), glob: &glob.value }).collect();
    let waits: Vec<Vec<usize>> =
        LaneIndex::first(dag.len()).map(|lane| dag.dependencies(lane).iter().map(|on| on.at()).collect()).collect();
    let order = Dependencies::new(&waits);
    let singles = single_pools(draft);
    let lanes: Vec<LaneIndex> = LaneIndex::first(draft.lanes.len()).collect();
    let together = |one: usize, other: usize| {
        !exclusions.contains(&(lanes[one.min(other)], lanes[one.max(other)]))
            && singles[one].is_disjoint(&singles[other])
    };
    // Those that something else keeps apart get their order, too.
    let matters = |one: usize, other: usize| !order.ordered(one, other) && (rule.is_some() || together(one, other));
    let found = overlaps(&asked, if rule.is_some() { usize::MAX } else { MAX_OVERLAPS }, matters);
    let lane = |at: usize| owned[at].0.at();
    let meet = |overlap: &Overlap| together(lane(overlap.one), lane(overlap.other));
    let Some(rule) = rule else {
        found.iter().filter(|overlap| meet(overlap)).for_each(|overlap| refuse(draft, &owned, overlap, faults));
        return (Vec::new(), Vec::new());
    };
    let rank = declared_order(draft, &waits);
    let decision = shared_files::Decision::new(draft, &order, rule, fallbacks);
    let pairs = found.iter().map(|overlap| {
        let (one, other) = (owned[overlap.one].0, owned[overlap.other].0);
        let lanes = if rank[one.at()] < rank[other.at()] { (one, other) } else { (other, one) };
        let (left, right) = (owned[overlap.one].1, owned[overlap.other].1);
        Pair {
            lanes,
            files: shared(&left.value, &right.value, overlap),
            place: right.span,
            treatment: decision.treatment(one.at(), other.at()),
            meets: meet(overlap),
        }
    });
    let pairs: Vec<Pair> = pairs.collect();
    report_sequences(draft, &pairs, rule, faults);
    let apart = pairs.iter().filter(|pair| pair.treatment.is_apart()).map(|pair| pair.lanes).collect();
    (apart, pairs)
}

/// The place of each lane when all run one after the other as the plan declares: of those that may come next by the
/// edges always the one of the lowest wave, then the first of the text.
fn declared_order(draft: &PlanDraft, waits: &[Vec<usize>]) -> Vec<usize> {
    let wave = |lane: usize| draft.lanes[lane].wave.as_ref().map_or(u32::MAX, |wave| wave.value);
    let mut rank = vec![0; waits.len()];
    let (order, _) = topological_order(waits, wave);
    order.into_iter().enumerate().for_each(|(place, lane)| rank[lane] = place);
    rank
}

/// Every glob that can be read, with its lane.
fn owned(draft: &PlanDraft) -> Vec<(LaneIndex, &At<String>)> {
    let lanes = LaneIndex::first(draft.lanes.len()).zip(&draft.lanes);
    let globs = lanes.flat_map(|(index, lane)| lane.owns.iter().flatten().map(move |glob| (index, glob)));
    globs.filter(|(_, glob)| glob_fault(&glob.value).is_none()).collect()
}

fn refuse(draft: &PlanDraft, owned: &[(LaneIndex, &At<String>)], overlap: &Overlap, faults: &Faults<'_>) {
    let ((one, left), (other, right)) = (owned[overlap.one], owned[overlap.other]);
    let names = (called(&draft.lanes[one.at()]), called(&draft.lanes[other.at()]));
    let share = shared(&left.value, &right.value, overlap);
    let message = format!("lanes {} and {} can run at the same time and both {share}", names.0, names.1);
    let help = "narrow one of the globs, or order the lanes with `depends_on` or `excludes`";
    faults.error_with(right.span, message, help);
}

/// Files of two lanes whose names differ only by letter case: the file systems of macOS and Windows have one of them.
fn report_letter_case(draft: &PlanDraft, owned: &[(LaneIndex, &At<String>)], may_share: bool, faults: &Faults<'_>) {
    let mut known: BTreeMap<String, (LaneIndex, &str)> = BTreeMap::new();
    for (lane, file) in owned.iter().filter(|(_, glob)| !glob.value.contains(['*', '?', '[', '{'])) {
        let (first, name) = *known.entry(file.value.to_lowercase()).or_insert((*lane, &file.value));
        if first == *lane || name == file.value {
            continue;
        }
        let (one, other) = (called(&draft.lanes[first.at()]), called(&draft.lanes[lane.at()]));
        let names = (quoted(name), quoted(&file.value));
        let message = format!("{} of lane {one} and {} of lane {other} differ only by letter case", names.0, names.1);
        let help = "macOS and Windows can check out only one of them: give them one name";
        match may_share {
            true => faults.warning(file.span, message, help),
            false => faults.error_with(file.span, message, help),
        }
    }
}

/// Reports which lanes run one after the other for the files that they share: once for all that own the same glob.
fn report_sequences(draft: &PlanDraft, pairs: &[Pair], rule: SharedFiles, faults: &Faults<'_>) {
    let mut groups: BTreeMap<(&str, &Treatment), (Span, BTreeSet<LaneIndex>)> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| pair.meets && pair.treatment.is_apart()) {
        let group = groups.entry((&pair.files, &pair.treatment)).or_insert((pair.place, BTreeSet::new()));
        group.1.extend([pair.lanes.0, pair.lanes.1]);
    }
    for ((share, treatment), (place, lanes)) in groups {
        let names: Vec<String> = lanes.into_iter().map(|lane| called(&draft.lanes[lane.at()])).collect();
        let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
        let all = if others.len() > 1 { "all" } else { "both" };
        let why = treatment.reason().map(|why| format!(" ({why})")).unwrap_or_default();
        let message =
            format!("lanes {} and {last} {all} {share}, so they run one after the other{why}", others.join(", "));
        let help = match (treatment, rule) {
            (Treatment::Created(_), _) => "let one of them wait for the other, or name a file of its own",
            (_, SharedFiles::Auto) => {
                "set `tests` for them in the plan or in lanewright.toml, or merge what they change with `--shared-files merge`"
            }
            _ => "give them different files, or an order, if that is not meant",
        };
        faults.warning(place, message, help);
    }
}

/// What two lanes share: `own …`.
fn shared(left: &str, right: &str, overlap: &Overlap) -> String {
    let globs = (quoted(left), quoted(right));
    match &overlap.example {
        Some(path) if left == right && path == left => format!("own {}", globs.0),
        Some(path) if left == right => format!("own {}, for example {}", globs.0, quoted(path)),
        Some(path) => format!("own {} by {} and {}", quoted(path), globs.0, globs.1),
        None => format!("may own the same files by {} and {}", globs.0, globs.1),
    }
}

/// Why `pattern` cannot be used as a glob of paths below the repository's root.
pub(crate) fn glob_fault(pattern: &str) -> Option<String> {
    let text = pattern.trim_start_matches("./");
    if text.trim().is_empty() {
        return Some("it is empty".to_owned());
    }
    if pattern.len() > MAX_GLOB {
        return Some(format!("it is longer than {MAX_GLOB} bytes"));
    }
    if text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..") {
        return Some("globs are relative to the repository's root and stay below it".to_owned());
    }
    if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
        return None;
    }
    if text.matches('{').count() > MAX_GROUPS {
        return Some(format!("it has more than {MAX_GROUPS} groups"));
    }
    glob(text).err().map(|error| error.kind().to_string())
}

/// The pools of size 1 that each lane uses: two lanes in one of them never run at the same time.
fn single_pools(draft: &PlanDraft) -> Vec<BTreeSet<&str>> {
    let is_single = |name: &str| draft.pools.iter().any(|(pool, size)| *size == 1 && pool.value == name);
    let singles = draft.lanes.iter().map(|lane| {
        lane.uses.iter().flatten().map(|name| name.value.as_str()).filter(|name| is_single(name)).collect()
    });
    singles.collect()
}
