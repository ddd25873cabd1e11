//! The files of a lane: those that it declares, and those that its tasks say they make.

use std::collections::HashSet;
use std::ops::Range;

use super::context::Context;
use super::label::Label;
use super::making::Making;
use super::paths::{Named, owned};
use super::tasks::{Kind, RawTask};
use crate::model::ownership::Ownership;
use crate::model::plan::OwnershipRule;
use crate::plan::faults::quoted;
use crate::plan::path::as_glob;
use crate::plan::source_text::At;

pub(super) struct Files {
    pub(super) owns: Vec<At<String>>,
    pub(super) rule: OwnershipRule,
    /// The paths that the lane declares, as it writes them.
    pub(super) declared: Vec<Named>,
    globs: HashSet<String>,
    allowed: Option<Ownership>,
}

/// What the lane owns: the files that it declares, and those that its tasks say they make.
pub(super) fn owned_files(making: &Making<'_>, lane: usize, list: &[RawTask]) -> Files {
    let context = making.context;
    let text = &context.lanes[lane];
    let fields: Vec<Range<usize>> = text.field(Label::Owned).collect();
    let found: Vec<Option<Vec<Named>>> =
        fields.iter().map(|range| owned(context.document.text, range.clone())).collect();
    let declared: Vec<Named> = found.iter().flatten().flatten().cloned().collect();
    let owns_nothing = !found.is_empty() && found.iter().all(Option::is_none);
    let makers = list.iter().filter(|task| task.kind != Some(Kind::Verify));
    let by_tasks: Vec<&Named> = makers
        .flat_map(|task| task.files.iter().chain(if owns_nothing { &[] } else { task.tests.as_slice() }))
        .collect();
    let rule = match (declared.is_empty(), by_tasks.is_empty()) {
        (false, _) => OwnershipRule::Enforced,
        (true, true) if owns_nothing => OwnershipRule::Nothing,
        (true, false) if owns_nothing => OwnershipRule::Enforced,
        _ => OwnershipRule::Advisory,
    };
    if let (Some(range), true, false) = (fields.first(), declared.is_empty(), owns_nothing) {
        let message = format!("no path can be told from the owned files of lane {}", quoted(&text.id));
        context.warning(
            range.start..range.start,
            message,
            "write each path in backticks: as it is, the lane may change any file",
        );
    }
    let mut files = Files { owns: Vec::new(), rule, declared: Vec::new(), globs: HashSet::new(), allowed: None };
    declared.iter().chain(by_tasks).for_each(|named| files.add(context, named));
    if rule == OwnershipRule::Enforced {
        for writer in making.single_writers.iter().filter(|writer| writer.lane == lane) {
            files.add(context, &Named { path: writer.path.clone(), at: text.at.clone() });
        }
    }
    files.declared = declared;
    files.allowed = Ownership::new(&files.owns.iter().map(|glob| glob.value.as_str()).collect::<Vec<_>>()).ok();
    files
}

impl Files {
    fn add(&mut self, context: &Context<'_>, named: &Named) {
        match as_glob(&named.path) {
            Ok(glob) => {
                if self.globs.insert(glob.clone()) {
                    self.owns.push(context.at(glob, named.at.clone()));
                }
            }
            Err(reason) => {
                let message = format!("{} cannot be owned: {reason}", quoted(&named.path));
                context.warning(
                    named.at.clone(),
                    message,
                    "name files relative to the repository's root; this one is left out",
                );
            }
        }
    }

    /// Whether the lane owns what `path` names.
    pub(super) fn own(&self, path: &str) -> bool {
        as_glob(path).is_ok_and(|glob| self.globs.contains(&glob) || self.matches(path))
    }

    /// Without any glob nothing is owned, though anything may be changed.
    fn matches(&self, path: &str) -> bool {
        let allows = |allowed: &Ownership| allowed.allows(path.trim_start_matches("./"));
        !self.owns.is_empty() && self.allowed.as_ref().is_some_and(allows)
    }
}
