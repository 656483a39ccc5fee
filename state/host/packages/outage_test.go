package packages

import (
	"context"
	"testing"

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
