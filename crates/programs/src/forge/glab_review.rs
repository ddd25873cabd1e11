//! What GitLab says of merge requests.

use std::collections::BTreeMap;

use lanewright_model::safe_text::last_shown;
use lanewright_model::{ChecksState, MergeStyle, PullRequestState, ReviewState, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::ForgeError;
use super::program::{run, without_time, words};
use super::review::{Author, Check, Comment, Review};
use super::{Forge, glab};

/// From which access level on a member may push.
const DEVELOPER: u64 = 30;

#[derive(Deserialize)]
struct MergeRequest {
    state: String,
    sha: Option<String>,
    target_branch: String,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    detailed_merge_status: String,
    head_pipeline: Option<Pipeline>,
}

#[derive(Deserialize)]
struct Pipeline {
    id: u64,
    #[serde(default)]
    status: String,
}

#[derive(Deserialize)]
struct Approvals {
    #[serde(default)]
    approvals_left: u64,
    #[serde(default)]
    approved_by: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Job {
    id: u64,
    name: String,
    status: String,
    allow_failure: bool,
    /// Of a job that starts another pipeline.
    downstream_pipeline: Option<Downstream>,
}

#[derive(Deserialize)]
struct Downstream {
    #[serde(default)]
    web_url: String,
}

#[derive(Deserialize)]
struct Discussion {
    notes: Vec<Note>,
}

#[derive(Deserialize)]
struct Note {
    id: u64,
    body: String,
    #[serde(default)]
    system: bool,
    #[serde(default)]
    resolved: bool,
    created_at: Option<Timestamp>,
    author: User,
    position: Option<Position>,
}

#[derive(Deserialize)]
struct User {
    id: u64,
    username: String,
    #[serde(default)]
    bot: bool,
}

#[derive(Deserialize)]
struct Position {
    new_path: Option<String>,
    new_line: Option<u64>,
    old_line: Option<u64>,
}

#[derive(Deserialize)]
struct Member {
    access_level: u64,
}

pub(super) fn reviews(forge: &Forge, pulls: &[(u64, &str)]) -> Result<BTreeMap<u64, Review>, ForgeError> {
    let mut reviews = BTreeMap::new();
    for (number, _) in pulls {
        let path = format!("{}/{number}", glab::merge_requests(forge));
        match get(forge, &path) {
            Ok(request) => drop(reviews.insert(*number, review(forge, &path, request)?)),
            // It is gone, with its project or the fork that it came from.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(reviews)
}

fn review(forge: &Forge, path: &str, request: MergeRequest) -> Result<Review, ForgeError> {
    let head = request.sha.unwrap_or_default();
    let state = match request.state.as_str() {
        "opened" | "locked" => PullRequestState::Open,
        "merged" => PullRequestState::Merged,
        _ => PullRequestState::Closed,
    };
    let mut review = Review {
        state,
        base: request.target_branch,
        draft: request.draft,
        review: ReviewState::None,
        checks: Vec::new(),
        comments: Vec::new(),
        head,
    };
    if state != PullRequestState::Open {
        return Ok(review);
    }
    // That of its head; where results of merges are tested, of another commit.
    if let Some(pipeline) = request.head_pipeline {
        let pipeline_path = format!("{}/pipelines/{}", glab::project(forge), pipeline.id);
        let jobs: Vec<Job> = list(forge, &format!("{pipeline_path}/jobs"))?;
        review.checks = jobs.into_iter().map(check).collect();
        // Jobs that start other pipelines are listed apart, have no log, and only matter where they have not passed.
        if pipeline.status != "success" {
            let bridges: Vec<Job> = list(forge, &format!("{pipeline_path}/bridges"))?;
            review.checks.extend(bridges.into_iter().map(|bridge| Check { job: None, ..check(bridge) }));
        }
    }
    let approvals: Approvals = get(forge, &format!("{path}/approvals"))?;
    review.review = match () {
        () if request.detailed_merge_status == "requested_changes" => ReviewState::ChangesRequested,
        () if approvals.approvals_left > 0 => ReviewState::Required,
        () if !approvals.approved_by.is_empty() => ReviewState::Approved,
        () => ReviewState::None,
    };
    let discussions: Vec<Discussion> = list(forge, &format!("{path}/discussions"))?;
    let notes = discussions.into_iter().flat_map(|discussion| discussion.notes);
    review.comments = notes.filter(|note| !note.system && !note.resolved).map(comment).collect();
    Ok(review)
}

fn check(job: Job) -> Check {
    let state = match job.status.as_str() {
        "success" => ChecksState::Passed,
        "skipped" => ChecksState::None,
        // One that is started by hand and may fail is not waited for.
        "manual" if job.allow_failure => ChecksState::None,
        "failed" if job.allow_failure => ChecksState::Passed,
        "failed" => ChecksState::Failed,
        _ => ChecksState::Pending,
    };
    let (id, required) = (job.id.to_string(), !job.allow_failure);
    let log = job.downstream_pipeline.map(|downstream| downstream.web_url).unwrap_or_default();
    Check { id, name: job.name, state, required, log, job: Some(job.id) }
}

fn comment(note: Note) -> Comment {
    let position = note.position;
    let line = position.as_ref().and_then(|position| position.new_line.or(position.old_line));
    let is_token = note.author.username.starts_with("project_") || note.author.username.starts_with("group_");
    let is_program = note.author.bot || is_token && note.author.username.contains("_bot");
    Comment {
        id: format!("note:{}", note.id),
        by: note.author.username,
        path: position.and_then(|position| position.new_path),
        line,
        text: note.body,
        at: note.created_at,
        author: if is_program { Author::Program } else { Author::Person(note.author.id.to_string()) },
    }
}

pub(super) fn may_write(forge: &Forge, user: &str) -> Result<bool, ForgeError> {
    match get::<Member>(forge, &format!("{}/members/all/{user}", glab::project(forge))) {
        Ok(member) => Ok(member.access_level >= DEVELOPER),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The log of a job as a terminal shows it, without the marks of sections and, with `FF_TIMESTAMPS`, the times of the lines.
pub(super) fn log(forge: &Forge, job: u64) -> Result<String, ForgeError> {
    let path = format!("{}/jobs/{job}/trace", glab::project(forge));
    let said = run(&forge.directory, &[glab::api(forge), vec![path]].concat(), &[])?;
    Ok(readable(&said))
}

fn readable(trace: &str) -> String {
    let lines = trace.lines().map(|line| last_shown(without_time_and_stream(line)));
    let is_mark = |line: &String| line.starts_with("section_start:") || line.starts_with("section_end:");
    lines.filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}

/// A time, then `01E ` or `01E+`: the number of the stream, output or error, and whether the line before goes on.
fn without_time_and_stream(line: &str) -> &str {
    let rest = without_time(line);
    match rest.as_bytes() {
        [_, _, b'O' | b'E', b' ' | b'+', ..] if rest.len() < line.len() && rest.is_char_boundary(2) => &rest[4..],
        _ => rest,
    }
}

pub(super) fn retarget(forge: &Forge, number: u64, base: &str) -> Result<(), ForgeError> {
    let path = format!("{}/{number}", glab::merge_requests(forge));
    let call = words(["--method", "PUT", &path, "--raw-field", &format!("target_branch={base}")]);
    run(&forge.directory, &[glab::api(forge), call].concat(), &[]).map(drop)
}

pub(super) fn merge(forge: &Forge, number: u64, head: &str, style: MergeStyle) -> Result<(), ForgeError> {
    let path = format!("{}/{number}/merge", glab::merge_requests(forge));
    let fields = [format!("sha={head}"), format!("squash={}", style == MergeStyle::Squash)];
    let call = words(["--method", "PUT", &path, "--raw-field", &fields[0], "--field", &fields[1]]);
    run(&forge.directory, &[glab::api(forge), call].concat(), &[]).map(drop)
}

fn get<T: DeserializeOwned>(forge: &Forge, path: &str) -> Result<T, ForgeError> {
    let call = [glab::api(forge), vec![path.to_owned()]].concat();
    let said = run(&forge.directory, &call, &[])?;
    serde_json::from_str(&said).map_err(|_| ForgeError::answer(&call, "must print what GitLab says of it", &said))
}

/// All pages, which come one after another, each a list of its own.
fn list<T: DeserializeOwned>(forge: &Forge, path: &str) -> Result<Vec<T>, ForgeError> {
    let call = [glab::api(forge), words(["--paginate", &format!("{path}?per_page=100")])].concat();
    let said = run(&forge.directory, &call, &[])?;
    let pages: Result<Vec<Vec<T>>, _> = serde_json::Deserializer::from_str(&said).into_iter().collect();
    let pages = pages.map_err(|_| ForgeError::answer(&call, "must print a list", &said))?;
    Ok(pages.into_iter().flatten().collect())
}
