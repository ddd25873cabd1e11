//! What `doctor --executor` prints.

use lanewright_model::word_enum;
use serde_json::{Value, json};

use crate::cli::{Context, ExitStatus, Result};

word_enum! {
    Outcome {
        Ok = "ok",
        Warning = "warning",
        Failed = "failed",
        Skipped = "skipped",
    }
}

pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    details: String,
    remedy: Option<String>,
}

impl Line {
    pub(crate) fn new(name: &'static str, outcome: Outcome, details: String) -> Self {
        Self { name, outcome, details, remedy: None }
    }

    pub(crate) fn remedy(self, remedy: String) -> Self {
        Self { remedy: Some(remedy).filter(|remedy| !remedy.is_empty()), ..self }
    }

    /// Says which lanes it is about, unless it is about none.
    pub(crate) fn about(self, lanes: Option<&str>) -> Self {
        match lanes {
            Some(lanes) => Self { details: format!("{}; asked for: {lanes}", self.details), ..self },
            None => self,
        }
    }

    fn text(&self) -> String {
        let line = format!("{:10}  {:7}  {}\n", self.name, self.outcome, self.details);
        let remedy = self.remedy.iter().map(|remedy| format!("{:21}{remedy}\n", ""));
        [line].into_iter().chain(remedy).collect()
    }

    fn json(&self) -> Value {
        json!({"check": self.name, "outcome": self.outcome, "details": self.details, "remedy": self.remedy})
    }
}

pub(crate) fn report(context: &Context, executor: &str, exchange: &str, lines: &[Line]) -> Result<ExitStatus> {
    let ok = lines.iter().all(|line| matches!(line.outcome, Outcome::Ok | Outcome::Warning));
    let text: String = lines.iter().map(Line::text).collect();
    let end = if ok { "works" } else { "does not work yet" };
    let checks: Vec<Value> = lines.iter().map(Line::json).collect();
    let json = json!({"executor": executor, "exchange": exchange, "ok": ok, "checks": checks});
    context.printer.print(format!("{text}The executor {executor} {end}.\n"), &json)?;
    Ok(if ok { ExitStatus::Done } else { ExitStatus::Blocked })
}
