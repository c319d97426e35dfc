/* ---- The log: from its records to lanes, operations, arrows and curves ---- */
function readLog(text) {
    const log = { lanes: [], operations: [], byMoment: new Map(), allocated: new Map(), arrows: [], ticks: [], memory: [], running: [], peak: 0,
        peakAt: 0, most: 0, lost: 0, failed: 0, issued: 0, elidedCount: 0, begin: Infinity, end: -Infinity };
    const lanes = new Map(), sizes = new Map(), starts = [], executions = [], failures = [];
    const lane = id => {
        if (!lanes.has(id)) {
            lanes.set(id, { id, name: id === "host" ? "host" : "stream " + id, operations: [], index: 0, busy: 0, ran: 0 });
        }
        return lanes.get(id);
    };
    const key = moment => moment[0] + ":" + moment[1];
    const records = text.split("\n").filter(line => line.trim() !== "").map(line => JSON.parse(line));
    log.simulated = simulatedTime(records);
    if (log.simulated) {
        useDeviceTime(records);
    }
    let live = 0;
    for (const r of records) {
        switch (r.type) {
        case "stream":
            Object.assign(lane(r.stream), { name: r.name, device: r.device });
            break;
        case "operation": {
            const operation = { lane: lane(r.at[0]), epoch: r.at[1], label: r.label || "operation", file: r.file, line: r.line,
                function: r.function, kind: r.kind, accesses: r.accesses, enqueued: r.t, start: r.t, end: r.t, ran: false,
                failed: false, waits: [], elisions: [], next: [] };
            operation.lane.operations.push(operation);
            log.operations.push(operation);
            log.byMoment.set(key(r.at), operation);
            for (const wait of r.waits) {
                starts.push({ to: operation, target: wait.target, reason: wait.reason, elided: false, forCheck: wait.for_check });
            }
            for (const wait of r.elisions) {
                if (wait.target[0] !== r.at[0]) {
                    starts.push({ to: operation, target: wait.target, reason: wait.reason, elided: true,
                        because: wait.because, witness: wait.witness });
                }
            }
            break;
        }
        case "execution": executions.push(r); break;
        case "failure": failures.push(r); break;
        case "stream_wait":
            if (r.target[1] !== 0 && r.target[0] !== r.at[0]) {
                starts.push({ lane: lane(r.at[0]), at: r.at[1], target: r.target, reason: "dependency", elided: !r.issued,
                    because: r.issued ? undefined : "known or over", file: r.file, line: r.line, byProgram: true });
            }
            break;
        case "host_wait": case "host_access":
            lane("host");
            log.ticks.push({ t: r.t, text: r.type === "host_wait" ? "the host waited" : "the host " +
                (r.mode === "write" ? "changes" : "reads") + " memory #" + r.resource, target: r.target,
                file: r.file, line: r.line, function: r.function });
            break;
        case "allocation":
            log.allocated.set(r.resource, place(r));
            if (r.address !== 0) {
                sizes.set(r.resource, r.bytes);
                live += r.bytes;
                log.memory.push([r.t, live]);
                if (live > log.peak) {
                    Object.assign(log, { peak: live, peakAt: r.t });
                }
            }
            break;
        case "drop":
            if (sizes.has(r.resource)) {
                live -= sizes.get(r.resource);
                sizes.delete(r.resource);
                log.memory.push([r.t, live]);
            }
            break;
        case "end": log.lost = r.lost; break;
        }
    }
    for (const r of executions) {
        const operation = log.byMoment.get(key(r.at));
        if (operation) {
            Object.assign(operation, { start: r.start, end: r.end, ran: true });
            operation.lane.busy += r.end - r.start;
            ++operation.lane.ran;
        }
    }
    for (const r of failures) {
        const operation = log.byMoment.get(key(r.at));
        if (operation) {
            operation.failed = true;
            ++log.failed;
        }
    }
    for (const target of log.ticks.filter(tick => tick.target)) {
        const operation = log.byMoment.get(key(target.target));
        target.of = operation && `${operation.label} on ${operation.lane.name}`;
    }
    log.lanes = [...lanes.values()].sort((a, b) => (b.id === "host") - (a.id === "host") || a.id - b.id);
    log.lanes.forEach((one, index) => {
        one.index = index;
        // An operation that did not run is placed at the last end on its stream: the bars of a lane never go back in time.
        let over = -Infinity;
        for (const o of one.operations) {
            if (!o.ran) {
                o.start = o.end = Math.max(over, o.enqueued);
            }
            over = Math.max(over, o.end);
        }
    });
    addArrows(log, lanes, starts, key);
    log.running = running(log);
    log.most = log.running.reduce((most, [, count]) => Math.max(most, count), 0);
    measure(log);
    return log;
}
/* Whether the log is of a virtual clock: operations are then recorded at another time than they run at by the device's clock. */
const simulatedTime = records => records.some(r => r.type === "execution" && r.clock === "virtual");
/* Moves what the host did to the device's time: after the last end that was recorded before. */
function useDeviceTime(records) {
    let now = records.reduce((first, r) => r.type === "execution" ? Math.min(first, r.start) : first, Infinity);
    for (const r of records) {
        if (r.type === "execution") {
            now = Math.max(now, r.end);
        }
        r.t = now;
    }
}
/* A wait that the program asked for is drawn to the next operation of its stream. A wait may be for another wait. */
function addArrows(log, lanes, starts, key) {
    for (const start of starts) {
        const to = start.to || nextOf(start.lane.operations, start.at);
        const from = log.byMoment.get(key(start.target)) || lastOf(lanes.get(start.target[0]), start.target[1]);
        start.elided ? ++log.elidedCount : ++log.issued;
        if (from && to) {
            const arrow = Object.assign(start, { from, to });
            log.arrows.push(arrow);
            (start.elided ? to.elisions : to.waits).push(arrow);
            from.next.push(arrow);
        }
    }
}
/* Steps [time, number of streams that execute from then on]. Operations that take no time are not counted. */
function running(log) {
    const changes = [];
    for (const o of log.operations) {
        if (o.ran && o.end > o.start && o.kind !== "gate") {
            changes.push([o.start, 1], [o.end, -1]);
        }
    }
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const steps = [];
    let count = 0;
    for (const [t, change] of changes) {
        count += change;
        if (steps.length && steps[steps.length - 1][0] === t) {
            steps[steps.length - 1][1] = count;
        } else {
            steps.push([t, count]);
        }
    }
    return steps;
}
/* Finds the span of time that the log covers, and how long the operations took together. */
function measure(log) {
    let first = Infinity, last = -Infinity;
    const include = t => {
        log.begin = Math.min(log.begin, t);
        log.end = Math.max(log.end, t);
    };
    for (const o of log.operations) {
        include(o.start);
        include(o.end);
        if (o.ran) {
            first = Math.min(first, o.start);
            last = Math.max(last, o.end);
        } else {
            include(o.enqueued);
        }
    }
    log.ticks.forEach(tick => include(tick.t));
    log.memory.forEach(([t]) => include(t));
    log.span = last - first;
    if (!(log.end > log.begin)) {
        log.begin = Number.isFinite(log.begin) ? log.begin : 0;
        log.end = log.begin + 1000;
    }
}
/* The number of operations up to `epoch`; operations of a lane are in the order of their epochs. */
function countUpTo(operations, epoch) {
    let low = 0, high = operations.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (operations[middle].epoch <= epoch) { low = middle + 1; } else { high = middle; }
    }
    return low;
}
const nextOf = (operations, epoch) => operations[countUpTo(operations, epoch)];
const lastOf = (lane, epoch) => lane && lane.operations[countUpTo(lane.operations, epoch) - 1];

/* The value of a curve [time, value] at a time; 0 before its first step. */
function valueAt(steps, t) {
    let low = 0, high = steps.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (steps[middle][0] <= t) { low = middle + 1; } else { high = middle; }
    }
    return low ? steps[low - 1][1] : 0;
}

/* The memory that makes one operation come after the other: both touch it and at least one writes it. */
function shared(arrow) {
    const found = new Set();
    for (const a of arrow.from.accesses) {
        for (const b of arrow.to.accesses) {
            if (a.resource === b.resource && a.begin < b.end && b.begin < a.end && (a.mode === "write" || b.mode === "write")) {
                found.add(memoryText(a, Math.max(a.begin, b.begin), Math.min(a.end, b.end)));
            }
        }
    }
    return [...found];
}
