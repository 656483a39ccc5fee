package kmod_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/kmod"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// prepare adds a kernel to the host whose modules are files in /lib/modules that contain the names of their
// dependencies.
func prepare(t *testing.T, h *statetest.Host) {
	has := func(name string) bool { return strings.Contains("\n"+h.Text("/proc/modules"), "\n"+name+" ") }
	var insert func(name string) []string
	insert = func(name string) (names []string) {
		if has(name) {
			return nil
		}
		for _, other := range strings.Fields(h.Text("/lib/modules/" + name)) {
			names = append(names, insert(other)...)
		}
		return append(names, name)
	}
	statetest.UseTools(t, h, map[string]statetest.Tool{
		"modprobe": func(args []string, _ string) (string, error) {
			name := strings.ReplaceAll(args[0], "-", "_")
			dry := args[0] == "-n"
			if dry {
				name = strings.ReplaceAll(args[2], "-", "_")
			}
			if name == "refused" && !dry {
				return "", statetest.Code{Code: 1, Text: "modprobe: ERROR: could not insert 'refused': Exec format error"}
			}
			if _, err := h.Files.Stat("/lib/modules/" + name); err != nil {
				return "", statetest.Code{Code: 1, Text: "modprobe: FATAL: Module " + name +
					" not found in directory /lib/modules/6.1"}
			}
			var out strings.Builder
			for _, m := range insert(name) {
				out.WriteString("insmod /lib/modules/6.1/kernel/" + m + ".ko.xz \n")
				if !dry {
					h.Append("/proc/modules", m+" 4096 0 - Live 0x0\n")
				}
			}
			return out.String(), nil
		},
		"rmmod": func(args []string, _ string) (string, error) {
			if args[0] == "busy" {
				return "", statetest.Code{Code: 1, Text: "rmmod: ERROR: Module busy is in use"}
			}
			var rest strings.Builder
			for l := range strings.Lines(h.Text("/proc/modules")) {
				if !strings.HasPrefix(l, args[0]+" ") {
					rest.WriteString(l)
				}
			}
			h.Put("/proc/modules", rest.String())
			return "", nil
		},
	})
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "kmod",
		Functions: func(*statetest.Host) module.Table { return kmod.Functions() },
		Prepare:   prepare,
		Cases:     statetest.Load(t, "../../../testdata/modules/system/kmod.yaml"),
	})
}
