//go:build hosts

package hosttest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// at runs a command on several hosts concurrently.
func at(hosts []*lab.Host, argv ...string) []lab.Result {
	results := make([]lab.Result, len(hosts))
	var group sync.WaitGroup
	for i, h := range hosts {
		group.Go(func() { results[i] = h.Run(argv...) })
	}
	group.Wait()
	return results
}

// TestFourHosts uses four hosts of one service on one store: a first deploy and an upgrade of all together, a rolling
// upgrade that a bad version stops at the first host, and a rollback of the fleet.
func TestFourHosts(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("web", "1", "testing", web(t, "1", checks))
	server := s.serve(n)
	var hosts []*lab.Host
	for _, address := range []string{"172.31.0.11", "172.31.0.12", "172.31.0.13", "172.31.0.14"} {
		h := bootWeb(t, n, s, address)
		s.reach(h, server)
		hosts = append(hosts, h)
	}
	pages := func() string {
		var all []string
		for _, h := range hosts {
			all = append(all, strings.TrimPrefix(page(h), "web "))
		}
		return strings.Join(all, " ")
	}
	want := func(when, want string) {
		t.Helper()
		if got := pages(); got != want {
			t.Errorf("%s the hosts serve %q, want %q", when, got, want)
		}
	}
	ended := func(when string, code int, results []lab.Result) {
		t.Helper()
		for i, r := range results {
			if r.Code != code {
				t.Errorf("%s: host %d ends with exit code %d: %s%s", when, i+1, r.Code, r.Out, r.Err)
			}
		}
	}
	ended("first deploy", 0, at(hosts, "corpus-agent", "deploy", "--store", storeURL, "--trust-root", "/root/root.json"))
	want("after the first deploy", "1 1 1 1")
	s.publish("web", "2", "testing", web(t, "2", checks))
	ended("upgrade", 0, at(hosts, "corpus-agent", "deploy", "--now"))
	want("after an upgrade of all at once", "2 2 2 2")

	s.publish("web", "3", "testing", web(t, "3", checks))
	for i, h := range hosts {
		ended("rolling upgrade", 0, []lab.Result{h.Run("corpus-agent", "deploy", "--now")})
		want("in the middle of a rolling upgrade", strings.TrimSpace(strings.Repeat("3 ", i+1)+
			strings.Repeat("2 ", len(hosts)-i-1)))
	}
	s.publish("web", "4", "testing", web(t, "4", "#!/bin/sh\nexit 1\n"), tree(t, map[string]string{
		"corpus.yaml": "health:\n  deadline: 3s\n  interval: 200ms\n  probes: [{script: bin/check}]\n"}))
	ended("bad version", 7, []lab.Result{hosts[0].Run("corpus-agent", "deploy", "--now")})
	want("after a bad version met the first host", "3 3 3 3")

	ended("rollback", 0, at(hosts, "corpus-agent", "rollback"))
	want("after a rollback", "2 2 2 2")
	s.publish("web", "5", "testing", web(t, "5", checks))
	ended("mended version", 0, at(hosts, "corpus-agent", "deploy", "--now"))
	want("after a mended version", "5 5 5 5")
	ended("verify", 0, at(hosts, "corpus-agent", "verify"))
}

// TestNetworkThatFails deploys a new version to a host with a bad network, or with a store that is down. The running
// service is not restarted, the report has the reason, and the next run succeeds.
func TestNetworkThatFails(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("web", "1", "testing", web(t, "1", checks))
	server := s.serve(n)
	h := bootWeb(t, n, s, "172.31.0.11")
	s.reach(h, server)
	s.start(h)
	up := func() { server.Config.Handler = http.FileServer(http.Dir(s.dir)) }
	for i, c := range []struct {
		name        string
		fail, mend  func()
		stillArrive bool // slowly
	}{
		{"the cable is out", func() { n.Unplug(h) }, func() { n.Plug(h) }, false},
		{"cut off on the way", func() { n.Lose(h, 100) }, func() { n.Lose(h, 0) }, false},
		{"30 % of packets lost", func() { n.Lose(h, 30) }, func() { n.Lose(h, 0) }, true},
		{"1 Mbit/s", func() { n.Slow(h, "1mbit") }, func() { n.Slow(h, "") }, true},
		{"the store is down", func() {
			server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "", http.StatusServiceUnavailable)
			})
		}, up, false},
		{"the store's answers break off", func() { server.Config.Handler = http.HandlerFunc(breakOff) }, up, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, pid := page(h), h.Sh("systemctl show -p MainPID,ActiveEnterTimestampMonotonic web.service")
			version := string(rune('2' + i))
			s.publish("web", version, "testing", web(t, version, checks),
				tree(t, map[string]string{"noise": noise(uint32(i+1), 300<<10)}))
			c.fail()
			began := time.Now()
			h.Sh("systemctl start corpus-agent.service || true")
			took := time.Since(began).Round(100 * time.Millisecond)
			r := history(t, h)[0]
			t.Logf("exit code %d after %s: %s", r.Exit, took, r.Error)
			c.mend()
			switch {
			case c.stillArrive && r.Exit == 0:
				if got := page(h); got != "web "+version {
					t.Errorf("the run converged, and the page is %q", got)
				}
				return
			case r.Exit != 5 || r.Error == "" || r.Hint == "":
				t.Errorf("exit code %d, %q, hint %q; want the store out of reach", r.Exit, r.Error, r.Hint)
			}
			if after := h.Sh("systemctl show -p MainPID,ActiveEnterTimestampMonotonic web.service"); page(h) != before ||
				after != pid {
				t.Errorf("the service was restarted or changed: page %q, then %q; %s, then %s", before, page(h), pid, after)
			}
			lab.Eventually(t, 30*time.Second, "the network is back", func() bool {
				return h.Run("curl", "-fsS", "-m", "5", storeURL+"/metadata/timestamp.json").Code == 0
			})
			if r := h.Run("corpus-agent", "deploy", "--now"); r.Code != 0 || page(h) != "web "+version {
				t.Errorf("after the repair: exit code %d, page %q: %s%s", r.Code, page(h), r.Out, r.Err)
			}
		})
	}
}

// breakOff announces more bytes than it sends.
func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000000")
	_, _ = w.Write([]byte("{"))
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}

// noise returns text that does not compress, different for each seed.
func noise(seed uint32, size int) string {
	b, x := make([]byte, size), seed
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	text, _ := json.Marshal(b) // base64: valid in any file
	return string(text)
}

// TestStoreDownForManyTicks runs a host with a store that is down: the timer continues, the service is not restarted,
// and drift is corrected.
func TestStoreDownForManyTicks(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("web", "1", "testing", web(t, "1", checks))
	server := s.serve(n)
	h := bootWeb(t, n, s, "172.31.0.11")
	s.reach(h, server)
	s.start(h)
	pid := h.Sh("systemctl show -p MainPID web.service")
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "", http.StatusServiceUnavailable)
	})
	before := len(history(t, h))
	fast(h)
	lab.Eventually(t, 5*time.Minute, "five ticks", func() bool { return len(history(t, h)) >= before+5 })
	h.Sh("echo somebody was here > /etc/web/index.html")
	lab.Eventually(t, 2*time.Minute, "the page is put right", func() bool { return page(h) == "web 1" })
	for _, r := range history(t, h)[:5] {
		if r.Exit != 5 || r.Hint == "" {
			t.Errorf("a tick without the store: exit code %d, %s", r.Exit, r.Error)
		}
	}
	if after := h.Sh("systemctl show -p MainPID web.service"); after != pid {
		t.Errorf("the service was restarted: %s, then %s", pid, after)
	}
	s.publish("web", "2", "testing", web(t, "2", checks))
	server.Config.Handler = http.FileServer(http.Dir(s.dir))
	lab.Eventually(t, 2*time.Minute, "the next tick recovers", func() bool { return page(h) == "web 2" })
}
