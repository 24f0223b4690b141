// The same mission under other bounds, and what such plans earn.
import { amount, percent } from "./show.js";

export function Others({ facts, number, change }) {
  const [main] = facts.plans;
  if (facts.plans.length < 2) return <p>No plan for another bound is on this page (vulcan explore --what-if SECONDS).</p>;
  return (
    <ul class="others">
      {facts.plans.map((plan, k) => (
        <li key={k} class={k === number ? "open" : ""}>
          <p><b>{plan.name}</b> · allowed {percent(plan.allowed ?? 0)}, fails {percent(plan.risk)}, reward {amount(plan.reward)}
            {k > 0 && <> ({plan.reward >= main.reward ? "+" : "−"}{amount(Math.abs(plan.reward - main.reward))})</>}{" "}
            <button disabled={k === number} onClick={() => change(k)}>{k === number ? "shown above" : "show this plan"}</button></p>
          {plan.remark && <p class="note">{plan.remark}</p>}
        </li>
      ))}
    </ul>
  );
}
