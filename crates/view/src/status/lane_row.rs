//! A lane as a row: the one place that decides its columns and words, for `status` and while a run works.

use std::time::Duration;

use lanewright_model::cells::clean;
use lanewright_model::event::stage_in_words;
use lanewright_model::must_haves::{any_broken, tally};
use lanewright_model::text::headline;
use lanewright_model::time::{LocalTime, short};
use lanewright_model::{AgentName, JobId, LaneId, TaskId, Timestamp};

use crate::answers::approvals::{effect_of_resume, subject_of, word};
use crate::answers::next_steps::with_ends;
use crate::history::{Ending, JobHistory, LaneHistory, LaneState, Retry, RunHistory, StateGroup, WaitingFor};
use crate::status::context::SummaryContext;
use crate::status::findings::in_short;
use crate::status::styles::Tone;
use crate::status::table::{Cell, Column, Holds};

pub const COLUMNS: &[Column] = &[
    Column { heading: "lane", least: 8, usual: 0, dispensable: None, holds: Holds::Id },
    Column { heading: "state", least: 14, usual: 9, dispensable: None, holds: Holds::Words },
    Column { heading: "agent", least: 8, usual: 0, dispensable: Some(2), holds: Holds::Words },
    Column { heading: "task", least: 4, usual: 0, dispensable: Some(1), holds: Holds::Words },
    Column { heading: "elapsed", least: 7, usual: 7, dispensable: Some(3), holds: Holds::Words },
    Column { heading: "note", least: 12, usual: 0, dispensable: None, holds: Holds::Note },
];

pub type LastSaid<'a> = dyn Fn(&JobId) -> Option<String> + 'a;

#[derive(Debug, Clone)]
pub struct LaneSummary<'h> {
    pub lane: &'h LaneHistory,
    /// The word for its state.
    pub(crate) word: &'static str,
    pub(crate) tone: Tone,
    pub elapsed: Option<Duration>,
    pub waiting_for: Option<WaitingFor>,
    /// Why it is in this state, or what runs.
    pub note: String,
    /// The link to its worktree, while it has one.
    pub worktree: Option<String>,
    /// What its agent or gate said last, where that is known.
    pub said: String,
}

impl<'h> LaneSummary<'h> {
    pub fn of(history: &'h RunHistory, lane: &'h LaneHistory, context: SummaryContext<'_>) -> Self {
        let (until, held) = (context.until(history), context.held);
        let waiting_for = history.waiting_for(lane);
        let note = note(history, lane, waiting_for.as_ref(), until, context.now);
        let place = lane.workplace.worktree.as_ref().filter(|_| !lane.is_cleaned && !lane.is_open_elsewhere);
        let link = place.and_then(|_| history.run.link(&lane.id, None));
        let worktree = link.map(|link| link.to_string_lossy().into_owned());
        let (word, tone) = shown(history, lane, held);
        let elapsed = history.lane_elapsed(lane, until);
        Self { lane, word, tone, elapsed, waiting_for, note, worktree, said: String::new() }
    }

    /// With the last words of what runs.
    #[must_use]
    pub fn with_said(mut self, last_said: &LastSaid<'_>) -> Self {
        let said = self.lane.jobs.running.last().and_then(|job| last_said(&job.job));
        self.said = said.map(|said| clean(&said)).unwrap_or_default();
        self
    }

    pub fn row(&self) -> Vec<Cell> {
        let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        let agents = agents(self.lane).into_iter().map(AgentName::as_str).collect::<Vec<_>>().join(", ");
        vec![
            (self.lane.id.to_string(), Tone::Plain),
            (self.word.to_owned(), self.tone),
            (or_dash(agents), Tone::Plain),
            (or_dash(tasks(self.lane)), Tone::Plain),
            (or_dash(self.elapsed.map(short).unwrap_or_default()), Tone::Plain),
            (self.note_and_said(), Tone::Plain),
        ]
    }

    /// The last words of an agent alone, those of a gate with its name.
    fn note_and_said(&self) -> String {
        let attempt = self.lane.jobs.running.last().is_some_and(|job| job.job.is_attempt());
        match (self.note.as_str(), self.said.as_str()) {
            (note, "") => note.to_owned(),
            ("", said) => said.to_owned(),
            (_, said) if attempt => said.to_owned(),
            (note, said) => format!("{note}: {said}"),
        }
    }
}

/// The row of what runs for no lane, the final gate.
pub fn row_of_run(job: &JobHistory, last_said: &LastSaid<'_>, now: Timestamp) -> Vec<Cell> {
    let said = last_said(&job.job).map(|said| format!(": {}", clean(&said))).unwrap_or_default();
    let dash = || ("-".to_owned(), Tone::Plain);
    vec![
        ("run".to_owned(), Tone::Plain),
        (LaneState::Testing.word().to_owned(), tone(LaneState::Testing)),
        dash(),
        dash(),
        (short(now.since(job.since)), Tone::Plain),
        (format!("{} gate{said}", job.job.role.word()), Tone::Plain),
    ]
}

/// The word for a lane that was at work when its run was cut off.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// The words for a lane whose rollback died half-way.
const HALF_ROLLED_BACK: &str = "half rolled back";

/// The word for the state of a lane in lists and counts, and its tone. `held`: whether a live process works on the run.
pub(crate) fn shown(history: &RunHistory, lane: &LaneHistory, held: bool) -> (&'static str, Tone) {
    match lane.state {
        _ if is_cut_off(history, lane, held) => (INTERRUPTED, Tone::Warn),
        LaneState::Stopped => (word(history, lane), tone(lane.state)),
        state => (state.brief(), tone(state)),
    }
}

/// Whether it was at work when the process that worked on the run died: its jobs have ended, or still run
/// unobserved.
pub(crate) fn is_cut_off(history: &RunHistory, lane: &LaneHistory, held: bool) -> bool {
    let is_open = history.run.started.is_some() && history.run.finished.is_none();
    is_open && !held && lane.state.is_active() && !lane.state.needs_person()
}

fn tone(state: LaneState) -> Tone {
    match state.group() {
        StateGroup::Merged => Tone::Good,
        StateGroup::Failed => Tone::Bad,
        StateGroup::Blocked | StateGroup::Stopped | StateGroup::NeedsYou => Tone::Warn,
        StateGroup::Waiting | StateGroup::Skipped => Tone::Faint,
        StateGroup::Working => Tone::Busy,
    }
}

/// The agents that work now; when none does, those that have done something.
pub(crate) fn agents(lane: &LaneHistory) -> Vec<&AgentName> {
    let current: Vec<&AgentName> = lane.jobs.running.iter().filter_map(|job| job.job.agent()).collect();
    if current.is_empty() { lane.agents.iter().map(|agent| &agent.name).collect() } else { current }
}

/// The tasks that are worked on, else the last one: `2/3`, and which attempt it is if not the first.
fn tasks(lane: &LaneHistory) -> String {
    let running = lane.jobs.running.iter().filter(|job| job.job.is_attempt());
    let mut texts: Vec<String> = running.map(|job| task(lane, &job.job)).collect();
    if texts.is_empty() {
        texts.extend(lane.jobs.last_ended(|job| job.job.is_attempt()).map(|job| task(lane, &job.job)));
    }
    texts.join(", ")
}

fn task(lane: &LaneHistory, attempt: &JobId) -> String {
    let tasks = attempt.agent().and_then(|agent| lane.tasks_of(agent));
    let place = tasks.zip(attempt.task()).and_then(|(tasks, task)| {
        let place = tasks.iter().position(|known| known == task)?;
        Some(format!("{}/{}", place + 1, tasks.len()))
    });
    let place = place.unwrap_or_else(|| attempt.task().map(ToString::to_string).unwrap_or_default());
    if attempt.number > 1 { format!("{place} attempt {}", attempt.number) } else { place }
}

fn note(
    history: &RunHistory,
    lane: &LaneHistory,
    waiting_for: Option<&WaitingFor>,
    until: Timestamp,
    now: LocalTime,
) -> String {
    match &lane.ending {
        Some(Ending::Failed(failure)) => return in_short(failure),
        Some(Ending::Blocked(reason)) => return clean(reason),
        _ => {}
    }
    match (lane.state, waiting_for) {
        (_, Some(WaitingFor::Lanes(lanes))) => waits_for_lanes(history, lanes),
        (_, Some(WaitingFor::Place)) if history.run.finished.is_some() => "ready, resume to start".to_owned(),
        (_, Some(WaitingFor::Place)) => "waits for a place".to_owned(),
        (_, Some(WaitingFor::Until(moment))) if *moment <= until => "waits for a place".to_owned(),
        (_, Some(WaitingFor::Until(moment))) => format!("tries again in {}", short(moment.since(until))),
        (_, Some(WaitingFor::Runner { account, until: end })) => match end {
            Some(end) => format!("waits for {}{}", headline(account, 40), now.until(*end)),
            None => format!("{} cannot work", headline(account, 40)),
        },
        (_, Some(WaitingFor::Approval(gate))) => format!("of its {gate}{}", subject_of(lane, *gate)),
        (_, Some(WaitingFor::Person(tasks))) => {
            format!("for task {}", tasks.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" and task "))
        }
        (LaneState::Merged | LaneState::Proposed, None) if any_broken(&lane.must_haves) => {
            format!("{}; must-haves: {}", merged_note(history, lane), tally(&lane.must_haves))
        }
        (LaneState::Merged | LaneState::Proposed, None) => merged_note(history, lane),
        (LaneState::Skipped, None) => lane.left_out.as_deref().map(clean).unwrap_or_default(),
        (LaneState::RolledBack, None) => match lane.kept.len() {
            0 => String::new(),
            _ => format!("kept {}", clean(&lane.kept.join(", "))),
        },
        (LaneState::Stopped, None) if lane.is_half_rolled_back => HALF_ROLLED_BACK.to_owned(),
        (LaneState::Stopped, None) => match effect_of_resume(history, lane) {
            Some(effect) => effect,
            None => {
                let pause = history.pause_of(lane).and_then(|pause| pause.describe(now));
                let pause = pause.map(|pause| format!("; {pause}")).unwrap_or_default();
                format!("in {}{pause}", stage_in_words(lane.stage.word()))
            }
        },
        (state, None) if state.is_active() => match (lane.elsewhere(), activity(lane)) {
            (Some(placement), activity) if placement.host.is_none() || activity.is_empty() => placement.to_string(),
            (_, activity) => activity,
        },
        _ => String::new(),
    }
}

fn waits_for_lanes(history: &RunHistory, lanes: &[LaneId]) -> String {
    format!("after {}", with_ends(history, lanes, usize::MAX))
}

fn merged_note(history: &RunHistory, lane: &LaneHistory) -> String {
    let kept = if lane.kept.is_empty() { String::new() } else { format!("; kept {}", clean(&lane.kept.join(", "))) };
    match &lane.merge_commit {
        None => "by an earlier run".to_owned(),
        // Its address stands below.
        Some(_) if let (Some(it), Some(status)) = (&lane.pull_request, &lane.pull_request_status) => {
            let number = it.number.map(|number| format!("#{number} ")).unwrap_or_default();
            format!("{number}{}{kept}", clean(&status.to_string()))
        }
        Some(_) if let Some(it) = &lane.pull_request => format!("{}{kept}", clean(&it.url)),
        Some(commit) if history.run.merges() => format!("{}{kept}", commit.short()),
        Some(_) => format!("on {}{kept}", lane.workplace.branch().unwrap_or("its branch")),
    }
}

/// The gates that run, and of an attempt that is none of the first ones, which retry it is.
fn activity(lane: &LaneHistory) -> String {
    let gates = lane.jobs.running.iter().filter(|job| !job.job.is_attempt()).map(|job| job.job.role.title().to_owned());
    let retry = lane.jobs.running.iter().rev().find_map(|job| job.retry.as_deref()).map(Retry::describe);
    gates.chain(retry).collect::<Vec<_>>().join(", ")
}
