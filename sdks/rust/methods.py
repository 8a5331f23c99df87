"""Prints the name of the Rust SDK, and its methods, from its source: "METHOD /path resource.method"."""

import json
import os
import re
import subprocess
from pathlib import Path

METHOD = re.compile(r"^    pub async fn (\w+)\(", re.MULTILINE)
REQUEST = re.compile(r'Request::new\(\s*http1?::Method::(\w+),\s*"([^"]+)"')
# Behind a feature that is off.
BETA = '#[cfg(feature = "svix_beta")]\n'

manifest = Path(__file__).with_name("Cargo.toml")
command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked", f"--manifest-path={manifest}"]
packages = json.loads(subprocess.check_output(command))["packages"]
svix = next(package for package in packages if package["name"] == "svix")
print("Rust", svix["version"])
for source in sorted((Path(svix["manifest_path"]).parent / "src/api").glob("*.rs")):
    text = source.read_text()
    for found in METHOD.finditer(text):
        request = REQUEST.search(text, found.end())
        if request and not text[: found.start()].endswith(BETA):
            print(request[1], request[2], f"{source.stem}.{found[1]}")
