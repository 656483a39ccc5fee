package cron_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/cron"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// sources is a state tree in memory. Its template engine only replaces {{ who }}.
type sources map[string]string

func (s sources) Rendered(_ context.Context, source cron.Source) ([]byte, error) {
	text, ok := s[source.URL]
	if !ok {
		return nil, fmt.Errorf("%s is in no root", source.URL)
	}
	if source.Template == "jinja" {
		text = strings.ReplaceAll(text, "{{ who }}", value.Str(source.Context.Value("who")))
	}
	return []byte(text), nil
}

func (sources) Diff(before, after string) string { return "-" + before + "+" + after }

func files() sources {
	return sources{"salt://tab": "5 * * * * /bin/a\n", "salt://who": "WHO={{ who }}\n", "salt://open": "5 * * * * /bin/a"}
}

// salts is the crontab that Salt 3006 writes for the calls of TestRealCron.
const salts = "# Lines below here are managed by Salt, do not edit\nPATH=/bin\n# SALT_CRON_IDENTIFIER:crid\n5 * * * " +
	"* /bin/true x\n" +
	"# hello SALT_CRON_IDENTIFIER:/bin/true daily\n@daily /bin/true daily\n"

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "cron",
		Functions: func(*statetest.Host) module.Table { return cron.Functions(files()) },
		Prepare: func(_ *testing.T, h *statetest.Host) {
			h.Users.Users = append(h.Users.Users, host.User{Name: "gu1", UID: 7001, GID: 7001},
				host.User{Name: "alice", UID: 1000, GID: 50})
			h.Users.Groups = append(h.Users.Groups, host.Group{Name: "staff", GID: 50})
			h.Cron.Tabs["gu1"] = salts
		},
		Cases: statetest.Load(t, "../../../testdata/modules/account/cron.yaml"),
	})
}

func TestBelowARoot(t *testing.T) {
	h := statetest.NewHost(t)
	h.Cron.Refused = true
	_, err := hosttest.Resource(t, cron.Functions(files()),
		"present", value.NewMap("name", "/bin/true")).Check(context.Background(), h.Host)
	var skipped *host.Skipped
	if !errors.As(err, &skipped) {
		t.Errorf("a job below a root: %v, want it skipped", err)
	}
}

// TestRealCron runs the crontab program of the host in a chroot.
func TestRealCron(t *testing.T) {
	root := hosttest.Chroot(t)
	h, err := machine.New(host.Options{Root: root, Chroot: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := h.Which("crontab"); !ok {
		_, err := hosttest.Resource(t, cron.Functions(files()),
			"present", value.NewMap("name", "/bin/true")).Check(context.Background(), h)
		if err == nil || diag.HintOf(err) == "" {
			t.Errorf("a job without cron: %v", err)
		}
		t.Skip("this machine has no crontab to test with")
	}
	table := cron.Functions(files())
	for _, step := range []struct {
		function string
		args     *value.Map
	}{
		{"present", value.NewMap("name", "/bin/true x", "user", "alice", "minute", 5, "identifier", "crid")},
		{"present", value.NewMap("name", "/bin/true daily", "user", "alice", "special", "@daily", "comment", "hello")},
		{"env_present", value.NewMap("name", "PATH", "value", "/bin", "user", "alice")},
	} {
		hosttest.Converge(t, h, table, step.function, step.args)
	}
	if text, err := h.Crontabs.Read(context.Background(), "alice"); err != nil || text != salts {
		t.Errorf("the crontab is %q, %v, want %q", text, err, salts)
	}
	resource, diff := hosttest.Look(t, h, table,
		"present", value.NewMap("name", "/bin/true y", "user", "alice", "minute", "99"))
	_, err = resource.Apply(context.Background(), h, diff)
	if err == nil || !strings.Contains(err.Error(), "bad minute") || diag.HintOf(err) == "" {
		t.Errorf("an invalid minute: %v, want the message of cron and a hint", err)
	}
	if text, _ := h.Crontabs.Read(context.Background(), "alice"); text != salts {
		t.Errorf("a refused crontab left %q", text)
	}
	if err := os.Remove(filepath.Join(root, "usr/bin/crontab")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Crontabs.Read(context.Background(), "daemon"); err == nil || diag.HintOf(err) == "" {
		t.Errorf("reading without cron: %v, want a cause and a hint", err)
	}
}
