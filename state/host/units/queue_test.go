package units

import (
	"testing"

	"github.com/coreos/go-systemd/v22/dbus"
)

func TestJobsBehindOurOwnAreFreed(t *testing.T) {
	const own = "corpus-agent.service"
	deps := map[string]order{
		"web.service":     {after: []string{"basic.target", own}},
		"worker.service":  {after: []string{"web.service"}, pulls: []string{"web.service"}},
		"late.service":    {after: []string{"boot.target"}},
		"boot.target":     {after: []string{own}},
		"other.service":   {after: []string{"network.service"}},
		"circle.service":  {after: []string{"circle2.service"}},
		"circle2.service": {after: []string{"circle.service"}},
	}
	for name, c := range map[string]struct {
		unit, want string
		jobs       map[string]string
		own        string
	}{
		"ordered after us": {unit: "web.service", want: "web.service",
			jobs: map[string]string{"web.service": waiting}},
		"it runs": {unit: "web.service", jobs: map[string]string{"web.service": "running"}},
		"what it pulls in comes first": {unit: "worker.service", want: "web.service",
			jobs: map[string]string{"worker.service": waiting, "web.service": waiting}},
		"and is waited for": {unit: "worker.service",
			jobs: map[string]string{"worker.service": waiting, "web.service": "running"}},
		"what it does not pull in is left": {unit: "late.service", want: "late.service",
			jobs: map[string]string{"late.service": waiting, "boot.target": waiting}},
		"behind another unit": {unit: "other.service", jobs: map[string]string{"other.service": waiting,
			"network.service": "running"}},
		"a circle": {unit: "circle.service", jobs: map[string]string{"circle.service": waiting, "circle2.service": waiting}},
	} {
		q := queue{own: own, jobs: map[string]dbus.JobStatus{own: {Unit: own, Status: "running"}},
			deps: func(unit string) (order, bool) { o, ok := deps[unit]; return o, ok }}
		for unit, status := range c.jobs {
			q.jobs[unit] = dbus.JobStatus{Unit: unit, Status: status}
		}
		if got := q.next(c.unit, map[string]bool{}); got != c.want {
			t.Errorf("%s: %q is freed, want %q", name, got, c.want)
		}
		delete(q.jobs, own)
		if got := q.next(c.unit, map[string]bool{}); got != "" {
			t.Errorf("%s: %q is freed though no job of our own runs", name, got)
		}
	}
}
