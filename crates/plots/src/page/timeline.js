
"use strict";
(() => {
  const head = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const canvas = $("chart"), stage = $("stage"), tip = $("tip"), context = canvas.getContext("2d");

  // ---- rows, as src/timeline/pack.rs writes them --------------------------------------------------
  const packed = atob(head.rows);
  let at = 0;
  const number = () => {
    let value = 0, factor = 1, byte;
    do {
      byte = packed.charCodeAt(at++);
      value += (byte & 127) * factor; // not shifted: above 2^31 that would wrap
      factor *= 128;
    } while (byte & 128);
    return value;
  };
  const count = head.requests;
  const doubles = () => new Float64Array(count);
  const start = doubles(), ttft = doubles(), spare = doubles(), end = doubles();
  const median = doubles(), p99 = doubles(), largest = doubles();
  const prompt = doubles(), output = doubles(), gaps = doubles(), inexact = doubles();
  const error = new Int32Array(count).fill(-1), first = new Uint32Array(count + 1);
  const NO_TOKEN = 1, FAILED = 2, TTFT_BOUNDED = 4, ITL_BOUNDED = 8;
  const runClass = [], runLength = [];
  const gapsOf = [0, 0, 0];
  let last = 0, span = 0, failed = 0, bounded = 0;
  for (let row = 0; row < count; row++) {
    const zigzag = number();
    last += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
    start[row] = last;
    const flags = number();
    ttft[row] = number();
    if (flags & NO_TOKEN) ttft[row] = NaN;
    if (flags & TTFT_BOUNDED) spare[row] = number();
    prompt[row] = number();
    output[row] = number();
    if (flags & FAILED) { error[row] = number(); failed++; }
    const runs = number();
    if (runs) { median[row] = number(); p99[row] = number(); largest[row] = number(); }
    if (flags & ITL_BOUNDED) inexact[row] = number();
    if (flags & (TTFT_BOUNDED | ITL_BOUNDED)) bounded++;
    end[row] = last + (ttft[row] || 0);
    for (let run = 0; run < runs; run++) {
      const both = number(), length = number(), kind = both % 4, many = (both - kind) / 4;
      gapsOf[kind] += many;
      gaps[row] += many;
      runClass.push(kind);
      runLength.push(length);
      end[row] += length;
    }
    first[row + 1] = runClass.length;
    span = Math.max(span, end[row]);
  }
  if (at !== packed.length) throw new Error("the rows are damaged");
  span = Math.max(span, 1);

  // ---- words --------------------------------------------------------------------------------------
  const grouped = (value) => value.toLocaleString("en");
  const ms = (micros) => {
    const value = micros / 1000;
    if (value >= 10000) return (value / 1000).toFixed(2) + " s";
    return value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1) + " ms";
  };
  const seconds = (micros) => (micros / 1e6).toFixed(3) + " s";
  const short = (value) => String(Math.round(value * 1000) / 1000);
  const [low, high] = head.thresholds_ms.map(short);
  const total = gapsOf[0] + gapsOf[1] + gapsOf[2];
  const classes = ["good", "middle", "bad"];
  const names = [`ITL < ${low} ms`, `${low} ms ≤ ITL < ${high} ms`, `ITL ≥ ${high} ms`];
  const legend = (kind, name, note, sign) => {
    const item = document.createElement("li"), mark = document.createElement("i"), small = document.createElement("small");
    mark.className = kind;
    mark.textContent = sign || "";
    mark.setAttribute("aria-hidden", "true");
    small.textContent = note;
    item.append(mark, name, small);
    $("legend").append(item);
  };
  legend("ttft", "TTFT", "");
  names.forEach((name, kind) => legend(classes[kind], name, total ? (100 * gapsOf[kind] / total).toFixed(1) + " %" : ""));
  if (failed) legend("failed", "failed", grouped(failed), "✕");
  const notes = [`${grouped(count)} requests in ${seconds(span)}; percentages are shares of the ${grouped(total)} gaps.`];
  if (head.coarse) notes.push("Within short stretches gaps are sorted by class, to keep this file small; no figure is affected.");
  if (bounded) notes.push(`${grouped(bounded)} requests have stamps that are known within bounds only; the doubtful part of a TTFT is hatched.`);
  $("note").textContent = notes.join(" ");
  $("find").max = count - 1;

  const facts = (row) => {
    const failure = error[row] < 0 ? [] : [["Failed", head.errors[error[row]]]];
    const token = isNaN(ttft[row]) ? "no token" :
      ms(ttft[row]) + (spare[row] ? `, or up to ${ms(spare[row])} less` : "");
    const list = [
      ["Start", seconds(start[row])], ["End", seconds(end[row])],
      ["Duration", ((end[row] - start[row]) / 1e6).toFixed(3) + " s"],
      ["Prompt tokens", grouped(prompt[row])], ["Output tokens", grouped(output[row])], ["TTFT", token],
    ];
    if (gaps[row]) {
      const mean = (end[row] - start[row] - ttft[row]) / gaps[row];
      list.push(["ITL mean", ms(mean)], ["ITL median", ms(median[row])], ["ITL p99", ms(p99[row])],
        ["ITL max", ms(largest[row])], ["Gaps between tokens", grouped(gaps[row]) + (inexact[row] ? `, ${grouped(inexact[row])} within bounds` : "")]);
    }
    return failure.concat(list);
  };

  // ---- rows: one for each request, or one for each of those that run at the same time -----------------
  const single = { rows: count, rowOf: (request) => request, of: (row, each) => each(row), name: "Request" };
  const slots = () => {
    const order = Array.from(start.keys()).sort((one, two) => start[one] - start[two]);
    const place = new Uint32Array(count), free = [], members = [];
    const busy = []; // a heap of [end, slot]: the first to end is at the front
    const before = (heap, one, two) => heap[one][0] < heap[two][0];
    const push = (heap, item) => {
      let child = heap.push(item) - 1;
      for (let parent; child && before(heap, child, parent = (child - 1) >> 1); child = parent) {
        [heap[child], heap[parent]] = [heap[parent], heap[child]];
      }
    };
    const pop = (heap) => {
      const top = heap[0], end = heap.pop();
      if (heap.length) {
        heap[0] = end;
        for (let parent = 0, child; (child = 2 * parent + 1) < heap.length; parent = child) {
          if (child + 1 < heap.length && before(heap, child + 1, child)) child++;
          if (!before(heap, child, parent)) break;
          [heap[child], heap[parent]] = [heap[parent], heap[child]];
        }
      }
      return top;
    };
    for (const request of order) {
      while (busy.length && busy[0][0] <= start[request]) { const slot = pop(busy)[1]; push(free, [slot, slot]); }
      const slot = free.length ? pop(free)[1] : members.push([]) - 1;
      members[slot].push(request);
      place[request] = slot;
      push(busy, [end[request], slot]);
    }
    return { rows: members.length, rowOf: (request) => place[request], of: (row, each) => members[row].forEach(each), name: "Slot" };
  };
  let layout = single;

  // ---- view ---------------------------------------------------------------------------------------
  const edge = { left: 78, right: 16, top: 8, bottom: 46 };
  const whole = () => ({ x0: 0, x1: span * 1.01, y0: -0.5, y1: Math.max(layout.rows, 1) - 0.5 });
  let view = whole(), width = 0, height = 0, ratio = 1, colours = {}, chosen = -1, pending = false;
  const inner = () => ({ w: Math.max(1, width - edge.left - edge.right), h: Math.max(1, height - edge.top - edge.bottom) });
  const toX = (time) => edge.left + (time - view.x0) / (view.x1 - view.x0) * inner().w;
  const toY = (row) => edge.top + (row - view.y0) / (view.y1 - view.y0) * inner().h;
  const timeAt = (x) => view.x0 + (x - edge.left) / inner().w * (view.x1 - view.x0);
  const rowAt = (y) => view.y0 + (y - edge.top) / inner().h * (view.y1 - view.y0);
  const clamp = (value, from, to) => Math.min(Math.max(value, from), to);
  const keep = () => {
    const all = whole();
    const fit = (from, to, low, high, least) => {
      const size = clamp(to - from, Math.min(least, high - low), high - low);
      from = clamp((from + to - size) / 2, low, high - size);
      return [from, from + size];
    };
    [view.x0, view.x1] = fit(view.x0, view.x1, all.x0, all.x1, 200);
    [view.y0, view.y1] = fit(view.y0, view.y1, all.y0, all.y1, 8);
    if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; draw(); }); }
  };
  const zoom = (factor, x, y, time, rows) => {
    if (time) {
      const centre = timeAt(x);
      view.x0 = centre - (centre - view.x0) * factor;
      view.x1 = centre + (view.x1 - centre) * factor;
    }
    if (rows) {
      const centre = rowAt(y);
      view.y0 = centre - (centre - view.y0) * factor;
      view.y1 = centre + (view.y1 - centre) * factor;
    }
    keep();
  };
  const move = (x, y) => {
    const dx = x / inner().w * (view.x1 - view.x0), dy = y / inner().h * (view.y1 - view.y0);
    view.x0 -= dx; view.x1 -= dx; view.y0 -= dy; view.y1 -= dy;
    keep();
  };

  // ---- drawing ------------------------------------------------------------------------------------
  const steps = (size, wanted) => {
    const raw = size / wanted, power = Math.pow(10, Math.floor(Math.log10(raw)));
    return power * [1, 2, 5, 10].find((nice) => nice * power >= raw * 0.999);
  };
  const axes = () => {
    const { w, h } = inner();
    context.font = "12px system-ui, 'Liberation Sans', 'DejaVu Sans', sans-serif";
    context.lineWidth = 1;
    context.textBaseline = "top";
    context.textAlign = "center";
    const wide = view.x1 - view.x0, [unit, sign] = wide < 2e6 ? [1e3, "ms"] : [1e6, "s"];
    const step = steps(wide / unit, clamp(w / 110, 2, 14)), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let tick = Math.ceil(view.x0 / unit / step) * step; tick <= view.x1 / unit; tick += step) {
      const x = Math.round(toX(tick * unit)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath(); context.moveTo(x, edge.top); context.lineTo(x, edge.top + h + 5); context.stroke();
      context.fillStyle = colours.soft;
      context.fillText(tick.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }), x, edge.top + h + 8);
    }
    context.fillStyle = colours.ink;
    context.fillText(`Time since the first request (${sign})`, edge.left + w / 2, edge.top + h + 27);
    context.textAlign = "right";
    context.textBaseline = "middle";
    const every = Math.max(1, steps(view.y1 - view.y0, clamp(h / 48, 2, 12)));
    for (let row = Math.max(0, Math.ceil(view.y0 / every) * every); row < view.y1 && row < layout.rows; row += every) {
      const y = Math.round(toY(row)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath(); context.moveTo(edge.left - 5, y); context.lineTo(edge.left, y); context.stroke();
      context.fillStyle = colours.soft;
      context.fillText(grouped(row), edge.left - 9, y);
    }
    context.save();
    context.translate(14, edge.top + h / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillStyle = colours.ink;
    context.fillText(layout.name === "Slot" ? "Slot (requests under way at the same time)" : "Request", 0, 0);
    context.restore();
    context.strokeStyle = colours.soft;
    context.strokeRect(edge.left - 0.5, edge.top - 0.5, w + 1, h + 1);
  };
  // Calls back with class (0 TTFT, 1 to 3 gaps), begin and end of each part of a row, as places on the canvas.
  const parts = (row, each) => {
    const scale = inner().w / (view.x1 - view.x0), origin = edge.left - view.x0 * scale;
    let time = start[row];
    if (!isNaN(ttft[row])) {
      each(0, origin + time * scale, origin + (time += ttft[row]) * scale);
    }
    for (let run = first[row]; run < first[row + 1]; run++) {
      each(runClass[run] + 1, origin + time * scale, origin + (time += runLength[run]) * scale);
    }
  };
  const cross = (request, size) => {
    const x = toX(end[request]), y = toY(layout.rowOf(request));
    context.moveTo(x - size, y - size); context.lineTo(x + size, y + size);
    context.moveTo(x - size, y + size); context.lineTo(x + size, y - size);
  };
  // Those that are in sight, and of how many parts they are.
  const visible = (from, to) => {
    let pieces = 0;
    for (let row = from; row < to; row++) {
      layout.of(row, (request) => { if (end[request] >= view.x0 && start[request] <= view.x1) pieces += first[request + 1] - first[request] + 1; });
    }
    return pieces;
  };
  // Each request is a bar.
  const bars = (from, to) => {
    const { w } = inner(), right = edge.left + w, thick = inner().h / (view.y1 - view.y0);
    const bar = thick < 4 ? Math.max(1, thick) : Math.min(thick * 0.72, 30);
    const palette = [colours.ttft, colours.good, colours.middle, colours.bad];
    const failures = [];
    const one = (request, y) => {
      if (end[request] < view.x0 || start[request] > view.x1) return;
      parts(request, (kind, begin, stop) => {
        if (stop < edge.left || begin > right) return;
        begin = Math.max(begin, edge.left);
        context.fillStyle = palette[kind];
        context.fillRect(begin, y, Math.max(Math.min(stop, right) - begin, 0.7), bar);
      });
      if (spare[request] && bar >= 4) {
        const token = start[request] + ttft[request], stop = toX(token), begin = toX(token - Math.min(spare[request], ttft[request]));
        context.strokeStyle = colours.paper;
        context.lineWidth = 1.2;
        context.beginPath();
        for (let x = begin; x < stop; x += 4) { context.moveTo(x, y + bar); context.lineTo(Math.min(x + 3, stop), y); }
        context.stroke();
      }
      if (error[request] >= 0) failures.push(request);
    };
    for (let row = from; row < to; row++) layout.of(row, (request) => one(request, toY(row) - bar / 2));
    context.strokeStyle = colours.failed;
    context.lineWidth = 1.6;
    context.beginPath();
    for (const request of failures) cross(request, clamp(bar / 2, 2.5, 5));
    context.stroke();
  };
  // More than can be drawn one by one: each pixel has the colours of what is under it, by their shares.
  const density = (from, to) => {
    const w = Math.round(inner().w * ratio), h = Math.round(inner().h * ratio);
    const image = context.createImageData(w, h), palette = colours.mixed;
    const part = new Float32Array(4 * (w + 2)), whole = new Float32Array(4 * (w + 2));
    const failures = [], each = (view.y1 - view.y0) / h;
    const add = (kind, begin, stop) => {
      begin = clamp((begin - edge.left) * ratio, 0, w);
      stop = clamp((stop - edge.left) * ratio, 0, w);
      if (stop <= begin) return;
      const a = Math.floor(begin), b = Math.floor(stop), base = kind * (w + 2);
      if (a === b) { part[base + a] += stop - begin; return; }
      part[base + a] += a + 1 - begin;
      part[base + b] += stop - b;
      whole[base + a + 1] += 1;
      whole[base + b] -= 1;
    };
    let row = from, drawn = -1;
    for (let line = 0; line < h; line++) {
      const here = view.y0 + 0.5 + line * each;
      let until = Math.min(to, Math.ceil(here + each));
      if (each < 1) { // several lines for each row, of which the last ones are its margin
        row = Math.floor(here);
        until = row + 1;
        if (row < from || row >= to || (each < 0.25 && here - row > 0.8)) continue;
        if (row === drawn) { image.data.copyWithin(4 * line * w, 4 * (line - 1) * w, 4 * line * w); continue; }
        drawn = row;
      }
      part.fill(0);
      whole.fill(0);
      const rows = until - row;
      for (; row < until; row++) {
        layout.of(row, (request) => {
          if (end[request] < view.x0 || start[request] > view.x1) return;
          parts(request, add);
          if (error[request] >= 0) failures.push(request);
        });
      }
      if (rows <= 0) continue;
      const level = [0, 0, 0, 0];
      for (let x = 0, pixel = 4 * line * w; x < w; x++, pixel += 4) {
        let sum = 0, red = 0, green = 0, blue = 0;
        for (let kind = 0; kind < 4; kind++) {
          level[kind] += whole[kind * (w + 2) + x];
          const share = Math.max(0, level[kind] + part[kind * (w + 2) + x]);
          sum += share;
          red += share * palette[kind][0]; green += share * palette[kind][1]; blue += share * palette[kind][2];
        }
        if (sum < 1e-3) continue;
        image.data[pixel] = red / sum;
        image.data[pixel + 1] = green / sum;
        image.data[pixel + 2] = blue / sum;
        image.data[pixel + 3] = 255 * Math.min(1, 0.15 + 0.85 * Math.sqrt(sum / rows));
      }
    }
    const sheet = new OffscreenCanvas(w, h);
    sheet.getContext("2d").putImageData(image, 0, 0);
    context.drawImage(sheet, edge.left, edge.top, inner().w, inner().h);
    context.fillStyle = colours.failed;
    const dot = Math.max(1, Math.min(4, 0.7 / each));
    for (const request of failures) context.fillRect(toX(end[request]) - dot / 2, toY(layout.rowOf(request)) - dot / 2, dot, dot);
  };
  const draw = () => {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    axes();
    const { w, h } = inner();
    const from = clamp(Math.floor(view.y0), 0, count), to = clamp(Math.ceil(view.y1) + 1, 0, layout.rows);
    context.save();
    context.beginPath();
    context.rect(edge.left, edge.top, w, h);
    context.clip();
    if (visible(from, to) > 40000) density(from, to); else bars(from, to);
    if (chosen >= 0) {
      const thick = clamp(h / (view.y1 - view.y0), 4, 38), y = toY(layout.rowOf(chosen));
      context.strokeStyle = colours.focus;
      context.lineWidth = 2;
      context.strokeRect(toX(start[chosen]) - 3, y - thick / 2, Math.max(6, toX(end[chosen]) - toX(start[chosen]) + 6), thick);
    }
    context.restore();
  };
  const look = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "ink", "soft", "line", "ttft", "good", "middle", "bad", "failed", "focus"]) {
      colours[name] = style.getPropertyValue("--" + name).trim();
    }
    colours.mixed = ["ttft", ...classes].map((name) => [1, 3, 5].map((digit) => parseInt(colours[name].substr(digit, 2), 16)));
    const box = stage.getBoundingClientRect();
    ratio = window.devicePixelRatio || 1;
    width = box.width;
    height = box.height;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    draw();
  };

  // ---- what a person does -------------------------------------------------------------------------
  const pick = (x, y) => {
    if (x < edge.left || x > width - edge.right || y < edge.top || y > height - edge.bottom) return -1;
    const time = timeAt(x), slack = 4 / inner().w * (view.x1 - view.x0), centre = Math.round(rowAt(y));
    // Where several rows share a pixel: the nearest that is under way at this time.
    const reach = Math.ceil((view.y1 - view.y0) / inner().h * 2);
    let found = -1;
    const look = (request) => {
      if (time >= start[request] - slack && time <= end[request] + slack && (found < 0 || time >= start[request])) found = request;
    };
    for (let away = 0; away <= reach && found < 0; away++) {
      for (const row of away ? [centre - away, centre + away] : [centre]) {
        if (row >= 0 && row < layout.rows && found < 0) layout.of(row, look);
      }
    }
    return found;
  };
  const partAt = (row, time) => {
    let moment = start[row] + (ttft[row] || 0);
    if (!isNaN(ttft[row]) && time <= moment) return `TTFT, ${ms(ttft[row])}`;
    for (let run = first[row]; run < first[row + 1]; run++) {
      moment += runLength[run];
      if (time <= moment) return `${names[runClass[run]]}, for ${ms(runLength[run])}`;
    }
    return "";
  };
  const hover = (x, y) => {
    const row = pick(x, y);
    tip.hidden = row < 0;
    if (row < 0) return;
    const title = document.createElement("b"), table = document.createElement("table");
    title.textContent = `Request ${grouped(row)}`;
    const here = partAt(row, timeAt(x));
    for (const [name, value] of (here ? [["Here", here]] : []).concat(facts(row))) {
      const line = table.insertRow();
      line.insertCell().textContent = name;
      line.insertCell().textContent = value;
    }
    tip.replaceChildren(title, table);
    const left = x + 16 + tip.offsetWidth > width ? x - 12 - tip.offsetWidth : x + 16;
    tip.style.left = Math.max(0, left) + "px";
    tip.style.top = clamp(y + 14, 0, Math.max(0, height - tip.offsetHeight)) + "px";
  };
  const choose = (row, show) => {
    chosen = clamp(row, -1, count - 1);
    const title = document.createElement("b");
    if (chosen >= 0) {
      title.textContent = `Request ${grouped(chosen)}: `;
      $("chosen").replaceChildren(title, facts(chosen).map(([name, value]) => `${name} ${value}`).join(" · "));
      if (show) {
        const rows = Math.min(view.y1 - view.y0, Math.max(20, inner().h / 8));
        const time = Math.max((end[chosen] - start[chosen]) * 2, 2000);
        const row = layout.rowOf(chosen);
        if (row < view.y0 || row > view.y1 || rowsThin()) { view.y0 = row - rows / 2; view.y1 = row + rows / 2; }
        if (start[chosen] < view.x0 || end[chosen] > view.x1 || barThin()) {
          const middle = (start[chosen] + end[chosen]) / 2;
          view.x0 = middle - time; view.x1 = middle + time;
        }
      }
    } else {
      $("chosen").replaceChildren();
    }
    keep();
  };
  const rowsThin = () => inner().h / (view.y1 - view.y0) < 3;
  const barThin = () => (end[chosen] - start[chosen]) / (view.x1 - view.x0) < 0.02;
  let grabbed = null, moved = false;
  canvas.addEventListener("pointerdown", (event) => {
    grabbed = [event.offsetX, event.offsetY];
    moved = false;
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("moving");
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grabbed) return hover(event.offsetX, event.offsetY);
    const dx = event.offsetX - grabbed[0], dy = event.offsetY - grabbed[1];
    moved = moved || Math.hypot(dx, dy) > 3;
    if (moved) { tip.hidden = true; grabbed = [event.offsetX, event.offsetY]; move(dx, dy); }
  });
  const release = (event) => {
    if (grabbed && !moved && event.type === "pointerup") choose(pick(event.offsetX, event.offsetY), false);
    grabbed = null;
    canvas.classList.remove("moving");
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    // Some systems turn the wheel sideways while Shift is held.
    const turned = clamp(event.deltaY || event.deltaX, -200, 200);
    zoom(Math.exp(turned * 0.002), event.offsetX, event.offsetY, !event.altKey, !event.shiftKey);
    hover(event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("dblclick", () => { view = whole(); keep(); });
  const middle = (factor) => zoom(factor, edge.left + inner().w / 2, edge.top + inner().h / 2, true, true);
  const keys = {
    "+": () => middle(0.7), "=": () => middle(0.7), "-": () => middle(1 / 0.7), "0": () => { view = whole(); keep(); },
    Home: () => { view = whole(); keep(); }, ArrowLeft: () => move(80, 0), ArrowRight: () => move(-80, 0),
    ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60), Escape: () => choose(-1, false),
    n: () => choose(Math.min(chosen + 1, count - 1), true), p: () => choose(Math.max(chosen - 1, 0), true),
  };
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key] || keys[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  $("in").addEventListener("click", () => middle(0.7));
  $("out").addEventListener("click", () => middle(1 / 0.7));
  $("all").addEventListener("click", () => { view = whole(); keep(); });
  const arrange = () => {
    layout = $("rows").value === "slot" ? slots() : single;
    view = whole();
    keep();
  };
  $("rows").addEventListener("change", arrange);
  $("find").addEventListener("change", () => { if ($("find").value !== "") choose(Math.trunc(Number($("find").value)) || 0, true); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", look);
  new ResizeObserver(look).observe(stage);
  canvas.setAttribute("aria-label", `Timeline of ${grouped(count)} requests over ${seconds(span)}, ${grouped(failed)} failed`);
  if (count > 3000) { // more than there are pixels: by slot there is something to see
    $("rows").value = "slot";
    layout = slots();
    view = whole();
  }
  look();
  // For programs that look at the page: what was read and drawn.
  document.body.dataset.requests = count;
  document.body.dataset.failed = failed;
  document.body.dataset.gaps = total;
})();
