// Sets the theme that the reader chose before the page is drawn.
"use strict";
try {
  const chosen = localStorage.getItem("corpus-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (e) { /* a browser that keeps nothing for pages from file:// */ }
