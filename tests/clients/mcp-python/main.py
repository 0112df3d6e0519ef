"""Uses the workspace with the official client of the Model Context Protocol: main.py BASE {"calls": [["tool", {…}], …]}.

The client checks the fields of each result against the tool's schema. `{id}` in arguments is the id of the entity that the first
result is about.
"""

import asyncio
import json
import sys

from mcp import Client

base, parameters = sys.argv[1:]
parameters = json.loads(parameters)


def got(report):
    print(json.dumps({"got": report}), flush=True)


async def main():
    async with Client(f"{base}/mcp", mode=parameters["mode"]) as client:
        tools = (await client.list_tools()).tools
        got({"tools": len(tools), "without_schema": [tool.name for tool in tools if tool.output_schema is None]})
        id = None
        for name, arguments in parameters["calls"]:
            arguments = json.loads(json.dumps(arguments).replace("{id}", id or ""))
            result = await client.call_tool(name, arguments)
            entities = (result.meta or {}).get("entitiesAccessed")
            id = id or entities[0]["id"]
            text = result.content[0].text
            fields = result.structured_content
            got({"name": name, "text": text, "fields": fields, "entities": entities, "is_error": result.is_error})
    print(json.dumps({"end": None}))


asyncio.run(main())
