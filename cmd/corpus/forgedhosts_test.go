package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
)

// reportingHost registers a key for a host of production and returns a function that writes its record, with the
// version of its agent.
func (s *shell) reportingHost(name string) func(agent string) {
	s.t.Helper()
	opened, err := stores.Open(s.env["CORPUS_STORE"], stores.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	key, _, err := hostkey.Open(filepath.Join(s.t.TempDir(), "host.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := key.Register(s.t.Context(), opened, hostkey.Registration{Host: name}); err != nil {
		s.t.Fatal(err)
	}
	w := hostrecord.Writer{Store: opened, Key: key, File: filepath.Join(s.t.TempDir(), "record.json"), Now: time.Now()}
	r := hostrecord.Record{Project: "myapp", Host: name, Run: time.Now().UTC().Format(hostrecord.RunTime),
		Outcome: "converged", Form: 9, Service: &hostrecord.Place{Channel: "production", Version: "1.0", Digest: "68cb9278"}}
	return func(agent string) {
		r.Agent, r.Sequence = agent, r.Sequence+1
		if err := w.Write(s.t.Context(), r, hostrecord.Detail{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestForgedAgentVersionStopsNoRollout checks that a host that reports an old agent stops a rollout only until
// --exempt names it, that the hint has the command, and that such a host is not in the roster.
func TestForgedAgentVersionStopsNoRollout(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.artifact("two", "2")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel production", "")
	s.expect(0, "project rollout myapp production --waves 100% --agent 1.4", "")
	good, forged := s.reportingHost("myapp-production-1"), s.reportingHost("myapp-production-2")
	good("1.4")
	forged("0.0.1")
	s.expect(0, "publish myapp 1.1 @two.tar.zst", "")
	for _, line := range []string{"point myapp production 1.1", "point myapp production 1.1 --urgent"} {
		s.expect(4, line, "1 of 2 hosts of myapp/production have agents older than 1.4")
		if again := "`corpus " + line + " --exempt myapp-production-2`"; !strings.Contains(s.err, again) {
			t.Errorf("the hint lacks %s:\n%s", again, s.err)
		}
	}
	s.expect(0, "fleet --trust-root @keys/root.json", "old agent on 1 host: myapp-production-2")
	s.expect(0, "point myapp production 1.1 --exempt myapp-production-2 --exempt myapp-production-1",
		"its rollout to 1 host in 1 wave")
	for _, text := range []string{
		"warning: the rollout leaves out 1 exempt host, whose agent may take the release at once: myapp-production-2\n",
		"warning: --exempt changes nothing for hosts that report no older agent: myapp-production-1\n",
	} {
		if !strings.Contains(s.err, text) {
			t.Errorf("the command lacks %q:\n%s", text, s.err)
		}
	}
	forged("1.4")
	s.expect(0, "fleet --trust-root @keys/root.json", "myapp/production")
	if strings.Contains(s.out, "old agent") {
		t.Errorf("a host with a new agent is listed:\n%s", s.out)
	}
}

// TestForgottenHostStopsNoRollout checks that what is left of a host that was forgotten, its reports, stops no rollout
// and is in no warning.
func TestForgottenHostStopsNoRollout(t *testing.T) {
	s, a, b := rollingStore(t)
	s.expect(0, "project rollout myapp production --agent 1.4", "")
	report := func(h *rollingHost, agent string) {
		t.Helper()
		place := "reports/myapp/" + h.name + "/" + h.run + ".json"
		data, err := h.key.Seal(place, fmt.Appendf(nil, `{"id":%q,"host":%q,"service":"myapp","instance":"production",`+
			`"agent":%q,"channels":[{"project":"myapp","channel":"production"}]}`, h.run, h.name, agent))
		if err == nil {
			_, err = h.store.Put(t.Context(), place, bytes.NewReader(data), int64(len(data)), store.Condition{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a.record("1.0", func(r *hostrecord.Record) { r.Agent = "1.4" })
	report(a, "1.4")
	b.record("1.0", func(r *hostrecord.Record) { r.Agent = "1.3" })
	report(b, "1.3")
	s.expect(4, "point myapp production 1.1", "1 of 2 hosts of myapp/production have agents older than 1.4")
	s.expect(0, "host forget myapp-production-2", "")
	s.expect(0, "point myapp production 1.1", "its rollout to 1 host in 1 wave")
	s.lacks("myapp-production-2")
}

// TestNewHostsOfARolloutAreNamed checks that the start of a rollout names the hosts that the last one did not have, at
// most ten of them as text and all of them with --json, and none if there was no last rollout.
func TestNewHostsOfARolloutAreNamed(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel production", "")
	s.expect(0, "project rollout myapp production --waves 100% --agent dev", "")
	s.reportingHost("myapp-production-00")("dev")
	s.artifact("first", "1.1")
	s.expect(0, "publish myapp 1.1 @first.tar.zst --channel production", "its rollout to 1 host")
	if strings.Contains(s.out, "new since") {
		t.Errorf("the first rollout of the channel names new hosts:\n%s", s.out)
	}
	for i := 1; i <= 12; i++ {
		s.reportingHost(fmt.Sprintf("myapp-production-%02d", i))("dev")
	}
	s.artifact("two", "2")
	s.expect(0, "publish myapp 1.2 @two.tar.zst --channel production",
		"\n13 hosts, 12 of them new since the last rollout: myapp-production-01, ")
	if !strings.Contains(s.out, "myapp-production-10 and 2 more\n") {
		t.Errorf("the names of new hosts are\n%s", s.out)
	}
	for i := 13; i <= 24; i++ {
		s.reportingHost(fmt.Sprintf("myapp-production-%02d", i))("dev")
	}
	var placed struct {
		New []string `json:"new_hosts"`
	}
	s.artifact("three", "3")
	s.json("publish myapp 1.3 @three.tar.zst --channel production", &placed)
	if len(placed.New) != 12 {
		t.Errorf("the JSON output names %q", placed.New)
	}
}
