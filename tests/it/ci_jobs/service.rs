//! Services that run the jobs of the templates: each in a clone of its own, with the environment that the service gives, and
//! killed with all its processes where its machine dies.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value};

use crate::support::{Ended, Running, TestEnv, wait_until};

const GITHUB: &str = include_str!("../../../templates/ci/github.yml");
const GITLAB: &str = include_str!("../../../templates/ci/gitlab.yml");

/// All processes of a job have it in their environments.
const MARK: &str = "JOB_OF_TEST";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Github,
    Gitlab,
}

impl Kind {
    pub(super) fn template(self) -> Value {
        let text = if self == Self::Github { GITHUB } else { GITLAB };
        serde_saphyr::from_str(text).expect("YAML")
    }
}

/// A service beside a bare repository, which users push to from `repo`.
pub(super) struct Service {
    pub(super) env: TestEnv,
    kind: Kind,
    jobs: Cell<u32>,
}

/// A job that runs.
pub(super) struct Job {
    running: Running,
    number: u32,
}

/// The environment and the shell lines of a part of a job.
pub(super) struct Step {
    pub(super) variables: Vec<(String, String)>,
    pub(super) script: String,
}

impl Service {
    /// With `plan`, the lanes of phase P1, committed as plan.toml and pushed.
    pub(super) fn new(kind: Kind, plan: &str) -> Self {
        let env = TestEnv::without_repository();
        env.git_at("", &["init", "--quiet", "--bare", "origin.git"]);
        env.git_at("", &["clone", "--quiet", "origin.git", "repo"]);
        symlink(env!("CARGO_BIN_EXE_lanewright"), env.path("bin/lanewright")).expect("a link");
        let service = Self { env, kind, jobs: Cell::new(0) };
        service.push("plan.toml", &format!("phase = \"P1\"\n{plan}"));
        service
    }

    pub(super) fn github(plan: &str) -> Self {
        Self::new(Kind::Github, plan)
    }

    /// Somebody pushes a file to main.
    pub(super) fn push(&self, file: &str, text: &str) {
        let env = &self.env;
        if !self.main().is_empty() {
            env.git(&["pull", "--quiet", "--no-edit", "origin", "main"]);
        }
        env.write(&format!("repo/{file}"), text);
        env.commit(file);
        env.git(&["push", "--quiet", "origin", "main"]);
    }

    /// Where the remote's main is.
    pub(super) fn main(&self) -> String {
        self.env.git_at("origin.git", &["for-each-ref", "--format=%(objectname)", "refs/heads/main"])
    }

    /// The files of the remote's main, without the plan.
    pub(super) fn files(&self) -> Vec<String> {
        let files = self.env.git_at("origin.git", &["ls-tree", "-r", "--name-only", "main"]);
        files.lines().filter(|name| *name != "plan.toml").map(str::to_owned).collect()
    }

    /// The refs of states on the remote.
    pub(super) fn states(&self) -> Vec<String> {
        let states = self.env.git_at("origin.git", &["for-each-ref", "--format=%(refname)", "refs/lanewright/state"]);
        states.lines().map(str::to_owned).collect()
    }

    /// The only state on the remote.
    pub(super) fn state(&self) -> String {
        let states = self.states();
        assert_eq!(states.len(), 1, "{states:?}");
        states[0].clone()
    }

    /// How often a lane's agent was started.
    pub(super) fn starts(&self, lane: &str) -> usize {
        fs::read_to_string(self.env.path(&format!("scratch/{lane}"))).unwrap_or_default().lines().count()
    }

    /// Lets agents end that wait for help.
    pub(super) fn help(&self) {
        self.env.write("scratch/help", "");
    }

    /// Whether the log on the remote has all of these.
    pub(super) fn has_pushed(&self, words: &[&str]) -> bool {
        let Some(state) = self.states().pop() else { return false };
        let mut command = Command::new("git");
        self.env.pin(&mut command).current_dir(self.env.path("origin.git"));
        let shown = command.args(["show", &format!("{state}:log/000001.jsonl")]).output().expect("git");
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        words.iter().all(|word| text.contains(word))
    }

    /// Runs a job to its end.
    pub(super) fn job(&self, inputs: &[(&str, &str)]) -> Ended {
        self.start(inputs).end(self)
    }

    /// Starts a job in a new clone.
    pub(super) fn start(&self, inputs: &[(&str, &str)]) -> Job {
        self.start_with(inputs, |script| script, &["--quiet"])
    }

    /// The same with another script, and flags for the clone.
    pub(super) fn start_with(&self, inputs: &[(&str, &str)], script: impl Fn(String) -> String, clone: &[&str]) -> Job {
        self.jobs.set(self.jobs.get() + 1);
        self.start_again(self.jobs.get(), inputs, script, clone)
    }

    /// Repeats a job, as the button of the service does.
    pub(super) fn again(&self, number: u32, inputs: &[(&str, &str)]) -> Ended {
        self.start_again(number, inputs, |script| script, &["--quiet"]).end(self)
    }

    fn start_again(
        &self,
        number: u32,
        inputs: &[(&str, &str)],
        script: impl Fn(String) -> String,
        clone: &[&str],
    ) -> Job {
        let below = format!("jobs/{number}/project");
        let _ = fs::remove_dir_all(self.env.path(&format!("jobs/{number}")));
        fs::create_dir_all(self.env.path(&format!("jobs/{number}"))).expect("a directory");
        let origin = format!("file://{}", self.env.path("origin.git").display());
        let words = ["clone"].into_iter().chain(clone.iter().copied()).chain([origin.as_str(), below.as_str()]);
        self.env.git_at("", &words.collect::<Vec<_>>());
        if self.kind == Kind::Gitlab {
            self.env.git_at(&below, &["checkout", "--quiet", "--detach"]);
            self.env.git_at(&below, &["branch", "--quiet", "-D", "main"]);
        }
        let step = self.step(number, inputs);
        let mut command = self.command(&step.variables, &below);
        command.env(MARK, format!("{}/{number}", self.env.path("").display()));
        let file = self.env.path(&format!("jobs/{number}/script.sh"));
        fs::write(&file, script(step.script)).expect("a script");
        match self.kind {
            Kind::Github => command.args(["--noprofile", "--norc", "-eo", "pipefail"]),
            Kind::Gitlab => command.args(["-eo", "pipefail"]),
        };
        command.arg(&file);
        Job { running: Running::start(command), number }
    }

    /// The shell of a job, in a directory below the test's own.
    pub(super) fn command(&self, variables: &[(String, String)], below: &str) -> Command {
        let mut command = Command::new("bash");
        self.env.pin(&mut command).current_dir(self.env.path(below)).env("CI", "true");
        // What users need to commit is in `gitconfig`, which a job does not have.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The step of the template that runs the phase.
    pub(super) fn step(&self, number: u32, inputs: &[(&str, &str)]) -> Step {
        let template = self.kind.template();
        let job = &template[if self.kind == Kind::Github { "jobs" } else { "phase" }];
        let number = number.to_string();
        let output = |name: &str| self.env.path(&format!("jobs/{number}/{name}")).display().to_string();
        match self.kind {
            Kind::Github => {
                let job = &job["phase"];
                let step = job["steps"].as_array().expect("steps").iter().find(|step| step["id"] == "phase");
                let step = step.expect("the step");
                let maps = [&job["env"], &step["env"]].map(|map| map.as_object().expect("variables"));
                let mut variables = evaluated(&maps, &|text| on_github(text, inputs, &template));
                let own = [
                    ("GITHUB_ACTIONS", "true".to_owned()),
                    ("GITHUB_RUN_ID", number.clone()),
                    ("GITHUB_REF_TYPE", "branch".to_owned()),
                    ("GITHUB_REF_NAME", "main".to_owned()),
                    ("GITHUB_OUTPUT", output("output")),
                    ("GITHUB_STEP_SUMMARY", output("summary")),
                ];
                variables.extend(own.map(|(name, value)| (name.to_owned(), value)));
                Step { variables, script: step["run"].as_str().expect("a script").to_owned() }
            }
            Kind::Gitlab => {
                let own = [
                    ("GITLAB_CI", "true".to_owned()),
                    ("CI_PIPELINE_ID", number.clone()),
                    ("CI_COMMIT_BRANCH", "main".to_owned()),
                    ("CI_PROJECT_DIR", output("project")),
                    ("CI_PROJECT_URL", format!("file://{}", self.env.path("origin").display())),
                    ("CI_SERVER_URL", "https://gitlab.com".to_owned()),
                    ("CI_SERVER_HOST", "gitlab.com".to_owned()),
                    ("LANEWRIGHT_TOKEN", "t0ken".to_owned()),
                ];
                let own: Vec<(String, String)> = own.map(|(name, value)| (name.to_owned(), value)).to_vec();
                let expand = |text: &str| {
                    own.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
                };
                let global = template["variables"].as_object().expect("variables").iter();
                let defaults: Map<String, Value> =
                    global.map(|(name, about)| (name.clone(), about["value"].clone())).collect();
                let maps = [&defaults, job["variables"].as_object().expect("variables")];
                let mut variables = [evaluated(&maps, &expand), own.clone()].concat();
                let inputs = inputs
                    .iter()
                    .map(|(name, value)| (format!("LANEWRIGHT_CI_{}", name.to_uppercase()), (*value).to_owned()));
                variables.extend(inputs);
                let lines: Vec<&str> =
                    job["script"].as_array().expect("lines").iter().filter_map(Value::as_str).collect();
                Step { variables, script: lines.join("\n") }
            }
        }
    }
}

impl Job {
    pub(super) fn end(self, service: &Service) -> Ended {
        let ended = self.running.wait();
        let directory = service.env.path(&format!("jobs/{}", self.number));
        if service.kind == Kind::Github {
            let output = fs::read_to_string(directory.join("output")).unwrap_or_default();
            assert!(output.contains(&format!("code={}", ended.code)), "{output}");
        }
        let _ = fs::remove_dir_all(directory);
        ended
    }

    pub(super) fn wait_until(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        wait_until(what, || {
            let is_over = self.running.has_ended();
            condition() || {
                assert!(!is_over, "the job ended before {what}");
                false
            }
        });
    }

    /// The machine dies with everything that runs on it.
    pub(super) fn dies(self, service: &Service) {
        let mark = format!("{MARK}={}/{}\0", service.env.path("").display(), self.number);
        let alive = || processes_with(&mark);
        while !alive().is_empty() {
            for pid in alive() {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        self.running.wait();
        fs::remove_dir_all(service.env.path(&format!("jobs/{}", self.number))).expect("a machine");
    }

    /// The service cancels the job: its program gets the signal.
    pub(super) fn cancel(self, service: &Service, signal: Signal) -> Ended {
        let mark = format!("{MARK}={}/{}\0", service.env.path("").display(), self.number);
        let is_lanewright = |pid: &Pid| {
            let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
            line.starts_with(b"lanewright\0ci\0")
        };
        let found: Vec<Pid> = processes_with(&mark).into_iter().filter(is_lanewright).collect();
        assert_eq!(found.len(), 1);
        kill_process(found[0], signal).expect("a signal");
        self.end(service)
    }
}

fn processes_with(mark: &str) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let has_mark = |place: &Path| {
        let environment = fs::read(place.join("environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    let number = |name: &str| name.parse().ok().and_then(Pid::from_raw);
    entries
        .filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path())))
        .filter(|(_, place)| has_mark(place))
        .map(|(pid, _)| pid)
        .collect()
}

/// The variables of these maps, the later ones being stronger.
fn evaluated(maps: &[&Map<String, Value>], value: &dyn Fn(&str) -> String) -> Vec<(String, String)> {
    let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    maps.iter().flat_map(|map| map.iter()).map(|(name, it)| (name.clone(), value(&text(it)))).collect()
}

/// What GitHub makes of the expressions in `text` that the template uses.
fn on_github(text: &str, inputs: &[(&str, &str)], template: &Value) -> String {
    let Some((before, rest)) = text.split_once("${{") else { return text.to_owned() };
    let (expression, after) = rest.split_once("}}").expect("an end");
    let operand = |operand: &str| match operand.trim() {
        "github.token" => "t0ken".to_owned(),
        "github.server_url" => "https://github.com".to_owned(),
        "secrets.LANEWRIGHT_TOKEN" => String::new(),
        literal if literal.starts_with('\'') => literal.trim_matches('\'').to_owned(),
        input => {
            let name = input.strip_prefix("inputs.").unwrap_or_else(|| panic!("unknown: {input}"));
            let about = &template["on"]["workflow_dispatch"]["inputs"][name];
            assert!(about.is_object(), "the workflow has no input {name}");
            let default = about["default"].as_str().map_or_else(|| about["default"].to_string(), str::to_owned);
            let given = inputs.iter().find(|(input, _)| *input == name).map(|(_, value)| (*value).to_owned());
            given.unwrap_or(if default == "null" { String::new() } else { default })
        }
    };
    let value = expression.split("||").map(operand).find(|value| !value.is_empty()).unwrap_or_default();
    format!("{before}{value}{}", on_github(after, inputs, template))
}
