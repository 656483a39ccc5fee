package packages

import (
	"context"
	"github.com/corpus-agent/corpus-agent/state/host"
	"os"
	"path"
	"strings"
	"time"
)

// inScope is the command line that runs what follows it in a systemd scope of its own. The scope is ordered
// before the unit of this run, so that a shutdown, which stops units in the opposite order, stops the
// run first: that waits until the package manager is done.
func inScope(description string) []string {
	argv := []string{"systemd-run", "--scope", "--quiet", "--description=" + description}
	if unit := ownUnit(); unit != "" {
		argv = append(argv, "--property=Before="+unit)
	}
	return append(argv, "--")
}

// ownUnit is the systemd unit that this process runs in; "" where that is not known.
func ownUnit() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	return unitOfCgroup(string(data))
}

// unitOfCgroup reads the unit out of the content of /proc/PID/cgroup: a line of the unified hierarchy, or
// of systemd's own, ends with it.
func unitOfCgroup(text string) string {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || parts[1] != "" && parts[1] != "name=systemd" {
			continue
		}
		if name := path.Base(parts[2]); strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope") {
			return name
		}
	}
	return ""
}

// packageGrace is how long a package manager that has begun may go on after the run was asked to end:
// one that is killed leaves packages that are neither old nor new. The unit's TimeoutStopSec= is longer.
const packageGrace = 10 * time.Minute

// unhurried is a context that is done some time after ctx: a package manager under way is to be
// finished. The caller must call done.
func unhurried(ctx context.Context) (own context.Context, done func()) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	host.Working(ctx, 1)
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(packageGrace, cancel)
		context.AfterFunc(own, func() { timer.Stop() })
	})
	return own, func() { stop(); cancel(); host.Working(ctx, -1) }
}
