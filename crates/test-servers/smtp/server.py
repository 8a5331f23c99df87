"""A real SMTP server that keeps every mail it gets as a line of JSON in mails.jsonl.

What it does with a recipient is in the part of the address before the @: `never` is refused for good, `later` for the time
being, `blunt` at the end of the mail; at `closing` and `cut` the conversation ends, with and without a word. The file `break` has the number of mails after which the connection is cut without an
answer; they are kept. The file `refuse` makes it close every conversation at the sender. The file `hang` has the step at which
it answers no more: `hello`, `sender`, `recipient` or `end`. The file `pipelines` makes it offer PIPELINING.
"""

import argparse
import asyncio
import json
import os
import signal
import ssl
from email import message_from_bytes, policy

from aiosmtpd.smtp import SMTP, AuthResult

CUTS = "break"


async def hang(step):
    """A step that began to hang does not answer any more."""
    if os.path.exists("hang") and open("hang").read() == step:
        with open("hangs", "a") as file:
            file.write(step + "\n")
        await asyncio.Event().wait()


class Handler:
    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        await hang("hello")
        session.host_name = hostname
        if os.path.exists("pipelines"):
            responses.insert(1, "250-PIPELINING")
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options):
        await hang("sender")
        if os.path.exists("refuse"):
            return "451 come back later"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        await hang("recipient")
        name = address.split("@")[0]
        if name == "never":
            return "550 there is no such user here"
        if name == "later":
            return "450 the mailbox is busy"
        if name == "closing":
            return "421 the mailbox ends every conversation"
        if name == "cut":
            server.transport.abort()
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        await hang("end")
        keep(server, session, envelope)
        if envelope.rcpt_tos[0].startswith("blunt@"):
            return "554 not wanted"
        left = int(open(CUTS).read()) if os.path.exists(CUTS) else 0
        if left > 0:
            with open(CUTS, "w") as file:
                file.write(str(left - 1))
            server.transport.abort()
        return "250 taken"


def keep(server, session, envelope):
    message = message_from_bytes(envelope.content, policy=policy.default)
    parts = {part.get_content_type(): part.get_content() for part in message.walk() if not part.is_multipart()}
    kept = {
        "from": envelope.mail_from,
        "to": envelope.rcpt_tos,
        "headers": [[name, str(value)] for name, value in message.items()],
        "defects": [str(defect) for part in message.walk() for defect in part.defects],
        "type": message.get_content_type(),
        "text": parts.get("text/plain", ""),
        "html": parts.get("text/html", ""),
        "raw": envelope.content.decode("utf-8", "replace"),
        "encrypted": server.transport.get_extra_info("ssl_object") is not None,
        "user": (session.auth_data or b"").decode() if isinstance(session.auth_data, bytes) else session.auth_data,
        "peer": session.peer[1],
    }
    with open("mails.jsonl", "a") as file:
        file.write(json.dumps(kept) + "\n")


def authenticator(user, password):
    def check(server, session, envelope, mechanism, data):
        if data.login == user.encode() and data.password == password.encode():
            return AuthResult(success=True, auth_data=user)
        return AuthResult(success=False, handled=False)

    return check


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--certificate")
    parser.add_argument("--tls", choices=["none", "implicit", "starttls"], default="none")
    parser.add_argument("--user")
    parser.add_argument("--password")
    options = parser.parse_args()
    context = None
    if options.tls != "none":
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(options.certificate)
    asks = {}
    if options.user:
        asks = {
            "authenticator": authenticator(options.user, options.password),
            "auth_required": True,
            "auth_require_tls": options.tls == "starttls",
        }
    starttls = options.tls == "starttls"

    def serve():
        return SMTP(
            Handler(),
            tls_context=context if starttls else None,
            require_starttls=starttls,
            enable_SMTPUTF8=True,
            **asks,
        )

    implicit = context if options.tls == "implicit" else None
    server = await asyncio.get_running_loop().create_server(serve, "127.0.0.1", options.port, ssl=implicit)
    await server.serve_forever()


# A shell starts it with this signal ignored, and ends it by it.
signal.signal(signal.SIGINT, signal.SIG_DFL)
asyncio.run(main())
