//! What a CI service shows beside the code: complaints with their locations, as GitHub's workflow commands.

use std::fmt;

use lanewright_model::{Diagnosis, Finding};

use super::ExecutionReport;
use super::escape::visible;
use super::lanes::LaneReport;
use crate::history::LaneState;

lanewright_model::word_enum! {
    Severity {
        Error = "error",
        /// Something is wrong, or waits for the user.
        Warning = "warning",
    }
}

/// A complaint, and its location where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    pub severity: Severity,
    /// Its lane and its kind.
    pub title: String,
    pub message: String,
    /// The file, relative to the repository's root where the tool said so.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The column as the tool counts it.
    pub column: Option<u32>,
}

/// The most of a kind that GitHub shows of one step.
const SHOWN: usize = 10;

/// Lane by lane; at most ten of a severity, the last of which says how many more there are.
pub fn annotations(report: &ExecutionReport<'_>) -> Vec<Annotation> {
    let all = all(report);
    let of = |severity| all.iter().filter(|it| it.severity == severity).cloned().collect();
    [of(Severity::Error), of(Severity::Warning)].into_iter().flat_map(shown).collect()
}

pub(super) fn all(report: &ExecutionReport<'_>) -> Vec<Annotation> {
    report.lanes.iter().flat_map(of_lane).chain(of_final_gate(report)).collect()
}

fn shown(mut all: Vec<Annotation>) -> Vec<Annotation> {
    if all.len() > SHOWN {
        let more = all.len() - SHOWN + 1;
        all.truncate(SHOWN - 1);
        let (severity, title) = (all[0].severity, "Lanewright".to_owned());
        let message = format!("and {more} more of these: see the job summary, or lanewright report");
        all.push(Annotation { severity, title, message, file: None, line: None, column: None });
    }
    all
}

fn of_lane(report: &LaneReport<'_>) -> Vec<Annotation> {
    let (lane, note) = (report.lane, &report.summary.note);
    let title = |what: &str| format!("{}: {what}", lane.id);
    let mut all = match (lane.state, report.failure()) {
        (LaneState::Failed, Some(failure)) => {
            let failure = &failure.failure;
            complaints(&title(failure.kind.word()), &failure.message, failure.diagnosis.as_deref(), &failure.paths)
        }
        (LaneState::Failed, None) => vec![plain(Severity::Error, title("failed"), note)],
        (LaneState::Blocked | LaneState::Stopped | LaneState::NeedsApproval(_) | LaneState::NeedsPerson, _) => {
            vec![plain(Severity::Warning, title(lane.state.word()), note)]
        }
        _ => Vec::new(),
    };
    let missing = lane.must_haves.iter().filter(|verdict| verdict.holds == Some(false));
    all.extend(missing.map(|verdict| plain(Severity::Warning, title("must-have"), &verdict.describe())));
    all
}

fn of_final_gate(report: &ExecutionReport<'_>) -> Vec<Annotation> {
    let Some(gate) = report.final_gate.last().map(|gate| gate.job) else { return Vec::new() };
    let Some(exit) = gate.exit.as_ref().filter(|exit| !exit.passed()) else { return Vec::new() };
    complaints("final gate", &format!("{}: {}", gate.ending(), exit.command), gate.diagnosis(), &[])
}

/// One for each known location, or one for all.
fn complaints(title: &str, message: &str, diagnosis: Option<&Diagnosis>, paths: &[String]) -> Vec<Annotation> {
    let whole = plain(Severity::Error, title.to_owned(), message);
    let findings = diagnosis.map(|diagnosis| diagnosis.findings.as_slice()).unwrap_or_default();
    let placed = findings.iter().filter(|finding| finding.file.is_some()).map(|finding| placed(&whole, finding));
    let files = paths.iter().map(|path| Annotation { file: Some(path.clone()), ..whole.clone() });
    let all: Vec<Annotation> = placed.chain(files).collect();
    if all.is_empty() { vec![whole] } else { all }
}

fn placed(whole: &Annotation, Finding { file, line, column, message }: &Finding) -> Annotation {
    let message = if message.is_empty() { whole.message.clone() } else { message.clone() };
    Annotation { file: file.clone(), line: *line, column: *column, message, ..whole.clone() }
}

fn plain(severity: Severity, title: String, message: &str) -> Annotation {
    let message = if message.is_empty() { title.clone() } else { message.to_owned() };
    Annotation { severity, title, message, file: None, line: None, column: None }
}

impl fmt::Display for Annotation {
    /// A workflow command: `::error file=src/a.rs,line=3,col=5,title=SL-1%3A gate::mismatched types`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let properties = [
            ("file", self.file.clone()),
            ("line", number(self.line)),
            ("col", number(self.line.and(self.column))),
            ("title", Some(self.title.clone())),
        ];
        let given = properties.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", property(&value?))));
        let given: Vec<String> = given.collect();
        write!(f, "::{} {}::{}", self.severity, given.join(","), data(&self.message))
    }
}

/// The text of a workflow command, in GitHub's escapes.
fn data(text: &str) -> String {
    visible(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
