//go:build integration

package pages_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// browser is a Chromium that a test drives over the pipes of its DevTools protocol.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	id      int
	session string
	events  []message
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func start(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (apt-get install chromium)")
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile := t.TempDir()
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run",
		"--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+profile,
		"about:blank")
	cmd.ExtraFiles = []*os.File{theirs, ours}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirs.Close(), ours.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_, _ = to.Close(), from.Close()
	})
	_ = from.SetReadDeadline(time.Now().Add(3 * time.Minute))
	b := &browser{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	var made struct {
		TargetID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call sends a command to the browser and waits for its response. It keeps the events that arrive meanwhile.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.id++
	request := map[string]any{"id": b.id, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	data, err := json.Marshal(request)
	if err == nil {
		_, err = b.to.Write(append(data, 0))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for {
		m := b.next()
		if m.ID != b.id {
			b.events = append(b.events, m)
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

func (b *browser) next() (m message) {
	b.t.Helper()
	data, err := b.from.ReadBytes(0)
	if err == nil {
		err = json.Unmarshal(bytes.TrimSuffix(data, []byte{0}), &m)
	}
	if err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
	return m
}

// open opens a page and waits until it is loaded.
func (b *browser) open(file string) {
	b.t.Helper()
	b.events = nil
	b.call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	for loaded := false; !loaded; {
		for !b.happened("Page.loadEventFired") {
			b.events = append(b.events, b.next())
		}
		b.eval(fmt.Sprintf(`document.readyState === "complete" && location.protocol === "file:" && `+
			`location.pathname.endsWith(%q)`,
			filepath.Base(file)), &loaded)
	}
}

func (b *browser) happened(method string) bool {
	for _, m := range b.events {
		if m.Method == method {
			return true
		}
	}
	return false
}

// complaints returns the errors of the page, violations of its policy, and requests to other origins.
func (b *browser) complaints() (all []string) {
	for _, m := range b.events {
		text := string(m.Params)
		switch m.Method {
		case "Runtime.exceptionThrown":
			all = append(all, text)
		case "Log.entryAdded":
			if strings.Contains(text, `"level":"error"`) {
				all = append(all, text)
			}
		case "Network.requestWillBeSent":
			var r struct {
				Request struct {
					URL string `json:"url"`
				} `json:"request"`
			}
			if json.Unmarshal(m.Params, &r) != nil || !strings.HasPrefix(r.Request.URL, "file:///") &&
				r.Request.URL != "about:blank" {
				all = append(all, "a request to "+r.Request.URL)
			}
		}
	}
	return all
}

// eval evaluates JavaScript in the page, and waits for the promise if it returns one.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &out)
	if out.Exception != nil {
		b.t.Fatalf("%s: %s", expression, out.Exception)
	}
	if result != nil {
		if err := json.Unmarshal(out.Result.Value, result); err != nil {
			b.t.Fatalf("%s: %s: %v", expression, out.Result.Value, err)
		}
	}
}

// shape sets the width of the window and the color scheme.
func (b *browser) shape(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// picture saves a screenshot in the directory of the variable PAGES_PICTURES.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("PAGES_PICTURES")
	if dir == "" {
		return
	}
	var out struct {
		Data string `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	data, err := base64.StdEncoding.DecodeString(out.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// frame waits until the page is drawn.
const frame = `new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))`

// TestPagesInABrowser opens the pages of 10,000 hosts from a directory: the policy is not violated, the pages load
// nothing from elsewhere, the table filters and sorts fast with few rows, and text from hosts is not executed.
func TestPagesInABrowser(t *testing.T) {
	dir, _ := site(t, 10_000)
	b := start(t)
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
			b.shape(shape.width, shape.height, shape.scheme)
			b.open(filepath.Join(dir, page))
			var title string
			b.eval("document.title", &title)
			if c := b.complaints(); len(c) > 0 || title == "taken" || !strings.Contains(title, "Fleet") {
				t.Errorf("%s, %s: %q, %s", name, shape.name, title, c)
			}
			var wide int
			b.eval("document.documentElement.scrollWidth - innerWidth", &wide)
			if wide > 0 {
				t.Errorf("%s, %s: the page is %d pixels wider than the window", name, shape.name, wide)
			}
			b.picture(name + "-" + shape.name)
		}
	}
	b.shape(1280, 900, "light")
	b.open(filepath.Join(dir, "index.html"))
	testTable(t, b)
}

func testTable(t *testing.T, b *browser) {
	t.Helper()
	const look = `({rows: document.querySelectorAll("#hosts-window tbody tr:not(.space)").length,
		count: document.getElementById("hosts-count").textContent,
		first: document.querySelector("#hosts-window tbody a")?.textContent ?? ""})`
	type table struct {
		Rows         int
		Count, First string
	}
	var at table
	b.eval(look, &at)
	if at.Count != "10,000 of 10,000 hosts" || at.Rows > 100 || at.First != "shop-production-apsouth1-00002" {
		t.Errorf("the table has %+v", at)
	}
	timed := func(what, expression string, most float64) {
		t.Helper()
		var ms float64
		b.eval(`(async () => { const began = performance.now(); `+expression+`; await `+frame+
			`; return performance.now() - began; })()`, &ms)
		t.Logf("%s: %.0f ms", what, ms)
		if ms > most {
			t.Errorf("%s takes %.0f ms", what, ms)
		}
	}
	const typed = `const f = document.getElementById("hosts-filter"); f.value = %q; f.dispatchEvent(new Event("input"))`
	timed("a filter", fmt.Sprintf(typed, "euwest1 0999"), 1000)
	if b.eval(look, &at); at.Count != "4 of 10,000 hosts" && at.Count != "3 of 10,000 hosts" || at.Rows > 4 {
		t.Errorf("the filtered table has %+v", at)
	}
	timed("no filter", fmt.Sprintf(typed, ""), 1000)
	timed("sorting by name", `document.querySelector("#hosts-window th button").click()`, 2000)
	if b.eval(look, &at); at.First != "shop-production-apsouth1-00002" {
		t.Errorf("the sorted table has %+v", at)
	}
	timed("scrolling to the end", `document.getElementById("hosts-window").scrollTop = 1e9`, 1000)
	var last string
	b.eval(`[...document.querySelectorAll("#hosts-window tbody a")].at(-1).textContent`, &last)
	if last != "shop-production-useast1-09999" {
		t.Errorf("the last row is %s", last)
	}
	b.eval(`location.hash = "state=quarantined"; `+frame, nil)
	if b.eval(look, &at); at.Count != "15 of 10,000 hosts" {
		t.Errorf("with a state in the URL, the table has %+v", at)
	}
	// With the keyboard: tab from the filter into the table, and follow a link.
	b.eval(`document.getElementById("hosts-channel").focus()`, nil)
	key := func(name string, code int) {
		t.Helper()
		for _, kind := range []string{"rawKeyDown", "keyUp"} {
			b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": name, "code": name,
				"windowsVirtualKeyCode": code}, nil)
		}
	}
	var focus string
	for range 7 {
		key("Tab", 9)
	}
	b.eval(`document.activeElement.tagName + " " + document.activeElement.getAttribute("href")`, &focus)
	if !strings.HasPrefix(focus, "A host/shop-production-") {
		t.Errorf("the seventh tab after the channel focuses %s", focus)
	}
	if c := b.complaints(); len(c) > 0 {
		t.Errorf("the page: %s", c)
	}
}
