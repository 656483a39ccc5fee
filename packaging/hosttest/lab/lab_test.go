//go:build hosts

package lab_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

func TestBoot(t *testing.T) {
	for _, suite := range lab.Suites() {
		t.Run(suite, func(t *testing.T) {
			h := lab.Boot(t, lab.Options{Base: lab.Standard(suite), Hostname: "myapp-testing-local1-1"})
			if name := h.Sh("hostname"); name != "myapp-testing-local1-1" {
				t.Errorf("the hostname is %q", name)
			}
			if release := h.Read("/etc/os-release"); !strings.Contains(release, suite) {
				t.Errorf("the host is\n%s", release)
			}
			if failed := h.Sh("systemctl list-units --failed --plain --no-legend"); failed != "" {
				t.Errorf("units failed:\n%s", failed)
			}
			h.Sh("echo kept > /root/kept")
			h.Reboot()
			if kept := h.Sh("cat /root/kept"); kept != "kept" {
				t.Errorf("after a reboot the file reads %q", kept)
			}
			h.Sh("apt-get install -y nginx")
			if r := h.Run("false"); r.Code != 1 {
				t.Errorf("false gives %d", r.Code)
			}
		})
	}
}

func TestPowerCut(t *testing.T) {
	h := lab.Boot(t, lab.Options{Crash: true})
	h.Sh("echo synced > /root/synced && sync; echo lost > /root/lost")
	h.Cut()
	h.Start()
	if synced := h.Sh("cat /root/synced"); synced != "synced" {
		t.Errorf("the synced file has %q", synced)
	}
	if h.Exists("/root/lost") && h.Read("/root/lost") != "" {
		t.Error("the unsynced file still exists")
	}
}

func TestNetwork(t *testing.T) {
	n := lab.NewNetwork(t)
	n.Serve(lab.Gateway+":80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.RemoteAddr)
	}))
	one := lab.Boot(t, lab.Options{Network: n, Address: "172.31.0.11"})
	two := lab.Boot(t, lab.Options{Network: n, Address: "172.31.0.12"})
	for h, address := range map[*lab.Host]string{one: "172.31.0.11", two: "172.31.0.12"} {
		if answer := h.Sh("curl -sS --retry 5 --retry-connrefused http://" + lab.Gateway); !strings.HasPrefix(answer,
			"hello "+address+":") {
			t.Errorf("the answer is %q", answer)
		}
	}
	n.Unplug(one)
	if r := one.Run("curl", "-sS", "-m", "2", "http://"+lab.Gateway); r.Code == 0 {
		t.Error("a host without a network gets an answer")
	}
}
