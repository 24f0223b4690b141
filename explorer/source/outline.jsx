// The tree of histories, opened where one has looked: a row per outcome, only those in sight drawn.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { FAILED } from "./plan.js";
import { amount, inkOn, percent } from "./show.js";

// Fingers need more room than a mouse does, and narrow rows two lines.
const ROW = matchMedia("(max-width: 900px)").matches ? 46 : 32, MARGIN = 12, DEEPEST = 14, PRINTED = 300;

export function Outline({ plan, here, go, ramp }) {
  const box = useRef(null);
  const [, redraw] = useState(0);
  const [view, setView] = useState({ top: 0, height: 480 });
  const [cursor, setCursor] = useState(null);
  const [all, setAll] = useState(false);
  const rows = list(plan);
  const at = Math.max(0, rows.findIndex((row) => row === (cursor ?? here)));

  useLayoutEffect(() => { setCursor(null); }, [here]);
  useEffect(() => {
    // What one went to is kept in sight, with what comes before and after it.
    const index = rows.indexOf(here), frame = box.current;
    const below = (index + 1 + (here.open ? plan.children(here).length : 0)) * ROW;
    const room = frame.clientHeight;
    if (index * ROW < frame.scrollTop || below > frame.scrollTop + room) {
      frame.scrollTop = Math.max(0, Math.min((index - 1) * ROW, below - room + ROW));
    }
  }, [here]);
  useEffect(() => {
    const print = () => setAll(true), printed = () => setAll(false);
    addEventListener("beforeprint", print);
    addEventListener("afterprint", printed);
    return () => { removeEventListener("beforeprint", print); removeEventListener("afterprint", printed); };
  }, []);

  const toggle = (history, open) => { history.open = open ?? !history.open; redraw((n) => n + 1); };
  const move = (index) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    setCursor(row);
    const frame = box.current, y = rows.indexOf(row) * ROW;
    if (y < frame.scrollTop) frame.scrollTop = y;
    if (y + ROW > frame.scrollTop + frame.clientHeight) frame.scrollTop = y + ROW - frame.clientHeight;
  };
  const press = (event) => {
    const row = rows[at];
    const keys = {
      ArrowDown: () => move(at + 1),
      ArrowUp: () => move(at - 1),
      Home: () => move(0),
      End: () => move(rows.length - 1),
      ArrowRight: () => (row.place < 0 ? null : row.open ? move(at + 1) : toggle(row, true)),
      ArrowLeft: () => (row.open && row.place >= 0 ? toggle(row, false) : row.parent && move(rows.indexOf(row.parent))),
      Enter: () => go(row),
      " ": () => go(row),
    };
    if (keys[event.key]) { event.preventDefault(); event.stopPropagation(); keys[event.key](); }
  };

  const from = all ? 0 : Math.max(0, Math.floor(view.top / ROW) - MARGIN);
  const to = all ? Math.min(rows.length, PRINTED) : Math.min(rows.length, Math.ceil((view.top + view.height) / ROW) + MARGIN);
  return (
    <>
      <div class="outline-head" aria-hidden="true">
        <span>outcome → action</span><span class="reward">expected reward</span><span>risk ahead</span>
      </div>
      <div class="outline" ref={box} role="tree" tabIndex={0} aria-label="The plan as a tree"
        aria-activedescendant={`row-${at}`} onKeyDown={press}
        onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}>
        <div style={{ height: all ? "auto" : `${rows.length * ROW}px`, position: "relative" }}>
          {rows.slice(from, to).map((history, k) => (
            <Row key={from + k} index={from + k} plan={plan} history={history} ramp={ramp} fixed={!all}
              selected={history === here} active={from + k === at} go={go} toggle={toggle} />
          ))}
        </div>
      </div>
      {all && rows.length > PRINTED && <p class="note">… and {(rows.length - PRINTED).toLocaleString("en")} more rows are open</p>}
    </>
  );
}

function Row({ index, plan, history, ramp, fixed, selected, active, go, toggle }) {
  const risk = plan.riskAhead(history), failed = history.place === FAILED, inside = history.place >= 0;
  // No outcome has no probability, but some have too little for single precision.
  const chance = history.row < 0 ? 1 : plan.chance[history.row];
  const colour = failed ? "#1a1a1a" : inside || risk ? ramp.of(risk) : "#dfe3e6";
  return (
    <div id={`row-${index}`} role="treeitem" aria-level={history.depth + 1} aria-selected={selected}
      aria-expanded={inside ? history.open : undefined} onClick={() => go(history)}
      class={`row${selected ? " selected" : ""}${active ? " active" : ""}`}
      style={{ ...(fixed && { position: "absolute", top: `${index * ROW}px`, left: 0, right: 0 }), height: `${ROW}px`,
        "--depth": Math.min(history.depth, DEEPEST), paddingLeft: "calc(var(--depth) * var(--indent))" }}>
      <button class="toggle" tabIndex={-1} aria-hidden="true" disabled={!inside}
        onClick={(event) => { event.stopPropagation(); toggle(history); }}>{inside ? (history.open ? "▾" : "▸") : ""}</button>
      <span class="bar-box"><i style={{ width: `${Math.max(2, 100 * chance)}%`, background: colour }} /></span>
      <span class="chance">{history.row < 0 ? "" : percent(chance || Number.MIN_VALUE)}</span>
      <span class="words"><span class="label">{history.row < 0 ? "start" : plan.labelOf(history.row)}</span><em> → </em><b class={failed ? "failure" : ""}>{plan.actionOf(history.place)}</b></span>
      <span class="reward">{amount(plan.expected(history))}</span>
      <span class="risk" style={{ background: colour, color: failed ? "#fff" : inkOn(colour) }}>{failed ? "fails" : percent(risk)}</span>
    </div>
  );
}

// Return the rows of what is open, the start first.
function list(plan) {
  const rows = [];
  const add = (history) => {
    rows.push(history);
    if (history.open) for (const child of plan.children(history)) add(child);
  };
  add(plan.start);
  return rows;
}
