use super::task_file::key;
use super::*;
use crate::ticks::Tick;
use crate::{PlanFormat, SourceFile};

#[test]
fn ids_are_compared_without_prefix_and_zeros() {
    for (one, other) in [("TASK-7", "task-07"), ("BACK-24.02", "24.2"), ("task-7", "7"), ("T-0", "0")] {
        assert_eq!(key(one), key(other));
    }
    assert_eq!(key("task-epic-11.175"), "task-epic-11.175");
    assert_ne!(key("m-1.x"), key("1"));
}

#[test]
fn task_files_are_told_from_other_markdown() {
    let task = "---\nid: TASK-1\ntitle: A\nstatus: To Do\nassignee: []\n---\n";
    assert!(
        is_plan("x/task-1 - A.md", task)
            && is_plan("backlog/tasks/a.md", "# A")
            && is_plan("C:\\r\\backlog\\tasks\\a.md", "")
    );
    assert!(!is_plan("README.md", "# A\n- [ ] b\n") && !is_plan("my-backlog/tasks/a.md", "# A"));
    assert!(!is_plan("post.md", "---\ntitle: A\nstatus: draft\nid: 1\n---\n"));
}

const CONFIG: SourceFile<'_> = SourceFile {
    path: "backlog/config.yml",
    text: "project_name: \"p\"\ndefault_status: \"Neu\"\nstatuses: [\"Neu\", \"Läuft\", \"Fertig: ja\"]\n",
};

fn tick(text: &str, companions: &[SourceFile<'_>], done: bool) -> Option<String> {
    let companions: Vec<_> = companions.iter().map(|it| (it.path.to_owned(), it.text.to_owned())).collect();
    let tick = Tick {
        format: PlanFormat::Backlog,
        path: "backlog/tasks/task-1.md",
        text,
        companions: &companions,
        phase: "p",
        lane: "TASK-1",
        tasks: &["TASK-1"],
        done,
    };
    crate::ticked(&tick)
}

#[test]
fn ticks_change_status_and_criteria_only() {
    let text = |status: &str, tick: &str| {
        format!(
            "\u{feff}---\r\nid: TASK-1\r\nstatus: {status}\r\nx: [ ]\r\n---\r\n- [ ] a\r\n## Acceptance Criteria\r\n<!-- AC:BEGIN -->\r\n- [{tick}] #1 ä\r\n- [x] #2 b\r\n<!-- AC:END -->\r\n"
        )
    };
    assert_eq!(tick(&text("To Do", " "), &[], true), Some(text("Done", "x")));
    assert_eq!(tick(&text("\"To Do\"", " "), &[], true), Some(text("\"Done\"", "x")));
    assert_eq!(tick(&text("Neu", " "), &[CONFIG], true), Some(text("'Fertig: ja'", "x")));
    assert_eq!(tick(&text("Done", "x"), &[], true), None);
    assert!(tick(&text("Done", "x"), &[], false).unwrap().contains("status: To Do\r\n"));
    assert_eq!(tick(&text("To Do", " ").replace("TASK-1", "TASK-2"), &[], true), None);
}

#[test]
fn last_status_of_settings_means_done() {
    let board = Board::of(&[CONFIG]);
    assert!(matches!(board.standing("fertig: JA"), Some(Standing::Done(_))));
    assert_eq!((board.standing("Läuft"), board.standing("?")), (Some(Standing::Open), None));
    assert!(matches!(Board::of(&[]).standing("On Hold"), Some(Standing::Aside(_))));
}
