package onhost

import (
	"context"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// program is the path of the agent that the packaged unit starts.
const program = "/usr/bin/corpus-agent"

// units adds whether the timer starts runs, and which version of the agent it starts.
func (h *Host) units(ctx context.Context) {
	if h.Layout.Relocated() {
		h.found.Skip("timer", "below --root nothing is started by a timer")
		return
	}
	answer, err := site.Systemctl(ctx, 5*time.Second, "show", "--property=LoadState,ActiveState,UnitFileState",
		records.TimerUnit)
	if err != nil {
		h.found.Skip("timer", "systemd does not answer: %v", err)
		return
	}
	h.timer(service.Properties(answer))
	h.version(ctx)
}

// timer adds findings about the agent's timer in systemd.
func (h *Host) timer(is map[string]string) {
	const start = "systemctl enable --now " + records.TimerUnit
	switch {
	case is["LoadState"] == "not-found":
		h.found.Warn("timer", diag.Agent, "install the package, or start runs with a timer of your own: docs/packages.md",
			"there is no unit %s: nothing starts runs by itself", records.TimerUnit)
	case is["LoadState"] == "masked":
		h.found.Fail("timer", diag.Agent, "systemctl unmask "+records.TimerUnit+" && "+start,
			"%s is masked", records.TimerUnit)
	case is["ActiveState"] != "active":
		h.found.Fail("timer", diag.Agent, start,
			"%s is %s: nothing starts runs by itself", records.TimerUnit, is["ActiveState"])
	case !strings.HasPrefix(is["UnitFileState"], "enabled") && is["UnitFileState"] != "static":
		h.found.Warn("timer", diag.Agent, start,
			"%s is %s: after a boot it does not start", records.TimerUnit, is["UnitFileState"])
	default:
		h.found.OK("timer", "%s is enabled and active", records.TimerUnit)
	}
}

// version compares this program with the one that the unit starts.
func (h *Host) version(ctx context.Context) {
	result, err := hook.Program(ctx, program, hook.Options{Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		Timeout: 10 * time.Second, Args: []string{"version"}})
	switch {
	case err != nil:
		h.found.Warn("version", diag.Agent, "install the package: docs/packages.md",
			"%s, which the packaged unit starts, cannot be run: %v", program, err)
	case !strings.Contains(result.Output, h.Version):
		h.found.Warn("version", diag.Agent, "use "+program+", or install this version there",
			"this program is %s, and %s is %s", h.Version, program, strings.TrimSpace(result.Output))
	default:
		h.found.OK("version", "%s is %s", program, h.Version)
	}
}

// The space that a deploy needs on a disk: a release of usual size in addition to the deployed one.
const (
	fewBytes = 256 << 20
	fewFiles = 2000
)

// disks adds the free space of the filesystems of the agent's own directory and of the releases.
func (h *Host) disks() {
	if err := h.Unwritable(); err != nil {
		h.found.Error("disk", diag.Disk, err, "make room")
	}
	for _, dir := range []string{h.Layout.State(), h.Layout.Projects()} {
		left, err := walk.SpaceAt(dir)
		switch shown := h.Layout.Inside(dir); {
		case err != nil:
			h.found.Skip("disk", "%s does not exist yet", shown)
		case left.ReadOnly:
			h.found.Fail("disk", diag.Disk, "mount it for writing; if it was not made read-only on purpose, look at dmesg",
				"%s is read-only", shown)
		case left.Bytes < fewBytes || left.Files < fewFiles:
			h.found.Warn("disk", diag.Disk, "make room, or lower keep.releases and keep.archives in agent.yaml",
				"%s has %s and %s left",
				shown, diag.Size(left.Bytes), diag.Count(int(left.Files), "inode"))
		default:
			h.found.OK("disk", "%s has %s left", shown, diag.Size(left.Bytes))
		}
	}
}
