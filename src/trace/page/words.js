/* ---- Words and colours ---- */
const byId = id => document.getElementById(id);
const reasons = {
    read_after_write: { color: "#2f7fd6", text: "read after write" },
    write_after_read: { color: "#c9821a", text: "write after read" },
    write_after_write: { color: "#d0432f", text: "write after write" },
    dependency: { color: "#8a63d9", text: "asked for by the program" },
    reuse: { color: "#2b9166", text: "memory's former owner" },
    entry: { color: "#b8508f", text: "entry from another package" },
    exit: { color: "#b8508f", text: "exit to another package" },
};
const because = { known: "the stream was ordered after it already", complete: "it was over",
    other_wait: "another wait implies it", same_stream: "same stream" };

function duration(ns) {
    const sized = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([size]) => Math.abs(ns) >= size);
    return sized ? +(ns / sized[0]).toPrecision(4) + " " + sized[1] : Math.round(ns) + " ns";
}
function bytes(n) {
    const sized = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]].find(([size]) => n >= size);
    return sized ? +(n / sized[0]).toPrecision(4) + " " + sized[1] : n + " bytes";
}
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const place = o => o.file ? o.file.split("/").pop() + ":" + o.line : "";
const reasonText = arrow => reasons[arrow.reason].text + (arrow.forCheck ? ", added by check" : "");
const becauseText = arrow => because[arrow.because] || "implied, or it was over";

/* The same label has the same colour in every timeline, unless another label of the same log has taken that colour. */
const hues = 14;
function takeColors(labels) {  // call after the theme's values are read: the lightness is one of them
    const taken = new Set();
    theme.colors = new Map();
    for (const label of labels) {
        let hash = 7;
        for (const c of label) {
            hash = (hash * 31 + c.codePointAt(0)) >>> 0;
        }
        let hue = hash % hues;
        for (let i = 1; i < hues && taken.has(hue); ++i) {
            hue = (hash + 5 * i) % hues;
        }
        taken.add(hue);
        theme.colors.set(label, `hsl(${hue * 360 / hues} 58% ${theme["bar-light"]})`);
    }
}
const colorOf = label => theme.colors.get(label);
function element(name, text = "", properties = {}) {
    const made = Object.assign(document.createElement(name), properties);
    made.textContent = text;
    return made;
}

/* Describes an operation, an arrow, a wait of the host's or a lane. `go` is called for links to other items. */
function describe(item, go) {
    const table = document.createElement("table");
    const row = (name, ...values) => {
        const line = table.insertRow();
        line.insertCell().textContent = name;
        line.insertCell().append(...values);
    };
    const link = (text, to) => go ? element("button", text, { className: "link", onclick: () => go(to) }) : text;
    const operation = o => [link(o.label, o), ` on ${o.lane.name}, ${place(o)}`];
    let title = item.label || item.text || item.name;
    if (item.from) {
        title = item.elided ? "wait that was not needed" : item.byProgram ? "wait of the program's" : "wait that Weir inserted";
        row("reason", reasonText(item));
        row("from", ...operation(item.from));
        row("to", ...operation(item.to));
        shared(item).slice(0, 4).forEach((text, i) => row(i ? "" : "shared", text));
        if (item.byProgram) {
            row("line", `${item.file}:${item.line}`);
        } else {
            row("line", `${item.to.file}:${item.to.line}`);
        }
        if (item.elided) {
            row("left out", becauseText(item) + witnessText(item));
        }
        if (item.from.ran && item.to.ran) {
            row("gap", duration(item.to.start - item.from.end));
        }
    } else if (item.operations) {
        row("device", item.device || "the program itself");
        row("operations", String(item.operations.length));
        row("executing", `${duration(item.busy)}` + (log.span > 0 ? ` (${Math.round(100 * item.busy / log.span)} % of the span)` : ""));
    } else if (!item.lane) {
        row("at", duration(item.t - log.begin));
        row("line", `${item.file}:${item.line}`);
        if (item.of) {
            row("for", item.of);
        }
    } else {
        describeOperation(item, row, link, operation, go ? 40 : 5);
    }
    return [element("div", title, { className: "name" }), table];
}
function witnessText(arrow) {
    if (arrow.because !== "other_wait" && arrow.because !== "known") {
        return "";
    }
    const o = log.byMoment.get(arrow.witness[0] + ":" + arrow.witness[1]);
    return o ? `: ${o.label} on ${o.lane.name}, ${place(o)}` : "";
}
/* Text for a part of some memory, and the line that allocated it. */
function memoryText(access, begin, end) {
    if (access.token !== undefined) {
        return access.token === "" ? `token #${access.resource}` : `token "${access.token}"`;
    }
    const part = begin === 0 && end === access.bytes ? `all ${bytes(access.bytes)}` : `bytes [${begin}, ${end})`;
    const line = log.allocated.get(access.resource);
    return `${part} of memory #${access.resource}` + (line ? ` (${line})` : "");
}
function describeOperation(o, row, link, operation, most) {
    row("stream", `${o.lane.name} (epoch ${o.epoch})`);
    row("line", `${o.file}:${o.line}` + (o.function ? ` in ${o.function}` : ""));
    row("ran", o.ran ? `${duration(o.end - o.start)}, from ${duration(o.start - log.begin)}` : "not while the log was kept");
    if (o.failed) {
        row("failed", o.ran ? "yes" : "or something that it depends on did");
    }
    row("enqueued", duration(o.enqueued - log.begin));
    const some = (list, each) => {
        list.slice(0, most).forEach(each);
        if (list.length > most) {
            row("", `and ${list.length - most} more`);
        }
    };
    some(o.accesses, a => row(a.mode === "read" ? "reads" : "writes", memoryText(a, a.begin, a.end)));
    const wait = (name, other) => arrow => row(name, ...operation(other(arrow)), " · ", link(reasonText(arrow), arrow),
        arrow.elided ? element("small", " · not issued: " + becauseText(arrow)) : "");
    some(o.waits, wait("waits for", arrow => arrow.from));
    some(o.elisions, wait("needs", arrow => arrow.from));
    some(o.next.filter(arrow => !arrow.elided), wait("waited for by", arrow => arrow.to));
}
