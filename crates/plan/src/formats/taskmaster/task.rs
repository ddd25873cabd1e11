//! The tasks of a list and their subtasks, with what they wait for.

use std::collections::HashMap;

use lanewright_model::text::counted;

use crate::Source;
use crate::dependencies::topological_order;
use crate::faults::{Faults, quoted};
use crate::formats::shared::items::{Item, MIDDLE, Reference, Standing, rank_of, standing_of, text_of};
use crate::front_matter::scalar;
use crate::ids::as_id;
use crate::source_text::At;
use crate::tree::{Node, Value};

/// A task, or a subtask of one.
pub(super) struct Task<'n> {
    pub(super) node: &'n Node,
    /// As it is written.
    pub(super) id: At<String>,
    /// The id as references compare it.
    pub(super) key: String,
    pub(super) title: String,
    pub(super) standing: Standing,
    pub(super) waits_for: Vec<At<String>>,
    pub(super) subtasks: Vec<Task<'n>>,
    /// The places of the subtasks by their ids; of several the first.
    positions: HashMap<String, usize>,
}

/// An id in one spelling: `"07"` is 7.
pub(super) fn key_of(id: &str) -> String {
    let digits = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest if part.bytes().all(|byte| byte.is_ascii_digit()) => rest.to_owned(),
        _ => part.to_owned(),
    };
    id.trim().split('.').map(digits).collect::<Vec<_>>().join(".")
}

/// The lane of a task: `T12`.
pub(super) fn lane_id(id: &str) -> Option<String> {
    let numbered = id.starts_with(|c: char| c.is_ascii_digit());
    as_id(&if numbered { format!("T{id}") } else { id.to_owned() })
}

impl<'n> Task<'n> {
    /// `None` where the node is no task, which is noted.
    pub(super) fn read(node: &'n Node, faults: &Faults<'_>) -> Option<Self> {
        if !matches!(node.value, Value::Table(_)) {
            faults.error_with(node.span, format!("a task is a table, not {}", node.value.kind()), "remove it");
            return None;
        }
        let Some(id) = node.get("id").and_then(|id| scalar(id, faults)) else {
            faults.error_with(node.span, "this task has no `id`", "give it one that no other task of its list has");
            return None;
        };
        let subtasks = node.get("subtasks").map_or(&[][..], Node::list);
        let waits_for = node.get("dependencies").into_iter().flat_map(|all| match all.value {
            Value::List(_) => all.list().iter(),
            _ => std::slice::from_ref(all).iter(),
        });
        let subtasks: Vec<Self> = subtasks.iter().filter_map(|subtask| Task::read(subtask, faults)).collect();
        let mut positions = HashMap::new();
        for (at, subtask) in subtasks.iter().enumerate() {
            if *positions.entry(subtask.key.clone()).or_insert(at) != at {
                let message = format!("task {} has two subtasks {}", quoted(&id.value), quoted(&subtask.id.value));
                faults.warning(subtask.id.span, message, "give each an id of its own, so that others can depend on it");
            }
        }
        Some(Self {
            node,
            key: key_of(&id.value),
            title: text_of(node.get("title"), faults),
            standing: standing(node, &id, faults),
            waits_for: waits_for.filter_map(|on| scalar(on, faults)).collect(),
            subtasks,
            positions,
            id,
        })
    }

    pub(super) fn item(&self, known: &HashMap<&str, &Task<'_>>, source: &Source<'_>, faults: &Faults<'_>) -> Item {
        let id = lane_id(&self.id.value).unwrap_or_else(|| self.id.value.clone());
        let open = self.subtasks.iter().filter(|subtask| subtask.standing.is_open()).count();
        let standing = match self.standing.clone().unless_redone(&id, &source.options) {
            Standing::Done(reason) if open > 0 => {
                Standing::Done(format!("{reason}; {} of it still open", counted(open, "subtask")))
            }
            standing => standing,
        };
        let of_subtasks = self.subtasks.iter().filter(|subtask| subtask.standing.is_open());
        let waits_for = self.waits_for.iter().filter_map(|on| self.target(on, false, known));
        let below =
            of_subtasks.flat_map(|subtask| subtask.waits_for.iter().filter_map(|on| self.target(on, true, known)));
        let priority = text_of(self.node.get("priority"), faults);
        Item {
            id: At::new(id, self.id.span),
            name: self.title.clone(),
            key: self.key.clone(),
            waits_for: waits_for.chain(below).collect(),
            is_again: standing.is_open() && !self.standing.is_open(),
            standing,
            rank: rank_of(&priority).unwrap_or(MIDDLE),
        }
    }

    /// The task that a dependency is on; `None` where the lane need not wait for another. In a subtask a plain number is a
    /// subtask of the same task where there is one.
    fn target(&self, on: &At<String>, in_subtask: bool, known: &HashMap<&str, &Task<'_>>) -> Option<Reference> {
        let key = key_of(&on.value);
        let reference = |key: &str| Some(Reference { key: key.to_owned(), written: on.clone() });
        if in_subtask && (self.subtask(&key).is_some() || key == self.key) {
            return None;
        }
        if known.contains_key(key.as_str()) {
            return reference(&key);
        }
        let of_task = key.split_once('.').and_then(|(task, _)| known.get(task));
        match of_task.map(|task| (task, task.subtask(&key))) {
            Some((task, Some(_))) if task.key == self.key => None,
            Some((_, Some(subtask))) if matches!(subtask.standing, Standing::Done(_) | Standing::Dropped(_)) => None,
            Some((task, Some(_))) => reference(&task.key),
            _ => reference(&key),
        }
    }

    /// The subtask of a plain id, or of one behind the task's own.
    pub(super) fn subtask(&self, key: &str) -> Option<&Task<'n>> {
        self.position(key).map(|at| &self.subtasks[at])
    }

    fn position(&self, key: &str) -> Option<usize> {
        let own = key.strip_prefix(self.key.as_str()).and_then(|rest| rest.strip_prefix('.')).unwrap_or(key);
        self.positions.get(own).copied()
    }

    /// The open subtasks in the order of their dependencies; those that wait for one that is set aside are left out.
    pub(super) fn order(&self, faults: &Faults<'_>) -> Vec<&Task<'n>> {
        let on = |subtask: &Task<'_>| {
            subtask.waits_for.iter().filter_map(|on| self.position(&key_of(&on.value))).collect::<Vec<usize>>()
        };
        let waits: Vec<Vec<usize>> = self.subtasks.iter().map(on).collect();
        let (order, circular) = topological_order(&waits, |at| at);
        if let Some(&first) = circular.first() {
            let message = format!("subtasks of task {} wait for each other", quoted(&self.id.value));
            faults.error_with(self.subtasks[first].id.span, message, "remove one of their `dependencies`");
        }
        let mut aside: Vec<bool> = vec![false; self.subtasks.len()];
        for &at in &order {
            let subtask = &self.subtasks[at];
            let waits_in_vain = subtask.standing.is_open() && waits[at].iter().any(|&on| aside[on]);
            aside[at] = waits_in_vain || matches!(subtask.standing, Standing::Aside(_));
            if aside[at] && self.standing.is_open() {
                let name = format!("{}.{}", self.id.value, subtask.id.value);
                let why = if waits_in_vain { "it waits for one that is left out" } else { "of its status" };
                let message = format!("subtask {} is left out because {why}", quoted(&name));
                faults.warning(
                    subtask.id.span,
                    message,
                    "its task stays open; set its status to `pending` to have it done",
                );
            }
        }
        order
            .into_iter()
            .filter(|&at| self.subtasks[at].standing.is_open() && !aside[at])
            .map(|at| &self.subtasks[at])
            .collect()
    }
}

/// What the status of a task says; one without a status is pending.
fn standing(node: &Node, id: &At<String>, faults: &Faults<'_>) -> Standing {
    let Some(status) = node.get("status").and_then(|status| scalar(status, faults)) else { return Standing::Open };
    standing_of(&status.value).unwrap_or_else(|| {
        let message = format!("the status {} of task {} is not known", quoted(&status.value), quoted(&id.value));
        let help = "one of: pending, in-progress, review, done, deferred, cancelled, blocked";
        faults.error_with(status.span, message, help);
        Standing::Aside(format!("its status is `{}`", status.value))
    })
}
