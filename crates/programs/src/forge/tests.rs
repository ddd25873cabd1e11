use super::*;

fn listed(number: u64, state: &str, head: &str) -> Listed {
    let url = format!("https://example.com/pull/{number}");
    let (is_open, is_merged) = (state == "open", state == "merged");
    Listed { number, url, base: "main".into(), head: head.into(), is_open, is_merged }
}

#[test]
fn open_pull_request_is_preferred_to_merged() {
    let all = [listed(1, "closed", "b"), listed(2, "merged", "b"), listed(3, "open", "a")];
    assert_eq!(chosen(&all, "b").map(|it| it.number), Some(3));
    assert_eq!(chosen(&all[..2], "b").map(|it| it.number), Some(2));
    assert_eq!(chosen(&all[..2], "c"), None, "the work went on after the merge");
    assert_eq!(chosen(&all[..1], "b"), None, "what was closed is opened anew");
}

#[test]
fn pull_request_address_is_the_last_line() {
    let said = "Creating pull request\n\nhttps://github.com/acme/shop/pull/12\n";
    assert_eq!(address_on_last_line(said), Some("https://github.com/acme/shop/pull/12"));
    assert_eq!(made("https://example.com/mr/7/", "main").pull_request.number, Some(7));
    for text in ["", "done\n", "see https://example.com/1\n", "https://example.com/a b", "file:///etc"] {
        assert_eq!(address_on_last_line(text), None, "{text}");
    }
}

#[test]
fn only_the_status_404_counts_as_not_found() {
    let is_not_found =
        |said: &str| ForgeError::Failed { command: "gh api".into(), code: Some(1), said: said.into() }.is_not_found();
    for said in
        ["{\"message\":\"Not Found\"}\ngh: Not Found (HTTP 404)", "glab: 404 Not found (HTTP 404)", "glab: HTTP 404"]
    {
        assert!(is_not_found(said), "{said}");
    }
    for said in ["Get \"https://gitlab.com/merge_requests/1404\": EOF", "gh: Server Error for dev404 (HTTP 502)"] {
        assert!(!is_not_found(said), "{said}");
    }
}

#[test]
fn url_path_is_percent_encoded() {
    assert_eq!(percent_encoded("group/sub group/shop"), "group%2Fsub%20group%2Fshop");
    assert_eq!(percent_encoded("lane/P1/SL-1&state=x#ü"), "lane%2FP1%2FSL-1%26state%3Dx%23%C3%BC");
}

#[test]
fn page_to_open_is_known_for_github_and_gitlab() {
    let page = |url: &str| page_to_open(&[url.to_owned()], "lanewright/r1", "main");
    let github = "https://github.com/acme/shop/compare/main...lanewright/r1?expand=1";
    assert_eq!(page("git@github.com:acme/shop.git").as_deref(), Some(github));
    let gitlab = "https://gitlab.example.com/a/b/-/merge_requests/new\
                  ?merge_request%5Bsource_branch%5D=lanewright%2Fr1&merge_request%5Btarget_branch%5D=main";
    assert_eq!(page("https://x:token@gitlab.example.com/a/b.git").as_deref(), Some(gitlab));
    assert_eq!(page("https://git.example.com/a/b.git"), None);
    assert_eq!(page("/srv/git/github.git"), None);
}
