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
    let (value, rules): (Option<Value>, _) = match name.extension().and_then(|it| it.to_str()) {
        Some("mod") if !text.lines().any(|line| line.split_whitespace().next() == Some("module")) => return Vec::new(),
        Some("mod" | "work") => {
            return text.lines().zip(1..).filter_map(|(line, at)| Some((at, of_go(line)?))).collect();
        }
        Some("toml") => (toml::from_str(text).ok(), OF_TOML),
        _ => (serde_json::from_str(text).ok(), OF_NPM),
    };
    let (value, mut found) = (value.unwrap_or_default(), Vec::new());
    of_value(&rules, &mut Vec::new(), &value, &mut found);
    let line_of = |written: &str| {
        let has_it = |line: &str| line.contains(written) && !line.trim_start().starts_with('#');
        text.lines().position(has_it).unwrap_or_default() + 1
    };
    found.into_iter().map(|(written, place)| (line_of(written), place.into())).collect()
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

/// Which strings are places, by the keys that lead to them.
struct Rules {
    /// Whether it is a path.
    is_path: fn(&[&str]) -> bool,
    /// Whether it is a requirement, which may say where the package is.
    is_requirement: fn(&[&str]) -> bool,
}

const OF_TOML: Rules = Rules {
    is_path: |keys| match keys {
        ["workspace", "members"] | ["package", "build"] | ["tool", "pytest", "ini_options", "pythonpath"] => true,
        ["lib" | "bin" | "example" | "test" | "bench", "path"] | ["tool", "uv", "sources", .., "path"] => true,
        ["patch" | "replace", .., "path"] => true,
        [above @ .., "path"] => has_dependencies(above),
        _ => false,
    },
    is_requirement: |keys| match keys {
        ["build-system", "requires"] | ["dependency-groups", ..] => true,
        keys => has_dependencies(keys),
    },
};

const OF_NPM: Rules = Rules {
    is_path: |_| false,
    is_requirement: |keys| match keys {
        ["overrides" | "resolutions", ..] | ["pnpm", "overrides", ..] => true,
        [first, ..] => has_dependencies(&[first]),
        [] => false,
    },
};

/// Tools keep what they like below `metadata`.
fn has_dependencies(keys: &[&str]) -> bool {
    keys.iter().any(|key| key.to_ascii_lowercase().ends_with("dependencies")) && !keys.contains(&"metadata")
}

/// The places that `value`, to which `keys` lead, has, each with the string as it is written.
fn of_value<'t>(rules: &Rules, keys: &mut Vec<&'t str>, value: &'t Value, found: &mut Vec<(&'t str, &'t str)>) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                keys.push(key);
                of_value(rules, keys, value, found);
                keys.pop();
            }
        }
        Value::Array(inner) => inner.iter().for_each(|value| of_value(rules, keys, value, found)),
        Value::String(text) if (rules.is_path)(keys) => found.push((text, text)),
        Value::String(text) if (rules.is_requirement)(keys) => {
            found.extend(of_requirement(text).map(|place| (text.as_str(), place)));
        }
        _ => {}
    }
}

/// `PLACE`, `file:PLACE`, also `link:` and `portal:`, `name @ file://PLACE#fragment`, and `-e file://PLACE`.
fn of_requirement(text: &str) -> Option<&str> {
    let text = text.strip_prefix("-e ").unwrap_or(text).trim_start();
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
            ("pyproject.toml", "[build-system]\nrequires = ['priv @ file:///repo/priv']"),
            ("pyproject.toml", "[tool.pdm.dev-dependencies]\ndev = ['-e file:///repo/priv']"),
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
            (
                "Cargo.toml",
                "[package.metadata.test]\npath = \"/repo\"\n[package.metadata.dependencies]\npath = \"/repo\"",
            ),
            ("pyproject.toml", "[tool.hatch.envs.test]\npath = \"/repo\""),
            (
                "package.json",
                "{ \"scripts\": { \"test\": \"./node_modules/.bin/mocha\", \"build\": \"/repo/build\" } }",
            ),
            ("package.json", "{ \"eslintConfig\": { \"overrides\": [{ \"files\": \"/repo/a\" }] } }"),
            ("package.json", "{ \"homepage\": \"/repo\", \"scripts\": { \"open\": \"file:/repo/docs/i\" } }"),
            ("package.json", "{ \"scripts\": { \"docker\": \"docker run -v .:/repo -w /repo node npm test\" } }"),
            ("package.json", "{ \"dependencies\": { \"priv\": \"npm:@corp/priv@^1\", \"x\": \"git+file:///repo\" } }"),
        ] {
            assert_eq!(found(name, text), [], "{text}");
        }
    }
}
