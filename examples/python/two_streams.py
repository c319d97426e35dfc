"""Two streams and no wait: Weir finds the ones that are needed. Prints what it inserted, and why."""

import logging

import weir
from weir.testing import Gate

logging.basicConfig(format="%(message)s")
logging.getLogger("weir").setLevel(logging.DEBUG)

load, compute = weir.Stream(name="load"), weir.Stream(name="compute")
x = weir.zeros(4, stream=load)
load.synchronize()

with Gate() as gate:  # so that the wait is needed on every machine
    gate.hold(load)
    weir.fill(x, 7, stream=load)
    with compute:
        y = x + 1
print(y.numpy())
