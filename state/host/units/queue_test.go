package units

import (
	"testing"

	"github.com/coreos/go-systemd/v22/dbus"
)

func TestJobsWaitingForTheRunAreStarted(t *testing.T) {
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
		"ordered after the agent": {unit: "web.service", want: "web.service",
			jobs: map[string]string{"web.service": waiting}},
		"a running job": {unit: "web.service", jobs: map[string]string{"web.service": "running"}},
		"a waiting dependency is started first": {unit: "worker.service", want: "web.service",
			jobs: map[string]string{"worker.service": waiting, "web.service": waiting}},
		"a running dependency": {unit: "worker.service",
			jobs: map[string]string{"worker.service": waiting, "web.service": "running"}},
		"a unit that it does not require is not started": {unit: "late.service", want: "late.service",
			jobs: map[string]string{"late.service": waiting, "boot.target": waiting}},
		"ordered after another unit": {unit: "other.service", jobs: map[string]string{"other.service": waiting,
			"network.service": "running"}},
		"a cycle": {unit: "circle.service", jobs: map[string]string{"circle.service": waiting, "circle2.service": waiting}},
	} {
		q := queue{own: own, jobs: map[string]dbus.JobStatus{own: {Unit: own, Status: "running"}},
			deps: func(unit string) (order, bool) { o, ok := deps[unit]; return o, ok }}
		for unit, status := range c.jobs {
			q.jobs[unit] = dbus.JobStatus{Unit: unit, Status: status}
		}
		if got := q.next(c.unit, map[string]bool{}); got != c.want {
			t.Errorf("%s: the job of %q is started, want %q", name, got, c.want)
		}
		delete(q.jobs, own)
		if got := q.next(c.unit, map[string]bool{}); got != "" {
			t.Errorf("%s: the job of %q is started without a job of the agent's unit", name, got)
		}
	}
}
