"""Calls the MCP server with the Python SDK: pip install "mcp>=2"; python mcp_client.py LANEWRIGHT REPOSITORY [RUN].

Prints what the server says. With RUN, also the run's status and checkpoints, and what is refused.
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

TOOLS = {
    "Approve", "CreateCheckpoint", "Doctor", "ExecutePhase", "Gate", "ListCheckpoints", "ReadDiff", "ReadLogs", "Reject",
    "ResumeTask", "Retry", "Rollback", "RollbackLane", "RunStatus",
}


async def main(program: str, repository: str, run: str | None) -> None:
    server = StdioServerParameters(command=program, args=["mcp"], cwd=repository)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        print("server", hello.server_info.name, hello.server_info.version, hello.protocol_version)
        tools = (await session.list_tools()).tools
        print("tools", *sorted(tool.name for tool in tools))
        assert {tool.name for tool in tools} == TOOLS
        refused = await session.call_tool("ResumeTask", {"taskId": "no-such-run"})
        print("refused", refused.is_error, refused.structured_content)
        assert refused.is_error
        if run is not None:
            for tool in ["RunStatus", "ListCheckpoints"]:
                answer = await session.call_tool(tool, {"taskId": run})
                print(tool, answer.is_error, sorted(answer.structured_content))
                assert not answer.is_error and answer.structured_content["run_id"] == run


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
