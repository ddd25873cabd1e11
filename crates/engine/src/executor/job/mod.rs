//! Jobs: described, launched under a supervisor, waited for.

mod brief;
mod gate;
mod output;
mod snapshots;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lanewright_agents::diagnose;
use lanewright_agents::prompt::{PastFailures, ReportValues, Templates, Values};
use lanewright_files::timing::TARGET;
use lanewright_files::{FileError, atomic, directory, regular_file};
use lanewright_git as git;
use lanewright_model::event::{AgentReport, Event, Reading, Worktree};
use lanewright_model::job::StatusSpec;
use lanewright_model::runner::PromptWay;
use lanewright_model::{
    Agent, CommandLine, ExitCause, JobExit, JobId, JobRole, JobSpec, LaneIndex, Round, Runner, Session, Transcript,
};
use lanewright_programs::process::{self, Observation};
use lanewright_schedule::RunState;
use lanewright_store::lane_files;

use super::timed::job_span;
use super::{Executor, ExecutorError, Moment, Prepared, Task};
pub use brief::BriefFiles;
use brief::{Brief, lane_environment};
use gate::{Leaves, judges_the_lane};
use output::CallSource;
use snapshots::Watched;

/// Everything that a job needs, taken from the state.
struct Described {
    spec: JobSpec,
    /// The attempt's files, with what is written into each before it starts.
    files: Option<(BriefFiles, Vec<Sheet>)>,
    /// What is saved in snapshots while it runs.
    watched: Option<Watched>,
    /// The session of its program that it continues.
    session: Option<Session>,
    /// What is known about the worktree of a command that is not an agent, but whose files an agent's commit may hold.
    leaves: Option<Leaves>,
}

/// How many of the last lines of an attempt the next prompt contains.
const LAST_WORDS: usize = 10;

/// The name of a file in the attempt's directory, and what is written into it.
type Sheet = (&'static str, Vec<u8>);

impl Executor {
    /// Clears the place of a job that is about to be planned.
    pub(crate) fn make_room(&self, job: &JobId) -> Result<(), FileError> {
        process::make_room(&self.run.job(job))
    }

    /// Starts the job unless it was started before, in this life of the run or an earlier one, and waits for its end.
    pub(super) fn run_job(self: &Arc<Self>, job: &JobId, state: &RunState) -> Prepared {
        let described = match self.describe(job, state) {
            Ok(described) => described,
            // Without the job's end it would be wanted again for ever.
            Err(error) => {
                let events = blocked_job(job.clone(), &error, self.clock.now());
                return Ok(Box::new(move |_| events));
            }
        };
        let mut moment = job.lane.as_ref().and_then(|lane| state.find(lane)).map(|lane| self.moment(lane, state));
        // What is prepared for the job itself is done before it runs.
        let own = moment.iter_mut().flat_map(|moment| &mut moment.holdings);
        own.filter(|own| own.worktree.path == described.spec.directory).for_each(|own| own.busy = false);
        let (executor, job) = (self.clone(), job.clone());
        Ok(Box::new(move |tell| match executor.see_through(&job, &described, moment.as_ref(), tell) {
            Ok((mut exit, report)) => {
                let (transcript, said) = executor.read_stream(&job, &mut exit, described.session.as_ref());
                let reading = executor.read_output(&job, &described.spec, &exit, (transcript.as_ref(), &said));
                let reading = reading.map(Box::new);
                vec![Event::JobExited { job, exit, report, reading, transcript: transcript.map(Box::new) }]
            }
            Err(error) => blocked_job(job, &error, executor.clock.now()),
        }))
    }

    fn see_through(
        &self,
        job: &JobId,
        described: &Described,
        moment: Option<&Moment>,
        tell: &dyn Fn(Event),
    ) -> Result<(JobExit, Option<AgentReport>), ExecutorError> {
        let directory = self.run.job(job);
        let seen = process::observe(&directory)?;
        let worktree = &described.spec.directory;
        let mut before = None;
        let launched = match seen {
            Observation::Absent | Observation::Planned => {
                self.prepare_workplace(job, worktree, moment, tell)?;
                before = described.leaves.as_ref().filter(|leaves| !leaves.clean).map(|_| git::uncommitted(worktree));
                git::forget_uncommitted(worktree)?;
                // Else they lie there, and a supervisor that an earlier Lanewright launched may be about to use them.
                if seen == Observation::Absent {
                    match moment {
                        Some(moment) => self.persist(moment, tell, || self.lay_out(described))?,
                        None => self.lay_out(described)?,
                    }
                }
                let launched = tracing::debug_span!(target: TARGET, "launch")
                    .in_scope(|| process::launch(&self.program, &directory, &described.spec))?;
                tell(Event::JobStarted { job: job.clone(), supervisor: launched.supervisor() });
                Some(launched)
            }
            // An earlier Lanewright may have died before it recorded what it put aside for the job.
            Observation::Running(supervisor) => {
                self.record_put_aside(job, moment, tell)?;
                tell(Event::JobStarted { job: job.clone(), supervisor });
                None
            }
            Observation::Starting | Observation::Exited(_) | Observation::Lost(_) => {
                self.record_put_aside(job, moment, tell)?;
                None
            }
        };
        let mut exit = job_span(job, || self.wait_and_watch(&directory, launched, described.watched.as_ref(), tell))?;
        if let Some(leaves) = &described.leaves
            && let Err(error) = self.note_left_behind(worktree, leaves, before)
        {
            tracing::debug!("what {job} left in {} is not known: {error}", worktree.display());
        }
        // The lane may come to rest now, and a person change what was judged.
        if judges_the_lane(job)
            && let Err(error) = git::note_uncommitted(worktree)
        {
            tracing::debug!("what is uncommitted in {} is not known: {error}", worktree.display());
        }
        // A supervisor that died while no Lanewright ran died with the machine, not because of its agent.
        if exit.cause == ExitCause::Lost && matches!(seen, Observation::Lost(_)) {
            exit.cause = ExitCause::Stopped;
        }
        let report = described.files.as_ref().and_then(|(files, _)| read_report(files, &exit));
        Ok((exit, report))
    }

    /// Makes sure that the worktree exists, has a commit checked out, and, for gates, has no other contents.
    fn prepare_workplace(
        &self,
        job: &JobId,
        workplace: &Path,
        moment: Option<&Moment>,
        tell: &dyn Fn(Event),
    ) -> Result<(), ExecutorError> {
        let Some(moment) = moment else {
            self.repository.vouch_for(workplace)?;
            self.repository.refill_if_emptied(workplace)?;
            return Ok(self.repository.refuse_missing_branch(workplace)?);
        };
        if job.is_attempt() && job.number > 1 {
            // What the attempt before staged may be what git has lost, and its agent cannot commit any more.
            let restored = moment.holding(workplace).map(|holding| self.restore_objects(holding, moment));
            restored.into_iter().flatten().flatten().for_each(tell);
        }
        self.persist(moment, tell, || {
            self.reopen_if_lost(workplace, moment)?.into_iter().for_each(tell);
            self.repository.vouch_for(workplace)?;
            self.repository.refuse_missing_branch(workplace)?;
            if self.repository.refill_if_emptied(workplace)? {
                let message = format!("all files of {} were gone; they were checked out again", workplace.display());
                tell(self.note_repair(moment, message));
            }
            self.clear_for_gate(job, workplace, moment, tell)
        })
    }

    /// What the output means of a job that failed by itself, also if only its event stream shows the failure.
    fn read_output(
        &self,
        job: &JobId,
        spec: &JobSpec,
        exit: &JobExit,
        (transcript, said): (Option<&Transcript>, &[String]),
    ) -> Option<Reading> {
        if job.is_attempt() {
            let own = self.plan.runner_of(job).map(|runner| &runner.outages);
            return diagnose::outage(exit, said, transcript, own).map(Reading::Outage);
        }
        if exit.cause != ExitCause::Exited || exit.passed() {
            return None;
        }
        let [first, last] = diagnose::EXCERPT_BYTES;
        // Without its output the gate still failed.
        let output = process::both_ends(&process::output_log(&self.run.job(job)), first, last).unwrap_or_default();
        Some(Reading::Diagnosis(diagnose::diagnose(&output, &[&spec.directory])))
    }

    fn lay_out(&self, described: &Described) -> Result<(), ExecutorError> {
        let Some((files, contents)) = &described.files else { return Ok(()) };
        for directory in [Some(files.directory.as_path()), files.status.parent()].into_iter().flatten() {
            directory::create_directory(directory)?;
        }
        // What the job is to do is written after them: until then nothing counts on any of them.
        atomic::write_together(&files.directory, contents.iter().map(|(name, text)| (*name, text.as_slice())))?;
        atomic::remove(&files.status)?;
        Ok(())
    }

    pub(super) fn stop_job(self: &Arc<Self>, job: &JobId, force: bool) -> Task {
        let (executor, job) = (self.clone(), job.clone());
        Box::new(move |tell| {
            let directory = executor.run.job(&job);
            if let Err(error) = process::stop(&directory, force) {
                tell(Event::Noted { lane: job.lane.clone(), message: format!("{job} cannot be stopped: {error}") });
            }
            // Until its end, so that a job that cannot be stopped is not asked again and again. What goes wrong with
            // waiting is reported by the task that runs the job.
            let _ = process::wait_without_secrets(&directory, None, &executor.redactor);
            Vec::new()
        })
    }

    fn describe(&self, job: &JobId, state: &RunState) -> Result<Described, ExecutorError> {
        let Some(lane) = job.lane.as_ref().and_then(|lane| state.find(lane)) else {
            let worktree =
                state.final_worktree().cloned().ok_or(ExecutorError::Missing("the final gate's worktree"))?;
            return Ok(self.gate(job, self.plan.gates.last.clone(), &worktree, BTreeMap::new()));
        };
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let agent = job.agent().and_then(|name| plan.agents.iter().position(|agent| agent.name == *name));
        let own = agent.filter(|_| !matches!(job.role, JobRole::Checkpoint { .. }));
        let worktree = own.map_or(lane_state.worktree(), |agent| lane_state.workplace(plan, agent));
        let worktree = worktree.cloned().ok_or(ExecutorError::Missing("the job's worktree"))?;
        let environment = || {
            let base = lane_state.base().cloned().unwrap_or_else(|| self.facts.base_commit.clone());
            lane_environment(&self.facts.run_id, &self.plan.phase, plan, &worktree.path, &base, lane_state.port())
        };
        let steps = match (&job.role, agent) {
            (JobRole::Attempt { .. }, Some(agent)) => return self.attempt(job, lane, agent, state, &worktree),
            (JobRole::Verify { task, .. }, Some(agent)) => {
                let task = plan.agents[agent].tasks.iter().find(|known| known.id == *task);
                let verify = task.map(|task| task.verify.clone()).unwrap_or_default();
                verify.into_iter().chain(self.plan.gates.atomic.clone()).collect()
            }
            (JobRole::Checkpoint { .. }, _) => self.plan.gates.checkpoint.clone(),
            (JobRole::Setup { .. }, _) => plan.setup.clone(),
            (JobRole::Tests | JobRole::MergedTests, _) => plan.tests.clone(),
            _ => Vec::new(),
        };
        let leaves = match (&job.role, agent) {
            (JobRole::Verify { .. }, Some(agent)) => {
                Some(Leaves { clean: true, since: lane_state.start_of(agent).cloned() })
            }
            (JobRole::Setup { .. }, agent) => {
                let mut users = agent.map_or(0..plan.agents.len(), |agent| agent..agent + 1);
                Some(Leaves { clean: users.all(|agent| lane_state.agents()[agent].attempt == 0), since: None })
            }
            _ => None,
        };
        Ok(Described { leaves, ..self.gate(job, steps, &worktree, environment()) })
    }

    fn gate(
        &self,
        job: &JobId,
        steps: Vec<CommandLine>,
        worktree: &Worktree,
        environment: BTreeMap<String, String>,
    ) -> Described {
        let spec = self.gate_spec(job.clone(), steps, worktree, environment);
        Described { spec, files: None, watched: None, session: None, leaves: None }
    }

    pub(super) fn gate_spec(
        &self,
        job: JobId,
        steps: Vec<CommandLine>,
        worktree: &Worktree,
        environment: BTreeMap<String, String>,
    ) -> JobSpec {
        JobSpec {
            job,
            steps,
            directory: worktree.path.clone(),
            environment,
            input: None,
            timeout: Some(self.plan.timeouts.gate),
            kill_after: self.kill_after,
            heartbeat: self.heartbeat,
            status: None,
            on_orphan: self.facts.options.on_orphan,
            redact: self.redact.clone(),
        }
    }

    fn attempt(
        &self,
        job: &JobId,
        lane: LaneIndex,
        agent: usize,
        state: &RunState,
        worktree: &Worktree,
    ) -> Result<Described, ExecutorError> {
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let worker = &lane_state.agents()[agent];
        let (who, task) = (&plan.agents[agent], &plan.agents[agent].tasks[worker.task]);
        let directory = self.run.job(job);
        let status = self.lane_directory(lane).status_file(&who.name);
        let report = directory.join("report.md");
        let files = BriefFiles { directory, status, report };
        let base = lane_state.base().cloned().unwrap_or_else(|| self.facts.base_commit.clone());
        let failures = worker.failure_context(&task.id);
        let prompt = self.prompt(job, lane, agent, state)?;
        let brief = Brief {
            run: &self.facts.run_id,
            phase: &self.plan.phase,
            lane: plan,
            agent: who,
            task,
            attempt: job.number,
            max_retries: plan.retries,
            worktree: &worktree.path,
            base: &base,
            port: lane_state.port(),
            failure_context: &failures,
        };
        let pretty = |mut value: serde_json::Value| {
            self.redactor.clean_json(&mut value);
            format!("{value:#}\n").into_bytes()
        };
        let contents = vec![
            (BriefFiles::PROMPT, self.redactor.redact(&prompt).into_owned().into_bytes()),
            (BriefFiles::TASK, pretty(brief.task_file())),
            (BriefFiles::FAILURE_CONTEXT, pretty(serde_json::json!(brief.failure_context))),
        ];
        let status = StatusSpec {
            path: files.status.clone(),
            agent: who.name.to_string(),
            task: task.id.to_string(),
            round: who.round.to_string(),
            retry_count: worker.retries,
        };
        let mut environment = brief.environment(&files);
        let runner = self.plan.runner(who);
        let unset = |(name, _): &(&String, &String)| std::env::var_os(name).is_none();
        for (name, value) in runner.iter().flat_map(|runner| &runner.environment).filter(unset) {
            environment.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let timeout = who.time_limit(worker.task, &self.plan.timeouts, self.facts.options.specialist_timeout);
        let session = runner.and_then(|runner| lane_state.continued_session(plan, agent, runner));
        let command = attempt_command(who, runner, session, &files);
        let mut described = self.gate(job, vec![command], worktree, environment);
        described.session = session.cloned();
        described.spec.timeout = Some(timeout);
        described.spec.status = Some(status);
        described.spec.input =
            Some(files.prompt()).filter(|_| runner.is_none_or(|runner| runner.prompt == PromptWay::Stdin));
        described.watched = Some(Watched {
            lane,
            agent: who.name.clone(),
            worktree: worktree.path.clone(),
            tool_calls: match runner.filter(|runner| runner.reports_tool_calls()) {
                Some(runner) => CallSource::Output(process::output_log(&files.directory), Box::new(runner.clone())),
                None => CallSource::File(files.tool_calls()),
            },
        });
        described.files = Some((files, contents));
        Ok(described)
    }

    fn prompt(&self, job: &JobId, lane: LaneIndex, agent: usize, state: &RunState) -> Result<String, ExecutorError> {
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let (worker, who) = (&lane_state.agents()[agent], &plan.agents[agent]);
        let task = &who.tasks[worker.task];
        let base = lane_state.base().unwrap_or(&self.facts.base_commit);
        let head = worker.head.as_ref().or(lane_state.head()).unwrap_or(base);
        let before = job.number.checked_sub(1).filter(|&number| number > 0);
        let last_words = before.map(|number| self.last_words(&JobId { number, ..job.clone() }, LAST_WORDS));
        let past = PastFailures::new(&worker.lessons(&task.id), last_words.unwrap_or_default());
        let (reports, remarks) = (self.reports(lane, state), lane_state.remarks());
        let values = Values {
            base: base.as_str(),
            head: head.as_str(),
            branch: worker.worktree.as_ref().map_or("", |worktree| worktree.branch.as_str()),
            reports: &reports,
            remarks: &remarks,
            done: who.tasks[..worker.task].iter().map(lanewright_model::Task::title).collect(),
            changed: &worker.changed,
            last_words: &past.last_words,
            complaints: &past.complaints,
            attempt: job.number,
            failures: &past.failures,
            last_chance: worker.rolled_back,
            salvaged: worker.salvaged.last().map(String::as_str),
            ..Values::planned(&self.plan, plan, agent, task)
        };
        Ok(Templates::new(&self.plan.prompts)?.render(who.round, &values)?)
    }

    /// What the agents of the requirements round left: their report, else the end of what they wrote.
    fn reports(&self, lane: LaneIndex, state: &RunState) -> Vec<ReportValues> {
        let plan = self.plan.lane(lane);
        let of_agent = |agent: usize| {
            let who = &plan.agents[agent];
            let role = JobRole::Attempt { agent: who.name.clone(), task: who.tasks.first()?.id.clone() };
            let number = state.lane(lane).agents()[agent].attempt;
            let job = JobId { lane: Some(plan.id.clone()), role, number };
            let text =
                regular_file::read_left(&self.run.job(&job).join("report.md")).or_else(|| self.last_message(&job))?;
            Some(ReportValues { agent: who.name.to_string(), text })
        };
        plan.round(Round::Requirements).filter_map(of_agent).collect()
    }
}

/// What is run: the agent's command, or what goes on with the session of the attempt before, where nothing was put back
/// since.
fn attempt_command(who: &Agent, runner: Option<&Runner>, session: Option<&Session>, files: &BriefFiles) -> CommandLine {
    let Some(runner) = runner else { return who.command.clone() };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (prompt, attempt) = (text(&files.prompt()), text(&files.directory));
    let agent = files.status.parent().map(text).unwrap_or_default();
    let places = [("prompt_file", prompt.as_str()), ("attempt_directory", &attempt), ("agent_directory", &agent)];
    runner.invocation(&who.command, &who.options, session.map(|session| session.id.as_str()), &places)
}

/// The agent's report: its status file, overridden by its result file.
fn read_report(files: &BriefFiles, exit: &JobExit) -> Option<AgentReport> {
    let status = lane_files::read_status(&files.status).map(|status| {
        // The supervisor writes the moment of the exit.
        let own = status.updated_at != Some(exit.finished_at);
        AgentReport { own, ..status.report }
    });
    let Some(result) = lane_files::read_result(&files.result()) else { return status };
    let decision = status.map(|status| (status.decision, status.feedback)).unwrap_or_default();
    Some(AgentReport { decision: decision.0, feedback: decision.1, own: true, ..result })
}

/// A job that cannot be started or followed, for example because the disk is full: no failure of its agent or gate,
/// but something outside must come first (SPEC §7).
fn blocked_job(job: JobId, error: &ExecutorError, now: lanewright_model::Timestamp) -> Vec<Event> {
    let exit = JobExit {
        cause: ExitCause::Stopped,
        exit_code: 143,
        command: job.to_string(),
        started_at: now,
        finished_at: now,
        tail: Vec::new(),
        notes: error.to_string(),
    };
    let reason = format!("{job}: {error}");
    let blocked = match job.lane.clone() {
        Some(lane) => Event::LaneBlocked { lane, reason },
        None => Event::PhaseBlocked { reason },
    };
    vec![Event::JobExited { job, exit, report: None, reading: None, transcript: None }, blocked]
}
