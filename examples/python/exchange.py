"""One array, two packages: Weir computes on memory of NumPy, and NumPy reads what Weir has computed."""

import numpy as np
import weir

recording = np.linspace(0.0, 1.0, 8)
x = weir.asarray(recording)  # the same memory
x *= 2  # over when the call returns, since NumPy may look at any time
assert recording[-1] == 2.0

louder = x + 1  # Weir's own memory: enqueued, not yet done
seen = np.from_dlpack(louder)  # waits until it is
print(seen.round(2))
