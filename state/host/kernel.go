package host

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host/binding"
)

// Kernel is the running system, in contrast to the files from which it was started: its settings, mounts, packet
// filters and host name. A chroot has no kernel of its own, so a change by a run below a root would affect the machine
// that contains the root.
type Kernel interface {
	// Allowed returns a *Skipped error if the running system may not be changed.
	Allowed(what string) error
	// Hostname returns the host name of the kernel.
	Hostname() (string, error)
	// SetHostname changes that name until the next boot.
	SetHostname(name string) error
	// Bound reports whether a directory is shown at its other place.
	Bound(b binding.Binding) (bool, error)
	// Bind shows a directory at another place, for a container, until the next boot.
	Bind(b binding.Binding) error
	// Unbind ends what Bind did.
	Unbind(at string) error
}

type kernel struct {
	refused  bool
	recorder ChangeRecorder
}

func (k kernel) Allowed(what string) error {
	if k.refused {
		return &Skipped{What: what}
	}
	return nil
}

func (k kernel) Hostname() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("reading the hostname: %w", err)
	}
	return strings.TrimRight(string(u.Nodename[:]), "\x00"), nil
}

func (k kernel) SetHostname(name string) error {
	if err := k.Allowed("setting the hostname"); err != nil {
		return err
	}
	if err := Record(k.recorder, Subject{KindHostname, "of the running system"}); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return explain(fmt.Errorf("setting the hostname to %s: %w", name, err))
	}
	return nil
}

func (k kernel) Bound(b binding.Binding) (bool, error) {
	if k.refused {
		return false, nil
	}
	return b.Is()
}

func (k kernel) Bind(b binding.Binding) error {
	return k.mounts(b.Source+" at "+b.At, b.Make)
}

func (k kernel) Unbind(at string) error {
	return k.mounts(at, func() error { return binding.Remove(at) })
}

// mounts makes a change of the mounts, which is recorded.
func (k kernel) mounts(what string, change func() error) error {
	if err := k.Allowed("mounting " + what); err != nil {
		return err
	}
	if err := Record(k.recorder, Subject{KindCommand, "mount of " + what}); err != nil {
		return err
	}
	return change()
}
