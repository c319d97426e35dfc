/* ---- What is under the pointer ---- */
const tip = byId("tip");
function hit(px, py) {
    if (py < lanesTop() || py > lanesBottom()) {
        return null;
    }
    const lane = log.lanes[Math.floor((py - lanesTop() + top_) / laneHeight())];
    if (px < gutter) {
        return lane && lane.id !== "host" ? lane : null;
    }
    let best = null, distance = 5;
    const nearest = (item, from, to) => {
        const d = px < from ? from - px : px > to ? px - to : 0;
        if (d < distance) {
            distance = d;
            best = item;
        }
    };
    if (lane && lane.id === "host") {
        log.ticks.forEach(tick => nearest(tick, x(tick.t), x(tick.t)));
        return best;
    }
    if (lane && Math.abs(py - y(lane) - laneHeight() / 2) <= barHeight() / 2 + 2) {
        for (let i = firstVisible(lane.operations); i < lane.operations.length && x(lane.operations[i].start) < px + 6; ++i) {
            nearest(lane.operations[i], x(lane.operations[i].start), x(lane.operations[i].end));
        }
    }
    return best && distance < 2 ? best : arrowAt(px, py) || best;
}
function arrowAt(px, py) {
    let best = null, distance = 5;
    for (const one of drawn) {
        if (px < Math.min(one.x1, one.x2) - one.bend - 5 || px > Math.max(one.x1, one.x2) + one.bend + 5 ||
            py < Math.min(one.y1, one.y2) - 5 || py > Math.max(one.y1, one.y2) + 5) {
            continue;
        }
        const d = distanceTo(one, px, py);
        if (d < distance) {
            distance = d;
            best = one.arrow;
        }
    }
    return best;
}
function distanceTo({ x1, y1, x2, y2, bend }, px, py) {
    const pieces = bend ? 24 : 1;
    let least = Infinity, ax = x1, ay = y1;
    for (let i = 1; i <= pieces; ++i) {
        const s = i / pieces, r = 1 - s, a = r * r * r, b = 3 * r * r * s, c = 3 * r * s * s, d = s * s * s;
        const bx = bend ? a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2 : x2;
        const by = bend ? (a + b) * y1 + (c + d) * y2 : y2;
        const dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
        const along = length ? Math.min(1, Math.max(0, ((px - ax) * dx + (py - ay) * dy) / length)) : 0;
        least = Math.min(least, Math.hypot(px - ax - along * dx, py - ay - along * dy));
        ax = bx;
        ay = by;
    }
    return least;
}
function showTip() {
    const item = hovered && hovered !== kept ? hovered : null;
    tip.style.display = item && pointer ? "block" : "none";
    if (!item || !pointer) {
        return;
    }
    tip.replaceChildren(...describe(item, null));
    const right = pointer.x + 16 + tip.offsetWidth > width(), low = pointer.y + 16 + tip.offsetHeight > height();
    tip.style.left = Math.max(4, right ? pointer.x - 12 - tip.offsetWidth : pointer.x + 16) + "px";
    tip.style.top = Math.max(4, low ? pointer.y - 12 - tip.offsetHeight : pointer.y + 16) + "px";
}
/* Pins an item in the panel; null closes the panel. The address then names the operation, so that users can pass it on. */
function keep(item) {
    kept = item;
    const panel = byId("kept");
    panel.hidden = !item;
    if (item) {
        const close = element("button", "×", { className: "close", title: "Close (Esc)", onclick: () => keep(null) });
        panel.replaceChildren(close, ...describe(item, go));
        panel.scrollTop = 0;
    }
    try {
        history.replaceState(null, "", item && item.epoch ? `#at=${item.lane.id}:${item.epoch}` : "#");
    } catch {
        // Some browsers forbid this for files; the page works without it.
    }
    showTip();
    draw();
}
/* Pins an item and moves it into view if it is not visible. */
function go(item) {
    keep(item);
    const first = item.from ? Math.min(item.from.end, item.to.start) : item.start, last = item.from ? item.to.start : item.end;
    const lane = (item.to || item).lane, room = width() - gutter, middle = (first + last) / 2;
    if (x(middle) < gutter + 20 || x(middle) > width() - 20) {
        left = middle - room / 2 / scale;
    }
    if (y(lane) < lanesTop() || y(lane) + laneHeight() > lanesBottom()) {
        top_ += y(lane) - (lanesTop() + lanesBottom() - laneHeight()) / 2;
    }
    move(0, 0);
}

/* ---- Moving and zooming ---- */
function showSpan(from, to) {
    const room = Math.max(100, width() - gutter - 24);
    scale = room / Math.max(1, to - from);
    left = from - 8 / scale;
    draw();
}
function fit() {
    top_ = 0;
    showSpan(log.begin, log.end);
}
function zoom(factor, px) {
    const t = timeAt(px), most = 50, least = (width() - gutter) / (log.end - log.begin) / 4;
    scale = Math.min(most, Math.max(least, scale * factor));
    left = t - (px - gutter) / scale;
    draw();
}
function move(dx, dy) {
    left -= dx / scale;
    const over = log.lanes.length * laneHeight() - (lanesBottom() - lanesTop());
    top_ = Math.max(0, Math.min(Math.max(0, over), top_ - dy));
    draw();
}
function zoomTo(o) {
    scale = Math.min(50, (width() - gutter) / 8 / Math.max(o.end - o.start, 1));
    left = (o.start + o.end) / 2 - (width() - gutter) / 2 / scale;
    go(o);
}
function step(by) {
    const list = kept && kept.lane ? kept.lane.operations : (log.lanes.find(lane => lane.operations.length) || {}).operations;
    const next = list && list[kept && kept.lane ? list.indexOf(kept) + by : 0];
    if (next) {
        go(next);
    }
}
canvas.addEventListener("wheel", event => {
    event.preventDefault();
    if (event.shiftKey) {
        move(-event.deltaY - event.deltaX, 0);
    } else if (event.offsetX < gutter) {
        move(0, -event.deltaY);
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        move(-event.deltaX, 0);
    } else {
        zoom(Math.exp(-event.deltaY * 0.002), event.offsetX);
    }
}, { passive: false });
let drag = null;
canvas.addEventListener("pointerdown", event => {
    drag = { x: event.offsetX, y: event.offsetY, moved: false };
    canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", event => {
    pointer = { x: event.offsetX, y: event.offsetY };
    if (drag) {
        drag.moved = drag.moved || Math.hypot(pointer.x - drag.x, pointer.y - drag.y) > 3;
        canvas.classList.toggle("dragging", drag.moved);
        if (drag.moved) {
            move(pointer.x - drag.x, pointer.y - drag.y);
            Object.assign(drag, pointer);
        }
        return;
    }
    hovered = hit(pointer.x, pointer.y);
    canvas.classList.toggle("pointing", hovered !== null);
    showTip();
    draw();
});
canvas.addEventListener("pointerup", event => {
    canvas.classList.remove("dragging");
    if (drag && !drag.moved) {
        const item = hit(event.offsetX, event.offsetY);
        keep(item === kept ? null : item);
    }
    drag = null;
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointerleave", () => {
    hovered = pointer = null;
    showTip();
    draw();
});
canvas.addEventListener("dblclick", event => {
    const item = hit(event.offsetX, event.offsetY);
    item && item.epoch ? zoomTo(item) : fit();
});
byId("fit").addEventListener("click", fit);
byId("help").addEventListener("click", () => byId("keys").showModal());
byId("issued").addEventListener("change", draw);
byId("elided").addEventListener("change", draw);

/* ---- Search ---- */
let next = -1;
function search(text) {
    const words = text.trim().toLowerCase().split(/\s+/).filter(word => word);
    const textOf = o => `${o.label} ${o.file}:${o.line} ${o.function} ${o.kind} ${o.lane.name} ${o.failed ? "failed" : ""}`.toLowerCase();
    found = words.length ? new Set(log.operations.filter(o => {
        const all = textOf(o);
        return words.every(word => all.includes(word));
    })) : null;
    next = -1;
    byId("search").value = text;
    byId("matches").textContent = found ? (found.size ? plural(found.size, "match").replace("matchs", "matches") : "no match") : "";
    draw();
}
byId("search").addEventListener("input", event => search(event.target.value));
byId("search").addEventListener("keydown", event => {
    if (event.key === "Enter" && found && found.size) {
        const all = [...found].sort((a, b) => a.start - b.start);
        next = (next + (event.shiftKey ? (next < 0 ? 0 : all.length - 1) : 1)) % all.length;
        byId("matches").textContent = `${next + 1} of ${all.length}`;
        zoomTo(all[next]);
    } else if (event.key === "Escape") {
        search("");
        canvas.focus();
    }
});

/* ---- Keys, light and dark, files ---- */
function toggle(id) {
    byId(id).checked = !byId(id).checked;
    draw();
}
function setTheme(name) {
    document.documentElement.dataset.theme = name;
    readTheme();
}
const otherTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
byId("theme").addEventListener("click", otherTheme);
window.addEventListener("keydown", event => {
    if (event.target === byId("search") || event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) {
        return;
    }
    const middle = gutter + (width() - gutter) / 2;
    const act = { "/": () => { event.preventDefault(); byId("search").focus(); }, "0": fit, "+": () => zoom(1.5, middle),
        "=": () => zoom(1.5, middle), "-": () => zoom(1 / 1.5, middle), ArrowLeft: () => move(80, 0), ArrowRight: () => move(-80, 0),
        ArrowUp: () => move(0, laneHeight()), ArrowDown: () => move(0, -laneHeight()), "[": () => step(-1), "]": () => step(1),
        w: () => toggle("issued"), e: () => toggle("elided"), t: otherTheme, "?": () => byId("keys").showModal(),
        Escape: () => keep(null) }[event.key];
    if (act) {
        act();
    }
});
new ResizeObserver(draw).observe(canvas);
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
window.addEventListener("dragover", event => event.preventDefault());
window.addEventListener("drop", event => {
    event.preventDefault();
    const file = event.dataTransfer.files[0];
    if (file) {
        file.text().then(show).catch(error => say(file.name + " is no evidence log: " + error.message));
    }
});

/* ---- Start ---- */
function say(text) {
    byId("empty").style.display = text ? "grid" : "none";
    byId("empty").textContent = text;
}
function showNumbers() {
    const numbers = [["operations", log.operations.length], ["streams", log.lanes.filter(l => l.id !== "host").length],
        ["at once", log.most], ["waits", log.issued], ["elided", log.elidedCount],
        ["span", Number.isFinite(log.span) ? duration(log.span) : "no"]];
    if (log.peak) {
        numbers.push(["peak memory", bytes(log.peak)]);
    }
    const bad = [["failed", log.failed], ["records lost", log.lost]].filter(([, n]) => n);
    byId("numbers").replaceChildren(...[...numbers, ...bad].map(([name, value]) => {
        const one = element("span", "", { className: bad.some(([other]) => other === name) ? "bad" : "" });
        one.append(element("b", value), " " + name);
        return one;
    }));
}
/* Shows what colours and lines mean. A click on a label searches for it; a click on a reason hides or shows its arrows. */
function showLegend() {
    const counts = new Map(), used = new Map();
    log.operations.forEach(o => counts.set(o.label, (counts.get(o.label) || 0) + 1));
    log.arrows.forEach(arrow => used.set(arrow.reason, (used.get(arrow.reason) || 0) + 1));
    const entry = (name, mark, style, text, title) => {
        const one = element(name, "", { title }), sign = element("i", "", { className: mark });
        Object.assign(sign.style, style);
        one.append(sign, text);
        return one;
    };
    const labels = [...counts].sort((a, b) => b[1] - a[1]), most = 8;
    const all = labels.slice(0, most).map(([label, count]) => {
        const one = entry("button", "box", { background: colorOf(label) }, label, `${count} times; click to search`);
        one.addEventListener("click", () => search(byId("search").value === label ? "" : label));
        return one;
    });
    if (labels.length > most) {
        all.push(element("span", `and ${labels.length - most} more`));
    }
    for (const [name, reason] of Object.entries(reasons).filter(([name]) => used.has(name))) {
        const one = entry("button", "", { color: reason.color }, reason.text, `${plural(used.get(name), "arrow")}; click to hide or show`);
        one.setAttribute("aria-pressed", !hidden.has(name));
        one.addEventListener("click", () => {
            hidden.delete(name) || hidden.add(name);
            one.setAttribute("aria-pressed", !hidden.has(name));
            draw();
        });
        all.push(one);
    }
    if (log.elidedCount) {
        all.push(entry("span", "dashed", {}, "elided: needed, not issued", "switch them on above"));
    }
    if (log.operations.some(o => !o.ran)) {
        all.push(entry("span", "hollow", {}, "did not run", ""));
    }
    if (log.failed) {
        all.push(entry("span", "", { color: theme.failed }, "failed", ""));
    }
    if (log.simulated) {
        all.push(element("span", "simulated time", { title: "What the host did, and memory, stand at the device's time." }));
    }
    if (!all.length) {
        all.push(element("span", "Nothing to explain: the log holds no operations."));
    }
    byId("legend").replaceChildren(...all);
}
/* Applies the settings in the address: #at=STREAM:EPOCH, from=NS and to=NS, search=TEXT, theme=dark, elided. */
function readAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.has("theme")) {
        setTheme(wanted.get("theme"));
    }
    byId("elided").checked = wanted.has("elided");
    search(wanted.get("search") || "");
    const one = log.byMoment.get(wanted.get("at"));
    if (one) {
        keep(one);
    }
    requestAnimationFrame(() => {
        if (wanted.has("from") && wanted.has("to")) {
            showSpan(log.begin + Number(wanted.get("from")), log.begin + Number(wanted.get("to")));
        } else {
            one ? zoomTo(one) : fit();
        }
    });
}
function show(text) {
    log = readLog(text);
    found = hovered = null;
    keep(null);
    say(log.operations.length ? "" : "No operation was enqueued while the log was kept.");
    readTheme();
    showNumbers();
    search("");
    fit();
}
document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
const asked = location.hash;
try {
    show(byId("log").textContent);
    history.replaceState(null, "", asked || "#");
    readAddress();
} catch (error) {
    say("This page cannot show its log: " + error.message);
}
