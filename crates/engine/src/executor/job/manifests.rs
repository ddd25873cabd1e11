//! Manifests of packages. One that names a place in a checkout by its absolute path names the same place in every worktree.

use std::path::{Path, PathBuf};

use lanewright_model::dependencies::MANIFESTS;

/// Go reads a module file of any name with `-modfile`.
pub(super) fn is_manifest(place: &Path) -> bool {
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    MANIFESTS.contains(&name) || name.ends_with(".mod")
}

/// The absolute paths at which the manifest of that name expects packages, with the numbers of their lines.
pub(super) fn places(name: &Path, text: &str) -> Vec<(usize, PathBuf)> {
    let in_line: fn(&str) -> Vec<&str> = match name.extension().and_then(|it| it.to_str()) {
        Some("mod") if !text.lines().any(|line| line.starts_with("module ")) => return Vec::new(),
        Some("mod" | "work") => of_go,
        Some("toml") => of_toml,
        _ => of_npm,
    };
    let named = text.lines().zip(1..).flat_map(|(line, number)| in_line(line).into_iter().map(move |it| (number, it)));
    named.filter(|(_, place)| place.starts_with('/')).map(|(number, place)| (number, place.into())).collect()
}

/// `replace NAME => PLACE`, `use PLACE`, and the same in blocks.
fn of_go(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let place = match code.split_once("=>") {
        Some((_, place)) => place,
        None => code.trim().strip_prefix("use").unwrap_or(code),
    };
    vec![place.trim().trim_matches(['"', '`'])]
}

/// `path = "PLACE"`, and `name @ file://PLACE`.
fn of_toml(line: &str) -> Vec<&str> {
    let is_path = |before: &str| {
        let key = before.trim_end().strip_suffix('=').map(str::trim_end).unwrap_or_default();
        key.ends_with("path") && !key.ends_with("-path")
    };
    let code = if line.trim_start().starts_with('#') { "" } else { line.split(" #").next().unwrap_or_default() };
    let strings = code.match_indices(['"', '\'']).filter(|(at, _)| is_path(&code[..*at])).map(|(at, _)| at + 1);
    let addresses = code.match_indices("file://").map(|(at, scheme)| at + scheme.len());
    strings.chain(addresses).map(|at| up_to_end(&code[at..])).collect()
}

/// `"name": "file:PLACE"`, also `link:` and `portal:`.
fn of_npm(line: &str) -> Vec<&str> {
    let schemes = ["\"file:", "\"link:", "\"portal:"].into_iter();
    let starts = schemes.flat_map(|scheme| line.match_indices(scheme).map(move |(at, _)| at + scheme.len()));
    starts.map(|at| up_to_end(line[at..].trim_start_matches("//"))).collect()
}

fn up_to_end(text: &str) -> &str {
    text.split(['"', '\'', '#', '?', '[', ';']).next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, line: &str) -> Vec<(usize, PathBuf)> {
        places(Path::new(name), &format!("module x\n{line}\n"))
    }

    #[test]
    fn absolute_places_are_found_in_each_kind_of_manifest() {
        for (name, line) in [
            ("go.mod", "replace corp.example/priv => /repo/priv"),
            ("go.local.mod", "\tcorp.example/priv v1.2.3 => `/repo/priv` // for now"),
            ("go.work", "use /repo/priv"),
            ("go.work", "\t\"/repo/priv\""),
            ("Cargo.toml", "priv = { version = '1', path = \"/repo/priv\" } # for now"),
            ("Cargo.toml", "path='/repo/priv'"),
            ("pyproject.toml", "dependencies = ['priv[x] @ file:///repo/priv#egg=priv']"),
            ("package.json", "\"priv\": \"file:/repo/priv\","),
            ("package.json", "{\"priv\":\"link:/repo/priv\"}"),
            ("package.json", "\"priv\": \"file:///repo/priv\""),
        ] {
            assert_eq!(found(name, line), [(2, "/repo/priv".into())], "{line}");
        }
    }

    #[test]
    fn other_texts_of_manifests_name_no_place() {
        for (name, line) in [
            ("go.mod", "replace corp.example/priv => ./priv // was /repo/priv"),
            ("go.mod", "// replace corp.example/priv => /repo/priv"),
            ("go.mod", "require corp.example/repo v1.2.3"),
            ("Cargo.toml", "# path = \"/repo/priv\""),
            ("Cargo.toml", "path = \"priv\" # see path = \"/repo/priv\""),
            ("Cargo.toml", "include = [\"/repo\"]"),
            ("pyproject.toml", "module-path = \"/repo\""),
            ("package.json", "\"homepage\": \"/repo\","),
            ("package.json", "\"docker\": \"docker run -v .:/repo -w /repo node npm test\""),
        ] {
            assert_eq!(found(name, line), [], "{line}");
        }
        assert_eq!(places(Path::new("model.mod"), "data /repo/data/x.dat;\n/repo/x\n"), []);
    }
}
