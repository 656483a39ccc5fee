package session_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// eventSession returns a session whose option event_command is a program that keeps what it reads, and the file that
// the program writes.
func eventSession(t *testing.T, files map[string]string, end string) (s *session.Session, kept string) {
	t.Helper()
	settings, dir := settings(t, files)
	kept = dir + "/kept"
	program := dir + "/on-event"
	text := "#!/bin/sh\ncat >> " + kept + "\n" + end + "\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	settings.Options = value.NewMap("event_command", value.Strings(program))
	s = families.New(settings)
	t.Cleanup(s.Close)
	return s, kept
}

// sent returns the events in a file.
func sent(t *testing.T, kept string) (tags, data []string) {
	t.Helper()
	text, _ := os.ReadFile(kept)
	for line := range strings.Lines(string(text)) {
		var event struct {
			Tag   string          `json:"tag"`
			Data  json.RawMessage `json:"data"`
			ID    string          `json:"id"`
			Stamp string          `json:"_stamp"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.ID != "web-01" || event.Stamp == "" {
			t.Errorf("the event %s: %v", line, err)
		}
		tags, data = append(tags, event.Tag), append(data, string(event.Data))
	}
	return tags, data
}

func TestEventsReachAProgram(t *testing.T) {
	s, kept := eventSession(t, map[string]string{"states/web.sls": "my/tag:\n  event.send:\n" +
		"    - data: {step: 1}\n    - more: x\nquiet:\n  event.send:\n    - show_changed: false\n" +
		"waits:\n  event.wait:\n    - watch: [{event: my/tag}]\nidle:\n  event.wait: []\n"}, "")
	for _, call := range []struct {
		name string
		args []any
	}{{"event.send", []any{"a/b", value.NewMap("k", "v")}}, {"event.fire", []any{value.NewMap("x", 1), "fired"}}} {
		if v, err := answer(t, s, call.name, call.args...); err != nil || v != true {
			t.Errorf("%s returned %v, %v", call.name, v, err)
		}
	}
	raw := value.NewMap("size", math.NaN()) // JSON has no such keys and values
	if err := raw.SetKey([]byte("k"), 1); err != nil {
		t.Fatal(err)
	}
	if v, err := answer(t, s, "event.send", "raw", raw); err != nil || v != true {
		t.Errorf("event.send of bytes returned %v, %v", v, err)
	}
	tags, data := sent(t, kept)
	if strings.Join(tags, " ") != "a/b fired raw" ||
		strings.Join(data, " ") != `{"k":"v"} {"x":1} {"size":"nan","b'k'":1}` {
		t.Fatalf("events are %q with %q", tags, data)
	}
	a, err := s.Call(t.Context(), "state.apply", []any{"web"}, value.NewMap("test", true), nil)
	if more, _ := sent(t, kept); err != nil || len(more) > 3 {
		t.Errorf("a dry run sent %q, %v: %s", more, err, value.Repr(a.Value))
	}
	a, err = s.Call(t.Context(), "state.apply", []any{"web"}, value.NewMap(), nil)
	tags, data = sent(t, kept)
	if err != nil || a.Failed || strings.Join(tags[3:], " ") != "my/tag quiet waits" ||
		data[3] != `{"more":"x","step":1}` {
		t.Errorf("states sent %q with %q, %v: %s", tags, data, err, value.Repr(a.Value))
	}
	one, _ := a.Value.(*value.Map).Value("event_|-my/tag_|-my/tag_|-send").(*value.Map)
	if got := value.Repr(one.Value("changes")); got != "{'tag': 'my/tag', 'data': {'step': 1}}" ||
		one.Value("comment") != "Event fired" {
		t.Errorf("the result is %s", value.Repr(one))
	}
}

// TestEventsThatNoProgramTakesAreErrors has a program that fails, and none.
func TestEventsThatNoProgramTakesAreErrors(t *testing.T) {
	s, _ := eventSession(t, nil, "echo no route >&2; exit 3")
	if _, err := answer(t, s, "event.send", "a"); err == nil || !strings.Contains(err.Error(), "code 3: no route") {
		t.Errorf("a program that fails gives %v", err)
	}
	none, _ := settings(t, map[string]string{"states/web.sls": "a:\n  event.send: []\n"})
	s = families.New(none)
	t.Cleanup(s.Close)
	_, err := answer(t, s, "event.send", "a")
	if err == nil || !strings.Contains(err.Error(), "no program receives events") {
		t.Errorf("without a program, it gives %v", err)
	}
	if a, err := s.Call(t.Context(), "state.apply", []any{"web"}, value.NewMap(), nil); err != nil || !a.Failed {
		t.Errorf("the state without a program gives %v: %s", err, value.Repr(a.Value))
	}
}
