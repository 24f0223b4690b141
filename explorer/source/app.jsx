// The page: which plan is open, where in it one is, and the parts that show it.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Bound } from "./bound.jsx";
import { Flow } from "./flow.jsx";
import { Here } from "./here.jsx";
import { Map } from "./map.jsx";
import { Others } from "./others.jsx";
import { Outline } from "./outline.jsx";
import { line } from "./plan.js";
import { Search } from "./search.jsx";
import { makeRamp, percent } from "./show.js";
import { Spending } from "./spending.jsx";

export function App({ facts, first, open }) {
  const [plan, setPlan] = useState(first);
  const [here, setHere] = useState(first.start);
  const [sizing, setSizing] = useState("probability");
  const [plans, setPlans] = useState([first]);
  const search = useRef(null);
  const number = facts.plans.indexOf(plan.facts);
  const ramp = useMemo(() => makeRamp(facts.plans[0].risk), []);

  const go = useCallback((history) => {
    for (const step of line(history)) step.open = true;
    setHere(history);
  }, []);
  const jump = useCallback((place) => go(plan.reachPlace(place)), [plan]);
  // What lies further down the page goes to where it is seen.
  const show = () => document.getElementById("explorer").scrollIntoView({ behavior: "smooth", block: "start" });
  const visit = (history) => { setPlan(first); go(history); show(); };
  const change = async (wanted) => {
    const next = await open(wanted);
    const like = next.reachLike(plan, here);
    setPlan(next);
    for (const step of line(like)) step.open = true;
    setHere(like);
  };

  // The other plans are small: what they do where one is stands there.
  useEffect(() => { Promise.all(facts.plans.map((_, k) => open(k))).then(setPlans); }, []);

  // The answers above are plain HTML, about the first plan.
  useEffect(() => {
    const jumpThere = (event) => {
      const button = event.target.closest("[data-place]");
      if (!button) return;
      visit(first.reachPlace(Number(button.dataset.place)));
    };
    const answers = document.querySelector(".answers");
    answers.addEventListener("click", jumpThere);
    return () => answers.removeEventListener("click", jumpThere);
  }, []);

  // Before the next key is pressed, not after the next frame.
  useLayoutEffect(() => {
    const press = (event) => {
      if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
      const back = () => here.parent && go(here.parent);
      const keys = {
        "/": () => search.current?.focus(),
        r: () => jump(plan.spending.kinds[0]?.place ?? 0),
        s: () => go(plan.start),
        Backspace: back,
      };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [plan, here]);

  const spending = useMemo(
    () => <Spending plan={plan} facts={facts} jump={(place) => { jump(place); show(); }} main={number === 0} />, [plan],
  );
  // A map makes the right side long enough without them.
  const others = (
    <section class="panel other"><h2>With other allowed risk</h2>
      <Others facts={facts} number={number} change={(k) => { change(k); show(); }} />
    </section>
  );
  return (
    <>
      <nav class="bar" aria-label="Where to go">
        <button onClick={() => go(plan.start)} title="s">⟲ Start</button>
        <button onClick={() => here.parent && go(here.parent)} disabled={!here.parent} title="Backspace">← Back</button>
        <Search plan={plan} jump={jump} box={search} />
        {facts.plans.length > 1 && (
          <label class="pick">Shown:{" "}
            <select value={number} onChange={(event) => change(Number(event.target.value))}>
              {facts.plans.map((one, k) => (
                <option value={k} key={k}>{one.name} ({percent(one.allowed ?? 0)} allowed)</option>
              ))}
            </select>
          </label>
        )}
      </nav>
      {number > 0 && (
        <p class="notice" role="status">Shown here is the plan for <b>{plan.facts.name}</b>. The answers above are about the first plan.
          {plan.size < plan.facts.decisions && ` Of its ${plan.facts.decisions.toLocaleString("en")} decisions, the ${plan.size.toLocaleString("en")} likeliest are on this page.`}</p>
      )}
      <div class="columns">
        <div class="left">
          <section class="panel">
            <h2>The plan from here on
              <span class="switch" role="group" aria-label="Height shows">
                height shows{" "}
                {["probability", "risk"].map((one) => (
                  <button key={one} aria-pressed={sizing === one} onClick={() => setSizing(one)}>
                    {one === "risk" ? "share of the risk" : one}
                  </button>
                ))}
              </span>
            </h2>
            <Flow plan={plan} here={here} go={go} ramp={ramp} sizing={sizing} />
            <Legend ramp={ramp} />
          </section>
          <section class="panel tree">
            <h2>What can happen, and what is done then</h2>
            <Outline plan={plan} here={here} go={go} ramp={ramp} />
          </section>
          {facts.map && others}
          <section class="panel taken"><h2>Where the risk is taken</h2>
            {spending}
          </section>
        </div>
        <div class="right">
          <section class="panel here"><Here plan={plan} here={here} plans={plans} go={go} /></section>
          {facts.map && (
            <section class="panel"><h2>On the map</h2><Map area={facts.map} plan={plan} here={here} /></section>
          )}
          <section class="panel"><h2>Risk against reward</h2><Bound plan={plan} here={here} /></section>
          {!facts.map && others}
        </div>
      </div>
      <p class="keys">Keys: <kbd>↑</kbd> <kbd>↓</kbd> <kbd>←</kbd> <kbd>→</kbd> in the tree · <kbd>Enter</kbd> go there ·{" "}
        <kbd>Backspace</kbd> back · <kbd>s</kbd> start · <kbd>r</kbd> where most risk is taken · <kbd>/</kbd> search</p>
    </>
  );
}

function Legend({ ramp }) {
  const { limits, colours } = ramp;
  return (
    <p class="legend" aria-label="Colours">
      <span>risk ahead</span>
      {colours.map((colour, k) => (
        <span key={k}><i style={{ background: colour }} />
          {k === 0 ? `below ${percent(limits[0])}` : k === limits.length ? `from ${percent(limits[k - 1])}` : `${Number((100 * limits[k - 1]).toPrecision(1))}–${percent(limits[k])}`}
        </span>
      ))}
      <span><i class="failed" />failure</span>
      <span><i class="fine" />faded: too fine to draw, click to go there</span>
    </p>
  );
}
