package watchdog_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/watchdog"
)

// systemd replaces systemd's notification socket.
type systemd struct {
	t    *testing.T
	path string
	conn *net.UnixConn
}

func newSystemd(t *testing.T) *systemd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &systemd{t, path, conn}
}

// heard returns the next message.
func (s *systemd) heard() string {
	s.t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := s.conn.Read(buf)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(buf[:n])
}

func TestLongRunExtendsTimeout(t *testing.T) {
	const more = "EXTEND_TIMEOUT_USEC=300000000"
	for silent, asks := range map[time.Duration]bool{0: true, 59 * time.Minute: true, 2 * time.Hour: false} {
		t.Run(silent.String(), func(t *testing.T) {
			s, now, ticks := newSystemd(t), time.Unix(0, 0), make(chan time.Time)
			w := watchdog.New(watchdog.Options{
				Socket: s.path, Ticks: ticks, Now: func() time.Time { return now },
				Patience: func(stage string) time.Duration {
					return map[string]time.Duration{"": time.Minute, "converge": time.Hour}[stage]
				},
			})
			w.Begin(&report.Report{})
			w.Stage("converge", "myapp 2")
			for _, want := range []string{more, "STATUS=converge myapp 2"} {
				if got := s.heard(); got != want {
					t.Errorf("the message is %q, want %q", got, want)
				}
			}
			now = now.Add(silent)
			for range 3 {
				ticks <- now
				if asks {
					if got := s.heard(); got != more {
						t.Errorf("the message is %q, want %q", got, more)
					}
				}
			}
			w.End(&report.Report{Outcome: report.Converged})
			if got := s.heard(); got != "STATUS=converged" {
				t.Errorf("the last message is %q", got)
			}
		})
	}
}

func TestNoListener(t *testing.T) {
	for _, socket := range []string{"", filepath.Join(t.TempDir(), "none")} {
		if w := watchdog.New(watchdog.Options{Socket: socket}); w != nil {
			t.Errorf("with the socket %q, New returned a watchdog", socket)
		}
	}
}
