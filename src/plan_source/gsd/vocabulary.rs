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
    clean";

/// Commands that never end by themselves.
pub(super) const ENDLESS: &str = "\
    npm start, npm run dev, npm run start, npm run watch, npm run serve, yarn dev, yarn start, pnpm dev, \
    pnpm start, pnpm run dev, bun dev, bun run dev, next dev, next start, npx next dev, npx vite, rails server, \
    rails s, flutter run, npx expo start";

/// Whether `word` is one of a list.
pub(super) fn is_in(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}
