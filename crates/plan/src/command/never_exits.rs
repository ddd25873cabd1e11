//! Commands that never end by themselves: servers, and programs that watch files.
//!
//! As a gate, such a command hangs until the gate's limit; in a prompt it does no harm.

use lanewright_agents::shell::{Command, parse};

use super::vocabulary::{RUNNERS, SERVERS, WATCHERS, is_assignment, is_in};

/// How many words of a command are read: a runner may run a runner.
const MAX_WORDS: usize = 40;

/// Whether any command of a script, other than those in the background, never ends.
pub(crate) fn never_exits(script: &str) -> bool {
    let script = parse(script).unwrap_or_default();
    script.commands().into_iter().any(|(command, in_background)| !in_background && runs_on(command))
}

fn runs_on(command: &Command) -> bool {
    let is_prefix = |word: &&lanewright_agents::shell::Word| {
        !word.quoted && (is_assignment(&word.text) || is_in("exec sudo env nohup", &word.text))
    };
    let words = command.words.iter().skip_while(is_prefix);
    let texts: Vec<&str> = words.map(|word| word.text.as_str()).collect();
    let Some(first) = texts.first() else { return false };
    let ends = texts.iter().any(|text| is_in("--help --version -h -V --dry-run --once", text));
    if ends || is_in("timeout echo printf grep rg", first) {
        return false;
    }
    let watches = |text: &&str| is_in("--watch --watchAll --watch=true --watchAll=true runserver", text);
    texts.iter().any(watches) || serves(&texts[..texts.len().min(MAX_WORDS)])
}

fn serves(texts: &[&str]) -> bool {
    let Some((first, rest)) = texts.split_first() else { return false };
    let has = |options: &str| rest.iter().any(|text| is_in(options, text));
    let follows = |text: &&str| *text == "--follow" || is_short_option(text, ['f', 'F']);
    let argument = rest.iter().find(|text| !text.starts_with('-')).copied().unwrap_or("");
    match first.rsplit('/').next().unwrap_or(first) {
        "npx" | "bunx" | "uvx" => serves(&rest[rest.iter().take_while(|word| word.starts_with('-')).count()..]),
        "uv" | "poetry" | "pipenv" | "bundle" if has("run exec") => serves(rest.get(1..).unwrap_or_default()),
        "npm" | "pnpm" | "yarn" | "bun" => runs_server(rest),
        "tail" | "journalctl" => rest.iter().any(follows),
        "docker" | "docker-compose" | "podman" | "kubectl" => {
            let detached = has("-d --detach --wait --abort-on-container-exit --exit-code-from");
            (has("logs") && rest.iter().any(follows)) || (has("up") && !detached) || has("port-forward")
        }
        "python" | "python3" | "node" | "tsx" | "ts-node" | "ruby" | "php" | "deno" => interprets_server(rest),
        "cargo" if argument == "run" => runs_program(&rest[1..]),
        "cargo" if argument == "tauri" => has("dev"),
        "go" if argument == "run" => runs_file(rest),
        "mix" => has("phx.server"),
        "flutter" | "streamlit" | "flask" => argument == "run",
        "vite" => !is_in("build optimize", argument),
        "watch" | "yes" => true,
        name if is_in(SERVERS, name) => true,
        name if is_in(RUNNERS, name) => {
            is_in(WATCHERS, argument) || (argument == "run" && has("dev start serve watch"))
        }
        _ => false,
    }
}

/// `-f`, `-n5f`, but not `--file`.
fn is_short_option(word: &str, letters: [char; 2]) -> bool {
    word.strip_prefix('-').is_some_and(|rest| {
        rest.chars().all(|c| c.is_ascii_alphanumeric()) && rest.len() <= 6 && rest.contains(letters)
    })
}

/// `npm start`, `npm run dev`, `yarn dev:web`, `pnpm run test:watch`.
fn runs_server(rest: &[&str]) -> bool {
    const OPTIONS: &str = "--prefix -C --filter -w --workspace -F --cwd --dir";
    let mut words = Vec::new();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if is_in(OPTIONS, word) {
            rest.next();
        } else if !word.starts_with('-') {
            words.push(*word);
        }
    }
    let words = if words.first() == Some(&"workspace") { words.get(2..).unwrap_or_default() } else { &words[..] };
    match words {
        ["exec" | "dlx" | "x", words @ ..] => serves(words),
        ["run" | "run-script", script, ..] => is_server_script(script),
        [script @ ("start" | "dev" | "serve" | "watch" | "preview" | "develop"), ..] => is_server_script(script),
        [script, words @ ..] => (words.is_empty() && is_server_script(script)) || serves(&[&[*script], words].concat()),
        [] => false,
    }
}

fn is_server_script(script: &str) -> bool {
    let mut parts = script.split([':', '-']);
    let first = parts.next().unwrap_or("");
    let last = parts.next_back().unwrap_or(first);
    is_in("start dev serve watch preview develop storybook", first) && !is_in("build test check lint", last)
        || is_in("watch serve start", last)
}

/// `app.py`, `app`
fn is_app(name: &str) -> bool {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem) == "app"
}

/// `server.js`, `-m http.server`, `-S localhost:8000`, `artisan serve`.
fn interprets_server(rest: &[&str]) -> bool {
    if rest.contains(&"-S") && rest.iter().any(|word| word.contains(':')) {
        return true;
    }
    for (at, word) in rest.iter().enumerate() {
        if *word == "-m" {
            let module = rest.get(at + 1).copied().unwrap_or("");
            return module == "http.server" || module.ends_with(".server") || serves(&rest[at + 1..]);
        }
        if is_in("-c -e -p -l --check --eval --print --test -n -r -run", word) {
            return *word == "-run";
        }
        if word.starts_with('-') || is_in("run", word) {
            continue;
        }
        let next = rest.get(at + 1).copied().unwrap_or("");
        let name = word.rsplit('/').next().unwrap_or(word);
        let task = matches!(*word, "artisan" | "task" | "watch") && is_in("serve dev start watch", next);
        return task || *word == "watch" || (rest.len() == at + 1 && is_app(name)) || serves_file(name);
    }
    false
}

fn serves_file(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
    is_in("server serve", stem) || stem.ends_with("-server") || stem.ends_with("_server")
}

/// What `cargo run` is followed by: nothing that a program for one use would take.
fn runs_program(rest: &[&str]) -> bool {
    let program = rest.iter().position(|word| *word == "--");
    let (own, arguments) = program.map_or((rest, &rest[..0]), |at| (&rest[..at], &rest[at + 1..]));
    let named = own.windows(2).find(|two| is_in("--bin --example -p --package", two[0])).map(|two| two[1]);
    let serving =
        |word: &str| is_in("serve server watch start dev daemon", word.rsplit(['-', '_']).next().unwrap_or(word));
    match (named, arguments.first()) {
        (_, Some(first)) => serving(first),
        (Some(name), None) => serving(name),
        (None, None) => true,
    }
}

/// `go run ./cmd/server`, `go run .`, but not `go run ./cmd/generate` or `go run . --list`.
fn runs_file(rest: &[&str]) -> bool {
    let words: Vec<&&str> = rest.iter().skip(1).collect();
    let Some(at) = words.iter().position(|word| !word.starts_with('-')) else { return false };
    let path = words[at].trim_end_matches('/');
    let name = path.trim_end_matches("/main.go").trim_end_matches(".go").rsplit('/').next().unwrap_or("");
    let serving = is_in("server serve api web daemon", name.rsplit(['-', '_']).next().unwrap_or(name));
    serving || (words.len() == at + 1 && is_in(". main", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_watchers_never_exit() {
        let endless = [
            "tail -f x",
            "tail -n5f x | grep a",
            "docker compose up",
            "docker compose -f dev.yml up --build",
            "docker-compose logs -f web",
            "python -m http.server",
            "python3 -m http.server 8000",
            "php -S localhost:8000",
            "php artisan serve",
            "npx serve dist",
            "npx --yes http-server",
            "node server.js",
            "node dist/server.js --port 3",
            "PORT=3 node server.js",
            "python app.py",
            "uv run uvicorn app:main",
            "cargo run",
            "cargo run --release",
            "cargo run -p x -- serve",
            "go run ./cmd/server",
            "go run main.go",
            "npm start",
            "npm run dev",
            "npm run dev && curl localhost",
            "cd web && pnpm dev",
            "pnpm --filter web run dev:all",
            "npm run test:watch",
            "vite",
            "npx vite --port 3",
            "next dev",
            "yarn next dev",
            "watch ls",
            "npx tsc --noEmit --watch",
            "npm test -- --watch",
            "python manage.py runserver",
            "make build\nnpm start",
            "npm run dev 2>&1",
            "rails s",
            "./manage.py runserver",
        ];
        for script in endless {
            assert!(never_exits(script), "{script}");
        }
    }

    #[test]
    fn finite_commands_are_not_servers() {
        let ends = [
            "tail -5 x",
            "tail --lines=5 f",
            "docker compose up -d",
            "docker compose -f dev.yml config",
            "docker compose logs",
            "docker build -f web/Dockerfile .",
            "node --check server.js",
            "node -e 'require(\"./server.js\")'",
            "node check.js",
            "python -m py_compile server.py",
            "python -m pytest tests/server.py",
            "cargo run -- --help",
            "cargo run -- check a",
            "cargo run --bin generate",
            "go run ./cmd/generate",
            "go run . --list",
            "npm run build",
            "npm test -- --watchAll=false",
            "npm run build:dev",
            "npm start & sleep 3; curl localhost; kill %1",
            "npm start > log 2>&1 & sleep 3",
            "timeout 5 npm run dev || true",
            "npx vite build",
            "vite --version",
            "grep -q 'npm start' README.md",
            "grep -q serve package.json",
            "# npm start\nls",
            "npx convex dev --once",
            "echo npm run dev",
            "yarn test dev",
            "test -f server.js",
            "cat watch",
        ];
        for script in ends {
            assert!(!never_exits(script), "{script}");
        }
    }
}
