#!/usr/bin/env python3
"""A scripted model on the loopback interface, for trying Lanewright with the real agent programs.

It answers just enough of four APIs for an agent program to write one file and say that it is done:

    Anthropic Messages        POST …/v1/messages                        Claude Code
    OpenAI Responses          POST …/responses                          Codex
    Gemini generateContent    POST …/models/M:[stream]generateContent   Gemini CLI
    OpenAI chat completions   POST …/chat/completions                   opencode, aider

The first part of the path is the scenario, so one server plays all of them at once; a program is pointed at one by
its base URL, such as http://127.0.0.1:PORT/write/v1:

    write     asks for one file to be written with the program's own tool, and then says that it is done
    shell     the same with the program's shell, where the path may hold variables
    fail      answers every request with 401
    refuse    answers every request with 400
    quotaN    answers the first N requests of each lane with 429 (N: 1 if left out), and goes on as `write`
    busyN     the same with 503, or 529 for Claude Code: the servers are overloaded
    stays     answers every request with 429
    insist    as `write`, and asks for the same file a second time, whatever came of the first
    failing   runs a command that ends with 3, and goes on as `write`
    walls     commits and then writes into the home directory with the program's shell, and goes on as `write`
    idle      says that it is done, and has written nothing
    ask       answers with a question
    decline   says that it will not do it
    empty     answers with an empty text
    mcp       as `caller`, with the tools of `lanewright mcp` instead of commands
    caller    runs a phase as the command `execute-phase` of `lanewright init` says, and answers what it waits for; every
              command is read from the prompt or from the result of a tool (where none can be, the last result is the answer)

Which file is written stands in the prompt, on a line `LANE FILE: path`; each such path counts as a lane. If the prompt
is that of a review, the model runs the command that shows the changes instead, with the program's shell, and approves
them if there are any. It prints its port and serves until it is killed. `--log FILE` keeps the requests, one JSON line each.
"""

import argparse
import http.server
import json
import re
import shlex
import threading
import time
import uuid

LANE_FILE = re.compile(r"LANE FILE: ([\w./$-]+)")
REVIEW = re.compile(r"git diff --stat (\w{40} \w{40})")
DONE = "The file is written."
# What is said in scenarios in which no tool is used.
SPOKEN = {
    "idle": DONE,
    "ask": "Which of the two databases should I use?",
    "decline": "I cannot help with that request.",
    "empty": "",
}


class Refusals:
    """Counts for each lane how often it was told that its quota is used up."""

    def __init__(self):
        self.lock = threading.Lock()
        self.told = {}

    def due(self, lane, most):
        with self.lock:
            told = self.told.get(lane, 0)
            self.told[lane] = told + 1
            return told < most


def refusal(scenario, lane, refusals):
    """The HTTP status that the scenario has for this request, or None if it is to be answered."""
    if scenario == "fail":
        return 401
    if scenario == "refuse":
        return 400
    if scenario == "stays":
        return 429
    out = re.fullmatch(r"(quota|busy)(\d*)", scenario)
    if out and lane and refusals.due((scenario, lane), int(out[2] or 1)):
        return 429 if out[1] == "quota" else 503
    return None


REFUSAL_TEXTS = {
    400: ("invalid_request_error", "The scripted model refuses this request."),
    401: ("authentication_error", "invalid x-api-key"),
    429: ("rate_limit_error", "This request would exceed your rate limit."),
    503: ("overloaded_error", "The server is currently overloaded."),
    529: ("overloaded_error", "Overloaded"),
}


def texts(value):
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from texts(child)
    elif isinstance(value, list):
        for child in value:
            yield from texts(child)


def lane_of(value):
    """The last path after `LANE FILE:` in a JSON value."""
    found = [path for text in texts(value) for path in LANE_FILE.findall(text)]
    return found[-1] if found else None


def awaited_file(turns, is_result):
    """The file that the last prompt asks for, and how many results of tools came after that prompt."""
    wanted, results = None, 0
    for turn in turns:
        if is_result(turn):
            results += 1
        elif path := lane_of(turn):
            wanted, results = path, 0
    return wanted, results


# What the shell runs first, and fails.
FAILING = {
    "failing": "echo no tests found && exit 3",
    # Gemini CLI hides the user's settings from git.
    "walls": "git -c user.name=Agent -c user.email=agent@example.org commit --quiet --allow-empty --message 'From inside' && "
             'cp README.md "$HOME/outside"',
}
# The calls of scenarios that make more than one.
CALLS = {"insist": 2, **dict.fromkeys(FAILING, 2)}


def wanted_in(scenario, turns, is_result):
    """The file to be written now, if any, and the command that fails, if it comes first."""
    path, results = awaited_file(turns, is_result)
    if scenario in SPOKEN or results >= CALLS.get(scenario, 1):
        return None, None
    return path, FAILING.get(scenario) if results == 0 else None


def said_in(scenario):
    return SPOKEN.get(scenario, DONE)


def content_of(path):
    """Does not end with the path: aider takes such a line for a file's name."""
    return f"{path} is written\n"


def tool(tools, names):
    """The first of these names that the program offers."""
    return next((name for name in names if name in tools), None)


def verdict_script(request):
    """What a reviewer runs that does as the prompt says; None if the prompt is not that of a review."""
    shown = [commits for text in texts(request) for commits in REVIEW.findall(text)]
    if not shown:
        return None
    approval = json.dumps({"status": "COMPLETE", "decision": "APPROVED"})
    return f"git diff --stat {shown[-1]} | grep '|' && printf '%s' '{approval}' > \"$LANEWRIGHT_STATUS_FILE\""


def uses_shell(scenario, request, fails):
    return fails is not None or scenario == "shell" or verdict_script(request) is not None


def script_for(path, request, fails):
    """A shell line without substitutions of commands, which Gemini CLI refuses."""
    if fails:
        return fails
    if verdict := verdict_script(request):
        return verdict
    directory = path.rpartition("/")[0] or "."
    return f'mkdir -p "{directory}" && printf "%s\\n" "{path} is written" > "{path}"'


def new_id(prefix):
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


class Caller:
    """What the session of a user does next after `/execute-phase DOC`, `… DOC --resume WORDS` or `… DOC --resume`, given its
    turns so far.

    Nothing is remembered between requests, and no command is known beforehand: those that start the phase and the one
    that answers are in the prompt, and what waits is in the output of `lanewright`. A lane that waits is shown, and the
    turn ends: only the user answers.
    """

    ARGUMENTS = re.compile(
        r"^(?:\$execute-phase|.*Arguments:) (?!what the user wrote)(\S+)(?: (--resume)(?: (.+))?)?$", re.MULTILINE)
    START = re.compile(r"`(lanewright (?:plan check|execute-phase) DOC[^`\n]*)`")
    TO_APPROVE = re.compile(r"`(lanewright approve RUN LANE --gate GATE[^`\n]*)`")
    WAITING = re.compile(r"lanewright approve (?!RUN)(\S+) (\S+) --gate (\S+)")
    # What the hook of Claude Code adds to words of approval.
    HOOK = re.compile(r"waits for an answer to its \w+: (lanewright approve .*--resume)$", re.MULTILINE)
    RUN = re.compile(r"\brun (\S+) (?:of |works in )", re.IGNORECASE)

    def __init__(self, api, request):
        # Texts, and calls as `(TOOL, ARGUMENTS, RESULT)`.
        turns = list(api.turns(request))
        # Of a session that is continued only the last prompt counts, and what came after it.
        prompts = [at for at, turn in enumerate(turns) if isinstance(turn, str) and self.ARGUMENTS.search(turn)]
        turns = turns[prompts[-1]:] if prompts else []
        self.api = api
        self.prompt = "\n".join(turn for turn in turns if isinstance(turn, str))
        self.calls = [turn for turn in turns if not isinstance(turn, str)]

    def next(self):
        """What to say, or the next call as `(TOOL, ARGUMENTS)`."""
        if self.calls and (call := self.api.awaited(*self.calls[-1])):
            return call
        for command, background in self.to_start():
            if self.result_of(command) is None:
                return self.api.shell(command, background)
            if "plan check" in command and ": valid" not in self.result_of(command):
                return self.last_result()
        shown = "\n".join(result for *_, result in self.calls)
        run = self.RUN.findall(shown) or [run for run, *_ in self.WAITING.findall(shown)]
        if not run:
            return self.last_result()
        watch = f"lanewright status {run[-1]} --watch"
        if self.result_of(watch) is None:
            return self.api.shell(watch, False)
        if not (approval := self.WAITING.search(self.result_of(watch))):
            return self.last_result()
        diff = "lanewright diff {} {}".format(*approval.groups())
        if (changes := self.result_of(diff)) is None:
            return self.api.shell(diff, False)
        return f"{changes}\nThis waits for your answer."

    def to_start(self):
        """The commands that start the phase, resume it, or give the user's answer, as `(COMMAND, IN THE BACKGROUND)`."""
        document, resumes, words = self.ARGUMENTS.findall(self.prompt)[-1]
        if words and (answers := self.HOOK.findall(self.prompt)):
            yield answers[-1], True
        elif words:
            yield "lanewright status", False
            if waiting := self.WAITING.search(self.result_of("lanewright status") or ""):
                answer = self.TO_APPROVE.search(self.prompt)[1]
                for name, value in zip(["RUN", "LANE", "GATE"], waiting.groups()):
                    answer = answer.replace(name, value)
                yield answer, True
        else:
            for command in self.START.findall(self.prompt)[:2]:
                command = command.replace("DOC", shlex.quote(document)).replace("FLAGS", resumes)
                yield " ".join(command.split()), "execute-phase" in command

    def result_of(self, command):
        named = [command, f"{command} --detach"]
        results = [result for _, given, result in self.calls if given.get("command", given.get("cmd")) in named]
        return results[-1] if results else None

    def last_result(self):
        return self.calls[-1][-1] if self.calls else "I was given no command."


class ToolCaller(Caller):
    """The same by the tools of the MCP server."""

    def next(self):
        document, resumes, words = self.ARGUMENTS.findall(self.prompt)[-1]
        if not self.calls:
            return self.api.tool(*(("RunStatus", {}) if resumes else ("ExecutePhase", {"plan": document})))
        name, given, _ = self.calls[-1]
        answer = self.answer()
        if "diff" in answer:
            return f"{answer['diff']['patch']}\nThis waits for your answer."
        if not answer.get("run_id"):
            return self.last_result()
        run = answer["run_id"]
        if not name.endswith("RunStatus") or answer["held"]:
            return self.api.tool("RunStatus", {"taskId": run, "wait": 50})
        waiting = [lane for lane in answer["lanes"] if "approval" in (lane["waiting_for"] or {})]
        if not given and waiting and words:
            return self.api.tool("Approve", {"taskId": f"{run}/{waiting[0]['lane']}", "gate": waiting[0]["waiting_for"]["approval"]})
        if not given and resumes:
            return self.api.tool("ResumeTask", {"taskId": run})
        if waiting:
            return self.api.tool("ReadDiff", {"taskId": f"{run}/{waiting[0]['lane']}"})
        return self.last_result()

    def answer(self):
        """The object in the last result, among what the program adds to it."""
        found = re.search(r"\{.*", self.last_result(), re.DOTALL)
        try:
            return json.JSONDecoder().raw_decode(found[0])[0] if found else {}
        except ValueError:
            return {}


CALLERS = {"caller": Caller, "mcp": ToolCaller}


def joined(content):
    """The text of a result, which is a string or a list of blocks."""
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content or [])


class Anthropic:
    """https://docs.anthropic.com/en/api/messages and its streaming."""

    path = re.compile(r"/v1/messages$")

    @staticmethod
    def error(status):
        kind, message = REFUSAL_TEXTS[status]
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": new_id("req")}

    @classmethod
    def block(cls, request, scenario):
        tools = [entry.get("name") for entry in request.get("tools", [])]
        if scenario in CALLERS and "Bash" in tools:
            said = CALLERS[scenario](cls, request).next()
            if isinstance(said, str):
                return {"type": "text", "text": said}
            return {"type": "tool_use", "id": new_id("toolu"), "name": said[0], "input": said[1]}
        path, fails = wanted_in(scenario, request["messages"], lambda turn: '"tool_result"' in json.dumps(turn))
        if path and tools:
            own = {"name": "Write", "input": {"file_path": path, "content": content_of(path)}}
            shell = {"name": "Bash", "input": {"command": script_for(path, request, fails), "description": "Writes the file"}}
            return {"type": "tool_use", "id": new_id("toolu"), **(shell if uses_shell(scenario, request, fails) else own)}
        return {"type": "text", "text": said_in(scenario)}

    @staticmethod
    def turns(request):
        blocks = [(turn["role"], block) for turn in request["messages"] for block in
                  ([{"type": "text", "text": turn["content"]}] if isinstance(turn["content"], str) else turn["content"])]
        results = {block["tool_use_id"]: block.get("content") for _, block in blocks if block["type"] == "tool_result"}
        for role, block in blocks:
            if block["type"] == "tool_use":
                yield block["name"], block["input"], joined(results.get(block["id"]))
            elif block["type"] == "text" and role != "assistant":
                yield block["text"]

    @staticmethod
    def tool(name, given):
        return f"mcp__lanewright__{name}", given

    @staticmethod
    def shell(command, background):
        return "Bash", {"command": command, "description": "Runs Lanewright", "run_in_background": background, "timeout": 600000}

    @staticmethod
    def awaited(_name, given, result):
        task = re.search(r"with ID: (\w+)", result) if given.get("run_in_background") else None
        return ("TaskOutput", {"task_id": task[1], "block": True, "timeout": 600000}) if task else None

    @classmethod
    def answer(cls, request, scenario, _streams):
        block = cls.block(request, scenario)
        message = {
            "id": new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 20,
                      "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10},
        }
        return cls.events(message, block) if request.get("stream") else message

    @staticmethod
    def events(message, block):
        if block["type"] == "text":
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        begun = {**message, "content": [], "stop_reason": None}
        stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        return [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": message["usage"]},
            {"type": "message_stop"},
        ]


class Responses:
    """https://platform.openai.com/docs/api-reference/responses and its streaming."""

    path = re.compile(r"/responses$")

    @staticmethod
    def error(status):
        kind, message = REFUSAL_TEXTS[status]
        return {"error": {"type": kind, "code": kind, "message": message, "param": None}}

    @classmethod
    def item(cls, request, scenario):
        tools = [entry.get("name") for entry in request.get("tools", [])]
        turns = request["input"] if isinstance(request["input"], list) else [request["input"]]
        path, fails = wanted_in(scenario, turns, lambda turn: str(turn.get("type", "")).endswith("call_output"))
        name = tool(tools, ["exec_command", "shell_command", "shell"])
        said = said_in(scenario)
        if path and name:
            script = script_for(path, request, fails)
            said = name, {
                "exec_command": {"cmd": script},
                "shell_command": {"command": script},
                "shell": {"command": ["bash", "-c", script]},
            }[name]
        elif scenario in CALLERS:
            said = CALLERS[scenario](cls, request).next()
        if not isinstance(said, str):
            space, _, name = said[0].rpartition("/")
            return {"type": "function_call", "id": new_id("fc"), "call_id": new_id("call"), "name": name,
                    **({"namespace": space} if space else {}), "arguments": json.dumps(said[1]), "status": "completed"}
        text = {"type": "output_text", "text": said, "annotations": []}
        return {"type": "message", "id": new_id("msg"), "role": "assistant", "status": "completed",
                "content": [text]}

    @staticmethod
    def turns(request):
        results = {item["call_id"]: item["output"] for item in request["input"] if item["type"] == "function_call_output"}
        for item in request["input"]:
            if item["type"] == "function_call":
                yield item["name"], json.loads(item["arguments"]), joined(results.get(item["call_id"]))
            elif item["type"] == "message" and item["role"] != "assistant":
                yield joined(item["content"])

    @staticmethod
    def tool(name, given):
        return f"mcp__lanewright/{name}", given

    @staticmethod
    def shell(command, background):
        """What has not ended after this time runs in the background."""
        return "exec_command", {"cmd": command, "yield_time_ms": 250 if background else 30000}

    @staticmethod
    def awaited(_name, _given, result):
        session = re.search(r"session ID (\d+)", result)
        return ("write_stdin", {"session_id": int(session[1]), "yield_time_ms": 60000}) if session else None

    @classmethod
    def answer(cls, request, scenario, _streams):
        item = cls.item(request, scenario)
        response = {
            "id": new_id("resp"),
            "object": "response",
            "model": request["model"],
            "status": "completed",
            "output": [item],
            "usage": {"input_tokens": 150, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 20,
                      "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 170},
        }
        if not request.get("stream"):
            return response
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        return [
            {"type": "response.created", "sequence_number": 0, "response": begun},
            {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item},
            {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item},
            {"type": "response.completed", "sequence_number": 3, "response": response},
        ]


class Gemini:
    """https://ai.google.dev/api/generate-content; a stream is asked for by the path."""

    path = re.compile(r"/models/[^/]+:(stream)?[gG]enerateContent$")

    @staticmethod
    def error(status):
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        return {"error": {"code": status, "message": REFUSAL_TEXTS[status][1], "status": names[status]}}

    @classmethod
    def part(cls, request, scenario):
        declared = [entry for group in request.get("tools", []) for entry in group.get("functionDeclarations", [])]
        turns = request["contents"]
        path, fails = wanted_in(scenario, turns, lambda turn: any("functionResponse" in part for part in turn.get("parts", [])))
        if path and declared:
            own = {"name": "write_file", "args": {"file_path": path, "content": content_of(path)}}
            shell = {"name": "run_shell_command", "args": {"command": script_for(path, request, fails)}}
            return {"functionCall": shell if uses_shell(scenario, request, fails) else own}
        if scenario in CALLERS and declared:
            said = CALLERS[scenario](cls, request).next()
            return {"text": said} if isinstance(said, str) else {"functionCall": {"name": said[0], "args": said[1]}}
        if "complexity_score" in json.dumps(request):
            return {"text": json.dumps({"complexity_reasoning": "One small file.", "complexity_score": 10})}
        return {"text": said_in(scenario)}

    @staticmethod
    def turns(request):
        parts = [(turn["role"], part) for turn in request["contents"] for part in turn["parts"]]
        for at, (role, part) in enumerate(parts):
            if call := part.get("functionCall"):
                # A session that is continued has each result twice.
                results = [part["functionResponse"]["response"] for _, part in parts[at:] if "functionResponse" in part]
                yield call["name"], call["args"], "\n".join(texts(results[0])) if results else ""
            elif "text" in part and role == "user":
                yield part["text"]

    @staticmethod
    def tool(name, given):
        return f"mcp_lanewright_{name}", given

    @classmethod
    def answer(cls, request, scenario, streams):
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [cls.part(request, scenario)]},
                            "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 150, "cachedContentTokenCount": 40,
                              "candidatesTokenCount": 20, "totalTokenCount": 170},
            "modelVersion": "scripted",
        }
        return [answer] if streams else answer


class Chat:
    """https://platform.openai.com/docs/api-reference/chat and its streaming."""

    path = re.compile(r"/chat/completions$")
    error = Responses.error

    @classmethod
    def message(cls, request, scenario):
        tools = [entry["function"]["name"] for entry in request.get("tools") or []]
        path, fails = wanted_in(scenario, request["messages"], lambda turn: turn["role"] == "tool")
        if path and tools:
            own = {"name": "write", "arguments": json.dumps({"filePath": path, "content": content_of(path)})}
            shell = {"name": "bash", "arguments": json.dumps({"command": script_for(path, request, fails), "description": "Writes"})}
            call = {"index": 0, "id": new_id("call"), "type": "function"}
            call["function"] = shell if uses_shell(scenario, request, fails) else own
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        if scenario in CALLERS and tools:
            said = CALLERS[scenario](cls, request).next()
            if isinstance(said, str):
                return {"role": "assistant", "content": said}
            function = {"name": said[0], "arguments": json.dumps(said[1])}
            return {"role": "assistant", "content": None, "tool_calls": [
                {"index": 0, "id": new_id("call"), "type": "function", "function": function}]}
        if path and not tools and "SEARCH/REPLACE" in json.dumps(request["messages"]):
            block = f"{path}\n```\n<<<<<<< SEARCH\n=======\n{content_of(path)}>>>>>>> REPLACE\n```\n"
            return {"role": "assistant", "content": block}
        return {"role": "assistant", "content": said_in(scenario)}

    @staticmethod
    def turns(request):
        results = {turn["tool_call_id"]: turn["content"] for turn in request["messages"] if turn["role"] == "tool"}
        for turn in request["messages"]:
            for call in turn.get("tool_calls") or []:
                function = call["function"]
                yield function["name"], json.loads(function["arguments"]), joined(results.get(call["id"]))
            if turn["role"] == "user":
                yield joined(turn["content"])

    @staticmethod
    def tool(name, given):
        return f"lanewright_{name}", given

    @staticmethod
    def shell(command, background):
        """There is no background."""
        return "bash", {"command": f"{command} --detach" if background else command, "description": "Runs Lanewright", "timeout": 600000}

    @staticmethod
    def awaited(*_):
        return None

    @classmethod
    def answer(cls, request, scenario, _streams):
        message = cls.message(request, scenario)
        whole = {
            "id": new_id("chatcmpl"),
            "created": int(time.time()),
            "model": request["model"],
            "usage": {"prompt_tokens": 150, "completion_tokens": 20, "total_tokens": 170,
                      "prompt_tokens_details": {"cached_tokens": 40}},
        }
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return {**whole, "object": "chat.completion", "choices": [choice]}
        chunk = {**whole, "object": "chat.completion.chunk", "usage": None}
        return [
            {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
            {**whole, "object": "chat.completion.chunk", "choices": []},
        ]


APIS = [Anthropic, Responses, Gemini, Chat]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.keep(None)
        self.reply(200, {"object": "list", "data": [], "models": []})

    def do_POST(self):
        request = self.request_body()
        self.keep(request)
        path = self.path.split("?")[0]
        scenario = path.lstrip("/").split("/")[0]
        if path.endswith("/count_tokens") or path.endswith(":countTokens"):
            return self.reply(200, {"input_tokens": 150, "totalTokens": 150})
        api = next((api for api in APIS if api.path.search(path)), None)
        if api is None:
            return self.reply(404, {"error": {"type": "not_found_error", "message": "no such address"}})
        status = refusal(scenario, lane_of(request), self.server.refusals)
        if status == 503 and api is Anthropic:
            status = 529
        if status:
            return self.reply(status, api.error(status))
        answer = api.answer(request, scenario, ":stream" in path)
        if isinstance(answer, list):
            return self.stream(answer, api is Chat)
        return self.reply(200, answer)

    def request_body(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            return json.loads(body)
        except ValueError:
            return {}

    def keep(self, request):
        if self.server.log:
            with self.server.lock:
                line = {"at": time.time(), "method": self.command, "path": self.path, "request": request}
                self.server.log.write(json.dumps(line) + "\n")
                self.server.log.flush()

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if status == 429:
            self.send_header("retry-after", "1")
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events, ends_with_done):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        if ends_with_done:
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def log_message(self, *_):
        """Says nothing: the port is all that this program prints."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", help="keep the requests in this file")
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.refusals, server.lock = Refusals(), threading.Lock()
    server.log = open(options.log, "a", encoding="utf-8") if options.log else None
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
