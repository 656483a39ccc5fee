package module_test

import (
	"context"
	"encoding/json"
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
	"github.com/corpus-agent/corpus-agent/state/module/alias"
	"github.com/corpus-agent/corpus-agent/state/module/cron"
	"github.com/corpus-agent/corpus-agent/state/module/group"
	hosts "github.com/corpus-agent/corpus-agent/state/module/host"
	"github.com/corpus-agent/corpus-agent/state/module/sshauth"
	"github.com/corpus-agent/corpus-agent/state/module/sshknownhosts"
	"github.com/corpus-agent/corpus-agent/state/module/user"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// noSources has no files.
type noSources struct{}

func (noSources) Source(_ context.Context, url, _ string) ([]byte, error) {
	return nil, fmt.Errorf("%s is in no root", url)
}

func (noSources) Rendered(_ context.Context, s cron.Source) ([]byte, error) {
	return nil, fmt.Errorf("%s is in no root", s.URL)
}

func (noSources) Diff(string, string) string { return "" }

// outcome is a result in the form of Salt's reports.
type outcome struct {
	Result  any
	Changes map[string]any
}

// TestResultsEqualSalts runs states that were recorded with Salt 3006, with the tools of the host in a chroot: a dry
// run, a first and a second run. Results and changes must equal Salt's.
func TestResultsEqualSalts(t *testing.T) {
	data, err := os.ReadFile("../../testdata/modules/account/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var steps []struct {
		State, Function    string
		Arguments          map[string]any
		Dry, First, Second outcome
	}
	if err := json.Unmarshal(data, &steps); err != nil {
		t.Fatal(err)
	}
	h := open(t, hosttest.Chroot(t))
	if _, ok := h.Which("crontab"); !ok {
		t.Skip("this machine has no crontab to test with")
	}
	tables := accountStates()
	for _, pass := range []string{"dry", "first", "second"} {
		for _, s := range steps {
			want := map[string]outcome{"dry": s.Dry, "first": s.First, "second": s.Second}[pass]
			result, changes := call(t, h, tables[s.State], s.Function,
				value.From(numbers(s.Arguments)).(*value.Map), pass == "dry")
			if result != want.Result || !value.Equal(changes, value.From(numbers(want.Changes))) {
				t.Errorf("%s run: %s.%s of %v gives %v and %s, want %v and %v", pass, s.State, s.Function, s.Arguments["name"],
					result, value.Repr(changes), want.Result, want.Changes)
			}
		}
	}
	templates(t, h)
}

// templates checks the accounts that the recorded states created as templates see them.
func templates(t *testing.T, h *host.Host) {
	t.Helper()
	info, ok, err := user.Lookup(h, "gu1")
	if err != nil || !ok {
		t.Fatalf("gu1 does not exist: %v", err)
	}
	want := value.NewMap("gid", 7001, "groups", value.Strings("games", "gg1", "users"), "home", "/home/gu1", "name",
		"gu1", "passwd", "x", "shell", "/bin/sh",
		"uid", 7001, "fullname", "G U", "roomnumber", "", "workphone", "", "homephone", "", "other", "")
	if !value.Equal(info.Map(), want) {
		t.Errorf("user.info is %s, want %s", value.Repr(info.Map()), value.Repr(want))
	}
	keys, err := sshauth.Keys(h, "gu1", ".ssh/authorized_keys", "")
	if err != nil || keys.Len() != 2 {
		t.Errorf("ssh.auth_keys are %s, %v, want two", value.Repr(keys), err)
	}
	tab, err := h.Crontabs.Read(context.Background(), "gu1")
	if wantTab := "# Lines below here are managed by Salt, do not edit\nPATH=/bin\n# SALT_CRON_IDENTIFIER:crid\n5 * * " +
		"* * /bin/true x\n" +
		"# hello SALT_CRON_IDENTIFIER:/bin/true daily\n@daily /bin/true daily\n"; err != nil || tab != wantTab {
		t.Errorf("cron.raw_cron is %q, %v, want %q", tab, err, wantTab)
	}
}

// call runs a function and returns Salt's result: true, false, or nil for a dry run that predicts changes.
func call(t *testing.T, h *host.Host, table module.Table, function string, arguments *value.Map,
	dry bool) (any, *value.Map) {
	t.Helper()
	resource := hosttest.Resource(t, table, function, arguments)
	diff, err := resource.Check(context.Background(), h)
	switch {
	case err != nil:
		return false, value.NewMap()
	case diff.Empty():
		return true, value.NewMap()
	case dry && diff.Planned != nil:
		return nil, diff.Planned
	case dry:
		return nil, diff.Changes
	}
	report, err := resource.Apply(context.Background(), h, diff)
	changes := report.Changes
	if changes == nil {
		changes = value.NewMap()
	}
	return err == nil, changes
}

// numbers converts the numbers of decoded JSON to int.
func numbers(v any) any {
	switch v := v.(type) {
	case float64:
		return int(v)
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

func open(t testing.TB, root string) *host.Host {
	t.Helper()
	h, err := machine.New(host.Options{Root: root, Chroot: true})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestBelowARoot checks that states do not act on the running system: accounts and crontabs are skipped, and so are
// files of a missing user. Files below the root are written.
func TestBelowARoot(t *testing.T) {
	root := t.TempDir()
	hosttest.Tree(t, root)
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	tables := accountStates()
	for _, c := range []struct {
		state, function string
		arguments       *value.Map
	}{
		{"user", "present", value.NewMap("name", "zoe")},
		{"user", "absent", value.NewMap("name", "alice")},
		{"group", "present", value.NewMap("name", "crew")},
		{"group", "absent", value.NewMap("name", "users")},
		{"cron", "present", value.NewMap("name", "/bin/true")},
		{"cron", "absent", value.NewMap("name", "/bin/true")},
		{"cron", "file", value.NewMap("name", "salt://tab")},
		{"cron", "env_present", value.NewMap("name", "A", "value", "b")},
		{"cron", "env_absent", value.NewMap("name", "A")},
		{"ssh_auth", "present", value.NewMap("name", "AAAA", "user", "zoe")},
		{"ssh_auth", "manage", value.NewMap("name", "x", "user", "zoe", "ssh_keys", value.Strings("AAAA"))},
		{"ssh_known_hosts", "present", value.NewMap("name", "h", "user", "zoe", "key", "AAAA", "enc", "rsa")},
		{"ssh_known_hosts", "present", value.NewMap("name", "h", "user", "alice")},
	} {
		_, err := hosttest.Resource(t, tables[c.state], c.function, c.arguments).Check(context.Background(), h)
		var skipped *host.Skipped
		if !errors.As(err, &skipped) {
			t.Errorf("%s.%s of %s: %v, want it skipped", c.state, c.function, value.Repr(c.arguments), err)
		}
	}
	for file, c := range map[string]struct {
		state     string
		arguments *value.Map
	}{
		"home/alice/.ssh/authorized_keys": {"ssh_auth", value.NewMap("name", "AAAA", "user", "alice")},
		"etc/ssh/ssh_known_hosts":         {"ssh_known_hosts", value.NewMap("name", "h", "key", "AAAA", "enc", "rsa")},
		"etc/hosts":                       {"host", value.NewMap("name", "h", "ip", "10.0.0.1")},
		"etc/aliases":                     {"alias", value.NewMap("name", "root", "target", "alice")},
	} {
		hosttest.Converge(t, h, tables[c.state], "present", c.arguments)
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Error(err)
		}
	}
}

// TestReadOnly checks the error and its hint if the account files cannot be changed.
func TestReadOnly(t *testing.T) {
	root := hosttest.Chroot(t)
	// useradd writes a new file beside the old one first. Here a directory is in its place.
	if err := os.MkdirAll(filepath.Join(root, "etc/passwd+/x"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := open(t, root)
	resource, diff := hosttest.Look(t, h, accountStates()["user"], "present", value.NewMap("name", "zoe"))
	_, err := resource.Apply(context.Background(), h, diff)
	if err == nil || !strings.Contains(err.Error(), "passwd") ||
		!strings.Contains(diag.HintOf(err), "/etc is writable") {
		t.Errorf("making a user: %v (hint: %s)", err, diag.HintOf(err))
	}
}

// accountStates returns the states that concern users.
func accountStates() module.Registry {
	return module.Registry{
		"alias":           alias.Functions(),
		"cron":            cron.Functions(noSources{}),
		"group":           group.Functions(),
		"host":            hosts.Functions(),
		"ssh_auth":        sshauth.Functions(noSources{}),
		"ssh_known_hosts": sshknownhosts.Functions(),
		"user":            user.Functions(),
	}
}

// TestPlansOfRemovedAccounts runs the checks of a dry run one after the other. A later step must find the accounts as
// an earlier one would leave them.
func TestPlansOfRemovedAccounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("entering a root requires root")
	}
	root := t.TempDir()
	hosttest.Tree(t, root)
	h, err := machine.New(host.Options{Root: root, Chroot: true})
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]module.Table{"user": user.Functions(), "group": group.Functions()}
	planned := value.NewList()
	for _, step := range []struct{ state, function, name, comment string }{
		{"user", "absent", "alice", "user alice would be removed"},
		{"group", "absent", "alice", "there is no group alice"},
		{"user", "absent", "alice", "there is no user alice"},
		{"group", "present", "alice", "group alice would be made"},
		{"group", "absent", "alice", "group alice would be removed"},
		{"group", "present", "crew", "group crew would be made"},
		{"group", "present", "crew", "group crew is as declared"},
		{"group", "absent", "crew", "group crew would be removed"},
		{"user", "present", "zoe", "user zoe would be made"},
		{"user", "absent", "zoe", "user zoe would be removed"},
	} {
		_, d := hosttest.Look(t, h, tables[step.state], step.function,
			value.NewMap("name", step.name, "__planned__", planned))
		if d.Comment != step.comment {
			t.Errorf("%s.%s %s: %q, want %q", step.state, step.function, step.name, d.Comment, step.comment)
		}
		if !d.Empty() {
			planned.Append(value.NewMap("function", step.state+"."+step.function, "name", step.name, "changes", d.Changes))
		}
	}
}
