package failure

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/packages"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestFaultsOfTheHostInPackageManagers converges a pkg.installed state whose apt-get fails. A full disk, a kill and a
// mirror that drops the connection are faults of the host; a script that fails and a missing package are not.
func TestFaultsOfTheHostInPackageManagers(t *testing.T) {
	const ofDpkg = "E: Sub-process /usr/bin/dpkg returned an error code (1)\n"
	const script = "dpkg: error processing package p (--configure):\n installed p package post-installation script " +
		"subprocess "
	for output, want := range map[host.Output]struct{ host, script bool }{
		{Code: 137, Stderr: "debconf: delaying package configuration, since apt-utils is not installed\n"}: {host: true},
		{Code: 100, Stderr: "E: Sub-process /usr/bin/dpkg exited unexpectedly\n"}:                          {host: true},
		{Code: 100, Stderr: "E: You don't have enough free space in /var/cache/apt/archives/.\n"}:          {host: true},
		{Code: 100, Stderr: ofDpkg, Stdout: "dpkg: error processing archive /x.deb (--unpack):\r\n cannot copy extracted " +
			"data for './x' to '/x.dpkg-new': failed to write (No space left on device)\r\n"}: {host: true},
		{Code: 100, Stderr: "E: Failed to fetch http://deb/p.deb  Error reading from server. Remote end closed connection " +
			"[IP: 192.0.2.1 80]\n"}: {host: true},
		{Code: 100, Stderr: ofDpkg, Stdout: script + "was killed by signal (Killed)\n"}:      {host: true, script: true},
		{Code: 100, Stderr: ofDpkg, Stdout: script + "returned error exit status 1\n"}:       {},
		{Code: 100, Stderr: "E: Failed to fetch http://deb/p.deb  404  Not Found [IP: 1]\n"}: {},
	} {
		h := statetest.NewHost(t)
		h.Put("/etc/apt/sources.list", "deb http://example.com stable main\n")
		h.Put("/var/lib/dpkg/status", "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n")
		h.Put("/srv/states/top.sls", "base: {'*': [a]}\n")
		h.Put("/srv/states/a.sls", "p: {pkg.installed: []}\n")
		h.Commands = &hosttest.Scripted{T: t, Answers: map[string]host.Output{
			"apt-get --simulate": {Stdout: "Inst p (1 Debian [all])\n"}, "apt-get -q update": {}, "apt-get -q -y": output}}
		h.Packages = packages.New(h.Host, host.Options{})
		program, err := state.Native{}.Compile(t.Context(), state.Request{Host: h.Host, Grains: value.NewMap("id", "h"),
			StateRoots: []string{"/srv/states"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = program.Apply(t.Context(), nil)
		if err == nil || OfHost(err) != want.host || Killed(err) != want.script || strings.Contains(err.Error(), "debconf") {
			t.Errorf("%+v: %v, of the host %t, a killed script %t", output, err, err != nil && OfHost(err), Killed(err))
		}
	}
}
