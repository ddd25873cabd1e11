//! Manifests of packages. A place in a checkout that one names is the checkout's in every worktree, and a gate would judge that.

use std::path::{Path, PathBuf};

use lanewright_model::dependencies::MANIFESTS;
use serde_json::Value;

/// Go reads a module file of any name with `-modfile`.
pub(super) fn is_manifest(place: &Path) -> bool {
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    MANIFESTS.contains(&name) || name.ends_with(".mod")
}

/// The paths, as they are written, at which the manifest of that name expects packages or files of one, with the numbers of
/// their lines. None of a manifest that cannot be parsed.
pub(super) fn places(name: &Path, text: &str) -> Vec<(usize, PathBuf)> {
    let text = text.trim_start_matches('\u{feff}');
    let value: Option<Value> = match name.extension().and_then(|it| it.to_str()) {
        Some("mod") if !text.lines().any(|line| line.split_whitespace().next() == Some("module")) => return Vec::new(),
        Some("mod" | "work") => {
            return text.lines().zip(1..).filter_map(|(line, at)| Some((at, of_go(line)?))).collect();
        }
        Some("toml") => toml::from_str(text).ok(),
        _ => serde_json::from_str(text).ok(),
    };
    let (value, mut found) = (value.unwrap_or_default(), Vec::new());
    of_value(("", false), &value, &mut found);
    let line_of = |place: &str| {
        let has_it = |line: &str| line.contains(place) && !line.trim_start().starts_with('#');
        text.lines().position(has_it).unwrap_or_default() + 1
    };
    found.into_iter().map(|place| (line_of(place), place.into())).collect()
}

/// `replace NAME => PLACE`, `use PLACE`, and the same in blocks.
fn of_go(line: &str) -> Option<PathBuf> {
    let code = line.split("//").next().unwrap_or_default();
    let place = match code.split_once("=>") {
        Some((_, place)) => place,
        None => code.trim().strip_prefix("use").unwrap_or(code),
    };
    Some(place.trim().trim_matches(['"', '`'])).filter(|place| place.starts_with(['/', '.'])).map(PathBuf::from)
}

/// Those that are, or are within, the `value` of `key`, which `names_packages` or is in what does.
fn of_value<'t>((key, names_packages): (&str, bool), value: &'t Value, found: &mut Vec<&'t str>) {
    match value {
        Value::Object(inner) => inner.iter().for_each(|(key, value)| {
            let is_within = names_packages || PACKAGES.contains(&key.as_str()) || key.ends_with("ependencies");
            of_value((key, is_within), value, found);
        }),
        Value::Array(inner) => inner.iter().for_each(|value| of_value((key, names_packages), value, found)),
        Value::String(text) if PLACES.contains(&key) || names_packages && key == "path" => found.push(text),
        Value::String(text) if names_packages => found.extend(of_requirement(text)),
        _ => {}
    }
}

/// Keys of tables that say where packages, or the files of one, are; others end with `dependencies`.
const PACKAGES: &[&str] = &[
    "bench",
    "bin",
    "dependency-groups",
    "example",
    "lib",
    "overrides",
    "patch",
    "replace",
    "resolutions",
    "sources",
    "test",
];

/// Keys of paths of code, wherever they are.
const PLACES: &[&str] = &["build", "members", "pythonpath"];

/// `PLACE`, `file:PLACE`, also `link:` and `portal:`, and `name @ file://PLACE#fragment`.
fn of_requirement(text: &str) -> Option<&str> {
    if text.starts_with(['/', '.']) {
        return Some(text);
    }
    let address = text.split_once('@').map(|(_, address)| address.trim_start()).filter(|it| it.starts_with("file:"));
    let address = address.unwrap_or(text);
    let place = ["file:", "link:", "portal:"].iter().find_map(|scheme| address.strip_prefix(scheme))?;
    place.strip_prefix("//").unwrap_or(place).split(['#', '?', ';']).next().map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<(usize, PathBuf)> {
        places(Path::new(name), text)
    }

    #[test]
    fn places_are_found_in_each_kind_of_manifest() {
        for (name, text) in [
            ("go.mod", "module x\nreplace corp.example/priv => /repo/priv"),
            ("go.mod", "\u{feff}module\tx\n  replace corp.example/priv => /repo/priv"),
            ("go.local.mod", "module x\n\tcorp.example/priv v1.2.3 => `/repo/priv` // for now"),
            ("go.work", "go 1.24\nuse /repo/priv"),
            ("go.work", "use (\n\t\"/repo/priv\"\n)"),
            ("Cargo.toml", "[dependencies]\npriv = { version = '1', path = \"/repo/priv\" } # for now"),
            ("Cargo.toml", "[target.'cfg(unix)'.dev-dependencies.priv]\npath='/repo/priv'"),
            ("Cargo.toml", "[patch.crates-io]\npriv.path = '''/repo/priv'''"),
            ("Cargo.toml", "[lib]\n\"path\" = '/repo/priv'"),
            ("Cargo.toml", "[workspace]\nmembers = ['/repo/priv']"),
            ("pyproject.toml", "[project]\ndependencies = ['priv[x] @ file:///repo/priv#egg=priv']"),
            ("pyproject.toml", "[tool.uv.sources]\npriv = { path = '/repo/priv', editable = true }"),
            ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = ['/repo/priv']"),
            ("package.json", "{ \"dependencies\":\n{ \"priv\": \"file:/repo/priv\" } }"),
            ("package.json", "{ \"devDependencies\":\n{ \"priv\": \"link:/repo/priv\" } }"),
            ("package.json", "{ \"overrides\": { \"x\":\n{ \"priv\": \"file:///repo/priv\" } } }"),
            ("package.json", "{ \"dependencies\":\n{ \"priv\": \"/repo/priv\" } }"),
        ] {
            assert_eq!(found(name, text), [(2, "/repo/priv".into())], "{text}");
        }
        for (name, text) in [
            ("go.mod", "module x\nreplace y => ../repo/priv"),
            ("Cargo.toml", "[dependencies]\npriv.path = \"../repo/priv\""),
            ("package.json", "{ \"dependencies\":\n{ \"priv\": \"file:../repo/priv\" } }"),
        ] {
            assert_eq!(found(name, text), [(2, "../repo/priv".into())], "{text}");
        }
    }

    #[test]
    fn other_texts_of_manifests_name_no_place() {
        for (name, text) in [
            ("go.mod", "module x\n// replace corp.example/priv => /repo/priv"),
            ("go.mod", "module x\nrequire corp.example/repo v1.2.3"),
            ("model.mod", "data /repo/data/x.dat;\n/repo/x\n"),
            ("Cargo.toml", "[dependencies]\n# priv.path = \"/repo/priv\""),
            ("Cargo.toml", "[package]\ninclude = [\"/repo\"]\ndocumentation = \"file:///repo/docs\""),
            ("Cargo.toml", "[package.metadata.x]\npath = \"/repo\""),
            ("pyproject.toml", "[tool.x]\nlog_path = \"/repo/docs\"\nmodule-path = \"/repo\"\ncache_path = \"/repo\""),
            ("pyproject.toml", "text = \"\"\"\npath = '/repo/priv'\n\"\"\""),
            ("package.json", "{ \"homepage\": \"/repo\", \"scripts\": { \"open\": \"file:/repo/docs/i\" } }"),
            ("package.json", "{ \"scripts\": { \"docker\": \"docker run -v .:/repo -w /repo node npm test\" } }"),
            ("package.json", "{ \"dependencies\": { \"priv\": \"npm:@corp/priv@^1\", \"x\": \"git+file:///repo\" } }"),
        ] {
            assert_eq!(found(name, text), [], "{text}");
        }
    }
}
