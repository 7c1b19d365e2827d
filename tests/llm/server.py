#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model endpoint for tests: chat completions, messages and embeddings, with faults on order.

The model's name says what to do ("ok", "cut", "429"…: see FAULTS and send_stream). What was asked
is appended to --log, one JSON object a line. Prints the port it listens on, then serves until it is
killed. With --proxy it is an HTTP proxy instead, which logs what it was asked for.
"""

from __future__ import annotations

import argparse
import json
import re
import select
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KERNEL = "Here it is.\n```cpp\nint ke_launch() { return 0; }\n```\nThat is all.\n"
PIECES = re.findall(r"\S+\s*", KERNEL)

# status, headers, type, message
FAULTS: dict[str, tuple[int, dict[str, str], str, str]] = {
    "401": (401, {}, "authentication_error", "invalid api key"),
    "404": (404, {}, "not_found_error", "no such model"),
    "413": (413, {}, "request_too_large", "Request exceeds the maximum size"),
    "429": (429, {"Retry-After": "2"}, "rate_limit_error", "slow down"),
    "500": (500, {}, "api_error", "internal error"),
    "529": (529, {}, "overloaded_error", "Overloaded"),
    "overflow": (
        400,
        {},
        "invalid_request_error",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ),
    "redirect": (307, {"Location": "http://127.0.0.1:1/elsewhere"}, "moved", "over there"),
}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    log_path = ""
    log_lock = threading.Lock()
    calls: dict[str, int] = {}

    def handle_error(self, request, client_address) -> None:
        pass  # clients that go away are part of the tests

    def note(self, entry: dict) -> None:
        with self.log_lock, open(self.log_path, "a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")

    def count(self, model: str) -> int:
        with self.log_lock:
            self.calls[model] = self.calls.get(model, 0) + 1
            return self.calls[model]


def chat_events(pieces: list[str], finish: str | None) -> list[str]:
    def chunk(choices: list, **more) -> str:
        base = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return "data: " + json.dumps(base | {"choices": choices} | more) + "\n\n"

    events = [chunk([{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}])]
    for piece in pieces:
        events.append(chunk([{"index": 0, "delta": {"content": piece}, "finish_reason": None}]))
    if finish is not None:
        reason = {"refusal": "content_filter"}.get(finish, finish)
        events.append(chunk([{"index": 0, "delta": {}, "finish_reason": reason}]))
        usage = {
            "prompt_tokens": 1200,
            "completion_tokens": 30,
            "total_tokens": 1230,
            "prompt_tokens_details": {"cached_tokens": 1000},
        }
        events.append(chunk([], usage=usage))
        events.append("data: [DONE]\n\n")
    return events


def message_events(pieces: list[str], finish: str | None) -> list[str]:
    def event(kind: str, **fields) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind} | fields)}\n\n"

    usage = {
        "input_tokens": 150,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": 1000,
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}
    events = [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("ping"),
    ]
    for piece in pieces:
        delta = {"type": "text_delta", "text": piece}
        events.append(event("content_block_delta", index=0, delta=delta))
    if finish is not None:
        reason = {"stop": "end_turn", "length": "max_tokens"}.get(finish, finish)
        events.append(event("content_block_stop", index=0))
        delta = {"stop_reason": reason, "stop_sequence": None}
        events.append(event("message_delta", delta=delta, usage={"output_tokens": 30}))
        events.append(event("message_stop"))
    return events


# Words that mean the same, for vectors that know it.
MEANINGS = [["zebra", "quagga", "equid"], ["softmax", "attention"], ["sum", "total", "reduction"]]


def vector_of(text: str) -> list[float]:
    """How often each meaning is named, and a little of everything."""
    words = re.findall(r"[a-z]+", text.lower())
    return [sum(word in meaning for word in words) + 0.01 for meaning in MEANINGS] + [0.1]


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_args) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        request = json.loads(body)
        self.server.note({"path": self.path, "headers": dict(self.headers), "body": request})
        self.close_connection = True
        model = request["model"]
        if self.path.endswith("/embeddings"):
            self.embed(model, request["input"])
            return
        self.chat = self.path.endswith("/chat/completions")
        key = self.headers.get("Authorization") or self.headers.get("x-api-key") or ""
        self.key = key.removeprefix("Bearer ")
        if model == "flaky":
            model = "ok" if self.server.count(model) > 2 else "529"
        if model == "cut-once":
            model = "ok" if self.server.count(model) > 1 else "cut"
        if model in FAULTS:
            self.refuse(*FAULTS[model])
        elif model == "echo-key-error":
            self.refuse(401, {"X-Echo": self.key}, "authentication_error", f"bad key {self.key}")
        elif model == "html":
            self.send_whole(502, "text/html", "<html><h1>Bad Gateway</h1></html>")
        elif model == "hang-up":
            pass  # closed without a word
        elif model == "not-http":
            self.wfile.write(b"\x00\x01\x02 this is no http\r\n\r\n")
        elif model == "silent":
            time.sleep(30)
        elif model == "whole":
            self.send_document()
        else:
            self.send_stream(model)

    def embed(self, model: str, texts: list[str]) -> None:
        """Vectors of words, or whatever the model's name orders."""
        self.chat = True  # errors look alike
        if model == "429-once":
            model = "429" if self.server.count(model) == 1 else "ok"
        if model in FAULTS:
            self.refuse(*FAULTS[model])
            return
        vectors = [vector_of(text) for text in texts]
        if model == "wrong-dimension":
            vectors[-1] = vectors[-1][:-1]
        elif model == "wrong-count":
            vectors.pop()
        elif model == "nan":
            vectors[0][0] = float("nan")
        data = [
            {"object": "embedding", "index": i, "embedding": vector}
            for i, vector in enumerate(vectors)
        ]
        if model == "backwards":
            data.reverse()
        usage = {"prompt_tokens": 5 * len(texts), "total_tokens": 5 * len(texts)}
        body = {"object": "list", "data": data, "model": model, "usage": usage}
        if model == "huge":
            body["more"] = "x" * (64 << 20)
        self.send_whole(200, "application/json", json.dumps(body))

    def refuse(self, status: int, headers: dict[str, str], kind: str, message: str) -> None:
        error = {"type": kind, "message": message}
        body = {"error": error} if self.chat else {"type": "error", "error": error}
        self.send_whole(status, "application/json", json.dumps(body), headers)

    def send_whole(self, status: int, kind: str, text: str, headers: dict | None = None) -> None:
        data = text.encode()
        self.send_response(status, "Reason")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_document(self) -> None:
        if self.chat:
            message = {"role": "assistant", "content": KERNEL}
            body = {
                "object": "chat.completion",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1200, "completion_tokens": 30},
            }
        else:
            body = {
                "type": "message",
                "content": [{"type": "text", "text": KERNEL}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1200, "output_tokens": 30},
            }
        self.send_whole(200, "application/json", json.dumps(body))

    def send_stream(self, model: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        make = chat_events if self.chat else message_events
        if model in ("length", "refusal"):
            self.send_events(make(PIECES[:4], model))
        elif model == "echo-key":
            self.send_events(make([self.key[:5], self.key[5:]], "stop"))
        elif model == "bad-sse":
            self.send_chunk("data: {this is no json\n\n")
        elif model == "stream-error":
            error = {"type": "overloaded_error", "message": "Overloaded", "code": 529}
            self.send_events(make(PIECES[:4], None))
            data = json.dumps({"type": "error", "error": error})
            self.send_chunk(f"event: error\ndata: {data}\n\n")
        elif model == "cut":
            self.send_events(make(PIECES[:4], None))
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        elif model == "stall":
            self.send_events(make(PIECES[:4], None))
            time.sleep(30)
        elif model in ("endless", "huge"):
            piece = "x" * (200_000 if model == "huge" else 10)
            while True:
                self.send_events(make([piece], None)[-1:])
                time.sleep(0 if model == "huge" else 0.01)
        elif model == "drip":
            for byte in "".join(make(PIECES, "stop")):
                self.send_chunk(byte)
        elif model == "crlf":
            self.send_events([e.replace("\n", "\r\n") for e in make(PIECES, "stop")])
        else:
            self.send_events(make(PIECES, "stop"))
        self.wfile.write(b"0\r\n\r\n")

    def send_events(self, events: list[str]) -> None:
        for event in events:
            self.send_chunk(event)

    def send_chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


class Proxy(BaseHTTPRequestHandler):
    """Passes on tunnels (CONNECT) and plain requests; asks for user:password."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_args) -> None:
        pass

    def do_CONNECT(self) -> None:
        self.server.note({"connect": self.path, "headers": dict(self.headers)})
        self.close_connection = True
        if self.headers.get("Proxy-Authorization") != "Basic dXNlcjpwYXNz":
            self.send_error(407)
            return
        port = int(self.path.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as there:
            self.send_response(200, "Connection established")
            self.end_headers()
            self.pump(self.connection, there)

    def do_POST(self) -> None:
        self.server.note({"post": self.path, "headers": dict(self.headers)})
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        found = re.match(r"http://([^/:]+):(\d+)(/.*)", self.path)
        assert found, "a proxy is asked with a whole address"
        with socket.create_connection(("127.0.0.1", int(found[2]))) as there:
            head = f"POST {found[3]} HTTP/1.1\r\n"
            for name, value in self.headers.items():
                if not name.lower().startswith("proxy-"):
                    head += f"{name}: {value}\r\n"
            there.sendall(head.encode() + b"\r\n" + body)
            self.pump(self.connection, there)

    def pump(self, here: socket.socket, there: socket.socket) -> None:
        while True:
            ready, _, _ = select.select([here, there], [], [])
            for end in ready:
                data = end.recv(65536)
                if not data:
                    return
                (there if end is here else here).sendall(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", required=True)
    parser.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
    parser.add_argument("--proxy", action="store_true")
    options = parser.parse_args()
    server = Server(("127.0.0.1", 0), Proxy if options.proxy else Endpoint)
    server.log_path = options.log
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*options.tls)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
