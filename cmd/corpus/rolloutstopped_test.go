package main

import (
	"strings"
	"testing"

	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
)

// TestPromotingAReleaseThatHaltedBeforeIsWarnedOf checks that each way to move a channel says that an earlier rollout
// of the release halted: while it is halted, after another release was promoted over it, after an abort, and in a
// draft.
func TestPromotingAReleaseThatHaltedBeforeIsWarnedOf(t *testing.T) {
	s, a, b := rollingStore(t)
	s.artifact("1.2", "1.2")
	s.expect(0, "publish myapp 1.2 @1.2.tar.zst", "")
	s.expect(0, "point myapp testing 1.1", "")
	s.expect(0, "promote myapp testing production", "its rollout to 2 hosts")
	if strings.Contains(s.err, "halted") {
		t.Errorf("the first rollout is warned of:\n%s", s.err)
	}
	a.result(hosts.Failed)
	s.expect(0, "promote myapp testing production", "its rollout is the same")
	s.warns("the rollout of 1.1 to myapp/production halted at 20", ": it failed on 1 of 1 hosts, which is the limit",
		"does not continue it; no host takes the release: `corpus rollout resume myapp production` continues")
	b.halt()
	s.expect(0, "promote myapp testing production", "its rollout is the same")
	s.warns("the rollout of 1.1 to myapp/production halted at 20",
		` by myapp-production-2, which says "it failed on 1 of 1 hosts`)
	s.expect(0, "point myapp production 1.2", "its rollout to 2 hosts")
	s.warns()
	for _, line := range []string{"point myapp production 1.1 --draft @draft", "promote myapp testing production"} {
		s.expect(0, line, "")
		s.warns("an earlier rollout of 1.1 to myapp/production halted at 20",
			` by myapp-production-2, which says "it failed on 1 of 1 hosts, which is the limit `+
				`(limit 1; myapp-production-1)"`,
			"take it again only after `corpus-agent unquarantine 1.1` there", "`corpus rollout abort myapp production`")
	}
	s.expect(0, "rollout abort myapp production", "is aborted")
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	s.warns("an earlier rollout of 1.1 to myapp/production halted at 20", "was aborted, and starts again: abort at 20")
	s.expect(0, "point myapp production 1.2", "its rollout to 2 hosts")
	s.expect(0, "publish myapp 1.1 @1.1.tar.zst --channel production", "its rollout to 2 hosts")
	s.warns("an earlier rollout of 1.1 to myapp/production halted at 20",
		"an earlier rollout of 1.1 to myapp/production was aborted at 20")
}

// TestSameBytesUnderAnotherVersionAreWarnedOf checks that the warning of an earlier halt and abort names both versions
// if a release has the bytes of the one that was halted.
func TestSameBytesUnderAnotherVersionAreWarnedOf(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.result(hosts.Failed)
	b.halt()
	s.expect(0, "rollout abort myapp production", "is aborted")
	s.expect(0, "publish myapp 1.5 @1.1.tar.zst --channel production", "its rollout to 2 hosts")
	s.warns("an earlier rollout of 1.5 (the same bytes as 1.1) to myapp/production halted at 20",
		"the rollout of 1.5 (the same bytes as 1.1) to myapp/production was aborted, and starts again: abort at 20")
}

// TestRolloutThatArrivedAfterAHaltIsNotWarnedOf checks that a halt no longer counts once the release has arrived.
func TestRolloutThatArrivedAfterAHaltIsNotWarnedOf(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	a.result(hosts.Failed)
	s.expect(0, "rollout resume myapp production", "earlier failures no longer count")
	a.result(hosts.Healthy)
	b.result(hosts.Healthy)
	s.expect(0, "point myapp production 1.0", "its rollout to 2 hosts")
	s.expect(0, "point myapp production 1.1", "its rollout to 2 hosts")
	s.warns()
}

// warns checks the warnings of the last command about earlier rollouts of its release: it has each text, or no warning
// without texts.
func (s *shell) warns(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.err, text) {
			s.t.Errorf("the command does not warn of %q:\n%s", text, s.err)
		}
	}
	if len(texts) == 0 && (strings.Contains(s.err, "halted") || strings.Contains(s.err, "was aborted")) {
		s.t.Errorf("the command warns:\n%s", s.err)
	}
}
