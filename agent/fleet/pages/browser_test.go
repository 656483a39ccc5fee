//go:build integration

package pages_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest/browser"
)

// frame waits until the page is drawn.
const frame = `new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))`

// TestPagesInABrowser opens the pages of 10,000 hosts from a directory: the policy is not violated, the pages load
// nothing from elsewhere, the table filters and sorts fast with few rows, and text from hosts is not executed.
func TestPagesInABrowser(t *testing.T) {
	dir, _ := site(t, 10_000)
	b := browser.Start(t)
	pages := map[string]string{
		"overview": "index.html", "project": "project/shop/index.html", "release": "release/shop/2.0..2.1.html",
		"host": "host/shop-production-useast1-00000/index.html",
		"run":  "host/shop-production-useast1-00000/" + runID + ".html",
	}
	for name, page := range pages {
		for _, shape := range []struct {
			name          string
			width, height int
			scheme        string
		}{{"light", 1280, 1500, "light"}, {"dark", 1280, 1500, "dark"}, {"phone", 390, 1400, "light"},
			{"phone-dark", 390, 1400, "dark"}} {
			b.Shape(shape.width, shape.height, shape.scheme)
			b.Open(filepath.Join(dir, page))
			var title string
			b.Eval("document.title", &title)
			if c := b.Complaints(); len(c) > 0 || title == "taken" || !strings.Contains(title, "Fleet") {
				t.Errorf("%s, %s: %q, %s", name, shape.name, title, c)
			}
			var wide int
			b.Eval("document.documentElement.scrollWidth - innerWidth", &wide)
			if wide > 0 {
				t.Errorf("%s, %s: the page is %d pixels wider than the window", name, shape.name, wide)
			}
			b.Picture(name + "-" + shape.name)
		}
	}
	b.Shape(1280, 900, "light")
	b.Open(filepath.Join(dir, "index.html"))
	testTable(t, b)
}

func testTable(t *testing.T, b *browser.Browser) {
	t.Helper()
	const look = `({rows: document.querySelectorAll("#hosts-window tbody tr:not(.space)").length,
		count: document.getElementById("hosts-count").textContent,
		first: document.querySelector("#hosts-window tbody a")?.textContent ?? ""})`
	type table struct {
		Rows         int
		Count, First string
	}
	var at table
	b.Eval(look, &at)
	if at.Count != "10,000 of 10,000 hosts" || at.Rows > 100 || at.First != "shop-production-apsouth1-00002" {
		t.Errorf("the table has %+v", at)
	}
	timed := func(what, expression string, most float64) {
		t.Helper()
		var ms float64
		b.Eval(`(async () => { const began = performance.now(); `+expression+`; await `+frame+
			`; return performance.now() - began; })()`, &ms)
		t.Logf("%s: %.0f ms", what, ms)
		if ms > most {
			t.Errorf("%s takes %.0f ms", what, ms)
		}
	}
	const typed = `const f = document.getElementById("hosts-filter"); f.value = %q; f.dispatchEvent(new Event("input"))`
	timed("a filter", fmt.Sprintf(typed, "euwest1 0999"), 1000)
	if b.Eval(look, &at); at.Count != "4 of 10,000 hosts" && at.Count != "3 of 10,000 hosts" || at.Rows > 4 {
		t.Errorf("the filtered table has %+v", at)
	}
	timed("no filter", fmt.Sprintf(typed, ""), 1000)
	timed("sorting by name", `document.querySelector("#hosts-window th button").click()`, 2000)
	if b.Eval(look, &at); at.First != "shop-production-apsouth1-00002" {
		t.Errorf("the sorted table has %+v", at)
	}
	timed("scrolling to the end", `document.getElementById("hosts-window").scrollTop = 1e9`, 1000)
	var last string
	b.Eval(`[...document.querySelectorAll("#hosts-window tbody a")].at(-1).textContent`, &last)
	if last != "shop-production-useast1-09999" {
		t.Errorf("the last row is %s", last)
	}
	b.Eval(`location.hash = "state=quarantined"; `+frame, nil)
	if b.Eval(look, &at); at.Count != "15 of 10,000 hosts" {
		t.Errorf("with a state in the URL, the table has %+v", at)
	}
	// With the keyboard: tab from the filter into the table, and follow a link.
	b.Eval(`document.getElementById("hosts-channel").focus()`, nil)
	var focus string
	for range 7 {
		b.Press("Tab", 9)
	}
	b.Eval(`document.activeElement.tagName + " " + document.activeElement.getAttribute("href")`, &focus)
	if !strings.HasPrefix(focus, "A host/shop-production-") {
		t.Errorf("the seventh tab after the channel focuses %s", focus)
	}
	if c := b.Complaints(); len(c) > 0 {
		t.Errorf("the page: %s", c)
	}
}
