// Package browser drives a Chromium in tests, over the pipes of its DevTools protocol.
package browser

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

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// Browser is a Chromium that a test drives.
type Browser struct {
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

// Start starts a browser that ends with the test. It skips the test where there is no Chromium.
func Start(t *testing.T) *Browser {
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	process.Detach(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirs.Close(), ours.Close()
	t.Cleanup(func() {
		_ = process.Signal(cmd, syscall.SIGKILL)
		_ = cmd.Wait()
		_, _ = to.Close(), from.Close()
	})
	_ = from.SetReadDeadline(time.Now().Add(3 * time.Minute))
	b := &Browser{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	var made struct {
		TargetID string `json:"targetId"`
	}
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.Call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.Call(domain+".enable", nil, nil)
	}
	return b
}

// Call sends a command to the browser and waits for its response. It keeps the events that arrive meanwhile.
func (b *Browser) Call(method string, params, result any) {
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

func (b *Browser) next() (m message) {
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

// Open opens a page and waits until it is loaded.
func (b *Browser) Open(file string) {
	b.t.Helper()
	if _, err := os.Stat(file); err != nil {
		b.t.Fatal(err)
	}
	b.events = nil
	b.Call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	for loaded := false; !loaded; {
		for !b.happened("Page.loadEventFired") {
			b.events = append(b.events, b.next())
		}
		b.Eval(fmt.Sprintf(`document.readyState === "complete" && location.protocol === "file:" && `+
			`location.pathname.endsWith(%q)`,
			filepath.Base(file)), &loaded)
	}
}

func (b *Browser) happened(method string) bool {
	for _, m := range b.events {
		if m.Method == method {
			return true
		}
	}
	return false
}

// Complaints returns the errors of the page, violations of its policy, and requests to other origins.
func (b *Browser) Complaints() (all []string) {
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

// Eval evaluates JavaScript in the page, and waits for the promise if it returns one.
func (b *Browser) Eval(expression string, result any) {
	b.t.Helper()
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &out)
	if out.Exception != nil {
		b.t.Fatalf("%s: %s", expression, out.Exception)
	}
	if result != nil {
		if err := json.Unmarshal(out.Result.Value, result); err != nil {
			b.t.Fatalf("%s: %s: %v", expression, out.Result.Value, err)
		}
	}
}

// Shape sets the width of the window and the color scheme.
func (b *Browser) Shape(width, height int, scheme string) {
	b.t.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": width < 600}, nil)
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Picture saves a screenshot in the directory of the variable PAGES_PICTURES, if it is set.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	dir := os.Getenv("PAGES_PICTURES")
	if dir == "" {
		return
	}
	var out struct {
		Data string `json:"data"`
	}
	b.Call("Page.captureScreenshot", map[string]any{"format": "png"}, &out)
	data, err := base64.StdEncoding.DecodeString(out.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// Press presses and releases a key.
func (b *Browser) Press(name string, code int) {
	b.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		b.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": name, "code": name,
			"windowsVirtualKeyCode": code}, nil)
	}
}
