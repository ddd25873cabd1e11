use super::*;

fn moved(name: &str, value: &str) -> Option<Option<String>> {
    let worktree = tempfile::tempdir().unwrap();
    for place in ["bin", "node_modules/.bin"] {
        std::fs::create_dir_all(worktree.path().join(place)).unwrap();
    }
    let checkouts = vec!["/c".into(), "/c/.worktrees/mine".into(), "/srv/my project".into()];
    let surroundings = Surroundings::new(checkouts, [(name.to_owned(), value.to_owned())]);
    let all = surroundings.at(worktree.path());
    let place = worktree.path().to_str().unwrap();
    all.get(name).map(|moved| moved.as_ref().map(|moved| moved.replace(place, "W")))
}

fn to(value: &str) -> Option<Option<String>> {
    Some(Some(value.to_owned()))
}

#[test]
fn variable_leads_to_the_same_place_of_the_worktree() {
    assert_eq!(
        moved("PATH", "/c/bin:/usr/bin:/c/node_modules/.bin:/bin"),
        to("W/bin:/usr/bin:W/node_modules/.bin:/bin")
    );
    assert_eq!(moved("PATH", "/c/.venv/bin:/usr/bin"), to("/usr/bin"), "the worktree has none");
    assert_eq!(moved("PATH", "/usr/bin:/c/.venv/bin/:"), to("/usr/bin:"));
    assert_eq!(moved("VIRTUAL_ENV", "/c/.venv"), Some(None));
    assert_eq!(moved("INIT_CWD", "/c"), to("W"));
    assert_eq!(moved("INIT_CWD", "/c/"), to("W"));
    assert_eq!(moved("INIT_CWD", "/srv/my project"), to("W"));
    assert_eq!(moved("PATH", "/c/.worktrees/mine/bin"), to("W/bin"), "the longest is meant");
    assert_eq!(moved("DIRENV_DIR", "-/c"), to("-W"));
    assert_eq!(moved("GOFLAGS", "-modfile=/c/bin -overlay=/c/bin/"), to("-modfile=W/bin -overlay=W/bin"));
    assert_eq!(moved("GOFLAGS", "-modfile=/c/go.alt.mod -v"), Some(None));
    assert_eq!(moved("CFLAGS", "-O2 -I/c/bin -L/usr/lib"), to("-O2 -IW/bin -L/usr/lib"));
    assert_eq!(moved("NODE_OPTIONS", "--import=file:///c/bin"), to("--import=file://W/bin"));
    assert_eq!(moved("PROJECT_HOME", "/c"), to("W"), "all of a checkout is no home");
}

#[test]
fn a_symbolic_link_to_a_checkout_is_one_too() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("c/bin")).unwrap();
    std::os::unix::fs::symlink(root.join("c"), root.join("link")).unwrap();
    std::os::unix::fs::symlink(root.join("c"), root.join("my link")).unwrap();
    std::os::unix::fs::symlink(&root, root.join("up")).unwrap();
    let path = format!("/usr/bin:{0}/link/bin:{0}/c/bin:{0}/up/c/bin", root.display());
    let here = root.join("my link/bin").display().to_string();
    let found = aliases(&[root.join("c")], &[("PATH".to_owned(), path), ("PWD".to_owned(), here)]);
    assert_eq!(Vec::from_iter(found), [root.join("link"), root.join("my link"), root.join("up/c")]);
}

#[test]
fn other_variables_stay() {
    for value in ["/cc/bin:/usr/bin", "/usr/c/bin", "x/c/bin", "https://host/c/bin", "c"] {
        assert_eq!(moved("PATH", value), None, "{value}");
    }
    for name in ["HOME", "XDG_DATA_HOME", "npm_config_cache", "CARGO_HOME", "LANEWRIGHT_WORKTREE_ROOT", "TMPDIR"] {
        assert_eq!(moved(name, "/c/bin"), None, "{name}");
    }
}

#[test]
fn worktrees_share_no_build_products() {
    let at = |name: &str, value: &str, worktree: &str| {
        let surroundings = Surroundings::new(vec!["/c".into()], [(name.to_owned(), value.to_owned())]);
        surroundings.at(Path::new(worktree)).remove(name).flatten()
    };
    let [one, other] = ["/w/01", "/w/02"].map(|worktree| at("CARGO_TARGET_DIR", "/fast/target", worktree).unwrap());
    assert!(one.starts_with("/fast/target/lanewright-") && one != other, "{one} {other}");
    assert_eq!(at("CARGO_TARGET_DIR", "/fast/target", "/w/01").unwrap(), one, "a slot keeps its own");
    assert_eq!(at("CARGO_TARGET_DIR", "out", "/w/01"), None, "it is below the worktree");
    assert_eq!(at("CARGO_TARGET_DIR", "/c/target", "/w/01"), None, "the worktree has none");
    assert_eq!(at("CARGO_HOME", "/fast/cargo", "/w/01"), None);
}

#[test]
fn programs_of_a_home_that_is_a_checkout_stay() {
    let variables = [("HOME", "/home/me"), ("PATH", "/home/me/.cargo/bin:/home/me/project/bin:/usr/bin")];
    let surroundings = |checkouts: &[&str]| {
        let checkouts = checkouts.iter().map(PathBuf::from).collect();
        Surroundings::new(checkouts, variables.map(|(name, value)| (name.to_owned(), value.to_owned())))
    };
    assert_eq!(surroundings(&["/home/me"]).names(), [] as [&str; 0]);
    let both = surroundings(&["/home/me", "/home/me/project"]);
    let left = both.at(Path::new("/nowhere"));
    assert_eq!(left.get("PATH").cloned().flatten().as_deref(), Some("/home/me/.cargo/bin:/usr/bin"));
}

#[test]
fn a_startup_file_that_names_a_checkout_is_not_run() {
    let root = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        std::fs::write(root.path().join("rc"), text).unwrap();
        let value = root.path().join("rc").display().to_string();
        let surroundings = Surroundings::new(vec!["/c".into()], [("BASH_ENV".to_owned(), value)]);
        (surroundings.names().len(), surroundings.at(root.path()).get("BASH_ENV").cloned())
    };
    assert_eq!(file("umask 022\nexport PATH=/c/bin:$PATH\n"), (1, Some(None)));
    assert_eq!(file("export PATH=/opt/bin:$PATH\n"), (0, None));
}

#[test]
fn a_cache_of_all_worktrees_is_replaced() {
    let worktree = tempfile::tempdir().unwrap();
    let turbo = |variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Surroundings::new(vec!["/c".into()], variables).at(worktree.path()).get("TURBO_CACHE_DIR").cloned().flatten()
    };
    assert_eq!(turbo(&[]), None, "turbo is not used");
    std::fs::write(worktree.path().join("turbo.json"), "{}").unwrap();
    assert_eq!(turbo(&[]), Some(worktree.path().join(".turbo/cache").display().to_string()));
    assert_eq!(turbo(&[("TURBO_CACHE_DIR", "/var/cache/turbo")]), None, "the user chose one");
}

#[test]
fn a_workspace_of_go_around_the_checkout_is_off() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let checkout = root.join("app");
    std::fs::create_dir(&checkout).unwrap();
    let off = |workspace: &str, variables: &[(String, String)]| {
        std::fs::write(root.join("go.work"), workspace).unwrap();
        let surroundings = Surroundings::new(vec![checkout.clone()], variables.iter().cloned());
        surroundings.at(&root).get("GOWORK").cloned().flatten()
    };
    assert_eq!(off("go 1.22\nuse (\n\t./lib\n\t./app // mine\n)\n", &[]).as_deref(), Some("off"));
    assert_eq!(off("go 1.22\nuse ./lib\n", &[]), None);
    assert_eq!(off("use ./app\n", &[("GOWORK".to_owned(), "off".to_owned())]), None, "it stays");
    std::fs::write(checkout.join("go.work"), "use .\n").unwrap();
    assert_eq!(off("use ./app\n", &[]), None, "each worktree has its own");
}
