"""Which methods of each SDK Aldaba serves, found by looking at the SDKs and at the API's document.

    methods.py SERVER_URL docs/sdks.md FOLDER [--write]

The folder has a file for each SDK: its name and version, then lines of "METHOD /path resource.method".
Without --write the table in the document is only looked at: it must say what is true.
"""

import json
import re
import sys
import textwrap
import urllib.request
from pathlib import Path

BEGIN = "<!-- methods: made by `cargo xtask sdks methods --write` -->\n"
END = "<!-- end of methods -->\n"
# The longest line of the documentation, tables apart.
LINE = 150


def shape(path):
    """A path without the names of its parameters."""
    return re.sub(r"\{[^}]*\}", "{}", path.rstrip("/"))


def served(url):
    with urllib.request.urlopen(f"{url}/api/v1/openapi.json") as answer:
        document = json.load(answer)
    paths = document["paths"]
    # SDKs look for sources beside the API; the server knows that path too.
    paths = paths | {path.replace("/api/v1/ingest/", "/ingest/api/v1/", 1): methods for path, methods in paths.items()}
    return {(method.upper(), shape(path)) for path, methods in paths.items() for method in methods}


def read(folder):
    """The methods of every SDK: its name, and for each operation what it calls that."""
    sdks = {}
    for listed in folder.iterdir():
        sdk, *lines = listed.read_text().splitlines()
        methods = (line.split(maxsplit=2) for line in lines)
        sdks[sdk] = {(method, shape(path)): name for method, path, name in methods}
    return dict(sorted(sdks.items()))


def table(url, folder):
    ours, sdks = served(url), read(folder)
    # Called as in the newest Python SDK, which has nearly all.
    names = {operation: name for methods in sdks.values() for operation, name in methods.items()}
    names |= sdks[max(name for name in sdks if name.startswith("Python"))]
    resources = {}
    for operation, name in names.items():
        resources.setdefault(name.split(".")[0], []).append(operation)
    rows, nothing = [], []
    for resource, operations in sorted(resources.items()):
        missing = sorted(names[operation].partition(".")[2] for operation in operations if operation not in ours)
        if len(missing) == len(operations):
            nothing.append(f"`{resource}` ({len(missing)})")
            continue
        counts = []
        for methods in sdks.values():
            has = [operation for operation in operations if operation in methods]
            counts.append(f"{sum(operation in ours for operation in has)} of {len(has)}")
        rows.append([f"`{resource}`", *counts, ", ".join(f"`{name}`" for name in missing)])
    head = ["resource", *sdks, "not served"]
    lines = [head, ["---"] * len(head), *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    unserved = textwrap.fill(f"Nothing is served of {', '.join(nothing)}.", LINE)
    return f"{text}\n\n{unserved}\n"


def main():
    url, document, folder, *flags = sys.argv[1:]
    document = Path(document)
    text = document.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = before + BEGIN + table(url, Path(folder)) + END + after
    if new == text:
        print(f"{document.name} says which methods are served")
    elif "--write" in flags:
        document.write_text(new)
        print(f"{document.name} is written")
    else:
        sys.exit(f"{document} is behind: `cargo xtask sdks methods --write` brings its table up to date")


main()
