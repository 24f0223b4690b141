// The same mission under other bounds: what such plans earn, and where they do something else.
import { amount, percent } from "./show.js";

export function Others({ facts, number, change, visit }) {
  const [main] = facts.plans;
  if (facts.plans.length < 2) return <p>No plan for another bound is on this page (vulcan explore --what-if SECONDS, or --other PLAN).</p>;
  return (
    <ul class="others">
      {facts.plans.map((plan, k) => (
        <li key={k} class={k === number ? "open" : ""}>
          <p><b>{plan.name}</b> · allowed {percent(plan.allowed ?? 0)}, fails {percent(plan.risk)}, reward {amount(plan.reward)}
            {k > 0 && <> ({plan.reward >= main.reward ? "+" : "−"}{amount(Math.abs(plan.reward - main.reward))})</>}{" "}
            <button disabled={k === number} onClick={() => change(k)}>{k === number ? "shown above" : "show this plan"}</button></p>
          {plan.remark && <p class="note">{plan.remark}</p>}
          {plan.difference && <Difference {...plan.difference} visit={visit} />}
        </li>
      ))}
    </ul>
  );
}

function Difference({ probability, partings, visit }) {
  if (!partings.length) return <p>It does the same everywhere.</p>;
  return (
    <>
      <p>Does something else in {percent(probability)} of all missions:</p>
      <ul>{partings.slice(0, 4).map(({ reach, history, action, instead }, k) => (
        <li key={k}><button class="link" onClick={() => visit(history.map(([, outcome]) => outcome))}><b>{instead}</b> instead of {action}</button>, {history.length ? <>at step {history.length + 1} after{" "}
          {history.length > 2 && "… "}{history.slice(-2).map(([did, got]) => `${did} → ${got}`).join(", ")}</> : "at once"} ({percent(reach)})</li>
      ))}</ul>
    </>
  );
}
