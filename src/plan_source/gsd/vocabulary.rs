//! Words that tell commands from prose.

/// Programs that a line of plain text is a command of, where nothing else speaks against it.
pub(super) const TOOLS: &str = "\
    ansible-lint ant awk bash bazel black buf bun bundle bunx cargo cat cd clang clang-format clang-tidy \
    clippy-driver cmake cmp composer conda ctest dart deno diff docker docker-compose dotnet echo egrep eslint \
    fgrep find flake8 flutter g++ gcc git go gofmt golangci-lint gradle grep hadolint head helm isort java javac \
    jest jq just kubectl ls make markdownlint meson mix mocha mvn mypy next ninja node nox npm npx nx phpcs \
    phpstan phpunit php pip pip3 playwright pnpm poetry prettier prisma psalm pwsh pyright pytest python python3 \
    rails rake rg rspec rubocop ruby ruff rustc rustfmt sbt sed sh shellcheck sqlite3 stack swift swiftc \
    swiftlint tail terraform test tox tsc tsx turbo uv uvx vite vitest wc xcodebuild xmllint yamllint yarn zig [ \
    [[ ! true";

/// Those of them that are English words as well: what follows must look like arguments.
pub(super) const WORDS: &str = "\
    test make find cat go head tail next just stack node echo diff true";

/// Words that tell of an outcome; a command has no use for them outside of quotes.
pub(super) const OUTCOMES: &str = "\
    succeeds succeed passes pass passed fails fail returns return shows show prints works should must exits exit \
    completes outputs compiles runs without reports contains exists exist is are has have gives the and with no \
    clean or confirms finds verifies";

/// Those of them that no command has behind its arguments, and signs of prose.
pub(super) const VERDICTS: &str = "\
    confirms confirm verifies finds shows returns outputs succeeds passes exits compiles prints reports OR AND";

/// Programs that never end, whatever their arguments.
pub(super) const SERVERS: &str = "\
    serve http-server live-server json-server uvicorn gunicorn hypercorn daphne nodemon ts-node-dev \
    webpack-dev-server air reflex concurrently ngrok";

/// Programs that never end where one of `WATCHERS` is their first argument.
pub(super) const RUNNERS: &str = "\
    next nuxt ng gatsby astro remix wrangler convex expo webpack mkdocs hugo jekyll storybook sanity tauri vercel \
    netlify turbo nx rails tsx vitest jest trunk dx cargo-watch cargo cypress sphinx-autobuild zola docusaurus";

pub(super) const WATCHERS: &str = "dev develop serve server start watch s";

/// Words of prose that no call of an unknown program holds, and words that begin prose rather than a command.
pub(super) const PROSE: &str = "\
    a an the this that these those it its all each every both any some at in on of to into from with by for and or if \
    as when then than be been was were not no same see look open click visit run check checks verify ensure confirm \
    manual manually visual visually human review inspect inspection requires require required needed unit existing \
    full suite code type file files page user users app verification verified compare try use load deploy \
    covered above below via only after before applicable unchanged correct correctly green loads works";

/// Whether `word` is one of a list.
pub(super) fn is_in(list: &str, word: &str) -> bool {
    let listed = |at: usize| {
        let (before, after) = (&list.as_bytes()[..at], &list.as_bytes()[at + word.len()..]);
        before.last().is_none_or(|byte| *byte == b' ') && after.first().is_none_or(|byte| *byte == b' ')
    };
    !word.is_empty() && list.match_indices(word).any(|(at, _)| listed(at)) && !word.contains(' ')
}
