//! Lanes that end in pull requests: real pushes to a real bare repository, and a `gh` that keeps its pull requests in
//! files. It takes the arguments and prints the JSON of the real one, as `tests/real/forge` shows.

use serde_json::Value;

use crate::merge::{TWO_AGENTS, lose_accepted_work, merged_head};
use crate::support::TestEnv;

const STACK: &str = "[[lane]]\nid = \"A\"\nname = \"First `thing`\"\ntests = [\"test -e a.txt\"]\ncommand = 'echo a > a.txt'\n\
     [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'cat a.txt > b.txt'\n";

pub(crate) const ONE: &str = "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n";

const PR: &[&str] = &["--merge", "pr"];

/// A repository with a remote that looks like one of GitHub's, and the `gh` for it.
pub(crate) fn world(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.git_at("", &["init", "--quiet", "--bare", "origin.git"]);
    let (bare, url) = (env.path("origin.git"), "https://github.com/acme/shop.git");
    env.git(&["config", &format!("url.{}.insteadOf", bare.display()), url]);
    env.git(&["remote", "add", "origin", url]);
    env.git(&["push", "--quiet", "origin", "main"]);
    env.program("gh", GH);
    env.write("scratch/pulls/count", "0");
    env.plan(plan);
    env
}

/// What the remote has of a branch.
pub(crate) fn remote_head(env: &TestEnv, branch: &str) -> String {
    env.git_at("origin.git", &["rev-parse", branch])
}

pub(crate) fn pull(env: &TestEnv, number: u32, field: &str) -> String {
    env.scratch(&format!("pulls/{number}.{field}")).trim_end().to_owned()
}

pub(crate) fn pulls(env: &TestEnv) -> String {
    env.scratch("pulls/count").trim().to_owned()
}

/// Puts a commit of somebody else's onto a branch of the remote.
fn another_user_pushes(env: &TestEnv, branch: &str) -> String {
    env.git_at("", &["clone", "--quiet", "origin.git", "theirs"]);
    env.git_at("theirs", &["checkout", "--quiet", "-B", "work"]);
    env.git_at("theirs", &["commit", "--quiet", "--allow-empty", "--message", "theirs"]);
    env.git_at("theirs", &["push", "--quiet", "--force", "origin", &format!("work:refs/heads/{branch}")]);
    remote_head(env, branch)
}

#[test]
fn pull_requests_stack_on_their_dependency() {
    let env = world(STACK);
    let (before, main) = (env.users_checkout(), env.git(&["rev-parse", "main"]));
    let ended = env.execute(&[PR, &["--format", "json", "--progress", "none"]].concat()).exits(0);
    assert_eq!(pulls(&env), "2");
    assert_eq!((pull(&env, 1, "head"), pull(&env, 1, "base")), ("lane/P1/A".into(), "main".into()));
    assert_eq!((pull(&env, 2, "head"), pull(&env, 2, "base")), ("lane/P1/B".into(), "lane/P1/A".into()));
    for lane in ["A", "B"] {
        let branch = format!("lane/P1/{lane}");
        assert_eq!(remote_head(&env, &branch), env.git(&["rev-parse", &branch]));
        let checkpoint = env.checkpoint(lane, "pre_pr");
        assert_eq!(
            (&checkpoint["status"], &checkpoint["head_sha"]),
            (&"complete".into(), &remote_head(&env, &branch).into())
        );
    }
    assert_eq!(env.checkpoint("B", "pre_pr")["target_branch"], "lane/P1/A");
    assert_eq!([env.git(&["rev-parse", "main"]), remote_head(&env, "main")], [main.clone(), main]);
    assert_eq!(env.users_checkout().without_refs(), before.without_refs());
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(summary["lanes"][0]["state"], "proposed");
    assert_eq!(summary["lanes"][0]["pull_request"]["url"], "https://github.com/acme/shop/pull/1");
    let body = pull(&env, 1, "body");
    for part in
        ["## Tests", "`test -e a.txt`", "Exit code 0", "`pre_pr`", "1 attempt", "lanewright rollback r1 --lane A"]
    {
        assert!(body.contains(part), "{part} is missing:\n{body}");
    }
    assert_eq!(pull(&env, 1, "title"), "A: First `thing`");
    assert!(pull(&env, 2, "body").contains("To be merged after https://github.com/acme/shop/pull/1"));
    env.lanewright(&["status", "r1"]).exits(0);
}

#[test]
fn pull_request_says_what_failed_on_the_way() {
    let env = world("[[lane]]\nid = \"A\"\ncommand = '[ $LANEWRIGHT_ATTEMPT = 2 ] && echo a > a.txt'\n");
    env.execute(PR).exits(0);
    let body = pull(&env, 1, "body");
    assert!(body.contains("2 attempts") && body.contains("## What failed on the way\n\n- "), "{body}");
    assert!(body.contains("exited with code 1"), "{body}");
}

#[test]
fn lane_without_accepted_work_is_not_pushed() {
    let agents = TWO_AGENTS.replace("\"L\"\n", "\"L\"\napproval = [\"changes\"]\n");
    let agents = format!("{agents}[[lane.agent]]\nname = \"three\"\ncommand = 'echo 3 > three'\n");
    for all_is_lost in [false, true] {
        let env = world(&agents);
        env.execute(&[PR, &["--max-parallel", "1"]].concat()).exits(3);
        let kept = if all_is_lost { env.main() } else { merged_head(&env, 0) };
        lose_accepted_work(&env, &kept);
        env.lanewright(&["approve", "r1", "L", "--gate", "changes"]).exits(0);
        env.resume(&[]).exits(3).says(&["lane/P1/L", "lacks accepted work"]);
        let pushed = env.git_at("origin.git", &["branch", "--list", "lane/*"]);
        assert_eq!((pulls(&env).as_str(), pushed.as_str()), ("0", ""));
    }
}

#[test]
fn pull_request_targets_dependency_branch_or_main() {
    let lane = |id: &str, needs: &str| {
        format!("[[lane]]\nid = \"{id}\"\ndepends_on = [{needs}]\ncommand = 'echo {id} > {id}.txt'\n")
    };
    let needs = [("A", ""), ("B", "\"A\""), ("C", "\"A\""), ("D", "\"B\", \"C\""), ("E", "\"A\", \"B\"")];
    let env = world(&needs.map(|(id, needs)| lane(id, needs)).concat());
    env.execute(PR).exits(0);
    let opened = env.events("pull_request_opened");
    for (lane, target) in [("A", "main"), ("B", "lane/P1/A"), ("C", "lane/P1/A"), ("D", "main"), ("E", "lane/P1/B")] {
        let of_lane = opened.iter().find(|event| event["lane"] == lane).unwrap();
        assert_eq!(of_lane["target_branch"], target, "{lane}");
    }
    assert_eq!(env.file_at("lane/P1/D", "B.txt"), "B");
}

#[test]
fn merged_and_deleted_dependency_retargets_to_base() {
    let env = world(STACK);
    env.write("scratch/gh-says-of", "lane/P1/B");
    env.execute(PR).exits(3);
    env.git(&["push", "--quiet", "origin", "--delete", "lane/P1/A"]);
    std::fs::remove_file(env.path("scratch/gh-says-of")).unwrap();
    env.resume(&[]).exits(0).says(&["lane/P1/A is gone from the remote"]);
    assert_eq!(pull(&env, 2, "base"), "main");
}

#[test]
fn a_lane_that_is_built_again_updates_its_pull_request() {
    let env = world("[[lane]]\nid = \"A\"\ncommand = 'date +%s%N > a.txt'\n");
    env.execute(PR).exits(0);
    let first = remote_head(&env, "lane/P1/A");
    let told = env.lanewright(&["rollback", "r1"]).exits(0);
    assert!(told.stdout.contains("https://github.com/acme/shop/pull/1"), "{}", told.stdout);
    env.resume(&[]).exits(0);
    let second = remote_head(&env, "lane/P1/A");
    assert_ne!(first, second);
    assert_eq!(second, env.git(&["rev-parse", "lane/P1/A"]));
    assert_eq!(pulls(&env), "1");
    assert_eq!(env.scratch("pulls/edits").lines().count(), 1);
    assert_eq!(env.events("pull_request_opened").last().unwrap()["updated"], true);
}

#[test]
fn a_base_that_a_person_chose_stays() {
    let env = world("[[lane]]\nid = \"A\"\ncommand = 'date +%s%N > a.txt'\n");
    env.execute(PR).exits(0);
    env.write("scratch/pulls/1.base", "release");
    env.lanewright(&["rollback", "r1"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!((env.scratch("pulls/edits").lines().count(), pull(&env, 1, "base")), (1, "release".into()));
}

#[test]
fn crash_around_push_opens_exactly_one_pull_request() {
    for point in ["before_push_branch", "after_push_branch", "before_open_pull_request", "after_open_pull_request"] {
        let env = world(ONE);
        let plan = env.path("plan.toml");
        let arguments = [&["execute-phase", plan.to_str().unwrap(), "--run-id", "r1"], PR].concat();
        let died =
            env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT_CRASH_POINT", format!("{point}:1")));
        died.exits(137);
        let pushed = (point != "before_push_branch").then(|| remote_head(&env, "lane/P1/A"));
        env.resume(&[]).exits(0);
        let now = remote_head(&env, "lane/P1/A");
        assert_eq!((pushed.unwrap_or(now.clone()), pulls(&env)), (now, "1".to_owned()), "{point}");
        assert_eq!(env.events("pull_request_opened").len(), 1, "{point}");
    }
}

#[test]
fn forge_refusal_blocks_the_lane_until_a_resume() {
    let env = world(STACK);
    env.write("scratch/gh-says", "GraphQL: Resource not accessible by personal access token (createPullRequest)");
    env.execute(PR).exits(3).says(&["gh pr create", "Resource not accessible", "resume"]);
    let checkpoint = env.checkpoint("A", "pre_pr");
    assert_eq!((&checkpoint["status"], &checkpoint["target_branch"]), (&"blocked".into(), &"main".into()));
    assert_eq!(checkpoint["head_sha"], remote_head(&env, "lane/P1/A"));
    assert_eq!(pulls(&env), "0");
    std::fs::remove_file(env.path("scratch/gh-says")).unwrap();
    env.resume(&[]).exits(0);
    assert_eq!(pulls(&env), "2");
    assert_eq!(env.events("job_planned").iter().filter(|job| job["lane"] == "A").count(), 2, "the work was done again");
}

#[test]
fn rollback_names_the_branch_that_was_pushed() {
    let env = world(ONE);
    env.write("scratch/gh-says", "GraphQL: Resource not accessible by personal access token (createPullRequest)");
    env.execute(PR).exits(3);
    let told = env.lanewright(&["rollback", "r1"]).exits(0).stdout;
    let delete = told.lines().find_map(|line| line.trim().strip_prefix("to delete it there: git ")).expect("a command");
    env.git(&delete.split(' ').collect::<Vec<_>>());
    assert_eq!(env.git_at("origin.git", &["branch", "--list", "lane/*"]), "");
}

#[test]
fn forge_outage_is_retried_before_escalation() {
    let env = world(ONE);
    env.write("scratch/gh-says", "error connecting to api.github.com\ncheck your internet connection");
    env.execute(PR).exits(3).says(&["tried 5 times", "error connecting to api.github.com"]);
    assert_eq!(env.events("forge_unavailable").len(), 5);
    std::fs::remove_file(env.path("scratch/gh-says")).unwrap();
    env.resume(&[]).exits(0);
    assert_eq!(pulls(&env), "1");
}

#[test]
fn a_branch_that_another_user_pushed_is_not_overwritten() {
    let env = world(ONE);
    let theirs = another_user_pushes(&env, "lane/P1/A");
    env.execute(PR).exits(3).says(&["lane/P1/A on origin", "did not push", "git push origin --delete lane/P1/A"]);
    assert_eq!((remote_head(&env, "lane/P1/A"), pulls(&env)), (theirs, "0".to_owned()));
    env.git(&["push", "--quiet", "origin", "--delete", "lane/P1/A"]);
    env.resume(&[]).exits(0);
    assert_eq!(remote_head(&env, "lane/P1/A"), env.git(&["rev-parse", "lane/P1/A"]));
}

#[test]
fn foreign_push_onto_lane_branch_is_not_overwritten() {
    let env = world(ONE);
    env.execute(PR).exits(0);
    let theirs = another_user_pushes(&env, "lane/P1/A");
    env.lanewright(&["rollback", "r1"]).exits(0);
    env.resume(&[]).exits(3).says(&["did not push"]);
    assert_eq!(remote_head(&env, "lane/P1/A"), theirs);
}

#[test]
fn a_server_that_refuses_the_push_is_quoted() {
    let env = world(ONE);
    env.program("../origin.git/hooks/pre-receive", "#!/bin/sh\necho 'no branches on Fridays'\nexit 1\n");
    env.execute(PR).exits(3).says(&["no branches on Fridays"]);
    assert_eq!(env.checkpoint("A", "pre_pr")["status"], "blocked");
    assert_eq!(pulls(&env), "0");
}

#[test]
fn missing_remote_or_forge_is_reported_before_lanes() {
    let env = world(ONE);
    let plan = env.path("plan.toml");
    let arguments = [&["execute-phase", plan.to_str().unwrap(), "--run-id", "r1"], PR].concat();
    env.write("scratch/gh-logged-out", "");
    env.lanewright(&arguments).exits(3).says(&["not logged in"]).hints("gh auth login --hostname github.com");
    std::fs::remove_file(env.path("bin/gh")).unwrap();
    let git =
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(|path| path.join("git")).find(|it| it.exists());
    std::os::unix::fs::symlink(git.unwrap(), env.path("bin/git")).unwrap();
    let alone = env.path("bin");
    let without = |arguments: &[&str]| env.lanewright_with(arguments, |command| command.env("PATH", &alone));
    without(&arguments).exits(3).says(&["`gh` is not installed"]).hints("apt install gh");
    env.write("repo/lanewright.toml", "pull_request_command = [\"./propose\"]\n");
    without(&arguments).exits(3).says(&["`./propose` is not installed"]).hints("pull_request_command");
    env.git(&["remote", "remove", "origin"]);
    without(&arguments).exits(3).says(&["no remote `origin`"]);
    assert!(!env.path("repo/.claude").exists() && !env.path("repo.lanes").exists(), "something was made");
}

#[test]
fn unpushed_base_branch_is_reported_before_lanes() {
    let env = world(ONE);
    env.git(&["switch", "--quiet", "--create", "feature"]);
    env.execute(PR).exits(3).says(&["no branch `feature` on origin"]).hints("git push --set-upstream origin feature");
}

#[test]
fn custom_forge_command_opens_and_reuses_pull_requests() {
    let env = world(ONE);
    env.program(
        "propose",
        "#!/bin/sh\nset -e\ntest -s \"$LANEWRIGHT_BODY_FILE\"\n\
         echo \"$1 $LANEWRIGHT_BRANCH $LANEWRIGHT_BASE_BRANCH $LANEWRIGHT_LANE [$LANEWRIGHT_PULL_REQUEST]\" >> \"$SCRATCH/told\"\n\
         echo opening\necho https://forge.example.com/changes/41\n",
    );
    env.write("repo/lanewright.toml", "merge = \"pr\"\npull_request_command = [\"propose\", \"--now\"]\n");
    env.commit("settings");
    env.git(&["push", "--quiet", "origin", "main"]);
    env.execute(&[]).exits(0);
    env.lanewright(&["rollback", "r1"]).exits(0);
    env.resume(&[]).exits(0);
    let told = env.scratch("told");
    let known = "https://forge.example.com/changes/41";
    assert_eq!(told, format!("--now lane/P1/A main A []\n--now lane/P1/A main A [{known}]\n"));
    assert_eq!(env.events("pull_request_opened")[0]["number"], 41);
}

#[test]
fn lane_with_a_pull_request_is_done() {
    let env = world(STACK);
    env.execute(PR).exits(0);
    let again = |run: &str| env.execute(&[&[run], PR].concat()).exits(0).stdout;
    let open = again("--run-id=r2");
    assert!(open.contains("2 of 2 lanes were done by run r1; not merged into main: A, B\n"), "{open}");
    env.git(&["merge", "--quiet", "--no-edit", "lane/P1/B"]);
    let merged = again("--run-id=r3");
    assert!(merged.contains("2 of 2 lanes were merged by run r1\n"), "{merged}");
    assert_eq!(pulls(&env), "2");
}

#[test]
fn unchanged_lane_has_no_pull_request() {
    let env = world(
        "[[lane]]\nid = \"A\"\nallow_empty = true\ncommand = 'true'\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'echo b > b.txt'\n",
    );
    env.execute(PR).exits(0).says(&["changed nothing"]);
    assert_eq!(
        (pulls(&env), pull(&env, 1, "head"), pull(&env, 1, "base")),
        ("1".into(), "lane/P1/B".into(), "main".into())
    );
}

#[test]
fn a_branch_with_an_open_pull_request_is_not_cleaned_up() {
    let env = world(ONE);
    env.execute(PR).exits(0);
    let told = env.lanewright(&["clean", "--yes"]).exits(0);
    assert!(told.stdout.contains("kept branch lane/P1/A"), "{}", told.stdout);
    assert!(told.stdout.contains("https://github.com/acme/shop/pull/1"), "{}", told.stdout);
    env.git(&["rev-parse", "lane/P1/A"]);
}

/// Keeps `$SCRATCH/pulls/NUMBER.{head,base,title,body}`. With `$SCRATCH/gh-says` it fails and says that. `NUMBER.merged`
/// holds the head with which a pull request was merged, `NUMBER.{reviews,opinions,threads,comments,decision}` what was
/// said of it, and `$SCRATCH/checks` prints the checks of the commit `$OID`.
pub(crate) const GH: &str = r#"#!/bin/sh
set -e
cd "$SCRATCH"
echo "$*" >> gh-calls
if [ "$1 $2" = "auth status" ]; then
    [ ! -e gh-logged-out ] || { echo "You are not logged into any GitHub hosts." >&2; exit 1; }
    exit 0
fi
if [ "$1" = api ]; then
    [ ! -e gh-api-says ] || { cat gh-api-says >&2; exit 1; }
    case "$*" in
        *PATCH*pulls/*)
            [ ! -e gh-patch-says ] || { cat gh-patch-says >&2; exit 1; }
            number=${*#*pulls/} number=${number%% *}
            echo "${*#*base=}" > pulls/$number.base ;;
        *pulls/*/merge*)
            number=${*#*pulls/} number=${number%%/*} sha=${*#*sha=} sha=${sha%% *}
            echo "$sha" > pulls/$number.merged ;;
        *collaborators/*)
            login=${*#*collaborators/}
            grep -q "^${login%%/*}$" writers || { echo "gh: Not Found (HTTP 404)" >&2; exit 1; }
            echo '{"permission":"write"}' ;;
        */logs) cat check-log ;;
        *graphql*)
            printf '{"data":{"repository":{'
            number=1 separator=
            while [ $number -le "$(cat pulls/count)" ]; do
                case "$*" in *"pullRequest(number: $number)"*)
                    nodes() { [ ! -e pulls/$number.$1 ] || cat pulls/$number.$1; }
                    head=$(cat pulls/$number.head) state=OPEN
                    oid=$(git -C ../origin.git rev-parse "$head")
                    [ ! -e pulls/$number.merged ] || state=MERGED
                    [ ! -e pulls/$number.closed ] || state=CLOSED
                    run= decision=null
                    [ ! -e checks ] || run=$(cd ../origin.git && ID=$((0x$(echo $oid | cut -c1-7))) OID=$oid sh "$SCRATCH/checks")
                    [ ! -e pulls/$number.decision ] || decision="\"$(cat pulls/$number.decision)\""
                    printf '%s"p%s":{"state":"%s","isDraft":false,"headRefOid":"%s","baseRefName":"%s","reviewDecision":%s,' \
                        "$separator" $number $state $oid "$(cat pulls/$number.base)" "$decision"
                    printf '"latestOpinionatedReviews":{"nodes":[%s]},' "$(nodes opinions)"
                    printf '"commits":{"nodes":[{"commit":{"statusCheckRollup":{"contexts":{"totalCount":%s,"nodes":[%s]}}}}]},' \
                        "$(echo "$run" | grep -c __typename || true)" "$run"
                    printf '"reviews":{"nodes":[%s]},"reviewThreads":{"nodes":[%s]},"comments":{"nodes":[%s]}}' \
                        "$(nodes reviews)" "$(nodes threads)" "$(nodes comments)"
                    separator=, ;;
                esac
                number=$((number + 1))
            done
            echo '}}}' ;;
        *) echo "unknown call: $*" >&2; exit 1 ;;
    esac
    exit 0
fi
verb=$2
shift 2
[ "$verb" != edit ] || { number=$1; shift; }
while [ $# -gt 0 ]; do
    case $1 in
        --repo) [ "$2" = github.com/acme/shop ] || exit 64 ;;
        --head) head=$2 ;;
        --base) base=$2 ;;
        --title) title=$2 ;;
        --body-file) body=$2 ;;
        --state | --json) ;;
        *) echo "unknown flag: $1" >&2; exit 1 ;;
    esac
    shift 2
done
count=$(cat pulls/count)
keep() { echo "$base" > pulls/$1.base; echo "$title" > pulls/$1.title; cp "$body" pulls/$1.body; }
case $verb in
    list)
        separator= number=1
        printf '['
        while [ $number -le $count ]; do
            if [ "$(cat pulls/$number.head)" = "$head" ]; then
                state=OPEN oid=
                [ ! -e pulls/$number.merged ] || { state=MERGED; oid=$(cat pulls/$number.merged); }
                [ -n "$oid" ] || oid=$(git -C ../origin.git rev-parse "$head")
                printf '%s{"baseRefName":"%s","headRefOid":"%s","isCrossRepository":false,"number":%s,"state":"%s","url":"%s"}' \
                    "$separator" "$(cat pulls/$number.base)" "$oid" $number $state \
                    https://github.com/acme/shop/pull/$number
                separator=,
            fi
            number=$((number + 1))
        done
        echo ']'
        ;;
    create)
        [ ! -e gh-says ] || { cat gh-says >&2; exit 1; }
        [ ! -e gh-says-of ] || [ "$(cat gh-says-of)" != "$head" ] || { echo "HTTP 403" >&2; exit 1; }
        git -C ../origin.git show-ref --verify --quiet "refs/heads/$head" "refs/heads/$base" || {
            echo "pull request create failed: GraphQL: No commits between $base and $head" >&2
            exit 1
        }
        number=$((count + 1))
        echo $number > pulls/count
        echo "$head" > pulls/$number.head
        keep $number
        echo https://github.com/acme/shop/pull/$number
        ;;
    edit)
        keep $number
        echo $number >> pulls/edits
        echo https://github.com/acme/shop/pull/$number
        ;;
esac
"#;
