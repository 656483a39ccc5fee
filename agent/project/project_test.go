package project_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
)

// of returns a run for the project shop on a host with the given instance.
func of(c config.Config, instance, env string) *project.Run {
	return &project.Run{
		Host:     &inspect.Host{Records: records.Records{Site: site.Site{Config: c}}},
		Identity: &grains.Identity{Service: "shop", Instance: instance},
		Entry:    &ledger.Project{Name: "shop", Env: env},
	}
}

func TestEnvironment(t *testing.T) {
	c := config.Config{Dev: []string{"dev"}, Prod: []string{"live"}}
	for _, x := range []struct{ instance, entry, want string }{
		{"dev", "", project.Dev},
		{"live", "", project.Prod},
		{"testing", "", project.Staging},
		{"live", project.Dev, project.Dev}, // the saved environment of the project is used
	} {
		if got := of(c, x.instance, x.entry).Environment(); got != x.want {
			t.Errorf("instance %q, switched to %q: %s, want %s", x.instance, x.entry, got, x.want)
		}
	}
}

func TestUnsignedTreesByEnvironment(t *testing.T) {
	for _, x := range []struct {
		env, local string
		unsigned   []string
		runs       bool
	}{
		{project.Dev, trust.ByEditable, nil, true},
		{project.Staging, trust.ByEditable, nil, false},
		{project.Staging, trust.ByPush, nil, true},
		{project.Prod, trust.ByPush, nil, false},
		{project.Prod, trust.ByPush, []string{"shop"}, true},
	} {
		release := artifact.Release{Project: "shop", Version: "1.0", Local: x.local}
		err := of(config.Config{AllowUnsigned: x.unsigned}, "", x.env).Allow(release)
		if (err == nil) != x.runs || err != nil && exit.Code(err) != exit.Refused {
			t.Errorf("%s in %s, allow_unsigned %v: %v", x.local, x.env, x.unsigned, err)
		}
	}
}

func TestNamesThatAUserGives(t *testing.T) {
	for name, fine := range map[string]bool{"": true, "shop": true, "_shop-1": true, "1shop": false, "a b": false} {
		if err := project.CheckUser(name); (err == nil) != fine {
			t.Errorf("user %q: %v", name, err)
		}
	}
	for name, fine := range map[string]bool{
		"": true, "main": true, "release/1.2": true, "-x": false, "a..b": false, "x.lock": false, "a b": false,
	} {
		if err := project.CheckBranch(name); (err == nil) != fine {
			t.Errorf("branch %q: %v", name, err)
		}
	}
}

func TestHookCommandIsOneCommandLineOfAShell(t *testing.T) {
	got := project.HookCommand("/opt/it's/agent", "--root", "/a b")
	if want := `'/opt/it'\''s/agent' --root '/a b'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
