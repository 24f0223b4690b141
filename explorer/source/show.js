// Numbers and colours as people read them.
import { scaleThreshold } from "d3-scale";

export function percent(p) {
  if (p === 0) return "0\u00a0%";
  if (p < 1e-5) return "<\u00a00.001\u00a0%";
  return `${Number((100 * p).toPrecision(3))}\u00a0%`;
}

export function amount(x) {
  return Math.abs(x) >= 1000 ? x.toFixed(0) : Math.abs(x) >= 10 ? x.toFixed(2) : x.toFixed(3);
}

// From pale to dark, so that it is read in grey and by the colour-blind as well.
const RAMP = ["#f3f1ea", "#fbdd94", "#fcc55e", "#f2992c", "#d4651a", "#a03d0b", "#561d05"];
const NICE = [1, 3];

// Classes of risk around the risk of the whole plan, with round limits.
export function makeRamp(risk) {
  const limits = [];
  for (let power = -9; power <= 0; power++) for (const k of NICE) limits.push(k * 10 ** power);
  let middle = limits.findIndex((limit) => limit > risk);
  if (middle < 0) middle = limits.length;
  const from = Math.max(0, Math.min(middle - 4, limits.length - RAMP.length + 1));
  const chosen = limits.slice(from, from + RAMP.length - 1).filter((limit) => limit < 1);
  return { limits: chosen, of: scaleThreshold(chosen, RAMP), colours: RAMP.slice(0, chosen.length + 1) };
}

export function inkOn(colour) {
  return RAMP.indexOf(colour) >= 5 ? "#fff" : "#1a1a1a";
}
