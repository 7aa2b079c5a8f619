// SPDX-License-Identifier: Apache-2.0
// Everything the page does beyond being read: theme, copying, comparing pictures, printing.
"use strict";
document.documentElement.classList.add("js");

function theme() {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; show(); });
  system.addEventListener("change", show);
  show();
}

function copying() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    const code = button.previousElementSibling;
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(code);
      try { await navigator.clipboard.writeText(code.textContent); button.textContent = "Copied"; }
      catch { button.textContent = "Selected"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
}

// A pair shows the left picture up to the handle and the right one beyond it.
const PAIRS = [["render", "half-width"], ["lower", "upper"], ["render", "misses"],
  ["half-width", "misses"], ["render", "photo"]];

function comparing() {
  const stage = document.getElementById("stage");
  if (!stage) return;
  const [select, pairs, split] = ["compare-view", "compare-pairs", "split"].map((id) => document.getElementById(id));
  const panel = (kind) => document.querySelector(`.view[data-view="${select.value}"] [data-kind="${kind}"]`);
  let chosen = PAIRS[0];

  function show() {
    ["left", "right"].forEach((side, k) => {
      const source = panel(chosen[k]);
      const images = [...source.querySelectorAll("img")].map((image) => image.cloneNode());
      images.forEach((image) => { image.loading = "eager"; });
      document.getElementById(side).replaceChildren(...images);
      document.getElementById(`${side}-name`).textContent = source.dataset.label;
      stage.style.setProperty("--ratio", images[0].getAttribute("width") / images[0].getAttribute("height"));
    });
    for (const button of pairs.children) button.setAttribute("aria-pressed", String(button.pair === chosen));
  }

  // Divided, the slider moves the handle; faded, it lays the right picture over the left one.
  const move = () => {
    stage.style.setProperty("--split", `${split.value}%`);
    stage.style.setProperty("--fade", split.value / 100);
  };
  const fade = document.getElementById("fade");
  fade.addEventListener("change", () => {
    stage.classList.toggle("fade", fade.checked);
    split.setAttribute("aria-label", fade.checked ? "Strength of the right picture, in percent"
      : "Position of the divider, in percent of the width");
  });
  for (const pair of PAIRS.filter((kinds) => kinds.every(panel))) {
    const button = document.createElement("button");
    button.type = "button";
    button.pair = pair;
    button.textContent = pair.map((kind) => panel(kind).dataset.label).join(" | ");
    button.addEventListener("click", () => { chosen = pair; show(); });
    pairs.append(button);
  }
  select.addEventListener("change", show);
  split.addEventListener("input", move);
  for (const button of document.querySelectorAll("[data-compare]")) {
    button.addEventListener("click", () => {
      select.value = button.dataset.compare;
      show();
      document.getElementById("compare").scrollIntoView();
      split.focus({ preventScroll: true });
    });
  }
  move();
  show();
}

theme();
copying();
comparing();
addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
