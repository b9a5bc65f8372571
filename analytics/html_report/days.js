// The days of kept reports: unread messages, their age or their bytes, of all groups or of one.

const MEASURES = {
  oldest_unread_age_ms: { title: "age of the oldest unread message", kind: "duration", scale: durationScale, words: duration, read: duration },
  lag: { title: "unread messages", kind: "count", scale: countScale, words: (value) => short(value, 1000), read: (value) => many(value, "message") },
  lag_bytes: { title: "unread bytes", kind: "size", scale: countScale, words: (value) => short(value, 1000), read: (value) => `${count(value)} bytes` },
};

function dayOf(ms) {
  return new Date(Number(ms)).toISOString().slice(0, 10);
}

// Every day from the first to the last one; null where there is no report of the day.
function everyDay(rows) {
  const found = new Map(rows.map((row) => [Number(row.day_timestamp), row]));
  const days = [...found.keys()];
  const first = Math.min(...days);
  return Array.from({ length: (Math.max(...days) - first) / DAY + 1 }, (_, at) => (
    { from: first + at * DAY, row: found.get(first + at * DAY) ?? null }));
}

function dayChart(history) {
  const days = everyDay(history.days);
  const state = { chosen: null, measure: "oldest_unread_age_ms", at: null, bars: [] };
  const picture = drawn("svg", { id: "day-chart", tabindex: "0", role: "application", keydown: keys,
    "aria-label": "The days of kept reports. Arrow keys walk." });
  const readout = element("p", { class: "readout", id: "day-readout", role: "status" });
  const values = element("details", { id: "day-values" }, element("summary", {}, "As a table"), element("div"));
  const which = element("select", { id: "measure", change: () => { state.measure = which.value; show(); } },
    ...Object.entries(MEASURES).map(([name, { title }]) => element("option", { value: name }, title)));

  function rows() {
    if (state.chosen === null) return days.map((day) => day.row);
    const [group, topic] = JSON.parse(state.chosen);
    const mine = new Map(history.groups.filter((row) => row.group === group && row.topic === topic)
      .map((row) => [Number(row.day_timestamp), row]));
    return days.map((day) => mine.get(day.from) ?? null);
  }

  // A sum that lacks something is told of: queues of which nothing is known.
  function said(row, day) {
    if (row === null) return day.row === null ? "no report" : "not in the report";
    const value = row[state.measure];
    const parts = [value === null ? unknownWord(row) : MEASURES[state.measure].read(value)];
    parts.push(`of ${many(row.stores, "store")}`);
    if (row.unknown_queues) parts.push(`${many(row.unknown_queues, "queue")} not known`);
    return parts.join(", ");
  }

  function unknownWord(row) {
    return state.measure === "oldest_unread_age_ms" && row.lag === 0 ? "nothing unread" : "unknown";
  }

  function draw() {
    const { scale: scaleOf, words } = MEASURES[state.measure];
    const width = Math.max(280, picture.clientWidth || 900);
    const wide = width - EDGE.left - EDGE.right;
    const high = HEIGHT - EDGE.top - EDGE.bottom;
    const each = wide / days.length;
    const found = scaleOf(Math.max(1, ...state.bars.map((row) => Number(row?.[state.measure] ?? 0))));
    const y = (share) => EDGE.top + high * (1 - share);
    const shapes = grid(found, width, y, words);
    const labels = Math.ceil(days.length / Math.max(2, Math.floor(wide / 100)));
    days.forEach((day, at) => {
      const value = state.bars[at]?.[state.measure] ?? null;
      const x = EDGE.left + each * at;
      if (value === null) {
        const nothing = state.bars[at] !== null && unknownWord(state.bars[at]) !== "unknown";
        if (!nothing) shapes.push(drawn("text", { x: x + each / 2, y: y(0) - 3, "text-anchor": "middle" }, each > 8 ? "?" : ""));
      } else if (Number(value) > 0) {
        const tall = Math.max(0.75, high * found.at(Number(value)));
        shapes.push(drawn("rect", { class: "s0", x: x + 0.5, width: Math.max(1, each - 1), y: y(0) - tall, height: tall }));
      }
      if (at % labels === 0 && x + 60 < width) shapes.push(drawn("text", { x, y: HEIGHT - 6 }, dayOf(day.from).slice(5)));
      shapes.push(drawn("rect", { class: "hit", x, width: each, y: EDGE.top, height: high, pointermove: () => pick(at), click: () => pick(at) }));
    });
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    picture.replaceChildren(...shapes);
  }

  function pick(at) {
    state.at = Math.min(days.length - 1, Math.max(0, at));
    readout.textContent = `${dayOf(days[state.at].from)}: ${said(state.bars[state.at], days[state.at])}`;
    const box = picture.querySelector(".cursor") ?? picture.appendChild(drawn("rect", { class: "cursor" }));
    const spot = picture.querySelectorAll(".hit")[state.at];
    for (const name of ["x", "y", "width", "height"]) box.setAttribute(name, spot.getAttribute(name));
  }

  function keys(event) {
    const ways = { ArrowRight: 1, ArrowLeft: -1, PageDown: 7, PageUp: -7 };
    if (!(event.key in ways)) return;
    pick((state.at ?? -1) + ways[event.key]);
    event.preventDefault();
  }

  function show() {
    state.at = null;
    state.bars = rows();
    draw();
    readout.textContent = `${dayOf(days[0].from)} to ${dayOf(days.at(-1).from)}; a bar is the last report of a day (UTC)`;
    const columns = [{ key: "day", title: "day (UTC)", kind: "words" }, { key: "stores", title: "stores", kind: "count" },
      { key: "lag", title: "lag", kind: "count" }, { key: "lag_bytes", title: "bytes", kind: "size" },
      { key: "oldest_unread_age_ms", title: "oldest", kind: "duration" },
      { key: "unknown_queues", title: "not known", kind: "count", help: "queues of which nothing is known" }];
    values.lastChild.replaceWith(table("days", "Days", columns,
      days.map((day, at) => ({ day: dayOf(day.from), ...state.bars[at] }))));
  }

  function choose(name) {
    state.chosen = history.left_out ? null : name;
    show();
  }

  new ResizeObserver(() => draw()).observe(picture);
  scale.drawings.push(show);
  show();
  const node = element("div", {}, element("p", { class: "tools" }, element("label", { for: "measure" }, "Draw"), which),
    picture, readout, values);
  return { node, choose };
}
