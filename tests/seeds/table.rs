//! The table of `docs/seeds.md`: every sentence with its verdict and the test that shows it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A sentence, `holds`, `different` or `open`, the test as `path::name`, and the reason where one is needed.
struct Row<'a> {
    id: &'a str,
    sentence: &'a str,
    verdict: &'a str,
    test: &'a str,
    reason: &'a str,
}

const SENTENCES: &str = include_str!("sentences.tsv");

const HEADINGS: [(&str, &str); 6] = [
    ("L", "Seed 000: long tasks"),
    ("T", "Seed 001: resumption of tasks"),
    ("G", "Seed 002: GSD plans"),
    ("P", "Seed 003: the task protocol"),
    ("R", "Seed 004: the recovery contract"),
    ("C", "The design"),
];

fn rows() -> Vec<Row<'static>> {
    let row = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [id, sentence, verdict, test, reason] => Row { id, sentence, verdict, test, reason },
        _ => panic!("not five fields: {line}"),
    };
    SENTENCES.lines().map(row).collect()
}

fn page(rows: &[Row<'_>]) -> String {
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
    let mut page = format!(
        "# What the seeds promise\n\nThe seed documents say in {} sentences what is wanted. {} hold, {} are different for a \
         reason, {} do not hold yet.\nThe test named shows a sentence that holds. The rows are in \
         [`sentences.tsv`](../tests/seeds/sentences.tsv), this page is made of it:\n`UPDATE_EXPECTED=1 cargo test --test \
         it seeds::table`.\n",
        rows.len(),
        count("holds"),
        count("different"),
        count("open"),
    );
    for (letter, heading) in HEADINGS {
        page += &format!("\n## {heading}\n\n| | sentence | verdict | test |\n|---|---|---|---|\n");
        for row in rows.iter().filter(|row| row.id.starts_with(letter)) {
            let verdict = match (row.verdict, row.reason) {
                ("holds", "") => "holds".to_owned(),
                ("holds", reason) => format!("holds. {reason}"),
                ("different", reason) => format!("different: {reason}"),
                (_, reason) => format!("not yet: {reason}"),
            };
            let test = row.test.rsplit_once("::").map_or("", |(_, name)| name);
            let cells = [row.sentence, &verdict].map(|cell| cell.replace('|', "\\|"));
            page += &format!("| {} | {} | {} | {test} |\n", row.id, cells[0], cells[1]);
        }
    }
    page
}

#[test]
fn page_has_every_sentence_with_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = rows();
    assert_eq!(rows.iter().map(|row| row.id).collect::<BTreeSet<_>>().len(), 277);
    for row in &rows {
        assert!(["holds", "different", "open"].contains(&row.verdict), "{}: {}", row.id, row.verdict);
        assert!(row.verdict == "holds" || !row.reason.is_empty(), "{}: no reason", row.id);
        match row.test.rsplit_once("::") {
            Some((path, name)) => {
                let text = fs::read_to_string(root.join(path)).unwrap_or_default();
                assert!(text.contains(&format!("fn {name}(")), "{}: {path} has no test {name}", row.id);
            }
            None => assert!(row.verdict != "holds" || !row.reason.is_empty(), "{}: no test", row.id),
        }
    }
    let (path, page) = (root.join("docs/seeds.md"), page(&rows));
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap_or_default(), page, "UPDATE_EXPECTED=1 writes it");
}
