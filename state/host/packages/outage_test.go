package packages

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/outage"
)

// TestMirrorOutageDiffersFromMissingPackage uses the output of each family without its mirror, and for a package that
// no repository has.
func TestMirrorOutageDiffersFromMissingPackage(t *testing.T) {
	ctx := context.Background()
	scripted, _ := aptWith(t, nil, nil)
	a := scripted.manager.(*apt)
	zypp := &zypper{}
	for output, fail := range map[string]func(host.Output) error{
		"E: Failed to fetch http://deb.debian.org/x.deb  Temporary failure resolving 'deb.debian.org'\n": func(
			o host.Output) error {
			return a.failure(ctx, "x", o)
		},
		"Curl error (7): Couldn't connect to server\nError: Failed to download metadata for repo 'base'": func(
			o host.Output) error {
			return orPassing(t.Context(), dnfLocked, o, whyFailed("x", o, dnfClues()))
		},
		"Download (curl) error for 'http://m/x':\nError code: Connection failed": func(o host.Output) error {
			return zypp.failure(t.Context(), "x", o)
		},
		"error: failed retrieving file 'core.db' from m : Operation too slow": func(o host.Output) error {
			return orPassing(t.Context(), pacmanLocked, o, whyFailed("x", o, pacmanClues()))
		},
		"ERROR: https://dl/main: temporary error (try again later)": func(o host.Output) error {
			return orPassing(t.Context(), apkLocked, o, whyFailed("x", o, apkClues()))
		},
	} {
		if err := fail(host.Output{Code: 100, Stderr: output}); !outage.Passing(err) {
			t.Errorf("%q is not an outage: %v", output, err)
		}
		if err := fail(host.Output{Code: 100, Stderr: "not enough memory for this"}); outage.Passing(err) {
			t.Errorf("another failure is an outage: %v", err)
		}
	}
	p, _ := aptWith(t, nil,
		map[string]host.Output{"apt-get -q update": {Stderr: "W: Failed to fetch http://deb/x  Temporary failure " +
			"resolving 'deb'\n"}})
	if _, err := p.Refresh(ctx); err != nil || !outage.Passing(p.Outage()) {
		t.Errorf("after a refresh without a mirror: %v, unreached %v", err, p.Outage())
	}
}

// TestFaultsOfTheHostInEachFamily uses output about a full disk and about kills.
func TestFaultsOfTheHostInEachFamily(t *testing.T) {
	for _, c := range []struct {
		clues  []clue
		output host.Output
		want   error
		hint   string
	}{
		{dnfClues(), host.Output{Stderr: "Error: Transaction test error:\n  installing package foo-1-1.noarch needs 12MB " +
			"more space on the / filesystem\n"}, syscall.ENOSPC, "dnf clean"},
		{dnfClues(), host.Output{Stderr: "At least 12MB more space needed on the / filesystem.\n"}, syscall.ENOSPC,
			"dnf clean"},
		{dnfClues(), host.Output{Stderr: "[Errno 28] No space left on device: '/var/cache/dnf/x'\n"}, syscall.ENOSPC,
			"dnf clean"},
		{dnfClues(), host.Output{Stderr: "error: Couldn't fork %post: Cannot allocate memory\n"}, syscall.ENOMEM, "free -m"},
		{dnfClues(), host.Output{Stderr: "warning: %post(foo-1-1.noarch) scriptlet failed, signal 9\n"}, &Killed{},
			"what the script does"},
		{dnfClues(), host.Output{Code: 137}, &Killed{}, "journalctl -k"},
		{zypperClues(), host.Output{Stderr: "Subprocess failed. Error: RPM failed: installing package foo-1-1.noarch needs " +
			"3 inodes on the / filesystem\n"}, syscall.ENOSPC, "zypper clean"},
		{pacmanClues(), host.Output{Stderr: "error: Partition / too full: 51 blocks needed, 3 blocks free\nerror: failed " +
			"to commit transaction (not enough free disk space)\n"}, syscall.ENOSPC, "pacman -Sc"},
		{apkClues(), host.Output{Stderr: "ERROR: foo-1-r0: No space left on device\n"}, syscall.ENOSPC, "apk cache clean"},
		{dnfClues(), host.Output{Stderr: "Error: Unable to find a match: foo\n"}, nil, "name"},
		{dnfClues(), host.Output{Stderr: "warning: %post(foo-1-1.noarch) scriptlet failed, exit status 1\n"}, nil, "rpm.log"},
	} {
		err := whyFailed("x", c.output, c.clues)
		var killed *Killed
		switch is := errors.As(err, &killed); {
		case c.want == nil && !is && !errors.Is(err, syscall.ENOSPC):
		case errors.As(c.want, &killed) && is:
		case c.want != nil && errors.Is(err, c.want):
		default:
			t.Errorf("%+v is %v, want %v", c.output, err, c.want)
		}
		if !strings.Contains(diag.HintOf(err), c.hint) {
			t.Errorf("%+v has the hint %q", c.output, diag.HintOf(err))
		}
	}
	p, _ := aptWith(t, nil, map[string]host.Output{"apt-get -q update": {Stderr: "W: Failed to fetch http://deb/x  " +
		"Error writing to file - write (28: No space left on device)\n"}})
	if _, err := p.Refresh(t.Context()); err != nil || !errors.Is(p.Outage(), syscall.ENOSPC) {
		t.Errorf("after a refresh on a full disk: %v, %v", err, p.Outage())
	}
}
