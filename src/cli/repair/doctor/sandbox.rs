//! Which sandbox this machine builds, by building it and trying to get out: for information.

use lanewright_model::{SandboxChoice, WallBuilder};
use lanewright_programs::wall;
use serde::Serialize;

use crate::cli::RepositoryContext;

#[derive(Debug, Serialize)]
pub(super) struct Sandbox {
    setting: SandboxChoice,
    /// `bubblewrap` or `landlock`; null: none can be built.
    builder: Option<&'static str>,
    /// The version of Landlock that the kernel has; null: none.
    landlock: Option<u32>,
    /// What a better one lacks.
    refused: Vec<Refused>,
}

#[derive(Debug, Serialize)]
struct Refused {
    reason: String,
    remedy: String,
}

/// `None`: none is wanted.
pub(super) fn sandbox(within: &RepositoryContext) -> Option<Sandbox> {
    let setting = within.settings.sandbox.value;
    if setting == SandboxChoice::Off {
        return None;
    }
    let available = wall::available();
    let refused = available.refused.iter();
    Some(Sandbox {
        setting,
        builder: available.builder.as_ref().map(|builder| match builder {
            WallBuilder::Bubblewrap(_) => "bubblewrap",
            WallBuilder::Landlock => "landlock",
        }),
        landlock: wall::landlock_version(),
        refused: refused.map(|it| Refused { reason: it.reason.clone(), remedy: it.remedy.clone() }).collect(),
    })
}

impl Sandbox {
    pub(super) fn as_text(&self) -> String {
        let found = match self.builder {
            Some("landlock") => "Landlock builds one here, which holds writes but hides nothing".to_owned(),
            Some(builder) => format!("{builder} builds one here, and it holds"),
            None => "none can be built here".to_owned(),
        };
        let mut text = format!("Sandbox (`sandbox = \"{}\"`): {found}\n", self.setting);
        text.extend(self.refused.iter().map(|it| format!("  {}; {}\n", it.reason, it.remedy)));
        text
    }
}
