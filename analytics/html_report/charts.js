// The backlog by the time when it was stored, and by age: for one group in a topic, or for all.

const MINUTE = 60000;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 10080, 40320].map((n) => n * MINUTE);
const BARS = 96;
const SERIES = 6;
const HEIGHT = 240;
const EDGE = { left: 48, right: 8, top: 8, bottom: 24 };

const ALL = JSON.stringify([null, null]);

const nameOf = (row) => JSON.stringify([row.group, row.topic]);

function label(name) {
  const [group, topic] = JSON.parse(name);
  return group === null ? ["all groups"] : [called(group), " in ", called(topic)];
}

function sums(rows) {
  const found = new Map();
  for (const row of rows) found.set(nameOf(row), (found.get(nameOf(row)) ?? 0) + Number(row.messages));
  return new Map([...found].sort((a, b) => b[1] - a[1]));
}

// A width of bars that divides hours and days, so that not too many stand side by side.
function stepFor(span, least) {
  for (const step of STEPS) if (step >= least && span / step <= BARS) return step;
  return Math.ceil(span / BARS / STEPS.at(-1)) * STEPS.at(-1);
}

// By time. The arrow keys move over the bars, Enter zooms in, Escape zooms out.
function timeChart(rows, key, least) {
  const known = rows.filter((row) => row[key] !== null);
  const series = [...sums(known).keys()];
  const begin = known.reduce((min, row) => Math.min(min, Number(row[key])), Infinity);
  const end = known.reduce((max, row) => Math.max(max, Number(row[key]) + least), -Infinity);
  const state = { chosen: null, from: begin, to: end, at: null, before: [] };
  const picture = drawn("svg", { id: "time-chart", tabindex: "0", role: "application", keydown: keys,
    "aria-label": "Unread messages by the time when they were stored. Arrow keys walk, Enter looks closer, Escape back." });
  const readout = element("p", { class: "readout", id: "time-readout", role: "status" });
  const legend = element("ul", { class: "legend" });
  const values = element("details", { id: "time-values" }, element("summary", {}, "As a table"), element("div"));
  const closer = button("Look closer", () => zoom());
  const back = button("Back", () => unzoom());
  let bars = [];
  let step = least;

  function button(text, click) {
    return element("button", { type: "button", click }, text);
  }

  // On a logarithmic scale parts that stand on each other would not add up: a bar is one total.
  const isOne = () => state.chosen !== null || scale.logarithmic;

  function colour(name) {
    if (isOne()) return 0;
    const at = series.indexOf(name);
    return at < SERIES ? at : SERIES;
  }

  function collect() {
    step = stepFor(state.to - state.from, least);
    const first = Math.floor(state.from / step) * step;
    bars = Array.from({ length: Math.max(1, Math.ceil((state.to - first) / step)) }, (_, at) => (
      { from: first + at * step, parts: new Array(SERIES + 1).fill(0), messages: 0, bytes: 0 }));
    for (const row of known) {
      const moment = Number(row[key]);
      if (moment < state.from || moment >= state.to) continue;
      if (state.chosen !== null && nameOf(row) !== state.chosen) continue;
      const bar = bars[Math.floor((moment - first) / step)];
      bar.parts[colour(nameOf(row))] += Number(row.messages);
      bar.messages += Number(row.messages);
      bar.bytes += Number(row.bytes);
    }
  }

  function draw() {
    const width = Math.max(280, picture.clientWidth || 900);
    const wide = width - EDGE.left - EDGE.right;
    const high = HEIGHT - EDGE.top - EDGE.bottom;
    const found = countScale(Math.max(...bars.map((bar) => bar.messages)));
    const x = (at) => EDGE.left + (wide * at) / bars.length;
    const y = (share) => EDGE.top + high * (1 - share);
    const shapes = grid(found, width, y, (value) => short(value, 1000));
    const each = Math.ceil(bars.length / Math.max(2, Math.floor(wide / 130)));
    bars.forEach((bar, at) => {
      let below = 0;
      bar.parts.forEach((part, number) => {
        if (!part) return;
        const tall = high * found.at(part);
        shapes.push(drawn("rect", { class: `s${number}`, x: x(at) + 0.5, width: Math.max(1, wide / bars.length - 1),
          y: y(found.at(below)) - tall, height: Math.max(0.75, tall) }));
        below += part;
      });
      if (at % each === 0 && x(at) + 75 < width) shapes.push(drawn("text", { x: x(at), y: HEIGHT - 6 }, time(bar.from, false).slice(5)));
      shapes.push(drawn("rect", { class: "hit", x: x(at), width: wide / bars.length, y: EDGE.top, height: high,
        pointermove: () => pick(at), click: () => { pick(at); zoom(); } }));
    });
    if (state.at !== null) {
      shapes.push(drawn("rect", { class: "cursor", x: x(state.at), width: wide / bars.length, y: EDGE.top, height: high }));
    }
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    picture.replaceChildren(...shapes);
  }

  function pick(at) {
    state.at = Math.min(bars.length - 1, Math.max(0, at));
    const bar = bars[state.at];
    readout.textContent = `${time(bar.from)}, ${duration(step)}: ${many(bar.messages, "message")}, ${short(bar.bytes, 1024)} bytes`;
    closer.disabled = step <= least;
    const cursor = picture.querySelector(".cursor");
    const spot = picture.querySelectorAll(".hit")[state.at];
    const box = cursor ?? picture.appendChild(drawn("rect", { class: "cursor" }));
    for (const name of ["x", "y", "width", "height"]) box.setAttribute(name, spot.getAttribute(name));
  }

  function zoom() {
    if (state.at === null || step <= least) return;
    state.before.push([state.from, state.to]);
    state.from = bars[state.at].from;
    state.to = state.from + step;
    show();
  }

  function unzoom() {
    if (!state.before.length) return;
    [state.from, state.to] = state.before.pop();
    show();
  }

  function keys(event) {
    const ways = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 };
    if (event.key in ways) pick((state.at ?? -1) + ways[event.key]);
    else if (event.key === "Enter") zoom();
    else if (event.key === "Escape") unzoom();
    else return;
    event.preventDefault();
  }

  function show() {
    state.at = null;
    collect();
    draw();
    back.disabled = !state.before.length;
    closer.disabled = true;
    readout.textContent = `${time(state.from)} to ${time(state.to)}; a bar is ${duration(step)}`;
    const used = bars.reduce((all, bar) => all.map((sum, at) => sum + bar.parts[at]), new Array(SERIES + 1).fill(0));
    legend.replaceChildren(...used.flatMap((sum, number) => {
      if (!sum) return [];
      const name = state.chosen ?? (scale.logarithmic ? ALL : series[number]);
      const rest = !isOne() && number === SERIES;
      const words = rest ? [`${many(series.length - SERIES, "other")}`] : label(name);
      const sample = drawn("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" }, drawn("rect", { class: `s${number}`, width: 1, height: 1 }));
      return [element("li", {}, sample, ...words, `: ${count(sum)}`)];
    }));
    values.lastChild.replaceWith(barTable());
  }

  function barTable() {
    const columns = [{ key: "from", title: "from", kind: "time" }, { key: "messages", title: "messages", kind: "count" },
      { key: "bytes", title: "bytes", kind: "size" }];
    return table("bars", "Bars of the chart", columns, bars.filter((bar) => bar.messages));
  }

  function choose(name) {
    Object.assign(state, { chosen: name, from: begin, to: end, before: [] });
    show();
  }

  if (!known.length) return { node: element("div", {}, note("Nothing is unread whose time is known.")), choose: () => {} };
  new ResizeObserver(() => draw()).observe(picture);
  scale.drawings.push(show);
  show();
  const node = element("div", {}, element("div", { class: "tools" }, closer, back), picture, readout, legend, values);
  return { node, choose };
}

// By age: classes of ages, the youngest first, empty ones between them too.
function ageChart(rows, classes) {
  const picture = drawn("svg", { id: "age-chart", role: "img" });

  function choose(name) {
    const found = classes.map(() => 0);
    for (const row of rows) {
      if (name === null || nameOf(row) === name) found[classes.indexOf(row.from_age_ms)] += Number(row.messages);
    }
    const words = classes.map((from, at) => {
      const to = classes[at + 1];
      return to === undefined ? `${duration(from)} and more` : from ? `${duration(from)} to ${duration(to)}` : `up to ${duration(to)}`;
    });
    const most = Math.max(1, ...found);
    const width = Math.min(900, Math.max(280, picture.parentNode?.clientWidth || 900));
    const room = width - 110 - 90;
    const scaled = countScale(most);
    const long = (value) => (room * scaled.at(value)) / scaled.at(most);
    picture.setAttribute("viewBox", `0 0 ${width} ${classes.length * 24}`);
    picture.setAttribute("aria-label", words.map((text, at) => `${text}: ${count(found[at])}`).join(", "));
    picture.replaceChildren(...words.flatMap((text, at) => [
      drawn("text", { x: 104, y: at * 24 + 16, "text-anchor": "end" }, text),
      drawn("rect", { class: "s0", x: 110, y: at * 24 + 4, height: 16, width: found[at] ? Math.max(1, long(found[at])) : 0 }),
      drawn("text", { x: 116 + long(found[at]), y: at * 24 + 16 }, count(found[at])),
    ]));
  }

  choose(null);
  let chosen = null;
  new ResizeObserver(() => choose(chosen)).observe(picture);
  scale.drawings.push(() => choose(chosen));
  return { node: element("div", {}, picture), choose: (name) => choose((chosen = name)) };
}
