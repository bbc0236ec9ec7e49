"use strict";
// Shared by all pages: making elements from text (never from HTML), and the switch between light and dark.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// As `texts.count_text`: 1 sample, 2,170 samples.
function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => {
    document.getElementById("theme-name").textContent = isDark() ? "Light colours" : "Dark colours";
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("awb-theme", root.dataset.theme);
    } catch {
      // Not kept; the page still changes.
    }
    tell();
  });
  system.addEventListener("change", tell);
  button.hidden = false;
  tell();
}
