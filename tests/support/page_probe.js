// Opens a page from disk, works on it as a reader would, and prints what it saw as JSON.
// The argument: {"file": ..., "pictures": a folder, "others": files that are only shown}.

const { chromium } = require("playwright-core");
const path = require("node:path");

const { file, pictures, others } = JSON.parse(process.argv[2]);
const seen = { errors: [], requests: [], looks: {}, others: {} };

function watch(page) {
  page.on("console", (message) => seen.errors.push(message.text()));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("dialog", (dialog) => { seen.errors.push(dialog.message()); dialog.dismiss(); });
  page.on("request", (request) => seen.requests.push(request.url()));
}

// The worst contrast of words with their background, and of which words.
function contrast() {
  const rgba = (text) => text.match(/[\d.]+/g).map(Number);
  const over = (top, below) => {
    const alpha = top[3] ?? 1;
    return [0, 1, 2].map((at) => top[at] * alpha + below[at] * (1 - alpha));
  };
  const light = (color) => {
    const [r, g, b] = color.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backdrop = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor));
    return layers.reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  let worst = [Infinity, ""];
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].filter((child) => child.nodeType === 3).map((child) => child.data.trim()).join("");
    if (!text || !node.getClientRects().length || node.disabled) continue;
    const style = getComputedStyle(node);
    const back = backdrop(node);
    const front = over(rgba(node instanceof SVGElement ? style.fill : style.color), back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < worst[0]) worst = [ratio, text.slice(0, 40)];
  }
  return worst;
}

function layout() {
  const leaving = [...document.querySelectorAll("td")].filter((cell) => {
    const box = cell.getBoundingClientRect();
    return [...cell.querySelectorAll("bdi")].some((name) => [...name.getClientRects()].some((rect) => (
      rect.left < box.left - 1 || rect.right > box.right + 1 || rect.top < box.top - 1 || rect.bottom > box.bottom + 1)));
  });
  // Text after a name, in a sentence, stays after it.
  const turned = [...document.querySelectorAll(".legend li")].filter((item) => {
    const rest = document.createRange();
    rest.selectNode(item.lastChild);
    const name = item.querySelector("bdi:last-of-type")?.getBoundingClientRect();
    return name && rest.getBoundingClientRect().left < name.right - 1 && name.height < 30;
  });
  leaving.push(...turned);
  return { page: document.documentElement.scrollWidth, window: innerWidth, leaving: leaving.map((cell) => cell.textContent) };
}

function rowsOf(id) {
  return [...document.querySelectorAll(`#${id} tbody tr`)].map((row) => (
    [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent)));
}

async function colours(page, png) {
  return page.evaluate(async (data) => {
    const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const brush = canvas.getContext("2d");
    brush.drawImage(picture, 0, 0);
    const { data: bytes } = brush.getImageData(0, 0, picture.width, picture.height);
    const found = new Set();
    let sum = 0;
    for (let at = 0; at < bytes.length; at += 4) {
      found.add((bytes[at] << 16) | (bytes[at + 1] << 8) | bytes[at + 2]);
      sum += bytes[at] + bytes[at + 1] + bytes[at + 2];
    }
    return { colours: found.size, brightness: sum / (bytes.length / 4) / 3 };
  }, png.toString("base64"));
}

async function look(browser, blank, name, options, media) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, timezoneId: "Asia/Shanghai", ...options });
  watch(page);
  if (media) await page.emulateMedia({ media });
  await page.goto(`file://${file}`);
  const tall = Math.min(4000, await page.evaluate(() => document.documentElement.scrollHeight));
  const clip = { x: 0, y: 0, width: page.viewportSize().width, height: tall };
  const png = await page.screenshot({ path: path.join(pictures, `${name}.png`), fullPage: true, clip });
  seen.looks[name] = { ...(await colours(blank, png)), contrast: await page.evaluate(contrast), ...(await page.evaluate(layout)) };
  return page;
}

async function work(page) {
  const texts = (selector) => page.locator(selector).allTextContents();
  const head = (name) => page.locator(`#groups-table th button`, { hasText: new RegExp(`^${name}$`) });
  seen.zones = await texts("#zone option");
  seen.hit = await page.evaluate(() => window.hit ?? null);
  seen.scripts = await page.locator("script").count();
  seen.images = await page.locator("img, iframe, object, link").count();
  seen.sorted = {};
  seen.sorted.first = await page.evaluate(rowsOf, "groups-table");
  await head("lag").focus();
  await page.keyboard.press("Enter");
  seen.sorted.lagUp = await page.evaluate(rowsOf, "groups-table");
  seen.sorted.way = await page.locator("#groups-table th[aria-sort]").getAttribute("aria-sort");
  await head("topic").click();
  seen.sorted.topic = await page.evaluate(rowsOf, "groups-table");
  await page.fill("#groups-filter", "PLAIN");
  seen.filtered = { rows: await page.evaluate(rowsOf, "groups-table"), told: await page.locator("#groups [role=status]").textContent() };
  await page.fill("#groups-filter", "");

  const bars = () => page.locator("#time-chart .hit").count();
  const readout = () => page.locator("#time-readout").textContent();
  await page.locator("#time-chart").focus();
  seen.zoom = [[await bars(), await readout()]];
  for (const key of ["ArrowRight", "ArrowRight", "Enter", "ArrowRight", "Escape"]) {
    await page.keyboard.press(key);
    seen.zoom.push([await bars(), await readout()]);
  }
  for (const id of ["time-values", "queue-rows"]) await page.locator(`#${id} > summary`).click();
  await page.locator("#queues-table").waitFor();
  seen.rows = {};
  seen.cut = [await page.locator("#tags tbody tr").count(), await page.locator("#tags p.note").textContent()];
  await page.locator("#tags button", { hasText: "Show all" }).click();
  seen.notes = await texts("#main > p.note");
  for (const id of ["bars", "queues", "tags", "agenda", "orphans", "stores"]) seen.rows[id] = await page.evaluate(rowsOf, `${id}-table`);
  seen.heat = await page.evaluate(rowsOf, "heat-table");
  const names = await page.locator("#which option").evaluateAll((all) => all.map((one) => [one.value, one.textContent]));
  seen.chosen = {};
  for (const [value] of names.slice(1)) {
    await page.selectOption("#which", value);
    seen.chosen[value] = { bars: await page.evaluate(rowsOf, "bars-table"), ages: await page.locator("#age-chart").getAttribute("aria-label") };
  }
  const first = names[1][0];
  await page.selectOption("#which", "");
  await page.locator("#day-values > summary").click();
  const day = () => page.locator("#day-readout").textContent();
  seen.days = { rows: await page.evaluate(rowsOf, "days-table"), read: [], notes: await texts("#days > p.note") };
  await page.locator("#day-chart").focus();
  for (let at = 0; at < seen.days.rows.length; at += 1) {
    await page.keyboard.press("ArrowRight");
    seen.days.read.push(await day());
  }
  seen.days.marks = (await texts("#day-chart text")).filter((word) => word === "?").length;
  await page.selectOption("#measure", "lag");
  await page.locator("#day-chart").focus();
  await page.keyboard.press("PageDown");
  seen.days.lag = await day();
  const heights = () => page.locator("#day-chart rect.s0").evaluateAll((all) => all.map((one) => Number(one.getAttribute("height"))));
  seen.scales = { linear: await heights(), label: await page.locator("label[for=logarithmic]").textContent() };
  await page.locator("#logarithmic").focus();
  await page.keyboard.press("Space");
  seen.scales.logarithmic = await heights();
  seen.scales.words = await texts("#day-chart text");
  seen.scales.legend = await texts("#time .legend li");
  await page.locator("#logarithmic").click();
  seen.scales.back = await heights();
  await page.selectOption("#which", names.map((one) => one[0]).find((name) => name !== first && name));
  await page.locator("#day-chart").focus();
  await page.keyboard.press("ArrowRight");
  seen.days.chosen = await day();
  seen.warnings = await texts("#warnings li");
  seen.tiles = await page.locator("#totals dd").allTextContents();
  await page.selectOption("#zone", "UTC");
  seen.footer = await page.locator("footer").textContent();
}

(async () => {
  const browser = await chromium.launch({ executablePath: process.env.BROWSER, args: ["--no-sandbox", "--headless=shell"] });
  const blank = await browser.newPage();
  const page = await look(browser, blank, "light", { colorScheme: "light" });
  await work(page);
  await look(browser, blank, "dark", { colorScheme: "dark" });
  await look(browser, blank, "phone", { viewport: { width: 390, height: 800 }, colorScheme: "light" });
  await look(browser, blank, "print", { colorScheme: "dark" }, "print");
  // Should a name ever come in as more than text, the page's policy still keeps it from running.
  const shut = await browser.newPage();
  await shut.goto(`file://${file}`);
  seen.smuggled = await shut.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.hit = 1";
    document.body.append(script);
    document.body.insertAdjacentHTML("beforeend", "<button id=trap onclick='window.hit = 1'>x</button>");
    document.getElementById("trap").click();
    return window.hit ?? null;
  });
  for (const other of others) {
    const page = await browser.newPage();
    watch(page);
    await page.goto(`file://${other}`);
    seen.others[path.basename(other, ".html")] = {
      time: await page.locator("#time").innerText(),
      tiles: await page.locator("#totals dd").allTextContents(),
      groups: await page.evaluate(rowsOf, "groups-table"),
      bars: await page.evaluate(rowsOf, "bars-table"),
      depths: await page.evaluate(rowsOf, "depths-table"),
    };
  }
  await browser.close();
  console.log(JSON.stringify(seen));
})();
