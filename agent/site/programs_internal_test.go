package site

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/config"
)

// TestSearchedDirectoriesHaveTheirReason distinguishes the directories of PATH from others with programs of the system.
func TestSearchedDirectoriesHaveTheirReason(t *testing.T) {
	dirs := searched("/opt/tools:/usr/bin")
	for _, want := range []program{{"PATH", "/opt/tools"}, {"PATH", "/usr/bin"}, {"the system's programs", "/usr/sbin"}} {
		if !slices.Contains(dirs, want) {
			t.Errorf("%v is not among %v", want, dirs)
		}
	}
	if slices.Contains(dirs, program{"the system's programs", "/usr/bin"}) {
		t.Errorf("/usr/bin is twice among %v", dirs)
	}
}

// TestFilesOfCommandsThatOtherUsersCanChangeAreRefused checks the words of commands in agent.yaml, and the file of the
// webhook's secret.
func TestFilesOfCommandsThatOtherUsersCanChangeAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	for setting, set := range map[string]func(c *config.Config, file string){
		"notify.command": func(c *config.Config, file string) { c.Notify.Command = []string{"/bin/sh", file} },
		"event_command": func(c *config.Config, file string) {
			c.EventCommand = []string{"sh", "-c", "exec '" + file + "'"}
		},
		"engine_command": func(c *config.Config, file string) { c.EngineCommand = []string{"sh", "-eu", file[1:]} },
		ofWebhook:        func(c *config.Config, file string) { c.Notify.WebhookSecret = file },
	} {
		file := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s := &Site{Config: config.Config{Engine: "command"}}
		set(&s.Config, file)
		if setting != "engine_command" {
			s.Config.Engine = "native"
		}
		if err := s.CheckPrograms(); err != nil && strings.Contains(err.Error(), file) {
			t.Errorf("%s, of root: %v", setting, err)
		}
		for what, change := range map[string]func() error{
			"mode":      func() error { return os.Chmod(file, 0o666) },
			"owner":     func() error { return os.Chown(file, 65534, 65534) },
			"directory": func() error { return os.Chown(filepath.Dir(file), 65534, 65534) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			err := s.CheckPrograms()
			if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "("+setting+")") {
				t.Errorf("%s, %s of a user: %v", setting, what, err)
			}
			err = errors.Join(os.Chown(file, 0, 0), os.Chmod(file, 0o600), os.Chown(filepath.Dir(file), 0, 0))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
