package site

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// ShuttingDown reports whether the host is shutting down.
func (s *Site) ShuttingDown(ctx context.Context) bool {
	if s.Stopping != nil {
		return s.Stopping(ctx)
	}
	if s.Layout.Relocated() {
		return false
	}
	// systemctl exits with a code other than 0 for any state but "running".
	out, _ := Systemctl(context.WithoutCancel(ctx), 5*time.Second, "is-system-running")
	return strings.TrimSpace(out) == "stopping"
}

// Systemctl runs systemctl, with a timeout, and returns its output.
func Systemctl(ctx context.Context, within time.Duration, args ...string) (string, error) {
	var failed error
	for _, path := range []string{"/usr/bin/systemctl", "/bin/systemctl"} {
		result, err := hook.Program(ctx, path, hook.Options{Env: []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}, Dir: "/",
			Timeout: within, Args: args})
		if err == nil || result.Output != "" || ctx.Err() != nil {
			return result.Output, err
		}
		failed = err
	}
	return "", failed
}

// StateHost returns the host that states act on.
func (s *Site) StateHost() (*host.Host, error) { return s.StateHostWith(nil, s.NoteTemporary) }

// StateHostWith returns the host that states act on, with a recorder of what they replace. It calls temporary with each
// directory in which temporary files are made.
func (s *Site) StateHostWith(recorder host.ChangeRecorder, temporary func(dir string)) (*host.Host, error) {
	root := ""
	if s.Layout.Relocated() {
		root = s.Layout.Root
	}
	h, err := machine.New(host.Options{Root: root, Chroot: s.Chroot, Recorder: recorder, Temporary: temporary,
		Own: s.OwnUnit, Failed: s.FailedOutput().Note})
	if err == nil {
		h.Kept = kept{s}
	}
	return h, err
}

// System returns the service manager of the host's units.
func (s *Site) System() (service.System, error) {
	if s.Units != nil {
		return s.Units, nil
	}
	return s.Seen.of(s)
}

// SeenUnits keeps the host whose units an agent looks at, since it remembers what systemd said about them.
type SeenUnits struct {
	mu     sync.Mutex
	host   *host.Host
	own    *host.OwnUnit // the host was opened with this and the two below
	root   string
	chroot bool
}

// of returns the service manager of a site: that of the call before, unless the site is another.
func (u *SeenUnits) of(s *Site) (service.System, error) {
	if u == nil {
		u = &SeenUnits{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.host != nil && u.own == s.OwnUnit && u.root == s.Layout.Root && u.chroot == s.Chroot {
		units.Forget(u.host)
		return service.Of(u.host), nil
	}
	h, err := s.StateHost()
	if err != nil {
		return nil, err
	}
	u.host, u.own, u.root, u.chroot = h, s.OwnUnit, s.Layout.Root, s.Chroot
	return service.Of(h), nil
}

// BootID returns the ID of the boot from which UnitClock counts, or "" if it is not known.
func (s *Site) BootID() string {
	if s.Units == nil {
		h, err := s.StateHost()
		if err != nil {
			return ""
		}
		return journal.BootID(h)
	}
	if known, ok := s.Units.(interface{ BootID() string }); ok {
		return known.BootID()
	}
	return ""
}

// UnitClock returns the time of the monotonic clock in which start times of units are given.
func (s *Site) UnitClock() time.Duration {
	if s.Units != nil {
		return s.Units.Clock()
	}
	return units.Monotonic()
}
