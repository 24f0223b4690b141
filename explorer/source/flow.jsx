// The plan from where one is, as blocks: a column per step, whose height is probability (or share of
// the risk) and whose colour is the risk ahead. What is too fine to see takes the colour of what it
// belongs to; a click goes there, and then it is seen.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FAILED, line } from "./plan.js";
import { inkOn, percent } from "./show.js";

const HEAD = 18, HEIGHT = 340, STRIP = 20, LEAST_COLUMN = 114, FINEST = 3, INK = "#1a1a1a", ACCENT = "#0072b2";

export function Flow({ plan, here, go, ramp, sizing }) {
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [tip, setTip] = useState(null);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(canvas.current.parentElement);
    return () => watch.disconnect();
  }, []);
  const { blocks, heads } = useMemo(() => layOut(plan, here, width, sizing), [plan, here, width, sizing]);
  useEffect(() => { if (width) paint(canvas.current, plan, blocks, heads, ramp, width, sizing); }, [blocks]);
  const find = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top - HEAD;
    const hit = blocks.find((b) => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h);
    return hit && { ...hit, left: Math.min(x + 12, width - 230), top: y + HEAD + 14 };
  };
  return (
    <div class="flow" style={{ height: `${HEAD + HEIGHT}px` }}>
      <canvas ref={canvas} role="img" aria-label="The plan as blocks; the same can be read in the tree below"
        onClick={(event) => { const hit = find(event); if (hit) { setTip(null); go(hit.history); } }}
        onMouseMove={(event) => setTip(find(event))} onMouseLeave={() => setTip(null)} />
      {tip && <Tip plan={plan} {...tip} />}
    </div>
  );
}

function Tip({ plan, history, left, top }) {
  const label = history.row < 0 ? "start" : plan.labelOf(history.row);
  return (
    <div class="tip" style={{ left: `${left}px`, top: `${top}px` }}>
      <b>{label}</b> → {plan.actionOf(history.place)}<br />
      probability {percent(history.probability)}<br />
      {history.place === FAILED ? "the mission fails" : `risk ahead ${percent(plan.riskAhead(history))}`}
    </div>
  );
}

function weigh(plan, history, sizing) {
  return history.probability * (sizing === "risk" ? plan.riskAhead(history) : 1);
}

function tellSize(plan, history, sizing) {
  if (sizing !== "risk") return percent(history.probability);
  return `${percent(weigh(plan, history, sizing) / plan.facts.risk)} of risk`;
}

// Return the blocks that are seen, strips for the way here and then a column per step, and their heads.
function layOut(plan, here, width, sizing) {
  if (!width) return { blocks: [], heads: [] };
  const blocks = [];
  const way = line(here).slice(0, -1);
  const strip = Math.min(STRIP, (0.3 * width) / Math.max(1, way.length));
  way.forEach((history, k) => blocks.push({ history, x: k * strip, y: 0, w: strip - 1, h: HEIGHT, strip: true }));
  const left = way.length * strip;
  const deepest = plan.facts.weights.length - 1 - here.depth;
  const columns = Math.max(1, Math.min(deepest + 1, Math.floor((width - left) / LEAST_COLUMN)));
  const w = (width - left) / columns;
  const place = (history, column, y, h) => {
    const block = { history, x: left + column * w, y, w: w - 1, h };
    blocks.push(block);
    if (column + 1 >= columns || history.place < 0) return;
    const children = plan.children(history);
    const total = children.reduce((sum, child) => sum + weigh(plan, child, sizing), 0);
    if (!total) return;
    const scale = h / total;
    if (Math.max(...children.map((child) => weigh(plan, child, sizing))) * scale < FINEST) {
      blocks.push({ history, x: block.x + w, y, w: (columns - column - 1) * w - 1, h, fine: true });
      return;
    }
    let top = y;
    for (const child of children) {
      const height = weigh(plan, child, sizing) * scale;
      if (height >= 0.4) place(child, column + 1, top, height);
      top += height;
    }
  };
  place(here, 0, 0, HEIGHT);
  const heads = Array.from({ length: columns }, (_, k) => ({ x: left + k * w, text: k < deepest ? `step ${here.depth + k + 1}` : "end" }));
  return { blocks, heads };
}

function paint(canvas, plan, blocks, heads, ramp, width, sizing) {
  const ratio = Math.max(2, window.devicePixelRatio || 1);
  canvas.width = width * ratio;
  canvas.height = (HEAD + HEIGHT) * ratio;
  canvas.style.height = `${HEAD + HEIGHT}px`;
  canvas.style.width = `${width}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = "#5c6166";
  pen.font = "11px system-ui, sans-serif";
  for (const { x, text } of heads) pen.fillText(text, x + 6, HEAD - 6);
  pen.translate(0, HEAD);
  for (const block of blocks) {
    const { history, x, y, w, h } = block;
    const failed = history.place === FAILED;
    const colour = failed ? INK : ramp.of(plan.riskAhead(history));
    pen.globalAlpha = block.fine ? 0.55 : block.strip ? 0.5 : 1;
    pen.fillStyle = history.place < 0 && !failed && !plan.riskAhead(history) ? "#e9ecef" : colour;
    pen.fillRect(x, y, w, Math.max(h - (h > 4 ? 1 : 0), 0.4));
    if (h > 3 && !failed) {
      pen.strokeStyle = "#0003";
      pen.lineWidth = 0.6;
      pen.strokeRect(x + 0.3, y + 0.3, w - 0.6, h - 1.3);
    }
    pen.globalAlpha = 1;
    if (block.fine) write(pen, plan, { ...block, text: "too fine to see: click to go there" });
    else if (block.strip) writeStrip(pen, plan, block);
    else write(pen, plan, { ...block, amount: tellSize(plan, history, sizing) }, failed ? "#fff" : inkOn(colour));
  }
  const strips = blocks.filter((block) => block.strip).length;
  const now = blocks[strips];
  if (now && now.history.parent) {
    pen.strokeStyle = ACCENT;
    pen.lineWidth = 3;
    pen.strokeRect(now.x + 1.5, 1.5, now.w - 3, HEIGHT - 4);
  }
}

function write(pen, plan, { history, x, y, w, h, text, fine, amount }, ink = INK) {
  if (h < 11 || (fine && h < 40)) return;
  pen.fillStyle = ink;
  pen.textBaseline = "middle";
  const label = history.row < 0 ? "start" : plan.labelOf(history.row);
  const action = plan.actionOf(history.place);
  const lines = text ? [[text, "italic 11px"]]
    : h >= 46 ? [[label, "12px"], [action, "600 14px"], [amount, "11px"]]
      : h >= 30 ? [[label, "11px"], [action, "600 13px"]]
        : [[label, h < 14 ? "10px" : "11px", ` → ${action}`]];
  const step = 16, top = y + h / 2 - ((lines.length - 1) * step) / 2;
  lines.forEach(([words, font, kept = ""], k) => {
    pen.font = `${font} system-ui, sans-serif`;
    pen.fillText(fit(pen, words, w - 10, kept), x + 6, top + k * step);
  });
}

function writeStrip(pen, plan, { history, x, w, h }) {
  if (w < 12) return;
  pen.save();
  pen.translate(x + w / 2, h - 8);
  pen.rotate(-Math.PI / 2);
  pen.fillStyle = INK;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const label = history.row < 0 ? "start" : plan.labelOf(history.row);
  pen.fillText(fit(pen, label, h - 16, ` → ${plan.actionOf(history.place)}`), 0, 0);
  pen.restore();
}

// Return as much of the words as there is room for, with what is kept after them: what is done counts most.
function fit(pen, words, room, kept = "") {
  if (pen.measureText(words + kept).width <= room) return words + kept;
  if (kept) {
    const left = room - pen.measureText(kept).width;
    return left > 0 ? fit(pen, words, left) + kept : fit(pen, kept.trim(), room);
  }
  let length = Math.floor((words.length * room) / pen.measureText(words).width);
  while (length > 1 && pen.measureText(`${words.slice(0, length)}…`).width > room) length--;
  return length > 1 ? `${words.slice(0, length)}…` : "";
}
