#!/usr/bin/env python3
"""As much of GitLab's REST API (v4) as Lanewright asks `glab api` for, kept in memory.

Each merge request has a pipeline with a job that fails until its branch has `fixed.txt`, and discussions of a member, of
somebody else, of a bot and of GitLab itself. Lists have two entries a page.

Started with the directory of a bare repository, it prints its port and is to be used as `HTTP_PROXY` for
`gitlab.localhost`, which `glab` speaks plain HTTP with where its configuration says so. Every call is written to standard error.
"""

import json
import re
from urllib.parse import parse_qs, urlencode, urlsplit

from standin import Handler, commit_of, is_fixed, merge, serve

REQUESTS = []
PROJECT = 5
PER_PAGE = 2
# The others are no members.
LEVELS = {7: 40, 9: 30}
USERS = {7: "reviewer", 8: "stranger", 9: "project_5_bot_0123456789abcdef", 10: "GitLab"}
# As GitLab Runner writes it: sections, colours, and with FF_TIMESTAMPS a time and a stream before each line.
TRACE = (
    "2030-01-01T00:00:00.000001Z 00O \x1b[0KRunning with gitlab-runner 18.0.0 (d7f2cea7)\x1b[0;m\n"
    "2030-01-01T00:00:00.000002Z 00O section_start:1893456000:step_script\r\x1b[0K\x1b[0K\x1b[36;1mExecuting\x1b[0;m\n"
    "2030-01-01T00:00:00.000003Z 01O \x1b[32;1m$ make\x1b[0;m\n"
    "2030-01-01T00:00:00.000004Z 01E missing fixed.txt\n"
    "2030-01-01T00:00:00.000005Z 00O section_end:1893456000:step_script\r\x1b[0K\n"
    "2030-01-01T00:00:00.000006Z 00O+section_start:1893456000:cleanup_file_variables\r\x1b[0K\x1b[0K\x1b[36;1mCleaning up\x1b[0;m\n"
    "2030-01-01T00:00:00.000007Z 00O \x1b[31;1mERROR: Job failed: exit code 1\x1b[0;m\n"
)


def user(number):
    name = USERS[number]
    return {"id": number, "username": name, "name": name, "state": "active", "locked": False}


def note(number, author, body, **more):
    return {
        "id": number, "type": None, "body": body, "author": user(author), "created_at": "2030-01-01T00:00:00.000Z",
        "updated_at": "2030-01-01T00:00:00.000Z", "system": False, "noteable_type": "MergeRequest", "resolvable": False,
        **more,
    }


def discussions(request):
    first, head = 100 * request["iid"], commit_of(request["source_branch"])
    place = {
        "base_sha": commit_of(request["target_branch"]), "start_sha": head, "head_sha": head, "position_type": "text",
        "old_path": "work.txt", "new_path": "work.txt", "old_line": None, "new_line": 1, "line_range": None,
    }
    on_line = {"type": "DiffNote", "position": place, "resolvable": True}
    notes = [
        note(first, 10, "added 1 commit", system=True),
        note(first + 1, 8, "stranger asks for a word"),
        note(first + 2, 7, "resolved word", **on_line, resolved=True),
        note(first + 3, 9, "bot asks for a word"),
        note(first + 4, 7, "reviewer asks for a word", **on_line, resolved=False),
    ]
    return [{"id": f"{it['id']:040x}", "individual_note": False, "notes": [it]} for it in notes]


def entry(request):
    # GitLab keeps the head that a merged one had.
    sha = request.get("merged_sha") or commit_of(request["source_branch"])
    return {
        "id": 1000 + request["iid"], "project_id": PROJECT, "source_project_id": PROJECT, "target_project_id": PROJECT,
        "sha": sha, "author": user(7), "draft": False, "work_in_progress": False, "merge_status": "can_be_merged",
        "detailed_merge_status": "mergeable" if sha and is_fixed(sha) else "ci_must_pass",
        "created_at": "2030-01-01T00:00:00.000Z", "labels": [], "squash": False,
        "web_url": f"http://gitlab.localhost/acme/shop/-/merge_requests/{request['iid']}", **request,
    }


def whole(request):
    shown = entry(request)
    number = int(shown["sha"][:7], 16)
    pipeline = {"id": number, "iid": 1, "project_id": PROJECT, "sha": shown["sha"], "source": "push",
                "status": "success" if is_fixed(shown["sha"]) else "failed"}
    # The pipeline of a new head begins some time after the push.
    is_new = request.get("seen") != shown["sha"]
    request["seen"] = shown["sha"]
    return {**shown, "head_pipeline": None if is_new else pipeline, "user": {"can_merge": True}, "has_conflicts": False}


def state_of(pipeline):
    heads = [commit_of(request["source_branch"]) for request in REQUESTS]
    is_passed = any(commit and int(commit[:7], 16) == pipeline and is_fixed(commit) for commit in heads)
    return "success" if is_passed else "failed"


def jobs(pipeline):
    common = {"stage": "test", "pipeline": {"id": pipeline, "project_id": PROJECT}, "tag_list": []}
    return [
        {"id": pipeline, "name": "build", "status": state_of(pipeline), "allow_failure": False, **common},
        {"id": 1, "name": "lint", "status": "failed", "allow_failure": True, **common},
        {"id": 2, "name": "deploy", "status": "manual", "allow_failure": True, **common},
    ]


def bridges(pipeline):
    """A job that starts another pipeline and fails with it."""
    address = f"http://gitlab.localhost/acme/shop/-/pipelines/{pipeline + 1}"
    other = {"id": pipeline + 1, "status": state_of(pipeline), "web_url": address}
    return [{"id": 10**9 + pipeline, "name": "child", "status": state_of(pipeline), "allow_failure": False, "downstream_pipeline": other}]


def open_request(given):
    source, target = given["source_branch"], given["target_branch"]
    if not commit_of(source) or not commit_of(target):
        return {"message": ["Source or target branch does not exist"]}, 422
    other = next((it for it in REQUESTS if it["state"] == "opened" and it["source_branch"] == source), None)
    if other and other["target_branch"] == target:
        said = f"Another open merge request already exists for this source branch: !{other['iid']}"
        return {"message": [said]}, 409
    REQUESTS.append({"iid": len(REQUESTS) + 1, "state": "opened", **given})
    return whole(REQUESTS[-1]), 201


class GitLab(Handler):
    def handle_call(self):
        given = self.read()
        self.note(json.dumps(given)[:300] if given else "")
        address = urlsplit(self.path)
        self.list, self.query = address.path, {name: values[0] for name, values in parse_qs(address.query).items()}
        path = address.path.removeprefix("/api/v4/")
        if not self.headers.get("Private-Token"):
            return self.answer({"message": "401 Unauthorized"}, 401)
        if path == "user":
            return self.answer(user(7))
        found = re.fullmatch(r"projects/acme%2Fshop/(\w+)(?:/(\w+))?(?:/(\w+))?", path)
        if not found:
            return self.missing()
        kind, number, rest = found.groups()
        if kind == "merge_requests" and number:
            return self.merge_request(int(number), rest, given)
        if kind == "merge_requests" and self.command == "POST":
            return self.answer(*open_request(given))
        if kind == "merge_requests":
            source = self.query.get("source_branch")
            # The newest come first.
            return self.page([entry(it) for it in REQUESTS[::-1] if source in (None, it["source_branch"])])
        if kind == "pipelines" and rest in ("jobs", "bridges"):
            return self.page(jobs(int(number)) if rest == "jobs" else bridges(int(number)))
        if (kind, rest) == ("jobs", "trace"):
            return self.answer(TRACE)
        if (kind, number) == ("members", "all") and int(rest) in LEVELS:
            return self.answer({**user(int(rest)), "access_level": LEVELS[int(rest)]})
        return self.missing()

    do_GET = do_POST = do_PUT = handle_call

    def merge_request(self, number, rest, given):
        if number > len(REQUESTS):
            return self.missing()
        request = REQUESTS[number - 1]
        if rest == "approvals":
            by = [{"user": user(7)}]
            return self.answer({"iid": number, "approved": True, "approvals_required": 1, "approvals_left": 0, "approved_by": by})
        if rest == "discussions":
            return self.page(discussions(request))
        if rest == "merge":
            return self.merge(request, given)
        if self.command == "PUT":
            request.update(given)
        return self.answer(whole(request))

    def merge(self, request, given):
        head = commit_of(request["source_branch"])
        if request["state"] != "opened" or not is_fixed(head):
            return self.answer({"message": "405 Method Not Allowed"}, 405)
        if given["sha"] != head:
            return self.answer({"message": f"SHA does not match HEAD of source branch: {head}"}, 409)
        if not merge(request["source_branch"], request["target_branch"]):
            return self.answer({"message": "Branch cannot be merged"}, 422)
        request.update(state="merged", merged_sha=head)
        self.answer(whole(request))

    def missing(self):
        self.answer({"message": "404 Not found"}, 404)

    def page(self, entries):
        number = int(self.query.get("page", 1))
        shown, rest = entries[(number - 1) * PER_PAGE :][:PER_PAGE], entries[number * PER_PAGE :]
        more = urlencode({**self.query, "page": number + 1})
        link = f'<http://gitlab.localhost{self.list}?{more}>; rel="next"'
        self.answer(shown, headers=[("Link", link), ("X-Next-Page", str(number + 1))] if rest else [])


serve(GitLab)
