//! A world in which nothing goes wrong, for runs of thousands of lanes: jobs take the time they are said to take,
//! everything else takes none, and git is nothing but new names of commits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;

use lanewright_model::event::{Event, Idle, Incoming, Log, Record, SnapshotReason, Worktree};
use lanewright_model::{CommitId, ExitCause, JobExit, JobId, LaneIndex, ProcessId, Timestamp};
use lanewright_schedule::RunLoop;
use lanewright_schedule::{Action, RunState};

/// A log that keeps nothing: who needs them keeps the records that it is given.
#[derive(Default)]
pub struct Forgetful(pub u64);

impl Log for Forgetful {
    type Error = Infallible;

    fn append(&mut self, at: Timestamp, incoming: &Incoming) -> Result<Record, Infallible> {
        self.0 += 1;
        Ok(Record { seq: self.0, at, event: incoming.event.clone(), origin: incoming.origin })
    }

    fn sync(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// How long a job takes, in milliseconds.
pub type Takes = Box<dyn FnMut(&JobId) -> i64>;

pub struct Faultless<L> {
    pub run_loop: RunLoop<L>,
    /// Milliseconds since 1970.
    pub now: i64,
    takes: Takes,
    due: BinaryHeap<Reverse<(i64, u64, Action)>>,
    handed_out: u64,
    commits: u64,
}

impl<L: Log> Faultless<L> {
    pub fn new(run_loop: RunLoop<L>, takes: Takes) -> Self {
        Self { run_loop, now: 0, takes, due: BinaryHeap::new(), handed_out: 0, commits: 0 }
    }

    pub fn is_over(&self) -> bool {
        self.run_loop.state().finished().is_some()
    }

    /// Takes in what happened; the durable records.
    pub fn absorb(&mut self, events: Vec<Event>, finished: Vec<Action>) -> Result<Vec<Record>, String>
    where
        L::Error: std::fmt::Display,
    {
        let now = Timestamp::from_unix_millis(self.now);
        let step = self.run_loop.absorb(events, finished, now).map_err(|error| error.to_string())?;
        for action in step.actions {
            let takes = if let Action::RunJob(job) = &action { (self.takes)(job) } else { 0 };
            self.handed_out += 1;
            self.due.push(Reverse((self.now + takes, self.handed_out, action)));
        }
        Ok(step.records)
    }

    /// Goes to the next moment at which something is done, and takes in all that is done then.
    pub fn step(&mut self) -> Result<Vec<Record>, String>
    where
        L::Error: std::fmt::Display,
    {
        let Some(Reverse((moment, ..))) = self.due.peek() else {
            return Err("nothing is under way and the run is not over: a deadlock".to_owned());
        };
        self.now = *moment;
        let (mut events, mut finished) = (Vec::new(), Vec::new());
        while let Some(Reverse((moment, ..))) = self.due.peek()
            && *moment == self.now
            && let Some(Reverse((_, _, action))) = self.due.pop()
        {
            self.commits += 1;
            events.extend(answer(&action, self.run_loop.state(), &commit_name(self.commits)));
            finished.push(action);
        }
        self.absorb(events, finished)
    }
}

/// What an executor answers that finds everything in order; `commit` is the one that it makes, if it makes one.
pub fn answer(action: &Action, state: &RunState, commit: &CommitId) -> Vec<Event> {
    let id = |lane: &LaneIndex| state.plan().lane(*lane).id.clone();
    let name = |lane: &LaneIndex, agent: &usize| state.plan().lane(*lane).agents[*agent].name.clone();
    let head = || state.integration().cloned().unwrap_or_else(|| commit.clone());
    vec![match action {
        Action::CheckLane(lane) => Event::LaneBased { lane: id(lane), base: head(), port: 1, missing: vec![] },
        Action::OpenWorktree { lane, agent } => {
            let agent = agent.as_ref().map(|agent| name(lane, agent));
            let head = state.lane(*lane).head().cloned().unwrap_or_else(head);
            Event::WorktreeOpened { lane: id(lane), agent, worktree: worktree(head) }
        }
        Action::RunJob(job) => return job_done(job),
        Action::CommitWork(lane, agent) => {
            let (lane, agent, head) = (id(lane), name(lane, agent), commit.clone());
            let changed = vec!["src/a.rs".to_owned()];
            Event::WorkCommitted {
                lane,
                agent,
                head,
                changed,
                prohibited: vec![],
                idle: Idle::No,
                ignored: vec![],
                size: None,
            }
        }
        Action::Snapshot { lane, agent, reason } => snapshot(id(lane), name(lane, agent), *reason, commit),
        Action::MergeAgent(lane, agent) => {
            Event::AgentMerged { lane: id(lane), agent: name(lane, agent), head: commit.clone() }
        }
        Action::ReleaseAgent(lane, agent) => Event::WorktreeReleased { lane: id(lane), agent: name(lane, agent) },
        Action::StageMerge(lane) => {
            Event::MergeStaged { lane: id(lane), onto: head(), commit: commit.clone(), moved: false }
        }
        Action::PublishMerge(lane) => match state.lane(*lane).staged() {
            Some(staged) => Event::LaneMerged {
                lane: id(lane),
                commit: staged.commit.clone(),
                onto: staged.onto.clone(),
                plan: None,
            },
            None => return vec![],
        },
        Action::CleanLane(lane) => Event::LaneCleaned { lane: id(lane), kept: vec![] },
        Action::OpenFinal => Event::FinalOpened { worktree: worktree(head()) },
        Action::EmptyPool => Event::PoolEmptied { kept: vec![] },
        other => unreachable!("nothing goes wrong, so nobody wants {}", other.word()),
    }]
}

fn job_done(job: &JobId) -> Vec<Event> {
    let moment = Timestamp::from_unix_millis(0);
    let exit = JobExit {
        cause: ExitCause::Exited,
        exit_code: 0,
        command: "true".into(),
        started_at: moment,
        finished_at: moment,
        tail: vec![],
        notes: String::new(),
    };
    let supervisor = ProcessId { pid: 1, started: 1 };
    let ended = Event::JobExited { job: job.clone(), exit, report: None, reading: None, transcript: None };
    vec![Event::JobStarted { job: job.clone(), supervisor }, ended]
}

fn snapshot(
    lane: lanewright_model::LaneId,
    agent: lanewright_model::AgentName,
    reason: SnapshotReason,
    commit: &CommitId,
) -> Event {
    let reference = format!("refs/lanewright/checkpoint/P1-{lane}/20260101T000000.000Z");
    Event::snapshot(lane, Some(agent), reason, commit.clone(), reference)
}

pub fn commit_name(number: u64) -> CommitId {
    CommitId::new(&format!("{number:040x}")).unwrap()
}

fn worktree(head: CommitId) -> Worktree {
    Worktree { slot: 0, path: "/w/slots/01".into(), branch: "lane/P1/L".into(), head }
}
