package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// TestConvergeTimeoutBeforeStatesQuarantinesNothing exceeds converge.timeout while the releases are compared.
func TestConvergeTimeoutBeforeStatesQuarantinesNothing(t *testing.T) {
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.Config.ConvergeTimeout = time.Nanosecond
	r, _ := l.deploy()
	if !strings.Contains(r.Error, "converge.timeout (1ns) was over") || strings.Contains(r.Error+r.Hint, "dmesg") ||
		!strings.Contains(r.Hint, "raise converge.timeout") {
		t.Errorf("the report has the error %q and the hint %q", r.Error, r.Hint)
	}
	if r.Fault == nil || r.Fault.Of != report.FaultOfHost || len(r.Quarantined) > 0 {
		t.Errorf("fault %+v, quarantine %v", r.Fault, r.Quarantined)
	}
}
