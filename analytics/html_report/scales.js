// How high a value stands in a chart: linear, or logarithmic. A scale has marks, and gives 0 to 1.

const DAY = 86400000;
const DURATIONS = [1, 10, 60, 600, 3600, 21600, 86400, 864000, 8640000, 86400000].map((seconds) => seconds * 1000);
const LEAST = 0.3; // of a mark's distance: how high the smallest value stands on a logarithmic scale

const scale = { logarithmic: false, drawings: [] };

// Four whole steps that hold the value.
function niceTop(value) {
  const least = Math.max(1, value / 4);
  const power = 10 ** Math.floor(Math.log10(least));
  return 4 * [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least);
}

function linearScale(most, unit) {
  const top = niceTop(most / unit) * unit;
  return { marks: [0, 0.25, 0.5, 0.75, 1].map((share) => share * top), at: (value) => value / top };
}

// A value below the first mark, but for 0, stands as high as the mark.
function logarithmicScale(most, marks) {
  const used = marks.slice(0, Math.max(2, marks.findIndex((mark) => mark >= most) + 1 || marks.length));
  const first = used[0];
  const top = Math.max(used.at(-1), most);
  const span = Math.log10(top / first) + LEAST;
  return { marks: used, at: (value) => (value <= 0 ? 0 : (Math.log10(Math.max(value, first) / first) + LEAST) / span) };
}

function countScale(most) {
  if (!scale.logarithmic) return linearScale(most, 1);
  return logarithmicScale(most, Array.from({ length: 20 }, (_, power) => 10 ** power));
}

function durationScale(most) {
  if (scale.logarithmic) return logarithmicScale(most, DURATIONS);
  const unit = [DAY, 3600000, 60000].find((ms) => most >= 4 * ms) ?? 1000;
  return linearScale(most, unit);
}

// The switch; charts of ``scale.drawings`` are drawn anew.
function scaleSwitch() {
  const box = element("input", { type: "checkbox", id: "logarithmic", change: () => {
    scale.logarithmic = box.checked;
    for (const draw of scale.drawings) draw();
  } });
  box.checked = scale.logarithmic;
  return element("label", { for: "logarithmic" }, box, "Logarithmic scale");
}

// The lines of the marks with their words, from y of a share.
function grid(found, width, y, words) {
  return found.marks.flatMap((value) => [
    drawn("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(found.at(value)), y2: y(found.at(value)) }),
    drawn("text", { x: EDGE.left - 6, y: y(found.at(value)) + 4, "text-anchor": "end" }, words(value)),
  ]);
}
