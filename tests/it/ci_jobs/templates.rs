//! The parts of the templates around the step that runs the phase.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use super::TWO;
use super::service::{Kind, Service};
use crate::support::TestEnv;

/// What `git credential fill` finds in the environment of the step.
fn password(service: &Service, host: &str, has_token: bool) -> String {
    let step = service.step(1, &[]);
    let mut variables = step.variables;
    variables.retain(|(name, _)| has_token || !name.ends_with("_TOKEN"));
    variables.push(("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()));
    let exports: String =
        step.script.lines().filter(|line| line.starts_with("export")).map(|line| format!("{line}\n")).collect();
    let mut shell = service.command(&variables, "repo");
    let script = format!("{exports}git credential fill");
    let mut child = shell
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("git");
    let request = format!("protocol=https\nhost={host}\n\n");
    child.stdin.take().expect("a pipe").write_all(request.as_bytes()).expect("a request");
    let said = String::from_utf8(child.wait_with_output().expect("git").stdout).expect("UTF-8");
    said.lines().find_map(|line| line.strip_prefix("password=")).unwrap_or_default().to_owned()
}

#[test]
fn token_is_in_the_environment_of_one_step_only() {
    for (kind, host) in [(Kind::Github, "github.com"), (Kind::Gitlab, "gitlab.com")] {
        let service = Service::new(kind, TWO);
        assert_eq!(password(&service, host, true), "t0ken", "{kind:?}");
        assert_eq!(password(&service, host, false), "", "{kind:?}: without the variable there is none");
        assert_eq!(password(&service, "example.invalid", true), "", "{kind:?}: other hosts get none");
    }
    let template = Kind::Github.template();
    let steps = template["jobs"]["phase"]["steps"].as_array().expect("steps");
    let checkout =
        steps.iter().find(|step| step["uses"].as_str().is_some_and(|uses| uses.starts_with("actions/checkout")));
    assert_eq!(checkout.expect("a checkout")["with"]["persist-credentials"], false);
    let has_token = |step: &&Value| step["env"].to_string().contains("token");
    assert_eq!(steps.iter().filter(has_token).count(), 1);
}

#[test]
fn no_template_puts_an_input_into_a_line_of_shell() {
    let scripts = |value: &Value| -> Vec<String> {
        let steps = value["steps"].as_array().expect("steps").iter();
        steps.filter_map(|step| step["run"].as_str().map(str::to_owned)).collect()
    };
    let template = Kind::Github.template();
    for job in ["phase", "continue"] {
        let scripts = scripts(&template["jobs"][job]);
        assert!(!scripts.is_empty());
        assert!(scripts.iter().all(|script| !script.contains("${{")), "{job}: {scripts:?}");
    }
}

/// What the workflow asks of `gh` to start the next job, line by line; `waiting`: how many jobs wait already.
fn started_next(plan: &str, attempt: &str, waiting: u32) -> Vec<String> {
    let env = TestEnv::without_repository();
    let gh = format!(
        "#!/bin/sh\nif [ \"$1\" = api ]; then echo {waiting}; else printf '%s\\n' \"$@\" > \"$SCRATCH/gh\"; fi\n"
    );
    env.program("gh", &gh);
    let template = Kind::Github.template();
    let script = template["jobs"]["continue"]["steps"][0]["run"].as_str().expect("a script").to_owned();
    let mut command = std::process::Command::new("bash");
    env.pin(&mut command).args(["-eo", "pipefail", "-c", &script]).env("PLAN", plan).env("ATTEMPT", attempt);
    command.env("GITHUB_REPOSITORY", "acme/shop").env("GITHUB_REF_NAME", "main");
    command.env("GITHUB_WORKFLOW_REF", "acme/shop/.github/workflows/lanewright.yml@refs/heads/main");
    command.output().expect("bash");
    let asked = fs::read_to_string(env.path("scratch/gh")).unwrap_or_default();
    asked.lines().map(str::to_owned).collect()
}

#[test]
fn github_workflow_starts_itself_again() {
    let expected =
        "workflow run lanewright.yml --repo acme/shop --ref main --raw-field plan=$(id).toml --raw-field attempt=10";
    assert_eq!(started_next("$(id).toml", "9", 0).join(" "), expected);
    assert_eq!(started_next("plan.toml", "1", 1), [] as [&str; 0], "the job that waits continues the run");
    assert_eq!(started_next("plan.toml", "a[$(id)]", 0), [] as [&str; 0]);
    let condition = Kind::Github.template()["jobs"]["continue"]["if"].to_string();
    for part in ["!cancelled()", "inputs.attempt < 20", "outputs.code == '75'", "outputs.ended != 'true'"] {
        assert!(condition.contains(part), "{condition}");
    }
}

/// Installs by the template's lines from an archive with a checksum; whether that worked.
fn installs(env: &TestEnv, kind: Kind, is_damaged: bool) -> bool {
    let template = kind.template();
    let script = match kind {
        Kind::Github => {
            let steps = template["jobs"]["phase"]["steps"].as_array().expect("steps").clone();
            let step = steps.into_iter().find(|step| step["name"] == "Install Lanewright").expect("a step");
            step["run"].as_str().expect("a script").to_owned()
        }
        Kind::Gitlab => template["phase"]["before_script"][0].as_str().expect("a script").to_owned(),
    };
    let script = script.replace("/usr/local/bin", &env.path("home/.cargo/bin").display().to_string());
    let make = "name=lanewright-9.9.9-$(uname -m)-unknown-linux-gnu && mkdir -p \"$name\" && echo '#!/bin/sh' > \"$name/lanewright\" && \
                tar -czf \"$name.tar.gz\" \"$name\" && sha256sum \"$name.tar.gz\" > \"$name.tar.gz.sha256\"";
    fs::create_dir_all(env.path("releases")).expect("a directory");
    fs::create_dir_all(env.path("home/.cargo/bin")).expect("a directory");
    let damage = if is_damaged { " && echo more >> \"$name.tar.gz\"" } else { "" };
    let shell = |script: &str, below: &str| {
        let mut command = std::process::Command::new("bash");
        env.pin(&mut command).current_dir(env.path(below));
        // Neither cargo nor what it would install.
        command.env("PATH", "/usr/bin:/bin").env("GITHUB_PATH", env.path("path")).env("LANEWRIGHT_VERSION", "9.9.9");
        command.env("LANEWRIGHT_RELEASES", format!("file://{}", env.path("releases").display()));
        command.args(["-eo", "pipefail", "-c", script]).output().expect("bash").status.success()
    };
    assert!(shell(&format!("{make}{damage}"), "releases"));
    let installed = shell(&script, "repo");
    assert_eq!(installed, env.path("home/.cargo/bin/lanewright").exists());
    installed
}

#[test]
fn release_is_installed_if_its_checksum_fits() {
    for kind in [Kind::Github, Kind::Gitlab] {
        assert!(installs(&TestEnv::without_repository(), kind, false), "{kind:?}");
        assert!(!installs(&TestEnv::without_repository(), kind, true), "{kind:?}: damaged");
    }
}

#[test]
fn gitlab_repeats_jobs_that_died_or_ask_for_another() {
    let job = &Kind::Gitlab.template()["phase"];
    assert_eq!(job["retry"]["exit_codes"], serde_json::json!([75]));
    assert!(
        job["script"][0].as_str().is_some_and(|script| script.trim_end().ends_with("lanewright ci --timeout 150m"))
    );
    assert_eq!(job["timeout"], "3h");
}
