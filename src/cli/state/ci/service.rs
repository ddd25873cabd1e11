//! Where the output of a job is read, and so what can be typed there.

use lanewright_model::text::shell_line;
use lanewright_model::{Ci, RunId};
use lanewright_plan::settings::{Environment, Settings};

use crate::cli::CliError;
use crate::cli::args;
use crate::cli::look::report::ci;

/// An input of the workflow or pipeline, or an option of the command.
#[derive(Debug, Clone, Copy)]
pub(super) enum Input {
    Approve,
    Reject,
    Retry,
    Message,
    AcceptPlanChange,
}

impl Input {
    fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Retry => "retry",
            Self::Message => "message",
            Self::AcceptPlanChange => "accept_plan_change",
        }
    }
}

/// Commands about a run, which need a clone that has it.
const NEED_CLONE: [&str; 8] = [
    "lanewright resume",
    "lanewright retry",
    "lanewright rollback",
    "lanewright approve",
    "lanewright doctor",
    "lanewright clean",
    "lanewright publish",
    "git pull",
];

/// A service that starts jobs, or a user with a shell.
#[derive(Debug)]
pub(super) struct Service {
    kind: Ci,
    /// The plan as it was named.
    plan: String,
    /// What a job and its repetitions share, in words; `None`: each command is on its own.
    pub(super) cause: Option<String>,
    /// The branch that the service started the job for, which it may have checked out without a name.
    pub(super) branch: Option<String>,
}

impl Service {
    pub(super) fn of(settings: &Settings, environment: &Environment, arguments: &args::Ci) -> Self {
        let kind = ci::service(settings, environment);
        let of = |name: &str| environment.get(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty());
        let cause = match kind {
            Ci::Github => of("GITHUB_RUN_ID").map(|id| format!("run {id} of GitHub Actions")),
            Ci::Gitlab => of("CI_PIPELINE_ID").map(|id| format!("pipeline {id} of GitLab")),
            Ci::Auto | Ci::None => None,
        };
        let branch = match kind {
            Ci::Github if of("GITHUB_REF_TYPE") == Some("branch") => of("GITHUB_REF_NAME"),
            Ci::Gitlab => of("CI_COMMIT_BRANCH"),
            _ => None,
        };
        let (plan, branch) = (arguments.plan.to_string_lossy().into_owned(), branch.map(str::to_owned));
        Self { kind, plan, cause, branch }
    }

    /// What starts the next job, with these inputs.
    pub(super) fn again(&self, inputs: &[(Input, &str)]) -> String {
        let what = match self.kind {
            Ci::Github => "run the workflow again",
            Ci::Gitlab => "run the pipeline again",
            Ci::Auto | Ci::None => {
                let flags = inputs.iter().map(|(input, _)| format!("--{}", input.word().replace('_', "-")));
                let flags: Vec<String> = flags.collect();
                let words = flags.iter().zip(inputs).flat_map(|(flag, (_, value))| [flag.as_str(), value]);
                let words = ["lanewright", "ci", &self.plan].into_iter().chain(words);
                return shell_line(words.filter(|word| !word.is_empty()));
            }
        };
        let named = inputs.iter().map(|(input, value)| match value {
            &"" => format!("{} = true", self.name(*input)),
            value => format!("{} = {value}", self.name(*input)),
        });
        let named: Vec<String> = named.collect();
        if named.is_empty() { what.to_owned() } else { format!("{what} with {}", named.join(" and ")) }
    }

    /// What starts the next job with some inputs, or with others.
    pub(super) fn again_or(&self, inputs: &[(Input, &str)], others: &[(Input, &str)]) -> String {
        let (again, other) = (self.again(inputs), self.again(others));
        match other.split_once(" again with ").filter(|_| !self.is_shell()) {
            Some((_, other)) => format!("{again}, or with {other}"),
            None => format!("{again}, or {other}"),
        }
    }

    /// Where the output is not read on a machine that has the run: what has it there, and gives it back.
    pub(super) fn elsewhere(&self, run: &RunId) -> Option<String> {
        (!self.is_shell()).then(|| {
            format!(
                "or on your machine: lanewright state pull {run}, a command from above, lanewright state push {run}"
            )
        })
    }

    fn is_shell(&self) -> bool {
        matches!(self.kind, Ci::Auto | Ci::None)
    }

    fn name(&self, input: Input) -> String {
        match self.kind {
            Ci::Gitlab => format!("LANEWRIGHT_CI_{}", input.word().to_uppercase()),
            _ => input.word().to_owned(),
        }
    }

    /// An error whose hints can be typed where they are read. `run`: what the job was about.
    pub(super) fn in_its_words(&self, mut error: CliError, run: Option<&RunId>) -> CliError {
        let mut needs_clone = false;
        for hint in &mut error.hints {
            if let Some((what, _)) =
                hint.split_once(": ").filter(|(_, command)| command.contains("--accept-plan-change"))
            {
                *hint = format!("{what}: {}", self.again(&[(Input::AcceptPlanChange, "")]));
            } else {
                needs_clone |= !self.is_shell() && NEED_CLONE.iter().any(|command| hint.contains(command));
            }
        }
        if needs_clone {
            let of_run = run.map(|run| format!(" {run}")).unwrap_or_default();
            let hint = format!(
                "these commands are for your machine: lanewright state pull{of_run}, then the command, then lanewright state \
                 push{of_run}; then {}",
                self.again(&[])
            );
            error.hints.push(hint);
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(kind: Ci) -> Service {
        Service { kind, plan: "my plan.toml".into(), cause: None, branch: None }
    }

    #[test]
    fn next_job_is_named_as_its_service_names_it() {
        let inputs = [(Input::Reject, "A"), (Input::Message, "what to change")];
        let again = |kind| service(kind).again(&inputs);
        assert_eq!(again(Ci::Github), "run the workflow again with reject = A and message = what to change");
        let gitlab = "run the pipeline again with LANEWRIGHT_CI_REJECT = A and LANEWRIGHT_CI_MESSAGE = what to change";
        assert_eq!(again(Ci::Gitlab), gitlab);
        assert_eq!(again(Ci::None), "lanewright ci 'my plan.toml' --reject A --message 'what to change'");
        let either = |kind| service(kind).again_or(&[(Input::Approve, "A")], &inputs);
        let github = "run the workflow again with approve = A, or with reject = A and message = what to change";
        assert_eq!(either(Ci::Github), github);
        let shell = "lanewright ci 'my plan.toml' --approve A, or lanewright ci 'my plan.toml' --reject A";
        assert!(either(Ci::None).starts_with(shell));
        let accept = |kind| service(kind).again(&[(Input::AcceptPlanChange, "")]);
        assert_eq!(accept(Ci::Github), "run the workflow again with accept_plan_change = true");
        assert_eq!(accept(Ci::None), "lanewright ci 'my plan.toml' --accept-plan-change");
        assert_eq!(service(Ci::Gitlab).again(&[]), "run the pipeline again");
    }
}
