"""Uses the workspace with the official client of the Model Context Protocol: main.py BASE {"calls": [["tool", {…}], …]}.

The client checks the fields of each result against the tool's schema. `{1}` in arguments is the id of the first entity that the
result 1 is about, counted from 0.
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
        ids = []
        for name, arguments in parameters["calls"]:
            arguments = json.dumps(arguments)
            for number, id in enumerate(ids):
                arguments = arguments.replace(f"{{{number}}}", id)
            arguments = json.loads(arguments)
            result = await client.call_tool(name, arguments)
            entities = (result.meta or {}).get("entitiesAccessed")
            ids.append(entities[0]["id"] if entities else "")
            text = result.content[0].text
            fields = result.structured_content
            got({"name": name, "text": text, "fields": fields, "entities": entities, "is_error": result.is_error})
    print(json.dumps({"end": None}))


asyncio.run(main())
