//! Which runner makes an attempt, and whose account it uses.

use std::borrow::Cow;

use super::agent_options::AgentOptions;
use super::event::MadeWith;
use super::job::{JobId, JobRole};
use super::plan::{Agent, Plan, Task};
use super::runner::Runner;

impl Plan {
    pub fn runner(&self, agent: &Agent) -> Option<&Runner> {
        self.runners.get(&agent.runner)
    }

    /// The runner that `agent` does `task` with, where one is described; a task with a command of its own has none.
    pub fn runner_for(&self, agent: &Agent, task: &Task) -> Option<&Runner> {
        self.runner(agent).filter(|_| task.command.is_none())
    }

    /// The account of the service that `agent` does `task` with: outages and limits are an account's. That of its runner;
    /// where it has a command of its own, that command.
    pub fn account(&self, agent: &Agent, task: &Task) -> Cow<'_, str> {
        match (&task.command, self.runner(agent)) {
            (None, Some(runner)) => runner.account.clone().unwrap_or_else(|| agent.runner.clone()).into(),
            (command, _) => command.as_ref().unwrap_or(&agent.command).to_string().into(),
        }
    }

    /// What is refused when a service refuses `agent` in `task`: its runner, with the model that it asks for; where it has a command
    /// of its own, that command.
    pub fn refusable(&self, agent: &Agent, task: &Task) -> Cow<'_, str> {
        match (&agent.options.model, self.runner_for(agent, task)) {
            (Some(model), Some(_)) => format!("{}:{model}", agent.runner).into(),
            (None, Some(_)) => agent.runner.clone().into(),
            (_, None) => self.account(agent, task),
        }
    }

    /// What an attempt of `agent` at `task` is made with, by its own runner or the one of that name; `None`: by a command.
    pub fn made_with(&self, agent: &Agent, task: &Task, fallback: Option<&str>) -> Option<MadeWith> {
        let who = self.with_runner(agent, fallback);
        self.runner_for(&who, task)?;
        let runner = who.runner.clone();
        let other = |name: Cow<'_, str>| Some(name.into_owned()).filter(|name| *name != runner);
        let (account, refusable) = (other(self.account(&who, task)), other(self.refusable(&who, task)));
        Some(MadeWith { account, refusable, is_fallback: fallback.is_some(), runner })
    }

    /// The runners that `agent` may do `task` with in place of its own, best first.
    pub fn fallback<'a>(&'a self, agent: &'a Agent, task: &Task) -> impl Iterator<Item = &'a str> + use<'a> {
        let given = agent.fallback.as_ref().or(self.runner(agent).map(|runner| &runner.fallback));
        let given = given.filter(|_| task.command.is_none()).map_or(&[][..], Vec::as_slice);
        let is_other = move |name: &&String| **name != agent.runner && self.runners.contains_key(*name);
        given.iter().filter(is_other).map(String::as_str)
    }

    /// `agent` as it works with the runner of that name; `None`: with its own. The model and the effort are words of its own.
    pub fn with_runner<'a>(&self, agent: &'a Agent, name: Option<&str>) -> Cow<'a, Agent> {
        let Some((name, runner)) = name.and_then(|name| self.runners.get_key_value(name)) else {
            return Cow::Borrowed(agent);
        };
        let options = AgentOptions { model: None, effort: None, ..agent.options.clone() };
        Cow::Owned(Agent { runner: name.clone(), command: runner.command.clone(), options, ..agent.clone() })
    }

    /// The runner of the attempt `job`, where one is described. `fallback`: the one that was used in place of the agent's own.
    pub fn runner_of(&self, job: &JobId, fallback: impl FnOnce() -> Option<String>) -> Option<&Runner> {
        let JobRole::Attempt { agent, task } = &job.role else { return None };
        let lane = self.lane(self.find(job.lane.as_ref()?)?);
        let agent = lane.agents.iter().find(|known| known.name == *agent)?;
        let task = agent.tasks.iter().find(|known| known.id == *task);
        if task.is_some_and(|task| task.command.is_some()) {
            return None;
        }
        // Few agents have any.
        let may_change = task.is_none_or(|task| self.fallback(agent, task).next().is_some());
        let other = if may_change { fallback() } else { None };
        other.and_then(|name| self.runners.get(&name)).or_else(|| self.runner(agent))
    }
}
