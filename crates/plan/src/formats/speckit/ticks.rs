//! The ticks of a task list: those of a lane are set when it is merged, and taken back when it is rolled back.

use super::lane::is_gate;
use super::paths;
use super::phases::phases;
use super::split::Split;
use crate::formats::shared::boxes::with_ticks;
use crate::markdown::Document;
use crate::ticks::Tick;

/// The text with the boxes of the lane's tasks ticked or open. No other byte differs.
///
/// A task that has moved to another phase since is found by its number. Tasks that only run commands are no tasks of the
/// lane: its tests are these commands.
pub(crate) fn ticked(tick: &Tick<'_>) -> String {
    let document = Document::new(tick.text);
    let (mut phases, _) = phases(&document);
    if !phases.iter().any(|phase| phase.id == tick.lane) {
        // The lane of a phase that was split, or of none.
        phases = Split::new(&document, &phases, &paths(&document, &phases)).phases;
    }
    let mut ticks = Vec::new();
    for phase in &phases {
        for task in &phase.tasks {
            let line = format!("L{}", task.check_box.line + 1);
            let is_named = match task.number {
                Some(number) => tick.tasks.contains(&number),
                None => phase.id == tick.lane && tick.tasks.contains(&line.as_str()),
            };
            if is_named || phase.id == tick.lane && is_gate(&tick.text[task.text.clone()]) {
                ticks.push(task.check_box.tick.clone());
            }
        }
    }
    with_ticks(tick.text, ticks, tick.done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(text: &str, tasks: &[&str], done: bool) -> String {
        let format = lanewright_model::PlanFormat::SpecKit;
        ticked(&Tick { format, path: "tasks.md", text, companions: &[], phase: "1", lane: "SETUP", tasks, done })
    }

    #[test]
    fn ticks_of_named_tasks_alone_change() {
        let text = "## Phase 1: Setup\r\n- [ ] T001 a\r\n- [ ] T002 b `- [ ] T001`\r\n```\r\n- [ ] T001 x\r\n```\r\n- [ ] c\r\n";
        let done = tick(text, &["T001", "L7"], true);
        assert_eq!(done, text.replacen("[ ] T001 a", "[x] T001 a", 1).replace("[ ] c", "[x] c"));
        assert_eq!(tick(&done, &["T001", "L7"], false), text);
        assert_eq!(tick(text, &["T009"], true), text);
    }

    #[test]
    fn tasks_that_are_tests_are_ticked_with_their_lane() {
        let text = "## Phase 1: Setup\n- [ ] T001 a\n- [ ] T002 Run `make test`\n## Phase 2: Polish\n- [ ] T003 Run `make lint`\n";
        assert_eq!(tick(text, &["T001"], true), text.replacen("[ ]", "[x]", 2));
    }
}
