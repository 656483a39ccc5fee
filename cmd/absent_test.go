//go:build integration

package cmd_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/fault"
)

// place is a file or directory that a run opens, and that may not exist.
type place struct {
	name string
	like string // suffix of its path
	own  bool   // a file of the agent: a broken link in its place is damage, which a run repairs
}

func places() []place {
	return []place{
		{"top", "/salt/config/states/top.sls", false},
		{"an SLS", "/salt/config/states/myapp.sls", false},
		{"the pillar's top", "/salt/config/pillar/top.sls", false},
		{"the pillar of the host", "/projects/myapp/pillar/init.sls", false},
		{"grains of the host", "/etc/corpus/grains.yaml", false},
		{"grains of base", "/grains", false},
		{"programs of grains", "/etc/corpus/grains.d", false},
		{"hooks", "/hooks/pre-release.d", false},
		{"the recipe", "/corpus.yaml", false},
		{"the configuration", "/etc/corpus/agent.yaml", false},
		{"the root of trust", "/var/lib/corpus/trust/root.json", true},
		{"the ledger", "/var/lib/corpus/ledger.json", true},
		{"the journal of a run that was interrupted", ".journal", true},
	}
}

// TestUnreadableIsNotAbsent fails every call that opens or describes one file, for a whole converge and a whole deploy.
func TestUnreadableIsNotAbsent(t *testing.T) {
	f := newFleet(t)
	f.release("base", "2", "production", map[string]string{
		"states/top.sls":    "base: {'*': [base]}\n",
		"states/base.sls":   "/etc/motd:\n  file.managed:\n    - contents: {{ grains.id }}\n",
		"grains/roles.yaml": "roles: [web]\n",
	})
	publish := func(version string) {
		f.release("myapp", version, "testing", map[string]string{
			"version": version, "corpus.yaml": "{}\n", "hooks/pre-release.d/10-hook": "#!/bin/sh\n",
			"salt/config/states/top.sls":   "base: {'*': [myapp]}\n",
			"salt/config/states/myapp.sls": "/etc/myapp:\n  file.managed:\n    - contents: {{ pillar.greeting }}\n",
			"salt/config/pillar/top.sls":   "base: {'*': [myapp]}\n",
			"salt/config/pillar/myapp.sls": "greeting: hello from " + version + "\n",
		})
	}
	publish("11")
	begin := f.host()
	write(t, begin, "etc/corpus/agent.yaml", "{}\n")
	write(t, begin, "etc/corpus/grains.yaml", "rack: 1\n")
	write(t, begin, "srv/projects/myapp/pillar/init.sls", "private: 1\n")
	f.plain(begin, 0, "deploy")
	publish("12")
	cut := f.copied(begin)
	if o := f.agent(cut, fault.Watch{Calls: fault.Naming(), Like: "/etc/myapp", At: 1}, "deploy"); o.Code != -1 {
		t.Fatalf("the deploy was not killed: %d: %s%s", o.Code, o.Out, o.Err)
	}
	for _, p := range places() {
		for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EIO, syscall.EMFILE, syscall.ENOSYS, syscall.ELOOP,
			syscall.ENOTDIR} {
			if p.own && (errno == syscall.ELOOP || errno == syscall.ENOTDIR) {
				continue // TestEachSingleLossIsRepaired checks this
			}
			for _, command := range []string{"converge", "deploy"} {
				t.Run(fmt.Sprintf("%s/%s/%s", p.name, errno, command), func(t *testing.T) {
					t.Parallel()
					from := begin
					if strings.Contains(p.name, "interrupted") {
						from = cut
					}
					f.with(t).unreadable(from, p, errno, command)
				})
			}
		}
	}
}

// unreadable runs a command on a host that cannot read a place, and again when the host can.
func (f *fleet) unreadable(begin string, p place, errno syscall.Errno, command string) {
	f.t.Helper()
	host := f.copied(begin)
	w := fault.Watch{Calls: fault.Reading(), Like: p.like, At: 1, Errno: errno, Onward: true}
	o := f.agent(host, w, command)
	output := o.Out + o.Err
	if _, hit := o.Hit(w); !hit {
		f.t.Fatalf("no call was for %s; exit code %d: %s", p.like, o.Code, output)
	}
	if o.Code == 0 || !strings.Contains(output, errno.Error()) || !strings.Contains(output, filepath.Base(p.like)) {
		f.t.Errorf("exit code %d, output\n%s", o.Code, output)
	}
	if hosts := []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.ENOSYS}; slices.Contains(hosts, errno) {
		data, err := os.ReadFile(filepath.Join(host, "var/lib/corpus/ledger.json"))
		if err != nil || strings.Contains(string(data), `"bad"`) {
			f.t.Errorf("a release was quarantined for the host's error: %s, %v\n%s", data, err, output)
		}
	}
	f.plain(host, 0, command)
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}
