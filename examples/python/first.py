import weir

load, compute = weir.Stream(), weir.Stream()  # two queues of work that run beside each other
x = weir.empty(1 << 20, "float32")

weir.fill(x, 3, stream=load)  # enqueued, not yet done
with compute:  # on another stream: Weir adds the wait
    y = x * x
del x  # dropped while in use: no thread waits, and the memory is not reused too early

print(y.numpy()[0])  # the host waits for exactly what it reads
