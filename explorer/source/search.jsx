// Search for states, actions and outcomes; the arrows choose, Enter goes there.
import { useMemo, useState } from "preact/hooks";
import { percent } from "./show.js";

export function Search({ plan, jump, box }) {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const found = useMemo(() => plan.search(words), [plan, words]);
  const take = (place) => { jump(place); setWords(""); box.current?.blur(); };
  const press = (event) => {
    if (event.key === "ArrowDown") setChosen((k) => Math.min(found.length - 1, k + 1));
    else if (event.key === "ArrowUp") setChosen((k) => Math.max(0, k - 1));
    else if (event.key === "Enter" && found[chosen]) take(found[chosen].place);
    else if (event.key === "Escape") { setWords(""); box.current?.blur(); }
    else return;
    event.preventDefault();
  };
  return (
    <div class="search">
      <input ref={box} type="search" value={words} placeholder="Search ( / )" aria-label="Search states, actions, outcomes"
        role="combobox" aria-expanded={words !== ""} aria-controls="found" autocomplete="off"
        onInput={(event) => { setWords(event.currentTarget.value); setChosen(0); }} onKeyDown={press} />
      {words && (
        <ul id="found" role="listbox">
          {found.map(({ place, reach, count }, k) => (
            <li key={place} role="option" aria-selected={k === chosen} class={k === chosen ? "chosen" : ""}
              onMouseDown={(event) => { event.preventDefault(); take(place); }}>
              <b>{plan.stateOf(place)}</b> → {plan.actionOf(place)}
              <small>{count > 1 ? `${count.toLocaleString("en")} decisions, ${reach <= 1 ? percent(reach) : `${reach.toFixed(2)} times`}` : percent(reach)}</small>
            </li>
          ))}
          {!found.length && <li class="none">nothing of that name</li>}
        </ul>
      )}
    </div>
  );
}
