// Risk against reward: the bound, the plan, and where one is.
import { scaleLinear } from "d3-scale";
import { area, line as draw } from "d3-shape";
import { line } from "./plan.js";
import { amount, percent } from "./show.js";

const W = 380, H = 250, M = { left: 52, right: 12, top: 12, bottom: 38 };

export function Bound({ plan, here }) {
  const { curve, reward, risk, allowed } = plan.facts;
  const way = line(here).map((step) => [plan.expected(step), plan.totalRisk(step)]);
  const now = way[way.length - 1];
  const top = 1.8 * Math.max(risk, allowed ?? 0) || 0.01;
  const x = scaleLinear([curve[0][0], curve[curve.length - 1][0]], [M.left, W - M.right]);
  const y = scaleLinear([0, top], [H - M.bottom, M.top]).clamp(true);
  const shown = curve.filter(([, delta]) => delta !== null);
  const path = draw((p) => x(p[0]), (p) => y(p[1]));
  const fill = area((p) => x(p[0]), H - M.bottom, (p) => y(p[1]));
  const over = now[1] > top;
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${W} ${H}`} role="img" aria-label={`Here: reward ${amount(now[0])}, risk ${percent(now[1])}`}>
        <path d={fill(shown)} fill="#e3eee3" />
        {y.ticks(4).map((tick) => (
          <g key={tick}><line x1={M.left} x2={W - M.right} y1={y(tick)} y2={y(tick)} stroke="#ddd" />
            <text x={M.left - 6} y={y(tick)} text-anchor="end" dominant-baseline="middle">{percent(tick)}</text></g>
        ))}
        {x.ticks(5).map((tick) => (
          <text key={tick} x={x(tick)} y={H - M.bottom + 16} text-anchor="middle">{tick}</text>
        ))}
        <path d={path(shown)} fill="none" stroke="#1a1a1a" stroke-width="1.6" />
        <line x1={M.left} x2={W - M.right} y1={H - M.bottom} y2={H - M.bottom} stroke="#1a1a1a" />
        <path d={path(way)} fill="none" stroke="#0072b2" stroke-width="1.2" stroke-dasharray="3 3" />
        {way.slice(1, -1).map(([g, r], k) => <circle key={k} cx={x(g)} cy={y(r)} r="2.5" fill="#0072b2" opacity="0.6" />)}
        <circle cx={x(reward)} cy={y(risk)} r="6" fill="#fff" stroke="#1a1a1a" stroke-width="1.8" />
        {over
          ? <path d={`M${x(now[0])} ${M.top - 6}l7 12h-14z`} fill="#0072b2" />
          : <circle cx={x(now[0])} cy={y(now[1])} r="4.5" fill="#0072b2" />}
        <text class="axis" x={(M.left + W - M.right) / 2} y={H - 4} text-anchor="middle">reward expected in all</text>
        <text class="axis" transform={`translate(11 ${(H - M.bottom) / 2}) rotate(-90)`} text-anchor="middle">risk in all</text>
      </svg>
      <figcaption>
        <span><svg width="14" height="14"><circle cx="7" cy="7" r="5" fill="#fff" stroke="#1a1a1a" stroke-width="1.6" /></svg>the plan: {amount(reward)}, {percent(risk)}</span>
        <span><svg width="14" height="14">{over ? <path d="M7 1l6 11h-12z" fill="#0072b2" /> : <circle cx="7" cy="7" r="4.5" fill="#0072b2" />}</svg>here: {amount(now[0])}, {percent(now[1])}{over ? ", above the picture" : ""}</span>
        <span><svg width="18" height="14"><path d="M0 7h18" stroke="#1a1a1a" stroke-width="1.6" /></svg>bound Δ(x) = {plan.facts.bound}</span>
      </figcaption>
      <p class="note">The bound is for the whole plan. A single history may lie above it: it is rare enough.</p>
    </figure>
  );
}
