"use strict";
// The pages of `awb view`: puts the counts of this moment where the page has places for them, and offers to show the page
// anew when it has become old. It never does so by itself: nobody loses their place.

{
  const EVERY = 2000, SELDOM = 10000;
  const bar = document.getElementById("live");
  const offer = document.getElementById("offer");
  const places = [...document.querySelectorAll("[data-live]")];
  const bars = [...document.querySelectorAll("[data-bar]")];
  const address = bar.dataset.name ? `${bar.dataset.from}?page=${encodeURIComponent(bar.dataset.name)}` : bar.dataset.from;

  const put = (told) => {
    bar.dataset.state = told.state;
    for (const place of places) {
      const text = told.shown.texts[place.dataset.live] ?? "";
      if (place.textContent !== text) place.textContent = text;
      if (place.tagName === "LI") place.hidden = !text;
    }
    for (const one of bars) {
      const [done, total] = told.shown.bars[one.dataset.bar] ?? [0, 1];
      one.max = Math.max(1, total);
      one.value = done;
    }
    const last = document.getElementById("last");
    if (last) last.hidden = !told.shown.texts["last.0"];
    const problem = document.getElementById("problem");
    if (problem) {
      problem.textContent = told.problem ?? "";
      problem.hidden = !told.problem;
    }
    const waiting = document.getElementById("waiting");
    if (waiting) waiting.textContent = told.waiting;
    const made = told.made[bar.dataset.kind];
    offer.hidden = made === undefined || made === bar.dataset.made;
    if (!offer.hidden && offer.firstElementChild.textContent !== told.offers[bar.dataset.kind]) offer.firstElementChild.textContent = told.offers[bar.dataset.kind];
  };

  const ask = async () => {
    let wait = SELDOM;
    if (!document.hidden) {
      try {
        const answer = await fetch(address, { cache: "no-store" });
        if (!answer.ok) throw new Error(await answer.text());
        const told = await answer.json();
        put(told);
        wait = told.state === "running" || told.state === "elsewhere" || !told.looked ? EVERY : SELDOM;
      } catch {
        bar.dataset.state = "gone";
        bar.firstElementChild.textContent = "awb view does not answer";
      }
    }
    timer = setTimeout(ask, wait);
  };

  let timer = setTimeout(ask, EVERY / 4);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    clearTimeout(timer);
    ask();
  });
  offer.querySelector("button").addEventListener("click", () => location.reload());
}
