//go:build hosts

package lvm_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module/lvm"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// loop creates a loop device.
func loop(t *testing.T, name string) string {
	t.Helper()
	file := t.TempDir() + "/" + name
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 64<<20); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", file).Output()
	if err != nil {
		t.Skipf("this machine makes no loop devices: %v", err)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() })
	return device
}

// TestOnLoopDevices applies states to real volumes. They are not activated, which would require the device
// mapper of the kernel.
func TestOnLoopDevices(t *testing.T) {
	if os.Getenv("CORPUS_THROWAWAY_HOST") == "" {
		t.Skip("this creates volumes; set CORPUS_THROWAWAY_HOST=1 on a disposable machine")
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := loop(t, "a"), loop(t, "b")
	volume := func(pairs ...any) *value.Map {
		m := value.NewMap("name", "data", "vgname", "corpusvg", "activate", "n", "zero", "n", "wipesignatures", "n")
		m.Update(value.NewMap(pairs...))
		return m
	}
	for _, c := range []struct {
		function string
		args     *value.Map
	}{
		{"pv_present", value.NewMap("name", a)},
		{"vg_present", value.NewMap("name", "corpusvg", "devices", a)},
		{"vg_present", value.NewMap("name", "corpusvg", "devices", a+","+b)},
		{"lv_present", volume("size", "10m")}, // not a multiple of the extent size
		{"lv_present", value.NewMap("name", "data", "vgname", "corpusvg", "size", "24m")},
		{"lv_present", value.NewMap("name", "data", "vgname", "corpusvg", "extents", 10)},
		{"lv_absent", value.NewMap("name", "data", "vgname", "corpusvg")},
		{"vg_absent", value.NewMap("name", "corpusvg")},
		{"pv_absent", value.NewMap("name", a)},
	} {
		hosttest.Converge(t, h, lvm.Functions(), c.function, c.args)
	}
}
