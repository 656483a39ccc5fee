//go:build hosts

package hosttest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// cuts is the environment variable with the number of power failures; a few by default.
const cuts = "CORPUS_TEST_CUTS"

// paged returns a service with a page: a directory of files and a link, all of one version.
func paged(t *testing.T, version string) string {
	return tree(t, map[string]string{
		"version":                    version,
		"salt/config/states/top.sls": "base:\n  '*':\n    - paged\n",
		"salt/config/states/big":     strings.Repeat(version+"\n", 20000),
		"salt/config/states/www/a":   "a " + version + "\n", "salt/config/states/www/b/c": "c " + version + "\n",
		"salt/config/states/paged.sls": `
/etc/paged/conf:
  file.managed:
    - contents: "` + version + `"
    - makedirs: True
/etc/paged/big:
  file.managed:
    - source: salt://big
/etc/paged/www:
  file.recurse:
    - source: salt://www
    - clean: True
/etc/paged/link:
  file.symlink:
    - target: version-` + version + `
`})
}

// TestPowerCutsAtRandomMoments deploys one version after the other and simulates a power failure at a random time in
// each deploy, on a disk that loses unsynced data.
func TestPowerCutsAtRandomMoments(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("paged", "1", "testing", paged(t, "1"))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "paged-testing-local1-1", Network: n, Address: "172.31.0.11", Crash: true})
	s.reach(h, server)
	install(t, h)
	h.Sh("systemctl disable --now corpus-agent.timer")
	agent(t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json").converged(t)
	s.publish("paged", "2", "testing", paged(t, "2"))
	began := time.Now()
	h.Sh("systemctl start corpus-agent.service")
	whole := time.Since(began)
	h.Sh("sync")

	times, err := strconv.Atoi(os.Getenv(cuts))
	if err != nil {
		times = 10
	}
	stages := map[string]int{}
	for i := range times {
		version := strconv.Itoa(3 + i)
		s.publish("paged", version, "testing", paged(t, version))
		h.Sh("systemctl start --no-block corpus-agent.service")
		after := rand.N(whole + whole/4)
		time.Sleep(after)
		h.Cut()
		h.Start()
		what := fmt.Sprintf("cut %d, %s into a deploy of about %s", i+1, after.Round(time.Millisecond),
			whole.Round(time.Millisecond))
		stages[found(h, version)]++
		survived(t, h, what, version)
		if (i+1)%10 == 0 {
			t.Logf("%d cuts survived so far", i+1) // progress of a long run, which may exceed its time limit
		}
		if t.Failed() {
			t.Fatalf("the host after %s:\n%s", what, h.Sh("ls -laR /srv/projects/paged /var/lib/corpus | head -200"))
		}
	}
	t.Logf("%d cuts, each within a deploy of about %s; the host was found %v", times, whole.Round(time.Millisecond),
		stages)
}

// found returns the progress of a deploy of a version at the power failure.
func found(h *lab.Host, version string) string {
	current := h.Run("cat", "/srv/service/current/version").Out
	book := h.Run("cat", "/var/lib/corpus/ledger.json").Out
	switch _, running, _ := strings.Cut(book, `"running"`); {
	case strings.TrimSpace(current) == version && running == "":
		return "done"
	case strings.TrimSpace(current) == version:
		return "released"
	case running != "":
		return "converging"
	case h.Run("sh", "-c", "ls -d /srv/projects/paged/releases/"+version+"-* /srv/projects/paged/releases/.staged-"+
		version+"-*").Out != "":
		return "fetched"
	}
	return "before"
}

// survived checks a host after a power failure: the current release is complete, and the next run completes the deploy
// and leaves no temporary files.
func survived(t *testing.T, h *lab.Host, what, version string) {
	t.Helper()
	if r := h.Run("corpus-agent", "verify"); r.Code != 0 {
		t.Errorf("%s: the current release differs from what was signed: exit code %d: %s%s", what, r.Code, r.Out, r.Err)
	}
	if r := h.Run("sh", "-ec",
		`v=$(cat /srv/service/current/version); case $(readlink /srv/service/current) in releases/$v-*);; *) exit `+
			`1;; esac`); r.Code != 0 {
		t.Errorf("%s: current does not lead to a complete release: %s", what, h.Sh("ls -l /srv/service/"))
	}
	if r := h.Run("corpus-agent", "deploy"); r.Code != 0 {
		t.Errorf("%s: the next run ends with exit code %d: %s%s", what, r.Code, r.Out, r.Err)
	}
	if r := h.Run("corpus-agent", "verify"); r.Code != 0 {
		t.Errorf("%s: after the next run: exit code %d: %s%s", what, r.Code, r.Out, r.Err)
	}
	got := h.Run("sh", "-c",
		`cat /srv/service/current/version /srv/service/next/version /etc/paged/conf; head -1 /etc/paged/big; cat `+
			`/etc/paged/www/a /etc/paged/www/b/c; readlink /etc/paged/link`).Out
	if want := version + version + version + "\n" + version + "\na " + version + "\nc " + version + "\nversion-" +
		version + "\n"; got != want {
		t.Errorf("%s: after the next run the host has\n%s", what, got)
	}
	if left := h.Run("sh", "-c",
		`find / -xdev -name '.corpus-tmp*'; find /srv /etc/paged /var/lib/corpus -type f -size 0 ! -name lock; ls -A `+
			`/var/lib/corpus/incoming; ls -A /srv/projects/paged/releases | grep '^[.]'`).Out; left != "" {
		t.Errorf("%s: the temporary files %s remain", what, left)
	}
}
