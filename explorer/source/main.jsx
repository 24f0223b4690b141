import { render } from "preact";
import { App } from "./app.jsx";
import { unpack } from "./plan.js";

const facts = JSON.parse(document.getElementById("facts").textContent);
const place = document.getElementById("explorer");

const opened = [];
function open(number) {
  opened[number] ??= unpack(document.getElementById(`plan-${number}`).textContent, facts.plans[number]);
  return opened[number];
}

// What is folded up can't be opened on paper.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});

open(0).then(
  (plan) => {
    place.replaceChildren();
    const page = <App facts={facts} first={plan} open={open} />;
    render(plan.size ? page : <p>There is nothing to decide.</p>, place);
    document.documentElement.dataset.ready = Math.round(performance.now());
  },
  (error) => {
    place.textContent = `This browser can't unpack the plan: ${error.message}`;
    throw error;
  },
);
