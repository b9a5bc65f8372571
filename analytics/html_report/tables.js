// Tables that sort and filter.

// Unknown comes last, whichever way the rest is sorted.
function ordered(rows, column, descending) {
  const isKnown = (row) => row[column.key] !== null && row[column.key] !== undefined;
  const known = rows.filter(isKnown);
  const unknown = rows.filter((row) => !isKnown(row));
  const words = column.kind === "words" || column.kind === "status";
  known.sort((one, other) => {
    const [a, b] = [one[column.key], other[column.key]];
    const order = words ? (a < b ? -1 : a > b ? 1 : 0) : Number(a) - Number(b);
    return descending ? -order : order;
  });
  return [...known, ...unknown];
}

function matches(row, columns, words) {
  const text = columns
    .filter((column) => column.kind === "words" || column.kind === "status")
    .map((column) => row[column.key] ?? column.none ?? "")
    .join("\n")
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

// Rows of a table that a browser makes at once; sorting and filtering use all of them.
const AT_ONCE = 1000;

// columns: key, title, kind, help (what it means), none (what stands for null).
function table(id, caption, columns, rows, sort) {
  const state = { sort: null, descending: false, words: [], most: AT_ONCE };
  const body = element("tbody");
  const rest = element("p", { class: "note" });
  const told = element("span", { role: "status", class: "soft" });
  const heads = columns.map((column) => {
    const look = { words: "words", status: "words short" }[column.kind] ?? null;
    const button = element("button", { type: "button", title: column.help ?? null, click: () => by(column) }, column.title);
    return element("th", { scope: "col", class: look }, button);
  });

  function by(column, descending) {
    const words = column.kind === "words" || column.kind === "status";
    state.descending = descending ?? (state.sort === column ? !state.descending : !words);
    state.sort = column;
    show();
  }

  function show() {
    let shown = rows.filter((row) => matches(row, columns, state.words));
    const number = shown.length;
    if (state.sort) shown = ordered(shown, state.sort, state.descending);
    shown = shown.slice(0, state.most);
    rest.replaceChildren(...(shown.length < number ? [
      `The first ${count(shown.length)} of ${many(number, "row")}. `,
      element("button", { type: "button", click: () => { state.most = Infinity; show(); } }, "Show all"),
    ] : []));
    columns.forEach((column, index) => {
      const way = state.descending ? "descending" : "ascending";
      if (column === state.sort) heads[index].setAttribute("aria-sort", way);
      else heads[index].removeAttribute("aria-sort");
    });
    body.replaceChildren(...shown.map((row) => element("tr", {},
      ...columns.map((column) => cell(row[column.key], column.kind, column.none)))));
    told.textContent = number === rows.length ? many(number, "row") : `${count(number)} of ${many(rows.length, "row")}`;
  }

  const filter = element("input", {
    type: "search", id: `${id}-filter`, autocomplete: "off", placeholder: "names",
    input: (event) => {
      state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      show();
    },
  });
  if (sort) by(columns.find((column) => column.key === sort), true);
  else show();
  return element("div", { class: "table" },
    element("div", { class: "tools" }, ...(columns.some((column) => column.kind === "words")
      ? [element("label", { for: `${id}-filter` }, "Filter"), filter] : []), told),
    element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
      element("table", { id: `${id}-table` },
        element("caption", { hidden: "" }, caption),
        element("thead", {}, element("tr", {}, ...heads)), body)), rest);
}

// Parts that are made when the reader opens them: pages of large reports stay quick.
function folded(id, title, make) {
  let made = false;
  const place = element("details", {
    id,
    toggle: () => {
      if (place.open && !made) {
        made = true;
        place.append(make());
      }
    },
  }, element("summary", {}, title));
  return place;
}

const MANY_CELLS = 5000;

// The distribution of a group's lag over its queues; a shade is a part of the largest lag of that
// row.
function heatMap(queues) {
  const lines = new Map();
  for (const row of queues) {
    const key = JSON.stringify([row.group, row.topic, row.broker]);
    if (!lines.has(key)) lines.set(key, []);
    lines.get(key).push(row);
  }
  const all = [...lines.values()];
  const some = all.filter((line) => line.some((row) => row.lag === null || Number(row.lag) > 0));
  const ids = [...new Set(some.flat().map((row) => row.queue_id))].sort((a, b) => a - b);
  const parts = [];
  if (some.length) {
    const make = () => element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Lag by queue" },
      element("table", { class: "heat", id: "heat-table" },
        element("thead", {}, element("tr", {},
          ...["group", "topic", "broker"].map((name) => element("th", { scope: "col", class: "words" }, name)),
          ...ids.map((id) => element("th", { scope: "col", title: `queue ${id}` }, String(id))))),
        element("tbody", {}, ...some.map((line) => heatRow(line, ids)))));
    const cells = some.length * ids.length;
    parts.push(cells > MANY_CELLS ? folded("heat-all", `${count(cells)} cells`, make) : make());
  }
  if (some.length < all.length) {
    parts.push(note(`Not drawn: ${many(all.length - some.length, "line")} without anything unread.`));
  }
  return parts;
}

function heatRow(line, ids) {
  const most = Math.max(1, ...line.map((row) => Number(row.lag ?? 0)));
  const byId = new Map(line.map((row) => [row.queue_id, row]));
  const { group, topic, broker } = line[0];
  return element("tr", {},
    ...[group, topic, broker].map((name) => cell(name, "words")),
    ...ids.map((id) => {
      const row = byId.get(id);
      if (!row) return element("td", { title: `no queue ${id}` });
      if (row.lag === null) return element("td", { title: `queue ${id}: unknown` }, "-");
      const level = Math.ceil((Number(row.lag) / most) * 5);
      return element("td", { class: `h${level}`, title: `queue ${id}: ${count(row.lag)} messages, ${row.status}` }, short(row.lag, 1000));
    }));
}
