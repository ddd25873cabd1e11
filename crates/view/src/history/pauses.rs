//! Runners whose attempts wait, and the lanes that wait for them.

use std::collections::BTreeMap;

use lanewright_model::event::{Event, LaneStage, Record};
use lanewright_model::outage::{PauseTimes, next_runner};
use lanewright_model::retry::FALLBACK_AFTER;
use lanewright_model::text::{counted, headline};
use lanewright_model::time::LocalTime;
use lanewright_model::{AgentName, AgentPhase, OutageKind, Round, Timestamp};
use serde::Serialize;

use super::RunHistory;
use super::job::AgentStatus;
use super::lane::{AgentAccounts, FailureView, LaneHistory};
use super::state::{LaneState, WaitingFor};

/// Why and until when no attempt with an account begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PauseView {
    /// The account of its runners, else their name, else the command.
    pub account: String,
    pub kind: OutageKind,
    /// The line of output that reports it.
    pub line: String,
    /// Since when attempts have failed for it.
    pub since: Timestamp,
    /// When one attempt finds out whether it is over; null: a person has to change something first.
    pub until: Option<Timestamp>,
}

impl PauseView {
    /// The account on one line, for people.
    pub fn name(&self) -> String {
        headline(&self.account, 40)
    }

    /// `claude is paused until 03:00 (2h 10m)`; `None`: no longer, or until a person changes something.
    pub(crate) fn describe(&self, now: LocalTime) -> Option<String> {
        let until = now.until(self.until?);
        (!until.is_empty()).then(|| format!("{} is paused{until}", self.name()))
    }
}

/// The pauses of a run, by account.
#[derive(Debug, Clone, Default)]
pub struct Pauses {
    accounts: BTreeMap<String, PauseView>,
    /// See the state of a run.
    run_ended: bool,
}

impl Pauses {
    pub fn iter(&self) -> impl Iterator<Item = &PauseView> {
        self.accounts.values()
    }

    pub(super) fn apply(&mut self, record: &Record) {
        match &record.event {
            Event::RunnerPaused { account, outage, since, until } => {
                let (kind, line) = (outage.kind, outage.line.clone());
                let pause = PauseView { account: account.clone(), kind, line, since: *since, until: *until };
                self.accounts.insert(account.clone(), pause);
            }
            Event::RunnerContinued { account } => drop(self.accounts.remove(account)),
            Event::RunFinished { .. } => self.run_ended = true,
            Event::RunResumed { .. } => {
                let had_ended = std::mem::take(&mut self.run_ended);
                for pause in self.accounts.values_mut().filter(|pause| had_ended || pause.until.is_none()) {
                    pause.until = Some(record.at);
                }
            }
            _ => {}
        }
    }
}

/// The accounts for the agent's next attempt: at the task of its last one, or after that, if it passed and no gate failed
/// since.
fn next_accounts<'l>(lane: &LaneHistory, agent: &'l AgentAccounts) -> Option<&'l [[String; 2]]> {
    let last = lane.jobs.last_ended(|job| job.job.is_attempt() && job.job.agent() == Some(&agent.agent));
    let at = last.and_then(|last| {
        let at = agent.tasks.iter().position(|(task, _)| Some(task) == last.job.task())?;
        let rejected = |it: &FailureView| {
            it.agent.as_ref() == Some(&agent.agent) && last.ended.is_some_and(|ended| it.at >= ended)
        };
        Some(at + usize::from(last.passed() == Some(true) && !lane.failures.iter().any(rejected)))
    });
    agent.tasks.get(at.unwrap_or(0)).map(|(_, accounts)| accounts.as_slice())
}

fn failed_by_outage(lane: &LaneHistory, agent: &AgentName) -> bool {
    let last = lane.failures.iter().rfind(|it| it.agent.as_ref() == Some(agent));
    last.is_some_and(|last| last.failure.kind.is_outage())
}

/// Whether the agent makes no attempt any more, unless its lane is sent back.
fn is_over(lane: &LaneHistory, agent: &AgentAccounts) -> bool {
    let competes = agent.round == Round::Judge || lane.candidates.iter().any(|(name, _)| *name == agent.agent);
    let is_beaten = competes && lane.choice().chosen.is_some_and(|chosen| chosen != agent.agent);
    is_beaten
        || match lane.phase_of(&agent.agent) {
            Some(AgentPhase::Completed | AgentPhase::Abandoned) => true,
            // An outage is always waited for; after another failure a retry is planned at once, or never.
            Some(AgentPhase::Failed) => !failed_by_outage(lane, &agent.agent),
            Some(AgentPhase::Initialized) => false,
            _ => lane.status_of(&agent.agent) == AgentStatus::Complete,
        }
}

impl RunHistory {
    /// The pause for which all attempts of the lane wait that could begin now.
    pub(crate) fn pause_of(&self, lane: &LaneHistory) -> Option<&PauseView> {
        if self.run.pauses.accounts.is_empty() || !lane.jobs.running.is_empty() || self.works_elsewhere(lane) {
            return None;
        }
        let rounds: &[Round] = match lane.stage {
            LaneStage::Waiting | LaneStage::Init | LaneStage::Classified => Round::ALL,
            LaneStage::Requirements => &[Round::Requirements],
            LaneStage::Implementation => &[Round::Implementation, Round::Judge],
            LaneStage::Review => &[Round::Review],
            _ => return None,
        };
        let open = |round: &&Round| lane.accounts.iter().any(|agent| agent.round == **round && !is_over(lane, agent));
        let round = rounds.iter().find(open)?;
        let agents = lane.accounts.iter().filter(|agent| agent.round == *round && !is_over(lane, agent));
        let mut pauses =
            agents.filter_map(|agent| next_accounts(lane, agent)).map(|accounts| self.pause_among(accounts));
        let latest = |a: &'_ PauseView, b: &'_ PauseView| (a.until.is_none(), a.until) > (b.until.is_none(), b.until);
        let first = pauses.next()??;
        pauses.try_fold(first, |known, pause| pause.map(|pause| if latest(pause, known) { pause } else { known }))
    }

    /// Whether its attempts are made on a cluster, where a pause of this run does not count.
    fn works_elsewhere(&self, lane: &LaneHistory) -> bool {
        let is_placed = self.run.start.as_ref().is_some_and(|start| start.options.placed_by.is_some());
        lane.elsewhere().is_some() || lane.has_executor && !is_placed
    }

    /// The pause of the runner that would make the next attempt of an agent with these accounts.
    fn pause_among(&self, accounts: &[[String; 2]]) -> Option<&PauseView> {
        let of = |name: &String, refused: bool| {
            let known = self.run.pauses.accounts.get(name);
            known.filter(|pause| (pause.kind == OutageKind::Refused) == refused)
        };
        let either = |[account, refusable]: &[String; 2]| of(account, false).or_else(|| of(refusable, true));
        let all: Vec<Option<&PauseView>> = accounts.iter().map(either).collect();
        let times = |pause: &PauseView| PauseTimes { since: pause.since, until: pause.until };
        let pauses: Vec<Option<PauseTimes>> = all.iter().map(|pause| pause.map(times)).collect();
        let fallback_after = self.run.start.as_ref().map_or(FALLBACK_AFTER, |start| start.options.fallback_after);
        all.get(next_runner(&pauses, fallback_after)).copied().flatten()
    }

    pub(super) fn waits_for_runner(&self, lane: &LaneHistory) -> bool {
        matches!(self.waiting_for(lane), Some(WaitingFor::Runner { .. }))
    }

    /// The lanes that wait for a runner, where the event may end that, each with the moment since which it is paused.
    pub(super) fn waiting_for_runners(&self, event: &Event) -> Vec<(usize, Timestamp)> {
        let may_end = matches!(event, Event::RunnerPaused { .. } | Event::RunnerContinued { .. });
        let all = self.lanes().iter().enumerate().filter(|(_, lane)| may_end && self.waits_for_runner(lane));
        all.filter_map(|(index, lane)| Some((index, self.pause_of(lane)?.since))).collect()
    }

    /// The pause that keeps the lane from its next attempt, also where the run has stopped.
    pub(super) fn pause_ahead_of(&self, lane: &LaneHistory) -> Option<&PauseView> {
        let is_kept = lane.state == LaneState::Stopped && !lane.stopping || self.waits_for_runner(lane);
        self.pause_of(lane).filter(|_| is_kept)
    }

    /// The paused runners that lanes need next, each in words: `waiting for claude until 03:00 (2h 10m), 4 lanes`, or if no process
    /// works on the run `claude is paused until 03:00 (2h 10m), 4 lanes`.
    pub(crate) fn awaited_runners(&self, now: LocalTime, held: bool) -> impl Iterator<Item = (&PauseView, String)> {
        self.run.pauses.iter().filter_map(move |pause| {
            let needs = |lane: &&LaneHistory| self.pause_ahead_of(lane).is_some_and(|it| it.account == pause.account);
            let lanes = self.lanes().iter().filter(needs).count();
            let what = match held && self.run.finished.is_none() {
                _ if lanes == 0 => return None,
                false => pause.describe(now)?,
                true => format!("waiting for {}{}", pause.name(), now.until(pause.until?)),
            };
            Some((pause, format!("{what}, {}", counted(lanes, "lane"))))
        })
    }
}

#[cfg(test)]
mod tests {
    use lanewright_model::event::StopReason;
    use lanewright_model::plan::PlanParts;
    use lanewright_model::testing::*;
    use lanewright_model::{CommandLine, Failure, FailureKind, Lane, Outage, Plan};

    use super::*;
    use crate::history::waits::WaitReason;

    /// A lane of agents, each with its round, its account and whether it is a candidate.
    fn plan_of(agents: &[(&str, Round, &str, bool)]) -> Plan {
        let agents =
            agents.iter().zip(1..).map(|((name, round, account, is_candidate), number)| lanewright_model::Agent {
                round: *round,
                command: CommandLine::Shell((*account).to_owned()),
                candidate: is_candidate.then_some(number),
                ..plan_agent(name, vec![plan_task("1")])
            });
        let lane = Lane { agents: agents.collect(), ..plan_lane("SL-1", Vec::new()) };
        Plan::new(PlanParts { lanes: vec![lane], ..empty_plan() }).unwrap()
    }

    fn at_work() -> Story {
        Story::begun().opened("SL-1", 1).moved("SL-1", LaneStage::Classified, LaneStage::Implementation)
    }

    fn phase(agent_name: &str, from: AgentPhase, to: AgentPhase) -> Event {
        Event::AgentMoved { lane: lane("SL-1"), agent: agent(agent_name), from, to }
    }

    fn paused(account: &str) -> Event {
        let (outage, until) = (Outage::new(OutageKind::Quota, "429"), Some(at(9000)));
        Event::RunnerPaused { account: account.to_owned(), outage, since: at(0), until }
    }

    /// An attempt of the agent that failed.
    fn failed(story: Story, agent_name: &str, kind: FailureKind) -> Story {
        ended(story, agent_name, 1, kind)
    }

    fn ended(story: Story, agent_name: &str, exit_code: i32, kind: FailureKind) -> Story {
        let job = attempt("SL-1", agent_name, 1);
        let (agent, failure) = (Some(agent(agent_name)), Failure::new(kind, "why"));
        let noted = Event::FailureNoted { lane: lane("SL-1"), agent, task: Some(task("1")), failure };
        let story = story.job(&job).exited(&job, exit_code).then(noted);
        story.then(phase(agent_name, AgentPhase::Executing, AgentPhase::Failed))
    }

    fn awaited(plan: &Plan, story: &Story) -> Option<String> {
        let history = RunHistory::for_plan(plan).after(&story.records);
        let words: Vec<String> =
            history.awaited_runners(LocalTime::utc(at(5400)), true).map(|(_, words)| words).collect();
        let account = history.pause_of(&history.lanes()[0]).map(|pause| pause.account.clone());
        let until = at(9000).0.format("%H:%M");
        let line = account.iter().map(|account| format!("waiting for {account} until {until} (1h 00m), 1 lane"));
        assert_eq!(words, line.collect::<Vec<_>>());
        account
    }

    #[test]
    fn lane_waits_for_the_runner_of_an_agent_while_another_is_out() {
        for is_candidate in [true, false] {
            let agent = |name, account| (name, Round::Implementation, account, is_candidate);
            let plan = plan_of(&[agent("a1", "bad"), agent("a2", "lim")]);
            let story =
                failed(failed(at_work(), "a1", FailureKind::Crash), "a2", FailureKind::Quota).then(paused("lim"));
            assert_eq!(awaited(&plan, &story).as_deref(), Some("lim"));
            let retried = story.clone().then(phase("a1", AgentPhase::Failed, AgentPhase::RollingBack));
            assert_eq!(awaited(&plan, &retried), None);
            let given_up = story.then(phase("a1", AgentPhase::Failed, AgentPhase::Abandoned));
            assert_eq!(awaited(&plan, &given_up).as_deref(), Some("lim"));
        }
    }

    #[test]
    fn lane_waits_for_the_runner_of_an_agent_whose_last_gate_failed() {
        let plan = plan_of(&[("a1", Round::Implementation, "lim", false)]);
        let story = ended(at_work(), "a1", 0, FailureKind::Gate).then(paused("lim"));
        let retried = story.then(phase("a1", AgentPhase::Failed, AgentPhase::RollingBack));
        assert_eq!(awaited(&plan, &retried).as_deref(), Some("lim"));
    }

    #[test]
    fn lane_of_an_executor_waits_for_no_runner_here() {
        let mut lane = Lane { executor: Some("main".to_owned()), ..plan_lane("SL-1", Vec::new()) };
        lane.agents[0].command = CommandLine::Shell("lim".to_owned());
        let plan = Plan::new(PlanParts { lanes: vec![lane], ..empty_plan() }).unwrap();
        assert_eq!(awaited(&plan, &Story::begun().then(paused("lim"))), None);
        let mut placed = run_started();
        placed.options.placed_by = Some(placed.run_id.clone());
        let there = Story::default().then(Event::RunStarted(Box::new(placed))).then(paused("lim"));
        assert_eq!(awaited(&plan, &there).as_deref(), Some("lim"));
    }

    #[test]
    fn a_pause_is_not_waited_for_without_a_process_or_by_a_stopped_lane() {
        let plan = plan_of(&[("a1", Round::Implementation, "lim", false)]);
        let story = failed(at_work(), "a1", FailureKind::Quota).then(paused("lim"));
        let words = |story: &Story, held: bool, moment: i64| -> Vec<String> {
            let history = RunHistory::for_plan(&plan).after(&story.records);
            history.awaited_runners(LocalTime::utc(at(moment)), held).map(|(_, words)| words).collect()
        };
        let until = at(9000).0.format("%H:%M").to_string();
        assert_eq!(words(&story, false, 5400), [format!("lim is paused until {until} (1h 00m), 1 lane")]);
        assert_eq!(words(&story, false, 9001), [""; 0]);
        assert_eq!(words(&story, true, 9001), ["waiting for lim, 1 lane"]);
        let lane = Some(lane("SL-1"));
        let stopped = story.then(Event::StopRequested { lane, reason: StopReason::Request, force: false });
        assert_eq!(words(&stopped, true, 5400), [""; 0]);
    }

    #[test]
    fn lane_waits_for_a_place_before_and_after_the_pause() {
        let plan = plan_of(&[("a1", Round::Implementation, "lim", false)]);
        let outage = Outage::new(OutageKind::Quota, "429");
        let begun = Story::begun();
        let since = begun.now();
        let story = begun.wait(10);
        let pause = |since: Timestamp| Event::RunnerPaused {
            account: "lim".into(),
            outage: outage.clone(),
            since,
            until: Some(since.plus(std::time::Duration::from_secs(90))),
        };
        let paused = story.now();
        let story = story.then(pause(paused)).wait(20).then(Event::RunnerContinued { account: "lim".into() }).wait(30);
        let history = RunHistory::for_plan(&plan).after(&story.opened("SL-1", 1).records);
        let waits = history.run.waits.iter().map(|wait| (wait.reason, wait.until.since(wait.from).as_secs()));
        let waits: Vec<_> = waits.collect();
        assert!(since < paused && waits.len() >= 3, "{waits:?}");
        let [before, runner, after] = [&waits[0], &waits[1], &waits[2]];
        assert!(before.0 == WaitReason::Place && (10..15).contains(&before.1), "{waits:?}");
        assert!(runner.0 == WaitReason::Runner && (20..25).contains(&runner.1), "{waits:?}");
        assert!(after.0 == WaitReason::Place && (30..35).contains(&after.1), "{waits:?}");
    }

    #[test]
    fn lane_waits_for_the_runner_of_its_judge() {
        let candidate = |name| (name, Round::Implementation, "open", true);
        let plan = plan_of(&[candidate("c1"), candidate("c2"), ("judge", Round::Judge, "lim", false)]);
        let (first, second) = (attempt("SL-1", "c1", 1), attempt("SL-1", "c2", 1));
        let story = at_work().then(paused("lim")).job(&first).exited(&first, 0);
        assert_eq!(awaited(&plan, &story), None, "a candidate is still to work");
        let story = failed(story.job(&second).exited(&second, 0), "judge", FailureKind::Quota);
        assert_eq!(awaited(&plan, &story).as_deref(), Some("lim"));
        let by = lanewright_model::event::ChosenBy::Size;
        let chosen = story.then(Event::CandidateChosen { lane: lane("SL-1"), agent: agent("c1"), by });
        assert_eq!(awaited(&plan, &chosen), None, "the judge is not needed");
    }
}
