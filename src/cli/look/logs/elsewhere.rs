//! What the jobs of engines print of lanes that they have now. Only `work` knows what was not pushed yet; it prints it, and
//! the engine hands it on where it has an API for that or a file that is readable here.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lanewright_engine::placement::job_name;
use lanewright_model::cells::pad;
use lanewright_model::event::{Event, Record};
use lanewright_model::{JobId, LaneId, Plan, RunId};
use lanewright_plan::settings::Layer;
use lanewright_programs::cluster::{self, Cluster, OrderName};
use lanewright_schedule::lane_log::lane_run;

use super::lines::NAME;
use crate::cli::executors::{exchange, named};
use crate::cli::{Context, RepositoryContext};

/// Between two questions to an engine for one lane.
const PAUSE: Duration = Duration::from_secs(2);

/// The cells of the time at the beginning of a line.
const CLOCK: usize = 8;

/// The lanes that jobs of engines have, and how far what those printed was read.
pub(crate) struct Elsewhere<'a> {
    context: &'a Context,
    run: &'a RunId,
    plan: &'a Plan,
    placed: BTreeMap<LaneId, Placed>,
}

struct Placed {
    number: u32,
    engine: Option<(Box<dyn Cluster>, OrderName)>,
    due: Instant,
    text: Text,
    /// That it cannot be read was shown.
    is_silent: bool,
}

/// A line that an agent or a gate wrote.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) job: JobId,
    /// Of the job's lines, from 0.
    pub(crate) number: usize,
    pub(crate) text: String,
}

impl<'a> Elsewhere<'a> {
    pub(crate) fn new(context: &'a Context, run: &'a RunId, plan: &'a Plan) -> Self {
        Self { context, run, plan, placed: BTreeMap::new() }
    }

    pub(super) fn learn(&mut self, record: &Record) {
        match &record.event {
            Event::LanePlaced { lane, number, .. } => {
                let text = Text::of(lane.clone());
                let placed = Placed { number: *number, engine: None, due: Instant::now(), text, is_silent: false };
                self.placed.insert(lane.clone(), placed);
            }
            Event::PlacementEnded { lane, .. } => drop(self.placed.remove(lane)),
            _ => {}
        }
    }

    /// Whether a job of an engine has the lane.
    pub(super) fn has(&self, lane: Option<&LaneId>) -> bool {
        lane.is_some_and(|lane| self.placed.contains_key(lane))
    }

    /// What was printed since it was asked for last.
    pub(crate) fn news(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        for (lane, placed) in &mut self.placed {
            if placed.due > Instant::now() {
                continue;
            }
            placed.due = Instant::now() + PAUSE;
            let place = (self.run, lane, self.plan);
            match placed.output(self.context, place) {
                Ok(bytes) => lines.extend(placed.text.read(&bytes)),
                Err(error) if !std::mem::replace(&mut placed.is_silent, true) => {
                    let message = format!("what the job of {lane} prints now cannot be read: {error:#}");
                    self.context.printer.note(format!("{message}; shown is what it pushed"));
                }
                Err(_) => {}
            }
        }
        lines
    }
}

impl Placed {
    fn output(&mut self, context: &Context, (run, lane, plan): (&RunId, &LaneId, &Plan)) -> Result<Vec<u8>> {
        if self.engine.is_none() {
            let executor = plan.find(lane).and_then(|lane| plan.lane(lane).executor.as_deref());
            let within = RepositoryContext::open(context, Layer::default())?;
            let engine = cluster::open(named(&within, executor.unwrap_or_default())?, Vec::new())?;
            let name = job_name(&exchange(&within)?.1, &lane_run(run, lane), self.number);
            self.engine = Some((engine, name));
        }
        let (engine, name) = self.engine.as_ref().context("it has no engine")?;
        match engine.output(name, self.text.next)? {
            Some(bytes) => Ok(bytes),
            None => bail!("it has not begun, or its output is elsewhere: {}", engine.by_hand(name).output),
        }
    }
}

/// What a job printed, as far as it was read.
struct Text {
    lane: LaneId,
    /// How its lane is called there.
    name: String,
    /// Where to read on, in bytes from the start.
    next: u64,
    /// The agent's attempt or the gate that the next line is of.
    current: Option<JobId>,
    lines: HashMap<JobId, usize>,
}

impl Text {
    fn of(lane: LaneId) -> Self {
        let name = pad(lane.as_str(), NAME).trim_end().to_owned();
        Self { lane, name, next: 0, current: None, lines: HashMap::new() }
    }

    /// The lines of agents and gates in what was printed since; other lines are of `work` itself.
    fn read(&mut self, bytes: &[u8]) -> Vec<Line> {
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        self.next += whole as u64;
        let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
        text.lines().filter_map(|line| self.line(line)).collect()
    }

    fn line(&mut self, line: &str) -> Option<Line> {
        let (_, named) = line.split_at_checked(CLOCK)?;
        let (name, text) = named.split_once(" |")?;
        if name.trim() != self.name {
            return None;
        }
        let text = text.strip_prefix(' ').unwrap_or(text);
        if let Some(job) = text.strip_prefix("==> ").and_then(|it| JobId::displayed_within(&self.lane, it)) {
            self.current = Some(job);
            return None;
        }
        let job = self.current.clone().filter(|job| !text.starts_with(&format!("<== {}", job.within_lane())))?;
        let count = self.lines.entry(job.clone()).or_default();
        let number = *count;
        *count += 1;
        Some(Line { job, number, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &mut Text, printed: &str) -> Vec<(String, usize, String)> {
        let lines = text.read(printed.as_bytes());
        lines.into_iter().map(|line| (line.job.to_string(), line.number, line.text)).collect()
    }

    fn line(job: &str, number: usize, text: &str) -> (String, usize, String) {
        (job.to_owned(), number, text.to_owned())
    }

    #[test]
    fn lines_belong_to_the_last_named_job() {
        let mut text = Text::of(LaneId::new("A").unwrap());
        let printed = "Run r1.A: 1 lane left\n12:00:01 A   works\n12:00:01 A | ==> agent/1 attempt 1\n\
                       12:00:01 A | one\n         A |\n12:00:02 B | other\n12:00:02 A |  in\n12:00:02 A | ha";
        let attempt = "A/agent/1 attempt 1";
        assert_eq!(read(&mut text, printed), [line(attempt, 0, "one"), line(attempt, 1, ""), line(attempt, 2, " in")]);
        let rest = &printed[usize::try_from(text.next).unwrap()..];
        let printed = format!(
            "{rest}lf\n12:00:03 A | <== agent/1 attempt 1 · exit 0 after 2s\n\
             12:00:03 A | ==> tests 1\n12:00:03 A | x | y\n"
        );
        assert_eq!(read(&mut text, &printed), [line(attempt, 3, "half"), line("A tests 1", 0, "x | y")]);
    }
}
