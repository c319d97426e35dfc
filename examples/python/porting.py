"""Programs for the streams of other packages, ported."""

import weir

N = 1024
device = weir.devices("cuda")[0] if weir.devices("cuda") else weir.Device("cpu")

produce = weir.elementwise("", "float32 a", "a = 10 + i", name="produce")
consume = weir.elementwise("float32 a", "float32 b", "b = a + 1", name="consume")

a = weir.empty(N, "float32", device=device)
b = weir.empty(N, "float32", device=device)
s1, s2 = weir.Stream(device), weir.Stream(device)
produce(out=a, stream=s1)
consume(a, out=b, stream=s2)  # starts after produce: both name a
print(b.numpy()[:3])  # waits for what writes b

with weir.parallel(2, stream=s1) as (left, right):
    produce(out=a, stream=left)
    produce(out=b, stream=right)  # beside the other
total = weir.reduction("float32 x, float32 y", "float32 z", "x + y", identity=0)
print(total(a, b, stream=s1).item())  # after both
