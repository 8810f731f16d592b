"""The official Python MCP client drives `purvey mcp`: tools, a list to its end, a search, an Offering, an error. Prints what it saw."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def walk(binary: str, origin: str) -> dict[str, object]:
    server = StdioServerParameters(command=binary, args=["mcp", "--local"])
    async with Client(server) as client:

        async def call(tool: str, **arguments: object) -> dict[str, object]:
            result = await client.call_tool(tool, {"origin": origin, **arguments})
            return {"failed": bool(result.is_error), **json.loads(result.content[0].text)}

        tools = await client.list_tools()
        inspected = await call("inspect_service")
        offerings: list[str] = []
        page = await call("list_offerings", limit=25)
        while True:
            offerings += [item["id"] for item in page["untrusted"]["items"]]
            if page["complete"]:
                break
            page = await call("list_offerings", continuation=page["continuation"])
        offering = await call("get_offering", id=offerings[0])
        missing = await call("get_offering", id="no-such-thing")
        return {
            "instructions": client.instructions,
            "tools": [tool.name for tool in tools.tools],
            "name": inspected["untrusted"]["document"]["name"],
            "offerings": offerings,
            "first": offering["untrusted"]["offering"]["id"],
            "missing": [missing["failed"], missing["error"]["code"]],
        }


print(json.dumps(asyncio.run(walk(sys.argv[1], sys.argv[2]))))
