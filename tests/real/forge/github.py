#!/usr/bin/env python3
"""As much of GitHub as `gh pr list`, `create`, `edit` and `gh api` ask for, kept in memory.

Each pull request has a check that fails until its branch has `fixed.txt`, and comments of two people.

Started with the directory of a bare repository, it prints its port and is to be used as `HTTP_PROXY` for
`github.localhost`, which `gh` speaks plain HTTP with. Every call is written to standard error.
"""

import json
import re

from standin import Handler, commit_of, is_fixed, merge, serve

PULLS = []
REPOSITORY = {
    "id": "R_1", "name": "shop", "nameWithOwner": "acme/shop", "owner": {"id": "U_1", "login": "acme"},
    "hasIssuesEnabled": True, "description": "", "hasWikiEnabled": True, "viewerPermission": "ADMIN",
    "defaultBranchRef": {"name": "main"}, "parent": None, "isPrivate": False, "mergeCommitAllowed": True,
    "rebaseMergeAllowed": True, "squashMergeAllowed": True,
}


def entry(pull):
    return {**pull, "headRefOid": commit_of(pull["headRefName"]), "isCrossRepository": False}


def pulls_of(variables):
    states = variables.get("state") or ["OPEN", "CLOSED", "MERGED"]
    head = variables.get("headBranch")
    found = [entry(pull) for pull in PULLS if pull["state"] in states and head in (None, pull["headRefName"])]
    return {"totalCount": len(found), "nodes": found, "pageInfo": {"hasNextPage": False, "endCursor": ""}}


def open_pull(given):
    head, base = given["headRefName"], given["baseRefName"]
    if not commit_of(head) or not commit_of(base):
        return None, "Head sha can't be blank, Base sha can't be blank, No commits between them"
    if any(pull["state"] == "OPEN" and pull["headRefName"] == head for pull in PULLS):
        return None, f"A pull request already exists for acme:{head}."
    number = len(PULLS) + 1
    url = f"http://github.localhost/acme/shop/pull/{number}"
    pull = {"id": f"PR_{number}", "number": number, "url": url, "state": "OPEN", "headRefName": head,
            "baseRefName": base, "title": given["title"], "body": given.get("body", "")}
    PULLS.append(pull)
    return pull, None


def change(pull, given):
    names = {"title": "title", "body": "body", "baseRefName": "baseRefName", "base": "baseRefName"}
    pull.update({names[key]: value for key, value in given.items() if key in names})


def review(number):
    """A required check that wants `fixed.txt`, a comment of a reviewer and one of a stranger, and an approval."""
    pull = PULLS[number - 1]
    commit = commit_of(pull["headRefName"])
    check = {
        "__typename": "CheckRun", "databaseId": int(commit[:7], 16), "name": "build", "status": "COMPLETED",
        "conclusion": "SUCCESS" if is_fixed(commit) else "FAILURE", "title": None, "summary": None, "isRequired": True,
        "detailsUrl": f"http://github.localhost/acme/shop/actions/runs/1/job/{number}",
    }
    said = [
        {"databaseId": 100 * number + at, "body": f"{login} asks for a word", "createdAt": "2030-01-01T00:00:00Z",
         "author": {"login": login, "__typename": "User"}}
        for at, login in enumerate(["reviewer", "stranger"])
    ]
    return {
        "state": pull["state"], "isDraft": False, "headRefOid": commit, "baseRefName": pull["baseRefName"],
        "reviewDecision": "APPROVED", "latestOpinionatedReviews": {"nodes": []},
        "commits": {"nodes": [{"commit": {"statusCheckRollup": {"contexts": {"totalCount": 1, "nodes": [check]}}}}]},
        "reviews": {"nodes": []}, "reviewThreads": {"nodes": []}, "comments": {"nodes": said},
    }


def graphql(query, variables):
    given = variables.get("input", {})
    if "createPullRequest" in query:
        pull, error = open_pull(given)
        if error:
            return {"errors": [{"message": error}]}
        return {"data": {"createPullRequest": {"pullRequest": entry(pull)}}}
    if "updatePullRequest" in query:
        pull = next(pull for pull in PULLS if pull["id"] == given["pullRequestId"])
        change(pull, given)
        return {"data": {"updatePullRequest": {"__typename": "x", "pullRequest": entry(pull)}}}
    if "projectCards" in query:
        said = "Projects (classic) is being deprecated in favor of the new Projects experience"
        return {"errors": [{"message": f"{said}. (repository.pullRequest.projectCards)"}]}
    if asked := re.findall(r"p(\d+): pullRequest\(number: \d+\)", query):
        return {"data": {"repository": {f"p{number}": review(int(number)) for number in asked}}}
    if "pullRequest(number:" in query:
        number = variables.get("pr_number") or variables.get("number")
        return {"data": {"repository": {"pullRequest": entry(PULLS[number - 1])}}}
    if "pullRequests(" in query:
        return {"data": {"repository": {"pullRequests": pulls_of(variables)}}}
    if "UserCurrent" in query:
        return {"data": {"viewer": {"login": "octo"}}}
    if "__type" in query:
        return {"data": {"PullRequest": {"fields": []}, "StatusCheckRollupContextConnection": {"fields": []}}}
    return {"data": {"repository": REPOSITORY}}


class GitHub(Handler):
    def answer(self, value, status=200):
        super().answer(value, status, [("X-Oauth-Scopes", "repo, read:org")])

    def do_GET(self):
        self.note()
        if self.path.endswith("/logs"):
            return self.answer("2030-01-01T00:00:00.0000000Z missing fixed.txt")
        if permission := re.search(r"/collaborators/(\w+)/permission$", self.path):
            if permission[1] != "reviewer":
                return self.answer({"message": "Not Found"}, 404)
            return self.answer({"permission": "write"})
        self.answer(PULLS if self.path.endswith("/pulls") else {})

    def do_POST(self):
        call = self.read()
        query = " ".join(call.get("query", "").split())
        self.note(f"{query[:200]} {json.dumps(call.get('variables', {}))[:300]}")
        self.answer(graphql(query, call.get("variables", {})))

    def do_PUT(self):
        call = self.read()
        self.note(json.dumps(call)[:300])
        pull = PULLS[int(re.search(r"/pulls/(\d+)/merge$", self.path)[1]) - 1]
        if call["sha"] != commit_of(pull["headRefName"]):
            return self.answer({"message": "Head branch was modified."}, 409)
        if not merge(pull["headRefName"], pull["baseRefName"]):
            return self.answer({"message": "Pull Request is not mergeable"}, 405)
        pull["state"] = "MERGED"
        self.answer({"merged": True})

    def do_PATCH(self):
        call = self.read()
        self.note(json.dumps(call)[:300])
        number = re.search(r"/repos/acme/shop/pulls/(\d+)$", self.path)
        change(PULLS[int(number[1]) - 1], call)
        self.answer({"number": int(number[1])})


serve(GitHub)
