//! The plan of a lane that waits for its approval: what its requirements agents found, else the prompts of its tasks.

use lanewright_engine::executor::report_left;
use lanewright_files::regular_file;
use lanewright_model::{Agent, Plan, Round, Task};
use lanewright_store::RunDirectory;
use lanewright_view::history::{JobHistory, LaneHistory};
use lanewright_view::status::ending::PlanPart;

use super::last_output::LastOutput;

/// How many lines are read of the output of an agent that left no report; the prompts of others have as many.
const OUTPUT_LINES: usize = 40;

/// The parts of the plan of `lane`, each with the command that prints all of it.
pub(crate) fn proposed_plan(
    directory: &RunDirectory,
    plan: &Plan,
    lane: &LaneHistory,
    program: &[String],
    (run, plan_path): (&str, &str),
) -> Vec<PlanPart> {
    let Some(planned) = plan.find(&lane.id).map(|index| plan.lane(index)) else { return Vec::new() };
    let command = |words: &[&str]| program.iter().cloned().chain(words.iter().map(|word| (*word).to_owned())).collect();
    let found = planned.round(Round::Requirements).filter_map(|at| {
        let agent = &planned.agents[at];
        let is_its = |job: &JobHistory| job.job.is_attempt() && job.job.agent() == Some(&agent.name);
        let attempt = lane.jobs.last_ended(is_its)?;
        let job = &attempt.job;
        let report = report_left(&directory.job(job));
        let (text, whole) = match regular_file::read_left(&report) {
            Some(text) => (text, vec!["cat".to_owned(), report.to_string_lossy().into_owned()]),
            None => {
                let message = attempt.transcript.as_ref().map(|it| it.message.clone()).filter(|it| !it.is_empty());
                let output = LastOutput::new(directory.clone(), None);
                let text = message.unwrap_or_else(|| output.end_of(job, OUTPUT_LINES).1.join("\n"));
                (text, command(&["logs", run, lane.id.as_str(), agent.name.as_str()]))
            }
        };
        Some(PlanPart { from: format!("the plan by {}", agent.name), lines: lines(&text), whole })
    });
    let found: Vec<PlanPart> = found.filter(|part| !part.lines.is_empty()).collect();
    if !found.is_empty() {
        return found;
    }
    let prompts = planned.round(Round::Implementation).map(|at| prompts(&planned.agents[at]));
    let whole = command(&["plan", "show", plan_path, "--prompts"]);
    let part = PlanPart { from: format!("the plan of {}", lane.id), lines: prompts.flatten().collect(), whole };
    vec![part].into_iter().filter(|part| !part.lines.is_empty()).collect()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// `agent, task 1: what it is to do`, with the other lines of the prompt below, and the task's command.
fn prompts(agent: &Agent) -> Vec<String> {
    let own = agent.tasks.iter().filter(|task| !task.kind.is_human());
    let command = |task: &Task| task.command.as_ref().map(|command| format!("\n$ {command}")).unwrap_or_default();
    let text = |task: &Task| format!("{}, task {}: {}{}", agent.name, task.id, task.prompt.trim(), command(task));
    own.flat_map(|task| lines(&text(task))).collect()
}
