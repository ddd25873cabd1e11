//! The messages of commits that Lanewright makes of agents' work, from a template of the user's.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{PromptError, check_variables, environment, names, render};

/// As messages call the template.
const NAME: &str = "commit_message";

/// What a template of a commit's message can show. `docs/prompts.md` describes each value.
#[derive(Debug, Clone, Serialize)]
pub struct CommitValues<'a> {
    pub phase: &'a str,
    pub run: &'a str,
    pub lane: &'a str,
    pub lane_name: &'a str,
    pub agent: &'a str,
    pub attempt: u32,
    pub task: &'a str,
    pub task_name: &'a str,
    pub files: &'a [String],
}

/// The message without its trailers.
///
/// # Errors
/// What the template does wrong with these values.
pub fn commit_message(template: &str, values: &CommitValues<'_>) -> Result<String, PromptError> {
    let mut environment = environment();
    environment.add_template(NAME, template)?;
    Ok(render(&environment.get_template(NAME)?, values)?.trim().to_owned())
}

/// What is wrong with a template, whatever is committed.
///
/// # Errors
/// A template that cannot be parsed, that names what it has not, or that makes no message.
pub fn check_commit_message(template: &str) -> Result<(), PromptError> {
    let files = ["src/part.rs".to_owned()];
    let (lane_name, agent, task) = ("Part", "agent", "1");
    let values = CommitValues {
        phase: "P1",
        run: "r1",
        lane: "SL-1",
        lane_name,
        agent,
        attempt: 1,
        task,
        task_name: "Task",
        files: &files,
    };
    let mut environment = environment();
    environment.add_template(NAME, template)?;
    let known: BTreeSet<String> = names(&values);
    check_variables(&environment, &environment.get_template(NAME)?, &known)?;
    let of_squash = CommitValues { lane_name: "", task: "", files: &[], ..values.clone() };
    for values in [&values, &of_squash] {
        if commit_message(template, values)?.is_empty() {
            return Err(PromptError::of(NAME, "the message may be empty: use for example `lane` and `task_name`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{CommitValues, check_commit_message, commit_message};

    #[test]
    fn commit_message_template_is_checked() {
        let told = |template: &str| check_commit_message(template).map_err(|error| error.reason);
        assert_eq!(told("{{ lane }}: {{ task_name }}{% if files %} ({{ files | length }}){% endif %}"), Ok(()));
        let unknown = told("{% if false %}{{ lame }}{% endif %}x").unwrap_err();
        assert!(unknown.starts_with("`lame` is none of agent, attempt, files, lane,"), "{unknown}");
        assert!(told("{{ lane").unwrap_err().contains("syntax error"));
        assert!(told("{{ lane_name }}").unwrap_err().contains("empty"));
        assert!(told("{{ lane | nothing }}").unwrap_err().contains("unknown filter"));
    }
    #[test]
    fn examples_of_the_documentation_make_messages() {
        let page = include_str!("../../../../docs/prompts.md");
        let templates = page.lines().filter_map(|line| line.strip_prefix("commit_message = \"")?.strip_suffix('"'));
        let (lane, lane_name, agent, task) = ("SL-API", "", "engineer", "1");
        let (phase, run, attempt, task_name) = ("P1", "r1", 1, "add the route");
        let values = CommitValues { phase, run, lane, lane_name, agent, attempt, task, task_name, files: &[] };
        let made = templates.map(|template| {
            check_commit_message(template).unwrap();
            commit_message(template, &values).unwrap()
        });
        assert_eq!(made.collect::<Vec<_>>(), ["P1/SL-API: add the route", "feat(sl-api): add the route"]);
    }
}
