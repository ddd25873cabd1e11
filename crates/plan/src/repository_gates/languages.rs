//! What the manifests of languages say of themselves: Cargo, Python, Go.

use lanewright_model::dependencies::DEPENDENCIES;
use toml::{Table, Value};

use super::scripts::program;
use super::{Purpose, Root};

pub(super) fn find(root: &mut Root<'_>) {
    cargo(root);
    python(root);
    if root.has("go.mod") {
        root.add(Purpose::Test, "go test ./...", "go.mod");
    }
}

fn cargo(root: &mut Root<'_>) {
    const FILE: &str = "Cargo.toml";
    let Some(manifest) = root.toml(FILE) else { return };
    match (manifest.contains_key("package"), manifest.contains_key("workspace")) {
        // By itself, cargo tests the package of the root only.
        (true, true) => root.add(Purpose::Test, "cargo test --workspace", FILE),
        (false, false) => {}
        _ => root.add(Purpose::Test, "cargo test", FILE),
    }
}

/// Where a section of a file says that a tool is used.
type Sections = &'static [(&'static str, &'static str)];

const PYTEST: Sections = &[("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]")];
const TOX: Sections = &[("tox.ini", "[tox]"), ("tox.ini", "[testenv]"), ("setup.cfg", "[tox:tox]")];

fn python(root: &mut Root<'_>) {
    const FILE: &str = "pyproject.toml";
    let project = root.toml(FILE).unwrap_or_default();
    let in_project = |tool: &str| match project.get("tool").and_then(|tools| tools.get(tool)) {
        Some(_) => Some(format!("`tool.{tool}` of {FILE}")),
        None => requires(&project, tool).then(|| format!("a dependency of {FILE}")),
    };
    let of_file =
        |root: &Root<'_>, names: &[&str]| names.iter().find(|name| root.has(name)).map(|&name| name.to_owned());
    let in_section = |root: &mut Root<'_>, sections: Sections| {
        let mut found = sections.iter().filter_map(|(file, section)| {
            let text = root.text(file)?;
            text.lines().any(|line| line.trim_end() == *section).then(|| format!("`{section}` of {file}"))
        });
        found.next()
    };
    let of_environment = DEPENDENCIES.iter().filter(|known| known.places.contains(&".venv"));
    let lock = of_environment.clone().find(|known| root.has(known.lock_file));
    let prefix = lock.map(|known| format!("{} run ", program(known.install))).unwrap_or_default();
    let ruff = of_file(root, &["ruff.toml", ".ruff.toml"]).or_else(|| in_project("ruff"));
    let pytest = of_file(root, &["pytest.ini", ".pytest.ini", "conftest.py"]).or_else(|| in_project("pytest"));
    let pytest = pytest.or_else(|| in_section(root, PYTEST));
    let tox = in_project("tox").or_else(|| in_section(root, TOX));
    if let Some(source) = ruff {
        root.add(Purpose::Lint, format!("{prefix}ruff check"), source);
    }
    // tox runs pytest once for each environment.
    match (pytest, tox) {
        (Some(source), _) => root.add(Purpose::Test, format!("{prefix}pytest"), source),
        (None, Some(source)) => root.add(Purpose::Test, format!("{prefix}tox"), source),
        (None, None) => {}
    }
}

/// Whether the dependencies of a pyproject.toml name `tool`: as a requirement (`pytest>=8`) or as a key of Poetry's tables.
fn requires(project: &Table, tool: &str) -> bool {
    let is_dependencies = |key: &str| key.ends_with("dependencies") || key == "dependency-groups" || key == "group";
    let tools = project.get("tool").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = tools.filter_map(Value::as_table).chain(project.get("project").and_then(Value::as_table));
    let lists = tables.chain([project]).flatten().filter(|(key, _)| is_dependencies(key));
    lists.into_iter().any(|(_, value)| names(value, tool))
}

fn names(value: &Value, tool: &str) -> bool {
    match value {
        Value::String(requirement) => {
            let end = requirement.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)));
            requirement[..end.unwrap_or(requirement.len())].eq_ignore_ascii_case(tool)
        }
        Value::Array(items) => items.iter().any(|item| names(item, tool)),
        Value::Table(table) => table.iter().any(|(key, value)| key == tool || names(value, tool)),
        _ => false,
    }
}
