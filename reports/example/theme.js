"use strict";
document.documentElement.classList.add("js"); // nothing is folded away that only a script could unfold
// Before anything is drawn: the colours that were chosen on an earlier visit.
try {
  const chosen = localStorage.getItem("awb-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage can be forbidden, for example in a sandboxed frame; the system's colours hold then.
}
