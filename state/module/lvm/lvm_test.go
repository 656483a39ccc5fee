package lvm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/lvm"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// prepare adds simulated tools, whose lists are in /pvs, /vgs and /lvs: "/dev/b|vg", "vg" and
// "vg|lv|4194304|4194304".
func prepare(t *testing.T, h *statetest.Host) {
	drop := func(file string, of func(l string) bool) {
		lines := slices.DeleteFunc(strings.SplitAfter(h.Text(file), "\n"), of)
		h.Put(file, strings.Join(lines, ""))
	}
	last := func(args []string) string { return args[len(args)-1] }
	list := func(file string) statetest.Tool {
		return func(args []string, _ string) (string, error) {
			fields := strings.Count(last(args), ",") + 1
			var out strings.Builder
			for l := range strings.Lines(h.Text(file)) {
				out.WriteString("  " + strings.Join(strings.Split(strings.TrimSpace(l), "|")[:fields], "|") + "\n")
			}
			return out.String(), nil
		}
	}
	statetest.UseTools(t, h, map[string]statetest.Tool{
		"pvs": list("/pvs"), "vgs": list("/vgs"), "lvs": list("/lvs"),
		"pvcreate": func(args []string, _ string) (string, error) {
			if last(args) == "/dev/full" && args[0] == "-qq" {
				return "", statetest.Code{Code: 5,
					Text: "  WARNING: ext4 signature detected on /dev/full. Wipe it? [y/n]: [n]\n  1 existing signature left " +
						"on the device."}
			}
			h.Append("/pvs", last(args)+"|\n")
			return "", nil
		},
		"pvremove": func(args []string, _ string) (string, error) {
			drop("/pvs", func(l string) bool { return strings.HasPrefix(l, last(args)+"|") })
			return "", nil
		},
		"vgcreate": func(args []string, _ string) (string, error) {
			h.Append("/vgs", args[1]+"\n")
			for _, d := range args[2:] {
				h.Append("/pvs", d+"|"+args[1]+"\n")
			}
			return "", nil
		},
		"vgextend": func(args []string, _ string) (string, error) {
			for _, d := range args[2:] {
				drop("/pvs", func(l string) bool { return strings.HasPrefix(l, d+"|") })
				h.Append("/pvs", d+"|"+args[1]+"\n")
			}
			return "", nil
		},
		"vgremove": func(args []string, _ string) (string, error) {
			drop("/vgs", func(l string) bool { return l == last(args)+"\n" })
			return "", nil
		},
		"lvcreate": func(args []string, _ string) (string, error) {
			name := args[slices.IndexFunc(args, func(a string) bool { return a == "-n" || a == "--thinpool" })+1]
			target := last(args)
			if strings.HasPrefix(target, "/dev/") {
				target = args[len(args)-2]
			}
			group, _, _ := strings.Cut(target, "/")
			if group == "full" {
				return "", statetest.Code{Code: 5,
					Text: `  Volume group "full" has insufficient free space (0 extents): 1 required.`}
			}
			h.Append("/lvs", group+"|"+name+"|4194304|4194304\n")
			return "", nil
		},
		"lvresize": func(args []string, _ string) (string, error) {
			size := map[string]string{"10m": "12582912", "2": "8388608", "1m": "4194304"}[args[2]]
			h.Put("/lvs", strings.Replace(last(args), "/", "|", 1)+"|"+size+"|4194304\n")
			return "", nil
		},
		"lvremove": func(args []string, _ string) (string, error) {
			drop("/lvs", func(l string) bool { return strings.HasPrefix(l, strings.Replace(last(args), "/", "|", 1)+"|") })
			return "", nil
		},
	})
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "lvm",
		Functions: func(*statetest.Host) module.Table { return lvm.Functions() },
		Prepare:   prepare,
		Cases:     statetest.Load(t, "../../../testdata/modules/system/lvm.yaml"),
	})
}
