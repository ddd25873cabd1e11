//! Candidates: several agents that do the same tasks, of which one is chosen, and the judge that chooses.

use lanewright_model::plan::AgentWorktrees;
use lanewright_model::{Agent, AgentName, Round};

use super::agents::{Context, LaneContext, does_tasks, runner_command};
use super::names::{id, unique};
use super::order::called;
use crate::draft::{AgentDraft, CandidatesDraft, LaneDraft};
use crate::faults::{Faults, quoted};
use crate::source_text::{At, value};

impl CandidatesDraft {
    fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::Each(runners) => runners.len(),
        }
    }
}

/// Gives the candidates of the lane to the agent that does its tasks, and adds the judge.
pub(super) fn assign(drafts: &mut Vec<AgentDraft>, lane: &LaneDraft, context: &Context<'_>) {
    let faults = context.faults;
    for draft in drafts.iter().filter(|draft| !does_tasks(draft)) {
        if let Some(own) = &draft.candidates {
            faults.error_with(
                own.span,
                "only an implementation agent can have candidates",
                "remove `candidates` there",
            );
        }
    }
    for draft in drafts.iter().filter(|draft| does_tasks(draft)) {
        let candidates = draft.candidates.as_ref().or(lane.candidates.as_ref());
        if let (Some(CandidatesDraft::Each(_)), Some(runner)) = (candidates.map(|it| &it.value), &draft.program.runner)
        {
            let message = "a list of `candidates` has the runners, so `runner` has no effect";
            faults.warning(runner.span, message, "remove one of them");
        }
    }
    let workers = drafts.iter().filter(|draft| does_tasks(draft)).count();
    let mut found = None;
    for draft in drafts.iter_mut().filter(|draft| does_tasks(draft)) {
        draft.candidates = draft.candidates.take().or_else(|| lane.candidates.clone());
        found = draft.candidates.clone().filter(|candidates| candidates.value.count() > 1).or(found);
        if let Some(CandidatesDraft::Each(runners)) = value(&draft.candidates)
            && !draft.program.is_given()
            && !lane.program.is_given()
        {
            draft.program.runner = runners.first().map(|first| {
                let (runner, _) = runner_and_model(first, context);
                At::new(runner, first.span)
            });
        }
    }
    let judges = drafts.iter().filter(|draft| value(&draft.round) == Some(Round::Judge));
    let judges: Vec<_> = judges.map(|draft| draft.round.as_ref().map_or(draft.span, |round| round.span)).collect();
    if let [_, second, ..] = judges[..] {
        faults.error_with(second, format!("lane {} has several judges", called(lane)), "keep one of them");
    }
    let Some(candidates) = found else {
        let nothing = format!("lane {} has no candidates, so there is nothing to judge", called(lane));
        let help = "add `candidates`, or remove the judge";
        if let Some(first) = judges.first() {
            faults.error_with(*first, nothing, help);
        } else if let Some(judge) = &lane.judge {
            faults.warning(judge.span, nothing, help);
        }
        return;
    };
    if workers > 1 {
        let message =
            format!("lane {} has {workers} implementation agents, and candidates do the work of one", called(lane));
        let help = "divide the lane, or write `candidates = 1`";
        faults.error_with(candidates.span, message, help);
    }
    if let Some(off) = lane.agent_worktrees.as_ref().filter(|choice| choice.value == AgentWorktrees::Off) {
        let message = "candidates need worktrees of their own, and `agent_worktrees` is off";
        faults.error_with(off.span, message, "remove `agent_worktrees`, or write `candidates = 1`");
    }
    let lists = drafts.iter().filter_map(|draft| draft.tasks.as_ref()).chain(&lane.tasks);
    for task in lists.flatten() {
        if let Some(kind) = task.kind.as_ref().filter(|kind| kind.value.is_human()) {
            let message = "a task for a person cannot be done by several candidates";
            faults.error_with(kind.span, message, "make it a lane of its own, or write `candidates = 1`");
        }
    }
    if let Some(judge) = lane.judge.as_ref().filter(|_| judges.is_empty()) {
        let (runner, model) = runner_and_model(judge, context);
        let mut draft = AgentDraft { span: judge.span, ..AgentDraft::default() };
        draft.name = Some(At::new(Round::Judge.word().to_owned(), judge.span));
        draft.round = Some(At::new(Round::Judge, judge.span));
        draft.program.runner = Some(At::new(runner, judge.span));
        draft.options.model = model.map(|model| At::new(model, judge.span));
        drafts.push(draft);
    }
}

/// The agents of the lane, with one for each candidate.
pub(super) fn expand(agents: Vec<(&AgentDraft, Agent)>, around: &LaneContext<'_>) -> Vec<Agent> {
    let faults = around.context.faults;
    let mut names = Vec::new();
    let mut all = Vec::new();
    for (draft, agent) in agents {
        let candidates = draft.candidates.as_ref().filter(|_| agent.round == Round::Implementation);
        let made = candidates.map_or_else(|| vec![agent.clone()], |candidates| each(draft, &agent, candidates, around));
        names.extend(made.iter().map(|agent| {
            let span = candidates.map_or(draft.span, |candidates| candidates.span);
            At::new(agent.name.to_string(), span)
        }));
        all.extend(made);
    }
    // Names as they are written were compared before.
    if all.iter().any(|agent| agent.candidate.is_some()) {
        unique(names.iter(), "an agent", true, faults);
    }
    all
}

fn each(draft: &AgentDraft, agent: &Agent, candidates: &At<CandidatesDraft>, around: &LaneContext<'_>) -> Vec<Agent> {
    let context = around.context;
    let count = candidates.value.count();
    let number = |at: usize| u32::try_from(at + 1).ok().filter(|_| count > 1);
    let named = |base: &str, at: usize| match number(at) {
        Some(number) => {
            let name = At::new(format!("{base}-{number}"), candidates.span);
            id(&name, AgentName::new, "an agent", context.faults)
        }
        None => AgentName::new(base).ok(),
    };
    let made = (0..count).map(|at| match &candidates.value {
        CandidatesDraft::Count(_) => {
            Some(Agent { name: named(agent.name.as_str(), at)?, candidate: number(at), ..agent.clone() })
        }
        CandidatesDraft::Each(runners) => {
            let written = &runners[at];
            let program = if draft.program.is_given() { &draft.program } else { &around.lane.program };
            if let Some(command) = &program.command {
                let message =
                    "a `command` and a list of `candidates` exclude each other: the runners have the commands";
                context.faults.error_with(
                    command.span,
                    message,
                    "write how many candidates there are, or remove `command`",
                );
                return None;
            }
            let flag = context.fallbacks.runner.filter(|_| context.fallbacks.runner_outranks_plan);
            let (runner, model) = match flag {
                Some(flag) => (flag.to_owned(), None),
                None => runner_and_model(written, context),
            };
            let command = runner_command(None, &At::new(runner.clone(), written.span), around)?;
            let name = named(draft.name.as_ref().map_or(runner.as_str(), |_| agent.name.as_str()), at)?;
            let mut options = agent.options.clone();
            options.model = model.or(options.model);
            Some(Agent { name, runner, command, options, candidate: number(at), ..agent.clone() })
        }
    });
    made.flatten().collect()
}

/// What is before the first colon, and what is behind it; a runner may have a colon in its name.
fn runner_and_model(written: &At<String>, context: &Context<'_>) -> (String, Option<String>) {
    let text = written.value.trim();
    match text.split_once(':').filter(|_| (context.runners)(text).is_none()) {
        Some((runner, model)) => {
            check_model(model, written, context.faults);
            (runner.to_owned(), Some(model.to_owned()))
        }
        None => (text.to_owned(), None),
    }
}

fn check_model(model: &str, written: &At<String>, faults: &Faults<'_>) {
    if model.trim().is_empty() || model.starts_with('-') {
        let message = format!("{} names no model behind the colon", quoted(&written.value));
        faults.error_with(written.span, message, "write for example `claude:opus`");
    }
}
