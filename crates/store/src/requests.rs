//! How `stop`, `approve`, `reject`, `tell`, `pick`, `log-event` and `checkpoints create` reach the process that runs a run: one small file for each request.

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_files::directory::entries;
use lanewright_files::regular_file::read_foreign;
use lanewright_files::{FileError, atomic};
use lanewright_model::event::{CheckedOut, Event, GivenContext, SnapshotReason, StopReason};
use lanewright_model::{AgentName, CommitId, EventName, HumanGate, LaneId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a person wants of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    Stop {
        /// Only this lane; `None`: the whole run.
        #[serde(default)]
        lane: Option<LaneId>,
        /// Kill instead of asking the agents.
        #[serde(default)]
        force: bool,
    },
    Answer {
        lane: LaneId,
        gate: HumanGate,
        approved: bool,
        /// The user's message, which reaches the agent.
        #[serde(default)]
        message: String,
    },
    /// Record a snapshot that was taken on a person's wish.
    Record {
        lane: LaneId,
        /// In whose worktree it was taken; `None`: the lane's.
        #[serde(default)]
        agent: Option<AgentName>,
        commit: CommitId,
        reference: String,
        /// What was given along with it.
        #[serde(default)]
        context: Option<Box<GivenContext>>,
        #[serde(default)]
        checked_out: Option<Box<CheckedOut>>,
    },
    /// Say something to the agents of a lane.
    Tell { lane: LaneId, message: String },
    /// Have another candidate of a lane continue.
    Pick { lane: LaneId, agent: AgentName },
    /// Record an event of the caller's.
    Log {
        #[serde(default)]
        lane: Option<LaneId>,
        name: EventName,
        #[serde(default)]
        data: Option<Value>,
    },
}

impl From<Request> for Event {
    fn from(request: Request) -> Self {
        match request {
            Request::Stop { lane, force } => Self::StopRequested { lane, reason: StopReason::Request, force },
            Request::Record { lane, agent, commit, reference, context, checked_out } => Self::SnapshotTaken {
                lane,
                agent,
                reason: SnapshotReason::Request,
                commit,
                reference,
                unchanged: false,
                context,
                checked_out,
            },
            Request::Tell { lane, message } => Self::MessageSent { lane, message },
            Request::Pick { lane, agent } => Self::CandidatePicked { lane, agent },
            Request::Log { lane, name, data } => Self::EventLogged { lane, name, data },
            Request::Answer { lane, gate, approved, message } => Self::GateAnswered { lane, gate, approved, message },
        }
    }
}

#[derive(Debug, Default)]
pub struct Taken {
    /// Those that can be read, the oldest first.
    pub requests: Vec<Request>,
    /// Where they lie now: for `forget` once what they ask for is durable elsewhere.
    pub files: Vec<PathBuf>,
    pub malformed: Vec<Malformed>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    pub path: PathBuf,
    pub reason: String,
}

/// Leaves a request in `directory`, which exists, and returns its file. It is durable and whole when it is visible.
pub fn submit(directory: &Path, request: &Request) -> Result<PathBuf, FileError> {
    // A version 7 UUID begins with the time in milliseconds, so names sort by age.
    let path = directory.join(format!("{}.json", uuid::Uuid::now_v7()));
    let text = serde_json::to_vec(request).map_err(|error| FileError::io("write", &path)(error.into()))?;
    atomic::write(&path, &text)?;
    Ok(path)
}

/// Takes back the request that [`submit`] left as `path`; `true`: it was still there, and will never be taken.
pub fn withdraw(path: &Path) -> Result<bool, FileError> {
    atomic::remove_if_there(path)
}

/// A request that was taken and not forgotten: its taker died, perhaps after what it asked for was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    pub request: Request,
    pub since: Timestamp,
    pub file: PathBuf,
}

/// Takes everything that waits in `directory`, the oldest first. No directory holds no requests.
///
/// What is taken cannot be withdrawn any more and is not taken again, but stays as `*.taken` until it is forgotten. A
/// request that cannot be read, or not be moved and would be taken again, is set aside as `*.bad` and does not prevent
/// taking the others.
pub fn take(directory: &Path) -> Result<Taken, FileError> {
    let mut taken = Taken::default();
    for path in ending_with(directory, "json")? {
        match read(&path).and_then(|request| mark_taken(&path).map(|file| (request, file))) {
            Ok((request, file)) => {
                taken.requests.push(request);
                taken.files.push(file);
            }
            Err(reason) => taken.malformed.push(set_aside(path, reason)),
        }
    }
    Ok(taken)
}

/// Removes requests that were taken, now that what they ask for is durable. One that cannot be removed is found again
/// by [`interrupted`].
pub fn forget(files: &[PathBuf]) {
    for file in files {
        if let Err(error) = fs::remove_file(file) {
            tracing::warn!("{} cannot be removed: {error}", file.display());
        }
    }
}

/// The requests that were taken and not forgotten, the oldest first. No other process may be taking any.
pub fn interrupted(directory: &Path) -> Result<Vec<Interrupted>, FileError> {
    let files = ending_with(directory, TAKEN)?.into_iter();
    Ok(files.filter_map(|file| Some(Interrupted { request: read(&file).ok()?, since: age(&file), file })).collect())
}

fn age(file: &Path) -> Timestamp {
    let name = file.file_stem().and_then(|stem| uuid::Uuid::try_parse(&stem.to_string_lossy()).ok());
    let (seconds, nanoseconds) = name.and_then(|name| name.get_timestamp()).map_or((0, 0), |time| time.to_unix());
    let millis = i64::try_from(seconds).unwrap_or(0).saturating_mul(1000) + i64::from(nanoseconds / 1_000_000);
    Timestamp::from_unix_millis(millis)
}

/// How the file of a request ends that was taken.
const TAKEN: &str = "taken";

fn ending_with(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, FileError> {
    let mut paths = entries(directory)?;
    paths.retain(|path| is_request(path, extension));
    Ok(paths)
}

/// A file that is being written has a name that begins with a dot.
fn is_request(path: &Path, wanted: &str) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == wanted)
}

fn read(path: &Path) -> Result<Request, String> {
    let text = read_foreign(path)?.ok_or("it vanished")?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

fn mark_taken(path: &Path) -> Result<PathBuf, String> {
    let taken = path.with_extension(TAKEN);
    atomic::rename(path, &taken).map_err(|error| format!("it cannot be taken: {error}"))?;
    Ok(taken)
}

fn set_aside(path: PathBuf, reason: String) -> Malformed {
    let aside = path.with_extension("bad");
    match atomic::rename(&path, &aside) {
        Ok(()) => Malformed { path: aside, reason },
        Err(_) => Malformed { path, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::Approval;

    fn stop(force: bool) -> Request {
        Request::Stop { lane: None, force }
    }

    fn answer(message: &str) -> Request {
        let lane = LaneId::new("SL-1").unwrap();
        Request::Answer { lane, gate: Approval::Plan.into(), approved: true, message: message.into() }
    }

    #[test]
    fn requests_are_taken_once_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let sent: Vec<Request> = (0..50).map(|number| answer(&number.to_string())).chain([stop(true)]).collect();
        for request in &sent {
            submit(directory.path(), request).unwrap();
        }
        let taken = take(directory.path()).unwrap();
        assert_eq!(taken.requests, sent);
        assert_eq!(take(directory.path()).unwrap().requests, []);
        let left: Vec<Request> = interrupted(directory.path()).unwrap().into_iter().map(|left| left.request).collect();
        assert_eq!(left, sent, "a process that dies now has lost them");
        forget(&taken.files);
        assert_eq!(interrupted(directory.path()).unwrap(), []);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn taken_request_has_time_of_submission() {
        let directory = tempfile::tempdir().unwrap();
        let before = Timestamp::from_unix_millis(chrono::Utc::now().timestamp_millis());
        submit(directory.path(), &stop(true)).unwrap();
        take(directory.path()).unwrap();
        let left = interrupted(directory.path()).unwrap();
        assert!(left[0].since >= before && left[0].since.since(before) < std::time::Duration::from_secs(600));
    }

    #[test]
    fn malformed_request_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("0.json"), "{\"request\":\"sto").unwrap();
        fs::write(place("1.json"), "{\"request\":\"dance\"}").unwrap();
        fs::write(place("2.json"), "{\"request\":\"answer\",\"lane\":\"../x\",\"gate\":\"plan\",\"approved\":true}")
            .unwrap();
        fs::create_dir(place("3.json")).unwrap();
        fs::write(place(".unfinished.json"), "").unwrap();
        submit(directory.path(), &stop(false)).unwrap();
        fs::write(place("9.json"), "{\"request\":\"stop\"}").unwrap();
        let taken = take(directory.path()).unwrap();
        assert_eq!(taken.requests, [stop(false), stop(false)]);
        assert_eq!(taken.malformed.len(), 4);
        assert_eq!(taken.malformed[0].path, place("0.bad"));
        assert!(taken.malformed[2].reason.contains("begins with a letter"), "{:?}", taken.malformed);
        assert!(place(".unfinished.json").exists());
        assert!(take(directory.path()).unwrap().malformed.is_empty());
    }

    #[test]
    fn request_is_taken_or_withdrawn_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = submit(directory.path(), &stop(false)).unwrap();
        assert!(withdraw(&path).unwrap());
        assert_eq!(take(directory.path()).unwrap().requests, []);
        let path = submit(directory.path(), &stop(false)).unwrap();
        assert_eq!(take(directory.path()).unwrap().requests.len(), 1);
        assert!(!withdraw(&path).unwrap());
    }

    #[test]
    fn missing_request_directory_is_empty() {
        assert!(take(Path::new("/nowhere/at/all")).unwrap().requests.is_empty());
    }
}
