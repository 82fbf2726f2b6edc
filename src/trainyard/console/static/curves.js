// The curves of a run. The library uPlot, a script of its own before this one, draws them.

const HEIGHT = 220;
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const shown = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 4 });

/**
 * One chart: points of the attempt that is watched, those of earlier ones behind it, and the bound.
 * `until`: time of the last line, in seconds since the epoch, that is in the figure already.
 */
export class Curve {
  constructor(figure, bound, until) {
    this.figure = figure;
    figure.curve = this;
    this.bound = bound;
    this.points = JSON.parse(figure.dataset.points);
    this.earlier = [];
    this.seen = until;
    this.place = figure.querySelector(".plot");
    this.cursor = figure.querySelector("[data-cursor]");
    this.draw();
    new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT })).observe(this.place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Add a point. Steps that are done again, from a checkpoint, count once: what was behind them is gone. */
  add(step, value, time) {
    if (!Number.isFinite(step) || !Number.isFinite(value) || time < this.seen) return;
    this.seen = time;
    while (this.points.length && this.points.at(-1)[0] >= step) this.points.pop();
    this.points.push([step, value]);
    if (!this.waits) this.waits = requestAnimationFrame(() => this.update());
  }

  /** Lay earlier attempts behind it, each a list of pairs. */
  overlay(attempts) {
    this.earlier = attempts.filter((points) => points.length);
    this.figure.querySelector("[data-earlier]").hidden = !this.earlier.length;
    this.draw();
  }

  data() {
    const tables = [this.points, ...this.earlier].map((points) => [points.map((p) => p[0]), points.map((p) => p[1])]);
    return tables.length > 1 ? uPlot.join(tables) : tables[0];
  }

  update() {
    this.waits = 0;
    if (!this.plot) return this.draw();
    this.plot.setData(this.data());
    this.say();
  }

  draw() {
    if (!this.points.length && !this.earlier.length) return;
    this.plot?.destroy();
    this.place.replaceChildren();
    const axis = { stroke: color("--dim"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, gap: 6, font: `11px ${getComputedStyle(document.body).fontFamily}` };
    const main = { stroke: color("--curve"), width: 1.8, points: { show: this.points.length < 30, size: 5 }, spanGaps: true };
    const behind = { stroke: color("--earlier"), width: 1, points: { show: false }, spanGaps: true };
    this.plot = new uPlot({
      width: this.place.clientWidth, height: HEIGHT, legend: { show: false },
      scales: { x: { time: false }, y: { range: (_, low, high) => this.range(low, high) } },
      padding: [8, 18, 0, 0],
      axes: [{ ...axis, size: 26, values: (_, all) => all.map(shown) }, { ...axis, size: 46, values: (_, all) => all.map(shown) }],
      series: [{}, main, ...this.earlier.map(() => behind)],
      cursor: { y: false, drag: { x: true, y: false } },
      hooks: { draw: [(plot) => this.drawBound(plot)], setCursor: [() => this.say()] },
    }, this.data(), this.place);
    this.say();
  }

  range(low, high) {
    if (low === null) return [0, 1];
    const [least, most] = this.bound === null ? [low, high] : [Math.min(low, this.bound), Math.max(high, this.bound)];
    const rest = (most - least || Math.abs(most) || 1) * 0.06;
    return [least - rest, most + rest];
  }

  drawBound(plot) {
    if (this.bound === null) return;
    const { ctx, bbox } = plot, height = plot.valToPos(this.bound, "y", true);
    ctx.save();
    ctx.strokeStyle = color("--bound");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, height);
    ctx.lineTo(bbox.left + bbox.width, height);
    ctx.stroke();
    ctx.restore();
  }

  /** The point below the cursor, else the last one, in words. */
  say() {
    const index = this.plot?.cursor.idx, at = index ?? null;
    const step = at === null ? null : this.plot.data[0][at];
    const point = this.points.find((each) => each[0] === step) ?? this.points.at(-1);
    if (!point) return;
    this.cursor.textContent = `${shown(point[1])} at step ${point[0].toLocaleString("en-US")}`;
    const title = this.figure.querySelector("figcaption span").textContent;
    this.place.setAttribute("aria-label", `${title}, ${this.points.length} values, last ${this.cursor.textContent}`);
  }
}
