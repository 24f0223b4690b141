// The map with the way so far, the next move, and the likeliest way on.
import { scaleLinear } from "d3-scale";
import { useMemo } from "preact/hooks";
import { END, line } from "./plan.js";

const SIDE = 22, MARGIN = 2;

export function Map({ area, plan, here }) {
  const { columns, rows } = area;
  const at = (x, y) => [(x + 0.5) * SIDE, (rows - 0.5 - y) * SIDE];
  const position = (history) => history.place >= 0 && !Number.isNaN(plan.x[history.place])
    ? at(plan.x[history.place], plan.y[history.place]) : null;
  const way = line(here).map(position).filter(Boolean);
  const next = goOn(plan, here).map(position).filter(Boolean);
  const now = way[way.length - 1];
  const [west, south, width, height] = frame(plan, area);
  const points = (list) => list.map((p) => p.join(",")).join(" ");
  return (
    <figure class="map">
      <svg viewBox={[west, south, width, height].map((side) => side * SIDE).join(" ")} role="img" aria-label="The map">
        <clipPath id="frame"><rect x={west * SIDE} y={south * SIDE} width={width * SIDE} height={height * SIDE} /></clipPath>
        <g clip-path="url(#frame)">
        {useMemo(() => <Ground area={area} at={at} points={points} />, [area])}
        <polyline points={points([...(now ? [now] : []), ...next])} class="next" />
        {next.map(([cx, cy], k) => <circle key={k} cx={cx} cy={cy} r="2.6" fill="#d4651a" stroke="#fff" />)}
        <polyline points={points(way)} class="way halo" />
        <polyline points={points(way)} class="way" />
        {way.slice(0, -1).map(([cx, cy], k) => <circle key={k} cx={cx} cy={cy} r="3.2" fill="#0072b2" stroke="#fff" />)}
        {now && <circle cx={now[0]} cy={now[1]} r="7" fill="#0072b2" stroke="#fff" stroke-width="2" />}
        </g>
      </svg>
      <figcaption>
        <span><i style={{ background: "#0072b2" }} />the way here</span>
        <span><i style={{ background: "#d4651a" }} />the likeliest way on</span>
        {area.walls.length > 0 && <span><i style={{ background: "#50565c" }} />obstacle</span>}
        {area.shades.length > 0 && <span><i style={{ background: "#7fb2cf" }} />{area.shade_name}: high</span>}
      </figcaption>
      {area.note && <p class="note">{area.note}</p>}
    </figure>
  );
}

// What does not move.
function Ground({ area, at, points }) {
  const { columns, rows, shades, walls, marks } = area;
  const values = shades.flat();
  const shade = scaleLinear([Math.min(...values), Math.max(...values)], ["#fbfaf4", "#7fb2cf"]);
  const lines = [
    ...Array.from({ length: columns + 1 }, (_, k) => `M${k * SIDE} 0V${rows * SIDE}`),
    ...Array.from({ length: rows + 1 }, (_, k) => `M0 ${k * SIDE}H${columns * SIDE}`),
  ];
  return (
    <>
      <rect width={columns * SIDE} height={rows * SIDE} fill="#fbfaf4" />
      {shades.map((line, y) => line.map((value, x) => (
        <rect key={`${x},${y}`} x={x * SIDE} y={(rows - 1 - y) * SIDE} width={SIDE + 0.5} height={SIDE + 0.5} fill={shade(value)} />
      )))}
      <path d={lines.join("")} stroke={values.length ? "#fff" : "#dcdfe2"} stroke-width="0.8" />
      {walls.map((wall, k) => <polygon key={k} points={points(wall.map(([x, y]) => at(x, y)))} fill="#50565c" />)}
      {marks.map(([x, y, sign], k) => {
        const [cx, cy] = at(x, y);
        return <text key={k} x={cx} y={cy} text-anchor="middle" dominant-baseline="central" class="mark">{sign}</text>;
      })}
    </>
  );
}

// Return the part of the map to show: what lies around where the plan goes.
function frame(plan, { columns, rows }) {
  if (!plan.window) {
    const sides = [[plan.x, columns], [plan.y, rows]].map(([values, count]) => {
      let least = Infinity, most = -Infinity;
      for (const value of values) { if (value < least) least = value; if (value > most) most = value; }
      return [Math.max(0, Math.floor(least) - MARGIN), Math.min(count - 1, Math.ceil(most) + MARGIN)];
    });
    const [[west, east], [south, north]] = sides;
    plan.window = [west, rows - 1 - north, east - west + 1, north - south + 1];
  }
  return plan.window;
}

// Return the likeliest safe histories one after the other, to the end.
function goOn(plan, here) {
  const found = [];
  for (let history = here; history.place >= 0;) {
    let best = -1;
    for (let row = plan.first[history.place]; row < plan.first[history.place + 1]; row++) {
      const goes = plan.child[row] >= 0 || plan.child[row] === END;
      if (goes && (best < 0 || plan.chance[row] > plan.chance[best])) best = row;
    }
    if (best < 0) break;
    history = plan.follow(history, best);
    found.push(history);
  }
  return found;
}
