package health_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// quick returns options with short waits.
func quick(probes ...recipe.Probe) health.Options {
	h := health.Merge(recipe.Health{Interval: time.Millisecond, Retries: 20, Deadline: time.Minute},
		recipe.Health{Timeout: 10 * time.Second})
	h.Probes = probes
	return health.Options{Health: h}
}

func httpProbe(url, contains string) recipe.Probe {
	return recipe.Probe{Kind: recipe.ProbeHTTP, Target: url, Status: [2]int{200, 299}, Contains: contains}
}

func TestProbeWaitsForSlowService(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready"))
	}))
	defer server.Close()
	results, err := health.Check(context.Background(), quick(httpProbe(server.URL, "ready")))
	if err != nil || results[0].Tries != 3 {
		t.Errorf("results are %+v, %v, want a pass at the third try", results, err)
	}
}

func TestProbeErrorsHaveReasons(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sick" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write([]byte("starting"))
	}))
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "check"), []byte("#!/bin/sh\necho \"$GREETING: $1 is down\"\nexit 4\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		probe recipe.Probe
		want  string
	}{
		"status":   {httpProbe(server.URL+"/sick", ""), "status 500, and 200 to 299 is healthy"},
		"contains": {httpProbe(server.URL, "ready"), `does not contain "ready"`},
		"tcp":      {recipe.Probe{Kind: recipe.ProbeTCP, Target: closedPort(t)}, "connection refused"},
		"script": {recipe.Probe{Kind: recipe.ProbeScript, Target: "check", Args: []string{"db"}},
			"exit status 4: hello: db is down"},
		"absent": {recipe.Probe{Kind: recipe.ProbeScript, Target: "nothing"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := quick(c.probe)
			o.Dir, o.Env, o.Retries = dir, []string{"GREETING=hello"}, 1
			results, err := health.Check(context.Background(), o)
			var unhealthy *health.Unhealthy
			if !errors.As(err, &unhealthy) || !strings.Contains(err.Error(), c.want) || results[0].Tries != 2 {
				t.Errorf("got %v after %d tries, want %q after 2", err, results[0].Tries, c.want)
			}
		})
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestOpenPortIsHealthy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := health.Check(context.Background(),
		quick(recipe.Probe{Kind: recipe.ProbeTCP, Target: l.Addr().String()})); err != nil {
		t.Error(err)
	}
}

func TestUnitProbesQuerySystemd(t *testing.T) {
	bin := t.TempDir()
	fake := "#!/bin/sh\nfor u; do :; done\ncase $u in\n" +
		"good*) echo LoadState=loaded; echo ActiveState=active; echo SubState=running;;\n" +
		"gone*) echo LoadState=not-found; echo ActiveState=inactive;;\n" +
		"*) echo LoadState=loaded; echo ActiveState=activating; echo SubState=auto-restart;;\nesac\n"
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for unit, want := range map[string]string{"good.service": "", "gone.service": "no such unit",
		"flapping.service": "it is activating (auto-restart)"} {
		o := quick(recipe.Probe{Kind: recipe.ProbeUnit, Target: unit})
		o.Retries = 1
		_, err := health.Check(context.Background(), o)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", unit, err, want)
		}
	}
}

func TestDeadlineEndsHangingProbe(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hang)
	o := quick(httpProbe(server.URL, ""))
	o.Retries, o.Deadline = 0, 50*time.Millisecond
	_, err := health.Check(context.Background(), o)
	var unhealthy *health.Unhealthy
	if !errors.As(err, &unhealthy) {
		t.Errorf("got %v, want an Unhealthy error", err)
	}
}

func TestInterruptIsNotAHealthFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := health.Check(ctx, quick(recipe.Probe{Kind: recipe.ProbeTCP, Target: closedPort(t)}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}

func TestHealthOfTheReleaseOverridesTheHosts(t *testing.T) {
	h := health.Merge(recipe.Health{Grace: time.Second, Probes: []recipe.Probe{{Kind: recipe.ProbeTCP, Target: "a:1"}}},
		recipe.Health{Grace: time.Minute, Deadline: 2 * time.Minute, Retries: 3,
			Probes: []recipe.Probe{{Kind: recipe.ProbeTCP, Target: "b:1"}}})
	if h.Grace != time.Second || h.Retries != 3 || h.Deadline != 2*time.Minute || len(h.Probes) != 2 {
		t.Errorf("merged to %+v", h)
	}
}
