"""Requests of foreign pages, and small attacks whose result is a status. Each starts its own server."""
import json

from .server import MALLORY, Server, tally


def same_site(program):
    """a page of a sibling subdomain that acts with an anonymous user's cookie"""
    server = Server(program)
    _, _, text = server.ask("POST", "/v1/users/anonymous")
    cookie = {"cookie": f"__Host-holdfast_user={json.loads(text)['token']}"}
    body = {"input": "[tokens=1]"}
    foreign = [
        server.ask("POST", "/v1/runs", body, **cookie, sec_fetch_site="same-site"),
        server.ask("POST", "/v1/runs", body, **cookie, sec_fetch_site="cross-site"),
        server.ask("POST", "/v1/runs", body, **cookie, origin="https://evil.example"),
        server.ask("POST", "/v1/runs", body, **cookie, origin="null"),
        server.ask("DELETE", "/v1/users/me", **cookie, sec_fetch_site="same-site"),
    ]
    own = server.ask("POST", "/v1/runs", body, **cookie, origin=f"http://127.0.0.1:{server.port}", sec_fetch_site="same-origin")
    minted = server.ask("POST", "/v1/users/anonymous", **cookie)
    replaced = json.loads(minted[2]).get("user") != json.loads(text)["user"]
    plain = server.ask("POST", "/mcp/rpc", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', **cookie, content_type="text/plain")
    got = f"foreign pages: {tally(foreign)}; the own page: {own[0]}; a new cookie replaces the user: {replaced}; text/plain at /mcp/rpc: {plain[0]}"
    return got, server.end()


def odd_names(program):
    """metadata with odd names, and titles with invisible characters"""
    server = Server(program)
    searches = [server.ask("POST", "/langgraph/threads/search", {"metadata": {name: "x"}}, MALLORY) for name in ("\\", "$1", '"', "a.b")]
    title = "invoice\u202efdp.exe\u200b"
    conversation = server.json("POST", "/v1/conversations", {"title": title}, MALLORY)
    kept = sorted({f"U+{ord(letter):04X}" for letter in conversation["title"] or "" if ord(letter) > 0x2000})
    return f"searches: {tally(searches)}; invisible characters that stay: {', '.join(kept) or 'none'}", server.end()


def promises(program):
    """an upload that promises 16 MiB and sends one byte; it holds the quota for ten minutes"""
    server = Server(program)
    secret = server.json("POST", "/v1/users/anonymous")["token"]
    credential = {"authorization": "Bearer " + secret}
    head = {"content_type": "text/plain", "content_disposition": 'attachment; filename="a.txt"'}
    promised = server.ask("POST", "/v1/files", b"x", **credential, **head, content_range="bytes 0-0/16777216")
    honest = server.ask("POST", "/v1/files", b"y" * 1_000_000, **credential, **head)
    return f"the promise: {promised[0]}; another file of the same user: {tally([honest])}", server.end()


ATTACKS = [same_site, odd_names, promises]
