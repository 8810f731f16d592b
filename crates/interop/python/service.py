"""The official Python Service SDK behind the standard library's HTTP server: what a Service of others looks like.

    service.py RECORDS.ndjson serves wire-form Offerings on a free port of 127.0.0.1 and says which on standard output.

The SDK has no search: one by a part of the name, by Collection and by the kind of price is written on top of it.
"""

import asyncio
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from offering_protocol.core import (
    VERSION,
    Offering,
    OfferingPage,
    OfferingSearchRequest,
    Operation,
    SearchCapabilities,
    parse_collection,
    parse_offering,
)
from offering_protocol.service import (
    CatalogRequest,
    Request,
    Service,
    ServiceBuilder,
    StaticCatalog,
    StaticCatalogOptions,
)

CAPABILITIES = {
    "filters": {
        "inline": [
            {
                "id": "price-type",
                "title": "Kind of price",
                "description": "Whether it is free or has a fixed price.",
                "type": "string",
                "operators": ["eq", "in"],
            }
        ]
    }
}


class Catalog(StaticCatalog):
    """The SDK's catalog, with a search."""

    def __init__(self, options: StaticCatalogOptions) -> None:
        super().__init__(options)
        self._all = options.offerings

    def operations(self) -> list[Operation]:
        return [*super().operations(), Operation.SEARCH_OFFERINGS]

    async def search_offerings(
        self, query: OfferingSearchRequest, request: CatalogRequest
    ) -> OfferingPage[Offering]:
        asked = query.model_dump(mode="json", exclude_unset=True)
        found = [item for item in self._all if asked.get("query", "").casefold() in item.name.casefold()]
        if collection := asked.get("collection_id"):
            found = [item for item in found if collection in item.collection_ids]
        for expression in asked.get("filters", []):
            value = expression["value"]
            wanted = value if isinstance(value, list) else [value]
            found = [item for item in found if item.price and item.price.price_type.value in wanted]
        items = [{"id": item.id, "name": item.name} for item in found[: asked.get("limit", 50)]]
        return OfferingPage[Offering].model_validate({"items": items, "odp_version": VERSION})


def serving(path: str) -> Service:
    offerings = []
    with open(path, encoding="utf-8") as records:
        for line in records:
            offerings.append(parse_offering(json.dumps({"odp_version": "1.0", **json.loads(line)}).encode()))
    named = sorted({name for item in offerings for name in item.collection_ids or []})
    collections = [
        parse_collection(json.dumps({"odp_version": "1.0", "id": name, "name": name}).encode())
        for name in named
    ]
    catalog = Catalog(StaticCatalogOptions(tuple(collections), tuple(offerings)))
    builder = ServiceBuilder("Peer", "The official Python SDK.", "en", "/odp")
    return builder.search_capabilities(SearchCapabilities.model_validate(CAPABILITIES)).build(catalog)


def handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = dict(self.headers.items())
            request = Request(self.command, path, body, headers, query)
            response = asyncio.run(service.handle(request))
            self.send_response(response.status)
            for name, value in response.headers.items():
                if name.lower() != "content-length":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

        do_GET = do_HEAD = do_POST = answer

        def log_message(self, *_: object) -> None:
            pass

    return Handler


server = ThreadingHTTPServer(("127.0.0.1", 0), handler(serving(sys.argv[1])))
print(f"127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
