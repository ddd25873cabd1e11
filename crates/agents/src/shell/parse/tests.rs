use super::*;

#[test]
fn valid_scripts_are_parsed() {
    let scripts = [
        "",
        "a",
        "a && b || c; d & e",
        "! a | b |& c",
        "A=1 B=2 c d=3",
        "if a; then b; elif c; then d; else e; fi > x",
        "for f in *.a \"b c\"; do echo $f; done",
        "for f; do a; done",
        "for ((i=0; i<3; i++)); do a; done",
        "while read -r l; do a; done < x",
        "case $x in a|b) c;; (d) e ;; *) f; esac",
        "f() { a; }; f",
        "function f { a; }",
        "(a; b) | { c; }",
        "[[ -f a && ( b < c || $d =~ ^x ) ]] && e",
        "((a > 1)) || b",
        "x=$(a \"$(b 'c)')\" | d) y=`e \\`f\\``",
        "echo $((1 + (2 * 3))) ${a:-\"}\"} $'it\\'s' 'a # b' \\( #c",
        "a=(1 2 \"3 4\"); echo ${a[@]}",
        "cat <<END && b\n(unbalanced\nEND\nc",
        "cat <<-'A' <<\"B\"\n\tx\n\tA\ny\nB",
        "diff <(a) <(b) 2>&1 >/dev/null &>> c",
        "a \\\n  --b &&\n  # why\n  c",
        "a; # b )",
        "grep -c '^a$' b",
        "node -e \"if (a) { b('c') }\"",
        "git log ^a @{u} {b,c} a{1..3}",
        "echo then do fi",
        "a 2>/dev/null 3<&1 <<< b",
    ];
    for script in scripts {
        assert!(parse(script).is_some(), "{script}");
    }
}

#[test]
fn invalid_scripts_are_rejected() {
    let scripts = [
        "a 'b",
        "a \"b",
        "a `b",
        "a $(b",
        "a &&",
        "| a",
        "a | | b",
        "a ;; b",
        "; a",
        "a && && b",
        "a (b)",
        "a foo(bar) x",
        "if a; then b",
        "if a; b; fi",
        "for f in a; b; done",
        "a)",
        "{ a }",
        "fi",
        "a >",
        "cat <<END\nx",
        "a & && b",
        "()",
        "[[ a",
        "{ }",
        "npm test (all green)",
    ];
    for script in scripts {
        assert!(parse(script).is_none(), "{script}");
    }
}

#[test]
fn parser_agrees_with_bash() {
    let pieces = [
        "a",
        " ",
        ";",
        "&&",
        "|",
        "||",
        "&",
        "(",
        ")",
        "{",
        "}",
        "if",
        "then",
        "fi",
        "do",
        "done",
        "for x in y",
        "while",
        "!",
        "'",
        "\"",
        "`",
        "$(",
        "\n",
        "\\",
        ">",
        "<",
        "2>&1",
        "#",
        "case x in",
        "esac",
        ";;",
        "x)",
        "[[",
        "]]",
        "-f",
        "=",
        "$((",
        "))",
        "${",
        "<<E",
        "\nE\n",
    ];
    let mut random = 7_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    let mut taken = 0;
    for _ in 0..400 {
        let script: String = (0..next() % 9 + 1).map(|_| [pieces[next() % pieces.len()], " "].concat()).collect();
        if parse(&script).is_some() {
            taken += 1;
            let bash = std::process::Command::new("bash").args(["-n", "-c", &format!(":\n{script}")]).output().unwrap();
            assert!(bash.status.success(), "{script:?}: {}", String::from_utf8_lossy(&bash.stderr));
        }
    }
    assert!(taken > 20, "{taken}");
}

#[test]
fn parser_bounds_time_and_nesting() {
    let begun = std::time::Instant::now();
    for part in [
        "(",
        "$(",
        "`",
        "${",
        "\"${",
        "{ ",
        "f() ",
        "if ",
        "a | ",
        "a && ",
        "! ",
        "((",
        "<(",
        "'",
        "<<a\n",
        "case a in b) ",
    ] {
        let _ = (parse(&part.repeat(MAX_SCRIPT / part.len())), with_literal_parentheses(&part.repeat(900)));
    }
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert!(parse(&"a ".repeat(MAX_SCRIPT)).is_none());
}

#[test]
fn parentheses_in_paths_are_escaped() {
    let cases = [
        ("test -f apps/web/app/(protected)/page.tsx", Some("test -f apps/web/app/\\(protected\\)/page.tsx")),
        ("ls app/(a)/(b)/*.ts && ls x", Some("ls app/\\(a\\)/\\(b\\)/*.ts && ls x")),
        ("ls \"app/(a)/x\" 'app/(b)'", Some("ls \"app/(a)/x\" 'app/(b)'")),
        ("(cd web && npm test)", Some("(cd web && npm test)")),
        ("npx x --exit-code 0 (accepts schema) && npx jest a", None),
        ("grep foo(bar) x", None),
    ];
    for (script, expected) in cases {
        assert_eq!(with_literal_parentheses(script).as_deref(), expected, "{script}");
    }
}

#[test]
fn commands_lists_nested_and_background_commands() {
    let script = parse("a & b \"$(c `d`)\" | (e; f &)\nif g; then h; fi").unwrap();
    let found: Vec<(&str, bool)> = script
        .commands()
        .into_iter()
        .filter_map(|(command, background)| Some((command.words.first()?.text.as_str(), background)))
        .collect();
    let expected =
        [("a", true), ("b", false), ("c", false), ("d", false), ("e", false), ("f", true), ("g", false), ("h", false)];
    assert_eq!(found, expected);
}
