// The table of hosts: filters, sorts, and draws only the rows that are in view. All text goes in as text.
"use strict";
(function () {
  const source = document.getElementById("hosts-data");
  const box = document.getElementById("hosts-window");
  if (!source || !box) { return; }
  const data = JSON.parse(source.textContent);
  const rowHeight = 34, margin = 12;
  const body = box.querySelector("tbody");
  const words = document.getElementById("hosts-filter");
  const state = document.getElementById("hosts-state");
  const channel = document.getElementById("hosts-channel");
  const count = document.getElementById("hosts-count");
  const heads = Array.from(box.querySelectorAll("thead th"));
  let sort = { by: -1, down: false }, shown = data.hosts, from = -1, to = -1;

  const text = data.hosts.map(h => (h[0] + " " + data.channels[h[1]] + " " + h[2] + " " + h[3]).toLowerCase());
  const keys = [h => h[0], h => h[4], h => h[2], h => data.channels[h[1]], h => h[6]];


  function wanted(h, i, parts, s, c) {
    if (c !== "" && h[1] !== Number(c)) { return false; }
    if (s === "behind" && !(h[5] & 1)) { return false; }
    if (s === "silent" && !(h[5] & 2)) { return false; }
    if (s !== "" && s !== "behind" && s !== "silent" && data.states[h[4]] !== s) { return false; }
    return parts.every(p => text[i].includes(p));
  }

  function choose() {
    const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = data.hosts.filter((h, i) => wanted(h, i, parts, state.value, channel.value));
    if (sort.by >= 0) {
      const key = keys[sort.by], collator = new Intl.Collator("en", { numeric: true });
      const of = (a, b) => typeof key(a) === "number" ? key(a) - key(b) : collator.compare(key(a), key(b));
      shown = shown.slice().sort(sort.down ? (a, b) => of(b, a) : of);
    }
    count.textContent = shown.length.toLocaleString("en") + " of " + data.hosts.length.toLocaleString("en") +
      (data.hosts.length === 1 ? " host" : " hosts");
    box.querySelector("table").setAttribute("aria-rowcount", String(shown.length + 1));
    box.scrollTop = 0;
    from = -1;
    draw();
  }

  function cell(kind, name, content) {
    const c = document.createElement(kind);
    if (name) { c.className = name; }
    if (typeof content === "string") { c.textContent = content; c.title = content; } else { c.append(content); }
    return c;
  }

  function row(h, at) {
    const tr = document.createElement("tr");
    tr.setAttribute("aria-rowindex", String(at + 2));
    const link = document.createElement("a");
    link.href = data.root + "host/" + encodeURIComponent(h[0]) + "/index.html";
    link.textContent = link.title = h[0];
    const name = cell("th", "", link);
    name.scope = "row";
    const word = document.createElement("span"), is = data.states[h[4]];
    word.className = "state " + is.replace(" ", "-");
    word.textContent = is;
    const also = (h[5] & 2 ? ", silent" : "") + (h[5] & 1 ? ", behind" : "") + (h[5] & 4 ? "" : ", unregistered");
    const states = cell("td", "", word);
    if (also) { const more = document.createElement("span"); more.className = "soft"; more.textContent = also; states.append(more); }
    const version = (h[2] || "none") + (h[3] ? " → " + h[3] : "");
    const seen = h[6] ? new Date(h[6] * 1000).toISOString().slice(0, 19).replace("T", " ") : "";
    tr.append(name, states, cell("td", "mono", version), cell("td", "channel", data.channels[h[1]]), cell("td", "seen", seen));
    return tr;
  }

  function space(rows) {
    const tr = document.createElement("tr"), td = document.createElement("td");
    tr.className = "space"; tr.setAttribute("aria-hidden", "true");
    td.colSpan = 5; td.style.height = rows * rowHeight + "px";
    tr.append(td);
    return tr;
  }

  function draw() {
    const top = Math.min(box.scrollTop, shown.length * rowHeight);
    const first = Math.max(0, Math.floor(top / rowHeight) - margin);
    const last = Math.min(shown.length, Math.ceil((top + box.clientHeight) / rowHeight) + margin);
    if (first === from && last === to) { return; }
    const active = document.activeElement, index = active && body.contains(active) ? active.closest("tr").getAttribute("aria-rowindex") : null;
    from = first; to = last;
    const rows = document.createDocumentFragment();
    if (first > 0) { rows.append(space(first)); }
    for (let i = first; i < last; i++) { rows.append(row(shown[i], i)); }
    if (last < shown.length) { rows.append(space(shown.length - last)); }
    body.replaceChildren(rows);
    if (index) {
      const again = body.querySelector('tr[aria-rowindex="' + index + '"] a');
      if (again) { again.focus({ preventScroll: true }); }
    }
  }

  heads.forEach((th, i) => th.querySelector("button").addEventListener("click", () => {
    sort = { by: i, down: sort.by === i && !sort.down };
    heads.forEach((other, j) => other.setAttribute("aria-sort", j !== i ? "none" : sort.down ? "descending" : "ascending"));
    choose();
  }));
  function changed() {
    const at = new URLSearchParams();
    if (words.value) { at.set("q", words.value); }
    if (state.value) { at.set("state", state.value); }
    if (channel.value) { at.set("channel", data.channels[Number(channel.value)]); }
    history.replaceState(null, "", at.size ? "#" + at : location.pathname + location.search);
    choose();
  }
  function follow() {
    const at = new URLSearchParams(location.hash.slice(1));
    words.value = at.get("q") || "";
    state.value = at.get("state") || "";
    const c = data.channels.indexOf(at.get("channel"));
    channel.value = c < 0 ? "" : String(c);
    choose();
  }
  words.addEventListener("input", changed);
  state.addEventListener("change", changed);
  channel.addEventListener("change", changed);
  box.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  addEventListener("resize", () => requestAnimationFrame(draw));
  addEventListener("hashchange", () => { follow(); box.scrollIntoView(); });
  follow();
})();
