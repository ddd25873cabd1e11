//! The log of a lane's own run: it begins with what the run that placed it knows of the lane, and each of the two is
//! continued with what only the other one has.

use std::collections::BTreeMap;

use lanewright_model::event::{Event, Incoming, Record, RunStarted};
use lanewright_model::{JobId, LaneId, LaneIndex, MergeMode, Plan, RunId};

/// The longest id of a run.
const LONGEST: usize = 64;

/// What the own run of a lane is called: `<run>.<lane>`, with a hash in place of the end where that is too long.
pub fn lane_run(run: &RunId, lane: &LaneId) -> RunId {
    let whole = format!("{run}.{lane}");
    let hash = lanewright_model::digest::sha256(&whole);
    let short = || format!("{}.{}", &run.as_str()[..run.as_str().len().min(LONGEST - 17)], &hash[..16]);
    let id = if whole.len() > LONGEST { short() } else { whole };
    RunId::new(&id).or_else(|_| RunId::new(&format!("lane-{}", &hash[..16]))).unwrap_or_else(|_| run.clone())
}

/// How the own run of a lane begins.
fn own_start(started: &RunStarted, run: RunId, lane: LaneIndex, plan: &Plan) -> RunStarted {
    let mut own = RunStarted { run_id: run, ..started.clone() };
    own.options.lanes = vec![plan.lane(lane).id.clone()];
    own.options.done = plan.dag().dependencies(lane).iter().map(|on| plan.lane(*on).id.clone()).collect();
    own.options.merge = MergeMode::None;
    own.options.placed_by = Some(started.run_id.clone());
    own.options.fail_fast = false;
    own.options.timeout = None;
    own.options.next_phases = None;
    own.options.gsd_tracking = false;
    own.options.git_settings = None;
    own
}

/// What continues the log of the lane's own run, which has the records `known`, by those of the lane that it does not have.
/// A new log knows no more of what was rolled back than the names of its jobs.
pub fn continued(
    (started, plan): (&RunStarted, &Plan),
    (run, lane): (&RunId, LaneIndex),
    known: &[Record],
    records: &[Record],
) -> Vec<Record> {
    let id = &plan.lane(lane).id;
    let rolled_back = |record: &&Record| matches!(&record.event, Event::LaneRolledBack { lane, .. } if lane == id);
    let rolled_back = records.iter().rev().find(rolled_back).filter(|_| known.is_empty()).map(|record| record.seq);
    let copied = match rolled_back {
        Some(seq) => seq - 1,
        None => known.iter().filter_map(|record| record.origin).max().unwrap_or(0),
    };
    let mut seq = known.last().map_or(0, |record| record.seq);
    let mut at = known.last().map(|record| record.at);
    let mut added = Vec::new();
    if known.is_empty() {
        let first = records.first().map(|record| record.at).unwrap_or(lanewright_model::Timestamp::from_unix_millis(0));
        let event = Event::RunStarted(Box::new(own_start(started, run.clone(), lane, plan)));
        (seq, at) = (1, Some(first));
        added.push(Record { seq, at: first, event, origin: None });
    }
    let of_old_jobs = rolled_back.map(|seq| last_jobs(id, records, seq)).unwrap_or_default();
    let new =
        records.iter().filter(|record| record.seq > copied && record.origin.is_none() && goes_along(&record.event, id));
    for record in of_old_jobs.into_iter().chain(new) {
        seq += 1;
        let moment = at.map_or(record.at, |at| at.max(record.at));
        at = Some(moment);
        added.push(Record { seq, at: moment, event: record.event.clone(), origin: Some(record.seq) });
    }
    added
}

/// The last job of each kind that a lane had before the record `seq`. No other gets its name.
fn last_jobs<'a>(lane: &LaneId, records: &'a [Record], seq: u64) -> Vec<&'a Record> {
    let mut last = BTreeMap::new();
    for record in records.iter().take_while(|record| record.seq < seq) {
        if let Event::JobPlanned { job, .. } = &record.event
            && job.lane.as_ref() == Some(lane)
        {
            last.insert(JobId { number: 0, ..job.clone() }, record);
        }
    }
    let mut last: Vec<&Record> = last.into_values().collect();
    last.sort_by_key(|record| record.seq);
    last
}

/// Whether the lane's own run is to know it. What becomes of placements is the placing run's business.
fn goes_along(event: &Event, lane: &LaneId) -> bool {
    match event {
        Event::LanePlaced { .. } | Event::LaneClaimed { .. } | Event::PlacementEnded { .. } => false,
        Event::RunResumed { lanes, .. } => lanes.is_empty() || lanes.contains(lane),
        Event::StopRequested { .. } | Event::GitWorked { .. } => false,
        event => event.lane() == Some(lane),
    }
}

/// What the run log gets of a lane's own log after the record `seen`.
pub fn news(lane: &LaneId, records: &[Record], seen: u64) -> Vec<Incoming> {
    let new = records.iter().filter(|record| record.seq > seen && record.origin.is_none());
    new.filter_map(|record| Some(Incoming { event: copied(lane, &record.event)?, origin: Some(record.seq) })).collect()
}

fn copied(lane: &LaneId, event: &Event) -> Option<Event> {
    match event {
        Event::RunMoved(moved) => {
            Some(Event::LaneClaimed { lane: lane.clone(), host: moved.to.host.clone(), moved: true })
        }
        Event::RunResumed { owner, .. } => {
            Some(Event::LaneClaimed { lane: lane.clone(), host: owner.host.clone(), moved: false })
        }
        // It is about the machine, or about the job.
        Event::GitWorked { .. } | Event::StopRequested { .. } => None,
        event => (event.lane() == Some(lane)).then(|| event.clone()),
    }
}
