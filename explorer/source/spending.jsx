// Where the risk is taken: by step, and by what is done in which state, with what was rejected there.
import { percent } from "./show.js";

const MOST = 8, LEAST = 1e-3;

export function Spending({ plan, facts, jump, main }) {
  const { steps, kinds, total, claimed } = plan.spending;
  if (!total) return <p>This plan takes no risk at all.</p>;
  const listed = kinds.slice(0, MOST).filter((kind) => kind.taken >= LEAST * total);
  const rest = kinds.slice(listed.length);
  const kindOf = (place) => plan.action[place] * plan.ends.length + plan.state[place];
  const told = main ? facts.riskiest.filter(({ place, instead }) => place !== null && instead) : [];
  const rejected = new Map(told.map(({ place, instead }) => [kindOf(place), instead]));
  const most = Math.max(...steps) || 1;
  const count = plan.facts.weights.length - 1;
  const shown = Array.from(steps).slice(0, count);
  return (
    <>
      <h3>by step</h3>
      <div class="steps" role="img" aria-label={shown.map((p, k) => `step ${k + 1}: ${percent(p / total)}`).join(", ")}>
        {shown.map((taken, k) => (
          <div key={k} title={`step ${k + 1}: ${percent(taken / total)} of all risk`}>
            <i style={{ height: `${Math.max(1, (56 * taken) / most)}px` }} />
            <small>{count <= 20 || k === 0 || k % 10 === 9 ? k + 1 : "\u00a0"}</small>
          </div>
        ))}
      </div>
      <h3>by what is done where</h3>
      <ul class="spending">
        {listed.map(({ taken, place }) => (
          <li key={place}><button onClick={() => jump(place)}>
            <span class="share"><i style={{ width: `${(100 * taken) / kinds[0].taken}%` }} />{percent(taken / total)}</span>
            <span><b>{plan.actionOf(place)}</b> in {plan.stateOf(place)}
              {rejected.has(kindOf(place)) && <small>{rejected.get(kindOf(place))}</small>}</span>
          </button></li>
        ))}
      </ul>
      {rest.length > 0 && <p class="note">and {rest.length.toLocaleString("en")} more, together {percent(
        rest.reduce((sum, kind) => sum + kind.taken, 0) / total)}</p>}
      {claimed > 0 && <p class="note">and {percent(claimed / total)} claimed beyond the frontier of the plan</p>}
      {rejected.size > 0 && facts.compared && <p class="note">How actions were compared: {facts.compared}.</p>}
    </>
  );
}
