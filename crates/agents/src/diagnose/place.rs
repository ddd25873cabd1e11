//! How a finding names its file.

use std::path::Path;

use lanewright_model::Finding;

/// `finding` with its file relative to the first of `roots` that it lies in.
pub(super) fn relative(mut finding: Finding, roots: &[&Path]) -> Finding {
    finding.file = finding.file.map(|file| relative_name(&file, roots));
    finding
}

fn relative_name(file: &str, roots: &[&Path]) -> String {
    let plain = file.strip_prefix("file://").unwrap_or(file);
    let below = |root: &&Path| Path::new(plain).strip_prefix(root).ok().and_then(Path::to_str);
    let mut name = roots.iter().find_map(below).unwrap_or(plain);
    while let Some(rest) = name.strip_prefix("./") {
        name = rest.trim_start_matches('/');
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_worktree_are_relative_and_others_stay() {
        let roots = [Path::new("/repo/slots/01"), Path::new("/repo/run/lane/code")];
        let table = [
            ("/repo/slots/01/src/lib.rs", "src/lib.rs"),
            ("/repo/run/lane/code/src/lib.rs", "src/lib.rs"),
            ("file:///repo/slots/01/a.mjs", "a.mjs"),
            ("/repo/slots/011/src/lib.rs", "/repo/slots/011/src/lib.rs"),
            ("/usr/include/stdio.h", "/usr/include/stdio.h"),
            ("./src/a.go", "src/a.go"),
            ("././/a.go", "a.go"),
            ("../other/a.c", "../other/a.c"),
            (r"C:\repo\src\a.cs", r"C:\repo\src\a.cs"),
            (".\\a.cs", ".\\a.cs"),
        ];
        for (file, name) in table {
            assert_eq!(relative_name(file, &roots), name);
        }
    }
}
