//! The plans of other programs at a place of a repository: found below a directory, each with its files and the files that
//! its format keeps beside them. Pure over [`Files`].

use std::path::{Path, PathBuf};

use lanewright_model::PlanFormat;

use super::{SourceFile, formats};

/// The files of a repository.
pub trait Files {
    /// The sorted names in a directory; none where `path` is not one.
    fn names(&self, path: &Path) -> Vec<String>;
    /// Whether `path` is a regular file.
    fn is_file(&self, path: &Path) -> bool;
    /// The text of a file; `None` where it cannot be read or is too large.
    fn text(&self, path: &Path) -> Option<String>;
}

/// A plan below a directory that the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub format: PlanFormat,
    /// What [`plan_at`] takes: a file, or a directory whose files are one plan.
    pub path: PathBuf,
    /// Whether something is left to do, as far as a look at its boxes shows.
    is_open: bool,
}

impl Candidate {
    pub fn new(format: PlanFormat, path: PathBuf, is_open: bool) -> Self {
        Self { format, path, is_open }
    }
}

/// The files of one plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PlanFiles {
    /// Known where there are several files, which are not detected one by one.
    pub format: Option<PlanFormat>,
    pub files: Vec<PathBuf>,
    /// What the format keeps beside them.
    pub companions: Vec<PathBuf>,
    /// The directory that the program of the format works in.
    pub project: PathBuf,
}

/// The task list of a change of OpenSpec, a specification of Kiro, a feature of Spec Kit.
const TASKS: &str = "tasks.md";

/// The plans of the directory at `path`, which is absolute: it is a format's own, or one with the directories of formats.
/// Plans that are done are left out unless all are. `wanted` gives the names that the current feature of Spec Kit may have,
/// the best first.
pub fn find(files: &dyn Files, path: &Path, wanted: &dyn Fn() -> Vec<String>) -> Vec<Candidate> {
    open_ones(if shape(path).is_some() { of_format(files, path, wanted) } else { below_project(files, path, wanted) })
}

/// Without those that are done, unless all are.
pub fn open_ones(mut found: Vec<Candidate>) -> Vec<Candidate> {
    if found.iter().any(|plan| plan.is_open) {
        found.retain(|plan| plan.is_open);
    }
    found
}

fn below_project(files: &dyn Files, path: &Path, wanted: &dyn Fn() -> Vec<String>) -> Vec<Candidate> {
    let own = list_in(files, path);
    let features = features(files, path, wanted);
    let places = ["openspec", ".taskmaster", ".kiro", "backlog", ".backlog", ".beads"];
    let others = places.iter().flat_map(|name| of_format(files, &path.join(name), wanted));
    own.into_iter().chain(features).chain(others).collect()
}

/// The list of a directory that no format knows by its name.
fn list_in(files: &dyn Files, path: &Path) -> Option<Candidate> {
    let list = path.join(TASKS);
    let format = format_of(files, &list).filter(|format| matches!(format, PlanFormat::SpecKit | PlanFormat::Kiro))?;
    let is_open = is_open(files, &list);
    Some(Candidate::new(format, list, is_open))
}

fn format_of(files: &dyn Files, file: &Path) -> Option<PlanFormat> {
    let text = files.text(file)?;
    formats::detect(&[SourceFile { path: &file.to_string_lossy(), text: &text }])
}

/// The plans of a directory that belongs to a format.
fn of_format(files: &dyn Files, path: &Path, wanted: &dyn Fn() -> Vec<String>) -> Vec<Candidate> {
    let file = |format, file: PathBuf| -> Vec<Candidate> {
        let open = || is_open(files, &file);
        files.is_file(&file).then(|| Candidate::new(format, file.clone(), open())).into_iter().collect()
    };
    match shape(path) {
        Some(Shape::OpenSpec) => directory(files, PlanFormat::OpenSpec, &path.join("changes")),
        Some(Shape::Changes) => directory(files, PlanFormat::OpenSpec, path),
        Some(Shape::Change) => file(PlanFormat::OpenSpec, path.join(TASKS)),
        Some(Shape::Kiro) => directory(files, PlanFormat::Kiro, &path.join("specs")),
        Some(Shape::KiroSpecs) => directory(files, PlanFormat::Kiro, path),
        Some(Shape::KiroSpec) => file(PlanFormat::Kiro, path.join(TASKS)),
        Some(Shape::TaskMaster) => file(PlanFormat::TaskMaster, path.join("tasks/tasks.json")),
        Some(Shape::TaskMasterTasks) => file(PlanFormat::TaskMaster, path.join("tasks.json")),
        Some(Shape::Backlog) => directory(files, PlanFormat::Backlog, &path.join("tasks")),
        Some(Shape::BacklogTasks) => directory(files, PlanFormat::Backlog, path),
        Some(Shape::Beads) => {
            let lists = ["issues.jsonl", "beads.jsonl"].map(|name| path.join(name));
            lists
                .into_iter()
                .find(|list| files.is_file(list))
                .map(|list| file(PlanFormat::Beads, list))
                .unwrap_or_default()
        }
        Some(Shape::SpecKit) => path.parent().map(|project| features(files, project, wanted)).unwrap_or_default(),
        None => Vec::new(),
    }
}

/// A directory whose files are one plan.
fn directory(files: &dyn Files, format: PlanFormat, path: &Path) -> Vec<Candidate> {
    let members = members(files, format, path);
    let open = members.iter().any(|file| format == PlanFormat::Backlog || is_open(files, file));
    (!members.is_empty()).then(|| Candidate::new(format, path.to_owned(), open)).into_iter().collect()
}

/// The files of the plan that is a directory of `format`.
fn members(files: &dyn Files, format: PlanFormat, path: &Path) -> Vec<PathBuf> {
    let names = files.names(path).into_iter();
    let found: Vec<PathBuf> = match format {
        PlanFormat::Backlog => markdown_below(files, path, MAX_NESTING),
        _ => names.filter(|name| name != "archive").map(|name| path.join(name).join(TASKS)).collect(),
    };
    found.into_iter().filter(|file| files.is_file(file)).collect()
}

fn is_markdown(path: &Path) -> bool {
    name_of(path).ends_with(".md")
}

/// The directory of tasks of Backlog.md that a file is below.
fn backlog_tasks(file: &Path) -> Option<&Path> {
    let is_tasks = |place: &&Path| shape(place) == Some(Shape::BacklogTasks);
    file.ancestors().skip(1).find(is_tasks).filter(|_| is_markdown(file))
}

/// How deep the tasks of Backlog.md may be sorted into folders.
const MAX_NESTING: usize = 4;

/// The Markdown files of a directory and of those below it.
fn markdown_below(files: &dyn Files, path: &Path, depth: usize) -> Vec<PathBuf> {
    let places = files.names(path).into_iter().map(|name| path.join(name));
    let of = |place: PathBuf| {
        if is_markdown(&place) || depth == 0 { vec![place] } else { markdown_below(files, &place, depth - 1) }
    };
    places.flat_map(of).filter(|place| is_markdown(place)).collect()
}

/// Whether a list of boxes has one that is not ticked; any other file is taken to have work.
fn is_open(files: &dyn Files, file: &Path) -> bool {
    !is_markdown(file)
        || files.text(file).is_some_and(|text| ["[ ]", "[-]", "[~]"].iter().any(|open| text.contains(open)))
}

/// The feature of Spec Kit that is worked on; several where nothing says which.
fn features(files: &dyn Files, project: &Path, wanted: &dyn Fn() -> Vec<String>) -> Vec<Candidate> {
    let home =
        ["specs", ".specify/specs"].iter().map(|home| project.join(home)).find(|home| !files.names(home).is_empty());
    let Some(home) = home else { return Vec::new() };
    let is_plan = |file: &PathBuf| format_of(files, file) == Some(PlanFormat::SpecKit);
    let lists = members(files, PlanFormat::SpecKit, &home).into_iter().filter(is_plan);
    let mut found: Vec<Candidate> =
        lists.map(|file| Candidate::new(PlanFormat::SpecKit, file.clone(), is_open(files, &file))).collect();
    if found.len() > 1 {
        let recorded = files.text(&project.join(".specify/feature.json")).and_then(|text| recorded_feature(&text));
        let names = wanted().into_iter().chain(recorded);
        let named = |name: String| found.iter().position(|plan| is_feature(plan.path.parent(), &name));
        if let Some(at) = names.into_iter().find_map(named) {
            found = vec![found.swap_remove(at)];
        }
    }
    open_ones(found)
}

/// The directory that Spec Kit records as that of the current feature.
fn recorded_feature(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    value.get("feature_directory")?.as_str().map(str::to_owned)
}

/// Whether `name` is the directory of a feature, or begins with its number as Spec Kit's branches do: `feature/003-other`
/// belongs to `003-user-login`.
fn is_feature(directory: Option<&Path>, name: &str) -> bool {
    let directory = directory.map(name_of).unwrap_or_default();
    let name = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
    let number = |name: &str| {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        (digits >= 3 && name[digits..].starts_with('-')).then(|| name[..digits].to_owned())
    };
    !name.is_empty() && (directory == name || number(directory).is_some() && number(directory) == number(name))
}

/// What a directory is to its format, by its name and those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    OpenSpec,
    Changes,
    Change,
    Kiro,
    KiroSpecs,
    KiroSpec,
    TaskMaster,
    TaskMasterTasks,
    Backlog,
    BacklogTasks,
    Beads,
    SpecKit,
}

fn shape(path: &Path) -> Option<Shape> {
    let mut names = path.ancestors().map(name_of);
    let [own, parent, above, top] = std::array::from_fn(|_| names.next().unwrap_or_default());
    Some(match (own, parent, above) {
        ("openspec", ..) => Shape::OpenSpec,
        ("changes", "openspec", _) => Shape::Changes,
        (_, "changes", "openspec") => Shape::Change,
        (_, "archive", "changes") if top == "openspec" => Shape::Change,
        (".kiro", ..) => Shape::Kiro,
        ("specs", ".kiro", _) => Shape::KiroSpecs,
        (_, "specs", ".kiro") => Shape::KiroSpec,
        (".taskmaster", ..) => Shape::TaskMaster,
        ("tasks", ".taskmaster", _) => Shape::TaskMasterTasks,
        ("backlog" | ".backlog", ..) => Shape::Backlog,
        ("tasks", "backlog" | ".backlog", _) => Shape::BacklogTasks,
        (".beads", ..) => Shape::Beads,
        ("specs" | ".specify", ..) => Shape::SpecKit,
        _ => return None,
    })
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The files of the plan at `path`, a file or a directory that [`find`] gave; `None`: it is no place of a format.
pub fn plan_at(files: &dyn Files, path: &Path) -> Option<PlanFiles> {
    let is_file = files.is_file(path);
    let home = if is_file { backlog_tasks(path).or(path.parent())? } else { path };
    let above = |levels: usize| home.ancestors().nth(levels).unwrap_or(home).to_owned();
    let one = || vec![path.to_owned()];
    let several = |format| (!is_file).then(|| members(files, format, path)).filter(|files| !files.is_empty());
    let (format, list, project) = match shape(home) {
        Some(Shape::Changes) => (PlanFormat::OpenSpec, several(PlanFormat::OpenSpec)?, above(2)),
        Some(Shape::KiroSpecs) => (PlanFormat::Kiro, several(PlanFormat::Kiro)?, above(2)),
        Some(Shape::BacklogTasks) if is_file => (PlanFormat::Backlog, one(), above(2)),
        Some(Shape::BacklogTasks) => (PlanFormat::Backlog, several(PlanFormat::Backlog)?, above(2)),
        Some(Shape::Change) if is_file => (PlanFormat::OpenSpec, one(), project_above(home, "openspec")),
        Some(Shape::KiroSpec) if is_file => (PlanFormat::Kiro, one(), above(3)),
        Some(Shape::TaskMasterTasks) if is_file => (PlanFormat::TaskMaster, one(), above(2)),
        Some(Shape::Beads) if is_file => (PlanFormat::Beads, one(), above(1)),
        _ if is_file && name_of(path) == TASKS && files.is_file(&home.join("requirements.md")) => {
            (PlanFormat::Kiro, one(), spec_kit_project(files, home))
        }
        _ if is_file && name_of(path) == TASKS => (PlanFormat::SpecKit, one(), spec_kit_project(files, home)),
        _ => return None,
    };
    let companions = companions(files, format, &list, &project);
    Some(PlanFiles { format: (!is_file).then_some(format), files: list, companions, project })
}

/// Whether the file at `path`, relative to the repository's root, has the place of a list of the format: of this plan or of
/// another one.
pub fn is_list(format: PlanFormat, path: &str) -> bool {
    let path = Path::new(path);
    let (name, home) = (name_of(path), path.parent().unwrap_or(path));
    let is = |extension: &str| path.extension().is_some_and(|found| found == extension);
    match (format, shape(home)) {
        (PlanFormat::SpecKit, None) => name == TASKS && home.parent().is_some_and(|above| name_of(above) == "specs"),
        (PlanFormat::OpenSpec, Some(Shape::Change)) | (PlanFormat::Kiro, Some(Shape::KiroSpec)) => name == TASKS,
        (PlanFormat::TaskMaster, Some(Shape::TaskMasterTasks)) => is("json"),
        (PlanFormat::Backlog, Some(Shape::BacklogTasks)) => is("md"),
        (PlanFormat::Beads, Some(Shape::Beads)) => is("jsonl"),
        _ => false,
    }
}

fn project_above(path: &Path, name: &str) -> PathBuf {
    let home = path.ancestors().find(|place| name_of(place) == name).and_then(Path::parent);
    home.unwrap_or(path).to_owned()
}

/// The next directory above that has `.specify`, else the one above `specs`.
fn spec_kit_project(files: &dyn Files, home: &Path) -> PathBuf {
    let marked = home.ancestors().find(|place| !files.names(&place.join(".specify")).is_empty());
    marked.or(home.ancestors().nth(2)).unwrap_or(home).to_owned()
}

/// The files that the format keeps beside the plan's, those of each file first.
fn companions(files: &dyn Files, format: PlanFormat, plan: &[PathBuf], project: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf, wanted: &dyn Fn(&str) -> bool| -> Vec<PathBuf> {
        files.names(&path).into_iter().filter(|name| wanted(name)).map(|name| path.join(name)).collect()
    };
    let beside = |names: &[&str]| -> Vec<PathBuf> {
        let homes = plan.iter().filter_map(|file| file.parent());
        homes.flat_map(|home| names.iter().map(|name| home.join(name))).collect()
    };
    let found: Vec<PathBuf> = match format {
        PlanFormat::SpecKit => {
            let own = ["spec.md", "plan.md", "research.md", "data-model.md", "quickstart.md"];
            let contracts = beside(&["contracts"]).into_iter().flat_map(|path| below(path, &|_| true));
            let constitution = project.join(".specify/memory/constitution.md");
            beside(&own).into_iter().chain(contracts).chain([constitution]).collect()
        }
        PlanFormat::OpenSpec => {
            let capabilities = beside(&["specs"]).into_iter().flat_map(|path| below(path, &|_| true));
            let deltas = capabilities.map(|capability| capability.join("spec.md"));
            let general = ["project.md", "AGENTS.md", "config.yaml"].map(|name| project.join("openspec").join(name));
            beside(&["proposal.md", "design.md"]).into_iter().chain(deltas).chain(general).collect()
        }
        PlanFormat::Kiro => {
            let steering = below(project.join(".kiro/steering"), &|name| is_markdown(Path::new(name)));
            beside(&["requirements.md", "bugfix.md", "design.md", "research.md", "spec.json"])
                .into_iter()
                .chain(steering)
                .collect()
        }
        PlanFormat::TaskMaster => {
            let home = project.join(".taskmaster");
            let documents = below(home.join("docs"), &|_| true);
            [home.join("state.json")].into_iter().chain(documents).collect()
        }
        PlanFormat::Backlog => {
            let tasks = plan.first().and_then(|file| backlog_tasks(file)).unwrap_or(project);
            let home = tasks.parent().unwrap_or(tasks);
            // What waits for a task that is not part of the plan must know whether that is done.
            let others = ["completed", "tasks"].map(|name| markdown_below(files, &home.join(name), MAX_NESTING));
            let others = others.into_iter().flatten().filter(|file| !plan.contains(file));
            [home.join("config.yml"), project.join("backlog.config.yml")].into_iter().chain(others).collect()
        }
        PlanFormat::Beads => beside(&["config.yaml"]),
        _ => Vec::new(),
    };
    found.into_iter().filter(|file| files.is_file(file)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Tree(BTreeMap<PathBuf, String>);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let file = |(path, text): &(&str, &str)| (Path::new("/r").join(path), (*text).to_owned());
            Self(files.iter().map(file).collect())
        }

        fn find(&self, path: &str, wanted: &[&str]) -> Vec<String> {
            let names = || wanted.iter().map(|name| (*name).to_owned()).collect();
            let found = find(self, Path::new(path), &names);
            found.iter().map(|plan| format!("{} {}", plan.format, below_root(&plan.path))).collect()
        }

        fn at(&self, path: &str) -> Option<(Vec<String>, Vec<String>)> {
            let plan = plan_at(self, Path::new(path))?;
            let names = |paths: &[PathBuf]| paths.iter().map(|path| below_root(path)).collect();
            Some((names(&plan.files), names(&plan.companions)))
        }
    }

    fn below_root(path: &Path) -> String {
        path.strip_prefix("/r").expect("below the root").display().to_string()
    }

    impl Files for Tree {
        fn names(&self, path: &Path) -> Vec<String> {
            let below = self.0.keys().filter_map(|file| file.strip_prefix(path).ok()?.components().next());
            let mut names: Vec<String> = below.map(|name| name.as_os_str().to_string_lossy().into_owned()).collect();
            names.dedup();
            names
        }

        fn is_file(&self, path: &Path) -> bool {
            self.0.contains_key(path)
        }

        fn text(&self, path: &Path) -> Option<String> {
            self.0.get(path).cloned()
        }
    }

    const OPEN: &str = "- [ ] 1. a\n";
    const DONE: &str = "- [x] 1. a\n";

    #[test]
    fn openspec_is_found_from_each_of_its_directories() {
        let tree = Tree::new(&[
            ("openspec/project.md", ""),
            ("openspec/changes/a/tasks.md", OPEN),
            ("openspec/changes/a/proposal.md", ""),
            ("openspec/changes/a/specs/auth/spec.md", ""),
            ("openspec/changes/b/tasks.md", DONE),
            ("openspec/changes/draft/proposal.md", "no list yet"),
            ("openspec/changes/archive/2025-01-01-c/tasks.md", DONE),
        ]);
        for path in ["/r", "/r/openspec", "/r/openspec/changes"] {
            assert_eq!(tree.find(path, &[]), ["openspec openspec/changes"], "{path}");
        }
        assert_eq!(tree.find("/r/openspec/changes/a", &[]), ["openspec openspec/changes/a/tasks.md"]);
        let archived = "openspec/changes/archive/2025-01-01-c";
        assert_eq!(tree.find(&format!("/r/{archived}"), &[]), [format!("openspec {archived}/tasks.md")]);
        let (files, companions) = tree.at("/r/openspec/changes").expect("a plan");
        assert_eq!(files, ["openspec/changes/a/tasks.md", "openspec/changes/b/tasks.md"]);
        let beside = ["openspec/changes/a/proposal.md", "openspec/changes/a/specs/auth/spec.md", "openspec/project.md"];
        assert_eq!(companions, beside);
        let one = tree.at("/r/openspec/changes/b/tasks.md").expect("a plan");
        assert_eq!(one, (vec!["openspec/changes/b/tasks.md".to_owned()], vec!["openspec/project.md".to_owned()]));
    }

    #[test]
    fn kiro_is_found_from_each_of_its_directories() {
        let tree = Tree::new(&[
            (".kiro/specs/a/tasks.md", OPEN),
            (".kiro/specs/a/design.md", ""),
            (".kiro/specs/b/requirements.md", ""),
            (".kiro/steering/tech.md", ""),
        ]);
        for path in ["/r", "/r/.kiro", "/r/.kiro/specs"] {
            assert_eq!(tree.find(path, &[]), ["kiro .kiro/specs"], "{path}");
        }
        assert_eq!(tree.find("/r/.kiro/specs/a", &[]), ["kiro .kiro/specs/a/tasks.md"]);
        let (files, companions) = tree.at("/r/.kiro/specs/a/tasks.md").expect("a plan");
        assert_eq!(files, [".kiro/specs/a/tasks.md"]);
        assert_eq!(companions, [".kiro/specs/a/design.md", ".kiro/steering/tech.md"]);
    }

    #[test]
    fn formats_of_one_file_are_found() {
        let tree = Tree::new(&[
            (".taskmaster/tasks/tasks.json", "{}"),
            (".taskmaster/state.json", "{}"),
            (".beads/issues.jsonl", "{}"),
            ("backlog/config.yml", ""),
            ("backlog/tasks/task-1 - A.md", ""),
        ]);
        let all = ["taskmaster .taskmaster/tasks/tasks.json", "backlog backlog/tasks", "beads .beads/issues.jsonl"];
        assert_eq!(tree.find("/r", &[]), all, "the user chooses");
        for path in ["/r/.taskmaster", "/r/.taskmaster/tasks"] {
            assert_eq!(tree.find(path, &[]), all[..1], "{path}");
        }
        let (_, companions) = tree.at("/r/.taskmaster/tasks/tasks.json").expect("a plan");
        assert_eq!(companions, [".taskmaster/state.json"]);
        let (files, companions) = tree.at("/r/backlog/tasks").expect("a plan");
        assert_eq!(
            (files, companions),
            (vec!["backlog/tasks/task-1 - A.md".to_owned()], vec!["backlog/config.yml".to_owned()])
        );
    }

    #[test]
    fn backlog_tasks_are_found_in_folders() {
        let [deep, other] = ["backlog/tasks/epics/one/task-3 - C.md", "backlog/tasks/task-4 - D.md"];
        let tree = Tree::new(&[("backlog/completed/a.md", ""), ("backlog/drafts/b.md", ""), (deep, ""), (other, "")]);
        let done = "backlog/completed/a.md".to_owned();
        assert_eq!(tree.at("/r/backlog/tasks"), Some((vec![deep.to_owned(), other.to_owned()], vec![done.clone()])));
        assert_eq!(tree.at(&format!("/r/{deep}")), Some((vec![deep.to_owned()], vec![done, other.to_owned()])));
    }

    #[test]
    fn finished_formats_are_no_candidates_beside_open_ones() {
        let files = [("openspec/changes/a/tasks.md", DONE), (".kiro/specs/a/tasks.md", OPEN)];
        assert_eq!(Tree::new(&files).find("/r", &[]), ["kiro .kiro/specs"]);
        assert_eq!(Tree::new(&files[..1]).find("/r", &[]), ["openspec openspec/changes"]);
    }

    #[test]
    fn other_directories_have_no_plan() {
        let tree =
            Tree::new(&[("README.md", OPEN), ("src/main.rs", ""), ("backlog/notes.md", ""), ("specs/a/x.md", "")]);
        for path in ["/r", "/r/src", "/r/backlog", "/r/specs", "/r/nothing", "/"] {
            assert_eq!(tree.find(path, &[]), Vec::<String>::new(), "{path}");
            assert_eq!(tree.at(path), None, "{path}");
        }
        assert_eq!(tree.at("/r/README.md"), None);
    }

    #[test]
    fn feature_of_the_branch_is_taken_among_open_ones() {
        let list = "# Tasks: A\n\n## Phase 1: Setup\n\n- [ ] T001 Add src/a.rs\n";
        let done = &list.replace("[ ]", "[x]");
        let tree = Tree::new(&[
            ("specs/001-a/tasks.md", list),
            ("specs/002-b/tasks.md", list),
            ("specs/003-c/tasks.md", done),
            ("tasks.md", "- [ ] x"),
        ]);
        let paths = ["specs/001-a/tasks.md", "specs/002-b/tasks.md"].map(|path| format!("speckit {path}"));
        assert_eq!(tree.find("/r", &["main"]), paths);
        for path in ["/r", "/r/specs"] {
            assert_eq!(tree.find(path, &["main", "002-b"]), paths[1..], "{path}");
        }
        assert_eq!(tree.find("/r/specs/002-b", &[]), paths[1..]);
        assert_eq!(tree.find("/r", &["003-other"]), ["speckit specs/003-c/tasks.md"], "it is named, so it is taken");
    }

    #[test]
    fn feature_is_matched_by_name_or_number() {
        let is = |name: &str| is_feature(Some(Path::new("/r/specs/003-user-login")), name);
        for name in ["003-user-login", "feature/003-user-login", "003-other", "specs/003-user-login/"] {
            assert!(is(name), "{name}");
        }
        for name in ["", "/", "main", "0031-x", "3-user-login", "user-login", "004-user-login"] {
            assert!(!is(name), "{name}");
        }
        assert_eq!(recorded_feature(r#"{"feature_directory": "specs/003-x"}"#).as_deref(), Some("specs/003-x"));
        assert_eq!(recorded_feature("no"), None);
    }

    #[test]
    fn lists_of_other_plans_are_known_by_their_place() {
        let lists = [
            (PlanFormat::SpecKit, "specs/002-x/tasks.md"),
            (PlanFormat::SpecKit, "app/specs/002-x/tasks.md"),
            (PlanFormat::OpenSpec, "openspec/changes/b/tasks.md"),
            (PlanFormat::Kiro, ".kiro/specs/b/tasks.md"),
            (PlanFormat::TaskMaster, ".taskmaster/tasks/tasks.json"),
            (PlanFormat::Backlog, "backlog/tasks/task-2 - B.md"),
            (PlanFormat::Beads, ".beads/issues.jsonl"),
        ];
        for (format, path) in lists {
            assert!(is_list(format, path), "{format} {path}");
            let others = lists.iter().filter(|(other, _)| *other != format);
            assert!(others.clone().all(|(_, other)| !is_list(format, other)), "{format}");
        }
        for path in
            ["specs/002-x/spec.md", "tasks.md", "docs/tasks.md", "src/tasks/a.json", "openspec/changes/b/proposal.md"]
        {
            assert!(lists.iter().all(|(format, _)| !is_list(*format, path)), "{path}");
        }
    }
}
