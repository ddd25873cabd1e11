//! The program's settings: which statuses there are, and which of them says that a task is done.

use crate::SourceFile;
use crate::faults::Faults;
use crate::formats::shared::items::{Standing, standing_of, text_of};
use crate::front_matter;
use crate::source_text::SourceText;
use crate::tree::Node;

const DEFAULTS: [&str; 3] = ["To Do", "In Progress", "Done"];

/// The names of the file, in the program's directory or at the root.
const FILES: [&str; 3] = ["config.yml", "config.yaml", "backlog.config.yml"];

#[derive(Debug)]
pub(super) struct Board {
    pub(super) project: Option<String>,
    /// The last one says that a task is done.
    pub(super) statuses: Vec<String>,
    /// The status of a new task.
    pub(super) first: String,
}

impl Board {
    pub(super) fn of(companions: &[SourceFile<'_>]) -> Self {
        let is_config = |file: &&SourceFile<'_>| {
            let name = file.path.rsplit(['/', '\\']).next().unwrap_or_default();
            FILES.contains(&name)
        };
        let (path, text) = companions.iter().find(is_config).map_or(("", ""), |file| (file.path, file.text));
        // A place in the settings is none in the plan; what can be read of them counts.
        let silent = Faults::new(SourceText::new(path, text));
        let root = front_matter::read(text, 0, &silent);
        let value = |key: &str| root.as_ref().and_then(|root| root.get(key));
        let of_value = |key: &str| Some(text_of(value(key), &silent)).filter(|text| !text.is_empty());
        let listed = value("statuses").map_or(&[][..], Node::list).iter().map(|node| text_of(Some(node), &silent));
        let mut statuses: Vec<String> = listed.filter(|status| !status.is_empty()).collect();
        if statuses.is_empty() {
            statuses = DEFAULTS.map(str::to_owned).to_vec();
        }
        Self {
            project: of_value("project_name"),
            first: of_value("default_status").unwrap_or_else(|| statuses[0].clone()),
            statuses,
        }
    }

    pub(super) fn done(&self) -> &str {
        self.statuses.last().map_or(DEFAULTS[2], String::as_str)
    }

    /// What a status says; `None` where neither the settings have it nor is its meaning plain.
    pub(super) fn standing(&self, status: &str) -> Option<Standing> {
        let is = |other: &str| status.trim().to_lowercase() == other.trim().to_lowercase();
        if is(self.done()) {
            return Some(Standing::Done(format!("its status is `{}`", status.trim())));
        }
        let known = self.statuses.iter().any(|other| is(other));
        standing_of(status).or(known.then_some(Standing::Open))
    }
}
