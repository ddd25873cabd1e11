//! Checks the repository's templates before a run: for every agent, with what can happen to it.

use std::collections::BTreeSet;

use lanewright_model::{Plan, Round};

use super::preview::tasks;
use super::values::TaskValues;
use super::{CandidateValues, PromptError, ReportValues, Templates, Values};

/// In place of a task's prompt, to see whether a template shows it.
const MARKER: &str = "LANEWRIGHT-TASK-PROMPT";

/// Values for what is not known before agents work.
struct Samples {
    texts: Vec<String>,
    reports: Vec<ReportValues>,
    candidates: Vec<CandidateValues<'static>>,
}

impl Samples {
    fn new(count: usize) -> Self {
        let texts = (0..count).map(|number| format!("sample {number}")).collect();
        let report = |number| ReportValues { agent: format!("agent{number}"), text: "A report.".to_owned() };
        let candidate = |number| CandidateValues {
            number: number as u32,
            runner: "sample",
            model: None,
            base: "BASE",
            head: "HEAD",
            size: "1 file changed, +1 -0".to_owned(),
        };
        let candidates = (1..=count).map(candidate).collect();
        Self { texts, reports: (0..count).map(report).collect(), candidates }
    }
}

/// Gives one optional value.
type Give = for<'a> fn(&mut Values<'a>, &'a Samples);

/// Every value that is there or not, depending on what happened before.
const OPTIONAL: [Give; 15] = [
    |values, samples| values.failures = &samples.texts,
    |values, samples| values.complaints = &samples.texts,
    |values, samples| values.left_out = &samples.texts,
    |values, samples| values.same_numbers = &samples.texts,
    |values, samples| values.refusals = &samples.texts,
    |values, samples| values.last_words = &samples.texts,
    |values, samples| values.changed = &samples.texts,
    |values, samples| values.decisions = &samples.texts,
    |values, samples| values.done = samples.texts.iter().map(String::as_str).collect(),
    |values, samples| values.remarks = &samples.texts,
    |values, samples| values.reports = &samples.reports,
    |values, samples| values.candidates = &samples.candidates,
    |values, _| values.salvaged = Some("refs/sample"),
    |values, _| values.branch = "sample",
    |values, _| values.last_chance = true,
];

/// Renders what the agents of the plan get, if the repository has templates. The result is what is probably not meant as
/// it is written.
///
/// # Errors
/// The first fault: a syntax error, a variable that does not exist, what fails with values that an attempt may have, or
/// a retry that gets the same prompt as the first attempt.
pub fn check(plan: &Plan) -> Result<Vec<PromptError>, PromptError> {
    let mut warnings = Vec::new();
    if plan.prompts.is_empty() {
        return Ok(warnings);
    }
    let templates = Templates::new(&plan.prompts)?;
    let [few, many] = [1, 40].map(Samples::new);
    let mut rounds = BTreeSet::new();
    for (lane, agent, task) in tasks(plan) {
        let round = lane.agents[agent].round;
        let first = Values::planned(plan, lane, agent, task);
        templates.check_variables(&first)?;
        templates.render(round, &first)?;
        templates.render(round, &with(&first, 2, OPTIONAL.iter(), &many))?;
        // The rest depends on the round much more than on the task.
        if rounds.insert(round) {
            every_combination(&templates, round, &first, [&few, &many])?;
            refuse_same_retry(&templates, round, &first, &few)?;
            warnings.extend(without_task(&templates, round, &first)?);
        }
    }
    Ok(warnings)
}

fn with<'a, 'g>(
    first: &Values<'a>,
    attempt: u32,
    given: impl Iterator<Item = &'g Give>,
    samples: &'a Samples,
) -> Values<'a> {
    let mut values = Values { attempt, ..first.clone() };
    given.for_each(|give| give(&mut values, samples));
    values
}

/// No optional value, each alone, all but each, and all.
fn every_combination<'a>(
    templates: &Templates<'_>,
    round: Round,
    first: &Values<'a>,
    [few, many]: [&'a Samples; 2],
) -> Result<(), PromptError> {
    for attempt in [1, 2] {
        let render = |values: Values<'a>| templates.render(round, &values).map(drop);
        render(with(first, attempt, [].iter(), few))?;
        render(with(first, attempt, OPTIONAL.iter(), many))?;
        for at in 0..OPTIONAL.len() {
            render(with(first, attempt, OPTIONAL[at..=at].iter(), few))?;
            render(with(first, attempt, OPTIONAL[..at].iter().chain(&OPTIONAL[at + 1..]), many))?;
        }
    }
    Ok(())
}

fn refuse_same_retry(
    templates: &Templates<'_>,
    round: Round,
    first: &Values<'_>,
    samples: &Samples,
) -> Result<(), PromptError> {
    let second = Values { attempt: 2, failures: &samples.texts, ..first.clone() };
    if templates.render(round, first)? != templates.render(round, &second)? {
        return Ok(());
    }
    let reason = "a retry gets the same prompt as the first attempt: include `history.md`, or use `failures`";
    Err(PromptError::of(format!("{round}.md"), reason))
}

/// That the template leaves out what the plan asks of the agent.
fn without_task(
    templates: &Templates<'_>,
    round: Round,
    first: &Values<'_>,
) -> Result<Option<PromptError>, PromptError> {
    let marked = Values { task: TaskValues { prompt: MARKER, ..first.task.clone() }, ..first.clone() };
    let is_shown = templates.render(round, &marked)?.contains(MARKER);
    let reason = "the prompt does not have `task.prompt`, the text of the task";
    Ok((!is_shown).then(|| PromptError::of(format!("{round}.md"), reason)))
}
