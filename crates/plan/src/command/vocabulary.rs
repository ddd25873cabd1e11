//! Words that distinguish commands from prose.

/// Programs that a line of plain text is a command of, where nothing else speaks against it.
pub(super) const TOOLS: &str = "\
    actionlint alembic ansible-lint ansible-playbook ant awk bash bats bazel black buf bun bundle bunx cargo cat cd clang clang-format clang-tidy \
    clippy-driver cmake cmp composer conda coverage ctest cypress dart deno diff docker docker-compose dotnet echo egrep env eslint \
    fgrep find flake8 flutter g++ gcc gh git go gofmt golangci-lint gradle grep hadolint head helm isort java javac \
    jest jq just kubectl ls make markdownlint mdbook meson mkdocs mix mocha mvn mypy next ninja node nox npm npx nx openspec perl phpcs \
    phpstan phpunit php pip pip3 pipenv playwright pnpm poetry pre-commit prettier prisma psalm pwsh pyright pytest python python3 \
    rails rake rg rspec rubocop ruby ruff rustc rustfmt sbt sed sh shellcheck sqlite3 stack stylelint swift swiftc \
    swiftlint tail terraform test timeout tox tsc tsx turbo uv uvx vale vite vitest wc xcodebuild xmllint yamllint yarn yq zig zsh [ \
    [[ ! true";

/// Those of them that are English words as well: what follows must look like arguments.
pub(super) const WORDS: &str = "\
    test make find cat go head tail next just stack node echo diff true coverage env timeout";

/// Words for an outcome; a command has no use for them outside of quotes.
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

/// Programs that make or remove files and end programs, and check nothing.
pub(super) const CLEANERS: &str = "rm rmdir mkdir touch mv cp kill ln chmod";

/// Programs that reach beyond the worktree.
pub(super) const DANGERS: &str =
    "pkill killall kill truncate shred dropdb createdb shutdown reboot dd mkfs launchctl systemctl brew apt apt-get";

/// Commands that act in an account of a service, by the words that they begin with. Without its credentials they say nothing about
/// the work.
pub(super) const NEED_ACCOUNT: &[&str] = &[
    "amplify push",
    "aws",
    "az",
    "convex deploy",
    "docker login",
    "docker push",
    "doctl",
    "eas build",
    "eas submit",
    "eas update",
    "firebase deploy",
    "firebase login",
    "firebase use",
    "fly",
    "flyctl",
    "gcloud",
    "gh",
    "glab",
    "gsutil",
    "heroku",
    "netlify deploy",
    "netlify link",
    "netlify login",
    "pulumi",
    "railway",
    "sentry-cli",
    "stripe",
    "supabase db pull",
    "supabase db push",
    "supabase functions deploy",
    "supabase link",
    "supabase login",
    "supabase projects",
    "supabase secrets",
    "vercel",
    "wrangler deploy",
    "wrangler login",
    "wrangler publish",
    "wrangler secret",
    "wrangler tail",
    "wrangler whoami",
];

/// Options by which such a command needs no account.
pub(super) const WITHOUT_ACCOUNT: &str = "--help -h help --version -V -v version --dry-run --local completion";

/// Words that say that a command's success is not what is wanted, or not always.
pub(super) const FAILURE_WORDS: &str = "\
    fail fails failing failed failure failures nonzero non-zero not nothing empty reject rejects rejected optional \
    optionally manual manually if unless when otherwise skip skipped red pre-existing preexisting baseline known error errors \
    or except alternatively instead before old previous previously deferred";

/// Those that say so of a search, which may look for what must not be there.
pub(super) const ABSENCE: &str = "\
    no none zero 0 never absent absence removed remove gone without clean only unused deleted exactly stale";

/// Programs that do something without arguments.
pub(super) const CALLED_ALONE: &str = "pytest make tox nox ctest rspec phpunit jest true";

/// Words behind a command that is run.
pub(super) const POSITIVE: &str = "\
    pass passes passing succeed succeeds work works compile compiles exit exits run runs complete completes must should still \
    and then to from in for with both all build builds print prints output outputs show shows list lists display displays \
    report reports return returns green clean against via after on inside within";

/// Words around a command that say no more than that it is run and succeeds.
pub(super) const GLUE: &str = "\
    run runs running then and also finally first verify check confirm ensure that with via using by execute from the repo \
    repository root command commands both all of it this new project in directory full suite test tests build lint";

pub(crate) fn is_in(list: &str, word: &str) -> bool {
    let listed = |at: usize| {
        let (before, after) = (&list.as_bytes()[..at], &list.as_bytes()[at + word.len()..]);
        before.last().is_none_or(|byte| *byte == b' ') && after.first().is_none_or(|byte| *byte == b' ')
    };
    !word.is_empty() && list.match_indices(word).any(|(at, _)| listed(at)) && !word.contains(' ')
}

/// `NAME=value`, as plans write it: in capitals.
pub(super) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}
