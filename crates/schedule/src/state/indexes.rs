//! Which lanes stand how: what [`crate::decide`] looks at instead of going over all lanes.
//!
//! A fold like the rest of the state: after each event the lane it touched is indexed again, and those that it kept from
//! beginning. So an event costs the logarithm of the number of lanes, whatever the plan; in debug builds `recount.rs`
//! works the same out by going over all lanes, and both must agree.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;

use lanewright_model::event::LaneStage;
use lanewright_model::{ExecutorSettings, Lane, LaneIndex, Plan};

use crate::state::lane::{LaneEnd, LaneState};

/// What the indexes know of one lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    waits: bool,
    active: bool,
    holds: bool,
    over: bool,
    failed: bool,
    complete: bool,
    moved: bool,
    followed: bool,
}

/// Lanes by how they stand.
#[derive(Debug, Clone)]
pub(crate) struct LaneIndexes {
    rules: Arc<Rules>,
    marks: Vec<Marks>,
    /// How many lanes that exclude it hold what it needs, for each lane.
    excluded: Vec<u32>,
    /// How many lanes come before it in turn and are not over, for each lane.
    preceded: Vec<u32>,
    /// For each kind of lane those that nothing but places and pools keeps from beginning, the longest remaining path
    /// first.
    ready: Vec<BTreeSet<(Reverse<u64>, LaneIndex)>>,
    active: BTreeSet<LaneIndex>,
    /// Lanes that have begun and are not over, those that wait for a person or are held back included.
    holding: BTreeSet<LaneIndex>,
    /// How many lanes claim each pool, those that are held back included.
    pools: BTreeMap<String, u32>,
    /// Those of `holding` that wait until others are over, in the order in which they came: only after a resume.
    held_back: Vec<LaneIndex>,
    failed: usize,
    complete: usize,
    /// Lanes with agents whose phases are not all on record.
    moved: BTreeSet<LaneIndex>,
    /// Lanes whose pull requests are open.
    followed: BTreeSet<LaneIndex>,
}

/// What the plan says of which lanes may not run side by side.
#[derive(Debug, Default)]
struct Rules {
    priority: Vec<u64>,
    /// The kind of each lane: those of one kind use the same pools.
    kind: Vec<usize>,
    uses: Vec<Vec<String>>,
    sizes: BTreeMap<String, u32>,
    excludes: Vec<Vec<LaneIndex>>,
    then: Vec<Vec<LaneIndex>>,
}

impl Rules {
    fn of(plan: &Plan, priority: Vec<u64>) -> Self {
        let nothing = || vec![Vec::new(); plan.lanes.len()];
        let mut rules = Self { priority, excludes: nothing(), then: nothing(), ..Self::default() };
        let mut kinds: HashMap<(&[String], &Option<String>), usize> = HashMap::new();
        for lane in &plan.lanes {
            let kind = *kinds.entry((&lane.uses, &lane.executor)).or_insert(rules.uses.len());
            if kind == rules.uses.len() {
                let executor = lane.executor.as_ref().map(|executor| places_of(executor));
                rules.uses.push(lane.uses.iter().cloned().chain(executor).collect());
            }
            rules.kind.push(kind);
        }
        rules.sizes.clone_from(&plan.pools);
        let most = |settings: &ExecutorSettings| settings.max_lanes.map_or(u32::MAX, NonZeroU32::get);
        rules.sizes.extend(plan.executors.iter().map(|(name, settings)| (places_of(name), most(settings))));
        for &(one, other) in &plan.exclusions {
            rules.excludes[one.at()].push(other);
            rules.excludes[other.at()].push(one);
        }
        for &(first, then) in &plan.sequences {
            rules.then[first.at()].push(then);
        }
        rules
    }

    /// How many lanes may hold `pool` at once.
    fn size(&self, pool: &str) -> u32 {
        self.sizes.get(pool).copied().unwrap_or(1)
    }
}

/// The pool of an executor's places; no plan can name one so.
fn places_of(executor: &str) -> String {
    format!("executor {executor}")
}

impl LaneIndexes {
    /// Before the first event; `priority` is the length of each lane's remaining path.
    pub(crate) fn new(plan: &Plan, priority: Vec<u64>) -> Self {
        let (rules, count) = (Rules::of(plan, priority), plan.lanes.len());
        let mut preceded = vec![0; count];
        for &(_, then) in &plan.sequences {
            preceded[then.at()] += 1;
        }
        Self {
            marks: vec![Marks::default(); count],
            excluded: vec![0; count],
            preceded,
            ready: vec![BTreeSet::new(); rules.uses.len()],
            active: BTreeSet::new(),
            holding: BTreeSet::new(),
            pools: BTreeMap::new(),
            held_back: Vec::new(),
            failed: 0,
            complete: 0,
            moved: BTreeSet::new(),
            followed: BTreeSet::new(),
            rules: Arc::new(rules),
        }
    }

    /// Lanes that have begun and are neither over nor waiting for a person.
    pub(crate) fn active(&self) -> &BTreeSet<LaneIndex> {
        &self.active
    }

    /// Lanes with agents whose phases are not all on record here.
    pub(crate) fn moved(&self) -> &BTreeSet<LaneIndex> {
        &self.moved
    }

    /// Lanes whose pull requests may still be sent back.
    pub(crate) fn followed(&self) -> &BTreeSet<LaneIndex> {
        &self.followed
    }

    /// The length of the longest path from the beginning of the lane to the end.
    pub(crate) fn path(&self, lane: LaneIndex) -> u64 {
        self.rules.priority[lane.at()]
    }

    /// Whether the lane has begun and waits for what another one holds. Only a resume makes such lanes: it retries a lane
    /// that had ended, and another one has begun since.
    ///
    /// A lane keeps what it holds until it is over: also while none of its jobs runs, and also if a lane that has waited
    /// for longer needs the same.
    pub(crate) fn is_held_back(&self, lane: LaneIndex) -> bool {
        self.held_back.contains(&lane)
    }

    /// How many lanes failed.
    pub(crate) fn failed(&self) -> usize {
        self.failed
    }

    /// Whether there is nothing left to do in any lane.
    pub(crate) fn all_complete(&self) -> bool {
        self.complete == self.marks.len()
    }

    /// The lane to begin after those in `begun`, which are about to: of all that may and are `wanted` the one with the longest
    /// remaining path.
    pub(crate) fn next(&self, begun: &[LaneIndex], wanted: impl Fn(LaneIndex) -> bool) -> Option<LaneIndex> {
        let is_excluded = |lane: LaneIndex| begun.iter().any(|other| self.rules.excludes[lane.at()].contains(other));
        let first = |kind: usize| {
            let mut lanes = self.ready[kind].iter();
            lanes.find(|(_, lane)| !begun.contains(lane) && !is_excluded(*lane) && wanted(*lane)).copied()
        };
        let open = (0..self.ready.len()).filter(|&kind| !self.ready[kind].is_empty() && self.has_room(kind, begun));
        open.filter_map(first).min().map(|(_, lane)| lane)
    }

    fn has_room(&self, kind: usize, begun: &[LaneIndex]) -> bool {
        let held = |pool: &String| self.pools.get(pool).map_or(0, |&used| used as usize);
        self.rules.uses[kind].iter().all(|pool| held(pool) + self.users(pool, begun) < self.rules.size(pool) as usize)
    }

    /// How many places of the pool `lanes` use.
    fn users(&self, pool: &String, lanes: &[LaneIndex]) -> usize {
        lanes.iter().flat_map(|&lane| self.uses(lane)).filter(|used| *used == pool).count()
    }

    /// Whether nothing but places keeps `lane` from running beside `others`.
    pub(crate) fn fits_beside(&self, lane: LaneIndex, others: &[LaneIndex]) -> bool {
        let rules = &self.rules;
        let is_excluded = |other: &LaneIndex| {
            let turns = rules.then[lane.at()].contains(other) || rules.then[other.at()].contains(&lane);
            turns || rules.excludes[lane.at()].contains(other)
        };
        let has_room = |pool: &String| self.users(pool, others) < rules.size(pool) as usize;
        !others.iter().any(is_excluded) && self.uses(lane).iter().all(has_room)
    }

    fn uses(&self, lane: LaneIndex) -> &[String] {
        &self.rules.uses[self.rules.kind[lane.at()]]
    }

    /// Puts a lane where it belongs now that it stands like this.
    pub(crate) fn place(&mut self, index: LaneIndex, lane: &LaneState, plan: &Lane) {
        let (marks, before) = (Marks::of(lane, plan), self.marks[index.at()]);
        if marks == before {
            return;
        }
        self.marks[index.at()] = marks;
        self.failed = self.failed + usize::from(marks.failed) - usize::from(before.failed);
        self.complete = self.complete + usize::from(marks.complete) - usize::from(before.complete);
        let sets =
            [(marks.active, &mut self.active), (marks.moved, &mut self.moved), (marks.followed, &mut self.followed)];
        for (belongs, set) in sets {
            match belongs {
                true => set.insert(index),
                false => set.remove(&index),
            };
        }
        if marks.holds != before.holds {
            self.hold(index, marks.holds);
        }
        if marks.over != before.over {
            self.turn(index, marks.over);
        }
        self.queue(index);
    }

    /// Has the lane claim its pools and what other lanes must not touch meanwhile, or releases them.
    fn hold(&mut self, index: LaneIndex, holds: bool) {
        let rules = self.rules.clone();
        for pool in &rules.uses[rules.kind[index.at()]] {
            let claims = self.pools.entry(pool.clone()).or_default();
            *claims = if holds { *claims + 1 } else { *claims - 1 };
        }
        for &other in &rules.excludes[index.at()] {
            let count = &mut self.excluded[other.at()];
            *count = if holds { *count + 1 } else { *count - 1 };
            self.queue(other);
        }
        match holds {
            true => {
                self.held_back.push(index);
                self.holding.insert(index)
            }
            false => {
                self.held_back.retain(|&other| other != index);
                self.holding.remove(&index)
            }
        };
        self.grant();
    }

    /// Gives what was released to lanes that are held back, the first one first.
    fn grant(&mut self) {
        if self.held_back.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.held_back);
        let mut granted: Vec<LaneIndex> = self.holding.iter().filter(|lane| !waiting.contains(lane)).copied().collect();
        for lane in waiting {
            let room = self.fits_beside(lane, &granted);
            if room { granted.push(lane) } else { self.held_back.push(lane) }
        }
    }

    /// Lets those begin that keep a turn with the lane, or has them wait for it again.
    fn turn(&mut self, index: LaneIndex, over: bool) {
        let rules = self.rules.clone();
        for &then in &rules.then[index.at()] {
            let count = &mut self.preceded[then.at()];
            *count = if over { *count - 1 } else { *count + 1 };
            self.queue(then);
        }
    }

    /// Keeps the lane among the ready ones as long as it is one.
    fn queue(&mut self, index: LaneIndex) {
        let at = index.at();
        let entry = (Reverse(self.rules.priority[at]), index);
        let ready = &mut self.ready[self.rules.kind[at]];
        match self.marks[at].waits && self.excluded[at] == 0 && self.preceded[at] == 0 {
            true => ready.insert(entry),
            false => ready.remove(&entry),
        };
    }
}

impl Marks {
    fn of(lane: &LaneState, plan: &Lane) -> Self {
        let begun = lane.stage != LaneStage::Waiting;
        let (complete, over) = (lane.is_complete(), lane.is_over());
        let busy = begun && !complete && (lane.end.is_none() || !lane.is_quiet());
        Self {
            waits: lane.is_waiting() && lane.missing == 0,
            active: busy && !lane.is_parked(plan),
            // The jobs of a lane that ended may still run.
            holds: begun && !(over && lane.is_quiet()),
            over,
            failed: matches!(lane.end, Some(LaneEnd::Failed(_))),
            complete,
            moved: lane.has_moves_to_record(),
            followed: lane.is_followed(),
        }
    }
}

mod recount;
