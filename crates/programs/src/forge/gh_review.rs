//! What GitHub says of pull requests: one query for all pull requests, so that asking often costs little of what a token may ask.

use std::collections::BTreeMap;

use lanewright_model::{ChecksState, MergeStyle, PullRequestState, ReviewState, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::error::ForgeError;
use super::program::{run, without_time, words};
use super::review::{Author, Check, Comment, Review};
use super::{Forge, gh};

/// What is asked of each pull request.
const FIELDS: &str = "state isDraft headRefOid baseRefName reviewDecision \
latestOpinionatedReviews(first: 50, writersOnly: true) { nodes { state } } \
commits(last: 1) { nodes { commit { statusCheckRollup { contexts(first: 100) { totalCount nodes { __typename \
... on CheckRun { databaseId name status conclusion detailsUrl title summary isRequired(pullRequestNumber: NUMBER) } \
... on StatusContext { context state description targetUrl isRequired(pullRequestNumber: NUMBER) } } } } } } } \
reviews(last: 50) { nodes { databaseId state body submittedAt author { login __typename } } } \
reviewThreads(last: 50) { nodes { isResolved path line originalLine \
comments(last: 20) { nodes { databaseId state body createdAt author { login __typename } } } } } \
comments(last: 50) { nodes { databaseId body createdAt author { login __typename } } }";

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    repository: BTreeMap<String, Option<Pull>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    state: String,
    is_draft: bool,
    head_ref_oid: String,
    base_ref_name: String,
    /// `None`: the forge requires no review.
    review_decision: Option<String>,
    latest_opinionated_reviews: Nodes<Opinion>,
    commits: Nodes<CommitNode>,
    reviews: Nodes<Said>,
    review_threads: Nodes<Thread>,
    comments: Nodes<Said>,
}

#[derive(Deserialize)]
struct Nodes<T> {
    nodes: Vec<T>,
}

/// What a reviewer who may write decided last.
#[derive(Deserialize)]
struct Opinion {
    state: String,
}

#[derive(Deserialize)]
struct CommitNode {
    commit: Commit,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Commit {
    status_check_rollup: Option<Rollup>,
}

#[derive(Deserialize)]
struct Rollup {
    contexts: Contexts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contexts {
    total_count: usize,
    nodes: Vec<Context>,
}

#[derive(Deserialize)]
#[serde(tag = "__typename")]
enum Context {
    #[serde(rename_all = "camelCase")]
    CheckRun {
        database_id: Option<u64>,
        name: String,
        status: String,
        conclusion: Option<String>,
        details_url: Option<String>,
        title: Option<String>,
        summary: Option<String>,
        is_required: bool,
    },
    #[serde(rename_all = "camelCase")]
    StatusContext {
        context: String,
        state: String,
        description: Option<String>,
        target_url: Option<String>,
        is_required: bool,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thread {
    is_resolved: bool,
    path: String,
    line: Option<u64>,
    original_line: Option<u64>,
    comments: Nodes<Said>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    database_id: Option<u64>,
    body: String,
    #[serde(alias = "submittedAt")]
    created_at: Option<Timestamp>,
    /// Of a review, what its author decided; of a comment of one, whether it was submitted.
    state: Option<String>,
    /// `None`: the account is gone.
    author: Option<Login>,
}

#[derive(Deserialize)]
struct Login {
    login: String,
    #[serde(rename = "__typename")]
    kind: String,
}

pub(super) fn reviews(forge: &Forge, pulls: &[(u64, &str)]) -> Result<BTreeMap<u64, Review>, ForgeError> {
    let of = |(number, _): &(u64, &str)| {
        format!("p{number}: pullRequest(number: {number}) {{ {} }}", FIELDS.replace("NUMBER", &number.to_string()))
    };
    let all: Vec<String> = pulls.iter().map(of).collect();
    let query = format!(
        "query($owner: String!, $name: String!) {{ repository(owner: $owner, name: $name) {{ {} }} }}",
        all.join(" ")
    );
    let path = forge.public_address().map_or("{owner}/{repo}", |address| &address.path);
    let (owner, name) = path.split_once('/').unwrap_or((path, ""));
    // `-F` fills in what stands in braces, and takes names such as `true` for something else.
    let flag = if forge.public_address().is_some() { "-f" } else { "-F" };
    let fields = [format!("owner={owner}"), format!("name={name}"), format!("query={query}")];
    let call = [gh::api(forge), words(["graphql", flag, &fields[0], flag, &fields[1], "-f", &fields[2]])].concat();
    let said = run(&forge.directory, &call, &[])?;
    let answer: Answer = serde_json::from_str(&said)
        .map_err(|_| ForgeError::answer(&call[..3], "must print what GitHub says of pull requests", &said))?;
    let numbered = |(name, pull): (String, Option<Pull>)| Some((name.strip_prefix('p')?.parse().ok()?, pull?));
    let pulls = answer.data.repository.into_iter().filter_map(numbered);
    Ok(pulls.map(|(number, pull): (u64, Pull)| (number, review(pull))).collect())
}

fn review(pull: Pull) -> Review {
    let head = pull.head_ref_oid;
    let mut checks: Vec<Check> = Vec::new();
    for Rollup { contexts } in pull.commits.nodes.into_iter().filter_map(|node| node.commit.status_check_rollup) {
        let others = contexts.total_count.saturating_sub(contexts.nodes.len());
        checks.extend(contexts.nodes.into_iter().map(|context| check(context, &head)));
        checks.extend((others > 0).then(|| unread(others, &checks, &head)));
    }
    let mut comments: Vec<Comment> = Vec::new();
    comments.extend(pull.reviews.nodes.into_iter().filter_map(|said| comment("review", said)));
    for thread in pull.review_threads.nodes.into_iter().filter(|thread| !thread.is_resolved) {
        let line = thread.line.or(thread.original_line);
        let placed = |said: Said| {
            let comment = comment("thread", said)?;
            Some(Comment { path: Some(thread.path.clone()), line, ..comment })
        };
        comments.extend(thread.comments.nodes.into_iter().filter_map(placed));
    }
    comments.extend(pull.comments.nodes.into_iter().filter_map(|said| comment("comment", said)));
    Review {
        state: match pull.state.as_str() {
            "OPEN" => PullRequestState::Open,
            "MERGED" => PullRequestState::Merged,
            _ => PullRequestState::Closed,
        },
        head,
        base: pull.base_ref_name,
        draft: pull.is_draft,
        review: match pull.review_decision.as_deref() {
            Some("APPROVED") => ReviewState::Approved,
            Some("CHANGES_REQUESTED") => ReviewState::ChangesRequested,
            Some("REVIEW_REQUIRED") => ReviewState::Required,
            _ => of_opinions(&pull.latest_opinionated_reviews.nodes),
        },
        checks,
        comments,
    }
}

fn of_opinions(opinions: &[Opinion]) -> ReviewState {
    let has = |state: &str| opinions.iter().any(|opinion| opinion.state == state);
    match () {
        () if has("CHANGES_REQUESTED") => ReviewState::ChangesRequested,
        () if has("APPROVED") => ReviewState::Approved,
        () => ReviewState::None,
    }
}

/// Stands for the checks that one answer has no place for: any of them may fail.
fn unread(others: usize, known: &[Check], head: &str) -> Check {
    let name = format!("{others} more checks");
    let (id, state) = (format!("{name}@{head}"), ChecksState::Pending);
    let required = known.iter().any(|check| check.required);
    Check { id, name, state, required, log: String::new(), job: None }
}

fn check(context: Context, head: &str) -> Check {
    match context {
        Context::CheckRun { database_id, name, status, conclusion, details_url, title, summary, is_required } => {
            let state = match (status.as_str(), conclusion.as_deref()) {
                ("COMPLETED", Some("SUCCESS" | "NEUTRAL")) => ChecksState::Passed,
                ("COMPLETED", Some("SKIPPED")) => ChecksState::None,
                ("COMPLETED", Some("FAILURE" | "TIMED_OUT" | "STARTUP_FAILURE")) => ChecksState::Failed,
                // Also cancelled, or waiting for a person: no agent can do anything about that.
                _ => ChecksState::Pending,
            };
            // Only jobs of GitHub Actions have a log there.
            let job = database_id.filter(|_| details_url.is_some_and(|url| url.contains("/actions/runs/")));
            let log = [title, summary].into_iter().flatten().collect::<Vec<_>>().join("\n");
            let id = database_id.map_or_else(|| format!("{name}@{head}"), |id| id.to_string());
            Check { id, name, state, required: is_required, log, job }
        }
        Context::StatusContext { context, state, description, target_url, is_required } => {
            let state = match state.as_str() {
                "SUCCESS" => ChecksState::Passed,
                "FAILURE" | "ERROR" => ChecksState::Failed,
                _ => ChecksState::Pending,
            };
            let log = [description, target_url].into_iter().flatten().collect::<Vec<_>>().join("\n");
            Check { id: format!("{context}@{head}"), name: context, state, required: is_required, log, job: None }
        }
    }
}

/// `None`: nothing was said that asks for anything, as in a review that approves or was dismissed.
fn comment(kind: &str, said: Said) -> Option<Comment> {
    if matches!(said.state.as_deref(), Some("APPROVED" | "DISMISSED" | "PENDING")) {
        return None;
    }
    let author = said.author?;
    let id = format!("{kind}:{}", said.database_id?);
    let (by, text, at) = (author.login.clone(), said.body, said.created_at);
    let author = if author.kind == "User" { Author::Person(author.login) } else { Author::Program };
    (!text.trim().is_empty()).then_some(Comment { id, by, path: None, line: None, text, at, author })
}

pub(super) fn may_write(forge: &Forge, login: &str) -> Result<bool, ForgeError> {
    let path = gh::in_repository(forge, &format!("collaborators/{login}/permission"));
    match run(&forge.directory, &[gh::api(forge), vec![path]].concat(), &[]) {
        Ok(said) => {
            let answer: Value = serde_json::from_str(&said).unwrap_or_default();
            Ok(matches!(answer["permission"].as_str(), Some("admin" | "maintain" | "write")))
        }
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The log of a job, without the times that GitHub puts before each line.
pub(super) fn log(forge: &Forge, job: u64) -> Result<String, ForgeError> {
    let path = gh::in_repository(forge, &format!("actions/jobs/{job}/logs"));
    let said = run(&forge.directory, &[gh::api(forge), vec![path]].concat(), &[])?;
    let lines: Vec<&str> = said.trim_start_matches('\u{feff}').lines().map(without_time).collect();
    // What follows the last error is the end of the job, and not of its work.
    let end = lines.iter().rposition(|line| line.starts_with("##[error]")).map_or(lines.len(), |at| at + 1);
    Ok(lines[..end].join("\n"))
}

pub(super) fn retarget(forge: &Forge, number: u64, base: &str) -> Result<(), ForgeError> {
    let path = gh::in_repository(forge, &format!("pulls/{number}"));
    let call = words(["--method", "PATCH", &path, "-f", &format!("base={base}")]);
    run(&forge.directory, &[gh::api(forge), call].concat(), &[]).map(drop)
}

pub(super) fn merge(forge: &Forge, number: u64, head: &str, style: MergeStyle) -> Result<(), ForgeError> {
    let method = match style {
        MergeStyle::Merge => "merge",
        MergeStyle::Squash => "squash",
        MergeStyle::Rebase | MergeStyle::Ff => "rebase",
    };
    let path = gh::in_repository(forge, &format!("pulls/{number}/merge"));
    let fields = [format!("sha={head}"), format!("merge_method={method}")];
    let call = words(["--method", "PUT", &path, "-f", &fields[0], "-f", &fields[1]]);
    run(&forge.directory, &[gh::api(forge), call].concat(), &[]).map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pull(decision: Value, opinions: &[&str]) -> Value {
        let opinions: Vec<Value> = opinions.iter().map(|state| json!({"state": state})).collect();
        json!({
            "state": "OPEN", "isDraft": false, "headRefOid": "c1", "baseRefName": "main", "reviewDecision": decision,
            "latestOpinionatedReviews": {"nodes": opinions}, "commits": {"nodes": []}, "reviews": {"nodes": []},
            "reviewThreads": {"nodes": []}, "comments": {"nodes": []},
        })
    }

    fn review_of(pull: Value) -> Review {
        review(serde_json::from_value(pull).unwrap())
    }

    #[test]
    fn reviews_count_where_none_is_required() {
        for (decision, opinions, expected) in [
            (json!(null), &["APPROVED", "CHANGES_REQUESTED"][..], ReviewState::ChangesRequested),
            (json!(null), &["DISMISSED", "APPROVED"], ReviewState::Approved),
            (json!(null), &[], ReviewState::None),
            (json!("REVIEW_REQUIRED"), &["APPROVED"], ReviewState::Required),
        ] {
            assert_eq!(review_of(pull(decision, opinions)).review, expected, "{opinions:?}");
        }
    }

    #[test]
    fn checks_are_pending_while_some_are_not_read() {
        for (total, required, expected) in
            [(1, true, ChecksState::Passed), (2, true, ChecksState::Pending), (2, false, ChecksState::Pending)]
        {
            let check = json!({
                "__typename": "StatusContext", "context": "ci", "state": "SUCCESS", "description": null, "targetUrl": null,
                "isRequired": required,
            });
            let mut pull = pull(json!(null), &[]);
            pull["commits"]["nodes"] = json!([{
                "commit": {"statusCheckRollup": {"contexts": {"totalCount": total, "nodes": [check]}}}
            }]);
            assert_eq!(review_of(pull).checks_state(), expected, "{total} {required}");
        }
    }
}
