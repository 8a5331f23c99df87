"""The Python SDK of Svix against a server with TLS: a right, a wrong, an expired and a replaced certificate.

`ALDABA_BINARY` is the program. Needs `openssl`.
"""

import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from svix.api import ApplicationIn, EndpointIn, MessageIn, Svix, SvixOptions

BINARY = os.environ["ALDABA_BINARY"]
WAIT_TIMEOUT = 20.0


# `openssl req` signs for days to come only; `openssl ca` takes any dates.
AUTHORITY = """
[ca]
default_ca = own
[own]
new_certs_dir = .
database = index.txt
serial = serial
default_md = sha256
policy = names
x509_extensions = extensions
[names]
commonName = supplied
[extensions]
subjectAltName = DNS:{host}
basicConstraints = critical, CA:false
"""


def write_certificate(folder, name, host="localhost", year=2060):
    """A self-signed certificate for a year's beginning at most, and its key, as `NAME.pem` and `NAME.key`."""
    home = Path(folder, f"{name}.home")
    home.mkdir()
    Path(home, "ca.cnf").write_text(AUTHORITY.format(host=host))
    Path(home, "index.txt").touch()
    Path(home, "serial").write_text("01")
    run = lambda *words: subprocess.run(["openssl", *words], cwd=home, check=True, capture_output=True)
    key = f"../{name}.key"
    run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-subj", f"/CN={host}", "-keyout", key, "-out", "request.pem")
    run("ca", "-batch", "-notext", "-config", "ca.cnf", "-selfsign", "-keyfile", key, "-in", "request.pem",
        "-startdate", "20200101000000Z", "-enddate", f"{year}0101000000Z", "-out", f"../{name}.pem")


class Aldaba:
    """The program, with the certificate `used.pem`."""

    def __init__(self, folder):
        self.folder = folder
        environment = {"ALDABA_TLS_CERTIFICATE": "used.pem", "ALDABA_TLS_KEY": "used.key", "ALDABA_LOG": "error"}
        self.program = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for line in self.program.stdout:
            if line.startswith("Aldaba listens on "):
                self.port = line.strip().rsplit(":", 1)[1]
                assert line.split()[-1].startswith("https://"), line
            if line.startswith("For an API token"):
                break
        created = subprocess.run([BINARY, "token", "create"], cwd=folder, env={}, capture_output=True, check=True)
        self.token = created.stdout.decode().strip()

    def client(self, trusted):
        """The SDK, in an environment that trusts a file."""
        os.environ["SSL_CERT_FILE"] = str(Path(self.folder, trusted))
        return Svix(self.token, SvixOptions(server_url=f"https://localhost:{self.port}", retry_schedule=[]))

    def stop(self):
        self.program.terminate()
        assert self.program.wait(WAIT_TIMEOUT) == 0
        self.program.stdout.close()


class TlsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def serve(self, certificate):
        self.use(certificate)
        server = Aldaba(self.folder.name)
        self.addCleanup(server.stop)
        return server

    def use(self, name):
        for end in ("pem", "key"):
            os.replace(self.copy(f"{name}.{end}"), Path(self.folder.name, f"used.{end}"))

    def copy(self, name):
        draft = Path(self.folder.name, "draft")
        draft.write_bytes(Path(self.folder.name, name).read_bytes())
        return draft

    def refused(self, client, why):
        with self.assertRaises(Exception) as caught:
            client.application.list()
        self.assertIn(why, str(caught.exception))

    def test_messages_are_accepted_over_tls_and_another_certificate_is_refused(self):
        write_certificate(self.folder.name, "right")
        write_certificate(self.folder.name, "other")
        server = self.serve("right")
        svix = server.client("right.pem")
        app = svix.application.create(ApplicationIn(name="over TLS"))
        svix.endpoint.create(app.id, EndpointIn(url="https://example.com/hook"))
        message = svix.message.create(app.id, MessageIn(event_type="a", payload={"a": 1}))
        self.assertEqual([found.id for found in svix.message.list(app.id).data], [message.id])
        self.refused(server.client("other.pem"), "CERTIFICATE_VERIFY_FAILED")

    def test_a_certificate_of_another_host_is_refused(self):
        write_certificate(self.folder.name, "wrong", host="elsewhere.example")
        self.refused(self.serve("wrong").client("wrong.pem"), "ostname mismatch")

    def test_a_replaced_certificate_is_taken_without_a_restart(self):
        write_certificate(self.folder.name, "first")
        write_certificate(self.folder.name, "second")
        server = self.serve("first")
        self.assertEqual(server.client("first.pem").application.list().data, [])
        self.use("second")
        end = time.monotonic() + WAIT_TIMEOUT
        while True:
            try:
                self.assertEqual(server.client("second.pem").application.list().data, [])
                return
            except AssertionError:
                raise
            except Exception:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def test_an_expired_certificate_is_refused_and_the_server_runs(self):
        write_certificate(self.folder.name, "expired", year=2021)
        self.refused(self.serve("expired").client("expired.pem"), "certificate has expired")


if __name__ == "__main__":
    unittest.main()
