//! GitHub, through `gh`.

use serde::Deserialize;

use super::error::ForgeError;
use super::program::{run, words};
use super::{Forge, Listed, NO_ADDRESS, Opened, Proposal, address_on_last_line, made};

pub(super) const INSTALL: &str =
    "install it (`apt install gh`, `brew install gh`, or https://cli.github.com), then `gh auth login`";

/// What is asked of each pull request.
const FIELDS: &str = "number,url,state,baseRefName,headRefOid,isCrossRepository";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    number: u64,
    url: String,
    state: String,
    base_ref_name: String,
    head_ref_oid: String,
    /// From a fork, whose branch only has the same name.
    is_cross_repository: bool,
}

pub(super) fn list(forge: &Forge, branch: &str) -> Result<Vec<Listed>, ForgeError> {
    let call = [words(["gh", "pr", "list"]), repository(forge)].concat();
    let call = [call, words(["--head", branch, "--state", "all", "--json", FIELDS])].concat();
    let said = run(&forge.directory, &call, &[])?;
    let entries: Vec<Entry> = serde_json::from_str(&said)
        .map_err(|_| ForgeError::answer(&call, "must print a list of pull requests", &said))?;
    Ok(entries.into_iter().filter(|entry| !entry.is_cross_repository).map(listed).collect())
}

fn listed(entry: Entry) -> Listed {
    let Entry { number, url, state, base_ref_name: base, head_ref_oid: head, .. } = entry;
    Listed { number, url, base, head, is_open: state == "OPEN", is_merged: state == "MERGED" }
}

pub(super) fn create(forge: &Forge, proposal: &Proposal<'_>) -> Result<Opened, ForgeError> {
    let call = [words(["gh", "pr", "create"]), repository(forge)].concat();
    let call = [call, words(["--head", proposal.branch]), says(proposal)].concat();
    let said = run(&forge.directory, &call, &[])?;
    let url = address_on_last_line(&said).ok_or_else(|| ForgeError::answer(&call, NO_ADDRESS, &said))?;
    Ok(made(url, proposal.base))
}

pub(super) fn update(forge: &Forge, number: u64, proposal: &Proposal<'_>) -> Result<(), ForgeError> {
    let call = [words(["gh", "pr", "edit", &number.to_string()]), repository(forge), says(proposal)].concat();
    match run(&forge.directory, &call, &[]) {
        // Up to 2.82 `gh` asks on every edit for projects of a kind that GitHub has abolished, and changes nothing.
        Err(ForgeError::Failed { said, .. }) if said.contains("Projects (classic)") => {
            run(&forge.directory, &rest_update(forge, number, proposal), &[]).map(drop)
        }
        done => done.map(drop),
    }
}

/// The call for all pages of a list of the repository's.
pub(super) fn call(forge: &Forge, list: &str) -> Vec<String> {
    [api(forge), words(["--paginate", &in_repository(forge, list)])].concat()
}

pub(super) fn api(forge: &Forge) -> Vec<String> {
    let named = forge.public_address();
    let host = named.map(|address| words(["--hostname", &address.host])).unwrap_or_default();
    [words(["gh", "api"]), host].concat()
}

pub(super) fn in_repository(forge: &Forge, path: &str) -> String {
    format!("repos/{}/{path}", forge.public_address().map_or("{owner}/{repo}", |address| &address.path))
}

fn says(proposal: &Proposal<'_>) -> Vec<String> {
    let body = proposal.body_file.to_string_lossy();
    words(["--base", proposal.base, "--title", proposal.title, "--body-file", &body])
}

fn rest_update(forge: &Forge, number: u64, proposal: &Proposal<'_>) -> Vec<String> {
    let fields = [
        format!("title={}", proposal.title),
        format!("base={}", proposal.base),
        format!("body=@{}", proposal.body_file.display()),
    ];
    let call = [api(forge), words(["--method", "PATCH", &in_repository(forge, &format!("pulls/{number}"))])];
    [call.concat(), words(["--raw-field", &fields[0], "--raw-field", &fields[1], "--field", &fields[2]])].concat()
}

/// Which repository is meant; nothing where `gh` knows better than the address does.
fn repository(forge: &Forge) -> Vec<String> {
    forge
        .public_address()
        .map(|address| words(["--repo", &format!("{}/{}", address.host, address.path)]))
        .unwrap_or_default()
}
