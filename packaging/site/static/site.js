// The theme button, the menu on narrow windows, and the search. The index of the search is a script, since pages from
// file:// may load scripts and no other data. It is loaded when the reader begins to type.
"use strict";
const root = document.currentScript.src.replace(/site\.js$/, "");
const find = document.getElementById("find");
const found = document.getElementById("found");
const most = 12; // results that are shown

document.getElementById("theme").addEventListener("click", () => {
  const html = document.documentElement;
  const dark = html.dataset.theme ? html.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  html.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("corpus-theme", html.dataset.theme); } catch (e) { /* see theme.js */ }
});

const menu = document.querySelector(".menu");
const wide = matchMedia("(min-width: 60rem)");
const fold = () => { menu.open = wide.matches; };
wide.addEventListener("change", fold);
fold();

let index;
function load() {
  index ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = () => resolve(window.corpusIndex.map(s => ({...s, low: (s.t + "\n" + s.h + "\n" + s.x).toLowerCase()})));
    script.onerror = () => reject(new Error("the index of the search cannot be loaded"));
    document.head.append(script);
  });
  return index;
}

// score orders sections: a word in the title or a heading counts more than one in the text. It is 0 without one of the
// words.
function score(section, words) {
  let sum = 0;
  for (const word of words) {
    if (!section.low.includes(word)) return 0;
    sum += 1;
    if (section.h.toLowerCase().includes(word)) sum += 8;
    if (section.t.toLowerCase().includes(word)) sum += section.h ? 2 : 10;
  }
  return sum;
}

// extract returns the text around the first of the words.
function extract(section, words) {
  const low = section.x.toLowerCase();
  const at = Math.max(0, Math.min(...words.map(w => low.indexOf(w)).filter(i => i >= 0), low.length) - 60);
  return (at > 0 ? "…" : "") + section.x.slice(at, at + 160) + (at + 160 < section.x.length ? "…" : "");
}

async function search() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) { found.hidden = true; return; }
  let sections;
  try { sections = await load(); } catch (e) { sections = []; }
  if (find.value.toLowerCase().split(/\s+/).filter(Boolean).join() !== words.join()) return;
  const hits = sections.map(s => [score(s, words), s]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]).slice(0, most);
  found.replaceChildren(...hits.map(([, s]) => {
    const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("span");
    link.href = root + s.u;
    link.textContent = s.h ? s.t + ": " + s.h : s.t;
    text.textContent = extract(s, words);
    item.append(link, text);
    return item;
  }));
  if (hits.length === 0) found.append(Object.assign(document.createElement("li"), {textContent: "Nothing has all of these words."}));
  found.hidden = false;
}

find.addEventListener("focus", () => { load().catch(() => {}); });
find.addEventListener("input", search);
document.addEventListener("keydown", e => {
  const links = [...found.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (e.key === "/" && document.activeElement !== find && !e.ctrlKey && !e.metaKey) { e.preventDefault(); find.focus(); }
  if (e.key === "Escape") { found.hidden = true; find.focus(); }
  if (!found.hidden && (e.key === "ArrowDown" || e.key === "ArrowUp") && (at >= 0 || document.activeElement === find)) {
    e.preventDefault();
    const next = at + (e.key === "ArrowDown" ? 1 : -1);
    (next < 0 ? find : links[Math.min(next, links.length - 1)])?.focus();
  }
  if (e.key === "Enter" && document.activeElement === find && links[0]) links[0].click();
});
document.addEventListener("click", e => { if (!e.target.closest(".search")) found.hidden = true; });
