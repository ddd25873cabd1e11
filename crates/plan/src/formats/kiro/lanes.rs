//! The lanes of one list. They are the same whatever is ticked, so that a lane keeps its id.

use std::collections::HashSet;

use lanewright_model::id::MAX_ID_LENGTH;

use super::list::{List, Task};
use super::waves::{Graph, graph, waves};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) id: String,
    /// In the order in which they are done.
    pub(super) tasks: Vec<Task>,
    /// Lanes of the same group may run side by side; they come after those of all groups before.
    pub(super) group: usize,
}

/// The lanes of the specification `spec`, and its graph. Tasks that are done one after the other are one lane.
pub(super) fn lanes(spec: &str, list: &List<'_>) -> (Vec<Lane>, Option<Graph>) {
    let graph = graph(list);
    let usable = graph.as_ref().filter(|graph| graph.fault.is_none());
    let named: HashSet<&str> =
        usable.iter().flat_map(|graph| graph.waves.iter().flatten().map(String::as_str)).collect();
    let tasks = list.tasks(usable.is_some(), &named);
    let Some(waves) = waves(list, &tasks, usable) else {
        let tasks = list.tasks(false, &HashSet::new());
        let lane = Lane { id: spec.to_owned(), tasks, group: 0 };
        return (Some(lane).filter(|lane| !lane.tasks.is_empty()).into_iter().collect(), graph);
    };
    let mut groups: Vec<Vec<Vec<usize>>> = Vec::new();
    let mut in_chain = false;
    for wave in waves {
        match (wave.as_slice(), groups.last_mut()) {
            ([only], Some(group)) if in_chain => group.iter_mut().for_each(|lane| lane.push(*only)),
            _ => {
                in_chain = wave.len() == 1;
                groups.push(wave.into_iter().map(|task| vec![task]).collect());
            }
        }
    }
    let lane = |group: usize, members: &Vec<usize>| {
        let tasks: Vec<Task> = members.iter().map(|at| tasks[*at].clone()).collect();
        let first = tasks.first().map_or("", |task| list.items[task.item].id.as_str());
        Lane { id: lane_id(spec, first), tasks, group }
    };
    let all = groups.iter().enumerate().flat_map(|(at, group)| group.iter().map(move |lane| (at, lane)));
    (all.map(|(group, members)| lane(group, members)).collect(), graph)
}

/// `login.2.1`; the specification's name is cut where the whole would be too long.
fn lane_id(spec: &str, task: &str) -> String {
    let room = MAX_ID_LENGTH.saturating_sub(task.len() + 1);
    // Ids are ASCII.
    let spec = &spec[..spec.len().min(room)];
    format!("{}.{task}", spec.trim_end_matches(['-', '.', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let list = List::new(text);
        let name = |task: &Task| list.items[task.item].id.clone();
        let show = |lane: &Lane| {
            format!("{} {}: {}", lane.group, lane.id, lane.tasks.iter().map(name).collect::<Vec<_>>().join(" "))
        };
        lanes("spec", &list).0.iter().map(show).collect()
    }

    #[test]
    fn list_is_one_lane_without_marks() {
        assert_eq!(shown("- [x] 1. a\n- [ ] 2. b\n"), ["0 spec: 1 2"]);
        assert_eq!(shown("nothing"), Vec::<String>::new());
    }

    #[test]
    fn parallel_tasks_are_lanes_between_chains() {
        let text = "- [x] 1. a\n- [ ] 2. b\n- [ ] 3. (P) c\n- [ ] 4. (P) d\n- [ ] 5. e\n- [ ] 6. f\n";
        let open = ["0 spec.1: 1 2", "1 spec.3: 3", "1 spec.4: 4", "2 spec.5: 5 6"];
        assert_eq!(shown(text), open);
        assert_eq!(shown(&text.replace("[ ]", "[x]")), open, "ticks change no lane");
    }

    #[test]
    fn long_names_are_cut() {
        let id = lane_id(&"a-".repeat(40), "12.3");
        assert!(id.len() <= MAX_ID_LENGTH && id.ends_with("a.12.3"), "{id}");
        assert_eq!(lane_id("s", &"1".repeat(99)), format!(".{}", "1".repeat(99)));
    }
}
