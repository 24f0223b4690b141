// Where one is: what is done, what was earned and risked on the way, and what lies ahead.
import { END, FAILED, UNPLANNED, line } from "./plan.js";
import { amount, percent } from "./show.js";

export function Here({ plan, here, plans, go }) {
  const inside = here.place >= 0, belief = inside ? plan.beliefOf(here.place) : null;
  const spent = 1 - here.survival, ahead = plan.riskAhead(here), total = plan.totalRisk(here);
  const allowed = allow(plan, plan.expected(here));
  return (
    <>
      <p class="where">{inside ? `Step ${here.depth + 1} of ${plan.facts.weights.length - 1}` : here.place === UNPLANNED ? "Beyond the plan" : "The end"}
        {inside && !belief && <> · {plan.stateOf(here.place)}</>}</p>
      <p class="do">{inside ? <>Do <strong>{plan.actionOf(here.place)}</strong></> : <strong>{ending(plan, here)}</strong>}</p>
      {inside && plan.fails[here.place] >= 1e-5 && (
        <p class="fails">fails at once with {percent(plan.fails[here.place])}: {share(plan, here.place)} of the whole plan's risk</p>
      )}
      {otherActions(plan, here, plans).map(({ name, action }) => (
        <p class="instead" key={name}>with {name}: <b>{action}</b></p>
      ))}
      {belief && <Belief {...belief} />}
      <dl>
        <div><dt>probability of this history</dt><dd>{percent(here.probability)}</dd></div>
        {inside && plan.reach[here.place] > 1.001 * here.probability && (
          <div><dt>of coming here in any way</dt><dd>{percent(plan.reach[here.place])}</dd></div>
        )}
        <div><dt>reward so far</dt><dd>{amount(here.earned)}</dd></div>
        <div><dt>reward to expect in all</dt><dd>{amount(plan.expected(here))}</dd></div>
        <div><dt>risk taken so far</dt><dd>{here.place === FAILED ? "failed" : percent(spent)}</dd></div>
        <div><dt>risk still ahead</dt><dd>{percent(here.place === FAILED ? 0 : ahead)}</dd></div>
      </dl>
      {here.place !== FAILED && <Account spent={spent} total={total} allowed={allowed} />}
      {here.parent && (
        <details class="way" open={here.depth <= 4}>
          <summary>How one comes here</summary>
          <ol>{line(here).slice(1).map((step) => (
            <li key={step.depth}><a href="#" onClick={(event) => { event.preventDefault(); go(step.parent); }}>
              {plan.actionOf(step.parent.place)}</a> → {plan.labelOf(step.row)}</li>
          ))}</ol>
        </details>
      )}
    </>
  );
}

// What the plans for other bounds do after the same outcomes, where that is something else; not if
// one of them begins with a draw.
function otherActions(plan, here, plans) {
  return plans.flatMap((other) => {
    const there = other.reachLike(plan, here), { name } = other.facts;
    const drawn = other.facts.randomised || plan.facts.randomised;
    const known = !drawn && other !== plan && there.depth === here.depth && there.place >= 0 && here.place >= 0;
    const action = known && other.actionOf(there.place);
    return known && action !== plan.actionOf(here.place) ? [{ name, action }] : [];
  });
}

function Account({ spent, total, allowed }) {
  const most = Math.max(total, allowed ?? 0) * 1.1 || 1;
  const width = (p) => `${(100 * p) / most}%`;
  return (
    <figure class="account" aria-label="Risk taken, risk ahead, and what is allowed">
      <div class="track">
        <i class="spent" style={{ width: width(spent) }} />
        <i class="ahead" style={{ left: width(spent), width: width(total - spent) }} />
        {allowed !== null && <i class="allowed" style={{ left: width(Math.max(0, allowed)) }} />}
      </div>
      <figcaption><span><i class="spent" />taken</span><span><i class="ahead" />ahead</span>
        {allowed !== null && <span><i class="allowed" />allowed for this reward: {percent(Math.max(0, allowed))}</span>}
      </figcaption>
    </figure>
  );
}

// What the agent may believe of what it can't see.
function Belief({ bars, rest }) {
  const shown = rest > 1e-5 ? [...bars, { name: "others", chance: rest }] : bars;
  return (
    <figure class="belief" aria-label="Probability of each hidden state, given what was observed">
      {shown.map(({ name, chance }) => (
        <div key={name}><span>{name}</span><i><b style={{ width: `${100 * chance}%` }} /></i><em>{percent(chance)}</em></div>
      ))}
      <figcaption>hidden state, given what was observed</figcaption>
    </figure>
  );
}

function ending(plan, here) {
  if (here.place === FAILED) return "The mission failed";
  if (here.place === UNPLANNED) return plan.actionOf(here.place);
  return here.place === END ? "The mission is over, safely" : "What follows is not on this page";
}

function share(plan, place) {
  const taken = plan.reach[place] * plan.fails[place];
  return percent(plan.facts.risk ? taken / plan.facts.risk : 0);
}

// What the bound allows for a reward, between its drawn points.
export function allow(plan, reward) {
  const { curve } = plan.facts;
  const k = Math.max(1, curve.findIndex(([x]) => x >= reward));
  const [[x0, y0], [x1, y1]] = [curve[k - 1], curve[k]];
  return y0 === null || y1 === null ? null : y0 + ((y1 - y0) * (reward - x0)) / (x1 - x0 || 1);
}
