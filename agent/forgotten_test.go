package agent_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/grains"
)

// told is a host that a person told who it is, since its name does not say, with a deployed pair.
func told(t *testing.T) *lab {
	t.Helper()
	l := first(t, "vm")
	l.publishBase("b1")
	l.publish("1")
	if err := l.give(rootFile(t, l.repo.Root()), grains.Identity{Service: "myapp", Instance: "testing"}); err != nil {
		t.Fatal(err)
	}
	l.engine.asked = nil
	return l
}

// ticks runs what the timer runs, and checks the exit code.
func (l *lab) ticks(code int) {
	l.t.Helper()
	if err := l.tick(); exit.Code(err) != code {
		l.t.Fatalf("the run ended with %d (%v), want %d", exit.Code(err), err, code)
	}
}

// A host whose configuration was replaced by something else, and has no copy, goes on by what it remembers.
func TestConfigurationWithoutACopyKeepsNothingFromConverging(t *testing.T) {
	for name, place := range map[string]func(string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a circle":    func(path string) error { return os.Symlink(path, path) },
	} {
		t.Run(name, func(t *testing.T) {
			l := told(t)
			file := filepath.Join(t.TempDir(), "agent.yaml")
			if err := place(file); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(config.Sources{File: file, Copy: filepath.Join(t.TempDir(), "copy")})
			if err != nil || c.File.Damaged == nil {
				t.Fatalf("the configuration is damaged: %v, %v", c.File.Damaged, err)
			}
			l.Config.File = c.File
			l.publish("2")
			l.ticks(exit.Usage)
			if l.engine.last() != "b1+1" {
				t.Errorf("converged %q, want what is deployed", l.engine.last())
			}
		})
	}
}

// A host that has lost its ledger, the copy and all reports still knows by its links and its trust what it is.
func TestAHostThatForgotWhatItWasToldGoesOn(t *testing.T) {
	l := told(t)
	for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports()} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		l.ticks(exit.Usage) // it does not know the store
		if l.engine.last() != "b1+1" {
			t.Errorf("converged %q, want what is deployed", l.engine.last())
		}
		l.engine.asked = nil
	}
	l.Config.Store = "mem://" // as in agent.yaml
	l.publish("2")
	l.ticks(exit.Usage)
	if l.version("service/current") != "1" {
		t.Error("a host that does not know who it is deployed something new")
	}
	if _, err := l.Deploy(t.Context(), given("myapp", "testing"), false); err != nil {
		t.Error(err)
	}
	l.links("2", "2", "1")
	l.ticks(exit.OK)
}
