"""Prints the name of the installed SDK, and its methods: "METHOD /path resource.method"."""

import inspect
import re

import svix
from svix.api import Svix, SvixOptions

REQUEST = re.compile(r'method="(\w+)",\s*path="([^"]+)"')


def walk(thing, prefix):
    for name in sorted(dir(thing)):
        if name.startswith("_"):
            continue
        part = getattr(thing, name)
        if inspect.ismethod(part):
            if request := REQUEST.search(inspect.getsource(part)):
                print(request[1].upper(), request[2], prefix + name)
        elif type(part).__module__.startswith("svix.api"):
            walk(part, f"{prefix}{name}.")


print("Python", svix.__version__)
walk(Svix("token", SvixOptions(server_url="http://localhost")), "")
