// A packed plan (see vulcan/pages/arrays.py), and the histories that lead through it.

export const END = -1, FAILED = -2, UNPLANNED = -3, OMITTED = -4;

export const ENDINGS = {
  [END]: "end",
  [FAILED]: "failure",
  [UNPLANNED]: "not planned",
  [OMITTED]: "… too rare for this page",
};

export async function unpack(text, facts) {
  const coded = atob(text.trim());
  const bytes = new Uint8Array(coded.length);
  for (let k = 0; k < coded.length; k++) bytes[k] = coded.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const content = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = new DataView(content.buffer).getUint32(0, true);
  const sections = JSON.parse(new TextDecoder().decode(content.subarray(4, 4 + size)));
  const arrays = {};
  let offset = 4 + size;
  for (const section of sections) {
    const width = section.kind === "byte" ? 1 : 4;
    const planes = content.subarray(offset, offset + width * section.count);
    arrays[section.name] = width === 1 ? planes : join(planes, section);
    offset += planes.length;
  }
  return new Plan(arrays, facts);
}

function join(planes, { count, kind, steps }) {
  const bytes = new Uint8Array(4 * count);
  for (let plane = 0; plane < 4; plane++) {
    const from = plane * count;
    for (let k = 0; k < count; k++) bytes[4 * k + plane] = planes[from + k];
  }
  const numbers = kind === "real" ? new Float32Array(bytes.buffer) : new Int32Array(bytes.buffer);
  if (steps) for (let k = 1; k < count; k++) numbers[k] += numbers[k - 1];
  return numbers;
}

export class Plan {
  constructor(arrays, facts) {
    Object.assign(this, arrays);
    this.facts = facts;
    this.size = this.action.length;
    this.decoder = new TextDecoder();
    this.owner = new Int32Array(this.label.length);
    for (let place = 0; place < this.size; place++) {
      this.owner.fill(place, this.first[place], this.first[place + 1]);
    }
    this.start = {
      place: 0, row: -1, parent: null, depth: 0, probability: 1, earned: 0, survival: 1, open: true,
    };
  }

  // Texts are decoded when they are shown.
  text(number) {
    const from = number ? this.ends[number - 1] : 0;
    return this.decoder.decode(this.letters.subarray(from, this.ends[number]));
  }

  actionOf(place) {
    if (place >= 0) return this.text(this.action[place]);
    const bounded = place === UNPLANNED && this.facts.beyond;
    return ENDINGS[place] + (bounded ? ` (bounds for ${this.facts.beyond})` : "");
  }
  stateOf(place) { return this.text(this.state[place]); }

  // The likeliest hidden states with their probabilities, and what is left; null if nothing is hidden.
  beliefOf(place) {
    const number = this.belief?.[place] ?? -1;
    if (number < 0) return null;
    const bars = [];
    for (let k = this.bars[number]; k < this.bars[number + 1]; k++) {
      bars.push({ name: this.text(this.hidden[k]), chance: this.weight[k] });
    }
    return { bars, rest: 1 - bars.reduce((sum, { chance }) => sum + chance, 0) };
  }

  labelOf(row) { return this.text(this.label[row]); }

  // The history that is one outcome longer.
  follow(history, row) {
    const { place } = history;
    const weight = this.facts.weights[history.depth];
    return {
      place: this.child[row],
      row,
      parent: history,
      depth: history.depth + 1,
      probability: history.probability * this.chance[row],
      earned: history.earned + weight * this.pay[row],
      survival: this.child[row] === FAILED ? 0 : history.survival * (1 - this.fails[place]),
      open: false,
    };
  }

  children(history) {
    if (!history.children) {
      history.children = [];
      if (history.place >= 0) {
        const { place } = history;
        for (let row = this.first[place]; row < this.first[place + 1]; row++) {
          history.children.push(this.follow(history, row));
        }
      }
    }
    return history.children;
  }

  // After an outcome without a plan: what is claimed of whatever follows.
  riskAhead({ place, row }) { return place >= 0 ? this.risk[place] : place === FAILED ? 1 : this.later_risk[row] ?? 0; }

  rewardAhead({ place, row }) { return place >= 0 ? this.reward[place] : this.later_reward[row] ?? 0; }

  // What is expected of the whole mission, given that it began like this.
  expected(history) {
    return history.earned + (this.facts.weights[history.depth] ?? 0) * this.rewardAhead(history);
  }

  // The risk of the whole way: what was taken and what lies ahead.
  totalRisk(history) { return 1 - history.survival * (1 - this.riskAhead(history)); }

  // The likeliest history that leads to a place.
  reachPlace(place) {
    const rows = [];
    for (let here = place; this.arrival[here] >= 0; here = this.owner[this.arrival[here]]) {
      rows.push(this.arrival[here]);
    }
    return this.reachRows(rows.reverse());
  }

  reachRows(rows) {
    let history = this.start;
    for (const row of rows) {
      const next = this.children(history).find((child) => child.row === row);
      if (!next) break;
      history = next;
    }
    return history;
  }

  // The history of the same outcomes in this plan, as far as it does the same.
  reachLike(plan, history) {
    let here = this.start;
    for (const step of line(history).slice(1)) {
      const label = plan.labelOf(step.row);
      const same = plan.actionOf(step.parent.place) === this.actionOf(here.place);
      const next = same && this.children(here).find((child) => this.labelOf(child.row) === label);
      if (!next) break;
      here = next;
    }
    return here;
  }

  // How much each step, and each action in a state, adds to the risk.
  get spending() {
    if (!this._spending) {
      const steps = new Float64Array(this.facts.weights.length);
      const kinds = new Map();
      let total = 0;
      for (let place = 0; place < this.size; place++) {
        const taken = this.reach[place] * this.fails[place];
        if (!taken) continue;
        total += taken;
        steps[this.depth[place]] += taken;
        const key = this.action[place] * this.ends.length + this.state[place];
        const kind = kinds.get(key);
        if (!kind) kinds.set(key, { taken, place, most: taken });
        else {
          kind.taken += taken;
          if (taken > kind.most) { kind.most = taken; kind.place = place; }
        }
      }
      let claimed = 0;
      for (let row = 0; row < this.child.length; row++) {
        claimed += this.reach[this.owner[row]] * this.chance[row] * this.later_risk[row];
      }
      const sorted = [...kinds.values()].sort((a, b) => b.taken - a.taken);
      this._spending = { total: total + claimed, claimed, steps, kinds: sorted };
    }
    return this._spending;
  }

  // States, actions and outcomes whose texts hold the words together, or else each of them.
  search(words, most = 40) {
    const lower = words.toLowerCase().trim();
    if (!lower) return [];
    const together = this.find([lower.replace(/\s+/g, "")], most);
    return together.length ? together : this.find(lower.split(/\s+/), most);
  }

  find(wanted, most) {
    this._lower ??= Array.from(this.ends, (_, k) => this.text(k).toLowerCase().replace(/\s+/g, ""));
    const found = new Map();
    for (let place = 0; place < this.size; place++) {
      const row = this.arrival[place];
      const texts = [this._lower[this.state[place]], this._lower[this.action[place]],
        row < 0 ? "" : this._lower[this.label[row]]];
      if (!wanted.every((word) => texts.some((text) => text.includes(word)))) continue;
      const key = this.state[place] * this.ends.length + this.action[place];
      const kind = found.get(key);
      if (!kind) found.set(key, { place, reach: this.reach[place], count: 1 });
      else {
        if (this.reach[place] > this.reach[kind.place]) kind.place = place;
        kind.reach += this.reach[place];
        kind.count++;
      }
    }
    return [...found.values()].sort((a, b) => b.reach - a.reach).slice(0, most);
  }
}

// All that a history went through, the start first.
export function line(history) {
  const steps = [];
  for (let here = history; here; here = here.parent) steps.push(here);
  return steps.reverse();
}
