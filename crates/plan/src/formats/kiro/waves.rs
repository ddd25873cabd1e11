//! What of a list may be done at the same time: the waves of its graph, or runs of tasks marked with `(P)`.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::list::{List, Task};
use crate::markdown::Fence;

/// The graph that newer lists end with: `{"waves": [{"id": 0, "tasks": ["1.1", "2.1"]}]}`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Graph {
    /// The numbers of each wave.
    pub(super) waves: Vec<Vec<String>>,
    /// The line that it begins in.
    pub(super) line: usize,
    /// Why it cannot be used.
    pub(super) fault: Option<String>,
}

/// The graph of a list; `None`: it has none.
pub(super) fn graph(list: &List<'_>) -> Option<Graph> {
    let document = &list.document;
    let mut line = 0;
    while line < document.len() {
        let first = line;
        while line < document.len() && document.fence(line) == Fence::Inside {
            line += 1;
        }
        if line > first {
            let text = &document.text[document.bytes(first..line)];
            if text.contains("\"waves\"") {
                return Some(read(text, first));
            }
        }
        line += 1;
    }
    None
}

fn read(text: &str, line: usize) -> Graph {
    let broken = |fault: String| Graph { fault: Some(fault), line, ..Graph::default() };
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return broken(error.to_string()),
    };
    let Some(waves) = value.get("waves").and_then(Value::as_array) else {
        return broken("`waves` is not a list".to_owned());
    };
    let tasks = |wave: &Value| -> Vec<String> {
        let ids = wave.as_array().or_else(|| wave.get("tasks")?.as_array());
        let word =
            |id: &Value| id.as_str().map(|id| id.trim().to_owned()).or_else(|| id.as_number().map(|id| id.to_string()));
        ids.into_iter().flatten().filter_map(word).collect()
    };
    Graph { waves: waves.iter().map(tasks).collect(), line, fault: None }
}

/// The waves of `tasks`, by their positions; `None`: they are done one after the other.
pub(super) fn waves(list: &List<'_>, tasks: &[Task], graph: Option<&Graph>) -> Option<Vec<Vec<usize>>> {
    let waves = match graph {
        Some(graph) => by_graph(list, tasks, graph),
        None => by_marks(list, tasks),
    };
    waves.iter().any(|wave| wave.len() > 1).then_some(waves)
}

/// A task that the graph does not name, such as a checkpoint, comes behind all waves with earlier tasks of the list.
fn by_graph(list: &List<'_>, tasks: &[Task], graph: &Graph) -> Vec<Vec<usize>> {
    let named = graph.waves.iter().enumerate().flat_map(|(wave, ids)| ids.iter().map(move |id| (id.as_str(), wave)));
    let wave_of: HashMap<&str, usize> = named.collect();
    let mut latest = 0;
    let mut waves: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let named = task.members.iter().filter_map(|member| wave_of.get(list.items[*member].id.as_str()));
        let key = match named.max() {
            Some(wave) => (2 * wave + 2, 0),
            None => (latest + 1, at),
        };
        latest = latest.max(key.0 / 2 * 2);
        waves.entry(key).or_default().push(at);
    }
    waves.into_values().collect()
}

/// Tasks marked with `(P)` that follow each other in one group are a wave, unless one names another as what it depends on.
fn by_marks(list: &List<'_>, tasks: &[Task]) -> Vec<Vec<usize>> {
    let mut waves: Vec<Vec<usize>> = Vec::new();
    let mut in_wave: HashSet<&str> = HashSet::new();
    for (at, task) in tasks.iter().enumerate() {
        let item = &list.items[task.item];
        let group = |at: usize| (list.items[tasks[at].item].parent, list.items[tasks[at].item].heading);
        let joins = waves.last().and_then(|wave| wave.first()).is_some_and(|first| {
            let first_item = &list.items[tasks[*first].item];
            item.is_parallel && first_item.is_parallel && group(*first) == group(at)
        });
        let waits = list.depends(item).iter().any(|id| in_wave.contains(id));
        if !joins || waits {
            waves.push(Vec::new());
            in_wave.clear();
        }
        in_wave.insert(&item.id);
        if let Some(wave) = waves.last_mut() {
            wave.push(at);
        }
    }
    waves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<Vec<String>> {
        let list = List::new(text);
        let graph = graph(&list);
        let named = graph.iter().flat_map(|graph| graph.waves.iter().flatten().map(String::as_str)).collect();
        let tasks = list.tasks(graph.is_some(), &named);
        let name = |at: &usize| list.items[tasks[*at].item].id.clone();
        let waves = waves(&list, &tasks, graph.as_ref())?;
        Some(waves.iter().map(|wave| wave.iter().map(name).collect::<Vec<_>>().join(" ")).collect())
    }

    #[test]
    fn graph_gives_waves() {
        let tasks = "- [ ] 1. A\n  - [ ] 1.1 a\n  - [ ] 1.2 b\n- [ ] 2. B\n  - x\n  - [ ] 2.1 c\n- [ ] 3. Checkpoint\n- [ ] 4. D\n";
        let graph =
            |waves: &str| shown(&format!("{tasks}## Task Dependency Graph\n```json\n{{\"waves\": {waves}}}\n```\n"));
        let by_id =
            graph(r#"[{"id": 0, "tasks": ["1.1", "2.1"]}, {"id": 1, "tasks": ["1.2"]}, {"id": 2, "tasks": ["4"]}]"#);
        assert_eq!(by_id.expect("waves"), ["1.1 2.1", "1.2", "3", "4"]);
        assert_eq!(graph(r#"[["2", "1.2", 4], ["1.1"]]"#).expect("waves"), ["1.2 2 4", "1.1", "3"]);
        assert_eq!(graph("[[\"1.1\"]]"), None);
        assert_eq!(graph("["), None);
        assert!(read("{", 0).fault.is_some() && read("{\"waves\": 1}", 0).fault.is_some());
    }

    #[test]
    fn marks_give_waves_within_a_group() {
        let text = "- [ ] 1. A\n  - [ ] 1.1 (P) a\n  - [ ] 1.2 (P) b\n  - [ ] 1.3 c\n  - [ ] 1.4 (P) d\n- [ ] 2. B\n  - [ ] 2.1 (P) e\n";
        assert_eq!(shown(text).expect("waves"), ["1.1 1.2", "1.3", "1.4", "2.1"]);
        let depends = text.replace("(P) b\n", "(P) b\n    - _Depends: 1.1_\n");
        assert_eq!(shown(&depends), None);
        assert_eq!(shown("- [ ] 1. a\n- [ ] 2. b\n"), None);
    }
}
