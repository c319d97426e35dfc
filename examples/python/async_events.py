"""Awaiting an event in asyncio: the loop goes on meanwhile."""

import asyncio

import weir


async def main():
    stream = weir.Stream(name="work")
    with stream:
        x = weir.ones(1_000_000)
        total = x.sum()
    await stream.record()
    print(total.item())


asyncio.run(main())
