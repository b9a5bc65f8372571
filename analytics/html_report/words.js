// Elements, and values as words. Names come into the page as text only: there is no innerHTML.

const SVG = "http://www.w3.org/2000/svg";
const report = JSON.parse(document.getElementById("report").textContent);
let zone;

function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== null) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// A name given by a user: whatever direction its letters have, the text around it keeps its own.
function called(text) {
  return element("bdi", {}, text);
}

// Names within a sentence, and where only text is possible: direction marks are shown instead.
function visible(text) {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const NUMBERS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });

// Whole numbers that JavaScript cannot hold come as text.
function count(value) {
  return NUMBERS.format(typeof value === "number" ? value : BigInt(value));
}

const SIZES = ["", "K", "M", "G", "T", "P", "E"];

function short(value, by) {
  let number = Number(value);
  let power = 0;
  while (Math.abs(number) >= by && power < SIZES.length - 1) {
    number /= by;
    power += 1;
  }
  const digits = power === 0 || Math.abs(number) >= 10 ? 0 : 1;
  return number.toFixed(digits) + SIZES[power];
}

function duration(ms) {
  let left = Math.floor(Number(ms) / 1000);
  if (left < 1) return `${ms}ms`;
  const parts = [];
  for (const [name, seconds] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    if (left >= seconds) parts.push(Math.floor(left / seconds) + name);
    left %= seconds;
  }
  return parts.slice(0, 2).join(" ");
}

const clocks = new Map(); // making one takes longer than all its uses

function time(ms, seconds = true) {
  const timeStyle = seconds ? "medium" : "short";
  const name = `${zone} ${timeStyle}`;
  if (!clocks.has(name)) clocks.set(name, new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle, timeZone: zone }));
  try {
    return clocks.get(name).format(Number(ms));
  } catch {
    return `${ms} ms`; // out of a calendar's range
  }
}

// How a value of a kind is shown, and its full form where that is shortened.
const SHOWN = {
  count: (value) => [count(value), null],
  change: (value) => [(Number(value) > 0 ? "+" : "") + count(value), null],
  size: (value) => [short(value, 1024), `${count(value)} bytes`],
  rate: (value) => [count(value), `${value} messages a second`],
  duration: (value) => [duration(value), `${count(value)} ms`],
  time: (value) => [time(value), `${value} ms since 1970`],
};

function cell(value, kind, none) {
  if (value === null || value === undefined) {
    if (!none) return element("td", { class: kind === "words" ? "words none" : null, title: "unknown" }, "-");
    return element("td", { class: "words none" }, none);
  }
  if (kind === "words") return element("td", { class: "words" }, called(value));
  if (kind === "status") return element("td", { class: "words short" }, element("span", { class: value }, value));
  const [text, title] = SHOWN[kind](value);
  const tone = kind === "change" && Number(value) ? (Number(value) > 0 ? "up" : "down") : null;
  return element("td", { title, class: tone, "data-value": value }, text);
}

function many(number, what) {
  return `${count(number)} ${what}${number === 1 ? "" : "s"}`;
}

function section(id, title, ...children) {
  return element("section", { id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, title), ...children);
}

function note(...text) {
  return element("p", { class: "note" }, ...text);
}
