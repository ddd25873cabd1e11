//! Which variables of Lanewright's own environment a job does not get (decision 65). Pure.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::LazyLock;

use lanewright_model::{JobRole, Runner, is_foreign_git_variable};
use regex::Regex;
use serde::Deserialize;

use super::catalogue::known;

const TEXT: &str = include_str!("../../templates/withheld.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    jobs: Vec<String>,
    agents: Vec<String>,
    keys: Vec<String>,
    shared: Vec<String>,
}

struct Rules {
    jobs: Patterns,
    agents: Patterns,
    /// Keys of models: those of every included runner, because a command of the user's own may start any of them.
    keys: Patterns,
    /// What programs of agents set for the programs that they start.
    marks: Patterns,
    shared: Patterns,
}

/// A test reads the lists.
static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let Lists { jobs, agents, keys, shared } = toml::from_str(TEXT).unwrap_or_default();
    let named =
        known().flat_map(|text| text.key.iter().flat_map(|key| &key.variables).chain(text.pass_env.iter().flatten()));
    let marks = known().flat_map(|text| text.drop_env.iter().flatten());
    Rules {
        jobs: Patterns::new(&jobs),
        agents: Patterns::new(&agents),
        keys: Patterns::new(keys.iter().chain(named)),
        marks: Patterns::new(marks),
        shared: Patterns::new(&shared),
    }
});

/// Names of variables, in which `*` stands for any text, in capitals or not.
#[derive(Debug, Clone, Default)]
struct Patterns(Option<Regex>);

impl Patterns {
    fn new<'a>(names: impl IntoIterator<Item = &'a String>) -> Self {
        let names: Vec<String> = names.into_iter().map(|name| regex::escape(name).replace(r"\*", ".*")).collect();
        let all = (!names.is_empty()).then(|| Regex::new(&format!("^(?i:{})$", names.join("|"))).ok());
        Self(all.flatten())
    }

    fn matches(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|names| names.is_match(name))
    }
}

/// Whether the variable called `name` is for places that lanes share: a home, a cache or a directory for temporary files.
pub fn is_shared_place(name: &str) -> bool {
    RULES.shared.matches(name)
}

/// Who gets variables.
#[derive(Debug, Clone, Copy)]
pub struct Receiver<'a> {
    pub role: &'a JobRole,
    /// That of the agent.
    pub runner: Option<&'a Runner>,
    /// What the plan sets, which reaches its jobs in any case.
    pub own: &'a BTreeMap<String, String>,
    /// What the user is to set for the lane, by the plan: agents get it unless it pushes.
    pub wanted: &'a [&'a str],
}

/// Says which variables jobs do not get; `Default` is without exceptions of the user's.
#[derive(Debug, Clone, Default)]
pub struct Withheld {
    passed: Patterns,
}

impl Withheld {
    /// Except what the setting `pass_env` names.
    pub fn new(pass_env: &[String]) -> Self {
        Self { passed: Patterns::new(pass_env) }
    }

    /// Those of `names` that the job does not get.
    pub fn of<'n>(&self, names: impl IntoIterator<Item = &'n str>, job: &Receiver<'_>) -> Vec<&'n str> {
        let of_runner = |names: fn(&Runner) -> Vec<&String>| Patterns::new(job.runner.map(names).unwrap_or_default());
        let needed = of_runner(|runner| runner.key.variables.iter().chain(&runner.pass_env).collect());
        let marks = of_runner(|runner| runner.drop_env.iter().collect());
        let is_withheld = |name: &str| {
            let denied = match job.role {
                JobRole::Setup { .. } => false,
                role if role.is_gate() => RULES.jobs.matches(name),
                _ => RULES.jobs.matches(name) || RULES.agents.matches(name) && !job.wanted.contains(&name),
            };
            let is_key = || RULES.keys.matches(name) || needed.matches(name);
            !self.passed.matches(name) && (RULES.marks.matches(name) || marks.matches(name) || denied && !is_key())
        };
        let mut withheld: Vec<&str> =
            names.into_iter().filter(|name| !job.own.contains_key(*name) && is_withheld(name)).collect();
        withheld.sort_unstable();
        withheld
    }

    /// Whether neither agents nor gates get the variable called `name`, whatever a plan wants.
    pub fn is_withheld_from_all(&self, name: &str) -> bool {
        RULES.jobs.matches(name) && !RULES.keys.matches(name) && !self.passed.matches(name)
    }

    /// What agents of any runner could use to push, or to act for a job of a CI service, of the variables that are called
    /// `names`: those that are withheld from agents, and those that `pass_env` lets through although they are listed.
    pub fn report<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Report<'n> {
        let mut report = Report::default();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        for name in names {
            let is_listed = (RULES.jobs.matches(name) || RULES.agents.matches(name)) && !RULES.keys.matches(name);
            // Agents get none of these in any case.
            if is_listed && !is_foreign_git_variable(OsStr::new(name)) {
                let list = if self.passed.matches(name) { &mut report.passed } else { &mut report.withheld };
                list.push(name);
            }
        }
        report
    }
}

/// Variables that are listed as what agents do not get.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report<'n> {
    pub withheld: Vec<&'n str>,
    /// Agents get them, because the setting `pass_env` names them.
    pub passed: Vec<&'n str>,
}

#[cfg(test)]
mod tests {
    use lanewright_model::runner::RunnerText;
    use lanewright_model::{AgentName, CommandLine, TaskId};

    use super::*;
    use crate::runner::Catalogue;

    fn attempt() -> JobRole {
        JobRole::Attempt { agent: AgentName::new("agent").unwrap(), task: TaskId::new("task").unwrap() }
    }

    fn withheld<'n>(names: &[&'n str], role: &JobRole) -> Vec<&'n str> {
        let own = BTreeMap::new();
        Withheld::default().of(names.iter().copied(), &Receiver { role, runner: None, own: &own, wanted: &[] })
    }

    #[test]
    fn lists_of_withheld_variables_are_valid() {
        let lists: Lists = toml::from_str(TEXT).unwrap();
        for name in lists.jobs.iter().chain(&lists.agents).chain(&lists.keys).chain(&lists.shared) {
            assert!(name.bytes().all(|byte| byte.is_ascii_uppercase() || b"_*".contains(&byte)), "{name}");
        }
        let Rules { jobs, agents, keys, marks, shared } = &*RULES;
        assert!([jobs, agents, keys, marks, shared].iter().all(|names| names.0.is_some()));
    }

    #[test]
    fn agents_get_no_variable_that_pushes() {
        let names = [
            "LANEWRIGHT_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "GITLAB_TOKEN",
            "NPM_TOKEN",
            "CARGO_REGISTRY_TOKEN",
            "npm_token",
            "CI_JOB_TOKEN",
            "CI_JOB_ID",
            "CI_JOB_JWT_V2",
            "CI_REGISTRY_PASSWORD",
            "CI_REPOSITORY_URL",
            "MY_DEPLOY_KEY",
            "ACTIONS_RUNTIME_TOKEN",
            "ACTIONS_ID_TOKEN_REQUEST_URL",
            "ACTIONS_CACHE_URL",
            "GITHUB_ENV",
            "SSH_AUTH_SOCK",
            "GIT_SSH_COMMAND",
        ];
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        assert_eq!(withheld(&names, &attempt()), sorted);
        let others = [
            "PATH",
            "HOME",
            "CI",
            "GITHUB_ACTIONS",
            "GITLAB_CI",
            "LANEWRIGHT_MAX_TOKENS",
            "MAX_THINKING_TOKENS",
            "TOKENS",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "GITHUB_SHA",
            "CI_COMMIT_SHA",
            "AWS_SECRET_ACCESS_KEY",
            "HTTPS_PROXY",
        ];
        assert_eq!(withheld(&others, &attempt()), [] as [&str; 0]);
    }

    #[test]
    fn keys_of_models_reach_agents() {
        let known = Catalogue::default();
        let runners: Vec<Runner> = known.names().into_iter().map(|name| known.get(name).unwrap()).collect();
        let keys: Vec<&str> = runners.iter().flat_map(|it| &it.key.variables).map(String::as_str).collect();
        assert!(keys.contains(&"ANTHROPIC_AUTH_TOKEN") && keys.contains(&"CLAUDE_CODE_OAUTH_TOKEN"), "{keys:?}");
        let more = ["HF_TOKEN", "AWS_SESSION_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY"];
        assert_eq!(withheld(&[keys.as_slice(), &more].concat(), &attempt()), [] as [&str; 0]);
    }

    #[test]
    fn gates_keep_what_reaches_the_network() {
        let names = ["GITHUB_TOKEN", "CI_JOB_TOKEN", "NPM_TOKEN", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "CODECOV_TOKEN"];
        assert_eq!(withheld(&names, &JobRole::Tests), ["CI_JOB_TOKEN", "GITHUB_TOKEN"]);
        assert_eq!(withheld(&names, &JobRole::Setup { agent: None }), [] as [&str; 0]);
    }

    #[test]
    fn marks_of_programs_reach_no_job() {
        let marks = [
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_CHILD_SESSION",
            "CODEX_THREAD_ID",
            "GEMINI_CLI",
            "OPENCODE",
        ];
        for role in [attempt(), JobRole::Tests, JobRole::Setup { agent: None }] {
            assert_eq!(withheld(&marks, &role).len(), marks.len(), "{role:?}");
        }
        let chosen = [
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_MAX_RETRIES",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_SUBAGENT_MODEL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CODEX_HOME",
            "CODEX_API_KEY",
            "CODEX_SANDBOX",
            "GEMINI_API_KEY",
            "OPENCODE_CONFIG",
        ];
        assert_eq!(withheld(&chosen, &attempt()), [] as [&str; 0]);
    }

    #[test]
    fn setting_runner_and_plan_let_variables_through() {
        let names = ["GH_TOKEN", "A_TOKEN", "B_TOKEN", "C_TOKEN", "D_TOKEN", "MY_MARK"];
        let command = CommandLine::Shell("x".into());
        let text = "pass_env = ['A_*']\ndrop_env = ['MY_MARK']\nkey = { variables = ['B_TOKEN'] }";
        let runner = RunnerText { command: Some(command), ..toml::from_str(text).unwrap() }.complete().unwrap();
        let own = BTreeMap::from([("C_TOKEN".to_owned(), "of the plan".to_owned())]);
        let rules = Withheld::new(&["gh_token".to_owned()]);
        let (role, tests) = (attempt(), JobRole::Tests);
        let job = Receiver { role: &role, runner: Some(&runner), own: &own, wanted: &[] };
        assert_eq!(rules.of(names, &job), ["D_TOKEN", "MY_MARK"]);
        assert_eq!(rules.of(["GH_TOKEN"], &Receiver { role: &tests, runner: None, ..job }), [] as [&str; 0]);
        let wanted = Receiver { wanted: &["D_TOKEN", "GITHUB_TOKEN"], ..job };
        assert_eq!(
            rules.of(["D_TOKEN", "GITHUB_TOKEN"], &wanted),
            ["GITHUB_TOKEN"],
            "what pushes is not for a plan to want"
        );
        assert!(rules.is_withheld_from_all("GITHUB_TOKEN") && !rules.is_withheld_from_all("GH_TOKEN"));
        let report = rules.report(["PATH", "GH_TOKEN", "D_TOKEN", "GIT_SSH", "GIT_ASKPASS", "HF_TOKEN"]);
        assert_eq!(report, Report { withheld: vec!["D_TOKEN", "GIT_SSH"], passed: vec!["GH_TOKEN"] });
    }
}
