import { render } from "preact";
import { App } from "./app.jsx";
import { unpack } from "./plan.js";

const facts = JSON.parse(document.getElementById("facts").textContent);
const place = document.getElementById("explorer");

async function open(number) {
  return unpack(document.getElementById(`plan-${number}`).textContent, facts.plans[number]);
}

open(0).then(
  (plan) => {
    place.replaceChildren();
    render(<App facts={facts} first={plan} open={open} />, place);
    document.documentElement.dataset.ready = Math.round(performance.now());
  },
  (error) => {
    place.textContent = `This browser can't unpack the plan: ${error.message}`;
    throw error;
  },
);
