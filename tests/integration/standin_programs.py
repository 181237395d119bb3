"""Stand-ins for Tempo and Grafana, which are not here: they read our configuration and answer.

They show that the supervisor starts, asks and ends such programs rightly. They say nothing of
whether the real programs like the configuration.
"""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["write_standins"]

_TEMPO = """
import sys, yaml
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

if "--version" in sys.argv:
    sys.exit(print("tempo, version 2.6.1 (a stand-in of Rollscope's tests)"))
with open(sys.argv[1].partition("=")[2]) as file:
    config = yaml.safe_load(file)

class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in ("/ready", "/metrics") else 404)
        self.end_headers()
    def do_POST(self):
        size = len(self.rfile.read(int(self.headers["Content-Length"])))
        print("took", size, "bytes of", self.path, flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

host, port = config["distributor"]["receivers"]["otlp"]["protocols"]["http"]["endpoint"].split(":")
otlp = ThreadingHTTPServer((host, int(port)), Answers)
Thread(target=otlp.serve_forever, daemon=True).start()
own = (config["server"]["http_listen_address"], config["server"]["http_listen_port"])
ThreadingHTTPServer(own, Answers).serve_forever()
"""

_GRAFANA = """
import sys
from configparser import ConfigParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

if "--version" in sys.argv:
    sys.exit(print("Version 11.3.0 (a stand-in of Rollscope's tests)"))
config = ConfigParser(interpolation=None)
config.read(sys.argv[sys.argv.index("--config") + 1])

class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in ("/api/health", "/metrics") else 404)
        self.end_headers()

own = (config["server"]["http_addr"], int(config["server"]["http_port"]))
ThreadingHTTPServer(own, Answers).serve_forever()
"""


def write_standins(folder: Path) -> list[str]:
    """Write both; gives the options that name them."""
    options = []
    for name, code in (("tempo", _TEMPO), ("grafana", _GRAFANA)):
        path = folder / f"standin-{name}"
        path.write_text(f"#!{sys.executable}\n{code}")
        path.chmod(0o755)
        options += [f"--{name}-bin", str(path)]
    return options
