package supervisord_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/supervisord"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// supervisorctl simulates the program: /programs has a process and its state in each line, and /declared the
// programs in its configuration that it has not read yet.
func supervisorctl(t *testing.T, h *statetest.Host) {
	read := func(file string) []string {
		data, _ := h.Files.ReadFile(file) // missing if there are none
		return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	}
	set := func(target, state string) (string, error) {
		lines, found := read("/programs"), false
		for i, line := range lines {
			name, _, _ := strings.Cut(line, " ")
			if name == target || strings.HasSuffix(target, "*") && strings.HasPrefix(name, strings.TrimSuffix(target, "*")) {
				lines[i], found = name+" "+state, true
			}
		}
		if !found {
			return target + ": ERROR (no such process)\n", nil
		}
		h.Build(t, statetest.Tree{"/programs": statetest.File(strings.Join(lines, "\n"))})
		return "", nil
	}
	h.Provide(t, map[string]statetest.Program{"supervisorctl": func(args []string, _ host.Command) (string, error) {
		lines := read("/programs")
		switch args[0] {
		case "status":
			if slices.Contains(lines, "refused") {
				return "", statetest.Exit{Code: 4, Text: "unix:///run/supervisor.sock refused connection"}
			}
			code := 0
			for _, line := range lines {
				if !strings.HasSuffix(line, "RUNNING") {
					code = 3
				}
			}
			out := strings.Join(lines, "\n")
			if code > 0 {
				return out, statetest.Exit{Code: code}
			}
			return out, nil
		case "reread":
			return "", nil
		case "update":
			changed, err := h.Files.ReadFile("/changed")
			if err != nil {
				return "", nil
			}
			return string(changed), h.Files.Remove("/changed")
		case "add":
			if !slices.Contains(read("/declared"), args[1]) {
				return "ERROR: no such process/group: " + args[1] + "\n", nil
			}
			h.Build(t,
				statetest.Tree{"/programs": statetest.File(strings.TrimSpace(strings.Join(append(lines, args[1]+" RUNNING"),
					"\n")))})
			return "", nil
		case "start", "restart":
			return set(args[1], "RUNNING")
		case "stop":
			return set(args[1], "STOPPED")
		}
		return "", fmt.Errorf("supervisorctl has no %s", args[0])
	}})
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "supervisord",
		Functions: func(*statetest.Host) module.Table { return supervisord.Functions() },
		Prepare:   supervisorctl,
		Cases:     statetest.Load(t, "../../../testdata/modules/supervisord.yaml"),
	})
}

// TestReactionToAWatchedChange checks that a running program is restarted.
func TestReactionToAWatchedChange(t *testing.T) {
	h := statetest.NewHost(t)
	supervisorctl(t, h)
	h.Build(t, statetest.Tree{"/programs": statetest.File("web RUNNING")})
	r := supervisord.Functions()["running"]()
	if _, problems := module.Decode(r, module.Call{Arguments: value.NewMap("name", "web")}); len(problems) > 0 {
		t.Fatal(problems)
	}
	d, err := r.(module.Watcher).Watched().Check(t.Context(), h.Host)
	if want := value.NewMap("web", "Restarting service: web"); err != nil || !value.Equal(d.Changes, want) {
		t.Errorf("a watch would change %s, %v, want %s", value.Repr(d.Changes), err, value.Repr(want))
	}
}
