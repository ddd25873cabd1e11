//! GitLab, through `glab`: its REST calls, which take a file for the text where `glab mr` does not.

use serde::Deserialize;

use super::error::ForgeError;
use super::program::{run, words};
use super::{Forge, Listed, Opened, Proposal, made, percent_encoded};

pub(super) const INSTALL: &str = "install it (`apt install glab`, `brew install glab`, or https://gitlab.com/gitlab-org/cli), then `glab auth login`";

/// Whether `glab` has no other token than the one that GitLab gives to each job of a pipeline.
fn has_only_a_job_token() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let own = ["GITLAB_TOKEN", "GITLAB_ACCESS_TOKEN", "OAUTH_TOKEN"];
    ["GITLAB_CI", "CI_JOB_TOKEN"].iter().all(is_set) && !own.iter().any(is_set)
}

#[derive(Deserialize)]
struct Entry {
    iid: u64,
    web_url: String,
    state: String,
    target_branch: String,
    #[serde(default)]
    sha: Option<String>,
    source_project_id: Option<u64>,
    target_project_id: Option<u64>,
}

/// The call that succeeds only with a token. `glab auth status` knows no host but `gitlab.com` where the token is in a variable.
pub(super) fn login(forge: &Forge) -> Vec<String> {
    let path = match has_only_a_job_token() {
        // The token of a job may not ask whose it is.
        true => format!("{}?per_page=1", merge_requests(forge)),
        false => "user".to_owned(),
    };
    [api(forge), vec![path]].concat()
}

pub(super) fn list(forge: &Forge, branch: &str) -> Result<Vec<Listed>, ForgeError> {
    let path = format!("{}?source_branch={}", merge_requests(forge), percent_encoded(branch));
    let call = [api(forge), vec![path]].concat();
    let entries: Vec<Entry> = answer(forge, &call, "must print a list of merge requests")?;
    let own = |entry: &Entry| entry.source_project_id == entry.target_project_id;
    Ok(entries.into_iter().filter(own).map(listed).collect())
}

fn listed(entry: Entry) -> Listed {
    Listed {
        number: entry.iid,
        url: entry.web_url,
        base: entry.target_branch,
        head: entry.sha.unwrap_or_default(),
        is_open: entry.state == "opened",
        is_merged: entry.state == "merged",
    }
}

pub(super) fn create(forge: &Forge, proposal: &Proposal<'_>) -> Result<Opened, ForgeError> {
    let source = format!("source_branch={}", proposal.branch);
    let call = [api(forge), words(["--method", "POST", &merge_requests(forge), "--raw-field", &source])].concat();
    let entry: Entry = answer(forge, &[call, says(proposal)].concat(), "must print a merge request")?;
    Ok(made(&entry.web_url, proposal.base))
}

pub(super) fn update(forge: &Forge, number: u64, proposal: &Proposal<'_>) -> Result<(), ForgeError> {
    let path = format!("{}/{number}", merge_requests(forge));
    let call = [api(forge), words(["--method", "PUT", &path]), says(proposal)].concat();
    run(&forge.directory, &call, &[]).map(drop).map_err(unread)
}

/// `glab` expects one reason for a refusal and fails on a list of them, such as that of a branch that has a merge request.
fn unread(error: ForgeError) -> ForgeError {
    match error {
        ForgeError::Failed { command, code, said } if said.contains("cannot unmarshal") => {
            let said = format!("GitLab refused the request for reasons that `glab` cannot print\n{said}");
            ForgeError::Failed { command, code, said }
        }
        error => error,
    }
}

fn answer<T: for<'de> Deserialize<'de>>(
    forge: &Forge,
    call: &[String],
    expected: &'static str,
) -> Result<T, ForgeError> {
    let said = run(&forge.directory, call, &[]).map_err(unread)?;
    serde_json::from_str(&said).map_err(|_| ForgeError::answer(call, expected, &said))
}

fn says(proposal: &Proposal<'_>) -> Vec<String> {
    let (target, title) = (format!("target_branch={}", proposal.base), format!("title={}", proposal.title));
    let body = format!("description=@{}", proposal.body_file.display());
    words(["--raw-field", &target, "--raw-field", &title, "--field", &body])
}

/// The call for all pages of a list of the project's.
pub(super) fn call(forge: &Forge, list: &str) -> Vec<String> {
    [api(forge), words(["--paginate", &format!("{}/{list}", project(forge))])].concat()
}

pub(super) fn api(forge: &Forge) -> Vec<String> {
    let named = forge.public_address();
    let host = named.map(|address| words(["--hostname", &address.host])).unwrap_or_default();
    [words(["glab", "api"]), host].concat()
}

pub(super) fn merge_requests(forge: &Forge) -> String {
    format!("{}/merge_requests", project(forge))
}

/// `:id` is the project that `glab` finds itself.
pub(super) fn project(forge: &Forge) -> String {
    let named = forge.public_address();
    format!("projects/{}", named.map_or_else(|| ":id".to_owned(), |address| percent_encoded(&address.path)))
}
