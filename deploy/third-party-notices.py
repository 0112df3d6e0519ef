#!/usr/bin/env python3
"""Writes THIRD-PARTY-NOTICES.txt: the licences of the packages in the executable, including its chat page.

The lock files of Cargo and npm name the packages. A text that several packages share appears once. The script needs the
sources of the packages: run `cargo fetch`, and `npm ci` in api/ui, before.
"""

import hashlib
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"
TEXTS = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
HEAD = """Holdfast is made with the work of others. This file names every package that its executable carries, the chat page
included, with its licence. deploy/third-party-notices.py writes it; change nothing by hand.
"""


def crates():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in packages.values() if package["name"] == "holdfast"]
    seen = set()
    while waiting:
        package_id = waiting.pop()
        if package_id in seen:
            continue
        seen.add(package_id)
        for dependency in nodes[package_id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    for package in (packages[package_id] for package_id in seen):
        if package["source"]:
            folder = pathlib.Path(package["manifest_path"]).parent
            yield "crate", package["name"], package["version"], package["license"] or "see below", folder


def npm_packages():
    lock = json.loads((ROOT / "api/ui/package-lock.json").read_text())
    for path, package in lock["packages"].items():
        if path and not package.get("dev") and not package.get("optional"):
            folder = ROOT / "api/ui" / path
            yield "npm", path.rsplit("node_modules/")[-1], package["version"], package.get("license", "see below"), folder


def texts(folder, licence):
    files = (file for file in sorted(folder.iterdir()) if file.is_file() and TEXTS.match(file.name))
    found = [file.read_text(errors="replace").replace("\r\n", "\n").strip() for file in files]
    # If the user may choose a licence, Holdfast chooses the shorter text, which names the authors.
    has_choice = " OR " in licence or "/" in licence
    if has_choice and " AND " not in licence and any("Permission is hereby granted" in text for text in found):
        return [text for text in found if "Apache License" not in text[:200]]
    return found


def main():
    packages = sorted({*crates(), *npm_packages()}, key=lambda package: (package[0], package[1].lower(), package[2]))
    lines, shared = [HEAD], {}
    for kind, name, version, licence, folder in packages:
        numbers = []
        for text in texts(folder, licence):
            key = hashlib.sha256(" ".join(text.split()).encode()).digest()
            number, _ = shared.setdefault(key, (len(shared) + 1, text))
            numbers.append(f"[{number}]")
        lines.append(" ".join([f"{name} {version} ({kind}): {licence}", *dict.fromkeys(numbers)]))
    for number, text in shared.values():
        lines += ["", "=" * 80, f"[{number}]", "", text]
    (ROOT / "THIRD-PARTY-NOTICES.txt").write_text("\n".join(lines) + "\n")


main()
