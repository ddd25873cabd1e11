//! The setting `tests`: the commands that test the repository.

use std::path::Path;

use super::setting::SettingLine;
use crate::cli::Context;
use crate::cli::context::REPOSITORY_CONFIG;
use crate::cli::repository_gates::{gates_of, sources, tests_value};

/// The commands of the repository in `root`, if it has any. Manifests that cannot be read are warnings, and so is, where the
/// setting is `asked` for, that there is none.
pub(super) fn line(context: &Context, root: &Path, asked: bool) -> Option<SettingLine> {
    let found = gates_of(root);
    found.faults.iter().for_each(|fault| context.printer.note(fault));
    if found.gates.is_empty() {
        if asked {
            let message = "no file in the root of this repository names a command that tests it";
            context.printer.warning(message, &[format!("set `tests` in {REPOSITORY_CONFIG} yourself")]);
        }
        return None;
    }
    let comment = format!("What must pass on a lane's branch before it is merged; from {}.", sources(&found));
    Some(SettingLine { key: "tests", value: tests_value(&found), comment: Some(comment) })
}
