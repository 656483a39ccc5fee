package mount_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/mount"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

const info = "/proc/self/mountinfo"

// prepare adds simulated mount programs, which update /proc/self/mountinfo and /proc/swaps.
func prepare(t *testing.T, h *statetest.Host) {
	without := func(place string) string {
		var rest strings.Builder
		for l := range strings.Lines(h.Text(info)) {
			if strings.Fields(l)[4] != place {
				rest.WriteString(l)
			}
		}
		return rest.String()
	}
	statetest.UseTools(t, h, map[string]statetest.Tool{
		"mount": func(args []string, _ string) (string, error) {
			if len(args) == 1 {
				args = []string{"-o", "defaults", "-t", "ext4", "/dev/of-fstab", args[0]}
			}
			opts, fstype, device, place := args[1], args[3], args[4], args[5]
			if fstype == "bad" {
				return "", statetest.Code{Code: 32, Text: "mount: " + place + ": unknown filesystem type 'bad'."}
			}
			root := "/"
			if slices.Contains(strings.Split(opts, ","), "bind") {
				root, device, fstype = device, "/dev/root", "ext4"
			}
			opts = strings.NewReplacer("defaults", "rw,relatime", ",remount", "", "size=1m", "size=1024k",
				"uid=games", "uid=5").Replace(opts)
			place = strings.ReplaceAll(place, " ", `\040`)
			h.Put(info, without(place)+fmt.Sprintf("9 1 0:9 %s %s rw,%s - %s %s rw,%s\n", root,
				place, opts, fstype, device, opts))
			return "", nil
		},
		"umount": func(args []string, _ string) (string, error) {
			if args[0] == "/busy" {
				return "", statetest.Code{Code: 32, Text: "umount: /busy: target is busy."}
			}
			h.Put(info, without(args[0]))
			return "", nil
		},
		"swapon": func(args []string, _ string) (string, error) {
			if args[0] == "/dev/none" {
				return "", statetest.Code{Code: 255, Text: "swapon: /dev/none: read swap header failed"}
			}
			h.Append("/proc/swaps", args[0]+" partition 1024 0 -2\n")
			return "", nil
		},
	})
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "mount",
		Functions: func(*statetest.Host) module.Table { return mount.Functions() },
		Prepare:   prepare,
		Cases:     statetest.Load(t, "../../../testdata/modules/system/mount.yaml"),
	})
}
