"""What the stand-ins for forges have in common: a bare repository, and an HTTP server that writes every call to standard error."""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BARE = sys.argv[1]


def git(*words):
    found = subprocess.run(["git", "-C", BARE, *words], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def commit_of(branch):
    return git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")


def is_fixed(commit):
    """Whether a check of this commit passes."""
    return git("cat-file", "-e", f"{commit}:fixed.txt") is not None


def merge(head, base):
    """Merges one branch into another, as the forge does. False: they conflict."""
    tree = git("merge-tree", "--write-tree", base, head)
    if not tree:
        return False
    names = ["-c", "user.name=Forge", "-c", "user.email=forge@example.invalid"]
    made = git(*names, "commit-tree", tree, "-p", base, "-p", head, "-m", f"Merge {head} into {base}")
    return git("update-ref", f"refs/heads/{base}", made) is not None


class Handler(BaseHTTPRequestHandler):
    def answer(self, value, status=200, headers=()):
        """Text is sent as it is, anything else as JSON."""
        is_text = isinstance(value, str)
        body = value.encode() if is_text else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if is_text else "application/json; charset=utf-8")
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def read(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")

    def note(self, what=""):
        print(f"{self.command} {self.path} {what}", file=sys.stderr, flush=True)

    def log_message(self, *_):
        pass


def serve(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
