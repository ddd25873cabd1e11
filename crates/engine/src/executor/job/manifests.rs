//! Manifests of packages. One that names a place in a checkout by its absolute path names the same place in every worktree.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lanewright_model::dependencies::MANIFESTS;

use super::inroads::named_in;

/// Go reads a module file of any name with `-modfile`.
pub(super) fn is_manifest(place: &Path) -> bool {
    let name = place.file_name().and_then(OsStr::to_str).unwrap_or_default();
    MANIFESTS.contains(&name) || name.ends_with(".mod")
}

/// The paths below one of `checkouts` that a manifest names, with the numbers of their lines.
pub(super) fn named(text: &str, checkouts: &[PathBuf]) -> Vec<(usize, PathBuf)> {
    let is_comment = |line: &str| line.starts_with('#') || line.starts_with("//");
    let lines = text.lines().zip(1..).filter(|(line, _)| !is_comment(line.trim_start()));
    let found = lines.flat_map(|(line, number)| {
        let paths = checkouts.iter().flat_map(move |checkout| named_in(line, checkout));
        // In a string with spaces, or followed by a comment.
        let first = |path: &PathBuf| path.to_str()?.split_whitespace().next().map(PathBuf::from);
        paths.flat_map(move |path| [first(&path), Some(path)]).flatten().map(move |path| (number, path))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_found_in_each_kind_of_manifest() {
        for line in [
            "replace corp.example/priv => /repo/priv",
            "replace corp.example/priv => /repo/priv // for now",
            "use /repo/priv",
            "\t/repo/priv",
            "priv = { path = \"/repo/priv\" }",
            "\"priv\": \"file:/repo/priv\",",
            "\"priv\": \"link:/repo/priv\",",
            "dependencies = ['priv @ file:///repo/priv']",
            "\"test\": \"node --test /repo/priv\"",
        ] {
            let found = named(&format!("\n{line}\n"), &["/repo".into()]);
            assert!(found.contains(&(2, "/repo/priv".into())), "{line}: {found:?}");
        }
        for line in
            ["// replace x => /repo/priv", "# path = \"/repo/priv\"", "path = \"/other/repo/priv\"", "x => ./priv"]
        {
            assert_eq!(named(line, &["/repo".into()]), [], "{line}");
        }
    }
}
