"""The official Python Agent SDK reads a Service: inspect, list every page, retrieve, search. Prints what it saw as JSON.

    walk.py ORIGIN STRIDE REQUEST retrieves every STRIDE-th Offering; with a STRIDE of 0 it searches only.
"""

import asyncio
import json
import sys

from offering_protocol.agent import ServiceClient
from offering_protocol.core import OfferingSearchRequest, Representation


async def search(client: ServiceClient, request: str) -> dict[str, object]:
    page = await client.search_offerings(OfferingSearchRequest.model_validate_json(request))
    counts = {
        json.dumps(bucket.value): bucket.count
        for group in page.refinements
        for bucket in group.values
    }
    found: list[str] = []
    while True:
        found += [item.id for item in page.items]
        if not page.next:
            break
        page = await client.continue_offerings(page.next)
    return {"found": found, "counts": counts}


async def walk(client: ServiceClient, stride: int) -> dict[str, object]:
    inspection = await client.inspect()
    offerings: list[str] = []
    page = await client.list_offerings(Representation.TERSE, 100)
    while True:
        offerings += [item.id for item in page.items]
        if not page.next:
            break
        page = await client.continue_offerings(page.next)
    collections: list[str] = []
    page = await client.list_collections(Representation.FULL, 7)
    while True:
        collections += [item.id for item in page.items]
        if not page.next:
            break
        page = await client.continue_collections(page.next)
    memberships = 0
    for identifier in collections:
        await client.get_collection(identifier)
        page = await client.list_collection_offerings(identifier, Representation.FULL, 100)
        while True:
            memberships += len(page.items)
            if not page.next:
                break
            page = await client.continue_offerings(page.next)
    retrieved = 0
    for identifier in offerings[::stride]:
        offering = await client.get_offering(identifier)
        assert offering.id == identifier
        retrieved += 1
    return {
        "name": inspection.document.name,
        "offerings": offerings,
        "collections": collections,
        "memberships": memberships,
        "retrieved": retrieved,
    }


async def main(origin: str, stride: int, request: str) -> None:
    async with ServiceClient(origin, allow_local_network=True) as client:
        seen = await walk(client, stride) if stride else {}
        seen |= await search(client, request)
        print(json.dumps(seen))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
