//! The files of a lane: those that it declares, and those that its tasks say they make.

use std::collections::HashSet;
use std::ops::Range;

use lanewright_model::ownership::Ownership;
use lanewright_model::plan::OwnershipRule;

use super::context::Context;
use super::lane_text::Label;
use super::paths::owned;
use super::tasks::Kind;
use crate::faults::{Faults, quoted};
use crate::path::as_glob;
use crate::source_text::At;

pub(super) struct Files {
    pub(super) owns: Vec<At<String>>,
    pub(super) rule: OwnershipRule,
    /// The paths that the lane declares, as it writes them.
    pub(super) declared: Vec<At<String>>,
    globs: HashSet<String>,
    allowed: Option<Ownership>,
}

pub(super) fn owned_files(context: &Context<'_>, lane: usize) -> Files {
    let text = &context.lanes[lane];
    let fields: Vec<Range<usize>> = text.field(Label::Owned).collect();
    let found: Vec<Option<Vec<At<String>>>> =
        fields.iter().map(|range| owned(context.document.text, range.clone())).collect();
    let owns_nothing = !found.is_empty() && found.iter().all(Option::is_none);
    let declared: Vec<At<String>> = found.into_iter().flatten().flatten().collect();
    let makers = text.tasks.list.iter().filter(|task| task.kind != Some(Kind::Verify));
    let made = makers.flat_map(|task| task.files.iter().chain(if owns_nothing { &[] } else { task.tests.as_slice() }));
    let by_tasks: Vec<&At<String>> = made.collect();
    let rule = match (declared.is_empty(), by_tasks.is_empty()) {
        (true, true) if owns_nothing => OwnershipRule::Nothing,
        (true, false) if owns_nothing => OwnershipRule::Enforced,
        (false, _) => OwnershipRule::Enforced,
        _ => OwnershipRule::Advisory,
    };
    if let (Some(range), true, false) = (fields.first(), declared.is_empty(), owns_nothing) {
        let message = format!("the owned files of lane {} contain no path", quoted(&text.id));
        let help = "write each path in backticks: as it is, the lane may change any file";
        context.faults.warning(range.start..range.start, message, help);
    }
    let mut files = Files { owns: Vec::new(), rule, declared: Vec::new(), globs: HashSet::new(), allowed: None };
    declared.iter().chain(by_tasks).for_each(|path| files.add(path, context.faults));
    if rule == OwnershipRule::Enforced {
        for writer in context.phase.single_writers.iter().filter(|writer| writer.lane == lane) {
            files.add(&At::new(writer.path.clone(), text.at.clone()), context.faults);
        }
    }
    files.declared = declared;
    files.allowed = Ownership::new(&files.owns.iter().map(|glob| glob.value.as_str()).collect::<Vec<_>>()).ok();
    files
}

impl Files {
    fn add(&mut self, path: &At<String>, faults: &Faults<'_>) {
        match as_glob(&path.value) {
            Ok(glob) if self.globs.insert(glob.clone()) => self.owns.push(At::new(glob, path.span)),
            Ok(_) => {}
            Err(reason) => {
                let message = format!("{} cannot be owned: {reason}", quoted(&path.value));
                let help = "name files relative to the repository's root; this one is left out";
                faults.warning(path.span, message, help);
            }
        }
    }

    /// Whether the lane owns what `path` names. Without any glob nothing is owned, though anything may be changed.
    pub(super) fn own(&self, path: &str) -> bool {
        let allows = |allowed: &Ownership| allowed.allows(path.trim_start_matches("./"));
        let matches = || !self.owns.is_empty() && self.allowed.as_ref().is_some_and(allows);
        as_glob(path).is_ok_and(|glob| self.globs.contains(&glob) || matches())
    }
}
