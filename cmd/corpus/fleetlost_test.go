package main

import (
	"os"
	"testing"

	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
)

// TestFleetNamesTheHostsOfARolloutWhoseRecordsAreLost checks that hosts of a rollout that goes on are named as missing
// also if no host has a record, so that none is behind.
func TestFleetNamesTheHostsOfARolloutWhoseRecordsAreLost(t *testing.T) {
	s, a, _ := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.result(hosts.Healthy)
	for _, dir := range []string{"fleet", "hosts", "reports"} {
		if err := os.RemoveAll(s.path("store/" + dir)); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(0, "fleet --trust-root @keys/root.json", "missing in a rollout: myapp 1.1 on 1 host: myapp-production-2")
	s.expect(0, "fleet --project myapp --trust-root @keys/root.json", "")
}
