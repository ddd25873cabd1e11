//! What a job needs, from the state: its command, its environment and the files of an agent.

use std::collections::BTreeMap;
use std::path::Path;

use lanewright_agents::prompt::{CandidateValues, PastFailures, ReportValues, Templates, Values};
use lanewright_agents::runner::Receiver;
use lanewright_files::regular_file;
use lanewright_model::digest::sha256;
use lanewright_model::event::Worktree;
use lanewright_model::job::StatusSpec;
use lanewright_model::runner::PromptWay;
use lanewright_model::{
    Agent, CommandLine, CommitId, JobId, JobRole, JobSpec, Lane, LaneId, LaneIndex, Round, Runner, Session, Task,
};
use lanewright_programs::process;
use lanewright_schedule::{AgentState, LaneState, RunState};
use serde_json::{Value, json};

use super::base::BaseGate;
use super::brief::{BriefFiles, prefixed, report_left, task_file};
use super::gate::GateWorktree;
use super::linked_directories;
use super::output::CallSource;
use super::snapshots::Watched;
use crate::executor::{Executor, ExecutorError, Result};

/// Everything that a job needs, taken from the state.
pub(super) struct PreparedJob {
    pub(super) spec: JobSpec,
    /// The attempt's files, with what is written into each before it starts.
    pub(super) files: Option<(BriefFiles, Vec<AttemptFile>)>,
    pub(super) watched: Option<Watched>,
    /// The session of its program that it continues.
    pub(super) session: Option<Session>,
    /// What is known about the worktree of a command that is not an agent, but whose files an agent's commit may hold.
    pub(super) gate_worktree: Option<GateWorktree>,
    /// What the gate is compared with if it fails.
    pub(super) base_gate: Option<BaseGate>,
}

/// Jobs have no terminal: an editor or a pager that git or another program starts would wait for its time limit.
const NO_EDITOR: &[(&str, &str)] = &[
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
];

/// How many of the last lines of an attempt the next prompt contains.
const LAST_WORDS: usize = 10;

/// The name of a file in the attempt's directory, and what is written into it.
type AttemptFile = (&'static str, Vec<u8>);

impl Executor {
    pub(super) fn prepare_job(&self, job: &JobId, state: &RunState) -> Result<PreparedJob> {
        let Some(lane) = job.lane.as_ref().and_then(|lane| state.find(lane)) else {
            let worktree =
                state.final_worktree().cloned().ok_or(ExecutorError::Missing("the final gate's worktree"))?;
            let steps = [self.common_setup(), &self.plan.gates.last].concat();
            return Ok(self.gate(job, steps, &worktree, BTreeMap::new()));
        };
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let agent = job.agent().and_then(|name| plan.agents.iter().position(|agent| agent.name == *name));
        let own = agent.filter(|_| !matches!(job.role, JobRole::Checkpoint { .. }));
        let worktree = own.map_or(lane_state.worktree(), |agent| lane_state.workplace(plan, agent));
        let worktree = worktree.cloned().ok_or(ExecutorError::Missing("the job's worktree"))?;
        let steps = match (&job.role, agent) {
            (JobRole::Attempt { .. }, Some(agent)) => return self.attempt(job, lane, agent, state, &worktree),
            (JobRole::Verify { task, .. }, Some(agent)) => {
                let task = plan.agents[agent].tasks.iter().find(|known| known.id == *task);
                task.iter().flat_map(|task| self.plan.gate_after(plan, agent, task)).cloned().collect()
            }
            (JobRole::Checkpoint { .. }, _) => self.plan.gates.checkpoint.clone(),
            (JobRole::Setup { .. }, _) => plan.setup.clone(),
            (JobRole::Tests | JobRole::MergedTests, _) => plan.tests.clone(),
            _ => Vec::new(),
        };
        let gate_worktree = match (&job.role, agent) {
            (JobRole::Verify { .. }, Some(agent)) => {
                Some(GateWorktree { clean: true, since: lane_state.start_of(agent).cloned() })
            }
            (JobRole::Setup { .. }, agent) => {
                let mut users = agent.map_or(0..plan.agents.len(), |agent| agent..agent + 1);
                Some(GateWorktree { clean: users.all(|agent| lane_state.agents()[agent].attempt == 0), since: None })
            }
            _ => None,
        };
        let environment = self.lane_environment(lane, state, &worktree.path);
        let base_gate = self.base_gate(job, &steps, lane, state);
        Ok(PreparedJob { gate_worktree, base_gate, ..self.gate(job, steps, &worktree, environment) })
    }

    /// The set-up commands that all lanes have, which the final gate needs, too.
    pub(super) fn common_setup(&self) -> &[CommandLine] {
        let setups = || self.plan.lanes.iter().map(|lane| lane.setup.as_slice());
        let first = setups().next().unwrap_or_default();
        if setups().all(|setup| setup == first) { first } else { &[] }
    }

    fn gate(
        &self,
        job: &JobId,
        steps: Vec<CommandLine>,
        worktree: &Worktree,
        environment: BTreeMap<String, String>,
    ) -> PreparedJob {
        let spec = self.gate_spec(job.clone(), steps, worktree, environment);
        PreparedJob { spec, files: None, watched: None, session: None, gate_worktree: None, base_gate: None }
    }

    pub(crate) fn gate_spec(
        &self,
        job: JobId,
        steps: Vec<CommandLine>,
        worktree: &Worktree,
        environment: BTreeMap<String, String>,
    ) -> JobSpec {
        let withheld = self.withheld_from(&job, None, &environment);
        let mut spec = self.job_spec(job, steps, worktree, environment, withheld);
        self.wall_in(&mut spec, None);
        spec
    }

    /// `withheld`: names of variables that the job does not get.
    fn job_spec(
        &self,
        job: JobId,
        steps: Vec<CommandLine>,
        worktree: &Worktree,
        mut environment: BTreeMap<String, String>,
        withheld: Vec<String>,
    ) -> JobSpec {
        for (name, value) in NO_EDITOR {
            environment.entry((*name).to_owned()).or_insert_with(|| (*value).to_owned());
        }
        JobSpec {
            withheld,
            job,
            steps,
            directory: worktree.path.clone(),
            environment,
            input: None,
            timeout: Some(self.plan.timeouts.gate),
            kill_after: self.kill_after,
            heartbeat: self.heartbeat,
            output_limit: self.output_limit,
            status: None,
            on_orphan: self.facts.options.on_orphan,
            redact: self.redact.clone(),
            runner: None,
            wall: None,
        }
    }

    /// The variables of this process that the job does not get, by name.
    fn withheld_from(&self, job: &JobId, runner: Option<&Runner>, own: &BTreeMap<String, String>) -> Vec<String> {
        let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
        let lane = job.lane.as_ref().and_then(|lane| self.plan.find(lane)).map(|lane| self.plan.lane(lane));
        let asked = lane.iter().flat_map(|lane| &lane.user_setup).flat_map(|service| &service.env_vars);
        let wanted: Vec<&str> = asked.map(|variable| variable.name.as_str()).collect();
        let receiver = Receiver { role: &job.role, runner, own, wanted: &wanted };
        let withheld = self.withheld.of(names.iter().map(String::as_str), &receiver);
        withheld.into_iter().map(str::to_owned).collect()
    }

    pub(in crate::executor) fn lane_environment(
        &self,
        lane: LaneIndex,
        state: &RunState,
        worktree: &Path,
    ) -> BTreeMap<String, String> {
        let (plan, lane_state) = (self.plan.lane(lane), state.lane(lane));
        let mut environment = plan.env.clone();
        environment.entry("COMPOSE_PROJECT_NAME".to_owned()).or_insert_with(|| self.compose_project(&plan.id));
        environment.extend(prefixed([
            ("RUN_ID", self.facts.run_id.to_string()),
            ("PHASE", self.plan.phase.to_string()),
            ("LANE", plan.id.to_string()),
            ("WORKTREE", worktree.to_string_lossy().into_owned()),
            ("BASE_COMMIT", lane_state.base().unwrap_or(&self.facts.base_commit).to_string()),
            ("PORT", lane_state.port().to_string()),
        ]));
        environment
    }

    /// A lane's environment for a job in another worktree.
    pub(in crate::executor) fn environment_at(
        &self,
        environment: &BTreeMap<String, String>,
        worktree: &Path,
    ) -> BTreeMap<String, String> {
        let mut environment = environment.clone();
        environment.extend(prefixed([("WORKTREE", worktree.to_string_lossy().into_owned())]));
        environment
    }

    /// A name for the lane that no other lane has on this machine: compose takes that of the directory, which is a slot's
    /// number.
    fn compose_project(&self, lane: &LaneId) -> String {
        let place = self.repository.main_worktree();
        let name = place.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let own = &sha256(format!("{}\n{}", place.display(), self.facts.run_id))[..6];
        let name = format!("{name}-{own}-{}", lane.as_str().to_lowercase());
        // What compose takes: it begins with a letter or a digit.
        let name = name.replace(|character: char| !character.is_ascii_alphanumeric() && character != '_', "-");
        name.trim_start_matches(['-', '_']).to_owned()
    }

    fn attempt(
        &self,
        job: &JobId,
        lane: LaneIndex,
        agent: usize,
        state: &RunState,
        worktree: &Worktree,
    ) -> Result<PreparedJob> {
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let worker = &lane_state.agents()[agent];
        let who = &*self.plan.with_runner(&plan.agents[agent], worker.fallback().map(String::as_str));
        let task = &who.tasks[worker.task];
        let directory = self.run.job(job);
        let status = self.lane_directory(lane).status_file(&who.name);
        let files = BriefFiles { directory, status };
        let runner = self.plan.runner_for(who, task);
        let mut environment = self.lane_environment(lane, state, &worktree.path);
        environment.extend(files.environment((who, task), job.number, plan.retries));
        environment.extend(self.git_trace(&BriefFiles::git_trace(&files.directory)));
        if !self.plan.gates.edit.is_empty() {
            let commands = serde_json::to_string(&self.plan.gates.edit).unwrap_or_default();
            environment.extend(prefixed([("EDIT_GATE", commands)]));
        }
        let withheld = self.withheld_from(job, runner, &environment);
        let unset = |(name, _): &(&String, &String)| withheld.contains(*name) || std::env::var_os(name).is_none();
        for (name, value) in runner.iter().flat_map(|runner| &runner.environment).filter(unset) {
            environment.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let session = runner.and_then(|runner| lane_state.continued_session(plan, agent, runner));
        let command = attempt_command(who, task, runner, session, &files);
        let mut spec = self.job_spec(job.clone(), vec![command], worktree, environment, withheld);
        spec.runner = worker.fallback().cloned();
        self.wall_in(&mut spec, Some((runner, &files)));
        let session = session.cloned();
        let mut prepared =
            PreparedJob { spec, files: None, watched: None, session, gate_worktree: None, base_gate: None };
        let timeout = who.time_limit(worker.task, &self.plan.timeouts, self.facts.options.specialist_timeout);
        prepared.spec.timeout = Some(timeout);
        prepared.spec.status = Some(StatusSpec {
            path: files.status.clone(),
            agent: who.name.to_string(),
            task: task.id.to_string(),
            round: who.round.to_string(),
            retry_count: worker.retries,
        });
        let reads_stdin = runner.is_none_or(|runner| runner.prompt == PromptWay::Stdin);
        prepared.spec.input = reads_stdin.then(|| files.prompt());
        prepared.watched = Some(Watched {
            lane,
            agent: who.name.clone(),
            worktree: worktree.path.clone(),
            tool_calls: match runner.filter(|runner| runner.reports_tool_calls()) {
                Some(runner) => CallSource::Output(process::output_log(&files.directory), Box::new(runner.clone())),
                None => CallSource::File(files.tool_calls()),
            },
        });
        let failures = worker.failure_context(&task.id);
        let task = task_file(&self.plan.phase, plan, task, &worktree.path, &failures);
        let prompt = self.prompt(job, lane, agent, state)?;
        let contents = vec![
            (BriefFiles::PROMPT, self.redactor.redact(&prompt).into_owned().into_bytes()),
            (BriefFiles::TASK, self.redacted(task)),
            (BriefFiles::FAILURE_CONTEXT, self.redacted(json!(failures))),
        ];
        prepared.files = Some((files, contents));
        Ok(prepared)
    }

    /// Launches a job whose worktree has everything that it gets: where the variables of this process lead depends on what
    /// is there.
    pub(in crate::executor) fn launch(&self, directory: &Path, spec: &JobSpec) -> Result<process::Launched> {
        let mut spec = spec.clone();
        self.surroundings.write_own_directories(&spec.directory)?;
        for (name, value) in self.surroundings.for_job(&spec.directory, &spec.environment) {
            if spec.environment.contains_key(name) || spec.withheld.iter().any(|withheld| withheld == name) {
                continue;
            }
            match value {
                Some(value) => drop(spec.environment.insert(name.to_owned(), value)),
                None => spec.withheld.push(name.to_owned()),
            }
        }
        if spec.job.is_attempt() {
            self.keep_program(&mut spec);
        }
        Ok(process::launch(&self.program, directory, &spec)?)
    }

    /// An agent's program may be installed in the user's checkout only, as the command line of a project's dependencies is, or
    /// be linked to it.
    fn keep_program(&self, spec: &mut JobSpec) {
        if let [CommandLine::Arguments(words), ..] = spec.steps.as_mut_slice()
            && let Some(program) = words.first_mut().filter(|program| !program.contains('/'))
            && let Some((own, path)) = self.surroundings.path().zip(spec.environment.get("PATH"))
            && process::find_program(path, program).is_none_or(|it| linked_directories::is_written(&it))
            && let Some(found) = process::find_program(own, program)
        {
            *program = found.to_string_lossy().into_owned();
        }
    }

    fn redacted(&self, mut value: Value) -> Vec<u8> {
        self.redactor.clean_json(&mut value);
        format!("{value:#}\n").into_bytes()
    }

    fn prompt(&self, job: &JobId, lane: LaneIndex, agent: usize, state: &RunState) -> Result<String> {
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let (worker, who) = (&lane_state.agents()[agent], &plan.agents[agent]);
        let task = &who.tasks[worker.task];
        let base = lane_state.base().unwrap_or(&self.facts.base_commit);
        let head = worker.head.as_ref().or(lane_state.head()).unwrap_or(base);
        // One that an outage kept from its work says only that.
        let was_out = |number: &u32| worker.past.iter().any(|it| it.attempt == *number && it.failure.kind.is_outage());
        let before = (1..job.number).rev().find(|number| !was_out(number));
        let last_words = before.map(|number| self.last_words(&JobId { number, ..job.clone() }, LAST_WORDS));
        let past = PastFailures::new(&worker.lessons(&task.id), last_words.unwrap_or_default());
        let (reports, remarks) = (self.reports(lane, state), lane_state.remarks());
        let candidates = candidates(lane_state, plan);
        let commits = [lane_state.first_base(), state.integration(), Some(head)];
        let same_numbers = self.same_numbers((who, worker), commits).unwrap_or_default();
        let values = Values {
            base: base.as_str(),
            head: head.as_str(),
            branch: lane_state.workplace(plan, agent).map_or("", |worktree| worktree.branch.as_str()),
            reports: &reports,
            candidates: &candidates,
            remarks: &remarks,
            done: who.tasks[..worker.task].iter().map(Task::title).collect(),
            changed: &worker.changed,
            decisions: &worker.decisions,
            last_words: &past.last_words,
            refusals: &worker.refusals.lines(),
            complaints: &past.complaints,
            left_out: &self.reported_left_out(lane),
            same_numbers: &same_numbers,
            attempt: job.number,
            failures: &past.failures,
            last_chance: worker.rolled_back,
            salvaged: worker.salvaged.last().map(String::as_str),
            ..Values::planned(&self.plan, plan, agent, task)
        };
        Ok(Templates::new(&self.plan.prompts)?.render(who.round, &values)?)
    }

    /// The files of an implementer that have the same number as one that the integration branch got since `base`: up to `head`,
    /// or where that has no work, because the lane was built again after a conflict, in the work that is kept. None where a
    /// commit is damaged: nothing else depends on them.
    fn same_numbers(
        &self,
        (who, worker): (&Agent, &AgentState),
        [base, branch, head]: [Option<&CommitId>; 3],
    ) -> Option<Vec<String>> {
        let (base, branch, head) = (base?, branch?, head.filter(|_| who.round == Round::Implementation)?);
        let kept = || self.repository.commit_at(worker.salvaged.last()?).ok()?;
        let work = if self.repository.is_ancestor(head, branch).ok()? { kept()? } else { head.clone() };
        let clashes = self.repository.same_numbers(base, [branch, &work]).ok()?;
        Some(clashes.into_iter().map(|(own, there)| format!("{own} beside {there}")).collect())
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
                regular_file::read_left(&report_left(&self.run.job(&job))).or_else(|| self.last_message(&job))?;
            Some(ReportValues { agent: who.name.to_string(), text })
        };
        plan.round(Round::Requirements).filter_map(of_agent).collect()
    }
}

/// What a judge chooses from.
fn candidates<'a>(lane: &'a LaneState, plan: &'a Lane) -> Vec<CandidateValues<'a>> {
    let of_agent = |agent: usize| {
        let (worker, who) = (&lane.agents()[agent], &plan.agents[agent]);
        let runner = worker.made_with.as_ref().map_or(&who.runner, |made_with| &made_with.runner);
        let (number, size) = (who.candidate?, worker.size.unwrap_or_default().to_string());
        let (base, head) = (worker.start.as_ref()?.as_str(), worker.head.as_ref()?.as_str());
        Some(CandidateValues { number, runner, model: who.options.model.as_deref(), base, head, size })
    };
    lane.passed_candidates(plan).filter_map(of_agent).collect()
}

/// The task's or the agent's command, or the one that continues the session of the attempt before, where nothing was reset
/// since.
fn attempt_command(
    who: &Agent,
    task: &Task,
    runner: Option<&Runner>,
    session: Option<&Session>,
    files: &BriefFiles,
) -> CommandLine {
    let Some(runner) = runner else { return task.command.as_ref().unwrap_or(&who.command).clone() };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (prompt, attempt) = (text(&files.prompt()), text(&files.directory));
    let agent = files.status.parent().map(text).unwrap_or_default();
    let places = [("prompt_file", prompt.as_str()), ("attempt_directory", &attempt), ("agent_directory", &agent)];
    runner.invocation(&who.command, &who.options, session.map(|session| session.id.as_str()), &places)
}
