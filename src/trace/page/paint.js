/* ---- The picture ---- */
const canvas = byId("canvas"), context = canvas.getContext("2d");
const gutter = 156, ruler = 24;
let log, scale = 1, left = 0, top_ = 0, found = null, hovered = null, kept = null, pointer = null, scheduled = false, theme = {};
let drawn = [];            // the arrows that were painted last, for finding the one under the pointer
const hidden = new Set();  // reasons whose arrows are not shown

const width = () => canvas.clientWidth, height = () => canvas.clientHeight;
const x = t => gutter + (t - left) * scale, timeAt = px => left + (px - gutter) / scale;
const memoryHeight = () => log.peak === 0 ? 36 : Math.min(110, Math.max(52, height() * 0.16));
const runningHeight = () => log.most === 0 ? 36 : Math.min(70, Math.max(36, height() * 0.1));
const lanesTop = () => ruler, lanesBottom = () => height() - memoryHeight() - runningHeight();
const laneHeight = () => Math.min(72, Math.max(30, Math.floor((lanesBottom() - lanesTop()) / Math.max(1, log.lanes.length))));
const barHeight = () => Math.min(34, laneHeight() - 12);
const y = lane => lanesTop() + lane.index * laneHeight() - top_;

function readTheme() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["page", "panel", "ink", "faint", "line", "lane", "bar-light", "bar-ink", "hit", "failed", "running",
        "memory"]) {
        theme[name] = style.getPropertyValue("--" + name).trim();
    }
    takeColors(new Set(log.operations.map(o => o.label)));
    showLegend();
    draw();
}
function draw() {
    if (!scheduled) {
        scheduled = true;
        requestAnimationFrame(() => { scheduled = false; paint(); });
    }
}
function clip(px, py, w, h, body) {
    context.save();
    context.beginPath();
    context.rect(px, py, w, h);
    context.clip();
    body();
    context.restore();
}
function paint() {
    const ratio = window.devicePixelRatio || 1, w = width(), h = height();
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
        canvas.width = Math.round(w * ratio);
        canvas.height = Math.round(h * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, w, h);
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    clip(0, lanesTop(), w, lanesBottom() - lanesTop(), () => {
        paintLanes(w);
        paintGrid(w, lanesTop(), lanesBottom());
        clip(gutter, lanesTop(), w - gutter, lanesBottom() - lanesTop(), () => {
            drawn = visibleArrows();
            paintArrows(drawn.filter(one => !one.mine), false);
            for (const lane of log.lanes) {
                paintBars(lane, w);
            }
            paintTicks(w);
            paintArrows(drawn.filter(one => one.mine), true);
        });
        paintScroll(w);
    });
    paintRuler(w);
    const memoryTop = h - memoryHeight();
    paintCurve(log.running, lanesBottom(), memoryTop, theme.running, log.most, {
        name: "executing", most: log.most ? `${log.most} at once` : "", none: "nothing executed while the log was kept",
        text: n => plural(n, "stream") });
    paintCurve(log.memory, memoryTop, h, theme.memory, log.peak, {
        name: "memory in use", most: log.peak ? "peak " + bytes(log.peak) : "", at: log.peakAt,
        none: "no memory was allocated while the log was kept", text: bytes });
    paintPointer(h);
}
function paintLanes(w) {
    const tall = laneHeight() >= 36;
    for (const lane of log.lanes) {
        const py = y(lane), middle = py + laneHeight() / 2;
        context.fillStyle = lane.index % 2 ? theme.page : theme.lane;
        context.fillRect(0, py, w, laneHeight());
        context.fillStyle = theme.ink;
        context.fillText(shortened(lane.name, gutter - 20), 12, tall ? middle - 7 : middle);
        context.fillStyle = theme.faint;
        if (tall) {
            context.fillText(shortened(laneText(lane), gutter - 20), 12, middle + 9);
        }
        if (!lane.operations.length && lane.id !== "host") {
            context.fillText("no operations", gutter + 10, middle);
        }
    }
}
/* Paints the scroll bar, if not all streams fit into the picture. */
function paintScroll(w) {
    const room = lanesBottom() - lanesTop(), all = log.lanes.length * laneHeight();
    if (all > room) {
        context.fillStyle = theme.faint;
        context.globalAlpha = 0.6;
        context.fillRect(w - 7, lanesTop() + room * top_ / all, 5, room * room / all);
        context.globalAlpha = 1;
    }
}
function laneText(lane) {
    if (lane.id === "host") {
        return "waits, accesses";
    }
    return lane.operations.length && log.span > 0 ? `${lane.device} · ${Math.round(100 * lane.busy / log.span)} % busy` : lane.device || "";
}
function shortened(text, room) {
    if (context.measureText(text).width <= room) {
        return text;
    }
    while (text.length > 1 && context.measureText(text + "…").width > room) {
        text = text.slice(0, -1);
    }
    return text + "…";
}
/* The first operation that may be visible: operations of a stream run one after the other. */
function firstVisible(operations) {
    let low = 0, high = operations.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (operations[middle].end < left) { low = middle + 1; } else { high = middle; }
    }
    return Math.max(0, low - 1);
}
function paintBars(lane, w) {
    const tall = barHeight(), py = y(lane) + (laneHeight() - tall) / 2, operations = lane.operations;
    let painted = -1;  // the last painted column of pixels: operations smaller than a pixel are painted once for each column
    for (let i = firstVisible(operations); i < operations.length; ++i) {
        const o = operations[i], isSmall = (o.end - o.start) * scale < 1.5;
        const from = isSmall ? Math.floor(x(o.start)) : x(o.start), to = isSmall ? from + 1 : x(o.end);
        if (from > w) {
            break;
        }
        const match = !found || found.has(o), isShown = o === hovered || o === kept;
        if (Math.ceil(to) - 1 <= painted && match === !found && !isShown && !o.failed) {
            continue;
        }
        painted = Math.max(painted, Math.ceil(to) - 1);
        const size = Math.max(1, to - from - (to - from > 3 ? 1 : 0));
        context.globalAlpha = match ? 1 : 0.18;
        if (o.ran) {
            context.fillStyle = colorOf(o.label);
            context.fillRect(from, py, size, tall);
        } else {
            context.strokeStyle = o.failed ? theme.failed : theme.faint;
            context.strokeRect(from - 2.5, py + 4.5, 5, tall - 9);
        }
        if (o.failed) {
            context.fillStyle = theme.failed;
            context.fillRect(from, py + tall, Math.max(3, size), 3);
        }
        if (found && match || isShown) {
            context.strokeStyle = isShown ? theme.ink : theme.hit;
            context.lineWidth = isShown ? 2 : 1.5;
            context.strokeRect(from - 0.5, py - 1.5, Math.max(2, size + 1), tall + 3);
            context.lineWidth = 1;
        }
        const start = Math.max(from, gutter), room = Math.min(to, w) - start - 3;
        const text = room > 20 && o.ran ? shortened(o.label, room) : "";
        if (text.length > 3 || text === o.label) {
            context.fillStyle = theme["bar-ink"];
            context.fillText(text, start + 2, py + tall / 2 + 0.5);
        }
    }
    context.globalAlpha = 1;
}
function paintTicks(w) {
    const host = log.lanes.find(lane => lane.id === "host");
    if (!host) {
        return;
    }
    let painted = -1;
    for (const tick of log.ticks) {
        const px = Math.round(x(tick.t)), isShown = tick === hovered || tick === kept;
        if (px >= gutter - 2 && px <= w && (px !== painted || isShown)) {
            context.fillStyle = isShown ? theme.ink : theme.faint;
            context.fillRect(painted = px, y(host) + 8, isShown ? 3 : 2, laneHeight() - 16);
        }
    }
}
/* The arrows to paint. Arrows that look the same are painted once: zoomed out, there are many more arrows than pixels. Arrows of
   the pinned item or of the item under the pointer are `mine`; they are always shown. */
function visibleArrows() {
    const right = width() + 2, shown = kept || hovered, lanes = log.lanes.length, list = [], seen = new Map();
    const clamp = px => Math.min(right, Math.max(gutter - 2, px));
    const middle = log.lanes.map(lane => y(lane) + laneHeight() / 2);
    let count = 0;
    for (const arrow of log.arrows) {
        count += x(arrow.to.start) >= gutter && x(arrow.from.end) <= right ? 1 : 0;
    }
    const grain = count > 1500 ? 6 : 1;  // pixels
    const wanted = { issued: byId("issued").checked, elided: byId("elided").checked };
    for (const arrow of log.arrows) {
        const mine = shown !== null && (arrow === shown || arrow.to === shown || arrow.from === shown);
        if (!mine && (!wanted[arrow.elided ? "elided" : "issued"] || hidden.has(arrow.reason))) {
            continue;
        }
        const x1 = x(arrow.from.end), x2 = x(arrow.to.start);
        if (Math.max(x1, x2) < gutter || Math.min(x1, x2) > right) {
            continue;
        }
        const look = ((Math.round(clamp(x1) / grain) * 10000 + Math.round(clamp(x2) / grain)) * lanes + arrow.from.lane.index) * lanes +
            arrow.to.lane.index;
        const kind = arrow.reason + arrow.elided;
        seen.has(kind) || seen.set(kind, new Set());
        if (mine || !seen.get(kind).has(look)) {
            seen.get(kind).add(look);
            list.push({ arrow, mine, x1, x2, y1: middle[arrow.from.lane.index], y2: middle[arrow.to.lane.index], bend: 0,
                faded: found !== null && !found.has(arrow.from) && !found.has(arrow.to) });
        }
    }
    // Only few arrows are curved: many curves would take too long to paint, and could not be told apart.
    if (list.length < 1500) {
        list.forEach(one => { one.bend = Math.min(40, Math.max(6, Math.abs(one.x2 - one.x1) / 2)); });
    }
    return list;
}
function paintArrows(list, mine) {
    const groups = new Map(), shown = kept || hovered;
    for (const one of list) {
        const key = one.arrow.reason + one.arrow.elided + one.faded + (one.arrow === shown);
        groups.has(key) ? groups.get(key).push(one) : groups.set(key, [one]);
    }
    const dense = Math.min(1, Math.max(0.22, Math.sqrt(120 / (list.length || 1))));
    for (const lines of groups.values()) {
        const { arrow, faded } = lines[0];
        context.strokeStyle = context.fillStyle = reasons[arrow.reason].color;
        context.lineWidth = arrow === shown ? 3.5 : mine ? 2 : 1.2;
        context.globalAlpha = mine ? 1 : (shown || faded ? 0.3 : 0.95) * dense;
        context.setLineDash(arrow.elided && lines[0].bend ? [4, 3] : []);
        context.beginPath();
        for (const { x1, y1, x2, y2, bend } of lines) {
            context.moveTo(x1, y1);
            if (bend) {
                context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
            } else {
                context.lineTo(x2, y2);
            }
        }
        context.stroke();
        context.setLineDash([]);
        context.beginPath();
        for (const { x2, y2, bend } of lines) {
            if (bend) {
                context.moveTo(x2, y2);
                context.lineTo(x2 - 7, y2 - 3.5);
                context.lineTo(x2 - 7, y2 + 3.5);
            }
        }
        context.fill();
    }
    context.globalAlpha = 1;
    context.lineWidth = 1;
}
/* Round times that are about 110 pixels apart. */
function roundTimes(w) {
    const rough = 110 / scale, power = 10 ** Math.floor(Math.log10(rough)), times = [];
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * 0.999);
    for (let i = Math.ceil((timeAt(gutter) - log.begin) / step); x(log.begin + i * step) < w; ++i) {
        times.push(log.begin + i * step);
    }
    return times;
}
function paintGrid(w, from, to) {
    context.fillStyle = theme.line;
    for (const t of roundTimes(w)) {
        context.fillRect(Math.round(x(t)), from, 1, to - from);
    }
}
function paintRuler(w) {
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, w, ruler);
    context.fillStyle = theme.faint;
    for (const t of roundTimes(w)) {
        const text = t === log.begin ? "0" : duration(t - log.begin), px = Math.round(x(t)) + 4;
        if (px + context.measureText(text).width < w) {
            context.fillText(text, px, ruler / 2);
        }
    }
    context.fillStyle = theme.line;
    context.fillRect(0, ruler - 1, w, 1);
    context.fillRect(gutter - 1, 0, 1, height());
}
/* Paints a curve [time, value] below the lanes, with its name and a mark where its highest value is reached. */
function paintCurve(steps, from, to, color, most, words) {
    const w = width(), bottom = to - 5, room = to - from - 14, level = n => bottom - room * n / (most || 1);
    context.fillStyle = theme.panel;
    context.fillRect(0, from, w, to - from);
    context.fillStyle = theme.line;
    context.fillRect(0, from, w, 1);
    context.fillRect(gutter - 1, from, 1, to - from);
    context.fillStyle = theme.ink;
    context.fillText(words.name, 12, (from + to) / 2 - (most ? 8 : 0));
    context.fillStyle = theme.faint;
    context.fillText(words.most, 12, (from + to) / 2 + 8);
    if (!most) {
        context.fillText(words.none, gutter + 10, (from + to) / 2);
        return;
    }
    clip(gutter, from + 1, w - gutter, to - from, () => {
        paintGrid(w, from, to);
        context.fillStyle = color;
        context.globalAlpha = 0.55;
        paintSteps(steps, w, level, bottom);
        context.globalAlpha = 1;
        context.fillRect(gutter, bottom, w - gutter, 1);
        if (words.at !== undefined) {
            const px = x(words.at), text = words.text(most), size = context.measureText(text).width;
            context.fillRect(px - 0.5, level(most) - 3, 2, room + 3);
            context.fillStyle = theme.ink;
            context.fillText(text, px + size + 12 > w ? px - size - 6 : px + 6, level(most) + 7);
        }
        if (pointer && pointer.x > gutter) {
            const t = timeAt(pointer.x), text = words.text(valueAt(steps, t)), size = context.measureText(text).width + 10;
            const px = pointer.x + size + 4 > w ? pointer.x - size - 3 : pointer.x + 4;
            context.fillStyle = theme.panel;
            context.fillRect(px, bottom - 17, size, 16);
            context.fillStyle = theme.ink;
            context.fillText(text, px + 5, bottom - 9);
        }
    });
}
/* Paints one bar for each column of pixels with a change, as high as the highest value there, so that no peak vanishes. */
function paintSteps(steps, w, level, bottom) {
    let last = 0, from = gutter, high = 0;
    const upTo = to => {
        context.fillRect(from, level(high), to - from, bottom - level(high));
        from = to;
        high = last;
    };
    for (const [t, value] of steps) {
        const px = Math.min(w, Math.max(gutter, Math.floor(x(t))));
        if (px > from) {
            upTo(Math.min(px, from + 1));
            if (px > from) {
                upTo(px);
            }
        }
        // Values left of the picture only set where the curve begins.
        high = px > gutter || x(t) >= gutter ? Math.max(high, value) : value;
        last = value;
    }
    const end = Math.min(w, Math.max(gutter, x(log.end)));
    upTo(Math.min(end, from + 1));
    upTo(end);
}
/* Paints a line through the whole picture at the pointer's time, with the time. */
function paintPointer(h) {
    if (!pointer || pointer.x < gutter) {
        return;
    }
    const text = duration(timeAt(pointer.x) - log.begin), size = context.measureText(text).width + 10;
    const px = Math.min(width() - size, Math.max(gutter, pointer.x - size / 2));
    context.fillStyle = theme.faint;
    context.globalAlpha = 0.5;
    context.fillRect(Math.round(pointer.x), ruler, 1, h - ruler);
    context.globalAlpha = 1;
    context.fillStyle = theme.ink;
    context.fillRect(px, 3, size, ruler - 6);
    context.fillStyle = theme.panel;
    context.fillText(text, px + 5, ruler / 2 + 0.5);
}
