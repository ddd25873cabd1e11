use std::collections::BTreeMap;

use lanewright_model::must_haves::tally;

use super::*;

fn entry(path: &str, kind: TreeEntryKind) -> TreeEntry {
    TreeEntry { path: path.to_owned(), kind, size: 1, object: String::new() }
}

/// The repository that all of these tests look into.
fn look(asked: &MustHaves) -> Vec<Verdict> {
    let texts: BTreeMap<&str, FileText> = [
        ("Makefile", "build:\n\ttrue\n"),
        ("app/[slug]/(group)/page.tsx", "export default function Page() {}\n"),
        ("src/cart/sum.ts", "import { price } from './price'\nexport function sum() {\n  return price(1) + 2\n}\n"),
        ("src/cart/price.ts", "export const price = (n: number) => n\n"),
        ("src/pay.ts", "const url = `${BASE}/pay`\nfetch('/api/pay')\nrun(a.b(c))\n"),
    ]
    .into_iter()
    .map(|(path, text)| (path, FileText::Text(text.to_owned())))
    .chain([("logo.png", FileText::Binary), ("dump.sql", FileText::TooLarge)])
    .collect();
    let mut entries: Vec<TreeEntry> = texts.keys().map(|path| entry(path, TreeEntryKind::File)).collect();
    entries.extend([entry("current", TreeEntryKind::Link), entry("vendor/lib", TreeEntryKind::Submodule)]);
    let uncommitted = |path: &str| path.starts_with("dist/").then(|| "git ignores it".to_owned());
    check(asked, &entries, &mut |entry| texts[entry.path.as_str()].clone(), &uncommitted)
}

fn artifact(artifact: Artifact) -> (Option<bool>, String) {
    let verdict = look(&MustHaves { artifacts: vec![artifact], ..MustHaves::default() }).remove(0);
    (verdict.holds, verdict.why.join("; "))
}

fn path(path: &str) -> Artifact {
    Artifact { path: path.to_owned(), ..Artifact::default() }
}

fn link(from: &str, pattern: Option<&str>) -> (Option<bool>, String) {
    let link = KeyLink { from: from.into(), to: "there".into(), via: None, pattern: pattern.map(str::to_owned) };
    let verdict = look(&MustHaves { key_links: vec![link], ..MustHaves::default() }).remove(0);
    (verdict.holds, verdict.why.join("; "))
}

#[test]
fn artifact_path_may_be_file_directory_or_glob() {
    let there = [
        "Makefile",
        "./src/pay.ts",
        "src/cart",
        "src/cart/",
        "src/**/*.ts",
        "src/cart/{sum,price}.ts",
        "`src/pay.ts`",
        "src/pay.ts (new)",
        "app/[slug]/(group)/page.tsx",
        "app/[slug]/**",
        "current",
        "vendor/lib",
        "logo.png",
    ];
    for there in there {
        assert_eq!(artifact(path(there)), (Some(true), String::new()), "{there}");
    }
    for missing in ["src/gone.ts", "Dockerfile", "src/car", "docs/*.md", "src/gone.ts (new)", "src/{"] {
        assert_eq!(artifact(path(missing)), (Some(false), "missing file".to_owned()), "{missing}");
    }
    assert_eq!(artifact(path("dist/app.js")), (None, "git ignores it".to_owned()));
    let long = "x/".repeat(40_000);
    for elsewhere in
        ["~/notes", "/etc/passwd", "../other/x.ts", "src/../../x", "https://example.com/x", "", "two words", &long]
    {
        assert_eq!(artifact(path(elsewhere)).0, None, "{elsewhere}");
    }
    assert_eq!(artifact(path("vendor/lib/x.c")), (None, "it is in the submodule vendor/lib".to_owned()));
}

#[test]
fn only_a_path_of_one_file_is_surely_missing() {
    let is_missing = |artifact: Artifact| {
        let verdict = look(&MustHaves { artifacts: vec![artifact], ..MustHaves::default() }).remove(0);
        (verdict.missing, verdict.why.join("; "))
    };
    let missing = (true, "missing file".to_owned());
    for surely in ["src/gone.ts", "Dockerfile", "src/gone.ts (new)", "app/[id]/page.ts", "tests/sum.ts", "gone/pay.ts"]
    {
        assert_eq!(is_missing(path(surely)), missing, "{surely}");
    }
    assert_eq!(is_missing(Artifact { min_lines: Some(3), ..path("bin/serve") }), missing);
    let unsure = [
        "bin/serve",
        "docs/",
        "docs/v1.2/",
        "docs/*.md",
        "src/{a,b}.ts",
        "~/notes.txt",
        "Everything works",
        "dist/app.js",
    ];
    for unsure in unsure {
        assert!(!is_missing(path(unsure)).0, "{unsure}");
    }
    for (elsewhere, other) in [("pay.ts", "src/pay.ts"), ("src/shop/sum.ts", "src/cart/sum.ts")] {
        assert_eq!(is_missing(path(elsewhere)), (false, format!("missing file; perhaps it is {other}")), "{elsewhere}");
    }
}

#[test]
fn min_lines_reports_line_count() {
    let lines = |at: &str, wanted| artifact(Artifact { min_lines: Some(wanted), ..path(at) });
    assert_eq!(lines("src/cart/sum.ts", 4), (Some(true), String::new()));
    assert_eq!(lines("src/cart/sum.ts", 30), (Some(false), "4 of 30 lines".to_owned()));
    assert_eq!(lines("src/cart", 5), (Some(true), String::new()), "those of a directory are added up");
    assert_eq!(lines("logo.png", 1), (None, "logo.png is binary and was not looked into".to_owned()));
    assert_eq!(lines("dump.sql", 1), (None, "dump.sql is too large to look into".to_owned()));
    assert_eq!(lines("current", 1), (None, "it is a symbolic link, which is not followed".to_owned()));
}

#[test]
fn contains_matches_text_or_regex() {
    let contains = |pattern: &str| artifact(Artifact { contains: Some(pattern.to_owned()), ..path("src/pay.ts") });
    let in_it = ["fetch\\('/api/\\w+'\\)", "^fetch", "a.b(c)", "${BASE}", "run(", "fetch('/api", "nothing\\|fetch", ""];
    for pattern in in_it {
        assert_eq!(contains(pattern), (Some(true), String::new()), "{pattern}");
    }
    assert_eq!(contains("gone"), (Some(false), "`gone` not found in it".to_owned()));
    let literal = "`gone(` not found in it (taken literally, as it is no regular expression)".to_owned();
    assert_eq!(contains("gone("), (Some(false), literal));
    assert_eq!(contains(&"(a*)*".repeat(13_000)).0, Some(false), "a huge pattern is no trap");
}

#[test]
fn prose_in_exports_is_not_searched() {
    let exports = |at: &str, name: &str| artifact(Artifact { exports: vec![name.to_owned()], ..path(at) });
    assert_eq!(exports("src/cart/sum.ts", "sum"), (Some(true), String::new()));
    assert_eq!(exports("src/cart/sum.ts", "price"), (Some(false), "export `price` not found".to_owned()));
    assert_eq!(exports("src/cart", "price"), (Some(true), String::new()), "any file of a directory may do it");
    let prose = "`POST /pay` is no name and was not looked for".to_owned();
    assert_eq!(exports("src/pay.ts", "POST /pay"), (Some(true), prose));
}

#[test]
fn key_link_pattern_is_searched_in_from_file() {
    assert_eq!(link("src/pay.ts", Some("/api/pay")), (Some(true), String::new()));
    assert_eq!(link("pay.ts run()", Some("run")), (Some(true), String::new()));
    assert_eq!(link("src/pay.ts", Some("sum")), (Some(false), "`sum` not found in src/pay.ts".to_owned()));
    assert_eq!(link("src/gone.ts", Some("sum")), (Some(false), "`src/gone.ts` is missing".to_owned()));
    assert_eq!(link("src/gone.ts", None), (Some(false), "`src/gone.ts` is missing".to_owned()));
    assert_eq!(link("src/pay.ts", None), (None, "no pattern says what to look for".to_owned()));
    for prose in ["the nightly job", "PayService.charge()", "Plan 03"] {
        assert_eq!(link(prose, Some("sum")), (None, "it names no file".to_owned()), "{prose}");
    }
}

#[test]
fn verdicts_keep_order_of_plan() {
    let asked = MustHaves {
        truths: vec!["A customer can pay".into()],
        artifacts: vec![
            Artifact {
                min_lines: Some(9),
                contains: Some("fetch".into()),
                exports: vec!["pay".into()],
                ..path("src/pay.ts")
            },
            path("Makefile"),
        ],
        key_links: vec![KeyLink {
            from: "src/pay.ts".into(),
            to: "api".into(),
            via: None,
            pattern: Some("pay".into()),
        }],
    };
    let verdicts = look(&asked);
    let kinds: Vec<Demand> = verdicts.iter().map(|verdict| verdict.kind).collect();
    assert_eq!(kinds, [Demand::Truth, Demand::Artifact, Demand::Artifact, Demand::KeyLink]);
    assert_eq!(verdicts[0].holds, None);
    assert_eq!(verdicts[1].asked, ["at least 9 lines", "contains `fetch`", "exports `pay`"]);
    assert_eq!(verdicts[1].describe(), "artifact src/pay.ts: 3 of 9 lines; export `pay` not found");
    assert_eq!(verdicts[3].describe(), "key link src/pay.ts -> api");
    assert_eq!(tally(&verdicts), "2 of 3 hold, 1 not checked");
}
