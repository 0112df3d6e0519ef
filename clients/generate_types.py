"""Makes the types of the client packages from the OpenAPI document of a server.

    clients/generate_types.py http://127.0.0.1:8080              writes the types of all packages
    clients/generate_types.py --check openapi.json               fails if a file differs from the document

A type is part of the packages if it is one of ROOTS, or if one of them refers to it.
"""

import json
import keyword
import re
import sys
import textwrap
import urllib.request
from pathlib import Path

ROOTS = (
    "RunEvent Snapshot Run Page_Run AcceptedRun AcceptedMessage Message Page_Message Conversation Page_Conversation "
    "Approvals StoredFile Page_StoredFile Problem NewRunBody NewMessageBody NewConversation DecisionBody ToolResult"
).split()

# A program makes values of these types.
INPUTS = "NewRunBody NewMessageBody NewConversation DecisionBody ToolResult".split()

HERE = Path(__file__).parent
HEAD = "Made from /openapi.json by clients/generate_types.py; changes belong there."


def resolve(document, name):
    return document["components"]["schemas"][name]


def referred(schema):
    """Yields the names of the schemas that a schema refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rsplit("/", 1)[-1]
        for value in schema.values():
            yield from referred(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from referred(value)


def reachable(document, roots):
    found, todo = set(), list(roots)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += referred(resolve(document, name))
    return sorted(found)


def merged(document, schema):
    """Returns an object whose fields are those of all parts. A field that only some alternatives have is optional."""
    properties, required = {}, set()
    for part in schema["allOf"]:
        part = resolve(document, part["$ref"].rsplit("/", 1)[-1]) if "$ref" in part else part
        if "oneOf" in part:
            required |= set.intersection(*(set(one.get("required", [])) for one in part["oneOf"]))
            for one in part["oneOf"]:
                for name, field in one["properties"].items():
                    properties.setdefault(name, {"oneOf": []})["oneOf"].append(field)
        else:
            required |= set(part.get("required", []))
            properties.update(part["properties"])
    for field in properties.values():
        if "oneOf" in field and all("enum" in one for one in field["oneOf"]):
            values = [value for one in field.pop("oneOf") for value in one["enum"]]
            field.update(type="string", enum=values)
    return {"type": "object", "properties": properties, "required": sorted(required), **description_of(schema)}


def description_of(schema):
    return {"description": schema["description"]} if "description" in schema else {}


def fields_of(schema):
    required = schema.get("required", [])
    for name, field in schema["properties"].items():
        doc = field.get("description") or next((one["description"] for one in field.get("oneOf", []) if "description" in one), None)
        yield name, field, name in required, doc


def alternatives(schema):
    """Returns the alternatives of a schema but for null, and whether null is one."""
    if "oneOf" in schema:
        rest = [one for one in schema["oneOf"] if one != {"type": "null"}]
        return rest, len(rest) < len(schema["oneOf"])
    if isinstance(schema.get("type"), list):
        kinds = [kind for kind in schema["type"] if kind != "null"]
        return [{**schema, "type": kind} for kind in kinds], len(kinds) < len(schema["type"])
    return [schema], False


def is_tagged(schema):
    """Whether the schema is a choice of objects that are told apart by `type`."""
    return "oneOf" in schema and all("type" in one.get("properties", {}) for one in schema["oneOf"])


def tag_of(schema):
    return schema["properties"]["type"]["enum"][0]


def class_of(name):
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]", name))


def comment(text, mark, indent):
    """Returns a description as lines of comment."""
    plain = " ".join((text or "").split())
    return [f"{indent}{mark} {line}" for line in textwrap.wrap(plain, 114 - len(indent))]


class TypeScript:
    path = HERE / "typescript/src/wire.ts"

    def scalar(self, schema):
        if "$ref" in schema:
            return class_of(schema["$ref"].rsplit("/", 1)[-1])
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        kind = schema.get("type")
        if kind == "array":
            item = self.of(schema["items"])
            return f"({item})[]" if " | " in item else f"{item}[]"
        if kind == "object":
            if "properties" not in schema:
                return "Record<string, unknown>"
            fields = [f"{name}{'' if must else '?'}: {self.of(field)}" for name, field, must, _ in fields_of(schema)]
            return "{ " + "; ".join(fields) + " }"
        return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}.get(kind, "unknown")

    def of(self, schema):
        rest, is_null = alternatives(schema)
        kinds = list(dict.fromkeys(self.scalar(one) for one in rest))
        return "unknown" if "unknown" in kinds else " | ".join(kinds + ["null"] * is_null)

    def declaration(self, name, schema):
        yield ""
        text = " ".join(schema.get("description", "").split())
        if text:
            yield f"/** {text} */" if len(text) < 110 else "/**\n" + "\n".join(comment(text, "*", " ")) + "\n */"
        if schema.get("type") != "object" or "properties" not in schema:
            kinds = self.of(schema)
            one_line = f"export type {class_of(name)} = {kinds};"
            yield one_line if len(one_line) <= 116 else f"export type {class_of(name)} =\n  | " + kinds.replace(" | ", "\n  | ") + ";"
            return
        yield f"export interface {class_of(name)} {{"
        for field_name, field, must, doc in fields_of(schema):
            if doc:
                text = " ".join(doc.split())
                yield f"  /** {text} */" if len(text) < 108 else "  /**\n" + "\n".join(comment(text, "*", "   ")) + "\n   */"
            yield f"  {field_name}{'' if must else '?'}: {self.of(field)};"
        yield "}"

    def file(self, schemas):
        lines = [f"// {HEAD}"]
        for name, schema in schemas:
            lines += self.declaration(name, schema)
        return "\n".join(lines) + "\n"


class Python:
    path = HERE / "python/src/holdfast/wire.py"

    def scalar(self, schema):
        if "$ref" in schema:
            return class_of(schema["$ref"].rsplit("/", 1)[-1])
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
        kind = schema.get("type")
        if kind == "array":
            return f"list[{self.of(schema['items'])}]"
        if kind == "object":
            return "dict[str, Any]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(kind, "Any")

    def of(self, schema):
        rest, is_null = alternatives(schema)
        kinds = list(dict.fromkeys(self.scalar(one) for one in rest))
        return "Any" if "Any" in kinds else " | ".join(kinds + ["None"] * is_null)

    def declaration(self, name, schema):
        name = class_of(name)
        if is_tagged(schema):
            kinds = []
            for one in schema["oneOf"]:
                kinds.append(class_of(tag_of(one)) + name)
                yield from self.declaration(kinds[-1], one)
            yield f"\n\n{name}: TypeAlias = " + " | ".join(kinds)
            return
        if schema.get("type") != "object" or "properties" not in schema:
            kinds = self.of(schema)
            one_line = f"{name}: TypeAlias = {kinds}"
            kinds = "(\n    " + kinds.replace(" | ", "\n    | ") + "\n)" if len(one_line) > 116 and " | " in kinds else kinds
            yield f"\n\n{name}: TypeAlias = {kinds}"
            return
        yield f"\n\nclass {name}(TypedDict):"
        doc = textwrap.wrap(" ".join(schema.get("description", f"`{name}`.").split()), 110)
        yield f'    """{doc[0]}"""' if len(doc) == 1 else '    """' + "\n    ".join(doc) + '\n    """'
        yield ""
        for field_name, field, must, doc in fields_of(schema):
            assert not keyword.iskeyword(field_name), f"{name}.{field_name} is a word of Python"
            yield from comment(doc, "#", "    ")
            yield f"    {field_name}: {self.of(field) if must else f'NotRequired[{self.of(field)}]'}"

    def file(self, schemas):
        lines = ['"""Types of the API.', "", HEAD, '"""', "", "from __future__ import annotations", ""]
        lines += ["from typing import Any, Literal, NotRequired, TypeAlias, TypedDict"]
        # An alias is evaluated at once, so the classes that it names come first.
        for is_alias in (False, True):
            for name, schema in ordered(schemas):
                if is_alias == (schema.get("type") != "object"):
                    lines += self.declaration(name, schema)
        return "\n".join(lines) + "\n"


def ordered(schemas):
    """Returns the schemas, each after those that it refers to."""
    known, done = dict(schemas), {}

    def visit(name):
        if name in known and name not in done:
            schema = known.pop(name)
            for other in sorted(set(referred(schema))):
                visit(other)
            done[name] = schema

    for name in sorted(known):
        visit(name)
    return done.items()


class Rust:
    path = HERE / "rust/src/wire.rs"

    def __init__(self, inputs):
        self.inputs = inputs

    def scalar(self, schema):
        if "$ref" in schema:
            return class_of(schema["$ref"].rsplit("/", 1)[-1])
        kind = schema.get("type")
        if kind == "array":
            return f"Vec<{self.of(schema['items'])}>"
        if kind == "integer":
            return "u64" if schema.get("minimum") == 0 else "i64"
        return {"string": "String", "number": "f64", "boolean": "bool"}.get(kind, "Value")

    def of(self, schema):
        rest, is_null = alternatives(schema)
        kinds = list(dict.fromkeys(self.scalar(one) for one in rest))
        kind = kinds[0] if len(kinds) == 1 else "Value"
        return f"Option<{kind}>" if is_null and kind != "Value" else kind

    def field(self, name, field, must, doc):
        yield from comment(doc, "///", "    ")
        kind = self.of(field)
        if not must and not kind.startswith("Option<"):
            kind = f"Option<{kind}>"
        if not must:
            yield '    #[serde(default, skip_serializing_if = "Option::is_none")]'
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        if snake != name:
            yield f'    #[serde(rename = "{name}")]'
        yield f"    pub {'r#type' if name == 'type' else snake}: {kind},"

    def declaration(self, name, schema):
        name = class_of(name)
        yield ""
        yield from comment(schema.get("description", f"`{name}`."), "///", "")
        derive = "#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]"
        if "enum" in schema:
            yield derive
            yield "#[non_exhaustive]"
            yield f"pub enum {name} {{"
            for value in schema["enum"]:
                yield f'    #[serde(rename = "{value}")]'
                if value == "unknown":
                    yield "    #[serde(other)]"
                yield f"    {class_of(value)},"
            if "unknown" not in schema["enum"]:
                yield "    /// A value of a later version."
                yield "    #[serde(other)]"
                yield "    Unknown,"
            yield "}"
        elif "discriminator" in schema:
            yield derive
            yield '#[serde(tag = "type")]'
            yield "#[non_exhaustive]"
            yield f"pub enum {name} {{"
            for value, reference in schema["discriminator"]["mapping"].items():
                yield f'    #[serde(rename = "{value}")]'
                yield f"    {class_of(value)}(Box<{reference.rsplit('/', 1)[-1]}>),"
            yield "    /// An event of a later version."
            yield "    #[serde(other)]"
            yield "    Unknown,"
            yield "}"
        elif is_tagged(schema):
            yield derive
            yield '#[serde(tag = "type")]'
            yield f"pub enum {name} {{"
            for one in schema["oneOf"]:
                yield from comment(one.get("description"), "///", "    ")
                fields = [f"{field}: {self.of(kind)}" for field, kind, _, _ in fields_of(one) if field != "type"]
                yield f'    #[serde(rename = "{tag_of(one)}")]'
                yield f"    {class_of(tag_of(one))} {{ {', '.join(fields)} }},"
            yield "}"
        elif "oneOf" in schema:
            yield derive
            yield "#[serde(untagged)]"
            yield f"pub enum {name} {{"
            for one in schema["oneOf"]:
                yield from comment(one.get("description"), "///", "    ")
                yield f"    {'Parts' if one['type'] == 'array' else 'Text'}({self.of(one)}),"
            yield "}"
        elif schema.get("type") == "object" and "properties" in schema:
            is_input = name in self.inputs
            has_default = is_input and set(schema.get("required", [])) <= {"input"} or name == "Usage"
            yield derive.replace("Clone", "Clone, Default") if has_default else derive
            if not is_input:
                yield "#[non_exhaustive]"
            yield f"pub struct {name} {{"
            for field in fields_of(schema):
                # The enum of the events has the type.
                if name.endswith("Event") and field[0] == "type":
                    continue
                yield from self.field(*field)
            yield "}"
        else:
            yield f"pub type {name} = {self.of(schema)};"

    def file(self, schemas):
        lines = [f"//! Types of the API. {HEAD}", "", "use serde::{Deserialize, Serialize};", "use serde_json::Value;"]
        lines += ["", "use crate::EventId;"]
        for name, schema in schemas:
            if name != "EventId":
                lines += self.declaration(name, schema)
        return "\n".join(lines) + "\n"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    source = arguments[0]
    if source.startswith("http"):
        with urllib.request.urlopen(f"{source.rstrip('/')}/openapi.json", timeout=30) as answer:
            document = json.load(answer)
    else:
        document = json.loads(Path(source).read_text())
    names = reachable(document, ROOTS)
    schemas = [(name, resolve(document, name)) for name in names]
    flat = [(name, merged(document, schema) if "allOf" in schema else schema) for name, schema in schemas]
    # The alternatives of a merged schema are only in it.
    flat = [(name, schema) for name, schema in flat if name != "Content"]
    stale = []
    for language in (TypeScript(), Python(), Rust(reachable(document, INPUTS))):
        text = language.file(flat)
        if "--check" not in sys.argv:
            language.path.parent.mkdir(parents=True, exist_ok=True)
            language.path.write_text(text)
        elif not language.path.exists() or language.path.read_text() != text:
            stale.append(str(language.path))
    if stale:
        sys.exit(f"run clients/generate_types.py with the address of a server; out of date: {', '.join(stale)}")


main()
