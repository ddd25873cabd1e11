//! The design: what the program is built with, and where its parts are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The packages that the program depends on, tests left out.
fn dependencies() -> BTreeSet<String> {
    let crates = fs::read_dir(root().join("crates")).expect("the crates").map(|entry| entry.expect("an entry").path());
    let members = crates.filter(|path| path.is_dir()).chain([root().to_owned()]);
    let manifests = members.map(|member| {
        let text = fs::read_to_string(member.join("Cargo.toml")).expect("a manifest");
        text.parse::<toml::Table>().expect("TOML")
    });
    let names = |manifest: toml::Table| -> Vec<String> {
        let table = manifest.get("dependencies").and_then(toml::Value::as_table).expect("dependencies");
        table.keys().cloned().collect()
    };
    manifests.flat_map(names).collect()
}

fn assert_used(packages: &[&str]) {
    let found = dependencies();
    for package in packages {
        assert!(found.contains(*package), "{package} is not among {found:?}");
    }
}

#[test]
fn c01_the_program_uses_the_packages_of_the_design() {
    assert!(root().join("src/main.rs").is_file());
    assert_used(&["tokio", "git2", "serde", "serde_json", "clap", "tracing", "chrono", "anyhow"]);
}

#[test]
fn c02_indicatif_and_fd_lock_are_used() {
    assert_used(&["indicatif", "fd-lock"]);
}

#[test]
fn c03_the_repository_has_its_seven_parts() {
    for name in ["Cargo.toml", "src", "templates", "tests", "fixtures", "docs", "README.md"] {
        assert!(root().join(name).exists(), "{name} is missing");
    }
}
