// The page from top to bottom.

const NONE = "none";

function tiles() {
  const { totals } = report;
  const change = report.groups.map((row) => row.lag_change).filter((value) => value !== null && value !== undefined);
  const shown = [
    ["oldest unread", totals.oldest_unread_age_ms, "duration"], ["unread messages", totals.lag, "count"],
    ["unread bytes", totals.lag_bytes, "size"], ["status", totals.status, "status"],
    ["groups", totals.groups, "count"], ["topics", totals.topics, "count"], ["queues", totals.queues, "count"],
    ["stores", totals.stores, "count"], ["waiting for a retry", totals.retry, "count"],
    ["dead letters", totals.dlq, "count"], ["deleted unread", totals.lost, "count"],
    ["queues not known", totals.unknown_queues, "count"], ["warnings", totals.warnings, "count"],
  ];
  if (report.page.compared_as_of !== null) {
    const sum = change.length ? change.reduce((all, value) => all + BigInt(value), 0n).toString() : null;
    shown.push([`change since ${time(report.page.compared_as_of)}`, sum, "change"]);
  }
  return element("dl", { class: "tiles", id: "totals" }, ...shown.map(([name, value, kind]) => {
    const made = cell(value, kind);
    const words = name === "warnings" && value ? [element("a", { href: "#warnings" }, ...made.childNodes)] : made.childNodes;
    return element("div", {}, element("dt", {}, name),
      element("dd", { class: made.className, title: made.title || null }, ...words));
  }));
}

const WHERE = [
  { key: "group", title: "group", kind: "words" },
  { key: "topic", title: "topic", kind: "words" },
];
const STATUS = { key: "status", title: "status", kind: "status", help: "its health in one word" };
const LAG = { key: "lag", title: "lag", kind: "count", help: "messages that it has not read" };
const UNREAD = [
  { key: "lag_bytes", title: "bytes", kind: "size", help: "their bytes in the log" },
  { key: "oldest_unread_age_ms", title: "oldest", kind: "duration", help: "age of the oldest unread message" },
];
const RATES = [
  { key: "rate_in", title: "in/s", kind: "rate", help: "messages a second that come in" },
  { key: "rate_out", title: "out/s", kind: "rate", help: "messages a second that it reads" },
  { key: "drain_ms", title: "drained in", kind: "duration", help: "until nothing is unread, at these rates" },
];
const DANGER = [
  { key: "lost", title: "lost", kind: "count", help: "deleted before it was read" },
  { key: "oldest_unread_timestamp", title: "oldest stored", kind: "time", help: "when the oldest unread message was stored" },
  { key: "risk_timestamp", title: "at risk from", kind: "time", help: "when the oldest unread message may be deleted" },
];
const AMOUNTS = [
  { key: "messages", title: "messages", kind: "count" },
  { key: "bytes", title: "bytes", kind: "size" },
];

function groupColumns() {
  const compared = report.page.compared_as_of === null ? [] : [
    { key: "lag_before", title: "lag before", kind: "count", help: "in the report that this is compared with" },
    { key: "lag_change", title: "change", kind: "change", help: "how much lag has grown since" },
  ];
  return [...WHERE, STATUS, LAG, ...compared, ...UNREAD, ...RATES,
    { key: "queues", title: "queues", kind: "count" },
    { key: "retry", title: "retry", kind: "count", help: "the group's messages that wait for a retry, of all topics" },
    { key: "dlq", title: "dlq", kind: "count", help: "the group's dead letters, of all topics" },
    { key: "worst_queue_id", title: "worst queue", kind: "count", help: "the queue with the largest lag" },
    { key: "skew", title: "skew", kind: "rate", help: "the largest lag over the mean of all queues; 1 is even" },
    ...DANGER,
    { key: "unknown_queues", title: "not known", kind: "count", help: "queues of which nothing is known" }];
}

function listed(id, title, columns, rows, sort) {
  return section(id, title, rows.length ? table(id, title, columns, rows, sort) : note(NONE));
}

// A time is unknown where a record cannot be read: those messages are in no bar.
function unplaced(rows, key) {
  const sum = rows.filter((row) => row[key] === null).reduce((all, row) => all + Number(row.messages), 0);
  return sum ? [note(`${many(sum, "message")} of unknown time ${sum === 1 ? "is" : "are"} in no bar.`)] : [];
}

function backlog() {
  const { left_out: left, days: history } = report.page;
  const [rows, key, least] = left.minutes
    ? [report.hours, "hour_timestamp", 60 * MINUTE]
    : [report.minutes, "minute_timestamp", MINUTE];
  const overTime = timeChart(rows, key, least);
  const byAge = ageChart(report.ages, report.page.age_classes_ms);
  const byDay = history?.days.length ? dayChart(history) : null;
  const names = new Set([...sums(report.ages).keys(), ...(history?.groups ?? []).map(nameOf)]);
  const which = element("select", { id: "which", change: () => {
    const name = which.value === "" ? null : which.value;
    overTime.choose(left.hours ? null : name);
    byAge.choose(name);
    byDay?.choose(name);
  } }, element("option", { value: "" }, "all groups"),
    ...[...names].map((name) => element("option", { value: name }, visible(JSON.parse(name).join(" in ")))));
  const told = [];
  if (left.minutes) told.push(note(`${many(left.minutes, "row")} by minute would be too many for a page: hours are shown. -o json and -o parquet have the minutes.`));
  if (left.hours) told.push(note(`${many(left.hours, "row")} by hour would be too many, too: they are summed over all groups.`));
  return [
    section("time", "Backlog by the time when it was stored", ...told,
      element("p", { class: "tools" }, element("label", { for: "which" }, "Show"), which, scaleSwitch()),
      overTime.node, ...unplaced(rows, key)),
    section("ages", "Backlog by age", note("By whole minutes."), byAge.node),
    ...trend(history, byDay),
  ];
}

// The days of kept reports, where the page was made with a folder of them.
function trend(history, chart) {
  if (!history) return [];
  const told = history.warnings.map((text) => note(visible(text)));
  if (history.left_out) told.push(note(`${many(history.left_out, "row")} by day and group would be too many for a page: they are summed over all groups.`));
  return [section("days", "Day by day", ...told, chart?.node ?? note("No report was kept up to this one."))];
}

function depths() {
  const rows = [...new Map(report.groups.map((row) => [row.group, row])).values()]
    .filter((row) => row.retry !== 0 || row.dlq !== 0);
  return listed("depths", "Retries and dead letters", [WHERE[0],
    { key: "retry", title: "wait for a retry", kind: "count" }, { key: "dlq", title: "dead letters", kind: "count" }], rows, "dlq");
}

function warnings() {
  if (!report.warnings.length) return [];
  return [section("warnings", "Warnings", element("div", { class: "warnings" },
    element("ul", {}, ...report.warnings.map((text) => element("li", {}, visible(text))))))];
}

function queueTable() {
  const columns = [...WHERE, { key: "broker", title: "broker", kind: "words" },
    { key: "queue_id", title: "queue", kind: "count" }, { key: "min_offset", title: "min", kind: "count" },
    { key: "committed_offset", title: "committed", kind: "count", help: "the next message that the group will read" },
    { key: "max_offset", title: "max", kind: "count" },
    STATUS, LAG, ...UNREAD, ...RATES, ...DANGER];
  return folded("queue-rows", "All figures of all queues", () => table("queues", "Queues", columns, report.queues, "lag"));
}

// Notes on data that was left out on request.
function limits() {
  const { since, top } = report.page;
  return [
    ...(top === null ? [] : [note(`Of all groups the ${many(top, "largest backlog")} only; totals are those of all.`)]),
    ...(since === null ? [] : [note(`Of minutes and hours only those that end after ${time(since)}.`)]),
  ];
}

function shown() {
  const broker = { key: "broker", title: "broker", kind: "words" };
  return [
    tiles(),
    ...limits(),
    listed("groups", "Groups", groupColumns(), report.groups, "lag"),
    ...warnings(),
    ...backlog(),
    section("queues", "Lag by queue", ...heatMap(report.queues), queueTable()),
    listed("tags", "Backlog by tag", [...WHERE, { key: "tag", title: "tag", kind: "words", none: "no tag" }, ...AMOUNTS], report.tags),
    depths(),
    listed("agenda", "Delayed messages that wait", [broker, { key: "level", title: "delay level", kind: "count" }, AMOUNTS[0]], report.agenda),
    listed("orphans", "Progress in topics that do not exist", [broker, ...WHERE], report.orphans),
    listed("stores", "Stores", [broker, { key: "path", title: "folder", kind: "words" },
      { key: "log_min_offset", title: "log from", kind: "count" }, { key: "log_max_offset", title: "log to", kind: "count" }], report.stores),
    element("footer", {}, `Counted by ${report.engine} in ${count(report.elapsed_ms)} ms. Ages count from ${time(report.as_of)}. `,
      "A dash is unknown: it is in no sum."),
  ];
}

const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
const zones = [...new Set([report.page.zone, own, "UTC"].filter(Boolean))];
const chooser = document.getElementById("zone");
chooser.append(...zones.map((name) => element("option", { value: name }, name)));
chooser.addEventListener("change", () => start(chooser.value));

function start(name) {
  try {
    new Intl.DateTimeFormat("sv-SE", { timeZone: name });
    zone = name;
  } catch {
    zone = own; // a browser need not know every zone
    chooser.value = zone;
  }
  scale.drawings = [];
  document.getElementById("main").replaceChildren(...shown());
}

start(zones[0]);
